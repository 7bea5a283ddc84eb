"""What follows from what, in its order: who reacts to alarms, to nodes that have been given back,
to jobs that are over, and to other changes.

Place: the controller's core, above all that it names. What makes such a thing happen knows the
lists on `Core` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.jobs.crontabs import comes_again
from understudy.controller.jobs.launch import finish_configuring
from understudy.controller.jobs.suspend import let_back, settle
from understudy.controller.jobs.time_limits import (
    deadline_is_past,
    look_for_command,
    reservation_is_over,
    send_warning,
    tell_time,
    time_limit_is_over,
)
from understudy.controller.nodes.reboot import look_for_idle
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
        Alarm.COMMAND: look_for_command,
    }
    core.alarms.waited = begin_time_has_come
    core.when_changed = [something_has_changed]
    core.when_freed = [settle, let_back, look_for_idle]
    core.when_over = [comes_again]
