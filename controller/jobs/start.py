"""Starting jobs: what a scheduling policy asks for is done here, or refused.

Place: jobs; implements understudy.controller.scheduling.api.Planner. Follows:
sbatch(1) "OUTPUT ENVIRONMENT VARIABLES".
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

from understudy.controller.core.changes import job_changed, jobs_shown_anew
from understudy.controller.facts.environment import percentage
from understudy.controller.jobs import stage_in as staging
from understudy.controller.jobs.buffers import stage_in
from understudy.controller.jobs.preempt import make_room, relent
from understudy.controller.jobs.time_limits import end_by_deadline
from understudy.controller.pending.arrays import split
from understudy.controller.reservations.admission import may_take, reservation_of
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.job import BAD_CONSTRAINTS, HELD_BY_ADMIN
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.controller.tables.partition import limit_broken
from understudy.model.bits import are_among
from understudy.model.gres import SHARED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.controller.core.core import Core
    from understudy.controller.scheduling.api import Ask
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.step import Step


class Planning:
    """The planner that policies are given."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def start(self, ask: Ask, allocation: Allocation, now: float) -> bool:
        """Start the job, unless it may not start (any more) or the nodes are not what the policy
        thinks.
        """
        core = self._core
        core.tables.looked_at = ask.job
        if not self._may_start(ask, allocation, now):
            return False
        if core.daemon_of_node[allocation.first_node] is None:
            return False
        job = self._allocate(ask, allocation, now)
        for react in core.reactions.started:
            react(core, job, now)
        return True

    def start_together(self, plans: Sequence[tuple[Ask, Allocation]], now: float) -> bool:
        """Start all components of a heterogeneous job, the leader first, or none."""
        core = self._core
        with ExitStack() as counted:  # what one gets counts for the limits of the next
            for ask, allocation in plans:
                if not self._may_start(ask, allocation, now):
                    return False
                if core.job_limits is not None and core.job_limits.enforced:
                    counted.enter_context(
                        core.job_limits.counting(ask.job, ask.partition, allocation)
                    )
        wanted = ",".join(text for ask, _ in plans if (text := ask.job.spec.licenses))
        if not core.tables.licenses.are_free(wanted):
            return False
        if core.tables.burst_buffers and not self._fit_together([ask.job for ask, _ in plans]):
            return False
        if any(core.daemon_of_node[allocation.first_node] is None for _, allocation in plans):
            return False
        jobs = [self._allocate(ask, allocation, now) for ask, allocation in plans]
        for react in core.reactions.started:
            for job in jobs:
                react(core, job, now)
        return True

    def _may_start(self, ask: Ask, allocation: Allocation, now: float) -> bool:
        job = ask.job
        if ask.time_limit_s is None:
            return self._is_in_order(ask, allocation, now)
        asked_s, job.time_limit_s = job.time_limit_s, ask.time_limit_s
        try:
            return self._is_in_order(ask, allocation, now)
        finally:
            job.time_limit_s = asked_s

    def _is_in_order(self, ask: Ask, allocation: Allocation, now: float) -> bool:
        core, job, partition = self._core, ask.job, ask.partition
        nodes = core.tables.nodes
        taken = allocation.nodes
        if (
            not job.is_eligible(now)
            or not taken
            or not are_among(taken, nodes.up_nodes | nodes.completing_nodes)
            or taken & nodes.exclusive_nodes
        ):
            return False
        if taken & nodes.completing_nodes:
            return False
        if (
            not partition.can_schedule
            or limit_broken(job, partition)
            or not core.tables.licenses.are_free(job.spec.licenses)
        ):
            return False
        if core.tables.reservations and not may_take(core, ask, allocation, now):
            return False
        for keeps in core.reactions.starting:
            if reason := keeps(core, job):
                self.explain(job, reason)
                return False
        limits = core.tables.limits
        if limits.enforced and (
            reason := limits.before(job, partition, now)
            or limits.by_allocation(job, partition, allocation, now)
        ):
            self.explain(job, reason)
            return False
        return True

    def _fit_together(self, jobs: Sequence[Job]) -> bool:
        """Whether there is space for what a policy that stages nothing in gives them at once."""
        table, wanted = self._core.tables.burst_buffers, Counter[str]()
        if self._core.policy.stages_buffers:
            return True
        for job in jobs:
            wanted.update(table.wanted(job))
        return table.is_free(wanted, jobs[0].spec.reservation)

    def _allocate(self, ask: Ask, allocation: Allocation, now: float) -> Job:
        """The job, or a task that is split off an array's record, takes its nodes."""
        core, job, partition = self._core, ask.job, ask.partition
        nodes, taken = core.tables.nodes, allocation.nodes
        reservation = reservation_of(core, ask)
        if job.array_tasks:
            job = split(core, job, (job.array_tasks & -job.array_tasks).bit_length() - 1)
        nodes.allocate(allocation)
        advance(job, JobEvent.ALLOCATED, now)
        if ask.time_limit_s is not None:
            job.time_limit_s = ask.time_limit_s
        start = job.start_time = int(now)
        if job.spec.deadline is not None:
            _end_by(job, int(job.spec.deadline) - start)
        job.end_time = None if job.time_limit_s is None else start + job.time_limit_s
        job.allocation = allocation
        job.partition = partition.name
        job.used_reservation = "" if reservation is None else reservation.name
        job.as_preferred = ask.prefers
        job.node_list = core.names.to_expression(taken)
        job.reason, job.reason_detail = "None", ""
        job.expected_start, job.expected_nodes = None, 0
        job.launch_acknowledged = job.kill_sent = job.script_ended = False
        job.exit_code = job.exit_signal = 0
        job.last_sched_eval = start
        tables = core.tables
        del tables.pending[job.job_id]
        tables.running[job.job_id] = job
        core.counters.started += 1
        tables.licenses.take(job.job_id, job.spec.licenses)
        core.last_node_update = now
        core.priorities.started(job, now)
        if job.array is not None:
            job.array.running += 1
        if core.power is not None and taken & nodes.boot_nodes:
            advance(job, JobEvent.CONFIGURES, now)
        for react in core.reactions.allocated:
            react(core, job, now)
        return job

    def preempt(self, job: Job, victims: Sequence[Job], now: float) -> bool:
        """Have the victims make room for the job. Whether they have done so at once, as suspended
        ones do.
        """
        return make_room(self._core, job, victims, now)

    def relent(self, job: Job, now: float) -> None:
        """Have those go on whom the job has suspended in vain."""
        relent(self._core, job, now)

    def give_up(self, job: Job, now: float) -> None:
        """End a pending job that cannot be over by its deadline any more."""
        end_by_deadline(self._core, job, now)

    def explain(self, job: Job, reason: str, detail: str = "") -> None:
        """Record why a pending job does not start now. One that could never run is held until
        somebody releases it.
        """
        self._core.tables.looked_at = job
        if job.held_by == HELD_BY_ADMIN:  # since the pass has begun
            return
        if reason == BAD_CONSTRAINTS and job.priority:
            job.priority, job.admin_priority, job.held_by = 0, None, BAD_CONSTRAINTS
            job_changed(self._core, job, self._core.time.now())
            self._core.policy.note(Note.CHANGE, self._core.time.now())
        job.last_sched_eval = int(self._core.time.now())
        if job.reason != reason or job.reason_detail != detail:
            job.note_wait(self._core.time.now())
            job.reason, job.reason_detail = reason, detail
            jobs_shown_anew(self._core, self._core.time.now())

    def promise(self, job: Job, start: int | None, nodes: int) -> None:
        """Record when and where a pending job is expected to start."""
        if start is not None and start != job.last_promise:
            job.note_promise(start, self._core.time.now())
        job.expected_start, job.expected_nodes = start, nodes

    def stage_in(self, job: Job, now: float) -> bool:
        """Have the job's burst buffer staged in; False: it has one, or there is no space."""
        return stage_in(self._core, job, now)

    def stage_expected(self, now: float) -> None:
        """The same for all that are expected to start soon."""
        staging.stage_expected(self._core, now)

    def tried(self, job: Job, scheduler: str) -> None:
        """Record which of the policy's schedulers has looked for nodes for the job."""
        job.last_scheduler = scheduler

    def await_switches(self, job: Job, now: int) -> None:
        """Record that from now on the job waits for few leaf switches."""
        job.switches_since = now

    def ask_for_whole_nodes(self, job: Job) -> None:
        """Have the job share nodes with nobody from now on, wherever it is looked for."""
        job.exclusive = True


def _end_by(job: Job, left_s: int) -> None:
    """A job that is content with less, or that named no limit, gets as many minutes as there are
    until its deadline.
    """
    if job.time_limit_s is None or (job.spec.time_min_s and job.time_limit_s > left_s):
        job.time_limit_s = max(left_s // 60 * 60, 60)


def parts_facts(core: Core, step: Step) -> dict[str, object]:
    """The parts of GPUs that a step has, which are as many on each of its nodes."""
    place, table = step.places[0], core.tables.nodes.gres
    parts = {each.name: each for each in place.gres if each.name in SHARED}
    mps, shard = parts.get("mps"), parts.get("shard")
    return {
        "mps_percentage": percentage(mps, table.layouts[place.node])
        if mps and mps.devices and table is not None
        else None,
        "shards": shard.amount if shard else None,
    }
