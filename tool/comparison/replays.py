"""Runs the cells of comparisons, each as a replay in a process of its own, and keeps what came of
them. One pool of workers takes the cells of all: a long one does not keep the others waiting.

Place: the edge of comparisons; beside it is the command line. What a cell gives is in

    KEPT/cells/KEY/row.json jobs.parquet summary.json slurm.conf

(jobs.csv where no Parquet can be written), where KEY is a hash of all that the schedule depends
on: the jobs, the machine, the policy and its parameters. A row is taken again if the scheduling
code is the same as when it was made, so that a comparison that was interrupted goes on, and
comparisons share cells. A folder is there whole or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from understudy.controller import scheduling
from understudy.experiments.comparison.cells import Cell, Pair, Row
from understudy.experiments.comparison.cells import key as key_of
from understudy.experiments.comparison.figures import FIGURES, Ran, figures
from understudy.experiments.comparison.workloads import Made, make
from understudy.experiments.run_tables import JOBS, read_vectors
from understudy.experiments.swf import read_swf
from understudy.tool.replay.apart import FIT, last_words, start_replay

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

_LEFT: Final = ("row.json", JOBS, "summary.json", "slurm.conf")


class Replays:
    """The cells of one comparison."""

    def __init__(self, traces: Path, kept: Path, *, any_code: bool = False) -> None:
        """`any_code`: take rows also if the scheduling code has changed since."""
        self.made: dict[Pair, Made] = {}
        self._traces = traces
        self._kept = kept
        self._any_code = any_code
        self._running: set[subprocess.Popen[bytes]] = set()

    def prepare(self, cells: Sequence[Cell]) -> None:
        """Make the traces that the cells replay.

        Raises:
            ComparisonError: as `make`.
        """
        for drawn in dict.fromkeys(cell.drawn for cell in cells):
            if drawn.pair not in self.made:
                self.made[drawn.pair] = make(drawn, self._traces, self._kept / "workloads")

    def run_cell(self, cell: Cell) -> Row:
        """One cell: what is kept of it, else a replay."""
        found = self.found(cell)
        if found is not None:
            return found
        made = self.made[cell.drawn.pair]
        began = time.monotonic()
        with _folder(self._kept) as folder:
            code = self._replay(cell, made, folder)
            seconds = round(time.monotonic() - began, 1)
            empty = Row(cell.drawn.pair, cell.policy.name, seconds=seconds, code=code_sha256())
            if code not in FIT:
                said = last_words(folder)
                return msgspec.structs.replace(empty, failed=f"exit code {code}: {said}")
            try:
                row = _row(empty, made, folder)
            except ValueError as error:
                return msgspec.structs.replace(empty, failed=str(error))
            (folder / "row.json").write_bytes(msgspec.json.encode(row))
            for path in folder.iterdir():
                if path.name not in _LEFT and path.is_file():
                    path.unlink()
            place = self._place(cell)
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                folder.rename(place)
            else:  # made by other code, or by another comparison meanwhile
                for path in folder.iterdir():
                    if path.is_file():
                        path.replace(place / path.name)
        return row

    def key(self, cell: Cell) -> str:
        """By what it is kept: a hash of all that its schedule depends on."""
        made = self.made[cell.drawn.pair]
        return key_of(cell, made.sha256, made.processors)

    def _place(self, cell: Cell) -> Path:
        return self._kept / "cells" / self.key(cell)

    def found(self, cell: Cell) -> Row | None:
        """What is kept, if it still says what a row says."""
        place = self._place(cell)
        try:
            row = msgspec.json.decode((place / "row.json").read_bytes(), type=Row)
        except (OSError, msgspec.MsgspecError):
            return None
        if row.code != code_sha256() and not self._any_code:
            return None
        if set(row.figures) != set(FIGURES):  # there are new ones
            row = _row(row, self.made[cell.drawn.pair], place)
        return _called(row, cell)

    def _replay(self, cell: Cell, made: Made, folder: Path) -> int:
        """The exit code of the replay."""
        options = [
            *("--nodes", str(made.processors), "--cpus", "1"),
            *("--scheduler", cell.policy.scheduler, "--parameters", cell.parameters),
        ]
        with start_replay(made.path, options, folder) as process:
            self._running.add(process)
            try:
                return process.wait()
            finally:
                self._running.discard(process)

    def end_all(self) -> None:
        """End the replays that are running: nobody waits for them any more."""
        for process in tuple(self._running):
            process.terminate()


def run(
    wanted: Sequence[tuple[Replays, Cell]],
    workers: int,
    seconds: float,
    told: Callable[[int, Row], None],
) -> None:
    """Run what is not there yet, `workers` at a time; no new one is begun once so many seconds are
    over. `told` hears of each row as it comes, after its place in `wanted`.
    """
    until = time.monotonic() + seconds
    of_key: dict[str, list[int]] = {}
    for place, (replays, cell) in enumerate(wanted):
        of_key.setdefault(replays.key(cell), []).append(place)
    with ThreadPoolExecutor(workers) as pool:
        waiting = iter(of_key.values())
        busy: dict[Future[Row], list[int]] = {}
        try:
            while True:
                for alike in waiting:
                    replays, cell = wanted[alike[0]]
                    if time.monotonic() >= until and replays.found(cell) is None:
                        continue
                    busy[pool.submit(replays.run_cell, cell)] = alike
                    if len(busy) >= workers:
                        break
                if not busy:
                    return
                for done in wait(busy, return_when=FIRST_COMPLETED).done:
                    for place in busy.pop(done):
                        told(place, _called(done.result(), wanted[place][1]))
        except BaseException:
            for replays in {id(replays): replays for replays, _ in wanted}.values():
                replays.end_all()
            raise


@cache
def code_sha256() -> str:
    """Of the code that decides schedules: what a row was made with."""
    folder = Path(scheduling.__file__).parent
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


@contextlib.contextmanager
def _folder(kept: Path) -> Iterator[Path]:
    """A folder for a replay, gone unless it is moved."""
    place = kept / "running"
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as name:
        folder = Path(name) / "cell"
        folder.mkdir()
        yield folder


def _called(row: Row, cell: Cell) -> Row:
    """The row of a cell that has the same schedule, under this one's name."""
    return msgspec.structs.replace(row, pair=cell.drawn.pair, policy=cell.policy.name)


def _row(row: Row, made: Made, folder: Path) -> Row:
    """The row with what the replay's folder says.

    Raises:
        ValueError: no job ran.
    """
    ran = read_ran(folder, made)
    summary = msgspec.json.decode((folder / "summary.json").read_bytes())
    return msgspec.structs.replace(
        row,
        figures=figures(ran, made.processors, made.capacity),
        schedule_sha256=summary["schedule_sha256"],
        jobs=len(ran.submit),
    )


def read_ran(folder: Path, made: Made) -> Ran:
    """The jobs of a replay as vectors, with what they had of the buffer."""
    columns = read_vectors(folder / JOBS, ("job", "submit", "start", "end", "cpus"))
    held = {job.id: float(job.extra[0]) if job.extra else 0.0 for job in read_swf(made.path).jobs}
    buffer = np.array([held[int(job)] for job in columns["job"]])
    return Ran(columns["submit"], columns["start"], columns["end"], columns["cpus"], buffer)
