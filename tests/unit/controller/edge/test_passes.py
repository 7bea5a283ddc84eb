"""What becomes of a pass that fails: a live controller goes on without what it failed at; a run
under virtual time is told to end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from controller_harness import ROOT, Harness

from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.api import Ask, Note, SchedulingPolicy
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.scheduling.textbook.easy import Easy
from understudy.protocol.messages import ControlJobs, GetStatistics

if TYPE_CHECKING:
    from collections.abc import Iterator


class Broken(SelectConsTres):
    """A plug-in's selector that cannot choose for jobs of this name."""

    def __init__(self, method: str, *names: str) -> None:
        super().__init__(frozenset({"CR_CORE"}))
        self.names = names
        setattr(self, method, self.fails(getattr(super(), method)))

    def fails(self, method: Any) -> Any:
        def call(ask: Ask, *arguments: Any) -> Any:
            if ask.job.spec.name in self.names:
                raise ZeroDivisionError(ask.job.spec.name)
            return method(ask, *arguments)

        return call


def cluster(
    policy: type[SchedulingPolicy], selector: SelectConsTres, *, is_virtual: bool
) -> tuple[Harness, list[Exception]]:
    failures: list[Exception] = []
    harness = Harness(is_virtual=is_virtual)
    core = harness.core
    core.failed = failures.append
    core.policy = policy(core.tables, selector, Planning(core), {})
    core.policy.note(Note.START, harness.time.now())
    return harness, failures


@pytest.mark.parametrize("is_virtual", [False, True])
@pytest.mark.parametrize("policy", [Builtin, Backfill, Easy])
def test_the_job_at_which_a_pass_fails_is_held_and_the_others_start(
    policy: Any, is_virtual: bool, caplog: pytest.LogCaptureFixture
) -> None:
    h, failures = cluster(policy, Broken("select", "bad", "worse"), is_virtual=is_virtual)
    bad, good, worse, last = [h.submit(name=name) for name in ("bad", "good", "worse", "last")]
    h.run(200)
    assert [good.is_running or good.is_finished, last.is_running or last.is_finished] == [
        True,
        True,
    ]
    for job in (bad, worse):
        assert (job.is_pending, job.priority, job.held_by, job.reason_detail) == (
            True,
            0,
            "JobHeldAdmin",
            "JobHeldAdmin, as scheduling it failed",
        )
    assert [str(error) for error in failures] == ["bad", "worse"]
    assert f"at job {bad.job_id}, which is held now, failed" in caplog.text
    assert "ZeroDivisionError: bad" in caplog.text
    answer = h.ask(GetStatistics())
    assert answer.numbers["failures"] == 2


def test_a_backfill_pass_that_fails_is_over_and_the_next_goes_on_behind_it() -> None:
    h, failures = cluster(Backfill, Broken("will_run", "bad"), is_virtual=False)
    wide, bad, small = (
        h.submit(name="wide", min_nodes=3, exclusive=True),
        h.submit(name="bad", min_nodes=4),
        h.submit(name="small", min_nodes=1),
    )
    h.run(3)
    h.acknowledge()
    h.run(40)
    h.acknowledge()
    assert wide.is_running
    assert small.is_running, "behind the job that is set aside"
    assert bad.held_by == "JobHeldAdmin"
    assert len(failures) == 1
    assert h.core.policy.gives_way is False
    h.ask(ControlJobs("release", [str(bad.job_id)]), ROOT)
    h.run(40)
    assert len(failures) == 2, "who is released is tried again"


class Faulty(SchedulingPolicy):
    """A policy that fails so many times, wherever it is, before it starts all jobs."""

    def __init__(self, harness: Harness, failures: int) -> None:
        core = harness.core
        super().__init__(core.tables, core.selector, Planning(core), {})
        self.inner, self.failures, self.tries = harness.core.policy, failures, []
        self.time = harness.time

    def note(self, what: Note, now: float) -> None:
        self.inner.note(what, now)

    def next_run(self) -> float | None:
        return self.time.now() if self.failures else self.inner.next_run()

    def run(self, now: float) -> Iterator[float | None]:
        self.tries.append(now)
        if self.failures:
            self.failures -= 1
            self.inner.note(Note.CHANGE, now)
            raise RecursionError("keys of two kinds")
        yield from self.inner.run(now)


@pytest.mark.parametrize("is_virtual", [False, True])
def test_a_pass_that_fails_at_no_job_comes_again_each_time_later(is_virtual: bool) -> None:
    h = Harness(is_virtual=is_virtual)
    failures: list[Exception] = []
    h.core.failed = failures.append
    h.core.policy = policy = Faulty(h, 9)
    begun = h.time.now()
    job = h.submit()
    h.run(400)
    assert len(failures) == 9
    assert [round(when - begun) for when in policy.tries[:10]] == [
        0,
        2,
        6,
        14,
        30,
        62,
        122,
        182,
        242,
        302,
    ]
    assert job.is_running or job.is_finished


def test_a_timer_that_fails_is_told_of_and_does_not_keep_others_from_coming() -> None:
    h = Harness()
    failures: list[Exception] = []
    h.core.failed = failures.append

    def fail() -> None:
        raise KeyError("x")

    came: list[int] = []
    h.core.at(h.time.now() + 1, fail)
    h.core.at(h.time.now() + 2, came.append, 1)
    h.run(3)
    assert came == [1]
    assert [type(error) for error in failures] == [KeyError]
    assert h.core.counters.failures == 1


def test_priorities_are_calculated_again_after_a_period_in_which_that_failed() -> None:
    h = Harness()
    failures: list[Exception] = []
    h.core.failed = failures.append
    calls: list[float] = []

    class Priorities:
        def __getattr__(self, name: str) -> Any:
            return getattr(basic, name)

        def next_calculation(self, now: float) -> float | None:
            return now + 10 if len(calls) < 3 else None

        def calculate(self, now: float) -> bool:
            calls.append(now)
            raise ValueError("no shares")

    basic, h.core.priorities = h.core.priorities, Priorities()  # type: ignore[assignment]
    h.submit()
    h.run(100)
    assert len(calls) == 3
    assert len(failures) == 3
