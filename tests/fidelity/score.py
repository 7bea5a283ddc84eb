"""How close a schedule comes to recordings of real Slurm, beside how close they come to each other.

A recording, like the result of a replay, is a file of JSON objects, one a job: `job`, `state`,
`submit`, `start`, `end` in seconds (null if never), `nodes` as a host list.
"""

from __future__ import annotations

import json
from itertools import combinations, permutations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from understudy.model.hostlist import expand

if TYPE_CHECKING:
    from pathlib import Path

Schedule = dict[str, dict[str, Any]]


def load(path: Path) -> Schedule:
    """Times are cut to whole seconds, as Slurm reports them."""
    jobs = {}
    for line in map(json.loads, path.read_text().splitlines()):
        if "job" in line and line["state"] != "ARRAY_MASTER":
            nodes = line.get("nodes") or []
            times = {
                name: None if line.get(name) is None else int(line[name] // 1)
                for name in ("start", "end")
            }
            jobs[line["job"]] = {
                "state": line["state"].split()[0],
                "submit": line.get("submit"),
                "nodes": set(expand(nodes) if isinstance(nodes, str) else nodes),
                **times,
            }
    return jobs


def score(recordings: list[Schedule], schedule: Schedule) -> float:
    """1.0: as close to a recording as another run of real Slurm is; more is chance."""
    spread = fmean(agreement(one, other) for one, other in permutations(recordings, 2))
    return fmean(agreement(each, schedule) for each in recordings) / spread


def agreement(recorded: Schedule, schedule: Schedule) -> float:
    """Between 0 and 1: starts, their order, nodes, states, makespan and mean wait together."""
    both, neither = [], 0
    for job, line in recorded.items():
        mine = schedule.get(job)
        if mine and (line["start"] is None) == (mine["start"] is None):
            neither += line["start"] is None
            both += [(line, mine)] if line["start"] is not None else []

    def share(agrees: int) -> float:
        return (agrees + neither) / len(recorded)

    apart = [abs(line["start"] - mine["start"]) for line, mine in both]
    states = [
        job in schedule and schedule[job]["state"] == recorded[job]["state"] for job in recorded
    ]
    theirs, ours = makespan(recorded, recorded), makespan(schedule, recorded)
    waits = [
        (line["start"] - line["submit"], mine["start"] - (mine["submit"] or line["submit"]))
        for line, mine in both
        if line["submit"] is not None
    ]
    wait, my_wait = (fmean(column) for column in zip(*waits, strict=True)) if waits else (0.0, 0.0)
    return (
        0.30 * share(sum(each <= 3 for each in apart))
        + 0.10 * share(sum(each <= 10 for each in apart))
        + 0.15 * max(0.0, tau_b([(line["start"], mine["start"]) for line, mine in both]))
        + 0.25 * share(sum(line["nodes"] == mine["nodes"] for line, mine in both))
        + 0.10 * fmean(states)
        + 0.05 * (max(0.0, 1 - abs(ours - theirs) / theirs) if theirs else 1.0)
        + 0.05 * max(0.0, 1 - abs(my_wait - wait) / max(wait, 3.0))
    )


def makespan(schedule: Schedule, jobs: Schedule) -> int:
    """From the first start to the last end of those jobs, in seconds."""
    started = [
        schedule[job] for job in jobs if job in schedule and schedule[job]["start"] is not None
    ]
    ends = [line["end"] for line in started if line["end"] is not None]
    return max(ends) - min(line["start"] for line in started) if ends else 0


def tau_b(pairs: list[tuple[int, int]]) -> float:
    """Kendall's tau-b: 1 where both orders are the same."""
    agree = differ = only_first = only_second = 0
    for (first, second), (other_first, other_second) in combinations(pairs, 2):
        one, other = first - other_first, second - other_second
        if one and other:
            agree += one * other > 0
            differ += one * other < 0
        else:
            only_first += bool(one)
            only_second += bool(other)
    untied = agree + differ
    base = ((untied + only_first) * (untied + only_second)) ** 0.5
    return (agree - differ) / base if base else 1.0
