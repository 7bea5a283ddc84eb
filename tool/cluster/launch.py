"""Starting and ending the daemons of one cluster: from a slurm.conf and a run directory to
processes that answer, and back to nothing.

Place: used by `understudy up` and `down` and by `understudy replay`. Knows the run directory's
layout (understudy.model.cluster) and the daemons' command lines; not what they do. Prints nothing:
what a user should read is in `LaunchError` and in the values returned.

    prepare            the run directory: keys, configuration, cluster.json
    start_daemons      all processes at once: starting is mostly importing, and they import side by
                       side
    wait_listening     until each has written its pid file, which it does when it listens
    wait_registered    until the controller has heard of every node
    stop               ends them all and removes what only a running cluster has
"""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
import time as clock_time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from understudy.commands.shared import locate
from understudy.model.cluster import CONTROLLER, Backup, Cluster, NodeDaemon, backup_name, is_backup
from understudy.model.conf_copy import copy_configuration
from understudy.protocol import addresses
from understudy.tool.cluster.cpu import idlest_cpu
from understudy.tool.cluster.hop_limits import check_hops
from understudy.tool.cluster.processes import POLL_S, Process, end, identify, kill, read_pid_file
from understudy.tool.cluster.run_dir import (
    LaunchError,
    check_port,
    make_socket_folder,
    remove_traces,
    running,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from understudy.commands.shared.client import Client
    from understudy.model.cluster import Hops

    # the command line of the daemon of this name, in this run directory
    Command: TypeAlias = Callable[[str, Path], list[str]]

__all__ = [
    "LaunchError",
    "Site",
    "Started",
    "Stopped",
    "daemon_names",
    "describe",
    "location_of",
    "prepare",
    "read_site",
    "start_daemons",
    "stop",
    "wait_listening",
    "wait_registered",
]
LOG_LINES_SHOWN: Final = 12
_CONTROLLER_PORT: Final = "SlurmctldPort"
_ACCOUNTING_PORT: Final = "AccountingStoragePort"
# ours: a daemon that has died is noticed at once; one that is slow, on a busy host, is no reason to
# give up
PATIENCE_S: Final = 120.0
NICE_S: Final = 8.0  # ours: how long a daemon may take to end by itself
# Daemons by the names of their addresses in `Cluster`; a cluster has those that have one.
MODULES: Final = {
    "clock": "understudy.clock",
    "agent": "understudy.auth",
    "accounting": "understudy.accounting",
    "controller": "understudy.controller",
    "zygote": "understudy.tool.zygote",
}


# The controller's process in a cluster whose daemons share it; tool/replay/ is above this folder.
_IN_ONE_PROCESS: Final = "understudy.tool.replay.live_daemons"
SUPERVISOR: Final = "supervisor"  # of `understudy up --supervise`, see come_back.py


@dataclass(slots=True)
class Started:
    """The daemons that one `start_daemons` has started. `joins`: others of the cluster run already,
    and go on if these do not come up.
    """

    run_dir: Path
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    # where this start's part of each log begins
    log_offsets: dict[str, int] = field(default_factory=dict)
    joins: bool = False

    def identities(self) -> list[Process]:
        """Those that still run, to be ended."""
        running = []
        for name, child in self.children.items():
            if child.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    running.append(identify(name, child.pid))
        return running


@dataclass(frozen=True, slots=True)
class Stopped:
    """What `stop` found: daemons that ended, and among them those that had to be killed."""

    ended: list[str]
    killed: list[str]


def prepare(
    run_dir: Path,
    conf: Path,
    *,
    time: str = "real",
    rate: float = 1.0,
    epoch: float | None = None,
    executor: str = "emulated",
    noded: int = 1,
    tcp: Literal["never", "asked", "always"] = "asked",
    port: int | None = None,
    state: str = "disk",
    participants: Sequence[str] = (),
    site: Site | None = None,
    hops: Hops | None = None,
    zygote: bool = False,
    backups: bool | None = None,
    **settings: Any,
) -> Cluster:
    """Make the run directory ready for the daemons, and describe the cluster in its cluster.json.

    Args:
        run_dir: made if absent. State of an earlier cluster there is kept: the controller goes on
            from it.
        conf: the site's slurm.conf.
        time: "real", "scaled" or "virtual".
        rate: how much faster than real, with "scaled".
        epoch: the cluster's time at the start, seconds since the epoch; None: now, or later if an
            earlier cluster in the directory was ahead.
        executor: "emulated" or "real".
        noded: how many node daemons share the nodes, in order and evenly; 0: they will come by
            themselves (`join`).
        tcp: whether the controller and accounting listen on TCP, beside their Unix sockets: never;
            where `port` or slurm.conf asks for it; or always, on Slurm's own ports where slurm.conf
            sets none.
        port: of the controller, in place of SlurmctldPort; 0: any that is free, which
            `start_daemons` finds. Accounting has none then.
        state: "disk" or "memory".
        participants: others for whom virtual time waits ("replay").
        site: what `read_site` said of the configuration, where it has been read already.
        hops: each node is a hop of its own; None: hops within a node daemon are taken in memory.
        zygote: a process forks for commands, so that they need not start an interpreter each.
        backups: whether there are slurm.conf's backup controllers; None: where they can be.
        settings: further fields of `Cluster`.

    Raises:
        ConfigError: the configuration cannot be used.
        LaunchError: what was asked for cannot be, or the port is taken.
    """
    if time == "virtual":
        settings.setdefault("cpu", idlest_cpu())
    if executor == "real" and time != "real":
        raise LaunchError(
            f"real jobs take real time, not {time} time: use --time real, or --executor emulated"
        )
    site = site or read_site(conf)
    if noded < 0 or noded > len(site.nodes):
        raise LaunchError(
            f"{noded} node daemons cannot share {len(site.nodes)} nodes: each needs at least one"
        )
    if executor == "real" and site.lacking:
        raise LaunchError(site.lacking)
    if hops is not None:
        check_hops(hops, site.nodes, noded, time=time, executor=executor)
    run_dir = run_dir.resolve()
    for folder in ("logs", "state", "spool"):
        (run_dir / folder).mkdir(
            parents=True, exist_ok=True, mode=0o700 if folder == "state" else 0o755
        )
    controller, accounting = (
        "" if each is None else f"tcp:127.0.0.1:{each}" for each in tcp_ports(site, conf, tcp, port)
    )
    sockets = make_socket_folder(run_dir)
    if zygote and sockets != run_dir:
        raise LaunchError(f"--zygote: {run_dir} is too long for a socket: a shorter --run-dir")
    return describe(
        run_dir,
        conf,
        site,
        ["tcp:127.0.0.1:0"] * noded
        if hops is not None and hops.tcp
        else [f"unix:{sockets}/noded{number}.sock" for number in range(noded)],
        time=time,
        participants=participants,
        conf=str(conf.resolve()),
        rate=rate,
        epoch=first_time(run_dir, time, epoch),
        executor=executor,
        state=state,
        controller=controller,
        controller_unix=f"unix:{sockets}/controller.sock",
        agent=f"unix:{sockets}/agent.sock",
        clock=f"unix:{sockets}/clock.sock" if time != "real" else "",
        accounting=accounting,
        accounting_unix=f"unix:{sockets}/accounting.sock"
        if site.accounting_port is not None
        else "",
        key_folder=str(run_dir / "keys"),
        zygote=f"unix:{run_dir}/zygote.sock" if zygote else "",
        hops=hops,
        is_open=not noded,
        controller_host=site.controllers[0],
        backups=[
            Backup(backup_name(number), host, unix=f"unix:{sockets}/{backup_name(number)}.sock")
            for number, host in enumerate(site.controllers[1:], 1)
        ]
        if (time != "virtual" and state == "disk" if backups is None else backups)
        else [],
        **settings,
    )


def describe(
    folder: Path,
    source: Path,
    site: Site,
    noded: Sequence[str],
    *,
    time: str,
    participants: Sequence[str] = (),
    keys: Path | None = None,
    **fields: Any,
) -> Cluster:
    """Write into the folder what all daemons of a cluster share: public keys, the configuration (of
    `source`) and cluster.json. Private keys go there, too, or to folders in `keys`.

    The node daemons with the addresses `noded` share the nodes in order and evenly; `participants`
    are others for whom virtual time waits; `fields` are those of `Cluster`, the addresses of the
    other daemons among them.

    Raises:
        LaunchError: there is a key that cannot be used.
    """
    copy_configuration(source, folder)
    cluster = Cluster(
        name=site.name,
        time=time,
        accounting_url=os.environ.get("UNDERSTUDY_ACCOUNTING_URL", ""),
        state_url=os.environ.get("UNDERSTUDY_STATE_URL", ""),
        nodeds=[
            NodeDaemon(f"noded{number}", address, nodes)
            for number, (address, nodes) in enumerate(
                zip(noded, shares(site.nodes, len(noded)), strict=True)
            )
        ],
        user_id=os.getuid(),
        **fields,
    )
    daemons = participants_of(site, len(noded))
    if time != "real":
        cluster.participants = [*daemons, *participants]
    # a zygote proves itself to nobody
    known = [name for name in daemon_names(cluster) if name != "zygote"]
    if cluster.one_process:
        cluster.participants, known = [CONTROLLER], [*known, *daemons[1:]]
        cluster.accounting_url = "sqlite://"  # in memory: a fork has its own
    make_keys(folder, [*known, *participants], keys)
    cluster.save(folder)
    return cluster


def make_keys(folder: Path, daemons: Sequence[str], private: Path | None = None) -> None:
    """Have keys of these daemons in `folder/keys`; the private ones elsewhere, if it is said where.

    Raises:
        LaunchError: there are keys that cannot be used.
    """
    from understudy.auth.handshake import AuthError
    from understudy.auth.keys import create_keys

    try:
        create_keys(folder / "keys", daemons, private)
    except (AuthError, OSError) as error:
        raise LaunchError(str(error)) from error


@dataclass(frozen=True, slots=True)
class Site:
    """What starting a cluster needs of its slurm.conf."""

    name: str
    port: int
    nodes: list[str]
    without_effect: list[str]  # keys that are accepted but not emulated
    controllers: list[str]  # SlurmctldHost: the primary, then the backups
    # AccountingStoragePort; None: slurm.conf asks for no accounting daemon
    accounting_port: int | None = None
    ports_set: frozenset[str] = frozenset()  # which of the two keys slurm.conf sets
    lacking: str = ""  # what is not installed that jobs need which really run


def read_site(conf: Path) -> Site:
    """Read a slurm.conf.

    Raises:
        ConfigError, OSError: it cannot be used, or read.
    """
    from understudy.model.conf import load
    from understudy.model.conf_check import not_emulated

    config = load(conf)
    # FUTURE nodes do not exist until an administrator makes them: no daemon stands for them.
    nodes = [node.name for node in config.nodes if node.state != "FUTURE"]
    accounting_port = None
    if config.text("AccountingStorageType").lower().endswith("slurmdbd"):
        accounting_port = (
            int(config.text("AccountingStoragePort")) or locate.DEFAULT_ACCOUNTING_PORT
        )
    ports_set = frozenset(key for key in (_CONTROLLER_PORT, _ACCOUNTING_PORT) if config.is_set(key))
    return Site(
        config.cluster_name,
        config.controller_ports[0],
        nodes,
        not_emulated(config),
        [host for host, _ in config.controllers],
        accounting_port,
        ports_set,
        config.burst_buffer.about_script if config.burst_buffer.lacks_lua else "",
    )


def participants_of(site: Site, noded: int, one_process: bool = False) -> list[str]:
    """The daemons for which virtual time waits: all but those that help them, or the one in whose
    process the others are.
    """
    if one_process:
        return [CONTROLLER]
    accounting = ["accounting"] if site.accounting_port is not None else []
    return ["controller", *accounting, *(f"noded{number}" for number in range(noded))]


def helpers_of(time: str) -> list[str]:
    """The daemons beside them: who vouches for users, and who keeps time that is not real."""
    return ["agent"] if time == "real" else ["agent", "clock"]


def figured(site: Site, noded: int, one_process: bool, time: str) -> list[str]:
    """The processes that can tell Prometheus something."""
    return participants_of(site, noded, one_process) + helpers_of(time)


def tcp_ports(
    site: Site, conf: Path, tcp: Literal["never", "asked", "always"], port: int | None
) -> tuple[int | None, int | None]:
    """The controller's TCP port and accounting's; None: it has none. The arguments are those of
    `prepare`.

    Raises:
        LaunchError: one of them is taken.
    """
    if port is not None:
        check_port(port, "as asked for by --port")
        return port, None
    ports: list[int | None] = []
    for key, number in ((_CONTROLLER_PORT, site.port), (_ACCOUNTING_PORT, site.accounting_port)):
        if number is None or tcp == "never" or (tcp == "asked" and key not in site.ports_set):
            ports.append(None)
        else:
            check_port(
                number,
                f"{key} in {conf}"
                if key in site.ports_set
                else f"{key}, which {conf} does not set",
            )
            ports.append(number)
    return ports[0], ports[1]


def shares(nodes: list[str], count: int) -> list[str]:
    """The nodes in `count` contiguous parts whose sizes differ by one at most, as host list
    expressions.
    """
    from understudy.model.hostlist import compress

    bounds = [len(nodes) * part // count for part in range(count + 1)] if count else []
    return [compress(nodes[start:stop], sort=False) for start, stop in itertools.pairwise(bounds)]


def first_time(run_dir: Path, time: str, wanted: float | None = None) -> float:
    """The cluster's time at its start.

    Raises:
        LaunchError: real time has not come to where an earlier cluster was, whose state is there.
    """
    if wanted is not None:
        return wanted
    now = float(int(clock_time.time()))
    try:
        earlier = Cluster.load(run_dir)
    except (OSError, ValueError, TypeError):
        return now
    # The time of jobs in the saved state must not lie in the future.
    reached = max(now, earlier.epoch, _reached(run_dir, earlier))
    if time == "real" and reached > now + 1 and any((run_dir / "state").glob("*")):
        came_to = clock_time.strftime("%Y-%m-%dT%H:%M:%S", clock_time.localtime(reached))
        before = f"scaled:{earlier.rate:g}" if earlier.time == "scaled" else earlier.time
        raise LaunchError(
            f"the cluster in {run_dir} has come to {came_to} in {earlier.time} time, "
            f"in real time its jobs would lie in the future: use --time {before} again, or --clean "
            "to forget them"
        )
    return reached


def _reached(run_dir: Path, earlier: Cluster) -> float:
    """The time that the cluster had come to whose daemons have died; `understudy down` writes the
    time of one that it ends into cluster.json.
    """
    from understudy.clock import rate_file

    written = [
        path.stat().st_mtime
        for folder in ("state", "accounting", "logs")
        for path in (run_dir / folder).glob("*")
    ]
    reached = rate_file.reached(
        run_dir / rate_file.FILE_NAME, earlier.epoch, max(written, default=0.0)
    )
    return 0.0 if reached is None else float(int(reached) + 1)


# --- processes ------------------------------------------------------------------------------------


def daemon_names(cluster: Cluster) -> list[str]:
    """The processes of the cluster, by the daemon that each is. Real time needs no clock service;
    in a cluster in one process the controller's has accounting and the nodes in it.
    """
    if cluster.one_process:
        alone = [name for name in MODULES if name != "accounting"]
        return [name for name in alone if cluster.address_of(name)]
    return [
        *(name for name in MODULES if cluster.address_of(name)),
        *(each.name for each in cluster.backups),
        *(noded.name for noded in cluster.nodeds),
    ]


def shared_command(name: str, run_dir: Path) -> list[str]:
    """The command line of one process of a cluster whose daemons share one."""
    command = daemon_command(name, run_dir)
    return [_IN_ONE_PROCESS if word == MODULES[CONTROLLER] else word for word in command]


def daemon_command(name: str, run_dir: Path) -> list[str]:
    """The command line of one daemon. -P: a file in the current directory must not stand in for a
    module.
    """
    kind = CONTROLLER if is_backup(name) else name
    module = MODULES.get(kind, "understudy.noded")
    command = [sys.executable, "-P", "-m", module, "--run-dir", str(run_dir)]
    return command if name in MODULES else [*command, "--name", name]


def compile_house() -> None:
    """Compile all modules that have changed since they were compiled, as far as this user may write
    beside them.

    Where PYTHONDONTWRITEBYTECODE is set (in images of containers it often is), a source tree would
    be compiled by each daemon, and by each command anew: that takes `sbatch` three times as long as
    all the rest.
    """
    import compileall
    from pathlib import Path

    house = Path(__file__).parents[2]
    compileall.compile_file(house / "__init__.py", quiet=2)
    for folder in sorted(house.iterdir()):
        if (folder / "__init__.py").exists():
            compileall.compile_dir(folder, quiet=2)


def start_daemons(
    cluster: Cluster,
    run_dir: Path,
    command: Command | None = None,
    names: Sequence[str] | None = None,
) -> Started:
    """Start all daemons, or those of these names, each in a session of its own so that a terminal's
    signals do not reach it; output goes to RUN_DIR/logs/NAME.log.

    Where a daemon's port is any that is free, it is found here, before anybody reads cluster.json,
    and the daemon is given the socket that has it: nobody else can have it in between.
    """
    run_dir = run_dir.resolve()
    if command is None:
        command = shared_command if cluster.one_process else daemon_command
    listeners = _take_free_ports(cluster)
    if listeners:
        cluster.save(run_dir)
    if sys.dont_write_bytecode:
        compile_house()
    started = Started(run_dir)
    for name in names if names is not None else daemon_names(cluster):
        with (run_dir / "logs" / f"{name}.log").open("ab") as log:
            started.log_offsets[name] = log.tell()
            words, inherited = command(name, run_dir), []
            if (listener := listeners.get(name)) is not None:
                inherited = [listener.fileno()]
                words += ["--listener", str(listener.fileno())]
            started.children[name] = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=run_dir,
                pass_fds=inherited,
            )
    for listener in listeners.values():
        listener.close()
    return started


def _take_free_ports(cluster: Cluster) -> dict[str, socket.socket]:
    """The sockets of the daemons whose port is any that is free, which the cluster is told."""
    listeners: dict[str, socket.socket] = {}

    def listen(name: str, address: str) -> str:
        if not address.endswith(":0"):
            return address
        listeners[name] = addresses.listen(address)
        return f"tcp:127.0.0.1:{listeners[name].getsockname()[1]}"

    cluster.controller = listen("controller", cluster.controller)
    for daemon in cluster.nodeds:
        daemon.address = listen(daemon.name, daemon.address)
    return listeners


def wait_listening(started: Started, timeout_s: float = PATIENCE_S) -> None:
    """Return when every daemon has said in its pid file that it listens.

    Raises:
        LaunchError: one has ended, or not come up in time; with the last lines of its log. The
        others have been ended.
    """
    waiting = dict(started.children)
    deadline = clock_time.monotonic() + timeout_s
    while waiting:
        _check_alive(started)
        for name, child in list(waiting.items()):
            process = read_pid_file(started.run_dir / f"{name}.pid")
            if process is not None and process.pid == child.pid:
                del waiting[name]
        if waiting and clock_time.monotonic() >= deadline:
            _give_up(started, next(iter(waiting)), f"does not listen after {timeout_s:.0f} s")
        if waiting:
            clock_time.sleep(POLL_S)


def wait_registered(cluster: Cluster, started: Started, timeout_s: float = PATIENCE_S) -> None:
    """Return when the controller has heard from the node daemons of all nodes.

    Raises:
        LaunchError: a daemon has ended, or nodes are missing after `timeout_s`. All daemons have
        been ended.
    """
    from understudy.commands.shared.client import Client

    location = location_of(cluster, started.run_dir)
    client = Client(lambda: location, timeout_s=timeout_s, waits=False)
    deadline = clock_time.monotonic() + timeout_s
    with contextlib.closing(client):
        while (missing := _unregistered(client)) != 0:
            _check_alive(started)
            if clock_time.monotonic() >= deadline:
                what = (
                    "does not answer"
                    if missing is None
                    else f"has heard of no node daemon for {missing} nodes"
                )
                _give_up(started, "controller", f"{what} after {timeout_s:.0f} s")
            if missing is None:
                client.drop()  # the next question connects again
            clock_time.sleep(4 * POLL_S)
    if cluster.keeps_accounting:
        _wait_accounted(cluster, started, location, deadline)


def _wait_accounted(
    cluster: Cluster, started: Started, location: locate.Location, deadline: float
) -> None:
    """Return when accounting knows the cluster: its controller has announced itself there."""
    from understudy.commands.shared.accounting_client import AccountingClient
    from understudy.commands.shared.client import RefusedError

    with contextlib.closing(AccountingClient(lambda: location)) as client:
        while True:
            try:
                rows, *_ = client.call(
                    "AccountingQuery",
                    "clusters",
                    ["cluster", "control_host"],
                    {"names": [cluster.name.lower()]},
                )
            except RefusedError:
                rows = []
                client.drop()  # the next question connects again
            if rows and rows[0][1]:
                return
            _check_alive(started)
            if clock_time.monotonic() >= deadline:
                _give_up(started, "accounting", "has not heard of the controller")
            clock_time.sleep(4 * POLL_S)


def location_of(cluster: Cluster, run_dir: Path) -> locate.Location:
    """The cluster as commands' registry knows it."""
    return locate.Location(
        run_dir=str(run_dir.resolve()),
        started=clock_time.time(),
        backups=[[each.host, each.unix, each.address] for each in cluster.backups],
        **{
            name: getattr(cluster, name)
            for name in locate.Location.__slots__
            if name not in ("backups", "run_dir", "started")
        },
    )


def _unregistered(client: Client) -> int | None:
    """How many nodes have no node daemon yet; None if the controller does not answer. FUTURE nodes
    do not exist until somebody makes them.
    """
    from understudy.commands.shared.client import RefusedError
    from understudy.model.states import NodeState

    try:
        rows = client.query("nodes", ["state"], {"daemon": [""]}).rows
    except RefusedError:
        return None
    return len([state for (state,) in rows if state != NodeState.FUTURE])


def _check_alive(started: Started) -> None:
    for name, child in started.children.items():
        if child.poll() is not None:
            _give_up(started, name, f"ended at its start ({_ending(child.returncode)})")


def _ending(returncode: int) -> str:
    return f"exit code {returncode}" if returncode >= 0 else f"signal {-returncode}"


def _give_up(started: Started, name: str, what: str) -> NoReturn:
    """End all that was started and say which daemon is to blame.

    Raises:
        LaunchError: always.
    """
    end(started.identities(), NICE_S)
    for child in started.children.values():
        child.wait()
    if not started.joins:
        remove_traces(started.run_dir)
    path = (started.run_dir / "logs").resolve() / f"{name}.log"
    with path.open("rb") as log:
        log.seek(started.log_offsets[name])
        tail = log.read().decode(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    shown = "".join(f"\n    {line}" for line in tail) or "\n    (nothing)"
    others = "" if started.joins else "; the other daemons have been ended"
    raise LaunchError(f"{name} {what}{others}. The end of {path}:{shown}")


def orphans(run_dir: Path) -> list[Process]:
    """What stands between jobs and a node daemon that may have died (see understudy.noded.real and
    real_steps on the files).
    """
    found = (
        read_pid_file(path)
        for kind in ("stepd", "taskd")
        for path in sorted(run_dir.glob(f"spool/*/{kind}.*"))
    )
    return [process for process in found if process is not None and process.is_running]


def stop(run_dir: Path, started: Started | None = None, patience_s: float = NICE_S) -> Stopped:
    """End the daemons that run in the directory; remove their pid files, sockets and registration.

    The clock and the agent end last, because the others need them. Scripts of jobs end with their
    node daemon; of those whose daemon had died before, the spool directories tell.
    """
    run_dir = run_dir.resolve()
    alive = running(run_dir)
    # else it would start the others again
    supervisor = [process for process in alive if process.name == SUPERVISOR]
    alive = [process for process in alive if process not in supervisor]
    killed = end(supervisor, patience_s)
    if started is not None:
        known = {process.pid for process in alive}
        alive += [process for process in started.identities() if process.pid not in known]
    last = [process for process in alive if process.name in ("clock", "agent")]
    first = [process for process in alive if process not in last]
    killed += end(first, patience_s) + end(last, patience_s)
    kill(orphans(run_dir))
    if started is not None:
        for child in started.children.values():
            child.wait()
    remove_traces(run_dir)
    ended = [process.name for process in supervisor + first + last]
    return Stopped(ended, [process.name for process in killed])
