"""Listings that are shared: each is made and packed once, for all who ask the same until something
happens.

Place: the edge, under the server. Whose listings are alike, and whether the time is shown in them,
is decided in views (`audience`).

A listing holds until something has been handled (`forget`) and, where times are shown, for a second
of the cluster's clock, as they are whole seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from understudy.protocol.messages import Message, Rows

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable

    from understudy.protocol.requests import Request

MOST_BYTES: Final = 32 << 20  # ours: of the listings that are kept

_pack = msgspec.msgpack.Encoder().encode


class Listing:
    """The answer to a query, while it is made and afterwards.

    `is_shared`: its rows are packed once, for all who join. `second` of the cluster's clock that it
    shows; None: no time is shown.
    """

    __slots__ = ("_answer", "_askers", "_is_shared", "_parts", "rows", "second", "size")

    def __init__(
        self,
        rows: Generator[Rows | None, None, Rows],
        asker: Request,
        *,
        is_shared: bool = False,
        second: int | None = None,
    ) -> None:
        self.rows, self._is_shared, self.second = rows, is_shared, second
        self.size = 0  # bytes
        self._askers = [asker]
        self._parts: list[Rows] = []
        self._answer: Message | None = None

    def join(self, asker: Request, now: float) -> None:
        """Give what there is, and the rest when it comes."""
        for part in self._parts:
            asker.reply_part(_as_of(part, now))
        if self._answer is None:
            self._askers.append(asker)
        else:
            asker.reply(_as_of(self._answer, now))

    def add(self, part: Rows) -> None:
        """A part has been made; the last one is for `end`."""
        if self._is_shared:
            part = self._packed(part)
            self._parts.append(part)
        for asker in self._askers:
            asker.reply_part(part)

    def end(self, answer: Message) -> None:
        """The last part has been made, or the listing failed."""
        if self._is_shared:
            answer = self._answer = self._packed(answer) if isinstance(answer, Rows) else answer
        askers, self._askers = self._askers, []
        for asker in askers:
            asker.reply(answer)

    def _packed(self, part: Rows) -> Rows:
        """With rows that the messenger's encoder takes over as they are."""
        packed = _pack(part.rows)
        self.size += len(packed)
        rows = cast("list[list[Any]]", msgspec.Raw(packed))
        return Rows(rows, part.now, part.last_update, part.more)


def _as_of(answer: Message, now: float) -> Message:
    """Told at that time."""
    if not isinstance(answer, Rows):
        return answer
    return Rows(answer.rows, now, answer.last_update, answer.more)


class Listings:
    """Those that may be joined, by what is asked and by whom."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Listing] = {}

    def find(self, key: Hashable, second: int | None) -> Listing | None:
        """One that still holds at that second of the cluster's clock."""
        listing = self._kept.get(key)
        return listing if listing is not None and listing.second == second else None

    def begin(
        self,
        key: Hashable,
        second: int | None,
        rows: Generator[Rows | None, None, Rows],
        asker: Request,
    ) -> Listing:
        """A new one, which others may join from now on."""
        listing = Listing(rows, asker, is_shared=True, second=second)
        self._kept.pop(key, None)
        self._kept[key] = listing  # behind all others
        return listing

    def trim(self) -> None:
        """Keep no more than MOST_BYTES; the oldest go first."""
        size = sum(each.size for each in self._kept.values())
        while size > MOST_BYTES:
            size -= self._kept.pop(next(iter(self._kept))).size

    def forget(self) -> None:
        """Something may be shown otherwise from now on."""
        if self._kept:
            self._kept.clear()
