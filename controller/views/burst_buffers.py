"""Burst buffers as `scontrol show burstbuffer` shows them: one row, of the plug-in that is on.

Place: views. Follows scontrol(1), and what 22.05.8 with burst_buffer/lua shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from understudy.controller.tables.burst_buffers import BufferState
from understudy.model.burst_buffers import DATAWARP

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.burst_buffers import Buffer


def burst_buffer_rows(core: Core, is_shown: Callable[[int], bool]) -> list[dict[str, Any]]:
    """The one row, none where burst buffers are off; `is_shown`: whether the buffers of that user
    are.
    """
    table, conf = core.tables.burst_buffers, core.settings.burst_buffer
    if not table:
        return []
    pools = [[each.name, each.granularity, each.total, each.used] for each in table.pools.values()]
    # of DataWarp the first pool is the plug-in's own; lua has none
    own = pools[0] if pools and table.kind == DATAWARP else ["", 1, 0, 0]
    shown = [
        each
        for each in reversed([*table.persistent.values(), *table.buffers.values()])
        if is_shown(each.user_id)
    ]
    return [
        {
            "name": table.kind,
            "default_pool": (conf.default_pool or own[0]) if table.kind == DATAWARP else "",
            "granularity": own[1],
            "total": own[2],
            "used": own[3],
            "pools": pools,
            "flags": ",".join(conf.shown_flags(table.kind)),
            "timeouts_s": list(conf.timeouts_s.values()),
            "allow_users": ",".join(conf.allow),
            "deny_users": ":".join(conf.deny),
            "get_sys_state": conf.get_sys_state,
            "get_sys_status": conf.get_sys_status,
            "buffers": [_buffer(core, each) for each in shown],
            "users": _users(core, shown),
        }
    ]


def _buffer(core: Core, buffer: Buffer) -> list[Any]:
    job = core.tables.jobs.get(buffer.job_id)
    array = None if job is None or job.array_task_id is None else job.array
    return [
        buffer.name,
        buffer.job_id,
        0 if array is None else array.job_id,
        None if job is None else job.array_task_id,
        int(buffer.created),
        next(iter(buffer.space), ""),
        buffer.size,
        # of a job's the plug-in says no more
        str(buffer.state if buffer.name else BufferState.ALLOCATED),
        buffer.user_id,
        core.users.user_name(buffer.user_id),
    ]


def _users(core: Core, buffers: list[Buffer]) -> list[list[Any]]:
    used: dict[int, int] = {}
    for each in buffers:
        used[each.user_id] = used.get(each.user_id, 0) + each.size
    return [[core.users.user_name(user), user, size] for user, size in used.items() if size]
