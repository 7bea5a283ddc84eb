"""Time limits: when a running job is warned (`--signal`) and ended.

Place: the controller's core. Slurm looks every 30 s, counted from about a second after the controller's start, so a job overruns its limit by up to
30 s. Textbook policies (`exact_limits`) have the node daemon end the job to the second instead. Follows: slurm.conf(5) OverTimeLimit, KillWait;
sbatch(1) --time, --signal, --deadline.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Final

from understudy.controller.complete import end_job, signal_job
from understudy.controller.core import log
from understudy.controller.eligibility import note_end
from understudy.controller.job import JobEvent, advance
from understudy.controller.mail import LEVELS
from understudy.controller.reservations import latest_end
from understudy.controller.steps import signal_steps
from understudy.model.states import JobFlag

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.partitions import Partition

PERIOD_S: Final = 30
SLACK_S: Final = 0.01  # a time since the epoch is not exact
PHASE_S: Final = 1  # the loop's first look is about a second after the start
LIMIT: Final = "limit"
WARNING: Final = "warning"
DEADLINE: Final = "deadline"
RESERVATION: Final = "reservation"
CONFIGURATION: Final = "configuration"
MAIL: Final = "mail"
COMMAND: Final = "command"


def over_time_limit_s(core: Core, partition: Partition | None) -> float:
    """How long a job may overrun its limit."""
    if partition is not None and partition.over_time_limit_is_unlimited:
        return math.inf
    if partition is not None and partition.over_time_limit_s is not None:
        return partition.over_time_limit_s
    over = core.settings.over_time_limit_s
    return math.inf if over is None else over


def watch_limits(core: Core, job: Job, partition: Partition | None) -> None:
    """The job runs, or its limit has changed: note when to look at it."""
    if job.spec.deadline is not None:
        _watch(core, job.spec.deadline, job, DEADLINE)
    if job.end_time is None or core.policy.exact_limits:
        return
    until = job.end_time + over_time_limit_s(core, partition)
    if until != math.inf:
        _watch(core, until, job, LIMIT)
    if job.spec.kill_signal and not job.kill_sent:
        _watch(core, job.end_time - job.spec.kill_signal_before_s - PERIOD_S, job, WARNING)
    if core.mailer is not None and "TIME_LIMIT_" in job.spec.mail_type and job.time_limit_s:
        for level in LEVELS:
            _watch(core, job.end_time - job.time_limit_s * (100 - level) / 100, job, MAIL)


def watch_deadline(core: Core, job: Job) -> None:
    """A pending job with --deadline: it ends when that is past."""
    if job.spec.deadline is not None:
        _watch(core, job.spec.deadline, job, DEADLINE)


def watch_reservation(core: Core, job: Job, when: float) -> None:
    """A running job that ends with its reservation at that time."""
    _watch(core, when, job, RESERVATION)


def watch_configuration(core: Core, job: Job) -> None:
    """A job's nodes may be there now: it is told so at the next look."""
    _watch(core, core.time.now(), job, CONFIGURATION)


def _watch(core: Core, when: float, job: Job, what: str) -> None:
    heapq.heappush(core.limit_heap, (when, job.job_id, job.restarts, what))
    if core.limit_heap[0][0] == when:
        _arm(core)


def unwatch(core: Core, job: Job) -> None:
    """The job has ended. If the next look was for it, there is no need to look then: under virtual time that would drive time on for nothing."""
    heap = core.limit_heap
    if not heap or heap[0][1] != job.job_id or core.limit_timer is None:
        return
    while heap and not _matters(core, heap[0]):
        heapq.heappop(heap)
    if not heap or next_look(core, heap[0][0]) > core.limit_timer[0]:
        core.limit_timer[1].cancel()
        core.limit_timer = None
        _arm(core)


def _matters(core: Core, watched: tuple[float, int, int, str]) -> bool:
    _, job_id, run, _ = watched
    job = core.tables.jobs.get(job_id)
    return job is not None and job.restarts == run and not job.is_finished


def next_look(core: Core, when: float) -> float:
    """The first time at or after `when` at which limits are looked at."""
    first = core.start_time + PHASE_S
    return first + max(0, math.ceil((max(when, core.time.now()) - first) / PERIOD_S)) * PERIOD_S


def is_look(core: Core, now: float) -> bool:
    """Whether limits are looked at now."""
    return abs((now - core.start_time - PHASE_S + PERIOD_S / 2) % PERIOD_S - PERIOD_S / 2) < SLACK_S


def _arm(core: Core) -> None:
    if not core.limit_heap:
        return
    look = next_look(core, core.limit_heap[0][0])
    if core.limit_timer is not None:
        if core.limit_timer[0] <= look:
            return
        core.limit_timer[1].cancel()
    core.limit_timer = (look, core.at(look, _look, core))


def _look(core: Core) -> None:
    core.limit_timer = None
    now = core.time.now()
    while core.limit_heap and core.limit_heap[0][0] <= now:
        _, job_id, run, what = heapq.heappop(core.limit_heap)
        job = core.tables.jobs.get(job_id)
        if job is None or job.restarts != run:
            continue
        if what == DEADLINE:
            _deadline(core, job, now)
        elif what == CONFIGURATION:
            finish_configuring(core, job, now)
        elif what == RESERVATION:
            _reservation(core, job, now)
        elif what == MAIL:
            _mail(core, job, now)
        elif what == COMMAND:
            _look_for_command(core, job, now)
        elif job.is_running:
            (_limit if what == LIMIT else _warn)(core, job, now)
    _arm(core)


def _limit(core: Core, job: Job, now: float) -> None:
    if job.end_time is None or job.end_time + over_time_limit_s(core, core.tables.partitions.get(job.partition)) > now:
        return  # its limit was changed; that noted another time
    if job.preempt_time is not None:
        from understudy.controller.preempt import end_preempted  # noqa: PLC0415 - preempting sets limits through this module

        end_preempted(core, job, now)
    else:
        _mail(core, job, now)
        end_job(core, job, JobEvent.TIMED_OUT, now, reason="TimeLimit")


def watch_command(core: Core, job: Job) -> None:
    """Somebody waits for the end of the job, which is ended InactiveLimit after he is gone."""
    partition = core.tables.partitions.get(job.partition)
    limit_s = core.settings.inactive_limit_s
    if limit_s and job.interactive and not core.time.is_virtual and job.job_id not in core.silent and not (partition and partition.root_only):
        core.silent[job.job_id] = None
        _watch(core, core.time.now() + limit_s, job, COMMAND)


def _look_for_command(core: Core, job: Job, now: float) -> None:
    since = core.silent.pop(job.job_id, None)
    if not job.is_active:
        return
    if any(message.until_end and not later.is_gone() for message, later in core.awaited.get(job.job_id, ())):
        core.silent[job.job_id] = None
    elif since is not None and now - since >= core.settings.inactive_limit_s:
        log.info("job %d: inactivity time limit reached", job.job_id)
        end_job(core, job, JobEvent.TIMED_OUT, now, reason="InactiveLimit")
        return
    else:
        core.silent[job.job_id] = now if since is None else since
    _watch(core, now + 1, job, COMMAND)


def _mail(core: Core, job: Job, now: float) -> None:
    """Who wants to hear how much of a job's time has passed hears it."""
    if core.mailer is not None and job.is_running and job.end_time is not None and job.time_limit_s:
        core.mailer.time_passes(job, 100 - (job.end_time - now) * 100 / job.time_limit_s)


def finish_configuring(core: Core, job: Job, now: float) -> None:
    """If a job's nodes have all booted, its script may begin, and its time counts from now."""
    if not job.is_running or not job.flags & JobFlag.CONFIGURING or job.allocation is None or job.job_id in core.in_prolog:
        return
    if job.allocation.nodes & core.tables.nodes.boot_nodes:
        return
    from understudy.controller.start import hand_over  # noqa: PLC0415 - starting jobs sets limits through this module

    job.flags &= ~JobFlag.CONFIGURING
    job.start_time = int(now)
    if job.time_limit_s is not None:
        job.end_time = job.start_time + job.time_limit_s
    core.last_job_update = now
    watch_limits(core, job, core.tables.partitions.get(job.partition))
    core.journal.job(job.job_id)
    daemon = core.daemon_of_node[job.allocation.first_node]
    if daemon is not None and not job.het_offset:  # the leader's script alone is launched
        hand_over(core, job, daemon)


def _reservation(core: Core, job: Job, now: float) -> None:
    if not job.is_running:
        return
    until = latest_end(core, job)
    if until <= now:
        end_job(core, job, JobEvent.TIMED_OUT, now, reason="TimeLimit")
    elif until != math.inf:  # it was changed, or has come again
        _watch(core, until, job, RESERVATION)


def _warn(core: Core, job: Job, now: float) -> None:
    if job.kill_sent or job.end_time is None or job.spec.kill_signal is None:
        return
    if job.end_time - job.spec.kill_signal_before_s - PERIOD_S > now:
        return
    job.kill_sent = True
    core.journal.job(job.job_id)
    if job.spec.kill_signal_batch:
        signal_job(core, job, job.spec.kill_signal, batch_only=True)
    else:  # sbatch(1) --signal: its steps are meant
        signal_steps(core, job, job.spec.kill_signal)


def _deadline(core: Core, job: Job, now: float) -> None:
    if job.spec.deadline is None or job.spec.deadline > now:
        return
    if job.is_active:
        end_job(core, job, JobEvent.DEADLINE_PASSED, now, reason="DeadLine")
    elif job.is_pending and job.job_id in core.tables.pending:
        end_by_deadline(core, job, now)


def end_by_deadline(core: Core, job: Job, now: float) -> None:
    """A pending job's deadline is past, or too near."""
    del core.tables.pending[job.job_id]
    advance(job, JobEvent.DEADLINE_PASSED, now)
    job.reason, job.reason_detail = "DeadLine", ""
    job.start_time = job.end_time = int(now)
    note_end(core, job, now)
