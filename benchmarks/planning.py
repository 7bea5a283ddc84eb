"""What planning costs; a part of the case `decisions`.

The jobs are seeded: sizes, lengths and burst buffers over several orders of magnitude, all waiting
at once. The naive reference is an array of instants: of each second what is free, as numpy vectors.
It is far too slow for a whole plan, so both place the last jobs beside all others.
"""

import random
import time

import numpy as np

from understudy.controller.scheduling.profile import Profile
from understudy.controller.scheduling.resources import Resources

TOTALS = {"cpus": 128, "bb": 1000}
KINDS = Resources(TOTALS)
LAST = 20  # jobs that are also placed in the array
LONGEST_S = 61_440


def jobs(count):
    """(CPUs, burst buffer, seconds) of each."""
    chance = random.Random(1)
    return [
        (
            int(2 ** chance.uniform(0, 7)),
            chance.randrange(500) if chance.random() < 0.5 else 0,
            int(60 * 2 ** chance.uniform(0, 10)),
        )
        for _ in range(count)
    ]


def packed(drawn):
    return [(KINDS.need({"cpus": cpus, "bb": bb}), length) for cpus, bb, length in drawn]


def planned(profile, needs):
    """Each job at its earliest start: the starts."""
    starts = []
    for amounts, length in needs:
        start = profile.earliest(amounts, length, 0)
        profile.reserve(start, start + length, amounts)
        starts.append(start)
    return starts


def as_array(profile, more):
    """What is free in each second, with room for so many jobs more."""
    ends = [min(step.end, profile.times[-1] + more * LONGEST_S) for step in profile.steps()]
    rows = [list(KINDS.amounts(amounts).values()) for amounts in profile.amounts]
    return np.repeat(np.array(rows).T, np.diff([0, *ends]), axis=1)


def planned_by_seconds(free, drawn):
    starts = []
    for cpus, bb, length in drawn:
        enough = np.cumsum((free[0] >= cpus) & (free[1] >= bb))
        start = 0
        if enough[length - 1] < length:
            start = int(np.argmax(enough[length:] - enough[:-length] == length)) + 1
        free[:, start : start + length] -= [[cpus], [bb]]
        starts.append(start)
    return starts


def timed(action, times=1):
    """(what it gives, the least seconds of CPU that it took)."""
    least = float("inf")
    for _ in range(times):
        begin = time.process_time()
        given = action()
        least = min(least, time.process_time() - begin)
    return given, least


def bench_plan(count):
    drawn = jobs(count)
    needs = packed(drawn)
    _, seconds = timed(lambda: planned(Profile(0, KINDS), needs), max(5000 // count, 1))
    profile = Profile(0, KINDS)
    planned(profile, needs[:-LAST])
    say(f"plan of {count:,} jobs", seconds * 1e3, "ms")
    starts, ours = timed(lambda: planned(profile.copy(), needs[-LAST:]), 5)
    free = as_array(profile, LAST)
    naive, theirs = timed(lambda: planned_by_seconds(free.copy(), drawn[-LAST:]))
    assert starts == naive
    say(f"the last {LAST} of {count:,}, beside an array of seconds", theirs / ours, "times quicker")
    _, copying = timed(lambda: [profile.copy() for _ in range(100)], 5)
    say(f"a copy of the plan of {count:,}", copying * LAST / ours / 100, "jobs planned")


def bench_orders():
    needs = packed(jobs(40))
    base = Profile(0, KINDS)
    planned(base, needs[:10])

    def search():
        order, chance = needs[10:], random.Random(1)
        for _ in range(189):
            i, k = chance.randrange(30), chance.randrange(30)
            order[i], order[k] = order[k], order[i]
            planned(base.copy(), order)

    _, seconds = timed(search, 10)
    say("189 orders of 30 jobs: a search of a plan-based policy", seconds * 1e3, "ms")


def say(what, value, unit):
    print(what, value, unit, sep="\t", flush=True)


if __name__ == "__main__":
    bench_plan(1_000)
    bench_plan(10_000)
    bench_orders()
