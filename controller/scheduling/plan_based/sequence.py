"""Plans as permutations: the waiting jobs, taken in some order, each as early as it then fits.

Place: scheduling, pure; what the searches of sched/plan evaluate, hundreds of times a pass. Knows
amounts and seconds; no jobs, no nodes, no clock. Follows Kopanski and Rzadca (Euro-Par 2021).

What is free when is the profile of understudy.controller.scheduling.profile in its simplest form:
two lists, of times and of what is free from then on (one int,
understudy.controller.scheduling.resources). Here jobs are only ever added, and all begin where some
step begins, so that little need be looked up. Of the present order the lists are kept as they were
before each of its jobs: another that differs from place i on begins with those.

An order that is sure to come out worse than asked is given up half way: the jobs that are still to
be placed cost no less than with nobody else waiting.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.controller.scheduling.profile import Profile

WAIT, LATEST_START, LATEST_END = "wait", "start", "makespan"
OBJECTIVES: Final = (WAIT, LATEST_START, LATEST_END)
_NEVER: Final = 1 << 62  # the last step's end


class Entry(NamedTuple):
    """A job that waits, as plans see it. Times are whole seconds: `need` of the resources is what
    it takes for `length_s` seconds, from `earliest` on at the earliest, whoever else waits.
    `weight`: of its wait among the others'.
    """

    need: int
    length_s: int
    submit: int
    earliest: int = 0
    weight: float = 1


class Objective(NamedTuple):
    """What a plan is to have little of: the sum of all waits to that power; or its latest start, or
    its latest end.
    """

    kind: str = WAIT
    power: int = 2


class State(NamedTuple):
    """Before a job is placed: what is free when, the first step that is of use to any job, and what
    the jobs so far cost.
    """

    times: list[int]
    free: list[int]
    lead: int
    score: float


class Trial(NamedTuple):
    """An order that has been tried: from place `first` on it is not the present one. `starts` are
    those of the jobs from there on; of the score less is better.
    """

    first: int
    order: list[int]
    starts: list[int]
    score: float
    states: list[State]


class Plans:
    """Plans of the same jobs on what is free: the present one is `order`, with `starts` by entry,
    and a `score`. `evaluations` counts orders tried; `given_up` is what the last that was given up
    costs at the least.
    """

    def __init__(self, profile: Profile, entries: Sequence[Entry], objective: Objective) -> None:
        """`profile` begins now, and in its last step, which never ends, each job fits."""
        self.entries, self.objective = entries, objective
        self.now = profile.times[0]
        self.evaluations = 0
        self.given_up: float = 0
        resources = profile.resources
        self._guards = resources.guards
        # what each job needs at the least: a step without it is of no use to any
        smallest = resources.totals
        for entry in entries:
            smallest = resources.least(smallest, entry.need | self._guards)
        self._smallest = smallest & ~self._guards
        base = self._begin(profile)
        self._least: list[float] = [0] * len(entries)  # what each costs at the least
        self.alone: list[int] = []  # when each would start with nobody else waiting
        for number in range(len(entries)):
            trial = self._place([number], 0, base, 0, inf)
            assert trial is not None
            self.alone += trial.starts
            if objective.kind == WAIT:  # else the costs are no sum
                self._least[number] = trial.score
        self.order: list[int] = []
        self.starts = self.alone.copy()
        self.score: float = 0
        self._states = [base]

    def _begin(self, profile: Profile) -> State:
        times, free = profile.times.copy(), profile.amounts.copy()
        for entry in self.entries:  # everybody is to begin where a step does
            if entry.earliest > self.now:
                place = bisect_left(times, entry.earliest)
                if place == len(times) or times[place] != entry.earliest:
                    times.insert(place, entry.earliest)
                    free.insert(place, free[place - 1])
        times.append(_NEVER)
        free.append(free[-1])
        lead, guards = 0, self._guards
        while (free[lead] - self._smallest) & guards != guards:
            lead += 1
        return State(times, free, lead, 0)

    @property
    def may_start_now(self) -> bool:
        """Whether any job could start now."""
        return self.now in self.alone

    def evaluate(
        self,
        order: list[int],
        first: int = 0,
        limit: float = inf,
        lift: Callable[[], float] | None = None,
    ) -> Trial | None:
        """Place the jobs in that order, which differs from the present one from place `first` on;
        None if the score is more than `limit`. `lift` is asked for another limit when that is sure
        to be the case.
        """
        self.evaluations += 1
        least = self._least
        ahead = sum([least[number] for number in order[first:]])
        return self._place(order, first, self._states[first], ahead, limit, lift)

    def take(self, trial: Trial) -> None:
        """Make a trial the present plan. None has been taken since it was made, or it is of the
        whole order.
        """
        first = trial.first
        self.order, self.score = trial.order, trial.score
        del self._states[first + 1 :]
        self._states += trial.states
        for number, start in zip(trial.order[first:], trial.starts, strict=True):
            self.starts[number] = start

    def _place(
        self,
        order: list[int],
        first: int,
        state: State,
        ahead: float,
        limit: float,
        lift: Callable[[], float] | None = None,
    ) -> Trial | None:
        """Place the jobs from there on, one after the other. `ahead` is what they cost at the
        least.
        """
        entries, least, guards, now = self.entries, self._least, self._guards, self.now
        smallest = self._smallest
        kind, power = self.objective
        starts: list[int] = []
        states: list[State] = []
        times, free, lead, score = state
        for number in order[first:] if first else order:
            need, length_s, submit, earliest, weight = entries[number]
            times, free = times.copy(), free.copy()
            i = lead if earliest <= now else bisect_left(times, earliest)
            # the first step from which on there is enough for as long: i to k, k not among them
            while True:
                while (free[i] - need) & guards != guards:
                    i += 1
                end = times[i] + length_s
                k = i + 1
                while times[k] < end:
                    if (free[k] - need) & guards != guards:
                        break
                    k += 1
                else:
                    break
                i = k + 1
            start = times[i]
            if times[k] != end:
                times.insert(k, end)
                free.insert(k, free[k - 1])
            for step in range(i, k):
                free[step] -= need
            while (free[lead] - smallest) & guards != guards:
                lead += 1
            if kind == WAIT:
                wait = start - submit
                score += weight * (wait * wait if power == 2 else wait**power)
                ahead -= least[number]
            else:
                score = max(score, start if kind == LATEST_START else end)
            if score + ahead > limit:
                if lift is not None:
                    limit, lift = lift(), None
                if score + ahead > limit:
                    self.given_up = score + ahead
                    return None
            starts.append(start)
            states.append(State(times, free, lead, score))
        return Trial(first, order, starts, score, states)
