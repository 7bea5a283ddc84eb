"""Triggers as `strigger --get` shows them.

Place: views.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.controller.core.core import Core


def trigger_rows(core: Core) -> list[dict[str, Any]]:
    """What `strigger --get` shows: the triggers whose event has not come."""
    return [
        {
            "trigger_id": each.trigger_id,
            "resource": each.resource,
            "resource_id": each.resource_id,
            "events": list(each.events),
            "offset_s": each.offset_s,
            "user_id": each.user_id,
            "user_name": core.users.user_name(each.user_id),
            "is_permanent": each.is_permanent,
            "program": each.program,
        }
        for each in core.triggers.listed
        if each.fires_at is None
    ]
