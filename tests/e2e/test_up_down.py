"""A cluster from `understudy up` to `understudy down`, with real processes, sockets and time.

Covers: accounting/main, tool/cluster/process_title.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from understudy.model.cluster import Cluster
from understudy.tool.cluster.processes import daemons_of, identify, recorded

CONF = """
ClusterName={name}
SlurmctldHost=elsewhere.example
SlurmctldPort={port}
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n[1-{nodes}] CPUs=4 RealMemory=16000 State=UNKNOWN
PartitionName=debug Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE State=UP
"""
BIN = Path(sys.executable).parent


class Site:
    """A user's surroundings: a registry, a home and configurations of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run_dirs: set[Path] = set()
        self.environment = {
            **os.environ,
            "UNDERSTUDY_REGISTRY": str(folder / "registry"),
            "XDG_STATE_HOME": str(folder / "home"),
            "COLUMNS": "200",
        }
        self.environment.pop("SLURM_CONF", None)

    def conf(self, name: str = "tux", *, nodes: int = 8, port: int = 6817) -> str:
        path = self.folder / f"{name}.conf"
        path.write_text(CONF.format(name=name, nodes=nodes, port=port))
        return str(path)

    def __call__(
        self, command: str, *arguments: str, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / command), *arguments],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def up(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`understudy up` on any free port; the run directory is remembered, to be ended."""
        result = self("understudy", "up", "--port", "0", *arguments)
        if match := re.search(r"run directory +(\S+)", result.stdout):
            self.run_dirs.add(Path(match[1]))
        return result

    @property
    def run_dir(self) -> Path:
        (only,) = self.run_dirs
        return only


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    for run_dir in {path.parent for path in tmp_path.glob("**/cluster.json")}:
        site("understudy", "down", "--run-dir", str(run_dir))
        for process in recorded(run_dir):
            process.signal(signal.SIGKILL)


def test_a_cluster_is_idle_when_up_returns_and_gone_when_down_does(site):
    up = site.up("--conf", site.conf())
    assert up.returncode == 0, up.stderr
    assert f"export SLURM_CONF={site.run_dir}/slurm.conf" in up.stdout
    assert site.run_dir == site.folder / "home" / "understudy" / "tux"
    daemons = recorded(site.run_dir)
    assert [process.name for process in daemons] == ["agent", "controller", "noded0"]
    sinfo = site("sinfo", "--noheader")
    assert sinfo.stdout.split() == ["debug*", "up", "infinite", "8", "idle", "n[1-8]"], sinfo.stderr
    down = site("understudy", "down")
    assert down.returncode == 0, down.stderr
    assert "Ended 3 daemons" in down.stdout
    assert not any(process.is_running for process in daemons)
    assert not [path for path in site.run_dir.iterdir() if path.suffix in (".pid", ".sock")]


@pytest.mark.parametrize("kind", ["virtual", "scaled:100"])
def test_with_a_clock_service_it_is_the_same(site, kind):
    up = site.up("--conf", site.conf(), "--time", kind, "--noded", "3")
    assert up.returncode == 0, up.stderr
    daemons = recorded(site.run_dir)
    assert [process.name for process in daemons] == [
        "agent",
        "clock",
        "controller",
        "noded0",
        "noded1",
        "noded2",
    ]
    assert "8 idle" in site("understudy", "status").stdout
    assert site("understudy", "down").returncode == 0
    assert not any(process.is_running for process in daemons)


def test_a_cluster_that_was_ahead_of_real_time_does_not_go_back_into_it(site):
    conf = site.conf()
    assert site.up("--conf", conf, "--time", "scaled:36000").returncode == 0
    site("sbatch", "--wait", "--wrap", "sleep 7200")
    assert site("understudy", "down").returncode == 0
    refused = site.up("--conf", conf)
    assert refused.returncode == 1
    assert "would lie in the future: use --time scaled:36000 again, or --clean" in refused.stderr
    assert site.up("--conf", conf, "--time", "scaled:36000").returncode == 0
    assert site("understudy", "down").returncode == 0
    assert site.up("--conf", conf, "--clean").returncode == 0
    assert site("understudy", "down").returncode == 0


def test_status_shows_daemons_nodes_and_jobs(site):
    site.up("--conf", site.conf())
    status = site("understudy", "status")
    assert status.returncode == 0, status.stderr
    assert "Cluster tux" in status.stdout
    assert (
        len(re.findall(r"^(agent|controller|noded0) +\d+ +running", status.stdout, re.MULTILINE))
        == 3
    )
    assert re.search(r"^Nodes +8 idle$", status.stdout, re.MULTILINE)
    assert re.search(r"^Jobs +none$", status.stdout, re.MULTILINE)
    site("scontrol", "update", "nodename=n[7-8]", "state=drain", "reason=x")
    site("sbatch", "--hold", "--wrap", "true")
    changed = site("understudy", "status").stdout
    assert re.search(r"^Nodes +2 drained, 6 idle$", changed, re.MULTILINE)
    assert re.search(r"^Jobs +1 pending$", changed, re.MULTILINE)


def test_a_second_up_on_a_running_cluster_says_so(site):
    site.up("--conf", site.conf())
    (controller,) = [process for process in recorded(site.run_dir) if process.name == "controller"]
    again = site("understudy", "up", "--conf", site.conf(), "--run-dir", str(site.run_dir))
    assert again.returncode == 1
    assert f"already running: controller, pid {controller.pid}" in again.stderr
    assert controller.is_running


def test_a_busy_port_is_named_with_the_key_that_sets_it(site):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = site("understudy", "up", "--conf", site.conf(port=port))
    assert result.returncode == 1
    assert f"port {port}" in result.stderr
    assert "SlurmctldPort" in result.stderr


def test_after_a_crash_up_says_what_it_cleans_up_and_starts(site):
    site.up("--conf", site.conf())
    for process in recorded(site.run_dir):
        process.signal(signal.SIGKILL)
    status = site("understudy", "status", "--run-dir", str(site.run_dir))
    assert status.returncode == 1
    assert "died" in status.stdout
    again = site.up("--run-dir", str(site.run_dir))
    assert again.returncode == 0, again.stderr
    assert "Removed the pid files of daemons that are no more: agent (pid" in again.stderr
    assert "8 idle" in site("understudy", "status").stdout


def test_a_daemon_that_dies_at_its_start_is_shown_with_its_log(site):
    site.up("--conf", site.conf())
    site("understudy", "down")
    for path in (site.run_dir / "state").iterdir():
        path.write_bytes(b"no state at all" * 1000)
    result = site("understudy", "up", "--run-dir", str(site.run_dir), "--port", "0")
    assert result.returncode == 1
    assert "controller ended at its start" in result.stderr
    assert recorded(site.run_dir) == []


def test_a_damaged_key_is_refused(site):
    site.up("--conf", site.conf())
    site("understudy", "down")
    (site.run_dir / "keys" / "noded0").write_bytes(b"too short")
    result = site("understudy", "up", "--run-dir", str(site.run_dir), "--port", "0")
    assert result.returncode == 1
    assert "has 9 bytes, expected 32" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_run_directory_of_another_version_is_named_and_up_describes_it_anew(site):
    site.up("--conf", site.conf())
    job = site("sbatch", "--parsable", "--hold", "--wrap", "true").stdout.strip()
    site("understudy", "down")
    path = site.run_dir / "cluster.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"key_file": "key"}))
    result = site("understudy", "status", "--run-dir", str(site.run_dir))
    assert result.returncode == 1
    assert "is of another version of Understudy (key_file)" in result.stderr
    site.up("--conf", site.conf())
    assert site("squeue", "-h", "-o", "%i").stdout.strip() == job


@pytest.mark.parametrize("noded_is_killed", [False, True])
def test_down_ends_the_scripts_of_jobs(site, noded_is_killed):
    site.up("--conf", site.conf(), "--executor", "real")
    mark = site.folder / "mark"
    script = f"sleep 600 & echo $! > {mark}.new; mv {mark}.new {mark}; wait"
    assert (
        site(
            "sbatch", f"--output={os.devnull}", f"--chdir={site.folder}", "--wrap", script
        ).returncode
        == 0
    )
    deadline = time.monotonic() + 20
    while not mark.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    sleeper = identify("sleep", int(mark.read_text()))
    if noded_is_killed:
        (noded,) = [process for process in recorded(site.run_dir) if process.name == "noded0"]
        noded.signal(signal.SIGKILL)
    site("understudy", "down")
    assert not sleeper.is_running


def test_down_without_a_cluster_says_that_there_is_none(site):
    assert "no running cluster of this user" in site("understudy", "down").stderr
    for folder, says in (("nothing", "there is no run directory"), (".", "no cluster runs in")):
        result = site("understudy", "down", "--run-dir", str(site.folder / folder))
        assert result.returncode == 1
        assert says in result.stderr
    assert not (site.folder / "nothing").exists()


def test_a_bad_configuration_is_named_with_file_and_line(site):
    path = Path(site.conf())
    path.write_text(path.read_text() + "this is no setting\n")
    lines = path.read_text().count("\n")
    result = site("understudy", "up", "--conf", str(path))
    assert result.returncode == 1
    assert f"{path} line {lines}:" in result.stderr
    assert "Traceback" not in result.stderr


def test_commands_reach_the_cluster_that_slurm_conf_names(site):
    site.up("--conf", site.conf("first", nodes=3))
    first = site.run_dir
    site.up("--conf", site.conf("second", nodes=5))
    assert "n[1-5]" in site("sinfo", "--noheader").stdout
    assert "n[1-3]" in site("sinfo", "--noheader", SLURM_CONF=str(first / "slurm.conf")).stdout
    assert (
        "n[1-3]" in site("sinfo", "--noheader", SLURM_CONF=str(site.folder / "first.conf")).stdout
    )


def test_a_run_directory_with_a_long_path_works(site):
    deep = site.folder / ("d" * 100)
    up = site.up("--conf", site.conf(), "--run-dir", str(deep))
    assert up.returncode == 0, up.stderr
    sockets = Path(Cluster.load(deep).controller_unix.removeprefix("unix:")).parent
    assert sockets.is_dir()
    assert site("understudy", "down").returncode == 0
    assert not sockets.exists()


def test_jobs_survive_down_and_up(site):
    site.up("--conf", site.conf())
    submitted = site("sbatch", "--hold", "--job-name=patient", "--wrap", "true")
    assert submitted.returncode == 0, submitted.stderr
    site("understudy", "down")
    site.up("--run-dir", str(site.run_dir))
    assert "patient" in site("squeue", "--noheader").stdout


def test_daemons_of_an_up_that_is_killed_half_way_end_and_the_next_one_starts(site):
    run_dir = site.folder / "run"
    conf = site.conf()
    process = subprocess.Popen(
        [str(BIN / "understudy"), "up", "--port", "0", "--conf", conf, "--run-dir", str(run_dir)],
        env=site.environment,
    )
    deadline = time.monotonic() + 60
    while not daemons_of(run_dir):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.kill()
    process.wait()
    while (again := site.up("--conf", conf, "--run-dir", str(run_dir))).returncode:
        assert "another understudy command is starting or ending the cluster" in again.stderr
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert len(daemons_of(run_dir)) == len(recorded(run_dir)) == 3
