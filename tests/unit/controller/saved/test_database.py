"""The state in a file and on a PostgreSQL server: the same statements, the same guarantees."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import pytest
from controller_harness import Harness, make_tables
from database_servers import postgresql
from sqlalchemy import make_url

from understudy.controller.accounting.queue import QueueFile
from understudy.controller.saved.database import DatabaseError, LockedError, open_database
from understudy.controller.saved.lease import Lease, LeaseLostError
from understudy.controller.saved.records import StateError
from understudy.controller.saved.store import Batch, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOTHING = Batch([], [], [], [], [], [], [], None, [], [], [])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgresql() as url:
        yield url


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A folder, or the URL of a server without tables."""
    if request.param == "file":
        return tmp_path
    url: str = request.getfixturevalue("server")
    database = open_database(url, "test", busy_s=5.0)
    database.execute("DROP SCHEMA public CASCADE")
    database.execute("CREATE SCHEMA public")
    database.close()
    return url


def open_lease(place: Path | str, name: str) -> Lease:
    return Lease(place if isinstance(place, str) else place / "state.sqlite", name, 60.0)


def test_what_was_written_is_read_and_replaced(place: Path | str) -> None:
    store = Store(place)
    store.write(
        NOTHING._replace(
            jobs=[(1, b"\0one"), (2, b"two")],
            scripts=[(1, "#!/bin/sh\n# 50% \u00e4\n")],
            documents=[("a", b"x"), ("b", b"y")],
            submissions=[(1000, "t", 1), (1000, "u", 2)],
            usage=[(3, 0.25)],
        )
    )
    store.write(
        NOTHING._replace(
            jobs=[(2, b"again")],
            forgotten=[(1,)],
            documents=[("a", None), ("b", b"z")],
            submissions=[(1000, "t", None), (1000, "u", 3)],
        )
    )
    store.close()
    database = Store(place)._database
    tables = {
        table: list(database.execute(f"SELECT * FROM {table}"))
        for table in ("jobs", "scripts", "documents", "submissions", "usage")
    }
    assert tables == {
        "jobs": [(2, b"again")],
        "scripts": [],
        "documents": [("b", b"z")],
        "submissions": [(1000, "u", 3)],
        "usage": [(3, 0.25)],
    }
    database.close()


def test_a_write_that_fails_leaves_nothing(place: Path | str) -> None:
    store = Store(place)
    with pytest.raises(DatabaseError):
        store.write(NOTHING._replace(jobs=[(1, b"x")], usage=[(1, 1.0), (1, 2.0)]))
    assert list(store._database.execute("SELECT * FROM jobs")) == []
    store.write(NOTHING._replace(jobs=[(1, b"x")]))
    store.close()


def test_who_has_lost_the_lease_can_write_nothing(place: Path | str) -> None:
    old, new = open_lease(place, "controller"), open_lease(place, "backup1")
    assert old.take(old.read())
    store = Store(place)
    store.fence = old.fence
    store.write(NOTHING._replace(jobs=[(1, b"x")]))
    seen = new.read()
    assert new.take(seen)
    assert not old.take(seen)
    with pytest.raises(LeaseLostError):
        store.write(NOTHING._replace(jobs=[(1, b"y")]))
    with pytest.raises(LeaseLostError):
        old.beat()
    assert dict(store._database.execute("SELECT job_id, record FROM jobs")) == {1: b"x"}
    for each in (old, new, store):
        each.close()


def test_who_stands_still_within_a_write_on_a_server_has_his_session_ended(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.controller.saved.lease._BUSY_S", 0.1)
    old, new = open_lease(server, "controller"), open_lease(server, "backup1")
    assert old.take(old.read())
    store = Store(server, "controller")
    store.fence = old.fence
    with contextlib.ExitStack() as stack:
        stack.enter_context(pytest.raises(DatabaseError))
        database = stack.enter_context(store._writing())
        with pytest.raises(LockedError):
            new.take(new.read())
        assert new.take(new.read(), by_force=True)
        database.execute("DELETE FROM jobs")
    with pytest.raises(DatabaseError):
        old.beat()
    with pytest.raises(LeaseLostError):  # on a new connection
        old.beat()
    for each in (old, new, store):
        each.close()


def test_no_text_keeps_a_server_from_writing(server: str) -> None:
    store = Store(server)
    store.write(NOTHING._replace(submissions=[(1, "a\0b", 7), (1, "c\udc80", 8)]))
    texts = [row[0] for row in store._database.execute("SELECT token FROM submissions")]
    assert sorted(texts) == ["a\ufffdb", "c?"]
    store.close()


def test_of_two_who_open_the_queue_the_last_may_write(place: Path | str) -> None:
    file = place if isinstance(place, str) else place / "accounting.sqlite"
    first, second = (
        QueueFile(open_database(file, name, busy_s=1.0), fence)
        for fence, name in ((1, "controller"), (2, "backup1"))
    )
    first.write([], [1])
    assert second._database.read_locked("SELECT number FROM fence").fetchone()[0] == 2
    first.close()
    second.close()


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("mysql+pymysql://u:secret@h/d", "the state may be in PostgreSQL alone"),
        ("no url", "the state cannot be had"),
        ("postgresql+psycopg://u:secret@127.0.0.1:1/d", "the state cannot be had"),
    ],
)
def test_a_server_that_cannot_be_used_is_said_to_be_none(url: str, text: str) -> None:
    with pytest.raises(StateError, match=text) as error:
        open_database(url, "controller", busy_s=1.0)
    assert "secret" not in str(error.value)


def test_a_server_without_its_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StateError, match=r"psycopg.*pip install 'understudy\[postgresql\]'"):
        open_database("postgresql+psycopg://u@127.0.0.1:1/d", "controller", busy_s=1.0)


def test_a_state_belongs_to_one_cluster(place: Path | str) -> None:
    lease, other = open_lease(place, "controller"), open_lease(place, "controller")
    lease.belong_to("Alpha")
    lease.take(lease.read())
    other.belong_to("alpha")
    with pytest.raises(StateError, match=r'is the state of cluster "Alpha".*ClusterName=beta'):
        other.belong_to("beta")
    assert lease.beat().fence == 1
    lease.close()
    other.close()


def test_whose_a_state_is_is_seen_while_its_leader_stands_still_within_a_write(
    place: Path | str,
) -> None:
    """A backup controller that starts then must not end for it."""
    lease = open_lease(place, "controller")
    lease.belong_to("alpha")
    backup = open_lease(place, "backup1")
    with lease._database.transaction():
        lease._database.execute("UPDATE lease SET beats = beats + 1")
        backup.belong_to("alpha")
    lease.close()
    backup.close()


def test_no_message_has_the_password_of_a_server(server: str) -> None:
    url = make_url(server).set(password="0pen-Sesame").render_as_string(hide_password=False)
    store, lease = Store(url), open_lease(url, "controller")
    lease.belong_to("alpha")
    messages = [message_of(lambda: lease.belong_to("beta"))]
    store._database.execute("INSERT INTO jobs VALUES (1, ?)", (b"\xc1",))
    messages.append(message_of(lambda: store.read(Harness(make_tables(), daemons={}).core)))
    store._database.set_version(99)
    messages.append(message_of(lambda: Store(url)))
    store._database.execute("DROP SCHEMA public CASCADE")
    store._database.execute("CREATE SCHEMA public")
    store.close()
    lease.close()
    for message in messages:
        assert "0pen-Sesame" not in message
        assert "***@" in message or "localhost" in message


def message_of(refused: Callable[[], object]) -> str:
    with pytest.raises(StateError) as raised:
        refused()
    return str(raised.value)
