"""srun --no-allocate, with real tasks: no job, and no controller.

Covers: commands/srun/no_allocate.
"""

import os
import re

import pytest
from real_cluster import RealCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RealCluster(tmp_path_factory.mktemp("c"), noded=2)
    cluster.up()
    yield cluster
    cluster.down()


def without_numbers(text):
    return re.sub(r"StepId=\d+\.\d+", "StepId=X", text).splitlines()


def test_tasks_run_on_the_nodes_that_are_named(cluster):
    script = (
        "echo $SLURMD_NODENAME $SLURM_PROCID $SLURM_NTASKS ${SLURM_JOB_ID-none} $SLURM_JOB_NODELIST"
    )
    result = cluster.run("srun", "-Z", "-w", "n[1,4]", "-n3", "bash", "-c", script)
    assert sorted(result.stdout.splitlines()) == [
        "n1 0 3 none n[1,4]",
        "n1 1 3 none n[1,4]",
        "n4 2 3 none n[1,4]",
    ]
    assert (result.returncode, result.stderr) == (0, "srun: do not allocate resources\n")
    assert cluster.run("squeue", "-h", "-t", "all").stdout == ""
    result = cluster.run("srun", "-Z", "-w", "n1", "bash", "-c", "exit 3")
    assert (result.returncode, result.stderr.splitlines()[1:]) == (
        3,
        ["srun: error: n1: task 0: Exited with exit code 3"],
    )


def test_nodes_have_to_be_named_and_known(cluster):
    result = cluster.run("srun", "-Z", "true")
    assert (result.returncode, result.stderr) == (
        1,
        "srun: error: must specify a node list with -Z, --no-allocate.\n",
    )
    result = cluster.run("srun", "-Z", "-w", "n9", "true")
    assert result.returncode == 1012 % 256
    assert without_numbers(result.stderr) == [
        "srun: do not allocate resources",
        "srun: error: fwd_tree_thread: can't find address for host n9, check slurm.conf",
        (
            "srun: error: Task launch for StepId=X failed on node n9: Can't find an address, "
            "check slurm.conf"
        ),
        "srun: error: Application launch failed: Can't find an address, check slurm.conf",
        "srun: Job step aborted",
    ]


def test_who_cannot_read_the_key_may_not(cluster):
    key = cluster.run_dir / "keys" / "controller"
    if os.geteuid() == 0:
        key = key.rename(cluster.run_dir / "away")  # root could read it, whatever its mode
    else:
        key.chmod(0)
    try:
        result = cluster.run("srun", "-Z", "-w", "n1", "true")
    finally:
        key = key.rename(cluster.run_dir / "keys" / "controller")
        key.chmod(0o600)
    assert result.returncode == 2002 % 256
    assert without_numbers(result.stderr)[1:] == [
        "srun: error: Task launch for StepId=X failed on node n1: Access/permission denied",
        "srun: error: Application launch failed: Access/permission denied",
        "srun: Job step aborted",
    ]


def test_the_controller_is_not_needed(cluster):
    cluster.kill_daemon("controller")
    step = cluster.start("srun", "-Z", "-w", "n3", "bash", "-c", "echo here; sleep 500")
    assert step.stdout.readline() == "here\n"
    step.terminate()
    assert step.wait(60) == 137
