"""What follows from what, in its order: who reacts to what happens to jobs, to alarms, and to other
changes.

Place: edge, above all that it names. What makes such a thing happen knows the lists on `Core` alone
(`core/reactions.py`). The order of a list is that of messages, records and timers: to change it is
to change schedules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.alarms import unwatch, watch_limits
from understudy.controller.core.changes import job_changed
from understudy.controller.core.log_lines import allocated, ended
from understudy.controller.edge.rpc import pause_at_break
from understudy.controller.facts.job import keep_tres
from understudy.controller.jobs import buffers
from understudy.controller.jobs.buffers import begin_pre_run
from understudy.controller.jobs.crontabs import comes_again
from understudy.controller.jobs.end import end_components
from understudy.controller.jobs.following import note_run
from understudy.controller.jobs.gang import leave_row, take_turns
from understudy.controller.jobs.launch import buffer_is_ready, finish_configuring, prepare
from understudy.controller.jobs.orders import end_on_nodes, run_epilog
from understudy.controller.jobs.requeue import waits_again
from understudy.controller.jobs.steps import end_steps
from understudy.controller.jobs.suspend import reclaim_shared, resume_preempted
from understudy.controller.jobs.time_limits import (
    check_command,
    deadline_is_past,
    reservation_is_over,
    send_warning,
    tell_time,
    time_limit_is_over,
)
from understudy.controller.nodes.events import forget_reasons
from understudy.controller.nodes.reboot import reboot_idle
from understudy.controller.notices.mail import mail_requeued
from understudy.controller.pending.arrays import fill_up, make_room
from understudy.controller.pending.awaited import tell_waiting
from understudy.controller.pending.eligibility import (
    begin_time_has_come,
    notify_dependents,
    review,
)
from understudy.controller.pending.purge import schedule_purge
from understudy.controller.reservations.over_time import something_has_changed, watch_end
from understudy.controller.tables.alarms import Alarm

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core


def connect(core: Core) -> None:
    """Have everything react that does, once for each core."""
    core.alarms.handlers = {
        Alarm.LIMIT: time_limit_is_over,
        Alarm.WARNING: send_warning,
        Alarm.DEADLINE: deadline_is_past,
        Alarm.RESERVATION: reservation_is_over,
        Alarm.CONFIGURATION: finish_configuring,
        Alarm.MAIL: tell_time,
        Alarm.COMMAND: check_command,
    }
    core.alarms.waited = begin_time_has_come
    to = core.reactions
    to.allocated = [
        watch_limits,
        watch_end,
        fill_up,
        forget_reasons,
        job_changed,
        allocated,
        pause_at_break,
    ]
    to.started = [prepare, take_turns, notify_dependents]
    to.ended = [
        lambda core, job, _end, _now: core.tables.licenses.give_back(job.job_id),
        lambda core, job, _end, now: core.priorities.ended(job, now),
        lambda core, job, _end, now: job_changed(core, job, now),
        ended,
        make_room,
        unwatch,
        tell_waiting,
        run_epilog,
        end_on_nodes,
        end_components,
    ]
    to.freed = [
        end_steps,
        _of_core(reclaim_shared),
        _of_core(resume_preempted),
        _of_core(reboot_idle),
        lambda core, job, _nodes, now: leave_row(core, job, now),
    ]
    to.emptied = [waits_again, comes_again]
    to.over = [
        tell_waiting,
        lambda core, job, _now: core.counters.ended(job),
        note_run,
        notify_dependents,
        schedule_purge,
        job_changed,
        lambda core, _job, _now: core.check_empty(),
    ]
    to.requeued = [mail_requeued, keep_tres]
    to.queued = [review]
    to.changed = [something_has_changed]
    if core.tables.burst_buffers:
        _connect_buffers(core)


def _connect_buffers(core: Core) -> None:
    """Where jobs have burst buffers, these follow them."""
    to = core.reactions
    to.starting += [buffers.lacks_buffer, buffers.lacks_paths]
    to.allocated.append(buffers.take_at_start)
    # before it is prepared: it is configuring then
    to.started.insert(0, lambda core, job, _now: begin_pre_run(core, job, buffer_is_ready))
    # before the records of its end: it is in STAGE_OUT from then on
    to.ended.insert(0, buffers.stage_out)
    to.over.insert(0, buffers.give_up)


def _of_core(react: Callable[[Core, float], None]) -> Callable[..., None]:
    """Who needs to know nothing but that it has happened."""
    return lambda core, _job, _nodes, now: react(core, now)
