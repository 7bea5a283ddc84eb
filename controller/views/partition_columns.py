"""The columns of the partitions table: one function each, from a partition to the value that
understudy.model.records describes.

Place: views; read by understudy.controller.views.query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.controller.facts.job import memory_text
from understudy.controller.priority.tres import billing, billing_weights
from understudy.controller.tables.gres_texts import configured_counts
from understudy.model import nodeset
from understudy.model.conf_values import shown_preempt_mode
from understudy.model.records import PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.partition import Partition


def total_cpus(core: Core, partition: Partition) -> int:
    return sum(
        kind.all_cpus * (kind.nodes & partition.nodes).bit_count()
        for kind in core.tables.nodes.kinds
    )


def tres(core: Core, partition: Partition) -> str:
    if not partition.nodes:
        return ""
    memory = sum(
        kind.all_memory_mb * (kind.nodes & partition.nodes).bit_count()
        for kind in core.tables.nodes.kinds
    )
    cpus = sum(
        kind.cpus * (kind.nodes & partition.nodes).bit_count() for kind in core.tables.nodes.kinds
    )
    further = _further(core, partition)
    cost = cpus
    if partition.tres_billing_weights:
        have: dict[str, float] = {"cpu": cpus, "mem": memory, "node": partition.nodes.bit_count()}
        have |= further
        weights = billing_weights(partition.tres_billing_weights)
        cost = int(billing(have, weights, takes_largest=core.settings.bills_largest))
    plain = (
        f"cpu={cpus},mem={memory_text(memory)},node={partition.nodes.bit_count()},billing={cost}"
    )
    tracked = ((name, further.get(name)) for name in core.settings.tracked_tres)
    return plain + "".join(f",{name}={count}" for name, count in tracked if count)


def _further(core: Core, partition: Partition) -> dict[str, int]:
    """Its generic resources, and all licences, by TRES name."""
    gres, found = core.tables.nodes.gres, {}
    if gres is not None and core.settings.tracked_gres:
        found = configured_counts(gres.layouts[index] for index in nodeset.indices(partition.nodes))
    licenses = core.tables.licenses.totals.items()
    return found | {f"license/{name.lower()}": count for name, count in licenses}


def _nodes(core: Core, partition: Partition) -> str:
    nodes = partition.nodes
    if partition.has_other_nodes:
        text = partition.node_expression
        nodes = core.names.all if text.upper() == "ALL" else core.names.to_bitmap(text)
    return core.names.to_expression(nodes)


def _names(value: tuple[str, ...] | None) -> list[str] | None:
    return None if value is None else list(value)


def _constant(value: Any) -> Callable[[Core, Partition], Any]:
    return lambda _core, _partition: value


PARTITION_COLUMNS: Final[dict[str, Callable[[Core, Partition], Any]]] = {
    "name": lambda _c, p: p.name,
    "cluster": lambda c, _p: c.settings.cluster_name,
    "is_default": lambda _c, p: p.is_default,
    "state": lambda _c, p: p.state,
    "nodes": _nodes,
    "node_indices": lambda _c, p: [list(run) for run in nodeset.runs(p.nodes)],
    "total_nodes": lambda _c, p: p.nodes.bit_count(),
    "total_cpus": total_cpus,
    "tres": tres,
    "max_time_s": lambda _c, p: p.max_time_s,
    "default_time_s": lambda _c, p: p.default_time_s,
    "min_nodes": lambda _c, p: p.min_nodes,
    "max_nodes": lambda _c, p: p.max_nodes,
    "max_cpus_per_node": lambda _c, p: p.max_cpus_per_node,
    "default_memory_per_node_mb": lambda _c, p: p.default_memory_per_node_mb,
    "default_memory_per_cpu_mb": lambda _c, p: p.default_memory_per_cpu_mb,
    "max_memory_per_node_mb": lambda _c, p: p.max_memory_per_node_mb,
    "max_memory_per_cpu_mb": lambda _c, p: p.max_memory_per_cpu_mb,
    "over_time_limit_s": lambda _c, p: p.over_time_limit_s,
    "grace_time_s": lambda _c, p: p.grace_time_s,
    "priority_tier": lambda _c, p: p.priority_tier,
    "priority_job_factor": lambda _c, p: p.priority_job_factor,
    "oversubscribe": lambda _c, p: p.oversubscribe,
    "preempt_mode": lambda c, p: shown_preempt_mode(p.preempt_mode or c.settings.preempt_mode),
    "least_loaded_nodes": lambda _c, p: p.least_loaded_nodes,
    "select_type_parameters": lambda _c, p: p.select_type_parameters or "NONE",
    "over_time_limit_is_unlimited": lambda _c, p: p.over_time_limit_is_unlimited,
    "default_time_is_unlimited": lambda _c, p: p.default_time_is_unlimited,
    "exclusive_user": lambda _c, p: p.exclusive_user,
    "requires_reservation": lambda _c, p: p.requires_reservation,
    "alternate": lambda _c, p: p.alternate,
    "qos": lambda _c, p: p.qos,
    "node_sets": lambda _c, p: p.node_sets,
    "tres_billing_weights": lambda _c, p: p.tres_billing_weights,
    "job_defaults": lambda _c, p: p.job_defaults,
    "hidden": lambda _c, p: p.hidden,
    "root_only": lambda _c, p: p.root_only,
    "disable_root_jobs": lambda _c, p: p.disable_root_jobs,
    "allow_groups": lambda _c, p: _names(p.allow_groups),
    "allow_accounts": lambda _c, p: _names(p.allow_accounts),
    "allow_qos": lambda _c, p: _names(p.allow_qos),
    "deny_accounts": lambda _c, p: list(p.deny_accounts),
    "deny_qos": lambda _c, p: list(p.deny_qos),
    "cpu_bind": lambda _c, p: p.cpu_bind,
    "alloc_nodes": lambda _c, p: p.alloc_nodes,
}


for _name, _column in PARTITIONS.items():  # what is not emulated
    if _name not in PARTITION_COLUMNS:
        PARTITION_COLUMNS[_name] = _constant(None if _column.optional else _column.kind())
