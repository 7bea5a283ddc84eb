"""A recording of what a cluster did with a scenario: `runN.jsonl` of real Slurm, or the
`result.jsonl` of a replay.

Place: under read.py, pure. An optional header, then an object for each job; times in seconds from
the scenario's zero, fractions cut off. Follows: tests/differential/README.md on the format.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from understudy.experiments.records import REJECTED, JobRecord
from understudy.experiments.run_tables import RunError
from understudy.experiments.stories import Story
from understudy.model.hostlist import compress, count
from understudy.model.times import parse_limit

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX: Final = ".jsonl"
_ARRAY: Final = "ARRAY_MASTER"  # the record of an array's tasks that wait, not of a job
_NOT_YET: Final = "None"  # the reason of a job that nobody has looked at
_BY: Final = {"sched": "Main", "backfill": "Backfill"}


class Recorded(NamedTuple):
    """In the order of the jobs. `header`: {} where there is none."""

    records: list[JobRecord]
    attempts: list[JobRecord]
    stories: list[Story]
    header: dict[str, Any]


def read_recording(path: Path, content: bytes) -> Recorded:
    """What is in the file.

    Raises:
        RunError: it is none, or is damaged; says the line.
    """
    found = Recorded([], [], [], {})
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            if not isinstance(told, dict):
                raise TypeError("no object")
            if "job" not in told and not found.records:
                found.header.update(told)
            elif told["state"] != _ARRAY:
                _take(told, found)
        except KeyError as error:
            raise RunError(f"{path} line {number}: it has no {error.args[0]}") from None
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise RunError(f"{path} line {number}: no job of a recording: {error}") from None
    if not found.records:
        raise RunError(f"{path}: no job of a recording")
    return found


def _take(told: dict[str, Any], found: Recorded) -> None:
    job = len(found.records) + 1
    name, state = _text(told, "job"), _text(told, "state")
    start, end = _second(told, "start"), _second(told, "end")
    submit = _second(told, "submit")
    if submit is None:
        submit = _second(told, "eligible")
    nodes = _nodes(told.get("nodes")) if start is not None else ""
    reasons = _reasons(told.get("pending") or [])
    attempts = told.get("attempts") or []
    by = "" if start is None or not attempts else _BY.get(attempts[-1].get("by", ""), "")
    reason = _text(told, "message") if state == REJECTED else _text(told, "reason")
    record = JobRecord(
        job,
        submit if submit is not None else start or 0,
        start,
        end if start is not None else None,
        state,
        int(told.get("cpus") or 0),
        nodes,
        _limit(told.get("limit")),
        name,
        name,
        _text(told, "user"),
        partition=_text(told, "partition"),
        eligible=_second(told, "eligible"),
        node_count=count(nodes) if nodes else 0,
        priority=int(told.get("priority") or 0),
        waited_for=_longest(reasons, start),
        reason=reason if start is None and reason != _NOT_YET else "",
        restarts=int(told.get("restarts") or 0),
        backfilled=by == "Backfill",
        scheduled_by=by,
    )
    found.records.append(record)
    found.attempts.extend(
        JobRecord(
            job,
            record.submit,
            _second(each, "start"),
            _second(each, "end"),
            _text(each, "state"),
            record.cpus,
            _nodes(each.get("nodes", "")),
            record.req_time,
            name,
        )
        for each in attempts
        if "start" in each  # a recording of real Slurm says when they began, not what they became
    )
    if reasons:
        found.stories.append(Story(name, record.submit, reasons))


def _second(told: dict[str, Any], key: str) -> int | None:
    value = told.get(key)
    if value is None:
        return None
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError(f"{key} {value!r}: expected seconds")
    return math.floor(float(value))


def _text(told: dict[str, Any], key: str) -> str:
    value = told.get(key)
    return "" if value is None else str(value)


def _nodes(value: object) -> str:
    """A host list expression, or a list of names."""
    if isinstance(value, list):
        return compress(map(str, value))
    return "" if value is None else str(value)


def _limit(value: object) -> int:
    """Seconds, or a text as Slurm writes limits; -1: none."""
    if isinstance(value, str):
        found = parse_limit(value)
        return -1 if found is None else found
    return int(value) if isinstance(value, int | float) else -1


def _reasons(pending: list[list[Any]]) -> list[tuple[int, str]]:
    """From when it was seen to wait for what."""
    found: list[tuple[int, str]] = []
    for at, reason, *_ in pending:
        if reason != _NOT_YET and (not found or found[-1][1] != reason):
            found.append((math.floor(at), str(reason)))
    return found


def _longest(reasons: list[tuple[int, str]], start: int | None) -> str:
    """The reason that it waited for longest."""
    ends = [*reasons, (reasons[-1][0] if start is None else start, "")] if reasons else []
    waited: dict[str, int] = {}
    for (begin, reason), (end, _) in pairwise(ends):
        waited[reason] = waited.get(reason, 0) + end - begin
    return max(waited, key=lambda each: waited[each], default="")
