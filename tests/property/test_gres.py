"""Whatever jobs ask for: no device is given to two, and who starts has what he asked for."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling_harness import check_tables, make_job, node, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.tables.gres import DeviceGroup, GresTable

LAYOUTS = [
    (),
    (DeviceGroup("gpu", "b", 4, 0, has_files=True), DeviceGroup("tape", "", 2)),
    (
        DeviceGroup("gpu", "a", 2, 0, has_files=True, cores=0b0011),
        DeviceGroup("gpu", "a", 2, 2, has_files=True, cores=0b1100),
    ),
    (
        DeviceGroup("gpu", "a", 2, 0, has_files=True, cores=0b0011),
        DeviceGroup("gpu", "b", 1, 2, has_files=True, cores=0b1100),
    ),
]
GRES = st.sampled_from(
    ["gpu:1", "gpu:2", "gpu:a:1", "gpu:b:2", "gpu:3,tape:1", "tape:2", "gpu:a:1,gpu:b:1"]
)
ASKED = st.one_of(
    st.builds(lambda gres, tasks: {"gres": gres, "num_tasks": tasks}, GRES, st.integers(1, 6)),
    st.builds(
        lambda gres, nodes: {"gres": gres, "min_nodes": nodes, "max_nodes": nodes},
        GRES,
        st.integers(1, 3),
    ),
    st.builds(
        lambda gpus, tasks: {"tres_per_job": f"gres:gpu:{gpus}", "num_tasks": tasks},
        st.integers(1, 8),
        st.integers(1, 6),
    ),
    st.builds(
        lambda gpus, cpus: {
            "tres_per_job": f"gres:gpu:{gpus}",
            "cpus_per_tres": f"gres:gpu:{cpus}",
        },
        st.integers(1, 4),
        st.integers(1, 3),
    ),
    st.builds(
        lambda gpus, tasks: {"tres_per_task": f"gres:gpu:{gpus}", "num_tasks": tasks},
        st.integers(1, 3),
        st.integers(1, 6),
    ),
    st.builds(lambda tasks: {"num_tasks": tasks, "exclusive": True}, st.integers(1, 6)),
)


def held(job: Any, key: str) -> int:
    return sum(
        each.amount
        for share in job.allocation.shares
        for each in share.gres
        if key in (each.name, f"{each.name}:{each.type}")
    )


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.sampled_from(range(len(LAYOUTS))), min_size=1, max_size=5),
    st.lists(ASKED, min_size=1, max_size=12),
    st.booleans(),
    st.data(),
)
def test_devices_belong_to_one_job_and_requests_are_met(
    kinds: list[int], asked: list[dict[str, Any]], linear: bool, data: st.DataObject
) -> None:
    table = table_of([node(i, sockets=2, cores=2, memory=8000) for i in range(len(kinds))])
    table.gres = GresTable(("gpu", "tape"), [LAYOUTS[kind] for kind in kinds])
    tables = tables_of(table)
    selector = SelectLinear() if linear else SelectConsTres(frozenset({"CR_CORE"}))
    for number, fields in enumerate(asked, 1):
        if linear and ("tres_per_job" in fields or "tres_per_task" in fields):
            continue
        job = make_job(number, **fields)
        allocation = selector.select(Ask(job, tables.partitions["main"], table.up_nodes), tables)
        if allocation is None:
            continue
        table.allocate(allocation)  # asserts that no device is given twice
        job.allocation, job.start_time = allocation, 0
        job.state = type(job.state).RUNNING
        tables.jobs[number] = tables.running[number] = job
        for word in str(fields.get("gres", "")).split(",") if "gres" in fields else []:
            key, _, count = word.rpartition(":")
            assert held(job, key) >= int(count) * allocation.node_count
        if "tres_per_job" in fields:
            wanted = int(fields["tres_per_job"].rpartition(":")[2])
            # of nodes with too few each gives one that is far
            assert wanted <= held(job, "gpu") <= max(wanted, allocation.node_count)
        if "tres_per_task" in fields:
            assert (
                held(job, "gpu")
                == int(fields["tres_per_task"].rpartition(":")[2]) * allocation.tasks
            )
        if "cpus_per_tres" in fields:
            each = int(fields["cpus_per_tres"].rpartition(":")[2])
            assert all(
                share.cpus >= each * sum(g.amount for g in share.gres)
                for share in allocation.shares
            )
        assert selector.could_ever_run(Ask(job, tables.partitions["main"], table.up_nodes), tables)
        if data.draw(st.booleans()):
            table.release(allocation, allocation.nodes)
            del tables.jobs[number], tables.running[number]
    if not linear:
        check_tables(tables)
    for job in list(tables.running.values()):
        assert job.allocation is not None
        table.release(job.allocation, job.allocation.nodes)
    assert {key: vector.tolist() for key, vector in table.gres.free.items()} == {
        key: vector.tolist() for key, vector in table.gres.total.items()
    }
    assert not any(mask for masks in table.gres.used_devices.values() for mask in masks)
