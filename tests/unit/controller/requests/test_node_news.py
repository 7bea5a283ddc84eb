"""News of node daemons: those that cannot be true, or not in full, late ones, and nodes that have
booted.
"""

from __future__ import annotations

import pytest
from controller_harness import FakeSender, Harness

from understudy.controller.ports import NoJournal
from understudy.model.states import JobState
from understudy.protocol.messages import (
    BatchComplete,
    EpilogComplete,
    Failure,
    LaunchBatch,
    Registered,
    RegisterNodes,
    TerminateJob,
)


@pytest.mark.parametrize("nodes", ["n[", "n999", "1-5%2"])
def test_an_epilog_that_failed_on_nodes_that_nobody_knows_is_refused(nodes: str) -> None:
    daemon = FakeSender("noded0", 0, 0, is_daemon=True)
    answer = Harness().ask(EpilogComplete(1, 0, "n1", failed=nodes), daemon)
    assert isinstance(answer, Failure)
    assert answer.code == 2018


@pytest.mark.parametrize("over", [True, False])
def test_a_script_of_a_run_whose_nodes_were_given_back_long_ago_is_cleaned_up(over: bool) -> None:
    h = Harness()
    job = h.submit()
    h.acknowledge()
    h.finish(job)
    h.acknowledge()
    if over:
        h.epilog(job)
    h.wire.sent.clear()
    late = BatchComplete(job.job_id, job.restarts, 0, 0, node="n1")
    h.ask(late, FakeSender("noded0", 0, 0, is_daemon=True))
    assert [sent.message for sent in h.wire.sent] == (
        [TerminateJob(job.job_id, job.restarts, "n1")] if over else []
    )


def test_a_script_whose_node_was_given_back_is_cleaned_up_though_its_job_completes_elsewhere() -> (
    None
):
    h = Harness(daemons={"noded0": "n[1-2]", "noded1": "n[3-4]"})
    job = h.submit(min_nodes=4, exclusive=True, num_tasks=4)
    h.acknowledge()
    h.finish(job)
    h.acknowledge()
    h.epilog(job, "n[1-2]")
    assert job.is_completing
    taken = h.register("noded0", running=[(job.job_id, job.restarts)])
    assert taken == Registered([(job.job_id, job.restarts)])
    h.wire.sent.clear()
    late = BatchComplete(job.job_id, job.restarts, 0, 0, node="n1")
    h.ask(late, FakeSender("noded0", 0, 0, is_daemon=True))
    assert [sent.message for sent in h.wire.sent] == [TerminateJob(job.job_id, job.restarts, "n1")]


@pytest.mark.parametrize("when", [float("inf"), float("nan")])
def test_a_node_daemon_that_was_started_at_no_time_is_refused(when: float) -> None:
    assert isinstance(Harness().register("noded0", started=when), Failure)


def test_a_node_daemon_registers_in_no_other_name() -> None:
    h = Harness()
    stolen = FakeSender("noded1", 0, 0, is_daemon=True, is_node=True)
    answer = h.ask(RegisterNodes("noded0", "unix:/mine", "n1", 1.0, 1.0), stolen)
    assert isinstance(answer, Failure)
    assert answer.code == 2002


def test_a_node_daemon_registers_no_nodes_but_those_of_cluster_json() -> None:
    h = Harness(register=False)
    h.core.stands_for["noded0"] = h.core.names.to_bitmap("n[1-2]")
    h.daemons["noded0"] = "n[1-3]"
    taken = h.register("noded0")
    assert isinstance(taken, Failure)
    assert taken.code == 2002
    h.daemons["noded0"] = "n[1-2]"
    assert isinstance(h.register("noded0"), Registered)


def test_nodes_that_slurm_conf_has_lost_keep_no_others_from_being_registered() -> None:
    h = Harness(register=False)
    h.daemons["noded0"] = "n[1-6]"
    assert isinstance(h.register("noded0"), Registered)
    assert h.core.names.to_expression(h.core.daemons["noded0"].nodes) == "n[1-4]"
    h.daemons["noded0"] = "n[5-6]"
    gone = h.register("noded0")
    assert isinstance(gone, Failure)
    assert gone.text == "noded0 registers nodes that are not in slurm.conf: n[5-6]"


class Noting(NoJournal):
    """Counts the jobs that are to be saved."""

    def __init__(self) -> None:
        self.jobs: list[int] = []

    def job(self, job_id: int) -> None:
        self.jobs.append(job_id)


def test_an_exit_code_that_comes_when_the_nodes_are_free_is_saved() -> None:
    journal = Noting()
    h = Harness(journal=journal)
    job = h.submit()
    h.acknowledge()
    h.cancel(job)
    h.acknowledge()
    h.epilog(job)
    assert job.is_finished
    assert not job.is_completing
    before = len(journal.jobs)
    h.finish(job, code=3)
    assert job.exit_code == 3
    assert journal.jobs[before:] == [job.job_id]


TWO = {"noded0": "n1", "noded1": "n[2-4]"}


@pytest.mark.parametrize("node_of_script", [False, True])
def test_a_node_that_has_booted_has_lost_what_was_there_before(node_of_script: bool) -> None:
    h = Harness(daemons=TWO)
    job = h.submit(min_nodes=2)
    h.acknowledge()
    assert job.node_list == "n[1-2]"
    h.run(10)
    name, now = "noded0" if node_of_script else "noded1", h.time.now()
    h.register(name, started=now, booted=now)
    assert (job.state, job.is_completing) == (JobState.PENDING, True)  # requeued
    assert len(h.sent(TerminateJob, job)) == 2


@pytest.mark.parametrize("later_s", [10, 0.5])
def test_what_may_have_begun_before_a_node_booted_does_not_begin_again_as_the_same_run(
    later_s: float,
) -> None:
    h = Harness()
    job = h.submit()
    h.wire.sent.clear()  # the answer to its launch is lost
    h.run(later_s)  # less than a second: times of starts are told in whole ones
    h.register("noded0", started=h.time.now(), booted=h.time.now())
    assert job.restarts == 1
    assert h.sent(LaunchBatch, job) == []


def test_a_daemon_that_was_restarted_on_a_node_that_was_not_gets_the_launch_again() -> None:
    h = Harness()
    job = h.submit()
    h.wire.sent.clear()
    h.run(10)
    h.register("noded0", started=h.time.now())
    assert (job.restarts, len(h.sent(LaunchBatch, job))) == (0, 1)


def test_jobs_that_have_begun_since_are_not_lost_if_the_news_comes_twice() -> None:
    h = Harness()
    booted = h.time.now()
    job = h.submit()
    h.acknowledge()
    h.run(10)
    for _ in range(2):
        h.register("noded0", [(job.job_id, 0)], started=booted, booted=booted)
    assert (job.restarts, job.is_running) == (0, True)
