"""News of node daemons that cannot be true: found by tests/fuzz."""

from __future__ import annotations

import pytest
from controller_harness import FakeSender, Harness

from understudy.protocol.messages import EpilogComplete, Failure


@pytest.mark.parametrize("nodes", ["n[", "n999", "1-5%2"])
def test_an_epilog_that_failed_on_nodes_that_nobody_knows_is_refused(nodes: str) -> None:
    daemon = FakeSender("noded0", 0, 0, is_daemon=True)
    answer = Harness().ask(EpilogComplete(1, 0, "n1", failed=nodes), daemon)
    assert isinstance(answer, Failure)
    assert answer.code == 2018


@pytest.mark.parametrize("when", [float("inf"), float("nan")])
def test_a_node_daemon_that_was_started_at_no_time_is_refused(when: float) -> None:
    assert isinstance(Harness().register("noded0", started=when), Failure)
