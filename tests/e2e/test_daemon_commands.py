"""slurmctld, slurmd and slurmdbd as an existing start script calls them: in any order, a node daemon for some nodes each, steps that span them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

CONF = """ClusterName=d
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmctldPidFile={folder}/ctld.pid
AccountingStorageType=accounting_storage/slurmdbd
AccountingStoragePort={accounting}
SelectType=select/cons_tres
NodeName=n[1-4] CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Site:
    def __init__(self, folder):
        self.folder = folder
        port, accounting = free_ports(2)
        conf = folder / "slurm.conf"
        conf.write_text(CONF.format(port=port, accounting=accounting, folder=folder))
        names = {"SLURM_CONF": str(conf), "XDG_STATE_HOME": f"{folder}/state", "UNDERSTUDY_REGISTRY": f"{folder}/registry"}
        self.environment = {**{name: value for name, value in os.environ.items() if not name.startswith("SLURM")}, **names}
        self.daemons = {}

    def command(self, name, *arguments):
        return [sys.executable, "-P", "-m", f"understudy.commands.{name}", *arguments]

    def start(self, name, *arguments):
        with (self.folder / f"{name}.out").open("ab") as out:
            command = self.command(name, "-D", *arguments)
            daemon = subprocess.Popen(command, env=self.environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        self.daemons[name, *arguments] = daemon
        return daemon

    def run(self, name, *arguments, check=True):
        done = subprocess.run(
            self.command(name, *arguments), env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False, timeout=60
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def until(self, condition, what):
        for _ in range(300):
            if condition():
                return
            time.sleep(0.1)
        raise AssertionError(what)

    def all_idle(self):
        return self.run("sinfo", "-h", "-o", "%D %T", check=False).stdout == "4 idle\n"

    def close(self):
        for path in self.folder.glob("state/understudy/*/*.pid"):
            with contextlib.suppress(ProcessLookupError, ValueError, OSError):
                os.kill(int(path.read_text().split()[0]), signal.SIGTERM)
        for daemon in self.daemons.values():
            daemon.terminate()
            daemon.wait(20)


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    site.close()


def test_daemons_that_are_started_one_by_one_are_a_cluster(site):
    site.start("slurmd", "-N", "n1")
    site.start("slurmdbd")
    site.start("slurmctld", "-c", "-f", site.environment["SLURM_CONF"])
    site.start("slurmd", "-N", "n2")
    site.run("slurmd", "-N", "n[3-4]")  # in the background: ready when it returns
    site.until(site.all_idle, "nodes are not idle")
    step = site.run("srun", "-N4", "sh", "-c", "echo $SLURMD_NODENAME")
    assert sorted(step.stdout.split()) == ["n1", "n2", "n3", "n4"]
    spools = {path.name for path in site.folder.glob("state/understudy/*/spool/*")}
    assert spools == {"slurmd.n1", "slurmd.n2", "slurmd.n[3-4]"}
    refused = site.run("slurmctld", "-D", check=False)
    assert refused.returncode == 1
    assert "runs already" in refused.stderr
    site.until(lambda: site.run("sacct", "-n", "-X", "-o", "State").stdout.split() == ["COMPLETED"], "accounting knows no job")

    job = site.run("sbatch", "--parsable", "-w", "n1", "-o", "out", "--wrap", "sleep 3; echo end").stdout.strip()
    site.until(lambda: site.run("squeue", "-h", "-j", job, "-o", "%T").stdout == "RUNNING\n", "it does not run")
    daemon = site.daemons["slurmd", "-N", "n1"]
    daemon.kill()
    daemon.wait()
    site.start("slurmd", "-N", "n1")
    site.until(lambda: site.run("sacct", "-n", "-X", "-j", job, "-o", "State").stdout.split() == ["COMPLETED"], "the job is lost")
    assert (site.folder / "out").read_text() == "end\n"

    os.kill(int((site.folder / "ctld.pid").read_text()), signal.SIGTERM)
    site.daemons["slurmctld", "-c", "-f", site.environment["SLURM_CONF"]].wait(20)
    assert not (site.folder / "ctld.pid").exists()
    site.start("slurmctld")
    site.until(lambda: f"{job} COMPLETED\n" in site.run("squeue", "-h", "-t", "all", "-o", "%i %T", check=False).stdout, "state is lost")


def test_a_daemon_that_cannot_be_says_why(site):
    refused = site.run("slurmd", "-N", "n9", check=False)
    assert (refused.returncode, refused.stderr) == (1, 'slurmd: fatal: _find_node_record: lookup failure for node "n9"\n')
    assert site.run("slurmctld", "-V").stdout == "slurm 22.05.8\n"
    assert Path(site.environment["SLURM_CONF"]).exists()
