"""Daemons are started side by side, waited for, blamed for failing and ended. Small scripts stand
in for the daemons.
"""

import os
import socket
import sys
from pathlib import Path

import pytest

from understudy.model.cluster import Cluster, NodeDaemon
from understudy.tool.cluster import launch
from understudy.tool.cluster.processes import recorded
from understudy.tool.cluster.run_dir import LaunchError, running

CONF = (
    "ClusterName=tux\nSlurmctldHost=localhost\nSlurmctldPort={port}\n"
    "NodeName=n[1-10] CPUs=4\nPartitionName=debug Nodes=ALL Default=YES\n"
)

READY = """
import os, signal, sys
name, run_dir = sys.argv[1:3]
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
started = open("/proc/self/stat").read().rpartition(")")[2].split()[19]
with open(f"{run_dir}/{name}.new", "w") as file:
    file.write(f"{os.getpid()} {started}")
os.rename(f"{run_dir}/{name}.new", f"{run_dir}/{name}.pid")
signal.pause()
"""
FAILING = "import sys; print('first line'); print('no such thing', file=sys.stderr); sys.exit(3)"
SILENT = "import signal; signal.pause()"
LISTENING = READY.replace(
    "signal.pause()",
    """
import socket
assert sys.argv[3] == "--listener"
listener = socket.socket(fileno=int(sys.argv[4]))
listener.setblocking(True)
connection, _ = listener.accept()
connection.sendall(b"at home")
signal.pause()
""",
)
STUBBORN = READY.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN")


def commands(**special: str):
    return lambda name, run_dir: [
        sys.executable,
        "-S",
        "-c",
        special.get(name, READY),
        name,
        str(run_dir),
    ]


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_REGISTRY", str(tmp_path / "registry"))


@pytest.fixture
def run_dir(tmp_path) -> Path:
    folder = tmp_path / "run"
    (folder / "logs").mkdir(parents=True)
    return folder


@pytest.fixture
def cluster(run_dir) -> Cluster:
    cluster = Cluster(
        "tux",
        "slurm.conf",
        controller_unix="unix:controller.sock",
        agent="unix:agent.sock",
        nodeds=[NodeDaemon("noded0", "", "n1"), NodeDaemon("noded1", "", "n2")],
    )
    cluster.save(run_dir)
    return cluster


@pytest.fixture
def conf(tmp_path) -> Path:
    path = tmp_path / "site.conf"
    path.write_text(CONF.format(port=6817))
    return path


def test_all_daemons_are_started_and_all_are_ended(cluster, run_dir):
    started = launch.start_daemons(cluster, run_dir, commands())
    launch.wait_listening(started)
    assert {process.name for process in running(run_dir)} == {
        "agent",
        "controller",
        "noded0",
        "noded1",
    }
    stopped = launch.stop(run_dir, started)
    assert sorted(stopped.ended) == ["agent", "controller", "noded0", "noded1"]
    assert stopped.killed == []
    assert recorded(run_dir) == []


def test_daemons_are_ended_by_a_command_that_did_not_start_them(cluster, run_dir):
    started = launch.start_daemons(cluster, run_dir, commands())
    launch.wait_listening(started)
    assert len(launch.stop(run_dir).ended) == 4
    assert [child.wait() for child in started.children.values()] == [0, 0, 0, 0]


def test_the_clock_and_the_agent_end_after_those_who_need_them(cluster, run_dir):
    cluster.clock = "unix:clock.sock"
    started = launch.start_daemons(cluster, run_dir, commands())
    launch.wait_listening(started)
    assert set(launch.stop(run_dir, started).ended[-2:]) == {"clock", "agent"}


def test_a_daemon_that_does_not_end_is_killed_and_named(cluster, run_dir):
    started = launch.start_daemons(cluster, run_dir, commands(noded1=STUBBORN))
    launch.wait_listening(started)
    # so long that all others end on a busy machine, too
    assert launch.stop(run_dir, started, patience_s=3.0).killed == ["noded1"]


def test_a_daemon_that_dies_at_its_start_is_named_with_the_end_of_its_log_and_the_others_are_ended(
    cluster, run_dir
):
    (run_dir / "logs" / "noded0.log").write_text("of an earlier life\n")
    started = launch.start_daemons(cluster, run_dir, commands(noded0=FAILING))
    with pytest.raises(LaunchError, match=r"noded0 ended at its start \(exit code 3\)") as raised:
        launch.wait_listening(started)
    assert "first line" in str(raised.value)
    assert "no such thing" in str(raised.value)
    assert "earlier life" not in str(raised.value)
    assert all(child.poll() is not None for child in started.children.values())
    assert recorded(run_dir) == []


def test_a_daemon_that_never_listens_is_named(cluster, run_dir):
    started = launch.start_daemons(cluster, run_dir, commands(controller=SILENT))
    with pytest.raises(LaunchError, match="controller does not listen after 0 s"):
        launch.wait_listening(started, timeout_s=0.3)


def test_daemons_leave_the_terminal_alone(cluster, run_dir):
    started = launch.start_daemons(cluster, run_dir, commands())
    launch.wait_listening(started)
    for child in started.children.values():
        assert os.getsid(child.pid) == child.pid
        assert os.readlink(f"/proc/{child.pid}/fd/0") == os.devnull
    launch.stop(run_dir, started)


def test_the_controller_is_given_the_socket_that_has_the_port_which_was_found_for_it(run_dir, conf):
    cluster = launch.prepare(run_dir, conf, port=0)
    started = launch.start_daemons(cluster, run_dir, commands(controller=LISTENING))
    try:
        launch.wait_listening(started)
        assert Cluster.load(run_dir).controller == cluster.controller
        with socket.create_connection(
            ("127.0.0.1", int(cluster.controller.rpartition(":")[2]))
        ) as connection:
            assert connection.recv(9) == b"at home"
    finally:
        launch.stop(run_dir, started)
