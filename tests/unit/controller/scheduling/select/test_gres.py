"""Generic resources in the choice of nodes, cores and devices. The expected values were taken from
a real cluster with such nodes.

Covers: controller/scheduling/select/gres_needs.
"""

from __future__ import annotations

from typing import Any

import pytest
from scheduling_harness import make_job, node, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.free import FreeState
from understudy.controller.scheduling.select.gres import trimmed
from understudy.controller.tables.gres import DeviceGroup, GresTable, Held
from understudy.model import nodeset

FLAT = (DeviceGroup("gpu", "b", 8, 0, has_files=True), DeviceGroup("tape", "", 2))
SOCKETS = (DeviceGroup("gpu", "a", 4, 0, has_files=True),)
NEAR = (
    DeviceGroup("gpu", "d", 2, 0, has_files=True, cores=0x0F),
    DeviceGroup("gpu", "d", 2, 2, has_files=True, cores=0xF0),
)
FOUR = tuple(
    DeviceGroup("gpu", "e", 2, 2 * at, has_files=True, cores=0xF << 4 * at) for at in range(4)
)
MANY = (
    DeviceGroup("gpu", "m", 4, 0, has_files=True, cores=0x0F),
    DeviceGroup("gpu", "m", 4, 4, has_files=True, cores=0xF0),
)
ONE_SIDE = (DeviceGroup("gpu", "o", 4, 0, has_files=True, cores=0x0F),)
KINDS: dict[str, tuple[Any, dict[str, int]]] = {
    "f": (FLAT, {"sockets": 16}),
    "g": (SOCKETS, {"sockets": 2, "cores": 4}),
    "h": (SOCKETS, {"sockets": 2, "cores": 4, "threads": 2}),
    "a": (NEAR, {"sockets": 2, "cores": 4}),
    "c": ((), {"sockets": 8}),
    "4": (FOUR, {"sockets": 4, "cores": 4}),
    "m": (MANY, {"sockets": 2, "cores": 4}),
    "t": (MANY, {"sockets": 2, "cores": 4, "threads": 2}),
    "o": (ONE_SIDE, {"sockets": 2, "cores": 4}),
}


class Bench:
    """Nodes of the kinds named, one a letter; jobs are placed one after the other."""

    def __init__(self, kinds: str) -> None:
        nodes = [node(i, memory=64_000, **KINDS[kind][1]) for i, kind in enumerate(kinds)]
        self.table = table_of(nodes)
        self.table.gres = GresTable(("gpu", "tape"), [KINDS[kind][0] for kind in kinds])
        self.tables = tables_of(self.table)
        self.partition = self.tables.partitions["main"]
        self.selector = SelectConsTres(frozenset({"CR_CORE"}))
        self.jobs = 0

    def place(self, **fields: Any) -> list[tuple[int, str, str]] | None:
        """Per node: its index, its cores, its devices; None if it does not start now."""
        self.jobs += 1
        job = make_job(self.jobs, **fields)
        allocation = self.selector.select(
            Ask(job, self.partition, self.table.up_nodes), self.tables
        )
        if allocation is None:
            return None
        self.table.allocate(allocation)
        job.allocation = allocation
        return [
            (share.node, _ranges(share.cores), " ".join(_held(*held) for held in share.gres))
            for share in allocation.shares
        ]


def _ranges(mask: int) -> str:
    return ",".join(
        str(first) if length == 1 else f"{first}-{first + length - 1}"
        for first, length in nodeset.runs(mask)
    )


def _held(name: str, _kind: str, amount: int, devices: int) -> str:
    return f"{name}:{_ranges(devices) if devices else f'x{amount}'}"


@pytest.mark.parametrize(
    ("kinds", "asked", "expected"),
    [
        ("f", {"num_tasks": 1, "gres": "gpu:1"}, [(0, "15", "gpu:0")]),
        ("f", {"min_nodes": 1, "max_nodes": 1, "gres": "gpu:1"}, [(0, "0", "gpu:0")]),
        ("f", {"num_tasks": 3, "max_nodes": 1, "gres": "gpu:b:3"}, [(0, "13-15", "gpu:0-2")]),
        ("f", {"num_tasks": 3, "gres": "gpu:1"}, [(0, "0-2", "gpu:0")]),
        ("f", {"num_tasks": 2, "max_nodes": 1, "gres": "tape:2"}, [(0, "14-15", "tape:x2")]),
        ("ff", {"num_tasks": 2, "min_nodes": 2, "max_nodes": 2, "gres": "gpu:1"},
        [(0, "15", "gpu:0"), (1, "15", "gpu:0")]),
        ("f", {"num_tasks": 1, "gres": "gpu:9"}, None),
        ("c", {"num_tasks": 1, "gres": "gpu:1"}, None),
        ("f", {"num_tasks": 3, "tres_per_task": "gres:gpu:1"}, [(0, "8-10", "gpu:0-2")]),
        ("ff", {"num_tasks": 9, "tres_per_task": "gres:gpu:1"},
        [(0, "8-15", "gpu:0-7"), (1, "8", "gpu:0")]),
        ("ff", {"num_tasks": 6, "tres_per_task": "gres:gpu:2"},
        [(0, "12-15", "gpu:0-7"), (1, "12-13", "gpu:0-3")]),
        ("f", {"num_tasks": 1, "tres_per_job": "gres:gpu:2", "cpus_per_tres": "gres:gpu:4"},
        [(0, "8-15", "gpu:0-1")]),
        ("ff", {"tres_per_job": "gres:gpu:9"}, [(0, "0", "gpu:0-7"), (1, "0", "gpu:0")]),
        ("ff", {"min_nodes": 2, "max_nodes": 2, "tres_per_job": "gres:gpu:5"},
        [(0, "0", "gpu:0-3"), (1, "0", "gpu:0")]),
        ("aaf", {"tres_per_job": "gres:gpu:5"}, [(2, "0", "gpu:0-4")]),
        ("aa", {"tres_per_job": "gres:gpu:5"}, [(0, "0", "gpu:0-2"), (1, "0", "gpu:0-1")]),
        ("aa", {"tres_per_job": "gres:gpu:7"}, [(0, "0", "gpu:0-3"), (1, "0", "gpu:0-2")]),
        ("fcgg", {"num_tasks": 6, "tres_per_task": "gres:gpu:1"}, [(0, "8-13", "gpu:0-5")]),
        ("ffch", {"num_tasks": 1, "gres": "gpu:1"}, [(3, "4", "gpu:0")]),
        ("g", {"num_tasks": 1, "gres": "gpu:1"}, [(0, "4", "gpu:0")]),
        ("g", {"num_tasks": 3, "max_nodes": 1, "gres": "gpu:1"}, [(0, "0,4-5", "gpu:0")]),
        ("g", {"num_tasks": 7, "max_nodes": 1, "gres": "gpu:1"}, [(0, "0-2,4-7", "gpu:0")]),
        ("h", {"num_tasks": 5, "max_nodes": 1, "gres": "gpu:1"}, [(0, "0,4-5", "gpu:0")]),
        ("fg", {"num_tasks": 1, "gres": "gpu:1"}, [(0, "15", "gpu:0")]),
        ("fg", {"min_nodes": 1, "max_nodes": 1, "gres": "gpu:1"}, [(1, "0", "gpu:0")]),
        ("a", {"num_tasks": 1, "gres": "gpu:1"}, [(0, "0", "gpu:0")]),
        ("a", {"num_tasks": 1, "gres": "gpu:3"}, [(0, "4", "gpu:0,2-3")]),
        ("a", {"num_tasks": 5, "max_nodes": 1, "gres": "gpu:1"}, [(0, "0-4", "gpu:0")]),
        ("a", {"num_tasks": 5, "max_nodes": 1, "gres": "gpu:2"}, [(0, "0-4", "gpu:0,2")]),
        ("aa", {"num_tasks": 5, "gres": "gpu:1"}, [(0, "0-3", "gpu:0"), (1, "0", "gpu:0")]),
        ("a", {"num_tasks": 5, "gres": "gpu:1", "gres_flags": "enforce-binding"}, None),
        ("f", {"num_tasks": 1, "exclusive": True}, [(0, "0-15", "gpu:0-7 tape:x2")]),
    ],
)  # fmt: skip
def test_where_a_job_goes(kinds: str, asked: dict[str, Any], expected: Any) -> None:
    assert Bench(kinds).place(**asked) == expected


ONE_NODE = {"min_nodes": 1, "max_nodes": 1}


@pytest.mark.parametrize(
    ("kinds", "asked", "expected"),
    [
        # for each node: one from each of its sockets, then more of the first
        ("m", {"num_tasks": 6, "gres": "gpu:4"}, [(0, "0-5", "gpu:0-2,4")]),
        ("m", {"num_tasks": 3, "gres": "gpu:6"}, [(0, "0,4-5", "gpu:0-5")]),
        ("4", {"num_tasks": 9, "gres": "gpu:4"}, [(0, "0-7,12", "gpu:0-2,6")]),
        # for the job: those of the first socket, then of the next
        ("m", {"num_tasks": 6, "tres_per_job": "gres:gpu:2"}, [(0, "0-5", "gpu:0-1")]),
        ("m", {"num_tasks": 6, "tres_per_job": "gres:gpu:2", "gres": "gpu:2"},
        [(0, "0-5", "gpu:0,4")]),
        ("4", {"num_tasks": 13, "tres_per_job": "gres:gpu:5"}, [(0, "0-12", "gpu:0-4")]),
        # for the tasks: as many from a socket as it has CPUs of theirs, then the lowest
        ("m", {"num_tasks": 5, "tres_per_task": "gres:gpu:1"}, [(0, "0-1,4-6", "gpu:0-1,4-6")]),
        ("m", {"num_tasks": 3, "tres_per_task": "gres:gpu:2"}, [(0, "0,4-5", "gpu:0-1,4-7")]),
        ("m", {"num_tasks": 2, "cpus_per_task": 4, "tres_per_task": "gres:gpu:2"},
        [(0, "0-7", "gpu:0-3")]),
        ("t", {"num_tasks": 5, "tres_per_task": "gres:gpu:1"}, [(0, "0,4-5", "gpu:0-1,4-6")]),
        # cores beyond those near the devices: other sockets give theirs up first, one after the
        # other
        ("4", {"num_tasks": 9, "gres": "gpu:2"}, [(0, "0-3,8,12-15", "gpu:0,4")]),
        ("4", {"num_tasks": 13, "gres": "gpu:1"}, [(0, "0-4,8-15", "gpu:0")]),
        ("a", {"num_tasks": 1, "cpus_per_task": 5, "gres": "gpu:1"}, [(0, "0-4", "gpu:0")]),
    ],
)  # fmt: skip
def test_devices_follow_the_sockets_of_the_job(
    kinds: str, asked: dict[str, Any], expected: Any
) -> None:
    assert Bench(kinds).place(**asked, **ONE_NODE) == expected


@pytest.mark.parametrize(
    ("kinds", "asked", "expected"),
    [
        # a node is good for whole tasks
        ("aa", {"num_tasks": 4, "cpus_per_task": 3, "gres": "gpu:1"},
        [(0, "0-5", "gpu:0"), (1, "0-5", "gpu:0")]),
        ("gg", {"num_tasks": 4, "cpus_per_task": 3, "gres": "gpu:1"},
        [(0, "0-2,4-6", "gpu:0"), (1, "0-2,4-6", "gpu:0")]),
        # what a node gives to the job follows the cores that the job has there
        ("mm", {"num_tasks": 3, "tres_per_job": "gres:gpu:9"},
        [(0, "0,4", "gpu:0-7"), (1, "0", "gpu:0")]),
        ("mm", {"num_tasks": 2, "tres_per_job": "gres:gpu:5", "min_nodes": 2, "max_nodes": 2},
        [(0, "4", "gpu:4-7"), (1, "4", "gpu:4")]),
        # fewer than nodes: each gives one that is far, if it has one
        ("mm", {"num_tasks": 5, "tres_per_job": "gres:gpu:1"},
        [(0, "0-3", "gpu:4"), (1, "0", "gpu:4")]),
        ("gg", {"num_tasks": 9, "tres_per_job": "gres:gpu:1"}, [(0, "0-7", ""), (1, "0", "gpu:0")]),
        # spread, but over no more nodes than are needed
        ("ggg", {"num_tasks": 9, "tres_per_job": "gres:gpu:1", "max_nodes": 3, "spread_job": True},
        [(0, "0-7", ""), (1, "0", "gpu:0")]),
        # of a range of nodes the fewest
        ("fff", {"num_tasks": 4, "tres_per_job": "gres:gpu:2", "min_nodes": 1, "max_nodes": 3},
        [(0, "0-3", "gpu:0-1")]),
    ],
)  # fmt: skip
def test_what_several_nodes_give(kinds: str, asked: dict[str, Any], expected: Any) -> None:
    assert Bench(kinds).place(**asked) == expected


def test_sockets_are_looked_at_by_their_free_cores_until_they_have_enough_devices() -> None:
    bench = Bench("4")
    assert bench.place(gres="gpu:3", **ONE_NODE) == [(0, "0", "gpu:0-2")]
    assert bench.place(num_tasks=6, tres_per_job="gres:gpu:2", **ONE_NODE) == [
        (0, "4-6,8-10", "gpu:3-4")
    ]


def test_sockets_that_were_looked_at_in_vain_help_out_with_cores_of_a_task() -> None:
    bench = Bench("oo")
    assert bench.place(num_tasks=1, cpus_per_task=3) == [(0, "0-2", "")]
    assert bench.place(num_tasks=1, cpus_per_task=2, gres="gpu:1") == [(0, "3-4", "gpu:0")]


def test_small_nodes_are_left_out_only_where_far_cores_do_not_help() -> None:
    bench = Bench("mmm")
    bench.place(num_tasks=2, min_nodes=2, max_nodes=2)
    bench.place(num_tasks=1, tres_per_task="gres:gpu:1")
    found = bench.place(num_tasks=4, cpus_per_task=2, gres="gpu:3", min_nodes=2, max_nodes=2)
    assert found == [(0, "1-3,5-7", "gpu:0-1,5"), (1, "1-2", "gpu:0-2")]


def test_whole_sockets_are_given_with_the_cores_that_were_not_withdrawn() -> None:
    for asked, expected in (
        ({"num_tasks": 2, "gres": "gpu:1"}, (0, "0-3", "gpu:0")),
        ({"num_tasks": 5, "gres": "gpu:2"}, (0, "0-4", "gpu:0,2")),
        ({"num_tasks": 3, "tres_per_task": "gres:gpu:1"}, (0, "0,4-7", "gpu:0,2-3")),
        ({"num_tasks": 2, "cpus_per_task": 3, "gres": "gpu:2"}, (0, "0-7", "gpu:0,2")),
    ):
        bench = Bench("a")
        bench.selector = SelectConsTres(frozenset({"CR_SOCKET"}))
        assert bench.place(**asked, **ONE_NODE) == [expected]


@pytest.mark.parametrize(
    ("kind", "asked", "expected"),
    [
        ("t", {"num_tasks": 2, "ntasks_per_socket": 1}, "0"),
        ("t", {"num_tasks": 3, "ntasks_per_socket": 1}, None),
        ("t", {"num_tasks": 3, "ntasks_per_socket": 2}, "0,4"),
        ("t", {"num_tasks": 5, "ntasks_per_socket": 3}, "0-1,4"),
        ("t", {"num_tasks": 7, "ntasks_per_socket": 3}, None),
        ("m", {"num_tasks": 3, "ntasks_per_socket": 2}, "0-1,4"),
        ("m", {"num_tasks": 2, "cpus_per_task": 3, "ntasks_per_socket": 1}, "0-2,4-6"),
    ],
)
def test_where_only_so_many_tasks_may_be_on_a_socket_its_gpus_bring_no_more_there(
    kind: str, asked: dict[str, Any], expected: str | None
) -> None:
    """So many tasks as on real nodes with two sockets."""
    bench = Bench(kind)
    found = bench.place(gres="gpu:1", **ONE_NODE, **asked)
    assert (None if found is None else found[0][1]) == expected


def test_a_job_that_has_its_nodes_alone_waits_for_devices_where_cores_are_shared() -> None:
    bench = Bench("aa")
    bench.partition.oversubscribe = "FORCE:2"
    bench.place(num_tasks=1, gres="gpu:1")
    found = bench.place(num_tasks=1, exclusive=True)
    assert found is not None
    assert [(index, devices) for index, _, devices in found] == [(1, "gpu:0-3")]
    assert bench.place(num_tasks=1, exclusive=True) is None


def test_no_device_is_given_twice() -> None:
    bench = Bench("f")
    assert [bench.place(num_tasks=2, max_nodes=1, gres="gpu:3") for _ in range(3)] == [
        [(0, "14-15", "gpu:0-2")],
        [(0, "12-13", "gpu:3-5")],
        None,
    ]


def test_devices_near_the_emptier_socket_come_first() -> None:
    bench = Bench("a")
    assert bench.place(num_tasks=1, gres="gpu:1") == [(0, "0", "gpu:0")]
    assert bench.place(num_tasks=1, gres="gpu:2") == [(0, "4", "gpu:2-3")]
    assert bench.place(num_tasks=2, gres="gpu:1") == [(0, "1-2", "gpu:1")]


def test_when_devices_come_free() -> None:
    bench = Bench("ff")
    first = make_job(1, num_tasks=1, gres="gpu:8", max_nodes=1, limit_s=600)
    for start, job in ((0, first), (0, make_job(2, num_tasks=1, gres="gpu:5", limit_s=300))):
        allocation = bench.selector.select(
            Ask(job, bench.partition, bench.table.up_nodes), bench.tables
        )
        assert allocation is not None
        bench.table.allocate(allocation)
        job.allocation, job.start_time = allocation, start
        bench.tables.running[job.job_id] = job
    wanting = make_job(3, num_tasks=1, gres="gpu:4")
    assert bench.selector.will_run(
        Ask(wanting, bench.partition, bench.table.up_nodes), bench.tables, 10
    ) == (300, 0b10)
    assert bench.selector.could_ever_run(
        Ask(wanting, bench.partition, bench.partition.nodes), bench.tables
    )
    assert not bench.selector.could_ever_run(
        Ask(make_job(4, num_tasks=1, gres="gpu:9"), bench.partition, bench.partition.nodes),
        bench.tables,
    )


@pytest.mark.parametrize(("held", "expected"), [("tape:x:2", (300, 1)), ("tape:2", None)])
def test_what_is_only_counted_and_was_asked_for_without_a_type_is_not_expected_back(
    held: str, expected: Any
) -> None:
    bench = Bench("c")
    bench.table.gres = GresTable(("tape",), [(DeviceGroup("tape", "x", 4),)])
    holder = make_job(1, num_tasks=1, gres=held, limit_s=300)
    allocation = bench.selector.select(
        Ask(holder, bench.partition, bench.table.up_nodes), bench.tables
    )
    assert allocation is not None
    bench.table.allocate(allocation)
    holder.allocation, holder.start_time = allocation, 0
    bench.tables.running[1] = holder
    assert (
        bench.selector.will_run(
            Ask(make_job(2, num_tasks=1, gres="tape:3"), bench.partition, 1), bench.tables, 10
        )
        == expected
    )
    assert bench.selector.will_run(
        Ask(make_job(3, num_tasks=1, gres="tape:2"), bench.partition, 1), bench.tables, 10
    ) == (10, 1)


def test_an_empty_cluster_has_all() -> None:
    bench = Bench("fc")
    bench.place(num_tasks=1, gres="gpu:8")
    free = FreeState.empty(bench.table).free_gres("gpu")
    assert free is not None
    assert free.tolist() == [8, 0]


def test_cores_are_withdrawn_from_the_fullest_socket() -> None:
    assert [trimmed(0b1111_1111, keep, 2, 4) for keep in (8, 7, 5, 2, 1)] == [
        0b1111_1111,
        0b1111_0111,
        0b0111_0011,
        0b0001_0001,
        0b0001_0000,
    ]
    assert trimmed(0b1100, 3, 1, 4) == 0b1100


def test_memory_for_each_gpu_is_taken_where_other_jobs_have_memory_too() -> None:
    bench = Bench("ff")
    bench.selector = SelectConsTres(frozenset({"CR_CORE_MEMORY"}))
    asked = {"tres_per_job": "gres:gpu:2", "memory_per_node_mb": 0}
    made = [
        bench.place(**asked, mem_per_tres=f"gres:gpu:{size}")
        for size in (1000, 20_000, 20_000, 20_000, 20_000)
    ]
    assert [placed and [node for node, _, _ in placed] for placed in made] == [
        [0],
        [0],
        [1],
        [0, 1],
        None,
    ]
    assert bench.table.free_memory.tolist() == [2_000, 4_000]


def test_whole_sockets_beside_gpus_do_not_take_more_memory_than_there_is() -> None:
    """As 22.05.8 decides: it refuses those who would need too much on any node, and looks for
    another node for the others.
    """
    bench = Bench("go")
    bench.selector = SelectConsTres(frozenset({"CR_SOCKET_MEMORY"}))
    bench.table.free_memory[:] = (15_000, 30_000)
    one = {**ONE_NODE, "gres": "gpu:1", "memory_per_cpu_mb": 4000}
    assert bench.place(num_tasks=1, **one) == [(1, "0-3", "gpu:0")]
    assert bench.place(num_tasks=1, **one) is None
    assert bench.place(num_tasks=5, **{**one, "memory_per_cpu_mb": 10_000}) is None
    free = FreeState.empty(bench.table)
    assert (
        bench.selector.choose_in(
            Ask(make_job(9, num_tasks=1, **one), bench.partition, 0b11), bench.tables, free
        )
        == 0b01
    )


def test_contiguous_jobs_get_neighbours_for_the_gpus_of_the_whole_job_too() -> None:
    bench = Bench("fcffff")
    bench.place(num_tasks=16, min_nodes=1, max_nodes=1, required_nodes=1 << 3)
    asked = {
        "contiguous": True,
        "num_tasks": 2,
        "min_nodes": 2,
        "max_nodes": 2,
        "tres_per_job": "gres:gpu:2",
    }
    assert bench.place(**asked, required_nodes=1 << 2) is None
    assert [index for index, _, _ in bench.place(**asked) or ()] == [4, 5]
    assert (
        bench.place(
            num_tasks=3, min_nodes=3, max_nodes=3, contiguous=True, tres_per_job="gres:gpu:3"
        )
        is None
    )
    assert [
        index
        for index, _, _ in bench.place(num_tasks=3, min_nodes=3, tres_per_job="gres:gpu:3") or ()
    ] == [0, 4, 5]


def test_gpus_for_each_socket_lead_to_the_node_with_most_gpus() -> None:
    bench = Bench("gf")
    found = bench.place(tres_per_socket="gres:gpu:1", sockets_per_node=1)
    assert found is not None
    assert [index for index, _, _ in found] == [1]


def test_a_job_with_gpus_for_each_socket_has_cores_too() -> None:
    found = Bench("g").place(num_tasks=1, tres_per_socket="gres:gpu:1", sockets_per_node=2)
    assert found is not None
    assert [(index, bool(cores), devices) for index, cores, devices in found] == [
        (0, True, "gpu:0-1")
    ]


def test_of_gpus_for_the_job_a_node_gives_no_more_than_was_asked_of_each() -> None:
    found = Bench("fgg").place(gres="gpu:2", tres_per_job="gres:gpu:4")
    assert found is not None
    assert [(index, devices) for index, _, devices in found] == [(0, "gpu:0-1"), (1, "gpu:0-1")]


def test_a_job_that_has_its_nodes_alone_goes_where_most_gpus_are() -> None:
    found = Bench("gf").place(num_tasks=2, exclusive=True, tres_per_job="gres:gpu:2")
    assert found is not None
    assert [index for index, _, _ in found] == [1]


@pytest.mark.parametrize(
    ("kinds", "tasks", "runs"), [("o", 4, True), ("o", 5, False), ("oo", 5, True), ("oo", 9, False)]
)
def test_cores_near_the_devices_alone_count_for_whether_a_job_that_insists_on_them_could_ever_run(
    kinds: str, tasks: int, runs: bool
) -> None:
    bench = Bench(kinds)
    job = make_job(num_tasks=tasks, gres="gpu:1", gres_flags="enforce-binding")
    assert (
        bench.selector.could_ever_run(
            Ask(job, bench.partition, bench.partition.nodes), bench.tables
        )
        == runs
    )
    assert (
        bench.place(num_tasks=tasks, gres="gpu:1", gres_flags="enforce-binding") is not None
    ) == runs


def test_what_is_held_without_a_type_is_not_given_by_its_types_again() -> None:
    bench = Bench("c")
    gres = GresTable(("gpu",), [(DeviceGroup("gpu", "", 1),)])
    gres.take([0], (Held("gpu", "", 1, 0),))
    gres.set_layout(0, (DeviceGroup("gpu", "a", 1), DeviceGroup("gpu", "b", 2)))
    bench.table.gres = gres
    held = bench.place(
        num_tasks=2, min_nodes=1, max_nodes=1, ntasks_per_node=3, tres_per_task="gres:gpu:1"
    )
    assert held is not None
    assert gres.free["gpu"].tolist() == [0]
    assert bench.place(num_tasks=1, gres="gpu:b:1") is None


@pytest.mark.parametrize(
    ("asked", "cpus"),
    [
        ({"cpus_per_task": 3, "gres": "gpu:1"}, 3),
        ({"num_tasks": 5, "gres": "gpu:1"}, 5),
        ({"gres": "gpu:1"}, 1),
        ({"tres_per_job": "gpu:2", "cpus_per_task": 3}, 3),
    ],
)
def test_where_cpus_are_counted_a_job_with_devices_has_as_many_as_it_asks_for(
    asked: dict[str, Any], cpus: int
) -> None:
    """Of the whole cores that it has: so also without devices (seen of 22.05.8)."""
    bench = Bench("t")
    bench.selector = SelectConsTres(frozenset({"CR_CPU"}))
    job = make_job(**{"num_tasks": 1} | asked)
    allocation = bench.selector.select(Ask(job, bench.partition, 1), bench.tables)
    assert allocation is not None
    assert allocation.cpus == cpus
