"""Who of several controllers leads: waiting for the lease, leading as long as it holds, and giving
it up.

Place: the edge. `lead` builds the controller proper and has it serve; until then all but questions
after the leader are answered with Slurm's "standby mode", so that whoever asks goes on to the next.
All that controllers have to say to each other is said by the lease (understudy.controller.saved.
lease); over the network the standby only asks whether the leader answers.

The lease is taken from who has not beaten for SlurmctldTimeout. From one who beats but cannot be
reached it is asked for: it gives the lease up if it can reach no node daemon either, and keeps it
otherwise. The primary asks for it when it is started, and gets it, as an administrator does with
`scontrol takeover`. Follows: slurm.conf(5) SlurmctldHost, SlurmctldTimeout; texts of the log and
which programs run when as 22.05.8 has them.
"""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from understudy.controller.saved.database import DatabaseError, LockedError
from understudy.controller.saved.lease import LeaseLostError
from understudy.model.cluster import CONTROLLER
from understudy.model.errors import ERROR_TEXT
from understudy.protocol.envelopes import STANDBY
from understudy.protocol.messages import (
    Failure,
    GetLeader,
    Leader,
    Message,
    Ok,
    Ping,
    Shutdown,
    TakeOver,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from understudy.clock.daemon import Daemon
    from understudy.controller.saved.lease import Lease, Row
    from understudy.protocol.requests import Request

    Elsewhere = Callable[[Callable[[], Any]], Awaitable[Any]]

T = TypeVar("T")
TAKEOVER, RETURN, UNREACHABLE = "takeover", "return", "unreachable"
ACCESS_DENIED: Final = 2002
LONGEST_LOOK_S: Final = 0.25  # ours: between two looks at the lease
BEATS: Final = 4  # ours: within SlurmctldTimeout
_REACH_S: Final = 1.5  # ours: for a node daemon to say that it is there, at most
# what triggers hear of: when a backup leads, when the primary does
_EVENTS: Final = (
    ("primary_slurmctld_failure", "backup_slurmctld_assumed_control"),
    ("primary_slurmctld_resumed_operation", "primary_slurmctld_resumed_control"),
)
_STANDS_BY: Final = Failure(STANDBY, ERROR_TEXT[STANDBY])


class Leading(Protocol):
    """The controller proper, once it leads."""

    def serve(self, request: Request) -> Message | None:
        """The messenger's handler."""

    def note(self, event: str) -> None:
        """An event of which triggers are to hear."""


class Leadership:
    """One controller of several. `programs`: SlurmctldPrimaryOnProg and OffProg, "" for none; `run`
    starts one. `lead` builds the controller that leads. `elsewhere` does something with the lease,
    one thing after the other, where nobody waits for it; None: in a thread. `look_s`: at
    most between two looks at the lease.
    """

    def __init__(
        self,
        daemon: Daemon,
        lease: Lease,
        *,
        hosts: dict[str, str],
        lead: Callable[[], Leading],
        programs: tuple[str, str],
        run: Callable[[str], None],
        admins: frozenset[int],
        elsewhere: Elsewhere | None = None,
        look_s: float = LONGEST_LOOK_S,
    ) -> None:
        assert lease.timeout_s is not None
        self._daemon, self._lease, self._hosts = daemon, lease, hosts
        self._clock = lease.clock
        self._lead, self._run, self._admins = lead, run, admins
        self._on_program, self._off_program = programs
        self._timeout_s = lease.timeout_s
        self._look_s = min(look_s, lease.timeout_s / 8)
        self._reach_s = min(_REACH_S, lease.timeout_s / BEATS)
        self._leading: Leading | None = None  # set while it leads
        self._answering: dict[str, bool] = {}  # of backups that stand by, as the leader has seen
        self._is_told = False  # to take over
        # a primary that has lost the lease since it was started leaves it to whoever has it
        self._wants_back = daemon.name == CONTROLLER and daemon.is_first
        self._heir = ""
        self._leaves_it_until = float("-inf")  # to others, as it could not be written here
        self._said: set[str] = set()
        self._answered = self._clock()  # when the leader did, over the network
        self._task: asyncio.Task[None] | None = None
        self._elsewhere = elsewhere
        self._thread = ThreadPoolExecutor(1, "lease") if elsewhere is None else None

    def start(self) -> None:
        """Lead if nobody else does, else wait for that."""
        daemon, lease = self._daemon, self._lease
        daemon.messenger.set_handler(self._handle)
        for name, address in daemon.cluster.controllers.items():
            if name != daemon.name:
                daemon.messenger.add_peer(name, address)
        daemon.at_exit.append(self._close)
        row = lease.read()
        is_mine = row.holder == daemon.name or (
            daemon.name == CONTROLLER and row.holder == "" and row.wanted in ("", daemon.name)
        )
        if not (is_mine and self._takes(row)):
            daemon.log.info("slurmctld running in background mode")
            self._start_program(self._off_program)
            self._task = asyncio.get_running_loop().create_task(self._guarded(self._wait))
        else:
            self._begin()

    def _takes(self, row: Row) -> bool:
        try:
            return self._lease.take(row)
        except DatabaseError as error:
            self._complain(f"cannot take the lease: {error}")
            self._leave_it()
            return False

    def _leave_it(self) -> None:
        """Let others be first, who may be able to write: each attempt of ours that is there though
        it failed, as when a sync does, has them wait anew.
        """
        self._leaves_it_until = self._clock() + 2 * self._timeout_s

    # --- being asked ------------------------------------------------------------------------------

    def _handle(self, request: Request) -> Message | None:
        message, sender = request.message, request.sender
        leading = self._leading
        if isinstance(message, GetLeader):
            fence = 0 if leading is None else self._lease.fence
            return Leader(self._daemon.name, leading is not None, fence)
        if leading is not None:
            return leading.serve(request)
        if isinstance(message, Ping):
            return Ok()
        if isinstance(message, TakeOver | Shutdown):
            if not sender.is_daemon and sender.user_id not in self._admins:
                return Failure(ACCESS_DENIED, ERROR_TEXT[ACCESS_DENIED])
            if isinstance(message, TakeOver):
                self._is_told = True
            else:
                self._daemon.stop()
            return Ok()
        self._complain(f"Invalid RPC received {type(message).__name__} while in standby mode")
        return _STANDS_BY

    def _complain(self, text: str) -> None:
        """Say it once."""
        if text not in self._said:
            self._said.add(text)
            self._daemon.log.error("%s", text)

    # --- waiting ----------------------------------------------------------------------------------

    async def _wait(self) -> None:
        """Until it leads."""
        lease, name = self._lease, self._daemon.name
        row = seen = await self._do(lease.read)
        since = self._answered = self._clock()
        while True:
            if (row.fence, row.beats, row.holder) != (seen.fence, seen.beats, seen.holder):
                seen, since = row, self._clock()
            silent_s = self._clock() - since
            try:
                if await self._has_taken(row, silent_s):
                    break
                if silent_s < self._timeout_s and row.wanted != name:
                    await self._ask_for_it(row, silent_s)
                await self._pause(self._look_s)
                row = await self._attended(lease.read, since + self._timeout_s)
            except LockedError as error:  # by whom we may be about to follow
                self._complain(f"cannot use the lease yet: {error}")
                await self._pause(self._look_s)
            except DatabaseError as error:  # as of a full disk, which may be another's soon
                self._complain(f"cannot use the lease: {error}")
                self._leave_it()
                self._answered = self._clock()  # nobody has asked the leader meanwhile
                await self._pause(self._look_s)
        self._begin(row.holder)

    async def _attended(self, call: Callable[[], T], until: float) -> T:
        """What is done with the lease. From that instant on, whoever was stopped as it kept the
        lease from others is ended: it may keep them even from reading.
        """
        doing = asyncio.ensure_future(self._do(call))
        try:
            while not doing.done():
                left_s = until - self._clock()
                await asyncio.wait((doing,), timeout=max(left_s, self._look_s))
                if not doing.done() and self._clock() >= until:
                    await asyncio.to_thread(self._lease.end_stopped)
            return doing.result()
        except LockedError:
            if self._clock() >= until:
                await asyncio.to_thread(self._lease.end_stopped)
            raise
        finally:
            doing.cancel()

    async def _has_taken(self, row: Row, silent_s: float) -> bool:
        """Take the lease if it was left to us, or its holder is silent; whether it is ours now."""
        is_left_to_us = not row.holder and row.wanted == self._daemon.name
        if not is_left_to_us and silent_s < self._timeout_s:
            return False
        if self._clock() < self._leaves_it_until:
            return False
        by_force = not is_left_to_us
        return await self._do(partial(self._lease.take, row, by_force=by_force))

    async def _ask_for_it(self, row: Row, silent_s: float) -> None:
        """Ask for the lease if somebody told us to, or the leader does not answer any more though
        it beats. `silent_s`: for how long it has not.
        """
        if self._is_told or self._wants_back:
            because = TAKEOVER if self._is_told else RETURN
            await self._do(self._lease.want, because)
            self._is_told = self._wants_back = False
            return
        self._look_at(row.holder)
        is_beating = silent_s < 2 * self._timeout_s / BEATS
        if not is_beating or self._clock() - self._answered < self._timeout_s:
            return
        self._answered = self._clock()  # whatever comes of it, wait as long until the next time
        if await self._reaches_nodes():
            await self._do(self._lease.want, UNREACHABLE)

    def _look_at(self, leader: str) -> None:
        """Ask the leader whether it is there."""

        def answered(answer: Message) -> None:
            if isinstance(answer, Leader):
                self._answered = self._clock()

        if leader in self._daemon.cluster.controllers:
            self._daemon.messenger.send(leader, GetLeader(), answered, self._timeout_s)

    async def _reaches_nodes(self) -> bool:
        """Whether any node daemon answers: else it is we who are cut off."""
        found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def answered(answer: Message) -> None:
            if not isinstance(answer, Failure) and not found.done():
                found.set_result(True)

        messenger = self._daemon.messenger
        for noded in self._daemon.cluster.nodeds:
            if self._leading is None:  # a leader has added them, and where they are now
                messenger.add_peer(noded.name, noded.address)
            messenger.send(noded.name, Ping(), answered, self._reach_s)
        self._daemon.time.call_after_wait(
            self._reach_s, lambda: None if found.done() else found.set_result(False)
        )
        return await found

    # --- leading ----------------------------------------------------------------------------------

    def _begin(self, silent: str = "") -> None:
        """The lease is ours: lead. `silent`: whose it was, if that one does not respond."""
        daemon = self._daemon
        if silent and daemon.name == CONTROLLER:
            daemon.log.error("%s not responding, taking over", self._hosts.get(silent, silent))
        elif silent:
            daemon.log.error(
                "ControlMachine %s not responding, BackupController%d %s taking over",
                self._hosts.get(silent, silent),
                list(self._hosts).index(daemon.name),
                self._hosts[daemon.name],
            )
        daemon.messenger.may_speak = self._lease.may_act
        self._leading = self._lead()
        for event in _EVENTS[daemon.name == CONTROLLER]:
            self._leading.note(event)
        daemon.messenger.set_handler(self._handle)  # which the controller has made its own
        self._start_program(self._on_program)
        self._task = asyncio.get_running_loop().create_task(self._guarded(self._keep))

    async def _keep(self) -> None:
        """Beat, until another is to lead."""
        lease, beat_s = self._lease, self._timeout_s / BEATS
        beaten, well = float("-inf"), self._clock()  # when it last tried to, and did
        while True:
            try:
                until = well + 2 * beat_s
                if self._clock() - beaten >= beat_s:
                    beaten = self._clock()
                    self._look_at_backups()
                    row = await self._attended(lease.beat, until)
                    well = beaten
                else:
                    row = await self._attended(lease.read, until)
            except LeaseLostError:
                self._step_down("lost control of the cluster to another controller")
                return
            except DatabaseError as error:
                self._daemon.log.error("cannot keep the lease: %s", error)  # noqa: TRY400
                beaten = float("-inf")
                row = None
            if not await self._do(lease.may_act):
                self._step_down("beginning again as a standby")
                return
            if row is not None and row.wanted and await self._is_to_yield(row):
                self._heir = row.wanted
                self._step_down(f"leaving control to {row.wanted}", ends=self._ends_for(row))
                return
            await self._pause(self._look_s)

    def _look_at_backups(self) -> None:
        """See which backups stand by, and tell triggers when one is there or is no more."""

        def answered(name: str, answer: Message) -> None:
            is_there = isinstance(answer, Leader)
            was_there = self._answering.get(name, False)
            self._answering[name] = is_there
            if self._leading is not None and is_there != was_there:
                event = "resumed_operation" if is_there else "failure"
                self._leading.note(f"backup_slurmctld_{event}")

        for name in self._daemon.cluster.controllers:
            if name not in (CONTROLLER, self._daemon.name):
                self._daemon.messenger.send(
                    name, GetLeader(), partial(answered, name), self._timeout_s
                )

    async def _is_to_yield(self, row: Row) -> bool:
        if row.because != UNREACHABLE or not await self._reaches_nodes():
            return True
        self._daemon.log.info("%s does not reach this controller, which goes on", row.wanted)
        await self._do(self._lease.decline, row.wanted)
        return False

    def _ends_for(self, row: Row) -> bool:
        """The primary ends when another is told to take over, as Slurm's does."""
        return self._daemon.name == CONTROLLER and row.because == TAKEOVER

    def _step_down(self, why: str, *, ends: bool = False) -> None:
        """End, and begin again as a standby."""
        self._daemon.log.info("%s", why)
        self._daemon.begins_again = not ends
        self._daemon.stop()

    # --- ending -----------------------------------------------------------------------------------

    def break_off(self) -> None:
        """Do nothing more and tell nobody, as when the process dies."""
        if self._task is not None:
            self._task.cancel()

    async def _close(self) -> None:
        """Everything is written: give the lease back."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._leading is not None:
            if not self._daemon.begins_again:
                self._start_program(self._off_program)
            if await self._do(self._lease.may_act):
                try:
                    await self._do(self._lease.leave_to, self._heir)
                except DatabaseError as error:
                    self._daemon.log.error("cannot give the lease back: %s", error)  # noqa: TRY400
        await self._do(self._lease.close)
        if self._thread is not None:
            self._thread.shutdown()

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """A standby or leader that cannot go on ends the daemon."""
        try:
            await work()
        except asyncio.CancelledError:
            raise
        except Exception:
            self._daemon.log.exception("cannot go on")
            self._step_down("beginning again", ends=self._leading is None)

    async def _do(self, call: Callable[..., T], *args: Any) -> T:
        """Do something with the lease, after whatever is being done with it."""
        if self._elsewhere is not None:
            done: T = await self._elsewhere(partial(call, *args))
            return done
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, partial(call, *args))

    def _start_program(self, program: str) -> None:
        if program:
            self._run(program)

    async def _pause(self, seconds: float) -> None:
        """Real seconds."""
        over = asyncio.Event()
        timer = self._daemon.time.call_after_wait(seconds, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()
