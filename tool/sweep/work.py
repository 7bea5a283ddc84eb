"""What is done on workers: workloads are made, and cells run, each as a replay in a process of its
own.

Place: the edge of sweeps, on their workers, which may be elsewhere: it gets all that it needs, and
gives back what came of it. Knows nothing of Dask.
"""

from __future__ import annotations

import contextlib
import csv
import random
import resource
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from understudy.experiments import lublin, transform
from understudy.experiments.comparison.figures import Ran, figures
from understudy.experiments.formats import read_trace
from understudy.experiments.run_tables import JOBS, read_vectors
from understudy.experiments.sweep.file import Workload
from understudy.experiments.sweep.names import FURTHER, NOT_FIGURES
from understudy.experiments.sweep.rows import Row
from understudy.experiments.swf import write_swf
from understudy.experiments.synthetic import owned, synthetic
from understudy.experiments.trace import Trace, TraceError
from understudy.model.durations import duration_s
from understudy.tool.replay.apart import FIT, last_words, start_replay
from understudy.tool.sweep.version import program_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from understudy.experiments.sweep.file import Model
    from understudy.experiments.trace import TraceJob
    from understudy.tool.sweep.orders import Order, Recipe, Source

_END_S: Final = 5.0  # ours: how long an interrupted replay may take to end
_POLL_S: Final = 0.2  # ours: between two looks whether a cell is still wanted


class OtherVersionError(Exception):
    """A worker has another program than whoever asks it."""


class MadeWorkload(msgspec.Struct, frozen=True):
    """What a replay is given: a trace, or a scenario's folder."""

    name: str
    files: dict[str, bytes]
    is_folder: bool = False
    error: str = ""  # why there is none


def make_workload(recipe: Recipe, sources: Sequence[Source]) -> MadeWorkload:
    """Read, merge, change and write what a workload says. What cannot be made says why."""
    workload = recipe.workload
    plain = msgspec.structs.replace(workload, trace="")
    if sources and len(sources) == 1 and plain == Workload():
        (source,) = sources
        return MadeWorkload(source.name, source.files, source.is_folder)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            traces = [_read(source, folder) for source in sources]
            if workload.model is not None:
                trace = modelled(workload.model, recipe.seed)
            else:
                trace = transform.merge(traces, by_date=workload.by_date)
            trace = changed(trace, recipe)
            path = folder / "workload.swf"
            write_swf(path, transform.written(trace), trace.header)
            return MadeWorkload(path.name, {path.name: path.read_bytes()})
    except (TraceError, ValueError, OSError, EOFError) as error:
        return MadeWorkload("", {}, error=str(error))


def _read(source: Source, folder: Path) -> Trace:
    path = folder / source.name
    path.write_bytes(source.files[source.name])
    trace = read_trace(path, strict=False)
    if not trace.jobs:
        raise TraceError(f"{source.name}: no job that can be replayed")
    return trace


def modelled(model: Model, seed: int) -> Trace:
    """A trace out of a model.

    Raises:
        ValueError: numbers that go together with no workload.
    """
    if not model.users and (model.groups or model.queues):
        raise ValueError("accounts and QOS are those of users: say how many users there are")
    processors = model.nodes * model.cpus
    jobs: list[TraceJob]
    if model.kind == "lublin":
        jobs = lublin.generate(model.jobs, processors, model.days, model.load or 0.7, seed)
        if model.users:
            chance = random.Random(seed)  # noqa: S311
            jobs = owned(jobs, model.users, model.groups, model.queues, chance)
    else:
        jobs = synthetic(
            model.jobs,
            model.nodes,
            model.cpus,
            24 * model.days,
            seed,
            load=model.load,
            users=model.users,
            groups=model.groups,
            queues=model.queues,
        )
    header = {"MaxNodes": str(model.nodes), "MaxProcs": str(processors)}
    return Trace(jobs=jobs, header=header)


def changed(trace: Trace, recipe: Recipe) -> Trace:
    """The trace as the workload changes it, in the order of its keys.

    Raises:
        TraceError: as `transform`.
    """
    workload = recipe.workload
    if workload.leave_out:
        trace = transform.leave_out(trace, workload.leave_out)
    begin, end = _seconds(workload.begin), _seconds(workload.end, float("inf"))
    if begin or workload.jobs or end != float("inf"):
        trace = transform.clip(trace, begin, end, workload.jobs or None)
    if workload.thin != 1:
        trace = transform.thin(trace, workload.thin, recipe.seed)
    if workload.run_times != 1:
        trace = transform.run_times(trace, workload.run_times)
    if workload.interarrival != 1:
        trace = transform.interarrival(trace, workload.interarrival)
    if workload.load is not None:
        machine = trace.machine(None, recipe.cpus) if not recipe.processors else None
        processors = machine.nodes * machine.cpus if machine else recipe.processors
        trace = transform.to_load(trace, processors, workload.load, workload.load_by, recipe.seed)
    if workload.perfect:
        trace = transform.perfect(trace)
    if shift := _seconds(workload.shift):
        trace = transform.shift(trace, int(shift))
    return trace


def _seconds(span: float | str, otherwise: float = 0.0) -> float:
    """Of `30d`, `-12h` or a number; plans have seen that it is one."""
    if not isinstance(span, str):
        return span
    sign = -1 if span.startswith("-") else 1
    found = duration_s(span.removeprefix("-")) if span else None
    return otherwise if found is None else sign * found


def run_cell(
    order: Order,
    made: MadeWorkload,
    base: Path | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Row:
    """Run a cell. `base`: where its folder is made, if not among temporary files; `is_wanted` says
    whether anybody still waits for it.

    Raises:
        OtherVersionError: whoever asks has another program.
    """
    if order.version != program_version():
        raise OtherVersionError(f"{order.version} was expected, and here is {program_version()}")
    if made.error:
        return Row(order.key, error=made.error)
    began, before = time.monotonic(), _cpu_seconds()
    with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for place, content in order.files.items():
            _put(folder / place, content)
        trace = folder / "trace" / made.name
        for place, content in made.files.items():
            _put(trace / place if made.is_folder else trace, content)
        out = folder / "out"
        out.mkdir()
        code = _replayed(trace, _placed(order.options, folder), out, is_wanted)
        if code not in FIT:
            return Row(order.key, error=_unplaced(last_words(out), folder) or f"exit code {code}")
        try:
            summary = msgspec.json.decode((out / "summary.json").read_bytes())
            found = _row(order.key, summary, out)
            files = (
                {each.name: each.read_bytes() for each in out.iterdir()} if order.keeps_run else {}
            )
        except (OSError, ValueError) as error:
            return Row(order.key, error=str(error))
    measured = {
        "wall_seconds": round(time.monotonic() - began, 3),
        "cpu_seconds": round(_cpu_seconds() - before, 3),
        "replay_seconds": summary["wall_seconds"],
        "speedup": summary["speedup"],
    }
    return msgspec.structs.replace(found, measured=measured, files=files)


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _placed(options: Sequence[str], folder: Path) -> list[str]:
    """Files of the cell by their whole paths."""
    found = list(options)
    for place, word in enumerate(options):
        if word in ("--conf", "--accounting"):
            found[place + 1] = str(folder / options[place + 1])
        elif word == "--failures":
            found[place + 1] = options[place + 1].replace(
                "file=failures.csv", f"file={folder / 'failures.csv'}"
            )
    return found


def _unplaced(text: str, folder: Path) -> str:
    """What is said without the name of a folder that is no more, nor of the command."""
    text = text.replace(f"{folder}/", "").removeprefix("understudy replay: ")
    return text.removeprefix("error: ")


def _replayed(trace: Path, options: Sequence[str], out: Path, is_wanted: Callable[[], bool]) -> int:
    """The exit code. A replay for which nobody waits any more is ended."""
    with _ended(start_replay(trace, options, out)) as process:
        while is_wanted():
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL_S)
    return -1


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        assert process.stdin is not None
        process.stdin.close()


def _cpu_seconds() -> float:
    """Of this process's children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _row(key: str, summary: dict[str, Any], out: Path) -> Row:
    """The figures of a run's folder; where no job ran, why the most of them did not."""
    if not summary["ran"]:
        with (out / JOBS).open(newline="") as file:
            reasons = Counter(row["reason"] or row["state"] for row in csv.DictReader(file))
        return Row(
            key, error=": ".join(["no job ran", *(most for most, _ in reasons.most_common(1))])
        )
    columns = read_vectors(out / JOBS, ("submit", "start", "end", "cpus"))
    submit, start, end, cpus = columns.values()
    ran = Ran(submit, start, end, cpus, np.zeros(len(submit)))
    used = float(np.nansum((end - start) * cpus))
    # a summary does not say how large the machine is, but what share of it was used
    whole = used / summary["utilization"] / summary["makespan"] if summary["utilization"] else 0.0
    more = figures(ran, max(round(whole), 1), 0)
    found = {name: value for name, value in summary.items() if name not in NOT_FIGURES}
    found |= {name: more[name] for name in FURTHER}
    found["cpu_hours"] = used / 3600
    span = float(submit.max() - submit.min())
    found["cpu_hours_while_submitted"] = more["usage"] * whole * span / 3600
    return Row(key, found, summary["schedule_sha256"])
