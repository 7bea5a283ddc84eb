"""Queries: columns, filters, slices.

Covers: controller/facts/job, controller/facts/streams, controller/facts/tres,
controller/views/job_columns, controller/views/node_columns, controller/views/partition_columns,
controller/views/reservation_columns, controller/views/step_columns, controller/views/triggers.
"""

from __future__ import annotations

import pytest
from controller_harness import OTHER, ROOT, START, Harness, make_tables

from understudy.controller.facts.job import memory_text
from understudy.controller.facts.streams import fill_pattern
from understudy.controller.tables.burst_buffers import BurstBuffers, Pool
from understudy.controller.tables.topology import Tree
from understudy.controller.views.query import run_query
from understudy.model.conf_companions import SwitchConf
from understudy.model.errors import SlurmError
from understudy.model.records import TABLES, accepts, columns
from understudy.model.states import NodeFlag
from understudy.protocol.messages import (
    FederationPlace,
    Query,
    ReservationChanged,
    SetTrigger,
    UpdateReservation,
)


def busy() -> Harness:
    """Jobs and nodes in all states."""
    h = Harness()
    h.core.tables.licenses.totals = {"matlab": 2}
    h.core.tables.nodes.tree = Tree.of(
        [SwitchConf("s1", ["n1", "n2", "n3", "n4"], [], 1, "topology.conf", 1)],
        h.core.tables.nodes.index_of,
    )
    pool = Pool("fast", 10)
    h.core.tables.burst_buffers = BurstBuffers("lua", {"fast": pool})
    done, failed = h.submit(mem_per_node_mb=100), h.submit(mem_per_cpu_mb=50)
    h.complete(done)
    h.complete(failed, code=2)
    h.submit(min_nodes=2, num_tasks=8)
    completing = h.submit(exclusive=True)
    h.cancel(completing)
    h.submit(
        hold=True,
        begin_time=START + 99,
        dependency="afterok:1?singleton",
        deadline=START + 99999,
        kill_signal=1,
    )
    h.submit(
        OTHER,
        begin_time=START + 1000,
        std_out="%x-%j.out",
        command="/bin/x",
        arguments=["a"],
        mem_per_node_mb=0,
    )
    h.update_nodes("n4", state="drain", reason="x")
    changes = {
        "starttime": str(int(START) + 100_000),
        "duration": "5",
        "users": "ann",
        "nodes": "n3",
        "corecnt": "2",
        "flags": "daily",
    }
    assert h.ask(UpdateReservation("create", "r", changes), ROOT) == ReservationChanged("r")
    h.ask(SetTrigger("node", "*", ["down"], 0, "/bin/x"), ROOT)
    h.core.federation = FederationPlace("fed", "cluster", "h", 6817, 1, "ACTIVE", ("a",))
    h.core.show_configuration = lambda: [("ClusterName", "cluster"), ("KillWait", "30 sec")]
    return h


@pytest.mark.parametrize(
    "table",
    [
        table
        for table in TABLES
        if table not in {"priorities", "priority_weights", "shares"}
        and not table.startswith("cached")
    ],
)
def test_every_column_of_every_record_holds_what_its_table_says(table: str) -> None:
    h = busy()
    rows = h.query(table, *columns(table))
    assert rows
    for row in rows:
        for column, value in zip(columns(table), row, strict=True):
            assert accepts(table, column, value), f"{table}.{column} is {value!r}"


def test_unknown_tables_and_columns_are_refused() -> None:
    h = Harness()
    for query in (
        Query("nosuch", []),
        Query("jobs", ["nosuch"]),
        Query("jobs", [], {"nosuch": [1]}),
    ):
        with pytest.raises(SlurmError):
            run_query(h.core, query)


def test_jobs_are_filtered_by_any_column() -> None:
    h = busy()
    assert h.query("jobs", "job_id", state=[1]) == [[3]]
    assert h.query("jobs", "job_id", user_id=[1001]) == [[6]]
    assert h.query("jobs", "job_id", job_id=[6, 2, 2, 99]) == [[2], [6]]
    assert h.query("jobs", "job_id", user_name=["ann"], state=[3, 5]) == [[1], [2]]


def test_a_pending_jobs_times_are_what_is_known_of_them() -> None:
    h = busy()
    assert h.query(
        "jobs", "start_time", "end_time", "eligible_time", "accrue_time", "run_time_s", job_id=[6]
    ) == [[int(START) + 1000, int(START) + 1000 + 3600, int(START) + 1000, None, 0]]


def test_a_running_jobs_time_grows_and_a_finished_ones_stays() -> None:
    h = Harness()
    job = h.submit()
    h.acknowledge()
    h.run(42)
    assert h.query("jobs", "run_time_s", "end_time") == [[42, int(START) + 3600]]
    h.complete(job)
    h.run(10)
    assert h.query("jobs", "run_time_s", "end_time") == [[42, int(START) + 42]]


def test_a_jobs_shares_are_shown_node_by_node() -> None:
    h = Harness()
    h.submit(num_tasks=6, mem_per_cpu_mb=100)
    assert h.query(
        "jobs", "nodes", "batch_host", "node_count", "cpus", "node_shares", "tres_allocated"
    ) == [
        [
            "n[1-2]",
            "n1",
            2,
            6,
            [["n1", 4, 400, "0-3", ""], ["n2", 2, 200, "0-1", ""]],
            "cpu=6,mem=600M,node=2,billing=6",
        ]
    ]


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({"num_tasks": 5}, 2),
        ({"num_tasks": 3, "cpus_per_task": 3}, 3),
        ({"min_nodes": 3}, 3),
        ({}, 1),
    ],
)
def test_a_pending_jobs_number_of_nodes_is_estimated(spec: dict[str, int], nodes: int) -> None:
    h = Harness()
    h.submit(hold=True, **spec)
    assert h.query("jobs", "node_count") == [[nodes]]


def test_node_states_and_cpus_follow_what_is_in_use() -> None:
    h = busy()
    assert h.query("nodes", "name", "state", "flags", "alloc_cpus", "idle_cpus", "other_cpus") == [
        ["n1", 3, 0, 4, 0, 0],
        ["n2", 3, 0, 4, 0, 0],
        ["n3", 3, int(NodeFlag.COMPLETING), 4, 0, 0],
        ["n4", 2, int(NodeFlag.DRAIN), 0, 0, 4],
    ]
    assert h.query("nodes", "partitions", name=["n1"]) == [[["main", "small"]]]


def test_hidden_partitions_are_left_out_unless_asked_for() -> None:
    h = Harness()
    h.core.tables.partitions["small"].hidden = True
    h.submit(partition="small")

    def count(table: str, *, everything: bool) -> int:
        return len(h.rows(Query(table, ["name"], {}, everything)))

    assert (count("partitions", everything=True), count("partitions", everything=False)) == (2, 1)
    assert (count("jobs", everything=True), count("jobs", everything=False)) == (1, 0)


def test_long_listings_are_made_in_slices() -> None:
    h = Harness(make_tables(3000))
    slices = sum(1 for _ in run_query(h.core, Query("nodes", ["name", "state"])))
    assert slices == 6


@pytest.mark.parametrize(
    ("megabytes", "text"),
    [
        (100, "100M"),
        (1024, "1G"),
        (4000, "4000M"),
        (2 << 20, "2T"),
        (0, "0M"),
        (1536, "1.50G"),
        (64000, "62.50G"),
    ],
)
def test_memory_is_written_as_scontrol_writes_it(megabytes: int, text: str) -> None:
    assert memory_text(megabytes) == text


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("%x-%j.out", "j-1.out"), ("%5j", "%5j"), ("%u_%N", "ann_%N"), ("%%x", "%j"), ("\\%x", "\\j")],
)
def test_patterns_in_file_names_are_filled_in(pattern: str, name: str) -> None:
    h = Harness()
    job = h.submit(ROOT, name="j")
    job.user_id = 1000
    assert fill_pattern(h.core, job, pattern) == name
