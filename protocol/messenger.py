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

What is here asks; who asks us comes in through reception.py, over the same connections (wires.py).
"""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

from understudy.auth.handshake import AuthError, SealedChannel, client_hello
from understudy.model.errors import SlurmError
from understudy.protocol import addresses
from understudy.protocol.connection import Connection, ProtocolError
from understudy.protocol.envelopes import (
    ANSWER,
    ASK,
    COMPLAINT,
    CONNECT_FAILED,
    CONNECTION_LOST,
    STANDBY,
    TELL,
    TIMED_OUT,
    encode,
    read,
)
from understudy.protocol.messages import Failure, Message
from understudy.protocol.reception import Reception
from understudy.protocol.requests import Accepted, Peer, Request
from understudy.protocol.wires import PROOF, Wires

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable, Iterable, Mapping

    from understudy.auth.keys import Keys
    from understudy.protocol.connection import Traffic
    from understudy.protocol.hops import HopLinks

log = logging.getLogger("understudy.messenger")

# ours: under virtual time a peer that does not listen yet is waited for, in real time
_PATIENCE_S: Final = 60.0
_TOLD_LOOKED_AT: Final = 128  # ours: until it is seen who of those that were told is past failing
_UNREACHABLE: Final = "Unable to contact slurm controller (connect failure)"


class _Link:
    """An outgoing connection to a peer, opened on first use. `addresses`: of those one of whom is
    the peer, who it was last first.
    """

    __slots__ = ("addresses", "complaint", "connection", "name", "proven_by", "queue")

    def __init__(self, name: str, addresses: list[str]) -> None:
        self.name, self.addresses = name, addresses
        self.complaint = ""  # why the two do not understand each other, as the log says
        self.connection: Connection | None = None
        self.proven_by = (name, b"")  # whose key it is, and the key
        # while connecting: kind, number, deliver_us, sequence, message
        self.queue: list[tuple[int, int, int, int, Message]] | None = None


def _complain(link: _Link, error: Exception) -> None:
    """Who is not there may come. Who is of another version, or has other keys, stays so until
    somebody reads of it: once, however often it is tried again.
    """
    text = str(error) if isinstance(error, AuthError) else ""
    if text and text != link.complaint:
        log.error("no connection with %s: %s", link.name, text)
    else:
        log.debug("no connection with %s: %s", link.name, error)
    link.complaint = text or link.complaint


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
        self._wires = Wires(loop)
        self._virtual = self._wires.virtual
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
        self.reception = Reception(self, self._wires, keys)
        self._deadline: asyncio.TimerHandle | None = None
        self._deadline_at = 0.0
        self._closed = False
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
        self.reception.close()
        for connection in list(self._wires.open):
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
            connection.on_closed = lambda closed, _reason: self._wires.forget(closed)
            connection.close()
            gone = Failure(CONNECTION_LOST, f"{link.name} is to be found elsewhere")
            for number in self._asked_of(link.name):
                self._loop.call_soon(self._answered, number, gone)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._wires.open)

    @property
    def traffic(self) -> Traffic:
        """Of all connections."""
        return self._wires.traffic

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
            link.connection.send(encode(envelope))
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
                    _complain(link, error)
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
            link.connection, link.complaint = connection, ""
            for kind, number, deliver_us, sequence, message in queue or ():
                connection.send(encode((kind, number, deliver_us, sequence, message)))
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

        connection = Connection(
            self._loop, sock, first, lost, peer=link.name, traffic=self._wires.traffic
        )
        self._wires.open[connection] = None
        hello = client_hello(self.name, self._me.user_id, self._me.group_id, is_daemon=True)
        connection.send(hello)
        self._wires.close_unless(connection, challenged.done, "no challenge in time")
        try:
            assert self._keys is not None
            secret, key = self._keys.secret(hello, await challenged, link.name)
        except BaseException:
            connection.close()
            self._wires.open.pop(connection, None)
            raise
        connection.secure(SealedChannel(secret, is_client=True))
        connection.tag, link.proven_by = link, (link.name, key)
        connection.on_body = self._take_as_client
        connection.on_closed = self._link_closed
        if self._wires.authority is not None:
            connection.send(PROOF)
            self._wires.authority.add_peer(connection, link.name)
        return connection

    def _link_closed(self, connection: Connection, reason: str) -> None:
        self._wires.forget(connection)
        link = connection.tag
        assert isinstance(link, _Link)
        if link.connection is connection:
            link.connection = None
        self._loop.call_soon(
            self._fail_all,
            link.name,
            Failure(CONNECTION_LOST, reason or f"{link.name} closed the connection"),
        )

    def _take_as_client(self, connection: Connection, body: bytes) -> None:
        link = connection.tag
        assert isinstance(link, _Link)
        envelope = read(connection, body)
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

    # --- being asked ------------------------------------------------------------------------------

    def listen(self, where: Iterable[str]) -> None:
        """Accept connections at these addresses.

        Raises:
            OSError: an address is in use or not ours; says which.
        """
        self.reception.listen(where)

    def accept_at(self, listener: socket.socket) -> None:
        """Accept connections at a socket that listens."""
        self.reception.accept_at(listener)

    def close_revoked(self) -> None:
        """End connections with those whose keys are none any more."""
        assert self._keys is not None
        for connection in list(self._wires.open):
            if isinstance(connection.tag, Accepted | _Link):
                whose, key = connection.tag.proven_by
                if key and not self._keys.knows(whose, key):
                    connection.close(f"the key of {whose} has been changed")

    def _take_in_memory(self, sender: Messenger, number: int, message: Message, kind: int) -> None:
        self.handle(message, sender._me, number, partial(self._reply_in_memory, sender, kind))

    def _reply_in_memory(self, asker: Messenger, kind: int, number: int, answer: Message) -> None:
        if kind == TELL and not isinstance(answer, Failure):
            return
        assert self._virtual is not None
        deliver_us, sequence = self.stamp(asker.name)
        self._virtual.post(deliver_us, self.name, sequence, asker._answered, number, answer)

    def handle(
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

    def stamp(self, peer: str) -> tuple[int, int]:
        """When what is sent to the peer now is delivered under virtual time, and its number among
        ours.
        """
        assert self._virtual is not None
        self._sequence += 1
        deliver_us = self._virtual.now_us + self._latency_us
        if self._link_latency_us:
            deliver_us += self._link_latency_us.get((self.name, peer), 0)
        return deliver_us, self._sequence

    # --- ending -----------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop listening and close all connections."""
        self._closed = True
        self.reception.close()
        for connection in list(self._wires.open):
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
