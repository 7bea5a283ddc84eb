"""A job's output is never lost or there twice, and nothing of a job outlives it, whichever process
is killed and whatever its output goes to.

Covers: noded/files, noded/task_files, noded/task_output, noded/task_readers.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from real_cluster import RealCluster

LINES = [f"line {number}" for number in range(1, 151)]


def count(mark: str) -> str:
    """A task that writes its lines in a second or two. The mark stands in its command line."""
    return f'for i in $(seq 150); do echo "line $i"; sleep 0.01; done; : {mark}'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = RealCluster(tmp_path_factory.mktemp("c"), more="MessageTimeout=5", noded=2)
    cluster.up()
    yield cluster
    cluster.down()


def processes_with(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if (
                    mark.encode() in (entry / "cmdline").read_bytes()
                    and (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
                ):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def nothing_is_left(cluster: RealCluster, mark: str) -> None:
    cluster.until(lambda: cluster.spool() == [], 20)
    cluster.until(lambda: processes_with(mark) == [], 20)


def job_named(cluster: RealCluster, name: str) -> str:
    def found() -> str:
        return cluster.run("squeue", "-h", "-n", name, "-o", "%i").stdout.strip()

    return cluster.until(found)


def restart_controller(cluster: RealCluster) -> None:
    cluster.kill_daemon("controller")
    with (cluster.run_dir / "logs" / "controller.log").open("ab") as log:
        command = [sys.executable, "-m", "understudy.controller", "--run-dir", str(cluster.run_dir)]
        cluster.daemons.append(
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        )
    cluster.until(lambda: cluster.run("scontrol", "ping").returncode == 0)


def forkers(cluster: RealCluster) -> list[int]:
    daemons = {cluster.daemon(name).pid for name in ("noded0", "noded1")}
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in daemons and b"fork" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def test_when_the_controller_is_killed_in_mid_output(cluster):
    mark = "controller-dies"
    job = cluster.script(
        f"srun -o step.out bash -c '{count(mark)}'\n{count(mark)}\n", "--output=batch.out"
    )
    alone = cluster.start("srun", "bash", "-c", count(mark))
    cluster.until(lambda: "line 5\n" in cluster.text("step.out"))
    restart_controller(cluster)
    out, err = alone.communicate(timeout=40)
    assert out.splitlines() == LINES, err
    assert alone.returncode == 0
    assert cluster.ended(job) == "COMPLETED"
    assert cluster.text("step.out").splitlines() == LINES
    assert cluster.text("batch.out").splitlines() == LINES
    nothing_is_left(cluster, mark)


def test_when_the_process_is_killed_from_which_others_are_forked(cluster):
    mark = "forker-dies"
    job = cluster.script(
        f"srun -o forked.out bash -c '{count(mark)}'\nsrun -o after.out bash -c '{count(mark)}'\n",
        "--output=/dev/null",
    )
    cluster.until(lambda: "line 5\n" in cluster.text("forked.out"))
    assert forkers(cluster)
    for pid in forkers(cluster):
        os.kill(pid, signal.SIGKILL)
    assert cluster.ended(job) == "COMPLETED"
    assert cluster.text("forked.out").splitlines() == LINES
    assert cluster.text("after.out").splitlines() == LINES
    nothing_is_left(cluster, mark)


def test_when_srun_is_killed_its_job_ends_and_leaves_nothing(cluster):
    mark = "srun-dies"
    step = cluster.start(
        "srun", "--job-name", mark, "bash", "-c", f"echo up; sleep 1; {count(mark)}; sleep 500"
    )
    assert step.stdout.readline() == "up\n"
    job = cluster.run("squeue", "-h", "-n", mark, "-o", "%i").stdout.strip()
    step.kill()
    step.wait()
    cluster.run("scancel", job)
    assert cluster.ended(job) in ("CANCELLED", "FAILED")
    nothing_is_left(cluster, mark)


def test_when_a_step_is_killed_from_below_the_daemon_in_mid_launch(cluster):
    mark = "mid-launch"
    for delay_s in (0.0, 0.01, 0.03, 0.1):
        step = cluster.start(
            "srun", "-N2", "-n4", "--job-name", mark, "bash", "-c", f"echo up; sleep 500 # {mark}"
        )
        job = job_named(cluster, mark)
        time.sleep(delay_s)
        cluster.run("scancel", job)
        step.communicate(timeout=30)
        assert step.returncode != 0
        cluster.ended(job)
        nothing_is_left(cluster, mark)


def test_when_jobs_are_cancelled_while_they_are_launched(cluster):
    mark = "cancelled-early"
    jobs = []
    for number in range(12):
        jobs.append(
            cluster.script(
                f"srun bash -c 'sleep 500 # {mark}' &\nsleep 500 # {mark}\nwait\n",
                "--output=/dev/null",
            )
        )
        time.sleep(0.02 * (number % 4))
        cluster.run("scancel", jobs[-1])
    assert {cluster.ended(job) for job in jobs} == {"CANCELLED"}
    nothing_is_left(cluster, mark)


def test_output_into_a_pipe_that_is_read(cluster):
    os.mkfifo(cluster.home / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((cluster.home / "pipe").read_text()))
    reader.start()
    job = cluster.script(f"{count('pipe')}\n", "--output=pipe")
    assert cluster.ended(job) == "COMPLETED"
    reader.join(20)
    assert read[0].splitlines() == LINES


@pytest.mark.parametrize("kind", ["script", "srun"])
def test_output_into_a_pipe_that_nobody_reads_can_be_cancelled(cluster, kind):
    mark = f"unread-{kind}"
    os.mkfifo(cluster.home / mark)
    if kind == "script":
        job = str(cluster.script(f"sleep 500 # {mark}\n", f"--output={mark}"))
    else:
        os.rename(cluster.home / mark, cluster.home / f"{mark}.0")
        cluster.start(
            "srun", "--job-name", mark, "-o", f"{mark}.%t", "bash", "-c", f"sleep 500 # {mark}"
        )
        job = job_named(cluster, mark)
    cluster.until(lambda: cluster.state(job) == "RUNNING")
    time.sleep(0.5)
    cluster.run("scancel", job)
    assert cluster.ended(job) == "CANCELLED"
    nothing_is_left(cluster, mark)


def test_a_full_disk_of_output_is_the_tasks_own_matter(cluster):
    result = cluster.run("srun", "bash", "-c", "echo some > /dev/full; echo $?; echo end")
    assert result.stdout == "1\nend\n"
    job = cluster.script(
        "echo lost\nsrun -o /dev/full echo lost too\nsrun echo $? > said\n", "--output=/dev/full"
    )
    assert cluster.ended(job) == "COMPLETED"
    assert cluster.text("said") != ""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small disk")
def test_a_full_spool_fails_launches_and_heals(tmp_path):
    cluster = RealCluster(tmp_path, more="MessageTimeout=5")
    spool = tmp_path / "run" / "spool"
    cluster.up()
    name = next(iter(sorted(each.name for each in spool.iterdir())))
    cluster.kill_daemon()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(spool / name)], check=True
    )
    try:
        cluster.start_daemon()
        running = cluster.script(
            f"srun -o full.out bash -c '{count('spool')}; touch almost; while [ ! -e go ]; do "
            "sleep 0.02; done'\n",
            "--output=/dev/null",
        )
        cluster.until(lambda: "line 5\n" in cluster.text("full.out"))
        subprocess.run(
            ["dd", "if=/dev/zero", f"of={spool / name / 'filler'}", "bs=4096"],
            check=False,
            stderr=subprocess.DEVNULL,
        )
        refused = cluster.script("echo never\n", "--output=never.out")
        step = cluster.run("srun", "--overlap", f"--jobid={running}", "echo", "step", timeout_s=30)
        assert step.returncode != 0 or step.stdout == "step\n"
        cluster.until(
            lambda: (
                "launch failed requeued held"
                in cluster.run("squeue", "-h", "-j", refused, "-o", "%r").stdout
            )
        )
        cluster.until((cluster.home / "almost").exists)
        (cluster.home / "go").touch()
        assert cluster.ended(running) == "COMPLETED"
        assert cluster.text("full.out").splitlines() == LINES
        assert cluster.daemon().is_running
        cluster.run("scancel", refused)
        (spool / name / "filler").unlink()
        job = cluster.script("echo well\n", "--output=well.out")
        assert cluster.ended(job) == "COMPLETED"
        assert cluster.text("well.out") == "well\n"
    finally:
        cluster.down()
        subprocess.run(["umount", "-l", str(spool / name)], check=False)
