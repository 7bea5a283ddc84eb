"""What follows from what, in its order: who reacts to alarms, to nodes that have been given back, to jobs that are over, and to other changes.

Place: the controller's core, above all that it names. What makes such a thing happen knows the lists on `Core` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller import crontabs, eligibility, limits, reboot, reservations, suspend
from understudy.controller.alarm_table import Alarm

if TYPE_CHECKING:
    from understudy.controller.core import Core


def connect(core: Core) -> None:
    """Have everything react that does, once for each core."""
    core.alarms.handlers = {
        Alarm.LIMIT: limits.time_limit_is_over,
        Alarm.WARNING: limits.send_warning,
        Alarm.DEADLINE: limits.deadline_is_past,
        Alarm.RESERVATION: limits.reservation_is_over,
        Alarm.CONFIGURATION: limits.finish_configuring,
        Alarm.MAIL: limits.tell_time,
        Alarm.COMMAND: limits.look_for_command,
    }
    core.alarms.waited = eligibility.begin_time_has_come
    core.when_changed = [reservations.something_has_changed]
    core.when_freed = [suspend.settle, suspend.let_back, reboot.look_for_idle]
    core.when_over = [crontabs.comes_again]
