"""Throw-away PostgreSQL and MariaDB servers for tests: each with a data directory of its own, a
Unix socket, no port, an unprivileged user.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

PATIENCE_S = 60.0
# Debian's and others' places beside PATH.
_POSTGRES = ("/usr/lib/postgresql/*/bin/postgres",)
_MARIADB = ("/usr/sbin/mariadbd", "/usr/libexec/mariadbd", "/usr/local/sbin/mariadbd")


def find(name, patterns):
    """The newest of the programs, or None."""
    found = [
        path
        for pattern in patterns
        for path in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)
        if os.access(path, os.X_OK)
    ]
    on_path = shutil.which(name)
    return str(found[0]) if found else on_path


@contextlib.contextmanager
def folder():
    """A short path, for sockets' paths are limited, that the unprivileged user owns."""
    path = Path(tempfile.mkdtemp(prefix="udb"))
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    if user is not None:
        os.chown(path, user.pw_uid, user.pw_gid)
    try:
        yield (
            path,
            (
                {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
                if user is not None
                else {}
            ),
        )
    finally:
        shutil.rmtree(path, ignore_errors=True)


def wait(server, ready, log):
    """Return when the server answers."""
    until = time.monotonic() + PATIENCE_S
    while not ready():
        if server.poll() is not None or time.monotonic() > until:
            pytest.fail(f"the database server has not come up:\n{log.read_text()[-3000:]}")
        time.sleep(0.05)


@contextlib.contextmanager
def postgresql():
    """A running server; gives the URL."""
    program = find("postgres", _POSTGRES)
    if program is None:
        pytest.skip(
            "PostgreSQL is not installed (no postgres in /usr/lib/postgresql/*/bin or on PATH)"
        )
    psycopg = pytest.importorskip("psycopg", reason="the psycopg package is not installed")
    program = os.path.realpath(program)
    initdb = str(Path(program).with_name("initdb"))
    with folder() as (path, who):
        subprocess.run(
            [
                initdb,
                "-D",
                str(path / "data"),
                "-U",
                "understudy",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-sync",
            ],
            check=True,
            capture_output=True,
            cwd=path,
            **who,
        )
        log = path / "log"
        settings = [
            "-c",
            "listen_addresses=",
            "-c",
            f"unix_socket_directories={path}",
            "-c",
            "fsync=off",
        ]
        with log.open("wb") as stream:
            server = subprocess.Popen(
                [program, "-D", str(path / "data"), *settings],
                stdout=stream,
                stderr=stream,
                cwd=path,
                **who,
            )
        url = f"postgresql+psycopg://understudy@/postgres?host={path}"

        def ready():
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(host=str(path), user="understudy", dbname="postgres").close()
                return True
            return False

        try:
            wait(server, ready, log)
            yield url
        finally:
            server.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown
            server.wait(PATIENCE_S)


@contextlib.contextmanager
def mariadb():
    """A running server; gives the URL. It needs no system tables, because it asks nobody who he
    is.
    """
    program = find("mariadbd", _MARIADB)
    if program is None:
        pytest.skip("MariaDB is not installed (no mariadbd in /usr/sbin or on PATH)")
    pymysql = pytest.importorskip("pymysql", reason="the pymysql package is not installed")
    with folder() as (path, who):
        data = path / "data"
        subprocess.run(["mkdir", str(data)], check=True, **who)
        log, sock = path / "log", path / "sock"
        share = next(
            (
                each
                for each in (Path(program).parents[1] / "share" / "mysql", Path("/usr/share/mysql"))
                if each.is_dir()
            ),
            None,
        )
        texts = (
            [f"--lc-messages-dir={share}", f"--character-sets-dir={share}/charsets"]
            if share is not None
            else []
        )
        command = [
            program,
            "--no-defaults",
            f"--datadir={data}",
            f"--socket={sock}",
            "--skip-networking",
            "--skip-grant-tables",
            *texts,
        ]
        with log.open("wb") as stream:
            server = subprocess.Popen(
                [
                    *command,
                    f"--pid-file={path}/pid",
                    "--innodb-buffer-pool-size=32M",
                    "--innodb-flush-log-at-trx-commit=0",
                ],
                stdout=stream,
                stderr=stream,
                cwd=path,
                **who,
            )

        def ready():
            return b"ready for connections" in log.read_bytes() and sock.exists()

        try:
            wait(server, ready, log)
            with contextlib.closing(
                pymysql.connect(unix_socket=str(sock), user="root")
            ) as connection:
                connection.cursor().execute("CREATE DATABASE understudy")
            yield f"mariadb+pymysql://root@localhost/understudy?unix_socket={sock}&charset=utf8mb4"
        finally:
            server.terminate()
            server.wait(PATIENCE_S)
