"""What is free when in a place where jobs compete: CPUs of each set of nodes, and what is counted
beside them.

Place: scheduling, pure. Running jobs give back what they hold when they are expected to end, by
their limits; who is overdue, and what is held by nobody who runs (nodes that are being cleaned up),
in the next second. Reservations take their nodes and licences from all who are outside of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from understudy.controller.scheduling.profile import Profile
from understudy.controller.scheduling.resources import Resources
from understudy.controller.tables.licenses import REASON as LICENSES
from understudy.controller.tables.licenses import read_licenses
from understudy.model import nodeset
from understudy.model.times import YEAR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from understudy.controller.scheduling.plan_based.waiting import Place, Waiting
    from understudy.controller.scheduling.textbook.further import Further
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.reservation import Reservation
    from understudy.controller.tables.tables import Tables

# of nodes that are told apart: of more the larger ones, and who has a smaller one is held to be
# content with the next larger (ours, so that numbers stay short)
MOST_SETS: Final = 12


def expected_end(job: Job, second: int) -> int:
    """When a running job will have ended, by its limit; a year later if it has none."""
    assert job.start_time is not None
    limit_s = YEAR if job.time_limit_s is None else job.time_limit_s
    return max(job.start_time + job.pre_suspend_s + limit_s, second + 1)


def beside(waiting: Waiting, further: Further) -> int:
    """How much a job takes of a resource that is counted beside CPUs."""
    return sum(further.of(records[0].job, records[0].partition) for records in waiting.members)


class Supply:
    """The resources of a place, for jobs with these sets of nodes."""

    def __init__(
        self, tables: Tables, place: Place, sets: Sequence[int], further: Sequence[Further]
    ) -> None:
        self.tables, self.place, self.further = tables, place, further
        distinct = sorted(dict.fromkeys((place.nodes, *sets)), key=lambda each: -each.bit_count())
        self.sets = tuple(distinct[:MOST_SETS])
        self._names = [f"cpus {i}" for i in range(len(self.sets))]
        totals = {
            name: self._cpus(nodes) for name, nodes in zip(self._names, self.sets, strict=True)
        } | {each.name: max(each.capacity(place.nodes), 0) for each in further}
        self.resources = Resources(totals)
        self._held: dict[int, tuple[object, int]] = {}  # by job id: what it holds, packed
        self._needs: dict[int, int] = {}  # by job id

    def _cpus(self, nodes: int) -> int:
        table = self.tables.nodes
        kind = table.kind_of(nodes)
        if kind is not None:
            return nodes.bit_count() * kind.cpus
        return int(table.cpus[nodeset.to_flags(nodes, len(table.nodes))].sum())

    def _free_cpus(self, nodes: int) -> int:
        table = self.tables.nodes
        return table.free_cpus_on(nodes & ~table.exclusive_nodes & ~table.completing_nodes)

    # --- jobs -------------------------------------------------------------------------------------

    def need(self, waiting: Waiting) -> int:
        """What a waiting job takes."""
        key = waiting.job.job_id
        need = self._needs.get(key)
        if need is None:
            amounts = {
                name: waiting.processors
                for name, nodes in zip(self._names, self.sets, strict=True)
                if not waiting.nodes & ~nodes
            }
            for each in self.further:
                amounts[each.name] = beside(waiting, each)
            need = self.resources.need(amounts)
            buffer = waiting.job.burst_buffer
            if buffer is None or not buffer.creates:  # which somebody else may have made by then
                self._needs[key] = need
        return need

    def beside_processors(self, waiting: Waiting) -> float:
        """How much it takes of the one resource that is counted beside CPUs; of several, the
        largest part that it takes of any.
        """
        if len(self.further) == 1:
            return beside(waiting, self.further[0])
        return max(
            (
                beside(waiting, each) / max(each.capacity(self.place.nodes), 1)
                for each in self.further
            ),
            default=0,
        )

    def ever_fits(self, profile: Profile, waiting: Waiting) -> bool:
        """Whether it fits once all that runs has ended."""
        return self.resources.fits(profile.amounts[-1], self.need(waiting))

    def lacking(self, free: int, need: int) -> str:
        """The reason of a job for which that is not enough; "" if it is."""
        short = self.resources.short(free, need)
        if not short or short[0] in self._names:
            return "Resources" if short else ""
        return next(each.reason for each in self.further if each.name == short[0])

    def _held_by(self, job: Job) -> int:
        """What a running job holds of it."""
        allocation = job.holding
        known = self._held.get(job.job_id)
        if known is not None and known[0] is allocation:
            return known[1]
        amounts = {}
        if allocation is not None:
            amounts = {
                name: allocation.cpus_on(nodes)
                for name, nodes in zip(self._names, self.sets, strict=True)
            }
        for each in self.further:
            amounts[each.name] = max(each.held(job, self.place.nodes), 0)
        # within what there is, so that no field runs over when it is given back
        held = self._at_most(self.resources.need(amounts), self.resources.totals)
        self._held[job.job_id] = allocation, held
        return held

    # --- what is free when ------------------------------------------------------------------------

    def now(self) -> int:
        """What is free now."""
        amounts = {
            name: self._free_cpus(nodes) for name, nodes in zip(self._names, self.sets, strict=True)
        }
        for each in self.further:
            amounts[each.name] = each.free(self.place.nodes)
        return self.resources.free(amounts)

    def profile(self, second: int, now: float) -> Profile:
        """From now on, as the running jobs leave it."""
        tables, resources = self.tables, self.resources
        running = tables.running
        if len(self._held) > 2 * len(running) + 100:
            self._held = {key: each for key, each in self._held.items() if key in running}
        profile = Profile(second, resources, self.now())
        free = profile.amounts[0]
        for end, held in sorted(
            [(expected_end(job, second), self._held_by(job)) for job in running.values()]
        ):
            before, free = free, resources.least(free + held, resources.totals)
            if free != before:
                profile.release(end, profile.end, free - before)
        if profile.amounts[-1] != resources.totals:
            self._give_back(profile, second + 1)
        if tables.reservations:
            self._reserve(profile, second, now)
        return profile

    def _give_back(self, profile: Profile, when: int) -> None:
        """What nobody who runs holds comes back then."""
        resources = self.resources
        last = resources.amounts(profile.amounts[-1])
        left = resources.amounts(resources.totals)
        left.update((each.name, each.left_to_jobs(self.place.nodes)) for each in self.further)
        missing = resources.need({name: max(left[name] - last[name], 0) for name in left})
        profile.release(when, profile.end, missing)

    def _reserve(self, profile: Profile, second: int, now: float) -> None:
        """Take out what reservations keep from the jobs here."""
        for reservation in self.tables.reservations:
            start = max(reservation.start(now), second)
            end = reservation.end(now)
            if reservation.name == self.place.reservation or end <= start:
                continue
            for part_start, part_end, amounts in self._kept(reservation, start, end, second):
                least = profile.least(part_start, part_end)
                taken = self._at_most(amounts, least)
                if taken:
                    profile.reserve(part_start, part_end, taken)

    def _kept(
        self, reservation: Reservation, start: int, end: int, second: int
    ) -> Iterator[tuple[int, int, int]]:
        """(from, to, amounts) of what it keeps that would be free otherwise."""
        nodes = reservation.nodes if reservation.cores is None else 0
        leaving = sorted(
            {
                expected_end(job, second)
                for job in self.tables.running.values()
                if job.holding is not None and job.holding.nodes & nodes
            }
        )
        bounds = [start, *(when for when in leaving if start < when < end), end]
        licenses = dict(read_licenses(reservation.licenses)) if reservation.licenses else {}
        for part_start, part_end in pairwise(bounds):
            amounts = {
                name: self._cpus(each & nodes)
                - sum(
                    job.holding.cpus_on(each & nodes)
                    for job in self.tables.running.values()
                    if job.holding is not None
                    and job.holding.nodes & nodes
                    and expected_end(job, second) > part_start
                )
                for name, each in zip(self._names, self.sets, strict=True)
            }
            for further in self.further:
                if further.reason == LICENSES:
                    amounts[further.name] = licenses.get(further.name.partition("/")[2], 0)
            yield (
                part_start,
                part_end,
                self.resources.need({name: max(amount, 0) for name, amount in amounts.items()}),
            )

    def _at_most(self, need: int, free: int) -> int:
        """As much of it as is free."""
        resources = self.resources
        return resources.least(need | resources.guards, free) & ~resources.guards
