"""Hops through sockets: each message to a node goes over a connection of its own, which is opened
for it, authenticated, and closed with the answer.

Place: beside the messenger, for senders that talk to nodes as hops of their own (the controller,
and each node that hands a message on). The receiving end is an ordinary messenger: many nodes
listen at one address, and the hello names the one that is meant. Only real and scaled time: virtual
time counts the messages of its participants, and a node is none. Follows: slurm.conf(5) TreeWidth.

Connections that are kept would be one for each pair of nodes that any job ever made neighbours; who
hands a message on opens one for it, as Slurm's daemons do.

    socket, connect    refused: Failure 1005
    hello       ->
                <-     challenge in the node's name
    message     ->
                <-     answer; closed without one: Failure 1006; none in time: 5004
"""

from __future__ import annotations

import os
import resource
import socket
from collections import deque
from errno import EAGAIN, EINPROGRESS
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.auth.handshake import (
    SealedChannel,
    client_hello,
)
from understudy.auth.keys import Keys
from understudy.model.cluster import SPARE_DESCRIPTORS
from understudy.model.hostlist import expand
from understudy.protocol import addresses
from understudy.protocol.connection import Connection, ProtocolError
from understudy.protocol.envelopes import (
    ANSWER,
    ASK,
    CONNECT_FAILED,
    CONNECTION_LOST,
    TIMED_OUT,
    Envelope,
)
from understudy.protocol.messages import Failure, Message
from understudy.protocol.mishaps import SAFE, Mishaps

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable

    from understudy.model.cluster import Cluster, Hops, NodeDaemon

_AGAIN_S: Final = 0.002  # ours: before a listener whose queue was full is tried again
_AT_ONCE: Final = 256  # ours: connections that are opened before others get a turn

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Envelope).decode


def raise_descriptor_limit() -> int:
    """Use as many descriptors as this process may have; how many that are."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


class _Hop:
    """One message on its way."""

    __slots__ = (
        "answer_is_lost",
        "body",
        "connection",
        "delay_s",
        "hello",
        "links",
        "node",
        "on_reply",
        "timer",
    )

    def __init__(
        self,
        links: HopLinks,
        node: str,
        hello: bytes,
        body: bytes,
        on_reply: Callable[[Message], None] | None,
    ) -> None:
        self.links, self.node, self.hello, self.body = links, node, hello, body
        self.on_reply = on_reply
        self.connection: Connection | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.delay_s, self.answer_is_lost = 0.0, False

    def challenged(self, connection: Connection, body: bytes) -> None:
        secret, _ = self.links.keys.secret(self.hello, body, self.links.daemon_of[self.node])
        connection.secure(SealedChannel(secret, is_client=True))
        connection.on_body = self.answered
        connection.send(self.body)

    def answered(self, connection: Connection, body: bytes) -> None:
        try:
            envelope = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProtocolError(f"malformed answer: {error}"[:200]) from error
        if envelope.kind != ANSWER:
            raise ProtocolError(f"a frame of kind {envelope.kind} where an answer was expected")
        connection.on_closed = _ignore
        connection.close()
        if self.answer_is_lost:
            return  # the sender waits until its time is up
        if self.delay_s:
            self.links.call_later(self.delay_s, self.end, envelope.message)
        else:
            self.end(envelope.message)

    def lost(self, _: Connection, reason: str) -> None:
        self.end(Failure(CONNECTION_LOST, reason or f"{self.node} closed the connection"))

    def timed_out(self) -> None:
        self.end(Failure(TIMED_OUT, f"no answer of {self.node} in time"))

    def end(self, answer: Message) -> None:
        """Tell the sender, once."""
        if self.timer is None:
            return
        self.timer.cancel()
        self.timer = None
        if self.connection is not None and not self.connection.closed:
            self.connection.on_closed = _ignore
            self.connection.close()
        self.connection = None
        self.links.open.pop(self, None)
        on_reply, self.on_reply = self.on_reply, None
        if on_reply is not None:
            on_reply(answer)


def _ignore(_connection: Connection, _reason: str) -> None:
    """A connection that has served its purpose is closed."""


class HopLinks:
    """The way to nodes, from any sender in this process. `daemons` say who stands for each."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        keys: Keys,
        daemons: Iterable[NodeDaemon],
        mishaps: Mishaps | None = None,
    ) -> None:
        self._loop, self.keys = loop, keys
        self._address_of: dict[str, str] = {}
        self.daemon_of: dict[str, str] = {}
        for daemon in daemons:
            nodes = expand(daemon.nodes)
            self._address_of |= dict.fromkeys(nodes, daemon.address)
            self.daemon_of |= dict.fromkeys(nodes, daemon.name)
        self._mishaps = mishaps if mishaps and (mishaps.latency_s or mishaps.loss) else None
        self._where: dict[str, tuple[socket.AddressFamily, Any]] = {}
        self._numbers: dict[str, int] = {}  # of each sender's last message
        self.open: dict[_Hop, None] = {}
        self._waiting: deque[_Hop] = deque()  # for a place in a listener's queue, or for their turn
        self._is_connecting = False
        self._user = os.getuid(), os.getgid()
        # how long a node is waited for is a matter of real time
        self.call_later: Callable[..., asyncio.TimerHandle] = getattr(
            loop, "call_later_real", loop.call_later
        )
        # nodes that trees may reach at a time: each has two ends, which may be in one process, and
        # there are those of other senders
        self.at_most = 256
        self.sent = self.bytes_sent = 0

    @property
    def nodes(self) -> Iterable[str]:
        """All to which it leads."""
        return self._address_of

    def leads_to(self, node: str) -> bool:
        """Whether there is a node of this name."""
        return node in self._address_of

    def send(
        self,
        sender: str,
        node: str,
        message: Message,
        on_reply: Callable[[Message], None] | None,
        timeout_s: float,
    ) -> None:
        """Ask a node in the sender's name. `on_reply` gets the answer, or a Failure as of
        `Messenger.send`.
        """
        body = _encode((ASK, 1, 0, 0, message))
        user_id, group_id = self._user
        hello = client_hello(self.keys.name, user_id, group_id, is_daemon=True, addressee=node)
        hop = _Hop(self, node, hello, body, on_reply)
        self.open[hop] = None
        hop.timer = self.call_later(timeout_s, hop.timed_out)
        self.sent += 1
        self.bytes_sent += len(body)
        passage = SAFE
        if self._mishaps is not None:
            number = self._numbers[sender] = self._numbers.get(sender, 0) + 1
            passage = self._mishaps.passage(sender, node, number)
        if passage.is_lost:
            return
        hop.delay_s, hop.answer_is_lost = passage.delay_s, passage.answer_is_lost
        if passage.delay_s:
            self.call_later(passage.delay_s, self._enqueue, hop)
        else:
            self._enqueue(hop)

    def close(self) -> None:
        """Forget all that is on its way."""
        for hop in list(self.open):
            hop.on_reply = None
            hop.end(Failure(CONNECTION_LOST, "ending"))
        self._waiting.clear()

    def _enqueue(self, hop: _Hop) -> None:
        self._waiting.append(hop)
        if not self._is_connecting:
            self._is_connecting = True
            self._loop.call_soon(self._connect_waiting)

    def _connect_waiting(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._waiting))):
            hop = self._waiting.popleft()
            if hop.timer is not None and not self._connect(hop):
                self._waiting.appendleft(hop)
                self.call_later(_AGAIN_S, self._connect_waiting)
                return
        self._is_connecting = bool(self._waiting)
        if self._is_connecting:
            self._loop.call_soon(self._connect_waiting)

    def _connect(self, hop: _Hop) -> bool:
        """Begin; False if the listener's queue is full."""
        address = self._address_of[hop.node]
        found = self._where.get(address)
        if found is None:
            found = self._where[address] = addresses.parse(address)
        family, where = found
        try:
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:  # no descriptor is left
            hop.end(Failure(CONNECT_FAILED, f"no connection with {hop.node}: {error.strerror}"))
            return True
        code = sock.connect_ex(where)
        if code and code != EINPROGRESS:
            sock.close()
            if code == EAGAIN:
                return False
            why = os.strerror(code)
            hop.end(Failure(CONNECT_FAILED, f"no connection with {hop.node}: {why}"))
            return True
        hop.connection = connection = Connection(
            self._loop, sock, hop.challenged, hop.lost, peer=hop.node
        )
        connection.send(hop.hello)
        return True


def mishaps_of(hops: Hops) -> Mishaps:
    """What may befall the hops of a cluster."""
    return Mishaps(hops.seed, hops.latency_ms / 1000, hops.loss, hops.deaths)


def hop_links(loop: asyncio.AbstractEventLoop, name: str, cluster: Cluster, hops: Hops) -> HopLinks:
    """The way of the daemon `name` to all nodes of a cluster, with as many descriptors as the
    process may have.
    """
    limit = raise_descriptor_limit()
    keys = Keys(name, Path(cluster.key_folder))
    links = HopLinks(loop, keys, cluster.nodeds, mishaps_of(hops))
    links.at_most = (limit - SPARE_DESCRIPTORS) // 3
    return links
