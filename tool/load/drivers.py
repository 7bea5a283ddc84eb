"""The ways in which a command line reaches a cluster: as the messages that the command would send,
or as a process, ours or real Slurm's.

Place: tool/load, under the process that sends. A driver tells what an answer was; when it was due,
and what it means for the load, is not its business.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from understudy.commands.shared.client import RefusedError, pack
from understudy.tool.load.lines import (
    LineError,
    is_recordable,
    messages_of,
    script_of,
    with_script,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from understudy.tool.load.connections import Pool

_SUBMIT_TAG: Final = pack("SubmitJob", [], "")[0]
_JOB_ID: Final = re.compile(r"(?:Submitted batch job |^)(\d+)\s*$", re.MULTILINE)
_NOISE: Final = re.compile(r"^\w+: (error: )?")


@dataclass(frozen=True, slots=True)
class Outcome:
    """An answer. `refusals`: the texts of what went wrong."""

    refusals: tuple[str, ...] = ()
    job_id: int = 0  # that was acknowledged


class Driver(Protocol):
    """Sends command lines."""

    async def prepare(self) -> None:
        """Do what takes time before the load begins."""

    async def send(self, line: str, run: float, timeout_s: float) -> Outcome:
        """Send a line, of a submission one whose job runs so long."""

    def close(self) -> None:
        """End what it holds."""


@dataclass(slots=True)
class KeptLines:
    """Command lines as messages; those that come again are not taken apart again."""

    _kept: dict[str, list[list[Any]]] = field(default_factory=dict)

    def messages(self, line: str, run: float) -> list[list[Any]]:
        """What the command sends, of a submission one whose job runs so long.

        Raises:
            LineError: it sends nothing.
        """
        script = script_of(run)
        kept = self._kept.get(line)
        if kept is None:
            kept = messages_of(line, script)
            if len(self._kept) >= 10_000:
                self._kept.clear()
            self._kept[line] = kept
        return [with_script(each, script) if each[0] == _SUBMIT_TAG else each for each in kept]


@dataclass(slots=True)
class Messages:
    """Over connections that stay open, with the commands' messages; what cannot be had so goes to
    `processes`.
    """

    pool: Pool
    processes: Processes
    timeout_s: float
    _lines: KeptLines = field(default_factory=KeptLines)

    async def prepare(self) -> None:
        await self.pool.open_all(self.timeout_s)

    async def send(self, line: str, run: float, timeout_s: float) -> Outcome:
        if not is_recordable(line):
            return await self.processes.send(line, run, timeout_s)
        try:
            messages = self._lines.messages(line, run)
        except LineError as error:
            return Outcome((str(error),))
        job_id, refusals = 0, []
        deadline = time.monotonic() + timeout_s
        try:
            connection = await asyncio.wait_for(self.pool.take(), timeout_s)
        except TimeoutError:
            return Outcome((f"no connection was free for {timeout_s:g} s",))
        try:
            for message in messages:
                left = max(0.0, deadline - time.monotonic())
                name, answer = await connection.ask(message, left)
                refusals += refusals_in(name, answer)
                if name == "Submitted":
                    job_id = answer[0]
        except RefusedError as error:
            refusals.append(error.text)
        finally:
            self.pool.give_back(connection)
        return Outcome(tuple(refusals), job_id)

    def close(self) -> None:
        self.pool.close()


def refusals_in(name: str, answer: list[Any]) -> list[str]:
    """The texts of what an answer refuses, without notes before them."""
    if name == "Failure":
        return [answer[1].rpartition("\n")[2]]
    if name == "JobResults":
        return [text or f"error {code}" for _, code, text in answer[0] if code]
    return []


@dataclass(slots=True)
class Processes:
    """As processes, at most so many at a time; who comes later waits. `path`: the folder of the
    commands. `users`: the numbers of users, and of their groups, who take turns; root alone may.
    """

    path: Path
    environment: Mapping[str, str]
    folder: Path  # where they run
    most: int = 64
    users: Sequence[Sequence[int]] = ()
    _turn: asyncio.Semaphore | None = None
    _begun: int = 0

    async def prepare(self) -> None: ...

    async def send(self, line: str, run: float, timeout_s: float) -> Outcome:
        if self._turn is None:
            self._turn = asyncio.Semaphore(self.most)
        program, *words = shlex.split(line)
        is_submission = program == "sbatch"
        deadline = time.monotonic() + timeout_s
        try:
            await asyncio.wait_for(self._turn.acquire(), timeout_s)
        except TimeoutError:
            return Outcome((f"{program} was not begun for {timeout_s:g} s",))
        try:
            process = await asyncio.create_subprocess_exec(
                str(self.path / program),
                *words,
                stdin=asyncio.subprocess.PIPE if is_submission else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if is_submission else asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=self.environment,
                cwd=self.folder,
                start_new_session=True,
                **self._next_user(),
            )
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    out, said = await process.communicate(
                        script_of(run).encode() if is_submission else None
                    )
            except TimeoutError:
                return Outcome((f"{program} has not ended after {timeout_s:g} s",))
            finally:
                if process.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    await process.wait()
        finally:
            self._turn.release()
        if process.returncode:
            return Outcome((first_line(said, f"{program}: exit code {process.returncode}"),))
        found = _JOB_ID.search(out.decode(errors="replace")) if is_submission else None
        return Outcome((), int(found[1]) if found else 0)

    def _next_user(self) -> dict[str, Any]:
        self._begun += 1
        if not self.users:
            return {}
        user_id, group_id = self.users[self._begun % len(self.users)]
        return {"user": user_id, "group": group_id, "extra_groups": []}

    def close(self) -> None: ...


def first_line(said: bytes, otherwise: str) -> str:
    """What a command said first, without its own name before it."""
    lines = said.decode(errors="replace").strip().splitlines()
    return _NOISE.sub("", lines[0]) if lines else otherwise
