"""The node daemon's memory on disk, for real jobs: what it runs, and what it has yet to tell the controller. One small file for each.

Place: the node daemon's edge, in its spool directory. A file appears and disappears as a whole (written aside, then renamed), so a daemon that is
killed at any instant finds a complete journal. The spool need not survive a crash of the host, because the jobs do not either.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.protocol.messages import AnyMessage, BatchComplete, EpilogComplete, LaunchBatch, LaunchTasks, Message, StepComplete, TerminateJob

if TYPE_CHECKING:
    from pathlib import Path

    from understudy.noded.core import Key
    from understudy.noded.steps import StepKey

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(AnyMessage).decode

Entry = LaunchBatch | LaunchTasks | TerminateJob | BatchComplete | EpilogComplete | StepComplete


def _file_name(message: Entry) -> str:
    if isinstance(message, LaunchTasks):
        return _launch_name((message.job_id, message.restart, message.step_id))
    if isinstance(message, StepComplete):
        return f"StepComplete.{message.job_id}.{message.restart}.{message.step_id}.{zlib.crc32(message.nodes.encode()):08x}"
    end = f".{zlib.crc32(message.nodes.encode()):08x}" if isinstance(message, EpilogComplete) else ""
    return f"{type(message).__name__}.{message.job_id}.{message.restart}{end}"


def _launch_name(step: StepKey) -> str:
    return f"LaunchTasks.{step[0]}.{step[1]}.{step[2]}"


class Journal:
    """The entries, each a message as it was received or will be sent."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        directory.chmod(0o700)
        self._directory = directory

    def put(self, message: Entry) -> None:
        """Write an entry down."""
        path = self._directory / _file_name(message)
        temporary = path.with_name(path.name + ".new")
        temporary.write_bytes(_encode(message))
        temporary.replace(path)

    def remove(self, message: Entry) -> None:
        """Strike an entry out; no harm if it is not there."""
        (self._directory / _file_name(message)).unlink(missing_ok=True)

    def forget(self, key: Key) -> None:
        """Strike out the run: its launch and its termination."""
        for kind in ("LaunchBatch", "TerminateJob"):
            (self._directory / f"{kind}.{key[0]}.{key[1]}").unlink(missing_ok=True)

    def forget_step(self, step: StepKey) -> None:
        """Strike out the launch of a step."""
        (self._directory / _launch_name(step)).unlink(missing_ok=True)

    def read(self) -> list[Message]:
        """All entries, in order of their names. Files that cannot be read are left alone."""
        entries: list[Message] = []
        for path in sorted(self._directory.iterdir()):
            if path.suffix == ".new":
                continue
            try:
                entries.append(_decode(path.read_bytes()))
            except (OSError, msgspec.DecodeError):
                continue
        return entries
