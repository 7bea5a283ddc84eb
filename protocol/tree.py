"""Messages to many nodes: a tree of width TreeWidth, replies merged on the way up, failures
reported node by node.

Place: used by the controller's agents and by node daemons alike; a state machine without I/O. Its
owner sends what it asks for (`Send`), hands back what came of each (`answered`), and reads `result`
when it is there. It must not know sockets, time, or what the messages mean. Follows: slurm.conf(5)
TreeWidth, MessageTimeout.

How it works. The targets, in order, are split in at most `width` parts. The first target of a part
is its head: it gets one `Forward` for the whole part, does its own share, and forwards the rest in
the same way. A head that does not answer is reported, and the next of its part takes its place.
Nodes of the part that a head says nothing about are reported, too. So every node is in the result
exactly once, whatever happens.

A target is one node daemon with those of the nodes for which it stands: hops between nodes of one
process are taken in memory.

How long to wait. A sender waits `patience_s` for a head, by the number of levels from the head
down; a forwarder gives up after `budget_s`, one timeout earlier, and answers with what it has:
otherwise a dead node deep in the tree would make everybody above it look dead. Both grow with the
square of the depth. If they grew in proportion to it, a head that hangs would use up its
forwarder's time, and none be left for its replacement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.model.hostlist import compress, expand
from understudy.protocol.messages import Failure, Forward, Message, NodeReplies, NodeReply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from understudy.model.cluster import NodeDaemon

CANNOT_CONNECT: Final = 1005
NO_ANSWER: Final = 1006
TIMED_OUT: Final = 5004
UNKNOWN_NODE: Final = 2018

_encode: Final = msgspec.msgpack.Encoder().encode

Outcome = tuple[int, str]  # code and text of a NodeReply
WELL: Final[Outcome] = (0, "")


@dataclass(frozen=True, slots=True)
class Target:
    """One hop of the tree: who is sent to, and the nodes for which it answers itself."""

    peer: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Send:
    """What the owner must do: send `message` to `peer`, wait at most `timeout_s`, give what came of
    it to `ForwardTree.answered(hop, ...)`.
    """

    hop: int
    peer: str
    message: Forward
    timeout_s: float


# --- planning -------------------------------------------------------------------------------------


def split(targets: Sequence[Target], width: int) -> list[Sequence[Target]]:
    """At most `width` parts of equal size (give or take one), in order, none empty."""
    assert width >= 1
    count = min(width, len(targets))
    parts, start = [], 0
    for i in range(count):
        end = start + (len(targets) - start) // (count - i)
        parts.append(targets[start:end])
        start = end
    return parts


def levels(size: int, width: int) -> int:
    """How many levels a part of `size` targets has, its head included: 0 for none, 1 for a head
    alone.
    """
    count = 0
    while size > 0:
        count += 1
        size = -(-(size - 1) // width)
    return count


def budget_s(size: int, width: int, timeout_s: float) -> float:
    """How long a head may take for a part of `size` targets, itself included."""
    depth = levels(size, width)
    return timeout_s * depth * (depth + 1) / 2


def patience_s(size: int, width: int, timeout_s: float) -> float:
    """How long a sender waits for the head of a part of `size` targets."""
    return budget_s(size, width, timeout_s) + timeout_s


class Routes:
    """Which daemon stands for which node."""

    def __init__(self, daemon_of: Mapping[str, str]) -> None:
        self.daemon_of = daemon_of

    @classmethod
    def of(cls, nodeds: Iterable[NodeDaemon]) -> Routes:
        return cls({node: daemon.name for daemon in nodeds for node in expand(daemon.nodes)})

    def targets(self, nodes: Iterable[str]) -> tuple[list[Target], list[str]]:
        """The targets for the nodes, daemons in the order in which they come first, and the nodes
        for which nobody stands.
        """
        by_daemon: dict[str, list[str]] = {}
        strangers: list[str] = []
        for node in dict.fromkeys(nodes):
            daemon = self.daemon_of.get(node)
            if daemon is None:
                strangers.append(node)
            else:
                by_daemon.setdefault(daemon, []).append(node)
        return [Target(daemon, tuple(its)) for daemon, its in by_daemon.items()], strangers


# --- merging --------------------------------------------------------------------------------------


def merged(outcomes: Mapping[str, Outcome]) -> NodeReplies:
    """One `NodeReply` for each different answer, in the order of the nodes: the same whatever the
    order in which they answered.
    """
    groups: dict[Outcome, list[str]] = {}
    for node, outcome in outcomes.items():
        groups.setdefault(outcome, []).append(node)
    return NodeReplies(
        [
            NodeReply(compress(nodes, sort=False), code, text)
            for (code, text), nodes in groups.items()
        ]
    )


# --- the state machine ----------------------------------------------------------------------------


class ForwardTree:
    """One message on its way to the targets.

    `start` and `answered` return what to send next; `result` is set as soon as every node is
    accounted for. Answers that come late (after `expire`, or of a head that was given up) change
    nothing. `order` goes with the message, or is made by `sign` where a head is to hand it on.
    """

    def __init__(
        self,
        message: Message | bytes,
        targets: Sequence[Target],
        width: int,
        timeout_s: float,
        *,
        order: bytes = b"",
        sign: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._order, self._sign = order, sign
        self._inner = message if isinstance(message, bytes) else _encode(message)
        self._width = max(1, width)
        self._timeout_s = timeout_s
        self._outcomes: dict[str, Outcome | None] = dict.fromkeys(
            node for target in targets for node in target.nodes
        )
        assert len(self._outcomes) == sum(len(target.nodes) for target in targets), (
            "a node in two targets"
        )
        self._targets = targets
        self._open: dict[int, Sequence[Target]] = {}  # hop -> its part, head first
        self._hops = 0
        self.result: NodeReplies | None = None

    def start(self) -> list[Send]:
        """The first messages: at most `width`."""
        assert self._hops == 0, "started twice"
        sends = [self._send(part) for part in split(self._targets, self._width)]
        self._finish_if_complete()
        return sends

    def answered(self, hop: int, answer: Message) -> list[Send]:
        """What came of a `Send`: the head's `NodeReplies`, or a `Failure` (anything else counts as
        one).
        """
        part = self._open.pop(hop, None)
        if part is None:
            return []
        if isinstance(answer, NodeReplies):
            self._take(part, answer)
            sends = []
        else:
            outcome = (
                (answer.code, answer.text)
                if isinstance(answer, Failure)
                else (NO_ANSWER, f"unexpected answer {type(answer).__name__}")
            )
            sends = self._replace_head(part, outcome)
        self._finish_if_complete()
        return sends

    def expire(self) -> None:
        """Time is up: report all that is not known yet as not answering."""
        for part in self._open.values():
            for target in part:
                self._report(target.nodes, (TIMED_OUT, "no answer in time"))
        self._open.clear()
        self._finish_if_complete()

    def _send(self, part: Sequence[Target]) -> Send:
        self._hops += 1
        self._open[self._hops] = part
        nodes = compress([node for target in part for node in target.nodes], sort=False)
        if self._sign is not None and len(part) > 1:
            self._order, self._sign = self._sign(self._inner), None
        message = Forward(self._inner, nodes, self._width, self._timeout_s, self._order)
        return Send(
            self._hops, part[0].peer, message, patience_s(len(part), self._width, self._timeout_s)
        )

    def _take(self, part: Sequence[Target], replies: NodeReplies) -> None:
        asked = dict.fromkeys(node for target in part for node in target.nodes)
        for reply in replies.replies:
            try:
                nodes = expand(reply.nodes)
            except ValueError:
                continue  # the nodes it meant are reported below
            outcome = (reply.code, reply.text)
            for node in nodes:
                if node in asked:
                    del asked[node]
                    self._outcomes[node] = outcome
        self._report(asked, (NO_ANSWER, f"left out by {part[0].peer}"))

    def _replace_head(self, part: Sequence[Target], outcome: Outcome) -> list[Send]:
        head, rest = part[0], part[1:]
        self._report(head.nodes, outcome)
        if outcome[0] == CANNOT_CONNECT:  # then other nodes of the same process are no better
            for target in rest:
                if target.peer == head.peer:
                    self._report(target.nodes, outcome)
            rest = [target for target in rest if target.peer != head.peer]
        return [self._send(rest)] if rest else []

    def _report(self, nodes: Iterable[str], outcome: Outcome) -> None:
        for node in nodes:
            assert self._outcomes[node] is None, f"{node} is accounted for already"
            self._outcomes[node] = outcome

    def _finish_if_complete(self) -> None:
        if self._open or self.result is not None:
            return
        outcomes: dict[str, Outcome] = {}
        for node, outcome in self._outcomes.items():
            assert outcome is not None, f"{node} was forgotten"
            outcomes[node] = outcome
        self.result = merged(outcomes)
