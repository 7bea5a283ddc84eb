"""What follows from what, in its order: who reacts to alarms, to nodes that have been given back,
to jobs that are over, and to other changes.

Place: edge, above all that it names. What makes such a thing happen knows the
lists on `Core` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.jobs.crontabs import comes_again
from understudy.controller.jobs.launch import finish_configuring
from understudy.controller.jobs.suspend import reclaim_shared, resume_preempted
from understudy.controller.jobs.time_limits import (
    check_command,
    deadline_is_past,
    reservation_is_over,
    send_warning,
    tell_time,
    time_limit_is_over,
)
from understudy.controller.nodes.reboot import reboot_idle
from understudy.controller.pending.eligibility import begin_time_has_come
from understudy.controller.reservations.over_time import something_has_changed
from understudy.controller.tables.alarms import Alarm

if TYPE_CHECKING:
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
    core.when_changed = [something_has_changed]
    core.when_freed = [reclaim_shared, resume_preempted, reboot_idle]
    core.when_over = [comes_again]
