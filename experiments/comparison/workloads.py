"""Makes the trace that a cell replays, of a trace's file: which jobs, when, on what machine.

Place: between traces and cells. Reads and writes traces; the same file, workload, seed and part
give the same bytes.

Jobs that no machine of this size could ever run are left out, and counted. What a job asks of the
burst buffer is its 19th column, and the header says `BurstBuffer: CAPACITY`, both in MB. A part is
what is submitted within one of equal periods; it is replayed alone, from an empty machine.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.experiments import buffers
from understudy.experiments.comparison.comparison import WHOLE, ComparisonError
from understudy.experiments.formats import read_trace
from understudy.experiments.swf import write_swf
from understudy.experiments.trace import POOLS, TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from understudy.experiments.comparison.cells import Drawn
    from understudy.experiments.comparison.comparison import Workload
    from understudy.experiments.trace import Trace, TraceJob

# what a replay does not use, so that it says nothing of it
_NOBODYS: Final = dict.fromkeys(
    ("status", "user", "group", "executable", "queue", "partition", "preceding_job", "think_time"),
    -1,
)


@dataclass(frozen=True, slots=True)
class Made:
    """A trace that is ready to be replayed, and what a page says of it."""

    path: Path
    sha256: str  # of the jobs
    source_sha256: str  # of the file that it is made of, as it is
    jobs: int
    processors: int
    capacity: int  # of the burst buffer; 0: there is none
    left_out: int  # wider than the machine
    first_s: int  # of the submissions, in seconds of the normalised trace
    last_s: int


def make(drawn: Drawn, traces: Path, folder: Path) -> Made:
    """Write the trace of a workload, seed and part into the folder.

    Raises:
        ComparisonError: the trace is not there or cannot be read, or has no job in that part.
    """
    workload = drawn.workload
    source = traces / workload.trace
    trace = _read(source)
    processors, capacity, asking = _asking(trace, workload, drawn.seed)
    chosen = _part(asking, workload, drawn.part)
    if drawn.jobs:
        chosen = chosen[: drawn.jobs]
    if not chosen:
        raise ComparisonError(f"{source}: no job in part {drawn.part}")
    first, last = chosen[0].submit, chosen[-1].submit
    scaled = [_scaled(job, number, first, workload.scale) for number, job in enumerate(chosen, 1)]
    header = {"MaxNodes": str(processors), "MaxProcs": str(processors)}
    if capacity:
        header[POOLS] = str(capacity)
    part = "" if drawn.part == WHOLE else f"-{drawn.part}"
    jobs = f"-{drawn.jobs}" if drawn.jobs else ""
    path = folder / f"{workload.name}-{drawn.seed}{part}{jobs}.swf"
    folder.mkdir(parents=True, exist_ok=True)
    write_swf(path, scaled, header)
    return Made(
        path=path,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        source_sha256=hashlib.sha256(source.read_bytes()).hexdigest(),
        jobs=len(scaled),
        processors=processors,
        capacity=capacity,
        left_out=len(trace.jobs) - len(asking),
        first_s=first,
        last_s=last,
    )


def _read(source: Path) -> Trace:
    try:
        return read_trace(source, strict=False)
    except OSError as error:
        raise ComparisonError(
            f"{source}: {error.strerror}. Traces are not shipped: get it from where "
            "docs/experiments/README.md says, and name its folder with --traces"
        ) from error
    except (TraceError, ValueError, EOFError) as error:
        raise ComparisonError(f"{source}: {error}") from error


def _asking(trace: Trace, workload: Workload, seed: int) -> tuple[int, int, list[TraceJob]]:
    """Processors, the buffer's capacity, and the jobs that fit with what each asks for behind the
    18th column. It is drawn for all jobs in turn, so that a job has the same in the whole trace and
    in its part.
    """
    if workload.kind == "swf":
        processors = workload.processors or trace.machine().nodes
        return processors, 0, [job for job in trace.jobs if job.procs <= processors]
    if workload.kind == "kth-bb":
        drawn = buffers.kth(trace.jobs, seed)
    elif workload.scenario not in buffers.THETA_SETS:
        raise ComparisonError(
            f"workload {workload.name}: scenario {workload.scenario!r} is none of "
            f"{', '.join(buffers.THETA_SETS)}"
        )
    else:
        drawn = buffers.theta(trace.jobs, seed, buffers.THETA_SETS[workload.scenario])
    return drawn.processors, drawn.capacity_mb, drawn.jobs


def _part(jobs: Sequence[TraceJob], workload: Workload, part: int) -> list[TraceJob]:
    if part == WHOLE:
        return list(jobs)
    if not workload.part_length:
        raise ComparisonError(f"workload {workload.name}: it has no part_length, so no parts")
    begin = workload.parts_from + (part - 1) * workload.part_length
    return [job for job in jobs if begin <= job.submit < begin + workload.part_length]


def _scaled(job: TraceJob, number: int, first: int, scale: float) -> TraceJob:
    """The job in the new trace, whose zero is its first submission; whole seconds."""
    return msgspec.structs.replace(
        job, id=number, submit=int((job.submit - first) * scale), **_NOBODYS
    )
