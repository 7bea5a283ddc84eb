"""Names of users and groups, as this host knows them, remembered.

Place: the edge: it asks the host's name service. A name is asked for once; the cache is emptied by Reconfigure.
"""

from __future__ import annotations

import grp
import os
import pwd
from functools import cache


class HostUsers:
    """Implements understudy.controller.ports.Users."""

    def __init__(self) -> None:
        self.user_name = cache(_user_name)
        self.group_name = cache(_group_name)
        self.groups_of = cache(_groups_of)


def user_id_of(name: str) -> int | None:
    """A user's number, None for one that this host does not know."""
    if name.isdecimal():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _user_name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except (KeyError, OverflowError):
        return str(user_id)


def _group_name(group_id: int) -> str:
    try:
        return grp.getgrgid(group_id).gr_name
    except (KeyError, OverflowError):
        return str(group_id)


def _groups_of(user_id: int) -> frozenset[str]:
    try:
        entry = pwd.getpwuid(user_id)
    except (KeyError, OverflowError):
        return frozenset()
    return frozenset(_group_name(group_id) for group_id in os.getgrouplist(entry.pw_name, entry.pw_gid))
