"""`scontrol show burstbuffer`.

Place: a part of scontrol. Follows scontrol(1), and what 22.05.8 with burst_buffer/lua prints.
"""

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.texts import timestamp
from understudy.model.burst_buffers import size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.scontrol.session import Session

_COLUMNS = (
    "name", "default_pool", "granularity", "total", "used", "pools", "flags", "timeouts_s",
    "allow_users", "deny_users", "get_sys_state", "get_sys_status", "buffers", "users",
)  # fmt: skip
_TIMEOUTS = ("StageInTimeout", "StageOutTimeout", "ValidateTimeout", "OtherTimeout")


def show_burst_buffer(session: "Session", words: "list[str]") -> int:
    """All that there is."""
    del words
    try:
        rows = session.context.client.query("burst_buffer", list(_COLUMNS)).rows
    except RefusedError as error:
        session.complain(f"slurm_load_burst_buffer_info error: {error.text}")
        return 1
    for row in rows:
        between = " " if session.one_line else "\n  "
        session.context.print(between.join(lines(dict(zip(_COLUMNS, row, strict=True)))))
    return 0


def lines(row: "dict[str, Any]") -> "list[str]":
    """The plug-in's lines, all but the first to be indented."""
    pool = row["default_pool"] or "(null)"
    found = [
        f"Name={row['name']} DefaultPool={pool} "
        + _space(row["granularity"], row["total"], row["used"])
    ]
    found += [
        f"PoolName[{place}]={name} {_space(granularity, total, used)}"
        for place, (name, granularity, total, used) in enumerate(row["pools"])
    ]
    found.append(f"Flags={row['flags']}")
    timeouts = zip(_TIMEOUTS, row["timeouts_s"], strict=True)
    found.append(" ".join(f"{name}={seconds}" for name, seconds in timeouts))
    if row["allow_users"]:
        found.append(f"AllowUsers={row['allow_users']}")
    if row["deny_users"]:
        found.append(f"DenyUsers={row['deny_users']}")
    found.append(f"GetSysState={row['get_sys_state'] or '(null)'}")
    found.append(f"GetSysStatus={row['get_sys_status'] or '(null)'}")
    if row["buffers"]:
        found.append("Allocated Buffers:")
        found += [f"  {_buffer(*each)}" for each in row["buffers"]]
    if row["users"]:
        found.append("Per User Buffer Use:")
        found += [
            f"  UserID={name}({number}) Used={size_text(used)}"
            for name, number, used in row["users"]
        ]
    return found


def _space(granularity: int, total: int, used: int) -> str:
    free = max(total - used, 0)
    return (
        f"Granularity={size_text(granularity)} TotalSpace={size_text(total)} "
        f"FreeSpace={size_text(free)} UsedSpace={size_text(used)}"
    )


def _buffer(
    name: str,
    job_id: int,
    array_id: int,
    task: "int | None",
    created: int,
    pool: str,
    size: int,
    state: str,
    user_id: int,
    user_name: str,
) -> str:
    if name:
        who = f"Name={name}"
    elif array_id:
        who = f"JobID={array_id}_{task}({job_id})"
    else:
        who = f"JobID={job_id}"
    return (
        f"{who} CreateTime={timestamp(created)} Pool={pool or '(null)'} Size={size_text(size)} "
        f"State={state} UserID={user_name}({user_id})"
    )
