"""Names that a sweep's file may use of its cells: figures, and what tells cells apart.

Place: between a sweep's file and its page. Pure.
"""

from __future__ import annotations

import dataclasses
import difflib
from typing import TYPE_CHECKING, Final

from understudy.experiments.metrics import Summary
from understudy.experiments.sweep.rows import MEASURED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.sweep.file import SweepFile

# of a summary: what differs from run to run, is no number, or is told elsewhere
NOT_FIGURES: Final = (
    *("wall_seconds", "speedup", "jobs_per_second", "schedule_sha256", "by", "states"),
    "simulated_seconds",
)
# figures of comparisons that a summary has not
FURTHER: Final = ("mean_turnaround", "mean_slowdown", "bsld_60", "usage")
FIGURES: Final = (
    *(field.name for field in dataclasses.fields(Summary) if field.name not in NOT_FIGURES),
    *FURTHER,
    *("cpu_hours", "cpu_hours_while_submitted"),
    *MEASURED,
)


def check_names(file: SweepFile) -> None:
    """See that the file's pictures and columns are of what there is.

    Raises:
        SweepError: one is not.
    """
    sweep = file.sweep
    axes = (*sweep.axes, "seed", *["execution"] * (sweep.executions > 1))
    asked = [("figures", name, "figure", FIGURES) for name in sweep.figures]
    for each in sweep.pictures:
        points = FIGURES if each.kind == "pareto" else axes
        what = "figure" if each.kind == "pareto" else "axis"
        asked.append(("pictures", each.x, what, points))
        if each.kind != "lines":
            asked.append(("pictures", each.y, what, points))
        asked += [("pictures", each.by, "axis", axes)] * bool(each.by)
        asked.append(("pictures", each.figure, "figure", FIGURES))
        asked += [("pictures", name, "figure", FIGURES) for name in each.more]
    for where, name, what, known in asked:
        if name not in known:
            raise file.fault([where], f"{where}: no {what} {name!r}{_meant(name, known)}")


def _meant(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f" (is {close[0]} meant?)" if close else f"; there are {', '.join(known)}"
