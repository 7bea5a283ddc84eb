"""The triggers that the controller keeps, and what has happened since it last looked at them.

Place: tables; values alone. understudy.controller.notices.event_triggers sets, tests
and fires them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.controller.ports import TimerHandle
    from understudy.model.states import NodeFlag, NodeState


@dataclass(slots=True, eq=False)
class Trigger:
    """One trigger. `resource`: job, node, slurmctld, slurmdbd, database or other; `fires_at`: when
    its program is to run, once its event has come.
    """

    trigger_id: int
    resource: str
    resource_id: str
    events: tuple[str, ...]
    offset_s: int
    user_id: int
    group_id: int
    is_permanent: bool
    program: str
    fires_at: float | None = None
    argument: str = ""

    @property
    def identity(self) -> tuple[object, ...]:
        """What two triggers may not share."""
        return (
            self.resource,
            self.resource_id,
            self.events,
            self.offset_s,
            self.user_id,
            self.is_permanent,
            self.program,
        )


@dataclass(slots=True, eq=False)
class Triggers:
    """All triggers, and what has happened since the last check. Node sets are bitmaps."""

    listed: list[Trigger] = field(default_factory=list)
    next_id: int = 1
    happened: dict[str, int] = field(default_factory=dict)  # by event: nodes
    others: set[str] = field(default_factory=set)  # events that are about no node
    # by node index: its state when it was looked at last
    seen: dict[int, tuple[NodeState, NodeFlag]] = field(default_factory=dict)
    drained: int = 0  # as of the last check
    timer: TimerHandle | None = None

    def note(self, event: str) -> None:
        """Something that is about no node."""
        if self.listed:
            self.others.add(event)
