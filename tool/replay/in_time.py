"""Commands as participants of virtual time: what a person would type at an instant of a replay, run
there by the replay itself.

Place: under scenarios.py and change.py. A command is ordinary blocking code with one client; here
it is run again from its beginning whenever an answer has come, with all answers so far. So a
command takes the virtual time of its messages and none for its own computing, whatever the host is
doing, and a run is the same every time. No thread waits for anything, so the process can be forked
while a command is under way.
"""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from understudy.commands.shared.client import Client, pack
from understudy.commands.shared.context import Context, guarded
from understudy.protocol.messages import (
    AccountingChange,
    AccountingQuery,
    AnyMessage,
    Message,
    SubmitJob,
    Submitted,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from understudy.protocol.messenger import Messenger


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended. `answers` are those of the controller, in order."""

    code: int
    out: str
    err: str
    answers: tuple[Message, ...]


class _Question(BaseException):
    """A command asks something that has not been answered yet, or wants to sleep; it is nothing
    that commands catch.
    """

    def __init__(self, request: Message | None, seconds: float = 0.0) -> None:
        super().__init__()
        self.request, self.seconds = request, seconds


class _AnsweredClient(Client):
    """Gives the answers that are known, in order; the first question without one ends the command's
    run. None stands for a sleep that is over.
    """

    def __init__(
        self,
        cluster_name: str,
        change: Callable[[Message], Message],
        answers: list[Message | None],
    ) -> None:
        super().__init__()
        self._name, self._change, self._known, self._next = cluster_name, change, answers, 0

    submit = Client.call  # the controller lasts as long as the replay

    @property
    def cluster_name(self) -> str:
        return self._name

    def _is_known(self) -> bool:
        self._next += 1
        return self._next <= len(self._known)

    def sleep(self, seconds: float) -> None:
        """Let virtual time go on so long."""
        if not self._is_known():
            raise _Question(None, seconds)

    def exchange(self, message: str, *fields: Any) -> tuple[str, list[Any]]:
        if not self._is_known():
            raise _Question(self._change(msgspec.convert(pack(message, *fields), AnyMessage)))
        answer = self._known[self._next - 1]
        assert answer is not None, "asks what it did not ask before"
        _, *content = msgspec.to_builtins(answer)
        return type(answer).__name__, content


async def run_command(
    messenger: Messenger,
    cluster_name: str,
    program: str,
    command: Callable[[list[str], Context], int],
    arguments: list[str],
    *,
    stdin: str = "",
    environ: Mapping[str, str] | None = None,
    change: Callable[[Message], Message] = lambda message: message,
) -> Outcome:
    """Run a command now; one that submits a job until it is submitted.

    It is run from its beginning with the answers that are known until it asks something else. Its
    questions follow from its arguments and those answers alone, so it asks the same again.

    Args:
        messenger: of the participant; the command's questions go through it.
        cluster_name: as `ClusterName`.
        program: what the command is called in its messages.
        command: Slurm's command as a function.
        arguments: those behind its name.
        stdin: what it reads.
        environ: its environment.
        change: may alter its requests (who submits, how an emulated job behaves).
    """
    answers: list[Message | None] = []
    while True:
        client = _AnsweredClient(cluster_name, change, answers)
        out, err = io.StringIO(), io.StringIO()
        context = Context(
            program,
            client=client,
            environ=environ or {},
            stdin=io.StringIO(stdin),
            stdout=out,
            stderr=err,
        )
        try:
            code = guarded(context, command, arguments)
        except _Question as question:
            if question.request is None:
                await asyncio.sleep(question.seconds)
                answers.append(None)
                continue
            answer = await messenger.call(_peer(question.request), question.request, 600.0)
            answers.append(answer)
            if not isinstance(answer, Submitted):
                continue
            code = 0  # whatever `sbatch --wait` would wait for is still to come
        told = tuple(answer for answer in answers if answer is not None)
        return Outcome(code, out.getvalue(), err.getvalue(), told)


def _peer(request: Message) -> str:
    return "accounting" if isinstance(request, AccountingChange | AccountingQuery) else "controller"


def submitted_as(
    user_id: int, group_id: int, behaves: Callable[[SubmitJob], SubmitJob]
) -> Callable[[Message], Message]:
    """A `change` for run_command: submissions are this user's, and behave as told."""

    def change(message: Message) -> Message:
        if isinstance(message, SubmitJob):
            return msgspec.structs.replace(behaves(message), user_id=user_id, group_id=group_id)
        return message

    return change
