"""BBSched's window by exhaustion, and its passes as a bare loop: independent of the product, and
only for windows small enough that all subsets can be looked at.

A subset is a tuple of places in the window, ascending. It uses amounts, processors first. Of
subsets that use the same, the one with the fewest and then the earliest jobs stands for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from reference.buffered import Asked, Machine, easy_bb


def feasible(needs, free):
    """{what is used: subset} of all subsets that fit, the empty one with them."""
    found = {}
    for size in range(len(needs) + 1):
        for subset in combinations(range(len(needs)), size):
            used = tuple(sum(needs[i][k] for i in subset) for k in range(len(free)))
            if all(a <= b for a, b in zip(used, free, strict=True)):
                found.setdefault(used, subset)  # fewer jobs and earlier ones come first
    return found


def dominates(one, other):
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))


def pareto(needs, free):
    """{what is used: subset} of the front."""
    found = feasible(needs, free)
    return {
        used: subset
        for used, subset in found.items()
        if not any(dominates(other, used) for other in found)
    }


def decide(needs, free, capacity, factor):
    """The paper's rule."""
    front = pareto(needs, free)
    first = max(front)
    best, best_gain, best_loss = first, 0, 0
    for used in sorted(front, reverse=True):
        gain = sum(Fraction(used[k] - first[k], capacity[k]) for k in range(1, len(capacity)))
        loss = Fraction(first[0] - used[0], capacity[0])
        if gain > factor * loss and (gain > best_gain or (gain == best_gain and loss < best_loss)):
            best, best_gain, best_loss = used, gain, loss
    return front[best]


@dataclass
class BBSched:
    """One run's policy for `buffered.simulate`."""

    capacity: tuple[int, ...]
    width: int = 20
    bound: int = 50
    factor: int = 2
    ages: dict[int, int] = field(default_factory=dict)

    def __call__(self, machine: Machine, now: int) -> None:
        window: list[Asked] = machine.queue[: self.width]
        old = [job for job in window if self.ages.get(job.id, 0) >= self.bound]
        candidates = [job for job in window if machine.fits(job)]
        if old:
            machine.queue[:] = old + [job for job in machine.queue if job not in old]
        elif candidates:
            needs = [job.needs for job in candidates]
            for place in decide(needs, tuple(machine.free), self.capacity, self.factor):
                machine.start(candidates[place], now)
            for job in window:
                if job.id not in machine.starts:
                    self.ages[job.id] = self.ages.get(job.id, 0) + 1
        easy_bb(machine, now)
        machine.queue.sort(key=lambda job: (job.submit, job.id))
