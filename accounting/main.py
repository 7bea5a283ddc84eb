"""The accounting daemon: opens the database, answers requests, tells controllers what has changed,
adds up usage.

Place: the top of accounting, its edge. The database is RUN_DIR/accounting/accounting.sqlite unless
cluster.json names another by URL. Work on it holds virtual time. An answer to a change waits until
the controllers concerned have taken it over, so that a job submitted after it is judged by it.
"""

from __future__ import annotations

import argparse
import pwd
import socket
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import SQLAlchemyError

from understudy.accounting.archive import due
from understudy.accounting.change import ACCESS_DENIED
from understudy.accounting.configuration import configuration
from understudy.accounting.core import Accounting, Sender
from understudy.accounting.rollup import HOUR_S, hour_of
from understudy.accounting.store import Store, StoreError
from understudy.clock.daemon import Daemon, load_cluster, run_daemon
from understudy.model.cluster import SLURM_VERSION, Cluster
from understudy.model.dbd_conf import load_beside
from understudy.model.errors import ConfigError, SlurmError
from understudy.model.metrics import Family, Samples
from understudy.protocol.messages import AssociationsChanged, Failure, Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from understudy.protocol.requests import Request

NAME: Final = "accounting"
FROM_DBD_CONF: Final = "slurmdbd.conf"  # in place of a URL
_TELL_S: Final = 10.0  # ours: how long a controller may take to hear of a change
_DATABASE_ERROR: Final = 1


def database_url(cluster: Cluster, run_dir: Path) -> str:
    """Where the database is: named by the cluster, by the slurmdbd.conf beside its slurm.conf if
    the cluster says so, or in the run directory.

    Raises:
        ConfigError: slurmdbd.conf has an error.
    """
    if cluster.accounting_url == FROM_DBD_CONF:
        return load_beside(cluster.conf).url
    if cluster.accounting_url:
        return cluster.accounting_url
    folder = run_dir / "accounting"
    folder.mkdir(mode=0o700, exist_ok=True)
    return f"sqlite:///{folder / 'accounting.sqlite'}"


def user_name(user_id: int) -> str:
    """The name that this host knows; else the number."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


class Server:
    """The core at the messenger."""

    def __init__(self, daemon: Daemon) -> None:
        cluster = daemon.cluster
        self._daemon = daemon
        dbd = load_beside(cluster.conf)
        self._dbd = dbd
        self.store = Store(database_url(cluster, daemon.run_dir), durable=cluster.state == "disk")
        self.core = Accounting(
            self.store,
            now=daemon.time.now,
            superusers=frozenset((0, cluster.user_id)),
            user_name=user_name,
            stop=daemon.stop,
            gathers=cluster.state != "disk",
            configuration=partial(configuration, dbd, self._facts(cluster, dbd.path)),
        )

    def _facts(self, cluster: Cluster, path: str) -> dict[str, str]:
        """What the file need not say."""
        host, _, port = cluster.accounting.removeprefix("tcp:").rpartition(":")
        kind = self.store.engine.dialect.name
        return {
            "BOOT_TIME": time.strftime(
                "%Y-%m-%dT%H:%M:%S", time.localtime(self._daemon.time.now())
            ),
            "DbdHost": socket.gethostname().partition(".")[0],
            "DbdAddr": host or "127.0.0.1",
            **({"DbdPort": port} if port else {}),
            "SLURMDBD_CONF": path,
            "SlurmUser": f"{user_name(cluster.user_id)}({cluster.user_id})",
            "StorageType": f"accounting_storage/{'mysql' if kind == 'mariadb' else kind}",
            "StorageLoc": self.store.engine.url.database or "",
        }

    def start(self) -> None:
        """Serve."""
        if self._daemon.logs is not None:
            self._daemon.logs.configure(
                self._dbd.text("DebugLevel") or "info",
                self._dbd.text("LogTimeFormat") or "iso8601_ms",
            )
        self._daemon.log.info("slurmdbd version %s started", SLURM_VERSION)
        self._daemon.messenger.set_handler(self.handle)
        self._daemon.figures.append(self.figures)
        controllers = self._daemon.cluster.controllers
        for peer, address in controllers.items():
            self._daemon.messenger.add_peer(peer, address)
        self._daemon.at_exit += [self.store.close, self.core.flush]  # in reverse order
        name = self._daemon.cluster.name.lower()
        # a controller that has been running longer than this daemon asks for all again
        for peer in controllers if name in self.core.ledger.clusters else ():
            self._daemon.messenger.send(
                peer, AssociationsChanged(name, 0), lambda _answer: None, _TELL_S
            )
        # An idle virtual cluster has to stand still: there usage is added up when somebody asks for
        # it.
        if not self._daemon.time.is_virtual:
            self._daemon.time.call_at(hour_of(self._daemon.time.now()) + HOUR_S, self._every_hour)

    def figures(self) -> Iterator[Family]:
        """What Prometheus is told."""
        requests = self.core.counters.requests
        counts: Samples = {(name,): float(count) for (name, _), (count, _) in requests.items()}
        total: Samples = {(name,): float(us) for (name, _), (_, us) in requests.items()}
        name, labels = "understudy_accounting_requests", ("operation",)
        yield Family(f"{name}_total", "Requests, by operation.", counts, labels, counts=True)
        text = "Microseconds of all, by operation."
        yield Family(f"{name}_microseconds_total", text, total, labels, counts=True)

    def handle(self, request: Request) -> Message | None:
        """The messenger's handler."""
        if request.sender.is_node:  # nothing here is a node daemon's affair
            return Failure(ACCESS_DENIED, "Access/permission denied")
        sender = Sender(request.sender.name, request.sender.user_id, request.sender.is_daemon)
        try:
            with self._daemon.time.hold():
                answer, tellings = self.core.handle(request.message, sender)
        except SlurmError as error:
            return Failure(error.code, error.text)
        except SQLAlchemyError as error:
            self._daemon.log.error(  # noqa: TRY400  the text says all
                "the database refuses %s: %s", type(request.message).__name__, error
            )
            return Failure(_DATABASE_ERROR, "The accounting database cannot be written or read")
        waiting = len(tellings)
        if not waiting:
            return answer

        def heard(peer: str, reply: Message) -> None:
            nonlocal waiting
            waiting -= 1
            if isinstance(reply, Failure):
                self._daemon.log.warning("%s has not heard of a change: %s", peer, reply.text)
            if not waiting:
                request.reply(answer)

        for peer, telling in tellings:
            self._tell(peer, telling, partial(heard, peer))
        return None

    def _tell(self, peer: str, telling: AssociationsChanged, heard: partial[None]) -> None:
        self._daemon.messenger.send(peer, telling, heard, _TELL_S)

    def _every_hour(self) -> None:
        with self._daemon.time.hold():
            try:
                self.core.roll_up()
                self._purge()
            except SQLAlchemyError as error:
                self._daemon.log.error("usage cannot be added up: %s", error)  # noqa: TRY400  the text says all
            except SlurmError:
                self._daemon.log.error(  # noqa: TRY400  the text says all
                    "archives cannot be written to ArchiveDir, and nothing is purged"
                )
        self._daemon.time.call_at(hour_of(self._daemon.time.now()) + HOUR_S, self._every_hour)

    def _purge(self) -> None:
        """What slurmdbd.conf says of Purge*After and Archive*."""
        self.core.purge(*due(self._dbd, self._daemon.time.now()))


async def start(daemon: Daemon) -> Server:
    """Start accounting on a daemon.

    Raises:
        StoreError: the database cannot be used.
    """
    server = Server(daemon)
    server.start()
    return server


def main(arguments: list[str] | None = None) -> int:
    """Run the accounting daemon of a cluster until told to end. The exit code."""
    parser = argparse.ArgumentParser(
        prog="understudy.accounting", description="The accounting of an emulated cluster."
    )
    parser.add_argument(
        "--run-dir", type=Path, required=True, help="the cluster's run directory, with cluster.json"
    )
    parser.add_argument(
        "--verbose", action="count", default=0, help="log more; several times: still more"
    )
    options = parser.parse_args(arguments)
    cluster = load_cluster(options.run_dir)
    listen = [address for address in (cluster.accounting, cluster.accounting_unix) if address]

    async def start_and_forget(daemon: Daemon) -> None:
        await start(daemon)

    try:
        return run_daemon(options.run_dir, NAME, listen, start_and_forget, verbose=options.verbose)
    except (StoreError, ConfigError) as error:
        print(f"understudy.accounting: {error}")
        return 1
