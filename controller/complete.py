"""The end of running jobs: from the script's end to the return of the last node.

Place: the controller's core. A job's end has three steps: its state becomes final and `COMPLETING` is set (`end_job`), the node daemons end what is
left of it and run the epilog, and as each says so (`epilog_complete`) its nodes are given back. Follows: squeue(1) on states and reasons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.alarms import over_time_limit_s, unwatch
from understudy.controller.eligibility import note_end, notify_dependents, review
from understudy.controller.het_jobs import others
from understudy.controller.job import NO_STEPS, NO_USAGE, NO_WAITS, JobEvent, advance
from understudy.controller.job_programs import node_environment, run_epilog
from understudy.controller.log_lines import ended, is_told
from understudy.controller.prologs import REASON as PROLOG_REASON
from understudy.controller.prologs import prolog_failed
from understudy.controller.steps import end_steps
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag, JobState
from understudy.protocol import endings
from understudy.protocol.messages import BatchComplete, EpilogComplete, Message, Ok, SignalJob, TerminateJob

if TYPE_CHECKING:
    from understudy.controller.core import Core, DaemonRecord
    from understudy.controller.job import Job
    from understudy.controller.ports import Sender

_OK = Ok()
LAUNCH_FAILURE = "JobLaunchFailure"
SETUP_FAILED = 53  # the "signal" of a script whose files could not be opened
OUT_OF_MEMORY = 125  # the "signal" of a script that used more memory than it had


def batch_complete(core: Core, message: BatchComplete, sender: Sender) -> Message:
    """The batch script has ended. News of an earlier run, or of a job that is ending already, changes nothing but the exit code."""
    _require_daemon(sender)
    job = core.tables.jobs.get(message.job_id)
    if job is None or job.restarts != message.restart or job.is_pending:
        return _OK
    if message.usage and core.settings.gathers_usage:
        job.batch_usage = message.usage
    if job.is_finished:
        is_news = not job.script_ended and not job.exit_code and not job.exit_signal and (message.exit_code or message.signal)
        if is_news:
            job.exit_code, job.exit_signal = message.exit_code, message.signal
        if job.is_completing and (is_news or message.usage):
            core.journal.job(job.job_id)
        return _OK
    now = core.time.now()
    if message.fault == endings.PROLOG:
        prolog_failed(core, job, message.node)
        return _OK
    job.exit_code, job.exit_signal, job.script_ended = message.exit_code, message.signal, True
    if message.fault == endings.KILLED:
        job.killed_by = sender.user_id
    cleaned = job.allocation.nodes if job.allocation is not None and message.epilog_nodes == job.node_list else 0
    over = message.timed_out or _is_past_limit(core, job, now)
    if message.fault == endings.MEMORY:
        job.exit_code, job.exit_signal = 0, OUT_OF_MEMORY
        end_job(core, job, JobEvent.RAN_OUT_OF_MEMORY, now, reason="OutOfMemory", lost_nodes=cleaned)
    elif message.fault == endings.CANCELLED:  # an emulated job's owner
        job.killed_by = job.user_id
        end_job(core, job, JobEvent.CANCELLED, now, reason="None", lost_nodes=cleaned)
    elif over:
        end_job(core, job, JobEvent.TIMED_OUT, now, reason="TimeLimit", lost_nodes=cleaned)
    elif message.exit_code == 0 and message.signal == 0:
        end_job(core, job, JobEvent.EXITED_WELL, now, reason="None", lost_nodes=cleaned)
    else:
        _end_badly(core, job, message, now)
    if cleaned and job.completing_nodes:
        give_back(core, job, cleaned, now)
    return _OK


def end_job(core: Core, job: Job, event: JobEvent, now: float, *, reason: str, lost_nodes: int = 0) -> None:
    """End a running job and have its nodes cleaned up; `lost_nodes` (a bitmap) are clean or do not answer, and the caller gives them back."""
    allocation = job.allocation
    assert allocation is not None
    if job.state is JobState.SUSPENDED:
        from understudy.controller.suspend import count_suspension  # noqa: PLC0415 - suspending sends signals through this module

        count_suspension(job, now)
        job.suspend_time = int(now)
    advance(job, event, now)
    job.end_time = int(now)
    job.reason, job.reason_detail = PROLOG_REASON if job.prolog_nodes and reason == "None" else reason, ""
    job.prolog_nodes = 0
    job.flags = JobFlag.COMPLETING if not job.flags else job.flags & ~(JobFlag.CONFIGURING | JobFlag.STOPPED) | JobFlag.COMPLETING
    job.completing_nodes = allocation.nodes
    tables = core.tables
    del tables.running[job.job_id]
    tables.licenses.give_back(job.job_id)
    core.priorities.ended(job, now)
    if job.array is not None:
        job.array.running -= 1
    core.completing[job.job_id] = job
    tables.nodes.completing_nodes |= allocation.nodes
    core.last_job_update = core.last_node_update = now
    core.journal.job(job.job_id)
    if is_told():
        ended(job, event, core.names.to_expression(lost_nodes) if lost_nodes else "")
    if core.alarms.heap:
        unwatch(core, job)
    if core.awaited:
        _tell_waiting(core, job)
    run_epilog(core, job)
    terminate(core, job, allocation.nodes & ~lost_nodes, "" if core.settings.emulates_jobs else _why(job, event))
    if job.het is not None:
        for other in others(job):
            if not other.is_finished and other.allocation is not None and not other.is_pending:
                other.exit_code, other.exit_signal, other.killed_by = job.exit_code, job.exit_signal, job.killed_by
                end_job(core, other, event, now, reason=reason)


def _tell_waiting(core: Core, job: Job) -> None:
    from understudy.controller.allocate import tell_waiting  # noqa: PLC0415 - it ends jobs through this module

    tell_waiting(core, job)


def _why(job: Job, event: JobEvent) -> str:
    """What the job's output says of its end."""
    if event is JobEvent.PREEMPTED:
        return "PREEMPTION"
    return "JOB REQUEUE" if job.flags & JobFlag.REQUEUE else ""


def terminate(core: Core, job: Job, nodes: int, why: str = "") -> None:
    """Have the node daemons end what is left of the job on the nodes (a bitmap), until they say that they will or the nodes are given back."""
    run, job_id = job.restarts, job.job_id

    def is_wanted() -> bool:
        return bool(job.completing_nodes & nodes) and job.restarts == run

    parts = core.parts(nodes)
    told = node_environment(core, job, is_over=True)
    lingers = core.settings.emulates_jobs and not (job.script_ended or job.interactive or job.het_offset)
    if len(parts) == 1:
        daemon, part = parts[0]
        expression = job.node_list if part == job.completing_nodes else core.names.to_expression(part)
        core.agents.send(daemon.name, TerminateJob(job_id, run, expression, told, why, lingers), wanted=is_wanted)
    elif parts:
        names = core.names
        core.agents.send_to_many(
            [(daemon.name, names.to_expression(part)) for daemon, part in parts],
            lambda expression: TerminateJob(job_id, run, expression, told, why, lingers),
            wanted=is_wanted,
        )


def terminate_parts(core: Core, job: Job, parts: list[tuple[DaemonRecord, int]]) -> None:
    """Have daemons end what a job that goes on elsewhere has on nodes (bitmaps) that it has lost. Nobody waits for them."""
    for daemon, part in parts:
        core.agents.send(daemon.name, TerminateJob(job.job_id, job.restarts, core.names.to_expression(part)))


def signal_job(core: Core, job: Job, signal: int, *, batch_only: bool) -> None:
    """Send a signal to the job's processes, or to its script alone."""
    assert job.allocation is not None
    run = job.restarts
    message = SignalJob(job.job_id, run, signal, batch_only)

    def is_wanted() -> bool:
        return job.restarts == run and job.is_active

    nodes = job.allocation.nodes
    parts = core.parts(nodes & -nodes if batch_only else nodes)
    if len(parts) == 1:
        core.agents.send(parts[0][0].name, message, wanted=is_wanted)
    elif parts:
        core.agents.send_to_many(
            [(daemon.name, core.names.to_expression(part)) for daemon, part in parts], lambda _expression: message, wanted=is_wanted
        )


def epilog_complete(core: Core, message: EpilogComplete, sender: Sender) -> Message:
    """Nodes are free of the job. Without nodes: all for which the sender stands."""
    _require_daemon(sender)
    if message.failed:
        _drain(core, message.failed, "Epilog error", core.time.now())
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


def give_back(core: Core, job: Job, nodes: int, now: float, *, by_epilog: bool = False) -> None:
    """The nodes (a bitmap) that a completing job held are free again; `by_epilog`: they said so."""
    if not nodes:
        return
    allocation = job.allocation
    assert allocation is not None
    table = core.tables.nodes
    if job.held is None:
        table.release(allocation, nodes)
    elif job.held.nodes & nodes:
        table.release(job.held, nodes)
    job.completing_nodes &= ~nodes
    if job.steps:
        end_steps(core, job, nodes)
    freed = nodes
    if len(core.completing) > 1:
        for other in core.completing.values():
            freed &= ~other.completing_nodes
    table.completing_nodes &= ~freed
    table.note_departure(nodes & table.idle_nodes, int(now))
    for react in core.when_freed:
        react(core, now)
    core.last_node_update = now
    if job.completing_nodes:
        core.journal.job(job.job_id)  # before others start on these nodes: after a crash they must not be taken for this job's
    else:
        _all_given_back(core, job, now)
    core.changed("free" if job.script_ended or job.completing_nodes or not by_epilog else "cleaned", now)


def _all_given_back(core: Core, job: Job, now: float) -> None:
    del core.completing[job.job_id]
    if core.gang is not None:
        core.gang.remove(job, now)
    job.flags = JobFlag.NONE if job.flags == JobFlag.COMPLETING else job.flags & ~JobFlag.COMPLETING
    core.last_job_update = now
    if job.array is not None and job.array.limit:
        core.changed("change", now)  # another task may run now
    if job.is_pending:  # requeued: now it may wait for its next run
        enqueue_again(core, job, now)  # only now: until here messages about the old run may come
        if core.dependents or core.singletons:
            notify_dependents(core, job, now)
        core.journal.job(job.job_id)
        core.changed("change", now)
    elif not any(takes(core, job, now) for takes in core.when_over):
        note_end(core, job, now)


def enqueue_again(core: Core, job: Job, now: float, *, begin_time: int | None = None) -> None:
    """A requeued job of which no node has anything any more: it is as if it were submitted now, to begin when its old credential is worthless."""
    job.allocation, job.held, job.node_list = None, None, ""
    job.restarts += 1
    job.waits, job.waits_since = NO_WAITS, now
    job.steps, job.next_step_id, job.batch_usage = NO_STEPS, 0, NO_USAGE
    job.submit_time = int(now)
    job.begin_time = begin_time or int(now) + core.settings.credential_lifetime_s + 1
    core.tables.pending[job.job_id] = job
    review(core, job, now)


def _is_past_limit(core: Core, job: Job, now: float) -> bool:
    """A script that ends by itself after its limit, before the controller has looked: Slurm calls that a timeout, too."""
    if job.end_time is None or core.policy.exact_limits:
        return False
    return job.end_time + over_time_limit_s(core, core.tables.partitions.get(job.partition)) < int(now)


def _drain(core: Core, nodes: str, reason: str, now: float) -> None:
    from understudy.controller.node_events import drain  # noqa: PLC0415 - it ends jobs through this module

    drain(core, nodes, reason, now)


def _end_badly(core: Core, job: Job, message: BatchComplete, now: float) -> None:
    settings = core.settings
    if message.exit_code in settings.requeue_exit_hold_codes or message.exit_code in settings.requeue_exit_codes:
        from understudy.controller.requeue import requeue_after_exit  # noqa: PLC0415 - rare

        requeue_after_exit(core, job, now, hold=message.exit_code in settings.requeue_exit_hold_codes)
        return
    end_job(core, job, JobEvent.EXITED_BADLY, now, reason=LAUNCH_FAILURE if message.signal else "NonZeroExitCode")


def _require_daemon(sender: Sender) -> None:
    if not sender.is_daemon:
        raise SlurmError(ErrorCode.ACCESS_DENIED)
