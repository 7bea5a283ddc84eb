"""A node daemon that is killed in mid-job and started again: jobs and steps go on, and no output is
lost or there twice.
"""

import signal
import subprocess

import pytest
from real_cluster import RealCluster

COUNT = (
    'for i in $(seq 200); do echo "$SLURM_PROCID line $i"; sleep 0.01; done; echo '
    '"$SLURM_PROCID done"'
)
LINES = sorted(
    [f"{task} line {line}" for task in range(2) for line in range(1, 201)] + ["0 done", "1 done"]
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RealCluster(tmp_path_factory.mktemp("c"), more="MessageTimeout=5")
    cluster.up()
    yield cluster
    cluster.down()


def test_steps_of_srun_and_of_scripts_go_on(cluster):
    alone = cluster.start("srun", "-n2", "-N2", "bash", "-c", f"{COUNT}; exit $SLURM_PROCID")
    job = cluster.script(
        f"srun -n2 -o step.out bash -c '{COUNT}'\necho status $?\n{COUNT}\nexit 3\n",
        "--output=job.out",
        "-n2",
    )
    cluster.until(lambda: "line 5" in cluster.text("step.out"))
    cluster.kill_daemon()
    cluster.start_daemon()
    out, err = alone.communicate(timeout=30)
    assert sorted(out.split("\n")[:-1]) == LINES
    assert alone.returncode == 1
    assert "task 1: Exited with exit code 1" in err
    assert cluster.ended(job) == "FAILED"
    assert sorted(cluster.text("step.out").split("\n")[:-1]) == LINES
    lines = cluster.text("job.out").split("\n")
    assert lines[0] == "status 0"
    assert [line.removeprefix("0 ") for line in lines[1:-1]] == [
        line.removeprefix("0 ") for line in LINES_OF_SCRIPT
    ]
    cluster.until(lambda: cluster.spool() == [])


LINES_OF_SCRIPT = [*(f"0 line {line}" for line in range(1, 201)), "0 done"]


def test_what_ended_while_the_daemon_was_away_is_known_as_it_ended(cluster):
    job = cluster.script(
        "srun bash -c 'touch up; while [ ! -e go ]; do sleep 0.02; done; echo last; exit 7' > "
        "away.out\nexit $?\n",
        "--output=/dev/null",
    )
    step = cluster.start(
        "srun", "bash", "-c", "touch up2; while [ ! -e go ]; do sleep 0.02; done; exit 6"
    )
    cluster.until(lambda: (cluster.home / "up").exists() and (cluster.home / "up2").exists())
    cluster.kill_daemon()
    (cluster.home / "go").touch()
    step.communicate(timeout=20)
    assert step.returncode == 6
    cluster.start_daemon()
    assert cluster.ended(job) == "FAILED"
    assert "ExitCode=7:0" in cluster.run("scontrol", "show", "job", job).stdout
    assert cluster.text("away.out") == "last\n"
    cluster.until(lambda: cluster.spool() == [])


def test_steps_that_were_found_again_can_be_signalled_attached_and_ended(cluster):
    step = cluster.start(
        "srun",
        "--job-name=found",
        "bash",
        "-c",
        'trap "echo got it" USR1; echo up; while :; do sleep 0.05; done',
    )
    assert step.stdout is not None
    assert step.stdout.readline() == "up\n"
    cluster.kill_daemon()
    cluster.start_daemon()
    job = cluster.run("squeue", "-h", "-n", "found", "-o", "%i").stdout.strip()
    assert cluster.until(
        lambda: f"{job}.0" in cluster.run("sstat", "-a", "-n", "-j", job, "-o", "jobid,pids").stdout
    )
    cluster.start("bash", "-c", f"exec sattach {job}.0 > attached.out")
    cluster.until(
        lambda: (
            cluster.run("scancel", "-s", "USR1", f"{job}.0")
            and "got it\n" in cluster.text("attached.out")
        )
    )
    assert step.stdout.readline() == "got it\n"
    cluster.run("scancel", f"{job}.0")
    _, err = step.communicate(timeout=20)
    assert "CANCELLED AT" in err
    assert cluster.ended(job) in ("CANCELLED", "FAILED")
    cluster.until(lambda: cluster.spool() == [])


def test_srun_ends_when_the_controller_knows_of_its_steps_end(cluster):
    daemon = cluster.daemon()
    twice = (
        f"srun --epilog={cluster.home}/epilog bash -c 'kill -STOP {daemon.pid}' && srun "
        "-n4 --exact -l true"
    )
    (cluster.home / "epilog").write_text("#!/bin/sh\ntouch over\n")
    (cluster.home / "epilog").chmod(0o755)
    allocated = cluster.start("salloc", "-n4", "bash", "-c", twice)
    try:
        # all that srun hears of the tasks has come; the daemon has yet to report it
        cluster.until((cluster.home / "over").exists)
        with pytest.raises(subprocess.TimeoutExpired):
            allocated.wait(0.3)
    finally:
        daemon.signal(signal.SIGCONT)
    _, err = allocated.communicate(timeout=30)
    assert allocated.returncode == 0
    assert "temporarily disabled" not in err


def test_one_that_stays_away_has_its_jobs_requeued_or_ended(tmp_path):
    cluster = RealCluster(tmp_path, more="MessageTimeout=2", slurmd_timeout_s=2, noded=2)
    cluster.up()
    try:
        requeued = cluster.script("sleep 500", "--output=/dev/null", "--requeue", "-w", "n4")
        ended = cluster.script("sleep 500", "--output=/dev/null", "--no-requeue", "-w", "n4")
        spanning = cluster.start("srun", "-N2", "-w", "n[1,4]", "bash", "-c", "echo up; sleep 500")
        assert spanning.stdout is not None
        for _ in range(2):
            spanning.stdout.readline()
        cluster.until(lambda: cluster.state(ended) == cluster.state(requeued) == "RUNNING")
        cluster.kill_daemon("noded1")
        assert cluster.ended(ended, 30) == "NODE_FAIL"
        cluster.until(
            lambda: "Restarts=1" in cluster.run("scontrol", "show", "job", requeued).stdout
        )
        cluster.run("scancel", requeued)
        _, err = spanning.communicate(timeout=30)
        assert spanning.returncode != 0, err
        cluster.start_daemon("noded1")
        cluster.until(lambda: cluster.spool() == [])
    finally:
        cluster.down()
