"""A daemon's mouth and ears: typed requests and answers to and from its peers.

Place: between a daemon's core and the connections. One class for all transports: sockets in real,
scaled and virtual time, and memory when all daemons share a process. Handlers are plain functions,
called in a defined order; a message costs no task.

Under virtual time a message carries the instant of its delivery, sent + latency, and is handed to
the loop, which delivers it then: in the order (delivery, sender, sender's sequence number). What
comes from outside virtual time (a command) waits until all participants stand still.

Every message is acknowledged. Where the asker only wants to hear of failures (`only_failures`), the
acknowledgement under virtual time is the clock's: no participant is granted time before it has
received what was sent to it, so an answer would only cost a window, and is left out.

An envelope is `[kind, number, deliver_us, sequence, message]`; kind 0 asks, 1 answers, 2 complains
before the connection is closed, 3 asks to be answered only by a Failure.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from understudy.auth.handshake import (
    MAX_FRAME,
    AuthError,
    SealedChannel,
    VersionError,
    client_hello,
    read_addressee,
    read_hello,
    server_challenge,
)
from understudy.auth.keys import AGENT, is_central
from understudy.auth.local import LOCAL_END, LOCAL_HELLO, other_end
from understudy.auth.refusals import PeerCounts, Refusals, most_of_one_user
from understudy.model.cluster import is_controller
from understudy.model.errors import SlurmError
from understudy.protocol import addresses
from understudy.protocol.connection import Connection, ProtocolError, Traffic
from understudy.protocol.connection import log as connection_log
from understudy.protocol.messages import AnyMessage, Failure, Message

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping

    from understudy.auth.keys import Keys
    from understudy.protocol.hops import HopLinks

log = logging.getLogger("understudy.messenger")

ASK: Final = 0
ANSWER: Final = 1
COMPLAINT: Final = 2
TELL: Final = 3

CONNECT_FAILED: Final = 1005
CONNECTION_LOST: Final = 1006
TIMED_OUT: Final = 5004  # Slurm's "Socket timed out on send/recv operation"
STANDBY: Final = 2027  # "Slurm backup controller in standby mode"

_HANDSHAKE_S: Final = 10.0  # ours: until a peer has said who it is
_ACCEPT_AGAIN_S: Final = 1.0  # ours: when there was no descriptor for a connection
# Under virtual time a daemon's messages are read when the clock says that there are some. What
# proves that it holds the key is a frame of its own: empty, sealed.
_PROOF: Final = b""
_PROOF_BYTES: Final = 20  # four of length, sixteen of the seal
_COMMAND_MAX_FRAME: Final = 16 << 20
# ours: under virtual time a peer that does not listen yet is waited for, in real time
_PATIENCE_S: Final = 60.0
_TOLD_LOOKED_AT: Final = 128  # ours: until it is seen who of those that were told is past failing
_UNREACHABLE: Final = "Unable to contact slurm controller (connect failure)"


class VirtualLoop(Protocol):
    """What the messenger needs of a loop under virtual time (clock.virtual_loop)."""

    now_us: int
    authority: Any

    def post(
        self, deliver_us: int, sender: str, sequence: int, deliver: Callable[..., None], *args: Any
    ) -> None: ...
    def run_outside(self, callback: Callable[..., None], *args: Any) -> None: ...
    def hold(self) -> Any: ...
    def call_later_real(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> Any: ...


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """What a frame holds."""

    kind: int
    number: int
    deliver_us: int
    sequence: int
    message: AnyMessage


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Envelope).decode


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection, authenticated. A daemon has a key of its own, which
    proves its name; commands act for a user. Of a node daemon, the user is what it says, and gives
    it no rights.
    """

    name: str
    user_id: int
    group_id: int
    is_daemon: bool
    # worked out once, as it is asked of each request: whether it is a node daemon, a controller
    is_node: bool = field(init=False, repr=False, compare=False)
    is_controller: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "is_node", self.is_daemon and not is_central(self.name))
        put(self, "is_controller", self.is_daemon and is_controller(self.name))


class Request:
    """A message that wants one answer."""

    __slots__ = ("_answer", "_connection", "_number", "message", "sender")

    def __init__(
        self,
        message: Message,
        sender: Peer,
        number: int,
        answer: Callable[[int, Message], None],
        connection: Connection | None = None,
    ) -> None:
        self.message, self.sender, self._number, self._connection = (
            message,
            sender,
            number,
            connection,
        )
        self._answer: Callable[[int, Message], None] | None = answer

    def is_gone(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._connection is not None and self._connection.closed

    @property
    def addressee(self) -> str:
        """The node for which the connection is, of those that share an address; "": the daemon."""
        accepted = None if self._connection is None else self._connection.tag
        return accepted.addressee if isinstance(accepted, _Accepted) else ""

    def break_off(self) -> None:
        """Close the connection in place of an answer, as who dies does."""
        self._answer = None
        if self._connection is not None:
            self._connection.close()

    def reply_part(self, part: Message) -> None:
        """A part of the answer; the last one is for `reply`. Only commands take answers in
        parts.
        """
        assert self._answer is not None
        self._answer(self._number, part)

    def reply(self, answer: Message) -> None:
        """Answer, once."""
        send = self._answer
        assert send is not None, (
            f"{type(self.message).__name__} of {self.sender.name} was answered twice"
        )
        self._answer = None
        send(self._number, answer)


Handler = "Callable[[Request], Message | None]"


class _Link:
    """An outgoing connection to a peer, opened on first use. `addresses`: of those one of whom is
    the peer, who it was last first.
    """

    __slots__ = ("addresses", "connection", "name", "proven_by", "queue")

    def __init__(self, name: str, addresses: list[str]) -> None:
        self.name, self.addresses = name, addresses
        self.connection: Connection | None = None
        self.proven_by = (name, b"")  # whose key it is, and the key
        # while connecting: kind, number, deliver_us, sequence, message
        self.queue: list[tuple[int, int, int, int, Message]] | None = None


class _Accepted:
    """The state of an accepted connection."""

    __slots__ = (
        "addressee",
        "deadline",
        "is_participant",
        "key",
        "peer",
        "proven",
        "proven_by",
        "respond",
        "respond_failures",
    )

    def __init__(self, key: int | str) -> None:
        self.key = key  # the user, or the host
        self.deadline: asyncio.TimerHandle | None = None  # of its proof
        self.peer: Peer | None = None
        self.addressee = ""
        self.is_participant = False
        self.proven = False
        self.proven_by = ("", b"")  # whose key it is, and the key; "": the kernel's word
        self.respond: Callable[[int, Message], None] | None = None
        self.respond_failures: Callable[[int, Message], None] | None = None


def _has_proven(connection: Connection, accepted: _Accepted) -> bool:
    """Whether who connected has proven who it is. Of who takes part in virtual time the proof may
    not have been read yet, and it alone is read here: messages have their time.
    """
    if accepted.is_participant and not accepted.proven and not connection.closed:
        connection.read(_PROOF_BYTES)
    return accepted.proven


class MemoryNetwork:
    """Messengers that share one process and one virtual loop: messages are handed over as they are,
    in the same order as over sockets.
    """

    def __init__(self) -> None:
        self.members: dict[str, Messenger] = {}


class Messenger:
    """Sends requests to peers by name, and hands theirs to the handler.

    `latency_s`, `link_latency`: only under virtual time, where they set when a message is
    delivered. `keys`: ours and the others'; None: all are in this process. Who is no daemon speaks
    for the user, and may do so in one process alone.
    """

    def __init__(
        self,
        name: str,
        loop: asyncio.AbstractEventLoop,
        keys: Keys | None,
        *,
        user_id: int = 0,
        group_id: int = 0,
        latency_s: float = 0.001,
        link_latency: Mapping[str, float] | None = None,
        network: MemoryNetwork | None = None,
        is_daemon: bool = True,
    ) -> None:
        assert network is not None or (keys is not None and is_daemon)
        self.name = name
        self._loop = loop
        self._virtual: VirtualLoop | None = loop if hasattr(loop, "now_us") else None  # type: ignore[assignment]
        self._keys = keys
        # A peer's silence is a matter of real time where the cluster's is scaled; under virtual
        # time the clock knows who is silent.
        self._call_later_real = (
            getattr(loop, "call_later_real", None) if self._virtual is None else None
        )
        self._waited: Callable[[], float] = (
            loop.time if self._call_later_real is None else time.monotonic
        )
        self._me = Peer(name, user_id, group_id, is_daemon)
        self._latency_us = round(latency_s * 1e6)
        self._link_latency_us = {
            tuple(link.split(">")): round(extra * 1e6)
            for link, extra in (link_latency or {}).items()
        }
        self._failures_kept_us = 4 * self._latency_us + 2 * max(
            self._link_latency_us.values(), default=0
        )
        self._network = network
        if network is not None:
            network.members[name] = self
        self._links: dict[str, _Link] = {}
        self._pending: dict[int, tuple[Callable[[Message], None] | None, str, float]] = {}
        # only failures matter; and when they were sent
        self._failures_only: dict[int, tuple[Callable[[Message], None], str, int]] = {}
        self._failures_looked_at = _TOLD_LOOKED_AT
        self._numbers = 0
        self._sequence = 0
        self._handler: Callable[[Request], Message | None] | None = None
        self._listeners: list[socket.socket] = []
        self._connections: dict[Connection, None] = {}
        self.traffic = Traffic()  # of all connections
        self._deadline: asyncio.TimerHandle | None = None
        self._deadline_at = 0.0
        self._closed = False
        later = getattr(loop, "call_later_real", loop.call_later)
        self._refusals = Refusals(connection_log, later)
        self.counts = PeerCounts(most_of_one_user())
        self.hops: HopLinks | None = None  # to nodes, where each is a hop of its own
        # told when the connection to a peer breaks
        self.on_peer_lost: Callable[[str], None] | None = None
        # whether anything may be told to anybody; None: always
        self.may_speak: Callable[[], bool] | None = None

    def share(self, network: MemoryNetwork) -> None:
        """Reach those in this process without a socket from now on, and be reached so."""
        self._network = network
        network.members[self.name] = self

    def forsake(self) -> None:
        """In a fork of the process, whose loop is its own by now: let go of who listens and speaks
        here, without a word to them; they go on with the other process.
        """
        for listener in self._listeners:
            self._loop.remove_reader(listener.fileno())
            listener.close()
        self._listeners.clear()
        for connection in list(self._connections):
            connection.close()

    def set_handler(self, handler: Callable[[Request], Message | None]) -> None:
        """Call `handler` for each request; it returns the answer, or None and answers later through
        `Request.reply`.
        """
        self._handler = handler

    def add_peer(self, name: str, address: str, *others: str) -> None:
        """Tell where a peer listens. A new address replaces the old one for the next connection.

        `others`: of who may be the peer in its place. Who cannot be reached, does not answer in
        time or says that it stands by is followed by the next of them.
        """
        addresses = [address, *others]
        link = self._links.get(name)
        if link is None:
            self._links[name] = _Link(name, addresses)
        else:
            link.addresses = addresses

    def prefer(self, name: str, address: str) -> None:
        """Of a peer's addresses it is this one from now on."""
        link = self._links[name]
        if link.addresses[0] != address:
            link.addresses.sort(key=lambda each: each != address)
            self._leave(link)

    def _leave(self, link: _Link) -> None:
        """Close the connection to a peer that is to be found elsewhere; its answers that are due
        will not come.
        """
        connection, link.connection = link.connection, None
        if connection is not None:
            connection.on_closed = lambda closed, _reason: self._forget(closed)
            connection.close()
            gone = Failure(CONNECTION_LOST, f"{link.name} is to be found elsewhere")
            for number in self._asked_of(link.name):
                self._loop.call_soon(self._answered, number, gone)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is outstanding."""
        return bool(self._pending)

    # --- asking -----------------------------------------------------------------------------------

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
        """Ask a peer. `on_reply` gets the answer, or a Failure with code 1005 (no connection), 1006
        (lost) or 5004 (timed out, after so many real seconds).

        `ahead_s`: under virtual time, how much later it is sent: who knows what it will send needs
        no window for each message. `only_failures`: `on_reply` hears of nothing else. Under virtual
        time there is no deadline then, because the clock knows who is silent.
        """
        if self.may_speak is not None and not self.may_speak():
            return
        if self.hops is not None and self.hops.leads_to(peer):
            self.hops.send(self.name, peer, message, on_reply, timeout_s)
            return
        self._numbers = number = self._numbers + 1
        virtual = self._virtual
        kind = ASK
        sent_us = 0 if virtual is None else virtual.now_us
        if ahead_s:
            sent_us += round(ahead_s * 1e6)
        if only_failures and virtual is not None:
            kind = TELL
            if on_reply is not None:
                self._remember(number, on_reply, peer, virtual.now_us, sent_us)
        else:
            self._await(
                number, peer, _failures_to(on_reply) if only_failures else on_reply, timeout_s
            )
        self._sequence = sequence = self._sequence + 1
        deliver_us = 0
        if virtual is not None:
            deliver_us = sent_us + self._latency_us
            if self._link_latency_us:
                deliver_us += self._link_latency_us.get((self.name, peer), 0)
            if self._network is not None:
                receiver = self._network.members.get(peer)
                if receiver is None:
                    self._loop.call_soon(
                        self._answered, number, Failure(CONNECT_FAILED, _UNREACHABLE)
                    )
                else:
                    virtual.post(
                        deliver_us,
                        self.name,
                        sequence,
                        receiver._take_in_memory,
                        self,
                        number,
                        message,
                        kind,
                    )
                return
        self._send_by_link(peer, (kind, number, deliver_us, sequence, message))

    def _send_by_link(self, peer: str, envelope: tuple[int, int, int, int, Message]) -> None:
        _, number, deliver_us, _, _ = envelope
        virtual, link = self._virtual, self._links.get(peer)
        if link is None:
            self._loop.call_soon(
                self._answered, number, Failure(CONNECT_FAILED, f"no address of {peer} is known")
            )
        elif link.connection is not None:
            link.connection.send(_encode(envelope))
            if virtual is not None and virtual.authority is not None:
                virtual.authority.sent(peer, deliver_us)
        elif link.queue is not None:
            link.queue.append(envelope)
        else:
            link.queue = [envelope]
            task = self._loop.create_task(self._connect(link))
            task.add_done_callback(_log_failure)

    async def call(self, peer: str, message: Message, timeout_s: float = 10.0) -> Message:
        """Ask a peer and wait for the answer (a Failure where there is none)."""
        future: asyncio.Future[Message] = self._loop.create_future()

        def answered(answer: Message) -> None:
            if not future.done():
                future.set_result(answer)

        self.send(peer, message, answered, timeout_s)
        return await future

    def _await(
        self, number: int, peer: str, on_reply: Callable[[Message], None] | None, timeout_s: float
    ) -> None:
        deadline = self._waited() + timeout_s
        self._pending[number] = (on_reply, peer, deadline)
        if timeout_s != float("inf") and (self._deadline is None or deadline < self._deadline_at):
            self._arm(deadline)

    def _remember(
        self,
        number: int,
        on_reply: Callable[[Message], None],
        peer: str,
        now_us: int,
        sent_us: int,
    ) -> None:
        """Keep who wants to hear of a failure. Time does not go further than a latency beyond
        anybody's next event, so what was due longer ago has been worked on.
        """
        waiting_for = self._failures_only
        waiting_for[number] = (on_reply, peer, sent_us)
        if len(waiting_for) > self._failures_looked_at:
            # many at once: a dict finds its oldest slowly once others before it have gone
            since_us = now_us - self._failures_kept_us
            kept = {told: each for told, each in waiting_for.items() if each[2] >= since_us}
            self._failures_only = kept
            self._failures_looked_at = max(2 * len(kept), _TOLD_LOOKED_AT)

    def _arm(self, deadline: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline_at = deadline
        if self._call_later_real is None:
            self._deadline = self._loop.call_at(deadline, self._time_out)
        else:
            self._deadline = self._call_later_real(
                max(0.0, deadline - self._waited()), self._time_out
            )

    def _time_out(self) -> None:
        self._deadline = None
        # The deadline counts even if the clock's last digit says that it is not reached yet: else
        # the same instant would come again and again.
        now = max(self._waited(), self._deadline_at)
        late = [number for number, (_, _, deadline) in self._pending.items() if deadline <= now]
        for number in late:
            peer = self._pending[number][1]
            self._answered(number, Failure(TIMED_OUT, f"no answer of {peer} in time"))
        following = min(
            (deadline for _, _, deadline in self._pending.values()), default=float("inf")
        )
        if following != float("inf") and self._deadline is None:
            self._arm(following)

    def _answered(self, number: int, message: Message) -> None:
        waiting = self._pending.pop(number, None)
        if waiting is None:
            waiting_for = self._failures_only.pop(number, None)
            if waiting_for is not None:
                waiting_for[0](message)
            return  # else answered after its time
        if not self._pending and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        on_reply = waiting[0]
        if type(message) is Failure and message.code in (STANDBY, TIMED_OUT):
            self._try_next(waiting[1])
        if on_reply is not None:
            on_reply(message)

    def _try_next(self, peer: str) -> None:
        """Who was asked is not the peer, or does not answer: if it may be another, it is from now
        on.
        """
        link = self._links.get(peer)
        if link is not None and len(link.addresses) > 1 and link.connection is not None:
            link.addresses.append(link.addresses.pop(0))
            self._leave(link)

    def _asked_of(self, peer: str) -> list[int]:
        """What the peer has not answered yet."""
        return [number for number, waiting in self._pending.items() if waiting[1] == peer]

    def _fail_all(self, peer: str, failure: Failure) -> None:
        for number in self._asked_of(peer):
            self._answered(number, failure)
        if self._virtual is not None:
            since_us = self._virtual.now_us - self._failures_kept_us
            for number in [
                number
                for number, waiting_for in self._failures_only.items()
                if waiting_for[1] == peer and waiting_for[2] >= since_us
            ]:
                self._answered(number, failure)
        if self.on_peer_lost is not None:
            self.on_peer_lost(peer)

    # --- connecting -------------------------------------------------------------------------------

    async def _connect(self, link: _Link) -> None:
        with self._virtual.hold() if self._virtual is not None else nullcontext():
            until = time.monotonic() + (_PATIENCE_S if self._virtual is not None else 0.0)
            while True:
                try:
                    connection = await self._open_any(link)
                    break
                except (OSError, AuthError, ProtocolError, ValueError) as error:
                    if isinstance(error, OSError) and time.monotonic() < until:
                        await self._pause_real(0.02)
                        continue
                    log.debug("no connection with %s: %s", link.name, error)
                    queue, link.queue = link.queue, None
                    failure = Failure(
                        CONNECT_FAILED,
                        f"{_UNREACHABLE}: {error}"
                        if link.name == "controller"
                        else f"no connection with {link.name}: {error}",
                    )
                    for _, number, _, _, _ in queue or ():
                        self._loop.call_soon(self._answered, number, failure)
                    return
            queue, link.queue = link.queue, None
            link.connection = connection
            for kind, number, deliver_us, sequence, message in queue or ():
                connection.send(_encode((kind, number, deliver_us, sequence, message)))
                if self._virtual is not None and self._virtual.authority is not None:
                    self._virtual.authority.sent(link.name, deliver_us)

    async def _pause_real(self, seconds: float) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        assert self._virtual is not None
        self._virtual.call_later_real(seconds, future.set_result, None)
        await future

    async def _open_any(self, link: _Link) -> Connection:
        """A connection to the first of the peer's addresses at which there is somebody."""
        for _ in link.addresses[1:]:
            try:
                return await self._open(link)
            except (OSError, AuthError, ProtocolError, ValueError) as error:
                log.debug("%s is not at %s: %s", link.name, link.addresses[0], error)
                link.addresses.append(link.addresses.pop(0))
        return await self._open(link)

    async def _open(self, link: _Link) -> Connection:
        sock = await addresses.connect(self._loop, link.addresses[0])
        challenged: asyncio.Future[bytes] = self._loop.create_future()

        def first(_: Connection, body: bytes) -> None:
            if not challenged.done():
                challenged.set_result(body)

        def lost(_: Connection, reason: str) -> None:
            if not challenged.done():
                challenged.set_exception(ConnectionError(reason or "closed during the handshake"))

        connection = Connection(self._loop, sock, first, lost, peer=link.name, traffic=self.traffic)
        self._connections[connection] = None
        hello = client_hello(self.name, self._me.user_id, self._me.group_id, is_daemon=True)
        connection.send(hello)
        self._close_unless(connection, challenged.done, "no challenge in time")
        try:
            assert self._keys is not None
            secret, key = self._keys.secret(hello, await challenged, link.name)
        except BaseException:
            connection.close()
            self._connections.pop(connection, None)
            raise
        connection.secure(SealedChannel(secret, is_client=True))
        connection.tag, link.proven_by = link, (link.name, key)
        connection.on_body = self._take_as_client
        connection.on_closed = self._link_closed
        if self._virtual is not None and self._virtual.authority is not None:
            connection.send(_PROOF)
            self._virtual.authority.add_peer(connection, link.name)
        return connection

    def _link_closed(self, connection: Connection, reason: str) -> None:
        self._forget(connection)
        link = connection.tag
        assert isinstance(link, _Link)
        if link.connection is connection:
            link.connection = None
        self._loop.call_soon(
            self._fail_all,
            link.name,
            Failure(CONNECTION_LOST, reason or f"{link.name} closed the connection"),
        )

    def _forget(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        if self._virtual is not None and self._virtual.authority is not None:
            self._virtual.authority.remove_peer(connection.fd)

    def _close_unless(
        self, connection: Connection, is_done: Callable[[], bool], reason: str
    ) -> asyncio.TimerHandle | None:
        """Close the connection if `is_done` does not hold after some real seconds: whoever connects
        must prove itself in time.
        """

        def check() -> None:
            if not is_done():
                connection.close(reason)

        later = getattr(self._loop, "call_later_real", self._loop.call_later)
        handle: asyncio.TimerHandle | None = later(_HANDSHAKE_S, check)
        return handle

    # --- being asked ------------------------------------------------------------------------------

    def listen(self, where: Iterable[str]) -> None:
        """Accept connections at these addresses.

        Raises:
            OSError: an address is in use or not ours; says which.
        """
        for address in where:
            sock = addresses.listen(address)
            if sock.family == socket.AF_UNIX:
                os.chmod(sock.getsockname(), 0o666)  # noqa: S103  the kernel says who connects
            self.accept_at(sock)

    def accept_at(self, listener: socket.socket) -> None:
        """Accept connections at a socket that listens."""
        listener.setblocking(False)
        self._listeners.append(listener)
        self._loop.add_reader(listener.fileno(), self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(64):
            try:
                sock, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # out of descriptors: say so, and let the others live
                self._refusals.warn("cannot accept a connection: %s", error.strerror)
                self._loop.remove_reader(listener.fileno())
                later = getattr(self._loop, "call_later_real", self._loop.call_later)
                later(_ACCEPT_AGAIN_S, self._accept_again, listener)
                return
            is_local = sock.family == socket.AF_UNIX
            key = other_end(sock)[0] if is_local else str(address[0])
            is_trusted = not is_local or key in (0, os.geteuid())
            if why := self.counts.refuses(key, is_trusted=is_trusted):
                self._refusals.warn(
                    "connection of %s %s refused: %s", "user" if is_local else "host", key, why
                )
                sock.close()
                continue
            self.counts.opened(key)
            connection = Connection(
                self._loop,
                sock,
                self._take_hello,
                self._accepted_closed,
                peer=addresses.shown(address),
                traffic=self.traffic,
            )
            connection.tag = accepted = _Accepted(key)
            connection.logs = False
            self._connections[connection] = None
            accepted.deadline = self._close_unless(
                connection,
                partial(_has_proven, connection, accepted),
                "did not authenticate in time",
            )

    def _accept_again(self, listener: socket.socket) -> None:
        if listener in self._listeners:
            self._loop.add_reader(listener.fileno(), self._accept, listener)

    def _take_hello(self, connection: Connection, body: bytes) -> None:
        accepted = connection.tag
        assert isinstance(accepted, _Accepted)
        if body == LOCAL_HELLO and connection.sock.family == socket.AF_UNIX:
            name, is_daemon = "command", False
            user_id, group_id = other_end(connection.sock)
            connection.max_frame = _COMMAND_MAX_FRAME
        else:
            name, user_id, group_id, is_daemon = self._challenge(connection, accepted, body)
        connection.peer = f"{name} (user {user_id}, {connection.peer})"
        accepted.peer = Peer(name, user_id, group_id, is_daemon)
        connection.on_body = self._take_as_server
        if is_daemon and self._virtual is not None and self._virtual.authority is not None:
            accepted.is_participant = True
            self._virtual.authority.add_peer(connection, name)

        def respond(number: int, answer: Message) -> None:
            self._respond(connection, number, answer)

        def respond_failures(number: int, answer: Message) -> None:
            if isinstance(answer, Failure):
                self._respond(connection, number, answer)

        accepted.respond = respond
        accepted.respond_failures = respond_failures

    def _challenge(
        self, connection: Connection, accepted: _Accepted, hello: bytes
    ) -> tuple[str, int, int, bool]:
        """Answer a hello, whose claims these are: the next frame proves them."""
        try:
            if hello.endswith(LOCAL_END) and connection.sock.family == socket.AF_UNIX:
                raise VersionError(f"a command of another version: {hello[:40]!r}")
            name, user_id, group_id, is_daemon = read_hello(hello)
        except VersionError:
            connection.send(server_challenge(self.name))  # which says of what version we are
            raise
        assert self._keys is not None
        whose = name if is_daemon else AGENT
        challenge, secret, key = self._keys.answered(hello, whose)
        accepted.addressee, accepted.proven_by = read_addressee(hello), (whose, key)
        connection.send(challenge)
        connection.secure(SealedChannel(secret, is_client=False), _COMMAND_MAX_FRAME)
        return name, user_id, group_id, is_daemon

    def close_revoked(self) -> None:
        """End connections with those whose keys are none any more."""
        assert self._keys is not None
        for connection in list(self._connections):
            if isinstance(connection.tag, _Accepted | _Link):
                whose, key = connection.tag.proven_by
                if key and not self._keys.knows(whose, key):
                    connection.close(f"the key of {whose} has been changed")

    def _accepted_closed(self, connection: Connection, reason: str) -> None:
        accepted = connection.tag
        assert isinstance(accepted, _Accepted)
        if reason and not connection.logs:
            self._refusals.warn("connection with %s closed: %s", connection.peer, reason)
        self.counts.closed(accepted.key, was_proven=accepted.proven)
        # nothing is to hold on to the connection but who still works on its requests
        if accepted.deadline is not None:
            accepted.deadline.cancel()
        accepted.deadline = accepted.respond = accepted.respond_failures = None
        self._forget(connection)

    def _take_as_server(self, connection: Connection, body: bytes) -> None:
        accepted = connection.tag
        assert isinstance(accepted, _Accepted)
        if not accepted.proven:
            accepted.proven = True
            self.counts.proven(accepted.key)
            if accepted.deadline is not None:
                accepted.deadline.cancel()
                accepted.deadline = None
            if accepted.peer is not None and accepted.peer.is_daemon:
                connection.max_frame = MAX_FRAME
                connection.logs = True
            if accepted.is_participant and body == _PROOF:
                return
        envelope = self._read(connection, body)
        if envelope.kind not in (ASK, TELL):
            raise ProtocolError(f"a frame of kind {envelope.kind} where a request was expected")
        assert accepted.peer is not None
        assert accepted.respond is not None
        if accepted.is_participant:
            assert self._virtual is not None
            self._virtual.authority.count_received(accepted.peer.name)
            respond = accepted.respond if envelope.kind == ASK else accepted.respond_failures
            self._virtual.post(
                envelope.deliver_us,
                accepted.peer.name,
                envelope.sequence,
                self._handle,
                envelope.message,
                accepted.peer,
                envelope.number,
                respond,
            )
        elif self._virtual is not None:
            self._virtual.run_outside(
                self._handle, envelope.message, accepted.peer, envelope.number, accepted.respond
            )
        else:
            self._handle(
                envelope.message, accepted.peer, envelope.number, accepted.respond, connection
            )

    def _take_as_client(self, connection: Connection, body: bytes) -> None:
        link = connection.tag
        assert isinstance(link, _Link)
        envelope = self._read(connection, body)
        if envelope.kind == COMPLAINT:
            raise ProtocolError(
                f"{link.name} complains: "
                f"{envelope.message.text if isinstance(envelope.message, Failure) else '?'}"
            )
        if envelope.kind != ANSWER:
            raise ProtocolError(f"a frame of kind {envelope.kind} where an answer was expected")
        if self._virtual is not None and self._virtual.authority is not None:
            self._virtual.authority.count_received(link.name)
            self._virtual.post(
                envelope.deliver_us,
                link.name,
                envelope.sequence,
                self._answered,
                envelope.number,
                envelope.message,
            )
        else:
            self._answered(envelope.number, envelope.message)

    def _read(self, connection: Connection, body: bytes) -> Envelope:
        try:
            return _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            complaint = f"malformed message: {error}"[:200]
            connection.send(_encode((COMPLAINT, 0, 0, 0, Failure(-1, complaint))))
            raise ProtocolError(complaint) from error

    def _take_in_memory(self, sender: Messenger, number: int, message: Message, kind: int) -> None:
        self._handle(message, sender._me, number, partial(self._reply_in_memory, sender, kind))

    def _reply_in_memory(self, asker: Messenger, kind: int, number: int, answer: Message) -> None:
        if kind == TELL and not isinstance(answer, Failure):
            return
        self._sequence += 1
        virtual = self._virtual
        assert virtual is not None
        deliver_us = virtual.now_us + self._latency_us
        if self._link_latency_us:
            deliver_us += self._link_latency_us.get((self.name, asker.name), 0)
        virtual.post(deliver_us, self.name, self._sequence, asker._answered, number, answer)

    def _handle(
        self,
        message: Message,
        sender: Peer,
        number: int,
        respond: Callable[[int, Message], None],
        connection: Connection | None = None,
    ) -> None:
        request = Request(message, sender, number, respond, connection)
        handler = self._handler
        try:
            if handler is None:
                raise SlurmError(-1, f"{self.name} is not ready")
            answer = handler(request)
        except SlurmError as error:
            answer = Failure(error.code, error.text)
        except Exception:
            log.exception("%s of %s failed", type(message).__name__, sender.name)
            answer = Failure(-1, f"internal error in {self.name}, see its log")
        if answer is not None:
            request.reply(answer)

    def _respond(self, connection: Connection, number: int, answer: Message) -> None:
        accepted = connection.tag
        assert isinstance(accepted, _Accepted)
        if connection.closed:
            return
        if self.may_speak is not None and not self.may_speak():
            connection.close()  # whoever asks is to ask elsewhere
            return
        if accepted.is_participant:
            virtual = self._virtual
            assert virtual is not None
            assert accepted.peer is not None
            self._sequence += 1
            deliver_us = virtual.now_us + self._latency_us
            if self._link_latency_us:
                deliver_us += self._link_latency_us.get((self.name, accepted.peer.name), 0)
            connection.send(_encode((ANSWER, number, deliver_us, self._sequence, answer)))
            virtual.authority.sent(accepted.peer.name, deliver_us)
        else:
            connection.send(_encode((ANSWER, number, 0, 0, answer)))

    # --- ending -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop listening and close all connections."""
        self._closed = True
        for listener in self._listeners:
            self._loop.remove_reader(listener.fileno())
            listener.close()
        self._listeners.clear()
        for connection in list(self._connections):
            connection.flush()
            connection.close()
        if self._network is not None:
            self._network.members.pop(self.name, None)
        if self._deadline is not None:
            self._deadline.cancel()


def _failures_to(on_reply: Callable[[Message], None] | None) -> Callable[[Message], None] | None:
    if on_reply is None:
        return None

    def hear(answer: Message) -> None:
        if isinstance(answer, Failure):
            on_reply(answer)

    return hear


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("connecting failed", exc_info=task.exception())
