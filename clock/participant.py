"""A participant's link to the clock service: reports, grants, holds.

Place: between `VirtualEventLoop` and the service; one per process under virtual time. The link's
socket is read directly, not through asyncio, because waiting for the clock is what the loop does
when it has nothing to do. While it waits it looks at two things only: the clock's socket, and the
loop's own selector (commands, child processes, other threads). Messages of other participants stay
in their sockets until the next grant says how many of each must be there: one wake-up a window
instead of one a message.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
from typing import TYPE_CHECKING, Any, Final

import msgpack

from understudy.auth.handshake import (
    AuthError,
    SealedChannel,
    client_hello,
    frame,
)
from understudy.clock import frames
from understudy.clock.timers import NEVER
from understudy.protocol import addresses

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.auth.keys import Keys
    from understudy.clock.virtual_loop import Events, VirtualEventLoop
    from understudy.protocol.connection import Connection

log = logging.getLogger("understudy.clock")

_HANDSHAKE_S: Final = 10.0  # ours: until the clock service answers


class ClockLost(ConnectionError):  # noqa: N818  says what happened
    """The clock service is gone: there is no time any more."""


def connect(address: str, name: str, keys: Keys) -> tuple[socket.socket, SealedChannel]:
    """A blocking, authenticated connection to the clock service."""
    family, where = addresses.parse(address)
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.settimeout(_HANDSHAKE_S)
    try:
        sock.connect(where)
        hello = client_hello(name, os.getuid(), os.getgid(), is_daemon=True)
        sock.sendall(frame(hello))
        secret, _ = keys.secret(hello, _read_frame(sock), "clock")
    except (OSError, AuthError) as error:
        sock.close()
        raise ClockLost(f"no clock service at {address}: {error}") from error
    sock.settimeout(None)
    if family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock, SealedChannel(secret, is_client=True)


def _read_frame(sock: socket.socket) -> bytes:
    length = int.from_bytes(_read_exactly(sock, 4), "big")
    return _read_exactly(sock, length)


def _read_exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        if not part:
            raise ConnectionError("closed by the clock service")
        data += part
    return data


class ClockLink:
    """The loop's authority over time in a cluster of several processes. `latency_us` is the
    smallest message latency.
    """

    def __init__(
        self,
        loop: VirtualEventLoop,
        address: str,
        name: str,
        keys: Keys,
        *,
        latency_us: int,
        watches: bool = False,
    ) -> None:
        self.loop, self.name, self.latency_us = loop, name, latency_us
        self._sock, self._channel = connect(address, name, keys)
        self._clock_fd = self._sock.fileno()
        self._buffer = b""
        self._reported = False
        self._hold_wanted = False
        self._outside: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._sent: dict[str, list[int]] = {}
        self._peers = select.epoll()
        self._peer_connections: dict[int, tuple[Connection, str]] = {}
        self._alive: dict[str, int] = {}  # connections by sender
        self.received: dict[str, int] = {}
        # for answers: tells a stalled cluster from an idle one
        self.waiting: Callable[[], bool] = lambda: False
        # called while all others stand still, so it may ask them
        self.on_stalled: Callable[[str], None] | None = None
        # called between windows: it must not send
        self.on_lost: Callable[[str], None] | None = None
        self._wake = select.epoll()
        self._wake.register(self._sock.fileno(), select.EPOLLIN)
        self._wake.register(loop.selector.fileno(), select.EPOLLIN)
        loop.authority = self
        loop.window_end_us = 0
        self._send([frames.JOIN, watches])

    # --- what the loop asks -----------------------------------------------------------------------

    def sent(self, receiver: str, deliver_us: int) -> None:
        """Count a message for the next report. The answer to it cannot come before 2 L after it was
        sent: that ends the window.
        """
        assert not self._reported, (
            "a message was sent between windows: what comes from outside must go through "
            "run_outside"
        )
        entry = self._sent.get(receiver)
        if entry is None:
            self._sent[receiver] = [1, deliver_us]
        else:
            entry[0] += 1
            entry[1] = min(entry[1], deliver_us)
        loop, end_us = self.loop, deliver_us + self.latency_us
        if loop.needed_us != NEVER:  # the message may change what others need, and has to arrive
            loop.needed_us = (
                deliver_us
                if len(self._sent) == 1 and self._sent[receiver][0] == 1
                else max(loop.needed_us, deliver_us)
            )
        self.loop.window_end_us = min(self.loop.window_end_us, end_us)

    def wait(self, next_us: int, needs_us: int) -> Events | None:
        """Report once, then wait for the clock (None: time was granted, or something can run) or
        for the outside (events).
        """
        if not self._reported:
            self._reported = True
            self._send(
                [frames.REPORT, next_us, self.loop.now_us, self.waiting(), self._sent, needs_us]
            )
            if self._sent:
                self._sent = {}
            self._hold_wanted = False
        if self._outside and not self._hold_wanted:
            self._hold_wanted = True
            self._send([frames.HOLD])
        clock_fd = self._clock_fd
        while True:
            if self._buffer and self._take_frame():
                return None
            timeout = self.loop.real_timeout(None)
            ready = self._wake.poll(-1 if timeout is None else timeout, 2)
            if not ready:
                return []  # a real timer is due
            outside = False
            for fd, _ in ready:
                if fd == clock_fd:
                    self._receive()
                else:
                    outside = True
            if outside:
                return self.loop.selector.poll(0)

    def run_outside(self, callback: Callable[..., None], args: tuple[Any, ...]) -> None:
        if not self._reported:
            self.loop.call_soon(callback, *args)  # others cannot move while we have not reported
        else:
            self._outside.append((callback, args))

    def add_peer(self, connection: Connection, sender: str) -> None:
        """From now on this connection's frames are read when a grant says that there are some."""
        connection.pause_reading()
        fd = connection.fd
        self._peers.register(fd, select.EPOLLIN)
        self._peer_connections[fd] = (connection, sender)
        self._alive[sender] = self._alive.get(sender, 0) + 1

    def remove_peer(self, fd: int) -> None:
        """The connection with this descriptor is closed (which takes it out of the poll, too)."""
        entry = self._peer_connections.pop(fd, None)
        if entry is not None:
            self._alive[entry[1]] -= 1

    def count_received(self, sender: str) -> None:
        self.received[sender] = self.received.get(sender, 0) + 1

    def pause(self, reason: str) -> None:
        """Ask the service to stop time after this window (a breakpoint that only this participant
        can see).
        """
        self._send([frames.PAUSE, reason])

    def leave(self) -> None:
        """Take part no longer, in good order."""
        with contextlib.suppress(ClockLost):  # then there is nobody to tell
            self._send([frames.LEAVE])
        self._sock.close()

    def forsake(self) -> None:
        """In a fork of the process: let go of the clock, without a word to it."""
        self._sock.close()
        self._wake.close()
        self._peers.close()

    # --- the wire ---------------------------------------------------------------------------------

    def _send(self, content: list[Any]) -> None:
        try:
            self._sock.sendall(self._channel.seal(msgpack.packb(content)))
        except OSError as error:
            raise ClockLost(f"the clock service is gone ({error.strerror})") from error

    def _receive(self) -> None:
        try:
            data = self._sock.recv(1 << 16)
        except OSError as error:
            raise ClockLost(f"the clock service is gone ({error.strerror})") from error
        if not data:
            raise ClockLost("the clock service is gone")
        self._buffer += data

    def _take_frame(self) -> bool:
        """Act on one frame of the service if there is one. Whether the loop has something to do
        now.
        """
        buffer = self._buffer
        end = 4 + int.from_bytes(buffer[:4], "big")
        if len(buffer) < max(end, 5):
            return False
        self._buffer = buffer[end:]
        content = msgpack.unpackb(self._channel.open(buffer[4:end]))
        kind = content[0]
        loop = self.loop
        if kind == frames.GRANT:
            self._reported = False
            if content[2]:
                self._await_messages(content[2])
            loop.window_end_us = content[1]
            loop.needed_us = content[3]
        elif kind == frames.HELD:
            self._reported = False
            self._hold_wanted = False
            loop.now_us = max(loop.now_us, content[1])
            loop.window_end_us = loop.now_us
            outside, self._outside = self._outside, []
            for callback, args in outside:
                loop.call_soon(callback, *args)
        elif kind == frames.STALLED and self.on_stalled is not None:
            self._outside.append((self.on_stalled, (content[1],)))
        elif kind == frames.LOST and self.on_lost is not None:
            loop.call_soon(self.on_lost, content[1])
        return True

    def _await_messages(self, must_have: dict[str, int]) -> None:
        received = self.received
        for sender, count in must_have.items():
            while received.get(sender, 0) < count:
                if not self._alive.get(sender):
                    log.warning(
                        "%d messages of %s are lost with its connection",
                        count - received.get(sender, 0),
                        sender,
                    )
                    received[sender] = count
                    break
                self._read_peers()

    def _read_peers(self) -> None:
        unsent = [
            connection for connection, _ in self._peer_connections.values() if connection.has_unsent
        ]
        for connection in unsent:
            connection.flush()
        for fd, _ in self._peers.poll(0.005 if unsent else 1.0, 64):
            entry = self._peer_connections.get(fd)
            if entry is not None:
                entry[0].read()
