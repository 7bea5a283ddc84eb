"""Time limits: when a running job is warned (`--signal`) and ended.

Place: jobs; the handlers of alarms. Textbook policies (`exact_limits`) have the
node daemon end the job to the second instead. Follows: slurm.conf(5) OverTimeLimit, KillWait;
sbatch(1) --time, --signal, --deadline.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from understudy.controller.core.alarms import PERIOD_S, over_time_limit_s, watch
from understudy.controller.core.changes import job_changed
from understudy.controller.core.core import log
from understudy.controller.jobs.end import end_job, end_pending
from understudy.controller.jobs.orders import signal_job, signal_steps
from understudy.controller.jobs.preempt import end_preempted
from understudy.controller.reservations.admission import latest_end
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.alarms import Alarm
from understudy.controller.tables.job_states import JobEvent

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job


def time_limit_is_over(core: Core, job: Job, now: float) -> None:
    """The job has run as long as it may, unless its limit was changed; that noted another time."""
    if (
        not job.is_running
        or job.end_time is None
        or job.end_time + over_time_limit_s(core, core.tables.partitions.get(job.partition)) > now
    ):
        return
    if job.preempt_time is not None:
        end_preempted(core, job, now)
    else:
        tell_time(core, job, now)
        end_job(core, job, JobEvent.TIMED_OUT, now, reason="TimeLimit")


def send_warning(core: Core, job: Job, now: float) -> None:
    """It is time for the signal that the job asked for ahead of its end."""
    if not job.is_running or job.kill_sent or job.end_time is None or job.spec.kill_signal is None:
        return
    if job.end_time - job.spec.kill_signal_before_s - PERIOD_S > now:
        return
    job.kill_sent = True
    job_changed(core, job, now)
    if job.spec.kill_signal_batch:
        signal_job(core, job, job.spec.kill_signal, batch_only=True)
    else:  # sbatch(1) --signal: its steps are meant
        signal_steps(core, job, job.spec.kill_signal)


def tell_time(core: Core, job: Job, now: float) -> None:
    """Who wants to hear how much of a job's time has passed hears it."""
    if core.mailer is not None and job.is_running and job.end_time is not None and job.time_limit_s:
        core.mailer.time_passes(job, 100 - (job.end_time - now) * 100 / job.time_limit_s)


def check_command(core: Core, job: Job, now: float) -> None:
    """Is somebody still there for an interactive job?"""
    since = core.silent.pop(job.job_id, None)
    if not job.is_active:
        return
    if any(
        message.until_end and not later.is_gone()
        for message, later in core.awaited.get(job.job_id, ())
    ):
        core.silent[job.job_id] = None
    elif since is not None and now - since >= core.settings.inactive_limit_s:
        log.info("job %d: inactivity time limit reached", job.job_id)
        end_job(core, job, JobEvent.TIMED_OUT, now, reason="InactiveLimit")
        return
    else:
        core.silent[job.job_id] = now if since is None else since
    watch(core, now + 1, job, Alarm.COMMAND)


def reservation_is_over(core: Core, job: Job, now: float) -> None:
    """The job ends with its reservation, unless that was changed, or has come again."""
    if not job.is_running:
        return
    until = latest_end(core, job)
    if until <= now:
        end_job(core, job, JobEvent.TIMED_OUT, now, reason="TimeLimit")
    elif until != math.inf:
        watch(core, until, job, Alarm.RESERVATION)


def deadline_is_past(core: Core, job: Job, now: float) -> None:
    """Nothing of the job may go on after its deadline."""
    if job.spec.deadline is None or job.spec.deadline > now:
        return
    if job.is_active:
        end_job(core, job, JobEvent.DEADLINE_PASSED, now, reason="DeadLine")
    elif job.is_pending and job.job_id in core.tables.pending:
        end_by_deadline(core, job, now)
        core.changed(Note.CHANGE, now)  # what was planned for it is free


def end_by_deadline(core: Core, job: Job, now: float) -> None:
    """A pending job's deadline is past, or too near. Its exit code is shown as 0:1."""
    job.exit_signal = 1
    end_pending(core, job, JobEvent.DEADLINE_PASSED, now, reason="DeadLine")
