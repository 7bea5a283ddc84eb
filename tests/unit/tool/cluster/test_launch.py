"""Daemons are started side by side, waited for, blamed for failing and ended. Small scripts stand
in for the daemons.
"""

import os
import socket
import stat
import subprocess
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

WITH_ACCOUNTING = CONF.replace(
    "SlurmctldPort={port}\n", "AccountingStorageType=accounting_storage/slurmdbd\n{ports}"
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
        "tux", "slurm.conf", nodeds=[NodeDaemon("noded0", "", "n1"), NodeDaemon("noded1", "", "n2")]
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
    assert launch.stop(run_dir, started, patience_s=0.1).killed == ["noded1"]


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


def test_a_prepared_run_directory_describes_the_cluster(run_dir, conf):
    cluster = launch.prepare(
        run_dir, conf, time="virtual", noded=3, port=0, participants=["replay"]
    )
    assert Cluster.load(run_dir) == cluster
    assert cluster.name == "tux"
    assert [noded.nodes for noded in cluster.nodeds] == ["n[1-3]", "n[4-6]", "n[7-10]"]
    assert cluster.participants == ["controller", "noded0", "noded1", "noded2", "replay"]
    assert stat.S_IMODE((run_dir / "key").stat().st_mode) == 0o600
    assert len((run_dir / "key").read_bytes()) == 32
    assert (run_dir / "slurm.conf").read_text() == conf.read_text()
    assert cluster.controller == "tcp:127.0.0.1:0"


def test_nobody_listens_on_tcp_who_was_not_asked_to(run_dir, conf):
    conf.write_text(WITH_ACCOUNTING.format(ports=""))
    cluster = launch.prepare(run_dir, conf)
    assert (cluster.controller, cluster.accounting) == ("", "")
    assert cluster.keeps_accounting
    assert launch.daemon_names(cluster) == ["agent", "accounting", "controller", "noded0"]
    assert launch.location_of(cluster, run_dir).controller_addresses == [cluster.controller_unix]


def test_ports_are_those_that_slurm_conf_sets_and_of_daemons_on_their_own_slurms(
    run_dir, conf, monkeypatch
):
    monkeypatch.setattr(launch, "check_port", lambda _port, _origin: None)  # whoever has them
    port, other = 7001, 7002
    conf.write_text(
        WITH_ACCOUNTING.format(ports=f"SlurmctldPort={port}\nAccountingStoragePort={other}\n")
    )
    for tcp, expected in (
        ("asked", (port, other)),
        ("always", (port, other)),
        ("never", (None, None)),
    ):
        assert launch.tcp_ports(launch.read_site(conf), conf, tcp, None) == expected
    conf.write_text(WITH_ACCOUNTING.format(ports=f"AccountingStoragePort={other}\n"))
    site = launch.read_site(conf)
    assert launch.tcp_ports(site, conf, "asked", None) == (None, other)
    assert launch.tcp_ports(site, conf, "always", None) == (6817, other)
    assert launch.tcp_ports(site, conf, "asked", port) == (port, None)
    cluster = launch.prepare(run_dir, conf, port=port)
    assert (cluster.controller, cluster.accounting) == (f"tcp:127.0.0.1:{port}", "")


def test_a_busy_port_of_accounting_is_named_with_its_own_key(run_dir, conf):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        conf.write_text(WITH_ACCOUNTING.format(ports=f"AccountingStoragePort={port}\n"))
        with pytest.raises(
            LaunchError, match=rf"port {port} \(AccountingStoragePort in " r".*site\.conf\)"
        ):
            launch.prepare(run_dir, conf)


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


def test_a_key_outlives_the_cluster(run_dir, conf):
    launch.prepare(run_dir, conf, port=0)
    key = (run_dir / "key").read_bytes()
    launch.prepare(run_dir, conf, port=0)
    assert (run_dir / "key").read_bytes() == key


def test_real_time_needs_no_clock_service(run_dir, conf):
    cluster = launch.prepare(run_dir, conf, port=0)
    assert cluster.clock == ""
    assert launch.daemon_names(cluster) == ["agent", "controller", "noded0"]


def test_time_does_not_go_back_from_one_life_of_a_cluster_to_the_next(run_dir, conf):
    ahead = launch.prepare(run_dir, conf, port=0, time="virtual", epoch=4e9)
    assert launch.prepare(run_dir, conf, port=0, time="virtual").epoch == ahead.epoch
    assert launch.prepare(run_dir, conf, port=0, time="virtual", epoch=5.0).epoch == 5.0


@pytest.mark.parametrize("time", ["virtual", "scaled"])
def test_real_jobs_in_another_time_than_real_are_refused_with_the_reason(run_dir, conf, time):
    with pytest.raises(LaunchError, match=f"real jobs take real time, not {time} time"):
        launch.prepare(run_dir, conf, port=0, time=time, executor="real")


def test_more_node_daemons_than_nodes_are_refused(run_dir, conf):
    with pytest.raises(LaunchError, match="11 node daemons cannot share 10 nodes"):
        launch.prepare(run_dir, conf, port=0, noded=11)


def test_modules_are_compiled_where_python_does_not_do_so_by_itself(tmp_path):
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPYCACHEPREFIX": str(tmp_path),
    }
    program = (
        "import sys; from understudy.tool.cluster.launch import compile_house; "
        "compile_house(); print(sys.dont_write_bytecode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    compiled = {path.name.partition(".")[0] for path in tmp_path.rglob("understudy/**/*.pyc")}
    assert {"sbatch", "client", "core", "real", "messenger"} <= compiled
