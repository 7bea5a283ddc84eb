"""Trackable resources as values and as texts, `cpu=4,mem=8G,node=2,gres/gpu=1`: for columns,
accounting and limits.

Place: facts. Follows: slurm.conf(5) AccountingStorageTRES, TRESBillingWeights.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from understudy.controller.priority.tres import billing, billing_weights
from understudy.controller.tables.gres_texts import configured_counts
from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.core.core import Core
    from understudy.controller.tables.node import Node
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


def node_counts(core: Core, node: Node) -> dict[str, int]:
    """What the node has of generic resources, by TRES name."""
    gres = core.tables.nodes.gres
    return {} if gres is None else configured_counts([gres.layouts[node.index]])


class NodeBills:
    """What nodes bill, as things are: the most that it would be in one of their partitions, of
    those that have weights; else their CPUs. Neither nodes nor licences count.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[tuple[object, ...], int] = {}

    @cached_property
    def _weighted(self) -> list[tuple[list[bool], dict[str, float]]]:
        """Of each partition with weights which nodes it has, and the weights."""
        count = len(self._core.tables.nodes.nodes)
        return [
            (
                nodeset.to_flags(partition.nodes, count).tolist(),
                billing_weights(partition.tres_billing_weights),
            )
            for partition in self._core.tables.partitions.values()
            if partition.tres_billing_weights
        ]

    def of(self, node: Node) -> int:
        """What this node bills."""
        there = tuple(at for at, (flags, _) in enumerate(self._weighted) if flags[node.index])
        if not there:
            return node.effective_cpus
        key = (there, node.effective_cpus, node.memory_mb, node.gres)
        if key not in self._known:
            counts = {name: float(count) for name, count in node_counts(self._core, node).items()}
            counts |= {"cpu": float(node.effective_cpus), "mem": float(node.memory_mb)}
            largest = self._core.settings.bills_largest
            self._known[key] = max(
                int(billing(counts, self._weighted[at][1], takes_largest=largest)) for at in there
            )
        return self._known[key]


def cpu_count(core: Core, reservation: Reservation) -> int:
    table = core.tables.nodes
    if reservation.cores is not None:
        return sum(
            mask.bit_count() * table.cpus_of_core(i) for i, mask in reservation.cores.items()
        )
    return sum(kind.cpus * (kind.nodes & reservation.nodes).bit_count() for kind in table.kinds)
