"""Requests at the door, and passes in slices.

Covers: controller/edge/rpc, controller/later.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from controller_harness import OTHER, ROOT, USER, FakeSender, Harness

from understudy.controller.core.locks import READ, WRITE, Needs
from understudy.controller.edge import rpc, server
from understudy.controller.edge.passes import Passes
from understudy.controller.edge.rate_limit import RateLimit
from understudy.controller.edge.server import BACK_OFF, Server
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
    def __init__(self, message: Message, sender: FakeSender = USER) -> None:
        self.message, self.sender = message, sender
        self.has_left = False
        self.answers: list[Message] = []

    def reply(self, answer: Message) -> None:
        self.answers.append(answer)

    def is_gone(self) -> bool:
        return self.has_left


class Door:
    def __init__(
        self, *, is_virtual: bool = False, jobs: int = 0, turn_s: float = math.inf
    ) -> None:
        self.h = Harness(is_virtual=is_virtual)
        for _ in range(jobs):
            self.h.submit(hold=True)
        self.soon: list[Callable[[], None]] = []
        self.now = 0.0
        self.passes = Passes(self.h.core, self.h.locks, soon=self.soon.append, clock=self.clock)
        self.server = Server(
            self.h.core,
            self.h.locks,
            self.passes,
            None,
            soon=self.soon.append,
            clock=self.clock,
            turn_s=turn_s,
        )

    def clock(self) -> float:
        self.now += 0.004
        return self.now

    def ask(self, message: Message, sender: FakeSender = USER) -> FakeRequest:
        request = FakeRequest(message, sender)
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
    assert door.ask(Ping(), OTHER).answers == [Ok()]
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
    door = Door(jobs=500)
    listing = door.ask(Query("jobs", ["job_id"] * 40))
    assert listing.answers == []
    submission = door.ask(SUBMIT, OTHER)
    short = door.ask(Query("partitions", ["name"]), ROOT)
    assert submission.answers == []
    assert short.answers == [], "it waits behind the writer that waits"
    while door.soon:
        door.turn()
    (rows,) = listing.answers
    assert isinstance(rows, Rows)
    assert len(msgspec.msgpack.decode(rows.rows)) == 500  # type: ignore[arg-type]  # packed
    assert submission.answers == [Submitted(501)]
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
    assert policy.steps == 0, "others may have something to say at this instant"
    door.h.time.run_until(door.h.time.now() + 0.001)
    assert (policy.steps, door.passes.slices) == (10, 0)


def test_no_pass_begins_while_too_many_requests_wait() -> None:
    door = Door()
    door.passes.most_requests = 2
    job = door.h.submit(hold=True)
    needs = Needs(job=READ)
    assert door.h.locks.take(needs)
    waiting = [door.ask(SUBMIT, each) for each in (USER, OTHER)]
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


@pytest.mark.parametrize(("others_s", "steps"), [(0.0, 2), (0.008, 3), (10.0, 6)])
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


LISTING = Query("jobs", ["job_id"] * 40)


def test_in_a_storm_another_user_waits_for_one_request_and_not_for_all() -> None:
    door = Door(turn_s=0.01)
    storm = [door.ask(SUBMIT) for _ in range(200)]
    assert sum(bool(each.answers) for each in storm) < 3, "the loop has its turn after 10 ms"
    other = door.ask(SUBMIT, OTHER)
    while not other.answers:
        door.turn()
    assert sum(bool(each.answers) for each in storm) < 8
    while door.soon:
        door.turn()
    assert all(each.answers for each in storm)
    numbers = [each.answers[0].job_id for each in storm]  # type: ignore[attr-defined]
    assert numbers == sorted(numbers), "a user's own are handled in their order"
    assert door.passes.requests == 0


def test_a_user_has_one_long_listing_at_a_time_beside_those_of_others() -> None:
    door = Door(jobs=640, turn_s=0.01)
    storm = [door.ask(LISTING) for _ in range(50)]
    other = door.ask(LISTING, OTHER)
    while not other.answers:
        door.turn()
    assert sum(bool(each.answers) for each in storm) <= 2
    while door.soon:
        door.turn()
    assert all(len(each.answers) == 1 for each in storm)
    assert door.h.locks.available(Needs(WRITE, WRITE, WRITE, WRITE))


def test_the_next_of_a_user_who_ask_the_same_share_a_listing_that_begins() -> None:
    door = Door(jobs=250, turn_s=0.01)
    other = door.ask(LISTING, OTHER)
    storm = [door.ask(LISTING) for _ in range(server.MOST_JOINING + 2)]
    storm.append(door.ask(Query("partitions", ["name"])))
    while not storm[0].answers:
        door.server.after_event()  # nobody shares what is made already
        door.turn()
    assert other.answers[0] is not storm[0].answers[0]
    answer = storm[0].answers[0]
    assert all(each.answers[0] is answer for each in storm[: server.MOST_JOINING + 1])
    assert not storm[-2].answers
    assert not storm[-1].answers
    while door.soon:
        door.turn()
    assert all(each.answers for each in storm)
    assert door.passes.requests == 0


def test_one_request_of_a_user_waits_for_locks_and_the_others_behind_it() -> None:
    door = Door(turn_s=0.01)
    needs = Needs(job=READ)
    assert door.h.locks.take(needs)
    storm = [door.ask(SUBMIT) for _ in range(1000)]
    assert door.h.locks.statistics().waiting == 1
    assert door.passes.requests == 1000, "max_rpc_cnt counts all"
    door.h.locks.drop(needs)
    assert sum(bool(each.answers) for each in storm) == 1, "the loop is not kept for all of them"
    while door.soon:
        door.turn()
    assert all(each.answers for each in storm)
    assert door.passes.requests == 0


def test_a_listing_whose_reader_has_left_is_not_made_but_a_submission_is_done() -> None:
    door = Door(turn_s=0.01)
    for _ in range(3):
        door.ask(SUBMIT)
    waiting = [door.ask(LISTING), door.ask(SUBMIT)]
    for each in waiting:
        each.has_left = True
    while door.soon:
        door.turn()
    assert waiting[0].answers == []
    assert waiting[1].answers == [Submitted(4)]


def test_a_node_daemon_acts_for_no_user_even_if_it_says_that_it_is_root() -> None:
    door = Door(jobs=1)
    stolen = FakeSender("noded0", 0, 0, is_daemon=True, is_node=True)
    for message in (SUBMIT, CancelJobs(["1"]), Query("jobs", ["job_id"])):
        [answer] = door.ask(message, stolen).answers
        assert isinstance(answer, Failure)
        assert answer.code == 2002
    assert door.ask(Ping(), stolen).answers == [Ok()]


def test_a_user_with_too_many_waiting_is_told_to_come_again_and_daemons_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "MOST_WAITING", 20)
    door = Door(turn_s=0.01)
    assert door.h.locks.take(Needs(job=READ))
    storm = [door.ask(SUBMIT) for _ in range(22)]
    assert [each.answers for each in storm[:21]] == [[]] * 21
    assert storm[21].answers == [BACK_OFF]
    daemon = FakeSender("noded0", 0, 0, is_daemon=True)
    assert all(not door.ask(SUBMIT, daemon).answers for _ in range(30))
    assert door.h.core.counters.backed_off == 1


@pytest.mark.parametrize("is_virtual", [True, False])
def test_who_has_no_token_is_told_to_back_off_until_the_clusters_time_brings_some(
    is_virtual: bool, caplog: pytest.LogCaptureFixture
) -> None:
    door = Door(is_virtual=is_virtual)
    door.server.limit(RateLimit.of(["rl_enable", "rl_bucket_size=3", "rl_refill_rate=1"]))
    with caplog.at_level("INFO", "understudy"):
        answers = [door.ask(SUBMIT).answers[0] for _ in range(5)]
    assert answers[3:] == [BACK_OFF, BACK_OFF]
    assert [type(each) for each in answers[:3]] == [Submitted] * 3
    assert caplog.text.count("RPC rate limit exceeded by uid 1000 with REQUEST_SUBMIT_BATCH") == 2
    assert door.ask(Ping(), OTHER).answers == [Ok()], "each has a bucket of his own"
    for free in (ROOT, FakeSender("noded0", 1000, 1000, is_daemon=True)):
        assert all(door.ask(Ping(), free).answers == [Ok()] for _ in range(5))
    assert door.h.core.counters.backed_off == 2
    door.h.run(1)
    assert [door.ask(Ping()).answers[0] for _ in range(2)] == [Ok(), BACK_OFF]
    door.server.limit(None)
    assert door.ask(Ping()).answers == [Ok()]
