"""Requests at the controller's door: each goes to its handler, when its locks are free, and its
answer leaves when what it tells of is on disk.

Place: the edge, between the messenger and the core. No task per message: a handler is called at
once if nobody is in its way.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from understudy.controller.core import log_lines
from understudy.controller.edge.listings import Listing, Listings
from understudy.controller.edge.rpc import QUERY_NEEDS, RPCS, Rpc
from understudy.controller.later import Later
from understudy.controller.views.query import audience, run_query
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import Failure, Message, Query

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.core.locks import Locks
    from understudy.controller.edge.passes import Passes
    from understudy.controller.saved.store import Commits
    from understudy.protocol.messenger import Request

SLICE_S: Final = 0.01  # ours: for as long a listing is made at a stretch
UNEXPECTED_MESSAGE: Final = 1000


class Server:
    """Handles requests. `commits`: None if the state is kept in memory. `soon` and `clock` as in
    `Passes`.
    """

    def __init__(
        self,
        core: Core,
        locks: Locks,
        passes: Passes,
        commits: Commits | None,
        *,
        soon: Callable[[Callable[[], None]], object],
        clock: Callable[[], float],
    ) -> None:
        self._core, self._locks, self._passes, self._commits, self._soon, self._clock = (
            core,
            locks,
            passes,
            commits,
            soon,
            clock,
        )
        self.handled = 0
        self._listings = Listings()
        core.after_event = core.agents.after_event = self.after_event
        core.shown_anew = self._listings.forget

    def after_event(self) -> None:
        """Something has been handled: the policy may want to run, something may have to be written,
        and listings may be others.
        """
        self._listings.forget()
        self._passes.arm()
        if self._commits is not None:
            self._commits.due()

    def handle(self, request: Request) -> Message | None:
        """The messenger's handler."""
        self.handled += 1
        message = request.message
        rpc = RPCS.get(type(message))
        if rpc is None:
            if isinstance(message, Query):
                return self._query(message, request)
            return Failure(
                UNEXPECTED_MESSAGE, f"the controller does not take {type(message).__name__}"
            )
        if self._locks.available(rpc.needs):
            answer = self._run(rpc, request)
            if self._commits is None:
                return answer
            if answer is not None:
                self._commits.after(partial(request.reply, answer))
            return None
        self._passes.requests += 1
        self._locks.when_available(rpc.needs, partial(self._run_late, rpc, request))
        return None

    def _run_late(self, rpc: Rpc, request: Request) -> None:
        try:
            answer = self._run(rpc, request)
        finally:
            self._passes.requests -= 1
            self._locks.drop(rpc.needs)
        if answer is not None:
            self._answer(request, answer)

    def _run(self, rpc: Rpc, request: Request) -> Message | None:
        began = self._clock()
        is_logged = log_lines.is_logged()
        if is_logged:
            log_lines.asked(request.message, request.sender.user_id)
        try:
            answer: Any = rpc.handle(self._core, request.message, request.sender)
        except SlurmError as error:
            answer = Failure(error.code, error.text)
        except Exception as error:  # noqa: BLE001 - one bad request must not end the controller
            self._core.fail(f"{type(request.message).__name__} of {request.sender.name}", error)
            answer = Failure(
                ErrorCode.INTERNAL_ERROR, "Slurm internal error, contact system administrator"
            )
        usec = int((self._clock() - began) * 1e6)
        self._core.counters.request(request.message, request.sender.user_id, usec)
        if is_logged:
            log_lines.answered(self._core, request.message, answer, request.sender.user_id, usec)
        self.after_event()
        if isinstance(answer, Later):
            answer.is_gone = request.is_gone
            answer.listen(partial(self._answer, request))
            return None
        return answer  # type: ignore[no-any-return]

    def _answer(self, request: Request, answer: Message) -> None:
        if self._commits is None:
            request.reply(answer)
        else:
            self._commits.after(partial(request.reply, answer))

    def _query(self, message: Query, request: Request) -> Message | None:
        """Rows at once if that takes a slice or no virtual time; else slice by slice, with the
        tables locked for reading.
        """
        self._core.counters.request(message, request.sender.user_id, 0)
        if log_lines.is_logged():
            log_lines.asked(message, request.sender.user_id)
        try:
            rows = run_query(self._core, message, request.sender)
            who = audience(self._core, message, request.sender)
        except SlurmError as error:
            return Failure(error.code, error.text)
        if who is None or self._core.time.is_virtual:
            listing = Listing(rows, request)
        elif (known := self._listings.find(*who)) is not None:
            known.join(request, self._core.time.now())
            return None
        else:
            listing = self._listings.begin(*who, rows, request)
        if self._locks.available(QUERY_NEEDS) and self._advance(listing):
            return None
        self._passes.requests += 1
        self._locks.when_available(QUERY_NEEDS, partial(self._continue, listing))
        return None

    def _continue(self, listing: Listing) -> None:
        if not self._advance(listing):
            self._soon(partial(self._continue, listing))
            return
        self._passes.requests -= 1
        self._locks.drop(QUERY_NEEDS)

    def _advance(self, listing: Listing) -> bool:
        """Make the listing for as long as a slice takes; whether it is done, and answered."""
        until = self._clock() + SLICE_S
        is_virtual = self._core.time.is_virtual
        try:
            while True:
                part = next(listing.rows)
                if part is not None:
                    listing.add(part)
                if not is_virtual and self._clock() >= until:
                    return False
        except StopIteration as stop:
            listing.end(stop.value)
        except SlurmError as error:
            self._listings.forget()
            listing.end(Failure(error.code, error.text))
        except Exception as error:  # noqa: BLE001 - one bad request must not end the controller
            self._core.fail("a query", error)
            self._listings.forget()
            listing.end(
                Failure(
                    ErrorCode.INTERNAL_ERROR, "Slurm internal error, contact system administrator"
                )
            )
        self._listings.trim()
        return True
