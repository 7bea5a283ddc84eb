"""Figures that sum a run up.

Place: reads records; its result is summary.json. Pure.

Wait is start - submit. Bounded slowdown is (wait + run) / max(run, 10 s), at least 1: the bound keeps jobs of a few seconds from ruling the mean
(Feitelson et al., "Theory and practice in parallel job scheduling", 1997). Makespan goes from the first submission to the last end. Utilisation is
the CPU time of jobs over that of the machine within the makespan. Jobs that never ran count in `jobs` and `states` alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.experiments.records import schedule_sha256

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from understudy.experiments.records import JobRecord

SLOWDOWN_BOUND_S: Final = 10


@dataclass(frozen=True, slots=True)
class Summary:
    """The keys of summary.json, and `states`. Times in seconds."""

    jobs: int
    wall_seconds: float
    simulated_seconds: float
    speedup: float  # simulated over wall
    jobs_per_second: float  # of wall time
    schedule_sha256: str
    utilization: float  # 0 to 1
    mean_wait: float
    median_wait: float
    max_wait: float
    mean_bounded_slowdown: float
    makespan: int
    states: dict[str, int]  # how many jobs ended in each

    def as_dict(self) -> dict[str, int | float | str]:
        """The keys of summary.json: plain values only, so that every reader can put runs side by side as rows of a table."""
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
        ran = sorted((r for r in records if r.has_run), key=lambda record: record.job)
        table = np.array([(r.submit, r.start, r.end, r.cpus) for r in ran], dtype=np.int64).reshape(-1, 4)
        return cls(*(np.ascontiguousarray(column) for column in table.T))

    @property
    def wait(self) -> NDArray[np.int64]:
        return self.start - self.submit

    @property
    def bounded_slowdown(self) -> NDArray[np.float64]:
        run = self.end - self.start
        slowdown: NDArray[np.float64] = np.maximum(1.0, (self.wait + run) / np.maximum(run, SLOWDOWN_BOUND_S))
        return slowdown


def summarize(records: Sequence[JobRecord], cpus: int, wall_seconds: float, simulated_seconds: float | None = None) -> Summary:
    """Sum a run up. `cpus` is the machine's size; without `simulated_seconds` the makespan stands for it."""
    ran = Columns.of(records)
    any_ran = len(ran.submit) > 0
    makespan = int(ran.end.max() - min(r.submit for r in records)) if any_ran else 0
    simulated = float(makespan) if simulated_seconds is None else simulated_seconds
    used = int((ran.cpus * (ran.end - ran.start)).sum())
    return Summary(
        jobs=len(records),
        wall_seconds=round(wall_seconds, 3),
        simulated_seconds=round(simulated, 3),
        speedup=round(simulated / wall_seconds, 1) if wall_seconds > 0 else 0.0,
        jobs_per_second=round(len(records) / wall_seconds, 1) if wall_seconds > 0 else 0.0,
        schedule_sha256=schedule_sha256(records),
        utilization=used / (cpus * makespan) if makespan else 0.0,
        mean_wait=float(ran.wait.mean()) if any_ran else 0.0,
        median_wait=float(np.median(ran.wait)) if any_ran else 0.0,
        max_wait=float(ran.wait.max()) if any_ran else 0.0,
        mean_bounded_slowdown=float(ran.bounded_slowdown.mean()) if any_ran else 0.0,
        makespan=makespan,
        states=dict(sorted(Counter(r.state for r in records).items())),
    )
