"""The prolog of the nodes: asked for at a job's allocation (PrologFlags=Alloc), and what its end and its failure do.

Place: the controller's core; without the flag the node daemons run it by themselves before the first script or step. A job whose prologs it waits for
runs, with the reason Prolog. Follows: slurm.conf(5) Prolog, PrologFlags, and what Slurm 22.05.8 was seen to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.het_jobs import components, whole
from understudy.controller.job import HELD_BY_ADMIN, JobEvent
from understudy.controller.job_programs import node_environment
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag
from understudy.protocol.messages import LaunchProlog, Message, Ok

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import PrologComplete

LAUNCH_FAILED_HELD: Final = "launch failed requeued held"
REASON: Final = "Prolog"


def is_ready(job: Job) -> bool:
    """Whether nothing has to be done any more before the job may begin."""
    return not any(each.flags & JobFlag.CONFIGURING or each.prolog_nodes for each in components(job))


def begin_on_nodes(core: Core, job: Job) -> None:
    """A job has its nodes: run the prolog there if it is to be run now."""
    flags = core.settings.prolog_flags
    if core.settings.emulates_jobs or "alloc" not in flags:
        return
    assert job.allocation is not None
    if "nohold" not in flags:
        job.prolog_nodes = job.allocation.nodes
        job.reason = REASON
        core.last_job_update = core.time.now()
        core.journal.job(job.job_id)
    ask(core, job, job.allocation.nodes)


def ask(core: Core, job: Job, nodes: int) -> None:
    """Have the prolog run on these nodes (a bitmap) of the job."""
    run, told = job.restarts, node_environment(core, job, is_over=False)

    def is_wanted() -> bool:
        return job.restarts == run and job.is_active

    for daemon, part in core.parts(nodes):
        core.agents.send(daemon.name, LaunchProlog(job.job_id, run, core.names.to_expression(part), told), wanted=is_wanted)


def prolog_complete(core: Core, message: PrologComplete, sender: Sender) -> Message:
    """The prolog has ended on some nodes."""
    if not sender.is_daemon:
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    job = core.tables.jobs.get(message.job_id)
    if job is None or job.restarts != message.restart or not job.is_active:
        job = None
    if message.failed:
        prolog_failed(core, job, message.failed)
    elif job is not None and job.prolog_nodes:
        job.prolog_nodes &= ~core.names.to_bitmap(message.nodes)
        if not job.prolog_nodes:
            _all_ended(core, job)
    return Ok()


def _all_ended(core: Core, job: Job) -> None:
    if job.reason == REASON:
        job.reason = "None"
    core.last_job_update = core.time.now()
    core.journal.job(job.job_id)
    leader = whole(job)[0]
    if not is_ready(leader):
        return
    if leader.interactive:
        from understudy.controller.allocate import tell_waiting  # noqa: PLC0415 - it starts jobs, which asks for prologs

        tell_waiting(core, leader)
    elif "deferbatch" in core.settings.prolog_flags and not leader.launch_acknowledged:
        from understudy.controller.start import launch  # noqa: PLC0415 - as above

        assert leader.allocation is not None
        daemon = core.daemon_of_node[leader.allocation.first_node]
        if daemon is not None:
            launch(core, leader, daemon)


def prolog_failed(core: Core, job: Job | None, nodes: str) -> None:
    """It has failed on these nodes, which get no more jobs. A batch job waits until somebody releases it; what must not run again is cancelled."""
    from understudy.controller.complete import end_job  # noqa: PLC0415 - ends come here
    from understudy.controller.node_events import drain  # noqa: PLC0415 - it ends jobs
    from understudy.controller.requeue import requeue_job  # noqa: PLC0415 - as above

    now = core.time.now()
    drain(core, nodes, "Prolog error", now)
    if job is None:
        return
    job.prolog_nodes = 0
    if job.requeue and not job.interactive:
        requeue_job(core, job, now, hold_reason=LAUNCH_FAILED_HELD, held_by=HELD_BY_ADMIN)
        return
    job.killed_by = 0
    job.notice = f"Prolog failure on node {nodes}"
    end_job(core, job, JobEvent.CANCELLED, now, reason="None")
