"""A long queue as vectors: which of thousands of waiting jobs need so few processors, or end so
soon, is then one comparison.

Place: scheduling, pure; kept by sched/easy beside its list of records, in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from understudy.controller.scheduling.slurm.queue import Record


class Waiting:
    """Processors and time limits of the records of a queue. Whoever changes the list says so
    here.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._cpus = np.zeros(max(2 * len(records), 64), dtype=np.int64)
        self._limits = np.zeros(len(self._cpus), dtype=np.float64)
        self._first = self._behind = 0
        self.append(records)

    def __len__(self) -> int:
        return self._behind - self._first

    @property
    def cpus(self) -> NDArray[np.int64]:
        return self._cpus[self._first : self._behind]

    @property
    def limits_s(self) -> NDArray[np.float64]:
        """Infinite without a limit."""
        return self._limits[self._first : self._behind]

    def append(self, records: Sequence[Record]) -> None:
        """Records have been added at the end."""
        behind = self._behind + len(records)
        if behind > len(self._cpus):
            room = np.zeros(2 * (len(self) + len(records)), dtype=np.int64)
            self._cpus, self._limits = (
                np.concatenate((self.cpus, room)),
                np.concatenate((self.limits_s, room.astype(np.float64))),
            )
            self._first, self._behind = 0, len(self)
            behind = self._behind + len(records)
        for place, record in enumerate(records, self._behind):
            self._cpus[place] = record.cpus
            self._limits[place] = record.limit_s
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
        cpus, limits = self.cpus[keep], self.limits_s[keep]
        self._behind = self._first + len(cpus)
        self._cpus[self._first : self._behind] = cpus
        self._limits[self._first : self._behind] = limits
