"""Gang scheduling: jobs that share cores run in turn, a time slice each (PreemptMode=GANG).

Place: the controller's core. Follows: slurm.conf(5) PreemptMode=GANG, SchedulerTimeSlice; what 22.05's log of gang scheduling tells.

Each partition in which jobs may share cores has a list of them. Those run that are in the active row, in which no core is given twice. A new job
goes to the end of the list: where its cores are free in the row it fills a gap, else it is suspended as soon as it is launched. Every time slice,
counted from the controller's start, the jobs that the row was made for go to the end of the list, and the row is made anew from its beginning.
When a job leaves, others that fit now fill its gap at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from understudy.controller.scheduling.preempt import read_mode
from understudy.controller.sharing import cores_of
from understudy.controller.suspend import go_on, stop
from understudy.model.states import JobState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.ports import TimerHandle
    from understudy.controller.sharing import Cores


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
        """A job has started, or goes on."""
        assert job.allocation is not None
        members = self.lists.setdefault(job.allocation.shared_in, [])
        member = Member(job, cores_of(job.allocation))
        fits = _fits(member, _in_use(each for each in members if each.runs))
        members.append(member)
        if fits:
            member.runs = member.is_filler = True
            if job.state is JobState.SUSPENDED:
                go_on(self.core, job, now, in_row=True)
        elif job.is_running:
            stop(self.core, job, now, in_row=True)
        if not fits:
            self._arm()

    def add_running(self, job: Job) -> None:
        """A job that somebody had suspended was resumed: it runs at once, beside those whose turn it is, and waits for its own as if it did not."""
        assert job.allocation is not None
        self.lists.setdefault(job.allocation.shared_in, []).append(Member(job, cores_of(job.allocation)))
        self._arm()

    def has(self, job: Job) -> bool:
        """Whether the job is in a list."""
        return any(each.job is job for each in self.lists.get(_list_of(job), ()))

    def remove(self, job: Job, now: float) -> None:
        """A job is over, or somebody else has suspended it: others take its place."""
        name = _list_of(job)
        members = self.lists.get(name, [])
        left = [each for each in members if each.job is not job]
        if len(left) == len(members):
            return
        self.lists[name] = left
        row = _in_use(each for each in left if each.runs)
        for each in left:
            if not each.runs and _fits(each, row):
                _add(each.cores, row)
                each.runs = each.is_filler = True
                if each.job.state is JobState.SUSPENDED:
                    go_on(self.core, each.job, now, in_row=True)

    def _arm(self) -> None:
        """Someone waits for a turn: set the timer for the end of the slice."""
        if self._timer is not None:
            return
        core = self.core
        passed = core.time.now() - core.start_time
        self._timer = core.at(core.start_time + (math.floor(passed / self.slice_s) + 1) * self.slice_s, self._turn)

    def _turn(self) -> None:
        self._timer = None
        now = self.core.time.now()
        for members in self.lists.values():
            if any(not each.runs for each in members):
                self._next_row(members, now)
        if any(not each.runs for members in self.lists.values() for each in members):
            self._arm()

    def _next_row(self, members: list[Member], now: float) -> None:
        members.sort(key=lambda each: each.runs and not each.is_filler)
        row: Cores = {}
        started: list[Member] = []
        stopped: list[Member] = []
        for each in members:
            runs = _fits(each, row)
            if runs:
                _add(each.cores, row)
            if runs is not each.runs:
                (started if runs else stopped).append(each)
            each.runs, each.is_filler = runs, False
        for each in stopped:
            if each.job.is_running:
                stop(self.core, each.job, now, in_row=True)
        for each in started:
            if each.job.state is JobState.SUSPENDED:
                go_on(self.core, each.job, now, in_row=True)

    def end(self, now: float) -> None:
        """No more slices: all run."""
        if self._timer is not None:
            self._timer.cancel()
        for members in self.lists.values():
            for each in members:
                if each.job.state is JobState.SUSPENDED:
                    go_on(self.core, each.job, now, in_row=True)
        self.lists.clear()

    def recover(self, now: float) -> None:
        """After a restart: the lists are made anew, those that ran at their heads."""
        jobs = [job for job in self.core.tables.running.values() if takes_turns(job)]
        for job in sorted(jobs, key=lambda each: (not each.is_running, each.start_time or 0, each.job_id)):
            self.add(job, now)


def set_gang(core: Core) -> None:
    """Begin or end time slices, as PreemptMode and SchedulerTimeSlice say now."""
    is_on = read_mode(core.settings.preempt_mode)[2]
    if core.gang is None and is_on:
        core.gang = Gang(core, core.settings.time_slice_s)
        core.gang.recover(core.time.now())
    elif core.gang is not None and is_on:
        core.gang.slice_s = core.settings.time_slice_s
    elif core.gang is not None:
        core.gang.end(core.time.now())
        core.gang = None


def takes_turns(job: Job) -> bool:
    """Whether the job is one that gang scheduling runs and suspends: it may share its cores, and nobody else has suspended it."""
    if job.allocation is None or not job.allocation.shared_in or job.pushed_aside or job.held is not None:
        return False
    return job.is_running or (job.state is JobState.SUSPENDED and job.priority != 0)


def _list_of(job: Job) -> str:
    return job.allocation.shared_in if job.allocation is not None else ""


def _in_use(members: Iterable[Member]) -> Cores:
    row: Cores = {}
    for each in members:
        _add(each.cores, row)
    return row


def _fits(member: Member, row: Cores) -> bool:
    return not any(row.get(node, 0) & mask for node, mask in member.cores.items())


def _add(cores: Cores, row: Cores) -> None:
    for node, mask in cores.items():
        row[node] = row.get(node, 0) | mask
