"""What follows from a job's start and end. Covers: controller/core/reactions."""

from __future__ import annotations

import pytest
from controller_harness import USER, Harness

from understudy.model.states import JobState
from understudy.protocol.messages import Emulation, JobSpec, SubmitJob


@pytest.fixture
def h() -> Harness:
    return Harness()


def heard(h: Harness) -> list[tuple[str, int, JobState]]:
    """(what, job id, its state then) of all that happens from here on."""
    found: list[tuple[str, int, JobState]] = []

    def hear(what: str):
        return lambda _core, job, *_: found.append((what, job.job_id, job.state))

    for what in ("allocated", "started", "ended", "freed", "over", "requeued", "queued"):
        getattr(h.core.reactions, what).append(hear(what))
    return found


def test_a_life_is_told_in_its_order(h: Harness) -> None:
    found = heard(h)
    job = h.submit()
    h.complete(job)
    assert found == [
        ("allocated", 1, JobState.RUNNING),
        ("started", 1, JobState.RUNNING),
        ("ended", 1, JobState.COMPLETED),
        ("freed", 1, JobState.COMPLETED),
        ("over", 1, JobState.COMPLETED),
    ]


def test_a_requeued_run_ends_and_is_not_over(h: Harness) -> None:
    job = h.submit()
    h.acknowledge()
    found = heard(h)
    h.control("requeue", job)
    h.acknowledge()
    h.epilog(job)
    assert found == [
        ("requeued", 1, JobState.RUNNING),
        ("ended", 1, JobState.CANCELLED),
        ("freed", 1, JobState.PENDING),
        ("queued", 1, JobState.PENDING),
    ]


def test_a_job_that_never_ran_is_over_alone(h: Harness) -> None:
    job = h.submit(hold=True)
    found = heard(h)
    h.cancel(job)
    assert found == [("over", 1, JobState.CANCELLED)]


def test_nobody_is_started_before_all_components_have_their_nodes(h: Harness) -> None:
    found = heard(h)
    h.ask(SubmitJob(JobSpec(), "#!/bin/sh\n", Emulation(100.0), components=[JobSpec()]), USER)
    assert [(what, job_id) for what, job_id, _ in found] == [
        ("allocated", 1),
        ("allocated", 2),
        ("started", 1),
        ("started", 2),
    ]


def test_the_first_that_takes_an_empty_job_keeps_it_from_being_over(h: Harness) -> None:
    asked: list[str] = []

    def take(name: str, *, takes: bool):
        return lambda *_: (asked.append(name), takes)[1]

    h.core.reactions.emptied += [take("a", takes=False), take("b", takes=True)]
    h.core.reactions.emptied.append(take("c", takes=True))
    found = heard(h)
    job = h.submit()
    h.complete(job)
    assert asked == ["a", "b"]
    assert "over" not in [what for what, _, _ in found]
