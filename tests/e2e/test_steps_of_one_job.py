"""Steps with real tasks: while their job is suspended, with epilogs, with parts of GPUs, beside
others in an ordinary job.

Covers: noded/task_programs.
"""

import signal

import pytest
from real_cluster import RealCluster

TICK = (
    "i=0; while [ $i -lt 600 ]; do echo x >> tick.$SLURM_STEP_ID.$SLURM_PROCID; sleep 0.1; "
    "i=$((i+1)); done"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("steps")
    epilog = folder / "epilog"
    epilog.write_text(
        '#!/bin/sh\n[ -z "$STUCK" ] || sleep 1000\necho over $SLURM_SCRIPT_CONTEXT >&2\n'
    )
    epilog.chmod(0o755)
    cluster = RealCluster(folder, more=f"TaskEpilog={epilog}")
    cluster.up()
    yield cluster
    cluster.down()


def ticks(cluster):
    return sum(path.stat().st_size for path in cluster.home.glob("tick.*"))


def test_the_tasks_of_all_steps_stand_still_while_their_job_is_suspended(cluster):
    job = cluster.script(
        f"srun -N2 -n2 sh -c '{TICK}' & srun --overlap -N1 -n1 sh -c '{TICK}' & wait", "-N2"
    )
    cluster.until(lambda: len(list(cluster.home.glob("tick.*"))) == 3)
    assert cluster.run("scontrol", "suspend", job).returncode == 0

    def stands_still():
        before = ticks(cluster)
        cluster.run("sleep", "0.5")
        return ticks(cluster) == before

    cluster.until(stands_still)
    before = ticks(cluster)
    assert cluster.run("scontrol", "resume", job).returncode == 0
    cluster.until(lambda: ticks(cluster) > before + 10)
    cluster.run("scancel", job)
    assert cluster.ended(job) == "CANCELLED"


def test_an_epilog_of_the_user_is_killed_and_one_of_the_site_ends_with_its_step(cluster):
    assert "over epilog_task" in cluster.run("srun", "-n1", "true").stderr
    user = cluster.folder / "user_epilog"
    user.write_text("#!/bin/sh\nsleep 1000\n")
    user.chmod(0o755)
    result = cluster.run("srun", "-n1", f"--task-epilog={user}", "true")
    assert result.returncode == 0
    assert "error: TaskEpilog failed status=9" in result.stderr
    waiting = cluster.start("srun", "-n1", "-J", "stuck", "true", STUCK="1")
    job = cluster.until(
        lambda: cluster.run("squeue", "-h", "-n", "stuck", "-t", "R", "-o", "%i").stdout
    ).strip()
    cluster.run("scancel", job)
    assert cluster.ended(job) == "CANCELLED"
    waiting.communicate(timeout=60)


def test_programs_beside_each_other_have_nodes_of_their_own(cluster):
    line = (
        "srun -l -N1 -n1 echo A : -N1 -n1 sh -c 'echo B; exit 7'; echo rc $?; srun -N2 echo A "
        ": echo B; echo rc $?"
    )
    result = cluster.run("salloc", "-N2", "sh", "-c", line)
    assert sorted(result.stdout.splitlines()) == ["0: A", "1: B", "rc 1", "rc 7"]
    assert (
        "srun: error: Allocation failure of 1 nodes: job size of 2, already allocated 2 "
        "nodes to previous components." in result.stderr
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
@pytest.mark.parametrize("program", ["srun", "salloc"])
def test_who_interrupts_one_that_waits_cancels_its_job(cluster, program, number):
    whole = cluster.script("sleep 600", "-N4", "--exclusive")
    cluster.until(lambda: cluster.state(whole) == "RUNNING")
    waiting = cluster.start(program, "-n1", "-J", "patient", "true")
    job = cluster.until(
        lambda: " ".join(
            cluster.run("squeue", "-h", "-n", "patient", "-t", "PD", "-o", "%i").stdout.split()
        )
    )
    said = [waiting.stderr.readline() for _ in range(1 if program == "srun" else 2)]
    assert said[-1] == f"{program}: job {job} queued and waiting for resources\n"
    waiting.send_signal(number)
    rest = waiting.communicate(timeout=60)[1].splitlines()
    expected = {
        "srun": [
            f"srun: Job allocation {job} has been revoked",
            f"srun: Force Terminated JobId={job}",
        ],
        "salloc": [
            f"salloc: Job allocation {job} has been revoked.",
            "salloc: Job aborted due to signal",
        ],
    }
    assert (rest, waiting.returncode) == (expected[program], 1)
    assert cluster.ended(job) == "CANCELLED"
    cluster.run("scancel", whole)
    cluster.ended(whole)
