"""The columns of the reservations table: one function each, from a reservation to the value that
understudy.model.records describes.

Place: views; read by understudy.controller.views.query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.controller.facts.tres import cpu_count
from understudy.model import nodeset
from understudy.model.reservations import flags_text
from understudy.model.times import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.reservation import Reservation


def core_count(core: Core, reservation: Reservation) -> int:
    if reservation.cores is not None:
        return sum(mask.bit_count() for mask in reservation.cores.values())
    return sum(
        kind.job_cores.bit_count() * (kind.nodes & reservation.nodes).bit_count()
        for kind in core.tables.nodes.kinds
    )


def cores(core: Core, reservation: Reservation, now: float) -> list[list[str]]:
    if reservation.cores is None or now < reservation.cores_told_at:
        return []
    nodes = core.tables.nodes.nodes
    return [[nodes[i].name, _ranges(mask)] for i, mask in sorted(reservation.cores.items())]


def _ranges(mask: int) -> str:
    return ",".join(
        str(first) if count == 1 else f"{first}-{first + count - 1}"
        for first, count in nodeset.runs(mask)
    )


def _names(names: tuple[str, ...], *, excludes: bool = False) -> str:
    return ",".join(f"-{name}" if excludes else name for name in names)


RESERVATION_COLUMNS: Final[dict[str, Callable[[Core, Reservation, float], Any]]] = {
    "name": lambda _c, r, _n: r.name,
    "start_time": lambda _c, r, n: r.start(n),
    "end_time": lambda _c, r, n: r.end(n),
    # shown so to the end of its last second
    "is_active": lambda _c, r, n: r.start(n) <= int(n) <= r.end(n),
    "nodes": lambda c, r, _n: c.names.to_expression(r.nodes) if r.nodes else "",
    "node_count": lambda _c, r, _n: r.nodes.bit_count(),
    "core_count": lambda c, r, _n: core_count(c, r),
    "cpu_count": lambda c, r, _n: cpu_count(c, r),
    "cores": cores,
    "features": lambda _c, r, _n: r.features,
    "partition": lambda _c, r, _n: r.partition,
    "flags": lambda _c, r, _n: flags_text(r.flags, format_duration(r.purge_comp_s)),
    "users": lambda _c, r, _n: _names(r.users, excludes=r.excludes_users),
    "groups": lambda _c, r, _n: _names(r.groups),
    "accounts": lambda _c, r, _n: _names(r.accounts, excludes=r.excludes_accounts),
    "licenses": lambda _c, r, _n: r.licenses,
    "burst_buffer": lambda _c, r, _n: r.burst_buffer,
    "max_start_delay_s": lambda _c, r, _n: r.max_start_delay_s,
}
