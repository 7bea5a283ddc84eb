"""Daemons that are started one by one with Slurm's own commands and options: `slurmctld`, `slurmd`, `slurmdbd`.

Place: under those commands; beside launch.py, which starts a whole cluster. Follows: slurmctld(8), slurmd(8), slurmdbd(8).

All find each other by the slurm.conf: from its path follows the run directory that they share (`run_dir_of`). Whoever comes first, in whatever order,
describes the cluster there; each `slurmd` joins it with its nodes. Nothing of the site's own state, spool or database is touched.
"""

from __future__ import annotations

import contextlib
import getopt
import hashlib
import os
import shutil
import subprocess
import sys
import time as clock_time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.commands import launch, locate
from understudy.commands.client import VERSION
from understudy.commands.run_dir import LaunchError, exclusive, remove_traces, running, socket_folder
from understudy.model.cluster import Cluster
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from understudy.model.conf import SlurmConfig

SYSTEM_CONF: Final = "/etc/slurm/slurm.conf"
PATIENCE_S: Final = 30.0
_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the daemons. `options`: letter, what follows it ("" for nothing), what it does."""

    program: str
    options: tuple[tuple[str, str, str], ...]
    pid_key: str

    @property
    def usage(self) -> str:
        """What -h prints."""
        lines = [f"Usage: {self.program} [OPTIONS]"]
        lines += [f"  {f'-{letter} {value}'.rstrip():<14}{what}" for letter, value, what in self.options]
        return "\n".join(lines)


@dataclass(slots=True)
class Start:
    """What a command line asks for."""

    conf: Path
    foreground: bool = False
    clear: bool = False
    verbose: bool = False
    log: str = ""
    values: dict[str, str] = field(default_factory=dict)  # of the other options, by letter


class NoDaemonError(Exception):
    """The command line asked for no daemon: a text for the user, and the exit code."""

    def __init__(self, text: str, code: int) -> None:
        self.text, self.code = text, code
        super().__init__(text)


def read_line(kind: Kind, arguments: list[str], environ: Mapping[str, str]) -> Start:
    """The command line.

    Raises:
        NoDaemonError: it is wrong, or asks for help or the version.
    """
    letters = "".join(letter + (":" if value else "") for letter, value, _ in kind.options)
    try:
        given, rest = getopt.gnu_getopt(arguments, letters, ["help", "version"])
    except getopt.GetoptError as error:
        raise NoDaemonError(f"{kind.program}: {error.msg}\n{kind.usage}", 1) from None
    found = {name.lstrip("-"): value for name, value in given}
    if rest or "h" in found or "help" in found:
        raise NoDaemonError(kind.usage, 1 if rest else 0)
    if "V" in found or "version" in found:
        raise NoDaemonError(f"slurm {VERSION}", 0)
    conf = found.pop("f", "") or environ.get("SLURM_CONF", "") or SYSTEM_CONF
    return Start(Path(conf), "D" in found, "c" in found, "v" in found, found.pop("L", ""), found)


def run_dir_of(conf: Path, cluster: str, environ: Mapping[str, str]) -> Path:
    """The run directory of the cluster that a slurm.conf describes: two files of clusters of the same name have different ones."""
    if given := environ.get("UNDERSTUDY_RUN_DIR"):
        return Path(given).resolve()
    state = environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "understudy" / f"{cluster}-{hashlib.sha256(str(conf.resolve()).encode()).hexdigest()[:8]}"


def describe(conf: Path, run_dir: Path, environ: Mapping[str, str]) -> Cluster:
    """The cluster as the run directory describes it; made from slurm.conf if none of its daemons runs or is about to (`announce`).

    Raises:
        ConfigError, LaunchError, OSError: it cannot be.
    """
    if running(run_dir):
        return Cluster.load(run_dir)
    remove_traces(run_dir)
    executor = environ.get("UNDERSTUDY_EXECUTOR", "real")
    return launch.prepare(run_dir, conf, executor=executor, noded=0)


@contextlib.contextmanager
def held(run_dir: Path) -> Iterator[None]:
    """The run directory for ourselves; others that start at the same time wait."""
    deadline = clock_time.monotonic() + PATIENCE_S
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(exclusive(run_dir))
                break
            except LaunchError:
                if clock_time.monotonic() >= deadline:
                    raise
                clock_time.sleep(_POLL_S)
        yield


def join(cluster: Cluster, run_dir: Path, nodes: list[str]) -> str:
    """Have a node daemon for these nodes in the cluster's description. Its name."""
    from understudy.model.hostlist import compress

    name = f"slurmd.{compress(nodes, sort=False)}"
    cluster.join(name, f"unix:{socket_folder(run_dir)}/{zlib.crc32(name.encode()):08x}.sock", nodes)
    cluster.save(run_dir)
    return name


def run(kind: Kind, arguments: list[str], prepare: Callable[[Start, SlurmConfig], tuple[str, Path, Callable[[], int]]]) -> int:
    """Be the daemon, or start it in the background. `prepare` gives its name among the daemons, the run directory, and its main."""
    from understudy.model.conf import load

    try:
        start = read_line(kind, arguments, os.environ)
        config = load(start.conf)
        if "n" in start.values:
            os.nice(int(start.values["n"]))
        if not start.foreground:
            return _in_background(kind, arguments, start, config)
        name, run_dir, main = prepare(start, config)
    except NoDaemonError as ended:
        print(ended.text, file=sys.stderr if ended.code else sys.stdout)
        return ended.code
    except (ConfigError, LaunchError, OSError, ValueError) as error:
        print(f"{kind.program}: fatal: {error}", file=sys.stderr)
        return 1
    if start.log:
        with open(start.log, "ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
    pid_file = _pid_file(kind, config, name)
    if pid_file is not None:
        with contextlib.suppress(OSError):
            pid_file.write_text(f"{os.getpid()}\n")
    os.chdir(run_dir)
    try:
        return main()
    finally:
        if pid_file is not None:
            with contextlib.suppress(OSError):
                pid_file.unlink()


def _in_background(kind: Kind, arguments: list[str], start: Start, config: SlurmConfig) -> int:
    """Start the daemon with -D in a session of its own; it is ready when this returns."""
    run_dir = run_dir_of(start.conf, config.cluster_name, os.environ)
    (run_dir / "logs").mkdir(parents=True, exist_ok=True)
    with (run_dir / "logs" / f"{kind.program}.log").open("ab") as log:
        begin = log.tell()
        command = [sys.executable, "-P", "-m", f"understudy.commands.{kind.program}", "-D", *arguments]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline, text = clock_time.monotonic() + PATIENCE_S, ""
    said = Path(start.log) if start.log else run_dir / "logs" / f"{kind.program}.log"
    if start.log:
        begin = 0
    while clock_time.monotonic() < deadline:
        has_ended = child.poll() is not None
        with contextlib.suppress(OSError):
            text = said.read_bytes()[begin:].decode(errors="replace")
        if f"ready, pid {child.pid}\n" in text:
            return 0
        if has_ended:
            break
        clock_time.sleep(_POLL_S)
    print(text.rstrip() or f"{kind.program}: fatal: not ready after {PATIENCE_S:.0f} s", file=sys.stderr)
    child.kill()
    return 1


def _pid_file(kind: Kind, config: SlurmConfig, name: str) -> Path | None:
    """The pid file that slurm.conf names; none where it names none, as the default may be a real daemon's."""
    if not kind.pid_key or not config.is_set(kind.pid_key):
        return None
    node = name.partition(".")[2]
    path = config.text(kind.pid_key).replace("%n", node).replace("%h", os.uname().nodename.partition(".")[0])
    return Path(path)


@contextlib.contextmanager
def agent_beside(run_dir: Path) -> Iterator[None]:
    """The credential agent, which commands of other users need, for as long as the controller runs."""
    if any(process.name == "agent" for process in running(run_dir)):
        yield
        return
    with (run_dir / "logs" / "agent.log").open("ab") as log:
        agent = subprocess.Popen(
            launch.daemon_command("agent", run_dir), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=run_dir
        )
    try:
        yield
    finally:
        agent.terminate()
        agent.wait()


def announce(name: str, run_dir: Path) -> None:
    """Say that this process is about to be the daemon, so that nobody describes the cluster anew.

    Raises:
        LaunchError: another is the daemon.
    """
    from understudy.clock.daemon import write_pid_file

    if any(process.name == name for process in running(run_dir)):
        raise LaunchError(f"{name} of this cluster runs already, in {run_dir}")
    write_pid_file(run_dir, name)


def forget_state(run_dir: Path) -> None:
    """What `slurmctld -c` asks for."""
    shutil.rmtree(run_dir / "state", ignore_errors=True)
    (run_dir / "state").mkdir(mode=0o700, parents=True)


def register(cluster: Cluster, run_dir: Path) -> None:
    """Have commands find the cluster."""
    locate.register(launch.location_of(cluster, run_dir))
