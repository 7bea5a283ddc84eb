"""Whose request is next: users take turns, so that who asks a thousand times keeps nobody waiting
who asks once.

Place: the edge, under the server, which says who asks. No I/O, no time.

A party is a user, by number, or all daemons together. Each has a line of its own, served first come
first served; the lines are served in turn. Who has a request in hand, one that waits for locks or
is answered in slices, is passed over until it is done: a user's listings are made one after the
other, beside one of each other user.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

DAEMONS: Final = -1  # their party, beside numbers of users


Waiting = TypeVar("Waiting")


class Turns(Generic[Waiting]):
    """Lines of requests that wait."""

    def __init__(self) -> None:
        self._lines: dict[int, deque[Waiting]] = {}  # none is empty; in the order of their turns
        self._in_hand: set[int] = set()
        self.waiting = 0

    @property
    def is_any_ready(self) -> bool:
        """Whether a request could be taken now."""
        return bool(self._lines) and not self._lines.keys() <= self._in_hand

    def may_go(self, party: int) -> bool:
        """Whether a request that comes now would be the next."""
        return party not in self._in_hand and not self.is_any_ready

    def length(self, party: int) -> int:
        """How many requests of the party wait."""
        return len(self._lines.get(party, ()))

    def add(self, party: int, request: Waiting) -> None:
        """The request waits behind the party's others."""
        self._lines.setdefault(party, deque()).append(request)
        self.waiting += 1

    def take(self) -> Waiting | None:
        """The next request, which no longer waits; its party's next turn is behind the others'."""
        if not self.is_any_ready:
            return None
        party = next(each for each in self._lines if each not in self._in_hand)
        line = self._lines.pop(party)
        request = line.popleft()
        if line:
            self._lines[party] = line
        self.waiting -= 1
        return request

    def take_if(self, party: int, is_meant: Callable[[Waiting], bool]) -> Waiting | None:
        """The party's next request, out of its turn, if it is one of those that are meant."""
        line = self._lines.get(party)
        if line is None or not is_meant(line[0]):
            return None
        request = line.popleft()
        if not line:
            del self._lines[party]
        self.waiting -= 1
        return request

    def begin(self, party: int) -> None:
        """A request of the party is in hand, and goes on."""
        assert party not in self._in_hand, "one request of a party at a time"
        self._in_hand.add(party)

    def end(self, party: int) -> None:
        """It is done."""
        self._in_hand.remove(party)
