"""One stream connection: frames in, frames out, sealed once there is a challenge and it is over.

Place: under the messenger and the clock service; the only code that reads and writes sockets
between daemons. It works on any asyncio loop through `add_reader` and `add_writer`, and can be
taken off the loop (`pause_reading`), because under virtual time a peer's messages are read only
when the clock has granted time and said how many must have come (a wake-up for each would double
the cost of a message).

A frame is four bytes of length, big-endian, then the body. Limits: `MAX_HANDSHAKE` before
authentication, `max_frame` after it.
"""

from __future__ import annotations

import logging
import socket
from collections import deque
from typing import TYPE_CHECKING

from understudy.auth.handshake import MAX_FRAME, MAX_HANDSHAKE, AuthError, SealedChannel, frame

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

log = logging.getLogger("understudy.connection")

_READ_BYTES = 1 << 18
MAX_UNSENT = 256 << 20


class ProtocolError(Exception):
    """The other end broke the protocol. One line, fit for the log."""


class Traffic:
    """Bytes that connections have taken and given, frames' heads and seals included."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.received = self.sent = 0


class Connection:
    """Frames over a non-blocking stream socket.

    `on_body(connection, body)` is called for each frame, opened if the connection is sealed; it may
    raise ProtocolError or AuthError, which close the connection with one line in the log.
    `on_closed(connection, reason)` is called once, "" for an orderly end.
    """

    __slots__ = (
        "_buffer",
        "_channel",
        "_loop",
        "_needed",
        "_reading",
        "_unsent",
        "_unsent_bytes",
        "_writing",
        "closed",
        "fd",
        "logs",
        "max_frame",
        "on_body",
        "on_closed",
        "peer",
        "sock",
        "tag",
        "traffic",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        on_body: Callable[[Connection, bytes], None],
        on_closed: Callable[[Connection, str], None],
        *,
        peer: str,
        traffic: Traffic | None = None,
    ) -> None:
        self.traffic = Traffic() if traffic is None else traffic  # of the owner
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.logs = True  # why it closes; else the owner does
        self.fd = sock.fileno()  # also after the socket is closed
        self._loop, self.sock, self.on_body, self.on_closed = loop, sock, on_body, on_closed
        self.peer = peer  # for the log
        self.tag: object = None  # the owner's
        self.max_frame = MAX_HANDSHAKE
        self._channel: SealedChannel | None = None
        self._buffer = bytearray()
        self._needed = 4
        self._unsent: deque[bytes | memoryview] | tuple[()] = ()  # most never need a queue
        self._unsent_bytes = 0
        self._writing = False
        self.closed = False
        self._reading = True
        loop.add_reader(self.fd, self.read)

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def secure(self, channel: SealedChannel, max_frame: int = MAX_FRAME) -> None:
        """From here on every frame in either direction is sealed."""
        self._channel = channel
        self.max_frame = max_frame

    def send(self, body: bytes) -> None:
        """Send one frame; what the socket does not take at once follows when it can."""
        if self.closed:
            return
        data: bytes | memoryview = (
            self._channel.seal(body) if self._channel is not None else frame(body)
        )
        self.traffic.sent += len(data)
        if not self._unsent:
            try:
                taken = self.sock.send(data)
            except BlockingIOError:
                taken = 0
            except OSError as error:
                self.close(f"lost: {error.strerror or error}")
                return
            if taken == len(data):
                return
            data = memoryview(data)[taken:]  # which copies nothing
        if isinstance(self._unsent, tuple):
            self._unsent = deque()
        self._unsent.append(data)
        self._unsent_bytes += len(data)
        if self._unsent_bytes > MAX_UNSENT:
            self.close(f"takes no data: {self._unsent_bytes >> 20} MB are waiting")
        elif not self._writing:
            self._writing = True
            self._loop.add_writer(self.fd, self.flush)

    def flush(self) -> None:
        """Send what waits, as far as the socket takes it."""
        try:
            while self._unsent:
                assert not isinstance(self._unsent, tuple)
                data = self._unsent[0]
                taken = self.sock.send(data)
                self._unsent_bytes -= taken
                if taken < len(data):
                    self._unsent[0] = memoryview(data)[taken:]
                    return
                self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError as error:
            self.close(f"lost: {error.strerror or error}")
            return
        self._stop_writing()

    def read(self, most: int = _READ_BYTES) -> None:
        """Read what is there, or so many bytes of it, and hand on whole frames."""
        try:
            data = self.sock.recv(most)
        except BlockingIOError:
            return
        except OSError as error:
            self.close(f"lost: {error.strerror or error}")
            return
        if not data:
            self.close("cut off in the middle of a frame" if self._buffer else "")
            return
        self.traffic.received += len(data)
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return
            data = bytes(self._buffer)
            self._buffer.clear()
        try:
            self._take_frames(data)
        except (ProtocolError, AuthError) as error:
            self.close(str(error))

    def _take_frames(self, data: bytes) -> None:
        start, size = 0, len(data)
        while size - start >= 4 and not self.closed:
            length = int.from_bytes(data[start : start + 4], "big")
            if length > self.max_frame:
                raise ProtocolError(f"frame of {length} bytes, the limit is {self.max_frame}")
            end = start + 4 + length
            if size < end:
                break
            body = data[start + 4 : end]
            start = end
            self.on_body(self, body if self._channel is None else self._channel.open(body))
        if start < size:
            self._buffer += data[start:]
            left = size - start
            self._needed = 4 if left < 4 else 4 + int.from_bytes(data[start : start + 4], "big")

    def pause_reading(self) -> None:
        """Take the socket off the loop; the owner calls `read` itself."""
        if self._reading and not self.closed:
            self._reading = False
            self._loop.remove_reader(self.fd)

    def close(self, reason: str = "") -> None:
        """End the connection; `reason` goes to `on_closed` and, unless the owner writes it, as a
        warning to the log.
        """
        if self.closed:
            return
        self.closed = True
        if reason and self.logs:
            log.warning("connection with %s closed: %s", self.peer, reason)
        if self._reading:
            self._loop.remove_reader(self.fd)
        self._stop_writing()
        self.sock.close()
        self.on_closed(self, reason)

    def _stop_writing(self) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self.fd)
