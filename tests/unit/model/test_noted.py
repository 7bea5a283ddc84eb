"""Names that a job's specification notes besides its values."""

from __future__ import annotations

from understudy.model.noted import GIVEN_EMPTY, NO_NODES, note, noted


def test_names_are_added_and_taken_back_in_the_order_of_letters() -> None:
    extra = {GIVEN_EMPTY: "gres qos"}
    assert note(extra, GIVEN_EMPTY, "comment", is_so=True) == "comment gres qos"
    assert note(extra, GIVEN_EMPTY, "gres", is_so=True) == "gres qos"
    assert note(extra, GIVEN_EMPTY, "gres", is_so=False) == "qos"
    assert note(extra, NO_NODES, "nodes", is_so=False) == ""
    assert noted(extra, GIVEN_EMPTY) == ["gres", "qos"]
    assert noted(extra, NO_NODES) == []
