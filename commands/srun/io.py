"""The streams of a step at srun's end: a listening socket, frames from the node daemons' step
processes, files and labels.

Place: under srun and sattach.
"""

import _socket
import os
import select

from understudy.protocol.task_frames import ALL, DONE, HELLO, STDERR, STDIN, STDOUT, frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 1 << 18


class Part:
    """The connection to the step process of one node daemon."""

    def __init__(self, sock: _socket.socket) -> None:
        self.sock = sock
        self.inward = bytearray()
        self.outward = bytearray()
        self.is_known = self.is_done = False
        self.first = -1  # the first of its nodes


class Sink:
    """Where a stream goes, line by line with a label where one is wanted; `at_once`: parts of lines
    are lines of their own then.
    """

    def __init__(self, descriptor: int, label_width: int, *, at_once: bool = False) -> None:
        self.descriptor, self.label_width, self.at_once = descriptor, label_width, at_once
        self.held: dict[int, bytes] = {}

    def put(self, task: int, data: bytes) -> None:
        if not self.label_width:
            self.write(data)
            return
        held = self.held.pop(task, b"")
        if not data:
            if held:
                self.write(self.labelled(task, held) + b"\n")
            return
        *lines, rest = (held + data).split(b"\n")
        if rest and self.at_once:
            lines.append(rest)
        elif rest:
            self.held[task] = rest
        if lines:
            self.write(b"".join(self.labelled(task, line) + b"\n" for line in lines))

    def labelled(self, task: int, line: bytes) -> bytes:
        return b"%*d: " % (self.label_width, task) + line

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.descriptor, view) :]
            except BlockingIOError:
                select.select([], [self.descriptor], [])
            except OSError:
                return


class OneTask(Sink):
    """The output of one task; what others write is dropped."""

    def __init__(
        self, descriptor: int, label_width: int, task: int, *, at_once: bool = False
    ) -> None:
        super().__init__(descriptor, label_width, at_once=at_once)
        self.task = task

    def put(self, task: int, data: bytes) -> None:
        if task == self.task:
            super().put(task, data)


class ByPart(Sink):
    """The output of a heterogeneous step: each part's goes its own way. `parts`: (the first of its
    tasks, where its output goes), in order.
    """

    def __init__(self, parts: "list[tuple[int, Sink | None]]") -> None:
        super().__init__(-1, 0)
        self.parts = parts

    def put(self, task: int, data: bytes) -> None:
        sink = next(sink for first, sink in reversed(self.parts) if first <= task)
        if sink is not None:
            sink.put(task, data)


class StepIO:
    """Listens, and carries frames."""

    def __init__(self, host: str, key: bytes, parts: int) -> None:
        self.key, self.expected = key, parts
        self.poll = select.poll()
        self.parts: dict[int, Part] = {}
        self.sinks: dict[int, Sink | None] = {STDOUT: None, STDERR: None}
        self.listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        self.listener.bind((host, 0))
        self.listener.listen(64)
        self.listener.setblocking(False)
        self.poll.register(self.listener.fileno(), select.POLLIN)
        self.port: int = self.listener.getsockname()[1]
        self.known = self.done = self.lost = 0
        self.stdin = -1
        self.stdin_task = ALL
        self.held: dict[int, bytes] = {}  # for parts that are not known yet
        self.others: dict[int, Callable[[], None]] = {}
        self.on_frame: Callable[[int, int, bytes], None] = lambda *_frame: None

    @property
    def is_over(self) -> bool:
        return self.done + self.lost >= self.expected

    def watch(self, descriptor: int, call: "Callable[[], None]") -> None:
        """Call when there is something to read."""
        self.others[descriptor] = call
        self.poll.register(descriptor, select.POLLIN)

    def forget(self, descriptor: int) -> None:
        if self.others.pop(descriptor, None) is not None:
            self.poll.unregister(descriptor)

    def turn(self, pause_ms: int | None) -> None:
        """Wait for something, at most so long, and do it."""
        for number, event in self.poll.poll(pause_ms):
            if number == self.listener.fileno():
                self._accept()
            elif number in self.parts:
                part = self.parts[number]
                if event & select.POLLOUT:
                    self._flush(part)
                if event & ~select.POLLOUT and number in self.parts:
                    self._read(part)
            elif number in self.others:
                self.others[number]()
            elif number == self.stdin:
                self._read_stdin()

    def _accept(self) -> None:
        try:
            descriptor, _ = self.listener._accept()  # type: ignore[attr-defined]
        except OSError:
            return
        sock = _socket.socket(fileno=descriptor)
        sock.setblocking(False)
        part = self.parts[descriptor] = Part(sock)
        self.poll.register(descriptor, select.POLLIN)
        self._read(part)

    def _read(self, part: Part) -> None:
        try:
            data = part.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._close(part)
            return
        part.inward += data
        buffer, at = part.inward, 0
        while len(buffer) - at >= 10:
            length = int.from_bytes(buffer[at + 6 : at + 10], "big")
            if len(buffer) - at < 10 + length:
                break
            kind, task = (
                int.from_bytes(buffer[at : at + 2], "big"),
                int.from_bytes(buffer[at + 2 : at + 6], "big"),
            )
            body = bytes(buffer[at + 10 : at + 10 + length])
            at += 10 + length
            if not part.is_known:
                if kind != HELLO or body != self.key:
                    self._close(part)
                    return
                part.is_known, part.first = True, task
                self.known += 1
                self._begin_stdin()
                self._pass_on()
            else:
                self._take(kind, task, body, part)
        del buffer[:at]

    def _take(self, kind: int, task: int, body: bytes, part: Part) -> None:
        if kind in (STDOUT, STDERR):
            sink = self.sinks[kind]
            if sink is not None:
                sink.put(task, body)
            return
        if kind == DONE:
            part.is_done = True
            self.done += 1
        self.on_frame(kind, task, body)

    def _close(self, part: Part) -> None:
        number = part.sock.fileno()
        del self.parts[number]
        self.poll.unregister(number)
        part.sock.close()
        if part.is_known and not part.is_done:
            self.lost += 1

    def send(self, part: Part, data: bytes) -> None:
        part.outward += data
        self._flush(part)

    def send_all(self, data: bytes) -> None:
        for part in list(self.parts.values()):
            if part.is_known:
                self.send(part, data)

    def pass_on(self, first: int, data: bytes) -> None:
        """Send to the part whose first node this is, as soon as it is there."""
        self.held[first] = self.held.get(first, b"") + data
        self._pass_on()

    def _pass_on(self) -> None:
        for part in list(self.parts.values()) if self.held else ():
            if part.is_known and (data := self.held.pop(part.first, b"")):
                self.send(part, data)

    def _flush(self, part: Part) -> None:
        try:
            del part.outward[: part.sock.send(part.outward, _socket.MSG_NOSIGNAL)]
        except BlockingIOError:
            pass
        except OSError:
            return  # its end is read soon
        self.poll.modify(
            part.sock.fileno(), select.POLLIN | select.POLLOUT if part.outward else select.POLLIN
        )

    # --- standard input ---------------------------------------------------------------------------

    def feed(self, descriptor: int, task: int) -> None:
        """Send what can be read there to the task, or to all, as soon as all parts are there; -1:
        nothing, and that it ends.
        """
        self.stdin, self.stdin_task = descriptor, task
        self._begin_stdin()

    def _begin_stdin(self) -> None:
        if self.known != self.expected:
            return
        if self.stdin < 0:
            self.send_all(frame(STDIN, self.stdin_task, b""))
            return
        try:
            self.poll.register(self.stdin, select.POLLIN)
        except OSError:
            self._end_stdin()

    def _read_stdin(self) -> None:
        if any(len(part.outward) > 1 << 22 for part in self.parts.values()):
            select.select([], list(self.parts), [], 0.1)
            return
        try:
            data = os.read(self.stdin, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.send_all(frame(STDIN, self.stdin_task, data))
        else:
            self.poll.unregister(self.stdin)
            self._end_stdin()

    def _end_stdin(self) -> None:
        self.stdin = -2
        self.send_all(frame(STDIN, self.stdin_task, b""))
