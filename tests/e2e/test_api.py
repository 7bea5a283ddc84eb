"""Understudy in Python: clusters in each kind of time, side by side, and what becomes of them.

Covers: api/cluster, api/clock, api/records, api/errors, tool/cluster/start.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import understudy
from understudy import Cluster, UnderstudyError
from understudy.tool.cluster import launch
from understudy.tool.cluster.processes import recorded

# in an environment in which nothing says where a cluster is
pytestmark = pytest.mark.usefixtures("_bare")


@pytest.fixture
def _bare(monkeypatch, tmp_path):
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setenv("UNDERSTUDY_REGISTRY", str(tmp_path / "nobody"))
    monkeypatch.chdir(tmp_path)


def until(condition, timeout_s=60):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_a_cluster_runs_scripts_tells_of_jobs_and_nodes_and_is_gone_after_the_block(tmp_path):
    with Cluster(nodes=2, executor="real") as cluster:
        assert [(node.name, node.state) for node in cluster.nodes()] == [
            ("n1", "idle"),
            ("n2", "idle"),
        ]
        job = cluster.wait(cluster.submit("hostname > out; exit 3", "-N", "2", "--job-name=three"))
        assert (job.name, job.state, job.exit_code, job.reason) == (
            *("three", "FAILED", 3, "NonZeroExitCode"),
        )
        assert (job.nodes, job.node_count, job.work_dir) == ("n[1-2]", 2, str(tmp_path))
        assert (tmp_path / "out").read_text().strip()
        script = cluster.submit("#!/bin/sh\n#SBATCH -J scripted\nexit 0\n")
        assert cluster.wait(script).name == "scripted"
        (tmp_path / "a file.sh").write_text("#!/bin/sh\nexit 0\n")
        assert cluster.wait(cluster.submit(tmp_path / "a file.sh")).name == "a file.sh"
        assert [each.id for each in cluster.jobs()] == [1, 2, 3]
        assert cluster.job(1) == job
        array = cluster.submit("exit $SLURM_ARRAY_TASK_ID", "--array=0-2")
        assert cluster.wait(array).array_task == 1  # the first that failed
        assert cluster.run("squeue", "-h").stdout == ""
        assert cluster.clock.state == "running"
        assert abs(cluster.clock.now - time.time()) < 5
        assert "controller" in cluster.logs()
        run_dir, daemons = cluster.run_dir, recorded(cluster.run_dir)
        assert len(daemons) == 3
    assert not run_dir.exists()
    assert not any(daemon.is_running for daemon in daemons)
    with pytest.raises(UnderstudyError, match="does not run"):
        cluster.jobs()
    cluster.stop()  # once more does nothing


def test_virtual_time_stands_until_it_is_told_to_go_on():
    with Cluster(nodes=1, time="virtual") as cluster:
        clock = cluster.clock
        began = clock.now
        day = cluster.wait(cluster.submit("sleep 86400"))
        assert day.end_time - day.start_time == 86400
        until(lambda: clock.state == "idle")
        assert clock.run_until("2d") == pytest.approx(began + 2 * 86400, abs=2)
        first = cluster.submit("sleep 3600")
        then = cluster.submit("sleep 60", "-d", f"afterok:{first}")
        with pytest.raises(UnderstudyError, match=rf"job {first} is PENDING.*time is paused"):
            cluster.wait(first)
        at = clock.now
        assert clock.advance(1800) == at + 1800
        assert (cluster.job(first).state, cluster.job(then).reason) == ("RUNNING", "Dependency")
        assert clock.run_until(at + 3000) == at + 3000
        assert clock.run_until(datetime.fromtimestamp(at + 3100)) == at + 3100  # noqa: DTZ006
        assert clock.run_until(timedelta(days=3)) > at + 3100
        assert cluster.job(then).state == "COMPLETED"
        with pytest.raises(UnderstudyError, match="that is past"):
            clock.run_until(at)
        with pytest.raises(UnderstudyError, match="'soon' is neither"):
            clock.run_until("soon")
        at = clock.now
        with pytest.raises(UnderstudyError, match="time does not run backwards"):
            clock.advance(-60)
        assert clock.now == at
        clock.resume()
        held = cluster.submit("true", "--hold")
        with pytest.raises(UnderstudyError, match=r"JobHeldUser.*time is idle"):
            cluster.wait(held)


def test_scaled_time_goes_so_many_times_as_fast():
    with Cluster(nodes=1, time="scaled:600") as cluster:
        began = time.monotonic()
        job = cluster.wait(cluster.submit("sleep 1200"))
        assert job.state == "COMPLETED"
        assert 1200 <= job.end_time - job.start_time < 1800
        assert time.monotonic() - began < 60
        cluster.clock.pause()
        now = cluster.clock.now
        assert (cluster.clock.now, cluster.clock.state) == (now, "paused")


def test_clusters_side_by_side_in_one_process_and_one_within_the_other_know_nothing_of_each_other():
    with Cluster(nodes=1) as one:
        first = one.submit("sleep 600", "--job-name=first")
        with Cluster(nodes=3, time="virtual") as other:
            second = other.submit("sleep 5", "--job-name=second")
            assert other.wait(second).name == "second"
            assert [job.name for job in one.jobs()] == ["first"]
            assert one.run("sinfo", "-h", "-o", "%D").stdout.strip() == "1"
            assert other.run("sinfo", "-h", "-o", "%D").stdout.strip() == "3"
        # its second goes by the wall, whatever the other's did meanwhile
        until(lambda: one.job(first).state == "RUNNING")


def test_two_processes_have_a_cluster_each(tmp_path):
    program = (
        "import understudy, sys\n"
        "with understudy.Cluster(nodes=2) as cluster:\n"
        "    cluster.submit('sleep 600', '--job-name=' + sys.argv[1])\n"
        "    print(*[job.name for job in cluster.jobs()])\n"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", program, name], stdout=subprocess.PIPE, text=True)
        for name in ("a", "b")
    ]
    assert [process.communicate(timeout=120)[0].split() for process in both] == [["a"], ["b"]]


def test_a_block_that_an_exception_leaves_ends_all_daemons():
    def fail():
        raise ZeroDivisionError

    cluster = Cluster(nodes=1)
    with pytest.raises(ZeroDivisionError), cluster:  # noqa: PT012  the block is what is tested
        run_dir, daemons = cluster.run_dir, recorded(cluster.run_dir)
        assert daemons[0].is_running
        fail()
    assert not any(daemon.is_running for daemon in daemons)
    assert not run_dir.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_cluster_of_a_process_that_is_killed_is_gone_with_it(number):
    program = (
        "import time, understudy\n"
        "cluster = understudy.Cluster(nodes=1).start()\n"
        "print(cluster.run_dir, flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    run_dir = Path(process.stdout.readline().strip())
    daemons = recorded(run_dir)
    assert len(daemons) == 3
    process.send_signal(number)
    process.communicate(timeout=60)
    until(lambda: not any(daemon.is_running for daemon in daemons) and not run_dir.exists())


def test_a_cluster_that_nobody_stops_ends_with_the_process():
    program = (
        "import understudy\n"
        "cluster = understudy.Cluster(nodes=1).start()\n"
        "print(cluster.run_dir, *[p.pid for p in understudy.tool.cluster.run_dir.running("
        "cluster.run_dir)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    run_dir, *pids = done.stdout.split()
    assert len(pids) == 3
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert not Path(run_dir).exists()


def test_who_is_in_a_hurry_leaves_no_daemons(monkeypatch):
    cluster = Cluster(nodes=1).start()
    daemons, stop, calls = recorded(cluster.run_dir), launch.stop, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return stop(*arguments)

    monkeypatch.setattr(launch, "stop", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cluster.stop()
    assert not any(daemon.is_running for daemon in daemons)


def test_a_cluster_can_be_had_in_a_thread_and_while_an_event_loop_runs():
    found = []

    def work():
        with Cluster(nodes=1) as cluster:
            found.append(cluster.wait(cluster.submit("sleep 0")).state)

    async def both():
        await asyncio.to_thread(work)
        with Cluster(nodes=1, time="virtual") as cluster:
            found.append(cluster.wait(cluster.submit("sleep 60")).state)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(120)
    asyncio.run(both())
    assert found == ["COMPLETED"] * 3


def test_a_forked_child_that_leaves_the_block_ends_nothing():
    with Cluster(nodes=1) as cluster:
        child = os.fork()
        if child == 0:
            cluster.stop()
            os._exit(0)
        os.waitpid(child, 0)
        assert cluster.nodes()[0].state == "idle"


def test_a_named_run_directory_stays_and_the_next_cluster_there_goes_on(tmp_path):
    run_dir = tmp_path / "run of mine"
    with Cluster(nodes=1, run_dir=run_dir) as cluster:
        cluster.submit("sleep 600", "--hold", "--job-name=kept")
        assert cluster.run("which", "squeue").stdout.strip() == f"{run_dir}/bin/squeue"
        other = Cluster(nodes=1, run_dir=run_dir)
        with pytest.raises(UnderstudyError, match=r"is already running: controller, pid \d+"):
            other.start()
        assert [job.name for job in cluster.jobs()] == ["kept"]
        with pytest.raises(UnderstudyError, match="has been started already"):
            cluster.start()
    with Cluster(nodes=1, run_dir=run_dir) as cluster:
        assert [job.name for job in cluster.jobs()] == ["kept"]
    assert list(run_dir.glob("*.pid")) == []


def test_what_a_newcomer_gets_wrong_is_said_in_one_line(tmp_path):
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=x\nSlurmctldHost=localhost\nNodeName=n1 CPUs=x\n")
    closed = tmp_path / "file"
    closed.write_text("")
    for options, said in (
        ({"conf": tmp_path / "none.conf"}, r"none\.conf"),
        ({"conf": conf}, r"slurm\.conf.*line 3|slurm\.conf:3"),
        ({"conf": conf, "nodes": 2}, "nodes=2 goes without conf="),
        ({"nodes": 0}, "nodes=0: at least one"),
        ({"time": "fast"}, "expected real, virtual, or scaled:N"),
        ({"time": "virtual", "executor": "real"}, "real jobs take real time"),
        ({"executor": "none"}, "executor none: emulated or real"),
        ({"run_dir": closed / "run"}, "file"),
        ({"settings": ["NoSuchKey=3"]}, "NoSuchKey"),
        ({"conf": tmp_path}, "Is a directory"),
        ({"run_dir": tmp_path / "a:b"}, "with a colon in it"),
        ({"run_dir": "/proc/none"}, "^/proc/none: No such file"),
        ({"port": 99999}, "port=99999: 0 to 65535"),
        ({"noded": 0}, "noded=0: at least one"),
        ({"settings": "ReturnToService=2"}, r"settings='ReturnToService=2': a list is expected"),
        ({"noded": 9, "nodes": 2}, "9 node daemons cannot share 2 nodes"),
    ):
        with pytest.raises(UnderstudyError, match=said) as caught:
            Cluster(**options).start()
        assert "\n" not in str(caught.value), options
    with pytest.raises(UnderstudyError, match="has not been started"):
        Cluster().run_dir  # noqa: B018


def test_what_a_cluster_refuses_is_said_in_the_commands_words():
    with Cluster(nodes=1, settings=["PartitionName=debug MaxTime=10"]) as cluster:
        with pytest.raises(UnderstudyError, match="invalid partition specified: nowhere"):
            cluster.submit("true", "-p", "nowhere")
        with pytest.raises(UnderstudyError, match="there is no job 99"):
            cluster.wait(99)
        with pytest.raises(UnderstudyError, match="no-such-command -x: no such command"):
            cluster.run("no-such-command", "-x")
        with pytest.raises(TimeoutError, match=r"sleep 60: killed after 0\.1 s"):
            cluster.run("sleep", "60", timeout_s=0.1)
        job = cluster.submit("sleep 600")
        with pytest.raises(TimeoutError, match=f"job {job} is "):
            cluster.wait(job, timeout_s=0.05)
        with pytest.raises(UnderstudyError, match="runs in real time"):
            cluster.clock.run_until("1d")
        assert "10:00" in cluster.run("sinfo", "-h").stdout


def test_programs_find_the_cluster_whatever_else_the_environment_says(monkeypatch):
    monkeypatch.setenv("SLURM_CONF", "/etc/nowhere/slurm.conf")
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    monkeypatch.setenv("SQUEUE_FORMAT", "%j")
    with Cluster(nodes=1) as cluster:
        cluster.submit("sleep 600", "--job-name=mine")
        said = subprocess.check_output(["squeue", "-h"], env=cluster.environment, text=True)
        assert said.strip() == "mine"
        assert "SLURM_JOB_ID" not in cluster.environment
    assert os.environ["SLURM_JOB_ID"] == "17"


def test_what_is_public_is_there_and_nothing_else_is():
    assert {"Cluster", "replay", "UnderstudyError"} <= set(dir(understudy))
    with pytest.raises(AttributeError, match="no attribute 'compere'"):
        understudy.compere  # noqa: B018
