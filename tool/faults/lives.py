"""Daemons that can die or stand still, and a network between them that can fail, all in one process
and one virtual loop.

What a dead daemon left behind has no effect: its timers do not fire, what it sends goes nowhere,
answers to it are not heard. Its peers notice as they would over sockets: requests under way fail
with 1006, later ones with 1005; of a host without power nobody hears anything. A daemon that stands
still does everything later. Over a link that is cut messages are lost without a word, and the
asker's deadline tells him.

`CountedTime` may keep the daemons in the belief that time is real: then they ask for
acknowledgements, ping, repeat what is not answered, and write their state elsewhere (`disk.py`), as
they do outside simulations.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.auth.keys import is_central
from understudy.clock.timekeeper import Timekeeper
from understudy.protocol.envelopes import CONNECT_FAILED, CONNECTION_LOST, STANDBY, TIMED_OUT
from understudy.protocol.messages import Failure, FollowJobs, JobRuns, Message, Rows, SubmitJob
from understudy.protocol.messenger import MemoryNetwork, Messenger

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from understudy.clock.virtual_loop import VirtualEventLoop

_SEQUENCES_A_LIFE: Final = 1 << 40
_AWAY: Final = (CONNECT_FAILED, CONNECTION_LOST, TIMED_OUT, STANDBY)
_ASK_AGAIN_S: Final = 1.0  # ours: commands wait so long before they look for the controller again
_OTHERS_S: Final = 10.0  # ours, as MessageTimeout
_REORDERED_BY: Final = 10.0  # ours: one that is overtaken takes up to so many latencies more
_LEAST_REORDERED_S: Final = 0.1  # ours: or, where links take no time, up to so long


class Life:
    """Whether a daemon is alive, and goes on. `number` counts the lives of all daemons of one
    simulation.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_alive = True
        self._held: list[tuple[Callable[..., object], tuple[Any, ...]]] | None = None

    def do(self, callback: Callable[..., object], *args: Any) -> None:
        """Call; later, if the daemon stands still, and never if it is dead."""
        if self._held is not None:
            self._held.append((callback, args))
        elif self.is_alive:
            callback(*args)

    def stand_still(self) -> None:
        """Do nothing from now on, as a stopped process."""
        if self._held is None:
            self._held = []

    @property
    def answers(self) -> bool:
        """Whether it is there and does not stand still."""
        return self.is_alive and self._held is None

    def go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do now what was due meanwhile, in its order."""
        held, self._held = self._held or [], None
        for callback, args in held:
            loop.call_soon(self.do, callback, *args)


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
        return super().call_at(when, self._life.do, callback, *args)

    def call_periodically(
        self, when: float, matters: Callable[[], bool], callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        return super().call_periodically(
            when, lambda: self._life.is_alive and matters(), self._life.do, callback, *args
        )


@dataclass(frozen=True, slots=True, eq=False)
class LinkFault:
    """What befalls messages from one of the `senders` to one of the `receivers`, and answers on
    that way. `loss`, `duplicate`, `reorder`: probabilities; one that is reordered is late, so that
    others overtake it.
    """

    senders: frozenset[str]
    receivers: frozenset[str]
    latency_s: float = 0.0
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0


class FailingNetwork(MemoryNetwork):
    """`faults` of its links, those that are there now; what befalls a message is drawn from the
    seed.
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.controllers: dict[str, str] = {}  # who listens at an address
        self.faults: list[LinkFault] = []
        self.lost = self.duplicated = self.overtaken = 0  # messages
        self.copies = 0  # that were put off
        self._rng = random.Random(f"links {seed}")  # noqa: S311

    def passage(self, sender: str, receiver: str) -> tuple[float, ...]:
        """How much later each copy of the sender's next message arrives, in seconds; none if it is
        lost.
        """
        delay_s, copies = 0.0, 1
        for fault in self.faults:
            if sender not in fault.senders or receiver not in fault.receivers:
                continue
            if self._happens(fault.loss):
                self.lost += 1
                return ()
            delay_s += fault.latency_s
            if self._happens(fault.reorder):
                self.overtaken += 1
                longest_s = max(_REORDERED_BY * fault.latency_s, _LEAST_REORDERED_S)
                delay_s += self._rng.uniform(0.0, longest_s)
            copies += self._happens(fault.duplicate)
        self.duplicated += copies - 1
        return (delay_s,) * copies

    def _happens(self, probability: float) -> bool:
        return probability > 0.0 and self._rng.random() < probability


def is_daemon(name: str) -> bool:
    """Whether it is a daemon's name; the others are users'."""
    return is_central(name) or name.startswith("noded")


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
        ahead_s: float = 0.0,
    ) -> None:
        if not self._life.is_alive:
            return
        at = self._found_at(peer)
        super().send(at, message, on_reply, timeout_s, only_failures=only_failures, ahead_s=ahead_s)
        if at not in self._failing.members:
            self._try_next(at)

    def _is_one_of_several(self, peer: str) -> bool:
        link = self._links.get(peer)
        return link is not None and len(link.addresses) > 1

    def _found_at(self, peer: str) -> str:
        """The name of who is taken for the peer now, where it may be one of several."""
        if not self._is_one_of_several(peer):
            return peer
        return self._failing.controllers[self._links[peer].addresses[0]]

    def _try_next(self, peer: str) -> None:
        for link in self._links.values():
            if len(link.addresses) > 1 and self._found_at(link.name) == peer:
                link.addresses.append(link.addresses.pop(0))

    def prefer(self, name: str, address: str) -> None:
        left = self._found_at(name)
        super().prefer(name, address)
        if self._found_at(name) != left:
            gone = Failure(CONNECTION_LOST, f"{name} is to be found elsewhere")
            for number in self._asked_of(left):
                self._loop.call_soon(self._answered, number, gone)

    def die(self, *, silently: bool = False) -> None:
        """Those who wait for an answer of it hear that the connection is lost, a latency later;
        `silently`: they hear nothing, and nobody refuses their connections.
        """
        self._life.is_alive = False
        if silently:
            return
        self._failing.members.pop(self.name, None)
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
        self._life.do(super()._answered, number, message)

    def _time_out(self) -> None:
        self._life.do(super()._time_out)

    def _fail_all(self, peer: str, failure: Failure) -> None:
        self._life.do(super()._fail_all, peer, failure)

    def _take_in_memory(self, sender: Messenger, number: int, message: Message, kind: int) -> None:
        self._over_link(sender.name, self._take, sender, number, message, kind)

    def _over_link(self, sender: str, deliver: Callable[..., None], *args: Any) -> None:
        """Deliver what has come from the sender, as often and as late as the link has it."""
        failing = self._failing
        if not failing.faults:
            deliver(*args)
            return
        for delay_s in failing.passage(sender, self.name):
            if not delay_s:
                deliver(*args)
                continue
            failing.copies += 1
            assert self._virtual is not None
            self._virtual.post(
                self._virtual.now_us + round(delay_s * 1e6),
                sender,
                -failing.copies,
                deliver,
                *args,
            )

    def _take(self, sender: Messenger, number: int, message: Message, kind: int) -> None:
        self._life.do(self._hear, sender, number, message, kind)

    def _hear(self, sender: Messenger, number: int, message: Message, kind: int) -> None:
        self._heard(self.name, sender.name, message)
        super()._take_in_memory(_ReplyLink(self, sender), number, message, kind)  # type: ignore[arg-type]

    def _reply_in_memory(self, asker: Messenger, kind: int, number: int, answer: Message) -> None:
        if self._life.is_alive and (self.may_speak is None or self.may_speak()):
            super()._reply_in_memory(asker, kind, number, answer)


class _ReplyLink:
    """The way of an answer back to the asker."""

    def __init__(self, replier: MortalMessenger, asker: Messenger) -> None:
        self._replier, self._asker = replier, asker
        self.name, self._me = asker.name, asker._me

    def _answered(self, number: int, message: Message) -> None:
        """The answer arrives, if the link lets it."""
        asker = self._asker
        assert isinstance(asker, MortalMessenger)
        asker._over_link(self._replier.name, asker._answered, number, _unpacked(message))


class _Question:
    """What somebody outside wants to know until he does; `is_over`: he does."""

    def __init__(self, on_reply: Callable[[Message], None]) -> None:
        self._on_reply = on_reply
        self.is_over = False

    def give(self, answer: Message) -> None:
        if not self.is_over:
            self.is_over = True
            self._on_reply(answer)


class PatientMessenger(MortalMessenger):
    """Of who uses the cluster from outside: asks again until there is an answer, as commands do
    that wait for their controller. Submissions have tokens, so that none is taken in twice.
    """

    _following: _Question | None = None

    def send(
        self,
        peer: str,
        message: Message,
        on_reply: Callable[[Message], None] | None = None,
        timeout_s: float = 10.0,
        *,
        only_failures: bool = False,
        ahead_s: float = 0.0,
    ) -> None:
        if isinstance(message, SubmitJob) and not message.token:
            token = f"{self.name}-{self._numbers + 1}"
            message = msgspec.structs.replace(message, token=token)
        if timeout_s != math.inf and self._is_one_of_several(peer):
            timeout_s = min(timeout_s, _OTHERS_S)  # another may lead by then
        question = _Question(on_reply or (lambda _answer: None))
        if isinstance(message, FollowJobs):
            self._following = question
        ask = partial(super().send, peer, message, timeout_s=timeout_s, only_failures=only_failures)

        def answered(answer: Message) -> None:
            if question.is_over:
                return
            if isinstance(answer, Failure) and answer.code in _AWAY:
                self._loop.call_later(_ASK_AGAIN_S, partial(ask, on_reply=answered))
            else:
                question.give(answer)

        ask(on_reply=answered, ahead_s=ahead_s)

    def tell(self, runs: JobRuns) -> None:
        """What became of jobs, from a controller that has died with it: the report of a run is to
        be of all of them.
        """
        if self._following is not None:
            self._following.give(runs)


def _unpacked(message: Message) -> Message:
    """As it comes out of a socket: the rows of a listing that is shared are packed."""
    if isinstance(message, Rows) and isinstance(message.rows, msgspec.Raw):
        return msgspec.structs.replace(message, rows=msgspec.msgpack.decode(message.rows))
    return message
