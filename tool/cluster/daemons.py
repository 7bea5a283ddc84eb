"""Daemons that are started one by one with Slurm's own commands and options: `slurmctld`, `slurmd`,
`slurmdbd`.

Place: under those commands; beside launch.py, which starts a whole cluster. Follows: slurmctld(8),
slurmd(8), slurmdbd(8).

All find each other by the slurm.conf: from its path follows the run directory that they share
(`run_dir_of`). Whoever comes first, in whatever order, describes the cluster there; each `slurmd`
joins it with its nodes. Nothing of the site's own state, spool or database is touched.
"""

from __future__ import annotations

import contextlib
import getopt
import hashlib
import os
import select
import shutil
import subprocess
import sys
import time as clock_time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.commands.shared import locate
from understudy.documents.documents import VERSION
from understudy.model.cluster import CONTROLLER, Cluster, is_backup
from understudy.model.conf_copy import copy_configuration
from understudy.model.errors import ConfigError
from understudy.model.hostlist import compress, expand
from understudy.tool.cluster import launch
from understudy.tool.cluster.process_title import set_title
from understudy.tool.cluster.processes import end
from understudy.tool.cluster.run_dir import (
    LaunchError,
    check_port,
    exclusive,
    remove_traces,
    running,
    socket_folder,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from understudy.model.conf import SlurmConfig

SYSTEM_CONF: Final = "/etc/slurm/slurm.conf"
PATIENCE_S: Final = 30.0  # ours: until a daemon counts as not coming up
_POLL_S: Final = 0.05  # ours: between two looks
# the descriptor on which a daemon in the background says that it is ready
_READY: Final = "UNDERSTUDY_READY"


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the daemons. `options`: letter, what follows it ("" for nothing), what it does."""

    program: str
    options: tuple[tuple[str, str, str], ...]
    pid_key: str
    log_key: str

    @property
    def usage(self) -> str:
        """What -h prints."""
        lines = [f"Usage: {self.program} [OPTIONS]"]
        lines += [
            f"  {f'-{letter} {value}'.rstrip():<14}{what}" for letter, value, what in self.options
        ]
        return "\n".join(lines)


@dataclass(slots=True)
class Start:
    """What a command line asks for."""

    conf: Path
    foreground: bool = False
    clear: bool = False
    verbose: int = 0  # how often -v was given
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
    verbose = sum(name == "-v" for name, _ in given)
    conf = found.pop("f", "") or environ.get("SLURM_CONF", "") or SYSTEM_CONF
    return Start(Path(conf), "D" in found, "c" in found, verbose, found.pop("L", ""), found)


def run_dir_of(conf: Path, cluster: str, environ: Mapping[str, str]) -> Path:
    """The run directory of the cluster that a slurm.conf describes: two files of clusters of the
    same name have different ones.
    """
    if given := environ.get("UNDERSTUDY_RUN_DIR"):
        return Path(given).resolve()
    home = Path.home()  # SlurmUser often has none
    own = (
        home / ".local" / "state"
        if os.access(home, os.W_OK)
        else Path("/var/tmp") / f"understudy-{os.geteuid()}"  # noqa: S108
    )
    state = environ.get("XDG_STATE_HOME") or own
    return (
        Path(state)
        / "understudy"
        / f"{cluster}-{hashlib.sha256(str(conf.resolve()).encode()).hexdigest()[:8]}"
    )


def describe(conf: Path, run_dir: Path, environ: Mapping[str, str]) -> Cluster:
    """The cluster as the run directory describes it, with the slurm.conf as it is now; made from
    that alone if none of its daemons runs or is about to (`announce`).

    Raises:
        ConfigError, LaunchError, OSError: it cannot be.
    """
    if alive := {process.name for process in running(run_dir)}:
        return _described_again(conf, run_dir, alive)
    remove_traces(run_dir)
    executor = environ.get("UNDERSTUDY_EXECUTOR", "real")
    return launch.prepare(run_dir, conf, executor=executor, noded=0, tcp="always")


def _described_again(conf: Path, run_dir: Path, alive: set[str]) -> Cluster:
    """Others run: what slurm.conf says now holds for those that do not. All are found by their
    sockets, so ports may be others than they were.
    """
    cluster, site = Cluster.load(run_dir), launch.read_site(conf)
    copy_configuration(conf, run_dir)
    if "controller" not in alive and not cluster.controller.endswith(f":{site.port}"):
        check_port(site.port, f"SlurmctldPort in {conf}")
        cluster.controller = f"tcp:127.0.0.1:{site.port}"
    if "accounting" not in alive:
        cluster.accounting = cluster.accounting_unix = ""
        if site.accounting_port is not None:
            cluster.accounting = f"tcp:127.0.0.1:{site.accounting_port}"
            cluster.accounting_unix = f"unix:{socket_folder(run_dir)}/accounting.sock"
    known = set(site.nodes)
    for daemon in cluster.nodeds:
        daemon.nodes = compress(
            [node for node in expand(daemon.nodes) if node in known], sort=False
        )
    cluster.nodeds = [daemon for daemon in cluster.nodeds if daemon.nodes]
    cluster.save(run_dir)
    return cluster


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
    name = f"slurmd.{compress(nodes, sort=False)}"
    launch.make_keys(run_dir, [name])
    cluster.join(name, f"unix:{socket_folder(run_dir)}/{zlib.crc32(name.encode()):08x}.sock", nodes)
    cluster.save(run_dir)
    return name


def run(
    kind: Kind,
    arguments: list[str],
    prepare: Callable[[Start, SlurmConfig], tuple[str, Path, Callable[[], int]]],
) -> int:
    """Be the daemon, or start it in the background. `prepare` gives its name among the daemons, the
    run directory, and its main.
    """
    from understudy.clock.daemon import PLACE
    from understudy.model.conf import load

    if ready := os.environ.pop(_READY, ""):
        PLACE.ready = int(ready)
        os.set_inheritable(PLACE.ready, False)
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
    if not ready:
        PLACE.program = kind.program
    log = Path(start.log) if start.log else _named_file(kind.log_key, config, name)
    PLACE.log = str(log.absolute()) if log is not None else ""
    pid_file = _named_file(kind.pid_key, config, name)
    if pid_file is not None:
        with contextlib.suppress(OSError):
            pid_file.write_text(f"{os.getpid()}\n")
    os.chdir(run_dir)
    set_title([kind.program, *arguments])
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
    ready, writer = os.pipe()
    with (run_dir / "logs" / f"{kind.program}.log").open("ab") as log:
        begin = log.tell()
        command = [
            sys.executable,
            "-P",
            "-m",
            f"understudy.tool.cluster.{kind.program}",
            *arguments,
            "-D",
        ]
        environment = {**os.environ, _READY: str(writer)}
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
            pass_fds=(writer,),
        )
    os.close(writer)
    select.select([ready], [], [], PATIENCE_S)
    # the end of the pipe: it has ended
    if select.select([ready], [], [], 0)[0] and os.read(ready, 1):
        return 0
    text = (run_dir / "logs" / f"{kind.program}.log").read_bytes()[begin:].decode(errors="replace")
    print(
        text.rstrip() or f"{kind.program}: fatal: not ready after {PATIENCE_S:.0f} s",
        file=sys.stderr,
    )
    child.kill()
    child.wait()
    return 1


def _named_file(key: str, config: SlurmConfig, name: str) -> Path | None:
    """The pid file or log file that slurm.conf names; none where it names none, as the default may
    be a real daemon's.
    """
    if not key or not config.is_set(key):
        return None
    node = name.partition(".")[2]
    path = config.text(key).replace("%n", node).replace("%h", os.uname().nodename.partition(".")[0])
    return Path(path)


@contextlib.contextmanager
def commands_served(cluster: Cluster, run_dir: Path) -> Iterator[None]:
    """Commands find the cluster, and those of other users the credential agent, as long as the
    controller or accounting runs: the last of them to end ends the agent, whoever started it.
    """
    with held(run_dir):  # one agent, also where two daemons start side by side
        _start_agent(run_dir)
    locate.register(launch.location_of(cluster, run_dir))
    try:
        yield
    finally:
        alive = {
            process.name: process for process in running(run_dir) if process.pid != os.getpid()
        }
        if not alive.keys() & {*cluster.controllers, "accounting"}:
            locate.unregister(cluster.name, str(run_dir))
            if "agent" in alive:
                end([alive["agent"]], launch.NICE_S)


def _start_agent(run_dir: Path) -> None:
    """Have one; it is known when this returns."""

    def is_there() -> bool:
        return any(process.name == "agent" for process in running(run_dir))

    if is_there():
        return
    with (run_dir / "logs" / "agent.log").open("ab") as log:
        agent = subprocess.Popen(
            launch.daemon_command("agent", run_dir),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=run_dir,
        )
    deadline = clock_time.monotonic() + PATIENCE_S
    while agent.poll() is None and not is_there() and clock_time.monotonic() < deadline:
        clock_time.sleep(_POLL_S)


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
    """What `slurmctld -c` asks for. Nothing where another controller has the state in use."""
    others = [process for process in running(run_dir) if process.pid != os.getpid()]
    if any(process.name == CONTROLLER or is_backup(process.name) for process in others):
        return
    shutil.rmtree(run_dir / "state", ignore_errors=True)
    (run_dir / "state").mkdir(mode=0o700, parents=True)
