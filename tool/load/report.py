"""What a load has come to, for people: a table on the terminal and a page with pictures.

Place: tool/load. Pure: results in, text out. Where a second result is given (another cluster, or
real Slurm's, under the same load), both stand side by side.
"""

from __future__ import annotations

import itertools
import json
import math
from html import escape
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.drawing import Axis, Plot, legend, linear_axis
from understudy.experiments.report import STYLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from understudy.tool.load.run import Course
    from understudy.tool.load.samples import Sampler

    Result = Mapping[str, Any]
    _Labels = Sequence[tuple[str, Result]]
    _Lines = Mapping[str, Sequence[tuple[float, float]]]

_COLUMNS: Final = ("p50_ms", "p90_ms", "p99_ms", "p99_9_ms", "max_ms")
_HEADS: Final = ("p50", "p90", "p99", "p99.9", "longest")
_HEIGHT: Final = 240
_CSS: Final = ("c0", "c1", "c2", "c3", "c4", "c5")
_MORE_STYLE: Final = """
.c0 { stroke: var(--blue); } .c1 { stroke: var(--orange); } .c2 { stroke: var(--teal); }
.c3 { stroke: var(--violet); } .c4 { stroke: #b0342d; } .c5 { stroke: var(--axis); }
svg .c0, svg .c1, svg .c2, svg .c3, svg .c4, svg .c5 { fill: none; stroke-width: 1.5; }
.key.c0 { background: var(--blue); } .key.c1 { background: var(--orange); }
.key.c2 { background: var(--teal); } .key.c3 { background: var(--violet); }
.key.c4 { background: #b0342d; } .key.c5 { background: var(--axis); }
svg .beside { stroke-dasharray: 5 3; } .key.beside { opacity: 0.5; }
.bad { color: #b0342d; font-weight: 600; }
"""


def live_line(course: Course, sampler: Sampler) -> str:
    """One line of what a load is at."""
    last = course.seconds[-1]
    streams = last["streams"].values()
    sample = sampler.samples[-1] if sampler.samples else {}
    daemons: dict[str, Any] = sample.get("daemons", {})
    controller: dict[str, Any] = daemons.get("controller") or next(iter(daemons.values()), {})
    return (
        f"{last['at']:7.1f} s  answered {sum(each['answered'] for each in streams):6,}/s  "
        f"p50 {_longest(streams, 'p50_ms'):9,.2f} ms  p99 {_longest(streams, 'p99_ms'):9,.2f} ms  "
        f"unanswered {last['waiting']:6,}  errors "
        f"{sum(sum(tally.errors.values()) for tally in course.streams.values()):5,}  "
        f"pending {sample.get('pending', 0):7,}  running {sample.get('running', 0):6,}  "
        f"{controller.get('mb', 0):6,.0f} MB"
    )


def _longest(streams: Any, name: str) -> float:
    return max((each[name] for each in streams), default=0.0)


def table(result: Result) -> str:
    """The figures as lines of text."""
    rows = [("stream", "sent", "answered", "/s", *_HEADS, "errors")]
    for name, each in result["streams"].items():
        rows.append(
            (
                name,
                f"{each['sent']:,}",
                f"{each['answered']:,}",
                f"{each['per_second']:,.1f}",
                *(_ms(each[column]) for column in _COLUMNS),
                f"{sum(each['errors'].values()):,}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    lines += ["latencies in ms, from when each request was due", ""]
    for name, each in result["daemons"].items():
        lines.append(
            f"{name}: {each['cpu_s']:.1f} s of CPU, {each['mb_before']:.0f} MB before, at most "
            f"{each['mb_peak']:.0f}, {each['mb_after']:.0f} afterwards"
        )
    lines += [f"controller: {name}: {text}" for name, text in controller_figures(result).items()]
    lines += verdict(result)
    return "\n".join(lines)


def verdict(result: Result) -> list[str]:
    """Whether all went well, in sentences."""
    lines = [
        f"{result['acknowledged']:,} jobs were acknowledged, "
        + (
            f"{result['lost']:,} of them are lost"
            if not result["not_asked"]
            else f"but the cluster could not be asked for them: {result['not_asked']}"
        )
    ]
    for kind, word in (("errors", "error"), ("refusals", "refused, as expected")):
        for name, each in result["streams"].items():
            lines += [
                f"{word}: {name}: {text} ({count:,} times)" for text, count in each[kind].items()
            ]
    if result.get("forgotten"):
        lines.append(
            f"{result['forgotten']:,} of them were seen to end, and forgotten by the controller "
            "since (MinJobAge)"
        )
    lines += [
        f"{text}: what it sent since its last word is not counted"
        for text in result.get("broken", ())
    ]
    unanswered = sum(each["sent"] - each["answered"] for each in result["streams"].values())
    if unanswered:
        lines.append(f"{unanswered:,} requests were given up without an answer")
    if result["sent_late"]["fell_behind"]:
        lines.append(_behind(result))
    return lines


def _behind(result: Result) -> str:
    return (
        "The sending processes fell behind (1 % of the requests left "
        f"{result['sent_late']['p99_ms']:,.0f} ms late or more): latencies are theirs as "
        "much as the cluster's. More --processes, or a lower --rate."
    )


def _ms(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


# --- the page -------------------------------------------------------------------------------------


def page(result: Result, beside: Result | None = None) -> str:
    """One HTML file that needs nothing else."""
    results = [result] if beside is None else [result, beside]
    labels = _labels(results)
    parts = [
        f"<h1>Load: {escape(result['name'])}</h1>",
        *(f"<p>{escape(_subject(each, label))}</p>" for label, each in labels),
        _tiles(result),
        _latency_table(labels),
        _errors(labels),
        *_pictures(labels),
        _controller_table(labels),
        _daemon_table(labels),
        (
            f"<section><details><summary>The load</summary><pre>"
            f"{escape(json.dumps(result['plan'], indent=1))}</pre></details></section>"
        ),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Load: {escape(result['name'])}</title><style>{STYLE}{_MORE_STYLE}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _labels(results: Sequence[Result]) -> list[tuple[str, Result]]:
    """The results with what tells them apart: nothing where there is one."""
    if len(results) == 1:
        return [("", results[0])]
    for keys in (("cluster",), ("cluster", "driver"), ("cluster", "driver", "name")):
        names = [", ".join(result[key] for key in keys) for result in results]
        if len({*names}) == len(names):
            return list(zip(names, results, strict=True))
    first, second = results
    return [(f"{first['cluster']} (this load)", first), (f"{second['cluster']} (beside)", second)]


def _subject(result: Result, label: str) -> str:
    facts = result["machine"]
    return (
        f"{label or result['cluster']}, {result['nodes']:,} nodes, driver {result['driver']}, "
        f"{result['seconds']:,.0f} s, seed {result['plan']['seed']}. Machine: {facts['cpus']} CPUs "
        f"({facts['cpu']}), {facts['memory_mb']:,} MB, load {facts['load_before']:.1f} before."
    )


def _tiles(result: Result) -> str:
    streams = result["streams"].values()
    errors = sum(sum(each["errors"].values()) for each in streams)
    tiles = (
        (f"{sum(each['answered'] for each in streams) / max(result['seconds'], 1e-9):,.0f} /s",
         "requests answered", False),
        (f"{result['acknowledged']:,}", "jobs acknowledged", False),
        (f"{result['lost']:,}", "of them lost", result["lost"] > 0),
        (f"{errors:,}", "unexpected errors", errors > 0),
    )  # fmt: skip
    return (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile"><b{_bad(is_bad)}>{value}</b><span>{what}</span></div>'
            for value, what, is_bad in tiles
        )
        + "</div>"
    )


def _bad(is_bad: bool) -> str:
    return ' class="bad"' if is_bad else ""


def _latency_table(labels: _Labels) -> str:
    rows = []
    for name in dict.fromkeys(name for _, result in labels for name in result["streams"]):
        for label, result in labels:
            each = result["streams"].get(name)
            if each is None:
                continue
            cells = (
                f"{each['sent']:,}",
                f"{each['answered']:,}",
                f"{each['per_second']:,.1f}",
                *(_ms(each[column]) for column in _COLUMNS),
            )
            rows.append(f"<tr><td>{escape(_of(name, label))}</td>{_cells(cells)}</tr>")
    heads = "".join(f"<th>{each}</th>" for each in ("sent", "answered", "/s", *_HEADS))
    result = labels[0][1]
    late = result["sent_late"]
    note = f'<p class="bad">{escape(_behind(result))}</p>' if late["fell_behind"] else ""
    return (
        "<section><h2>Latency</h2><p>Milliseconds from when a request was due until its answer was "
        "there. Requests are due by a schedule that does not wait for answers. The sending "
        f"processes themselves were late by {late['p50_ms']:g} ms (median), {late['p99_ms']:g} ms "
        f"(99 %).</p>{note}<div class='scroll'><table><tr><th></th>{heads}</tr>{''.join(rows)}"
        "</table></div></section>"
    )


def _of(name: str, label: str) -> str:
    return f"{name}: {label}" if label else name


def _cells(cells: Sequence[str]) -> str:
    return "".join(f"<td>{each}</td>" for each in cells)


def _errors(labels: _Labels) -> str:
    rows = [
        f"<tr><td>{escape(_of(name, label))}</td><td>{escape(text)}</td>"
        f"{_cells((word, f'{count:,}'))}</tr>"
        for label, result in labels
        for kind, word in (("errors", "error"), ("refusals", "expected"))
        for name, each in result["streams"].items()
        for text, count in each[kind].items()
    ]
    if not rows:
        return ""
    return (
        "<section><h2>Refusals and errors</h2><div class='scroll'><table>"
        f"<tr><th>stream</th><th>text</th><th></th><th>times</th></tr>{''.join(rows)}</table></div>"
        "</section>"
    )


def controller_figures(result: Result) -> dict[str, str]:
    """What the controller itself has told, as text by name; nothing of real Slurm's."""
    told = [each for each in result["samples"] if "connections" in each]
    if not told:
        return {}
    first, last = told[0], told[-1]

    def grown(key: str) -> int:
        return int(last.get(key, 0) - first.get(key, 0))

    def highest(key: str, factor: float, text: Callable[[float], str]) -> str:
        """Of the greatest since the controller began."""
        before, after = first.get(key, 0) * factor, last.get(key, 0) * factor
        return text(after) if after > before or not before else f"no more than {text(before)}"

    return {
        "loop late by at most, ms": highest("loop_longest_us", 1e-3, _ms),
        "garbage collected, times": f"{grown('collections'):,}",
        "... which took at most, ms": highest("collections_longest_us", 1e-3, _ms),
        "requests that waited for locks": f"{grown('lock_waits'):,}",
        "... at once, at most": highest("lock_longest_queue", 1, "{:,}".format),
        "requests that waited at all, at once, at most": (
            f"{max(each.get('requests_waiting', 0) for each in told):,}"
        ),
        "requests told to come again later": f"{grown('requests_backed_off'):,}",
        "connections, at most": f"{max(each['connections'] for each in told):,}",
        "MB received": f"{grown('bytes_received') / 1e6:,.1f}",
        "MB sent": f"{grown('bytes_sent') / 1e6:,.1f}",
    }


def _controller_table(labels: _Labels) -> str:
    columns = [(label, figures) for label, each in labels if (figures := controller_figures(each))]
    if not columns:
        return ""
    heads = "".join(f"<th>{escape(label)}</th>" for label, _ in columns)
    rows = "".join(
        f"<tr><td>{escape(name)}</td>{_cells([figures[name] for _, figures in columns])}</tr>"
        for name in columns[0][1]
    )
    return (
        f"<section><h2>The controller</h2><table><tr><th></th>{heads}</tr>{rows}</table></section>"
    )


def _daemon_table(labels: _Labels) -> str:
    rows = []
    for label, result in labels:
        for name, each in result["daemons"].items():
            cells = (
                f"{each['cpu_s']:.1f}",
                *(f"{each[key]:.0f}" for key in ("mb_before", "mb_peak", "mb_after")),
            )
            rows.append(f"<tr><td>{escape(_of(name, label))}</td>{_cells(cells)}</tr>")
    heads = "".join(
        f"<th>{each}</th>" for each in ("CPU, s", "MB before", "MB at most", "MB afterwards")
    )
    return (
        "<section><h2>Daemons</h2><p>Afterwards: when what was left of the load's jobs had been "
        f"cancelled.</p><table><tr><th></th>{heads}</tr>{''.join(rows)}</table></section>"
    )


def _pictures(labels: _Labels) -> list[str]:
    axis = "seconds since the load began"
    if any(result.get("is_virtual") for _, result in labels):
        axis = "seconds of the cluster's time since the load began"
    drawn = [_lines_of(result) for _, result in labels]
    pictures = []
    for place, (title, unit, is_log) in enumerate(_PICTURES):
        groups = [(label, lines[place]) for (label, _), lines in zip(labels, drawn, strict=True)]
        if any(line for _, group in groups for line in group.values()):
            pictures.append(picture(title, unit, groups, is_log=is_log, axis=axis))
    return pictures


_PICTURES: Final = (  # the title of each, its unit, and whether by powers of ten
    ("Answered, each second", "requests", False),
    ("Latency, 50 %", "ms", True),
    ("Latency, 99 %", "ms", True),
    ("Requests sent and not answered", "requests", False),
    ("Jobs", "jobs", False),
    ("The controller's loop, each second", "ms", True),
    ("Bytes of the controller, each second", "kB", False),
    ("Waiting in the controller", "requests", False),
    ("Messages of agents", "messages", False),
    ("CPUs in use", "CPUs", False),
    ("Memory", "MB", False),
)


def _lines_of(result: Result) -> list[_Lines]:
    """What each of the pictures shows of a load."""
    over_time, samples = result["over_time"], result["samples"]

    def latencies(key: str) -> _Lines:
        return {
            name: [
                (second["at"], second["streams"][name][key])
                for second in over_time
                if name in second["streams"] and second["streams"][name]["answered"]
            ]
            for name in result["streams"]
        }

    def of_samples(keys: Mapping[str, str]) -> _Lines:
        return {
            label: [(each["at"], each[key]) for each in samples if key in each]
            for label, key in keys.items()
        }

    memory: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        for name, use in sample["daemons"].items():
            memory.setdefault(name, []).append((sample["at"], use["mb"]))
    return [
        _answered(result),
        latencies("p50_ms"),
        latencies("p99_ms"),
        {"unanswered": [(second["at"], float(second["waiting"])) for second in over_time]},
        of_samples({"pending": "pending", "running": "running"}),
        _rates(samples, {"late in all, by ten looks": "loop_us",
                         "collecting garbage": "collections_us"}, 0.001),
        _rates(samples, {"received": "bytes_received", "sent": "bytes_sent"}, 0.001),
        of_samples({"for a turn, locks or a listing's end": "requests_waiting",
                    "of them for locks": "lock_waiting"}),
        of_samples({"in flight": "agents", "queued": "agent_queue"}),
        _cpu(samples),
        memory,
    ]  # fmt: skip


def _answered(result: Result) -> _Lines:
    """Of each stream, how many were answered in a second."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in result["streams"]}
    before = 0.0
    for second in result["over_time"]:
        span = second["at"] - before
        before = second["at"]
        for name, each in second["streams"].items():
            if span > 0:
                found[name].append((before, each["answered"] / span))
    return found


def _rates(samples: Sequence[Mapping[str, Any]], keys: Mapping[str, str], factor: float) -> _Lines:
    """Of numbers that only grow, how much in a second."""
    return {
        label: [
            (after["at"], (after[key] - before[key]) * factor / (after["at"] - before["at"]))
            for before, after in itertools.pairwise(each for each in samples if key in each)
            if after["at"] > before["at"]
        ]
        for label, key in keys.items()
    }


def _cpu(samples: Sequence[Mapping[str, Any]]) -> _Lines:
    """How many each daemon used, in real time."""
    found: dict[str, list[tuple[float, float]]] = {}
    for before, after in itertools.pairwise(samples):
        span = after.get("real", after["at"]) - before.get("real", before["at"])
        for name, use in after["daemons"].items():
            if name in before["daemons"] and span > 0:
                used = use["cpu_s"] - before["daemons"][name]["cpu_s"]
                found.setdefault(name, []).append((after["at"], used / span))
    return found


def picture(
    title: str, unit: str, groups: Sequence[tuple[str, _Lines]], *, is_log: bool, axis: str
) -> str:
    """A section with lines over time, of each load a group; those of the second are dashed."""
    points = [point for _, lines in groups for line in lines.values() for point in line]
    end = max((at for at, _ in points), default=1.0)
    largest = max((value for _, value in points), default=1.0)
    y = _log_axis(largest, unit) if is_log else linear_axis(max(largest, 1e-9), unit)
    plot = Plot(_seconds_axis(end, axis), y, _HEIGHT, title)
    keys = []
    for number, (label, lines) in enumerate(groups):
        for place, (name, line) in enumerate(lines.items()):
            css = _CSS[place % len(_CSS)] + " beside" * number
            keys.append((css, _of(name, label)))
            if line:
                path = "L".join(f"{plot.at_x(at):.1f},{plot.at_y(value):.1f}" for at, value in line)
                plot.marks.append(f'<path class="{css}" d="M{path}"/>')
    return f"<section><h2>{escape(title)}</h2>{legend(keys)}{plot.svg()}</section>"


def _seconds_axis(end: float, title: str) -> Axis:
    axis = linear_axis(max(end, 1.0), title)
    place: Callable[[float], float] = lambda at: min(max(axis.place(at), 0.0), 1.0)  # noqa: E731
    return Axis(place, axis.ticks, axis.title)


def _log_axis(largest: float, title: str) -> Axis:
    """From a tenth by powers of ten."""
    decades = max(1, math.ceil(math.log10(max(largest, 1.0)) + 1))
    ticks = [(10.0 ** (power - 1), f"{10.0 ** (power - 1):,g}") for power in range(decades + 1)]
    return Axis(lambda value: (math.log10(max(value, 0.1)) + 1) / decades, ticks, title)
