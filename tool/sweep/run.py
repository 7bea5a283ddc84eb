"""What `understudy sweep` does: runs the cells that are not there yet, and writes the table and the
page of all.

Place: the edge that joins a sweep's file, Dask and a folder. What there is in the folder:

OUT/
    cells/KEY.json              what came of a cell; KEY is a hash of all that it depends on, this
                                program to the letter among it
    cells/KEY/                  the folder of its replay, where the sweep's file has `runs = true`
    sweep.parquet sweep.csv     a line for each cell, once all are there
    sweep.html                  the same to look at
    sweep.toml                  what was run
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.experiments.sweep.file import SweepError, SweepFile, read_sweep
from understudy.experiments.sweep.page import page
from understudy.experiments.sweep.rows import (
    Outcome,
    Row,
    as_csv,
    as_parquet,
    columns,
    outcomes,
)
from understudy.experiments.whole_file import write_whole
from understudy.tool.sweep.dask_runner import NEEDED, DaskRunner
from understudy.tool.sweep.local_cluster import remove_dead
from understudy.tool.sweep.orders import Plan, plan
from understudy.tool.sweep.progress import SweepProgress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from understudy.tool.sweep.orders import Order

_LOCK: Final = ".running"


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What came of a sweep: all cells in their order, and the files that tell of them."""

    outcomes: tuple[Outcome, ...]
    table: Path  # sweep.parquet
    page: Path
    ran: int  # cells that had not been there

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Cells without figures."""
        return tuple(each for each in self.outcomes if each.row.error)


def sweep(
    path: Path,
    out: Path,
    *,
    workers: int | None = None,
    dask: str = "",
    short: bool = False,
    traces: Path | None = None,
    again: bool = False,
    progress: Callable[[int, int], SweepProgress] = SweepProgress,
) -> SweepResult:
    """Run a sweep and write its folder.

    Args:
        path: the sweep's file.
        out: the folder; what is there of an earlier run is taken.
        workers: cells at a time, else one for each processor. Of a cluster that is there its
            workers decide.
        dask: the address of the scheduler of such a cluster, as tcp://HOST:8786.
        short: the short form.
        traces: where traces are that are not beside the file.
        again: run cells that failed a second time.
        progress: makes what shows how far it is, of the number of all cells and of those that
            are there.

    Raises:
        SweepError: the file, what it names, the folder or the cluster cannot be used.
    """
    remove_dead()
    file = read_sweep(path, short=short)
    made = plan(file, traces)
    with _locked(out):
        rows = _kept(out, made, again=again, runs=file.sweep.runs)
        wanted = list({each.key: each for each in made.orders if each.key not in rows}.values())
        names = {order.key: order.name for order in made.orders}
        if wanted:
            if importlib.util.find_spec("distributed") is None:
                raise SweepError(NEEDED)
            with progress(len(names), len(names) - len(wanted)) as shown:

                def told(row: Row) -> None:
                    if row.files:
                        _write_folder(out / "cells" / row.key, row.files)
                        row = msgspec.structs.replace(row, files={})
                    rows[row.key] = row
                    _write(out / "cells" / f"{row.key}.json", msgspec.json.encode(row))
                    shown.add(row, names[row.key])

                _run(made, wanted, told, shown, workers, dask)
        return _finish(file, made, rows, out, len(wanted), short=short)


def _run(
    made: Plan,
    wanted: list[Order],
    told: Callable[[Row], None],
    shown: SweepProgress,
    workers: int | None,
    dask: str,
) -> None:
    runner = DaskRunner(made, told, shown.say)
    if dask:
        runner.run_at(wanted, dask)
    else:
        runner.run_here(wanted, workers or len(os.sched_getaffinity(0)))


def _finish(
    file: SweepFile, made: Plan, rows: dict[str, Row], out: Path, ran: int, *, short: bool
) -> SweepResult:
    found = outcomes(made.cells, [order.key for order in made.orders], rows)
    table = columns(found, list(file.sweep.axes))
    command = f"understudy sweep {file.path.name}{' --short' if short else ''}"
    _write(out / "sweep.toml", file.path.read_bytes())
    _write(out / "sweep.csv", as_csv(table))
    _write(out / "sweep.html", page(file.sweep, found, len(made.cells), command).encode())
    _write(out / "sweep.parquet", as_parquet(table))
    return SweepResult(tuple(found), out / "sweep.parquet", out / "sweep.html", ran)


def _kept(out: Path, made: Plan, *, again: bool, runs: bool) -> dict[str, Row]:
    """What is there of the sweep's cells; what cannot be read is as if it were not, nor what has no
    folder where `runs` are wanted.
    """
    found = {}
    for order in made.orders:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            content = (out / "cells" / f"{order.key}.json").read_bytes()
            row = msgspec.json.decode(content, type=Row)
            has_run = row.error or not runs or (out / "cells" / order.key).is_dir()
            if row.key == order.key and has_run and not (again and row.error):
                found[order.key] = row
    return found


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[None]:
    """The folder is this sweep's alone.

    Raises:
        SweepError: it cannot be written, or another sweep runs there.
    """
    try:
        (out / "cells").mkdir(parents=True, exist_ok=True)
        file = (out / _LOCK).open("w")
    except OSError as error:
        raise SweepError(f"--out {out}: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SweepError(f"--out {out}: another sweep runs there") from None
        yield


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Whole or not at all.

    Raises:
        SweepError: it cannot be written.
    """
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        temporary.mkdir()
        for name, content in files.items():
            (temporary / name).write_bytes(content)
        shutil.rmtree(folder, ignore_errors=True)
        temporary.replace(folder)
    except OSError as error:
        raise SweepError(f"{folder}: {error.strerror}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all.

    Raises:
        SweepError: it cannot be written.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise SweepError(f"{path}: {error.strerror}") from None
