"""The alarms that are set, as values: `alarms.py` sets them and looks at them.

Place: the controller's tables. What is done about an alarm is registered by kind, so that who sets
one need not know what comes of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.ports import TimerHandle
    from understudy.controller.tables.job import Job


class Alarm(StrEnum):
    """What a look at a job is for."""

    LIMIT = "limit"
    WARNING = "warning"
    DEADLINE = "deadline"
    RESERVATION = "reservation"
    CONFIGURATION = "configuration"
    MAIL = "mail"
    COMMAND = "command"


Handler: TypeAlias = "Callable[[Any, Job, float], None]"  # of the core, a job, and now


def _nothing(_core: object, _job: Job, _now: float) -> None:
    pass


@dataclass(slots=True, eq=False)
class Alarms:
    """Those that are set. `handlers`: what is done about each kind; `waited`: about a begin time
    that has come, or a delay that is over.
    """

    # (when, job id, the job's run, kind)
    heap: list[tuple[float, int, int, Alarm]] = field(default_factory=list)
    timer: tuple[float, TimerHandle] | None = None
    waits: list[tuple[float, int]] = field(default_factory=list)  # heap of (when, job id)
    wait_timer: tuple[float, TimerHandle] | None = None
    handlers: dict[Alarm, Handler] = field(default_factory=dict)
    waited: Handler = _nothing
