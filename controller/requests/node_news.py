"""What node daemons say: they are there, a script has ended, a prolog has run, nodes are clean.

Place: requests. Only daemons may say so. What follows from it is done in `jobs/` and `nodes/`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from understudy.controller.core.alarms import over_time_limit_s
from understudy.controller.core.changes import job_changed
from understudy.controller.core.core import DaemonRecord, log
from understudy.controller.core.lookups import known_nodes
from understudy.controller.jobs.end import end_job, give_back
from understudy.controller.jobs.launch import launch
from understudy.controller.jobs.orders import ask as ask_for_prolog
from understudy.controller.jobs.orders import terminate
from understudy.controller.jobs.requeue import requeue_after_exit, requeue_job
from understudy.controller.nodes.drain import drain
from understudy.controller.nodes.events import bring_up, lose_node, lose_nodes
from understudy.controller.pending.awaited import LAUNCH_FAILED_HELD, REASON, is_ready, tell_waiting
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.het_job import whole
from understudy.controller.tables.job import HELD_BY_ADMIN, LAUNCH_FAILURE
from understudy.controller.tables.job_states import JobEvent
from understudy.model import hostlist, nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag
from understudy.protocol import endings
from understudy.protocol.messages import (
    BatchComplete,
    EpilogComplete,
    FindJobs,
    JobsFound,
    Message,
    Ok,
    Registered,
    RegisterNodes,
    TerminateJob,
)

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import PrologComplete

_OK = Ok()
SETUP_FAILED = 53  # the "signal" of a script whose files could not be opened


def batch_complete(core: Core, message: BatchComplete, sender: Sender) -> Message:
    """The batch script has ended. News of an earlier run, or of a job that is ending already,
    changes nothing but the exit code.
    """
    _require_daemon(sender)
    _forget_run(core, message)
    job = core.tables.jobs.get(message.job_id)
    if job is None or job.restarts != message.restart or job.is_pending:
        return _OK
    if message.usage and core.settings.gathers_usage:
        job.batch_usage = message.usage
    if job.is_finished:
        is_news = (
            not job.script_ended
            and not job.exit_code
            and not job.exit_signal
            and (message.exit_code or message.signal)
        )
        if is_news:
            job.exit_code, job.exit_signal = message.exit_code, message.signal
        if is_news or (job.is_completing and message.usage):
            job_changed(core, job, core.time.now())
        return _OK
    now = core.time.now()
    if message.fault == endings.PROLOG:
        prolog_failed(core, job, message.node)
        return _OK
    job.exit_code, job.exit_signal, job.script_ended = message.exit_code, message.signal, True
    if message.fault == endings.KILLED:
        job.killed_by = sender.user_id
    cleaned = (
        job.allocation.nodes
        if job.allocation is not None and message.epilog_nodes == job.node_list
        else 0
    )
    over = message.timed_out or _is_past_limit(core, job, now)
    if message.fault == endings.MEMORY:
        job.exit_code, job.exit_signal = 0, endings.OUT_OF_MEMORY
        end_job(
            core, job, JobEvent.RAN_OUT_OF_MEMORY, now, reason="OutOfMemory", lost_nodes=cleaned
        )
    elif message.fault == endings.CANCELLED:  # an emulated job's owner
        job.killed_by = job.user_id
        end_job(core, job, JobEvent.CANCELLED, now, reason="None", lost_nodes=cleaned)
    elif over:
        end_job(core, job, JobEvent.TIMED_OUT, now, reason="TimeLimit", lost_nodes=cleaned)
    else:
        _end_by_itself(core, job, message, now, cleaned)
    if cleaned and job.completing_nodes:
        give_back(core, job, cleaned, now)
    return _OK


def _forget_run(core: Core, message: BatchComplete) -> None:
    """Have the daemon clean up after a script of a run whose nodes were given back already: its
    launch was under way then, or a controller was that knew, and nobody else will tell it.
    """
    run, index = (message.job_id, message.restart), core.tables.nodes.index_of.get(message.node)
    if index is None or message.epilog_nodes or _is_on(core, run, 1 << index):
        return
    for daemon, _ in core.parts(1 << index):
        core.agents.send(daemon.name, TerminateJob(*run, message.node), node=message.node)


def epilog_complete(core: Core, message: EpilogComplete, sender: Sender) -> Message:
    """Nodes are free of the job. Without nodes: all for which the sender stands."""
    _require_daemon(sender)
    if message.failed:
        drain(core, message.failed, "Epilog error", core.time.now())
    job = core.completing.get(message.job_id)
    if job is None or job.restarts != message.restart:
        return _OK
    if message.nodes == job.node_list:
        nodes = job.completing_nodes
    elif message.nodes:
        try:
            nodes = core.names.to_bitmap(message.nodes)
        except ValueError:
            raise SlurmError(ErrorCode.INVALID_NODE) from None
    else:
        record = core.daemons.get(sender.name)
        nodes = record.nodes if record is not None else 0
    give_back(core, job, nodes & job.completing_nodes, core.time.now(), by_epilog=True)
    return _OK


def _is_past_limit(core: Core, job: Job, now: float) -> bool:
    """A script that ends by itself after its limit, before the controller has looked: Slurm calls
    that a timeout, too.
    """
    if job.end_time is None or core.policy.exact_limits:
        return False
    return job.end_time + over_time_limit_s(core, core.tables.partitions.get(job.partition)) < int(
        now
    )


def _end_by_itself(core: Core, job: Job, message: BatchComplete, now: float, cleaned: int) -> None:
    settings, code = core.settings, message.exit_code
    is_well = code == 0 and message.signal == 0
    if code in settings.requeue_exit_hold_codes or code in settings.requeue_exit_codes:
        requeue_after_exit(
            core,
            job,
            now,
            is_well=is_well,
            hold=code in settings.requeue_exit_hold_codes,
            lost_nodes=cleaned,
        )
    elif is_well:
        end_job(core, job, JobEvent.EXITED_WELL, now, reason="None", lost_nodes=cleaned)
    else:
        reason = LAUNCH_FAILURE if message.signal else "NonZeroExitCode"
        end_job(core, job, JobEvent.EXITED_BADLY, now, reason=reason)


def _require_daemon(sender: Sender) -> None:
    if not sender.is_daemon:
        raise SlurmError(ErrorCode.ACCESS_DENIED)


def register_nodes(core: Core, message: RegisterNodes, sender: Sender) -> Message:
    """A node daemon announces its nodes, and the jobs that it has."""
    if not sender.is_daemon or (sender.is_node and sender.name != message.daemon):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    try:
        nodes, unknown_nodes = known_nodes(core, message.nodes)
    except ValueError as error:
        raise SlurmError(ErrorCode.INVALID_NODE, f"{message.daemon} registers: {error}") from None
    if unknown_nodes:
        said = (
            f"{message.daemon} registers nodes that are not in slurm.conf: "
            f"{hostlist.compress(unknown_nodes)}"
        )
        if not nodes:
            raise SlurmError(ErrorCode.INVALID_NODE, said)
        log.error("%s", said)
    if nodes & ~core.stands_for.get(message.daemon, nodes):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if not (math.isfinite(message.boot_time) and math.isfinite(message.slurmd_start_time)):
        raise SlurmError(-1, f"{message.daemon} was started at no time")
    now = core.time.now()
    record = core.add_daemon(message.daemon, message.address, nodes)
    record.is_registered = record.is_responding = True
    record.last_response = now
    is_new_life = record.start_time != message.slurmd_start_time
    record.start_time = message.slurmd_start_time
    boot_time = int(message.boot_time)
    booted = any(
        core.tables.nodes.nodes[index].boot_time != boot_time for index in nodeset.indices(nodes)
    )
    # else what was there before has been lost already
    from_before = _jobs_from_before(core, nodes, message) if booted else []
    up = bring_up(core, nodes, message, now)
    for job, lost in from_before:
        if job.is_active:  # a component may have gone with another one
            log.warning(
                "job %d has lost %s, which rebooted", job.job_id, core.names.to_expression(lost)
            )
            lose_nodes(core, job, lost, now)
    core.agents.daemon_is_back(message.daemon)
    unknown = [run for run in message.jobs_of_steps if not _is_on(core, run, nodes)]
    unknown += _settle_jobs(core, record, message.running_jobs, is_new_life=is_new_life)
    core.last_node_update = now
    core.journal.nodes(nodes)
    if core.power is not None:
        core.tables.nodes.note_departure(
            nodes & ~core.tables.nodes.boot_nodes & core.tables.nodes.idle_nodes, int(now)
        )
        core.power.boot()
    if up:
        core.changed(Note.CHANGE, now)
    return Registered(unknown)


def _settle_jobs(
    core: Core, record: DaemonRecord, runs: list[tuple[int, int]], *, is_new_life: bool
) -> list[tuple[int, int]]:
    """Compare what the daemon has with what it should have. The runs that it should not have.

    A job that it should have and has not: if nobody knows whether its launch arrived, it is sent
    again to a daemon that was restarted, and one that knows it already says so. If it arrived, the
    daemon is asked what has become of it.
    """
    # those that are over, or run elsewhere by now
    unknown = [run for run in runs if not _is_on(core, run, record.nodes, with_script=True)]
    present = set(runs)
    for job in list(core.completing.values()):
        part = job.completing_nodes & record.nodes
        if part and (is_new_life or (job.job_id, job.restarts) in present):
            terminate(core, job, part)
    missing = []
    for job in list(core.tables.running.values()):
        allocation = job.allocation
        assert allocation is not None
        if job.prolog_nodes & record.nodes:
            ask_for_prolog(core, job, job.prolog_nodes & record.nodes)
        if (
            job.interactive
            or (job.job_id, job.restarts) in present
            or not record.nodes >> allocation.first_node & 1
        ):
            continue
        if job.launch_acknowledged:
            missing.append((job.job_id, job.restarts))
        elif is_new_life and not job.flags & JobFlag.CONFIGURING:
            launch(core, job, record)
    if missing:
        core.agents.send(
            record.name,
            FindJobs(missing),
            wanted=lambda: any(_runs(core, run) for run in missing),
            done=partial(_found, core, record, missing),
        )
    return unknown


def _jobs_from_before(core: Core, nodes: int, message: RegisterNodes) -> list[tuple[Job, int]]:
    """The nodes (a bitmap) have booted. Jobs that were there before, and are gone with what may
    have been launched there without anybody hearing of it, each with those of its nodes. A script
    that began in the second of the boot came before it, unless the daemon has it.
    """
    boot_time, present = int(message.boot_time), set(message.running_jobs)
    found = []
    for job in core.tables.running.values():
        allocation = job.allocation
        assert allocation is not None
        lost = allocation.nodes & nodes
        if not lost or job.flags & JobFlag.CONFIGURING or job.start_time is None:
            continue
        if job.start_time < boot_time or (
            job.start_time == boot_time
            and nodes >> allocation.first_node & 1
            and (job.job_id, job.restarts) not in present
        ):
            found.append((job, lost))
    return found


def _runs(core: Core, run: tuple[int, int]) -> bool:
    job = core.tables.running.get(run[0])
    return job is not None and job.restarts == run[1]


def _found(
    core: Core, record: DaemonRecord, missing: list[tuple[int, int]], answer: Message
) -> None:
    """The daemon's word on jobs that were not in its registration, which may be older than their
    launches. It was asked after they had arrived, so what it neither has nor has to tell the end of
    went with an earlier life of it.
    """
    if type(answer) is not JobsFound:
        return
    found = set(answer.jobs)
    for run in missing:
        if run not in found and _runs(core, run):
            log.warning(
                "job %d is missing from its batch node after %s was restarted", run[0], record.name
            )
            lose_node(core, core.tables.running[run[0]], 0, core.time.now())


def _is_on(core: Core, run: tuple[int, int], nodes: int, *, with_script: bool = False) -> bool:
    """Whether the run has anything, or its script, on the nodes (a bitmap), or ends there."""
    job = core.tables.jobs.get(run[0])
    if job is None or job.restarts != run[1]:
        return False
    allocation = job.allocation if job.is_active else None
    mine = 0
    if allocation is not None:
        mine = 1 << allocation.first_node if with_script else allocation.nodes
    return bool((mine | job.completing_nodes) & nodes)


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
    job_changed(core, job, core.time.now())
    leader = whole(job)[0]
    if not is_ready(leader):
        return
    if leader.interactive:
        tell_waiting(core, leader)
    elif "deferbatch" in core.settings.prolog_flags and not leader.launch_acknowledged:
        assert leader.allocation is not None
        daemon = core.daemon_of_node[leader.allocation.first_node]
        if daemon is not None:
            launch(core, leader, daemon)


def prolog_failed(core: Core, job: Job | None, nodes: str) -> None:
    """It has failed on these nodes, which get no more jobs. A batch job waits until somebody
    releases it; what must not run again is cancelled.
    """
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
