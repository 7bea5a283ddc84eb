"""What becomes of a job that another one preempts: it is ended, requeued or suspended, after its
grace time if it has one.

Place: jobs; whom to preempt is decided in understudy.controller.tables.preemption.
Follows: slurm.conf(5) PreemptMode, GraceTime, SchedulerParameters preempt_send_user_signal;
scontrol(1) PreemptTime, PreemptEligibleTime.

A grace time sets the job's end. Its steps get SIGCONT and SIGTERM at once, its script nothing; the
check of time limits that follows ends it, or another job that wants its place when the grace time
is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.alarms import watch_limits
from understudy.controller.core.changes import job_changed
from understudy.controller.core.core import log
from understudy.controller.jobs.end import end_job
from understudy.controller.jobs.orders import signal_job
from understudy.controller.jobs.requeue import requeue_job
from understudy.controller.jobs.suspend import preempt_suspend, resume_preempted
from understudy.controller.tables.chronicle import MAKES_ROOM
from understudy.controller.tables.het_job import whole
from understudy.controller.tables.job_states import JobEvent
from understudy.controller.tables.preemption import CANCEL, REQUEUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job


def make_room(core: Core, job: Job, victims: Sequence[Job], now: float) -> bool:
    """Preempt the victims for the job. Whether there is room at once; if not, the job preempts
    nobody for as long as ending them may take.
    """
    settings = core.settings
    since = job.preempting_since
    if since is not None and int(now) - since < settings.kill_wait_s + settings.message_timeout_s:
        return False
    at_once = [_preempt(core, victim, job, now) for victim in victims]
    if not all(at_once):
        job.preempting_since = int(now)
    return all(at_once)


def relent(core: Core, job: Job, now: float) -> None:
    """Those whom the job has suspended have made no room for it, and go on; for a while it preempts
    nobody.
    """
    job.preempting_since = int(now)
    resume_preempted(core, now)


def _preempt(core: Core, victim: Job, job: Job, now: float) -> bool:
    """Make room for the job. Whether it is there at once: so for a suspended victim, while others
    take a while to end.
    """
    preemption = core.tables.preemption
    assert preemption is not None
    if preemption.stands_still(victim):
        _chronicle(victim, job, now)
        log.info("job %d stands still for job %d", victim.job_id, job.job_id)
        victim.preemptions += 1
        preempt_suspend(core, victim, now)
        return True
    if victim.preempt_time is not None:
        if victim.end_time is not None and victim.end_time > now:
            return False  # in its grace time
        end_preempted(core, victim, now)
        return False
    log.info("job %d makes room for job %d", victim.job_id, job.job_id)
    _chronicle(victim, job, now)
    victim.preempt_time = int(now)
    victim.preemptions += 1
    grace_s = preemption.grace_s(victim)
    if not grace_s:
        end_preempted(core, victim, now)
        return False
    end = int(now) + grace_s
    if victim.end_time is None or victim.end_time > end:
        victim.end_time = end
        watch_limits(core, victim)
    if core.settings.preempt_sends_user_signal and victim.spec.kill_signal and not victim.kill_sent:
        victim.kill_sent = True
        if victim.spec.kill_signal_batch:
            signal_job(core, victim, victim.spec.kill_signal, batch_only=True)
    job_changed(core, victim, now)
    core.tables.version += 1
    core.tables.held_version += 1  # it ends earlier than was planned with
    return False


def _chronicle(victim: Job, job: Job, now: float) -> None:
    if victim.chronicle is not None:
        victim.chronicle.happened(now, MAKES_ROOM, job.told_as)


def preempt_at_once(core: Core, victim: Job, now: float) -> None:
    """Have a job go whose cores one of a higher partition has got: at once, as grace times do not
    count here.
    """
    victim.preempt_time = int(now)
    log.info("job %d makes room for one of a higher partition", victim.job_id)
    end_preempted(core, victim, now)


def end_preempted(core: Core, victim: Job, now: float) -> None:
    """Requeue or end the job for good; its grace time, if it had one, is over."""
    if not victim.is_active:
        return  # it has gone with another component of its job
    preemption = core.tables.preemption
    mode = preemption.mode_of(victim) if preemption is not None else CANCEL
    if mode == REQUEUE and victim.requeue and whole(victim)[0].job_id in core.scripts:
        requeue_job(core, victim, now, event=JobEvent.PREEMPTED)
    else:
        end_job(core, victim, JobEvent.PREEMPTED, now, reason="None")
