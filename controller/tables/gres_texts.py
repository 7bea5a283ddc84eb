"""Generic resources as commands and accounting see them: texts and counts from what jobs hold and
ask for, and from what nodes have.

Place: tables, pure; used by the columns of jobs, nodes and partitions. Follows
scontrol(1) and what it prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.tables.gres import keys_of
from understudy.controller.tables.gres_layout import gres_text, ranges
from understudy.model.gres import read_request

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.gres import Held, Layout
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import Node, NodeTable


def counts_of(job: Job, held: Allocation | None = None) -> dict[str, int]:
    """What the job holds, or would hold with the allocation, or asks for while it has nothing, by
    `gres/gpu` and `gres/gpu:a100`.
    """
    found: dict[str, int] = {}
    held = job.allocation if held is None else held
    if held is not None:
        for group in held.groups:
            for name, kind, amount, _ in group.gres:
                _add(found, name, kind, amount * group.nodes.bit_count())
        return found
    spec = job.spec
    if not (spec.gres or spec.tres_per_job or spec.tres_per_task or spec.tres_per_socket):
        return found
    for text, times in (
        (spec.gres, job.min_nodes),
        (spec.tres_per_socket, job.min_nodes),
        (spec.tres_per_task, job.num_tasks),
        (spec.tres_per_job, 1),
    ):
        of_text: dict[str, int] = {}
        for want in read_request(text):
            _add(of_text, want.name, want.type, want.count * times)
        for key, count in of_text.items():
            found[key] = max(found.get(key, 0), count)
    return found


def held_counts(held: Iterable[Held]) -> dict[str, int]:
    """The same of what somebody holds, node by node."""
    found: dict[str, int] = {}
    for each in held:
        _add(found, each.name, each.type, each.amount)
    return found


def _add(found: dict[str, int], name: str, kind: str, count: int) -> None:
    if count:
        for key in keys_of(name, kind):
            found[f"gres/{key}"] = found.get(f"gres/{key}", 0) + count


def configured_counts(layouts: Iterable[Layout]) -> dict[str, int]:
    """What nodes have, as `counts_of`."""
    found: dict[str, int] = {}
    for layout in layouts:
        for group in layout:
            _add(found, group.name, group.type, group.count)
    return found


def used_counts(table: NodeTable, index: int) -> dict[str, int]:
    """What jobs hold on a node, as `counts_of`."""
    gres = table.gres
    if gres is None:
        return {}
    used = {
        f"gres/{key}": int(vector[index] - gres.free[key][index])
        for key, vector in gres.total.items()
    }
    for name in gres.shared:
        for group in gres.layouts[index]:
            if group.name == name:
                parts = gres.used_parts[name][index]
                used |= {f"gres/{key}": sum(parts.values()) for key in keys_of(name, group.type)}
    return used


def allocated(job: Job) -> str:
    """`gpu:a:3,tape:1`: what the job holds in all."""
    if job.allocation is None:
        return ""
    sums: dict[tuple[str, str], int] = {}
    for group in job.allocation.groups:
        for name, kind, amount, _ in group.gres:
            sums[name, kind] = sums.get((name, kind), 0) + amount * group.nodes.bit_count()
    return ",".join(f"{':'.join(filter(None, key))}:{count}" for key, count in sums.items())


def share_text(held: tuple[Held, ...]) -> str:
    """`gpu:a:2(IDX:0,3),tape(CNT:1)`: what a job holds on one node."""
    return ",".join(_share(each) for each in held)


def _share(held: Held) -> str:
    label = ":".join(filter(None, (held.name, held.type)))
    if held.devices or (held.type and not held.amount):
        return f"{label}:{held.amount}(IDX:{ranges(held.devices)})"
    return f"{label}(CNT:{held.amount})"


def node_gres(table: NodeTable, node: Node) -> str:
    """A node's Gres, with the sockets near its devices."""
    if table.gres is None or not node.gres:
        return node.gres
    return gres_text(node.gres, table.gres.layouts[node.index], node.cores_per_socket, node.sockets)


def node_gres_used(table: NodeTable, node: Node) -> str:
    """`gpu:a:1(IDX:0),tape:0`: what jobs hold on the node, by each of GresTypes."""
    gres = table.gres
    if gres is None:
        return ""
    parts = []
    for name in gres.names:
        groups = [group for group in gres.layouts[node.index] if group.name == name]
        used = gres.used_devices[name][node.index] if groups and name in gres.used_devices else 0
        shown = set()
        for group in groups:
            if group.type in shown:
                continue
            shown.add(group.type)
            alike = [other for other in groups if other.type == group.type]
            label = ":".join(filter(None, (name, group.type)))
            if group.parts:
                devices = used & sum(1 << gpu for gpu, count in enumerate(group.parts) if count)
                parts.append(
                    f"{name}:{group.type or '(null)'}:{devices.bit_count()}(IDX:"
                    f"{ranges(devices) or 'N/A'})"
                )
            elif group.has_files and group.type:
                devices = used & sum(other.devices for other in alike)
                parts.append(f"{label}:{devices.bit_count()}(IDX:{ranges(devices) or 'N/A'})")
            else:
                key = keys_of(name, group.type)[-1]
                parts.append(
                    f"{label}:{int(gres.total[key][node.index] - gres.free[key][node.index])}"
                )
        if not groups:
            parts.append(f"{name}:0")
    return ",".join(parts)
