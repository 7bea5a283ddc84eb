"""Who of several controllers leads: who waits, who takes over when, who leaves it to whom."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import os
import signal
import sqlite3
import subprocess
import sys
from collections import deque
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from understudy.controller.edge.leadership import Leadership
from understudy.controller.saved.lease import Lease
from understudy.model.cluster import Backup, Cluster, NodeDaemon
from understudy.protocol.messages import (
    Failure,
    GetLeader,
    JobSpec,
    Leader,
    Message,
    Ok,
    Ping,
    Shutdown,
    SubmitJob,
    TakeOver,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = 8.0
_TURNS = 10  # of the loop, within which everybody has done what he has to do at an instant
CLUSTER = Cluster(
    "c",
    "",
    controller_unix="unix:/c",
    controller_host="ctl1",
    backups=[Backup("backup1", "ctl2", unix="unix:/b")],
    nodeds=[NodeDaemon("noded0", "unix:/n", "n1")],
)
ROOT = SimpleNamespace(user_id=0, is_daemon=False)
ANN = SimpleNamespace(user_id=1000, is_daemon=False)


class Timer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback, self.is_cancelled = callback, False

    def cancel(self) -> None:
        self.is_cancelled = True


class World:
    """A clock that goes to the next timer when all have had their turn, and who answers."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, 1000.0
        self.answering = {"controller", "backup1", "noded0"}
        self._timers: list[tuple[float, int, Timer]] = []
        self._count = itertools.count()

    def clock(self) -> float:
        return self.now

    def call_after_wait(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        timer = Timer(callback)
        heapq.heappush(self._timers, (self.now + delay_s, next(self._count), timer))
        self._turn(_TURNS)
        return timer

    def _turn(self, left: int) -> None:
        if left:
            asyncio.get_running_loop().call_soon(self._turn, left - 1)
            return
        when, _, timer = heapq.heappop(self._timers)
        if not timer.is_cancelled:
            self.now = max(self.now, when)
            timer.callback()

    def lease(self, name: str) -> Lease:
        return Lease(self.path / "state.sqlite", name, T, clock=self.clock)


class One:
    """One controller, with a wire that answers for those who are there."""

    def __init__(self, world: World, name: str, *, is_first: bool = True) -> None:
        self.world, self.name = world, name
        self.served: list[list[str]] = []  # for each time that it led: what triggers heard
        self.ran: list[str] = []
        self.at_exit: list[Any] = []
        self.ended = asyncio.Event()
        self.daemon: Any = SimpleNamespace(
            name=name,
            cluster=CLUSTER,
            log=logging.getLogger("test"),
            messenger=self,
            time=world,
            at_exit=self.at_exit,
            begins_again=False,
            is_first=is_first,
            stop=self.ended.set,
        )
        self.lease = world.lease(name)
        self.leadership = Leadership(
            self.daemon,
            self.lease,
            hosts={"controller": "ctl1", "backup1": "ctl2"},
            lead=self.lead,
            programs=("on", "off"),
            run=self.ran.append,
            admins=frozenset((0,)),
        )
        self.leadership._do = self._do_here  # type: ignore[method-assign]
        self.may_speak: Any = None

    async def _do_here(self, call: Callable[..., Any], *args: Any) -> Any:
        """No thread, so that the clock knows when all have had their turn."""
        return call(*args)

    def lead(self) -> One:
        self.served.append([])
        self.set_handler(self.serve)  # as the controller does
        return self

    def serve(self, _request: Any) -> Message:
        return Ok()

    def note(self, event: str) -> None:
        self.served[-1].append(event)

    def set_handler(self, handler: Callable[[Any], Message | None]) -> None:
        self.handler = handler

    def add_peer(self, *_: str) -> None: ...

    def send(
        self, peer: str, _message: Message, on_reply: Callable[[Message], None], _timeout_s: float
    ) -> None:
        is_there = peer in self.world.answering
        answer = Leader(peer, leads=True, fence=1) if is_there else Failure(1005, "x")
        asyncio.get_running_loop().call_soon(on_reply, answer)

    def ask(self, message: Message, sender: Any = ROOT) -> Message | None:
        return self.handler(SimpleNamespace(message=message, sender=sender))

    async def until(self, holds: Callable[[], object]) -> None:
        for _ in range(100_000):
            if holds():
                return
            await asyncio.sleep(0)
        raise AssertionError("it did not happen")

    async def close(self) -> None:
        for close in reversed(self.at_exit):
            await close()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_the_primary_leads_at_once_and_a_backup_waits(world: World) -> None:
    primary, backup = One(world, "controller"), One(world, "backup1")
    backup.leadership.start()
    primary.leadership.start()
    assert (len(primary.served), backup.served) == (1, [])
    assert primary.ask(GetLeader()) == Leader("controller", leads=True, fence=1)
    assert backup.ask(GetLeader()) == Leader("backup1", leads=False, fence=0)
    refusal = backup.ask(SubmitJob(JobSpec(), ""))
    assert refusal == Failure(2027, "Slurm backup controller in standby mode")
    assert backup.ask(Ping()) == Ok()
    assert (primary.ran, backup.ran) == (["on"], ["off"])
    await backup.close()
    await primary.close()


async def test_triggers_hear_of_backups_that_come_and_go(world: World) -> None:
    primary = One(world, "controller")
    world.answering.discard("backup1")
    primary.leadership.start()
    events = primary.served[0]
    began = ["primary_slurmctld_resumed_operation", "primary_slurmctld_resumed_control"]
    await primary.until(lambda: world.now > 1000 + T)
    assert events == began
    world.answering.add("backup1")
    await primary.until(lambda: len(events) > 2)
    world.answering.discard("backup1")
    await primary.until(lambda: len(events) > 3)
    assert events[2:] == ["backup_slurmctld_resumed_operation", "backup_slurmctld_failure"]
    await primary.close()


async def test_a_backup_takes_over_when_nothing_was_heard_for_the_timeout(world: World) -> None:
    dead = world.lease("controller")
    assert dead.take(dead.read())
    backup = One(world, "backup1")
    began = world.now
    backup.leadership.start()
    await backup.until(lambda: backup.served)
    assert T <= world.now - began <= T + 1
    assert backup.served == [["primary_slurmctld_failure", "backup_slurmctld_assumed_control"]]
    assert backup.may_speak()
    assert not dead.holds()
    assert backup.ran == ["off", "on"]
    await backup.close()
    assert dead.read().holder == ""


async def test_a_primary_that_is_started_gets_the_lease_back(world: World) -> None:
    lost = world.lease("backup1")
    assert lost.take(lost.read())
    backup, primary = One(world, "backup1"), One(world, "controller")
    backup.leadership.start()  # again, so it goes on
    assert backup.served
    primary.leadership.start()
    assert not primary.served
    await backup.until(backup.ended.is_set)
    assert backup.daemon.begins_again
    await backup.close()
    await primary.until(lambda: primary.served)
    assert primary.lease.fence == 3
    await primary.close()


async def test_a_primary_that_has_lost_the_lease_leaves_it_to_who_has_it(world: World) -> None:
    taken = world.lease("backup1")
    assert taken.take(taken.read())
    backup, primary = One(world, "backup1"), One(world, "controller", is_first=False)
    backup.leadership.start()
    primary.leadership.start()
    began = world.now
    await primary.until(lambda: world.now > began + 3 * T)
    assert not backup.ended.is_set()
    await primary.close()
    await backup.close()


async def test_an_administrator_has_a_backup_take_over_and_the_primary_ends(world: World) -> None:
    primary, backup = One(world, "controller"), One(world, "backup1")
    primary.leadership.start()
    backup.leadership.start()
    for message in (TakeOver(), Shutdown()):
        assert backup.ask(message, ANN) == Failure(2002, "Access/permission denied")
    assert backup.ask(TakeOver()) == Ok()
    await primary.until(primary.ended.is_set)
    assert not primary.daemon.begins_again
    await primary.close()
    await backup.until(lambda: backup.served)
    await backup.close()


@pytest.mark.parametrize(
    ("cut_off", "reaches", "yields"),
    [
        ("controller", {"backup1"}, True),  # the leader reaches nobody
        ("controller", {"backup1", "noded0"}, False),  # only the way between the two is cut
    ],
)
async def test_a_leader_that_cannot_be_reached_yields_if_it_reaches_no_node_either(
    world: World, cut_off: str, reaches: set[str], *, yields: bool
) -> None:
    primary, backup = One(world, "controller"), One(world, "backup1")
    primary.leadership.start()
    backup.leadership.start()
    primary.world = SimpleNamespace(answering=reaches)  # type: ignore[assignment]
    world.answering.discard(cut_off)
    asked = deque[str](maxlen=100)
    original = backup.lease.want
    backup.lease.want = lambda because: (asked.append(because), original(because))  # type: ignore[method-assign,assignment,func-returns-value]
    await backup.until(lambda: asked)
    assert asked[0] == "unreachable"
    if yields:
        await primary.until(primary.ended.is_set)
        await primary.close()
        await backup.until(lambda: backup.served)
    else:
        await primary.until(lambda: primary.lease.read().wanted == "" and len(asked) > 1)
        assert not primary.ended.is_set()
        await primary.close()
    await backup.close()


async def test_a_standby_that_is_cut_off_itself_asks_for_nothing(world: World) -> None:
    primary, backup = One(world, "controller"), One(world, "backup1")
    primary.leadership.start()
    backup.leadership.start()
    backup.world = SimpleNamespace(answering=set())  # type: ignore[assignment]
    began = world.now
    await backup.until(lambda: world.now > began + 4 * T)
    assert primary.lease.read().wanted == ""
    assert not primary.ended.is_set()
    await backup.close()
    await primary.close()


async def test_who_has_lost_the_lease_says_nothing_more_and_begins_again(world: World) -> None:
    primary = One(world, "controller")
    primary.leadership.start()
    thief = world.lease("backup1")
    assert thief.take(thief.read())
    await primary.until(primary.ended.is_set)
    assert not primary.may_speak()
    assert primary.daemon.begins_again
    await primary.close()
    assert thief.read().holder == "backup1"


async def test_an_order_to_take_over_outlives_a_write_of_the_leader_that_lasts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.controller.saved.lease._BUSY_S", 0.0)
    primary, backup = One(world, "controller"), One(world, "backup1")
    primary.leadership.start()
    backup.leadership.start()
    locked = sqlite3.connect(world.path / "state.sqlite", isolation_level=None)
    locked.execute("BEGIN IMMEDIATE")
    assert backup.ask(TakeOver()) == Ok()
    began = world.now
    await backup.until(lambda: world.now > began + T / 4)
    locked.execute("ROLLBACK")
    locked.close()
    await primary.until(primary.ended.is_set)
    await primary.close()
    await backup.until(lambda: backup.served)
    assert world.now < began + T  # it did not have to wait for the leader to be silent
    await backup.close()


STUCK = """
import sqlite3, sys
from pathlib import Path
from understudy.controller.saved.lease import Lease
lease = Lease(Path(sys.argv[1]), "controller", 8.0)
assert lease.take(lease.read())
print("leads", flush=True)
sys.stdin.readline()
lease.beat()
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


READS = """
import fcntl, sys
from pathlib import Path
from understudy.controller.saved.lease import Lease
lease = Lease(Path(sys.argv[1]), "controller", 8.0)
assert lease.take(lease.read())
print("leads", flush=True)
sys.stdin.readline()
shared = open(f"{sys.argv[1]}-shm", "r+b")
marks = 120 + 3, 5  # SQLite's, of readers: the first and how many
fcntl.lockf(shared, fcntl.LOCK_EX, marks[1], marks[0])
print("locked", flush=True)
sys.stdin.read()
"""


def another_process(path: Path, program: str = STUCK) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


async def test_who_neither_beats_nor_answers_within_a_write_is_followed_in_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the lease is locked says nothing against the standby's own disk."""
    monkeypatch.setattr("understudy.controller.saved.lease._BUSY_S", 0.2)
    with another_process(world.path / "state.sqlite") as stuck:
        assert stuck.stdout is not None
        assert stuck.stdin is not None
        assert stuck.stdout.readline() == b"leads\n"
        world.answering.discard("controller")
        backup = One(world, "backup1")
        backup.leadership.start()
        began = world.now
        await backup.until(lambda: world.now >= began + 1)
        began = world.now
        stuck.stdin.write(b"\n")
        stuck.stdin.flush()
        assert stuck.stdout.readline() == b"locked\n"
        os.kill(stuck.pid, signal.SIGSTOP)
        await backup.until(lambda: backup.served)
        assert T <= world.now - began <= T + 1
        assert stuck.wait() == -signal.SIGKILL
    await backup.close()


async def test_who_was_stopped_as_it_began_to_read_is_ended_so_that_others_can(
    world: World,
) -> None:
    backup = One(world, "backup1")
    leadership = backup.leadership
    leadership._do = partial(Leadership._do, leadership)  # type: ignore[method-assign]
    with another_process(world.path / "state.sqlite", READS) as stuck:
        assert stuck.stdout is not None
        assert stuck.stdin is not None
        assert stuck.stdout.readline() == b"leads\n"
        stuck.stdin.write(b"\n")
        stuck.stdin.flush()
        assert stuck.stdout.readline() == b"locked\n"
        os.kill(stuck.pid, signal.SIGSTOP)
        row = await leadership._attended(backup.lease.read, world.now)
        assert (row.holder, row.fence) == ("controller", 1)
        assert stuck.wait() == -signal.SIGKILL
    backup.lease.close()


LOCKS = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


async def test_another_controller_that_is_stopped_with_the_lease_locked_does_not_end_who_leads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("understudy.controller.saved.lease._BUSY_S", 0.2)
    primary = One(world, "controller")
    primary.leadership.start()
    with another_process(world.path / "state.sqlite", LOCKS) as stuck:
        assert stuck.stdout is not None
        assert stuck.stdout.readline() == b"locked\n"
        began = world.now
        await primary.until(lambda: world.now >= began + T / 4)
        os.kill(stuck.pid, signal.SIGSTOP)
        await primary.until(lambda: stuck.poll() is not None)
        assert stuck.returncode == -signal.SIGKILL
        assert began + T / 2 <= world.now < began + T
        await primary.until(lambda: world.now >= began + 2 * T)
    assert not primary.ended.is_set()
    assert primary.lease.may_act()
    await primary.close()
