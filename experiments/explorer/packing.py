"""The jobs of a run as a text that a page carries: columns instead of rows, differences instead of
times, deflated, in letters.

Place: between records and the page; `decode.js` beside this file reads it. Pure.

A column is one of

    ["same", VALUE]                all jobs have it
    ["plain", VALUES]              null where a job has none
    ["delta", VALUES]              each is what it is more than the one before
    ["after", COLUMN, VALUES]      each is what it is more than the job's COLUMN (0 if it has none)
    ["text", TEXTS]                one a job
    ["word", TEXTS, PLACES]        each is the place of its text
    ["nodes", LISTS, PLACES]       the same; a list is the gap before a run of neighbours, and its
                                   length, for each run

Fields that make no part of a story are left out of long runs, and runs of neighbours that are close
to each other are drawn as one where a job would have hundreds: so the page stays small.
"""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.experiments.records import JobRecord
from understudy.experiments.watched import Watched
from understudy.model.hostlist import expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FULL_JOBS: Final = 250_000  # with more the page has no side matters; it is then some 10 MB
# Deflated; in base64, with what draws them, a page is then below 15 MB.
MOST_BYTES: Final = 11_000_000
_SIDE_MATTERS: Final = frozenset(
    {"name", "gres", "memory_mb", "eligible", "priority", "exit_code", "restarts", "preemptions"}
)
_AFTER: Final = {
    "start": "submit",
    "end": "start",
    "eligible": "submit",
    "first_promise": "submit",
    "last_promise": "submit",
}
_DELTA: Final = frozenset({"job", "submit"})
_LEVEL: Final = 6  # of zlib: 9 takes five times as long for 3 % less

_WORD: Final = re.compile(r"([^\[\],]+)(?:\[([^\]]*)\])?")
_SUFFIX: Final = re.compile(r"\][^,]")  # text behind a bracket
_DIGITS: Final = "0123456789"

Column = list[Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What is shown of a run. `zero`: the instant of second 0, in seconds since the epoch, None
    where the run has no calendar; `half_life_s`: of use, as the fair share has it, 0 for none.
    """

    title: str
    records: Sequence[JobRecord]
    cpus: int  # the machine's
    attempts: Sequence[JobRecord] = ()  # earlier runs of jobs that were requeued
    nodes: Sequence[str] = ()  # all of them, in the order of the configuration
    zero: float | None = None
    half_life_s: int = 0
    watched: Watched = field(default_factory=Watched)


def pack(runs: Sequence[Run]) -> str:
    """The runs in base64; no character of it means anything to HTML. Where it would be too much
    because nodes of jobs lie scattered, those close to each other are packed as one run.
    """
    closest = 1
    while True:
        told = [columns(run, closest) for run in runs]
        packed = zlib.compress(msgspec.json.encode(told), _LEVEL)
        rows = sum(each["rows"] for each in told)
        pieces = sum(len(each) // 2 for run in told for each in run["columns"]["nodes"][1])
        if len(packed) <= MOST_BYTES or pieces <= 2 * rows:
            return base64.b64encode(packed).decode()
        closest *= 8


def columns(run: Run, closest: int = 1) -> dict[str, Any]:
    """What is packed of a run, as JSON has it; attempts stand behind the jobs. `closest`: how far
    apart runs of neighbours must be to be told apart.
    """
    ordered = sorted(run.records, key=lambda record: (record.submit, record.job))
    rows = [*ordered, *sorted(run.attempts, key=lambda record: (record.submit, record.job))]
    places = _Places(run.nodes)
    left_out = _SIDE_MATTERS if len(rows) > FULL_JOBS else frozenset()
    table = {
        field.name: _column(rows, field.name, str(field.type))
        for field in msgspec.structs.fields(JobRecord)
        if field.name not in left_out and field.name != "nodes"
    }
    table["nodes"] = _node_column(places, [row.nodes for row in rows], closest)
    return {
        "title": run.title,
        "cpus": run.cpus,
        "zero": run.zero,
        "halfLife": run.half_life_s,
        "nodes": places.names,
        "jobs": len(ordered),
        "rows": len(rows),
        "closest": closest,
        "columns": table,
        "states": _states(run),
        "shares": _shares(run),
    }


def _shares(run: Run) -> dict[str, float]:
    """What is due to the users of each account together: jobs are of accounts that have users, not
    of those above.
    """
    found: dict[str, float] = {}
    for each in run.watched.shares:
        if each.user:
            found[each.account] = found.get(each.account, 0.0) + each.share
    return found


def _states(run: Run) -> dict[str, Any] | None:
    """Nodes by their states over time, as columns; times are differences."""
    lines = run.watched.nodes
    if not lines:
        return None
    times = [each.at for each in lines]
    return {
        "total": len(run.nodes),
        "times": [at - before for at, before in zip(times, [0, *times], strict=False)],
        **{name: [getattr(each, name) for each in lines] for name in lines[0]._fields[1:]},
    }


def _column(rows: Sequence[JobRecord], name: str, kind: str) -> Column:
    values = list(map(attrgetter(name), rows))
    if values and values.count(values[0]) == len(values):
        return ["same", values[0]]
    if "str" in kind:
        places = {text: place for place, text in enumerate(dict.fromkeys(values))}
        if 2 * len(places) > len(values):
            return ["text", values]
        return ["word", list(places), list(map(places.__getitem__, values))]
    if "bool" in kind:
        return ["plain", list(map(int, values))]
    if name in _DELTA:
        before = [0, *values]
        return ["delta", [value - last for value, last in zip(values, before, strict=False)]]
    if name in _AFTER:
        base = [value or 0 for value in map(attrgetter(_AFTER[name]), rows)]
        return [
            "after",
            _AFTER[name],
            [None if v is None else v - b for v, b in zip(values, base, strict=True)],
        ]
    return ["plain", values]


class _Places:
    """The nodes, and where the names of host lists are among them. Nodes that were not known before
    are put behind the others.
    """

    def __init__(self, known: Sequence[str]) -> None:
        self.names: list[str] = []
        self._index: dict[str, int] = {}
        self._stretch: list[int] = []  # nodes of the same one count upwards by one
        for name in known:
            self._add(name)

    def _add(self, name: str) -> int:
        if name not in self._index:
            before = self.names[-1] if self.names else ""
            stretch = self._stretch[-1] if self._stretch else 0
            self._index[name] = len(self.names)
            self._stretch.append(stretch if name == _following(before) else stretch + 1)
            self.names.append(name)
        return self._index[name]

    def runs(self, expression: str) -> list[tuple[int, int]]:
        """(first, how many) of neighbours, in ascending order."""
        found: list[tuple[int, int]] = []
        simple = "][" not in expression and not _SUFFIX.search(expression)
        for prefix, inside in _WORD.findall(expression) if simple else ():
            for part in inside.split(","):
                low, _, high = part.partition("-")
                first = self._index.get(prefix + low, -1)
                last = self._index.get(prefix + high, -1) if high else first
                if first < 0 or last < 0 or self._stretch[first] != self._stretch[last]:
                    simple = False
                    break
                found.append((first, last - first + 1))
        if not simple:
            found = [(self._add(name), 1) for name in expand(expression)]
        return _joined(sorted(found), 1)


def _following(name: str) -> str:
    """The name that counts on from it; "" if it ends in no digit."""
    digits = name[len(name.rstrip(_DIGITS)) :]
    return f"{name[: -len(digits)]}{int(digits) + 1:0{len(digits)}}" if digits else ""


def _node_column(places: _Places, expressions: Sequence[str], closest: int) -> Column:
    number = {text: i for i, text in enumerate(dict.fromkeys(expressions))}
    lists = [_gaps(_joined(places.runs(text), closest)) if text else [] for text in number]
    return ["nodes", lists, list(map(number.__getitem__, expressions))]


def _joined(runs: Iterable[tuple[int, int]], closest: int) -> list[tuple[int, int]]:
    """Runs with less than `closest` between them as one."""
    out: list[tuple[int, int]] = []
    for start, length in runs:
        if out and start - sum(out[-1]) < closest:
            first = out[-1][0]
            out[-1] = (first, max(start + length, sum(out[-1])) - first)
        else:
            out.append((start, length))
    return out


def _gaps(runs: Iterable[tuple[int, int]]) -> list[int]:
    out: list[int] = []
    end = 0
    for start, length in runs:
        out += (start - end, length)
        end = start + length
    return out
