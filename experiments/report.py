"""A run's report: one HTML file that needs nothing else, readable by day and by night, with or
without a pointer.

Place: the last step of a run. Pure: records, summary and configuration in, text out. Figures and
tables are made here; what is explored, in the browser (`explorer/`).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.drawing import Plot, class_axis, duration, log_axis, wait_axis
from understudy.experiments.explorer import page as explorer
from understudy.experiments.explorer.packing import Run
from understudy.experiments.metrics import Columns, has_never_started
from understudy.experiments.records import REJECTED
from understudy.experiments.series import size_classes
from understudy.experiments.watched import Watched
from understudy.model.conf import SlurmConfig, read_text
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.experiments.metrics import Group, Summary
    from understudy.experiments.records import JobRecord
    from understudy.experiments.series import SizeClass

_STARTED_BY: Final = {
    "Main": "by the main scheduler",
    "Backfill": "by the backfill scheduler",
    "Submit": "as they were submitted",
}
_BOX_HEIGHT: Final = 300
_NO_JOB_RAN: Final = "<section><h2>No job ran</h2><p>So there are no figures.</p></section>"
_GROUPS_SHOWN: Final = 50
NONE_RAN: Final = "\N{EN DASH}"

_LIGHT: Final = """color-scheme: light; --page: #f7f7f5; --card: #ffffff; --ink: #1b1d21;
  --soft: #5b616b; --line: #e3e4e6; --axis: #9aa0a8; --others: #a9adb5; --faint: #dfe1e4;
  --blue: #2a6fc9; --blue-wash: #2a6fc933; --orange: #c9621b; --orange-wash: #c9621b38;
  --teal: #13857b; --teal-wash: #13857b30; --violet: #7656c4; --violet-wash: #7656c430;"""
_DARK: Final = """color-scheme: dark; --page: #15171a; --card: #1d2024; --ink: #e9eaec;
  --soft: #a2a8b1; --line: #30343a; --axis: #6d747e; --others: #747b86; --faint: #33373d;
  --blue: #6ba6f0; --blue-wash: #6ba6f033; --orange: #ec9553; --orange-wash: #ec955338;
  --teal: #48bcae; --teal-wash: #48bcae30; --violet: #a78df0; --violet-wash: #a78df030;"""
# as the system says, unless the page's own choice is there
_THEMES: Final = f""":root {{ {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{ {_DARK} }} }}
:root[data-theme="dark"] {{ {_DARK} }}
"""
_RULES: Final = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; } h2 { font-size: 17px; margin: 0 0 2px; }
p { margin: 0 0 10px; color: var(--soft); max-width: 78ch; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 18px 20px; margin-top: 18px; position: relative; }
.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: 12px; margin-top: 20px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 12px 14px; }
@media (max-width: 620px) { .tiles { grid-template-columns: repeat(2, 1fr); } }
.tile b { display: block; font-size: 22px; font-weight: 600; letter-spacing: -.01em; }
  .tile span { color: var(--soft); font-size: 13px; }
svg.plot { display: block; width: 100%; height: auto; overflow: visible; }
.grid { stroke: var(--line); } .axis { stroke: var(--axis); } .tick { fill: var(--soft);
  font-size: 12px; font-variant-numeric: tabular-nums; }
.title { fill: var(--soft); font-size: 12px; }
.box .body { stroke-width: 1.5; } .box .whisker, .box .median { fill: none; stroke-width: 1.5; }
  .box .median { stroke-width: 2.5; }
.box .largest { fill: none; stroke-width: 1.5; } .box .target { fill: transparent; }
  .box:hover .target { fill: var(--line); opacity: .6; }
.wait .body { fill: var(--teal-wash); stroke: var(--teal); }
  .wait .whisker, .wait .median, .wait .largest { stroke: var(--teal); }
.wait .mean { fill: var(--teal); }
.slow .body { fill: var(--violet-wash); stroke: var(--violet); }
  .slow .whisker, .slow .median, .slow .largest { stroke: var(--violet); }
.slow .mean { fill: var(--violet); }
.legend { list-style: none; margin: 6px 0 8px; padding: 0; display: flex; flex-wrap: wrap;
  gap: 4px 18px; font-size: 13px; color: var(--soft); }
.key { display: inline-block; width: 14px; height: 10px; margin-right: 6px; border-radius: 2px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px;
  font-variant-numeric: tabular-nums; }
th, td { padding: 5px 10px; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 500; } th:first-child, td:first-child { text-align: left; }
table.facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
  table.facts td:first-child { color: var(--soft); width: 15em; }
details { margin-top: 14px; } summary { cursor: pointer; color: var(--soft); }
pre { overflow-x: auto; background: var(--page); border: 1px solid var(--line);
  border-radius: 8px; padding: 12px; font-size: 12.5px; }
#tip { position: fixed; pointer-events: none; visibility: hidden; background: var(--card);
  color: var(--ink); border: 1px solid var(--axis);
  border-radius: 6px; padding: 6px 10px; font-size: 13px; white-space: pre;
    font-variant-numeric: tabular-nums; box-shadow: 0 2px 10px #0003; }
"""
STYLE: Final = _THEMES + _RULES


@dataclass(frozen=True, slots=True)
class Told:
    """A run as its folder has it. `cpus`: the machine's size; `attempts`: earlier runs of jobs that
    were requeued; `by`: groups of its jobs, as `metrics.groups` has them.
    """

    records: Sequence[JobRecord]
    summary: Summary
    cpus: int
    title: str = "Replay"
    config: Mapping[str, Any] = field(default_factory=dict)
    slurm_conf: str = ""
    by: Mapping[str, Sequence[Group]] = field(default_factory=dict)
    attempts: Sequence[JobRecord] = ()
    watched: Watched = field(default_factory=Watched)

    def explored(self) -> Run:
        """What of it is explored. A configuration that cannot be read has no nodes that are idle
        all the time.
        """
        try:
            conf = read_text(self.slurm_conf)
        except (ConfigError, ValueError):
            conf = SlurmConfig("slurm.conf")
        zero = self.config.get("zero") if self.config.get("calendar") else None
        return Run(
            title=self.title,
            records=self.records,
            cpus=self.cpus,
            attempts=self.attempts,
            nodes=conf.node_names,
            zero=float(zero) if isinstance(zero, int | float) else None,
            half_life_s=conf.seconds("PriorityDecayHalfLife") or 0,
            watched=self.watched,
        )


def report(told: Told, other: Told | None = None) -> str:
    """The page of a run, or of two beside each other."""
    return _beside(told, other) if other else _alone(told)


def _alone(told: Told) -> str:
    summary = told.summary
    classes = size_classes(Columns.of(told.records))
    parts = [
        (
            f"<p>{summary.jobs:,} jobs on {told.cpus:,} CPUs, {duration(summary.makespan)} from "
            "the first submission to the last end.</p>"
        ),
        _without_a_run(told.records, summary),
        *([_tiles(summary)] if summary.ran else [_NO_JOB_RAN]),
        *([explorer.section()] if told.records else []),
        *([_schedulers(told)] if summary.ran else []),
        *([_by_size(classes), _groups(told.by)] if summary.ran else []),
        _figures([told]),
        _configuration(told),
    ]
    return _page(told.title, parts, [told] if told.records else [])


def _beside(told: Told, other: Told) -> str:
    runs = [told, other]
    parts = [
        "<p>Two runs, with the same axes. The second is dashed, or below the first.</p>",
        _figures(runs),
        *(_without_a_run(each.records, each.summary, each.title) for each in runs),
        explorer.section(),
        *(_schedulers(each, each.title) for each in runs if each.summary.ran),
        *(_configuration(each, each.title) for each in runs),
    ]
    return _page(f"{told.title} beside {other.title}", parts, runs)


def _page(title: str, parts: Sequence[str], explored: Sequence[Told]) -> str:
    scripts = explorer.scripts([each.explored() for each in explored]) if explored else ""
    style = STYLE + (explorer.style() if explored else "")
    theme = explorer.THEME if explored else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body><main>\n"
        f'<div class="top"><h1>{escape(title)}</h1>{theme}</div>\n'
        + "\n".join(parts)
        + f'\n</main><div id="tip" role="status"></div>\n{scripts}</body></html>\n'
    )


def _of(title: str) -> str:
    return f": {escape(title)}" if title else ""


def _schedulers(told: Told, title: str = "") -> str:
    """Who started how many jobs, and how long those had waited."""
    rows = []
    started: dict[str, list[JobRecord]] = {}
    for record in told.records:
        if record.start is not None and record.end is not None:
            started.setdefault(record.scheduled_by, []).append(record)
    if not any(started):
        return ""
    work = {name: sum(r.cpus * (r.run or 0) for r in jobs) for name, jobs in started.items()}
    for name, jobs in sorted(started.items()):
        waits = sorted(r.wait or 0 for r in jobs)
        rows.append(
            (
                _STARTED_BY.get(name, name or "(not told)"),
                f"{len(jobs):,}",
                f"{100 * len(jobs) / told.summary.ran:.1f} %",
                f"{100 * work[name] / (sum(work.values()) or 1):.1f} %",
                duration(waits[(len(waits) - 1) // 2]),
                duration(sum(waits) / len(waits)),
                duration(waits[-1]),
            )
        )
    names = (
        "started",
        "jobs",
        "of the jobs",
        "of the CPU time",
        "median wait",
        "mean wait",
        "longest",
    )
    tables = _table(names, rows) + _facts(_promises(told.summary))
    return f"<section><h2>Who started the jobs{_of(title)}</h2>{tables}</section>"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></'
        "table></div>"
    )


def _shown(seconds: float | None) -> str:
    return NONE_RAN if seconds is None else duration(seconds)


def _figure(value: float | None, form: str, unit: str = "") -> str:
    return NONE_RAN if value is None else f"{value:{form}}{unit}"


def _without_a_run(records: Sequence[JobRecord], summary: Summary, title: str = "") -> str:
    """How many jobs did not run to their end, and why."""
    rows = []
    for count, what, chosen in (
        (summary.refused, "were refused", lambda record: record.state == REJECTED),
        (summary.never_started, "never started", has_never_started),
        (summary.cancelled_before_start, "were cancelled before they started", None),
        (summary.unfinished, "had not ended", None),
    ):
        if count:
            reasons = Counter(
                record.reason or record.state
                for record in records
                if chosen is not None and chosen(record)
            ).most_common(10)
            why = "; ".join(f"{number:,} {reason}" for reason, number in reasons)
            rows.append(
                (f"{count:,} of {summary.jobs:,} jobs", f"{what}{': ' if why else ''}{why}")
            )
    if not rows:
        return ""
    return f"<section><h2>Jobs that did not run{_of(title)}</h2>{_facts(rows)}</section>"


def _groups(by: Mapping[str, Sequence[Group]]) -> str:
    """A table for each way to group jobs of which there are several groups."""
    names = (
        "jobs",
        "ran",
        "CPU hours",
        "mean wait",
        "50 % wait",
        "90 %",
        "95 %",
        "99 %",
        "longest",
        "mean slowdown",
    )
    parts = []
    for what, found in by.items():
        if what == "size" or len(found) < 2:
            continue
        rows = [
            (
                group.name or "(none)",
                f"{group.jobs:,}",
                f"{group.ran:,}",
                f"{group.cpu_seconds / 3600:,.1f}",
                *map(
                    _shown,
                    (
                        group.mean_wait,
                        group.wait_p50,
                        group.wait_p90,
                        group.wait_p95,
                        group.wait_p99,
                        group.max_wait,
                    ),
                ),
                _figure(group.mean_bounded_slowdown, ",.1f"),
            )
            for group in found[:_GROUPS_SHOWN]
        ]
        more = (
            f"<p>and {len(found) - _GROUPS_SHOWN:,} more, in summary.json</p>"
            if len(found) > _GROUPS_SHOWN
            else ""
        )
        parts.append(
            f"<section><h2>By {escape(what)}</h2>{_table((what, *names), rows)}{more}</section>"
        )
    return "\n".join(parts)


def _tiles(summary: Summary) -> str:
    tiles = (
        (f"{100 * summary.utilization:.1f} %", "of the machine in use"),
        (_shown(summary.mean_wait), f"mean wait of {summary.ran:,} jobs"),
        (_shown(summary.median_wait), "median wait"),
        (_shown(summary.max_wait), "longest wait"),
        (_figure(summary.mean_bounded_slowdown, ",.1f"), "mean bounded slowdown"),
        (f"{summary.wall_seconds:,.1f} s", "to replay it"),
        (f"{summary.jobs_per_second:,.0f}", "jobs replayed per second"),
        (f"{summary.speedup:,.0f}", "times real time"),
    )
    return (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile"><b>{value}</b><span>{name}</span></div>' for value, name in tiles
        )
        + "</div>"
    )


def _by_size(classes: Sequence[SizeClass]) -> str:
    if not classes:
        return "<section><h2>Wait and slowdown by job size</h2><p>No job has run.</p></section>"
    x = class_axis([c.label for c in classes], "CPUs of the job")
    waits = Plot(
        x, wait_axis(max(c.wait.largest for c in classes), "wait"), _BOX_HEIGHT, "wait by job size"
    )
    slowdowns = Plot(
        x,
        log_axis(max(c.slowdown.largest for c in classes), "bounded slowdown"),
        _BOX_HEIGHT,
        "bounded slowdown by job size",
    )
    width = min(44.0, 0.5 * waits.inner_width / len(classes))
    for number, c in enumerate(classes):
        head = f"{c.label} CPUs, {c.jobs:,} jobs\n"
        w, s = c.wait, c.slowdown
        waits.box(
            waits.at_x(number),
            width,
            w,
            "wait",
            head + f"median {duration(w.median)}, quartiles {duration(w.first_quartile)} and "
            f"{duration(w.third_quartile)}\n"
            f"5 to 95 %: {duration(w.low)} to {duration(w.high)}\n"
            f"mean {duration(w.mean)}, longest {duration(w.largest)}",
        )
        slowdowns.box(
            slowdowns.at_x(number),
            width,
            s,
            "slow",
            head + f"median {s.median:,.1f}, quartiles {s.first_quartile:,.1f} and "
            f"{s.third_quartile:,.1f}\n"
            f"5 to 95 %: {s.low:,.1f} to {s.high:,.1f}\n"
            f"mean {s.mean:,.1f}, largest {s.largest:,.1f}",
        )
    how = (
        "Box: the middle half of the jobs, with the median; whiskers: 5 to 95 %; dot: mean; "
        "ring: largest."
    )
    return (
        f"<section><h2>Wait by job size</h2><p>{how}</p>{waits.svg()}</section>\n"
        "<section><h2>Bounded slowdown by job size</h2><p>(wait + run) / run, runs shorter "
        f"than 10 s counted as 10 s. {how}</p>{slowdowns.svg()}"
        f"</section>\n<section><h2>The same in figures</h2>{_size_table(classes)}</section>"
    )


def _size_table(classes: Sequence[SizeClass]) -> str:
    work = sum(c.cpu_seconds for c in classes) or 1
    names = (
        "CPUs",
        "jobs",
        "share of CPU time",
        "median wait",
        "mean wait",
        "95 % wait",
        "longest wait",
        "median slowdown",
        "mean slowdown",
    )
    rows = [
        (
            c.label,
            f"{c.jobs:,}",
            f"{100 * c.cpu_seconds / work:.1f} %",
            duration(c.wait.median),
            duration(c.wait.mean),
            duration(c.wait.high),
            duration(c.wait.largest),
            f"{c.slowdown.median:,.1f}",
            f"{c.slowdown.mean:,.1f}",
        )
        for c in classes
    ]
    return _table(names, rows)


def _promises(summary: Summary) -> list[tuple[str, str]]:
    """How far promised starts moved, and how far from them jobs started."""
    if not summary.promised:
        return []
    return [
        (
            "promises",
            (
                f"to {summary.promised:,} jobs; "
                f"moved {_figure(summary.promise_moves, '.2f')} times, by "
                f"{_figure(summary.promise_shift, ',.0f', ' s')} in all (means); starts were "
                f"{_figure(summary.first_promise_error, ',.0f', ' s')} from the first, "
                f"{_figure(summary.last_promise_error, ',.0f', ' s')} from the last"
            ),
        )
    ]


def _figures(runs: Sequence[Told]) -> str:
    """A table of them, with a column for each run."""
    told = [dict(_figures_of(each.summary)) for each in runs]
    names = dict.fromkeys(name for each in told for name in each)
    rows = [(name, *(each.get(name, NONE_RAN) for each in told)) for name in names]
    if len(runs) == 1:
        return f"<section><h2>Key figures</h2>{_facts(rows)}</section>"
    head = ("", *(each.title for each in runs))
    return f"<section><h2>Key figures</h2>{_facts([head, *rows])}</section>"


def _figures_of(summary: Summary) -> list[tuple[str, str]]:
    states = ", ".join(f"{count:,} {state}" for state, count in summary.states.items())
    return [
        (
            "jobs",
            f"{summary.jobs:,} ({states})",
        ),
        ("utilisation", f"{summary.utilization:.5f}"),
        ("jobs that ran, of which all means are", f"{summary.ran:,}"),
        ("mean wait", _figure(summary.mean_wait, ",.2f", " s")),
        ("median wait", _figure(summary.median_wait, ",.1f", " s")),
        (
            "90, 95, 99 % wait",
            ", ".join(
                _figure(value, ",.0f", " s")
                for value in (summary.wait_p90, summary.wait_p95, summary.wait_p99)
            ),
        ),
        ("longest wait", _figure(summary.max_wait, ",.0f", " s")),
        ("mean bounded slowdown", _figure(summary.mean_bounded_slowdown, ",.3f")),
        (
            "50, 90, 95, 99 % slowdown",
            ", ".join(
                _figure(value, ",.1f")
                for value in (
                    summary.slowdown_p50,
                    summary.slowdown_p90,
                    summary.slowdown_p95,
                    summary.slowdown_p99,
                )
            ),
        ),
        *_promises(summary),
        *_losses(summary),
        ("makespan", f"{summary.makespan:,} s"),
        ("simulated time", f"{summary.simulated_seconds:,.0f} s"),
        ("wall time", f"{summary.wall_seconds:,.2f} s"),
        ("schedule", f"sha256 {summary.schedule_sha256}"),
    ]


def _losses(summary: Summary) -> list[tuple[str, str]]:
    """What was computed in vain, where something was."""
    if not (summary.requeued_runs or summary.node_failed_runs):
        return []
    hours = summary.lost_cpu_seconds / 3600
    return [
        (
            "lost work",
            (
                f"{hours:,.1f} CPU hours, in {summary.requeued_runs:,} runs that were requeued; "
                f"nodes that failed ended {summary.node_failed_runs:,} runs"
            ),
        )
    ]


def _configuration(told: Told, title: str = "") -> str:
    facts = [
        (key, value if isinstance(value, str) else json.dumps(value, default=str))
        for key, value in told.config.items()
    ]
    details = (
        f"<details><summary>slurm.conf</summary><pre>{escape(told.slurm_conf)}</pre></details>"
        if told.slurm_conf
        else ""
    )
    return (
        f"<section><h2>Configuration{_of(title)}</h2>{_facts(facts)}{details}</section>"
        if facts or details
        else ""
    )


def _facts(facts: Sequence[Sequence[str]]) -> str:
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in fact) + "</tr>" for fact in facts
    )
    return f'<table class="facts"><tbody>{rows}</tbody></table>'
