"""Commands as participants of virtual time: what a person would type at an instant of a replay, run
there by the replay itself.

Place: used by scenarios.py. A command is ordinary blocking code with one client; here it runs in
a thread while the clock is held, and whenever it asks the controller the clock is let go until the
answer has come. So a command takes the virtual time of its messages and none for its own computing,
whatever the host is doing, and a run is the same every time.
"""

from __future__ import annotations

import contextlib
import io
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from understudy.commands.shared.client import Client, Context, guarded, pack
from understudy.protocol.messages import (
    AccountingChange,
    AccountingQuery,
    AnyMessage,
    Message,
    SubmitJob,
    Submitted,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Mapping

    from understudy.clock.virtual_loop import VirtualEventLoop
    from understudy.protocol.messenger import Messenger


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended. `answers` are those of the controller, in order."""

    code: int
    out: str
    err: str
    answers: tuple[Message, ...]


class _BridgedClient(Client):
    """Asks through the replay's messenger instead of a socket of its own."""

    def __init__(
        self,
        loop: VirtualEventLoop,
        messenger: Messenger,
        cluster_name: str,
        change: Callable[[Message], Message],
    ) -> None:
        super().__init__()
        self._loop, self._messenger, self._name, self._change = (
            loop,
            messenger,
            cluster_name,
            change,
        )
        self.answers: list[Message] = []
        self.hold: Any = None
        self.is_given_up = False  # nobody waits for the command any more

    submit = Client.call  # the controller lasts as long as the replay

    @property
    def cluster_name(self) -> str:
        return self._name

    def sleep(self, seconds: float) -> None:
        """Let virtual time go on so long."""
        come = threading.Event()

        def over() -> None:
            self.hold = self._loop.hold()
            self.hold.__enter__()
            come.set()

        def wait() -> None:
            self._loop.call_later(seconds, over)
            self.hold.__exit__(None, None, None)

        self._loop.call_soon_threadsafe(wait)
        come.wait()

    def exchange(self, message: str, *fields: Any) -> tuple[str, list[Any]]:
        request = self._change(msgspec.convert(pack(message, *fields), AnyMessage))
        come = threading.Event()

        def answered(answer: Message) -> None:
            self.answers.append(answer)
            if not self.is_given_up:
                self.hold = self._loop.hold()
                self.hold.__enter__()
            come.set()

        def ask() -> None:
            peer = (
                "accounting"
                if isinstance(request, AccountingChange | AccountingQuery)
                else "controller"
            )
            self._messenger.send(peer, request, answered, 600.0)
            self.hold.__exit__(None, None, None)

        self._loop.call_soon_threadsafe(ask)
        come.wait()
        answer = self.answers[-1]
        _, *content = msgspec.to_builtins(answer)
        return type(answer).__name__, content


class _Question(BaseException):
    """A command asks something that has not been answered yet; it is nothing that commands
    catch.
    """

    def __init__(self, request: Message) -> None:
        super().__init__()
        self.request = request


class _AnsweredClient(Client):
    """Gives the answers that are known, in order; the first question without one ends the command's
    run.
    """

    def __init__(
        self, cluster_name: str, change: Callable[[Message], Message], answers: list[Message]
    ) -> None:
        super().__init__()
        self._name, self._change, self._known, self._next = cluster_name, change, answers, 0

    submit = Client.call  # as above

    @property
    def cluster_name(self) -> str:
        return self._name

    def exchange(self, message: str, *fields: Any) -> tuple[str, list[Any]]:
        if self._next == len(self._known):
            raise _Question(self._change(msgspec.convert(pack(message, *fields), AnyMessage)))
        answer = self._known[self._next]
        self._next += 1
        _, *content = msgspec.to_builtins(answer)
        return type(answer).__name__, content


def _context(
    program: str, client: Client, stdin: str, environ: Mapping[str, str] | None
) -> tuple[Context, io.StringIO, io.StringIO]:
    """Of a command, with what it writes to its output and as errors."""
    out, err = io.StringIO(), io.StringIO()
    return (
        Context(
            program,
            client=client,
            environ=environ or {},
            stdin=io.StringIO(stdin),
            stdout=out,
            stderr=err,
        ),
        out,
        err,
    )


async def submit(
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
    """Run a command that submits a job now, without a thread: a history has a hundred thousand of
    them.

    The command is run from its beginning with the answers that are known until it asks something
    else, and is through when the job is submitted. It does nothing but ask, so it asks the same
    again.
    """
    answers: list[Message] = []
    while True:
        client = _AnsweredClient(cluster_name, change, answers)
        context, out, err = _context(program, client, stdin, environ)
        try:
            code = guarded(context, command, arguments)
        except _Question as question:
            answers.append(await messenger.call("controller", question.request, 600.0))
            if isinstance(answers[-1], Submitted):
                return Outcome(0, "", err.getvalue(), tuple(answers))
        else:
            return Outcome(code, out.getvalue(), err.getvalue(), tuple(answers))


async def run_command(
    loop: VirtualEventLoop,
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
    """Run a command now. `change` may alter its requests (who submits, how an emulated job
    behaves).
    """
    client = _BridgedClient(loop, messenger, cluster_name, change)
    context, out, err = _context(program, client, stdin, environ)
    client.hold = loop.hold()
    client.hold.__enter__()
    done: asyncio.Future[int] = loop.create_future()

    def ended(tell: Callable[[Any], None], how: object) -> None:
        if not done.done():
            tell(how)

    def work() -> None:
        with contextlib.suppress(RuntimeError):  # the run may have ended meanwhile, and its loop
            try:
                code = guarded(context, command, arguments)
            except BaseException as error:  # noqa: BLE001  handed on to whoever waits
                loop.call_soon_threadsafe(ended, done.set_exception, error)
            else:
                loop.call_soon_threadsafe(ended, done.set_result, code)

    threading.Thread(target=work, name=program, daemon=True).start()
    try:
        code = await done
    finally:
        client.is_given_up = True
        client.hold.__exit__(None, None, None)
    return Outcome(code, out.getvalue(), err.getvalue(), tuple(client.answers))


def submitted_as(
    user_id: int, group_id: int, behaves: Callable[[SubmitJob], SubmitJob]
) -> Callable[[Message], Message]:
    """A `change` for run_command: submissions are this user's, and behave as told."""

    def change(message: Message) -> Message:
        if isinstance(message, SubmitJob):
            return msgspec.structs.replace(behaves(message), user_id=user_id, group_id=group_id)
        return message

    return change
