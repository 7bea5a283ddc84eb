"""What is measured side by side: the source tree here, that of another commit, and real Slurm.

A side starts clusters and says where its commands are. Cases use only these, so that they run on
old commits too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"
DRIVER = Path(__file__).with_name("driver.py")
LIMIT_S = 3600
SLOW_S = 20  # a command that took so long in all is not timed again
SMALL_CONF = """
ClusterName=bench
SlurmctldHost={host}
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,default_queue_depth=10000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MaxJobCount={most_jobs}
MessageTimeout=100
NodeName=DEFAULT CPUs={cpus} RealMemory=2000
{nodes}
PartitionName=debug Nodes=n[1-{count}] Default=YES MaxTime=INFINITE State=UP
"""
SLURM_CONF = """
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
ReturnToService=2
"""


class BenchError(Exception):
    """A case cannot be measured on a side; the text says why."""


def done(words: list[str], environment: dict[str, str], cwd: Path | None = None) -> str:
    """What a command printed.

    Raises:
        BenchError: it failed, with the end of what it said.
    """
    end = subprocess.run(
        words,
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if end.returncode:
        said = (end.stderr + end.stdout).strip()[-600:]
        raise BenchError(f"{' '.join(words)[:200]}: exit code {end.returncode}: {said}")
    return end.stdout


class Cluster:
    """One that runs: its commands, and the environment in which they find it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment

    def run(self, *words: str) -> str:
        return done(list(words), self.environment, self.folder)

    def time_of(self, *words: str, times: int = 1) -> list[float]:
        """Seconds that the command took, each time; a slow one is asked fewer times."""
        taken: list[float] = []
        while len(taken) < times and sum(taken) < SLOW_S:
            with (self.folder / "printed").open("wb") as out:
                begin = time.perf_counter()
                subprocess.run(words, env=self.environment, cwd=self.folder, stdout=out, check=True)
                taken.append(time.perf_counter() - begin)
        return taken

    def wait_until_done(self) -> None:
        """Until no job is pending, running or ending."""
        states = "pending,running,completing,configuring"
        while self.run("squeue", "-h", "-t", states, "-o", "%i").strip():
            time.sleep(0.05)


class Tree:
    """A source tree of this project with its own virtual environment."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.root = name, root
        self.bin = root / ".venv" / "bin"

    def environment(self, folder: Path) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "UNDERSTUDY", "PYTHON"))
        }
        return kept | {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "UNDERSTUDY_REGISTRY": str(folder / "registry"),
        }

    def understudy(self, folder: Path, *words: str) -> str:
        return done([str(self.bin / "understudy"), *words], self.environment(folder), folder)

    def drive(self, cluster: Cluster, *words: str) -> str:
        """What `driver.py` printed, run with this tree's own client code."""
        return cluster.run(str(self.bin / "python"), "-P", str(DRIVER), *words)

    @contextlib.contextmanager
    def up(self, folder: Path, conf: Path, *options: str) -> Iterator[Cluster]:
        """A cluster of a configuration, all nodes idle."""
        run_dir = str(folder / "run")
        begin = ("up", "--conf", str(conf), "--run-dir", run_dir, "--port", "0")
        self.understudy(folder, *begin, *options)
        environment = self.environment(folder) | {"SLURM_CONF": f"{run_dir}/slurm.conf"}
        try:
            yield Cluster(folder, environment)
        finally:
            self.understudy(folder, "down", "--run-dir", run_dir)

    @contextlib.contextmanager
    def cluster(
        self,
        folder: Path,
        nodes: int,
        *,
        cpus: int = 4,
        executor: str = "emulated",
        more: str = "",
        options: tuple[str, ...] = (),
    ) -> Iterator[Cluster]:
        """One of so many nodes, configured as that of real Slurm beside it."""
        conf = folder / "slurm.conf"
        named = f"NodeName=n[1-{nodes}]"
        conf.write_text(
            SMALL_CONF.format(
                host="localhost",
                port=6817,
                cpus=cpus,
                nodes=named,
                count=nodes,
                most_jobs=200_000,
            )
            + more
        )
        with self.up(folder, conf, "--executor", executor, *options) as cluster:
            yield cluster


class Slurm:
    """A private cluster of real Slurm on loopback: its daemons, MUNGE, and one slurmd a node. With
    more nodes than slurmds could be started they are down: enough to be listed.
    """

    name = "Slurm"
    MOST_SLURMDS = 200

    @staticmethod
    def is_here() -> bool:
        """Whether it is installed, and this is root, as slurmd must be."""
        names = ("slurmctld", "slurmd", "munged")
        return os.geteuid() == 0 and all(
            shutil.which(name, path="/usr/bin:/usr/sbin") for name in names
        )

    @contextlib.contextmanager
    def cluster(
        self,
        folder: Path,
        nodes: int,
        *,
        cpus: int = 4,
        executor: str = "emulated",
        more: str = "",
        options: tuple[str, ...] = (),
    ) -> Iterator[Cluster]:
        del executor, options  # ours
        slurmds = nodes if nodes <= self.MOST_SLURMDS else 0
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("SLURM")
        } | {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        self._write(folder, nodes, cpus, slurmds, more)
        cluster = Cluster(folder, environment)
        daemons: list[subprocess.Popen[bytes]] = []

        def start(*words: str) -> None:
            daemons.append(
                subprocess.Popen(
                    words,
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd=folder,
                )
            )

        try:
            self._start(start, folder, slurmds)
            self._wait(cluster, daemons, slurmds)
            yield cluster
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
            for daemon in daemons:
                try:
                    daemon.wait(20)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()

    @staticmethod
    def _write(folder: Path, nodes: int, cpus: int, slurmds: int, more: str) -> None:
        port = free_ports(slurmds + 2)
        named = f"NodeName=n[1-{nodes}] NodeAddr=127.0.0.1"
        if slurmds > 1:
            named += f" Port=[{port + 2}-{port + 1 + nodes}]"
        elif slurmds:
            named = f"NodeName=n1 NodeAddr=127.0.0.1 Port={port + 2}"
        else:
            named += f" Port={port + 1} State=DOWN"
        folder.chmod(0o755)
        host = f"{socket.gethostname().partition('.')[0]}(127.0.0.1)"
        (folder / "slurm.conf").write_text(
            SMALL_CONF.format(
                host=host, port=port, cpus=cpus, nodes=named, count=nodes, most_jobs=200_000
            )
            + SLURM_CONF.format(node_port=port + 1, folder=folder)
            + more
        )

    @staticmethod
    def _start(start, folder: Path, slurmds: int) -> None:
        munge = folder / "munge"
        munge.mkdir(mode=0o700)
        (munge / "key").write_bytes(os.urandom(64))
        (munge / "key").chmod(0o600)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        files = (f"--key-file={munge}/key", f"--socket={folder}/munge.sock")
        files += (f"--pid-file={munge}/pid", f"--seed-file={munge}/seed", f"--log-file={munge}/log")
        start("munged", "--foreground", "--force", *files)
        end = time.monotonic() + 30
        while not (folder / "munge.sock").exists():
            if time.monotonic() > end:
                raise BenchError("munged did not start")
            time.sleep(0.05)
        start("slurmctld", "-D", "-c")
        for number in range(1, slurmds + 1):
            (folder / "spool" / f"n{number}").mkdir()
            start("slurmd", "-D", "-c", "-N", f"n{number}")

    @staticmethod
    def _wait(cluster: Cluster, daemons: list[subprocess.Popen[bytes]], slurmds: int) -> None:
        end = time.monotonic() + 120
        while time.monotonic() < end and all(daemon.poll() is None for daemon in daemons):
            with contextlib.suppress(BenchError):
                if not slurmds:
                    cluster.run("sinfo", "-h")
                    return
                if cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == str(slurmds):
                    return
            time.sleep(0.2)
        raise BenchError("real Slurm did not start: " + tail(cluster.folder / "ctld.log"))


def tail(path: Path) -> str:
    return path.read_text(errors="replace")[-400:] if path.exists() else f"no {path.name}"


def free_ports(count: int) -> int:
    """The first of so many ports that are free, side by side."""
    for port in range(24000, 32000, count + 1):
        with contextlib.ExitStack() as stack:
            try:
                for each in range(port, port + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", each))
            except OSError:
                continue
            return port
    raise BenchError("no free ports")


def here() -> Tree:
    return Tree("here", ROOT)


def tree_of(commit: str) -> Tree:
    """The tree of another commit, made in build/bench/sides if it is not there yet.

    Raises:
        BenchError: there is no such commit, or its environment cannot be made.
    """
    environment = {key: value for key, value in os.environ.items() if key != "MAKEFLAGS"}
    try:
        name = done(
            ["git", "rev-parse", "--short=7", "--verify", f"{commit}^{{commit}}"], environment, ROOT
        ).strip()
    except BenchError:
        raise BenchError(f"there is no commit {commit!r}") from None
    root = BUILD / "sides" / name
    if not (root / ".venv" / ".prepared").exists():
        print(f"making the tree of {name} in {root.relative_to(ROOT)}", file=sys.stderr, flush=True)
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        done(["git", "clone", "--quiet", "--shared", str(ROOT), str(root)], environment)
        done(["git", "checkout", "--quiet", name], environment, root)
        done(["make", ".venv/.prepared"], environment, root)
    return Tree(name, root)


def side_of(name: str) -> Tree | Slurm:
    """The side that has this name: `here`, `Slurm`, or a commit."""
    return here() if name == "here" else Slurm() if name == Slurm.name else tree_of(name)
