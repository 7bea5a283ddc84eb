"""The table and the picture of growth in docs/performance.md.

`python -m benchmarks.page PAGE RESULT.json ...` makes them again from results that are kept.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import results

if TYPE_CHECKING:
    from collections.abc import Sequence

BEGIN, END = "<!-- made by make bench -->\n", "<!-- end -->\n"
WIDTH, HEIGHT, EDGE = 640, 280, 60
COLOURS = {"growth-nodes": "#0b6e99", "growth-jobs": "#b4460f"}


def write(page: Path, *found: dict[str, Any]) -> None:
    """Put the tables of the results between the page's marks, and the picture beside the page."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{page}: there are no lines {BEGIN.strip()} and {END.strip()}")
    tables = "\n".join(results.table(each) for each in found)
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    page.write_text(f"{before}{BEGIN}{tables}{END}{after}")
    cases = {name: case for each in found for name, case in each["cases"].items()}
    if curves := {name: points(cases[name]) for name in COLOURS if name in cases}:
        page.with_name("growth.svg").write_text(picture(curves))


def points(case: dict[str, Any]) -> list[tuple[int, float]]:
    """(nodes or jobs, microseconds of a job): whichever of the two changes from row to row."""
    found = [
        (int(sizes[1]), int(sizes[2]), row.median)
        for row in results.rows(case["rounds"])
        if (sizes := re.fullmatch(r"(\d+) nodes, (\d+) jobs", row.what))
    ]
    place = 0 if len({nodes for nodes, _, _ in found}) > 1 else 1
    return [(each[place], each[2]) for each in found]


def picture(curves: dict[str, Sequence[tuple[int, float]]]) -> str:
    """What a job costs, over powers of two of the size."""
    sizes = [size for curve in curves.values() for size, _ in curve]
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    most = max(cost for curve in curves.values() for _, cost in curve) * 1.1

    def at(size: int, cost: float) -> tuple[float, float]:
        across = (math.log2(size) - low) / (high - low or 1)
        return EDGE + across * (WIDTH - 2 * EDGE), HEIGHT - 40 - cost / most * (HEIGHT - 70)

    bottom = HEIGHT - 40
    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="11">'
        ),
        '<rect width="100%" height="100%" fill="white"/>',
        f'<path d="M{EDGE} 20V{bottom}H{WIDTH - EDGE}" fill="none" stroke="#888"/>',
        f'<text x="{EDGE - 6}" y="26" text-anchor="end">{most:,.0f}</text>',
        f'<text x="{EDGE - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{EDGE}" y="14">microseconds of CPU a job</text>',
    ]
    for size in sorted(set(sizes)):
        x, _ = at(size, 0)
        out.append(f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="middle">{size:,}</text>')
    for number, (name, curve) in enumerate(curves.items()):
        places = [at(size, cost) for size, cost in curve]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        colour = COLOURS[name]
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        place = f'x="{EDGE + 160 * (number + 1)}" y="14"'
        out.append(f'<text {place} fill="{colour}">{name}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    write(Path(sys.argv[1]), *(json.loads(Path(name).read_text()) for name in sys.argv[2:]))
