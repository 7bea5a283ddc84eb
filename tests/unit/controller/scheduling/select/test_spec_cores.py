"""Cores and memory that are the system's (CoreSpecCount, CpuSpecList, MemSpecLimit), as recorded
from Slurm 22.05.8.

Nodes have two sockets of four cores.
"""

import pytest
from controller_harness import Harness
from scheduling_harness import make_job, node, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.views.job_columns import cpus_of
from understudy.controller.views.node_columns import NODE_COLUMNS, NodeView

BOTH_LAST, FIRST, THREE = 1 << 3 | 1 << 7, 1, 1 << 7 | 1 << 3 | 1 << 6
ALL = (1 << 8) - 1


def tables(spec_cores=BOTH_LAST, *, threads=2, count=1, mem_spec=0):
    each = [
        node(
            i,
            sockets=2,
            cores=4,
            threads=threads,
            memory=8000,
            spec_cores=spec_cores,
            mem_spec=mem_spec,
        )
        for i in range(count)
    ]
    return tables_of(table_of(each))


def chosen(where, parameters="CR_CORE_MEMORY", **fields):
    job = make_job(
        memory_per_cpu_mb=fields.pop(
            "memory_per_cpu_mb", None if "memory_per_node_mb" in fields else 100
        ),
        **fields,
    )
    return SelectConsTres(frozenset({parameters})).select(
        Ask(job, where.partitions["main"], ALL), where
    )


@pytest.mark.parametrize(
    ("spec_cores", "threads", "fields", "cpus", "cores"),
    [
        (BOTH_LAST, 2, {"num_tasks": 12}, 12, "0-5,8-13"),
        (BOTH_LAST, 2, {"exclusive": True}, 12, "0-5,8-13"),
        (BOTH_LAST, 2, {"num_tasks": 3}, 4, "0-1,8-9"),
        (FIRST, 2, {"num_tasks": 4}, 4, "2-3,8-9"),
        (FIRST, 2, {"exclusive": True}, 14, "2-15"),
        (THREE, 1, {"num_tasks": 2}, 2, "0,4"),
        (THREE, 1, {"exclusive": True}, 5, "0-2,4-5"),
    ],
)
def test_jobs_get_the_other_cores(spec_cores, threads, fields, cpus, cores):
    where = tables(spec_cores, threads=threads)
    found = chosen(where, **fields)
    assert (found.cpus, cpus_of(where.nodes.nodes[0], found.groups[0].cores)) == (cpus, cores)


def test_a_node_is_full_when_jobs_have_what_they_can_have_and_empty_again_afterwards():
    where = tables()
    held = chosen(where, num_tasks=12)
    where.nodes.allocate(held)
    assert where.nodes.full_nodes == 1
    assert chosen(where, num_tasks=1) is None
    where.nodes.release(held, 1)
    assert where.nodes.used_cores == [BOTH_LAST]
    assert (where.nodes.idle_nodes, where.nodes.free_cpus.tolist()) == (1, [12])


def test_more_tasks_than_a_node_has_other_cores_go_to_two():
    assert chosen(tables(count=2), num_tasks=13, min_nodes=1, max_nodes=2).per_node_text() in (
        "12,2",
        "2,12",
    )
    assert chosen(tables(count=2), num_tasks=13, max_nodes=1) is None


def test_what_comes_free_later_is_without_them():
    where = tables()
    first = make_job(1, num_tasks=12, memory_per_cpu_mb=100)
    selector, main = SelectConsTres(frozenset({"CR_CORE_MEMORY"})), where.partitions["main"]
    first.allocation = selector.select(Ask(first, main, ALL), where)
    where.nodes.allocate(first.allocation)
    first.start_time, first.time_limit_s, first.end_time = 0, 1000, 1000
    where.jobs[1] = where.running[1] = first
    assert selector.will_run(
        Ask(make_job(2, num_tasks=12, memory_per_cpu_mb=100), main, ALL), where, 100
    ) == (1000, 1)
    assert (
        selector.will_run(
            Ask(make_job(3, num_tasks=13, memory_per_cpu_mb=100), main, ALL), where, 100
        )
        is None
    )


def test_memory_of_the_system_is_given_to_nobody_where_memory_is_given():
    assert chosen(tables(0, mem_spec=1000), memory_per_node_mb=7500) is None
    assert chosen(tables(0, mem_spec=1000), memory_per_node_mb=7000).groups[0].memory_mb == 7000
    assert chosen(tables(0, mem_spec=1000), "CR_CORE", memory_per_node_mb=7500) is not None


def test_a_socket_with_such_a_core_is_not_whole():
    assert chosen(tables(FIRST), "CR_SOCKET_MEMORY", num_tasks=4).groups[0].cores == 0b11110000
    assert chosen(tables(BOTH_LAST), "CR_SOCKET_MEMORY", num_tasks=1) is None


def test_what_nodes_and_partitions_show():
    h = Harness(tables(mem_spec=1000))
    h.submit(num_tasks=12, mem_per_cpu_mb=100)
    view, one = NodeView(h.core), h.core.tables.nodes.nodes[0]
    shown = {
        name: NODE_COLUMNS[name](view, one)
        for name in (
            "cpus",
            "effective_cpus",
            "alloc_cpus",
            "idle_cpus",
            "memory_mb",
            "tres_configured",
        )
    }
    assert shown == {
        "cpus": 16, "effective_cpus": 12, "alloc_cpus": 12, "idle_cpus": 4, "memory_mb": 8000,
        "tres_configured": "cpu=12,mem=8000M,billing=12"
    }  # fmt: skip
    names = ("core_spec_count", "cpu_spec_list", "mem_spec_limit_mb", "alloc_memory_mb")
    assert [NODE_COLUMNS[name](view, one) for name in names] == [2, "6-7,14-15", 1000, 1200]


@pytest.mark.parametrize(("memory", "cores"), [(4000, 0b01), (8001, 0)])
def test_of_two_sockets_of_one_core_the_one_that_is_left_goes_with_its_memory(memory, cores):
    where = tables_of(table_of([node(0, sockets=2, cores=1, memory=8000, spec_cores=0b10)]))
    got = chosen(where, "CR_SOCKET_MEMORY", num_tasks=1, memory_per_cpu_mb=memory)
    assert (0 if got is None else got.shares[0].cores) == cores
