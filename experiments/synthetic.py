"""A small busy workload to measure schedulers with: two days of short jobs for a thousand nodes.

Place: a source of traces beside `swf` and `lublin`. Pure: the same arguments give the same jobs. It follows no model of users: run times and sizes
are spread evenly over their orders of magnitude, submissions evenly over the span, so that the queue fills, empties and holds jobs of all shapes.
"""

from __future__ import annotations

import math
import random
from typing import Final

from understudy.experiments.swf import TraceJob

SHORTEST_S: Final = 30
LONGEST_S: Final = 3_600
SERIAL: Final = 0.25  # share of jobs with one processor


def synthetic(jobs: int = 3_000, nodes: int = 1_000, cpus: int = 4, hours: float = 48, seed: int = 1) -> list[TraceJob]:
    """Jobs of 30 s to 1 h and of one processor to half the machine; limits are whole minutes, up to four times the run time."""
    if jobs < 1 or nodes * cpus < 2 or hours <= 0:
        raise ValueError(f"a workload needs jobs >= 1, processors >= 2, hours > 0: {jobs=} {nodes=} {cpus=} {hours=}")
    rng = random.Random(seed)  # noqa: S311
    widest = math.log(nodes * cpus / 2)
    submits = sorted(rng.randrange(round(hours * 3600)) for _ in range(jobs))
    made = []
    for number, submit in enumerate(submits, 1):
        run = round(math.exp(rng.uniform(math.log(SHORTEST_S), math.log(LONGEST_S))))
        procs = 1 if rng.random() < SERIAL else max(1, round(math.exp(rng.uniform(0, widest))))
        limit = 60 * math.ceil(run * rng.uniform(1, 4) / 60)
        made.append(TraceJob(number, submit - submits[0], run, procs, limit, run, number, status=1))
    return made
