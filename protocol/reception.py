"""Who connects to a daemon: let in, asked who it is, and its requests handed on and answered.

Place: beside the messenger, of which it is the half that is asked. Frames of who has not proven who
it is go no further than here.
"""

from __future__ import annotations

import os
import socket
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from understudy.auth.handshake import (
    MAX_FRAME,
    SealedChannel,
    VersionError,
    read_addressee,
    read_hello,
    server_challenge,
)
from understudy.auth.keys import AGENT
from understudy.auth.local import LOCAL_END, LOCAL_HELLO, other_end
from understudy.auth.refusals import PeerCounts, Refusals, most_of_one_user
from understudy.protocol import addresses
from understudy.protocol.connection import Connection, ProtocolError
from understudy.protocol.connection import log as connection_log
from understudy.protocol.envelopes import ANSWER, ASK, TELL, encode, read
from understudy.protocol.messages import Failure
from understudy.protocol.requests import Accepted, Peer
from understudy.protocol.wires import PROOF, PROOF_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from understudy.auth.keys import Keys
    from understudy.protocol.messages import Message
    from understudy.protocol.wires import Wires

_ACCEPT_AGAIN_S: Final = 1.0  # ours: when there was no descriptor for a connection
_AT_A_TIME: Final = 64  # ours: accepted before others have their turn
_COMMAND_MAX_FRAME: Final = 16 << 20


class Daemon(Protocol):
    """What is needed of the messenger."""

    name: str
    may_speak: Callable[[], bool] | None

    def handle(
        self,
        message: Message,
        sender: Peer,
        number: int,
        respond: Callable[[int, Message], None],
        connection: Connection | None = None,
    ) -> None: ...
    def stamp(self, peer: str) -> tuple[int, int]: ...


class Reception:
    """Listens for a daemon. `keys`: None where all daemons are in this process."""

    def __init__(self, daemon: Daemon, wires: Wires, keys: Keys | None) -> None:
        self._daemon, self._wires, self._keys = daemon, wires, keys
        self.listeners: list[socket.socket] = []
        self._refusals = Refusals(connection_log, wires.later)
        self.counts = PeerCounts(most_of_one_user())

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
        self.listeners.append(listener)
        self._wires.loop.add_reader(listener.fileno(), self.accept, listener)

    def close(self) -> None:
        """Listen no more. Who is in stays."""
        for listener in self.listeners:
            self._wires.loop.remove_reader(listener.fileno())
            listener.close()
        self.listeners.clear()

    # --- letting in -------------------------------------------------------------------------------

    def accept(self, listener: socket.socket) -> None:
        """Let in who waits at the listener."""
        for _ in range(_AT_A_TIME):
            try:
                sock, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # out of descriptors: say so, and let the others live
                self._refusals.warn("cannot accept a connection: %s", error.strerror)
                self._wires.loop.remove_reader(listener.fileno())
                self._wires.later(_ACCEPT_AGAIN_S, self.accept_again, listener)
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
            connection = self.let_in(sock, key, peer=addresses.shown(address))
            accepted = connection.tag
            assert isinstance(accepted, Accepted)
            accepted.deadline = self._wires.close_unless(
                connection,
                partial(_has_proven, connection, accepted),
                "did not authenticate in time",
            )

    def accept_again(self, listener: socket.socket) -> None:
        """There may be a descriptor by now."""
        if listener in self.listeners:
            self._wires.loop.add_reader(listener.fileno(), self.accept, listener)

    def let_in(self, sock: socket.socket, key: int | str, *, peer: str) -> Connection:
        """The connection over a socket. `key`: the user's number, or the host's address; `peer`: as
        the log has it.
        """
        self.counts.opened(key)
        connection = Connection(
            self._wires.loop,
            sock,
            self._take_hello,
            self._closed,
            peer=peer,
            traffic=self._wires.traffic,
        )
        connection.tag = Accepted(key)
        connection.logs = False
        self._wires.open[connection] = None
        return connection

    def _take_hello(self, connection: Connection, body: bytes) -> None:
        accepted = connection.tag
        assert isinstance(accepted, Accepted)
        if body == LOCAL_HELLO and connection.sock.family == socket.AF_UNIX:
            name, is_daemon = "command", False
            user_id, group_id = other_end(connection.sock)
            connection.max_frame = _COMMAND_MAX_FRAME
        else:
            name, user_id, group_id, is_daemon = self._challenge(connection, accepted, body)
        connection.peer = f"{name} (user {user_id}, {connection.peer})"
        accepted.peer = Peer(name, user_id, group_id, is_daemon)
        connection.on_body = self._take
        if is_daemon and self._wires.authority is not None:
            accepted.is_participant = True
            self._wires.authority.add_peer(connection, name)

        def respond(number: int, answer: Message) -> None:
            self._respond(connection, number, answer)

        def respond_failures(number: int, answer: Message) -> None:
            if isinstance(answer, Failure):
                self._respond(connection, number, answer)

        accepted.respond = respond
        accepted.respond_failures = respond_failures

    def _challenge(
        self, connection: Connection, accepted: Accepted, hello: bytes
    ) -> tuple[str, int, int, bool]:
        """Answer a hello, whose claims these are: the next frame proves them."""
        try:
            if hello.endswith(LOCAL_END) and connection.sock.family == socket.AF_UNIX:
                raise VersionError(f"a command of another version: {hello[:40]!r}")
            name, user_id, group_id, is_daemon = read_hello(hello)
        except VersionError:
            # which says of what version we are
            connection.send(server_challenge(self._daemon.name))
            raise
        assert self._keys is not None
        whose = name if is_daemon else AGENT
        challenge, secret, key = self._keys.answered(hello, whose)
        accepted.addressee, accepted.proven_by = read_addressee(hello), (whose, key)
        connection.send(challenge)
        connection.secure(SealedChannel(secret, is_client=False), _COMMAND_MAX_FRAME)
        return name, user_id, group_id, is_daemon

    def _closed(self, connection: Connection, reason: str) -> None:
        accepted = connection.tag
        assert isinstance(accepted, Accepted)
        if reason and not connection.logs:
            self._refusals.warn("connection with %s closed: %s", connection.peer, reason)
        self.counts.closed(accepted.key, was_proven=accepted.proven)
        # nothing is to hold on to the connection but who still works on its requests
        if accepted.deadline is not None:
            accepted.deadline.cancel()
        accepted.deadline = accepted.respond = accepted.respond_failures = None
        self._wires.forget(connection)

    # --- requests ---------------------------------------------------------------------------------

    def _take(self, connection: Connection, body: bytes) -> None:
        accepted = connection.tag
        assert isinstance(accepted, Accepted)
        if not accepted.proven:
            self._note_proof(connection, accepted)
            if accepted.is_participant and body == PROOF:
                return
        envelope = read(connection, body)
        if envelope.kind not in (ASK, TELL):
            raise ProtocolError(f"a frame of kind {envelope.kind} where a request was expected")
        assert accepted.peer is not None
        assert accepted.respond is not None
        virtual, handle = self._wires.virtual, self._daemon.handle
        if accepted.is_participant:
            assert virtual is not None
            virtual.authority.count_received(accepted.peer.name)
            respond = accepted.respond if envelope.kind == ASK else accepted.respond_failures
            virtual.post(
                envelope.deliver_us,
                accepted.peer.name,
                envelope.sequence,
                handle,
                envelope.message,
                accepted.peer,
                envelope.number,
                respond,
            )
        elif virtual is not None:
            virtual.run_outside(
                handle, envelope.message, accepted.peer, envelope.number, accepted.respond
            )
        else:
            handle(envelope.message, accepted.peer, envelope.number, accepted.respond, connection)

    def _note_proof(self, connection: Connection, accepted: Accepted) -> None:
        """Who connected has sent a frame that its key opens."""
        accepted.proven = True
        self.counts.proven(accepted.key)
        if accepted.deadline is not None:
            accepted.deadline.cancel()
            accepted.deadline = None
        if accepted.peer is not None and accepted.peer.is_daemon:
            connection.max_frame = MAX_FRAME
            connection.logs = True

    def _respond(self, connection: Connection, number: int, answer: Message) -> None:
        accepted = connection.tag
        assert isinstance(accepted, Accepted)
        if connection.closed:
            return
        may_speak = self._daemon.may_speak
        if may_speak is not None and not may_speak():
            connection.close()  # whoever asks is to ask elsewhere
            return
        if accepted.is_participant:
            assert self._wires.virtual is not None
            assert accepted.peer is not None
            deliver_us, sequence = self._daemon.stamp(accepted.peer.name)
            connection.send(encode((ANSWER, number, deliver_us, sequence, answer)))
            self._wires.virtual.authority.sent(accepted.peer.name, deliver_us)
        else:
            connection.send(encode((ANSWER, number, 0, 0, answer)))


def _has_proven(connection: Connection, accepted: Accepted) -> bool:
    """Whether who connected has proven who it is. Of who takes part in virtual time the proof may
    not have been read yet, and it alone is read here: messages have their time.
    """
    if accepted.is_participant and not accepted.proven and not connection.closed:
        connection.read(PROOF_BYTES)
    return accepted.proven
