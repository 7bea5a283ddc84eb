"""Steps and real jobs beside real Slurm on the same machine, where it is installed: `python -m
benchmarks.steps [launch | throughput | scale]`.

launch      `srun -N1 hostname` in an allocation
throughput  500 jobs of `true` through sbatch on 100 nodes, until the last has ended
scale       `srun -N2400 -n4800` with emulated nodes, from the launch to the last exit

Real Slurm is a private cluster on loopback: its daemons, MUNGE and one slurmd a node, in a folder
that is removed. It needs root, as slurmd does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent
JOBS = 500
CONF = """
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
NodeName=DEFAULT CPUs=4 RealMemory=2000 State=UNKNOWN
{nodes}
PartitionName=debug Nodes=n[1-{count}] Default=YES MaxTime=INFINITE State=UP
{more}
"""
REAL = """
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
IN_ALLOCATION = """
import subprocess, time
times = []
for _ in range(21):
    begin = time.perf_counter()
    subprocess.run(["srun", "-N1", "hostname"], stdout=subprocess.DEVNULL, check=True)
    times.append(time.perf_counter() - begin)
print(*times)
"""


def free_ports(count: int) -> int:
    """The first of so many ports that are free, side by side."""
    for port in range(21000, 60000, count + 1):
        with contextlib.ExitStack() as stack:
            try:
                for each in range(port, port + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", each))
            except OSError:
                continue
            return port
    raise RuntimeError("no free ports")


class Ours:
    """A cluster of this project."""

    name = "understudy"

    def __init__(self, folder: Path, count: int, *, executor: str = "real") -> None:
        self.folder, self.count = folder, count
        conf = folder / "slurm.conf"
        conf.write_text(
            CONF.format(
                host="localhost", port=6817, nodes=f"NodeName=n[1-{count}]", count=count, more=""
            )
        )
        self.environment = os.environ | {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "UNDERSTUDY_REGISTRY": str(folder / "registry"),
            "SLURM_CONF": str(folder / "run" / "slurm.conf"),
        }
        self.run(
            "understudy",
            "up",
            "--conf",
            str(conf),
            "--run-dir",
            str(folder / "run"),
            "--port",
            "0",
            "--executor",
            executor,
        )

    def run(self, *words: str) -> str:
        return subprocess.run(
            words,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        ).stdout

    def end(self) -> None:
        self.run("understudy", "down", "--run-dir", str(self.folder / "run"))


class Real(Ours):
    """A private cluster of real Slurm."""

    name = "Slurm"

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self.daemons: list[subprocess.Popen[bytes]] = []
        port = free_ports(count + 2)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "munge").mkdir(mode=0o700)
        (folder / "munge" / "key").write_bytes(os.urandom(64))
        (folder / "munge" / "key").chmod(0o600)
        folder.chmod(0o755)
        nodes = (
            f"NodeName=n[1-{count}] NodeAddr=127.0.0.1 Port=[{port + 2}-{port + 1 + count}]"
            if count > 1
            else f"NodeName=n1 Port={port + 2}"
        )
        more = REAL.format(node_port=port + 1, folder=folder)
        conf = folder / "slurm.conf"
        conf.write_text(
            CONF.format(
                host=socket.gethostname().partition(".")[0],
                port=port,
                nodes=nodes,
                count=count,
                more=more,
            )
        )
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("SLURM")
        } | {
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "SLURM_CONF": str(conf),
        }
        munge = folder / "munge"
        self._start(
            *(
                "munged",
                "--foreground",
                "--force",
                f"--key-file={munge}/key",
                f"--socket={folder}/munge.sock",
                f"--pid-file={munge}/pid",
            ),
            *(f"--seed-file={munge}/seed", f"--log-file={munge}/log"),
        )
        while not (folder / "munge.sock").exists():
            time.sleep(0.05)
        self._start("slurmctld", "-D", "-c")
        for number in range(1, count + 1):
            (folder / "spool" / f"n{number}").mkdir()
            self._start("slurmd", "-D", "-c", "-N", f"n{number}")
        while True:
            with contextlib.suppress(subprocess.CalledProcessError):
                if self.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == str(count):
                    break
            time.sleep(0.5)

    def _start(self, *words: str) -> None:
        self.daemons.append(
            subprocess.Popen(
                words,
                env=self.environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self.folder,
            )
        )

    def end(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


def clusters() -> list[type[Ours]]:
    if os.geteuid() == 0 and all(
        shutil.which(name, path="/usr/bin:/usr/sbin") for name in ("slurmctld", "slurmd", "munged")
    ):
        return [Real, Ours]
    print("  (real Slurm is not installed, or this is not root: nothing to compare with)")
    return [Ours]


@contextlib.contextmanager
def running(kind: type[Ours], count: int, **options: str):
    with tempfile.TemporaryDirectory(prefix="understudy-bench-") as folder:
        cluster = kind(Path(folder), count, **options)
        try:
            yield cluster
        finally:
            cluster.end()


def launch() -> None:
    """`srun -N1 hostname` in an allocation."""
    found = {}
    for kind in clusters():
        with running(kind, 2) as cluster:
            times = cluster.run("salloc", "-Q", "-N1", sys.executable, "-c", IN_ALLOCATION).split()
            found[kind.name] = statistics.median(map(float, times))
    compare(
        "srun -N1 hostname in an allocation, median", found, "ms", 1000, "at most 2.5 times Slurm's"
    )


def throughput() -> None:
    """500 jobs through sbatch; four at a time, as a user's loop and its friends would."""
    found = {}
    for kind in clusters():
        with running(kind, 100) as cluster:
            begin = time.monotonic()
            cluster.run("bash", "-c", f"seq {JOBS} | xargs -P4 -I@ sbatch -o /dev/null --wrap true")
            while cluster.run("squeue", "-h", "-t", "pending,running", "-o", "%i").strip():
                time.sleep(0.2)
            found[kind.name] = JOBS / (time.monotonic() - begin)
    compare(
        f"{JOBS} jobs of `true` through sbatch on 100 nodes", found, "jobs/s", 1, "at least Slurm's"
    )


def scale() -> None:
    """`srun -N2400 -n4800` with emulated nodes."""
    with running(Ours, 2400, executor="emulated") as cluster:
        job = cluster.run(
            "bash", "-c", "salloc -Q -N2400 -n4800 --no-shell; squeue -h -o %i"
        ).strip()
        times = []
        for _ in range(3):
            begin = time.monotonic()
            lines = cluster.run("srun", f"--jobid={job}", "-N2400", "-n4800", "hostname").count(
                "\n"
            )
            times.append(time.monotonic() - begin)
            assert lines == 4800, lines
        compare("srun -N2400 -n4800 hostname, emulated", {"understudy": min(times)}, "s", 1, "2 s")


def compare(what: str, found: dict[str, float], unit: str, factor: float, target: str) -> None:
    figures = ", ".join(f"{name} {value * factor:.3g} {unit}" for name, value in found.items())
    print(f"{what}: {figures} (target: {target})", flush=True)


def main() -> None:
    """Measure what is named, or all."""
    known = {"launch": launch, "throughput": throughput, "scale": scale}
    for name in sys.argv[1:] or known:
        known[name]()


if __name__ == "__main__":
    main()
