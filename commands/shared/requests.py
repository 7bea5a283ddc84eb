"""The controller's and accounting's counts of requests, by type and by user, as sdiag and sacctmgr
list them.
"""

from understudy.commands.shared.texts import date_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def when(moment: float) -> str:
    """A time as sdiag and `sacctmgr show stats` write it."""
    return f"{date_line(moment)} ({int(moment)})"


def by_count(entries: "list[list[Any]]") -> "list[list[Any]]":
    """Requests, those that came most often first."""
    return sorted(entries, key=lambda entry: entry[2], reverse=True)


def requests_and_users(
    requests: "list[list[Any]]", users: "list[list[Any]]", widths: tuple[int, int, int]
) -> list[str]:
    """Two lists, line by line. `widths`: of the requests' names, the users' names and the users'
    numbers.
    """
    request, user, number = widths

    def line(name: str, key: str, count: int, us: int) -> str:
        return f"\t{name}({key}) count:{count:<6} ave_time:{us // max(count, 1):<6} total_time:{us}"

    lines = ["Remote Procedure Call statistics by message type"]
    lines += [
        line(f"{name:<{request}}", f"{key:5}", count, us) for name, key, count, us in requests
    ]
    lines += ["", "Remote Procedure Call statistics by user"]
    return [
        *lines,
        *(line(f"{name:<{user}}", f"{key:{number}}", count, us) for name, key, count, us in users),
    ]
