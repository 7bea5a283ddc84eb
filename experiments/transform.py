"""Transformations of traces: more load, fewer jobs, perfect limits, several as one, without names.

Place: between a trace's reader and a replay; `understudy trace` and sweeps have nothing else. Pure:
a trace in, a new one out; chance is of a seed alone. The jobs of what comes out are in normal form:
in the order of their submissions, of which the first is at 0, and numbered from 1. Where another
job is the first one than before, the header's UnixStartTime goes along. What jobs were called
(`original_id`) stays, but where traces are merged.
"""

from __future__ import annotations

import bisect
import hmac
import math
import random
from collections import Counter
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.experiments.trace import LARGEST, POOLS, Trace, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from understudy.experiments.trace import TraceJob

UNIX_START: Final = "UnixStartTime"
DEFAULT_START: Final = 946_684_800  # 2000-01-01 UTC, as replays of traces that do not say it
_SIZES: Final = ("MaxNodes", "MaxProcs")
# of the file; wrong when there are other jobs
_OF_FILE: Final = ("MaxJobs", "MaxRecords", "StartTime", "EndTime")
# what of a header says nothing of who and where
_NAMELESS: Final = ("Version", *_SIZES, UNIX_START, POOLS)
# columns of whom and what, and what each is called where a number is drawn for it
_NAMED: Final = ("user", "group", "executable")
_HALF_BITS: Final = 15
_HALF: Final = (1 << _HALF_BITS) - 1
LARGEST_NAMED: Final = (1 << 2 * _HALF_BITS) - 1
_ROUNDS: Final = 6
_ORDER: Final = attrgetter("submit", "original_id")  # of who reads it again


def processor_seconds(jobs: Iterable[TraceJob]) -> int:
    """What the jobs use of a machine."""
    return sum(job.procs * job.run for job in jobs)


def offered_load(jobs: Sequence[TraceJob], processors: int) -> float:
    """Processor seconds asked for, over those that the machine has between the first and the last
    submission; infinite where all come at once.
    """
    span = jobs[-1].submit - jobs[0].submit if jobs else 0
    return processor_seconds(jobs) / (processors * span) if span else math.inf


def interarrival(trace: Trace, factor: float) -> Trace:
    """Times between submissions, multiplied: 0.8 is a quarter more load.

    Raises:
        TraceError: the factor is not positive.
    """
    _positive("a factor of interarrival times", factor)
    jobs = [
        msgspec.structs.replace(job, submit=math.floor(_times(job.submit, factor)))
        for job in trace.jobs
    ]
    return _made(trace, sorted(jobs, key=_ORDER))


def run_times(trace: Trace, factor: float) -> Trace:
    """Run times and limits, multiplied; a run is at least one second, and a limit rounded up.

    Raises:
        TraceError: the factor is not positive.
    """
    _positive("a factor of run times", factor)
    jobs = []
    for job in trace.jobs:
        req = max(1, math.ceil(_times(job.req, factor)))
        raw = max(1, round(_times(job.raw_run, factor)))
        jobs.append(msgspec.structs.replace(job, run=min(raw, req), raw_run=raw, req=req))
    return _made(trace, jobs)


def thin(trace: Trace, share: float, seed: int) -> Trace:
    """That share of the jobs, drawn by the seed. Of one seed, a smaller share is a part of a larger
    one.

    Raises:
        TraceError: the share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise TraceError(f"a share of jobs is above 0 and at most 1, not {share:g}")
    kept = set(_drawn(trace.jobs, seed)[: max(1, round(share * len(trace.jobs)))])
    return _made(trace, [job for place, job in enumerate(trace.jobs) if place in kept])


def to_load(trace: Trace, processors: int, load: float, by: str, seed: int) -> Trace:
    """A trace with that offered load (`offered_load`), by one of `LOAD_BY`.

    Raises:
        TraceError: the load is not positive, cannot be had so, or nobody knows the present one.
    """
    _positive("a load", load)
    now = offered_load(trace.jobs, processors)
    if math.isinf(now):
        raise TraceError("all its jobs are submitted at once: it has no offered load to scale")
    try:
        return LOAD_BY[by](trace, load / now, seed)
    except KeyError:
        raise TraceError(f"a load is scaled by {', '.join(LOAD_BY)}, not by {by!r}") from None


def _thin_work(trace: Trace, factor: float, seed: int) -> Trace:
    """As many of the drawn jobs as have that share of the work."""
    if factor > 1:
        raise TraceError(
            f"thinning lowers a load, and this is {factor:.3g} times the trace's: scale by "
            "interarrival instead"
        )
    order = _drawn(trace.jobs, seed)
    work = list(accumulate(trace.jobs[place].procs * trace.jobs[place].run for place in order))
    kept = set(order[: max(1, bisect.bisect_right(work, work[-1] * factor * (1 + 1e-12)))])
    return _made(trace, [job for place, job in enumerate(trace.jobs) if place in kept])


LOAD_BY: Final[dict[str, Callable[[Trace, float, int], Trace]]] = {
    "interarrival": lambda trace, factor, _seed: interarrival(trace, 1 / factor),
    "thinning": _thin_work,
    "run_times": lambda trace, factor, _seed: run_times(trace, factor),
}


def clip(trace: Trace, begin: float = 0.0, end: float = math.inf, jobs: int | None = None) -> Trace:
    """What is submitted from `begin` on and before `end`, in seconds after the first submission; of
    that at most so many jobs.

    Raises:
        TraceError: there is no job then.
    """
    kept = [job for job in trace.jobs if begin <= job.submit < end][:jobs]
    if not kept:
        raise TraceError(
            f"no job is submitted from {begin:.15g} s on and before {end:.15g} s: its last is at "
            f"{trace.jobs[-1].submit} s"
        )
    return _made(trace, kept)


def shift(trace: Trace, seconds: int) -> Trace:
    """The same jobs so much later in the calendar (negative: earlier): what is done by the time of
    day or the weekday meets others.
    """
    moved = _made(trace, trace.jobs)
    moved.header[UNIX_START] = str((trace.unix_start_time or DEFAULT_START) + seconds)
    return moved


def perfect(trace: Trace) -> Trace:
    """Each job asks for the time that it runs."""
    return _made(
        trace,
        [msgspec.structs.replace(job, req=job.run, raw_run=job.run) for job in trace.jobs],
    )


def leave_out(trace: Trace, users: Collection[int]) -> Trace:
    """The trace without the jobs of these users.

    Raises:
        TraceError: a user has none, or nobody else has.
    """
    if unknown := sorted(set(users) - {job.user for job in trace.jobs}):
        raise TraceError(f"no job is of user {unknown[0]}")
    kept = [job for job in trace.jobs if job.user not in users]
    if not kept:
        raise TraceError("no job is left without these users")
    return _made(trace, kept)


def merge(traces: Sequence[Trace], *, by_date: bool = False) -> Trace:
    """Several traces on one machine, the largest of theirs. All begin together, or with `by_date`
    when their headers say.

    Ids, users, groups and executables of each are kept apart: those of the first stay, those of the
    others are counted on behind them. Queues and partitions are the machine's, and stay.

    Raises:
        TraceError: there are no traces, or with `by_date` a header does not say when it began.
    """
    if not traces or not all(trace.jobs for trace in traces):
        raise TraceError("nothing to merge: a trace has no job")
    starts = [trace.unix_start_time for trace in traces]
    known = [start for start in starts if start is not None]
    if by_date and len(known) < len(starts):
        raise TraceError(
            f"trace {starts.index(None) + 1} does not say when it began ({UNIX_START})"
        )
    first = min(known) if by_date else 0
    jobs: list[TraceJob] = []
    above = dict.fromkeys((*_NAMED, "original_id"), 0)
    for trace, start in zip(traces, starts, strict=True):
        later = (start or 0) - first if by_date else 0
        jobs += [_counted_on(job, above, later) for job in trace.jobs]
        for name in above:
            above[name] = max(above[name], *(getattr(job, name) + 1 for job in jobs))
    largest = max(traces, key=lambda trace: trace.max_procs or trace.max_nodes or 0)
    sizes = {key: largest.header[key] for key in _SIZES if key in largest.header}
    header = {key: text for key, text in traces[0].header.items() if key not in _OF_FILE} | sizes
    if by_date:
        header[UNIX_START] = str(first)
    return _made(Trace(header=header), sorted(jobs, key=_ORDER))


def anonymise(trace: Trace, key: bytes) -> Trace:
    """Users, groups and executables under numbers that only who has the key can lead back. Equal
    ones stay equal and different ones different, in all traces under the same key. Of the header
    only what figures need is kept, and of columns behind the 18th the units that it counts: others
    may name hosts, queues or people.

    Raises:
        TraceError: a number is too large.
    """
    drawn: dict[tuple[str, int], int] = {}

    def of(name: str, value: int) -> int:
        if value < 0:  # unknown
            return value
        if value > LARGEST_NAMED:
            raise TraceError(f"{name} {value} is larger than {LARGEST_NAMED}")
        if (name, value) not in drawn:
            drawn[name, value] = _permuted(value, key + name.encode())
        return drawn[name, value]

    pools = len(trace.pools)
    jobs = [
        msgspec.structs.replace(
            job,
            extra=job.extra[:pools],
            **{name: of(name, getattr(job, name)) for name in _NAMED},
        )
        for job in trace.jobs
    ]
    kept = {name: text for name, text in trace.header.items() if name in _NAMELESS}
    return _made(Trace(header=kept), jobs)


def _permuted(value: int, key: bytes) -> int:
    """The place of a number in an order of all up to LARGEST_NAMED that the key decides: a Feistel
    network (Luby and Rackoff, "How to construct pseudorandom permutations", 1988), so that no two
    have the same.
    """
    left, right = value >> _HALF_BITS, value & _HALF
    for number in range(_ROUNDS):
        digest = hmac.digest(key, bytes((number,)) + right.to_bytes(2, "big"), "sha256")
        left, right = right, left ^ (int.from_bytes(digest[:2], "big") & _HALF)
    return left << _HALF_BITS | right


def written(trace: Trace) -> list[TraceJob]:
    """The jobs as they are to be written, so that who reads them knows them by what they were
    called.
    """
    if any(count > 1 for count in Counter(job.original_id for job in trace.jobs).values()):
        return trace.jobs
    return [
        msgspec.structs.replace(job, id=job.original_id) if job.original_id >= 0 else job
        for job in trace.jobs
    ]


def _counted_on(job: TraceJob, above: dict[str, int], later: int) -> TraceJob:
    """The job of a trace that is merged behind others."""
    numbers = {
        name: getattr(job, name) + above[name]
        for name in _NAMED
        if above[name] and getattr(job, name) >= 0
    }
    called = (job.original_id if job.original_id >= 0 else job.id) + above["original_id"]
    before = job.preceding_job
    if before >= 0:
        before += above["original_id"]
    return msgspec.structs.replace(
        job, submit=job.submit + later, original_id=called, preceding_job=before, **numbers
    )


def _drawn(jobs: Sequence[TraceJob], seed: int) -> list[int]:
    """The places of all jobs in an order that the seed decides."""
    chance = random.Random(seed)  # noqa: S311
    lots = [chance.random() for _ in jobs]
    return sorted(range(len(jobs)), key=lots.__getitem__)


def _made(trace: Trace, jobs: Sequence[TraceJob]) -> Trace:
    """A trace of these jobs, which are in order, with the header of another."""
    header = {name: text for name, text in trace.header.items() if name not in _OF_FILE}
    first = jobs[0].submit if jobs else 0
    if first and trace.unix_start_time is not None:
        header[UNIX_START] = str(trace.unix_start_time + first)
    return Trace(
        jobs=[
            msgspec.structs.replace(job, id=number, submit=job.submit - first)
            for number, job in enumerate(jobs, 1)
        ],
        header=header,
    )


def _times(seconds: int, factor: float) -> float:
    found = seconds * factor
    if found > LARGEST:
        raise TraceError(f"{factor:g} times {seconds} s is longer than a trace can say")
    return found


def _positive(what: str, value: float) -> None:
    if not value > 0 or math.isinf(value):
        raise TraceError(f"{what} is a number above 0, not {value:g}")
