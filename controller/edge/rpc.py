"""The table of requests: which function handles a message, and which locks it needs. The
functions are in `requests/`; the few that have no concern of their own are here.

Place: edge. A handler is a plain function (core, message, sender) that returns the
answer, or a `Later`. Queries are generators and stand apart, as they may be run in slices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from understudy.controller.core.locks import READ, WRITE, Needs
from understudy.controller.jobs.following import follow_jobs
from understudy.controller.later import Later
from understudy.controller.requests.allocate import (
    allocate,
    await_job,
    complete_job,
    get_allocation,
)
from understudy.controller.requests.cancel import cancel_jobs
from understudy.controller.requests.control import control_jobs
from understudy.controller.requests.controller import notify_job, set_configuration, update_step
from understudy.controller.requests.crontabs import get_crontab, set_crontab
from understudy.controller.requests.foresee import foresee
from understudy.controller.requests.node_news import (
    batch_complete,
    epilog_complete,
    prolog_complete,
    register_nodes,
)
from understudy.controller.requests.node_table import change_node_table
from understudy.controller.requests.reboot import reboot_nodes
from understudy.controller.requests.statistics import get_statistics
from understudy.controller.requests.steps import await_step, create_step, get_step, step_complete
from understudy.controller.requests.submit import submit
from understudy.controller.requests.triggers import clear_triggers, set_trigger
from understudy.controller.requests.update_jobs import update_jobs
from understudy.controller.requests.update_nodes import update_nodes
from understudy.controller.requests.update_partitions import update_partition
from understudy.controller.requests.update_reservations import update_reservation
from understudy.controller.scheduling.api import Note
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import (
    AllocateJob,
    AssociationsChanged,
    AwaitEmpty,
    AwaitJob,
    AwaitRecorded,
    AwaitStep,
    BatchComplete,
    BreakAtStart,
    BufferStatus,
    CancelJobs,
    ChangeNodeTable,
    ClearTriggers,
    CompleteJob,
    ControlJobs,
    CreateStep,
    EpilogComplete,
    FollowJobs,
    ForeseeJob,
    GetAllocation,
    GetBufferStatus,
    GetCrontab,
    GetScript,
    GetStatistics,
    GetStep,
    Message,
    NotifyJob,
    Ok,
    Ping,
    PrologComplete,
    RebootNodes,
    Reconfigure,
    RegisterNodes,
    Script,
    SetConfiguration,
    SetCrontab,
    SetTrigger,
    Shutdown,
    StepComplete,
    SubmitJob,
    UpdateJobs,
    UpdateNodes,
    UpdatePartition,
    UpdateReservation,
    UpdateStep,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job

Answer = "Message | Later"


class Rpc(NamedTuple):
    """One kind of request."""

    handle: Callable[[Core, Any, Sender], Message | Later]
    needs: Needs


def get_script(core: Core, message: GetScript, sender: Sender) -> Message:
    """The batch script, for its owner and operators."""
    job = core.job(message.job_id)
    if job.user_id != sender.user_id and not core.is_operator(sender.user_id):
        raise SlurmError(ErrorCode.INVALID_USER)
    return Script(core.scripts.get(job.job_id, ""))


def await_empty(core: Core, _message: AwaitEmpty, _sender: Sender) -> Later:
    """Answered when nothing is pending, running or completing."""
    later = Later()
    core.awaiting_empty.append(later)
    core.check_empty()
    return later


def await_recorded(core: Core, _message: AwaitRecorded, _sender: Sender) -> Later:
    """Answered when accounting has been told of all that has happened."""
    later = Later()
    core.when_recorded(lambda: later.give(Ok()))
    return later


def buffer_status(core: Core, message: GetBufferStatus, _sender: Sender) -> Later:
    """Anybody may ask, as in Slurm."""
    later = Later()
    core.ask_buffers(message.words, lambda text: later.give(BufferStatus(text)))
    return later


def pause_at_break(core: Core, job: Job, _now: float) -> None:
    """The job starts: virtual time stops if somebody asked for that."""
    if job.job_id in core.breakpoints:
        core.breakpoints.discard(job.job_id)
        core.time.pause(f"job {job.job_id} starts")


def break_at_start(core: Core, message: BreakAtStart, sender: Sender) -> Message:
    """Stop virtual time when the job starts."""
    if not core.is_admin(sender.user_id):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if not core.time.is_virtual:
        raise SlurmError(-1, "only virtual time can stop at a job's start")
    job = core.job(message.job_id)
    if not job.is_pending:
        raise SlurmError(ErrorCode.ALREADY_DONE, f"job {job.job_id} has started already")
    core.breakpoints.add(job.job_id)
    return Ok()


def associations_changed(
    core: Core, message: AssociationsChanged, sender: Sender
) -> Message | Later:
    """Accounting tells what has changed there."""
    if not sender.is_daemon:
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    return core.take_associations(message)


def ping(_core: Core, _message: Ping, _sender: Sender) -> Message:
    """It is there."""
    return Ok()


def reconfigure(core: Core, message: Reconfigure, sender: Sender) -> Message:
    """Read slurm.conf again, here and on the nodes."""
    core.require_admin(sender)
    core.read_configuration()
    core.triggers.note("reconfig")
    for daemon, record in core.daemons.items():
        if core.agents.fan_out is None:
            core.agents.send(daemon, message)
        else:
            core.agents.send_to_many(
                [(daemon, core.names.to_expression(record.nodes))], lambda _nodes: message
            )
    core.changed(Note.CHANGE, core.time.now())
    return Ok()


def shutdown(core: Core, message: Shutdown, sender: Sender) -> Message:
    """End the daemon after the state has been saved, and before it those of the nodes that
    respond.
    """
    core.require_admin(sender)
    told = (
        {}
        if message.alone
        else {name: None for name, daemon in core.daemons.items() if daemon.is_responding}
    )

    def answered(name: str) -> None:
        told.pop(name, None)
        if not told:
            core.shut_down()

    for name in tuple(told):
        core.agents.ping(name, Shutdown(), lambda _answer, name=name: answered(name))  # type: ignore[misc]
    if told:
        core.at(core.time.now() + _FAREWELL_S, core.shut_down)
    else:
        core.shut_down()
    return Ok()


# ours: how long a daemon that is told to end may take to say that it has heard
_FAREWELL_S: Final = 3.0
_JOB_READ: Final = Needs(job=READ)
_JOB_WRITE: Final = Needs(READ, WRITE, READ, READ)
_JOB_AND_NODE: Final = Needs(READ, WRITE, WRITE, READ)
_ALL: Final = Needs(WRITE, WRITE, WRITE, WRITE)
QUERY_NEEDS: Final = Needs(READ, READ, READ, READ)
PASS_NEEDS: Final = Needs(READ, WRITE, WRITE, READ)  # the scheduler's
RPCS: Final[dict[type[Message], Rpc]] = {
    SubmitJob: Rpc(submit, _JOB_WRITE),
    ForeseeJob: Rpc(foresee, _JOB_WRITE),
    AllocateJob: Rpc(allocate, _JOB_AND_NODE),
    AwaitJob: Rpc(await_job, _JOB_READ),
    GetAllocation: Rpc(get_allocation, _JOB_READ),
    CompleteJob: Rpc(complete_job, _JOB_AND_NODE),
    CreateStep: Rpc(create_step, _JOB_WRITE),
    GetStep: Rpc(get_step, _JOB_READ),
    AwaitStep: Rpc(await_step, _JOB_READ),
    StepComplete: Rpc(step_complete, _JOB_WRITE),
    BatchComplete: Rpc(batch_complete, _JOB_AND_NODE),
    EpilogComplete: Rpc(epilog_complete, _JOB_AND_NODE),
    PrologComplete: Rpc(prolog_complete, _JOB_AND_NODE),
    CancelJobs: Rpc(cancel_jobs, _JOB_AND_NODE),
    UpdateJobs: Rpc(update_jobs, _JOB_AND_NODE),
    ControlJobs: Rpc(control_jobs, _JOB_AND_NODE),
    RebootNodes: Rpc(reboot_nodes, _JOB_AND_NODE),
    UpdateNodes: Rpc(update_nodes, _JOB_AND_NODE),
    ChangeNodeTable: Rpc(change_node_table, _ALL),
    UpdatePartition: Rpc(update_partition, Needs(READ, WRITE, READ, WRITE)),
    UpdateReservation: Rpc(update_reservation, _JOB_AND_NODE),
    RegisterNodes: Rpc(register_nodes, _JOB_AND_NODE),
    Reconfigure: Rpc(reconfigure, _ALL),
    Shutdown: Rpc(shutdown, Needs()),
    GetStatistics: Rpc(get_statistics, _JOB_READ),
    SetConfiguration: Rpc(set_configuration, _ALL),
    NotifyJob: Rpc(notify_job, _JOB_READ),
    UpdateStep: Rpc(update_step, _JOB_WRITE),
    Ping: Rpc(ping, Needs()),
    GetScript: Rpc(get_script, _JOB_READ),
    GetCrontab: Rpc(get_crontab, _JOB_READ),
    SetCrontab: Rpc(set_crontab, _JOB_WRITE),
    SetTrigger: Rpc(set_trigger, _JOB_WRITE),
    ClearTriggers: Rpc(clear_triggers, _JOB_WRITE),
    BreakAtStart: Rpc(break_at_start, _JOB_READ),
    AwaitEmpty: Rpc(await_empty, _JOB_READ),
    FollowJobs: Rpc(follow_jobs, _JOB_READ),
    AwaitRecorded: Rpc(await_recorded, _JOB_READ),
    GetBufferStatus: Rpc(buffer_status, _JOB_READ),
    AssociationsChanged: Rpc(associations_changed, _JOB_WRITE),
}
# all that a node daemon may ask for: who has stolen its key is neither a user nor the controller
OF_NODES: Final = frozenset(
    {RegisterNodes, BatchComplete, EpilogComplete, PrologComplete, StepComplete, Ping}
)
