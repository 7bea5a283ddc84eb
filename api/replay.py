"""A replay from Python: what `understudy replay` does, and its results as values.

Place: of the API. The replay runs in a process of its own (`replaying.py`), which ends with this
one: so it may be called in any thread and where an event loop runs, and takes no signals away.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.api.errors import UnderstudyError, in_our_words, several

if TYPE_CHECKING:
    from collections.abc import Sequence

# exit codes of `understudy replay` with which there are results: all jobs ran; some were refused;
# some never started
_FIT: Final = (0, 3, 4)
_PREFIX: Final = "understudy replay: error: "
_BOX: Final = " │╭╮╰╯─"


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What came of a replay."""

    jobs: list[dict[str, Any]] = field(repr=False)  # docs/results.md has the columns
    attempts: list[dict[str, Any]] = field(repr=False)  # runs that were requeued, likewise
    summary: dict[str, Any] = field(repr=False)  # the figures, as in summary.json
    schedule_sha256: str  # equal if each job started and ended at the same second on the same nodes
    exit_code: int  # 0: all jobs ran; 3: some were refused; 4: some never started, or did not end
    said: str = field(repr=False)  # what the command printed
    folder: Path | None  # where the files are, if `out` said where

    def table(self) -> Any:
        """The jobs as a pyarrow.Table.

        Raises:
            UnderstudyError: pyarrow is not installed.
        """
        from understudy.experiments.run_folder import as_table
        from understudy.experiments.run_tables import column_types, has_parquet

        if not has_parquet():
            raise UnderstudyError(
                "a table needs pyarrow, which is not installed: pip install 'understudy[parquet]'; "
                "`jobs` has the same as dictionaries"
            )
        return as_table({name: [job[name] for job in self.jobs] for name in column_types()})


def replay(
    trace: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    nodes: int | None = None,
    cpus: int | None = None,
    conf: str | os.PathLike[str] | None = None,
    scheduler: str = "",
    parameters: str = "",
    settings: Sequence[str] = (),
    limit: int | None = None,
    failures: str = "",
    faults: Sequence[str] = (),
    seed: int = 1,
    noded: int = 1,
    one_process: bool = True,
    options: Sequence[str] = (),
    timeout_s: float | None = None,
) -> ReplayResult:
    """Replay a trace or a scenario under virtual time.

    Args:
        trace: a file in the Standard Workload Format, or a scenario's folder.
        out: where the run's folder is written (docs/results.md); None: nowhere.
        nodes: of the machine; None: what the trace's header says.
        cpus: of each node, likewise.
        conf: a site's slurm.conf, in place of nodes and cpus.
        scheduler: SchedulerType, as `easy` or `backfill`.
        parameters: SchedulerParameters.
        settings: changes to the configuration: KEY=VALUE each.
        limit: only the first so many jobs.
        failures: a model of nodes that fail (docs/faults.md).
        faults: what goes wrong, each as of `--fault`.
        seed: of failures, and of what links do.
        noded: how many node daemons share the nodes.
        one_process: all daemons in one process; the schedule is the same, and comes sooner.
        options: further words of the command line.
        timeout_s: real seconds after which it is ended; None: never.

    Raises:
        UnderstudyError: it could not be run, or failed; with the command's words.
        TimeoutError: it took longer.
    """
    values = {
        "--nodes": nodes,
        "--cpus": cpus,
        "--limit": limit,
        "--seed": seed,
        "--noded": noded,
        "--scheduler": scheduler,
        "--parameters": parameters,
        "--failures": failures,
        "--conf": None if conf is None else os.fspath(conf),
    }
    given: list[str] = []
    for option, value in values.items():
        if value not in (None, ""):
            given += [option, str(value)]
    for setting in several("settings", settings):
        given += ["--set", setting]
    for fault in several("faults", faults):
        given += ["--fault", fault]
    if one_process:
        given.append("--one-process")
    given += several("options", options)
    with in_our_words():
        if out is not None:
            return _replay(os.fspath(trace), given, Path(out), timeout_s, stays=True)
        with tempfile.TemporaryDirectory(prefix="understudy-out-") as folder:
            return _replay(os.fspath(trace), given, Path(folder), timeout_s, stays=False)


def _replay(
    trace: str, options: Sequence[str], out: Path, timeout_s: float | None, *, stays: bool
) -> ReplayResult:
    from understudy.experiments.run_tables import JOBS, read_jobs

    # the trace last: its name may begin with -
    words = ["replay", *options, "--out", str(out), "--", trace]
    code, said, errors = _run(words, timeout_s)
    if code not in _FIT:
        raise UnderstudyError(_reason(errors, code))
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    attempts = read_jobs(out / "attempts.csv") if (out / "attempts.csv").exists() else []
    return ReplayResult(
        read_jobs(out / JOBS),
        attempts,
        summary,
        summary["schedule_sha256"],
        code,
        said + errors,
        out if stays else None,
    )


def _run(words: Sequence[str], timeout_s: float | None) -> tuple[int, str, str]:
    """The exit code, and what was written."""
    command = [sys.executable, "-P", "-m", "understudy.api.replaying", *words]
    # at the end of the pipe to its input it ends: with this process, whatever becomes of it
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        pipe, process.stdin = process.stdin, None  # communicate would close it at once
        assert pipe is not None
        try:
            said, errors = process.communicate(timeout=timeout_s)
        except BaseException as error:
            pipe.close()
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeoutError(f"the replay was ended after {timeout_s:g} s") from None
            raise
        finally:
            pipe.close()
    return process.returncode, said, errors


def _reason(errors: str, code: int) -> str:
    """What the command said of its failure."""
    # complaints about a command line stand in a box
    lines = [line for each in errors.splitlines() if (line := each.strip(_BOX))]
    for number, line in enumerate(lines):
        if line.startswith(_PREFIX):
            return "\n".join([line.removeprefix(_PREFIX), *lines[number + 1 :]])
    return f"the replay ended with exit code {code}: " + (lines[-1] if lines else "it said nothing")
