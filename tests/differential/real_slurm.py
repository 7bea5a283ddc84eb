"""A private cluster of real Slurm on loopback: MUNGE, MariaDB and slurmdbd if wanted, slurmctld,
and one slurmd a node, all in one folder. It needs root, as slurmd does.
"""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from ports import reserved

from understudy.model import hostlist

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "mariadb-install-db")
PATIENCE_S = 90.0
_INSTALLING = threading.Lock()  # a database, of all that are started by threads
USERS = {f"fu{number}": 7100 + number for number in range(1, 9)}
GROUP = "fu"
DAEMONS_CONF = """
ClusterName={cluster}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/%n.log
"""
DBD_CONF = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql_port}
StorageUser=root
StorageLoc=slurm_acct
LogFile={folder}/dbd.log
PidFile={folder}/dbd.pid
"""


class RealSlurmError(Exception):
    """The cluster did not come up; the text says what did not."""


def missing() -> str:
    """Why it cannot run here, or nothing."""
    if os.geteuid() != 0:
        return "real Slurm's slurmd needs root"
    lacking = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    return f"real Slurm is not installed: no {', '.join(lacking)}" if lacking else ""


def end_on_sigterm() -> None:
    """Have SIGTERM end what runs, too; a second one does not cut that short."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(143)

    signal.signal(signal.SIGTERM, end)


def make_users() -> None:
    """The recordings' users, where the machine has them not."""
    with contextlib.suppress(KeyError):
        for name in USERS:
            pwd.getpwnam(name)
        return
    with contextlib.suppress(KeyError):
        grp.getgrnam(GROUP)
    subprocess.run(["groupadd", "-f", "-g", "7100", GROUP], check=True)
    for name, uid in USERS.items():
        with contextlib.suppress(KeyError):
            pwd.getpwnam(name)
            continue
        words = ["useradd", "-M", "-N", "-u", str(uid), "-g", GROUP, "-d", "/tmp", name]
        subprocess.run(words, check=True, capture_output=True)


def with_ports(conf: str, ports: list[int]) -> tuple[str, list[str]]:
    """The configuration with an address and a port for each node, and the nodes."""
    lines: list[str] = []
    nodes: list[str] = []
    for line in conf.splitlines():
        match = re.match(r"\s*NodeName=(\S+)(.*)", line, re.IGNORECASE)
        if match is None or match[1].upper() == "DEFAULT":
            lines.append(line)
            continue
        for name in hostlist.expand(match[1]):
            port = ports[len(nodes)]
            lines.append(f"NodeName={name} NodeAddr=127.0.0.1 Port={port}{match[2]}")
            nodes.append(name)
    return "\n".join(lines) + "\n", nodes


def node_count(conf: str) -> int:
    return sum(
        hostlist.count(match)
        for match in re.findall(r"^\s*NodeName=(\S+)", conf, re.IGNORECASE | re.MULTILINE)
        if match.upper() != "DEFAULT"
    )


class RealSlurm:
    """The cluster of a configuration: the lines of a slurm.conf without hosts, ports and places,
    and files that lie beside it.
    """

    def __init__(
        self,
        folder: Path,
        conf: str,
        *,
        files: dict[str, str] | None = None,
        accounting: bool = False,
        cluster: str = "cluster",
    ) -> None:
        self.folder, self.conf, self.files = folder, conf, files or {}
        self.accounting, self.cluster = accounting, cluster
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM", "SBATCH", "SQUEUE", "SINFO", "SACCT", "UNDERSTUDY"))
        } | {"PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf"), "LC_ALL": "C", "TZ": "UTC"}
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.nodes: list[str] = []

    def run(
        self, *words: str, user: str = "root", timeout_s: float = 60, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Type a command, as that user, in the folder `home`."""
        return subprocess.run(
            words, env=self.environment | more, cwd=self.folder / "home", user=user,
            group=pwd.getpwnam(user).pw_gid, extra_groups=[], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", check=False, timeout=timeout_s,
        )  # fmt: skip

    @contextlib.contextmanager
    def up(self, *, accounts: list[list[str]] | None = None) -> Iterator[RealSlurm]:
        """The cluster until the end of the block; `accounts` are words of `sacctmgr -i`, run
        before the controller starts.
        """
        with self.ready(accounts=accounts):
            self.start_controller()
            self.wait_for_nodes()
            yield self

    @contextlib.contextmanager
    def ready(self, *, accounts: list[list[str]] | None = None) -> Iterator[RealSlurm]:
        """All but the controller runs."""
        with reserved(4 + node_count(self.conf)) as ports:
            self._write(ports)
            try:
                self._start_munge()
                if self.accounting:
                    self._start_accounting(accounts or [])
                yield self
            finally:
                self.stop()

    def start_controller(self) -> None:
        self._start("slurmctld", "-D", "-c")
        for name in self.nodes:
            (self.folder / "spool" / name).mkdir(exist_ok=True)
            self._start("slurmd", "-D", "-c", "-N", name, name=name)

    def stop(self) -> None:
        """End all that was started, the last first."""
        if "slurmctld" in self.daemons:
            self.run("scancel", "-u", ",".join([*USERS, "root"]))
        for name, daemon in reversed(self.daemons.items()):
            daemon.terminate()
            if not name.startswith(("n", "slurmctld")):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    daemon.wait(20)
        for daemon in self.daemons.values():
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.daemons.clear()

    def wait_for_nodes(self) -> None:
        idle = ("sinfo", "-h", "-N", "-t", "idle", "-o", "%N")
        self._until(
            lambda: set(self.run(*idle).stdout.split()), lambda names: names == set(self.nodes)
        )

    def _until(self, look, good) -> None:  # type: ignore[no-untyped-def]
        end = time.monotonic() + PATIENCE_S
        while not good(look()):
            dead = [name for name, each in self.daemons.items() if each.poll() is not None]
            if dead or time.monotonic() > end:
                raise RealSlurmError(f"not up; ended: {dead}; {self.folder}")
            time.sleep(0.1)

    def _start(self, *words: str, name: str = "") -> None:
        with (self.folder / "printed").open("ab") as printed:
            self.daemons[name or words[0]] = subprocess.Popen(
                words,
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )

    def _write(self, ports: list[int]) -> None:
        self.folder.chmod(0o755)
        for name in ("home", "state", "spool", "munge"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "home").chmod(0o1777)
        values = {
            "cluster": self.cluster,
            "host": socket.gethostname().partition(".")[0],
            "folder": self.folder,
            "port": ports[0],
            "node_port": ports[1],
            "dbd_port": ports[2],
            "sql_port": ports[3],
        }
        conf, self.nodes = with_ports(self.conf, ports[4:])
        head = DAEMONS_CONF.format(**values)
        if self.accounting:
            head += (
                "AccountingStorageType=accounting_storage/slurmdbd\n"
                f"AccountingStorageHost=127.0.0.1\nAccountingStoragePort={ports[2]}\n"
                f"AccountingStoragePass={self.folder}/munge.sock\n"
            )
        (self.folder / "slurm.conf").write_text(head + conf)
        for name, text in self.files.items():
            (self.folder / name).write_text(text)
        dbd = self.folder / "slurmdbd.conf"
        dbd.write_text(DBD_CONF.format(**values))
        dbd.chmod(0o600)
        self.sql_port = ports[3]

    def _start_munge(self) -> None:
        munge = self.folder / "munge"
        munge.chmod(0o700)
        (munge / "key").write_bytes(os.urandom(64))
        (munge / "key").chmod(0o600)
        socket_path = self.folder / "munge.sock"
        files = (f"--key-file={munge}/key", f"--socket={socket_path}")
        files += (f"--pid-file={munge}/pid", f"--seed-file={munge}/seed", f"--log-file={munge}/log")
        self._start("munged", "--foreground", "--force", *files)
        self._until(socket_path.exists, bool)

    def _start_accounting(self, accounts: list[list[str]]) -> None:
        data, sock = self.folder / "sql", self.folder / "sql.sock"
        for last in (False, False, True):  # several at once get in each other's way
            with _INSTALLING:
                made = subprocess.run(
                    ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--user=root",
                     "--auth-root-authentication-method=normal", "--skip-test-db"],
                    check=last, capture_output=True, env=self.environment,
                )  # fmt: skip
            if made.returncode == 0:
                break
            shutil.rmtree(data, ignore_errors=True)
        self._start(
            "mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={sock}", "--user=root",
            "--bind-address=127.0.0.1", f"--port={self.sql_port}", f"--pid-file={data}/pid",
            "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0",
        )  # fmt: skip
        self._until(sock.exists, bool)
        self.start_dbd(accounts)

    def start_dbd(self, accounts: list[list[str]]) -> None:
        self._start("slurmdbd", "-D")
        self._until(
            lambda: self.run("sacctmgr", "-n", "show", "cluster").returncode, lambda code: not code
        )
        self.run("sacctmgr", "-i", "add", "cluster", self.cluster)
        for words in accounts:
            done = self.run("sacctmgr", "-i", *words)
            if done.returncode:
                raise RealSlurmError(f"sacctmgr {' '.join(words)}: {done.stdout}{done.stderr}")
