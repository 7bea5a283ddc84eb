"""Announcing nodes to the controller, until it has taken note.

Place: the node daemon's edge. It does not know the nodes' jobs: `describe` says what to announce.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.noded.reports import CONTROLLER, is_passing, pause_s
from understudy.protocol.messages import Failure, Message, Registered, RegisterNodes

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from understudy.clock.timekeeper import Timekeeper
    from understudy.protocol.messenger import Messenger

_LATE_ATTEMPT: Final = 8  # some ten seconds after the first


class Registration:
    """`on_taken` gets the runs that the controller does not know."""

    def __init__(
        self,
        messenger: Messenger,
        time: Timekeeper,
        log: logging.Logger,
        describe: Callable[[], RegisterNodes],
        on_taken: Callable[[list[tuple[int, int]]], None],
    ) -> None:
        self._messenger, self._time, self._log = messenger, time, log
        self._describe, self._on_taken = describe, on_taken
        self._round = 0  # the number of the last
        self.is_done = False

    def begin(self) -> None:
        """Announce the nodes; a round that is under way is forgotten."""
        self._round += 1
        self.is_done = False
        self._try(self._round, 1)

    def _try(self, number: int, attempt: int) -> None:
        if number != self._round:
            return

        def answered(answer: Message) -> None:
            if number != self._round:
                return
            if isinstance(answer, Registered):
                self.is_done = True
                self._on_taken(answer.unknown_jobs)
                return
            text = answer.text if isinstance(answer, Failure) else answer
            # before, controller and node daemon may just have started side by side
            if attempt == _LATE_ATTEMPT or not is_passing(answer):
                self._log.error("Unable to register: %s", text)
            else:
                self._log.debug("Unable to register: %s", text)
            # Sooner than other reports: at the start of a cluster controller and node daemon race,
            # and somebody waits for both.
            self._time.call_after_wait(pause_s(attempt - 4), self._try, number, attempt + 1)

        self._messenger.send(CONTROLLER, self._describe(), answered)
