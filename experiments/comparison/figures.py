"""Figures of a cell: one workload under one policy.

Place: between a replay's records and tables. Pure.

Of the jobs that ran: wait = start - submit, turnaround = end - submit, slowdown = turnaround / run,
bounded slowdown with threshold tau = max(1, turnaround / max(run, tau)); its tau is in its name.
Makespan is the last end after the first submission, utilisation the processor time of jobs over
that of the machine within it, and likewise of the burst buffer, which a job holds from its start to
its end. `usage` is the same between the first and the last submission alone: over the makespan of a
trace that does not fill its machine it is decided by arrivals and equal for all policies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TAUS_S: Final = (10, 60, 600)
_PERCENT: Final = ("utilisation", "bb_utilisation", "usage", "bb_usage")
_WORDS: Final = {
    "mean_wait": "mean wait, s",
    "median_wait": "median wait, s",
    "wait_q3": "wait, third quartile, s",
    "max_wait": "longest wait, s",
    "mean_turnaround": "mean turnaround, s",
    "mean_slowdown": "mean slowdown",
    "bsld_10": "bounded slowdown, tau 10 s",
    "bsld_60": "bounded slowdown, tau 60 s",
    "bsld_600": "bounded slowdown, tau 600 s",
    "makespan": "makespan, s",
    "utilisation": "utilisation",
    "bb_utilisation": "buffer utilisation",
    "usage": "usage while jobs are submitted",
    "bb_usage": "buffer usage while jobs are submitted",
    "never_started": "jobs that never started",
}
FIGURES: Final = tuple(_WORDS)


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """The jobs of a cell as vectors; times in seconds from the workload's zero. `start` and `end`
    are NaN where the job has none.
    """

    submit: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    procs: NDArray[np.float64]
    buffer: NDArray[np.float64]  # units of the burst buffer, on all its processors


def words(figure: str) -> str:
    """What the figure is called in tables."""
    return _WORDS[figure]


def shown(figure: str, value: float) -> str:
    """The value as tables have it."""
    if figure in _PERCENT:
        return f"{100 * value:.2f} %"
    if abs(value) < 100 and figure != "never_started":
        return f"{value:.2f}"
    return f"{value:,.0f}"


def figures(ran: Ran, processors: int, capacity: int) -> dict[str, float]:
    """All FIGURES. `capacity` is that of the buffer, 0 if there is none: then its figures are 0.

    Raises:
        ValueError: no job ran.
    """
    is_over = ~np.isnan(ran.end)
    if not is_over.any():
        raise ValueError("no job ran")
    submit, start, end = ran.submit[is_over], ran.start[is_over], ran.end[is_over]
    wait, turnaround = start - submit, end - submit
    run = np.maximum(end - start, 1)
    zero, last = float(ran.submit.min()), float(ran.submit.max())
    makespan = float(end.max()) - zero
    within = np.maximum(np.minimum(end, last) - np.maximum(start, zero), 0)
    found = {
        "mean_wait": float(wait.mean()),
        "median_wait": float(np.median(wait)),
        "wait_q3": float(np.quantile(wait, 0.75)),
        "max_wait": float(wait.max()),
        "mean_turnaround": float(turnaround.mean()),
        "mean_slowdown": float((turnaround / run).mean()),
        "makespan": makespan,
        "never_started": float((~is_over).sum()),
    }
    for tau in TAUS_S:
        bounded = np.maximum(1, turnaround / np.maximum(run, tau))
        found[f"bsld_{tau}"] = float(bounded.mean())
    for prefix, held, most in (
        ("", ran.procs[is_over], processors),
        ("bb_", ran.buffer[is_over], capacity),
    ):
        for name, times, span in (
            ("utilisation", end - start, makespan),
            ("usage", within, last - zero),
        ):
            whole = most * span
            found[f"{prefix}{name}"] = float((held * times).sum() / whole) if whole else 0.0
    return {name: found[name] for name in FIGURES}
