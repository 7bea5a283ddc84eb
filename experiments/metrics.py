"""Figures that sum a run up.

Place: reads records; its result is summary.json. Pure.

Wait is start - submit. Bounded slowdown is (wait + run) / max(run, 10 s), at least 1: the bound
keeps jobs of a few seconds from ruling the mean (Feitelson et al., "Theory and practice in parallel
job scheduling", 1997). Makespan goes from the first submission to the last end. Utilisation is the
CPU time of jobs over that of the machine within the makespan. Means and percentiles are of the jobs
that ran to their end (`ran`), and None where no job did; a percentile is the smallest value that so
many of a hundred jobs do not exceed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from itertools import chain, compress
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypedDict

import numpy as np

from understudy.experiments.records import REJECTED, schedule_sha256

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from understudy.experiments.records import JobRecord

SLOWDOWN_BOUND_S: Final = 10
PERCENTILES: Final = (50, 90, 95, 99)
CANCELLED: Final = "CANCELLED"
NODE_FAIL: Final = "NODE_FAIL"
_JOB: Final = attrgetter("job")
_TIMES_AND_CPUS: Final = attrgetter("submit", "start", "end", "cpus")


@dataclass(frozen=True, slots=True)
class Summary:
    """The keys of summary.json, and `states`. Times in seconds."""

    jobs: int
    refused: int  # not taken by the controller
    # waited at the end, or ended before they could start, without being cancelled
    never_started: int
    cancelled_before_start: int
    unfinished: int  # had started, and not ended
    ran: int  # started and ended
    wall_seconds: float
    simulated_seconds: float
    speedup: float  # simulated over wall
    jobs_per_second: float  # of wall time
    schedule_sha256: str
    utilization: float  # 0 to 1
    mean_wait: float | None
    median_wait: float | None
    max_wait: float | None
    mean_bounded_slowdown: float | None
    makespan: int
    requeued_runs: int  # that ended before their time, and began anew
    node_failed_runs: int  # that the failure of a node ended, those that were requeued among them
    lost_cpu_seconds: int  # of all these runs
    wait_p50: float | None
    wait_p90: float | None
    wait_p95: float | None
    wait_p99: float | None
    slowdown_p50: float | None  # bounded
    slowdown_p90: float | None
    slowdown_p95: float | None
    slowdown_p99: float | None
    # of the jobs that ran, those that were promised a start before; of these means: how often that
    # became another, how far the last is from the first, and the start from the first and the last
    promised: int
    promise_moves: float | None
    promise_shift: float | None
    first_promise_error: float | None
    last_promise_error: float | None
    states: dict[str, int]  # how many jobs ended in each

    def as_dict(self) -> dict[str, int | float | str | None]:
        """The keys of summary.json: plain values only, so that every reader can put runs side by
        side as rows of a table.
        """
        return {key: value for key, value in asdict(self).items() if key != "states"}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The jobs that ran, as vectors in job order; times in seconds."""

    submit: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    cpus: NDArray[np.int64]

    @classmethod
    def of(cls, records: Sequence[JobRecord]) -> Columns:
        ordered = sorted(records, key=_JOB)
        return cls.of_ordered(ordered, _have_run(ordered))

    @classmethod
    def of_ordered(cls, records: Sequence[JobRecord], have_run: NDArray[np.bool_]) -> Columns:
        """The same where the order is right and it is known which of them ran."""
        table = np.fromiter(
            chain.from_iterable(map(_TIMES_AND_CPUS, compress(records, have_run))), np.int64
        ).reshape(-1, 4)
        return cls(*(np.ascontiguousarray(column) for column in table.T))

    def at(self, places: NDArray[np.intp]) -> Columns:
        """Those of the jobs."""
        return Columns(self.submit[places], self.start[places], self.end[places], self.cpus[places])

    @property
    def wait(self) -> NDArray[np.int64]:
        return self.start - self.submit

    @property
    def bounded_slowdown(self) -> NDArray[np.float64]:
        run = self.end - self.start
        slowdown: NDArray[np.float64] = np.maximum(
            1.0, (self.wait + run) / np.maximum(run, SLOWDOWN_BOUND_S)
        )
        return slowdown


@dataclass(frozen=True, slots=True)
class Group:
    """The jobs that ran of one size, user, account, partition or QOS. Times in seconds."""

    name: str
    jobs: int  # all of them
    ran: int
    cpu_seconds: int
    mean_wait: float | None
    wait_p50: float | None
    wait_p90: float | None
    wait_p95: float | None
    wait_p99: float | None
    max_wait: float | None
    mean_bounded_slowdown: float | None


def _have_run(records: Sequence[JobRecord]) -> NDArray[np.bool_]:
    return np.fromiter(
        (r.start is not None and r.end is not None for r in records), bool, len(records)
    )


def percentiles(values: NDArray[np.int64] | NDArray[np.float64]) -> list[float | None]:
    """Those of PERCENTILES; None where there are no values."""
    if not len(values):
        return [None] * len(PERCENTILES)
    ordered = np.sort(values)
    return [float(ordered[-(-len(values) * percent // 100) - 1]) for percent in PERCENTILES]


def size_class(cpus: int) -> str:
    """`1`, `2`, `3-4`, `5-8` ...: CPUs up to a power of two."""
    power = max(cpus - 1, 0).bit_length()
    smallest = 2 ** (power - 1) + 1 if power else 1
    return str(2**power) if smallest == 2**power else f"{smallest}-{2**power}"


def groups(records: Sequence[JobRecord]) -> dict[str, list[Group]]:
    """By size, user, account, partition and QOS, those with the most CPU time first; sizes in their
    order.
    """
    ordered = sorted(records, key=_JOB)
    have_run = _have_run(ordered)
    ran = Columns.of_ordered(ordered, have_run)
    cpus = list(map(attrgetter("cpus"), ordered))
    sizes = {count: size_class(count) for count in sorted(set(cpus))}
    by_size = _grouped(list(map(sizes.__getitem__, cpus)), have_run, ran)
    place = {name: number for number, name in enumerate(dict.fromkeys(sizes.values()))}
    found = {"size": sorted(by_size, key=lambda group: place[group.name])}
    for key in ("user", "account", "partition", "qos"):
        of_key = _grouped(list(map(attrgetter(key), ordered)), have_run, ran)
        found[key] = sorted(of_key, key=lambda group: (-group.cpu_seconds, group.name))
    return found


def _grouped(names: Sequence[str], have_run: NDArray[np.bool_], ran: Columns) -> list[Group]:
    """A group for each name; `names` and `have_run` are of all jobs, `ran` is of those that ran, in
    the same order.
    """
    number = {name: number for number, name in enumerate(dict.fromkeys(names))}
    of_job = np.fromiter(map(number.__getitem__, names), np.intp, len(names))
    jobs = np.bincount(of_job, minlength=len(number)).tolist()
    of_ran = of_job[have_run]
    order = np.argsort(of_ran, kind="stable")
    ends = np.cumsum(np.bincount(of_ran, minlength=len(number))).tolist()
    return [
        _group(name, jobs[place], ran.at(order[begin:end]))
        for (name, place), begin, end in zip(number.items(), [0, *ends], ends, strict=False)
    ]


def _group(name: str, jobs: int, ran: Columns) -> Group:
    any_ran = len(ran.submit) > 0
    p50, p90, p95, p99 = percentiles(ran.wait)
    return Group(
        name=name,
        jobs=jobs,
        ran=len(ran.submit),
        cpu_seconds=int((ran.cpus * (ran.end - ran.start)).sum()),
        mean_wait=float(ran.wait.mean()) if any_ran else None,
        wait_p50=p50,
        wait_p90=p90,
        wait_p95=p95,
        wait_p99=p99,
        max_wait=float(ran.wait.max()) if any_ran else None,
        mean_bounded_slowdown=float(ran.bounded_slowdown.mean()) if any_ran else None,
    )


def has_never_started(record: JobRecord) -> bool:
    """Whether the job was taken, and did not start though nobody cancelled it."""
    return record.start is None and record.state not in (REJECTED, CANCELLED)


class Losses(TypedDict):
    """As in `Summary`."""

    requeued_runs: int
    node_failed_runs: int
    lost_cpu_seconds: int


def _losses(records: Sequence[JobRecord], attempts: Sequence[JobRecord]) -> Losses:
    failed = [record for record in records if record.state == NODE_FAIL]
    return Losses(
        requeued_runs=len(attempts),
        node_failed_runs=len(failed) + sum(each.state == NODE_FAIL for each in attempts),
        lost_cpu_seconds=sum(each.cpus * (each.run or 0) for each in (*failed, *attempts)),
    )


class Promises(TypedDict):
    """As in `Summary`."""

    promised: int
    promise_moves: float | None
    promise_shift: float | None
    first_promise_error: float | None
    last_promise_error: float | None


def _of_promises(records: Sequence[JobRecord]) -> Promises:
    rows = [
        (r.promise_moves, r.first_promise, r.last_promise, r.start)
        for r in records
        if r.first_promise is not None and r.start is not None and r.end is not None
    ]
    if not rows:
        return Promises(
            promised=0,
            promise_moves=None,
            promise_shift=None,
            first_promise_error=None,
            last_promise_error=None,
        )
    moves, first, last, start = np.array(rows, dtype=np.int64).T
    return Promises(
        promised=len(rows),
        promise_moves=float(moves.mean()),
        promise_shift=float(np.abs(last - first).mean()),
        first_promise_error=float(np.abs(start - first).mean()),
        last_promise_error=float(np.abs(start - last).mean()),
    )


def summarize(
    records: Sequence[JobRecord],
    cpus: int,
    wall_seconds: float,
    simulated_seconds: float | None = None,
    attempts: Sequence[JobRecord] = (),
) -> Summary:
    """Sum a run up. `cpus` is the machine's size; without `simulated_seconds` the makespan stands
    for it. `attempts`: earlier runs of jobs that were requeued.
    """
    ran = Columns.of(records)
    any_ran = len(ran.submit) > 0
    makespan = int(ran.end.max() - min(r.submit for r in records)) if any_ran else 0
    simulated = float(makespan) if simulated_seconds is None else simulated_seconds
    used = int((ran.cpus * (ran.end - ran.start)).sum())
    slowdown = ran.bounded_slowdown
    others = [record for record in records if record.start is None or record.end is None]
    wait_p50, wait_p90, wait_p95, wait_p99 = percentiles(ran.wait)
    slowdown_p50, slowdown_p90, slowdown_p95, slowdown_p99 = percentiles(slowdown)
    return Summary(
        jobs=len(records),
        refused=sum(record.state == REJECTED for record in others),
        never_started=sum(map(has_never_started, others)),
        cancelled_before_start=sum(
            record.start is None and record.state == CANCELLED for record in others
        ),
        unfinished=sum(record.start is not None for record in others),
        ran=len(ran.submit),
        wall_seconds=round(wall_seconds, 3),
        simulated_seconds=round(simulated, 3),
        speedup=round(simulated / wall_seconds, 1) if wall_seconds > 0 else 0.0,
        jobs_per_second=round(len(records) / wall_seconds, 1) if wall_seconds > 0 else 0.0,
        schedule_sha256=schedule_sha256(records),
        utilization=used / (cpus * makespan) if makespan else 0.0,
        mean_wait=float(ran.wait.mean()) if any_ran else None,
        median_wait=float(np.median(ran.wait)) if any_ran else None,
        max_wait=float(ran.wait.max()) if any_ran else None,
        mean_bounded_slowdown=float(slowdown.mean()) if any_ran else None,
        makespan=makespan,
        **_losses(records, attempts),
        wait_p50=wait_p50,
        wait_p90=wait_p90,
        wait_p95=wait_p95,
        wait_p99=wait_p99,
        slowdown_p50=slowdown_p50,
        slowdown_p90=slowdown_p90,
        slowdown_p95=slowdown_p95,
        slowdown_p99=slowdown_p99,
        **_of_promises(records),
        states=dict(sorted(Counter(map(attrgetter("state"), records)).items())),
    )
