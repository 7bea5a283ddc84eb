"""What is billed, as jobs, partitions and nodes show it: figures of real Slurm 22.05.8.

Covers: controller/facts/job, controller/facts/tres, controller/priority/tres,
controller/views/node_columns, controller/views/partition_columns.
"""

from __future__ import annotations

import pytest
from controller_harness import Harness, make_tables

from understudy.controller.accounting.records import node_event
from understudy.controller.facts.tres import NodeBills, amounts
from understudy.controller.tables.gres import GresTable
from understudy.controller.tables.gres_layout import DeviceGroup
from understudy.controller.tables.settings import Settings

WEIGHTS = "CPU=1.0,Mem=0.1875G,GRES/gpu=3.5,license/matlab=4"


def harness(*, bills_largest: bool) -> Harness:
    """Two nodes with two GPUs each and ten licences; partition small has the first."""
    tables = make_tables(count=2, cpus=8, memory_mb=200000)
    tables.nodes.gres = GresTable(("gpu",), [(DeviceGroup("gpu", "", 2, 0),)] * 2)
    for node in tables.nodes.nodes:
        node.gres = "gpu:2"
    tables.partitions["main"].tres_billing_weights = WEIGHTS
    return Harness(
        tables,
        settings=Settings(
            bills_largest=bills_largest,
            gres_types=("gpu",),
            licenses={"matlab": 10},
            tracked_gres=("gres/gpu",),
            tracked_tres=("gres/gpu", "license/matlab"),
        ),
    )


def bills(h: Harness, table: str, column: str) -> list[int]:
    return [amounts(text).get("billing", 0) for (text,) in h.query(table, column)]


@pytest.mark.parametrize(
    ("bills_largest", "jobs", "partition", "node"),
    [(True, [3, 18, 11, 11], 113, 36), (False, [5, 20, 13, 11], 143, 51)],
)
def test_max_tres_bills_the_most_of_what_nodes_have_and_all_that_they_have_not(
    bills_largest: bool, jobs: list[int], partition: int, node: int
) -> None:
    h = harness(bills_largest=bills_largest)
    h.submit(num_tasks=2, mem_per_node_mb=20000)
    h.submit(num_tasks=2, mem_per_node_mb=100000)
    h.submit(num_tasks=2, mem_per_node_mb=1000, tres_per_job="gres:gpu:1", licenses="matlab:2")
    h.submit(num_tasks=3, mem_per_node_mb=1000, licenses="matlab:2")
    assert bills(h, "jobs", "tres_requested") == jobs
    assert bills(h, "jobs", "tres_allocated")[:3] == jobs[:3]
    assert bills(h, "partitions", "tres")[0] == partition
    assert bills(h, "nodes", "tres_configured") == [node, node]


def test_a_partitions_resources_include_all_licences_that_accounting_tracks() -> None:
    h = harness(bills_largest=False)
    texts = [text for (text,) in h.query("partitions", "tres")]
    assert texts[1] == "cpu=8,mem=200000M,node=1,billing=8,gres/gpu=2,license/matlab=10"


def test_of_a_node_that_is_given_away_as_a_whole_all_is_allocated() -> None:
    h = harness(bills_largest=False)
    h.core.selector.whole_nodes = True
    h.submit(required_nodes="n2")
    assert [text for (text,) in h.query("nodes", "tres_allocated")] == [
        "",
        "cpu=8,mem=200000M,billing=51,gres/gpu=2",
    ]


def test_a_node_bills_the_most_of_its_partitions_that_have_weights() -> None:
    h = harness(bills_largest=False)
    main, small = (h.core.tables.partitions[name] for name in ("main", "small"))
    main.tres_billing_weights, small.tres_billing_weights = "CPU=0.1", "CPU=0.3,Node=50"
    shown = [text for (text,) in h.query("nodes", "tres_configured")]
    assert shown == ["cpu=8,mem=200000M,billing=2,gres/gpu=2", "cpu=8,mem=200000M,gres/gpu=2"]
    h.update_nodes("n[1-2]", state="down", reason="x")
    events = [
        node_event(h.core, NodeBills(h.core), node, 0.0) for node in h.core.tables.nodes.nodes
    ]
    assert [each.tres for each in events if each is not None] == [
        {"cpu": 8, "mem": 200000, "node": 1, "billing": 2, "gres/gpu": 2},
        {"cpu": 8, "mem": 200000, "node": 1, "gres/gpu": 2},
    ]
