"""scancel: jobs, tasks and steps are ended or get a signal.

Place: requests; `jobs/cancel.py` does it. Follows: scancel(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.changes import job_changed
from understudy.controller.core.lookups import may_control
from understudy.controller.jobs.buffers import hurry
from understudy.controller.jobs.cancel import SIGCONT, SIGKILL, SIGSTOP, cancel
from understudy.controller.jobs.crontabs import disable
from understudy.controller.jobs.orders import signal_job, signal_steps
from understudy.controller.pending.arrays import withdraw
from understudy.controller.requests.select import for_each
from understudy.controller.requests.steps import cancel_step
from understudy.controller.tables.het_job import components, require_whole
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag
from understudy.protocol.messages import JobResults

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import CancelJobs


def cancel_jobs(core: Core, message: CancelJobs, sender: Sender) -> JobResults:
    """Cancel or signal each job named, or all that match and are not finished. Of those named only
    what is in a state that was asked for.
    """
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
    """Take waiting tasks out of their array. Whether that is all: it is not if they are to be
    signalled, or are the last ones.
    """
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


def _only_stages_out(core: Core, job: Job, message: CancelJobs, now: float) -> bool:
    """Heed --hurry, of a job whose data are on their way already, too. Whether it does nothing but
    stage out: there is no more to cancel then.
    """
    if message.hurry:
        hurry(core, job, now)
    return bool(job.flags & JobFlag.STAGE_OUT)


def _cancel_or_signal(
    core: Core, job: Job, message: CancelJobs, sender: Sender, now: float
) -> None:
    if not may_control(core, sender.user_id, job):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if core.tables.burst_buffers and _only_stages_out(core, job, message, now):
        return
    if job.is_finished:
        raise SlurmError(ErrorCode.ALREADY_DONE)
    signal = (
        SIGKILL
        if message.signal is None and message.batch_only and job.is_active
        else message.signal
    )
    if signal is None or (signal == SIGKILL and (job.is_pending or not message.batch_only)):
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
        advance(job, JobEvent.STOPPED if signal == SIGSTOP else JobEvent.CONTINUED, now)
        job_changed(core, job, now)
