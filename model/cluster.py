"""One running cluster as its run directory describes it: `cluster.json`, which every daemon and
`understudy` read.

Place: the vocabulary; written by `understudy up` and `understudy replay`, read by every daemon's
main and by the commands' look-up.

RUN_DIR/
    cluster.json   this description
    slurm.conf     the configuration in use (a copy; includes resolved)
    keys/          a private key of each daemon that runs here, and the public ones of all
    clock.json     how scaled time goes, for a clock service that starts again
    *.pid  *.sock  logs/NAME.log  state/ (the controller's)  accounting/ (its database)  spool/NAME/
           (each node daemon's)
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from understudy.model.cadence import Cadence
from understudy.model.hostlist import compress, expand

if TYPE_CHECKING:
    from pathlib import Path


SLURM_VERSION: Final = "22.05.8"  # of the Slurm whose behaviour the daemons follow


FLAT: Final = -1  # a tree's width
SPARE_DESCRIPTORS: Final = 128  # ours: of a process, for what is not a hop


@dataclass(slots=True)
class NodeDaemon:
    """One node daemon: its name among the participants, its address, and the nodes (host list
    expression) for which it stands.
    """

    name: str
    address: str
    nodes: str


CONTROLLER: Final = "controller"  # the primary's name among the daemons
_BACKUP: Final = "backup"  # backup1, backup2 ...


def backup_name(number: int) -> str:
    """The name among the daemons of a backup controller; they count from 1."""
    return f"{_BACKUP}{number}"


def is_backup(name: str) -> bool:
    """Whether a daemon of this name is a backup controller."""
    return name.startswith(_BACKUP)


def is_controller(name: str) -> bool:
    """Whether a daemon of this name is the primary controller or a backup."""
    return name == CONTROLLER or is_backup(name)


@dataclass(slots=True)
class Backup:
    """A backup controller: its name among the daemons, its SlurmctldHost, and its addresses as the
    primary has them.
    """

    name: str
    host: str
    address: str = ""
    unix: str = ""


@dataclass(slots=True)
class Hops:
    """Messages to many nodes go through sockets, each node a hop of its own (`understudy up --hops
    sockets`).
    """

    width: int = 0  # of the tree; 0: TreeWidth; FLAT: the sender tells all nodes itself
    latency_ms: float = 0.0  # the mean over the links
    loss: float = 0.0  # probability, of each message and of each answer
    deaths: float = 0.0  # probability that a node dies with a message that it is to hand on
    seed: int = 0
    tcp: bool = False  # over loopback TCP; else over Unix sockets


@dataclass(slots=True)
class Cluster:
    """Addresses are `tcp:HOST:PORT` or `unix:PATH`. `epoch` is the cluster's time, in seconds, at
    the start of virtual or scaled time.
    """

    name: str
    conf: str  # the file that the user named
    time: str = "real"  # real, scaled, virtual
    rate: float = 1.0
    epoch: float = 0.0
    # where "30d" of `understudy clock break 30d` counts from: a trace's zero; the epoch if 0
    zero: float = 0.0
    executor: str = "emulated"  # emulated, real
    state: str = "disk"  # disk, memory
    # accounting and the node daemons are in the controller's process, which can be forked
    one_process: bool = False
    controller: str = ""  # its TCP address; "": nobody asked for one
    # for daemons and commands on the same host; "": each daemon has a host of its own
    controller_unix: str = ""
    controller_host: str = ""  # the first SlurmctldHost
    backups: list[Backup] = field(default_factory=list)  # in the order of slurm.conf
    state_dir: str = ""  # which the controllers share; "": RUN_DIR/state
    # SQLAlchemy's, of a PostgreSQL server in place of it; or a file in memory, where all is one
    # process
    state_url: str = ""
    agent: str = ""
    clock: str = ""
    zygote: str = ""  # for commands of who started the cluster; "": they start by themselves
    # the same of the accounting daemon; neither: there is none (`keeps_accounting`)
    accounting: str = ""
    accounting_unix: str = ""
    accounting_url: str = ""  # SQLAlchemy's, of its database; "": SQLite in the run directory
    key_folder: str = ""
    nodeds: list[NodeDaemon] = field(default_factory=list)
    hops: Hops | None = None  # None: hops between nodes of one node daemon are taken in memory
    # for whom virtual time waits before it begins
    participants: list[str] = field(default_factory=list)
    latency_s: float = 0.001
    # "controller>noded1": seconds added
    link_latency: dict[str, float] = field(default_factory=dict)
    limit_s: float = 60.0  # real seconds after which a silent participant is named dead
    # virtual time is a chain of messages: all on one CPU avoids wake-ups across CPUs; -1: no
    # pinning
    cpu: int = -1
    default_run_s: float = 1.0  # an emulated job of which nobody said how long it runs
    cadence: Cadence = field(default_factory=Cadence)  # of the controller's threads
    # what an emulated job takes beside its run: launch and the news of its end
    job_overhead_s: float = 0.0
    # work of an emulated machine for each job that it launches; it works at several at once, and
    # none of them begins before the last is launched
    job_launch_s: float = 0.0
    # what an emulated script that is told to end takes until nothing of it is left
    kill_s: float = 0.0
    epilog_s: float = 0.0  # how long emulated nodes take to be free after a job's end
    # emulated scripts are as `sleep`: their time goes on while they are stopped
    sleeps_while_stopped: bool = False
    # user names and numbers beside the host's own
    users: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    # backfill's promises that decide nothing wait until somebody asks, under virtual time: for long
    # traces
    plans_when_asked: bool = False
    # MaxJobCount and MaxJobId bound nothing: a trace is as long as it is
    is_unbounded: bool = False
    is_open: bool = False  # node daemons may join: `slurmd`
    log_level: str = ""  # of all daemons, in place of what slurm.conf says
    # HOST:PORT by daemon, where Prometheus finds its figures; the others have none
    metrics: dict[str, str] = field(default_factory=dict)
    user_id: int = 0  # who started the cluster: its SlurmUser, beside root

    @property
    def keeps_accounting(self) -> bool:
        """Whether there is an accounting daemon."""
        return bool(self.accounting or self.accounting_unix)

    @property
    def branch_socket(self) -> str:
        """The path at which a cluster in one process is asked to fork, beside the controller's."""
        return f"{os.path.dirname(self.controller_unix.removeprefix('unix:'))}/branch.sock"

    @property
    def controllers(self) -> dict[str, str]:
        """The addresses of the controllers by name, the primary first."""
        primary = {CONTROLLER: self.controller_unix or self.controller}
        return primary | {each.name: each.unix or each.address for each in self.backups}

    def listening(self, name: str) -> list[str]:
        """Where the controller of this name listens."""
        for each in self.backups:
            if each.name == name:
                return [address for address in (each.address, each.unix) if address]
        return [address for address in (self.controller, self.controller_unix) if address]

    def address_of(self, name: str) -> str:
        """Where the daemon of this name listens, "" if nowhere. Node daemons and backup controllers
        are listed; each other has a field of its name, one of `NAME_unix`, or both.
        """
        for noded in self.nodeds:
            if noded.name == name:
                return noded.address
        for each in self.backups:
            if each.name == name:
                return each.unix or each.address
        return getattr(self, name, "") or getattr(self, f"{name}_unix", "")

    def save(self, run_dir: Path) -> None:
        """Write cluster.json so that a reader sees the old or the new file, never a part."""
        temporary = run_dir / f"cluster.json.{os.getpid()}"
        # a database's address has a password in it
        temporary.touch(0o600 if self.accounting_url else 0o644)
        temporary.write_text(json.dumps(asdict(self), indent=1) + "\n")
        temporary.replace(run_dir / "cluster.json")

    def join(self, name: str, address: str, nodes: list[str]) -> None:
        """A node daemon stands for these nodes from now on, and no other does."""
        mine = set(nodes)
        others = []
        for each in self.nodeds:
            left = [node for node in expand(each.nodes) if node not in mine]
            if each.name != name and left:
                others.append(NodeDaemon(each.name, each.address, compress(left, sort=False)))
        self.nodeds = [*others, NodeDaemon(name, address, compress(nodes, sort=False))]

    @classmethod
    def load(cls, run_dir: Path) -> Cluster:
        """Read RUN_DIR/cluster.json.

        Raises:
            FileNotFoundError, ValueError, TypeError: not a run directory, or not one of this
            version.
        """
        path = run_dir / "cluster.json"
        fields = json.loads(path.read_text())
        if not isinstance(fields, dict):
            raise ValueError(f"{path} describes no cluster")  # noqa: TRY004  it is what is in a file
        if strange := fields.keys() - cls.__slots__:
            raise ValueError(
                f"{path} is of another version of Understudy ({', '.join(sorted(strange))}): "
                "`understudy up` on this directory describes the cluster anew and keeps its state"
            )
        fields["cadence"] = Cadence(**fields.get("cadence", {}))
        if fields.get("hops") is not None:
            fields["hops"] = Hops(**fields["hops"])
        fields["backups"] = [Backup(**each) for each in fields.get("backups", [])]
        fields["nodeds"] = [NodeDaemon(**each) for each in fields.get("nodeds", [])]
        return cls(**fields)
