"""A plan as a picture: what runs at an instant, and what is planned, node by node over time.

Place: reads what the controller tells of its jobs; a plan is plain values, as `plan-SECONDS.json`
of a run folder has it. Pure.

Running jobs are drawn from their start to the end that their limit allows; waiting ones, paler,
from their planned start on, on the nodes on which they would run as things stand. Those whose nodes
nobody can tell are listed below the nodes. Times are seconds after the plan's zero.
"""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any, Final, TypedDict

from understudy.model.hostlist import expand
from understudy.model.nouns import many
from understudy.model.states import JobState

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS: Final = (
    "job_id",
    "name",
    "user_name",
    "state",
    "cpus",
    "nodes",
    "expected_nodes",
    "start_time",
    "expected_start",
    "time_limit_s",
)
STATES: Final = (int(JobState.PENDING), int(JobState.RUNNING))
_WIDTH: Final = 1100
_LEFT: Final = 70
_TALLEST, _HEIGHT = 14, 720  # of a node, of all of them
_LINE: Final = 12
_UNLIMITED_S: Final = 365 * 86_400
# Paul Tol's; on some of them letters are dark
_COLOURS: Final = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377")
_PALE: Final = frozenset({"#66ccee", "#ccbb44", "#ee6677"})
_ROUND_S: Final = (60, 300, 900, 3600, 7200, 10_800, 21_600, 43_200, 86_400)  # ours: between ticks
_MOST_TICKS: Final = 8
_LETTER: Final = 6.5  # the width of a digit
# in both the page and a drawing that stands alone
_COLOUR_STYLE: Final = """
:root { color-scheme: light dark; --page: #fff; --ink: #222; --soft: #555; --line: #ddd;
  --axis: #999; --now: #c00 }
@media (prefers-color-scheme: dark) { :root { --page: #15171a; --ink: #e9eaec; --soft: #a2a8b1;
  --line: #30343a; --axis: #6d747e; --now: #ff6b6b } }
"""
_STYLE: Final = """
svg { background: var(--page) } text { font: 11px system-ui, sans-serif; fill: var(--soft) }
rect.job { stroke: var(--page) } .planned { fill-opacity: .35; stroke-dasharray: 3 2 }
rect.planned { stroke: var(--axis) } .now { stroke: var(--now); stroke-width: 1.5 }
text.id { fill: #fff; pointer-events: none } text.dark { fill: #222 }
text.on-pale { fill: var(--ink) }
text.at { fill: var(--ink); font-weight: 600 } .tick { stroke: var(--line) }
.frame { fill: none; stroke: var(--axis) }
"""
_PAGE_STYLE: Final = """
body { font: 14px system-ui, sans-serif; margin: 1.5em; color: var(--ink); background: var(--page) }
h1 { font-size: 20px } svg { max-width: 100%; height: auto }
"""


class PlannedJob(TypedDict):
    """A job that runs, or waits with a planned start. Times in seconds after the plan's zero."""

    id: int
    name: str
    user: str
    cpus: int
    runs: bool
    start: int
    end: int  # by its limit
    nodes: str  # a host list expression; "" where nobody can tell


class Plan(TypedDict):
    """All jobs of a plan, at the second `at`; `waiting`: how many wait without a planned start."""

    at: int
    nodes: str
    jobs: list[PlannedJob]
    waiting: int


def plan_of(rows: Sequence[Sequence[Any]], at: int, zero: float, nodes: str) -> Plan:
    """From rows of COLUMNS. `zero` is in seconds since the epoch, `nodes` all nodes."""
    jobs: list[PlannedJob] = []
    waiting = 0
    for row in rows:
        told = dict(zip(COLUMNS, row, strict=True))
        runs = told["state"] == JobState.RUNNING
        start = told["start_time"] if runs else told["expected_start"]
        if start is None:
            waiting += 1
            continue
        limit_s = _UNLIMITED_S if told["time_limit_s"] is None else told["time_limit_s"]
        jobs.append(
            PlannedJob(
                id=told["job_id"],
                name=told["name"],
                user=told["user_name"],
                cpus=told["cpus"],
                runs=runs,
                start=int(start - zero),
                end=int(start - zero + limit_s),
                nodes=told["nodes"] if runs else told["expected_nodes"],
            )
        )
    return Plan(at=at, nodes=nodes, jobs=jobs, waiting=waiting)


def as_json(plan: Plan) -> str:
    """The text of its file."""
    return json.dumps(plan, indent=0) + "\n"


def duration(seconds: float) -> str:
    """`2d03:04:05`."""
    days, rest = divmod(int(seconds), 86_400)
    return f"{days}d" * bool(days) + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


class _Scale:
    """From seconds and nodes to places in the drawing."""

    def __init__(self, plan: Plan, ahead_s: int | None) -> None:
        at = plan["at"]
        last = max((job["end"] for job in plan["jobs"] if not job["runs"]), default=at)
        longest = max((job["end"] for job in plan["jobs"]), default=at)
        ahead = ahead_s or max(min(max(last, at + 3600), longest) - at, 3600)
        self.last = at + ahead
        first = min((job["start"] for job in plan["jobs"] if job["runs"]), default=at)
        self.first = max(first, at - ahead // 2)  # more of the past says little of the plan
        names = expand(plan["nodes"])
        self.place = {name: i for i, name in enumerate(names)}
        self.node = min(_TALLEST, _HEIGHT / max(len(names), 1))
        self.bottom = 20 + self.node * len(names)

    def x(self, second: float) -> float:
        span = max(self.last - self.first, 1)
        inside = min(max(second, self.first), self.last)
        return _LEFT + (_WIDTH - _LEFT - 10) * (inside - self.first) / span


def _runs(places: list[int]) -> list[tuple[int, int]]:
    """(first, how many) of neighbours."""
    found: list[tuple[int, int]] = []
    for place in sorted(places):
        if found and place == sum(found[-1]):
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((place, 1))
    return found


def _bar(job: PlannedJob, scale: _Scale, y: float, height: float) -> str:
    x = scale.x(job["start"])
    width = max(scale.x(job["end"]) - x, 0.8)
    colour = _COLOURS[job["id"] % len(_COLOURS)]
    kind = "job" if job["runs"] else "job planned"
    what = "runs since" if job["runs"] else "planned for"
    title = (
        f"job {job['id']} ({job['name']}) of {job['user']}: {job['cpus']} CPUs, {what} "
        f"{duration(job['start'])}, until {duration(job['end'])} at most; "
        f"{job['nodes'] or 'nodes not known'}"
    )
    bar = (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" fill="{colour}"><title>{escape(title)}</title></rect>'
    )
    name = str(job["id"])
    if height < _LINE - 2 or width < _LETTER * (len(name) + 1):
        return bar
    shade = ("dark" if colour in _PALE else "light") if job["runs"] else "on-pale"
    return (
        f'{bar}<text class="id {shade}" x="{x + 3:.1f}" y="{y + height / 2 + 4:.1f}">{name}</text>'
    )


def _bars(plan: Plan, scale: _Scale) -> tuple[list[str], float]:
    """The jobs, and where the drawing ends."""
    found: list[str] = []
    homeless: list[float] = []  # of each line below the nodes, until when it is taken
    for job in sorted(plan["jobs"], key=lambda job: (job["start"], job["id"])):
        if job["start"] >= scale.last:
            continue
        places = [scale.place[name] for name in expand(job["nodes"]) if name in scale.place]
        for first, count in _runs(places):
            found.append(_bar(job, scale, 20 + first * scale.node, count * scale.node))
        if not places:
            line = next((i for i, end in enumerate(homeless) if end <= job["start"]), len(homeless))
            homeless[line : line + 1] = [job["end"]]
            found.append(_bar(job, scale, scale.bottom + 24 + line * _LINE, _LINE - 2))
    return found, scale.bottom + 24 + len(homeless) * _LINE


def _ticks(first: float, last: float) -> list[int]:
    """Round times, at most some."""
    steps = (*_ROUND_S, *(86_400 * days for days in (2, 5, 10, 30, 60, 180, 365)))
    step = next((each for each in steps if (last - first) / each <= _MOST_TICKS), steps[-1])
    return list(range(-(-int(first) // step) * step, int(last) + 1, step))


def drawing(plan: Plan, ahead_s: int | None = None) -> str:
    """The plan as an SVG element; `ahead_s`: how much of the future, else all that is planned."""
    scale = _Scale(plan, ahead_s)
    bars, bottom = _bars(plan, scale)
    ticks = []
    for second in _ticks(scale.first, scale.last):
        x = scale.x(second)
        anchor = "end" if x > _WIDTH - 40 else "middle"
        ticks.append(
            f'<line class="tick" x1="{x:.1f}" y1="20" x2="{x:.1f}" y2="{scale.bottom:.1f}"/>'
            f'<text x="{x:.1f}" y="{bottom + 14:.1f}" text-anchor="{anchor}">'
            f"{duration(second)}</text>"
        )
    names = list(scale.place)
    step = max(1, round(_LINE / scale.node))
    labels = [
        f'<text x="{_LEFT - 4}" y="{20 + (i + 0.8) * scale.node:.1f}" text-anchor="end">'
        f"{escape(names[i])}</text>"
        for i in range(0, len(names), step)
    ]
    if bottom > scale.bottom + 24:
        labels.append(f'<text x="0" y="{scale.bottom + 33:.1f}">elsewhere</text>')
    now = scale.x(plan["at"])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 24:.0f}" '
        f'role="img" aria-label="What runs and what is planned at {duration(plan["at"])}">'
        f"<style>{_COLOUR_STYLE}{_STYLE}</style>{''.join(ticks)}"
        f'<rect class="frame" x="{_LEFT}" y="20" width="{_WIDTH - _LEFT - 10}" '
        f'height="{scale.bottom - 20:.1f}"/>{"".join(labels)}{"".join(bars)}'
        f'<line class="now" x1="{now:.1f}" y1="12" x2="{now:.1f}" y2="{bottom:.1f}"/>'
        f'<text class="at" x="{now:.1f}" y="10" text-anchor="middle">{duration(plan["at"])}</text>'
        "</svg>"
    )


def page(plan: Plan, title: str, ahead_s: int | None = None) -> str:
    """The drawing as a page that needs nothing else."""
    running = sum(job["runs"] for job in plan["jobs"])
    planned = len(plan["jobs"]) - running
    waiting = plan["waiting"]
    runs = many(running, "job")
    others = f", {many(waiting, 'job')} without a planned start" if waiting else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_COLOUR_STYLE}{_PAGE_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1><p>At {duration(plan['at'])}: {runs} running, "
        f"{planned:,} planned (pale){others}.</p>{drawing(plan, ahead_s)}</body></html>\n"
    )
