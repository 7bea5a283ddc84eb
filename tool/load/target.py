"""The cluster at which a load is aimed: one that runs, one of real Slurm, or one that is started
for it and ended afterwards.

Place: tool/load; starts daemons by tool/cluster.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.shared import locate
from understudy.commands.shared.client import Client
from understudy.model.cluster import Cluster
from understudy.model.hostlist import numbered
from understudy.tool.cluster.processes import Process, identify
from understudy.tool.cluster.run_dir import running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.tool.load.plan import Plan

UNDERSTUDY, COMMANDS, SLURM = "understudy", "commands", "slurm"
DRIVERS: Final = (UNDERSTUDY, COMMANDS, SLURM)
_CONF: Final = """ClusterName=load
SlurmctldHost=localhost
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,default_queue_depth=1000
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MaxJobCount=1000000
MaxArraySize=100001
MinJobAge={min_job_age}
SlurmdTimeout=300
ReturnToService=2
{accounting}{more}
NodeName={names} CPUs={cpus} RealMemory=16000 State=UNKNOWN
PartitionName=debug Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""
NO_ACCOUNTS: Final = "accounting_storage/none"
NOT_VIRTUAL: Final = (
    "its time is virtual, and who loads it must take part in it from the start: "
    "understudy load --time virtual starts one"
)
_ASK_S: Final = 60.0  # ours: that real Slurm's commands may take to tell of their cluster


class TargetError(Exception):
    """There is no cluster to be loaded; the text is for the user."""


@dataclass(slots=True)
class Target:
    """A running cluster. `speed`: how much faster than real its time is. `daemons`: those of this
    host. What `learn` finds: its default partition, whether something keeps accounts, and after
    how many of its seconds it forgets a job that has ended.
    """

    driver: str
    path: Path  # of the commands
    environment: dict[str, str]
    nodes: list[str]
    speed: float = 1.0
    location: locate.Location | None = None  # None: real Slurm
    daemons: list[Process] = field(default_factory=list)
    describes: str = ""
    cpus: int = 0
    partition: str = ""
    has_accounting: bool = False
    forgets_after_s: float = 300.0

    def learn(self) -> None:
        """Ask the cluster for its size and its settings.

        Raises:
            TargetError, RefusedError: it does not answer.
        """
        if self.location is None:
            settings = _settings(self.command("scontrol", "show", "config"))
            partitions = self.command("sinfo", "-h", "-o", "%P").split()
            self.cpus = int(self.command("sinfo", "-h", "-o", "%C").split()[0].split("/")[-1])
        else:
            with contextlib.closing(self.client()) as client:
                settings = dict(client.query("config", ["name", "value"]).rows)
                rows = client.query("partitions", ["name", "is_default"]).rows
                self.cpus = sum(row[0] for row in client.query("nodes", ["effective_cpus"]).rows)
            partitions = [name + "*" * is_default for name, is_default in rows]
        self.has_accounting = settings.get("AccountingStorageType", NO_ACCOUNTS) != NO_ACCOUNTS
        age = float(settings.get("MinJobAge", "300").split()[0])
        self.forgets_after_s = age or math.inf  # 0: never, as Slurm has it
        default = [name for name in partitions if name.endswith("*")]
        self.partition = (default or partitions or [""])[0].rstrip("*")

    def command(self, *words: str, timeout_s: float = _ASK_S) -> str:
        """What a command of the cluster prints.

        Raises:
            TargetError: it fails.
        """
        try:
            done = subprocess.run(
                [str(self.path / words[0]), *words[1:]],
                env={**os.environ, **self.environment},
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TargetError(f"{words[0]}: {error}") from None
        if done.returncode:
            raise TargetError(f"{' '.join(words[:3])}: {done.stderr.strip()}")
        return done.stdout

    def client(self, timeout_s: float = _ASK_S) -> Client:
        """A connection to our controller."""
        assert self.location is not None
        location = self.location
        return Client(lambda: location, timeout_s=timeout_s, waits=False)

    def work(self) -> dict[str, Any]:
        """What a sending process must know of it."""
        location = None
        if self.location is not None:
            location = {name: getattr(self.location, name) for name in locate.Location.__slots__}
        return {
            "driver": self.driver,
            "bin": str(self.path),
            "environment": self.environment,
            "nodes": self.nodes,
            "partition": self.partition,
            "speed": self.speed,
            "location": location,
        }


def running_cluster(driver: str, run_dir: Path | None) -> Target:
    """One of ours that runs: of this run directory, else as commands find it.

    Raises:
        TargetError: none does.
    """
    try:
        if run_dir is None:
            location = locate.find()
        else:
            from understudy.tool.cluster.launch import location_of

            location = location_of(Cluster.load(run_dir), run_dir)
    except (
        OSError,
        ValueError,
        TypeError,
        locate.NoClusterError,
        locate.BadConfigurationError,
    ) as error:
        raise TargetError(f"{run_dir or 'which cluster?'}: {error}") from None
    target = _ours(driver, location)
    target.learn()
    return target


def _ours(driver: str, location: locate.Location) -> Target:
    from understudy.commands.shared.client import RefusedError

    speed, environment, daemons, describes = 1.0, {"SLURM_CONF": location.conf}, [], location.name
    if location.run_dir:
        folder = Path(location.run_dir)
        cluster = Cluster.load(folder)
        speed = cluster.rate if cluster.time == "scaled" else 1.0
        if cluster.time == "virtual":
            raise TargetError(f"{location.run_dir}: {NOT_VIRTUAL}")
        environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        daemons = running(folder)
        describes = f"understudy, {cluster.executor} jobs, {cluster.time} time"
    try:
        with contextlib.closing(Client(lambda: location, timeout_s=_ASK_S, waits=False)) as client:
            nodes = [name for (name,) in client.query("nodes", ["name"]).rows]
    except RefusedError as error:
        raise TargetError(f"{location.name}: {error.text}") from None
    path = Path(sys.executable).parent
    return Target(driver, path, environment, nodes, speed, location, daemons, describes)


def slurm_cluster(conf: Path | None, path: str) -> Target:
    """One of real Slurm: of SLURM_CONF or `conf`, by the commands that are first in `path`.

    Raises:
        TargetError: it does not answer.
    """
    found = shutil.which("sbatch", path=path)
    if found is None:
        raise TargetError("no sbatch of Slurm's: where is it? (--bin)")
    environment = {"SLURM_CONF": str(conf)} if conf is not None else {}
    target = Target(SLURM, Path(found).parent, environment, [])
    target.nodes = sorted(set(target.command("sinfo", "-h", "-N", "-o", "%N").split()))
    settings = _settings(target.command("scontrol", "show", "config"))
    target.describes = f"Slurm {settings.get('SLURM_VERSION', '')}".strip()
    with contextlib.suppress(OSError, ValueError, ProcessLookupError):
        pid = int(Path(settings["SlurmctldPidFile"]).read_text())
        target.daemons = [identify("slurmctld", pid)]
    target.learn()
    return target


def _settings(text: str) -> dict[str, str]:
    """What `scontrol show config` tells, by name."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


@contextlib.contextmanager
def started_cluster(driver: str, plan: Plan, executor: str) -> Iterator[Target]:
    """A cluster of the plan's, in a folder that is removed in the end.

    Raises:
        LaunchError, ConfigError: it does not come up.
    """
    from understudy.tool.cluster import launch
    from understudy.tool.cluster.if_killed import ended_if_killed
    from understudy.tool.cluster.run_dir import exclusive
    from understudy.tool.cluster.start import parse_time

    mode, rate = parse_time(plan.time)
    with tempfile.TemporaryDirectory(prefix="understudy-load-") as folder:
        conf, run_dir = Path(folder) / "slurm.conf", Path(folder) / "run"
        conf.write_text(conf_of(plan))
        os.chmod(folder, 0o755)  # noqa: S103  other users may submit, too
        with exclusive(run_dir) as lock, ended_if_killed(run_dir, lock):
            cluster = launch.prepare(run_dir, conf, time=mode, rate=rate, executor=executor, port=0)
            started = launch.start_daemons(cluster, run_dir)
            try:
                launch.wait_listening(started)
                launch.wait_registered(cluster, started)
                location = launch.location_of(cluster, run_dir)
                target = _ours(driver, location)
                target.environment["UNDERSTUDY_REGISTRY"] = str(Path(folder) / "registry")
                locate.register(location, target.environment["UNDERSTUDY_REGISTRY"])
                target.learn()
                yield target
            finally:
                launch.stop(run_dir, started)


def conf_of(plan: Plan) -> str:
    """The slurm.conf of a cluster that is started for a load. Ended jobs stay until the load has
    asked for them, unless accounting keeps them.
    """
    names = numbered("n", plan.nodes)
    accounting = "AccountingStorageType=accounting_storage/slurmdbd\n"
    return _CONF.format(
        names=names,
        cpus=plan.cpus,
        min_job_age=2 if plan.accounting else 86_400,
        accounting=accounting if plan.accounting else "",
        more=plan.conf.rstrip("\n"),
    )


def machine() -> dict[str, Any]:
    """The facts of the machine on which figures were measured."""
    model = ""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": model,
        "memory_mb": pages >> 20,
        "load_before": os.getloadavg()[0],
        "python": sys.version.split()[0],
    }
