"""Trackable resources as priorities and fair share count them: what a job asks for or holds, what a
partition has, what it bills.

Place: priority, pure. Memory is counted in MB. Follows: slurm.conf(5)
TRESBillingWeights, PriorityWeightTRES, PriorityFlags=MAX_TRES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.tables.gres_texts import counts_of
from understudy.controller.tables.shape import memory_asked_mb
from understudy.model import nodeset
from understudy.model.tres import TresError
from understudy.model.tres_weights import read_weights

if TYPE_CHECKING:
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeTable
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.tables import Tables

_GLOBAL: Final = ("license/", "bb/")  # not of a node


def billing_weights(text: str) -> dict[str, float]:
    """`CPU=1.0,Mem=0.25G,GRES/gpu=2.0` as billing by one of each TRES (one MB of memory). None for
    a text that cannot be read, which configurations and updates do not have.
    """
    try:
        return read_weights(text)
    except TresError:
        return {}


def billing(
    tres: dict[str, float], weights: dict[str, float], *, takes_largest: bool = False
) -> float:
    """What the resources cost: their weighted sum, or (`takes_largest`) the largest of a node's
    plus the sum of global ones. CPUs without weights.
    """
    if not weights:
        return tres.get("cpu", 0.0)
    parts = [(name, tres.get(name, 0.0) * weight) for name, weight in weights.items()]
    if not takes_largest:
        return sum(cost for _, cost in parts)
    of_nodes = max((cost for name, cost in parts if not name.startswith(_GLOBAL)), default=0.0)
    return of_nodes + sum(cost for name, cost in parts if name.startswith(_GLOBAL))


def tres_of(job: Job, held: Allocation | None = None) -> dict[str, float]:
    """What the job holds, or would hold with the allocation `held`, or asks for while it has
    nothing.
    """
    held = job.allocation if held is None else held
    if held is not None:
        cpus, nodes = held.cpus, held.node_count
        memory = sum(group.memory_mb * group.nodes.bit_count() for group in held.groups)
    else:
        cpus, nodes = job.min_cpus, job.min_nodes
        memory = memory_asked_mb(job, nodes)
    found = {"cpu": float(cpus), "mem": float(memory), "node": float(nodes)}
    spec = job.spec
    for name, count in counts_of(job, held).items():
        found[name] = float(count)
    if spec.licenses:
        for part in spec.licenses.replace(";", ",").split(","):
            name, _, number = part.partition(":")
            found[f"license/{name}"] = float(number) if number.isdecimal() else 1.0
    if job.burst_buffer is not None:
        found[f"bb/{job.burst_buffer.kind}"] = float(job.burst_buffer.mebibytes)
    return found


def asked_for(job: Job, partition: Partition | None) -> dict[str, float]:
    """What the job holds, or is taken to ask for while it has nothing: also all memory of its
    nodes, if it says nothing of memory.
    """
    found = tres_of(job)
    if (
        partition is not None
        and job.allocation is None
        and not job.spec.mem_per_tres
        and not found["mem"]
    ):
        found["mem"] = float(partition.first_node_memory_mb * job.min_nodes)
    return found


def gres_counts(text: str) -> dict[str, int]:
    """`gpu:2,gpu:a100:1,fs` as counts by TRES name; a typed one counts under both names."""
    found: dict[str, int] = {}
    for word in text.split(","):
        parts = (
            word.strip()
            .partition("(")[0]
            .removeprefix("gres:")
            .removeprefix("gres/")
            .replace("=", ":")
            .split(":")
        )
        if not parts[0] or parts[0].lower() == "none":
            continue
        count = int(parts.pop()) if len(parts) > 1 and parts[-1].isdecimal() else 1
        names = [f"gres/{parts[0].lower()}"]
        if len(parts) > 1:
            names.append(f"{names[0]}:{parts[1].lower()}")
        for name in names:
            found[name] = found.get(name, 0) + count
    return found


def totals(nodes: int, table: NodeTable) -> dict[str, float]:
    """What the nodes (a bitmap) have in all."""
    if not nodes:
        return {}
    at = nodeset.positions_array(nodes)
    found = {
        "cpu": float(table.cpus[at].sum()),
        "mem": float(table.memory[at].sum()),
        "node": float(len(at)),
    }
    by_text: dict[str, int] = {}
    for index in at.tolist():
        text = table.nodes[index].gres
        if text:
            by_text[text] = by_text.get(text, 0) + 1
    for text, count in by_text.items():
        for name, each in gres_counts(text).items():
            found[name] = found.get(name, 0.0) + each * count
    return found


class PartitionTotals:
    """What each partition has, remembered until its nodes, its weights or the licences change. Of
    licences each has all.
    """

    def __init__(self, tables: Tables, *, takes_largest: bool = False) -> None:
        self._tables, self._takes_largest = tables, takes_largest
        self._known: dict[str, tuple[int, str, dict[str, float], dict[str, float]]] = {}
        self._licenses: dict[str, int] = {}

    def of(self, partition: Partition) -> tuple[dict[str, float], dict[str, float]]:
        """(totals by TRES, billing weights)."""
        if self._licenses != self._tables.licenses.totals:
            self._licenses = dict(self._tables.licenses.totals)
            self._known.clear()
        known = self._known.get(partition.name)
        if (
            known is None
            or known[0] != partition.nodes
            or known[1] != partition.tres_billing_weights
        ):
            weights = billing_weights(partition.tres_billing_weights)
            counted = totals(partition.nodes, self._tables.nodes)
            counted |= {f"license/{name}": float(n) for name, n in self._licenses.items()}
            counted["billing"] = float(
                int(billing(counted, weights, takes_largest=self._takes_largest))
            )
            known = self._known[partition.name] = (
                partition.nodes,
                partition.tres_billing_weights,
                counted,
                weights,
            )
        return known[2], known[3]
