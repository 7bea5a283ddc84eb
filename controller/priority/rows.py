"""What of pending jobs' priorities does not change with time, as the rows of one table.

Place: priority, pure. A job keeps its row until it is dropped; rows are used again, so
the table is as long as the longest queue was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Container

# Columns: contributions, weighted, in the order in which they are summed.
ASSOCIATION, SIZE, PARTITION, QOS, TRES, SITE, NICE = range(7)
_FIRST_SIZE: Final = 256


class Rows:
    """`values` has a row a job; `place`: of its association in the tree, -1 without one; `time`:
    when its priority was calculated.
    """

    def __init__(self) -> None:
        self.row_of: dict[int, int] = {}
        self.values = np.zeros((_FIRST_SIZE, NICE + 1))
        self.place = np.full(_FIRST_SIZE, -1, dtype=np.intp)
        self.time = np.zeros(_FIRST_SIZE, dtype=np.int64)
        self._free = list(range(_FIRST_SIZE - 1, -1, -1))

    def __len__(self) -> int:
        return len(self.row_of)

    def put(self, job_id: int, place: int, values: tuple[float, ...], time: int) -> int:
        """Note or replace a job's row; which one it is."""
        row = self.row_of.get(job_id)
        if row is None:
            if not self._free:
                self._grow()
            row = self.row_of[job_id] = self._free.pop()
        self.values[row] = values
        self.place[row] = place
        self.time[row] = time
        return row

    def drop(self, job_id: int) -> None:
        """The job's row is worthless."""
        row = self.row_of.pop(job_id, None)
        if row is not None:
            self._free.append(row)

    def keep(self, job_ids: Container[int]) -> None:
        """Drop all other jobs' rows."""
        for job_id in [each for each in self.row_of if each not in job_ids]:
            self.drop(job_id)

    def clear(self) -> None:
        """Drop all rows."""
        self.keep(())

    def _grow(self) -> None:
        size = len(self.place)
        self.values = np.concatenate([self.values, np.zeros_like(self.values)])
        self.place = np.concatenate([self.place, np.full(size, -1, dtype=np.intp)])
        self.time = np.concatenate([self.time, np.zeros(size, dtype=np.int64)])
        self._free += range(2 * size - 1, size - 1, -1)
