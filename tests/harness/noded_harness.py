"""A node daemon without sockets and without waiting: its time moves when the test says so, and what
it sends is there to be read and answered.

For tests of the daemon's edge and of whoever talks to it. The doubles have the interfaces of
`understudy.clock.timekeeper.Timekeeper` and `understudy.protocol.messenger.Messenger`.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from key_harness import keys_of

from understudy.auth.credential import Signer, Verifier
from understudy.model.cluster import NodeDaemon
from understudy.noded.core import NodeCore, OwnNodes
from understudy.noded.daemon import FrontEnd
from understudy.noded.emulated import EmulatedExecutor
from understudy.noded.faults import FaultTable
from understudy.protocol.messages import (
    BatchComplete,
    Emulation,
    EpilogComplete,
    LaunchBatch,
    Message,
    Ok,
    Registered,
    RegisterNodes,
)
from understudy.protocol.requests import Peer, Request
from understudy.protocol.tree import Routes

if TYPE_CHECKING:
    from collections.abc import Callable

EPOCH = 1_000_000.0
CONTROLLER = Peer("controller", 0, 0, is_daemon=True)


class HandTimer:
    """A timer of `HandTime`."""

    def __init__(self, callback: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.callback, self.args, self.is_cancelled = callback, args, False

    def cancel(self) -> None:
        self.is_cancelled = True


class HandTime:
    """A timekeeper that a test moves: timers run in order of time, then of creation."""

    is_virtual = False  # so that reports ask for an answer, as in real time

    def __init__(self, now: float = EPOCH) -> None:
        self._now = now
        self._count = 0
        self._heap: list[tuple[float, int, HandTimer]] = []

    def now(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> HandTimer:
        timer = HandTimer(callback, args)
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, timer))
        return timer

    def call_after_wait(
        self, delay_s: float, callback: Callable[..., None], *args: Any
    ) -> HandTimer:
        return self.call_at(self._now + delay_s, callback, *args)

    def hold(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    @property
    def timers(self) -> list[float]:
        """When the timers that are set will run."""
        return sorted(when for when, _, timer in self._heap if not timer.is_cancelled)

    def advance(self, seconds: float) -> None:
        """Let time pass, and run what is due."""
        until = self._now + seconds
        while self._heap and self._heap[0][0] <= until:
            when, _, timer = heapq.heappop(self._heap)
            if not timer.is_cancelled:
                self._now = max(self._now, when)
                timer.callback(*timer.args)
        self._now = until


@dataclass
class Sent:
    """A request that the daemon has sent."""

    peer: str
    message: Message
    on_reply: Callable[[Message], None]
    timeout_s: float
    at: float


@dataclass
class FakeMessenger:
    """Keeps what is sent. `answer` gives the answer at once, or None to leave the request in
    `unanswered`.

    Peers that are in `network` get their messages, in zero time.
    """

    time: HandTime
    answer: Callable[[str, Message], Message | None] = lambda _peer, _message: None
    sent: list[Sent] = field(default_factory=list)
    unanswered: list[Sent] = field(default_factory=list)
    handler: Callable[[Request], Message | None] | None = None
    on_peer_lost: Callable[[str], None] | None = None
    network: dict[str, FakeMessenger] = field(default_factory=dict)

    def set_handler(self, handler: Callable[[Request], Message | None]) -> None:
        self.handler = handler

    def send(
        self,
        peer: str,
        message: Message,
        on_reply: Callable[[Message], None] | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        sent = Sent(peer, message, on_reply or (lambda _: None), timeout_s, self.time.now())
        self.sent.append(sent)
        if peer in self.network:
            self.network[peer].deliver(message, sent.on_reply)
            return
        answer = self.answer(peer, message)
        if answer is None:
            self.unanswered.append(sent)
        else:
            sent.on_reply(answer)

    def deliver(
        self, message: Message, reply: Callable[[Message], None], sender: Peer = CONTROLLER
    ) -> None:
        """Have the daemon handle a request."""
        assert self.handler is not None
        request = Request(message, sender, 1, lambda _number, answer: reply(answer))
        answer = self.handler(request)
        if answer is not None:
            request.reply(answer)

    def messages(self, kind: type[Message]) -> list[Any]:
        return [sent.message for sent in self.sent if isinstance(sent.message, kind)]


def kind_controller(_peer: str, message: Message) -> Message | None:
    """A controller that acknowledges everything."""
    if isinstance(message, RegisterNodes):
        return Registered()
    return Ok() if isinstance(message, BatchComplete | EpilogComplete) else None


class Harness:
    """One emulated node daemon. `daemons`: the nodes of each daemon of the cluster by name, its own
    included.
    """

    def __init__(
        self,
        nodes: str = "n[0-7]",
        *,
        name: str = "noded0",
        daemons: dict[str, str] | None = None,
        answer: Callable[[str, Message], Message | None] = kind_controller,
        default_run_s: float = 1.0,
        time: HandTime | None = None,
    ) -> None:
        daemons = daemons or {name: nodes}
        self.time = time or HandTime()
        self.messenger = FakeMessenger(self.time, answer)
        self.faults = FaultTable()
        self.stops = 0
        own = OwnNodes(daemons[name], is_all=len(daemons) == 1)
        self.front_end = FrontEnd(
            name,
            f"unix:{name}.sock",
            NodeCore(own, self.faults),
            self.messenger,
            self.time,
            Verifier(keys_of("noded0")),
            Routes.of(NodeDaemon(each, "", its) for each, its in daemons.items()),
            logging.getLogger("test"),
            boot_time=self.time.now(),
            step_verifier=Verifier(keys_of("noded0")),
            stop=self._stop,
        )
        self.executor = EmulatedExecutor(self.time, default_run_s, self.front_end.script_ended)
        self.front_end.start(self.executor)

    def _stop(self) -> None:
        self.stops += 1

    def ask(self, message: Message, sender: Peer = CONTROLLER) -> Message | None:
        """What the daemon answers to a request (None: nothing yet)."""
        answers = self.ask_later(message, sender)
        return answers[0] if answers else None

    def ask_later(self, message: Message, sender: Peer = CONTROLLER) -> list[Message]:
        """A list that holds the answer as soon as there is one."""
        answers: list[Message] = []
        self.messenger.deliver(message, answers.append, sender)
        return answers

    def launch(
        self,
        job_id: int,
        nodes: str = "n0",
        run_s: float | None = 10.0,
        *,
        restart: int = 0,
        **fields: Any,
    ) -> LaunchBatch:
        """A launch with a good credential."""
        start_time = int(fields.pop("start_time", self.time.now()))
        if run_s is not None:
            fields.setdefault("emulation", Emulation(run_s))
        credential = Signer(keys_of("controller")).sign(job_id, restart, nodes, 1000, start_time)
        return LaunchBatch(job_id, restart, nodes, start_time, credential, 1000, 1000, **fields)

    @property
    def completions(self) -> list[BatchComplete]:
        return self.messenger.messages(BatchComplete)

    @property
    def epilogs(self) -> list[EpilogComplete]:
        return self.messenger.messages(EpilogComplete)
