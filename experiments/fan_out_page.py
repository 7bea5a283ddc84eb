"""A page on messages down trees of sockets: the time to reach all nodes and the load at the sender
over width and number of nodes, beside the model.

Place: after `understudy fanout` has measured (`tool/fan_out/`). Pure: measurements in, text out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from understudy.experiments.drawing import Axis, Plot, legend, log_axis
from understudy.experiments.report import STYLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HEIGHT: Final = 320
_COLOURS: Final = ("blue", "orange", "teal", "violet", "soft", "ink")
_OWN_STYLE: Final = (
    "".join(
        f".w{i} {{ stroke: var(--{colour}); fill: none; stroke-width: 1.6; }} "
        f".d{i} {{ fill: var(--{colour}); }} .key.k{i} {{ background: var(--{colour}); }}\n"
        for i, colour in enumerate(_COLOURS)
    )
    + ".model { stroke-dasharray: 4 4; opacity: .65; }\n"
)
_INTRODUCTION: Final = (
    "<h1>Fan-out through sockets</h1><p>One message to all nodes, and their answers merged on the "
    "way back. Each node is a hop of its own with a connection of its own.</p>"
)


@dataclass(frozen=True, slots=True)
class FanOutRow:
    """What one message to `nodes` nodes took, down a tree of this width (0: flat). Of several
    messages the medians; `slowest_s` is the longest.
    """

    nodes: int
    width: int
    levels: int
    seconds: float  # until the sender had the answers of all nodes
    slowest_s: float
    hop_s: float  # one message to one node, alone
    sender_cpu_s: float
    sender_messages: float
    sender_bytes: float
    cpu_s: float  # of all processes
    repeated: float  # nodes that had to be asked again

    @property
    def model_s(self) -> float:
        """What it would take if a level took as long as one hop alone: log_width(nodes) hops."""
        return self.levels * self.hop_s

    @property
    def width_shown(self) -> str:
        return "flat" if self.width == 0 else str(self.width)


def fan_out_page(rows: Sequence[FanOutRow], facts: Sequence[tuple[str, str]]) -> str:
    """The page. `facts`: the machine's and the options', names and values."""
    parts = [
        _INTRODUCTION,
        _plot(
            rows,
            "Time to reach all nodes",
            "Until the sender has all answers. Dashed: the model, as many hops one after another "
            "as the tree has levels (log_width N). All nodes are in a few processes here: where "
            "the CPUs are the bound, time grows with N instead.",
            "milliseconds",
            lambda row: 1000 * row.seconds,
            lambda row: 1000 * row.model_s,
        ),
        _plot(
            rows,
            "CPU time at the sender",
            "What the controller spends on the message: it grows with the width, not with N, "
            "unless it is flat.",
            "milliseconds of CPU",
            lambda row: 1000 * row.sender_cpu_s,
        ),
        _plot(
            rows,
            "Messages of the sender",
            "Those that the controller itself sends, each over a connection of its own.",
            "messages",
            lambda row: row.sender_messages,
        ),
        _table(rows),
        "<section><h2>Where</h2><table class='facts'>"
        + "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in facts)
        + "</table></section>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1"><title>Fan-out through sockets</title>'
        f"<style>{STYLE}{_OWN_STYLE}</style></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def _plot(
    rows: Sequence[FanOutRow],
    title: str,
    text: str,
    unit: str,
    value: Callable[[FanOutRow], float],
    model: Callable[[FanOutRow], float] | None = None,
) -> str:
    most = max(max(value(row), model(row) if model is not None else 0.0) for row in rows)
    plot = Plot(_nodes_axis(rows), log_axis(most, unit), _HEIGHT, title)
    widths = list(dict.fromkeys(row.width for row in rows))
    entries = []
    for i, width in enumerate(widths):
        colour = i % len(_COLOURS)
        of_width = sorted((row for row in rows if row.width == width), key=lambda row: row.nodes)
        _line(plot, of_width, value, f"w{colour}")
        if model is not None:
            _line(plot, of_width, model, f"w{colour} model")
        for row in of_width:
            plot.marks.append(
                f'<circle class="d{colour}" cx="{plot.at_x(row.nodes):.1f}" '
                f'cy="{plot.at_y(value(row)):.1f}" r="3.5"><title>{row.nodes:,} nodes, width '
                f"{row.width_shown}: {value(row):,.1f} {unit}</title></circle>"
            )
        entries.append((f"k{colour}", "flat" if width == 0 else f"width {width}"))
    return f"<section><h2>{title}</h2><p>{text}</p>{legend(entries)}{plot.svg()}</section>"


def _line(
    plot: Plot, rows: Sequence[FanOutRow], value: Callable[[FanOutRow], float], css: str
) -> None:
    for first, second in pairwise(rows):
        plot.marks.append(
            f'<path class="{css}" d="M{plot.at_x(first.nodes):.1f},{plot.at_y(value(first)):.1f}'
            f'L{plot.at_x(second.nodes):.1f},{plot.at_y(value(second)):.1f}"/>'
        )


def _nodes_axis(rows: Sequence[FanOutRow]) -> Axis:
    """Logarithmic, from the smallest to the largest number of nodes, each of which is named."""
    sizes = sorted({row.nodes for row in rows})
    low, high = math.log(sizes[0]), math.log(sizes[-1])
    span = high - low
    return Axis(
        lambda nodes: 0.03 + 0.94 * ((math.log(nodes) - low) / span if span else 0.5),
        [(float(size), f"{size:,}") for size in sizes],
        "nodes",
    )


def _table(rows: Sequence[FanOutRow]) -> str:
    lines = "".join(
        f"<tr><td>{row.nodes:,}</td><td>{row.width_shown}</td><td>{row.levels}</td>"
        f"<td>{1000 * row.seconds:,.1f}</td><td>{1000 * row.slowest_s:,.1f}</td>"
        f"<td>{1000 * row.model_s:,.1f}</td><td>{1000 * row.sender_cpu_s:,.1f}</td>"
        f"<td>{row.sender_messages:,.0f}</td><td>{row.sender_bytes:,.0f}</td>"
        f"<td>{1e6 * row.cpu_s / row.nodes:,.0f}</td><td>{row.repeated:,.0f}</td></tr>"
        for row in rows
    )
    heads = (
        "nodes", "width", "levels", "ms until all", "longest", "model, ms", "sender's CPU, ms",
        "its messages", "its bytes", "CPU a hop, µs", "asked again",
    )  # fmt: skip
    return (
        '<section><h2>Figures</h2><div class="scroll"><table><tr>'
        + "".join(f"<th>{head}</th>" for head in heads)
        + f"</tr>{lines}</table></div></section>"
    )
