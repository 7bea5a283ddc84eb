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
    unanswered = sum(each["sent"] - each["answered"] for each in result["streams"].values())
    if unanswered:
        lines.append(f"{unanswered:,} requests were given up without an answer")
    if result["sent_late"]["fell_behind"]:
        lines.append(
            "The sending processes fell behind (1 % of the requests left "
            f"{result['sent_late']['p99_ms']:,.0f} ms late or more): latencies are theirs as "
            "much as the cluster's. More --processes, or a lower --rate."
        )
    return lines


def _ms(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


# --- the page -------------------------------------------------------------------------------------


def page(result: Result, beside: Result | None = None) -> str:
    """One HTML file that needs nothing else."""
    results = [result] if beside is None else [result, beside]
    parts = [
        f"<h1>Load: {escape(result['name'])}</h1>",
        f"<p>{escape(_subject(result))}</p>",
        _tiles(result),
        _latency_table(results),
        _errors(result),
        *_pictures(result),
        _controller_table(results),
        _daemon_table(results),
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


def _subject(result: Result) -> str:
    facts = result["machine"]
    return (
        f"{result['cluster']}, {result['nodes']:,} nodes, driver {result['driver']}, "
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


def _latency_table(results: Sequence[Result]) -> str:
    rows = []
    for name in results[0]["streams"]:
        for result in results:
            each = result["streams"].get(name)
            if each is None:
                continue
            label = name if len(results) == 1 else f"{name}: {result['cluster']}"
            cells = (
                f"{each['sent']:,}",
                f"{each['answered']:,}",
                f"{each['per_second']:,.1f}",
                *(_ms(each[column]) for column in _COLUMNS),
            )
            rows.append(f"<tr><td>{escape(label)}</td>{_cells(cells)}</tr>")
    heads = "".join(f"<th>{each}</th>" for each in ("sent", "answered", "/s", *_HEADS))
    late = results[0]["sent_late"]
    note = f'<p class="bad">{escape(verdict(results[0])[-1])}</p>' if late["fell_behind"] else ""
    return (
        "<section><h2>Latency</h2><p>Milliseconds from when a request was due until its answer was "
        "there. Requests are due by a schedule that does not wait for answers. The sending "
        f"processes themselves were late by {late['p50_ms']:g} ms (median), {late['p99_ms']:g} ms "
        f"(99 %).</p>{note}<div class='scroll'><table><tr><th></th>{heads}</tr>{''.join(rows)}"
        "</table></div></section>"
    )


def _cells(cells: Sequence[str]) -> str:
    return "".join(f"<td>{each}</td>" for each in cells)


def _errors(result: Result) -> str:
    rows = [
        f"<tr><td>{escape(name)}</td><td>{escape(text)}</td>{_cells((word, f'{count:,}'))}</tr>"
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

    return {
        "loop late by at most, ms": _ms(last.get("loop_longest_us", 0) / 1000),
        "garbage collected, times": f"{grown('collections'):,}",
        "... which took at most, ms": _ms(last.get("collections_longest_us", 0) / 1000),
        "requests that waited for locks": f"{grown('lock_waits'):,}",
        "... at once, at most": f"{last['lock_longest_queue']:,}",
        "requests that waited at all, at once, at most": (
            f"{max(each.get('requests_waiting', 0) for each in told):,}"
        ),
        "requests told to come again later": f"{grown('requests_backed_off'):,}",
        "connections, at most": f"{max(each['connections'] for each in told):,}",
        "MB received": f"{grown('bytes_received') / 1e6:,.1f}",
        "MB sent": f"{grown('bytes_sent') / 1e6:,.1f}",
    }


def _controller_table(results: Sequence[Result]) -> str:
    columns = [found for result in results if (found := controller_figures(result))]
    if not columns:
        return ""
    rows = "".join(
        f"<tr><td>{escape(name)}</td>{_cells([each[name] for each in columns])}</tr>"
        for name in columns[0]
    )
    return f"<section><h2>The controller</h2><table>{rows}</table></section>"


def _daemon_table(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        prefix = f"{result['cluster']}: " if len(results) > 1 else ""
        for name, each in result["daemons"].items():
            cells = (
                f"{each['cpu_s']:.1f}",
                *(f"{each[key]:.0f}" for key in ("mb_before", "mb_peak", "mb_after")),
            )
            rows.append(f"<tr><td>{escape(prefix + name)}</td>{_cells(cells)}</tr>")
    heads = "".join(
        f"<th>{each}</th>" for each in ("CPU, s", "MB before", "MB at most", "MB afterwards")
    )
    return (
        "<section><h2>Daemons</h2><p>Afterwards: when what was left of the load's jobs had been "
        f"cancelled.</p><table><tr><th></th>{heads}</tr>{''.join(rows)}</table></section>"
    )


def _pictures(result: Result) -> list[str]:
    over_time = result["over_time"]
    names = list(result["streams"])

    def of_streams(key: str) -> dict[str, list[tuple[float, float]]]:
        return {
            name: [
                (second["at"], second["streams"][name][key])
                for second in over_time
                if name in second["streams"]
                and (key == "answered" or second["streams"][name]["answered"])
            ]
            for name in names
        }

    samples = result["samples"]

    def of_samples(
        keys: Mapping[str, str], factor: float = 1.0
    ) -> dict[str, list[tuple[float, float]]]:
        return {
            label: [(each["at"], each[key] * factor) for each in samples if key in each]
            for label, key in keys.items()
        }

    memory: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        for name, use in sample["daemons"].items():
            memory.setdefault(name, []).append((sample["at"], use["mb"]))
    unanswered = [(second["at"], float(second["waiting"])) for second in over_time]
    pictures = (
        ("Answered, each second", "requests", of_streams("answered"), False),
        ("Latency, 50 %", "ms", of_streams("p50_ms"), True),
        ("Latency, 99 %", "ms", of_streams("p99_ms"), True),
        ("Requests sent and not answered", "requests", {"unanswered": unanswered}, False),
        ("Jobs", "jobs", of_samples({"pending": "pending", "running": "running"}), False),
        ("The controller's loop, each second", "ms", _rates(samples, {
            "late in all, by ten looks": "loop_us", "collecting garbage": "collections_us"
            }, 0.001), True),
        ("Bytes of the controller, each second", "kB", _rates(samples, {
            "received": "bytes_received", "sent": "bytes_sent"}, 0.001), False),
        ("Waiting in the controller", "requests", of_samples({
            "for a turn, locks or a listing's end": "requests_waiting",
            "of them for locks": "lock_waiting"}), False),
        ("Messages of agents", "messages", of_samples(
            {"in flight": "agents", "queued": "agent_queue"}), False),
        ("CPUs in use", "CPUs", _cpu(samples), False),
        ("Memory", "MB", memory, False),
    )  # fmt: skip
    return [
        picture(title, unit, lines, is_log=is_log)
        for title, unit, lines, is_log in pictures
        if any(lines.values())
    ]


def _rates(
    samples: Sequence[Mapping[str, Any]], keys: Mapping[str, str], factor: float
) -> dict[str, list[tuple[float, float]]]:
    """Of numbers that only grow, how much in a second."""
    return {
        label: [
            (after["at"], (after[key] - before[key]) * factor / (after["at"] - before["at"]))
            for before, after in itertools.pairwise(each for each in samples if key in each)
        ]
        for label, key in keys.items()
    }


def _cpu(samples: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for before, after in itertools.pairwise(samples):
        span = after["at"] - before["at"]
        for name, use in after["daemons"].items():
            if name in before["daemons"] and span > 0:
                used = use["cpu_s"] - before["daemons"][name]["cpu_s"]
                found.setdefault(name, []).append((after["at"], used / span))
    return found


def picture(
    title: str, unit: str, lines: Mapping[str, Sequence[tuple[float, float]]], *, is_log: bool
) -> str:
    """A section with lines over time."""
    points = [point for line in lines.values() for point in line]
    end = max((at for at, _ in points), default=1.0)
    largest = max((value for _, value in points), default=1.0)
    y = _log_axis(largest, unit) if is_log else linear_axis(max(largest, 1e-9), unit)
    plot = Plot(_seconds_axis(end), y, _HEIGHT, title)
    for css, line in zip(_cycle(len(lines)), lines.values(), strict=True):
        if line:
            path = "L".join(f"{plot.at_x(at):.1f},{plot.at_y(value):.1f}" for at, value in line)
            plot.marks.append(f'<path class="{css}" d="M{path}"/>')
    keys = legend(list(zip(_cycle(len(lines)), lines, strict=True)))
    return f"<section><h2>{escape(title)}</h2>{keys}{plot.svg()}</section>"


def _cycle(count: int) -> list[str]:
    return [_CSS[number % len(_CSS)] for number in range(count)]


def _seconds_axis(end: float) -> Axis:
    axis = linear_axis(max(end, 1.0), "seconds since the load began")
    place: Callable[[float], float] = lambda at: min(max(axis.place(at), 0.0), 1.0)  # noqa: E731
    return Axis(place, axis.ticks, axis.title)


def _log_axis(largest: float, title: str) -> Axis:
    """From a tenth by powers of ten."""
    decades = max(1, math.ceil(math.log10(max(largest, 1.0)) + 1))
    ticks = [(10.0 ** (power - 1), f"{10.0 ** (power - 1):,g}") for power in range(decades + 1)]
    return Axis(lambda value: (math.log10(max(value, 0.1)) + 1) / decades, ticks, title)
