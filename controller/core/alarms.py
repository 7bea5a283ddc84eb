"""When the controller checks a job again: its limit, its deadline, its begin time ...

Place: the controller's core; knows no handler (`reactions.py` lists them). Slurm checks every 30 s,
counted from about a second after the controller's start, so a job overruns its limit by up to 30 s;
begin times and delays of dependencies are met to the second. Follows: slurm.conf(5) OverTimeLimit.
"""

from __future__ import annotations

import heapq
import math
from functools import partial
from typing import TYPE_CHECKING, Final

from understudy.controller.tables.alarms import Alarm

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition

PERIOD_S: Final = 30
SLACK_S: Final = 0.01  # ours: a time since the epoch is not exact
PHASE_S: Final = 1  # the loop's first tick is about a second after the start
# sbatch(1) --mail-type=TIME_LIMIT_50: percents of the time limit that can be told of
LEVELS: Final = (50, 80, 90)


def over_time_limit_s(core: Core, partition: Partition | None) -> float:
    """How long a job may overrun its limit."""
    if partition is not None and partition.over_time_limit_is_unlimited:
        return math.inf
    if partition is not None and partition.over_time_limit_s is not None:
        return partition.over_time_limit_s
    over = core.settings.over_time_limit_s
    return math.inf if over is None else over


def watch_limits(core: Core, job: Job, *_: object) -> None:
    """The job runs, or its limit has changed: note when to check it."""
    if job.spec.deadline is not None:
        watch(core, job.spec.deadline, job, Alarm.DEADLINE)
    if job.end_time is None or core.policy.exact_limits:
        return
    until = job.end_time + over_time_limit_s(core, core.tables.partitions.get(job.partition))
    if until != math.inf:
        watch(core, until, job, Alarm.LIMIT)
    if job.spec.kill_signal and not job.kill_sent:
        watch(core, job.end_time - job.spec.kill_signal_before_s - PERIOD_S, job, Alarm.WARNING)
    if core.mailer is not None and "TIME_LIMIT_" in job.spec.mail_type and job.time_limit_s:
        for level in LEVELS:
            watch(core, job.end_time - job.time_limit_s * (100 - level) / 100, job, Alarm.MAIL)


def watch_deadline(core: Core, job: Job) -> None:
    """A pending job with --deadline: it ends when that is past."""
    if job.spec.deadline is not None:
        watch(core, job.spec.deadline, job, Alarm.DEADLINE)


def watch_reservation(core: Core, job: Job, when: float) -> None:
    """A running job that ends with its reservation at that time."""
    watch(core, when, job, Alarm.RESERVATION)


def watch_configuration(core: Core, job: Job) -> None:
    """A job's nodes may be there now: it is told so at the next check."""
    watch(core, core.time.now(), job, Alarm.CONFIGURATION)


def watch_command(core: Core, job: Job) -> None:
    """Somebody waits for the end of the job, which is ended InactiveLimit after he is gone."""
    partition = core.tables.partitions.get(job.partition)
    limit_s = core.settings.inactive_limit_s
    if (
        limit_s
        and job.interactive
        and not core.time.is_virtual
        and job.job_id not in core.silent
        and not (partition and partition.root_only)
    ):
        core.silent[job.job_id] = None
        watch(core, core.time.now() + limit_s, job, Alarm.COMMAND)


def watch(core: Core, when: float, job: Job, what: Alarm) -> None:
    """Check the job, in this run of it, at the first check at or after that time."""
    heapq.heappush(core.alarms.heap, (when, job.job_id, job.restarts, what))
    if core.alarms.heap[0][0] == when:
        _arm(core)


def unwatch(core: Core, job: Job, *_: object) -> None:
    """The job has ended. If the next check was for it, there is no need of it: under virtual
    time that would drive time on for nothing.
    """
    heap = core.alarms.heap
    if not heap or heap[0][1] != job.job_id or core.alarms.timer is None:
        return
    while heap and not _matters(core, heap[0]):
        heapq.heappop(heap)
    if not heap or next_check(core, heap[0][0]) > core.alarms.timer[0]:
        core.alarms.timer[1].cancel()
        core.alarms.timer = None
        _arm(core)


def _matters(core: Core, watched: tuple[float, int, int, Alarm]) -> bool:
    _, job_id, run, _ = watched
    job = core.tables.jobs.get(job_id)
    return job is not None and job.restarts == run and not job.is_finished


def next_check(core: Core, when: float) -> float:
    """The first time at or after `when` at which limits are checked."""
    first = core.start_time + PHASE_S
    return first + max(0, math.ceil((max(when, core.time.now()) - first) / PERIOD_S)) * PERIOD_S


def is_check(core: Core, now: float) -> bool:
    """Whether limits are checked now."""
    return abs((now - core.start_time - PHASE_S + PERIOD_S / 2) % PERIOD_S - PERIOD_S / 2) < SLACK_S


def _arm(core: Core) -> None:
    if not core.alarms.heap:
        return
    check = next_check(core, core.alarms.heap[0][0])
    if core.alarms.timer is not None:
        if core.alarms.timer[0] <= check:
            return
        core.alarms.timer[1].cancel()
    core.alarms.timer = (check, core.at(check, _check, core))


def _check(core: Core) -> None:
    alarms, now = core.alarms, core.time.now()
    alarms.timer = None
    while alarms.heap and alarms.heap[0][0] <= now:
        _, job_id, run, kind = heapq.heappop(alarms.heap)
        job = core.tables.jobs.get(job_id)
        if job is not None and job.restarts == run:
            alarms.handlers[kind](core, job, now)
    _arm(core)


def wait_until(core: Core, when: float, job_id: int) -> None:
    """Review the job at that time: its begin time has come, or a delay is over."""
    heapq.heappush(core.alarms.waits, (when, job_id))
    _arm_waits(core)


def _arm_waits(core: Core) -> None:
    alarms = core.alarms
    if not alarms.waits:
        return
    first = alarms.waits[0][0]
    if alarms.wait_timer is not None:
        if alarms.wait_timer[0] <= first:
            return
        alarms.wait_timer[1].cancel()
    alarms.wait_timer = (
        first,
        core.periodically(first, partial(_others_wait, core), _waits_are_over, core),
    )


def _others_wait(core: Core) -> bool:
    """Whether one of those who wait is not an entry of a crontab: for these alone virtual time does
    not go on.
    """
    return any(job_id not in core.crontabs.entries for _, job_id in core.alarms.waits)


def _waits_are_over(core: Core) -> None:
    alarms, now = core.alarms, core.time.now()
    alarms.wait_timer = None
    while alarms.waits and alarms.waits[0][0] <= now:
        _, job_id = heapq.heappop(alarms.waits)
        job = core.tables.jobs.get(job_id)
        if job is not None and job.is_pending and not job.is_completing:
            alarms.waited(core, job, now)
    _arm_waits(core)
