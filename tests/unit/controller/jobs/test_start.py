"""What the planner does with an ask, and records for a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from controller_harness import Harness

from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.api import Ask

if TYPE_CHECKING:
    from understudy.controller.tables.job import Job

ALL = 0b1111


@pytest.fixture
def h() -> Harness:
    """Its policy starts nobody."""
    harness = Harness()
    harness.core.policy.next_run = lambda: None  # type: ignore[method-assign]
    return harness


def start(h: Harness, job: Job, *, time_limit_s: int | None = None, refused: bool = False) -> bool:
    core = h.core
    ask = Ask(job, core.tables.partitions["main"], ALL, time_limit_s=time_limit_s)
    allocation = core.selector.select(ask, core.tables)
    assert allocation is not None
    if refused:
        core.tables.partitions["main"].state = "DOWN"
    return Planning(core).start(ask, allocation, h.time.now())


def test_a_job_gets_the_time_limit_that_is_asked_for_if_it_starts(h: Harness) -> None:
    job = h.submit(time_limit_s=3600, time_min_s=600)
    assert start(h, job, time_limit_s=600)
    assert (job.is_running, job.time_limit_s, job.end_time) == (True, 600, job.start_time + 600)


def test_a_job_that_is_not_started_keeps_its_time_limit(h: Harness) -> None:
    job = h.submit(time_limit_s=3600)
    assert not start(h, job, time_limit_s=600, refused=True)
    assert (job.is_pending, job.time_limit_s) == (True, 3600)


def test_the_limit_that_is_asked_for_counts_for_the_partition(h: Harness) -> None:
    h.core.tables.partitions["main"].max_time_s = 1200
    job = h.submit(time_limit_s=600)
    job.time_limit_s = 3600
    assert not start(h, job)
    assert start(h, job, time_limit_s=1200)


def test_of_an_array_the_task_that_starts_alone_gets_it(h: Harness) -> None:
    job = h.submit(array="1-3", time_limit_s=3600)
    assert start(h, job, time_limit_s=600)
    task = list(h.core.tables.running.values())[-1]
    assert (task.time_limit_s, job.time_limit_s, job.is_pending) == (600, 3600, True)


def test_promises_are_counted_until_the_job_is_queued_anew(h: Harness) -> None:
    job, planner = h.submit(), Planning(h.core)
    for start in (None, 50, 50, 70, None, 70, 60):
        planner.promise(job, start, 0)
    assert (job.first_promise, job.last_promise, job.promise_moves) == (50, 60, 2)
    assert job.expected_start == 60
    job.forget_promises()
    assert (job.first_promise, job.last_promise, job.promise_moves) == (None, None, 0)
    assert job.expected_start is None


def test_what_is_to_be_remembered_of_a_job_is_recorded(h: Harness) -> None:
    job, planner = h.submit(), Planning(h.core)
    planner.tried(job, "Main")
    planner.await_switches(job, 100)
    planner.ask_for_whole_nodes(job)
    assert (job.last_scheduler, job.switches_since, job.exclusive) == ("Main", 100, True)
