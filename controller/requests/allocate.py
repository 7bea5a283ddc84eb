"""Interactive jobs: srun and salloc ask for resources, wait for them, and say when they are done.

Place: requests. Such a job has no script; it starts within the request if nobody is in
the way. Follows: srun(1), salloc(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.alarms import watch_command
from understudy.controller.jobs.cancel import cancel
from understudy.controller.jobs.end import end_job, end_pending
from understudy.controller.jobs.site_rules import review_allocation
from understudy.controller.jobs.start import Planning
from understudy.controller.jobs.take_in import note_submission, take_in, take_in_components
from understudy.controller.later import Later
from understudy.controller.pending.awaited import describe, is_met
from understudy.controller.scheduling.slurm.main_pass import MainPass
from understudy.controller.scheduling.slurm.queue import Record, slurm_order
from understudy.controller.tables.job import BAD_CONSTRAINTS
from understudy.controller.tables.job_states import JobEvent
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import Allocated, Ok

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job
from understudy.protocol.endings import OUT_OF_MEMORY
from understudy.protocol.messages import (
    AllocateJob,
    AwaitJob,
    CompleteJob,
    GetAllocation,
    Message,
)

LAUNCH_FAILURE: Final = "JobLaunchFailure"


def allocate(core: Core, message: AllocateJob, sender: Sender) -> Allocated:
    """Take in an interactive job, and start it at once if that is possible."""
    known = core.submissions.job_of(sender.user_id, message.token)
    if known is not None and (first := core.tables.jobs.get(known)) is not None:
        return describe(core, first)
    if core.job_submit:
        message = review_allocation(core, message, sender)
    if message.components:
        if message.immediate:
            # only a look ahead starts all components at one instant
            raise SlurmError(ErrorCode.NODES_BUSY)
        leader = take_in_components(core, message, sender)
        note_submission(core, message, sender, leader.job_id)
        return describe(core, leader)
    job = take_in(core, message, sender)
    note_submission(core, message, sender, job.job_id)
    now = core.time.now()
    is_waiting = job.is_eligible(now) or job.reason.startswith("Partition")
    is_behind = (
        is_waiting and (message.immediate or not core.policy.exact_limits) and _is_behind(core, job)
    )
    # what must end by some time is left to the scheduler
    is_tried = not core.policy.exact_limits and message.spec.deadline is None
    if is_tried and job.is_eligible(now) and not is_behind:
        _try(core, job, now)
    if job.is_pending and message.immediate:
        eligible, reason = job.is_eligible(now), job.reason
        _give_up(core, job, now)  # which has another reason then
        if is_behind:
            raise SlurmError(ErrorCode.NOT_TOP_PRIORITY)
        if reason.startswith("Partition"):
            raise SlurmError(
                ErrorCode.PARTITION_DOWN
                if reason == "PartitionDown"
                else ErrorCode.NOT_AVAILABLE_NOW
            )
        if not eligible:
            raise SlurmError(ErrorCode.DEPENDENCY_PROBLEM)
        raise SlurmError(
            ErrorCode.NODE_NOT_AVAILABLE
            if job.required_nodes & ~core.tables.nodes.up_nodes
            else ErrorCode.NODES_BUSY
        )
    return describe(core, job)


def _is_behind(core: Core, job: Job) -> bool:
    """Whether a job that may run now comes before it on some of its nodes."""
    tables, now = core.tables, core.time.now()
    own = [tables.partitions[name] for name in job.partitions]
    for other in tables.pending.values():
        if other is job or not other.is_eligible(now):
            continue
        for name in other.partitions:
            partition = tables.partitions.get(name)
            if partition is not None and any(
                partition.nodes & each.nodes
                and (partition.priority_tier, other.priority) > (each.priority_tier, job.priority)
                for each in own
            ):
                return True
    return False


def _try(core: Core, job: Job, now: float) -> None:
    records = [
        Record(slurm_order(job, partition), job, partition, job.min_cpus, float("inf"))
        for partition in sorted(
            (core.tables.partitions[name] for name in job.partitions),
            key=lambda each: (-each.priority_tier, each.name),
        )
    ]
    if job.spec.reservation:
        reservation = core.tables.reservations.by_name.get(job.spec.reservation)
        records = [record._replace(reservation=reservation) for record in records]
    for _ in MainPass(core.tables, core.selector, Planning(core), {}).run(
        records, len(records), now
    ):
        pass
    if job.is_running:
        job.last_scheduler = "Submit"


def _give_up(core: Core, job: Job, now: float) -> None:
    job.exit_signal = 1  # so Slurm shows it: 0:1
    end_pending(core, job, JobEvent.CANNOT_RUN, now, reason=BAD_CONSTRAINTS)


def await_job(core: Core, message: AwaitJob, sender: Sender) -> Message | Later:
    """Answered when the job has started, or is over."""
    job = _own(core, message.job_id, sender)
    if is_met(message, job):
        return describe(core, job)
    later = Later()
    core.awaited.setdefault(job.job_id, []).append((message, later))
    if message.until_end:
        watch_command(core, job)
    return later


def get_allocation(core: Core, message: GetAllocation, sender: Sender) -> Allocated:
    """The resources of a running job, for its owner."""
    job = _own(core, message.job_id, sender)
    if job.is_finished:
        raise SlurmError(ErrorCode.ALREADY_DONE)
    if job.is_pending:
        raise SlurmError(ErrorCode.JOB_PENDING)
    return describe(core, job)


def complete_job(core: Core, message: CompleteJob, sender: Sender) -> Message:
    """Srun or salloc has done what it wanted the resources for."""
    job = _own(core, message.job_id, sender)
    if job.is_finished:
        raise SlurmError(ErrorCode.ALREADY_DONE)
    now = core.time.now()
    if job.is_pending:
        job.killed_by = sender.user_id
        cancel(core, job, now)
        return Ok()
    job.exit_code, job.exit_signal = message.exit_code, message.exit_signal
    if message.exit_signal == OUT_OF_MEMORY:
        end_job(core, job, JobEvent.RAN_OUT_OF_MEMORY, now, reason="OutOfMemory")
    elif message.exit_signal:
        end_job(core, job, JobEvent.EXITED_BADLY, now, reason=LAUNCH_FAILURE)
    elif message.exit_code:
        end_job(core, job, JobEvent.EXITED_BADLY, now, reason="NonZeroExitCode")
    else:
        end_job(core, job, JobEvent.EXITED_WELL, now, reason="None")
    return Ok()


def _own(core: Core, job_id: int, sender: Sender) -> Job:
    job = core.tables.jobs.get(job_id)
    if job is None:
        raise SlurmError(ErrorCode.INVALID_JOB)
    if job.user_id != sender.user_id and not core.is_admin(sender.user_id):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    return job
