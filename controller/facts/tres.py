"""Trackable resources as values and as texts, `cpu=4,mem=8G,node=2,gres/gpu=1`: for columns,
accounting and limits.

Place: facts. Follows: slurm.conf(5) AccountingStorageTRES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.core.core import Core
    from understudy.controller.tables.reservation import Reservation

_MEGABYTES: Final = {"M": 1, "G": 1 << 10, "T": 1 << 20, "P": 1 << 30}


def amounts(text: str) -> dict[str, int]:
    """The resources of `cpu=4,mem=1.50G,node=2`; memory in MB."""
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, amount = part.partition("=")
        factor = _MEGABYTES.get(amount[-1:], 0)
        found[name] = int(float(amount[:-1]) * factor) if factor else int(float(amount or 0))
    return found


def tres_text(core: Core, counts: Mapping[str, int]) -> str:
    """`,gres/gpu=2`: those of the counts that accounting tracks."""
    return "".join(
        f",{name}={counts[name]}" for name in core.settings.tracked_gres if counts.get(name)
    )


def cpu_count(core: Core, reservation: Reservation) -> int:
    table = core.tables.nodes
    if reservation.cores is not None:
        return sum(
            mask.bit_count() * table.cpus_of_core(i) for i, mask in reservation.cores.items()
        )
    return sum(kind.cpus * (kind.nodes & reservation.nodes).bit_count() for kind in table.kinds)
