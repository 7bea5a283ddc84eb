"""`understudy generate`: workloads out of models.

Place: a sub-command of `understudy`; what is drawn is in understudy.experiments: buffers, lublin,
synthetic.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.experiments.sweep.file import Model
    from understudy.experiments.trace import TraceJob

app = typer.Typer(
    no_args_is_help=True, help="Make workloads out of models.", pretty_exceptions_enable=False
)


def _above_0(value: float | None) -> float | None:
    if value is not None and not 0 < value <= _MOST:
        raise typer.BadParameter(f"{value:g} is not above 0 and at most {_MOST:,}")
    return value


_MOST = 1_000_000
_Out = Annotated[Path, typer.Option(help="The trace to write; compressed if it ends with .gz.")]
_Jobs = Annotated[int, typer.Option(min=1, help="How many jobs.")]
_Nodes = Annotated[int, typer.Option(min=1, help="Nodes of the machine.")]
_Cpus = Annotated[int, typer.Option(min=1, help="CPUs of each node.")]
_Days = Annotated[float, typer.Option(help="Days in which they are submitted.", callback=_above_0)]
_Seed = Annotated[int, typer.Option(help="The same seed draws the same jobs.")]
_Users = Annotated[int, typer.Option(min=0, help="Users; 0: the jobs are nobody's.")]
_Accounts = Annotated[int, typer.Option(min=0, help="Accounts of the users.")]
_Qos = Annotated[int, typer.Option(min=0, help="QOS of the jobs.")]
_Perfect = Annotated[
    bool, typer.Option("--perfect", help="Jobs ask for the time that they run, not for more.")
]


class _Model(StrEnum):
    KTH = "kth"
    THETA = "theta"


class _Set(StrEnum):
    S1 = "S1"
    S2 = "S2"
    S3 = "S3"
    S4 = "S4"


@app.command("lublin")
def lublin(
    out: _Out,
    jobs: _Jobs = 5_000,
    nodes: _Nodes = 128,
    cpus: _Cpus = 1,
    days: _Days = 60.0,
    load: Annotated[float, typer.Option(help="The offered load.", callback=_above_0)] = 0.7,
    users: _Users = 0,
    accounts: _Accounts = 0,
    qos: _Qos = 0,
    perfect: _Perfect = False,
    seed: _Seed = 1,
) -> None:
    """After the model of Lublin and Feitelson (2003), with users' rough time limits."""
    from understudy.experiments.sweep.file import Model

    model = Model("lublin", jobs, nodes, cpus, days, load, users, accounts, qos)
    _write("lublin", model, out, seed, perfect=perfect)


@app.command("synthetic")
def synthetic(
    out: _Out,
    jobs: _Jobs = 3_000,
    nodes: _Nodes = 1_000,
    cpus: _Cpus = 4,
    days: _Days = 2.0,
    load: Annotated[
        float | None,
        typer.Option(
            help="The offered load; else as run times of 30 s to 1 h make.", callback=_above_0
        ),
    ] = None,
    users: _Users = 0,
    accounts: _Accounts = 0,
    qos: _Qos = 0,
    perfect: _Perfect = False,
    seed: _Seed = 1,
) -> None:
    """Jobs of all sizes and run times, evenly spread over their orders of magnitude."""
    from understudy.experiments.sweep.file import Model

    model = Model("synthetic", jobs, nodes, cpus, days, load, users, accounts, qos)
    _write("synthetic", model, out, seed, perfect=perfect)


def _write(command: str, model: Model, out: Path, seed: int, *, perfect: bool) -> None:
    """Make it, write it, and say what it offers."""
    from understudy.experiments.transform import offered_load
    from understudy.experiments.transform import perfect as with_perfect_limits
    from understudy.model.nouns import many
    from understudy.tool.sweep.work import modelled

    try:
        trace = modelled(model, seed)
    except ValueError as error:
        _end(command, str(error))
    trace = with_perfect_limits(trace) if perfect else trace
    note = f"understudy generate {command}, seed {seed}"
    _write_trace(command, out, trace.jobs, {**trace.header, "Note": note})
    load = offered_load(trace.jobs, model.nodes * model.cpus)
    typer.echo(f"{many(len(trace.jobs), 'job')}, offered load {load:.3f}, {out}")


def _write_trace(
    command: str, out: Path, jobs: Sequence[TraceJob], header: Mapping[str, str]
) -> None:
    from understudy.experiments.swf import write_swf

    try:
        write_swf(out, jobs, {"Version": "2.2", **header})
    except OSError as error:
        _end(command, f"--out {out}: {error.strerror}")


def _end(command: str, text: str) -> NoReturn:
    typer.echo(f"understudy generate {command}: error: {text}", err=True)
    raise typer.Exit(1)


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
        float,
        typer.Option(
            help="Submit times are multiplied by it: 0.8 is a quarter more load.",
            callback=_above_0,
        ),
    ] = 1.0,
) -> None:
    """Give the jobs of a trace burst buffers, in MB, as its column 19."""
    from understudy.experiments import buffers as drawn
    from understudy.experiments.formats import read_trace
    from understudy.experiments.trace import POOLS
    from understudy.model.nouns import many

    try:
        read = read_trace(trace, strict=False)
        jobs = drawn.closer(read.jobs, scale)
        made = (
            drawn.theta(jobs, seed, drawn.THETA_SETS[set_.value])
            if model is _Model.THETA
            else drawn.kth(jobs, seed)
        )
    except OSError as error:
        _end("buffers", f"{trace}: {error.strerror or error}")
    except ValueError as error:
        _end("buffers", str(error))
    what = {_Model.KTH: "kth", _Model.THETA: f"theta {set_.value}"}[model]
    header = {
        **({"UnixStartTime": str(begin)} if (begin := read.unix_start_time) else {}),
        "MaxNodes": str(made.processors),
        "MaxProcs": str(made.processors),
        POOLS: str(made.capacity_mb),
        "Note": f"buffers in MB, understudy generate buffers {what}, seed {seed}, "
        f"submit times x {scale:g}",
    }
    _write_trace("buffers", out, made.jobs, header)
    left_out = len(jobs) - len(made.jobs)
    total = sum(int(job.extra[0]) for job in made.jobs)
    typer.echo(
        f"{many(len(made.jobs), 'job')}, {left_out:,} that are too large left out, "
        f"{total:,} MB asked for"
    )
