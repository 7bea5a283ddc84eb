"""What the controller's log says of requests and jobs, in Slurm's words, so that scripts which read
slurmctld.log find what they look for.

Place: the controller's core; called where it happens. Nothing is put together for who does not read
it: callers ask `is_logged` first where there are many. Follows: what slurmctld 22.05.8 was seen to
write at SlurmctldDebug=info.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from understudy.controller.core.core import log
from understudy.controller.tables.counters import request_name
from understudy.controller.tables.job_states import JobEvent
from understudy.protocol.messages import (
    Allocated,
    AllocateJob,
    CancelJobs,
    ControlJobs,
    Failure,
    JobResults,
    Message,
    Reconfigure,
    Shutdown,
    SubmitJob,
    Submitted,
    UpdateJobs,
    UpdateNodes,
    UpdatePartition,
    UpdateReservation,
)

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.core.reactions import End
    from understudy.controller.tables.job import Job

DEBUG2: Final = 9
_SUSPEND: Final = ("suspend", "resume")
_BY_OTHERS: Final = (JobEvent.CANCELLED, JobEvent.TAKEN_BACK, JobEvent.PREEMPTED)
is_logged: Final = partial(log.isEnabledFor, logging.INFO)  # whether anybody reads of single jobs


def job_name(job: Job) -> str:
    """`JobId=7`, `JobId=5_2(6)` of an array's task, `JobId=8+1(9)` of a component."""
    if job.het is not None:
        return f"JobId={job.het.job_id}+{job.het_offset}({job.job_id})"
    if job.array is not None:
        task = "*" if job.array_task_id is None else f"{job.array_task_id}({job.job_id})"
        return f"JobId={job.array.job_id}_{task}"
    return f"JobId={job.job_id}"


def allocated(_core: Core, job: Job, *_: object) -> None:
    """A scheduler has started the job."""
    if not is_logged() or job.allocation is None:
        return
    if job.last_scheduler == "Backfill":
        log.info(
            "sched/backfill: _start_job: Started %s in %s on %s",
            job_name(job),
            job.partition,
            job.node_list,
        )
    elif job.last_scheduler != "Submit":
        log.info(
            "sched: Allocate %s NodeList=%s #CPUs=%d Partition=%s",
            job_name(job),
            job.node_list,
            job.allocation.cpus,
            job.partition,
        )


def ended(core: Core, job: Job, end: End, _now: float) -> None:
    """A job that ran has come to its end."""
    if not is_logged():
        return
    name, event = job_name(job), end.event
    if event is JobEvent.TIMED_OUT:
        log.info("Time limit exhausted for %s", name)
    elif event is JobEvent.NODE_FAILED:
        log.info(
            "requeue job %s due to failure of node %s"
            if job.requeue and not job.interactive
            else "Killing %s on failed node %s",
            name,
            core.names.to_expression(end.lost_nodes) if end.lost_nodes else "",
        )
    elif event not in _BY_OTHERS:
        what = f"WTERMSIG {job.exit_signal}" if job.exit_signal else f"WEXITSTATUS {job.exit_code}"
        log.info(
            "_job_complete: %s %s",
            name,
            "OOM failure" if event is JobEvent.RAN_OUT_OF_MEMORY else what,
        )
        log.info("_job_complete: %s done", name)


def asked(message: Message, user_id: int) -> None:
    """A request has come."""
    log.log(DEBUG2, "Processing RPC: %s from UID=%d", request_name(message), user_id)
    if isinstance(message, Reconfigure):
        log.info("Processing Reconfiguration Request")
    elif isinstance(message, Shutdown):
        log.info("Performing RPC: REQUEST_SHUTDOWN")
    elif isinstance(message, CancelJobs) and message.job_ids:
        for text in message.job_ids:
            log.info("_slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=%s uid %d", text, user_id)


def answered(core: Core, message: Message, answer: Message, user_id: int, usec: int) -> None:
    """A request has been worked on, in so many microseconds."""
    match message:
        case SubmitJob():
            if (
                isinstance(answer, Submitted)
                and (job := core.tables.jobs.get(answer.job_id)) is not None
            ):
                log.info(
                    "_slurm_rpc_submit_batch_job: JobId=%d InitPrio=%d usec=%d",
                    job.job_id,
                    job.priority,
                    usec,
                )
            elif isinstance(answer, Failure):
                log.info("_slurm_rpc_submit_batch_job: %s", answer.text.rpartition("\n")[2])
        case AllocateJob():
            if isinstance(answer, Allocated):
                log.info(
                    "sched: _slurm_rpc_allocate_resources JobId=%d NodeList=%s usec=%d",
                    answer.job_id,
                    answer.nodes or "(null)",
                    usec,
                )
            elif isinstance(answer, Failure):
                log.info("_slurm_rpc_allocate_resources: %s", answer.text)
        case UpdateJobs() | ControlJobs():
            _of_jobs(message, answer, user_id, usec)
        case UpdateNodes() if isinstance(answer, Failure):
            log.info("_slurm_rpc_update_node for %s: %s", message.nodes, answer.text)
        case UpdatePartition():
            _of_partition(message, answer, usec)
        case UpdateReservation():
            _of_reservation(core, message, answer, usec)
        case Reconfigure():
            if isinstance(answer, Failure):
                log.error("_slurm_rpc_reconfigure_controller: %s", answer.text)
            else:
                log.info("_slurm_rpc_reconfigure_controller: completed usec=%d", usec)


def _of_jobs(message: UpdateJobs | ControlJobs, answer: Message, user_id: int, usec: int) -> None:
    if not isinstance(answer, JobResults):
        return
    action = message.action if isinstance(message, ControlJobs) else ""
    for job_id, code, text in answer.results:
        if action in _SUSPEND:
            log.info(
                "_slurm_rpc_suspend(%s) for %s %s", action, job_id, text if code else f"usec={usec}"
            )
        elif code:
            log.info("_slurm_rpc_update_job: JobId=%s uid=%d: %s", job_id, user_id, text)
        elif not action.startswith("requeue"):
            log.info(
                "_slurm_rpc_update_job: complete JobId=%s uid=%d usec=%d", job_id, user_id, usec
            )


def _of_partition(message: UpdatePartition, answer: Message, usec: int) -> None:
    if isinstance(answer, Failure):
        log.info("_slurm_rpc_%s_partition: %s", message.action, answer.text)
    elif message.action == "delete":
        log.info("_slurm_rpc_delete_partition complete for %s usec=%d", message.name, usec)
    else:
        if message.action == "create":
            log.info("update_part: partition %s being created", message.name)
        for key, value in message.changes.items():
            log.info("update_part: setting %s to %s for partition %s", key, value, message.name)


def _of_reservation(core: Core, message: UpdateReservation, answer: Message, usec: int) -> None:
    if isinstance(answer, Failure):
        log.info("_slurm_rpc_%s_reservation: %s", message.action, answer.text)
    elif message.action == "delete":
        log.info("_slurm_rpc_delete_reservation complete for %s usec=%d", message.name, usec)
    else:
        name = getattr(answer, "name", message.name)
        reservation = core.tables.reservations.by_name.get(name)
        verb = "Created" if message.action == "create" else "Updated"
        log.info(
            "sched: %s reservation=%s nodes=%s",
            verb,
            name,
            reservation.node_expression if reservation is not None else "",
        )


def backed_off(message: Message, user_id: int) -> None:
    """The user has asked more than the rate limit lets him (as of 23.02)."""
    log.info(
        "RPC rate limit exceeded by uid %d with %s, telling to back off",
        user_id,
        request_name(message),
    )
