"""News of node daemons that cannot be true, or not in full: found by tests/fuzz and
tests/simulation/changes.py.
"""

from __future__ import annotations

import pytest
from controller_harness import FakeSender, Harness

from understudy.protocol.messages import EpilogComplete, Failure, Registered, RegisterNodes


@pytest.mark.parametrize("nodes", ["n[", "n999", "1-5%2"])
def test_an_epilog_that_failed_on_nodes_that_nobody_knows_is_refused(nodes: str) -> None:
    daemon = FakeSender("noded0", 0, 0, is_daemon=True)
    answer = Harness().ask(EpilogComplete(1, 0, "n1", failed=nodes), daemon)
    assert isinstance(answer, Failure)
    assert answer.code == 2018


@pytest.mark.parametrize("when", [float("inf"), float("nan")])
def test_a_node_daemon_that_was_started_at_no_time_is_refused(when: float) -> None:
    assert isinstance(Harness().register("noded0", started=when), Failure)


def test_a_node_daemon_registers_in_no_other_name() -> None:
    h = Harness()
    stolen = FakeSender("noded1", 0, 0, is_daemon=True, is_node=True)
    answer = h.ask(RegisterNodes("noded0", "unix:/mine", "n1", 1.0, 1.0), stolen)
    assert isinstance(answer, Failure)
    assert answer.code == 2002


def test_nodes_that_slurm_conf_has_lost_keep_no_others_from_being_registered() -> None:
    h = Harness(register=False)
    h.daemons["noded0"] = "n[1-6]"
    assert isinstance(h.register("noded0"), Registered)
    assert h.core.names.to_expression(h.core.daemons["noded0"].nodes) == "n[1-4]"
    h.daemons["noded0"] = "n[5-6]"
    gone = h.register("noded0")
    assert isinstance(gone, Failure)
    assert gone.text == "noded0 registers nodes that are not in slurm.conf: n[5-6]"
