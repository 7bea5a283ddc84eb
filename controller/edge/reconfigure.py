"""scontrol reconfigure: what can be taken over from a changed slurm.conf without a restart.

Place: edge. Settings, partitions, weights and features of nodes are taken over.
What was set by `scontrol update partition` is lost, as in Slurm. Follows: scontrol(1) reconfigure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.core import log
from understudy.controller.edge.build import build_tables
from understudy.controller.edge.plugins import wrong_parameters
from understudy.controller.nodes.events import look_at_devices
from understudy.controller.pending.access import accounting_has_changed
from understudy.controller.pending.eligibility import review_all
from understudy.model.conf import SlurmConfig, load
from understudy.model.errors import ConfigError, ErrorCode, SlurmError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from understudy.controller.core.core import Core
    from understudy.controller.tables.node import NodeTable
    from understudy.controller.tables.settings import Settings


def take_over(
    core: Core, path: Path, before: SlurmConfig, settings_of: Callable[[SlurmConfig], Settings]
) -> SlurmConfig:
    """Read the file again and take over what can be taken over.

    Raises:
        SlurmError: the file has errors, the policy cannot read a word of it, its nodes differ from
            those in the tables, or so do its types of scheduler or selection; nothing is changed
            then.
    """
    config = _read(path, before)
    tables, _ = build_tables(config)
    ours, theirs = core.tables.nodes.nodes, tables.nodes.nodes

    def shape(nodes: list[object]) -> list[tuple[object, ...]]:
        fields = ("name", "cpus", "sockets", "cores_per_socket", "threads_per_core", "memory_mb")
        return [tuple(getattr(node, field) for field in fields) for node in nodes]

    if shape(list(ours)) != shape(list(theirs)):
        raise SlurmError(ErrorCode.RESTART_FOR_NODES)
    core.settings = settings_of(config)
    core.count_licenses()
    core.tables.complete_wait_s = core.settings.complete_wait_s
    core.tables.nodes.tree = tables.nodes.tree
    for node, new in zip(ours, theirs, strict=True):
        node.weight, node.features, node.active_features = (
            new.weight,
            new.features,
            new.active_features,
        )
        node.gres = new.gres
        node.address, node.hostname, node.port, node.tmp_disk_mb = (
            new.address,
            new.hostname,
            new.port,
            new.tmp_disk_mb,
        )
    _take_over_gres(core.tables.nodes, tables.nodes)
    core.tables.nodes.reconfigured()
    used = {
        name
        for job in (*core.tables.pending.values(), *core.tables.running.values())
        for name in job.partitions
    }
    for name in list(core.tables.partitions):
        core.journal.partition(name)
        if name not in tables.partitions and name not in used:
            del core.tables.partitions[name]
    for name, partition in tables.partitions.items():
        core.tables.partitions[name] = partition
        core.journal.partition(name)
    for partition in core.tables.partitions.values():
        partition.cluster_memory_limits_mb = core.settings.memory_limits_mb
    if core.tables.burst_buffers and core.buffer_script is None:  # which tells of them itself
        core.tables.burst_buffers.resize(list(tables.burst_buffers.pools.values()))
    core.forget_feasibility()
    now = core.time.now()
    look_at_devices(core, now)
    if core.job_limits is not None:
        accounting_has_changed(core)
    core.last_partition_update = core.last_node_update = now
    review_all(core, now)
    return config


def _read(path: Path, before: SlurmConfig) -> SlurmConfig:
    """The file, unless it has errors or needs a restart."""
    try:
        config = load(path)
    except ConfigError as error:
        log.error("slurm.conf is not taken over: %s", error)
        raise SlurmError(-1, str(error)) from None
    if config.text("SchedulerType") != before.text("SchedulerType"):
        raise SlurmError(ErrorCode.RESTART_FOR_SCHEDULER)
    if config.text("SelectType") != before.text("SelectType"):
        raise SlurmError(ErrorCode.RESTART_FOR_SELECT)
    if config.burst_buffer_kind != before.burst_buffer_kind:
        raise SlurmError(ErrorCode.RESTART_FOR_BURST_BUFFER)
    for _, wrong in wrong_parameters(config):  # with which it would not start again
        log.error("slurm.conf is not taken over: %s", wrong)
        raise SlurmError(-1, wrong)
    return config


def _take_over_gres(ours: NodeTable, theirs: NodeTable) -> None:
    """What jobs hold stays theirs."""
    if ours.gres is None or theirs.gres is None:
        ours.gres = ours.gres or theirs.gres
        return
    ours.gres.names, ours.gres.configured = theirs.gres.names, theirs.gres.configured
    for index, layout in enumerate(theirs.gres.layouts):
        if layout != ours.gres.layouts[index]:
            ours.gres.set_layout(index, layout)
