"""A small busy workload to measure schedulers with: two days of short jobs for a thousand nodes.

Place: a source of traces beside `swf` and `lublin`. Pure: the same arguments give the same jobs. It
follows no model of users: run times and sizes are spread evenly over their orders of magnitude,
submissions evenly over the span, so that the queue fills, empties and holds jobs of all shapes.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.experiments.trace import TraceJob

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORTEST_S: Final = 30
LONGEST_S: Final = 3_600
SERIAL: Final = 0.25  # share of jobs with one processor


def synthetic(
    jobs: int = 3_000,
    nodes: int = 1_000,
    cpus: int = 4,
    hours: float = 48,
    seed: int = 1,
    *,
    load: float | None = None,
    users: int = 0,
    groups: int = 0,
    queues: int = 0,
) -> list[TraceJob]:
    """Jobs of 30 s to 1 h and of one processor to half the machine; limits are whole minutes, up to
    four times the run time.

    `load` lengthens or shortens all of them until they keep that share of the machine busy over the
    hours. With `users` each job has one of them, some with many jobs and most with few, and his
    group and one of the queues; all are numbered from 1.
    """
    if jobs < 1 or nodes * cpus < 2 or hours <= 0:
        raise ValueError(
            f"a workload needs jobs >= 1, processors >= 2, hours > 0: {jobs=} {nodes=} "
            f"{cpus=} {hours=}"
        )
    rng = random.Random(seed)  # noqa: S311
    widest = math.log(nodes * cpus / 2)
    submits = sorted(rng.randrange(round(hours * 3600)) for _ in range(jobs))
    made = []
    for number, submit in enumerate(submits, 1):
        run = round(math.exp(rng.uniform(math.log(SHORTEST_S), math.log(LONGEST_S))))
        procs = 1 if rng.random() < SERIAL else max(1, round(math.exp(rng.uniform(0, widest))))
        limit = 60 * math.ceil(run * rng.uniform(1, 4) / 60)
        made.append(TraceJob(number, submit - submits[0], run, procs, limit, run, number, status=1))
    if load is not None:
        factor = load * nodes * cpus * hours * 3600 / sum(job.run * job.procs for job in made)
        made = [_longer(job, factor) for job in made]
    if users:
        made = owned(made, users, groups, queues, rng)
    return made


def owned(
    jobs: Sequence[TraceJob], users: int, groups: int, queues: int, chance: random.Random
) -> list[TraceJob]:
    """The jobs with one of so many users each, some with many jobs and most with few, and his group
    and one of the queues; without groups or queues these stay.
    """
    return [
        _owned(job, min(users, int(chance.paretovariate(0.5))), groups, queues, chance)
        for job in jobs
    ]


def _longer(job: TraceJob, factor: float) -> TraceJob:
    run = max(1, round(job.run * factor))
    return msgspec.structs.replace(
        job, run=run, raw_run=run, req=60 * math.ceil(run * job.req / job.run / 60)
    )


def _owned(job: TraceJob, user: int, groups: int, queues: int, rng: random.Random) -> TraceJob:
    group = (user - 1) % groups + 1 if groups else job.group
    queue = rng.randint(1, queues) if queues else job.queue
    return msgspec.structs.replace(job, user=user, group=group, queue=queue)
