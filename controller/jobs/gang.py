"""Gang scheduling: jobs that have cores in common run in turn or stand still (PreemptMode=GANG,
SUSPEND).

Place: jobs. Follows: slurm.conf(5) PreemptMode=GANG, SUSPEND, SchedulerTimeSlice;
what 22.05's log of gang scheduling tells.

Each partition in which jobs may share cores has a list of them, and where jobs of higher partitions
suspend those of lower ones, each partition has. Those run that are in the active row, in which no
core is given twice. A new job goes to the end of the list: where its cores are free in the row it
fills a gap, else it is suspended as soon as it is launched. Every time slice, counted from the
controller's start, the jobs that the row was made for go to the end of the list, and the row is
made anew from its beginning. When a job leaves, others that fit now fill its gap at once.

What is in the active rows of higher partitions is kept free in a partition's row. Who loses his
place to a job of a higher partition stands still until he fits again; where his partition's
PreemptMode is REQUEUE or CANCEL he goes for good, without any grace time. The higher job has
started by then, on the same cores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from understudy.controller.jobs.preempt import preempt_at_once
from understudy.controller.jobs.suspend import continue_job, stop
from understudy.controller.tables.preemption import SUSPEND, read_mode
from understudy.controller.tables.shared_cores import cores_of
from understudy.model.states import JobState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from understudy.controller.core.core import Core
    from understudy.controller.ports import TimerHandle
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.shared_cores import Cores


def take_turns(core: Core, job: Job, now: float) -> None:
    """A job has started: one that shares its cores does so in turn, where that is how it is."""
    if core.gang is not None and job.allocation is not None and job.allocation.is_shared:
        core.gang.add(job, now)


def leave_row(core: Core, job: Job, now: float) -> None:
    """A job has given back nodes: if they were its last, others take its place."""
    if core.gang is not None and not job.completing_nodes:
        core.gang.remove(job, now)


@dataclass(slots=True, eq=False)
class Member:
    """A job of a partition's list."""

    job: Job
    cores: Cores
    runs: bool = False
    is_filler: bool = False  # it only fills a gap of a row that was made for others


class Gang:
    """The lists, by partition."""

    def __init__(self, core: Core, slice_s: int) -> None:
        self.core, self.slice_s = core, slice_s
        self.lists: dict[str, list[Member]] = {}
        self._timer: TimerHandle | None = None

    def add(self, job: Job, now: float) -> None:
        """A job has started, or is resumed."""
        member = self._join(job)
        if _fits(member, self._taken_beside(member)):
            member.runs = member.is_filler = True
            if job.state is JobState.SUSPENDED:
                continue_job(self.core, job, now, in_row=True)
            self._rearrange(now)
        else:
            if job.is_running:
                stop(self.core, job, now, in_row=True)
            self._arm()

    def add_running(self, job: Job) -> None:
        """A job that somebody had suspended was resumed: it runs at once, beside those whose turn
        it is, and waits for its own as if it did not.
        """
        self._join(job)
        self._arm()

    def _join(self, job: Job) -> Member:
        assert job.allocation is not None
        member = Member(job, cores_of(job.allocation))
        self.lists.setdefault(job.partition, []).append(member)
        return member

    def has(self, job: Job) -> bool:
        """Whether the job is in a list."""
        return any(each.job is job for members in self.lists.values() for each in members)

    def remove(self, job: Job, now: float) -> None:
        """A job is over and its nodes are clean, or somebody else has suspended it: others take its
        place.
        """
        for members in self.lists.values():
            for place, each in enumerate(members):
                if each.job is job:
                    del members[place]
                    self._rearrange(now)
                    return

    # --- the rows ---------------------------------------------------------------------------------

    def _tier(self, name: str) -> int:
        partition = self.core.tables.partitions.get(name)
        return partition.priority_tier if partition is not None else 0

    def _by_tier(self) -> Iterator[tuple[Cores, list[Member]]]:
        """Each partition's list with what the active rows of higher tiers have when it is reached,
        from the highest tier down.
        """
        above: Cores = {}
        for _, names in groupby(sorted(self.lists, key=self._tier, reverse=True), self._tier):
            lists = [self.lists[name] for name in names]
            for members in lists:
                yield dict(above), members
            for members in lists:
                _add_all(members, above)

    def _taken_beside(self, member: Member) -> Cores:
        """The cores that it could not have if its turn were now."""
        own = self.lists[member.job.partition]
        for row, members in self._by_tier():
            if members is own:
                _add_all(own, row)
                return row
        return {}

    def _rearrange(self, now: float) -> None:
        """A job has come or left: those of lower partitions that have its cores make room, and who
        has a place in a row now is resumed.
        """
        for row, members in self._by_tier():
            stopped = [each for each in members if each.runs and not _fits(each, row)]
            for each in stopped:
                each.runs = each.is_filler = False
            _add_all(members, row)
            started = []
            for each in members:
                if not each.runs and _fits(each, row):
                    _add(each.cores, row)
                    each.runs = each.is_filler = True
                    started.append(each)
            self._change((), stopped, started, now)
        self._arm()

    def _change(
        self,
        stopped: Iterable[Member],
        pushed: Iterable[Member],
        started: Iterable[Member],
        now: float,
    ) -> None:
        """Suspend who has lost his place to others of his partition or (`pushed`) of higher ones,
        and resume who has got one.
        """
        for each in stopped:
            if each.job.is_running:
                stop(self.core, each.job, now, in_row=True)
        for each in pushed:
            if each.job.is_running:
                self._make_room(each.job, now)
        for each in started:
            if each.job.state is JobState.SUSPENDED:
                continue_job(self.core, each.job, now, in_row=True)

    def _make_room(self, job: Job, now: float) -> None:
        preemption = self.core.tables.preemption
        if preemption is not None and preemption.loses_its_place(job):
            preempt_at_once(self.core, job, now)
        else:
            stop(self.core, job, now, in_row=True)

    # --- slices -----------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Where someone waits for a turn, set the timer for the end of the slice."""
        if self._timer is not None or all(
            each.runs for members in self.lists.values() for each in members
        ):
            return
        core = self.core
        passed = core.time.now() - core.start_time
        self._timer = core.at(
            core.start_time + (math.floor(passed / self.slice_s) + 1) * self.slice_s, self._turn
        )

    def _turn(self) -> None:
        self._timer = None
        now = self.core.time.now()
        for row, members in self._by_tier():
            self._next_row(members, row, now)
        self._arm()

    def _next_row(self, members: list[Member], above: Cores, now: float) -> None:
        if not all(each.runs for each in members):
            members.sort(key=lambda each: each.runs and not each.is_filler)
        elif all(_fits(each, above) for each in members):
            return
        row = dict(above)
        started: list[Member] = []
        stopped: list[Member] = []
        pushed: list[Member] = []
        for each in members:
            runs = _fits(each, row)
            if runs:
                _add(each.cores, row)
            if runs is not each.runs:
                (started if runs else stopped if _fits(each, above) else pushed).append(each)
            each.runs, each.is_filler = runs, False
        self._change(stopped, pushed, started, now)

    def end(self, now: float) -> None:
        """No more slices: all run."""
        if self._timer is not None:
            self._timer.cancel()
        for members in self.lists.values():
            for each in members:
                if each.job.state is JobState.SUSPENDED:
                    continue_job(self.core, each.job, now, in_row=True)
        self.lists.clear()

    def recover(self, now: float) -> None:
        """After a restart: the lists are made anew, those that ran at their heads."""
        jobs = [job for job in self.core.tables.running.values() if takes_turns(job)]
        for job in sorted(
            jobs, key=lambda each: (not each.is_running, each.start_time or 0, each.job_id)
        ):
            self.add(job, now)


def set_gang(core: Core) -> None:
    """Begin or end time slices, as PreemptMode and SchedulerTimeSlice say now."""
    mode, _, is_on = read_mode(core.settings.preempt_mode)
    is_on = is_on or mode == SUSPEND
    if core.gang is None and is_on:
        core.gang = Gang(core, core.settings.time_slice_s)
        core.gang.recover(core.time.now())
    elif core.gang is not None and is_on:
        core.gang.slice_s = core.settings.time_slice_s
    elif core.gang is not None:
        core.gang.end(core.time.now())
        core.gang = None


def takes_turns(job: Job) -> bool:
    """Whether the job is one that gang scheduling runs and suspends: others may have its cores, and
    nobody else has suspended it.
    """
    if (
        job.allocation is None
        or not job.allocation.is_shared
        or job.preempt_suspended
        or job.held is not None
    ):
        return False
    return job.is_running or (job.state is JobState.SUSPENDED and job.priority != 0)


def _fits(member: Member, row: Cores) -> bool:
    return not any(row.get(node, 0) & mask for node, mask in member.cores.items())


def _add(cores: Cores, row: Cores) -> None:
    for node, mask in cores.items():
        row[node] = row.get(node, 0) | mask


def _add_all(members: Iterable[Member], row: Cores) -> None:
    """Those of them that are in the active row."""
    for each in members:
        if each.runs:
            _add(each.cores, row)
