"""A job that has started is launched: its prologs have run, its nodes are up, its script is handed
to a node daemon.

Place: jobs. Those that start are `start.py`'s.
"""

from __future__ import annotations

from signal import SIGSTOP
from typing import TYPE_CHECKING

import msgspec

from understudy.controller.core.alarms import watch_limits
from understudy.controller.core.changes import job_changed
from understudy.controller.core.core import log
from understudy.controller.facts.environment import (
    NO_ENVIRONMENT,
    job_environment,
    node_environment,
    site_environment,
)
from understudy.controller.jobs.end import end_job
from understudy.controller.jobs.orders import ask, signal_job
from understudy.controller.jobs.requeue import requeue, requeue_job
from understudy.controller.pending.awaited import LAUNCH_FAILED_HELD, REASON, is_ready, tell_waiting
from understudy.controller.tables.het_job import components
from understudy.controller.tables.job import HELD_BY_ADMIN
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.model.environment import JOB, SCRIPT
from understudy.model.errors import SlurmError
from understudy.model.states import JobFlag
from understudy.protocol.messages import Failure, LaunchBatch, Message

if TYPE_CHECKING:
    from understudy.controller.core.core import Core, DaemonRecord
    from understudy.controller.tables.job import Job


def prepare(core: Core, job: Job, _now: float) -> None:
    """A job has all its nodes: have the prolog run, launch it if there is nothing to wait for, and
    tell who waits for its nodes alone. Of a heterogeneous one only the leader has a script.
    """
    if job.het_offset:
        return
    assert job.allocation is not None
    if not begin_prolog(core, job) and not (job.flags and job.flags & JobFlag.CONFIGURING):
        daemon = core.daemon_of_node[job.allocation.first_node]
        assert daemon is not None
        hand_over(core, job, daemon)
    elif job.interactive:
        tell_waiting(core, job)


def begin_prolog(core: Core, job: Job) -> bool:
    """Run PrologSlurmctld; the job is configuring until it has ended. Whether there is one."""
    program = core.settings.prolog_slurmctld
    if not program or core.settings.emulates_jobs:
        return False
    run = job.restarts
    advance(job, JobEvent.CONFIGURES, core.time.now())
    core.in_prolog.add(job.job_id)

    def ended(code: int) -> None:
        core.in_prolog.discard(job.job_id)
        if job.restarts == run and job.is_running:
            if code:
                log.error("PrologSlurmctld of job %d ended with %d", job.job_id, code)
                _give_up(core, job)
            else:
                finish_configuring(core, job, core.time.now())
        core.after_event()

    core.run_script([program], site_environment(core, job, context="prolog_slurmctld"), ended)
    return True


def _give_up(core: Core, job: Job) -> None:
    """The prolog has failed: the job waits for another run, or is cancelled if it must not have
    one.
    """
    try:
        requeue(core, job, core.time.now(), hold=False)
    except SlurmError:
        job.killed_by = 0
        end_job(core, job, JobEvent.CANCELLED, core.time.now(), reason="None")


def buffer_is_ready(core: Core, job: Job, now: float) -> None:
    """The job's time counts from when it got its nodes."""
    finish_configuring(core, job, now, counts_from_now=False)


def finish_configuring(core: Core, job: Job, now: float, *, counts_from_now: bool = True) -> None:
    """If a job's nodes have all booted, its script may begin, and its time counts from now."""
    if (
        not job.is_running
        or not job.flags & JobFlag.CONFIGURING
        or job.allocation is None
        or job.job_id in core.in_prolog
        or job.job_id in core.in_pre_run
    ):
        return
    if job.allocation.nodes & core.tables.nodes.boot_nodes:
        return

    advance(job, JobEvent.CONFIGURED, now)
    if counts_from_now:
        job.start_time = int(now)
        if job.time_limit_s is not None:
            job.end_time = job.start_time + job.time_limit_s
        watch_limits(core, job)
    job_changed(core, job, now)
    daemon = core.daemon_of_node[job.allocation.first_node]
    if daemon is not None and not job.het_offset:  # the leader's script alone is launched
        hand_over(core, job, daemon)


def begin_on_nodes(core: Core, job: Job) -> None:
    """A job has its nodes: run the prolog there if it is to be run now."""
    flags = core.settings.prolog_flags
    if core.settings.emulates_jobs or "alloc" not in flags:
        return
    assert job.allocation is not None
    if "nohold" not in flags:
        job.prolog_nodes = job.allocation.nodes
        job.reason = REASON
        job_changed(core, job, core.time.now())
    ask(core, job, job.allocation.nodes)


def hand_over(core: Core, job: Job, daemon: DaemonRecord) -> None:
    """The job's nodes are there: its script is launched, or who waits for it may begin."""
    if core.settings.prolog_flags:
        for each in components(job):
            begin_on_nodes(core, each)
    if job.interactive:
        job.launch_acknowledged = True
        tell_waiting(core, job)
    elif "deferbatch" not in core.settings.prolog_flags or is_ready(job):
        launch(core, job, daemon)


def launch(core: Core, job: Job, daemon: DaemonRecord) -> None:
    """Send the job to the node daemon of its first node, until it has it or the job is over."""
    if not core.launch_s or job.emulation is None:
        _launch(core, job, daemon)
        return
    core.launching.append((job, job.restarts, daemon))
    if len(core.launching) == 1:
        core.at(core.time.now(), _launch_together, core)


def _launch_together(core: Core) -> None:
    """Launch the emulated jobs that were started at one moment. A machine works at all of them at
    once, so none begins before the last is launched.

    The controller counts, which sends all of them: counted by each node daemon schedules would
    depend on how nodes are dealt to daemons.
    """
    together, core.launching = core.launching, []
    wanted = [each for each in together if each[0].restarts == each[1] and each[0].is_active]
    now = core.time.now()
    core.launches_until = max(now, core.launches_until) + len(wanted) * core.launch_s
    for job, _, daemon in wanted:
        _launch(core, job, daemon, core.launches_until - now)
        if not job.is_running:  # it has lost its place since: the signal found nothing to stop
            signal_job(core, job, SIGSTOP, batch_only=False)


def _launch(core: Core, job: Job, daemon: DaemonRecord, begins_after_s: float = 0.0) -> None:
    run, job_id = job.restarts, job.job_id
    assert job.start_time is not None
    assert job.allocation is not None
    first_node = core.tables.nodes.nodes[job.allocation.first_node]
    credential = b""
    if core.signer is not None:
        credential = core.signer.sign(job_id, run, job.node_list, job.user_id, job.start_time)
    if core.settings.emulates_jobs and job.emulation is not None:
        script, spec, environment = "", None, NO_ENVIRONMENT
    else:
        script, spec, environment = (
            core.scripts.get(job_id, ""),
            job.spec,
            job_environment(core, job, JOB | SCRIPT),
        )
    message = LaunchBatch(
        job_id,
        run,
        job.node_list,
        job.start_time,
        credential,
        job.user_id,
        job.group_id,
        job.emulation,
        script,
        spec,
        environment,
        job.time_limit_s if core.policy.exact_limits else None,
        begins_after_s=begins_after_s,
        boot_time=first_node.boot_time or 0,
    )
    if not core.settings.emulates_jobs:
        told = node_environment(core, job, is_over=False)
        message = msgspec.structs.replace(
            message, memory_mb=_first_nodes_memory_mb(job), program_environment=told
        )

    def is_wanted() -> bool:
        return job.restarts == run and job.is_running

    def launched(answer: Message) -> None:
        if job.restarts != run or not job.is_running:
            return
        if type(answer) is Failure:
            _could_not_launch(core, job, daemon, answer)
        else:
            job.launch_acknowledged = True
            job_changed(core, job, core.time.now())

    assert job.allocation is not None
    core.agents.send(
        daemon.name,
        message,
        wanted=is_wanted,
        done=launched,
        node=core.names.names[job.allocation.first_node],
    )


def _first_nodes_memory_mb(job: Job) -> int:
    """What the job may use where its script runs; 0: nobody said. Where memory is given to nobody,
    what was asked for counts.
    """
    held = job.allocation
    share = held.share_on(held.first_node) if held is not None else None
    if share is None or share.memory_mb:
        return share.memory_mb if share is not None else 0
    return job.memory_per_node_mb or (job.memory_per_cpu_mb or 0) * share.cpus


def _could_not_launch(core: Core, job: Job, daemon: DaemonRecord, answer: Failure) -> None:

    log.error(
        "node daemon %s refused job %d: %s (%d)", daemon.name, job.job_id, answer.text, answer.code
    )
    requeue_job(
        core,
        job,
        core.time.now(),
        hold_reason=LAUNCH_FAILED_HELD,
        held_by=HELD_BY_ADMIN,
        event=JobEvent.LAUNCH_FAILED,
    )
