"""Who may see what: PrivateData of slurm.conf, and partitions that are hidden or for the members of
some groups.

Root, SlurmUser, and accounting's operators and administrators see everything; coordinators see the
jobs of their accounts.

Place: views, asked by understudy.controller.views.query. Follows: slurm.conf(5)
"PrivateData", "Hidden" and "AllowGroups".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.controller.core.lookups import is_coordinator, may_control
from understudy.model.errors import ErrorCode, SlurmError

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.reservation import Reservation

# The word of PrivateData that closes a table to users.
_CLOSED_BY: Final = {"nodes": "nodes", "partitions": "partitions"}


class Viewer:
    """What the sender of a query may see; without one, everything."""

    def __init__(self, core: Core, sender: Sender | None) -> None:
        self._core = core
        self._user_id = -1 if sender is None else sender.user_id
        self._sees_all = sender is None or sender.is_daemon or core.is_operator(sender.user_id)
        self._name = (
            "" if sender is None or self._sees_all else core.users.user_name(sender.user_id)
        )

    def require(self, table: str) -> None:
        """Refuse a table that is closed to the viewer.

        Raises:
            SlurmError: Access/permission denied.
        """
        if not self._sees_all and _CLOSED_BY.get(table) in self._core.settings.private_data:
            raise SlurmError(ErrorCode.ACCESS_DENIED)

    @property
    def of_jobs(self) -> int | None:
        """Whose eyes `jobs` sees with: a user's number, or None where they see all."""
        is_open = self._sees_all or "jobs" not in self._core.settings.private_data
        return None if is_open else self._user_id

    def jobs(self, jobs: list[Job]) -> list[Job]:
        """Those that the viewer may see: their own, and those of accounts that they coordinate."""
        if self.of_jobs is None:
            return jobs
        return [job for job in jobs if may_control(self._core, self._user_id, job)]

    def sees_buffers_of(self, user_id: int) -> bool:
        """Whether the user's burst buffers are shown (burst_buffer.conf(5), PrivateData)."""
        is_private = "PrivateData" in self._core.settings.burst_buffer.flags
        return not is_private or self._sees_all or user_id == self._user_id

    def hidden_partitions(self) -> set[str]:
        """The partitions that only `--all` shows to the viewer."""
        partitions = self._core.tables.partitions.values()
        return {
            partition.name
            for partition in partitions
            if partition.hidden or not self._is_member(partition)
        }

    def _is_member(self, partition: Partition) -> bool:
        if self._sees_all or partition.allow_groups is None:
            return True
        return not self._core.users.groups_of(self._user_id).isdisjoint(partition.allow_groups)

    def users(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Of accounting's users oneself, where they are private."""
        if self._sees_all or "users" not in self._core.settings.private_data:
            return rows
        return [row for row in rows if row["user_name"] == self._name]

    def associations(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """One's own associations and those of accounts that one coordinates, where use is
        private.
        """
        if self._sees_all or "usage" not in self._core.settings.private_data:
            return rows
        return [
            row
            for row in rows
            if row["user_name"] == self._name
            or is_coordinator(self._core, self._user_id, row["account"])
        ]

    def shares(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The same of fair share's rows, indented as far as what is above them is seen."""
        if self._sees_all or "usage" not in self._core.settings.private_data:
            return rows
        depths: dict[int, int] = {}
        found = []
        for row in rows:
            if row["user"] == self._name or is_coordinator(
                self._core, self._user_id, row["account"]
            ):
                depths[row["association_id"]] = depth = depths.get(row["parent_id"], -1) + 1
                found.append({**row, "depth": depth})
        return found

    def reservations(self, reservations: list[Reservation]) -> list[Reservation]:
        """Those that the viewer may use."""
        if self._sees_all or "reservations" not in self._core.settings.private_data:
            return reservations
        return [
            each
            for each in reservations
            if each.admits(self._user_id, "", self._core.users.groups_of)
        ]
