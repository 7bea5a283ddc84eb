"""InactiveLimit: jobs of srun and salloc that nobody waits for any more.

Covers: controller/pending/awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller_harness import USER, FakeSender, Harness

from understudy.controller.later import Later
from understudy.controller.tables.settings import Settings
from understudy.model.states import JobState
from understudy.protocol.messages import Allocated, AllocateJob, AwaitJob, JobSpec

if TYPE_CHECKING:
    from understudy.controller.tables.job import Job


class Site(Harness):
    """A cluster with a limit, and the commands of jobs."""

    def __init__(self, limit_s: int = 40) -> None:
        super().__init__(settings=Settings(min_job_age_s=0, inactive_limit_s=limit_s))
        self.gone: set[int] = set()

    def allocate(self, sender: FakeSender = USER) -> Job:
        answer = self.ask(
            AllocateJob(JobSpec(name="a"), False, sender.user_id, sender.group_id), sender
        )
        assert isinstance(answer, Allocated)
        assert answer.is_watched == bool(self.core.settings.inactive_limit_s)
        return self.core.tables.jobs[answer.job_id]

    def watch(self, job: Job) -> None:
        later = self.ask(AwaitJob(job.job_id, True), USER)
        assert isinstance(later, Later)
        later.is_gone = lambda: job.job_id in self.gone


def test_a_job_whose_command_is_gone_is_ended() -> None:
    site = Site()
    job, other = site.allocate(), site.allocate()
    site.watch(job)
    site.watch(other)
    site.run(300)
    assert job.is_running
    site.gone.add(job.job_id)
    site.run(30)
    assert job.is_running
    site.run(90)
    assert (job.state, job.reason) == (JobState.TIMEOUT, "InactiveLimit")
    assert other.is_running


def test_who_comes_back_in_time_keeps_his_job() -> None:
    site = Site()
    job = site.allocate()
    site.watch(job)
    site.gone.add(job.job_id)
    site.run(75)
    site.gone.clear()
    site.run(300)
    assert job.is_running


def test_a_job_that_nobody_ever_waited_for_goes_on() -> None:
    site = Site()
    job = site.allocate()
    site.run(1000)
    assert job.is_running


def test_without_a_limit_nobody_is_looked_for() -> None:
    site = Site(0)
    job = site.allocate()
    site.watch(job)
    site.gone.add(job.job_id)
    site.run(1000)
    assert job.is_running


def test_partitions_for_root_alone_are_left_alone() -> None:
    site = Site()
    job = site.allocate()
    site.core.tables.partitions["main"].root_only = True
    site.watch(job)
    site.gone.add(job.job_id)
    site.run(1000)
    assert job.is_running
