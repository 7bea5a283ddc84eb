"""A search that tries random changes of a plan and keeps those that make it better, by four
criteria at once.

Place: scheduling, pure; randomness is handed in. Follows the planning scheduler of TORQUE (Chlumsky
and Klusacek) as its manual and its authors' simulator Alea describe it: a job at random goes to
another place in the order; what counts is the sum of how much better, in proportion, the mean
response time, the mean wait, the mean slowdown and the fairness among users have become.

Fairness looks at the normalised user wait time of each user, all waits over all CPU time, past and
planned: the squares of how far from the mean plus one each of them is are added up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from understudy.controller.scheduling.plan_based.annealing import Found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.controller.scheduling.chance import Chance
    from understudy.controller.scheduling.plan_based.annealing import Searching
    from understudy.controller.scheduling.plan_based.candidates import Size
    from understudy.controller.scheduling.plan_based.sequence import Entry, Plans


class Past(NamedTuple):
    """What a user's jobs that have started have waited, and the CPU time they used, in seconds."""

    wait_s: float = 0
    cpu_s: float = 0


class Marks(NamedTuple):
    """How good a plan is: of each less is better. Times in seconds."""

    response_s: float
    wait_s: float
    slowdown: float
    fairness: float


def gain(old: Marks, new: Marks, weight: float) -> float:
    """How much better the new ones are, in proportion, all added up; of fairness so many times."""

    def better(before: float, after: float) -> float:
        if before:
            return (before - after) / before
        return -1.0 if after else 0.0

    return (
        better(old.response_s, new.response_s)
        + better(old.wait_s, new.wait_s)
        + better(old.slowdown, new.slowdown)
        + weight * better(old.fairness, new.fairness)
    )


@dataclass(slots=True)
class Marker:
    """Gives marks to plans of the same jobs; `users` and `sizes` by entry."""

    entries: Sequence[Entry]
    sizes: Sequence[Size]
    users: Sequence[int]
    past: Mapping[int, Past]
    _planned_cpu_s: dict[int, float] = field(init=False)

    def __post_init__(self) -> None:
        planned = {user: each.cpu_s for user, each in self.past.items()}
        for entry, size, user in zip(self.entries, self.sizes, self.users, strict=True):
            planned[user] = planned.get(user, 0) + size.processors * entry.length_s
        self._planned_cpu_s = planned

    def marks(self, starts: Sequence[int]) -> Marks:
        """Of a plan with these starts, by entry."""
        count = len(starts)
        waited = {user: each.wait_s for user, each in self.past.items()}
        waits = lengths = slowdown = 0.0
        for entry, start, user in zip(self.entries, starts, self.users, strict=True):
            wait = start - entry.submit
            waits += wait
            lengths += entry.length_s
            slowdown += (wait + entry.length_s) / max(entry.length_s, 1)
            waited[user] = waited.get(user, 0) + wait
        normalised = [wait / max(self._planned_cpu_s[user], 1) for user, wait in waited.items()]
        mean = sum(normalised) / len(normalised)
        return Marks(
            (waits + lengths) / count,
            waits / count,
            slowdown / count,
            sum((1 + mean - each) ** 2 for each in normalised),
        )


@dataclass(frozen=True, slots=True)
class RandomSearch:
    """`tries` moves for each waiting job; `fairness_weight` of fairness among the criteria."""

    tries: int = 40
    fairness_weight: float = 10

    def search(self, plans: Plans, sizes: Sequence[Size], marker: Marker, rng: Chance) -> Searching:
        """The plan that it ends with, from the present one on (the queue's order if there is
        none).
        """
        if not plans.order:
            Found.of_queue(plans)
        marks, before = marker.marks(plans.starts), plans.score
        count = len(sizes)
        for _ in range(self.tries * count):
            old, new = rng.randrange(count), rng.randrange(count)
            order = plans.order.copy()
            order.insert(new, order.pop(old))
            ranks = [sizes[number].rank for number in order[min(old, new) : max(old, new) + 1]]
            if old == new or ranks != sorted(ranks):
                plans.evaluations += 1  # the same order again
                continue
            trial = plans.evaluate(order, min(old, new))
            assert trial is not None
            yield
            starts = plans.starts.copy()
            for number, start in zip(order[trial.first :], trial.starts, strict=True):
                starts[number] = start
            changed = marker.marks(starts)
            if gain(marks, changed, self.fairness_weight) > 0:
                plans.take(trial)
                marks = changed
        return Found.now(plans, before)
