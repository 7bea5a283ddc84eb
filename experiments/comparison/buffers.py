"""Burst buffers for the jobs of traces that know none: what each asks for, drawn from a model.

Place: below workloads. Pure: a seed is handed in, and the same seed gives everybody the same.

KTH-SP2 follows Kopanski and Rzadca (Euro-Par 2021): per processor a log-normal amount, fitted to
memory that jobs asked for, bounded by what 12 storage nodes of 40 GB can hold; here they are one
pool of 480 GB. Theta's scenarios are ours: a share of the jobs asks, for amounts that are
log-uniform.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.trace import TraceJob

KTH_CAPACITY_MB: Final = 480_000
_STORAGE_NODES: Final = 12
_STORAGE_NODE_MB: Final = 40_000
# KiB for each processor: shape, scale and location of the log-normal distribution (Kopanski and
# Rzadca's artefact)
_SIGMA: Final = 1.09725
_SCALE: Final = 2_714_115.0
_LOCATION: Final = -150_361.0
_LEAST_MB: Final = 100.0
_OF_SHORT_MB: Final = 10.0
_SHORT_S: Final = 120
_MB_OF_KIB: Final = 1024 / 10**6

THETA_CAPACITY_MB: Final = 625_000_000  # ours: S4 then loads nodes and buffer alike
# share of the jobs that ask; from, to, TB
SCENARIOS: Final = {
    "S1": (0.5, 5.0, 285.0),
    "S2": (0.75, 5.0, 285.0),
    "S3": (0.5, 20.0, 285.0),
    "S4": (0.75, 20.0, 285.0),
}
_MB_OF_TB: Final = 10**6


def kth_buffers(jobs: Sequence[TraceJob], seed: int) -> list[int]:
    """MB of each job in all, in their order. No job may have more than 96 processors."""
    chance = random.Random(seed)  # noqa: S311 -- no secret
    return [max(1, round(job.procs * _of_processor(job, chance))) for job in jobs]


def _of_processor(job: TraceJob, chance: random.Random) -> float:
    """MB for each of the job's processors."""
    if job.req <= _SHORT_S:
        return _OF_SHORT_MB
    kib = _LOCATION + chance.lognormvariate(math.log(_SCALE), _SIGMA)
    amount = min(max(kib * _MB_OF_KIB, _LEAST_MB), float(_STORAGE_NODE_MB))
    if job.procs > _STORAGE_NODES * math.floor(_STORAGE_NODE_MB / amount):
        return _STORAGE_NODE_MB / math.ceil(job.procs / _STORAGE_NODES)
    return amount


def theta_buffers(jobs: Sequence[TraceJob], seed: int, scenario: str) -> list[int]:
    """MB of each job, in their order; 0: it asks for none."""
    share, least, most = SCENARIOS[scenario]
    chance = random.Random(seed)  # noqa: S311 -- no secret
    found = []
    for _ in jobs:
        asks = chance.random() < share
        found.append(round(_MB_OF_TB * least * (most / least) ** chance.random()) if asks else 0)
    return found
