"""What a load is at, while it runs: on a terminal a table that is written anew each second, else a
line each second.

Place: tool/load. The text follows from the load's course and the samples alone; who shows it hands
over where to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.tool.load.report import live_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from understudy.tool.load.run import Course
    from understudy.tool.load.samples import Sampler

_UP_AND_CLEAR: Final = "\x1b[{}F\x1b[J"  # ECMA-48: CPL, ED
_TEXTS: Final = 3  # of errors that are shown
_HEADS: Final = (
    "stream", "sent", "answered", "now/s", "p50 ms", "p90", "p99", "p99.9", "longest", "errors"
)  # fmt: skip
_LATENCIES: Final = ("p50_ms", "p90_ms", "p99_ms", "p99_9_ms", "max_ms")


class Live:
    """Shows it. `write` takes text, of which `size` tells how much the terminal has room for:
    columns and lines; None where it is no terminal.
    """

    def __init__(
        self, write: Callable[[str], object], size: Callable[[], tuple[int, int]] | None
    ) -> None:
        self._write, self._size = write, size
        self._shown = 0  # lines of the table that stands there

    def show(self, course: Course, sampler: Sampler) -> None:
        """A second is over."""
        if self._size is None:
            self._write(live_line(course, sampler) + "\n")
            return
        columns, room = self._size()
        lines = [line[: columns - 1] for line in live_table(course, sampler.samples)][: room - 1]
        back = _UP_AND_CLEAR.format(self._shown) if self._shown else ""
        self._write(back + "".join(f"{line}\n" for line in lines))
        self._shown = len(lines)


def live_table(course: Course, samples: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines: each stream, the controller, each daemon, errors."""
    last = course.seconds[-1]
    lines = [
        (
            f"{course.plan.name}, {last['at']:.1f} s: {len(course.jobs):,} jobs acknowledged, "
            f"{last['waiting']:,} requests unanswered"
        ),
        "",
        *_aligned([_HEADS, *_streams(course)]),
    ]
    if samples:
        lines += ["", *_aligned(_daemons(samples)), "", *_controller(samples)]
    texts = [
        (count, name, text)
        for name, tally in course.streams.items()
        for text, count in tally.errors.items()
    ]
    texts.sort(key=lambda each: -each[0])
    return lines + [f"error: {name}: {text} ({count:,})" for count, name, text in texts[:_TEXTS]]


def _streams(course: Course) -> list[tuple[str, ...]]:
    """Counts are of the whole load, latencies of the last second."""
    now = course.seconds[-1]["streams"]
    before = course.seconds[-2]["at"] if len(course.seconds) > 1 else 0.0
    span = max(course.seconds[-1]["at"] - before, 1e-3)
    rows = []
    for stream in course.plan.streams:
        tally, second = course.streams.get(stream.name), now.get(stream.name)
        sent, answered = (tally.sent, tally.answered) if tally else (0, 0)
        errors = sum(tally.errors.values()) if tally else 0
        rate = second["answered"] / span if second else 0.0
        latencies = [
            f"{second[each]:,.2f}" if second and second["answered"] else "-" for each in _LATENCIES
        ]
        counts = (f"{sent:,}", f"{answered:,}", f"{rate:,.1f}")
        rows.append((stream.name, *counts, *latencies, f"{errors:,}"))
    return rows


def _daemons(samples: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("daemon", "CPU %", "MB")]
    last = samples[-1]
    before = samples[-2] if len(samples) > 1 else last
    span = last["at"] - before["at"]
    for name, use in last["daemons"].items():
        used = use["cpu_s"] - before["daemons"].get(name, use)["cpu_s"]
        rows.append((name, f"{100 * used / span:.0f}" if span > 0 else "-", f"{use['mb']:,.0f}"))
    return rows


def _controller(samples: Sequence[Mapping[str, Any]]) -> list[str]:
    """What it says of itself; of real Slurm's that is less."""
    told = [each for each in samples if "pending" in each or "agents" in each]
    if not told:
        return []
    last = told[-1]
    before = told[-2] if len(told) > 1 else last
    span = max(last["at"] - before["at"], 1e-3)

    def grown(key: str, factor: float) -> str:
        return f"{(last.get(key, 0) - before.get(key, 0)) * factor / span:,.1f}"

    lines = [
        (
            f"jobs: {last.get('pending', 0):,} pending, {last.get('running', 0):,} running; "
            f"agents: {last.get('agents', 0):,} in flight, {last.get('agent_queue', 0):,} queued"
        )
    ]
    if "loop_us" in last:
        lines += [
            (
                f"loop: late {grown('loop_us', 1e-3)} ms/s, collecting garbage "
                f"{grown('collections_us', 1e-3)} ms/s; answers sdiag in "
                f"{last.get('answered_ms', 0):,.1f} ms"
            ),
            (
                f"waiting: {last.get('requests_waiting', 0):,} requests, "
                f"{last.get('lock_waiting', 0):,} of them for locks; told to come later "
                f"{last.get('requests_backed_off', 0):,}; "
                f"connections {last.get('connections', 0):,}; "
                f"kB/s in {grown('bytes_received', 1e-3)}, out {grown('bytes_sent', 1e-3)}"
            ),
        ]
    return lines


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
