"""The documents of squeue --json and sinfo --json.

Covers: documents/nodes.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_controller import FakeClient, record, run_command

from understudy.commands.sinfo.sinfo import sinfo
from understudy.commands.squeue.squeue import squeue
from understudy.documents.jobs import COLUMNS
from understudy.documents.nodes import COLUMNS as NODE_COLUMNS
from understudy.model.records import JOBS, NO_TASKS, NODES


def shown(**values: object) -> dict[str, Any]:
    client = FakeClient(
        jobs=[record("jobs", job_id=7, oversubscribe="OK", **values)],
        nodes=[record("nodes", name="n1", cores_per_socket=2)],
    )
    found: dict[str, Any] = json.loads(run_command(squeue, "--json", client=client).out)["jobs"][0]
    return found


def test_the_documents_columns_are_those_of_the_tables() -> None:
    assert set(COLUMNS) <= JOBS.keys()
    assert set(NODE_COLUMNS) <= NODES.keys()


def test_a_job_names_the_cores_that_it_holds_socket_by_socket() -> None:
    found = shown(
        state=1,
        tres_allocated="cpu=3,billing=3",
        nodes="n1",
        node_shares=[["n1", 3, 200, "0,2-3", "gpu:a:1(IDX:0)"]],
    )
    assert found["job_resources"] == {
        "nodes": "n1",
        "allocated_cores": 3,
        "allocated_hosts": 1,
        "allocated_nodes": [
            {
                "sockets": {
                    "0": {"cores": {"0": "allocated"}},
                    "1": {"cores": {"0": "allocated", "1": "allocated"}},
                },
                "nodename": "n1",
                "cpus_used": 0,
                "memory_used": 0,
                "memory_allocated": 200,
            }
        ],
    }
    assert (found["billable_tres"], found["gres_detail"]) == (3.0, ["gpu:a:1(IDX:0)"])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"nice": -7}, {"nice": 4294967289}),
        ({"nice": 0}, {"nice": None}),
        (
            {"state": 4, "num_tasks": NO_TASKS, "cpus": 2},
            {"cpus": None, "tasks": None, "job_state": "CANCELLED"},
        ),
        ({"exit_code": 3, "exit_signal": 0}, {"exit_code": 768}),
        (
            {"min_memory_mb": 100, "min_memory_per_cpu": True},
            {"memory_per_cpu": 100, "memory_per_node": None},
        ),
        ({"time_limit_s": 1800}, {"time_limit": 30}),
        ({"profile": "task,energy"}, {"profile": ["Energy", "Task"]}),
        (
            {"cpu_freq": "medium"},
            {
                "cpu_frequency_minimum": None,
                "cpu_frequency_maximum": 2147483650,
                "cpus_per_task": None,
            },
        ),
        (
            {"cpu_freq": "low-high:performance", "cpus_per_task": 3},
            {
                "cpu_frequency_minumum": 2147483649,
                "cpu_frequency_maximum": 2147483651,
                "cpu_frequency_governor": 2181038080,
                "cpus_per_task": 3,
            },
        ),
    ],
)
def test_values_are_written_as_slurm_writes_them(
    values: dict[str, object], expected: dict[str, object]
) -> None:
    found = shown(**values)
    assert {key: found[key] for key in expected} == expected


def test_the_other_options_do_not_matter() -> None:
    client = FakeClient(jobs=[record("jobs", job_id=7), record("jobs", job_id=8, state=3)])
    for arguments in (["-j", "7"], ["-s"], ["-u", "nobody", "-h"]):
        assert (
            len(json.loads(run_command(squeue, "--json", *arguments, client=client).out)["jobs"])
            == 2
        )


def test_nodes_that_never_registered_say_so_and_future_ones_are_left_out() -> None:
    client = FakeClient(
        nodes=[
            record("nodes", name="n1", state=1, flags=0x0A00, cpus=4, reason="x"),
            record("nodes", name="f1", state=6),
        ]
    )
    nodes = json.loads(run_command(sinfo, "--json", client=client).out)["nodes"]
    assert [node["name"] for node in nodes] == ["n1"]
    found = nodes[0]
    assert (found["state"], found["state_flags"]) == ("down", ["DRAIN", "NOT_RESPONDING"])
    assert (found["cpu_load"], found["free_memory"], found["tres_used"], found["idle_cpus"]) == (
        4294967294,
        -2,
        None,
        4,
    )
