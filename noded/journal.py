"""The node daemon's memory on disk, for real jobs: what it runs, and what it has yet to tell the
controller.

Place: the node daemon's edge, in its spool directory. One file, to which each change is appended
with one write(2): a daemon that is killed at any instant finds all that it had noted, and a record
that was cut off is none. (A file for each entry cost a job twenty changes of directories.) What is
struck out is dropped from the file now and then. The spool need not survive a crash of the host,
because the jobs do not either.

    record   length of the body (4 bytes), its CRC-32 (4 bytes), body
    body     msgpack [name, message as bytes]; nil for the message: struck out
"""

from __future__ import annotations

import errno
import logging
import os
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.protocol.messages import (
    AnyMessage,
    BatchComplete,
    EpilogComplete,
    LaunchBatch,
    LaunchTasks,
    Message,
    PrologComplete,
    StepComplete,
    TerminateJob,
)

if TYPE_CHECKING:
    from pathlib import Path

    from understudy.noded.core import Key
    from understudy.noded.steps import StepKey

log = logging.getLogger("understudy.noded.journal")
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(AnyMessage).decode
_decode_body: Final = msgspec.msgpack.Decoder(tuple[str, bytes | None]).decode
_HEAD: Final = 8
_ROOM: Final = 1 << 20  # bytes that may be of entries struck out

Entry = (
    LaunchBatch
    | LaunchTasks
    | TerminateJob
    | BatchComplete
    | EpilogComplete
    | PrologComplete
    | StepComplete
)


def _name(message: Entry) -> str:
    if isinstance(message, LaunchTasks):
        return _launch_name((message.job_id, message.restart, message.step_id))
    if isinstance(message, StepComplete):
        return f"StepComplete.{message.job_id}.{message.restart}.{message.step_id}.{message.nodes}"
    end = f".{message.nodes}" if isinstance(message, EpilogComplete | PrologComplete) else ""
    return f"{type(message).__name__}.{message.job_id}.{message.restart}{end}"


def _launch_name(step: StepKey) -> str:
    return f"LaunchTasks.{step[0]}.{step[1]}.{step[2]}"


def _record(name: str, message: bytes | None) -> bytes:
    body = _encode((name, message))
    return len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def entries(directory: Path) -> list[Message]:
    """What a daemon's journal holds, in order of the entries' names. Those of another version that
    cannot be read are left out.
    """
    found: list[Message] = []
    for _, message in sorted(_parsed((directory / "entries").read_bytes())[0].items()):
        with suppress(msgspec.DecodeError):
            found.append(_decode(message))
    return found


def _parsed(data: bytes) -> tuple[dict[str, bytes], dict[str, int], int]:
    """The messages by name, the length of each one's record, and where the last whole record
    ends.
    """
    found: dict[str, bytes] = {}
    lengths: dict[str, int] = {}
    at = 0
    while at + _HEAD <= len(data):
        end = at + _HEAD + int.from_bytes(data[at : at + 4], "big")
        body = data[at + _HEAD : end]
        if end > len(data) or zlib.crc32(body) != int.from_bytes(data[at + 4 : at + 8], "big"):
            break
        name, message = _decode_body(body)
        found.pop(name, None)
        lengths.pop(name, None)
        if message is not None:
            found[name], lengths[name] = message, end - at
        at = end
    return found, lengths, at


class Journal:
    """The entries, each a message as it was received or will be sent."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
        self._path = directory / "entries"
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._live: dict[str, int] = {}  # the length of each entry's record
        self._live_bytes = 0
        self._size = 0
        # entries to be struck out, for which there was no room
        self._unwritten: dict[str, None] = {}
        self._scan()

    def put(self, message: Entry) -> bool:
        """Write an entry down. Whether there was room for it."""
        name = _name(message)
        record = _record(name, _encode(message))
        if not self._append(record):
            return False
        self._live_bytes += len(record) - self._live.pop(name, 0)
        self._live[name] = len(record)
        return True

    def remove(self, message: Entry) -> None:
        """Strike an entry out; no harm if it is not there."""
        self._strike(_name(message))

    def forget(self, key: Key) -> None:
        """Strike out the run: its launch and its termination."""
        for kind in ("LaunchBatch", "TerminateJob"):
            self._strike(f"{kind}.{key[0]}.{key[1]}")

    def forget_step(self, step: StepKey) -> None:
        """Strike out the launch of a step."""
        self._strike(_launch_name(step))

    def read(self) -> list[Message]:
        """All entries, in order of their names."""
        return entries(self._path.parent)

    def close(self) -> None:
        """Write no more."""
        os.close(self._file)

    def _strike(self, name: str) -> None:
        length = self._live.pop(name, 0)
        if not length:
            return
        self._live_bytes -= length
        if not self._append(_record(name, None)):
            self._unwritten[name] = None
        elif self._size > _ROOM + 2 * self._live_bytes:
            with suppress(OSError):
                self._shrink()

    def _append(self, record: bytes) -> bool:
        """Write a record, and before it what is to be struck out and found no room. Whether there
        was room.
        """
        names = [name for name in self._unwritten if name not in self._live]
        whole = b"".join(_record(name, None) for name in names) + record
        try:
            if os.write(self._file, whole) < len(whole):
                os.ftruncate(self._file, self._size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error.strerror)
            return False
        self._unwritten.clear()
        self._size += len(whole)
        return True

    def _scan(self) -> dict[str, bytes]:
        """The messages of the file, by name. Behind what was cut off nothing counts; what comes
        next takes its place.
        """
        data = self._path.read_bytes()
        found, self._live, self._size = _parsed(data)
        if self._size < len(data):
            os.ftruncate(self._file, self._size)
        self._live_bytes = sum(self._live.values())
        return found

    def _shrink(self) -> None:
        """A file without what was struck out takes the place of this one."""
        aside = self._path.with_suffix(".new")
        aside.write_bytes(
            b"".join([_record(name, message) for name, message in self._scan().items()])
        )
        aside.chmod(0o600)
        file = os.open(aside, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        aside.replace(self._path)
        os.close(self._file)
        self._file = file
        self._scan()
