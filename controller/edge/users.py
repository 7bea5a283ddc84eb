"""Names of users and groups, as this host knows them, remembered.

Place: the edge: it asks the host's name service. A name is asked for once; the cache is emptied by
Reconfigure.
"""

from __future__ import annotations

import grp
import os
import pwd
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class HostUsers:
    """Implements understudy.controller.ports.Users. `users` and `groups` are names and numbers
    beside the host's own.
    """

    def __init__(
        self, users: Mapping[str, int] | None = None, groups: Mapping[str, int] | None = None
    ) -> None:
        user_names = {number: name for name, number in (users or {}).items()}
        group_names = {number: name for name, number in (groups or {}).items()}
        self.user_name = cache(lambda user_id: user_names.get(user_id) or _user_name(user_id))
        self.group_name = cache(lambda group_id: group_names.get(group_id) or _group_name(group_id))
        self.user_id = cache(lambda name: (users or {}).get(name, user_id_of(name)))
        self.is_group = cache(lambda name: name in (groups or {}) or _is_group(name))
        self.groups_of = cache(
            lambda user_id: (
                frozenset(group_names.values()) if user_id in user_names else _groups_of(user_id)
            )
        )


def user_id_of(name: str) -> int | None:
    """A user's number, None for one that this host does not know."""
    if name.isdecimal():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _is_group(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True


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
    return frozenset(
        _group_name(group_id) for group_id in os.getgrouplist(entry.pw_name, entry.pw_gid)
    )
