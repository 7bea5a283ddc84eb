"""What tasks write, on its way to those who read it: line by line, unless it is unbuffered.

Place: a part of a step's process (`taskd.py`).
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from understudy.noded.task import Task
    from understudy.noded.task_readers import Readers

_CHUNK = 65536


class Stream:
    """A task's stdout or stderr."""

    def __init__(self, kind: int, task: Task) -> None:
        self.kind, self.task, self.held = kind, task, b""


class Output:
    """The streams that are open."""

    def __init__(self, poll: select.poll, readers: Readers, *, unbuffered: bool) -> None:
        self._poll, self._readers, self._unbuffered = poll, readers, unbuffered
        self._streams: dict[int, Stream] = {}

    def __contains__(self, descriptor: int) -> bool:
        return descriptor in self._streams

    def __bool__(self) -> bool:
        return bool(self._streams)

    def add(self, descriptor: int, kind: int, task: Task) -> None:
        self._streams[descriptor] = Stream(kind, task)
        self._poll.register(descriptor, select.POLLIN)

    def read(self, number: int) -> bool:
        """Whether there may be more at once."""
        stream = self._streams[number]
        if self._readers.are_slow:
            time.sleep(0.01)  # srun is slower than its tasks
            return False
        try:
            data = os.read(number, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # a terminal that nobody has open any more
            data = b""
        if not data:
            self._tell_held(stream)
            self._readers.tell(stream.kind, stream.task.number, b"")
            self._poll.unregister(number)
            os.close(number)
            del self._streams[number]
            return False
        if not self._unbuffered:
            data = stream.held + data
            stream.held = b""
            at = data.rfind(b"\n") + 1
            if at < len(data) < _CHUNK:
                stream.held, data = data[at:], data[:at]
        if data:
            self._readers.tell(stream.kind, stream.task.number, data)
        return True

    def drain_ended(self) -> None:
        """What tasks have written before they ended comes before the news of their ends."""
        for number in list(self._streams):
            if number in self._streams and self._streams[number].task.status is not None:
                while number in self._streams and self.read(number):
                    pass

    def close(self) -> None:
        """Hand on what is still held, though nobody has ended the streams."""
        for stream in self._streams.values():
            self._tell_held(stream)

    def _tell_held(self, stream: Stream) -> None:
        if stream.held:
            self._readers.tell(stream.kind, stream.task.number, stream.held)
