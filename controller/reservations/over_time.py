"""What reservations do as time goes on: they begin, end, come again, and are forgotten; and what
that means to jobs.

Place: reservations. The controller's loop checks every five ticks whether a reservation
has begun, which asks for scheduling, and every thirty seconds which are over. Both are timers for
the next tick that matters, and only while there are jobs to which it could matter: what is shown is
brought up to date when somebody asks. Follows: scontrol(1) "RESERVATIONS"; slurm.conf(5)
ResvOverRun.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.core.alarms import SLACK_S, is_check, next_check, watch_reservation
from understudy.controller.core.changes import job_changed
from understudy.controller.core.core import log
from understudy.controller.pending.eligibility import review
from understudy.controller.reservations.admission import jobs_in, latest_end
from understudy.controller.reservations.choose import free_nodes, pick
from understudy.controller.reservations.times import (
    IDLE_ROUNDS,
    TICKS_A_BEGIN,
    TICKS_AN_END,
    come_again,
    last_tick,
    tick_from,
)
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.controller.tables.reservation import DELETED, MAINTENANCE, WAITS, Reservation
from understudy.model import nodeset
from understudy.model.reservations import (
    ALL_NODES,
    ANY_NODES,
    MAINT,
    NO_HOLD_JOBS_AFTER,
    PART_NODES,
    PURGE_COMP,
    REPEATS,
    REPLACE,
    SPEC_NODES,
    STATIC,
    TIME_FLOAT,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

# its nodes are not replaced
_OWN_NODES: Final = SPEC_NODES | ALL_NODES | PART_NODES | ANY_NODES | STATIC


def watch_end(core: Core, job: Job, *_: object) -> None:
    """The job runs. In a reservation it ends with it, ResvOverRun later."""
    if not job.used_reservation:
        return
    when = latest_end(core, job)
    if when != inf:
        watch_reservation(core, job, when)
    reservation = core.tables.reservations.by_name.get(job.used_reservation)
    if reservation is not None and reservation.flags & REPLACE:  # its nodes are in use from now on
        _replace_nodes(core, core.time.now(), [reservation])
        arm(core)


def catch_up(core: Core, now: float) -> None:
    """Do what the loop's ticks until now have done."""
    table = core.tables.reservations
    begins, ends = last_tick(core, now, TICKS_A_BEGIN), last_tick(core, now, TICKS_AN_END)
    has_begun = is_over = False
    for reservation in list(table):
        if reservation.flags & TIME_FLOAT:
            continue
        while reservation.end_time <= now and come_again(reservation):
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
            for job in jobs_in(core, reservation):
                if job.is_pending:
                    review(core, job, now)
                    job_changed(core, job, now)
        if (
            reservation.flags & PURGE_COMP
            and reservation.end_time > now
            and _is_idle_too_long(core, reservation, ends)
        ):
            reservation.end_time = int(ends)
            is_over = True
        if reservation.end_time <= ends:
            _forget(core, reservation, now)
    if has_begun or is_over:
        core.last_node_update = now
        core.tables.version += 1
        # The end of a reservation asks nobody to schedule; those who look anyhow will see it.
        matters = has_begun or core.policy.exact_limits
        core.policy.note(Note.CHANGE if matters else Note.PRIORITY, now)


def _run(core: Core, program: str, reservation: Reservation) -> None:
    """Run ResvProlog or ResvEpilog; nobody waits for it. Where jobs are emulated no program of the
    site is run.
    """
    if program and not core.settings.emulates_jobs:
        core.journal.reservation(reservation.name)  # after a restart it is not run again
        core.run_script(
            [program, reservation.name],
            {},
            lambda code: log.error("%s ended with %d", program, code) if code else None,
        )


def something_has_changed(core: Core) -> None:
    """What jobs there are may matter to a reservation."""
    if core.tables.reservations:
        arm(core)


def arm(core: Core) -> None:
    """Set the timer to the next tick or end that could matter to a job."""
    table = core.tables.reservations
    now = core.time.now()
    when = inf
    is_idle = bool(table) and _is_idle(core)
    settings = core.settings
    has_programs = (
        bool(settings.reservation_prolog or settings.reservation_epilog)
        and not settings.emulates_jobs
    )
    for each in table if core.tables.pending or core.tables.running or has_programs else ():
        if each.flags & TIME_FLOAT or (is_idle and each.flags & REPEATS):
            continue
        if not each.was_active:
            when = min(when, tick_from(core, max(each.start_time, now), TICKS_A_BEGIN))
        if each.end_time > now:
            when = min(when, each.end_time)
        elif each.flags & MAINT or jobs_in(core, each):
            when = min(when, tick_from(core, now + core.tables.rhythm.tick_s / 2, TICKS_AN_END))
        if each.flags & PURGE_COMP and each.is_active(now) and not jobs_in(core, each):
            until = now if each.idle_since is None else each.idle_since + each.purge_comp_s
            when = min(
                when, tick_from(core, max(until, now + core.tables.rhythm.tick_s / 2), TICKS_AN_END)
            )
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
    """Whether repeating reservations come and go, and nothing else happens. Else they would keep
    virtual time going for ever.
    """
    if core.tables.running or not any(each.flags & REPEATS for each in core.tables.reservations):
        return False
    pending = core.tables.pending.values()
    stamp = (
        core.last_partition_update,
        core.tables.nodes.generation,
        [(job.job_id, job.restarts, job.priority > 0, job.spec) for job in pending],
    )
    if stamp != core.reservation_stamp:
        core.reservation_stamp = stamp
        for each in core.tables.reservations:
            each.idle_rounds = 0
    return all(
        each.idle_rounds >= IDLE_ROUNDS for each in core.tables.reservations if each.flags & REPEATS
    )


def _next_exchange(core: Core, now: float) -> float:
    """When nodes are next replaced: those that take no jobs at the loop's next tick, those in use
    when time limits are checked.
    """
    when = inf
    for each in core.tables.reservations:
        if (bad := _worn_out(core, each, now)) and _spare(core, each, now):
            is_down = bool(bad & ~core.tables.nodes.up_nodes)
            when = min(
                when,
                tick_from(core, now + SLACK_S, 1) if is_down else next_check(core, now + SLACK_S),
            )
    return when


def _due(core: Core) -> None:
    core.reservation_timer = None
    now = core.time.now()
    _replace_nodes(core, now, core.tables.reservations, in_use=is_check(core, now))
    catch_up(core, now)
    arm(core)


def _worn_out(core: Core, reservation: Reservation, now: float, *, in_use: bool = True) -> int:
    """Nodes that the reservation would have others for: those that take no jobs and, with REPLACE,
    those that are in use.
    """
    if (
        reservation.cores is not None
        or reservation.flags & _OWN_NODES
        or reservation.end(now) <= now
    ):
        return 0
    nodes = core.tables.nodes
    bad = reservation.nodes & ~nodes.up_nodes
    if (
        in_use
        and reservation.flags & REPLACE
        and (reservation.flags & TIME_FLOAT or reservation.is_active(now))
    ):
        bad |= reservation.nodes & ~nodes.idle_nodes
    return bad


def _spare(core: Core, reservation: Reservation, now: float) -> int:
    """Idle nodes that could come into the reservation."""
    partition = core.tables.partitions.get(reservation.partition)
    if partition is None:
        return 0
    return (
        free_nodes(core, reservation, partition, now, rather=True)
        & core.tables.nodes.idle_nodes
        & ~reservation.nodes
    )


def _replace_nodes(
    core: Core, now: float, reservations: Iterable[Reservation], *, in_use: bool = True
) -> None:
    """Put idle nodes in place of those that are worn out, as far as there are some: first for those
    that take no jobs, then for the last in use.
    """
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
        core.changed(Note.CHANGE, now)


def _is_idle_too_long(core: Core, reservation: Reservation, tick: float) -> bool:
    """PURGE_COMP: nobody has used an active reservation for so long."""
    if reservation.start_time > tick:
        return False
    if jobs_in(core, reservation):
        reservation.idle_since = None
        return False
    if reservation.idle_since is None:
        reservation.idle_since = max(reservation.start_time, int(tick))
    return reservation.idle_since + reservation.purge_comp_s <= tick


def _forget(core: Core, reservation: Reservation, now: float) -> None:
    """A reservation that is over is deleted when no job runs in it; those that still wait for it
    are held, or go on without it.
    """
    jobs = jobs_in(core, reservation)
    if any(job.is_running for job in jobs):
        return
    remove(core, reservation)
    for job in jobs:
        others = [
            name
            for name in job.spec.reservation.split(",")
            if name != reservation.name and name in core.tables.reservations.by_name
        ]
        job.spec = msgspec.structs.replace(job.spec, reservation=",".join(others))
        if not others and not reservation.flags & NO_HOLD_JOBS_AFTER:
            job.priority, job.admin_priority, job.held_by = (
                0,
                None,
                DELETED.format(reservation.name),
            )
            advance(job, JobEvent.RESERVATION_DELETED, now)
            job.expected_start, job.expected_nodes = None, 0
            job.reason, job.reason_detail = job.held_by, ""
        elif job.reason == WAITS:
            job.reason, job.reason_detail = "None", ""
        review(core, job, now)
        job_changed(core, job, now)
    if reservation.flags & MAINT:
        for job in core.tables.pending.values():
            if job.reason_detail == MAINTENANCE:
                job.reason, job.reason_detail = "None", ""
                job_changed(core, job, now)
    if jobs:
        core.policy.note(Note.PRIORITY, now)


def remove(core: Core, reservation: Reservation) -> None:
    """It is there no longer."""
    del core.tables.reservations.by_name[reservation.name]
    core.journal.reservation(reservation.name)
    core.last_reservation_update = core.last_node_update = core.time.now()


def shown_nodes(core: Core, now: float) -> tuple[int, int]:
    """(nodes under maintenance, nodes reserved otherwise), as of the loop's last tick."""
    table = core.tables.reservations
    if not table:
        return 0, 0
    catch_up(core, now)
    maintained, reserved = table.nodes_in(max(last_tick(core, now, TICKS_A_BEGIN), 0))
    return maintained, reserved
