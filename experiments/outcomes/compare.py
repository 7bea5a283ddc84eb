"""Runs side by side: `compare(["runs/one", "runs/two"])`.

Place: the way in, for `understudy compare` and for programs; reads runs by `read`, knows no
terminal. The first run is what all others are compared with. Jobs are matched by the ids that their
trace gives them, where all runs have ids and any is in all of them, else by their places.
"""

from __future__ import annotations

import gc
import time
from dataclasses import asdict, dataclass, field
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.metrics import summarize
from understudy.experiments.outcomes.differences import (
    Change,
    Group,
    change,
    groups,
    keys,
    pair_up,
)
from understudy.experiments.outcomes.fate import Fate, Others
from understudy.experiments.outcomes.read import Run, read_run
from understudy.experiments.run_tables import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from understudy.experiments.outcomes.differences import Key
    from understudy.experiments.records import JobRecord

MOST_RUNS: Final = len(ascii_uppercase)
FIRST_SHOWN: Final = 5
_SHOWN: Final = 10  # jobs that are in one run only
# of `metrics.Summary`: what says something of the schedule
FIGURES: Final = (
    "jobs",
    "ran",
    "refused",
    "never_started",
    "cancelled_before_start",
    "unfinished",
    "mean_wait",
    "wait_p50",
    "wait_p90",
    "wait_p95",
    "wait_p99",
    "max_wait",
    "mean_bounded_slowdown",
    "slowdown_p50",
    "slowdown_p95",
    "makespan",
    "requeued_runs",
    "lost_cpu_seconds",
    "promised",
    "promise_moves",
    "promise_shift",
    "first_promise_error",
    "last_promise_error",
)
_OF_REPLAYS: Final = FIGURES[FIGURES.index("requeued_runs") :]
# what a configuration says that may tell runs from each other
_TOLD: Final = (
    "trace",
    "scenario",
    "title",
    "recorded_of",
    "scheduler",
    "settings",
    "nodes",
    "ended_early",
)


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run: what it is, and its figures (times in seconds, None where there is none)."""

    letter: str  # A, B ...
    path: str  # as it was named
    kind: str  # run, history, answers, recording
    about: dict[str, str]
    figures: dict[str, float | None]
    schedule_sha256: str


@dataclass(frozen=True, slots=True)
class Only:
    """Jobs of which one run knows more than the other: how many, and the first."""

    count: int = 0
    first: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """A job whose start is not the same, and what became of it in both runs."""

    job: str
    user: str
    cpus: int
    fates: tuple[Fate, Fate]


@dataclass(frozen=True, slots=True)
class Against:
    """A run against the first one; differences are of it less the first. Waits in seconds."""

    letter: str
    matched: int  # jobs that are in both
    pairs: int  # those that started in both
    equal_starts: int  # of those
    wait: Change
    slowdown: Change  # bounded, of those that ended in both
    longer: int
    shorter: int
    by: dict[str, list[Group]]
    not_in_first: Only
    not_in_this: Only
    started_in_first_only: Only
    started_in_this_only: Only
    first_differences: tuple[FirstDifference, ...]

    def most(self, way: str, *, longer: bool, count: int = 3) -> list[Group]:
        """The users, accounts ... that wait longer in all by most, or shorter."""
        sign = 1 if longer else -1
        found = [group for group in self.by[way] if sign * group.total > 0]
        return sorted(found, key=lambda group: (-sign * group.total, group.name))[:count]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side."""

    matched_by: str  # id, place
    runs: list[RunFigures]
    against: list[Against]  # each run but the first
    # of each job that any run has, in the order of submission: one record for each run or None
    jobs: list[tuple[JobRecord | None, ...]] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """All but the jobs, as plain values."""
        return {
            "matched_by": self.matched_by,
            "runs": [asdict(run) for run in self.runs],
            "against": [asdict(each) for each in self.against],
        }


def compare(
    runs: Sequence[str | Path],
    *,
    seed: int = 0,
    first_shown: int = FIRST_SHOWN,
    apart_s: int = 1,
) -> Comparison:
    """Compare the first with each other one. Each is a folder of `understudy replay --out` or of
    `understudy import`, a jobs.csv or jobs.parquet, or a file of answers. `seed` is that of the
    intervals; of the first `first_shown` jobs whose starts are at least `apart_s` seconds apart, or
    that started in one run alone, it is told what became of them.

    Raises:
        RunError, StoriesError: a run cannot be used; says which file and line. ValueError: fewer
        than two runs, or more than 26. OSError: a file cannot be read.
    """
    if not 2 <= len(runs) <= MOST_RUNS:
        raise ValueError(f"expected 2 to {MOST_RUNS} runs, not {len(runs)}")
    was_collecting = gc.isenabled()
    # nothing here refers to itself, and hundreds of thousands of records are looked through again
    gc.disable()
    try:
        return _compare(list(map(read_run, runs)), seed, (first_shown, apart_s))
    finally:
        if was_collecting:
            gc.enable()


def _compare(read: Sequence[Run], seed: int, telling: tuple[int, int]) -> Comparison:
    for run in read:
        if not run.records:
            raise RunError(f"{run.path}: no job")
    by_id, known = _match(read)
    zero = next((run.zero for run in read if run.zero is not None), 0.0)
    others = Others(read[0])
    return Comparison(
        "id" if by_id else "place",
        [_figures(letter, run) for letter, run in zip(ascii_uppercase, read, strict=False)],
        [
            _against(letter, (others, Others(run)), (known[0], jobs), zero, seed, telling)
            for letter, run, jobs in zip(ascii_uppercase[1:], read[1:], known[1:], strict=False)
        ],
        list(_side_by_side(known)),
    )


def _match(runs: Sequence[Run]) -> tuple[bool, list[dict[Key, JobRecord]]]:
    """Whether by id, and the jobs of each run by what they are matched by."""
    if all(run.is_named for run in runs):
        known = [_by_key(run, by_id=True) for run in runs]
        if set(known[0]).intersection(*known[1:]):
            return True, known
    return False, [_by_key(run, by_id=False) for run in runs]


def _by_key(run: Run, *, by_id: bool) -> dict[Key, JobRecord]:
    return dict(zip(keys(run.records, by_id=by_id), run.records, strict=True))


def _side_by_side(
    known: Sequence[Mapping[Key, JobRecord]],
) -> Iterator[tuple[JobRecord | None, ...]]:
    places: dict[Key, int] = {}
    for jobs in known:
        for key, record in jobs.items():
            places[key] = min(record.submit, places.get(key, record.submit))
    for key in sorted(places, key=lambda key: (places[key], key)):
        yield tuple(jobs.get(key) for jobs in known)


def _figures(letter: str, run: Run) -> RunFigures:
    summary = summarize(run.records, 1, 0.0, attempts=run.attempts)
    found: dict[str, float | None] = {name: getattr(summary, name) for name in FIGURES}
    found["utilization"] = run.utilization
    if run.kind != "run":  # these hold neither earlier runs nor promises
        found |= dict.fromkeys(_OF_REPLAYS)
    about = {
        name: str(run.config[name]) for name in _TOLD if run.config.get(name) not in (None, "")
    }
    return RunFigures(letter, str(run.path), run.kind, about, found, summary.schedule_sha256)


def _against(
    letter: str,
    others: tuple[Others, Others],
    known: tuple[dict[Key, JobRecord], dict[Key, JobRecord]],
    zero: float,
    seed: int,
    telling: tuple[int, int],
) -> Against:
    first, second = known
    pairs = pair_up(first, second)
    longer = pairs.longer_s
    matched = [key for key in first if key in second]
    return Against(
        letter=letter,
        matched=len(matched),
        pairs=len(longer),
        equal_starts=sum(
            a.start == b.start for a, b in zip(pairs.first, pairs.second, strict=True)
        ),
        wait=change(*pairs.waits, seed),
        slowdown=change(*pairs.slowdowns, seed),
        longer=int((longer > 0).sum()),
        shorter=int((longer < 0).sum()),
        by=groups(pairs, zero, time.localtime(zero).tm_gmtoff, seed),
        not_in_first=_only([record for key, record in second.items() if key not in first]),
        not_in_this=_only([record for key, record in first.items() if key not in second]),
        started_in_first_only=_only(_started(first, second, matched)),
        started_in_this_only=_only(_started(second, first, matched)),
        first_differences=tuple(_first_differences(others, known, matched, *telling)),
    )


def _only(records: Sequence[JobRecord]) -> Only:
    first = sorted(records, key=lambda record: (record.submit, record.job))[:_SHOWN]
    return Only(len(records), tuple(_name(record) for record in first))


def _started(
    here: Mapping[Key, JobRecord], there: Mapping[Key, JobRecord], matched: Sequence[Key]
) -> list[JobRecord]:
    return [
        here[key] for key in matched if here[key].start is not None and there[key].start is None
    ]


def _first_differences(
    others: tuple[Others, Others],
    known: tuple[dict[Key, JobRecord], dict[Key, JobRecord]],
    matched: Sequence[Key],
    first_shown: int,
    apart_s: int,
) -> Iterator[FirstDifference]:
    """By the earlier of the two starts: later differences mostly follow from the first."""
    first, second = known
    found = [
        (min(start for start in (first[key].start, second[key].start) if start is not None), key)
        for key in matched
        if _are_apart(first[key].start, second[key].start, apart_s)
    ]
    for _, key in sorted(found)[:first_shown]:
        record, other = first[key], second[key]
        yield FirstDifference(
            _name(record) if record.id else _name(other),
            record.user or other.user,
            record.cpus or other.cpus,
            (others[0].fate(record), others[1].fate(other)),
        )


def _are_apart(start: int | None, other: int | None, apart_s: int) -> bool:
    if start is None or other is None:
        return start is not other
    return abs(start - other) >= apart_s


def _name(record: JobRecord) -> str:
    return record.id or str(record.job)
