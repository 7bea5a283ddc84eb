"""Listings are made once for all who ask the same, and anew as soon as something has happened."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from controller_harness import OTHER, ROOT, USER, Harness

from understudy.controller.edge import listings
from understudy.controller.edge.passes import Passes
from understudy.controller.edge.server import Server
from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.api import Note, SchedulingPolicy
from understudy.controller.views import query as query_view
from understudy.controller.views.query import PART, audience
from understudy.protocol.messages import (
    AnyMessage,
    CancelJobs,
    Failure,
    JobSpec,
    Message,
    Query,
    Rows,
    SubmitJob,
    UpdateReservation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

JOBS = Query("jobs", ["job_id", "state"])
NODES = Query("nodes", ["name", "flags"])


class Asker:
    def __init__(self, message: Message, sender: Any) -> None:
        self.message, self.sender = message, sender
        self.answers: list[Message] = []

    def reply_part(self, part: Message) -> None:
        self.reply(part)

    def reply(self, answer: Message) -> None:
        """As it comes out at the other end of the wire."""
        self.answers.append(msgspec.msgpack.decode(msgspec.msgpack.encode(answer), type=AnyMessage))

    def is_gone(self) -> bool:
        return False

    @property
    def rows(self) -> list[list[Any]]:
        return [row for answer in self.answers if isinstance(answer, Rows) for row in answer.rows]

    @property
    def is_answered(self) -> bool:
        return bool(self.answers) and not getattr(self.answers[-1], "more", False)


class Door:
    """A server, and how many columns it has worked out."""

    def __init__(self, *, jobs: int = 0, is_virtual: bool = False) -> None:
        self.h = Harness(is_virtual=is_virtual)
        self.soon: list[Callable[[], None]] = []
        self.clock_s = 0.0
        self.step_s = 0.0  # that each look at the clock takes
        core = self.h.core
        self.passes = Passes(core, self.h.locks, soon=self.soon.append, clock=self.clock)
        self.server = Server(
            core,
            self.h.locks,
            self.passes,
            None,
            soon=self.soon.append,
            clock=self.clock,
            turn_s=math.inf,
        )
        for _ in range(jobs):
            self.h.submit(hold=True)

    def clock(self) -> float:
        self.clock_s += self.step_s
        return self.clock_s

    def ask(self, message: Message, sender: Any = USER) -> Asker:
        asker = Asker(message, sender)
        answer = self.server.handle(asker)  # type: ignore[arg-type]
        if answer is not None:
            asker.reply(answer)
        return asker

    def settle(self) -> None:
        while self.soon:
            self.soon.pop(0)()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The id of each job that a listing has looked at."""
    seen: list[int] = []

    def look(_core: Any, job: Any, _now: float) -> int:
        seen.append(job.job_id)
        return int(job.job_id)

    monkeypatch.setitem(query_view.JOB_COLUMNS, "job_id", look)
    return seen


def test_who_asks_the_same_is_given_what_was_made_before(looks: list[int]) -> None:
    door = Door(jobs=2)
    first, second = door.ask(JOBS), door.ask(JOBS, OTHER)
    assert first.rows == second.rows == [[1, 0], [2, 0]]
    assert looks == [1, 2]
    assert door.ask(Query("jobs", ["job_id"])).rows == [[1], [2]], "other columns: another listing"
    assert looks == [1, 2, 1, 2]


def test_a_change_is_seen_by_the_next_who_asks() -> None:
    door = Door(jobs=1)
    assert door.ask(JOBS).rows == [[1, 0]]
    door.ask(SubmitJob(JobSpec(hold=True), "#!/bin/sh\n"))
    assert door.ask(JOBS).rows == [[1, 0], [2, 0]]
    door.ask(CancelJobs(["1"]))
    assert [1, 0] not in door.ask(JOBS).rows


def test_a_timer_is_a_change_too(looks: list[int]) -> None:
    door = Door(jobs=1)
    core = door.h.core
    door.ask(JOBS)
    core.at(core.time.now(), lambda: None)
    door.h.run(0)
    door.ask(JOBS)
    assert looks == [1, 1]


class Marking(SchedulingPolicy):
    """A pass that changes what is shown of a job with each step."""

    def __init__(self, door: Door) -> None:
        core = door.h.core
        super().__init__(core.tables, core.selector, Planning(core), {})

    def note(self, what: Note, now: float) -> None: ...

    def next_run(self) -> float | None:
        return None

    def run(self, now: float) -> Iterator[None]:
        for step in range(3):
            self.tables.jobs[1].reason = f"Step{step}"
            yield


def test_what_a_slice_of_a_pass_has_changed_is_seen_before_the_pass_is_over() -> None:
    door = Door(jobs=1)
    door.h.core.policy = Marking(door)
    reasons = Query("jobs", ["reason"])
    door.step_s = 1.0  # each slice is one step
    door.passes._due()
    seen = [door.ask(reasons).rows]
    while door.soon:
        door.soon.pop(0)()
        seen.append(door.ask(reasons).rows)
    assert seen[:3] == [[["Step0"]], [["Step1"]], [["Step2"]]]


def test_times_are_those_of_the_second(looks: list[int]) -> None:
    door = Door(jobs=1)
    door.ask(JOBS)
    door.h.time.jump(0.5)
    later = door.ask(JOBS)
    assert looks == [1]
    assert isinstance(later.answers[0], Rows)
    assert later.answers[0].now == door.h.time.now(), "told as of when it was asked"
    door.h.time.jump(0.5)
    door.ask(JOBS)
    assert looks == [1, 1]


def test_nodes_show_no_times_unless_they_are_reserved() -> None:
    h = Harness()
    _, second = known(h, NODES, USER)
    assert second is None
    changes = {
        "starttime": str(int(h.time.now()) + 3600),
        "duration": "5",
        "users": "ann",
        "nodes": "n3",
    }
    h.ask(UpdateReservation("create", "r", changes), ROOT)
    _, second = known(h, NODES, USER)
    assert second == int(h.time.now())


def known(h: Harness, query: Query, sender: Any) -> tuple[Hashable, int | None]:
    found = audience(h.core, query, sender)
    assert found is not None
    return found


def test_who_asks_while_it_is_made_gets_all_its_parts(looks: list[int]) -> None:
    door = Door(jobs=3)
    door.h.core.tables.jobs = dict.fromkeys(range(2 * PART + 5), door.h.core.tables.jobs[1])  # type: ignore[assignment]
    door.step_s = 0.004  # two slices of a thousand values at a stretch
    in_parts = Query("jobs", ["job_id"], in_parts=True)
    first = door.ask(in_parts)
    while not first.answers:
        door.soon.pop(0)()
    second = door.ask(in_parts, OTHER)
    assert len(second.answers) == len(first.answers) == 1
    assert not second.is_answered
    while door.soon:
        door.soon.pop(0)()
    assert first.is_answered
    assert first.rows == second.rows == door.ask(in_parts).rows
    assert len(first.rows) == len(looks) == 2 * PART + 5
    assert door.passes.requests == 0


def test_each_user_is_shown_what_is_his() -> None:
    door = Door(jobs=1)
    door.h.submit(OTHER, hold=True)
    door.h.core.settings = replace(door.h.core.settings, private_data=frozenset(["jobs"]))
    assert [door.ask(JOBS, who).rows for who in (ROOT, USER, OTHER, ROOT)] == [
        [[1, 0], [2, 0]],
        [[1, 0]],
        [[2, 0]],
        [[1, 0], [2, 0]],
    ]


def test_a_closed_table_is_refused_even_if_somebody_has_just_been_shown_it() -> None:
    door = Door()
    door.h.core.settings = replace(door.h.core.settings, private_data=frozenset(["nodes"]))
    assert door.ask(NODES, ROOT).rows
    assert isinstance(door.ask(NODES, USER).answers[0], Failure)


def test_hidden_partitions_are_hidden_from_those_who_may_not_use_them() -> None:
    door = Door(jobs=1)
    visible = Query("jobs", ["job_id"], all_partitions=False)
    partition = next(iter(door.h.core.tables.partitions.values()))
    partition.allow_groups = ("nosuch",)
    assert [door.ask(visible, who).rows for who in (ROOT, USER, ROOT)] == [[[1]], [], [[1]]]


def test_a_listing_that_failed_is_made_again(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    door = Door(jobs=1)
    door.h.core.failed = lambda _error: None
    with monkeypatch.context() as patch:
        patch.setitem(query_view.JOB_COLUMNS, "state", lambda *_: 1 // 0)
        assert isinstance(door.ask(JOBS).answers[0], Failure)
    assert door.ask(JOBS).rows == [[1, 0]]


def test_few_bytes_are_kept(monkeypatch: pytest.MonkeyPatch, looks: list[int]) -> None:
    monkeypatch.setattr(listings, "MOST_BYTES", 3)
    door = Door(jobs=1)
    ids, both = Query("jobs", ["job_id"]), Query("jobs", ["job_id", "job_id"])  # 3 and 4 bytes
    door.ask(ids)
    door.ask(ids)
    assert looks == [1]
    door.ask(both)
    door.ask(both)
    assert looks == [1] * 5, "too large, and in its favour the older one went"


def test_single_records_and_virtual_time_are_not_shared(looks: list[int]) -> None:
    h = Harness()
    assert audience(h.core, Query("jobs", ["job_id"], {"job_id": [1]})) is None
    assert audience(h.core, Query("partitions", ["name"])) is None
    door = Door(jobs=1, is_virtual=True)
    door.ask(JOBS)
    door.ask(JOBS)
    assert looks == [1, 1]
