"""What two runs made of the same jobs, job by job: how much longer each waited, and who.

Place: pure, under `compare`. A difference is that of the second run less that of the first, so it
is of the other sign when the two change places.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.experiments.metrics import SLOWDOWN_BOUND_S, size_class
from understudy.experiments.outcomes.bootstrap import Interval, mean_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from understudy.experiments.records import JobRecord

    Key = tuple[str, int]
    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

HOURS_OF_DAY: Final = 4  # in one group
WAYS: Final = ("size", "user", "account", "qos", "partition", "time of day")
_DAY_S: Final = 86_400
_HOUR_S: Final = 3_600


@dataclass(frozen=True, slots=True)
class Change:
    """Of one figure over pairs of jobs: means in both runs, and the difference with the interval in
    which its mean lies with 95 % confidence; None where there is no pair.
    """

    first: float | None
    second: float | None
    difference: Interval | None
    median: float | None  # of the differences


@dataclass(frozen=True, slots=True)
class Group:
    """The pairs of one size, user, account ... Waits in seconds."""

    name: str
    pairs: int
    wait: Change
    longer: int  # how many waited longer in the second run
    shorter: int
    total: int  # seconds that they waited longer in all


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Jobs that started in both runs, in the order of their submission, whichever run is first."""

    first: Sequence[JobRecord]
    second: Sequence[JobRecord]
    waits: tuple[Ints, Ints]
    slowdowns: tuple[Floats, Floats]  # bounded; NaN where a run has not ended

    @property
    def longer_s(self) -> Ints:
        """How much longer each waited in the second run; negative: shorter."""
        return self.waits[1] - self.waits[0]


def keys(records: Sequence[JobRecord], *, by_id: bool) -> list[Key]:
    """By what each job is found in another run: its id, or its place; and which of those of the
    same name it is.
    """
    names = [record.id if by_id else str(record.job) for record in records]
    if len(set(names)) == len(names):
        return [(name, 0) for name in names]
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        found.append((name, seen[name]))
        seen[name] += 1
    return found


def pair_up(first: dict[Key, JobRecord], second: dict[Key, JobRecord]) -> Pairs:
    """Those that started in both."""
    both = [
        (min(record.submit, other.submit), key, record, other)
        for key, record in first.items()
        if record.start is not None
        and (other := second.get(key)) is not None
        and other.start is not None
    ]
    both.sort(key=lambda pair: pair[:2])
    left, right = [pair[2] for pair in both], [pair[3] for pair in both]
    return Pairs(left, right, (_waits(left), _waits(right)), (_slowdowns(left), _slowdowns(right)))


def _waits(records: Sequence[JobRecord]) -> Ints:
    return np.fromiter((record.wait or 0 for record in records), np.int64, len(records))


def _slowdowns(records: Sequence[JobRecord]) -> Floats:
    runs = np.fromiter(
        (np.nan if record.run is None else record.run for record in records),
        np.float64,
        len(records),
    )
    found: Floats = np.maximum(
        1.0, (_waits(records) + runs) / np.maximum(runs, float(SLOWDOWN_BOUND_S))
    )
    return found


def change(first: Ints | Floats, second: Ints | Floats, seed: int) -> Change:
    """Of two figures of the same jobs, NaN where a job has none."""
    if first.dtype.kind == "f":
        known = ~(np.isnan(first) | np.isnan(second))
        first, second = first[known], second[known]
    if not len(first):
        return Change(None, None, None, None)
    longer = second - first
    return Change(
        float(first.mean()),
        float(second.mean()),
        mean_interval(longer, seed),
        float(np.median(longer)),
    )


def groups(pairs: Pairs, zero: float, utc_offset_s: int, seed: int) -> dict[str, list[Group]]:
    """By each of WAYS. Sizes and times in their order, others with the largest change first. A job
    belongs where the first run has it, or the second where the first says nothing.
    """
    since_midnight = int(zero + utc_offset_s) % _DAY_S

    def hour(record: JobRecord) -> str:
        begin = (record.submit + since_midnight) % _DAY_S // _HOUR_S // HOURS_OF_DAY * HOURS_OF_DAY
        return f"{begin:02}-{begin + HOURS_OF_DAY:02} h"

    names: dict[str, list[str]] = {}
    sizes = {record.cpus: "" for record in pairs.first}
    names["size"] = [
        size_class(a.cpus or b.cpus) for a, b in zip(pairs.first, pairs.second, strict=True)
    ]
    order = {size_class(cpus): place for place, cpus in enumerate(sorted(sizes))}
    for way in WAYS[1:-1]:
        names[way] = [
            getattr(a, way) or getattr(b, way)
            for a, b in zip(pairs.first, pairs.second, strict=True)
        ]
    names["time of day"] = list(map(hour, pairs.first))
    found = {}
    for way, of_pairs in names.items():
        made = _grouped(of_pairs, pairs, seed)
        sort: Callable[[Group], tuple[int, str]] = _largest_change
        if way == "size":
            sort = _by_place(order)
        elif way == "time of day":
            sort = _by_name
        found[way] = sorted(made, key=sort)
    return found


def _largest_change(group: Group) -> tuple[int, str]:
    return -abs(group.total), group.name


def _by_name(group: Group) -> tuple[int, str]:
    return 0, group.name


def _by_place(order: dict[str, int]) -> Callable[[Group], tuple[int, str]]:
    return lambda group: (order.get(group.name, len(order)), group.name)


def _grouped(names: Sequence[str], pairs: Pairs, seed: int) -> list[Group]:
    number = {name: place for place, name in enumerate(dict.fromkeys(names))}
    of_pair = np.fromiter(map(number.__getitem__, names), np.intp, len(names))
    order = np.argsort(of_pair, kind="stable")
    ends = np.cumsum(np.bincount(of_pair, minlength=len(number))).tolist()
    first, second = pairs.waits[0][order], pairs.waits[1][order]
    return [
        _group(name, first[begin:end], second[begin:end], seed)
        for name, begin, end in zip(number, [0, *ends], ends, strict=False)
    ]


def _group(name: str, first: Ints, second: Ints, seed: int) -> Group:
    longer = second - first
    return Group(
        name,
        len(longer),
        change(first, second, seed),
        int((longer > 0).sum()),
        int((longer < 0).sum()),
        int(longer.sum()),
    )
