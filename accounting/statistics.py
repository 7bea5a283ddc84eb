"""What `sacctmgr show stats` tells: requests by type and by user, and the times that use was added
up, since the start or the last `clear stats`.

Place: the accounting daemon's core. Names and numbers are those by which Slurm's tools know
requests to slurmdbd.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from understudy.protocol.messages import (
    AccountingChange,
    AccountingQuery,
    GetStatistics,
    Statistics,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.protocol.messages import Message

_QUERIES: Final = {
    "clusters": ("DBD_GET_CLUSTERS", 1412),
    "accounts": ("DBD_GET_ACCOUNTS", 1409),
    "users": ("DBD_GET_USERS", 1415),
    "associations": ("DBD_GET_ASSOCS", 1410),
    "qos": ("DBD_GET_QOS", 1448),
    "tres": ("DBD_GET_TRES", 1486),
    "wckeys": ("DBD_GET_WCKEYS", 1453),
    "transactions": ("DBD_GET_TXN", 1445),
    "events": ("DBD_GET_EVENTS", 1470),
    "reservations": ("DBD_GET_RESVS", 1464),
    "resources": ("DBD_GET_RES", 1478),
    "federations": ("DBD_GET_FEDERATIONS", 1494),
    "problems": ("DBD_GET_PROBS", 1468),
    "jobs": ("DBD_GET_JOBS_COND", 1444),
    "steps": ("DBD_GET_JOBS_COND", 1444),
    "config": ("DBD_GET_CONFIG", 1466),
    "usage": ("DBD_GET_ASSOCS", 1410),  # with what they used
}
_CHANGES: Final = {
    ("add", "cluster"): ("DBD_ADD_CLUSTERS", 1405),
    ("add", "account"): ("DBD_ADD_ACCOUNTS", 1402),
    ("add", "user"): ("DBD_ADD_USERS", 1406),
    ("add", "qos"): ("DBD_ADD_QOS", 1447),
    ("add", "coordinator"): ("DBD_ADD_ACCOUNT_COORDS", 1403),
    ("add", "federation"): ("DBD_ADD_FEDERATIONS", 1493),
    ("add", "resource"): ("DBD_ADD_RES", 1477),
    ("modify", "account"): ("DBD_MODIFY_ACCOUNTS", 1428),
    ("modify", "user"): ("DBD_MODIFY_USERS", 1431),
    ("modify", "qos"): ("DBD_MODIFY_QOS", 1451),
    ("modify", "resource"): ("DBD_MODIFY_RES", 1481),
    ("modify", "association"): ("DBD_MODIFY_ASSOCS", 1429),
    ("modify", "federation"): ("DBD_MODIFY_FEDERATIONS", 1496),
    ("delete", "account"): ("DBD_REMOVE_ACCOUNTS", 1435),
    ("delete", "association"): ("DBD_REMOVE_ASSOCS", 1437),
    ("delete", "user"): ("DBD_REMOVE_USERS", 1439),
    ("delete", "qos"): ("DBD_REMOVE_QOS", 1450),
    ("delete", "coordinator"): ("DBD_REMOVE_ACCOUNT_COORDS", 1436),
    ("delete", "resource"): ("DBD_REMOVE_RES", 1480),
    ("delete", "federation"): ("DBD_REMOVE_FEDERATIONS", 1497),
}
_OTHERS: Final = {
    "GetAssociations": ("DBD_REGISTER_CTLD", 1434),
    "AccountingRecords": ("DBD_SEND_MULT_MSG", 1474),
    "GetStatistics": ("DBD_GET_STATS", 1489),
}


def kind_of(message: Message) -> tuple[str, int]:
    """The request's name and number; where Slurm has none, a name of the same form and 0."""
    if isinstance(message, AccountingQuery):
        return _QUERIES.get(message.table, (f"DBD_GET_{message.table.upper()}", 0))
    if isinstance(message, AccountingChange):
        return _CHANGES.get(
            (message.action, message.entity),
            (f"DBD_{message.action.upper()}_{message.entity.upper()}", 0),
        )
    if isinstance(message, GetStatistics) and message.reset:
        return "DBD_CLEAR_STATS", 1491
    name = type(message).__name__
    return _OTHERS.get(name, (f"DBD_{name.upper()}", 0))


@dataclass(slots=True)
class RollUps:
    """When use was added up last, and how long that has taken, in microseconds."""

    at: float = 0.0
    last_us: int = 0
    longest_us: int = 0
    us: int = 0
    count: int = 0


@dataclass(slots=True)
class Counters:
    """Counts of one accounting daemon."""

    since: float
    # by name and number: [count, microseconds]
    requests: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    users: dict[int, list[int]] = field(default_factory=dict)
    rolls: RollUps = field(default_factory=RollUps)

    def request(self, message: Message, user_id: int, microseconds: int) -> None:
        """A request has been handled."""
        for entry in (
            self.requests.setdefault(kind_of(message), [0, 0]),
            self.users.setdefault(user_id, [0, 0]),
        ):
            entry[0] += 1
            entry[1] += microseconds

    def rolled(self, now: float, microseconds: int) -> None:
        """Use has been added up by the daemon's own clock."""
        rolls = self.rolls
        rolls.at, rolls.last_us, rolls.count = now, microseconds, rolls.count + 1
        rolls.longest_us, rolls.us = max(rolls.longest_us, microseconds), rolls.us + microseconds

    def answer(self, now: float, user_name: Callable[[int], str]) -> Statistics:
        """The counts."""
        rolls = self.rolls
        numbers = {"rolled": int(rolls.at)}
        if rolls.count:
            numbers |= {
                "last_us": rolls.last_us,
                "longest_us": rolls.longest_us,
                "us": rolls.us,
                "count": rolls.count,
            }
        requests = [
            (name, number, count, us) for (name, number), (count, us) in self.requests.items()
        ]
        users = [(user_name(user), user, count, us) for user, (count, us) in self.users.items()]
        return Statistics(now, self.since, numbers, requests, users)
