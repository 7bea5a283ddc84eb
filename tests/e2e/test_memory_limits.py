"""Scripts and steps that use more memory than their job has, as users see it."""

import time

import pytest
from real_cluster import RealCluster

HOG = "import time; b = bytearray(150 << 20); time.sleep(30)"


@pytest.fixture
def cluster(tmp_path, request):
    (tmp_path / "cgroup.conf").write_text("ConstrainRAMSpace=yes\n")
    cluster = RealCluster(tmp_path, more=request.param)
    cluster.up()
    yield cluster
    cluster.down()


def ended(cluster, job):
    for _ in range(300):
        state = cluster.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").stdout.strip()
        if state not in {"PENDING", "RUNNING", "COMPLETING"}:
            return state
        time.sleep(0.1)
    raise AssertionError(state)


@pytest.mark.parametrize("cluster", ["TaskPlugin=task/cgroup"], indirect=True)
def test_who_lacks_memory_ends_so_where_it_is_constrained(cluster):
    (cluster.folder / "hog.py").write_text(HOG)
    script = cluster.run(
        "sbatch",
        "--parsable",
        "--mem=60",
        "-o",
        "script.out",
        "-D",
        cluster.folder,
        "--wrap",
        "python3 hog.py",
    ).stdout.strip()
    step = cluster.run(
        "sbatch",
        "--parsable",
        "--mem=60",
        "-o",
        "step.out",
        "-D",
        cluster.folder,
        "--wrap",
        "srun python3 hog.py; echo on $?",
    ).stdout.strip()
    assert ended(cluster, script) == "OUT_OF_MEMORY"
    assert "ExitCode=0:125" in cluster.run("scontrol", "show", "job", script).stdout
    assert ended(cluster, step) == "COMPLETED"
    said = (
        "slurmstepd-{}: error: Detected 1 oom-kill event(s) in StepId={}. Some of your "
        "processes may have been killed by the cgroup out-of-memory"
    )
    assert said.format("n1", f"{script}.batch") in (cluster.folder / "script.out").read_text()
    text = (cluster.folder / "step.out").read_text()
    assert said.format("n1", f"{step}.0") in text
    assert "srun: error: n1: task 0: Out Of Memory\n" in text
    assert text.endswith("on 1\n")
    alone = cluster.run("srun", "--mem=60", "python3", cluster.folder / "hog.py")
    assert (alone.returncode, "task 0: Out Of Memory" in alone.stderr) == (1, True)
    job = cluster.run("squeue", "-h", "-t", "all", "-o", "%A", "-S", "-i").stdout.split()[0]
    assert ended(cluster, job) == "OUT_OF_MEMORY"
    of_its_own = cluster.run(
        "salloc", "--mem=1000", "srun", "--mem=60", "python3", cluster.folder / "hog.py"
    )
    assert "task 0: Out Of Memory" in of_its_own.stderr


@pytest.mark.parametrize(
    "cluster",
    ["JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherParams=OverMemoryKill"],
    indirect=True,
)
def test_who_uses_too_much_is_killed_with_his_step(cluster):
    (cluster.folder / "hog.py").write_text(HOG)
    outcome = cluster.run("srun", "--mem=60", "python3", str(cluster.folder / "hog.py"))
    assert outcome.returncode == 137
    assert " exceeded memory limit (" in outcome.stderr
    assert " > 62914560), being killed" in outcome.stderr
    assert "task 0: Killed" in outcome.stderr
    assert "STEP 1.0 ON n1 CANCELLED AT" in outcome.stderr
    told = (
        "sstat -n -P -o jobid,ntasks,maxrssnode,maxrsstask,mincpunode $SLURM_JOB_ID.batch; "
        "sstat -n -P -i $SLURM_JOB_ID.batch"
    )
    assert cluster.run("sbatch", "-W", "-o", "stat.out", "--wrap", told).returncode == 0
    figures, pids = cluster.text("stat.out").splitlines()
    assert figures == "2.batch|1|n1|0|n1"
    assert pids.startswith("2.batch|n1|")
