"""The signals that end a daemon, from its first message to its last line."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

_ENDS: Final = (signal.SIGTERM, signal.SIGINT)


def heed_signals(loop: asyncio.AbstractEventLoop, end: Callable[[], None]) -> None:
    """Have SIGTERM and SIGINT call `end` in the loop, until `ignore_signals`.

    They are not the loop's own handlers, which it gives up while it closes: who ends because the
    others do must not be killed by a signal that was on its way, in whichever thread it comes.
    """

    def on_signal(*_: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(end)

    for number in _ENDS:
        signal.signal(number, on_signal)
    # sent when logs are moved away, which the log finds out by itself; a handler of the loop's own
    # also has the other signals wake it
    loop.add_signal_handler(signal.SIGUSR2, lambda: None)


def ignore_signals() -> None:
    """Heed no further signals to end: the end has begun."""
    for number in _ENDS:
        signal.signal(number, signal.SIG_IGN)
