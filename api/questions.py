"""Questions about runs, in Python: runs side by side, what became of a job, and sweeps.

Place: on top of what `understudy compare`, `why` and `sweep` use.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from understudy.api.errors import UnderstudyError, in_our_words, several

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from understudy.experiments.outcomes.compare import Comparison
    from understudy.experiments.outcomes.why import Stories
    from understudy.tool.sweep.run import SweepResult


def compare(runs: Sequence[str | os.PathLike[str]], *, seed: int = 0) -> Comparison:
    """Compare the first run with each other one.

    Args:
        runs: 2 to 26: folders of `replay(out=...)` or of `understudy import`, files jobs.csv or
            jobs.parquet, or files of answers.
        seed: of the intervals.

    Raises:
        UnderstudyError: a run cannot be used; says which file and line.
    """
    from understudy.experiments.outcomes import compare as outcomes

    with _in_our_words():
        return outcomes.compare([Path(run) for run in several("runs", runs)], seed=seed)


def why(run: str | os.PathLike[str], job: str | int) -> Stories:
    """What became of a job of a run, and why.

    Raises:
        UnderstudyError: the run cannot be used, or has no such job.
    """
    from understudy.experiments.outcomes import why as outcomes

    with _in_our_words():
        return outcomes.why(Path(run), str(job))


def sweep(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    dask: str = "",
    short: bool = False,
    again: bool = False,
) -> SweepResult:
    """Run a sweep (docs/sweeps.md) and write its folder; goes on from what is there.

    Args:
        path: the sweep's file.
        out: the folder.
        workers: cells at a time; None: one for each processor.
        dask: the address of a Dask scheduler to use, as tcp://HOST:8786.
        short: the short form.
        again: run cells that failed a second time.

    Raises:
        UnderstudyError: the file, what it names, the folder or the cluster cannot be used.
    """
    from understudy.tool.sweep import run

    with _in_our_words():
        return run.sweep(
            Path(path), Path(out), workers=workers, dask=dask, short=short, again=again
        )


@contextlib.contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        with in_our_words():
            yield
    except ValueError as error:  # which all errors of runs and sweeps are
        raise UnderstudyError(str(error)) from error
