"""A long queue as vectors: which of thousands of waiting jobs need so few processors, or end so
soon, is then one comparison.

Place: scheduling, pure; kept by textbook policies beside their lists of records, in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from understudy.controller.scheduling.slurm.queue import Record


class Waiting:
    """Processors and time limits of the records of a queue, and what else `further` says of one.
    Whoever changes the list says so here.
    """

    def __init__(
        self,
        records: Sequence[Record],
        further: Callable[[Record], Sequence[int]] | None = None,
        kinds: int = 0,
    ) -> None:
        """`further` gives so many `kinds` of amounts."""
        room = max(2 * len(records), 64)
        self._limits = np.zeros(room, dtype=np.float64)
        # the processors, then each further kind
        self._amounts = [np.zeros(room, dtype=np.int64) for _ in range(1 + kinds)]
        self._further = further
        self._first = self._behind = 0
        self.append(records)

    def __len__(self) -> int:
        return self._behind - self._first

    @property
    def cpus(self) -> NDArray[np.int64]:
        return self._amounts[0][self._first : self._behind]

    @property
    def amounts(self) -> list[NDArray[np.int64]]:
        """The processors, then each further kind."""
        return [vector[self._first : self._behind] for vector in self._amounts]

    @property
    def limits_s(self) -> NDArray[np.float64]:
        """Infinite without a limit."""
        return self._limits[self._first : self._behind]

    def append(self, records: Sequence[Record]) -> None:
        """Records have been added at the end."""
        behind = self._behind + len(records)
        if behind > len(self._limits):
            room = np.zeros(2 * (len(self) + len(records)), dtype=np.int64)
            self._limits, self._amounts = (
                np.concatenate((self.limits_s, room.astype(np.float64))),
                [np.concatenate((vector, room)) for vector in self.amounts],
            )
            self._first, self._behind = 0, len(self)
            behind = self._behind + len(records)
        cpus, *others = self._amounts
        for place, record in enumerate(records, self._behind):
            cpus[place] = record.cpus
            self._limits[place] = record.limit_s
            if self._further is not None:
                for vector, amount in zip(others, self._further(record), strict=True):
                    vector[place] = amount
        self._behind = behind

    def drop_first(self, count: int) -> None:
        """So many records have been taken from the front."""
        self._first += count

    def drop(self, places: Sequence[int]) -> None:
        """The records at these places, in ascending order, have been taken out."""
        if not places:
            return
        keep = np.ones(len(self), dtype=np.bool_)
        keep[list(places)] = False
        kept = [vector[keep] for vector in (self.limits_s, *self.amounts)]
        self._behind = self._first + len(kept[0])
        for vector, left in zip((self._limits, *self._amounts), kept, strict=True):
            vector[self._first : self._behind] = left
