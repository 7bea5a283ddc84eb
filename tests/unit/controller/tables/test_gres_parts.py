"""Parts of GPUs (shard, mps) on nodes of two GPUs, as 22.05.8 was seen to give them.

Covers: controller/tables/gres_layout, controller/tables/gres_texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from controller_harness import START, Harness
from scheduling_harness import make_job

from understudy.controller.edge.build import build_tables
from understudy.controller.facts.environment import job_environment
from understudy.controller.jobs.checks import check_gres
from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.tables.gres_texts import (
    node_gres,
    node_gres_used,
    share_text,
    used_counts,
)
from understudy.controller.tables.settings import Settings
from understudy.model import conf
from understudy.model.errors import SlurmError
from understudy.model.states import JobState, NodeState
from understudy.protocol.messages import JobSpec

if TYPE_CHECKING:
    from pathlib import Path

    from understudy.controller.tables.job import Job


class Cluster:
    def __init__(self, folder: Path, gres: str, lines: str, nodes: int = 1) -> None:
        names = ",".join(dict.fromkeys(word.partition(":")[0] for word in gres.split(",")))
        (folder / "slurm.conf").write_text(
            f"ClusterName=c\nSlurmctldHost=h\nGresTypes={names}\n"
            f"NodeName=n[1-{nodes}] CPUs=8 Gres={gres}\nPartitionName=f Nodes=ALL\n"
        )
        (folder / "gres.conf").write_text(lines)
        self.tables = build_tables(conf.read(folder / "slurm.conf"))[0]
        for node in self.tables.nodes.nodes:
            node.state = NodeState.IDLE
            self.tables.nodes.set_availability(node)
        self.selector = SelectConsTres(frozenset({"CR_CORE"}))
        self.jobs: list[Job] = []

    def job(self, gres: str, minutes: int = 10) -> Job:
        self.jobs.append(
            make_job(len(self.jobs) + 1, gres=gres, limit_s=minutes * 60, partitions=("f",))
        )
        return self.jobs[-1]

    def run(self, gres: str, minutes: int = 10) -> str:
        """What the job gets on each of its nodes, "" if it has to wait."""
        job, nodes = self.job(gres, minutes), self.tables.nodes
        job.allocation = self.selector.select(
            Ask(job, self.tables.partitions["f"], nodes.up_nodes), self.tables
        )
        if job.allocation is None:
            return ""
        nodes.allocate(job.allocation)
        job.state, job.start_time, job.partition = JobState.RUNNING, 0, "f"
        self.tables.running[job.job_id] = self.tables.jobs[job.job_id] = job
        return " ".join(
            f"n{share.node + 1}:{share_text(share.gres)}" for share in job.allocation.shares
        )

    def end(self, job_id: int) -> None:
        held = self.tables.running.pop(job_id).allocation
        assert held is not None
        self.tables.nodes.release(held, held.nodes)

    def shown(self, index: int = 0) -> str:
        return node_gres_used(self.tables.nodes, self.tables.nodes.nodes[index])


@pytest.fixture
def shards(tmp_path: Path) -> Cluster:
    return Cluster(
        tmp_path, "gpu:2,shard:8", "Name=gpu File=/dev/tty[1-2]\nName=shard Count=8\n", nodes=2
    )


def test_all_shards_of_a_job_are_of_one_gpu_the_first_with_room(shards: Cluster) -> None:
    got = [shards.run(f"shard:{count}") for count in (2, 2, 1, 4, 1)]
    assert got == [
        "n1:shard:2(IDX:0)",
        "n1:shard:2(IDX:0)",
        "n1:shard:1(IDX:1)",
        "n2:shard:4(IDX:0)",
        "n1:shard:1(IDX:1)",
    ]
    assert shards.shown() == "gpu:0,shard:(null):2(IDX:0-1)"
    assert used_counts(shards.tables.nodes, 0) == {"gres/gpu": 0, "gres/shard": 6}


def test_what_comes_free_is_given_again(shards: Cluster) -> None:
    shards.run("shard:3")
    shards.run("shard:2")
    shards.end(1)
    assert shards.run("shard:1") == "n1:shard:1(IDX:0)"
    shards.end(2)
    shards.end(3)
    assert shards.shown() == "gpu:0,shard:(null):0(IDX:N/A)"


def test_a_gpu_that_is_given_whole_is_not_divided(tmp_path: Path) -> None:
    cluster = Cluster(
        tmp_path, "gpu:2,shard:8", "Name=gpu File=/dev/tty[1-2]\nName=shard Count=8\n"
    )
    assert cluster.run("gpu:1") == "n1:gpu:1(IDX:0)"
    assert cluster.run("shard:1") == "n1:shard:1(IDX:1)"
    assert cluster.run("shard:4") == ""
    assert cluster.selector.will_run(
        Ask(cluster.job("shard:4"), cluster.tables.partitions["f"], 1), cluster.tables, 0
    ) == (600, 1)


def test_a_gpu_of_which_parts_are_in_use_is_given_whole_all_the_same(shards: Cluster) -> None:
    shards.run("shard:1")
    assert shards.run("gpu:1") == "n1:gpu:1(IDX:0)"
    assert shards.run("shard:1") == "n1:shard:1(IDX:1)"


def test_more_than_a_gpu_has_waits_and_more_than_a_node_has_is_refused(shards: Cluster) -> None:
    assert shards.run("shard:6") == ""
    partition = shards.tables.partitions["f"]
    assert shards.selector.could_ever_run(
        Ask(shards.job("shard:8"), partition, partition.nodes), shards.tables
    )
    assert not shards.selector.could_ever_run(
        Ask(shards.job("shard:9"), partition, partition.nodes), shards.tables
    )


def test_mps_is_of_one_gpu_of_a_node_at_a_time(tmp_path: Path) -> None:
    cluster = Cluster(
        tmp_path, "gpu:a:2,mps:200", "Name=gpu Type=a File=/dev/tty[1-2]\nName=mps Count=200\n"
    )
    node = cluster.tables.nodes.nodes[0]
    assert node_gres(cluster.tables.nodes, node) == "gpu:a:2,mps:a:200"
    assert cluster.shown() == "gpu:a:0(IDX:N/A),mps:a:0(IDX:N/A)"
    assert [cluster.run(f"mps:{count}") for count in (50, 30, 40)] == [
        "n1:mps:50(IDX:0)",
        "n1:mps:30(IDX:0)",
        "",
    ]
    assert cluster.shown() == "gpu:a:0(IDX:N/A),mps:a:1(IDX:0)"
    cluster.end(1)
    cluster.end(2)
    assert [cluster.run("gpu:1"), cluster.run("mps:10")] == [
        "n1:gpu:a:1(IDX:0)",
        "n1:mps:10(IDX:1)",
    ]


def test_files_say_how_many_parts_each_gpu_has(tmp_path: Path) -> None:
    lines = (
        "Name=gpu File=/dev/tty[1-2]\nName=shard Count=2 File=/dev/tty1\n"
        "Name=shard Count=6 File=/dev/tty2\n"
    )
    cluster = Cluster(tmp_path, "gpu:2,shard:8", lines)
    assert [cluster.run("shard:6"), cluster.run("shard:2")] == [
        "n1:shard:6(IDX:1)",
        "n1:shard:2(IDX:0)",
    ]


def test_jobs_are_told_of_the_gpu_of_their_parts(tmp_path: Path) -> None:
    cluster = Cluster(
        tmp_path,
        "gpu:2,shard:8,mps:100",
        "Name=gpu File=/dev/tty[1-2]\nName=shard Count=8\nName=mps Count=100\n",
    )
    cluster.run("shard:4")
    cluster.run("shard:2")
    cluster.run("mps:10")
    for job in cluster.jobs:
        job.start_time = int(START)  # since the node has booted
    harness = Harness(cluster.tables)
    told = [
        dict(line.split("=", 1) for line in job_environment(harness.core, job))
        for job in cluster.jobs
    ]
    names = (
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "SLURM_GPUS_ON_NODE",
        "SLURM_JOB_GPUS",
        "SLURM_SHARDS_ON_NODE",
    )
    assert [[each.get(name) for name in names] for each in told[1:]] == [
        ["1", "1", "1", "1", "2"],
        ["0", None, "1", "0", None],
    ]
    assert [each.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") for each in told] == [None, None, "20"]


def test_who_asks_for_gpus_and_for_parts_of_them_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(
        tmp_path, "gpu:2,shard:8", "Name=gpu File=/dev/tty[1-2]\nName=shard Count=8\n"
    )
    harness = Harness(cluster.tables, settings=Settings(gres_types=("gpu", "shard")))
    with pytest.raises(SlurmError) as error:
        check_gres(harness.core, JobSpec(gres="gres:gpu:1,gres:shard:1"))
    assert error.value.code == 2072
