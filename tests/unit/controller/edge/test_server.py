"""Requests at the door, and passes in slices.

Covers: controller/edge/rpc, controller/later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from controller_harness import USER, Harness

from understudy.controller.core.locks import READ, WRITE, Needs
from understudy.controller.edge import rpc
from understudy.controller.edge.passes import Passes
from understudy.controller.edge.server import Server
from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.api import Note, SchedulingPolicy
from understudy.protocol.messages import (
    AwaitEmpty,
    CancelJobs,
    Failure,
    JobSpec,
    Message,
    Ok,
    Ping,
    Query,
    Rows,
    SubmitJob,
    Submitted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class FakeRequest:
    def __init__(self, message: Message) -> None:
        self.message, self.sender = message, USER
        self.answers: list[Message] = []

    def reply(self, answer: Message) -> None:
        self.answers.append(answer)

    def is_gone(self) -> bool:
        return False


class Door:
    def __init__(self, *, is_virtual: bool = False, jobs: int = 0) -> None:
        self.h = Harness(is_virtual=is_virtual)
        for _ in range(jobs):
            self.h.submit(hold=True)
        self.soon: list[Callable[[], None]] = []
        self.now = 0.0
        self.passes = Passes(self.h.core, self.h.locks, soon=self.soon.append, clock=self.clock)
        self.server = Server(
            self.h.core, self.h.locks, self.passes, None, soon=self.soon.append, clock=self.clock
        )

    def clock(self) -> float:
        self.now += 0.004
        return self.now

    def ask(self, message: Message) -> FakeRequest:
        request = FakeRequest(message)
        answer = self.server.handle(request)  # type: ignore[arg-type]
        if answer is not None:
            request.reply(answer)
        return request

    def turn(self) -> None:
        waiting, self.soon[:] = list(self.soon), []
        for call in waiting:
            call()


SUBMIT = SubmitJob(JobSpec(), "#!/bin/sh\n")


def test_a_request_is_answered_at_once_when_nobody_is_in_its_way() -> None:
    door = Door()
    assert door.ask(SUBMIT).answers == [Submitted(1)]
    assert door.ask(Ping()).answers == [Ok()]
    assert isinstance(door.ask(Ok()).answers[0], Failure)


def test_a_request_waits_for_its_locks() -> None:
    door = Door()
    needs = Needs(job=READ)
    assert door.h.locks.take(needs)
    request = door.ask(SUBMIT)
    assert request.answers == []
    assert door.ask(Ping()).answers == [Ok()]
    door.h.locks.drop(needs)
    assert request.answers == [Submitted(1)]
    assert door.h.locks.available(Needs(WRITE, WRITE, WRITE, WRITE))


def test_refusals_and_bugs_become_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door()
    assert door.ask(SubmitJob(JobSpec(partition="nosuch"), "x")).answers == [
        Failure(2000, "invalid partition specified: nosuch\nInvalid partition name specified")
    ]

    failures: list[Exception] = []
    door.h.core.failed = failures.append

    def fail(*_: Any) -> Message:
        raise RuntimeError("a bug")

    monkeypatch.setitem(rpc.RPCS, CancelJobs, rpc.RPCS[CancelJobs]._replace(handle=fail))
    (answer,) = door.ask(CancelJobs(["1"])).answers
    assert isinstance(answer, Failure)
    assert answer.code == 2090
    assert [str(error) for error in failures] == ["a bug"]


def test_an_answer_may_come_later() -> None:
    door = Door(jobs=1)
    request = door.ask(AwaitEmpty())
    assert request.answers == []
    door.ask(CancelJobs(["1"]))
    assert request.answers == [Ok()]


def test_a_long_listing_is_of_one_instant_and_lets_readers_in() -> None:
    door = Door(jobs=250)
    listing = door.ask(Query("jobs", ["job_id"] * 40))
    assert listing.answers == []
    submission, short = door.ask(SUBMIT), door.ask(Query("partitions", ["name"]))
    assert submission.answers == []
    assert short.answers == [], "it waits behind the writer that waits"
    while door.soon:
        door.turn()
    (rows,) = listing.answers
    assert isinstance(rows, Rows)
    assert len(msgspec.msgpack.decode(rows.rows)) == 250  # type: ignore[arg-type]  # packed
    assert submission.answers == [Submitted(251)]
    assert len(short.answers) == 1


def test_under_virtual_time_a_listing_takes_no_turns() -> None:
    door = Door(is_virtual=True, jobs=250)
    assert len(door.ask(Query("jobs", ["job_id"] * 40)).answers) == 1


class SlowPolicy(SchedulingPolicy):
    def __init__(self, door: Door, *, steps: int = 10) -> None:
        core = door.h.core
        self._all_steps = steps
        super().__init__(core.tables, core.selector, Planning(core), {})
        self.due: float | None = None
        self.steps = 0

    def note(self, what: Note, now: float) -> None:
        self.due = now

    def next_run(self) -> float | None:
        return self.due

    def run(self, now: float) -> Iterator[None]:
        self.due = None
        for _ in range(self._all_steps):
            self.steps += 1
            yield


def test_a_pass_lets_requests_in_between_its_slices() -> None:
    door = Door()
    door.h.core.policy = policy = SlowPolicy(door)
    door.ask(SUBMIT)
    door.h.time.run_until(door.h.time.now())
    assert 0 < policy.steps < 10
    before = policy.steps
    assert door.ask(SUBMIT).answers == [Submitted(2)]
    while door.soon:
        door.turn()
    assert policy.steps == 10 > before
    assert door.passes.slices > 1
    door.h.time.run_until(door.h.time.now())
    while door.soon:
        door.turn()
    assert policy.steps == 20, "what happened during the pass has another one made"


def test_under_virtual_time_a_pass_runs_whole() -> None:
    door = Door(is_virtual=True)
    door.h.core.policy = policy = SlowPolicy(door)
    door.ask(SUBMIT)
    door.h.time.run_until(door.h.time.now())
    assert (policy.steps, door.passes.passes) == (10, 1)


def test_no_pass_begins_while_too_many_requests_wait() -> None:
    door = Door()
    door.passes.most_requests = 2
    job = door.h.submit(hold=True)
    needs = Needs(job=READ)
    assert door.h.locks.take(needs)
    waiting = [door.ask(SUBMIT) for _ in range(2)]
    door.h.core.policy.note(Note.CHANGE, door.h.time.now())
    door.passes.arm()
    door.h.run(5)
    assert door.passes.passes == 0
    door.h.locks.drop(needs)
    assert all(request.answers for request in waiting)
    assert door.passes.requests == 0
    door.h.run(1)
    while door.soon:
        door.turn()
    assert door.passes.passes > 0
    assert job.is_pending


@pytest.mark.parametrize(("is_backfilling", "goes_on"), [(True, False), (False, True)])
def test_a_backfill_pass_that_meets_too_many_requests_goes_on_when_few_are_left(
    is_backfilling: bool, goes_on: bool
) -> None:
    door = Door()
    door.passes.most_requests = 100
    door.h.core.policy = policy = SlowPolicy(door)
    policy.gives_way = is_backfilling
    door.ask(SUBMIT)
    door.h.time.run_until(door.h.time.now())
    begun = policy.steps
    assert 0 < begun < 10
    door.passes.requests += 100
    door.turn()  # the slice that had been asked for
    while door.soon:
        door.turn()
    assert (policy.steps == 10) is goes_on
    door.passes.requests -= 79
    door.h.run(2)
    while door.soon:
        door.turn()
    assert (policy.steps == 10) is goes_on, "one more than 20 are left"
    door.passes.requests -= 21
    door.h.run(2)
    while door.soon:
        door.turn()
    assert policy.steps >= 10


@pytest.mark.parametrize(("others_s", "steps"), [(0.0, 2), (0.02, 6), (10.0, 13)])
def test_a_pass_goes_on_for_as_long_as_others_had_up_to_a_limit(
    others_s: float, steps: int
) -> None:
    door = Door()
    door.h.core.policy = policy = SlowPolicy(door, steps=50)
    door.ask(SUBMIT)
    door.h.time.run_until(door.h.time.now())
    begun = policy.steps
    door.now += others_s
    door.turn()
    assert policy.steps - begun == steps, "each step takes 4 ms, as each look at the clock does"
