"""What jobs hold beside processors."""

import pytest
from scheduling_harness import World, make_job, node, table, table_of, tables_of

from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.textbook.further import further_resources
from understudy.controller.scheduling.textbook.variants import EasyBb
from understudy.controller.tables.burst_buffers import BufferState, BurstBuffers, Pool
from understudy.controller.tables.gres import DeviceGroup, GresTable
from understudy.model.burst_buffers import read_lua
from understudy.model.errors import ConfigError


def named(tables, text):
    return {each.name: each for each in further_resources(tables, {"further_resources": text})}


def test_all_licences_count_if_nothing_is_said():
    tables = tables_of(table(2))
    assert further_resources(tables, {}) == ()
    tables.licenses.totals = {"bb": 10, "matlab": 2}
    assert [each.name for each in further_resources(tables, {})] == ["license/bb", "license/matlab"]


def test_none_is_nothing():
    tables = tables_of(table(2))
    tables.licenses.totals = {"bb": 10}
    assert further_resources(tables, {"further_resources": "none"}) == ()


@pytest.mark.parametrize("text", ["gres", "mem/x", "fs/tape", "bandwidth", "license+none", "+"])
def test_a_word_that_names_nothing_is_an_error(text):
    with pytest.raises(ConfigError, match=r"further_resources=.* is none of license"):
        further_resources(tables_of(table(2)), {"further_resources": text})


def test_what_is_named_twice_counts_once():
    tables = tables_of(table(2))
    tables.licenses.totals = {"bb": 10}
    assert list(named(tables, "license/bb+license+license/bb")) == ["license/bb"]


def test_a_licence_is_free_until_a_job_has_it():
    tables = tables_of(table(2))
    tables.licenses.totals = {"bb": 10}
    bb = named(tables, "license")["license/bb"]
    job = make_job(licenses="bb:4,matlab,bb:2")
    assert (bb.capacity(3), bb.free(3)) == (10, 10)
    assert bb.of(job, tables.partitions["main"]) == 6
    tables.licenses.take(job.job_id, "bb:6")
    assert (bb.free(3), bb.held(job, 3)) == (4, 6)


def test_memory_is_that_of_the_nodes_and_what_jobs_ask_of_it():
    tables = tables_of(table(4, cores=4, memory=1000))
    memory = named(tables, "mem")["mem"]
    main = tables.partitions["main"]
    assert (memory.capacity(0b0111), memory.free(0b0111)) == (3000, 3000)
    assert memory.of(make_job(num_tasks=4, memory_per_cpu_mb=100), main) == 400
    assert memory.of(make_job(min_nodes=2, memory_per_node_mb=100), main) == 200
    assert memory.of(make_job(), main) == 0


def test_gpus_are_those_of_the_nodes_and_what_jobs_ask_of_them():
    made = table(2)
    made.gres = GresTable(("gpu",), [(DeviceGroup("gpu", "a", 4),), (DeviceGroup("gpu", "b", 2),)])
    tables = tables_of(made)
    found = named(tables, "gres/gpu+gres/gpu:a")
    assert [each.capacity(3) for each in found.values()] == [6, 4]
    job = make_job(min_nodes=2, gres="gpu:a:1")
    assert [each.of(job, tables.partitions["main"]) for each in found.values()] == [2, 2]


def test_what_a_job_holds_of_its_nodes_counts_there_alone():
    nodes = [node(i, cores=2, memory=1000) for i in range(2)]
    for each in nodes:
        each.tmp_disk_mb = 500
    w = World(table_of(nodes), EasyBb, SelectConsTres(frozenset({"CR_CPU_MEMORY"})),
              {"further_resources": "mem+fs/disk"})  # fmt: skip
    job = w.submit(
        at=0, cpus=4, run_s=10, limit_s=10, min_nodes=2, memory_per_node_mb=300, tmp_disk_mb=100
    )
    w.run(until=5)
    memory, disk = w.policy.further
    assert (memory.held(job, 3), memory.held(job, 1), memory.free(3)) == (600, 300, 1400)
    assert (disk.held(job, 3), disk.held(job, 1), disk.free(1)) == (200, 100, 400)


def test_memory_that_nobody_consumes_is_short_for_nobody():
    w = World(table(1, cores=4, memory=1000), EasyBb, SelectConsTres(frozenset({"CR_CPU"})),
              {"further_resources": "mem"})  # fmt: skip
    w.submit(at=0, cpus=4, run_s=50, limit_s=50, memory_per_cpu_mb=600)
    w.run()
    assert w.starts == {1: 0}


def test_devices_that_there_are_not_are_an_error():
    with pytest.raises(ConfigError, match="gres/nosuch: GresTypes names no such devices"):
        further_resources(tables_of(table(2)), {"further_resources": "gres/nosuch"})


def test_memory_that_is_short_is_kept_for_the_head():
    w = World(table(4, cores=1, memory=100), EasyBb, SelectConsTres(frozenset({"CR_CPU_MEMORY"})),
              {"further_resources": "mem"})  # fmt: skip
    w.submit(at=0, cpus=2, run_s=50, limit_s=50, min_nodes=2, memory_per_cpu_mb=100)
    w.submit(at=1, cpus=3, run_s=50, limit_s=50, min_nodes=3, memory_per_cpu_mb=100)
    w.submit(at=2, cpus=1, run_s=60, limit_s=60, memory_per_cpu_mb=100)
    w.submit(at=3, cpus=2, run_s=60, limit_s=60, min_nodes=2, memory_per_cpu_mb=100)
    w.run()
    assert w.starts == {1: 0, 2: 50, 3: 2, 4: 100}


def test_space_of_burst_buffers_is_counted_by_pools() -> None:
    tables = tables_of(table(2))
    tables.burst_buffers = BurstBuffers("lua", {"a": Pool("a", 100, 10), "b": Pool("b", 5)})
    found = further_resources(tables, {})
    assert [(each.name, each.capacity(3), each.free(3)) for each in found] == [
        ("bb/a", 100, 100),
        ("bb/b", 5, 5),
    ]
    job = make_job()
    job.burst_buffer = read_lua(["#BB_LUA pool=a capacity=15"], ["a", "b"])
    assert [each.of(job, tables.partitions["main"]) for each in found] == [20, 0]
    tables.burst_buffers.take(job, BufferState.RUNNING, 0.0)
    assert [(each.held(job, 3), each.free(3)) for each in found] == [(20, 80), (0, 5)]
    assert found[0].reason == "BurstBufferResources"
    assert [each.name for each in further_resources(tables, {"further_resources": "bb/b"})] == [
        "bb/b"
    ]
    with pytest.raises(ConfigError, match="bb/c: there is no such pool"):
        further_resources(tables, {"further_resources": "bb/c"})
