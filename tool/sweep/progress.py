"""How far a sweep is, and the time left: a bar on a terminal, a line for each cell elsewhere.

Place: the edge of sweeps.
"""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Final, Self, TextIO

from understudy.experiments.drawing import duration

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from understudy.experiments.sweep.rows import Row

_BAR: Final = 30  # characters
_UNKNOWN: Final = "time left unknown"


class SweepProgress:
    """A context manager. `found` of `total` cells were there before."""

    def __init__(
        self,
        total: int,
        found: int,
        *,
        out: TextIO | None = None,
        wall: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._found = total, found
        self._out = out or sys.stderr
        self._wall = wall
        self._came = self._failed = 0
        self._began = wall()
        self._is_bar = self._out.isatty()

    def __enter__(self) -> Self:
        self._show("")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_bar:
            self._out.write("\n")
            self._out.flush()

    def add(self, row: Row, name: str) -> None:
        """A cell is over."""
        self._came += 1
        self._failed += bool(row.error)
        wait = row.figures.get("mean_wait")
        said = row.error or ("done" if wait is None else f"mean wait {wait:,.0f} s")
        self._show(f"{name}: {said}")

    def say(self, text: str) -> None:
        """Something that users should know."""
        self._out.write(f"\r\033[K{text}\n" if self._is_bar else f"{text}\n")
        self._show("")

    def line(self) -> str:
        """`7 of 24 cells, 1 failed, 3 min left`."""
        done = self._found + self._came
        parts = [f"{done:,} of {self._total:,} cells"]
        if self._failed:
            parts.append(f"{self._failed:,} failed")
        left = self._total - done
        if left:
            each = (self._wall() - self._began) / self._came if self._came else None
            parts.append(_UNKNOWN if each is None else f"{duration(round(each * left))} left")
        return ", ".join(parts)

    def _show(self, what: str) -> None:
        if self._is_bar:
            line, room = self.line(), shutil.get_terminal_size().columns - 1
            if len(line) + _BAR + 3 <= room:
                full = _BAR * (self._found + self._came) // max(self._total, 1)
                line = f"[{'#' * full}{'.' * (_BAR - full)}] {line}"
            self._out.write(f"\r\033[K{line[:room]}")
        else:
            self._out.write(f"{self.line()}{f': {what}' if what else ''}\n")
        self._out.flush()
