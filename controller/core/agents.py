"""Agents: all traffic from the controller to node daemons.

Place: the controller's core, no I/O: it hands messages to the wire and gets answers and timers
back. It does not know what the messages mean.

Each order (a message for a daemon) is sent at once if few enough are on their way, else it waits in
the daemon's queue, in order. A daemon that cannot be reached gets its orders again after 1, 2, 4
... 60 s, in the same order. An order whose purpose is gone (`wanted` says no) is dropped before it
would be sent again.

A message for the nodes of more daemons than `tree_width` goes down the tree
(understudy.protocol.tree); to fewer, each daemon gets its own. Nodes that the tree reports as not
reached are asked again one daemon at a time, as orders of their own.

Under virtual time no message is lost without a word, and nodes' acknowledgements say nothing that
their silence does not: only failures are asked for, which halves the messages of a job's life.

In real time a watchdog checks once a minute for orders on which nothing was heard for longer than
their time allows.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.controller.core.fan_out import FIRST_PAUSE_S, LONGEST_PAUSE_S, UNREACHABLE
from understudy.model.hostlist import compress, expand
from understudy.protocol.messages import Failure, Message, NodeReplies
from understudy.protocol.tree import ForwardTree, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.controller.core.fan_out import FanOut
    from understudy.controller.ports import Clock, TimerHandle, Wire

log = logging.getLogger("understudy.controller.core.agents")
WATCHDOG_S: Final = 60.0  # ours: between two checks for orders that nobody has answered


class AgentStatistics(NamedTuple):
    """What goes on now, and counts since the start."""

    in_flight: int
    queued: int
    sent: int
    retried: int
    dropped: int
    trees: int


class Order:
    """One message for one daemon, until it is answered or no longer wanted."""

    __slots__ = ("agents", "channel", "done", "message", "number", "sent_at", "wanted")

    def __init__(
        self,
        agents: Agents,
        channel: _Channel,
        message: Message,
        wanted: Callable[[], bool] | None,
        done: Callable[[Message], None] | None,
    ) -> None:
        self.agents, self.channel, self.message, self.wanted, self.done = (
            agents,
            channel,
            message,
            wanted,
            done,
        )
        self.number = agents.next_number()
        self.sent_at = 0.0

    def answered(self, answer: Message) -> None:
        self.agents._answered(self, answer)


class _Channel:
    """The way to one daemon."""

    __slots__ = ("in_flight", "name", "pause_s", "queue", "retry")

    def __init__(self, name: str) -> None:
        self.name = name
        self.in_flight: dict[Order, None] = {}
        self.queue: deque[Order] = deque()
        self.retry: TimerHandle | None = None  # set while the daemon does not respond
        self.pause_s = FIRST_PAUSE_S


class Agents:
    """The orders to all daemons. `after_event` is called after an answer has been worked on."""

    def __init__(
        self,
        wire: Wire,
        time: Clock,
        *,
        timeout_s: float = 10.0,
        per_daemon: int = 1024,
        in_all: int = 8192,
        tree_width: int = 32,
    ) -> None:
        self._wire, self._time = wire, time
        self._is_quiet = time.is_virtual
        self._timeout_s, self._per_daemon, self._in_all, self._tree_width = (
            timeout_s,
            per_daemon,
            in_all,
            max(1, tree_width),
        )
        self._channels: dict[str, _Channel] = {}
        self._number = 0
        self._in_flight = self._sent = self._retried = self._dropped = self._trees = 0
        self._watchdog: TimerHandle | None = None
        self.fan_out: FanOut | None = None  # where each node is a hop of its own
        # of messages that node daemons hand on
        self.sign: Callable[[bytes], bytes] | None = None
        self.after_event: Callable[[], None] = lambda: None
        self.on_response: Callable[[str, bool], None] = lambda _daemon, _responds: None

    def next_number(self) -> int:
        """Orders are numbered, so that they keep their order when they are put off."""
        self._number += 1
        return self._number

    def add_daemon(self, name: str, address: str) -> None:
        """A daemon and where it listens; again after it has moved."""
        if name not in self._channels:
            self._channels[name] = _Channel(name)
        self._wire.add_peer(name, address)

    def send(
        self,
        daemon: str,
        message: Message,
        *,
        wanted: Callable[[], bool] | None = None,
        done: Callable[[Message], None] | None = None,
        node: str = "",
    ) -> None:
        """Send the message, again and again until the daemon answers or `wanted()` is false. `done`
        gets the daemon's answer. `node`: that of the daemon's nodes which it is for, who gets it
        itself where each is a hop of its own.
        """
        channel = self._channels[daemon]
        if node and self.fan_out is not None:
            channel = self._channels.setdefault(node, _Channel(node))
        order = Order(self, channel, message, wanted, done)
        if (
            channel.retry is not None
            or channel.queue
            or len(channel.in_flight) >= self._per_daemon
            or self._in_flight >= self._in_all
        ):
            channel.queue.append(order)
        else:
            self._dispatch(order)

    def send_to_many(
        self,
        parts: Sequence[tuple[str, str]],
        make: Callable[[str], Message],
        *,
        wanted: Callable[[], bool] | None = None,
    ) -> None:
        """Send to several daemons: (daemon, its nodes as an expression) each. `make` builds a
        message for an expression.

        Beyond the tree's width one message without nodes goes down the tree: each receiver knows
        its own from the `Forward`.
        """
        if self.fan_out is not None:
            nodes = [node for _, expression in parts for node in expand(expression)]
            self.fan_out.send(nodes, make(""), wanted=wanted)
            return
        if len(parts) <= self._tree_width:
            for daemon, expression in parts:
                self.send(daemon, make(expression), wanted=wanted)
            return
        self._trees += 1
        targets = [Target(daemon, tuple(expand(expression))) for daemon, expression in parts]
        daemon_of = {node: target.peer for target in targets for node in target.nodes}
        tree = ForwardTree(make(""), targets, self._tree_width, self._timeout_s, sign=self.sign)

        def take(hop: int, answer: Message) -> None:
            for send in tree.answered(hop, answer):
                go(send.hop, send.peer, send.message, send.timeout_s)
            if tree.result is not None:
                self._ask_again(tree.result, daemon_of, make, wanted)
            self.after_event()

        def go(hop: int, peer: str, message: Message, timeout_s: float) -> None:
            self._sent += 1
            self._wire.send(peer, message, lambda answer: take(hop, answer), timeout_s)

        for first in tree.start():
            go(first.hop, first.peer, first.message, first.timeout_s)

    def ping(self, daemon: str, message: Message, done: Callable[[Message], None]) -> None:
        """Send a message once, outside the queue; `done` gets the answer or the failure."""

        def answered(answer: Message) -> None:
            done(answer)
            self.after_event()

        self._wire.send(daemon, message, answered, self._timeout_s)

    def daemon_is_back(self, name: str) -> None:
        """The daemon has been heard of: send what waits for it."""
        channel = self._channels.get(name)
        if channel is None:
            return
        channel.pause_s = FIRST_PAUSE_S
        if channel.retry is not None:
            channel.retry.cancel()
            channel.retry = None
        self._pump(channel)

    def statistics(self) -> AgentStatistics:
        """How busy the agents are."""
        queued = sum(len(channel.queue) for channel in self._channels.values())
        sent, retried, trees = self._sent, self._retried, self._trees
        if (fan_out := self.fan_out) is not None:
            sent, retried = sent + fan_out.sent, retried + fan_out.repeated
            trees += fan_out.trees
        return AgentStatistics(self._in_flight, queued, sent, retried, self._dropped, trees)

    def _dispatch(self, order: Order) -> None:
        channel = order.channel
        if self._is_quiet:
            self._sent += 1
            self._wire.send(
                channel.name, order.message, order.answered, self._timeout_s, only_failures=True
            )
            return
        channel.in_flight[order] = None
        self._in_flight += 1
        self._sent += 1
        order.sent_at = self._time.wait_clock()
        if self._watchdog is None:
            self._watchdog = self._time.call_after_wait(WATCHDOG_S, self._watch)
        self._wire.send(channel.name, order.message, order.answered, self._timeout_s)

    def _answered(self, order: Order, answer: Message) -> None:
        channel = order.channel
        if not self._is_quiet:
            if order not in channel.in_flight:
                return  # the watchdog has given it up, and sent it again
            del channel.in_flight[order]
            self._in_flight -= 1
        if type(answer) is Failure and answer.code in UNREACHABLE:
            self._put_off(order, answer.text)
        else:
            if channel.retry is not None or channel.pause_s != FIRST_PAUSE_S:
                self.daemon_is_back(channel.name)
                self.on_response(channel.name, True)
            if order.done is not None:
                order.done(answer)
            if channel.queue:
                self._pump(channel)
            elif self._in_flight == self._in_all - 1:
                # a place has become free that others wait for
                for other in self._channels.values():
                    self._pump(other)
        self.after_event()

    def _put_off(self, order: Order, why: str) -> None:
        """Keep the order for later, before those that came after it."""
        channel = order.channel
        earlier = [other for other in channel.queue if other.number < order.number]
        channel.queue = deque(
            [*earlier, order, *(other for other in channel.queue if other.number > order.number)]
        )
        self._retried += 1
        if channel.retry is None:
            log.info(
                "node daemon %s does not respond (%s): next try in %.0f s",
                channel.name,
                why,
                channel.pause_s,
            )
            channel.retry = self._time.call_after_wait(channel.pause_s, self._try_again, channel)
            channel.pause_s = min(channel.pause_s * 2, LONGEST_PAUSE_S)
            self.on_response(channel.name, False)

    def _try_again(self, channel: _Channel) -> None:
        """Send the oldest order that is still wanted; its answer says whether to send the
        others.
        """
        channel.retry = None
        if self._is_quiet:  # success makes no sound
            self._pump(channel)
        elif (order := self._next(channel)) is not None:
            self._dispatch(order)
        self.after_event()

    def _next(self, channel: _Channel) -> Order | None:
        while channel.queue:
            order = channel.queue.popleft()
            if order.wanted is None or order.wanted():
                return order
            self._dropped += 1
        return None

    def _pump(self, channel: _Channel) -> None:
        while (
            channel.queue
            and channel.retry is None
            and len(channel.in_flight) < self._per_daemon
            and self._in_flight < self._in_all
        ):
            order = self._next(channel)
            if order is None:
                return
            self._dispatch(order)

    def _watch(self) -> None:
        self._watchdog = None
        limit = self._time.wait_clock() - max(WATCHDOG_S, 3 * self._timeout_s)
        for channel in self._channels.values():
            for order in [order for order in channel.in_flight if order.sent_at < limit]:
                log.error(
                    "no word on %s to %s: sending it again",
                    type(order.message).__name__,
                    channel.name,
                )
                del channel.in_flight[order]
                self._in_flight -= 1
                self._put_off(order, "no answer and no failure")
        if self._in_flight:
            self._watchdog = self._time.call_after_wait(WATCHDOG_S, self._watch)

    def _ask_again(
        self,
        result: NodeReplies,
        daemon_of: dict[str, str],
        make: Callable[[str], Message],
        wanted: Callable[[], bool] | None,
    ) -> None:
        missing: dict[str, list[str]] = {}
        for reply in result.replies:
            if reply.code in UNREACHABLE:
                for node in expand(reply.nodes):
                    missing.setdefault(daemon_of[node], []).append(node)
        for daemon, nodes in missing.items():
            self.send(daemon, make(compress(nodes, sort=False)), wanted=wanted)
