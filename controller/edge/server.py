"""Requests at the controller's door: each goes to its handler, when its locks are free, and its
answer leaves when what it tells of is on disk.

Place: the edge, between the messenger and the core. No task per message: a handler is called at
once if nobody is in its way.

In a storm requests wait here, and users take turns (`understudy.controller.edge.turns`): what has
come is handled for TURN_S at a stretch, then the loop reads what else has come and does what else
is due. Under virtual time, where handling takes no time, each is handled when it comes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from understudy.controller.core import log_lines
from understudy.controller.core.rights import Right
from understudy.controller.edge.listings import Listing, Listings
from understudy.controller.edge.rate_limit import Buckets, RateLimit
from understudy.controller.edge.rpc import OF_NODES, QUERY_NEEDS, RPCS, Rpc
from understudy.controller.edge.turns import DAEMONS, Turns
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
    from understudy.protocol.requests import Request

SLICE_S: Final = 0.01  # ours: for as long a listing is made at a stretch
TURN_S: Final = 0.01  # ours: for as long requests are handled before the loop has its turn
MOST_WAITING: Final = 10_000  # ours: of one user's requests; who sends more is to ask again later
MOST_JOINING: Final = 32  # ours: of one user, a listing that has begun; they are answered together
UNEXPECTED_MESSAGE: Final = 1000
_DENIED: Final = Failure(ErrorCode.ACCESS_DENIED, "Access/permission denied")
# Slurm's SLURMCTLD_COMMUNICATIONS_BACKOFF, after which commands sleep and ask again
BACK_OFF: Final = Failure(1804, "Too many requests to the slurm controller, try again later")


class Server:
    """Handles requests. `commits`: None if the state is kept in memory. `soon` and `clock` as in
    `Passes`. `turn_s`: see TURN_S.
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
        turn_s: float = TURN_S,
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
        self._turns: Turns[Request] = Turns()
        self.turn_s = turn_s
        self._spent_s = 0.0  # for requests, since the loop was known to have had its turn
        self._has_turn = False  # the requests that wait, once `soon` has come
        self._buckets: Buckets | None = None
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
        if request.sender.is_node and type(request.message) not in OF_NODES:
            return _DENIED
        if self._buckets is not None and not self._may_ask(self._buckets, request):
            return BACK_OFF
        if self._core.time.is_virtual:
            return self._handle(request)
        party = _party(request)
        if self._spent_s < self.turn_s and self._turns.may_go(party):
            began = self._clock()
            try:
                return self._handle(request)
            finally:
                self._spent_s += self._clock() - began
        if party != DAEMONS and self._turns.length(party) >= MOST_WAITING:
            self._core.counters.backed_off += 1
            return BACK_OFF
        self._turns.add(party, request)
        self._passes.requests += 1
        self._give_turn()
        return None

    def limit(self, limit: RateLimit | None) -> None:
        """Limit how much users may ask; root and SlurmUser are not limited, nor are daemons."""
        if limit is None:
            self._buckets = None
        elif self._buckets is None or self._buckets.limit != limit:
            self._buckets = Buckets(limit)

    def _may_ask(self, buckets: Buckets, request: Request) -> bool:
        core, sender = self._core, request.sender
        if sender.is_daemon or core.right_of(sender.user_id) >= Right.SLURM_USER:
            return True
        now = core.time.now()
        if buckets.take(sender.user_id, now):
            return True
        core.counters.backed_off += 1
        if buckets.is_told_of(sender.user_id, now):
            log_lines.backed_off(request.message, sender.user_id)
        return False

    def _give_turn(self) -> None:
        """Have requests that wait handled when the loop has had its turn."""
        if not self._has_turn and self._turns.is_any_ready:
            self._has_turn = True
            self._soon(self._take_turns)

    def _take_turns(self) -> None:
        self._has_turn = False
        self._spent_s = 0.0
        until = self._clock() + self.turn_s
        try:
            while (request := self._turns.take()) is not None:
                self._passes.requests -= 1
                if isinstance(request.message, Query) and request.is_gone():
                    continue
                answer = self._handle(request)
                if answer is not None:
                    request.reply(answer)
                if self._clock() >= until:
                    break
        finally:
            self._give_turn()

    def _goes_on(self, request: Request) -> None:
        """The request waits for locks, or is answered in slices: its party's others wait."""
        self._passes.requests += 1
        if not self._core.time.is_virtual:
            self._turns.begin(_party(request))

    def _is_done(self, request: Request) -> None:
        self._passes.requests -= 1
        if not self._core.time.is_virtual:
            self._turns.end(_party(request))
            self._give_turn()

    def _handle(self, request: Request) -> Message | None:
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
        self._goes_on(request)
        self._locks.when_available(rpc.needs, partial(self._run_late, rpc, request))
        return None

    def _run_late(self, rpc: Rpc, request: Request) -> None:
        try:
            answer = self._run(rpc, request)
        finally:
            self._is_done(request)
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
        self._goes_on(request)
        if who is not None and not self._core.time.is_virtual:
            self._join_waiting(listing, request)
        self._locks.when_available(QUERY_NEEDS, partial(self._continue, listing, request))
        return None

    def _join_waiting(self, listing: Listing, first: Request) -> None:
        """Let the user's next requests share the listing, as far as they ask the same: it may hold
        no longer than it is made.
        """
        now = self._core.time.now()
        for _ in range(MOST_JOINING):
            request = self._turns.take_if(_party(first), lambda each: each.message == first.message)
            if request is None:
                return
            self._passes.requests -= 1
            self._core.counters.request(request.message, request.sender.user_id, 0)
            listing.join(request, now)

    def _continue(self, listing: Listing, request: Request) -> None:
        if not self._advance(listing):
            self._soon(partial(self._continue, listing, request))
            return
        self._is_done(request)
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


def _party(request: Request) -> int:
    """Whose turn it takes."""
    return DAEMONS if request.sender.is_daemon else request.sender.user_id
