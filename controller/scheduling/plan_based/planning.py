"""Makes the plan of one place where jobs compete: who is placed first, what is searched, what comes
behind.

Place: scheduling, pure. Jobs come in the queue's order; a search sees them as entries with numbers
in that order, or in that of the plan that is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from understudy.controller.scheduling.chance import Chance, seeded
from understudy.controller.scheduling.plan_based.annealing import Annealing, Descent, Found
from understudy.controller.scheduling.plan_based.candidates import Size
from understudy.controller.scheduling.plan_based.random_search import Marker, Past, RandomSearch
from understudy.controller.scheduling.plan_based.sequence import Entry, Plans
from understudy.controller.scheduling.plan_based.settings import (
    NONE,
    PRIORITY,
    PROCESSORS,
    RANDOM,
    ZHENG,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from understudy.controller.scheduling.plan_based.settings import Settings
    from understudy.controller.scheduling.plan_based.supply import Supply
    from understudy.controller.scheduling.plan_based.waiting import Place, Waiting
    from understudy.controller.scheduling.profile import Profile
    from understudy.controller.tables.job import Job

FEWEST: int = 3  # jobs for which a random search is made (TORQUE)


class Planned(NamedTuple):
    """A waiting job and its start in the plan, in seconds; None: never, as things are."""

    waiting: Waiting
    start: int | None


@dataclass(slots=True)
class Counts:
    """What the searches have come to, for sdiag. `gain` is the sum of how much better the orders
    found were than the ones they began with, in parts of those.
    """

    searches: int = 0
    evaluations: int = 0
    jobs: int = 0  # in all searches
    gain: float = 0.0


@dataclass(slots=True)
class Planning:
    """Of one policy. `kept`: the plan's order, by job id the place in it."""

    settings: Settings
    rng: Chance = field(init=False)
    counts: Counts = field(default_factory=Counts)
    kept: dict[int, int] = field(default_factory=dict)
    past: dict[int, Past] = field(default_factory=dict)  # by user
    search_due: int | None = None  # when the next random search may be
    _searched: dict[Place, int] = field(default_factory=dict)  # when the last one was
    _running: dict[int, Job] = field(default_factory=dict)  # of which the past has only the wait

    def __post_init__(self) -> None:
        self.rng = seeded(self.settings.seed)

    def plan(
        self, supply: Supply, profile: Profile, jobs: Sequence[Waiting], earliest: dict[int, int]
    ) -> Generator[None, None, list[Planned]]:
        """A start for each, in the plan's order; what they take is taken out of the profile, which
        begins now. `earliest`: by job id, before which those may not start. Others may have their
        turn during the search.
        """
        settings, second = self.settings, profile.times[0]
        ranks = _ranks(jobs)
        jobs = [each for each in jobs if supply.ever_fits(profile, each)]
        if settings.keeps:
            behind = len(self.kept)
            jobs.sort(key=lambda each: (ranks[each], self.kept.get(each.job.job_id, behind)))
        first: list[Waiting] = []
        others: list[Waiting] = []
        for each in jobs:
            is_patient = not settings.bound_s or second - each.submit < settings.bound_s
            is_deep = len(first) + len(others) >= settings.depth
            (others if is_patient and is_deep else first).append(each)
        window = settings.window or len(others)
        plan = in_order(supply, profile, first, earliest)
        if others:
            found = yield from self._search(supply, profile, others[:window], earliest, ranks)
            for waiting, start in found:
                assert start is not None
                profile.reserve(start, start + waiting.length_s, supply.need(waiting))
            plan += found
            plan += in_order(supply, profile, others[window:], earliest)
        return plan

    def keep(self, plan: Sequence[Planned]) -> None:
        """Remember in which order jobs that still wait start."""
        self.kept.clear()
        if self.settings.keeps:
            ahead = [
                each for each in plan if each.start is not None and each.waiting.job.is_pending
            ]
            ahead.sort(key=lambda each: each.start or 0)
            self.kept |= {each.waiting.job.job_id: place for place, each in enumerate(ahead)}

    def _search(
        self,
        supply: Supply,
        profile: Profile,
        jobs: Sequence[Waiting],
        earliest: dict[int, int],
        ranks: dict[Waiting, int],
    ) -> Generator[None, None, list[Planned]]:
        settings = self.settings
        entries = [
            Entry(
                supply.need(each),
                each.length_s,
                each.submit,
                earliest.get(each.job.job_id, 0),
                self._weight(each),
            )
            for each in jobs
        ]
        sizes = [
            Size(
                max(each.processors, 1), supply.beside_processors(each), each.length_s, ranks[each]
            )
            for each in jobs
        ]
        plans = Plans(profile, entries, settings.objective)
        found: Found | None = None
        if len(jobs) > 1 and settings.search == RANDOM:
            found = yield from self._search_at_random(plans, sizes, jobs, supply.place)
        elif len(jobs) > 1 and settings.search != NONE and plans.may_start_now:
            kind = Descent if settings.search == ZHENG else Annealing
            found = yield from kind(settings.steps, settings.moves).search(plans, sizes, self.rng)
        if found is None:
            found = Found.of_queue(plans)
        else:
            self.counts.searches += 1
            self.counts.evaluations += plans.evaluations
            self.counts.jobs += len(jobs)
            if found.before:
                self.counts.gain += 1 - found.score / found.before
        return [Planned(jobs[number], found.starts[number]) for number in found.order]

    def _search_at_random(
        self, plans: Plans, sizes: list[Size], jobs: Sequence[Waiting], place: Place
    ) -> Generator[None, None, Found | None]:
        """As often as once in so many seconds."""
        settings, second = self.settings, plans.now
        if len(jobs) < FEWEST:
            return None
        due = self._searched.get(place, second - settings.interval_s) + settings.interval_s
        if second < due:
            self.search_due = due if self.search_due is None else min(due, self.search_due)
            return None
        self._searched[place] = second
        users = [each.job.user_id for each in jobs]
        marker = Marker(plans.entries, sizes, users, self.past)
        search = RandomSearch(settings.tries, settings.fairness)
        return (yield from search.search(plans, sizes, marker, self.rng))

    def _weight(self, waiting: Waiting) -> float:
        if self.settings.weight == PRIORITY:
            return max(waiting.job.priority, 1)
        if self.settings.weight == PROCESSORS:
            return 1 / max(waiting.processors, 1)
        return 1

    def remember(self, running: dict[int, Job]) -> None:
        """What users have waited and used, by the jobs that run now and those that ran until
        now.
        """
        for job_id, job in list(self._running.items()):
            if job_id not in running:
                del self._running[job_id]
                self._add(job)
        for job_id, job in running.items():
            if job_id not in self._running and job.start_time is not None:
                self._running[job_id] = job
                past = self.past.get(job.user_id, Past())
                wait_s = max(job.start_time - int(job.submit_time), 0)
                self.past[job.user_id] = past._replace(wait_s=past.wait_s + wait_s)

    def _add(self, job: Job) -> None:
        """A job has ended: what it used."""
        if job.allocation is None or job.start_time is None or job.end_time is None:
            return
        past = self.past.get(job.user_id, Past())
        used = max(job.end_time - job.start_time, 0) * job.allocation.cpus
        self.past[job.user_id] = past._replace(cpu_s=past.cpu_s + used)


def in_order(
    supply: Supply, profile: Profile, jobs: Sequence[Waiting], earliest: dict[int, int]
) -> list[Planned]:
    """Each as early as it fits, one after the other; what they take is taken out."""
    now = profile.times[0]
    found = []
    for each in jobs:
        need = supply.need(each)
        start = profile.earliest(need, each.length_s, max(earliest.get(each.job.job_id, now), now))
        if start is not None:
            profile.reserve(start, start + each.length_s, need)
        found.append(Planned(each, start))
    return found


def as_easy(
    supply: Supply, profile: Profile, plan: Sequence[Planned], earliest: dict[int, int]
) -> list[Planned]:
    """Zheng's use of a plan: its starts order the queue, of which jobs start from the head on, and
    then those that do not delay the first that cannot. The profile is without the plan.
    """
    now = profile.times[0]
    found, is_blocked = [], False
    for each in sorted(plan, key=lambda each: each.start or 0):
        waiting = each.waiting
        need = supply.need(waiting)
        at = max(earliest.get(waiting.job.job_id, now), now)
        start = profile.earliest(need, waiting.length_s, at)
        if start is not None and (start == now or not is_blocked):
            profile.reserve(start, start + waiting.length_s, need)
        is_blocked |= start != now
        shown = each.start if each.start is None or each.start > now else start
        found.append(Planned(waiting, now if start == now else shown))
    return found


def _ranks(jobs: Sequence[Waiting]) -> dict[Waiting, int]:
    """Numbers for groups of jobs of which one comes before the next in every order."""
    ranks: dict[Waiting, int] = {}
    rank, last = 0, None
    for each in jobs:
        if last is not None and each.group != last:
            rank += 1
        ranks[each], last = rank, each.group
    return ranks
