"""Plots as an SVG file of their own, one below the other, with colours for light and dark.

Place: beside the drawing of reports, which leaves colours to its page. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from understudy.experiments.drawing import WIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.drawing import Plot

STYLE: Final = """
svg { --card: #ffffff; --ink: #1b1d21; --soft: #5b616b; --line: #e3e4e6; --axis: #9aa0a8;
  --wash: #2a6fc940; --one: #2a6fc9; --two: #c9621b; --three: #2b8a4b; --four: #8a4bb0;
  --five: #b0902b; --six: #b04b6e; }
@media (prefers-color-scheme: dark) { svg { --card: #1d2024; --ink: #e9eaec; --soft: #a2a8b1;
  --line: #30343a; --axis: #6d747e; --wash: #6ba6f040; --one: #6ba6f0; --two: #ec9553;
  --three: #6cc98c; --four: #c495e6; --five: #dfc36a; --six: #e68aa8; } }
text { font: 13px system-ui, sans-serif; fill: var(--soft); } text.name { fill: var(--ink); }
.ground { fill: var(--card); } .grid { stroke: var(--line); } .axis { stroke: var(--axis); }
.area { fill: var(--wash); stroke: var(--one); }
.s1 { --at: var(--one); } .s2 { --at: var(--two); } .s3 { --at: var(--three); }
.s4 { --at: var(--four); } .s5 { --at: var(--five); } .s6 { --at: var(--six); }
path.series { fill: none; stroke: var(--at); stroke-width: 2; } .dot { fill: var(--at); }
path.interval { fill: none; stroke: var(--at); stroke-width: 1.2; }
path.front { fill: none; stroke: var(--axis); stroke-dasharray: 5 4; }
circle.best { stroke: var(--ink); stroke-width: 1.5; }
rect.key { fill: var(--at); } text.light { fill: #ffffff; } text.dark { fill: #1b1d21; }
"""


def standing_alone(plots: Sequence[Plot]) -> str:
    """All of them as one file."""
    top, inner = 0, []
    for plot in plots:
        inner.append(
            re.sub(
                r'<svg class="plot ?[^"]*" ',
                f'<svg y="{top}" width="{WIDTH}" height="{plot.height}" ',
                plot.svg(),
                count=1,
            )
        )
        top += plot.height
    return framed(top, "".join(inner), "; ".join(plot.name for plot in plots))


def framed(height: int, inner: str, name: str) -> str:
    """An SVG file of what is in it; `name` is for those who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{name}"><style>{STYLE}</style>'
        f'<rect class="ground" width="100%" height="100%"/>{inner}</svg>\n'
    )
