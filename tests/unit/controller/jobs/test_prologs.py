"""The prolog of the nodes at a job's allocation: who waits for it, and what its failure does. As
Slurm 22.05.8 was seen to do.
"""

from __future__ import annotations

import pytest
from controller_harness import ROOT, USER, FakeSender, Harness

from understudy.controller.later import Later
from understudy.controller.saved.records import decode_job, encode_job
from understudy.controller.tables.job import HELD_BY_ADMIN, Job
from understudy.controller.tables.settings import Settings
from understudy.model.states import JobState, NodeFlag
from understudy.protocol.messages import (
    Allocated,
    AllocateJob,
    AwaitJob,
    Failure,
    JobSpec,
    LaunchBatch,
    LaunchProlog,
    PrologComplete,
)

DAEMON = FakeSender("noded0", 0, 0, is_daemon=True)


class Site(Harness):
    """A cluster with a Prolog."""

    def __init__(self, *flags: str) -> None:
        super().__init__(
            settings=Settings(
                min_job_age_s=0, emulates_jobs=False, has_prolog=True, prolog_flags=frozenset(flags)
            )
        )

    def ended(self, job: Job, nodes: str, failed: str = "", restart: int = 0) -> None:
        self.ask(PrologComplete(job.job_id, restart, nodes, failed), DAEMON)

    def allocate(self) -> tuple[Job, Allocated]:
        answer = self.ask(
            AllocateJob(JobSpec(name="a", min_nodes=2), False, USER.user_id, USER.group_id), USER
        )
        assert isinstance(answer, Allocated)
        return self.core.tables.jobs[answer.job_id], answer

    def wait(self, job: Job, **what: bool) -> list[object]:
        heard: list[object] = []
        later = self.ask(AwaitJob(job.job_id, **what), USER)
        assert isinstance(later, Later)
        later.listen(heard.append)
        return heard


def test_without_the_flag_nodes_are_not_asked() -> None:
    site = Site()
    job = site.submit(min_nodes=2)
    assert not site.sent(LaunchProlog)
    assert site.sent(LaunchBatch, job)
    assert job.reason == "None"


def test_a_job_runs_with_the_reason_prolog_until_all_nodes_are_done() -> None:
    site = Site("alloc")
    job = site.submit(min_nodes=2)
    assert [sent.message.nodes for sent in site.sent(LaunchProlog)] == ["n[1-2]"]
    assert "SLURM_NODELIST=n[1-2]" in site.sent(LaunchProlog)[0].message.program_environment
    assert site.sent(LaunchBatch, job)
    assert (job.state, job.reason) == (JobState.RUNNING, "Prolog")
    site.ended(job, "n1")
    assert job.reason == "Prolog"
    site.ended(job, "n2")
    assert job.reason == "None"


def test_a_batch_script_can_be_put_off_until_all_nodes_are_done() -> None:
    site = Site("alloc", "deferbatch")
    job = site.submit(min_nodes=2)
    assert not site.sent(LaunchBatch)
    site.ended(job, "n[1-2]")
    assert len(site.sent(LaunchBatch, job)) == 1


def test_with_nohold_nobody_waits() -> None:
    site = Site("alloc", "nohold")
    job, answer = site.allocate()
    assert site.sent(LaunchProlog)
    assert answer.is_ready
    assert job.reason == "None"


def test_who_got_resources_hears_when_they_are_ready() -> None:
    site = Site("alloc")
    job, answer = site.allocate()
    assert answer.is_running
    assert not answer.is_ready
    heard = site.wait(job, until_ready=True)
    site.ended(job, "n[1-2]")
    (ready,) = heard
    assert isinstance(ready, Allocated)
    assert ready.is_ready


def test_a_failure_drains_the_node_and_holds_a_batch_job() -> None:
    site = Site("alloc")
    job = site.submit(min_nodes=2)
    site.ended(job, "n[1-2]", "n2")
    nodes = site.core.tables.nodes.nodes
    assert [bool(node.flags & NodeFlag.DRAIN) for node in nodes[:2]] == [False, True]
    assert nodes[1].reason == "Prolog error"
    assert job.is_pending
    assert (job.held_by, job.reason_detail, job.prolog_nodes) == (
        HELD_BY_ADMIN,
        "launch failed requeued held",
        0,
    )


@pytest.mark.parametrize("until", ["until_ready", "until_end"])
def test_a_failure_cancels_what_cannot_run_again_and_says_so(until: str) -> None:
    site = Site("alloc")
    job, _ = site.allocate()
    heard = site.wait(job, **{until: True})
    site.ended(job, "n[1-2]", "n2")
    assert (job.state, job.reason) == (JobState.CANCELLED, "None")
    (lost,) = heard
    assert isinstance(lost, Allocated)
    assert (lost.is_running, lost.notice) == (False, "Prolog failure on node n2")


def test_a_job_that_is_cancelled_meanwhile_keeps_the_reason() -> None:
    site = Site("alloc")
    job = site.submit()
    site.cancel(job, ROOT)
    assert (job.state, job.reason, job.prolog_nodes) == (JobState.CANCELLED, "Prolog", 0)
    site.ended(job, "n1")
    assert job.state is JobState.CANCELLED


def test_news_of_an_earlier_run_changes_nothing_but_the_node() -> None:
    site = Site("alloc")
    job = site.submit()
    site.ended(job, "n1", "n1", restart=3)
    assert job.is_running
    assert site.core.tables.nodes.nodes[0].flags & NodeFlag.DRAIN


def test_the_wait_survives_a_restart_of_the_controller_and_is_renewed_with_a_daemon() -> None:
    site = Site("alloc")
    job = site.submit()
    assert decode_job(encode_job(job)).prolog_nodes == job.prolog_nodes == 1
    before = len(site.sent(LaunchProlog))
    site.register("noded0")
    assert len(site.sent(LaunchProlog)) > before


def test_users_cannot_report_it() -> None:
    site = Site("alloc")
    job = site.submit()
    assert isinstance(site.ask(PrologComplete(job.job_id, 0, "n1"), USER), Failure)
