"""What a trace holds: counts, spans, quantiles, the load that it offers, and a picture of them.

Place: between a trace and `understudy trace show`. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.experiments.drawing import Plot, duration, linear_axis, time_axis
from understudy.experiments.standing_alone import standing_alone
from understudy.experiments.trace import TraceError
from understudy.experiments.transform import offered_load, processor_seconds
from understudy.model.nouns import many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.experiments.trace import Trace

_QUANTILES: Final = (0, 0.25, 0.5, 0.75, 0.95, 1)
_COLUMNS: Final = ("smallest", "quarter", "half", "3 quarters", "95 %", "largest")
_BARS: Final = 120  # of a picture
_HEIGHT: Final = 260


@dataclass(frozen=True, slots=True)
class Facts:
    """Times in seconds. Quantiles are the smallest, quartiles, 95 % and the largest."""

    jobs: int
    left_out: dict[str, int]
    bad_lines: int
    begins: int | None  # seconds since the epoch
    span: int  # from the first submission to the last
    processors: int  # of the machine; 0: nobody says
    nodes: int
    load: float | None
    processor_hours: float
    serial: float  # share of the jobs
    used: float  # mean share of the requested time that a run takes
    kinds: dict[str, int]  # how many users, groups, queues, partitions, executables
    quantiles: dict[str, tuple[float, ...]]

    def text(self) -> str:
        """A line for each."""
        begins = "" if self.begins is None else f"{datetime.fromtimestamp(self.begins, UTC):%F %T}"
        lines = [
            f"{'jobs':22} {self.jobs:,}",
            *(f"{'left out':22} {count:,}: {why}" for why, count in self.left_out.items()),
            *([f"{'bad lines':22} {self.bad_lines:,}"] if self.bad_lines else []),
            f"{'first submission':22} {begins or 'nobody says when'}",
            f"{'submissions span':22} {duration(self.span)}",
            f"{'machine':22} {self._machine()}",
            f"{'offered load':22} {'-' if self.load is None else f'{self.load:.3f}'}",
            f"{'processor hours':22} {self.processor_hours:,.0f}",
            f"{'serial jobs':22} {100 * self.serial:.1f} %",
            f"{'requested time used':22} {100 * self.used:.1f} % on average",
            *(f"{name:22} {count:,}" for name, count in self.kinds.items() if count),
            "",
            " ".join([" " * 22, *(f"{name:>10}" for name in _COLUMNS)]),
        ]
        for name, values in self.quantiles.items():
            shown = [f"{each:,.0f}" if name == "processors" else duration(each) for each in values]
            lines.append(f"{name:22} {' '.join(f'{each:>10}' for each in shown)}")
        return "\n".join(lines)

    def _machine(self) -> str:
        if not self.processors:
            return "nobody says how large (--nodes, --cpus)"
        return f"{many(self.nodes, 'node')}, {many(self.processors, 'processor')}"


def facts(trace: Trace, nodes: int | None = None, cpus: int | None = None) -> Facts:
    """Of a trace, on its machine or on the one that is said."""
    jobs = trace.jobs
    count = max(len(jobs), 1)
    try:
        machine = trace.machine(nodes, cpus)
        processors, machine_nodes = machine.nodes * machine.cpus, machine.nodes
    except TraceError:
        processors = machine_nodes = 0
    load = offered_load(jobs, processors) if jobs and processors else math.inf
    gaps = [after.submit - before.submit for before, after in pairwise(jobs)]
    return Facts(
        jobs=len(jobs),
        left_out=dict(trace.dropped),
        bad_lines=trace.bad_line_count,
        begins=trace.unix_start_time,
        span=jobs[-1].submit - jobs[0].submit if jobs else 0,
        processors=processors,
        nodes=machine_nodes,
        load=None if math.isinf(load) else load,
        processor_hours=processor_seconds(jobs) / 3600,
        serial=sum(job.procs == 1 for job in jobs) / count,
        used=sum(job.run / job.req for job in jobs) / count,
        kinds={
            f"{name}s": len({getattr(job, name) for job in jobs} - {-1})
            for name in ("user", "group", "executable", "queue", "partition")
        },
        quantiles={
            "processors": _quantiles([job.procs for job in jobs]),
            "run time": _quantiles([job.run for job in jobs]),
            "requested time": _quantiles([job.req for job in jobs]),
            "between submissions": _quantiles(gaps),
        },
    )


def _quantiles(values: Sequence[int]) -> tuple[float, ...]:
    if not values:
        return (0.0,) * len(_QUANTILES)
    return tuple(float(each) for each in np.quantile(np.asarray(values), _QUANTILES))


def picture(trace: Trace, processors: int) -> str:
    """An SVG file: the load that is submitted over time, in shares of the machine (of the mean
    where nobody says how large it is), and how many jobs.
    """
    submits = np.array([job.submit for job in trace.jobs], float)
    work = np.array([job.procs * job.run for job in trace.jobs], float)
    last = max(float(submits[-1]), 1.0) if len(submits) else 1.0
    edges = np.linspace(0, last, _BARS + 1)
    width = last / _BARS
    whole = processors * width if processors else float(work.sum()) / _BARS or 1.0
    load = np.histogram(submits, edges, weights=work)[0] / whole
    count = np.histogram(submits, edges)[0]
    what = "of the machine" if processors else "of the mean"
    plots = []
    for values, title, css in (
        (load, f"load submitted, share {what}", "load"),
        (count, f"jobs submitted in {duration(width)}", "jobs"),
    ):
        top = max(float(values.max()), 1e-9)
        plot = Plot(time_axis(0, last), linear_axis(top, title), _HEIGHT, title)
        plot.area(list(edges), list(values), f"area {css}")
        plots.append(plot)
    return standing_alone(plots)
