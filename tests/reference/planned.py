"""What plan-based scheduling does with a workload, job by job: plain, slow, and independent of the
product.

The machine has two pools, processors and one other thing (burst buffer), and jobs hold some of each
from their start to their end. A plan takes the waiting jobs in some order and gives each the first
instant from which on there is enough of both for as long as it asked for; running jobs end when
they said. Its score is the sum of (planned start - submit) ** power.

`best_orders` looks at every order there is. `plan_based` simulates a whole workload under the
annealing of Kopanski and Rzadca (Euro-Par 2021), as their paper tells it: at each instant first all
completions, then all submissions, then one pass that starts whoever the best plan starts now.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Work:
    """A job: `run` is at most `req`; `other` is what it holds beside processors."""

    id: int
    submit: int
    run: int
    req: int
    procs: int
    other: int = 0


@dataclass(frozen=True)
class Hold:
    """What somebody holds from start to end, the end not included."""

    start: int
    end: int
    procs: int
    other: int


def fits(holds: list[Hold], machine: tuple[int, int], new: Hold) -> bool:
    """Whether there is enough for one more at each instant of its time."""
    beside = [each for each in holds if each.start < new.end and each.end > new.start]
    for instant in {new.start, *(each.start for each in beside if each.start > new.start)}:
        procs, other = new.procs, new.other
        for each in beside:
            if each.start <= instant < each.end:
                procs += each.procs
                other += each.other
        if procs > machine[0] or other > machine[1]:
            return False
    return True


def place(holds: list[Hold], machine: tuple[int, int], job: Work, now: int) -> Hold:
    """As early as it fits: now, or when somebody ends."""
    for start in sorted({now} | {each.end for each in holds if each.end > now}):
        new = Hold(start, start + job.req, job.procs, job.other)
        if fits(holds, machine, new):
            return new
    raise AssertionError("larger than the machine")


def plan(
    running: list[Hold], machine: tuple[int, int], order: list[Work], now: int
) -> dict[int, int]:
    """The planned starts by id."""
    holds = list(running)
    starts = {}
    for job in order:
        new = place(holds, machine, job, now)
        holds.append(new)
        starts[job.id] = new.start
    return starts


def score(order: list[Work], starts: dict[int, int], power: int) -> int:
    return sum((starts[job.id] - job.submit) ** power for job in order)


def best_score(
    running: list[Hold], machine: tuple[int, int], jobs: list[Work], now: int, power: int
) -> int:
    """Of all orders."""
    return min(
        score(jobs, plan(running, machine, list(order), now), power)
        for order in itertools.permutations(jobs)
    )


def nine_orders(jobs: list[Work]) -> list[list[Work]]:
    """The first ones that annealing looks at."""

    def ratio(job: Work) -> float:
        return job.other / job.procs

    return [
        list(jobs),
        sorted(jobs, key=lambda job: job.procs, reverse=True),
        sorted(jobs, key=ratio, reverse=True),
        sorted(jobs, key=lambda job: ratio(job) / job.procs, reverse=True),
        sorted(jobs, key=lambda job: ratio(job) / job.procs),
        sorted(jobs, key=lambda job: job.procs),
        sorted(jobs, key=ratio),
        sorted(jobs, key=lambda job: job.req),
        sorted(jobs, key=lambda job: job.req, reverse=True),
    ]


def search(
    running: list[Hold],
    machine: tuple[int, int],
    jobs: list[Work],
    now: int,
    power: int,
    rng: Random,
) -> dict[int, int]:
    """The starts of the best plan found."""

    def tried(order: list[Work]) -> tuple[int, dict[int, int]]:
        starts = plan(running, machine, order, now)
        return score(order, starts, power), starts

    if len(jobs) <= 5:
        results = [tried(list(order)) for order in itertools.permutations(jobs)]
        return min(results, key=lambda result: result[0])[1]
    first = [(order, *tried(order)) for order in nine_orders(jobs)]
    present, current, best_starts = min(first, key=lambda result: result[1])
    best, worst = current, max(result[1] for result in first)
    if best == worst:
        return best_starts
    temperature = float(worst - best)
    for _ in range(30):
        for _ in range(6):
            i, k = rng.randrange(len(jobs)), rng.randrange(len(jobs))
            other = list(present)
            other[i], other[k] = other[k], other[i]
            new, starts = tried(other)
            if new < best:
                best, best_starts = new, starts
                is_accepted = True
            else:
                is_accepted = new <= current or rng.random() < math.exp(
                    (current - new) / temperature
                )
            if is_accepted:
                present, current = other, new
        temperature = max(0.9 * temperature, 1.0)
    return best_starts


def plan_based(
    jobs: list[Work], machine: tuple[int, int], power: int = 2, seed: int = 1
) -> dict[int, int]:
    """Start times by id; jobs that are larger than the machine are not among them."""
    ahead = sorted(
        (job for job in jobs if job.procs <= machine[0] and job.other <= machine[1]),
        key=lambda job: (job.submit, job.id),
    )
    rng = Random(seed)
    waiting: list[Work] = []
    running: list[tuple[int, Work]] = []
    starts: dict[int, int] = {}
    while ahead or running:
        now = min([start + job.run for start, job in running] + [job.submit for job in ahead[:1]])
        running = [(start, job) for start, job in running if start + job.run > now]
        while ahead and ahead[0].submit == now:
            waiting.append(ahead.pop(0))
        holds = [Hold(start, start + job.req, job.procs, job.other) for start, job in running]
        if not any(fits(holds, machine, Hold(now, now + 1, j.procs, j.other)) for j in waiting):
            continue
        planned = search(holds, machine, waiting, now, power, rng)
        for job in list(waiting):
            if planned[job.id] == now:
                waiting.remove(job)
                running.append((now, job))
                starts[job.id] = now
    return starts
