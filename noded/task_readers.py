"""Those who read a step's output: srun, and each sattach.

Place: a part of a step's process (`taskd.py`). Nobody is waited for here; what a reader does not
take at once is kept until it can.
"""

from __future__ import annotations

import _socket
import select

from understudy.protocol.task_frames import HEAD, HELLO, STDERR, STDOUT, first_of, frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 1 << 22  # bytes that wait for a reader before the tasks are no longer read
_CHUNK = 65536
_KEPT = 1 << 17  # bytes of output for a sattach that comes later: as many as Slurm keeps


class Reader:
    """srun, or a sattach: who gets the output."""

    def __init__(self, sock: _socket.socket) -> None:
        self.sock, self.out, self.inward = sock, bytearray(), bytearray()


class Readers:
    """All of them. `first`: the number of the first node that they hear of."""

    def __init__(self, poll: select.poll, first: int) -> None:
        self._poll, self._first = poll, first
        self._readers: dict[int, Reader] = {}
        self._kept = bytearray()  # frames of output, for who comes later

    def __contains__(self, descriptor: int) -> bool:
        return descriptor in self._readers

    @property
    def are_slow(self) -> bool:
        return any(len(reader.out) > _MOST for reader in self._readers.values())

    @property
    def have_all(self) -> bool:
        return not any(reader.out for reader in self._readers.values())

    def connect(self, address: str, key: bytes) -> str:
        """Begin to tell the one who listens there. What went wrong, if anything did."""
        kind, _, rest = address.partition(":")
        try:
            if kind == "unix":
                sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
                sock.connect(rest)
            else:
                host, _, port = rest.rpartition(":")
                sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
                sock.connect((host, int(port)))
                sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        except OSError as error:
            return f"no connection with srun at {address}: {error.strerror}"
        reader = Reader(sock)
        sock.setblocking(False)
        self._readers[sock.fileno()] = reader
        self._poll.register(sock.fileno(), select.POLLIN)
        self._put(reader, frame(HELLO, self._first, key))
        self._put(reader, bytes(self._kept))
        return ""

    def tell(self, kind: int, task: int, data: bytes) -> None:
        made = frame(kind, task, data)
        for reader in list(self._readers.values()):
            self._put(reader, made)
        if kind in {STDOUT, STDERR}:
            self._kept += made
            while len(self._kept) > _KEPT:
                del self._kept[: HEAD + int.from_bytes(self._kept[6:HEAD], "big")]

    def _put(self, reader: Reader, data: bytes) -> None:
        if not reader.out:
            try:
                data = data[reader.sock.send(data, _socket.MSG_NOSIGNAL) :]
            except BlockingIOError:
                pass
            except OSError:
                self._drop(reader)
                return
        if data:
            reader.out += data
            self._poll.modify(reader.sock.fileno(), select.POLLIN | select.POLLOUT)

    def flush(self, descriptor: int) -> None:
        """The reader can take more."""
        reader = self._readers[descriptor]
        try:
            del reader.out[: reader.sock.send(reader.out, _socket.MSG_NOSIGNAL)]
        except BlockingIOError:
            return
        except OSError:
            self._drop(reader)
            return
        if not reader.out:
            self._poll.modify(reader.sock.fileno(), select.POLLIN)

    def take(self, descriptor: int) -> Iterator[tuple[int, int, bytes]]:
        """The frames that have come from there."""
        reader = self._readers[descriptor]
        try:
            data = reader.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(reader)
            return
        reader.inward += data
        while found := first_of(reader.inward):
            del reader.inward[: HEAD + len(found[2])]
            yield found

    def _drop(self, reader: Reader) -> None:
        number = reader.sock.fileno()
        if self._readers.pop(number, None) is not None:
            self._poll.unregister(number)
            reader.sock.close()

    def close(self) -> None:
        """Wait until each has all that is for it."""
        for reader in list(self._readers.values()):
            reader.sock.setblocking(True)
            try:  # noqa: SIM105  contextlib costs time
                reader.sock.sendall(reader.out)
            except OSError:
                pass
            reader.sock.close()
