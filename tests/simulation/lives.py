"""Daemons that can die, and a network between them that can fail, all in one process and one
virtual loop.

What a dead daemon left behind has no effect: its timers do not fire, what it sends goes nowhere,
answers to it are not heard. Its peers notice as they would over sockets: requests under way fail
with 1006, later ones with 1005. Over a link that is cut messages are lost without a word, and the
asker's deadline tells him.

`CountedTime` may keep the daemons in the belief that time is real: then they ask for
acknowledgements, ping, repeat what is not answered, and write their state in a thread (here: after
some milliseconds of virtual time), as they do outside simulations.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from understudy.auth.keys import is_central
from understudy.clock.timekeeper import Timekeeper
from understudy.controller.edge import main as controller_main
from understudy.protocol.messages import Failure, Message, Rows
from understudy.protocol.messenger import CONNECTION_LOST, MemoryNetwork, Messenger

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from understudy.clock.virtual_loop import VirtualEventLoop

_SEQUENCES_A_LIFE = 1 << 40


class Life:
    """Whether a daemon is alive. `number` counts the lives of all daemons of one simulation."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_alive = True


class CountedTime(Timekeeper):
    """The cluster's time as one life of a daemon has it."""

    def __init__(
        self, loop: VirtualEventLoop, epoch: float, life: Life, *, seems_real: bool
    ) -> None:
        super().__init__(loop, epoch)
        self._life, self.is_virtual = life, not seems_real

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        return super().call_at(when, self._if_alive, callback, args)

    def _if_alive(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        if self._life.is_alive:
            callback(*args)


def is_daemon(name: str) -> bool:
    """Whether it is a daemon's name; the others are users'."""
    return is_central(name) or name.startswith("noded")


class FailingNetwork(MemoryNetwork):
    """`cut`: pairs of names between which nothing goes through."""

    def __init__(self) -> None:
        super().__init__()
        self.cut: set[frozenset[str]] = set()
        self.lost = 0  # messages

    def is_cut(self, one: str, other: str) -> bool:
        """Whether a message between the two is lost; counts it."""
        if frozenset((one, other)) not in self.cut:
            return False
        self.lost += 1
        return True


class MortalMessenger(Messenger):
    """A messenger of one life of a daemon. `heard` is told of every request before it is
    handled.
    """

    def __init__(
        self,
        name: str,
        loop: VirtualEventLoop,
        network: FailingNetwork,
        life: Life,
        *,
        user_id: int = 0,
        latency_s: float = 0.001,
        link_latency: dict[str, float] | None = None,
        heard: Callable[[str, str, Message], None] = lambda _to, _sender, _message: None,
    ) -> None:
        super().__init__(
            name,
            loop,
            None,
            user_id=user_id,
            group_id=user_id,
            latency_s=latency_s,
            link_latency=link_latency,
            network=network,
            is_daemon=is_daemon(name),
        )
        self._failing, self._life, self._heard = network, life, heard
        # a message of an earlier life may be due at the same instant
        self._sequence = life.number * _SEQUENCES_A_LIFE

    def send(
        self,
        peer: str,
        message: Message,
        on_reply: Callable[[Message], None] | None = None,
        timeout_s: float = 10.0,
        *,
        only_failures: bool = False,
    ) -> None:
        if not self._life.is_alive:
            return
        if self._failing.cut and self._failing.is_cut(self.name, peer):
            self._numbers += 1
            self._await(self._numbers, peer, on_reply, timeout_s)
            return
        super().send(peer, message, on_reply, timeout_s, only_failures=only_failures)

    def die(self) -> None:
        """Those who wait for an answer of it hear that the connection is lost, a latency later."""
        self._life.is_alive = False
        del self._failing.members[self.name]
        assert self._virtual is not None
        for other in list(self._failing.members.values()):
            self._virtual.post(
                self._virtual.now_us + self._latency_us,
                self.name,
                self._sequence + 1 + len(other.name),
                other._fail_all,
                self.name,
                Failure(CONNECTION_LOST, f"{self.name} closed the connection"),
            )
            self._sequence += 100

    def _answered(self, number: int, message: Message) -> None:
        if self._life.is_alive:
            super()._answered(number, message)

    def _time_out(self) -> None:
        if self._life.is_alive:
            super()._time_out()

    def _fail_all(self, peer: str, failure: Failure) -> None:
        if self._life.is_alive:
            super()._fail_all(peer, failure)

    def _take_in_memory(self, sender: Messenger, number: int, message: Message, kind: int) -> None:
        if not self._life.is_alive or (
            self._failing.cut and self._failing.is_cut(self.name, sender.name)
        ):
            return
        self._heard(self.name, sender.name, message)
        super()._take_in_memory(_ReplyLink(self, sender), number, message, kind)  # type: ignore[arg-type]


class _ReplyLink:
    """The way of an answer back to the asker."""

    def __init__(self, replier: MortalMessenger, asker: Messenger) -> None:
        self._replier, self._asker = replier, asker
        self.name, self._me = asker.name, asker._me

    def _answered(self, number: int, message: Message) -> None:
        """The answer arrives, unless the link was cut meanwhile."""
        if not self._replier._failing.is_cut(self._replier.name, self.name):
            self._asker._answered(number, _unpacked(message))


def _unpacked(message: Message) -> Message:
    """As it comes out of a socket: the rows of a listing that is shared are packed."""
    if isinstance(message, Rows) and isinstance(message.rows, msgspec.Raw):
        return msgspec.structs.replace(message, rows=msgspec.msgpack.decode(message.rows))
    return message


@contextlib.contextmanager
def disk_that_takes(
    loop: VirtualEventLoop, seconds: float, life: Callable[[], Life]
) -> Iterator[None]:
    """Meanwhile controllers that believe in real time take so much virtual time to write. One that
    dies may have written or not, but cannot say.

    `life` tells the life of the controller that is being started.
    """
    original = controller_main._write_in_thread

    def writing(_loop: asyncio.AbstractEventLoop) -> Any:
        mine = life()

        def run(write: Callable[[], None], done: Callable[[BaseException | None], None]) -> None:
            def write_now() -> None:
                if not mine.is_alive:
                    return
                try:
                    write()
                except Exception as error:  # noqa: BLE001  handed on
                    done(error)
                else:
                    loop.call_later(seconds / 2, say)

            def say() -> None:
                if mine.is_alive:
                    done(None)

            loop.call_later(seconds / 2, write_now)

        return run

    controller_main._write_in_thread = writing
    try:
        yield
    finally:
        controller_main._write_in_thread = original
