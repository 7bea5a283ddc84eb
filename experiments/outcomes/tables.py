"""A comparison as tables and sentences, for a terminal and for a page alike.

Place: pure text, under `page` and the command.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.experiments.drawing import duration
from understudy.experiments.outcomes.telling import lines
from understudy.model.nouns import many

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.experiments.outcomes.compare import (
        Against,
        Comparison,
        FirstDifference,
        Only,
        RunFigures,
    )
    from understudy.experiments.outcomes.differences import Change, Group

NONE: Final = "\N{EN DASH}"
_MINUS: Final = "\N{MINUS SIGN}"
_MOST: Final = 3  # users and accounts that wait longer or shorter by most
_SECONDS: Final = frozenset(
    (
        "mean_wait",
        "wait_p50",
        "wait_p90",
        "wait_p95",
        "wait_p99",
        "max_wait",
        "makespan",
        "promise_shift",
        "first_promise_error",
        "last_promise_error",
    )
)
_NAMES: Final = {
    "ran": "ran to their end",
    "cancelled_before_start": "cancelled before start",
    "mean_wait": "mean wait",
    "wait_p50": "50 % wait at most",
    "wait_p90": "90 %",
    "wait_p95": "95 %",
    "wait_p99": "99 %",
    "max_wait": "longest wait",
    "slowdown_p50": "50 % have a slowdown of at most",
    "slowdown_p95": "95 %",
    "lost_cpu_seconds": "CPU time lost, s",
    "promised": "were promised a start",
    "promise_moves": "promises, moves of each",
    "promise_shift": "first to last promise",
    "first_promise_error": "first promise to start",
    "last_promise_error": "last promise to start",
    "utilization": "utilisation, %",
}


@dataclass(frozen=True, slots=True)
class Table:
    """The first column is text, the others are figures. `more`: rows that are left out."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    more: int = 0


_SAID: Final = {"ended_early": "ended early:", "recorded_of": "recorded of"}


def signed(seconds: float | None) -> str:
    """`+3.5 h`, `0`, or a dash."""
    if seconds is None:
        return NONE
    text = duration(abs(seconds))
    return text if text in ("0", "0 s") else f"{'+' if seconds > 0 else _MINUS}{text}"


def runs(comparison: Comparison) -> list[str]:
    """A line for each run: what it is."""
    return [f"{run.letter}  {run.path}{_about(run)}" for run in comparison.runs]


def _about(run: RunFigures) -> str:
    kind = "" if run.kind == "run" else f" ({run.kind})"
    told = [f"{_SAID.get(name, name)} {value}" for name, value in run.about.items()]
    return f"{kind}: {', '.join(told)}" if told else kind


def figures(comparison: Comparison) -> Table:
    """The figures of each run, and their differences from the first; lines in which there is
    nothing are left out.
    """
    letters = [run.letter for run in comparison.runs]
    rows = []
    for name in comparison.runs[0].figures:
        values = [run.figures[name] for run in comparison.runs]
        if not any(values) and name != "mean_wait":
            continue
        first = values[0]
        changes = [None if v is None or first is None else v - first for v in values[1:]]
        rows.append(
            (
                _NAMES.get(name, name.replace("_", " ")),
                *(_value(name, value) for value in values),
                *(_difference(name, value) for value in changes),
            )
        )
    head = ("", *letters, *(f"{letter} {_MINUS} {letters[0]}" for letter in letters[1:]))
    return Table("Figures", head, rows)


def _value(name: str, value: float | None) -> str:
    if value is None:
        return NONE
    if name in _SECONDS:
        return duration(value)
    value = 100 * value if name == "utilization" else value
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def _difference(name: str, value: float | None) -> str:
    if value is None or name in _SECONDS:
        return signed(value)
    shown = _value(name, abs(value))
    return shown if not value else f"{'+' if value > 0 else _MINUS}{shown}"


def sentences(against: Against, first: str) -> list[str]:
    """What there is to say of all pairs of jobs."""
    letter = against.letter
    told = [
        (
            f"{many(against.matched, 'job')} are in both; {against.pairs:,} started in both, "
            f"{against.equal_starts:,} of them at the same time"
        )
    ]
    if against.pairs:
        told += [
            (
                f"{against.longer:,} wait longer in {letter}, {against.shorter:,} shorter, "
                f"{against.pairs - against.longer - against.shorter:,} as long"
            ),
            (
                f"a job's wait changes by {_interval(against.wait, signed)} in the mean, "
                f"by {signed(against.wait.median)} in the median"
            ),
        ]
    if against.slowdown.difference is not None:
        told.append(f"its bounded slowdown by {_interval(against.slowdown, _plain)}")
    for way in ("user", "account"):
        for longer, word in ((True, "longer"), (False, "shorter")):
            found = against.most(way, longer=longer, count=_MOST)
            if found and len(against.by[way]) > 1:
                named = "; ".join(map(_who, found))
                told.append(f"{way}s that wait {word} in all by most: {named}")
    told += [
        text
        for only, what in (
            (against.not_in_this, f"in {first} only"),
            (against.not_in_first, f"in {letter} only"),
            (against.started_in_first_only, f"started in {first} only"),
            (against.started_in_this_only, f"started in {letter} only"),
        )
        if (text := _only(only, what))
    ]
    return told


def _plain(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{'+' if value > 0 else _MINUS if value < 0 else ''}{abs(value):,.2f}"


def _interval(change: Change, shown: Callable[[float | None], str]) -> str:
    found = change.difference
    if found is None:
        return NONE
    return f"{shown(found.mean)} (95 %: {shown(found.low)} to {shown(found.high)})"


def _who(group: Group) -> str:
    return f"{group.name or '(none)'} {signed(group.total)} in {many(group.pairs, 'job')}"


def _only(only: Only, what: str) -> str:
    if not only.count:
        return ""
    more = " ..." if only.count > len(only.first) else ""
    return f"{many(only.count, 'job')} {what}: {', '.join(only.first)}{more}"


def by_way(against: Against, first: str, shown: int) -> list[Table]:
    """A table for each way to group jobs of which there are several groups."""
    head = (
        "jobs",
        f"wait in {first}",
        f"in {against.letter}",
        "longer by",
        "95 % from",
        "to",
        "longer",
        "shorter",
    )
    return [
        Table(f"By {way}", (way, *head), list(map(_row, found[:shown])), len(found) - shown)
        for way, found in against.by.items()
        if len(found) > 1
    ]


def _row(group: Group) -> tuple[str, ...]:
    wait = group.wait
    difference = wait.difference
    return (
        group.name or "(none)",
        f"{group.pairs:,}",
        NONE if wait.first is None else duration(wait.first),
        NONE if wait.second is None else duration(wait.second),
        *(
            (NONE, NONE, NONE)
            if difference is None
            else (signed(difference.mean), signed(difference.low), signed(difference.high))
        ),
        f"{group.longer:,}",
        f"{group.shorter:,}",
    )


def first_difference(found: FirstDifference, letters: Sequence[str]) -> list[tuple[str, list[str]]]:
    """What became of the job in each of two runs: a heading, and lines."""
    return [
        (f"in {letter}", lines(fate)) for letter, fate in zip(letters, found.fates, strict=True)
    ]


def difference_title(found: FirstDifference) -> str:
    """Which job it is."""
    who = f" of {found.user}" if found.user else ""
    return f"job {found.job}{who}, {many(found.cpus, 'CPU')}"
