"""Workload traces in the Standard Workload Format: read, put into normal form, written.

Place: the reader of one format; trace.py holds the model. Knows files, but nothing of clusters,
messages or time. Follows: the Parallel Workloads Archive's definition of the format, version 2.2:
18 blank-separated columns a job, `;` begins a header or comment line, -1 is "unknown". Column 19
and following are units that jobs hold of what the header counts as `BurstBuffer: CAPACITY, ...`, as
in the traces of BBSched's authors (`Trace.pools`).

A trace tells what once happened on some machine. What is replayed is its normal form, the one that
simulators of schedulers agree on:

- processors: as requested, else as allocated; run time: at least 1 s and at most the requested
  time; requested time unknown: the run time;
- jobs that were cancelled before they ran, and those without processors, run time or submit time,
  are left out, and counted by reason;
- submit times count from the first job that is kept; jobs are in the order (submit, id) and
  numbered 1, 2, 3 ...
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.trace import LARGEST, BadLine, Trace, TraceError, TraceJob
from understudy.experiments.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

COLUMNS: Final = 18
NAMED_BAD_LINES: Final = 100  # of more than these only the count is kept
_STATUS_CANCELLED: Final = 5
_GZIP_MAGIC: Final = b"\x1f\x8b"
_HEADER: Final = re.compile(r";\s*([A-Za-z][A-Za-z0-9 _-]*?)\s*:(?!//)\s*(.*)")
_UNITS: Final = re.compile(r"-?\d{1,12}")
_NUMBER: Final = re.compile(r"[+-]?\d")

CANCELLED: Final = "cancelled before it ran"
NO_PROCESSORS: Final = "no processors"
NO_RUN_TIME: Final = "no run time"
NO_SUBMIT_TIME: Final = "no submit time"


def read_swf(path: str | Path, *, strict: bool = False) -> Trace:
    """Read a trace, plain or compressed with gzip.

    Raises:
        OSError: the file cannot be opened.
        TraceError: it is damaged; with `strict` also at the first bad line.
    """
    content = Path(path).read_bytes()
    if content.startswith(_GZIP_MAGIC):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise TraceError(f"{path}: damaged gzip file: {error}") from error
    # Names in comments may have any encoding; the numbers are ASCII.
    return parse_swf(content.decode("utf-8", "replace").split("\n"), strict=strict, name=str(path))


def parse_swf(lines: Iterable[str], *, strict: bool = False, name: str = "trace") -> Trace:
    """Make a trace of its lines. `name` is what errors call it."""
    trace = Trace()
    dropped = trace.dropped
    kept: list[tuple[Any, ...]] = []
    pools = 0
    for number, line in enumerate(lines, 1):
        fields = line.split(None, COLUMNS)
        if not fields:
            continue
        if fields[0][0] == ";":
            _read_header(line.strip(), trace.header)
            pools = len(trace.pools)
            continue
        try:
            columns: tuple[Any, ...] = tuple(map(int, fields[:COLUMNS]))
            is_plain = (
                len(columns) == COLUMNS and min(columns) >= -LARGEST and max(columns) <= LARGEST
            )
        except ValueError:
            # some logs have fractions of seconds
            columns, is_plain = tuple(_whole(text) for text in fields[:COLUMNS]), False
        if (not is_plain or pools) and (why := _fault(columns, fields, pools)):
            if strict:
                raise TraceError(f"{name} line {number}: {why}")
            trace.bad_line_count += 1
            if len(trace.bad_lines) < NAMED_BAD_LINES:
                trace.bad_lines.append(BadLine(number, why))
            continue
        if why := _unused(columns):
            dropped[why] += 1
        else:
            kept.append(_kept(columns, fields))
    kept.sort(key=itemgetter(0, 1))
    trace.zero = zero = kept[0][0] if kept else 0
    trace.jobs = [
        TraceJob(place, submit - zero, min(run, limit), procs, limit, run, job, *rest)
        for place, (submit, job, run, procs, limit, *rest) in enumerate(kept, 1)
    ]
    return trace


def _unused(columns: tuple[Any, ...]) -> str:
    """Why the line's job is left out; "" if it is not."""
    _, submit, _, run, allocated, _, _, requested, _, _, status, *_ = columns
    if status == _STATUS_CANCELLED and run <= 0:
        return CANCELLED
    if (requested if requested > 0 else allocated) < 1:
        return NO_PROCESSORS
    if run <= 0:
        return NO_RUN_TIME
    return NO_SUBMIT_TIME if submit < 0 else ""


def _kept(columns: tuple[Any, ...], fields: list[str]) -> tuple[Any, ...]:
    """(submit, job, run, procs, limit, then what `TraceJob` has behind its number)."""
    job, submit, _, run, allocated, _, _, requested, limit, *rest = columns
    procs = requested if requested > 0 else allocated
    extra = tuple(fields[COLUMNS].split()) if len(fields) > COLUMNS else ()
    return submit, job, run, procs, limit if limit > 0 else run, *rest, extra


def write_swf(
    path: str | Path, jobs: Sequence[TraceJob], header: Mapping[str, str] | None = None
) -> None:
    """Write jobs as a trace, whole or not at all; compressed if the name ends with `.gz`. The same
    jobs give the same bytes.
    """
    lines = [
        f"; {key}: {text}" for key, value in (header or {}).items() for text in value.split("\n")
    ]
    lines += [
        " ".join(
            (
                (
                    f"{job.id} {job.submit} -1 {job.raw_run} {job.procs} -1 -1 {job.procs} "
                    f"{job.req} {job.memory_kb} {job.status} {job.user} {job.group}"
                ),
                (
                    f"{job.executable} {job.queue} {job.partition} {job.preceding_job} "
                    f"{job.think_time}"
                ),
                *job.extra,
            )
        )
        for job in jobs
    ]
    content = ("\n".join(lines) + "\n").encode()
    # No time stamp and no file name in the gzip header: they would make every writing a different
    # file.
    packed = gzip.compress(content, 9, mtime=0) if str(path).endswith(".gz") else content
    write_whole(Path(path), packed)


def _read_header(line: str, header: dict[str, str]) -> None:
    match = _HEADER.fullmatch(line)
    if match:
        key, value = match.groups()
        header[key] = f"{header[key]}\n{value}" if key in header else value


def _whole(text: str) -> int | None:
    """The number rounded, or None when it is none."""
    if not _NUMBER.match(text):
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return round(number) if math.isfinite(number) else None


def _fault(columns: Sequence[int | None], fields: Sequence[str], pools: int) -> str:
    """Why the line is no job, or ""."""
    if len(columns) < COLUMNS:
        return f"{len(columns)} columns where {COLUMNS} are expected"
    if None in columns:
        place = columns.index(None)
        return f"column {place + 1} is not a number: {fields[place][:40]!r}"
    for place in (0, 1, 3, 4, 7, 8):
        if abs(columns[place] or 0) > LARGEST:
            return f"column {place + 1} is out of range: {fields[place][:40]}"
    for place, text in enumerate(fields[COLUMNS].split()[:pools] if len(fields) > COLUMNS else ()):
        if not _UNITS.fullmatch(text):
            return f"column {COLUMNS + place + 1} is not a number of units: {text[:40]!r}"
    return ""
