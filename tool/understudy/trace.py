"""`understudy trace`: what a trace holds, and traces made of traces.

Place: a sub-command of `understudy`; what is done to jobs is in understudy.experiments.transform.
"""

from __future__ import annotations

import math
import os
import secrets
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.experiments.trace import Trace

app = typer.Typer(
    no_args_is_help=True,
    help="Look at traces, and make traces of traces.",
    pretty_exceptions_enable=False,
)

_Trace = Annotated[Path, typer.Argument(help="A trace in the Standard Workload Format (gzip too).")]
_Out = Annotated[Path, typer.Option(help="The trace to write; compressed if it ends with .gz.")]
_Nodes = Annotated[
    int | None, typer.Option(min=1, help="Nodes of the machine; else what the header says.")
]
_Cpus = Annotated[
    int | None, typer.Option(min=1, help="CPUs of each node; else what the header says.")
]
_Seed = Annotated[int, typer.Option(help="The same seed leaves out the same jobs.")]


_LoadBy = StrEnum("_LoadBy", ["interarrival", "thinning", "run_times"])


@app.command()
def show(
    trace: _Trace,
    nodes: _Nodes = None,
    cpus: _Cpus = None,
    out: Annotated[
        Path | None, typer.Option(help="Draw the load over time as this SVG file.")
    ] = None,
) -> None:
    """Say what a trace holds: jobs, machine, offered load, quantiles."""
    from understudy.experiments.trace_facts import facts, picture
    from understudy.experiments.whole_file import write_whole

    read = _read("show", trace)
    found = facts(read, nodes, cpus)
    if out is not None:
        try:
            write_whole(out, picture(read, found.processors).encode())
        except OSError as error:
            _end("show", f"--out {out}: {error.strerror}")
    typer.echo(found.text())
    if out is not None:
        typer.echo(f"picture {out}")


@app.command()
def scale(
    trace: _Trace,
    out: _Out,
    interarrival: Annotated[
        float | None,
        typer.Option(help="Multiply the times between submissions: 0.8 is a quarter more load."),
    ] = None,
    run_times: Annotated[float | None, typer.Option(help="Multiply run times and limits.")] = None,
    thin: Annotated[
        float | None, typer.Option(help="Keep this share of the jobs, drawn by --seed.")
    ] = None,
    load: Annotated[
        float | None, typer.Option(help="Until the offered load is this, by what --by says.")
    ] = None,
    by: Annotated[_LoadBy, typer.Option(help="What --load changes.")] = _LoadBy.interarrival,
    seed: _Seed = 1,
    nodes: _Nodes = None,
    cpus: _Cpus = None,
) -> None:
    """More load, or less: by the times between submissions, by run times, or by fewer jobs."""
    from understudy.experiments import transform

    if interarrival is run_times is thin is load is None:
        raise typer.BadParameter("one of --interarrival, --run-times, --thin, --load is needed")
    made = _read("scale", trace)

    def scaled() -> Trace:
        found = made
        if thin is not None:
            found = transform.thin(found, thin, seed)
        if run_times is not None:
            found = transform.run_times(found, run_times)
        if interarrival is not None:
            found = transform.interarrival(found, interarrival)
        if load is not None:
            machine = found.machine(nodes, cpus)
            processors = machine.nodes * machine.cpus
            found = transform.to_load(found, processors, load, by.value, seed)
        return found

    _made("scale", trace, scaled, out)


@app.command()
def clip(
    trace: _Trace,
    out: _Out,
    begin: Annotated[
        str, typer.Option("--from", metavar="TIME", help="From here on: 30d, 12h, 1d6h.")
    ] = "0",
    end: Annotated[str, typer.Option("--to", metavar="TIME", help="Up to here.")] = "",
    jobs: Annotated[int | None, typer.Option(min=1, help="At most so many jobs.")] = None,
) -> None:
    """A part of a trace: what is submitted within a time after the first submission."""
    from understudy.experiments import transform

    first, last = _seconds(begin, "--from"), _seconds(end, "--to") if end else math.inf
    made = _read("clip", trace)
    _made("clip", trace, lambda: transform.clip(made, first, last, jobs), out)


@app.command()
def merge(
    traces: Annotated[list[Path], typer.Argument(help="Two traces, or more.")],
    out: _Out,
    by_date: Annotated[
        bool,
        typer.Option("--by-date", help="Each begins when its header says, not all together."),
    ] = False,
) -> None:
    """Several traces as one, on the largest of their machines; ids, users and groups of each are
    kept apart.
    """
    from understudy.experiments import transform

    read = [_read("merge", each) for each in traces]
    _made("merge", ", ".join(map(str, traces)), lambda: transform.merge(read, by_date=by_date), out)


@app.command()
def anonymise(
    trace: _Trace,
    out: _Out,
    key: Annotated[
        Path,
        typer.Option(help="The file with the key; made where there is none. Keep it secret."),
    ],
) -> None:
    """Users, accounts and programs under numbers that nobody can lead back without the key. The
    same key gives the same numbers in other traces, too.
    """
    from understudy.experiments import transform

    read = _read("anonymise", trace)
    try:
        if not key.exists():
            with open(key, "w", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                file.write(f"{secrets.token_hex(32)}\n")
        secret = key.read_bytes().strip()
    except OSError as error:
        _end("anonymise", f"--key {key}: {error.strerror}")
    if len(secret) < 16:
        _end("anonymise", f"--key {key}: a key has at least 16 characters")
    _made("anonymise", trace, lambda: transform.anonymise(read, secret), out)


def _seconds(text: str, option: str) -> float:
    from understudy.model.durations import duration_s

    found = duration_s(text)
    if found is None:
        raise typer.BadParameter(f"{option} {text}: expected a time such as 30d, 12h, 1d6h30m, 90")
    return found


def _read(command: str, path: Path) -> Trace:
    from understudy.experiments.formats import read_trace

    if path.is_dir():
        _end(
            command,
            f"{path}: this is a folder, and no trace; a scenario's submissions can be changed "
            "in its workload.jsonl, and `understudy replay` takes it as it is",
        )
    try:
        trace = read_trace(path, strict=False)
    except (OSError, EOFError) as error:
        _end(command, f"{path}: {getattr(error, 'strerror', None) or error}")
    except ValueError as error:
        text = str(error)
        _end(command, text if text.startswith(str(path)) else f"{path}: {text}")
    if not trace.jobs:
        why = [f"{count:,} with {reason}" for reason, count in trace.dropped.items()]
        why += [f"line {line.number}: {line.why}" for line in trace.bad_lines[:1]]
        _end(command, "; ".join((f"{path}: no job that can be replayed", *why)))
    return trace


def _made(command: str, source: Path | str, make: Callable[[], Trace], out: Path) -> None:
    """Make it, write it, and say what it is."""
    from understudy.experiments.swf import write_swf
    from understudy.experiments.trace import TraceError
    from understudy.experiments.transform import written
    from understudy.model.nouns import many

    try:
        trace = make()
    except TraceError as error:
        _end(command, f"{source}: {error}")
    try:
        write_swf(out, written(trace), trace.header)
    except OSError as error:
        _end(command, f"--out {out}: {error.strerror}")
    typer.echo(f"{many(len(trace.jobs), 'job')}, {out}")


def _end(command: str, text: str) -> NoReturn:
    typer.echo(f"understudy trace {command}: error: {text}", err=True)
    raise typer.Exit(1)
