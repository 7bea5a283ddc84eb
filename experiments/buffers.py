"""Burst buffers for the jobs of a trace that has none: drawn from models, the same for the same
seed.

Place: a source of traces beside `synthetic` and `lublin`. Pure. Jobs are in normal form, and drawn
for in their order, from CPython's generator.

- `kth`, for KTH-SP2: what Kopanski and Rzadca (Euro-Par 2021) fitted to the memory that jobs of
  MetaCentrum asked for. Of each processor a log-normal amount of KiB, shifted, at least 100 MB and
  at most what a storage node of 40 GB has, of which there are 12; jobs of two minutes and less need
  10 MB a processor. The machine has 96 processors and 480 GB.
- `theta`, for ALCF's Theta: in four sets, half or three quarters of the jobs ask for a log-uniform
  amount from 5 or 20 to 285 TB. The sets are ours, S1 to S4. The machine has 4,360 nodes and
  625 TB, so that S4 loads nodes and buffers alike.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.trace import TraceJob

# the log-normal's, in KiB a processor
_SIGMA: Final = 1.09725
_SCALE: Final = 2_714_115
_SHIFT: Final = -150_361
_KIB_PER_MB: Final = 10**6 / 1024
_SMALLEST_MB: Final = 100
_STORAGE_NODES: Final = 12
_STORAGE_NODE_MB: Final = 40_000
_SHORT_S: Final = 120  # jobs with such a limit, or a shorter one, need next to nothing
_OF_SHORT_MB: Final = 10


class Buffered(NamedTuple):
    """Jobs that fit the machine, each with MB of burst buffer as its column 19, numbered anew."""

    jobs: list[TraceJob]
    processors: int
    capacity_mb: int


class Share(NamedTuple):
    """Of how many jobs, and between how many TB."""

    of_jobs: float
    least_tb: float
    most_tb: float


THETA_SETS: Final = {
    "S1": Share(0.5, 5, 285),
    "S2": Share(0.75, 5, 285),
    "S3": Share(0.5, 20, 285),
    "S4": Share(0.75, 20, 285),
}


def kth(jobs: Sequence[TraceJob], seed: int = 1) -> Buffered:
    """KTH-SP2 with buffers."""
    source = random.Random(seed)  # noqa: S311
    processors = 96

    def amount(job: TraceJob) -> int:
        if job.req <= _SHORT_S:
            each: float = _OF_SHORT_MB
        else:
            drawn = _SHIFT + source.lognormvariate(math.log(_SCALE), _SIGMA)
            each = min(max(drawn / _KIB_PER_MB, _SMALLEST_MB), _STORAGE_NODE_MB)
            if job.procs > _STORAGE_NODES * (_STORAGE_NODE_MB // each):
                each = _STORAGE_NODE_MB / -(-job.procs // _STORAGE_NODES)
        return max(1, round(job.procs * each))

    fitting = [job for job in jobs if job.procs <= processors]
    return Buffered(
        _numbered(fitting, [amount(job) for job in fitting]),
        processors,
        _STORAGE_NODES * _STORAGE_NODE_MB,
    )


def theta(jobs: Sequence[TraceJob], seed: int = 1, share: Share = THETA_SETS["S4"]) -> Buffered:
    """Theta with buffers."""
    source = random.Random(seed)  # noqa: S311
    nodes = 4_360

    def amount() -> int:
        if source.random() >= share.of_jobs:
            return 0
        ratio = share.most_tb / share.least_tb
        tb: float = share.least_tb * ratio ** source.random()
        return round(10**6 * tb)

    fitting = [job for job in jobs if job.procs <= nodes]
    return Buffered(_numbered(fitting, [amount() for _ in fitting]), nodes, 625_000_000)


def closer(jobs: Sequence[TraceJob], scale: float) -> list[TraceJob]:
    """The same jobs at `scale` times their submit times, cut to whole seconds: 0.8 is a quarter
    more load.
    """
    return [msgspec.structs.replace(job, submit=int(job.submit * scale)) for job in jobs]


def _numbered(jobs: Sequence[TraceJob], amounts: Sequence[int]) -> list[TraceJob]:
    return [
        msgspec.structs.replace(job, id=number, extra=(str(amount),))
        for number, (job, amount) in enumerate(zip(jobs, amounts, strict=True), 1)
    ]
