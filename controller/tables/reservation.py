"""Advance reservations as schedulers see them: which nodes and cores a job may have from when to
when.

Place: tables, pure. Follows: scontrol(1) "RESERVATIONS". What creates and changes them is
understudy.controller.requests.update_reservations.

A job outside a reservation may not have its nodes if the job's time limit reaches into it; a job
inside may have nothing else. Maintenance and overlapping reservations take nodes from jobs in other
reservations, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.controller.tables.licenses import read_licenses
from understudy.model.reservations import (
    ALL_NODES,
    ANY_NODES,
    FLEX,
    MAGNETIC,
    MAINT,
    OVERLAP,
    PART_NODES,
    TIME_FLOAT,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeTable
    from understudy.controller.tables.partition import Partition

WAITS: Final = "Reservation"  # the reason of a job whose reservation has not begun, or is over
BUSY: Final = "ReqNodeNotAvail, May be reserved for other job"
MAINTENANCE: Final = "ReqNodeNotAvail, Reserved for maintenance"
DELETED: Final = "Reservation {} was deleted"
_TRIES: Final = 10  # ends of reservations behind which a start is searched
_NO_CORES: Final[dict[int, int]] = {}


@dataclass(slots=True, eq=False)
class Reservation:
    """One reservation. `nodes` is a bitmap; `cores`: masks of the reserved cores by node, None for
    whole nodes.
    """

    name: str
    reservation_id: int
    start_time: int  # of TIME_FLOAT: seconds from whatever is now
    end_time: int
    flags: int = 0
    nodes: int = 0
    cores: dict[int, int] | None = None
    cores_told_at: float = 0.0  # when the controller's loop has told which they are
    partition: str = ""
    features: str = ""
    users: tuple[str, ...] = ()
    user_ids: tuple[int, ...] = ()
    excludes_users: bool = False
    groups: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    excludes_accounts: bool = False
    licenses: str = ""
    burst_buffer: str = ""
    max_start_delay_s: int | None = None
    purge_comp_s: int = 0
    node_expression: str = ""  # as saved
    idle_since: int | None = None  # when its last job ended (PURGE_COMP)
    was_active: bool = False  # its begin has been noticed
    has_ended: bool = False  # its end has been noticed
    # since when it is as accounting has it, if it was changed while in force
    recorded_from: int = 0
    idle_rounds: int = 0  # how often it has come again while nothing else happened

    def start(self, now: float) -> int:
        """When it begins; a floating one always as long from now."""
        return int(now) + self.start_time if self.flags & TIME_FLOAT else self.start_time

    def end(self, now: float) -> int:
        """When it is over."""
        return int(now) + self.end_time if self.flags & TIME_FLOAT else self.end_time

    def is_active(self, now: float) -> bool:
        """Whether jobs may run in it now."""
        return self.start(now) <= now < self.end(now)

    def lets_overlap(self, job: Job) -> bool:
        """Whether a job of others may be on its nodes, as it ends in good time when told to
        (MaxStartDelay, --signal=R).
        """
        delay = self.max_start_delay_s
        return (
            delay is not None
            and job.spec.kill_signal_reservation
            and job.spec.kill_signal_before_s <= delay
        )

    @property
    def duration_s(self) -> int:
        return self.end_time - self.start_time

    @property
    def binds_nodes(self) -> bool:
        """Whether its jobs may only run on its nodes."""
        return bool(self.nodes) and not self.flags & (ANY_NODES | FLEX)

    def admits(self, user_id: int, account: str, groups: Callable[[int], frozenset[str]]) -> bool:
        """Whether the user may use it with the account."""
        if self.flags & TIME_FLOAT:
            return False
        by_user = by_account = True
        if self.groups:
            by_user = not groups(user_id).isdisjoint(self.groups)
        elif self.user_ids:
            by_user = (user_id in self.user_ids) != self.excludes_users
        if self.accounts:
            by_account = (account in self.accounts) != self.excludes_accounts
        positive_user = bool(self.groups or (self.user_ids and not self.excludes_users))
        positive_account = bool(self.accounts and not self.excludes_accounts)
        if positive_user and positive_account:  # either will do
            return by_user or by_account
        return by_user and by_account


class Leeway(NamedTuple):
    """What reservations leave to a job: nodes, cores of them that it may not have, and, if it is
    not to be at all, why.
    """

    nodes: int
    cores: dict[int, int] = _NO_CORES
    reason: str = ""
    when: int = 0  # from when that is so
    overlaps: bool = False  # some nodes are left out
    is_maintenance: bool = False  # ... of those of the job's own reservation some for maintenance


@dataclass(slots=True, eq=False)
class ReservationTable:
    """All reservations by name, in the order of their creation."""

    by_name: dict[str, Reservation] = field(default_factory=dict)
    groups_of: Callable[[int], frozenset[str]] = field(default=lambda _user: frozenset())
    next_id: int = 1

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def __iter__(self) -> Iterator[Reservation]:
        return iter(self.by_name.values())

    def of(self, job: Job) -> list[Reservation]:
        """The reservations that the job names and that exist."""
        if not job.spec.reservation:
            return []
        return [
            found
            for name in job.spec.reservation.split(",")
            if (found := self.by_name.get(name)) is not None
        ]

    def keeps(self, job: Job, now: float) -> bool:
        """Whether the job names reservations none of which has begun: it is not eligible before."""
        own = self.of(job)
        return bool(own) and all(not each.flags & FLEX and now < each.start(now) for each in own)

    def keeps_whole(self, job: Job, now: float) -> bool:
        """Whether a component of the heterogeneous job names reservations none of which has begun:
        all of them wait for that.
        """
        return job.het is not None and any(
            each.spec.reservation and not any(own.is_active(now) for own in self.of(each))
            for each in job.het.components.values()
        )

    def magnetic_for(self, job: Job, now: float) -> list[Reservation]:
        """Reservations that draw jobs which name none."""
        if job.spec.reservation:
            return []
        return [
            each
            for each in self
            if each.flags & MAGNETIC
            and each.is_active(now)
            and each.admits(job.user_id, job.spec.account, self.groups_of)
        ]

    def leeway(
        self,
        job: Job,
        own: Reservation | None,
        partition: Partition,
        nodes: int,
        now: float,
        start: int,
        length: float,
    ) -> Leeway:
        """What of `nodes` the job may have from `start` on for `length` seconds; `own`: as a job of
        that reservation.
        """
        if own is not None:
            return self._inside(own, nodes, now, start, length)
        end = start + length
        cores: dict[int, int] = {}
        overlaps = False
        for each in self:
            if (
                not each.nodes
                or each.start(now) >= end
                or each.end(now) <= start
                or each.lets_overlap(job)
            ):
                continue
            whole_partition = each.flags & ALL_NODES or (
                each.flags & PART_NODES and each.partition == partition.name
            )
            if whole_partition or (each.flags & MAINT and not partition.nodes & ~each.nodes):
                return Leeway(0, reason=MAINTENANCE, when=each.end(now))
            if job.required_nodes & each.nodes and (each.cores is None or job.exclusive):
                return Leeway(0, reason=BUSY, when=each.end(now) + 1)
            if not each.nodes & nodes:
                continue
            overlaps = True
            if each.cores is None or job.exclusive:
                nodes &= ~each.nodes
            else:
                for node, mask in each.cores.items():
                    cores[node] = cores.get(node, 0) | mask
        return Leeway(nodes, cores or _NO_CORES, "", start, overlaps)

    def _inside(
        self, own: Reservation, nodes: int, now: float, start: int, length: float
    ) -> Leeway:
        if not own.flags & FLEX and (own.start(now) > start or own.end(now) <= start):
            return Leeway(0, reason=WAITS)
        end = start + length
        before = nodes
        if own.binds_nodes:
            before = nodes = nodes & own.nodes
        is_maintenance = False
        if not own.flags & MAINT:
            for each in self:
                if (
                    each is own
                    or each.cores is not None
                    or each.start(now) >= end
                    or each.end(now) <= start
                ):
                    continue
                if own.flags & OVERLAP and not each.flags & MAINT:
                    continue
                if each.nodes & nodes:
                    is_maintenance |= bool(each.flags & MAINT)
                    nodes &= ~each.nodes
        cores = own.cores or _NO_CORES
        return Leeway(nodes, cores, "", start, before != nodes, is_maintenance)

    def leeway_later(
        self, job: Job, partition: Partition, nodes: int, now: float, start: int, length: float
    ) -> Leeway:
        """As `leeway` for a job outside, but at the end of reservations that forbid the start; with
        a reason if none of the next ends helps.
        """
        found = self.leeway(job, None, partition, nodes, now, start, length)
        for _ in range(_TRIES):
            if not found.reason:
                break
            found = self.leeway(job, None, partition, nodes, now, found.when, length)
        return found

    def next_end(self, start: int, now: float) -> int | None:
        """When the next reservation is over after that time."""
        return min((end for each in self if (end := each.end(now)) > start), default=None)

    def licenses_held_back(
        self, own: Reservation | None, now: float, length: float
    ) -> dict[str, int]:
        """Licences that reservations keep from the job while it would run."""
        held: dict[str, int] = {}
        end = now + length
        for each in self:
            if each.licenses and each is not own and each.start(now) < end and each.end(now) > now:
                for name, count in read_licenses(each.licenses):
                    held[name] = held.get(name, 0) + count
        return held

    def reserved_licenses(self, now: float) -> dict[str, int]:
        """Licences in reservations that are active."""
        held: dict[str, int] = {}
        for each in self:
            if each.licenses and each.is_active(now):
                for name, count in read_licenses(each.licenses):
                    held[name] = held.get(name, 0) + count
        return held

    def nodes_in(self, now: float) -> tuple[int, int]:
        """(nodes under maintenance, nodes reserved otherwise) now."""
        maintained = reserved = 0
        for each in self:
            if each.nodes and each.is_active(now):
                if each.flags & MAINT:
                    maintained |= each.nodes
                else:
                    reserved |= each.nodes
        return maintained, reserved & ~maintained


def blocked_cores(leeway: Leeway, own: Reservation | None, table: NodeTable) -> dict[int, int]:
    """The cores that the job may not have, by node: those that others have reserved, or all but
    those of its own reservation.
    """
    if own is None or not leeway.cores:
        return leeway.cores
    return {
        node: ((1 << int(table.cores[node])) - 1) & ~mask for node, mask in leeway.cores.items()
    }
