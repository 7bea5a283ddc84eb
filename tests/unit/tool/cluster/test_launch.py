"""What a cluster's run directory says before its daemons are started. Starting and ending them is
in tests/e2e/test_launch.py.

Covers: tool/cluster/cpu.
"""

import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from understudy.clock import rate_file
from understudy.clock.rates import Rates
from understudy.model import burst_buffer_conf
from understudy.model.cluster import Cluster
from understudy.tool.cluster import launch
from understudy.tool.cluster.run_dir import LaunchError

CONF = (
    "ClusterName=tux\nSlurmctldHost=localhost\nSlurmctldPort={port}\n"
    "NodeName=n[1-10] CPUs=4\nPartitionName=debug Nodes=ALL Default=YES\n"
)

WITH_ACCOUNTING = CONF.replace(
    "SlurmctldPort={port}\n", "AccountingStorageType=accounting_storage/slurmdbd\n{ports}"
)


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_REGISTRY", str(tmp_path / "registry"))


@pytest.fixture
def run_dir(tmp_path) -> Path:
    folder = tmp_path / "run"
    (folder / "logs").mkdir(parents=True)
    return folder


@pytest.fixture
def conf(tmp_path) -> Path:
    path = tmp_path / "site.conf"
    path.write_text(CONF.format(port=6817))
    return path


def test_a_zygote_is_beside_slurm_conf_where_a_socket_can_be(tmp_path, run_dir, conf):
    assert launch.prepare(run_dir, conf, port=0).zygote == ""
    cluster = launch.prepare(run_dir, conf, port=0, zygote=True)
    assert cluster.zygote == f"unix:{run_dir}/zygote.sock"
    assert "zygote" in launch.daemon_names(cluster)
    with pytest.raises(LaunchError, match="a shorter --run-dir"):
        launch.prepare(tmp_path / ("x" * 100), conf, port=0, zygote=True)


def test_each_further_slurmctld_host_is_a_backup_unless_time_is_virtual(run_dir, conf):
    conf.write_text(
        "SlurmctldHost=ctl1\nSlurmctldHost=b(10.0.0.1)\nSlurmctldHost=c\n"
        + "".join(
            line for line in conf.read_text().splitlines(keepends=True) if "Host=" not in line
        )
    )
    cluster = launch.prepare(run_dir, conf, port=0)
    assert cluster.controller_host == "ctl1"
    assert [(each.name, each.host) for each in cluster.backups] == [
        ("backup1", "b"),
        ("backup2", "c"),
    ]
    assert launch.daemon_names(cluster) == ["agent", "controller", "backup1", "backup2", "noded0"]
    assert launch.location_of(cluster, run_dir).controllers == [
        [cluster.controller_unix, "tcp:127.0.0.1:0"],
        [f"unix:{run_dir}/backup1.sock"],
        [f"unix:{run_dir}/backup2.sock"],
    ]
    assert Cluster.load(run_dir) == cluster
    assert launch.prepare(run_dir, conf, port=0, time="virtual").backups == []
    assert launch.prepare(run_dir, conf, port=0, state="memory").backups == []


def test_a_prepared_run_directory_describes_the_cluster(run_dir, conf):
    cluster = launch.prepare(
        run_dir, conf, time="virtual", noded=3, port=0, participants=["replay"]
    )
    assert Cluster.load(run_dir) == cluster
    assert cluster.name == "tux"
    assert [noded.nodes for noded in cluster.nodeds] == ["n[1-3]", "n[4-6]", "n[7-10]"]
    assert cluster.participants == ["controller", "noded0", "noded1", "noded2", "replay"]
    for name in ("controller", "clock", "agent", "noded0", "noded1", "noded2", "replay"):
        key = run_dir / "keys" / name
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        assert len(key.read_bytes()) == 32
    assert len({key.read_bytes() for key in (run_dir / "keys").glob("[!.]*")}) == 8  # and `public`
    assert (run_dir / "slurm.conf").read_text() == conf.read_text()
    assert cluster.controller == "tcp:127.0.0.1:0"
    assert cluster.address_of("controller") == cluster.controller
    assert cluster.address_of("noded1") == cluster.nodeds[1].address
    assert cluster.address_of("accounting") == cluster.address_of("nobody") == ""


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


def test_a_key_outlives_the_cluster(run_dir, conf):
    launch.prepare(run_dir, conf, port=0)
    keys = {path: path.read_bytes() for path in (run_dir / "keys").iterdir()}
    launch.prepare(run_dir, conf, port=0)
    assert {path: path.read_bytes() for path in (run_dir / "keys").iterdir()} == keys


def test_real_time_needs_no_clock_service(run_dir, conf):
    cluster = launch.prepare(run_dir, conf, port=0)
    assert cluster.clock == ""
    assert launch.daemon_names(cluster) == ["agent", "controller", "noded0"]


def test_time_does_not_go_back_from_one_life_of_a_cluster_to_the_next(run_dir, conf):
    ahead = launch.prepare(run_dir, conf, port=0, time="virtual", epoch=4e9)
    assert launch.prepare(run_dir, conf, port=0, time="virtual").epoch == ahead.epoch
    assert launch.prepare(run_dir, conf, port=0, time="virtual", epoch=5.0).epoch == 5.0


def test_scaled_time_does_not_go_back_when_all_daemons_have_been_killed(run_dir, conf):
    killed = launch.prepare(run_dir, conf, port=0, time="scaled", rate=1000.0)
    rate_file.write(run_dir / "clock.json", killed.epoch, Rates(1000.0, 0.0), None)
    last_sign = run_dir / "state" / "state.sqlite-wal"
    last_sign.touch()
    for path in (run_dir / "logs").glob("*"):
        path.unlink()
    os.utime(last_sign, (time.time() + 30, time.time() + 30))
    again = launch.prepare(run_dir, conf, port=0, time="scaled", rate=1000.0)
    assert 30_000 <= again.epoch - killed.epoch < 40_000
    assert launch.prepare(run_dir, conf, port=0, time="scaled", rate=1.0).epoch == again.epoch


@pytest.mark.parametrize("time", ["virtual", "scaled"])
def test_real_jobs_in_another_time_than_real_are_refused_with_the_reason(run_dir, conf, time):
    with pytest.raises(LaunchError, match=f"real jobs take real time, not {time} time"):
        launch.prepare(run_dir, conf, port=0, time=time, executor="real")


def test_real_jobs_of_a_site_with_a_script_need_what_runs_it(run_dir, conf, monkeypatch):
    conf.write_text(conf.read_text() + "BurstBufferType=burst_buffer/lua\n")
    (conf.parent / "burst_buffer.lua").write_text("")
    launch.prepare(run_dir, conf, port=0, executor="real")
    monkeypatch.setattr(burst_buffer_conf, "find_spec", lambda _name: None)
    with pytest.raises(LaunchError, match=r"burst_buffer.lua needs lupa, .* 'understudy\[lua\]'"):
        launch.prepare(run_dir, conf, port=0, executor="real")
    launch.prepare(run_dir, conf, port=0)


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
