"""The part of a report that is explored: what stands in the page, and the scripts that draw it.

Place: above `packing`, below the report. Reads the scripts beside it; they are put into the page
as they are, with uPlot before them, so that it needs no network.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from understudy.experiments.explorer.packing import pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.explorer.packing import Run

_HERE: Final = Path(__file__).parent
_LIBRARY: Final = "vendor/uPlot-1.6.31.iife.min.js"
_LIBRARY_STYLE: Final = "vendor/uPlot-1.6.31.min.css"
_LICENCE: Final = "vendor/uPlot-LICENSE.txt"
_SCRIPTS: Final = (
    "decode.js",
    "series.js",
    "colours.js",
    "stories.js",
    "gantt.js",
    "charts.js",
    "explore.js",
)
_COLOURS: Final = (
    ("user", "user"),
    ("account", "account"),
    ("qos", "QOS"),
    ("partition", "partition"),
    ("state", "state"),
    ("wait", "wait"),
    ("waited_for", "reason waited for longest"),
    ("scheduled_by", "who started it"),
)
_FIGURES: Final = (
    ("median", "median"),
    ("mean", "mean"),
    ("most", "longest"),
    ("jobs", "number of jobs"),
)
_MOVES: Final = (
    (
        "Time",
        (
            ("in", "+", "zoom in"),
            ("out", "\N{MINUS SIGN}", "zoom out"),
            ("left", "\N{LEFTWARDS ARROW}", "earlier"),
            ("right", "\N{RIGHTWARDS ARROW}", "later"),
        ),
    ),
    (
        "Nodes",
        (
            ("more", "+", "zoom in to nodes"),
            ("fewer", "\N{MINUS SIGN}", "zoom out of nodes"),
            ("up", "\N{UPWARDS ARROW}", "nodes before"),
            ("down", "\N{DOWNWARDS ARROW}", "nodes behind"),
        ),
    ),
)
THEME: Final = (
    '<label>Theme <select id="theme"><option value="">as the system</option>'
    '<option value="light">light</option><option value="dark">dark</option></select></label>'
)


@cache
def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def style() -> str:
    """The style sheets of what is explored."""
    return _text(_LIBRARY_STYLE) + _text("explore.css")


def section() -> str:
    """Where the pictures come."""
    moves = "".join(
        f'<span class="group">{what} '
        + "".join(
            f'<button type="button" data-do="{act}" aria-label="{name}" title="{name}">{sign}'
            "</button>"
            for act, sign, name in buttons
        )
        + "</span>"
        for what, buttons in _MOVES
    )
    return (
        '<div id="explorer"><noscript><p>The pictures need JavaScript; the figures below do not.'
        '</p></noscript><p id="wrong"></p><section><h2>Jobs by node</h2>'
        '<p class="note">Drag over the picture to zoom in, double-click to zoom out; Ctrl and the '
        "wheel zoom in time, Shift and the wheel in nodes; with the picture in focus so do "
        "+ \N{MINUS SIGN} [ ], arrows move, 0 shows all. A click keeps a job's story. Where jobs "
        'are smaller than a pixel, it has their mean colour. <span id="coarse"></span></p>'
        f'<div class="controls"><label>Colour by {_select("colour", _COLOURS)}</label>'
        '<label>Only <input id="only" list="names" placeholder="all" autocomplete="off"></label>'
        '<datalist id="names"></datalist>'
        '<label>Find job <input id="job" placeholder="its id" autocomplete="off"></label>'
        f'{moves}<button type="button" data-do="all">Show all</button></div>'
        '<ul class="legend" id="legend"></ul><div id="gantts"></div>'
        '<div id="story" role="status"></div>'
        '<h3>CPUs in use</h3><div class="chart" id="use"></div>'
        '<h3>Jobs that run</h3><div class="chart" id="running"></div>'
        '<h3>Jobs that wait</h3><div class="chart" id="queue"></div>'
        '<div id="nodes" hidden><h3>Nodes by state</h3><div id="states"></div></div>'
        '<h3>Use by <span id="by">user</span></h3><div class="controls"><label>Show '
        f"{_select('measure', _MEASURES)}</label></div>"
        '<div id="shares"></div><div id="fair" hidden><h3>Fair share by account</h3>'
        '<p class="note">Its part of all use until then, as the fair share counts it; dashed: what '
        'is due to it.</p><div id="due"></div></div></section>'
        '<section><h2>How long jobs wait</h2><p class="note">The share of the jobs that wait, or '
        "are slowed down, no more than that; of those that ran to their end. Bounded slowdown is "
        "(wait + run) / run, runs shorter than 10 s counted as 10 s.</p>"
        '<div class="pair"><div><h3>Wait</h3><div class="chart" id="waits"></div></div>'
        '<div><h3>Bounded slowdown</h3><div class="chart" id="slowdowns"></div></div></div>'
        "</section>"
        '<section><h2>Waits by size and length</h2><p class="note">Columns are CPUs, rows what '
        "jobs ran for.</p>"
        f'<div class="controls"><label>Wait {_select("figure", _FIGURES)}</label></div>'
        '<div id="heat"></div></section>'
        '<section id="promises" hidden><h2>How true promises were</h2><p class="note">How long '
        "after its promised start a job started; negative: before it.</p>"
        '<div class="chart" id="errors"></div></section></div>'
    )


_MEASURES: Final = (
    ("now", "CPUs in use, % of the machine"),
    ("decayed", "share of what was used, as the fair share counts it"),
)


def _select(name: str, options: Sequence[tuple[str, str]]) -> str:
    shown = "".join(f'<option value="{value}">{text}</option>' for value, text in options)
    return f'<select id="{name}">{shown}</select>'


def scripts(runs: Sequence[Run]) -> str:
    """The runs and what draws them."""
    own = "\n".join(map(_text, _SCRIPTS))
    return (
        f'<script type="text/plain" id="runs">{pack(runs)}</script>\n'
        f"<script>/*\n{_text(_LICENCE)}*/\n{_text(_LIBRARY)}</script>\n"
        f"<script>(() => {{\n'use strict';\n{own}}})();</script>\n"
    )
