"""The lease under which the saved state is written: one controller has it at a time, and who has
lost it can write nothing.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from understudy.controller.saved.database import LockedError, open_database
from understudy.controller.saved.lease import Lease, LeaseLostError, check, this_process
from understudy.controller.saved.records import StateError
from understudy.controller.saved.store import Batch, Store

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 10.0
NOTHING = Batch([], [], [], [], [], [], [], None, [], [], [])


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def open_lease(path: Path, name: str, clock: Clock, timeout_s: float | None = TIMEOUT_S) -> Lease:
    return Lease(path / "state.sqlite", name, timeout_s, clock=clock)


def test_it_is_held_until_its_time_is_over_unless_the_holder_beats(
    tmp_path: Path, clock: Clock
) -> None:
    lease = open_lease(tmp_path, "controller", clock)
    assert not lease.holds()
    assert lease.take(lease.read())
    clock.now += 9.9
    assert lease.holds()
    assert lease.beat().beats == 2
    clock.now += 9.9
    assert lease.holds()
    clock.now += 0.1
    assert not lease.holds()


def test_who_paused_for_too_long_acts_again_only_if_nobody_has_taken_the_lease(
    tmp_path: Path, clock: Clock
) -> None:
    lease, other = (open_lease(tmp_path, name, clock) for name in ("controller", "backup1"))
    assert not lease.may_act()
    assert lease.take(lease.read())
    clock.now += 60.0
    assert lease.may_act()
    assert lease.holds()
    clock.now += 60.0
    assert other.take(other.read())
    assert not lease.may_act()
    assert not lease.may_act()
    assert other.may_act()


def test_who_cannot_beat_when_the_time_is_over_has_lost_the_lease_for_good(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.controller.saved.lease._BUSY_S", 0.0)
    lease = open_lease(tmp_path, "controller", clock)
    assert lease.take(lease.read())
    locked = sqlite3.connect(tmp_path / "state.sqlite", isolation_level=None)
    locked.execute("BEGIN IMMEDIATE")
    assert lease.may_act()
    clock.now += 60.0
    assert not lease.may_act()
    locked.execute("ROLLBACK")
    assert not lease.may_act()
    locked.close()


def test_who_has_no_rivals_holds_it_for_ever(tmp_path: Path, clock: Clock) -> None:
    lease = open_lease(tmp_path, "controller", clock, None)
    assert lease.take(lease.read())
    clock.now += 1e9
    assert lease.holds()


def test_of_two_who_take_what_both_have_seen_one_gets_it(tmp_path: Path, clock: Clock) -> None:
    first, second = (open_lease(tmp_path, name, clock) for name in ("backup1", "backup2"))
    seen = first.read()
    assert [each.take(seen) for each in (second, first)] == [True, False]
    row = first.read()
    assert (row.holder, row.fence, second.fence, first.fence) == ("backup2", 1, 1, 0)
    assert row.process == this_process()


def test_who_has_lost_it_can_neither_beat_nor_write_nor_give_it_away(
    tmp_path: Path, clock: Clock
) -> None:
    old, new = (open_lease(tmp_path, name, clock) for name in ("controller", "backup1"))
    assert old.take(old.read())
    store = Store(tmp_path)
    store.fence = old.fence
    store.write(NOTHING._replace(state=[("next_job_id", 5)]))
    assert new.take(new.read())
    with pytest.raises(LeaseLostError):
        store.write(NOTHING._replace(state=[("next_job_id", 6)]))
    old.leave_to("backup2")
    assert new.read().holder == "backup1"
    with pytest.raises(LeaseLostError):
        old.beat()
    assert not old.holds()
    other = sqlite3.connect(tmp_path / "state.sqlite")
    assert other.execute("SELECT value FROM state").fetchall() == [(5,)]
    check(open_database(tmp_path / "state.sqlite", "x", busy_s=1.0), new.fence)


def test_it_is_asked_for_declined_and_left_to_who_asked(tmp_path: Path, clock: Clock) -> None:
    leader, backup = (open_lease(tmp_path, name, clock) for name in ("controller", "backup1"))
    assert leader.take(leader.read())
    backup.want("unreachable")
    row = leader.beat()
    assert (row.wanted, row.because) == ("backup1", "unreachable")
    leader.decline("backup2")
    assert leader.read().wanted == "backup1"
    leader.decline("backup1")
    assert leader.read().wanted == ""
    leader.leave_to("backup1")
    assert not leader.holds()
    row = backup.read()
    assert (row.holder, row.wanted) == ("", "backup1")
    assert backup.take(row)
    assert backup.fence == 2


STANDS_STILL = """
import sqlite3, sys
from pathlib import Path
from understudy.controller.saved.database import LockedError, open_database
from understudy.controller.saved.lease import Lease
path = Path(sys.argv[1])
lease = Lease(path, "controller", 10.0)
assert lease.take(lease.read())
database = sqlite3.connect(path, isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


ONE_LOCKS_AND_ONE_HAS_IT_OPEN = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("SELECT * FROM lease").fetchall()
database.execute(sys.argv[2]).fetchall()
print("there", flush=True)
sys.stdin.read()
"""


def test_who_stands_still_within_a_write_is_killed_by_who_takes_the_lease(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", STANDS_STILL, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as stuck:
        assert stuck.stdout is not None
        assert stuck.stdout.readline() == b"locked\n"
        os.kill(stuck.pid, signal.SIGSTOP)
        monkeypatch.setattr("understudy.controller.saved.lease._BUSY_S", 0.2)
        lease = open_lease(tmp_path, "backup1", clock)
        with pytest.raises(LockedError, match="locked"):
            lease.take(lease.read())
        assert lease.take(lease.read(), by_force=True)
        assert lease.fence == 2
        assert stuck.wait() == -signal.SIGKILL


@pytest.mark.parametrize("one_host", [True, False])
def test_of_those_who_lock_the_database_only_who_was_stopped_is_ended(
    tmp_path: Path, clock: Clock, *, one_host: bool
) -> None:
    path = tmp_path / "state.sqlite"
    lease = Lease(path, "backup1", 10.0, one_host=one_host, clock=clock)
    words = [sys.executable, "-c", ONE_LOCKS_AND_ONE_HAS_IT_OPEN, str(path)]
    locks, other = (
        subprocess.Popen([*words, text], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for text in ("BEGIN IMMEDIATE", "SELECT 1")
    )
    with locks, other:
        for each in (locks, other):
            assert each.stdout is not None
            assert each.stdout.readline() == b"there\n"
        lease.end_stopped()
        assert locks.poll() is None
        for each in (locks, other):
            os.kill(each.pid, signal.SIGSTOP)
            os.waitpid(each.pid, os.WUNTRACED)
        lease.end_stopped()
        assert locks.wait() == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
    assert lease.take(lease.read())


def test_a_process_of_another_boot_or_another_life_is_left_alone(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.controller.saved.lease._BUSY_S", 0.2)
    lease = open_lease(tmp_path, "backup1", clock)
    other = sqlite3.connect(tmp_path / "state.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    boot, pid, start = this_process().split()
    own = f"{boot} {pid} {start}"  # as of a controller that has begun anew
    for process in (f"another {pid} {start}", f"{boot} {pid} {int(start) - 1}", own, ""):
        with pytest.raises(LockedError, match="locked"):
            lease.take(lease.read()._replace(process=process), by_force=True)


def test_what_is_no_database_is_said_to_be_none(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "state.sqlite").write_text("no database at all, but a text of some length" * 30)
    with pytest.raises(StateError, match="not a database"):
        open_lease(tmp_path, "controller", clock)
