"""Jobs that may start in one of several partitions. As seen of real Slurm 22.05.8.

Covers: controller/scheduling/slurm/main_pass, controller/tables/shape.
"""

from __future__ import annotations

from typing import Any

import pytest
from enforcement_harness import WAIT_S, House

from understudy.controller.tables.partition import Partition


@pytest.mark.parametrize(
    ("asked", "is_full", "got"),
    [
        ({"mem_per_node_mb": 1500}, False, ("wide", 2)),
        ({"mem_per_node_mb": 1500}, True, ("main", 3)),
        ({}, False, ("wide", 4)),
        ({}, True, ("main", 8)),
    ],
)
def test_each_partition_wants_as_many_cpus_for_memory_of_nodes_as_its_own_maxmempercpu_says(
    asked: dict[str, Any], is_full: bool, got: tuple[str, int]
) -> None:
    h = House(enforce="", max_memory_per_cpu_mb=500)
    tables = h.core.tables
    wide = Partition("wide", priority_tier=2, max_time_s=600, max_memory_per_cpu_mb=1000)
    wide.place(0b0011, tables.nodes)
    tables.partitions["main"].place(0b1100, tables.nodes)
    tables.partitions["wide"] = wide
    if is_full:
        h.submit(partition="wide", min_nodes=2, exclusive=True, num_tasks=2)
        h.run(WAIT_S)
    job = h.submit(partition="wide,main", num_tasks=1, time_limit_s=300, **asked)
    h.run(WAIT_S)
    assert job.allocation is not None
    assert (job.partition, job.allocation.cpus) == got
