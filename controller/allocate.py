"""Interactive jobs: srun and salloc ask for resources, wait for them, and say when they are done.

Place: the controller's core. Such a job has no script; it starts within the request if nobody is in the way.
Follows: srun(1), salloc(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.alarms import watch_command
from understudy.controller.cancel import cancel
from understudy.controller.complete import OUT_OF_MEMORY, end_job
from understudy.controller.eligibility import note_end
from understudy.controller.het_jobs import components
from understudy.controller.job import JobEvent, advance
from understudy.controller.job_submit import review_allocation
from understudy.controller.later import Later
from understudy.controller.prologs import is_ready
from understudy.controller.scheduling.main_pass import MainPass
from understudy.controller.scheduling.queue import Record, slurm_order
from understudy.controller.start import Planning, job_environment
from understudy.controller.steps import OF_JOB, daemons_of
from understudy.controller.submit import take_in, take_in_components
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import Allocated, Ok

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import AllocateJob, AwaitJob, CompleteJob, GetAllocation, Message

# Reasons that those who wait hear of at once, by their beginnings, and the errors whose texts say it.
_NOTES: Final = {
    "PartitionNodeLimit": ErrorCode.NOT_AVAILABLE_NOW,
    "PartitionTimeLimit": ErrorCode.NOT_AVAILABLE_NOW,
    "PartitionConfig": ErrorCode.NOT_AVAILABLE_NOW,
    "PartitionDown": ErrorCode.PARTITION_DOWN,
    "ReqNodeNotAvail": ErrorCode.NODE_NOT_AVAILABLE,
    "JobHeld": ErrorCode.HELD,
}
LAUNCH_FAILURE: Final = "JobLaunchFailure"


def allocate(core: Core, message: AllocateJob, sender: Sender) -> Allocated:
    """Take in an interactive job, and start it at once if that is possible."""
    if core.job_submit:
        message = review_allocation(core, message, sender)
    if message.components:
        if message.immediate:
            raise SlurmError(ErrorCode.NODES_BUSY)  # only a look ahead starts all components at one instant
        return describe(core, take_in_components(core, message, sender))
    job = take_in(core, message, sender)
    now = core.time.now()
    if not core.policy.exact_limits and job.is_eligible(now) and not _is_behind(core, job):
        _try(core, job, now)
    if job.is_pending and message.immediate:
        eligible, reason = job.is_eligible(now), job.reason
        _give_up(core, job, now)
        if reason.startswith("Partition"):
            raise SlurmError(ErrorCode.PARTITION_DOWN if reason == "PartitionDown" else ErrorCode.NOT_AVAILABLE_NOW)
        if not eligible:
            raise SlurmError(ErrorCode.DEPENDENCY_PROBLEM)
        raise SlurmError(ErrorCode.NODE_NOT_AVAILABLE if job.required_nodes & ~core.tables.nodes.up_nodes else ErrorCode.NODES_BUSY)
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
                partition.nodes & each.nodes and (partition.priority_tier, other.priority) > (each.priority_tier, job.priority) for each in own
            ):
                return True
    return False


def _try(core: Core, job: Job, now: float) -> None:
    records = [
        Record(slurm_order(job, partition), job, partition, job.min_cpus, float("inf"))
        for partition in sorted((core.tables.partitions[name] for name in job.partitions), key=lambda each: (-each.priority_tier, each.name))
    ]
    if job.spec.reservation:
        reservation = core.tables.reservations.by_name.get(job.spec.reservation)
        records = [record._replace(reservation=reservation) for record in records]
    for _ in MainPass(core.tables, core.selector, Planning(core), {}).run(records, len(records), now):
        pass
    if job.is_running:
        job.last_scheduler = "Submit"


def _give_up(core: Core, job: Job, now: float) -> None:
    del core.tables.pending[job.job_id]
    advance(job, JobEvent.CANNOT_RUN, now)
    job.start_time = job.end_time = int(now)
    job.exit_code = 1
    note_end(core, job, now)


def describe(core: Core, job: Job, *, of_whole: bool = True) -> Allocated:
    """What srun and salloc are told of the job; of a heterogeneous one's leader, of all its components."""
    if not job.is_running or job.allocation is None:
        note = next((number for reason, number in _NOTES.items() if job.is_pending and job.reason.startswith(reason)), 0)
        return Allocated(job.job_id, is_running=False, state=int(job.state), note=note, notice=job.notice)
    credential = b""
    if core.step_signer is not None:
        now = int(core.time.now())
        credential = core.step_signer.sign_step(job.job_id, job.restarts, OF_JOB, job.node_list, job.user_id, job.group_id, now)
    return Allocated(
        job.job_id,
        is_running=True,
        nodes=job.node_list,
        environment=job_environment(core, job),
        state=int(job.state),
        end_time=job.end_time,
        credential=credential,
        daemons=daemons_of(core, job.allocation.nodes),
        components=[describe(core, each, of_whole=False) for each in components(job)] if job.het is not None and of_whole else [],
        is_ready=is_ready(job),
        is_watched=core.settings.inactive_limit_s > 0,
    )


def await_job(core: Core, message: AwaitJob, sender: Sender) -> Message | Later:
    """Answered when the job has started, or is over."""
    job = _own(core, message.job_id, sender)
    if _is_met(message, job):
        return describe(core, job)
    later = Later()
    core.awaited.setdefault(job.job_id, []).append((message, later))
    if message.until_end:
        watch_command(core, job)
    return later


def _is_met(message: AwaitJob, job: Job) -> bool:
    if message.until_end or job.is_finished:
        return job.is_finished
    return job.is_running and (not message.until_ready or is_ready(job))


def tell_waiting(core: Core, job: Job) -> None:
    """The job has started, is ready or has ended: tell those who wait for that."""
    waiting = core.awaited.pop(job.job_id, None)
    if waiting is None:
        return
    left = []
    for message, later in waiting:
        if _is_met(message, job):
            later.give(describe(core, job))
        else:
            left.append((message, later))
    if left:
        core.awaited[job.job_id] = left


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
