"""A synthetic workload after the model of Lublin and Feitelson, with users' rough time estimates.

Place: a source of traces beside `swf`. Pure: the same arguments give the same jobs. Follows: U.
Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the characteristics
of rigid jobs", Journal of Parallel and Distributed Computing 63(11), 2003, for sizes, run times and
arrivals; D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates", JSSPP 2005,
for the shape of the estimates: few round values, and a use of the estimated time that is spread
evenly.

The model has two classes, batch and interactive. In each,

- a job is serial with some probability; else the logarithm (base 2) of its size is uniform on one
  of two stages, and rounded for those jobs that use a power of two;
- the natural logarithm of the run time is drawn from one of two gamma distributions; the larger the
  job, the likelier the longer one;
- the natural logarithm of the time to the next arrival is gamma distributed, on a time scale that
  is stretched and squeezed by the daily cycle: the share of jobs in each half hour is a gamma
  distribution that begins in the early morning.

The published constants stand for machines of 128 processors. What is done here for another machine,
span and load:

- the two stages keep their distance from the machine's size, as the authors advise;
- arrivals of each class are stretched to the span, so that `BATCH_SHARE` of the jobs are batch
  jobs;
- all run times are multiplied by one factor, found by bisection, so that the offered load is the
  one that is asked for.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from understudy.experiments.trace import TraceJob
from understudy.model.nouns import many

DAY_S: Final = 86_400
SLOTS: Final = 48  # half hours of a day
SLOT_S: Final = DAY_S // SLOTS
FIRST_SLOT: Final = 11  # the cycle of the model begins at 5:30
LONGEST_LOG_RUN: Final = 12.0  # of the model: e^12 s is 45 hours
LONGEST_LOG_GAP: Final = 13.0
LONGEST_RUN_S: Final = 48 * 3600  # of the machine: no limit is longer
BATCH_SHARE: Final = 0.6
ENDED_BY_LIMIT: Final = 0.08  # jobs that use up the time they asked for
INTERACTIVE: Final = 0  # the class is the trace's queue
BATCH: Final = 1

# What users type: minutes.
ROUND_LIMITS_S: Final = tuple(
    60 * minutes
    for minutes in (
        5,
        10,
        15,
        20,
        30,
        45,
        60,
        90,
        120,
        180,
        240,
        300,
        360,
        480,
        600,
        720,
        900,
        1080,
        1440,
        2160,
        2880,
    )
)


@dataclass(frozen=True, slots=True)
class JobClass:
    """One class's published constants. Gamma distributions are (shape, scale)."""

    queue: int
    serial: float  # probability of one processor
    power_of_two: float  # probability of a power of two, serial jobs apart
    lowest: float  # log2 of the sizes: the stages are [lowest, middle] and [middle, highest]
    middle_below: float  # log2 of the machine's size less the middle
    highest_below: float  # log2 of the machine's size less the highest
    first_stage: float  # probability of the lower stage
    short_run: tuple[float, float]
    long_run: tuple[float, float]
    short_slope: float  # probability of the short run: slope * size + offset
    short_offset: float
    gap: tuple[float, float]  # at the busiest hours
    gap_stretch: float  # of the shape: from the busiest hours to the whole day
    cycle: tuple[float, float]  # of the half hour of arrival


BATCH_JOBS: Final = JobClass(
    queue=BATCH,
    serial=0.2927,
    power_of_two=0.6686,
    lowest=1.2,
    middle_below=2.0,
    highest_below=0.0,
    first_stage=0.875,
    short_run=(6.57, 0.823),
    long_run=(639.1, 0.0156),
    short_slope=-0.003,
    short_offset=0.6986,
    gap=(6.0415, 0.8531),
    gap_stretch=1.0519,
    cycle=(6.1271, 5.2740),
)
INTERACTIVE_JOBS: Final = JobClass(
    queue=INTERACTIVE,
    serial=0.1541,
    power_of_two=0.625,
    lowest=1.0,
    middle_below=4.0,
    highest_below=1.5,
    first_stage=0.705,
    short_run=(3.8351, 0.6605),
    long_run=(7.073, 0.6856),
    short_slope=-0.0118,
    short_offset=0.9156,
    gap=(6.5510, 0.6621),
    gap_stretch=0.9797,
    cycle=(8.9186, 3.6680),
)
_MODEL_PROCESSORS: Final = 128  # of the machines to which the constants were fitted


@dataclass(frozen=True, slots=True)
class _Draft:
    """A job before the load is set."""

    submit: int
    queue: int
    procs: int
    run: float
    used: float  # share of the estimate that the run takes; 1.0: all of it, ended by the limit


def generate(jobs: int, nodes: int, days: float, load: float, seed: int) -> list[TraceJob]:
    """A workload of `jobs` jobs over `days` days for `nodes` processors with the offered load
    `load` (processor seconds over those there are).

    Raises:
        ValueError: a number that makes no sense, or a load that such jobs cannot have.
    """
    if jobs < 1 or nodes < 2 or days <= 0 or load <= 0:
        raise ValueError(
            f"a workload needs jobs >= 1, nodes >= 2, days > 0, load > 0: {jobs=} "
            f"{nodes=} {days=} {load=}"
        )
    rng = random.Random(seed)  # noqa: S311
    batch = round(jobs * BATCH_SHARE)
    drafts = [
        _draft(kind, submit, nodes, rng)
        for kind, count in ((BATCH_JOBS, batch), (INTERACTIVE_JOBS, jobs - batch))
        for submit in _arrivals(kind, count, days * DAY_S, rng)
    ]
    drafts.sort(key=lambda draft: (draft.submit, draft.queue, draft.procs, draft.run))
    timed = _timed(drafts, load * nodes * days * DAY_S)
    zero = drafts[0].submit
    return [
        TraceJob(
            number,
            draft.submit - zero,
            run,
            draft.procs,
            req,
            run,
            number,
            queue=draft.queue,
            status=1,
        )
        for number, (draft, (run, req)) in enumerate(zip(drafts, timed, strict=True), 1)
    ]


def _draft(kind: JobClass, submit: int, nodes: int, rng: random.Random) -> _Draft:
    procs = _size(kind, nodes, rng)
    used = 1.0 if rng.random() < ENDED_BY_LIMIT else max(0.02, rng.random())
    return _Draft(submit, kind.queue, procs, _run(kind, procs, nodes, rng), used)


def _size(kind: JobClass, nodes: int, rng: random.Random) -> int:
    whole = math.log2(nodes)
    highest = max(whole - kind.highest_below, 1.0)
    middle = min(max(whole - kind.middle_below, 1.0), highest)
    lowest = min(kind.lowest, middle)
    which = rng.random()
    if which < kind.serial:
        return 1
    exponent = (
        rng.uniform(lowest, middle)
        if rng.random() < kind.first_stage
        else rng.uniform(middle, highest)
    )
    if which < kind.serial + kind.power_of_two:
        exponent = math.floor(exponent + 0.5)
    return min(nodes, max(2, round(2**exponent)))


def _run(kind: JobClass, procs: int, nodes: int, rng: random.Random) -> float:
    """Seconds. On a larger machine a job counts by its share of the machine, so that size and run
    time are correlated as on the fitted ones.
    """
    size = procs * min(1.0, _MODEL_PROCESSORS / nodes)
    short = kind.short_slope * size + kind.short_offset
    while True:
        log = rng.gammavariate(*(kind.short_run if rng.random() < short else kind.long_run))
        if log <= LONGEST_LOG_RUN:
            return math.exp(log)


def _arrivals(kind: JobClass, count: int, span_s: float, rng: random.Random) -> list[int]:
    """Submit times of `count` jobs, in order, within the span that begins at midnight."""
    shape, scale = kind.gap[0] * kind.gap_stretch, kind.gap[1]
    gaps: list[float] = []
    while len(gaps) <= count:  # one more: the time after the last job belongs to the span
        log = rng.gammavariate(shape, scale)
        if log <= LONGEST_LOG_GAP:
            gaps.append(math.exp(log))
    times = list(accumulate(gaps))
    stretch = span_s / times[-1]
    until = _cycle(kind)
    return [_clock_time(time * stretch, until) for time in times[:count]]


def _cycle(kind: JobClass) -> list[float]:
    """Share of a day's jobs that have arrived by the beginning of each half hour from midnight on;
    49 values from 0 to 1.
    """
    shape, scale = kind.cycle
    weights = [0.0] * SLOTS
    for slot in range(FIRST_SLOT, FIRST_SLOT + SLOTS):
        # The density in the middle stands for the half hour: no need for the incomplete gamma
        # function.
        weights[slot % SLOTS] = math.exp((shape - 1) * math.log(slot) - slot / scale)
    total = sum(weights)
    return [0.0, *accumulate(weight / total for weight in weights)]


def _clock_time(time: float, until: list[float]) -> int:
    """The instant of the clock at which an even flow of jobs that ran until `time` has come to when
    it follows the daily cycle.
    """
    day, share = divmod(time / DAY_S, 1.0)
    slot = min(bisect_right(until, share) - 1, SLOTS - 1)
    within = (share - until[slot]) / (until[slot + 1] - until[slot])
    return int(day * DAY_S + (slot + min(within, 1.0)) * SLOT_S)


def _timed(drafts: list[_Draft], wanted: float) -> list[tuple[int, int]]:
    """(run, requested time) of each job, with run times scaled so that they make the wanted
    processor seconds.
    """

    def work(factor: float) -> float:
        return sum(draft.procs * _run_and_limit(draft, factor)[0] for draft in drafts)

    low, high = 1e-3, 1e3
    least, most = work(low), work(high)
    if not least <= wanted <= most:
        raise ValueError(
            f"{many(len(drafts), 'job')} of 1 s to {LONGEST_RUN_S // 3600} h make {least:.3g} to "
            f"{most:.3g} processor seconds, and this load over these days is {wanted:.3g}: "
            + ("more jobs or fewer days" if wanted > most else "fewer jobs or more days")
            + f" are needed, or a {'lower' if wanted > most else 'higher'} load"
        )
    for _ in range(24):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if work(middle) < wanted else (low, middle)
    return [_run_and_limit(draft, high) for draft in drafts]


def _run_and_limit(draft: _Draft, factor: float) -> tuple[int, int]:
    run = min(max(1, round(draft.run * factor)), LONGEST_RUN_S)
    limit = ROUND_LIMITS_S[
        min(bisect_left(ROUND_LIMITS_S, run / draft.used), len(ROUND_LIMITS_S) - 1)
    ]
    if draft.used == 1.0:
        run = limit
    return run, limit
