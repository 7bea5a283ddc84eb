"""How far a replay is, its rate and the time left: a bar on a terminal, now and then a plain line
elsewhere.

Place: the edge; given to a `Replayer` as its `on_progress`. Time here is wall time, which the
replay itself never sees.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, Self, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from rich.progress import Progress as Bar
    from rich.progress import TaskID

BAR_INTERVAL_S: Final = 0.1  # ours: between two states of the bar
LINE_INTERVAL_S: Final = 10.0  # ours: between two lines where nobody looks


class Progress:
    """A context manager: `with Progress(zero=...) as progress: Replayer(...,
    on_progress=progress.update)`.
    """

    def __init__(
        self,
        *,
        out: TextIO | None = None,
        zero: Callable[[], float] | None = None,
        wall: Callable[[], float] = time.monotonic,
        is_terminal: bool | None = None,
    ) -> None:
        """`zero` says, when asked, which time of the cluster is the trace's zero, so that simulated
        time is shown as days since then.
        """
        self._out = out or sys.stderr
        self._zero = zero
        self._wall = wall
        self._is_terminal = self._out.isatty() if is_terminal is None else is_terminal
        self._interval_s = BAR_INTERVAL_S if self._is_terminal else LINE_INTERVAL_S
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._began = self._shown = wall()
        self._last: tuple[int, int, float] | None = None

    def __enter__(self) -> Self:
        self._began = self._shown = self._wall()
        if self._is_terminal:
            # Imported here: rich costs 60 ms, which a run in a pipe need not pay.
            from rich.console import Console  # noqa: PLC0415
            from rich.progress import BarColumn, TextColumn  # noqa: PLC0415
            from rich.progress import Progress as Bar  # noqa: PLC0415

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%"),
                console=Console(file=self._out),
                auto_refresh=False,
            )
            self._task = self._bar.add_task("replay", total=None)
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._last is not None:
            self._show(*self._last)
        if self._bar is not None:
            self._bar.stop()

    def update(self, submitted: int, total: int, now: float) -> None:
        """Called often; shows something at most ten times a second."""
        self._last = submitted, total, now
        if submitted >= total or self._wall() - self._shown >= self._interval_s:
            self._show(submitted, total, now)

    def _show(self, submitted: int, total: int, now: float) -> None:
        self._shown = self._wall()
        self._last = None
        text = self.line(submitted, total, now)
        if self._bar is None:
            print(text, file=self._out, flush=True)
        elif self._task is not None:
            self._bar.update(
                self._task, description=text, completed=submitted, total=max(total, 1), refresh=True
            )

    def line(self, submitted: int, total: int, now: float) -> str:
        """`12,000 of 28,481 jobs, day 143.2, 1,930 jobs/s, 9 s left`."""
        elapsed = self._wall() - self._began
        parts = [f"{submitted:,} of {total:,} jobs"]
        if self._zero is not None:
            parts.append(f"day {(now - self._zero()) / 86_400:.1f}")
        if elapsed > 0 and submitted:
            rate = submitted / elapsed
            parts.append(f"{rate:,.0f} jobs/s")
            parts.append(
                f"{_duration((total - submitted) / rate)} left"
                if submitted < total
                else "waiting for the last to end"
            )
        return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    if whole < 6000:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole // 60 % 60:02} min"
