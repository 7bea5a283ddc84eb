"""Who may use a reservation, from when and how long a job can run in it, and which jobs are in it.

Place: reservations. Follows: scontrol(1) "RESERVATIONS".
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.slurm.main_pass import kept_back, run_length
from understudy.controller.tables.reservation import WAITS, Reservation, blocked_cores
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.reservations import FLEX

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition

# --- jobs -----------------------------------------------------------------------------------------


def check_access(core: Core, names: str, user_id: int, account: str) -> None:
    """Whether a job of the user may be in all the reservations of the list.

    Raises:
        SlurmError: one of them does not exist, or is not for the user.
    """
    table = core.tables.reservations
    for name in names.split(","):
        reservation = table.by_name.get(name)
        if reservation is None:
            raise SlurmError(ErrorCode.INVALID_RESERVATION)
        if not reservation.admits(user_id, account, core.users.groups_of):
            raise SlurmError(ErrorCode.RESERVATION_ACCESS_DENIED)


def first_reason(core: Core, job: Job, now: float) -> str:
    """Why reservations will keep a new job from starting; "" if they do not."""
    table = core.tables.reservations
    partition = core.tables.partitions.get(job.partitions[0])
    if partition is None or table.magnetic_for(job, now):
        return ""
    own = next(iter(table.of(job)), None)
    leeway = table.leeway(
        job,
        own,
        partition,
        partition.nodes & core.tables.nodes.up_nodes,
        now,
        int(now),
        run_length(job, partition),
    )
    return kept_back(core.selector, job, partition, leeway, core.tables)


def earliest_start(
    core: Core, job: Job, partition: Partition, now: float
) -> tuple[int, int] | None:
    """(earliest start in seconds, bitmap of nodes) if the running jobs end at their limits, of what
    reservations leave to it now; or None.

    Raises:
        SlurmError: the job's own reservation has not begun, or is over.
    """
    table, tables, up_nodes = core.tables.reservations, core.tables, core.tables.nodes.up_nodes
    if not table:
        return core.selector.will_run(Ask(job, partition, up_nodes), tables, int(now))
    own = next(iter(table.of(job)), None)
    leeway = table.leeway(
        job, own, partition, partition.nodes & up_nodes, now, int(now), run_length(job, partition)
    )
    if leeway.reason == WAITS:
        raise SlurmError(ErrorCode.INVALID_TIME)
    if leeway.reason:
        return None
    ask = Ask(job, partition, leeway.nodes, blocked_cores=blocked_cores(leeway, own, tables.nodes))
    return core.selector.will_run(ask, tables, int(now))


def reservation_of(core: Core, ask: Ask) -> Reservation | None:
    """The one in which the job is to run: a policy that knows nothing of reservations names none,
    and it is the first that the job names.
    """
    table = core.tables.reservations
    own = table.by_name.get(ask.reservation) if ask.reservation else None
    return next(iter(table.of(ask.job)), None) if own is None else own


def may_take(core: Core, ask: Ask, allocation: Allocation, now: float) -> bool:
    """Whether no reservation stands against the job's start there."""
    job, partition, nodes = ask.job, ask.partition, core.tables.nodes
    own = reservation_of(core, ask)
    if job.spec.reservation and own is None:
        return False
    leeway = core.tables.reservations.leeway(
        job,
        own,
        partition,
        partition.nodes & nodes.up_nodes,
        now,
        int(now),
        run_length(job, partition),
    )
    if leeway.reason or allocation.nodes & ~leeway.nodes:
        return False
    blocked = blocked_cores(leeway, own, nodes)
    return not any(
        group.nodes >> node & 1 and group.cores & mask
        for node, mask in blocked.items()
        for group in allocation.groups
    )


def latest_end(core: Core, job: Job) -> float:
    """When the job's reservation lets it run no longer."""
    reservation = core.tables.reservations.by_name.get(job.used_reservation)
    over = core.settings.reservation_over_run_s
    if reservation is None or over is None or reservation.flags & FLEX:
        return inf
    return reservation.end_time + over


def jobs_in(core: Core, reservation: Reservation) -> list[Job]:
    """The pending and running jobs of a reservation."""
    name = reservation.name
    found = [
        job
        for job in core.tables.pending.values()
        if job.spec.reservation and name in job.spec.reservation.split(",")
    ]
    return [*found, *(job for job in core.tables.running.values() if job.used_reservation == name)]
