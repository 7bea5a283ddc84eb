"""What reservations do as time goes on: they begin, end, come again, and are forgotten; and what that means to jobs.

Place: the controller's core. The controller's loop looks every five looks whether a reservation has begun, which asks for scheduling, and every
thirty seconds which are over. Both are timers for the next look that matters, and only while there are jobs to which it could matter: what is shown
is brought up to date when somebody asks. Follows: scontrol(1) "RESERVATIONS"; slurm.conf(5) ResvOverRun.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.alarms import SLACK_S, is_look, next_look, watch_reservation
from understudy.controller.core import log
from understudy.controller.eligibility import review
from understudy.controller.scheduling.looks import LOOK_S, look, look_before
from understudy.controller.scheduling.looks import look_from as first_look
from understudy.controller.scheduling.main_pass import kept_back, run_length
from understudy.controller.scheduling.reserved import DELETED, MAINTENANCE, WAITS, Reservation, blocked_cores
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.reservations import (
    ALL_NODES,
    ANY_NODES,
    DAILY,
    FLEX,
    HOURLY,
    MAINT,
    NO_HOLD_JOBS_AFTER,
    PART_NODES,
    PURGE_COMP,
    REPEATS,
    REPLACE,
    SPEC_NODES,
    STATIC,
    TIME_FLOAT,
    WEEKDAY,
    WEEKEND,
    WEEKLY,
)
from understudy.model.states import JobFlag

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.core import Core
    from understudy.controller.job import Allocation, Job
    from understudy.controller.partitions import Partition

LOOKS_A_BEGIN: Final = 5  # of the controller's loop, from one look for begun reservations to the next
LOOKS_AN_END: Final = 30
IDLE_ROUNDS: Final = 10  # a week of days, and some: jobs for which no time was right in all of them wait for something else
_OWN_NODES: Final = SPEC_NODES | ALL_NODES | PART_NODES | ANY_NODES | STATIC  # its nodes are not replaced
FRIDAY, SATURDAY, SUNDAY = 4, 5, 6


# --- jobs ----------------------------------------------------------------------------------------------------------------------


def check_access(core: Core, names: str, user_id: int, account: str) -> None:
    """Whether a job of the user may be in all the reservations of the list.

    Raises:
        SlurmError: one of them does not exist, or is not for the user.
    """
    table = core.tables.reservations
    for name in names.split(","):
        reservation = table.by_name.get(name)
        if reservation is None:
            raise SlurmError(ErrorCode.INVALID_RESERVATION)
        if not reservation.admits(user_id, account, core.users.groups_of):
            raise SlurmError(ErrorCode.RESERVATION_ACCESS_DENIED)


def first_reason(core: Core, job: Job, now: float) -> str:
    """Why reservations will keep a new job from starting; "" if they do not."""
    table = core.tables.reservations
    partition = core.tables.partitions.get(job.partitions[0])
    if partition is None or table.magnetic_for(job, now):
        return ""
    own = next(iter(table.of(job)), None)
    look = table.look(job, own, partition, partition.nodes & core.tables.nodes.up_nodes, now, int(now), run_length(job, partition))
    return kept_back(core.selector, job, partition, look, core.tables)


def earliest_start(core: Core, job: Job, partition: Partition, now: float) -> tuple[int, int] | None:
    """(earliest start in seconds, bitmap of nodes) if the running jobs end at their limits, of what reservations leave to it now; or None.

    Raises:
        SlurmError: the job's own reservation has not begun, or is over.
    """
    table, tables, up_nodes = core.tables.reservations, core.tables, core.tables.nodes.up_nodes
    if not table:
        return core.selector.will_run(job, partition, up_nodes, tables, int(now))
    own = next(iter(table.of(job)), None)
    look = table.look(job, own, partition, partition.nodes & up_nodes, now, int(now), run_length(job, partition))
    if look.reason == WAITS:
        raise SlurmError(ErrorCode.INVALID_TIME)
    if look.reason:
        return None
    job.blocked_cores = blocked_cores(look, own, tables.nodes)
    found = core.selector.will_run(job, partition, look.nodes, tables, int(now))
    job.blocked_cores = None
    return found


def may_take(core: Core, job: Job, partition: Partition, allocation: Allocation, now: float) -> bool:
    """Whether no reservation stands against the job's start there."""
    table, nodes = core.tables.reservations, core.tables.nodes
    own = table.by_name.get(job.used_reservation) if job.used_reservation else None
    if job.spec.reservation and own is None:  # the policy knows nothing of reservations
        own = next(iter(table.of(job)), None)
        if own is None:
            return False
        job.used_reservation = own.name
    look = table.look(job, own, partition, partition.nodes & nodes.up_nodes, now, int(now), run_length(job, partition))
    if look.reason or allocation.nodes & ~look.nodes:
        return False
    blocked = blocked_cores(look, own, nodes)
    return not any(group.nodes >> node & 1 and group.cores & mask for node, mask in blocked.items() for group in allocation.groups)


def watch_end(core: Core, job: Job) -> None:
    """The job runs in a reservation: it ends with it, ResvOverRun later."""
    when = latest_end(core, job)
    if when != inf:
        watch_reservation(core, job, when)
    reservation = core.tables.reservations.by_name.get(job.used_reservation)
    if reservation is not None and reservation.flags & REPLACE:  # its nodes are in use from now on
        _replace_nodes(core, core.time.now(), [reservation])
        arm(core)


def latest_end(core: Core, job: Job) -> float:
    """When the job's reservation lets it run no longer."""
    reservation = core.tables.reservations.by_name.get(job.used_reservation)
    over = core.settings.reservation_over_run_s
    if reservation is None or over is None or reservation.flags & FLEX:
        return inf
    return reservation.end_time + over


def jobs_in(core: Core, reservation: Reservation) -> list[Job]:
    """The pending and running jobs of a reservation."""
    name = reservation.name
    found = [job for job in core.tables.pending.values() if job.spec.reservation and name in job.spec.reservation.split(",")]
    return [*found, *(job for job in core.tables.running.values() if job.used_reservation == name)]


# --- time ----------------------------------------------------------------------------------------------------------------------


def look_from(core: Core, when: float, every: int) -> float:
    """The loop's first look at or after that time, counting only each `every`th."""
    number = first_look(core.start_time, when)
    return look(core.start_time, number + -(number + 1) % every)


def last_look(core: Core, now: float, every: int) -> float:
    """The loop's last such look; before the first, the start."""
    number = look_before(core.start_time, now)
    number -= (number + 1) % every
    return look(core.start_time, number) if number >= 0 else core.start_time


def catch_up(core: Core, now: float) -> None:
    """Do what the loop's looks until now have done."""
    table = core.tables.reservations
    begins, ends = last_look(core, now, LOOKS_A_BEGIN), last_look(core, now, LOOKS_AN_END)
    has_begun = is_over = False
    for reservation in list(table):
        if reservation.flags & TIME_FLOAT:
            continue
        while reservation.end_time <= now and _come_again(reservation):
            is_over = True
            if reservation.was_active:
                _run(core, core.settings.reservation_epilog, reservation)
            reservation.was_active = False
            reservation.idle_rounds += 1
            core.journal.reservation(reservation.name)
        if reservation.end_time <= now and not reservation.has_ended:
            is_over = reservation.has_ended = True
            _run(core, core.settings.reservation_epilog, reservation)
        if not reservation.was_active and reservation.start_time <= begins:
            reservation.was_active = has_begun = True
            _run(core, core.settings.reservation_prolog, reservation)
        if reservation.flags & PURGE_COMP and reservation.end_time > now and _is_idle_too_long(core, reservation, ends):
            reservation.end_time = int(ends)
            is_over = True
        if reservation.end_time <= ends:
            _forget(core, reservation, now)
    if has_begun or is_over:
        core.last_node_update = now
        core.tables.version += 1
        # The end of a reservation asks nobody to schedule; those who look anyhow will see it.
        core.policy.note("change" if has_begun or core.policy.exact_limits else "priority", now)


def _run(core: Core, program: str, reservation: Reservation) -> None:
    """Run ResvProlog or ResvEpilog; nobody waits for it. Where jobs are emulated no program of the site is run."""
    if program and not core.settings.emulates_jobs:
        core.journal.reservation(reservation.name)  # after a restart it is not run again
        core.run_script([program, reservation.name], {}, lambda code: log.error("%s ended with %d", program, code) if code else None)


def something_has_changed(core: Core) -> None:
    """What jobs there are may matter to a reservation."""
    if core.tables.reservations:
        arm(core)


def arm(core: Core) -> None:
    """Set the timer to the next look or end that could matter to a job."""
    table = core.tables.reservations
    now = core.time.now()
    when = inf
    is_idle = bool(table) and _is_idle(core)
    settings = core.settings
    has_programs = bool(settings.reservation_prolog or settings.reservation_epilog) and not settings.emulates_jobs
    for each in table if core.tables.pending or core.tables.running or has_programs else ():
        if each.flags & TIME_FLOAT or (is_idle and each.flags & REPEATS):
            continue
        if not each.was_active:
            when = min(when, look_from(core, max(each.start_time, now), LOOKS_A_BEGIN))
        if each.end_time > now:
            when = min(when, each.end_time)
        elif each.flags & MAINT or jobs_in(core, each):
            when = min(when, look_from(core, now + LOOK_S / 2, LOOKS_AN_END))
        if each.flags & PURGE_COMP and each.is_active(now) and not jobs_in(core, each):
            until = now if each.idle_since is None else each.idle_since + each.purge_comp_s
            when = min(when, look_from(core, max(until, now + LOOK_S / 2), LOOKS_AN_END))
    when = min(when, _next_exchange(core, now))
    timer = core.reservation_timer
    if timer is not None:
        if timer[0] == when:
            return
        timer[1].cancel()
        core.reservation_timer = None
    if when != inf:
        core.reservation_timer = (when, core.at(max(when, now), _due, core))


def _is_idle(core: Core) -> bool:
    """Whether repeating reservations come and go, and nothing else happens. Else they would keep virtual time going for ever."""
    if core.tables.running or not any(each.flags & REPEATS for each in core.tables.reservations):
        return False
    pending = core.tables.pending.values()
    stamp = (core.last_partition_update, core.tables.nodes.generation, [(job.job_id, job.restarts, job.priority > 0, job.spec) for job in pending])
    if stamp != core.reservation_stamp:
        core.reservation_stamp = stamp
        for each in core.tables.reservations:
            each.idle_rounds = 0
    return all(each.idle_rounds >= IDLE_ROUNDS for each in core.tables.reservations if each.flags & REPEATS)


def _next_exchange(core: Core, now: float) -> float:
    """When nodes are next replaced: those that take no jobs at the loop's next look, those in use when time limits are looked at."""
    when = inf
    for each in core.tables.reservations:
        if (bad := _worn_out(core, each, now)) and _spare(core, each, now):
            is_down = bool(bad & ~core.tables.nodes.up_nodes)
            when = min(when, look_from(core, now + SLACK_S, 1) if is_down else next_look(core, now + SLACK_S))
    return when


def _due(core: Core) -> None:
    core.reservation_timer = None
    now = core.time.now()
    _replace_nodes(core, now, core.tables.reservations, in_use=is_look(core, now))
    catch_up(core, now)
    arm(core)


def _worn_out(core: Core, reservation: Reservation, now: float, *, in_use: bool = True) -> int:
    """Nodes that the reservation would have others for: those that take no jobs and, with REPLACE, those that are in use."""
    if reservation.cores is not None or reservation.flags & _OWN_NODES or reservation.end(now) <= now:
        return 0
    nodes = core.tables.nodes
    bad = reservation.nodes & ~nodes.up_nodes
    if in_use and reservation.flags & REPLACE and (reservation.flags & TIME_FLOAT or reservation.is_active(now)):
        bad |= reservation.nodes & ~nodes.idle_nodes
    return bad


def _spare(core: Core, reservation: Reservation, now: float) -> int:
    """Idle nodes that could come into the reservation."""
    from understudy.controller.update_reservations import free_nodes  # noqa: PLC0415 - which builds on this module

    partition = core.tables.partitions.get(reservation.partition)
    if partition is None:
        return 0
    return free_nodes(core, reservation, partition, now, rather=True) & core.tables.nodes.idle_nodes & ~reservation.nodes


def _replace_nodes(core: Core, now: float, reservations: Iterable[Reservation], *, in_use: bool = True) -> None:
    """Put idle nodes in place of those that are worn out, as far as there are some: first for those that take no jobs, then for the last in use."""
    from understudy.controller.update_reservations import pick  # noqa: PLC0415 - which builds on this module

    for each in reservations:
        bad = _worn_out(core, each, now, in_use=in_use)
        spare = _spare(core, each, now) if bad else 0
        if not spare:
            continue
        count = min(bad.bit_count(), spare.bit_count())
        down = bad & ~core.tables.nodes.up_nodes
        going = nodeset.lowest(down, min(count, down.bit_count()))
        busy = bad & ~down
        staying = bad.bit_count() - count
        if going.bit_count() < count:
            going |= busy & ~nodeset.lowest(busy, staying)
        each.nodes = (each.nodes & ~going) | pick(core, spare, count)
        core.journal.reservation(each.name)
        core.last_reservation_update = core.last_node_update = now
        core.changed("change", now)


def _come_again(reservation: Reservation) -> bool:
    """Move a repeating reservation to its next time. False if it is none."""
    flags = reservation.flags
    if flags & HOURLY:
        step = timedelta(hours=1)
    elif flags & (DAILY | WEEKDAY | WEEKEND):
        step = timedelta(days=1)
    elif flags & WEEKLY:
        step = timedelta(weeks=1)
    else:
        return False
    start = datetime.fromtimestamp(reservation.start_time)  # noqa: DTZ006 - days are those of the site's clock
    while True:
        start += step
        if flags & WEEKDAY and start.weekday() >= SATURDAY:
            continue
        if flags & WEEKEND and start.weekday() < SATURDAY:
            continue
        break
    duration = reservation.duration_s
    reservation.start_time = int(start.timestamp())
    reservation.end_time = reservation.start_time + duration
    reservation.has_ended = False
    return True


def skip(reservation: Reservation) -> bool:
    """Leave out the time that runs or comes next. False if it does not repeat."""
    return _come_again(reservation)


def _is_idle_too_long(core: Core, reservation: Reservation, look: float) -> bool:
    """PURGE_COMP: nobody has used an active reservation for so long."""
    if reservation.start_time > look:
        return False
    if jobs_in(core, reservation):
        reservation.idle_since = None
        return False
    if reservation.idle_since is None:
        reservation.idle_since = max(reservation.start_time, int(look))
    return reservation.idle_since + reservation.purge_comp_s <= look


def _forget(core: Core, reservation: Reservation, now: float) -> None:
    """A reservation that is over is deleted when no job runs in it; those that still wait for it are held, or go on without it."""
    jobs = jobs_in(core, reservation)
    if any(job.is_running for job in jobs):
        return
    remove(core, reservation)
    for job in jobs:
        others = [name for name in job.spec.reservation.split(",") if name != reservation.name and name in core.tables.reservations.by_name]
        job.spec = msgspec.structs.replace(job.spec, reservation=",".join(others))
        if not others and not reservation.flags & NO_HOLD_JOBS_AFTER:
            job.priority, job.admin_priority, job.held_by = 0, None, DELETED.format(reservation.name)
            job.flags |= JobFlag.RESV_DEL_HOLD
            job.expected_start, job.expected_nodes = None, 0
            job.reason, job.reason_detail = job.held_by, ""
        elif job.reason == WAITS:
            job.reason, job.reason_detail = "None", ""
        review(core, job, now)
        core.last_job_update = now
        core.journal.job(job.job_id)
    if reservation.flags & MAINT:
        for job in core.tables.pending.values():
            if job.reason_detail == MAINTENANCE:
                job.reason, job.reason_detail = "None", ""
                core.last_job_update = now
                core.journal.job(job.job_id)
    if jobs:
        core.policy.note("priority", now)


def remove(core: Core, reservation: Reservation) -> None:
    """It is there no longer."""
    del core.tables.reservations.by_name[reservation.name]
    core.journal.reservation(reservation.name)
    core.last_reservation_update = core.last_node_update = core.time.now()


def shown_nodes(core: Core, now: float) -> tuple[int, int]:
    """(nodes under maintenance, nodes reserved otherwise), as of the loop's last look."""
    table = core.tables.reservations
    if not table:
        return 0, 0
    catch_up(core, now)
    maintained, reserved = table.nodes_in(max(last_look(core, now, LOOKS_A_BEGIN), 0))
    return maintained, reserved
