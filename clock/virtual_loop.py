"""An asyncio event loop whose time is virtual: it stands still while anything is ready to run, and
jumps to the next timer or message when nothing is.

Place: daemons run their ordinary asyncio code on it; `sleep`, `timeout` and `call_at` included.
Only public hooks of asyncio are used: `time`, `call_at` and the selector, whose `select(None)` is
where the loop says that it has nothing to do.

How it works. Timers and messages have heaps of their own, in microseconds since the cluster's
epoch; asyncio's heap stays empty. When nothing is ready the loop takes the earliest of both, if the
window that the clock service has granted reaches that far, and otherwise reports and waits (see
`windows.py` for why this is safe). Alone in a process (`authority` None) no window is needed.
Deliveries of one instant are made in the order (delivery time, sender, sequence number) and before
its timers.

Periodic timers (`call_periodically`) do not keep time going: it goes on as long as there is
something else to do, or one of them says that it matters, for everybody; then it stands, at the
same instant however the daemons are dealt to processes.

Sockets still work, outside virtual time: they are polled only while the loop waits for the
clock, so what comes through them sees the cluster at one instant. Something from outside that acts
on the cluster goes through `run_outside`, which first has the clock hold everybody.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import select
import selectors
import socket
import time
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Protocol

from understudy.clock.timers import NEVER, Timer, TimerHeap

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Callable, Iterator, Sequence

    # when, of whom, the sender's sequence number, and what to call
    _Delivery = tuple[int, str, int, Callable[..., None], tuple[Any, ...]]

Events = list[tuple[selectors.SelectorKey, int]]

_POLL_OUTSIDE_S = 0.02  # ours: how often a loop that never waits polls its sockets


class Authority(Protocol):
    """Who grants time to the loop (see participant.py)."""

    def wait(self, next_us: int, needs_us: int) -> Events | None:
        """Report when the next event is, and until when time must go on (-1: it need not), and wait
        until more time is granted (None) or something outside happens (events for asyncio).
        """

    def run_outside(self, callback: Callable[..., None], args: tuple[Any, ...]) -> None:
        """Hold the others, then call."""

    def sent(self, receiver: str, deliver_us: int) -> None:
        """A message has been sent to another participant."""

    def add_peer(self, connection: Any, sender: str) -> None:
        """Read this connection's frames when a grant says that there are some."""

    def remove_peer(self, fd: int) -> None:
        """The connection with this descriptor is closing."""

    def count_received(self, sender: str) -> None:
        """A message of another participant has come."""

    def pause(self, reason: str) -> None:
        """Stop time after this window."""


class _Selector(selectors.EpollSelector):
    loop: VirtualEventLoop

    def select(self, timeout: float | None = None) -> Events:
        if timeout is not None and timeout <= 0:
            return []
        return self.loop.idle()

    def poll(self, timeout: float | None) -> Events:
        return super().select(timeout)


class RealTimer:
    """A call after real seconds. One that is cancelled holds on to nothing."""

    __slots__ = ("args", "callback")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        """Do not call."""
        self.callback, self.args = None, ()


class VirtualEventLoop(asyncio.SelectorEventLoop):
    """The loop. `now_us` is virtual time, microseconds since the cluster's epoch."""

    def __init__(self) -> None:
        self.selector = _Selector()
        self.selector.loop = self
        self.now_us = 0
        self.window_end_us = NEVER
        self.needed_us = -1  # so far time goes on for others
        self.authority: Authority | None = None
        # called when all before the window's end is done, where nobody grants time; it sets another
        # end
        self.on_window_end: Callable[[], None] | None = None
        self._timers = TimerHeap()
        self._inbox: list[_Delivery] = []
        self._holds = 0
        self._real_timers: list[tuple[float, int, RealTimer]] = []
        self._real_count = 0
        self._next_look = 0.0
        self.on_stalled: Callable[[str], None] | None = None
        self._stalled_at_us = -1
        self._is_ready = False
        self._turns = 0
        super().__init__(self.selector)

    # --- another process --------------------------------------------------------------------------

    def go_on_in_fork(self) -> None:
        """In a fork of the process in which the loop began: have it go on here, apart from there.
        The kernel lets both share an epoll and the pipe that wakes the loop, so they are replaced,
        under their numbers; threads of an executor are not here.
        """
        pair = socket.socketpair()
        for new, old in zip(pair, (self._ssock, self._csock), strict=True):  # type: ignore[attr-defined]
            os.dup2(new.fileno(), old.fileno(), inheritable=False)
            old.setblocking(False)
            new.close()
        with select.epoll() as epoll:
            for key in self.selector.get_map().values():
                epoll.register(
                    key.fd,
                    (key.events & selectors.EVENT_READ and select.EPOLLIN)
                    | (key.events & selectors.EVENT_WRITE and select.EPOLLOUT),
                )
            os.dup2(epoll.fileno(), self.selector.fileno(), inheritable=False)
        self.set_default_executor(
            concurrent.futures.ThreadPoolExecutor(thread_name_prefix="asyncio")
        )
        asyncio._set_running_loop(self)  # which is known by the process's number

    # --- time -------------------------------------------------------------------------------------

    def time(self) -> float:
        return self.now_us / 1e6

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        del context
        return self.call_at_us(round(when * 1e6), callback, args)

    def call_at_us(
        self, when_us: int, callback: Callable[..., object], args: tuple[Any, ...]
    ) -> asyncio.TimerHandle:
        """Call at `when_us`, or now if that is past."""
        timer = Timer(when_us, callback, args)
        now_us = self.now_us
        self._timers.add(max(now_us, when_us), timer)
        return timer  # type: ignore[return-value]

    def call_periodically(
        self, when: float, matters: Callable[[], bool], callback: Callable[..., object], *args: Any
    ) -> asyncio.TimerHandle:
        """Call at `when`, if time comes so far: it goes on for this timer alone only if it
        `matters` (asked when nothing else is left).
        """
        when_us = round(when * 1e6)
        timer = Timer(when_us, callback, args)
        self._timers.add_periodic(max(when_us, self.now_us), timer, matters)
        return timer  # type: ignore[return-value]

    def call_later_real(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> RealTimer:
        """Call after real seconds, whatever virtual time does meanwhile (watchdogs, handshakes)."""
        self._real_count += 1
        timer = RealTimer(callback, args)
        heappush(self._real_timers, (time.monotonic() + delay_s, self._real_count, timer))
        return timer

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Virtual time stands still meanwhile, for everybody."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    # --- messages ---------------------------------------------------------------------------------

    def post(
        self, deliver_us: int, sender: str, sequence: int, deliver: Callable[..., None], *args: Any
    ) -> None:
        """Call `deliver(*args)` at `deliver_us`, in the order of messages."""
        heappush(self._inbox, (deliver_us, sender, sequence, deliver, args))

    def run_outside(self, callback: Callable[..., None], *args: Any) -> None:
        """Call on behalf of someone outside virtual time, while all participants stand still at one
        instant.
        """
        if self.authority is None:
            callback(*args)
        else:
            self.authority.run_outside(callback, args)

    # --- nothing is ready -------------------------------------------------------------------------

    def call_soon(  # type: ignore[override]
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        self._is_ready = True
        return super().call_soon(callback, *args, context=context)

    def idle(self) -> Events:
        """Let time pass. Returns when something is ready.

        Due callbacks are called from here: a message or a timer that leaves nothing for asyncio to
        do costs no turn of its loop.
        """
        self._is_ready = False
        timers, inbox = self._timers, self._inbox
        while True:
            if self._real_timers and self._run_real_timers():
                return []
            if self._holds:
                return self.poll_outside(None)
            heap = timers.heap
            next_us = heap[0][0] if heap and not heap[0][2].is_cancelled else timers.next_us()
            if inbox and inbox[0][0] <= next_us:
                next_us = inbox[0][0]
            needs_us = next_us
            has_come = True
            if timers.periodic or next_us == NEVER:
                periodic_us = timers.next_periodic_us()
                if next_us == NEVER:  # nothing but periodic work is left here
                    needs_us = timers.mattering_us()
                    has_come = periodic_us <= max(needs_us, self.needed_us, self.now_us)
                next_us = min(next_us, periodic_us)
            if has_come and next_us < self.window_end_us:
                self._turns += 1
                # who has much to do must still hear signals and commands
                if self._turns & 0x3F == 0:
                    now = time.monotonic()
                    if now > self._next_look:
                        self._next_look = now + _POLL_OUTSIDE_S
                        events = self.selector.poll(0)
                        if events:
                            return events
                self._advance(next_us)
                if self._is_ready:
                    return []
            elif self.on_window_end is not None:
                self.on_window_end()
            elif self.authority is not None:
                events_or_none = self.authority.wait(next_us, needs_us)
                if events_or_none is not None:
                    return events_or_none
                if self._is_ready:
                    return []
            elif self.on_stalled is not None and self._stalled_at_us != self.now_us:
                self._stalled_at_us = self.now_us
                self.call_soon(self.on_stalled, "nobody has anything left to do")
                return []
            else:
                return self.poll_outside(None)

    def poll_outside(self, timeout: float | None) -> Events:
        """Wait for sockets, at most until the next real timer."""
        timeout = self.real_timeout(timeout)
        return self.selector.poll(timeout)

    def real_timeout(self, timeout: float | None) -> float | None:
        """`timeout`, shortened to the next real timer."""
        if self._real_timers:
            until = max(0.0, self._real_timers[0][0] - time.monotonic())
            timeout = until if timeout is None else min(timeout, until)
        return timeout

    def _run_real_timers(self) -> bool:
        ran = False
        while self._real_timers and self._real_timers[0][0] <= time.monotonic():
            _, _, timer = heappop(self._real_timers)
            if timer.callback is not None:
                self.call_soon(timer.callback, *timer.args)
                ran = True
        return ran

    def _advance(self, to_us: int) -> None:
        """Deliver what is due by then and call timers, those that are there now."""
        if to_us > self.now_us:
            self.now_us = to_us
        else:
            to_us = self.now_us
        inbox, timers = self._inbox, self._timers
        messages: Sequence[_Delivery] = ()
        if inbox and inbox[0][0] <= to_us:
            messages = [heappop(inbox)]
            while inbox and inbox[0][0] <= to_us:
                messages.append(heappop(inbox))
        fired: Sequence[Timer] = ()
        heap, periodic = timers.heap, timers.periodic
        if (heap and heap[0][0] <= to_us) or (periodic and periodic[0][0] <= to_us):
            fired = timers.pop_due(to_us)
        for _, _, _, deliver, args in messages:
            try:
                deliver(*args)
            except BaseException as error:  # noqa: BLE001  handed on
                self._failed(deliver, error)
        for timer in fired:
            if timer.is_cancelled:
                continue
            try:
                timer.callback(*timer.args)
            except BaseException as error:  # noqa: BLE001  handed on
                self._failed(timer.callback, error)

    def _failed(self, callback: Callable[..., object], error: BaseException) -> None:
        """One delivery's failure is reported as asyncio reports a callback's."""
        if isinstance(error, SystemExit | KeyboardInterrupt):
            raise error
        self.call_exception_handler({"message": f"Exception in {callback!r}", "exception": error})
