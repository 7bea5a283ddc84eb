"""How many tasks, nodes and CPUs, and how much memory: of itself and in a partition."""

from __future__ import annotations

from typing import Any

import pytest
from scheduling_harness import make_job

from understudy.controller.tables.job import Job
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.shape import (
    Memory,
    Reach,
    Shape,
    memory_of,
    name_nodes,
    nodes_of_size,
    reach_of,
    shape_of,
)
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import JobSpec


@pytest.mark.parametrize(
    ("asked", "shape"),
    [
        ({}, (1, 1, 1, None, 1)),
        ({"num_tasks": 2, "min_nodes": 3, "max_nodes": 5}, (2, 1, 2, 2, 2)),
        ({"min_nodes": 2, "max_nodes": 3, "cpus_per_task": 4}, (2, 4, 2, 3, 4)),
        ({"min_nodes": 2, "sockets_per_node": 2, "cores_per_socket": 2}, (8, 1, 2, None, 8)),
        ({"min_nodes": 2, "max_nodes": 3, "sockets_per_node": 2}, (2, 1, 2, 3, 1)),
        ({"num_tasks": 9, "min_nodes": 2, "overcommit": True}, (9, 1, 2, None, 2)),
        ({"num_tasks": 9, "spread_job": True}, (9, 1, 1, 6, 9)),
    ],
)
def test_what_was_asked_for_is_made_whole(asked: dict[str, Any], shape: tuple[int, ...]) -> None:
    assert shape_of(JobSpec(**asked), 6) == Shape(*shape)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"min_nodes": 0}, ErrorCode.INVALID_NODE_COUNT),
        ({"min_nodes": 3, "max_nodes": 2}, ErrorCode.INVALID_NODE_COUNT),
        ({"num_tasks": 0}, ErrorCode.INVALID_TASK_COUNT),
        ({"cpus_per_task": -1}, ErrorCode.INVALID_CPU_COUNT),
    ],
)
def test_what_contradicts_itself_is_refused(asked: dict[str, Any], code: ErrorCode) -> None:
    with pytest.raises(SlurmError) as error:
        shape_of(JobSpec(**asked), 6)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("asked", "count", "expected"),
    [
        ({}, 3, (3, 3, 3)),
        ({"cpus_per_task": 2}, 2, (2, 2, 4)),
        ({"min_nodes": 1, "max_nodes": 4, "cpus_per_task": 2}, 2, (2, 2, 2)),
        ({"min_nodes": 2, "max_nodes": 4}, 2, (2, 2, 2)),
        ({"min_nodes": 1, "max_nodes": 3, "ntasks_per_node": 2}, 3, (3, 6, 6)),
        ({"ntasks_per_node": 2, "cpus_per_task": 2}, 2, (2, 4, 8)),
        ({"min_nodes": 4, "max_nodes": 4, "ntasks_per_node": 2}, 2, (4, 8, 8)),
        ({"cores_per_socket": 2}, 1, (1, 2, 2)),
        ({"sockets_per_node": 2, "cores_per_socket": 2, "extra_node_info": True}, 3, (3, 12, 12)),
        ({"num_tasks": 9, "overcommit": True}, 3, (3, 9, 3)),
        ({"num_tasks": 2}, 3, (3, 2, 3)),
    ],
)
def test_a_job_has_all_nodes_that_it_names(
    asked: dict[str, Any], count: int, expected: tuple[int, int, int]
) -> None:
    spec = JobSpec(**asked)
    job = Job(1, spec, 0, 0, 0, ("main",), **shape_of(spec, 6)._asdict())
    name_nodes(job, count)
    assert (job.min_nodes, job.num_tasks, job.min_cpus) == expected


def test_a_job_cannot_name_more_nodes_than_it_may_have() -> None:
    with pytest.raises(SlurmError):
        name_nodes(make_job(max_nodes=2), 3)


def test_a_partition_has_its_say() -> None:
    where = Partition("main", min_nodes=2, max_nodes=4)
    assert reach_of(make_job(), where, 9, None, 0) == Reach(1, 2, 2, 4)
    assert reach_of(make_job(num_tasks=3), where, 9, None, 0) == Reach(3, 2, 2, 3)
    assert reach_of(make_job(max_nodes=9), where, 9, None, 0) == Reach(1, 2, 4, 4)
    assert reach_of(make_job(qos_flags=("PartitionMinNodes",)), where, 9, 1, 0) == Reach(1, 1, 1, 1)
    assert reach_of(make_job(), where, 9, None, 6) == Reach(1, 2, 2, 6)
    assert reach_of(make_job(min_nodes=5), where, 9, None, 0) is None


def test_who_says_nothing_of_memory_has_what_the_partition_gives() -> None:
    where = Partition("main", default_memory_per_node_mb=100, default_memory_per_cpu_mb=30)
    assert memory_of(make_job(), where) == Memory(None, 30)
    assert memory_of(make_job(memory_per_node_mb=50), where) == Memory(50, None)


def test_tasks_of_several_cpus_that_do_not_fill_a_node_count_as_one_more() -> None:
    assert nodes_of_size(make_job(num_tasks=5), 4) == 2
    assert nodes_of_size(make_job(num_tasks=5, cpus_per_task=2), 4) == 3
    assert nodes_of_size(make_job(num_tasks=5, cpus_per_task=2, min_nodes=3), 4) == 4


def test_tasks_that_do_not_fit_the_nodes_are_taken_as_long_as_the_job_is_held() -> None:
    """`-n8 -N1 --ntasks-per-node=3`: 22.05.8 holds it; that no node will do is found otherwise."""
    shape = shape_of(JobSpec(num_tasks=8, ntasks_per_node=3, min_nodes=1, max_nodes=1), 4)
    assert (shape.num_tasks, shape.min_nodes, shape.max_nodes, shape.min_cpus) == (8, 1, 1, 8)


@pytest.mark.parametrize(
    ("asked", "cpus"),
    [
        ({"min_nodes": 1, "max_nodes": 2, "cpus_per_task": 5, "ntasks_per_node": 4}, 5),
        ({"min_nodes": 1, "max_nodes": 2, "cpus_per_task": 5, "ntasks_per_node": 9}, 45),
        ({"min_nodes": 2, "max_nodes": 4, "cpus_per_task": 2, "ntasks_per_node": 3}, 12),
        ({"min_nodes": 2, "max_nodes": 4, "ntasks_per_node": 3}, 6),
        ({"num_tasks": 4, "ntasks_per_node": 3, "overcommit": True}, 1),
        (
            {"num_tasks": 12, "min_nodes": 3, "max_nodes": 5, "ntasks_per_node": 2,
             "overcommit": True},
            3,
        ),
    ],
)  # fmt: skip
def test_cpus_of_several_tasks_a_node_as_22_05_8_counts_them(
    asked: dict[str, Any], cpus: int
) -> None:
    assert shape_of(JobSpec(**asked), 8).min_cpus == cpus
