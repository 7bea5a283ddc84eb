"""Searches for a better order by simulated annealing.

Place: scheduling, pure; randomness is handed in. `Annealing` follows Kopanski and Rzadca (Euro-Par
2021): nine orders to begin with, 30 temperatures of six swaps, temperatures as large as scores are.
`Descent` follows Zheng et al. (Cluster 2016): from the queue's order on the job in front changes
places with another, a hundred times at each of 88 temperatures, which do not follow the scores.

A search is a generator: it lets others have their turn after each evaluation, which of a long queue
takes milliseconds, and returns what it has found.

Draws, in this order: two places by `randrange`; `random` where the other order is the worse one. An
order is evaluated no further than it takes to know that it will not be accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from math import exp, inf, log
from typing import TYPE_CHECKING, Final, TypeAlias

from understudy.controller.scheduling.plan_based.candidates import candidates, may_change_places
from understudy.controller.scheduling.plan_based.sequence import Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from understudy.controller.scheduling.chance import Chance
    from understudy.controller.scheduling.plan_based.candidates import Size
    from understudy.controller.scheduling.plan_based.sequence import Plans

Searching: TypeAlias = "Generator[None, None, Found]"
# what came of whole orders: a trial, or what the order costs at the least
Known: TypeAlias = dict[tuple[int, ...], Trial | float]
COOLING: Final = 0.9
FEW_JOBS: Final = 5  # of so many all orders are tried


@dataclass(frozen=True, slots=True)
class Found:
    """The best order that a search has come upon, and when its jobs start (by entry). `before`:
    the score of the first order that it looked at.
    """

    order: list[int]
    starts: list[int]
    score: float
    before: float

    @classmethod
    def now(cls, plans: Plans, before: float) -> Found:
        """The present one."""
        return cls(plans.order, plans.starts.copy(), plans.score, before)

    @classmethod
    def of_queue(cls, plans: Plans) -> Found:
        """That of the queue's order, without a search."""
        trial = plans.evaluate(list(range(len(plans.entries))))
        assert trial is not None
        plans.take(trial)
        return cls.now(plans, trial.score)


def _all_orders(sizes: Sequence[Size]) -> Iterator[list[int]]:
    """Those in which no job comes before one of a lower rank."""
    for order in permutations(range(len(sizes))):
        ranks = [sizes[number].rank for number in order]
        if ranks == sorted(ranks):
            yield list(order)


def best_of_all(plans: Plans, sizes: Sequence[Size]) -> Found:
    """Of all orders the first that nothing is better than."""
    found = Found.of_queue(plans)
    for order in _all_orders(sizes):
        first = 0
        while first < len(order) and order[first] == plans.order[first]:
            first += 1
        if first == len(order):
            continue  # the queue's, which is looked at already
        trial = plans.evaluate(order, first, plans.score)
        if trial is not None and trial.score < plans.score:
            plans.take(trial)
    return Found.now(plans, found.before)


def best_of_candidates(
    plans: Plans, sizes: Sequence[Size]
) -> Generator[None, None, tuple[Found, float]]:
    """(the first of the best of the nine orders, the worst score); the present plan is that
    best.
    """
    trials: list[Trial] = []
    for order in candidates(sizes):
        trial = plans.evaluate(order)
        assert trial is not None
        trials.append(trial)
        yield
    plans.take(min(trials, key=lambda trial: trial.score))
    return Found.now(plans, trials[0].score), max(trial.score for trial in trials)


def accepted(
    plans: Plans,
    order: list[int],
    first: int,
    temperature: float,
    rng: Chance,
    known: Known | None = None,
) -> Trial | None:
    """The other order, if a walk goes there from the present one. `known` saves placing whole
    orders (`first` is 0) again, and changes nothing else.
    """
    current = plans.score
    luck: float | None = None

    def lift() -> float:
        """The score beyond which the order is refused, whatever rounding does."""
        nonlocal luck
        luck = rng.random()
        return current - temperature * log(luck) * (1 + 1e-9) + 1 if luck else inf

    if known is None:
        trial = plans.evaluate(order, first, current, lift)
    else:
        trial = _known_or_placed(plans, order, known, lift)
    if trial is None or (luck is not None and luck >= exp((current - trial.score) / temperature)):
        return None
    return trial


def _known_or_placed(
    plans: Plans, order: list[int], known: Known, lift: Callable[[], float]
) -> Trial | None:
    """As `Plans.evaluate` of a whole order, `lift` asked in the same cases."""
    key, limit = tuple(order), plans.score
    what = known.get(key)
    if isinstance(what, Trial):
        plans.evaluations += 1
        if what.score > limit:
            lift()
        return what
    if what is None or what <= limit:
        trial = plans.evaluate(order, 0, limit, lift)
    else:
        limit = lift()
        if what > limit:
            plans.evaluations += 1
            return None
        trial = plans.evaluate(order, 0, limit)
    known[key] = plans.given_up if trial is None else trial
    return trial


def swapped(order: list[int], i: int, k: int) -> list[int]:
    """Another order, with the jobs at these places exchanged."""
    order = order.copy()
    order[i], order[k] = order[k], order[i]
    return order


@dataclass(frozen=True, slots=True)
class Annealing:
    """`steps` temperatures of `moves` swaps each."""

    steps: int = 30
    moves: int = 6

    def search(self, plans: Plans, sizes: Sequence[Size], rng: Chance) -> Searching:
        """The best order that it comes upon."""
        if len(sizes) <= FEW_JOBS:
            return best_of_all(plans, sizes)
        best, worst = yield from best_of_candidates(plans, sizes)
        if best.score == worst:
            return best
        temperature = float(worst - best.score)
        count = len(sizes)
        for _ in range(self.steps):
            for _ in range(self.moves):
                i, k = rng.randrange(count), rng.randrange(count)
                if i == k or not may_change_places(sizes, plans.order, i, k):
                    plans.evaluations += 1  # the same order again
                    continue
                order = swapped(plans.order, i, k)
                trial = accepted(plans, order, min(i, k), temperature, rng)
                yield
                if trial is not None:
                    plans.take(trial)
                    if trial.score < best.score:
                        best = Found.now(plans, best.before)
            temperature = max(COOLING * temperature, 1.0)
        return best


@dataclass(frozen=True, slots=True)
class Descent:
    """`steps` temperatures from 1 down (to 0.0001), `moves` swaps with the front at each."""

    steps: int = 88
    moves: int = 100

    def search(self, plans: Plans, sizes: Sequence[Size], rng: Chance) -> Searching:
        """The best order that it comes upon."""
        count = len(sizes)
        best = Found.of_queue(plans)
        temperature = 1.0
        known: Known = {}  # of 100 orders that it comes upon on KTH-SP2 it has seen 98 before
        for _ in range(self.steps):
            for _ in range(self.moves):
                k = rng.randrange(count)
                if not k or not may_change_places(sizes, plans.order, 0, k):
                    plans.evaluations += 1
                    continue
                trial = accepted(plans, swapped(plans.order, 0, k), 0, temperature, rng, known)
                yield
                if trial is not None:
                    plans.take(trial)
                    if trial.score < best.score:
                        best = Found.now(plans, best.before)
            temperature *= COOLING
        return best
