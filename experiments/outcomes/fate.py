"""What became of one job in one run, and why, as far as the run tells: its reasons and promises
over time, who stood before it and who passed it.

Place: pure, under `compare` and `why`. Who passed it is worked out from the starts of the others.
A job's partition is taken for what it could have used, as jobs.csv tells no more of that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.experiments.outcomes.read import Run
    from understudy.experiments.records import JobRecord
    from understudy.experiments.stories import Story

NO_REASON: Final = "None"  # as squeue shows who has not been looked at
NOT_YET: Final = 2**62  # later than any start


@dataclass(frozen=True, slots=True)
class Stretch:
    """It waited for this from `at` until `until` (None: to the end of what is known)."""

    at: int
    until: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Promise:
    """At `at` it was promised `start`, which is `moved` seconds later than the promise before."""

    at: int
    start: int
    moved: int


@dataclass(frozen=True, slots=True)
class Happening:
    """Something was done to it while it ran. `job`: to which job that is due, ""."""

    at: int
    what: str
    job: str


@dataclass(frozen=True, slots=True)
class Passer:
    """One that started while the job waited, though it was submitted later or had less priority."""

    job: str
    user: str
    partition: str
    submit: int
    start: int
    cpus: int
    priority: int
    why: str


@dataclass(frozen=True, slots=True)
class Fate:
    """One run of a job; times in seconds from the trace's zero, None where it did not come to that.

    `ahead` counts those that started while it waited and were submitted before it, `passed` those
    that were submitted later, or had less priority; of the last the first few are `passers`. `end`
    of one that never started is when it was cancelled.
    """

    submit: int
    eligible: int | None
    start: int | None
    end: int | None
    state: str
    nodes: str
    cpus: int
    priority: int
    scheduled_by: str
    exit_code: str
    waited_for: str
    reason: str
    stretches: tuple[Stretch, ...] = ()
    promises: tuple[Promise, ...] = ()
    happenings: tuple[Happening, ...] = ()
    ahead: int = 0
    ahead_jobs: tuple[str, ...] = ()
    passed: int = 0
    passers: tuple[Passer, ...] = ()

    @property
    def wait(self) -> int | None:
        """Seconds from when it was queued to its start."""
        return None if self.start is None else self.start - self.submit


@dataclass(slots=True, eq=False)
class Others:
    """All jobs of a run as vectors, for questions about one among them."""

    run: Run
    records: list[JobRecord] = field(init=False)
    _submit: NDArray[np.int64] = field(init=False)
    _start: NDArray[np.int64] = field(init=False)
    _priority: NDArray[np.int64] = field(init=False)
    _partition: NDArray[np.int64] = field(init=False)
    _partitions: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.records = [*self.run.records, *self.run.attempts]
        records, count = self.records, len(self.records)
        self._submit = np.fromiter((each.submit for each in records), np.int64, count)
        self._start = np.fromiter(
            (NOT_YET if each.start is None else each.start for each in records), np.int64, count
        )
        self._priority = np.fromiter((each.priority for each in records), np.int64, count)
        names = dict.fromkeys(each.partition for each in records)
        self._partitions = {name: number for number, name in enumerate(names)}
        self._partition = np.fromiter(
            (self._partitions[each.partition] for each in records), np.int64, count
        )

    def fate(self, record: JobRecord, shown: int = 5) -> Fate:
        """What became of it; at most `shown` of each kind of others are named."""
        story = self.run.story(record)
        since = record.submit if record.eligible is None else max(record.submit, record.eligible)
        end = record.end
        if record.start is None and story.events:
            end = story.events[-1][0]
        waited_until = end if record.start is None else record.start
        could_start = self._same_partition(record) & (self._start >= since)
        could_start &= self._start < (NOT_YET if waited_until is None else waited_until)
        earlier = self._submit <= record.submit
        lower = (
            self._priority < record.priority
            if record.priority and record.start is not None
            else np.zeros(len(earlier), bool)
        )
        ahead = np.flatnonzero(could_start & earlier & ~lower)
        passed = np.flatnonzero(could_start & (~earlier | lower))
        return Fate(
            record.submit,
            record.eligible,
            record.start,
            end,
            record.state,
            record.nodes,
            record.cpus,
            record.priority,
            record.scheduled_by,
            record.exit_code,
            record.waited_for,
            record.reason,
            _stretches(story, waited_until),
            _promises(story),
            tuple(Happening(*event) for event in story.events),
            len(ahead),
            tuple(_name(self.records[place]) for place in self._in_order(ahead)[:shown]),
            len(passed),
            tuple(_passer(self.records[place], record) for place in self._in_order(passed)[:shown]),
        )

    def _same_partition(self, record: JobRecord) -> NDArray[np.bool_]:
        wanted = set(record.partition.split(","))
        numbers = [
            number
            for name, number in self._partitions.items()
            if not wanted.isdisjoint(name.split(","))
        ]
        return np.isin(self._partition, numbers)

    def _in_order(self, places: NDArray[np.intp]) -> list[int]:
        order = np.lexsort((places, self._start[places]))
        found: list[int] = places[order].tolist()
        return found


def _name(record: JobRecord) -> str:
    return record.id or str(record.job)


def _stretches(story: Story, last: int | None) -> tuple[Stretch, ...]:
    begins = [at for at, _ in story.reasons]
    return tuple(
        Stretch(at, until, "" if reason == NO_REASON else reason)
        for (at, reason), until in zip(story.reasons, [*begins[1:], last], strict=False)
    )


def _promises(story: Story) -> tuple[Promise, ...]:
    before = [start for _, start in story.promises]
    return tuple(
        Promise(at, start, start - earlier)
        for (at, start), earlier in zip(story.promises, [*before[:1], *before], strict=False)
    )


def _passer(other: JobRecord, job: JobRecord) -> Passer:
    if other.backfilled:
        why = "backfilled"
    elif job.priority and other.priority > job.priority:
        why = "higher priority"
    elif other.partition != job.partition:
        why = f"in partition {other.partition}"
    elif other.scheduled_by == "Submit":
        why = "started as it was submitted"
    elif other.priority < job.priority:
        why = "lower priority"
    else:
        why = ""
    return Passer(
        _name(other),
        other.user,
        other.partition,
        other.submit,
        other.start if other.start is not None else NOT_YET,
        other.cpus,
        other.priority,
        why,
    )
