"""Nodes for a reservation: those that are named, or so many, or so many cores, that no other has
then.

Place: reservations. Follows: scontrol(1) "RESERVATIONS".
"""

from __future__ import annotations

from bisect import bisect_right
from copy import copy
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.controller.reservations.times import come_again
from understudy.controller.scheduling.select.features import feature_sets
from understudy.controller.scheduling.select.picks import Demand, Picks
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.reservations import IGNORE_JOBS, MAINT, OVERLAP, REPEATS

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.reservation import Reservation

_DAYS_AHEAD: Final = 14  # so far repeating reservations are compared with others


def meet(one: Reservation, other: Reservation, now: float) -> bool:
    """Whether the two are ever in force at the same time, as far as one looks ahead."""
    theirs = _times_of(other, now)
    ends = [end for _, end in theirs]
    for start, end in _times_of(one, now):
        place = bisect_right(ends, start)
        if place < len(theirs) and theirs[place][0] < end:
            return True
    return False


def _times_of(reservation: Reservation, now: float) -> list[tuple[int, int]]:
    """When it is in force, in order. One that floats and comes again does so counted from where it
    is now.
    """
    times = [
        (reservation.start(now), reservation.end(now))
        if reservation.name
        else (reservation.start_time, reservation.end_time)
    ]
    if reservation.flags & REPEATS:
        again = copy(reservation)
        again.start_time, again.end_time = times[0]
        limit = again.start_time + _DAYS_AHEAD * 86_400
        while come_again(again) and again.start_time < limit:
            times.append((again.start_time, again.end_time))
    return times


def _others(core: Core, new: Reservation, now: float, *, rather: bool = False) -> list[Reservation]:
    """Other reservations of the same time with which it may not share nodes; `rather`: or, as it
    may, would rather not.
    """
    if new.flags & (MAINT | OVERLAP) and not rather:
        return []
    return [
        each
        for each in core.tables.reservations
        if each.nodes and each.reservation_id != new.reservation_id and meet(each, new, now)
    ]


def check_overlap(core: Core, new: Reservation, now: float) -> None:
    """Nodes that are named may be those of one that lets others in."""
    if any(
        each.nodes & new.nodes and each.cores is None and not each.flags & (MAINT | OVERLAP)
        for each in _others(core, new, now)
    ):
        raise SlurmError(ErrorCode.RESERVATION_OVERLAPS)


def busy_nodes(core: Core, new: Reservation, now: float) -> int:
    """Nodes on which jobs of others may still run when it begins."""
    start = new.start(now) if new.name else new.start_time
    busy = 0
    for job in core.tables.running.values():
        assert job.allocation is not None
        if (job.end_time is None or job.end_time > start) and (
            not new.name or job.spec.reservation != new.name
        ):
            busy |= job.allocation.nodes
    return busy


def free_nodes(
    core: Core, new: Reservation, partition: Partition, now: float, *, rather: bool = False
) -> int:
    """Nodes of the partition with its features that can take jobs and that no other reservation
    has.
    """
    nodes = partition.nodes & core.tables.nodes.up_nodes
    if new.features:
        nodes = feature_sets(new.features, core.tables.nodes.with_feature, nodes)[0]
    for each in _others(core, new, now, rather=rather):
        if each.cores is None:
            nodes &= ~each.nodes
    return nodes


def some_nodes(
    core: Core, new: Reservation, partition: Partition, count: int, now: float, taken: int
) -> int:
    """So many nodes, rather those that no other reservation has and no job will be on; fewer if
    there are no more and no job is in the way.
    """
    busy = busy_nodes(core, new, now)
    rather = free_nodes(core, new, partition, now, rather=True) & ~taken
    if (rather & ~busy).bit_count() >= count:
        return pick(core, rather & ~busy, count)
    nodes = free_nodes(core, new, partition, now) & ~taken
    idle = nodes & ~busy
    chosen = 0 if rather & busy else rather
    chosen |= pick(core, idle & ~chosen, count - chosen.bit_count())
    if chosen.bit_count() == count:
        return chosen
    if not chosen or (nodes & busy and not new.flags & IGNORE_JOBS):
        raise SlurmError(ErrorCode.NODES_BUSY)
    for job in sorted(
        core.tables.running.values(),
        key=lambda job: (job.end_time is None, job.end_time or 0, job.job_id),
    ):
        assert job.allocation is not None
        more = job.allocation.nodes & nodes & ~chosen
        chosen |= nodeset.lowest(more, min(more.bit_count(), count - chosen.bit_count()))
    return chosen


def pick(core: Core, nodes: int, count: int) -> int:
    """So many of the nodes, or all if they are fewer: the first, whatever their weights; where
    there are switches, on few of them.
    """
    if nodes.bit_count() <= count:
        return nodes
    tree = core.tables.nodes.tree_for(0)
    if tree is None:
        return nodeset.lowest(nodes, count)
    picks = Picks(Demand(cpus=count, wanted_nodes=count, min_nodes=count, max_nodes=count))
    index = nodeset.positions_array(nodes)
    tree.pick(picks, index, np.ones(len(index), dtype=np.int64), None)
    chosen = 0 if picks.is_empty else nodeset.from_positions(index[picks.finish()].tolist())
    # nodes on no switch
    return chosen | nodeset.lowest(nodes & ~chosen, count - chosen.bit_count())


# --- cores ----------------------------------------------------------------------------------------


def free_cores(core: Core, new: Reservation, node: int, now: float) -> int:
    """A mask of the node's cores that neither another reservation nor a job will have."""
    free: int = (1 << int(core.tables.nodes.cores[node])) - 1 & ~core.tables.nodes.nodes[
        node
    ].spec_cores
    for each in _others(core, new, now):
        if each.nodes >> node & 1:
            free &= 0 if each.cores is None else ~each.cores.get(node, 0)
    if not new.flags & IGNORE_JOBS:
        start = new.start_time
        for job in core.tables.running.values():
            share = (
                job.allocation.share_on(node)
                if job.allocation is not None and (job.end_time is None or job.end_time > start)
                else None
            )
            if share is not None:
                free &= ~share.cores
    return free
