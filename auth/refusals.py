"""Who connects and proves nothing: how many of them at a time, and how much the log says of it.

Place: under the messenger, the clock service and the agent. Anybody who can reach a daemon's socket
can make it refuse as many connections as he likes: that must cost neither memory, descriptors nor
disk.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Hashable

MOST_LINES: Final = 20  # ours: in a period
PERIOD_S: Final = 60.0  # ours
# ours: of one peer, a user or a host; more than come in one turn of the loop and say hello in the
# next
MOST_UNPROVEN: Final = 256
_SHARE: Final = 2  # ours: of all descriptors one user may hold every second one


class Refusals:
    """Lines on refused connections: so many in a period, and then how many more there were."""

    def __init__(
        self, log: logging.Logger, later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._log, self._later = log, later
        self._said = self._unsaid = 0

    def warn(self, text: str, *arguments: object) -> None:
        """One more was refused."""
        if not self._said:
            self._later(PERIOD_S, self._over)
        if self._said < MOST_LINES:
            self._said += 1
            self._log.warning(text, *arguments)
        else:
            self._unsaid += 1

    def _over(self) -> None:
        unsaid, self._said, self._unsaid = self._unsaid, 0, 0
        if unsaid:
            self._log.warning("%d more connections were refused within %g s", unsaid, PERIOD_S)


class PeerCounts:
    """How many connections each peer has, a user of this host by his number or another host."""

    def __init__(self, most_open: int) -> None:
        self._most_open = most_open
        self._open: dict[Hashable, int] = {}
        self._unproven: dict[Hashable, int] = {}

    def refuses(self, peer: Hashable, *, is_trusted: bool) -> str:
        """Why the peer gets no further connection; "" if it does. Those who are trusted may have
        as many as they like that have proven who they are.
        """
        if self._unproven.get(peer, 0) >= MOST_UNPROVEN:
            return f"{MOST_UNPROVEN} others have not said who they are"
        if not is_trusted and self._open.get(peer, 0) >= self._most_open:
            return f"{self._most_open} others are open"
        return ""

    def opened(self, peer: Hashable) -> None:
        self._open[peer] = self._open.get(peer, 0) + 1
        self._unproven[peer] = self._unproven.get(peer, 0) + 1

    def proven(self, peer: Hashable) -> None:
        _less(self._unproven, peer)

    def closed(self, peer: Hashable, *, was_proven: bool) -> None:
        _less(self._open, peer)
        if not was_proven:
            _less(self._unproven, peer)


def _less(counts: dict[Hashable, int], peer: Hashable) -> None:
    counts[peer] -= 1
    if not counts[peer]:
        del counts[peer]


def most_of_one_user() -> int:
    """How many of this process's descriptors one user's connections may hold."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(most // _SHARE, 1)
