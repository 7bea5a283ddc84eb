"""Cancelling and signalling jobs.

Place: the controller's core. Follows: scancel(1): only the owner, operators and coordinators of the account may; a pending job ends at once, a
running one is completing until its nodes are free of it; jobs that are ending already are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.arrays import for_each, withdraw
from understudy.controller.complete import end_job, signal_job
from understudy.controller.crontabs import disable
from understudy.controller.eligibility import forget_dependency, note_end
from understudy.controller.het_jobs import components, require_whole
from understudy.controller.job import JobEvent, advance
from understudy.controller.rights import may_control
from understudy.controller.steps import cancel_step, signal_steps
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag
from understudy.protocol.messages import JobResults

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import CancelJobs

SIGKILL: Final = 9
SIGCONT: Final = 18
SIGSTOP: Final = 19


def cancel_jobs(core: Core, message: CancelJobs, sender: Sender) -> JobResults:
    """Cancel or signal each job named, or all that match and are not finished. Of those named only what is in a state that was asked for."""
    now = core.time.now()
    scripts = 0
    states = message.where.get("state", ()) if message.job_ids else ()

    def act(job: Job) -> None:
        nonlocal scripts
        if states and int(job.state) not in states:
            return
        _cancel_or_signal(core, job, message, sender, now)
        scripts += message.batch_only

    def act_on_tasks(job: Job, tasks: int) -> bool:
        if states and int(job.state) not in states:
            return True
        return _withdraw_tasks(core, job, tasks, message, sender)

    if not any("." in text for text in message.job_ids):
        results = for_each(core, message.job_ids, message.where, act, act_on_tasks)
        core.counters.cancelled += scripts or sum(not code for _, code, _ in results)
        return JobResults(results)
    results = []
    for text in message.job_ids:
        if "." in text:
            results.append(_cancel_step(core, text, message.signal, sender))
        else:
            results += (done := for_each(core, [text], {}, act, act_on_tasks))
            core.counters.cancelled += sum(not code for _, code, _ in done)
    return JobResults(results)


def _withdraw_tasks(core: Core, job: Job, tasks: int, message: CancelJobs, sender: Sender) -> bool:
    """Take waiting tasks out of their array. Whether that is all: it is not if they are to be signalled, or are the last ones."""
    if job.is_active or message.signal not in {None, SIGKILL} or message.batch_only:
        return False
    if not may_control(core, sender.user_id, job):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if job.is_finished:
        raise SlurmError(ErrorCode.ALREADY_DONE)
    is_last = tasks == job.array_tasks
    withdraw(core, job, tasks)
    if is_last:
        job.killed_by = sender.user_id
        cancel(core, job, core.time.now())
    return True


def _cancel_step(core: Core, text: str, signal: int | None, sender: Sender) -> tuple[str, int, str]:
    try:
        cancel_step(core, text, signal, sender)
    except SlurmError as error:
        return text, error.code, error.text
    return text, 0, ""


def _cancel_or_signal(core: Core, job: Job, message: CancelJobs, sender: Sender, now: float) -> None:
    if not may_control(core, sender.user_id, job):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if job.is_finished:
        raise SlurmError(ErrorCode.ALREADY_DONE)
    signal = SIGKILL if message.signal is None and message.batch_only and job.is_active else message.signal
    if signal is None or (signal == SIGKILL and not message.batch_only):
        require_whole(job)
        for each in components(job):
            if not each.is_finished:
                each.killed_by = sender.user_id
                if core.crontabs.entries:
                    disable(core, each)
                cancel(core, each, now)
    elif job.is_pending:
        raise SlurmError(ErrorCode.IN_TRANSITION)  # it may start any moment: scancel asks again
    elif message.batch_only:
        signal_job(core, job, signal, batch_only=not message.full)
    else:  # its steps are meant, and with --full the script, too
        if message.full:
            signal_job(core, job, signal, batch_only=False)
        signal_steps(core, job, signal)
    if signal in (SIGSTOP, SIGCONT) and job.is_active:
        job.flags = job.flags | JobFlag.STOPPED if signal == SIGSTOP else job.flags & ~JobFlag.STOPPED
        core.last_job_update = now
        core.journal.job(job.job_id)


def cancel(core: Core, job: Job, now: float) -> None:
    """End the job now, whatever it is doing."""
    if job.is_active:
        end_job(core, job, JobEvent.CANCELLED, now, reason="None")
        return
    waited = core.tables.pending.pop(job.job_id, None)
    advance(job, JobEvent.CANCELLED, now)
    job.start_time = job.end_time = int(now)
    job.expected_start, job.expected_nodes = None, 0
    if job.dependency is not None:
        forget_dependency(core, job)
    core.last_job_update = now
    core.journal.job(job.job_id)
    if job.is_completing:
        return  # requeued, and its nodes are not free yet; `give_back` does the rest
    note_end(core, job, now)
    if waited is not None:
        core.changed("change", now)
