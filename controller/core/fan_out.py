"""Messages to many nodes where each is a hop of its own (`--hops sockets`): down a tree of nodes,
again to those that it did not reach, until all have answered or nobody wants it any more.

Place: beside the agents (`agents.py`), which hand it what goes to nodes; no I/O. It does not know
what the messages mean. See `../docs/fan-out.md`.

A tree has a connection open for each of its nodes, so no more of them are under way at a time than
the processes of the nodes have descriptors for: others wait in order. One tree may always go.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from understudy.model.hostlist import expand
from understudy.protocol.envelopes import STANDBY
from understudy.protocol.tree import ForwardTree, Target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.controller.ports import Clock, Wire
    from understudy.protocol.messages import Message, NodeReplies

log = logging.getLogger("understudy.controller.core.fan_out")

# failures that say nothing about the message itself, the last that a node daemon does not follow
# this controller yet, or not any more
UNREACHABLE: Final = frozenset({1001, 1005, 1006, 5004, STANDBY})
FIRST_PAUSE_S: Final = 1.0  # ours: before nodes are asked again, twice as long each time
LONGEST_PAUSE_S: Final = 60.0  # ours: the longest such pause


class _Call:
    """One message for many nodes."""

    __slots__ = ("codes", "done", "message", "nodes", "pause_s", "rounds", "wanted")

    def __init__(
        self,
        nodes: Sequence[str],
        message: Message,
        rounds: int | None,
        wanted: Callable[[], bool] | None,
        done: Callable[[dict[str, int]], None] | None,
    ) -> None:
        self.nodes, self.message, self.rounds = nodes, message, rounds
        self.wanted, self.done = wanted, done
        self.pause_s = FIRST_PAUSE_S
        self.codes: dict[str, int] = {}  # of the answers


class FanOut:
    """Sends to nodes. `at_most`: to how many of them at a time, over all trees. `after_event` is
    called after an answer has been worked on.
    """

    def __init__(
        self,
        wire: Wire,
        time: Clock,
        *,
        width: int,
        timeout_s: float = 10.0,
        at_most: int = 4096,
        after_event: Callable[[], None] = lambda: None,
        sign: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._sign = sign
        self._wire, self._time, self._after_event = wire, time, after_event
        self._width, self._timeout_s, self._at_most = width, timeout_s, at_most
        self._under_way = 0
        self._waiting: deque[_Call] = deque()
        self.trees = self.sent = self.repeated = 0

    def send(
        self,
        nodes: Sequence[str],
        message: Message,
        *,
        rounds: int | None = None,
        wanted: Callable[[], bool] | None = None,
        done: Callable[[dict[str, int]], None] | None = None,
    ) -> None:
        """Send the message to the nodes, again to those that are not reached, until `wanted()` is
        false or, if given, for so many `rounds`. `done` gets the code of each node's answer.
        """
        if nodes:
            self._waiting.append(_Call(nodes, message, rounds, wanted, done))
            self._pump()

    def _pump(self) -> None:
        while self._waiting:
            call = self._waiting[0]
            if self._under_way and self._under_way + len(call.nodes) > self._at_most:
                return
            self._waiting.popleft()
            if call.wanted is None or call.wanted():
                self._go(call)

    def _go(self, call: _Call) -> None:
        self.trees += 1
        size = len(call.nodes)
        self._under_way += size
        tree = ForwardTree(
            call.message,
            [Target(node, (node,)) for node in call.nodes],
            self._width if self._width > 0 else size,
            self._timeout_s,
            sign=self._sign,
        )

        def take(hop: int, answer: Message) -> None:
            if tree.result is not None:
                return
            for send in tree.answered(hop, answer):
                go(send.hop, send.peer, send.message, send.timeout_s)
            if tree.result is not None:
                self._under_way -= size
                self._take(call, tree.result)
                self._pump()
            self._after_event()

        def go(hop: int, peer: str, message: Message, timeout_s: float) -> None:
            self.sent += 1
            self._wire.send(peer, message, lambda answer: take(hop, answer), timeout_s)

        for first in tree.start():
            go(first.hop, first.peer, first.message, first.timeout_s)

    def _take(self, call: _Call, result: NodeReplies) -> None:
        missing: list[str] = []
        for reply in result.replies:
            nodes = expand(reply.nodes)
            call.codes |= dict.fromkeys(nodes, reply.code)
            if reply.code in UNREACHABLE:
                missing += nodes
        if call.rounds is not None:
            call.rounds -= 1
        if missing and call.rounds != 0:
            log.info(
                "%d of %d nodes not reached: next try in %.0f s",
                len(missing),
                len(call.nodes),
                call.pause_s,
            )
            self.repeated += len(missing)
            call.nodes = missing
            self._time.call_after_wait(call.pause_s, self._again, call)
            call.pause_s = min(call.pause_s * 2, LONGEST_PAUSE_S)
        elif call.done is not None:
            call.done(call.codes)

    def _again(self, call: _Call) -> None:
        self._waiting.append(call)
        self._pump()
