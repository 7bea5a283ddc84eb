"""Reports to the controller that must not be lost: sent until they are acknowledged, with growing
pauses, for as long as the controller is away.

Place: the node daemon's edge; `journal.py` keeps them over a restart of the daemon where jobs are
real. It does not know what the reports mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.protocol.envelopes import STANDBY
from understudy.protocol.messages import (
    BatchComplete,
    EpilogComplete,
    Failure,
    Message,
    PrologComplete,
    StepComplete,
)

if TYPE_CHECKING:
    import asyncio
    import logging
    from collections.abc import Callable

    from understudy.clock.timekeeper import Timekeeper
    from understudy.noded.faults import FaultTable
    from understudy.noded.journal import Journal
    from understudy.protocol.messenger import Messenger

CONTROLLER: Final = "controller"
FIRST_PAUSE_S: Final = 1.0  # ours: before a report is sent again, twice as long each time
LONGEST_PAUSE_S: Final = 60.0  # ours: the longest such pause
TRY_AGAIN: Final = 2020  # "Job can not be altered now, try again later"

ReportMessage = BatchComplete | EpilogComplete | PrologComplete | StepComplete
_Name = tuple[int, int, str]


@dataclass(slots=True)
class _Pending:
    """A report that is not acknowledged."""

    message: ReportMessage
    node: str
    failed: int = 0  # attempts
    retry: asyncio.TimerHandle | None = None


def pause_s(attempts: int) -> float:
    """How long to wait after so many failed attempts (1 for the first)."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempts - 1, 10))


def is_passing(answer: Message) -> bool:
    """Whether the answer says that it may go better later: no connection, no answer, not ready, not
    leading. Any other word of the controller is final.
    """
    if not isinstance(answer, Failure):
        return False
    code = answer.code
    return 1000 <= code < 1100 or 5000 <= code < 5100 or code in (-1, TRY_AGAIN, STANDBY)


class Reports:
    """What the controller has yet to acknowledge. `on_back` is called when the controller answers
    again after it was away: it may be a new one.
    """

    def __init__(
        self,
        messenger: Messenger,
        time: Timekeeper,
        faults: FaultTable,
        log: logging.Logger,
        journal: Journal | None = None,
        on_back: Callable[[], None] = lambda: None,
    ) -> None:
        self._messenger, self._time, self._faults, self._log, self._journal = (
            messenger,
            time,
            faults,
            log,
            journal,
        )
        self._on_back = on_back
        self._is_away = False
        self._pending: dict[_Name, _Pending] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def send(self, message: ReportMessage, node: str) -> None:
        """Tell the controller. `node` speaks: while it is silent, nothing is sent."""
        name = _name(message)
        # no word is a good word: the clock knows that it has come
        if self._time.is_virtual and not self._faults:
            self._tell(name, message, node)
            return
        if name in self._pending:
            return
        self._pending[name] = _Pending(message, node)
        if self._journal is not None:
            self._journal.put(message)
        self._try(name)

    def has_end_of(self, run: tuple[int, int]) -> bool:
        """Whether the controller has yet to hear how the run's script has ended."""
        return (*run, "") in self._pending

    def controller_is_back(self) -> None:
        """The controller has just answered: no need to wait any longer with what it did not
        hear.
        """
        self._is_away = False
        for name, pending in list(self._pending.items()):
            if pending.retry is not None:
                pending.retry.cancel()
                self._try(name)

    def _try(self, name: _Name) -> None:
        pending = self._pending.get(name)
        if pending is None:
            return
        pending.retry = None
        if self._faults and self._faults.of(pending.node).silent:
            self._again(name)
            return
        self._messenger.send(CONTROLLER, pending.message, self._on_reply(name, pending))

    def _tell(self, name: _Name, message: ReportMessage, node: str) -> None:
        def failed(answer: Message) -> None:
            if is_passing(answer):
                self._log.warning(
                    "%s of job %d not delivered, trying again: %s",
                    type(message).__name__,
                    message.job_id,
                    answer,
                )
                self._pending.setdefault(name, _Pending(message, node))
                self._again(name)
            else:
                self._log.warning(
                    "%s of job %d refused: %s", type(message).__name__, message.job_id, answer
                )

        self._messenger.send(CONTROLLER, message, failed, only_failures=True)

    def _on_reply(self, name: _Name, pending: _Pending) -> Callable[[Message], None]:
        message = pending.message

        def answered(answer: Message) -> None:
            if self._pending.get(name) is not pending:
                return
            if is_passing(answer):
                if pending.failed == 0:
                    self._log.warning(
                        "%s of job %d not delivered, trying again: %s",
                        type(message).__name__,
                        message.job_id,
                        answer,
                    )
                self._is_away = True
                self._again(name)
                return
            if self._is_away:
                self._is_away = False
                self._on_back()
            if isinstance(answer, Failure):
                self._log.warning(
                    "%s of job %d refused: %s", type(message).__name__, message.job_id, answer.text
                )
            del self._pending[name]
            if self._journal is not None:
                self._journal.remove(message)

        return answered

    def _again(self, name: _Name) -> None:
        pending = self._pending[name]
        if pending.retry is not None:
            return
        pending.failed += 1
        pending.retry = self._time.call_after_wait(pause_s(pending.failed), self._try, name)


def _name(message: ReportMessage) -> _Name:
    if isinstance(message, StepComplete):
        return message.job_id, message.restart, f"{message.step_id} {message.nodes}"
    if isinstance(message, PrologComplete):
        return message.job_id, message.restart, f"prolog {message.nodes}"
    return (
        message.job_id,
        message.restart,
        message.nodes if isinstance(message, EpilogComplete) else "",
    )
