"""The prolog of the nodes, with real jobs: when it runs on which node, who waits for it, and what
is said of its failure.

Covers: noded/prologs.
"""

import pytest
from real_cluster import RealCluster

PROGRAM = """#!/bin/bash
echo "$SLURM_SCRIPT_CONTEXT $SLURMD_NODENAME $SLURM_JOB_ID" >> {folder}/seen
until [ -e {folder}/go ]; do sleep 0.05; done
[ $SLURM_SCRIPT_CONTEXT = epilog_slurmd ] || ! [ -e {folder}/fail.$SLURMD_NODENAME ] || exit 3
"""


STEPS = (
    "exec 3<&0 </dev/null; echo $SLURM_JOB_ID; read -u 3; srun -N1 -w n1 true; read -u 3; "
    "srun true; srun true"
)


def site(folder, more=""):
    program = folder / "program"
    program.write_text(PROGRAM.format(folder=folder))
    program.chmod(0o755)
    (folder / "go").touch()
    # what is killed in a second may not have had its turn on a busy machine, and says nothing
    cluster = RealCluster(
        folder, more=f"Prolog={program}\nEpilog={program}\n{more}", noded=2, kill_wait_s=30
    )
    cluster.up()
    return cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = site(tmp_path_factory.mktemp("first"))
    yield cluster
    cluster.down()


@pytest.fixture(scope="module")
def early(tmp_path_factory):
    cluster = site(tmp_path_factory.mktemp("early"), "PrologFlags=Alloc,Serial")
    yield cluster
    cluster.down()


def seen(cluster, job, context="prolog"):
    path = cluster.folder / "seen"
    lines = path.read_text().splitlines() if path.exists() else []
    return sorted(
        line.split()[1]
        for line in lines
        if line.startswith(f"{context}_slurmd ") and line.endswith(f" {job}")
    )


def running(cluster):
    return cluster.run("squeue", "-h", "-t", "R", "-o", "%i").stdout.strip()


def failing(cluster, node):
    (cluster.folder / f"fail.{node}").touch()


def mended(cluster, node):
    (cluster.folder / f"fail.{node}").unlink()
    cluster.until(lambda: "drain" in cluster.run("sinfo", "-h", "-n", node, "-o", "%T").stdout)
    assert "Prolog error" in cluster.run("sinfo", "-h", "-n", node, "-o", "%E").stdout
    cluster.until(
        lambda: cluster.run("sinfo", "-h", "-n", node, "-o", "%T").stdout.strip() == "drained"
    )
    cluster.run("scontrol", "update", f"node={node}", "state=resume")
    cluster.until(lambda: cluster.run("sinfo", "-h", "-o", "%T").stdout.split() == ["idle"])


def test_it_runs_on_each_node_before_the_first_thing_of_the_job_there(cluster):
    holder = cluster.start("salloc", "-N3", "-w", "n[1-3]", "bash", "-c", STEPS)
    job = holder.stdout.readline().strip()
    assert seen(cluster, job) == []
    holder.stdin.write("\n")
    holder.stdin.flush()
    cluster.until(lambda: seen(cluster, job) == ["n1"])
    holder.stdin.write("\n")
    holder.stdin.flush()
    cluster.until(lambda: seen(cluster, job, "epilog") == ["n1", "n2", "n3"])
    assert seen(cluster, job) == ["n1", "n2", "n3"]


def test_a_step_of_its_own_job_that_cannot_be_launched(cluster):
    failing(cluster, "n4")
    result = cluster.run("srun", "-w", "n4", "true")
    assert result.returncode == 4022 % 256
    number = int(cluster.run("squeue", "-h", "-t", "all", "-S", "-i", "-o", "%i").stdout.split()[0])
    assert result.stderr.splitlines() == [
        "srun: Prolog failure on node n4",
        f"srun: error: Task launch for StepId={number}.0 failed on node n4: Job prolog failed",
        "srun: error: Application launch failed: Job prolog failed",
        "srun: Job step aborted",
    ]
    mended(cluster, "n4")
    assert cluster.ended(number) == "CANCELLED"


def test_a_batch_job_is_held_when_it_fails_for_a_step_on_another_node(cluster):
    failing(cluster, "n3")
    job = cluster.script("srun true\nsleep 500\n", "-N2", "-w", "n[2-3]", "--output=held.out")
    cluster.until(
        lambda: (
            cluster.run("squeue", "-h", "-j", job, "-o", "%T %r").stdout.strip()
            == "PENDING launch failed requeued held"
        )
    )
    assert "failed on node n3: Job prolog failed" in cluster.text("held.out")
    assert "n2" in seen(cluster, job)
    mended(cluster, "n3")
    cluster.run("scancel", job)


def test_a_batch_job_says_in_its_output_that_it_failed(cluster):
    failing(cluster, "n2")
    job = cluster.script("echo never\n", "-w", "n2", "--no-requeue", "--output=failed.out")
    assert cluster.ended(job) == "CANCELLED"
    assert cluster.text("failed.out") == "Error running slurm prolog: 3\n"
    mended(cluster, "n2")


def test_a_job_that_is_cancelled_meanwhile_has_its_epilog_afterwards(cluster):
    (cluster.folder / "go").unlink()
    step = cluster.start("srun", "-w", "n1", "touch", "never")
    job = cluster.until(lambda: running(cluster))
    cluster.until(lambda: seen(cluster, job) == ["n1"])
    cluster.run("scancel", job)
    assert cluster.run("squeue", "-h", "-j", job, "-o", "%T").stdout.strip() == "COMPLETING"
    assert seen(cluster, job, "epilog") == []
    (cluster.folder / "go").touch()
    cluster.until(lambda: seen(cluster, job, "epilog") == ["n1"])
    step.wait(60)
    assert not (cluster.home / "never").exists()


def test_at_the_allocation_all_nodes_are_made_ready(early):
    (early.folder / "go").unlink()
    holder = early.start(
        "salloc",
        "-N2",
        "-w",
        "n[1,4]",
        "bash",
        "-c",
        "squeue -h -j $SLURM_JOB_ID -o '%T %r'; srun -N1 true",
    )
    job = early.until(lambda: running(early))
    early.until(lambda: seen(early, job) == ["n1", "n4"])
    assert "Reason=Prolog " in early.run("scontrol", "-o", "show", "job", job).stdout
    (early.folder / "go").touch()
    out, err = holder.communicate(timeout=60)
    assert err.splitlines()[1:3] == [
        "salloc: Waiting for resource configuration",
        "salloc: Nodes n[1,4] are ready for job",
    ]
    assert out.splitlines() == ["RUNNING None"]
    assert seen(early, job) == ["n1", "n4"]


def test_at_the_allocation_a_failure_takes_it_back(early):
    failing(early, "n4")
    lost = early.run("salloc", "-N2", "-w", "n[1,4]", "true")
    number = lost.stderr.splitlines()[0].split()[-1]
    assert lost.stderr.splitlines() == [
        f"salloc: Granted job allocation {number}",
        "salloc: Waiting for resource configuration",
        f"salloc: Job allocation {number} has been revoked.",
        "salloc: Prolog failure on node n4",
        f"salloc: error: Job allocation {number} has been revoked",
    ]
    mended(early, "n4")
    failing(early, "n4")
    lost = early.run("srun", "-N2", "-w", "n[1,4]", "true")
    assert (lost.returncode, lost.stderr.splitlines()) == (
        1,
        [
            "srun: Prolog failure on node n4",
            "srun: error: Nodes n[1,4] are still not ready",
            "srun: error: Something is wrong with the boot of the nodes.",
        ],
    )
    mended(early, "n4")
