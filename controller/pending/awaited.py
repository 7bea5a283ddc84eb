"""Who waits for a job: `srun` and `salloc` until it is ready or over, a step until its allocation
is there.

Place: pending. Tells them when it has come to that; the requests that ask are
`requests/allocate.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from understudy.controller.facts.environment import OF_JOB, daemons_of, job_environment
from understudy.controller.pending.eligibility import partition_reason
from understudy.controller.tables.het_job import components
from understudy.model.errors import ErrorCode
from understudy.model.states import JobFlag
from understudy.protocol.messages import Allocated

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import AwaitJob

# Reasons that those who wait hear of at once, by their beginnings, and the errors whose texts say
# it.
_NOTES: Final = {
    "PartitionNodeLimit": ErrorCode.NOT_AVAILABLE_NOW,
    "PartitionTimeLimit": ErrorCode.NOT_AVAILABLE_NOW,
    "PartitionConfig": ErrorCode.NOT_AVAILABLE_NOW,
    "PartitionDown": ErrorCode.PARTITION_DOWN,
    "ReqNodeNotAvail": ErrorCode.NODE_NOT_AVAILABLE,
    "JobHeld": ErrorCode.HELD,
}
LAUNCH_FAILED_HELD: Final = "launch failed requeued held"
REASON: Final = "Prolog"


def _note(core: Core, job: Job) -> int:
    """The error that says why it cannot start for now: a limit of its partitions, whatever else
    keeps it, before its reason; 0 for none.
    """
    for reason in (partition_reason(core, job), job.reason):
        for beginning, number in _NOTES.items():
            if reason.startswith(beginning):
                return number
    return 0


def describe(core: Core, job: Job, *, of_whole: bool = True) -> Allocated:
    """What srun and salloc are told of the job; of a heterogeneous one's leader, of all its
    components.
    """
    if not job.is_running or job.allocation is None:
        note = _note(core, job) if job.is_pending else 0
        return Allocated(
            job.job_id, is_running=False, state=int(job.state), note=note, notice=job.notice
        )
    credential = b""
    if core.step_signer is not None:
        now = int(core.time.now())
        credential = core.step_signer.sign_step(
            job.job_id, job.restarts, OF_JOB, job.node_list, job.user_id, job.group_id, now
        )
    return Allocated(
        job.job_id,
        is_running=True,
        nodes=job.node_list,
        environment=job_environment(core, job),
        state=int(job.state),
        end_time=job.end_time,
        credential=credential,
        daemons=daemons_of(core, job.allocation.nodes),
        components=[describe(core, each, of_whole=False) for each in components(job)]
        if job.het is not None and of_whole
        else [],
        is_ready=is_ready(job),
        is_watched=core.settings.inactive_limit_s > 0,
    )


def is_met(message: AwaitJob, job: Job) -> bool:
    if message.until_end or job.is_finished:
        return job.is_finished
    return job.is_running and (not message.until_ready or is_ready(job))


def tell_waiting(core: Core, job: Job, *_: object) -> None:
    """The job has started, is ready or has ended: tell those who wait for that."""
    waiting = core.awaited.pop(job.job_id, None)
    if waiting is None:
        return
    left = []
    for message, later in waiting:
        if is_met(message, job):
            later.give(describe(core, job))
        else:
            left.append((message, later))
    if left:
        core.awaited[job.job_id] = left


def tell_command(core: Core, job: Job, text: str) -> None:
    """A line for salloc, which waits for the job's end, and asks again; srun, whose job has a
    command, does not.
    """
    if job.spec.command:
        return
    for entry in [each for each in core.awaited.get(job.job_id, ()) if each[0].until_end]:
        core.awaited[job.job_id].remove(entry)
        entry[1].give(structs.replace(describe(core, job), notice=text))


def is_ready(job: Job) -> bool:
    """Whether nothing has to be done any more before the job may begin."""
    return not any(
        each.flags & JobFlag.CONFIGURING or each.prolog_nodes for each in components(job)
    )
