"""What a job's chronicle has. Covers: controller/jobs/following (what is told of it)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from controller_harness import ROOT, Harness
from hypothesis import given
from hypothesis import strategies as st

from understudy.controller.jobs.following import follow_jobs
from understudy.controller.jobs.requeue import enqueue_again
from understudy.controller.jobs.start import Planning
from understudy.controller.pending.arrays import split
from understudy.controller.tables.chronicle import MOST_PROMISES, Chronicle
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.protocol.messages import (
    Emulation,
    FollowJobs,
    JobRun,
    JobRuns,
    JobSpec,
    SubmitJob,
    Submitted,
)

if TYPE_CHECKING:
    from understudy.controller.core.core import Core


@pytest.fixture
def h() -> Harness:
    """Its policy starts nobody."""
    harness = Harness()
    harness.core.policy.next_run = lambda: None  # type: ignore[method-assign]
    return harness


def told(core: Core) -> list[JobRun]:
    answer = follow_jobs(core, FollowJobs(0, 0), ROOT)
    assert isinstance(answer, JobRuns)
    return answer.unfinished


def test_nothing_is_kept_until_somebody_follows(h: Harness) -> None:
    job = h.submit()
    Planning(h.core).promise(job, 50, 0)
    assert job.chronicle is None


def test_reasons_and_promises_are_told_with_their_times(h: Harness) -> None:
    told(h.core)
    job, planner = h.submit(), Planning(h.core)
    begin = int(h.time.now())
    h.run(5)
    planner.explain(job, "Resources")
    planner.promise(job, begin + 50, 0)
    planner.promise(job, begin + 50, 0)
    h.run(5)
    planner.explain(job, "Priority", "behind 7")
    planner.promise(job, begin + 70, 0)
    h.run(5)
    (run,) = told(h.core)
    assert [(at - begin, why) for at, why in run.reasons] == [
        (0, "None"),
        (5, "Resources"),
        (10, "Priority (behind 7)"),
    ]
    assert [(at - begin, start - begin) for at, start in run.promises] == [(5, 50), (10, 70)]


def test_jobs_that_were_there_before_are_told_of_from_then_on(h: Harness) -> None:
    job = h.submit()
    told(h.core)
    Planning(h.core).promise(job, 50, 0)
    (run,) = told(h.core)
    assert [start for _, start in run.promises] == [50]


def test_a_task_that_leaves_its_array_has_what_befell_the_array_and_then_its_own(
    h: Harness,
) -> None:
    told(h.core)
    job, planner = h.submit(array="1-3"), Planning(h.core)
    planner.promise(job, 50, 0)
    own = split(h.core, job, 1)
    planner.promise(own, 60, 0)
    assert job.chronicle is not None
    assert own.chronicle is not None
    assert [start for _, start in job.chronicle.promises] == [50]
    assert [start for _, start in own.chronicle.promises] == [50, 60]


def test_components_of_a_heterogeneous_job_have_chronicles_of_their_own(h: Harness) -> None:
    told(h.core)
    message = SubmitJob(JobSpec(), "#!/bin/sh\n", Emulation(9.0), components=[JobSpec()])
    assert isinstance(h.ask(message), Submitted)
    h.run(5)
    runs = told(h.core)
    assert [run.het_offset for run in runs] == [0, 1]
    assert all(len(run.reasons) == 1 for run in runs)


def test_a_run_that_was_requeued_has_a_story_of_its_own(h: Harness) -> None:
    told(h.core)
    job = h.submit()
    Planning(h.core).promise(job, 50, 0)
    now = h.time.now()
    enqueue_again(h.core, job, now)
    Planning(h.core).promise(job, 70, 0)
    assert job.chronicle is not None
    assert [start for _, start in job.chronicle.promises] == [70]


def test_what_is_done_to_a_job_that_runs_is_told(h: Harness) -> None:
    told(h.core)
    job = h.submit()
    now = h.time.now()
    for event in (JobEvent.ALLOCATED, JobEvent.SUSPENDED, JobEvent.RESUMED, JobEvent.EXITED_WELL):
        advance(job, event, now)
    assert job.chronicle is not None
    assert [what for _, what, _ in job.chronicle.events] == ["suspended", "resumed"]


def test_of_the_reasons_that_began_in_the_same_second_the_last_is_kept() -> None:
    chronicle = Chronicle()
    for since, reason in ((0.2, "None"), (0.9, "Priority"), (1.2, "Resources"), (1.6, "Priority")):
        chronicle.waits(since, reason, "")
    assert chronicle.reasons == [(0, "Priority")]


@given(st.lists(st.integers(0, 1000), max_size=4 * MOST_PROMISES))
def test_of_many_promises_the_first_and_the_last_stay_and_never_too_many(
    starts: list[int],
) -> None:
    chronicle = Chronicle()
    for now, start in enumerate(starts):
        chronicle.promised(now, start)
        chronicle.waits(now, f"reason {start}", "")
    for kept in (chronicle.promises, chronicle.reasons):
        assert len(kept) <= MOST_PROMISES
        assert [at for at, _ in kept] == sorted(at for at, _ in kept)
    assert chronicle.promises[:1] == list(enumerate(starts))[:1]
    assert chronicle.promises[-1:] == list(enumerate(starts))[-1:]
    reasons = [why for _, why in chronicle.reasons]
    assert reasons[-1:] == [f"reason {start}" for start in starts[-1:]]
