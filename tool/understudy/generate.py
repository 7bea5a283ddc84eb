"""`understudy generate`: workloads out of models.

Place: a sub-command of `understudy`; what is drawn is in understudy.experiments.buffers.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path  # noqa: TC003  typer reads the annotations when it runs
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True, help="Make workloads out of models.", pretty_exceptions_enable=False
)


@app.callback()
def workloads() -> None:
    """Keep `generate buffers` two words: typer would fold an application of one command."""


class _Model(StrEnum):
    KTH = "kth"
    THETA = "theta"


class _Set(StrEnum):
    S1 = "S1"
    S2 = "S2"
    S3 = "S3"
    S4 = "S4"


@app.command("buffers")
def buffers(
    model: Annotated[
        _Model, typer.Argument(help="kth: 96 processors, 480 GB. theta: 4,360 nodes, 625 TB.")
    ],
    trace: Annotated[Path, typer.Argument(help="The trace whose jobs get burst buffers.")],
    out: Annotated[Path, typer.Option(help="The trace to write; compressed if it ends with .gz.")],
    seed: Annotated[int, typer.Option(help="The same seed draws the same buffers.")] = 1,
    set_: Annotated[
        _Set, typer.Option("--set", help="Of theta: which jobs ask for how much.")
    ] = _Set.S4,
    scale: Annotated[
        float, typer.Option(help="Submit times are multiplied by it: 0.8 is a quarter more load.")
    ] = 1.0,
) -> None:
    """Give the jobs of a trace burst buffers, in MB, as its column 19."""
    from understudy.experiments import buffers as drawn
    from understudy.experiments.formats import read_trace
    from understudy.experiments.swf import write_swf
    from understudy.experiments.trace import POOLS

    if scale <= 0:
        raise typer.BadParameter(f"{scale} is not more than 0", param_hint="--scale")
    try:
        read = read_trace(trace, strict=False)
        jobs = drawn.closer(read.jobs, scale)
        made = (
            drawn.theta(jobs, seed, drawn.THETA_SETS[set_.value])
            if model is _Model.THETA
            else drawn.kth(jobs, seed)
        )
        what = {_Model.KTH: "kth", _Model.THETA: f"theta {set_.value}"}[model]
        write_swf(
            out,
            made.jobs,
            {
                "Version": "2.2",
                **({"UnixStartTime": str(begin)} if (begin := read.unix_start_time) else {}),
                "MaxNodes": str(made.processors),
                "MaxProcs": str(made.processors),
                POOLS: str(made.capacity_mb),
                "Note": f"buffers in MB, understudy generate buffers {what}, seed {seed}, "
                f"submit times x {scale:g}",
            },
        )
    except (OSError, ValueError) as error:
        text = getattr(error, "strerror", None)
        typer.echo(
            f"understudy generate buffers: error: {trace if text else ''}"
            f"{': ' if text else ''}{text or error}",
            err=True,
        )
        raise typer.Exit(1) from None
    left_out = len(jobs) - len(made.jobs)
    total = sum(int(job.extra[0]) for job in made.jobs)
    typer.echo(
        f"{len(made.jobs):,} jobs, {left_out:,} that are too large left out, {total:,} MB asked for"
    )
