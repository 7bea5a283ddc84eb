"""Jobs with generic resources in the controller: what is taken in, what is shown, what a job is
told, what comes back after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from controller_harness import USER, FakeTime, Harness, make_tables

from understudy.controller.facts.environment import job_environment
from understudy.controller.jobs.take_in import build_job
from understudy.controller.saved.recover import recover
from understudy.controller.saved.store import Dirty, Store
from understudy.controller.scheduling.registry import selector
from understudy.controller.tables.gres import DeviceGroup, GresTable
from understudy.controller.tables.gres_layout import Layouts
from understudy.controller.tables.settings import Settings
from understudy.model import conf
from understudy.model.gres import gpu_defaults
from understudy.protocol.messages import Ok, SubmitJob

if TYPE_CHECKING:
    from pathlib import Path

LAYOUT = (
    DeviceGroup("gpu", "a", 2, 0, has_files=True, cores=0b0011),
    DeviceGroup("gpu", "b", 2, 2, has_files=True, cores=0b1100),
    DeviceGroup("tape", "", 3),
)
SETTINGS = {
    "min_job_age_s": 0,
    "gres_types": ("gpu", "tape"),
    "tracked_gres": ("gres/gpu", "gres/gpu:b"),
    "tracked_tres": ("gres/gpu", "gres/gpu:b"),
}


def harness(**more: Any) -> Harness:
    """Four nodes, of which the first two have resources."""
    tables = make_tables()
    tables.nodes.gres = GresTable(("gpu", "tape"), [LAYOUT, LAYOUT, (), ()])
    for node in tables.nodes.nodes[:2]:
        node.gres = "gpu:a:2,gpu:b:2,tape:3"
    return Harness(tables, settings=Settings(**{**SETTINGS, **more.pop("settings", {})}), **more)


def column(h: Harness, table: str, name: str, **where: list[Any]) -> list[Any]:
    return [row[0] for row in h.query(table, name, **where)]


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"gres": "gres:disk:1"}, 2072),
        ({"gres": "gres:gpu:a:b:1"}, 2072),
        ({"gres": "gres:gpu:1,gres:gpu:a:1"}, 2119),
        ({"tres_per_job": "gres:gpu:4", "tres_per_task": "gres:gpu:3"}, 2072),
        ({"tres_per_socket": "gres:gpu:1"}, 2072),
        ({"tres_per_job": "gres:gpu:1", "min_nodes": 2}, 2072),
        ({"gres": "gres:gpu:5"}, 2014),
        ({"tres_per_job": "gres:gpu:9"}, 2014),
        ({"gres": "gres:gpu:1", "required_nodes": "n3"}, 2014),
    ],
)
def test_what_cannot_be_is_refused(spec: dict[str, Any], code: int) -> None:
    assert harness().refused(**spec) == code


def test_a_job_that_is_to_be_spread_is_on_no_more_nodes_than_its_cpus_and_gpus_need() -> None:
    h = harness()
    job = h.submit(num_tasks=7, spread_job=True, tres_per_job="gres:gpu:1", hold=True)
    assert (job.min_nodes, job.max_nodes) == (1, 4)
    bounded = h.submit(num_tasks=7, min_nodes=1, max_nodes=3, tres_per_job="gres:gpu:2", hold=True)
    assert bounded.max_nodes == 2


def test_a_change_mixes_no_types_with_what_else_the_job_asks_for() -> None:
    h = harness()
    job = h.submit(hold=True, tres_per_job="gres:gpu:a:2")
    assert h.update(job, gres="gpu:1") == 2119
    assert h.update(job, gres="gpu:a:1,tape:1") == 0


@pytest.mark.parametrize("select_type", ["select/linear", "select/cons_res"])
def test_other_selectors_than_cons_tres_know_gpus_of_nodes_alone(select_type: str) -> None:
    h = harness(settings={"gpu_defaults": gpu_defaults("DefCpuPerGPU=2,DefMemPerGPU=300")})
    h.core.selector = selector(select_type)  # type: ignore[misc]
    gpu = "gres:gpu:1"
    # before the partition is looked at, as in 22.05.8
    assert h.refused(tres_per_job=gpu, partition="nope") == 2122
    assert h.refused(tres_per_task=gpu) == h.refused(tres_per_socket=gpu) == 2122
    assert h.refused(gres=gpu, cpus_per_tres=gpu) == h.refused(mem_per_tres=gpu) == 2122
    job = h.submit(gres=gpu)
    assert job.is_running
    assert (job.spec.cpus_per_tres, job.spec.mem_per_tres) == ("", "")
    held = h.submit(hold=True, gres=gpu)
    assert h.update(held, tresperjob=gpu) == h.update(held, cpuspertres=gpu) == 2122
    assert h.submit(hold=True, ntasks_per_tres=1, num_tasks=2).num_tasks == 2


def test_the_default_of_cpus_for_a_gpu_is_what_each_task_with_gpus_gets() -> None:
    """Seen of 22.05.8: the job starts, however many CPUs there are for each of few GPUs."""
    h = harness(settings={"gpu_defaults": gpu_defaults("DefCpuPerGPU=4")})
    job = h.submit(num_tasks=2, tres_per_task="gres:gpu:1")
    assert (job.min_cpus, job.cpus_per_task) == (2, 4)
    assert job.allocation is not None
    assert job.allocation.cpus == 8
    assert dict(h.query("jobs", "job_id", "min_cpus_node"))[job.job_id] == 1


def test_the_default_of_cpus_for_a_gpu_is_nothing_to_who_asks_for_tasks_for_each() -> None:
    h = harness(settings={"gpu_defaults": gpu_defaults("DefCpuPerGPU=3")})
    job = h.submit(tres_per_job="gres:gpu:1", ntasks_per_tres=2)
    assert job.allocation is not None
    assert (job.spec.cpus_per_tres, job.allocation.cpus) == ("gpu:3", 2)


def test_what_is_shown_of_a_job_and_of_its_nodes() -> None:
    h = harness()
    job = h.submit(num_tasks=1, gres="gres:gpu:b:1,gres:tape:2")
    assert column(h, "jobs", "gres_allocated") == ["gpu:b:1,tape:2"]
    assert column(h, "jobs", "tres_allocated") == [
        "cpu=1,mem=4000M,node=1,billing=1,gres/gpu=1,gres/gpu:b=1"
    ]
    assert column(h, "jobs", "tres_per_node") == ["gres:gpu:b:1,gres:tape:2"]
    assert column(h, "jobs", "node_shares")[0][0][4] == "gpu:b:1(IDX:2),tape(CNT:2)"
    assert column(h, "nodes", "gres_used") == [
        "gpu:a:0(IDX:N/A),gpu:b:1(IDX:2),tape:2", "gpu:a:0(IDX:N/A),gpu:b:0(IDX:N/A),tape:0",
        "gpu:0,tape:0", "gpu:0,tape:0",
    ]  # fmt: skip
    assert column(h, "nodes", "gres")[0] == "gpu:a:2(S:0),gpu:b:2(S:0),tape:3"
    assert column(h, "nodes", "tres_configured")[0].endswith(",gres/gpu=4,gres/gpu:b=2")
    assert column(h, "nodes", "tres_allocated")[0].endswith(",gres/gpu=1,gres/gpu:b=1")
    assert column(h, "partitions", "tres")[0].endswith("billing=16,gres/gpu=8,gres/gpu:b=4")
    h.complete(job)
    assert column(h, "nodes", "gres_used")[0] == "gpu:a:0(IDX:N/A),gpu:b:0(IDX:N/A),tape:0"


def test_a_pending_jobs_resources_follow_from_what_it_asks_for() -> None:
    h = harness()
    h.submit(hold=True, num_tasks=2, tres_per_task="gres:gpu:b:1")
    h.submit(hold=True, min_nodes=2, gres="gres:gpu:2")
    assert [text.partition("billing=")[2] for text in column(h, "jobs", "tres_requested")] == [
        "2,gres/gpu=2,gres/gpu:b=2",
        "2,gres/gpu=4",
    ]


def test_a_job_is_told_of_the_gpus_of_its_first_node() -> None:
    h = harness()
    job = h.submit(
        num_tasks=2,
        tres_per_job="gres:gpu:b:2",
        mem_per_tres="gres:gpu:100",
        extra={"tres_bind": "gpu:single:1"},
    )
    told = dict(entry.split("=", 1) for entry in job_environment(h.core, job))
    expected = {
        "SLURM_GPUS": "b:2", "SLURM_GPUS_ON_NODE": "2", "SLURM_JOB_GPUS": "2,3",
        "CUDA_VISIBLE_DEVICES": "2,3", "SLURM_MEM_PER_GPU": "100",
        "SLURM_GPU_BIND": "single:1",
    }  # fmt: skip
    assert {name: told.get(name) for name in expected} == expected
    assert job.allocation is not None
    assert job.allocation.groups[0].memory_mb == 200


def test_cpus_and_memory_for_each_gpu_have_defaults() -> None:
    h = harness(settings={"gpu_defaults": gpu_defaults("DefCpuPerGPU=2,DefMemPerGPU=300")})
    job = h.submit(num_tasks=1, tres_per_job="gres:gpu:2")
    assert (job.spec.cpus_per_tres, job.spec.mem_per_tres) == ("gpu:2", "gpu:300")
    assert job.allocation is not None
    assert (job.allocation.cpus, job.allocation.groups[0].memory_mb) == (4, 600)
    h.core.tables.partitions["main"].job_defaults = "DefCpuPerGPU=1"
    message = SubmitJob(job.spec.__class__(gres="gres:gpu:1"), "#!/bin/sh\n")
    assert (
        build_job(
            h.core, message, USER.user_id, USER.group_id, h.time.now(), by_admin=False
        ).spec.cpus_per_tres
        == "gpu:1"
    )
    held = h.submit(num_tasks=1, tres_per_job="gres:gpu:2", hold=True)
    shown = dict(h.query("jobs", "job_id", "cpus_per_tres"))
    assert (shown[job.job_id], shown[held.job_id]) == ("gpu:2", "")


def test_numbers_of_tasks_and_nodes_follow_from_numbers_of_gpus() -> None:
    h = harness()
    assert h.submit(tres_per_job="gres:gpu:2", ntasks_per_tres=2).num_tasks == 4
    for wanted in (2, 3, 5):  # so were 22.05.8's, more than those that were asked for or fewer
        for said in ({"tres_per_job": "gres:gpu:2"}, {"gres": "gres:gpu:2"}):
            job = h.submit(ntasks_per_tres=2, num_tasks=wanted, hold=True, **said)
            assert (job.num_tasks, job.min_cpus) == (4, max(wanted, 4))
    job = h.submit(num_tasks=4, ntasks_per_tres=2)
    assert job.spec.tres_per_job == "gpu:2"
    assert h.query("jobs", "job_id", "tres_per_job", "ntasks_per_tres")[-1] == [job.job_id, "", 2]
    assert h.submit(num_tasks=1, ntasks_per_tres=2).spec.tres_per_job == ""
    each = h.submit(gres="gres:gpu:2", ntasks_per_tres=1, min_nodes=2, hold=True)
    assert (each.num_tasks, each.spec.ntasks_per_node) == (4, 2)
    job = harness().submit(tres_per_job="gres:gpu:4", gres="gres:gpu:2")
    assert (job.min_nodes, job.max_nodes, job.node_list) == (2, 2, "n[1-2]")


def test_an_administrator_changes_what_a_node_has(tmp_path: Path) -> None:
    h = harness()
    (tmp_path / "slurm.conf").write_text("ClusterName=c\nSlurmctldHost=h\nGresTypes=gpu,tape\n")
    gres = h.core.tables.nodes.gres
    assert gres is not None
    gres.configured = Layouts(conf.read(tmp_path / "slurm.conf"))
    assert isinstance(h.update_nodes("n4", gres="gpu:a:1"), Ok)
    assert h.submit(gres="gres:gpu:a:1", required_nodes="n4").is_running
    # a kind that GresTypes does not name is nothing
    assert isinstance(h.update_nodes("n4", gres="disk:1,tape:2"), Ok)
    assert h.core.tables.nodes.nodes[3].gres == "tape:2"


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("gpu:4,tape:2", True),
        ("gpu:4,tape:9", True),
        ("tape:3", True),
        ("", True),
        ("gpu:2", False),
        ("gpu:8", False),
        ("gpu:5,tape:3", False),
    ],
)
def test_a_node_has_as_many_devices_as_gres_conf_has_files(
    tmp_path: Path, text: str, is_taken: bool
) -> None:
    h = harness()
    (tmp_path / "slurm.conf").write_text("ClusterName=c\nSlurmctldHost=h\nGresTypes=gpu,tape\n")
    (tmp_path / "gres.conf").write_text("Name=gpu File=/dev/nvidia[0-3]\nName=tape Count=3\n")
    gres = h.core.tables.nodes.gres
    assert gres is not None
    gres.configured = Layouts(conf.read(tmp_path / "slurm.conf"))
    answer = h.update_nodes("n4", gres=text)
    assert isinstance(answer, Ok) if is_taken else answer.code == 2072


def test_devices_stay_with_their_job_over_a_restart(tmp_path: Path) -> None:
    time, dirty = FakeTime(), Dirty()
    h = harness(journal=dirty, time=time)
    job = h.submit(num_tasks=1, gres="gres:gpu:b:1")
    h.acknowledge()
    store = Store(tmp_path)
    store.write(dirty.take(h.core))
    again = harness(journal=Dirty(), time=time, register=False)
    recover(again.core, store.read(again.core))
    again.register("noded0", [(job.job_id, 0)])
    assert again.core.tables.jobs[job.job_id].allocation == job.allocation
    gres = again.core.tables.nodes.gres
    assert gres is not None
    assert (gres.used_devices["gpu"][0], gres.free["gpu:b"].tolist()) == (0b100, [1, 2, 0, 0])
