"""Command lines as the messages that the commands would send: the commands' own code is run, with
a client that keeps what it is to send.

Place: tool/load, under the driver that asks the controller without starting a process for each
request. What a command sends only after it has read an answer is not seen so: such lines are for
processes (`is_recordable`).
"""

from __future__ import annotations

import io
import os
import shlex
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.shared.client import RefusedError, Rows, pack
from understudy.commands.shared.context import Context
from understudy.commands.shared.locate import Location
from understudy.commands.shared.options import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MODULES: Final = {
    "sbatch": "sbatch",
    "scancel": "scancel",
    "squeue": "squeue.squeue",
    "sinfo": "sinfo.sinfo",
    "scontrol": "scontrol.scontrol",
    "sdiag": "sdiag",
}
_SCRIPT_FIELD: Final = 2  # of a packed SubmitJob, behind its tag and the JobSpec


class LineError(Exception):
    """A command line with which the command sends nothing; the text is what it says."""


class _KeptError(Exception):
    """The command has sent what it had to, and asks for an answer that there is not."""


class _Keeper:
    """A client that keeps messages. Whole listings are empty; nothing else is answered."""

    cluster_name = "load"
    has_accounting = False
    location = Location("load")  # with one controller

    def __init__(self) -> None:
        self.messages: list[list[Any]] = []

    def query(
        self,
        table: str,
        columns: Sequence[str],
        where: Mapping[str, list[Any]] | None = None,
        *,
        all_partitions: bool = True,
    ) -> Rows:
        self.messages.append(
            pack("Query", table, list(columns), dict(where or {}), all_partitions, True)
        )
        if where:
            raise _KeptError
        return Rows(columns, [], time.time())

    def call(self, message: str, *fields: Any) -> list[Any]:
        self.messages.append(pack(message, *fields))
        raise _KeptError

    def submit(self, message: str, *fields: Any) -> list[Any]:
        """Without the token: each time that the message is sent it is another job."""
        return self.call(message, *fields)


def script_of(run: float) -> str:
    """The script of a job that runs so many seconds, here and under Slurm."""
    return f"#!/bin/sh\n#UNDERSTUDY run={run:g}\nsleep {run:g}\n"


def is_recordable(line: str) -> bool:
    """Whether the command can be had without a process."""
    return line.split(None, 1)[0] in _MODULES


def messages_of(line: str, script: str = "") -> list[list[Any]]:
    """What the command sends, packed, to the controller or to accounting.

    Raises:
        LineError: it sends nothing.
    """
    program, *words = shlex.split(line)
    if program == "scancel" and (found := _signal(words)) is not None:
        return [found]
    keeper = _Keeper()
    said = io.StringIO()
    context = Context(
        program,
        client=keeper,
        environ={"PATH": os.environ.get("PATH", ""), "HOME": "/"},
        stdin=io.StringIO(script),
        stdout=io.StringIO(),
        stderr=said,
    )
    command: Callable[[list[str], Context], int] = getattr(
        import_module(f"understudy.commands.{_MODULES[program]}"), program
    )
    try:
        command(words, context)
    except (_KeptError, RefusedError, OptionError) as error:
        if not keeper.messages:
            raise LineError(f"{line}: {error}") from None
    if not keeper.messages:
        raise LineError(f"{line}: {said.getvalue().strip() or 'sends nothing'}")
    return keeper.messages


def with_script(message: list[Any], script: str) -> list[Any]:
    """A submission with another script."""
    return [*message[:_SCRIPT_FIELD], script, *message[_SCRIPT_FIELD + 1 :]]


def _signal(words: list[str]) -> list[Any] | None:
    """`scancel --signal` looks at the job's state before it sends anything; what it sends then."""
    from understudy.commands.scancel import OPTIONS
    from understudy.commands.shared.options import last_values
    from understudy.model.times import parse_signal

    given, jobs = OPTIONS.parse(words)
    options = last_values(given)
    signal = options.get("signal")
    if signal is None or not jobs:
        return None
    try:
        number = parse_signal(signal)
    except ValueError:
        raise LineError(f"scancel: Unknown job signal: {signal}") from None
    return pack("CancelJobs", jobs, number, {}, "batch" in options, "full" in options)
