"""One folder per run: the job records, the summary, the configuration and the report.

Place: the edge; the only module of a run's results that writes files.

FOLDER/
    jobs.csv jobs.parquet   a line for each job, with the columns of `records.JobRecord`; seconds
                            from the trace's zero; nodes as a host list expression. While the run
                            goes on jobs.csv has those that have ended, in that order, and is
                            replaced in the end
    attempts.csv            the same of earlier runs of jobs that were requeued, if there are any
    summary.json            the figures of `metrics.Summary`, and under "by" those of
                            `metrics.groups`
    config.json slurm.conf  what was run
    report.html             all of it to look at
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import msgspec

from understudy.experiments.metrics import groups
from understudy.experiments.records import FIELDS, JobRecord
from understudy.experiments.report import report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.experiments.metrics import Summary

_ROW: Final = attrgetter(*FIELDS)


class JobsFile:
    """FOLDER/jobs.csv while the run goes on: a line for each job of which something has become
    known, at once on disk.
    """

    def __init__(self, folder: Path) -> None:
        self._open(folder, "w")
        self._writer.writerow(FIELDS)
        self._file.flush()

    def _open(self, folder: Path, mode: str) -> None:
        # of an earlier run
        for name in ("summary.json", "report.html", "jobs.parquet", "attempts.csv"):
            (folder / name).unlink(missing_ok=True)
        self._file: TextIO = (folder / "jobs.csv").open(mode, encoding="utf-8", newline="")  # type: ignore[assignment]
        self._writer = csv.writer(self._file, lineterminator="\n")

    def move(self, folder: Path) -> None:
        """Go on in another folder, with a copy of what there is: this process is a fork, and the
        file is its parent's.
        """
        self._file.close()
        shutil.copyfile(self._file.name, folder / "jobs.csv")
        self._open(folder, "a")

    def add(self, records: Sequence[JobRecord]) -> None:
        """Write them down."""
        self._writer.writerows(map(_ROW, records))
        self._file.flush()

    def close(self) -> None:
        """No more will come."""
        self._file.close()


def write_run_folder(
    folder: str | Path,
    records: Sequence[JobRecord],
    summary: Summary,
    *,
    cpus: int,
    config: Mapping[str, Any],
    slurm_conf: str,
    title: str = "Replay",
    attempts: Sequence[JobRecord] = (),
) -> Path:
    """Write all files, each whole or not at all; earlier files of the same names are replaced.
    Returns the report's path.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(records, key=lambda record: record.job)
    _write(folder / "jobs.csv", _csv(ordered))
    _write(folder / "jobs.parquet", _parquet(ordered))
    if attempts:
        _write(folder / "attempts.csv", _csv(attempts))
    else:
        (folder / "attempts.csv").unlink(missing_ok=True)
    by = groups(ordered)
    listed = {name: [asdict(group) for group in found] for name, found in by.items()}
    _write(folder / "summary.json", _json({**summary.as_dict(), "by": listed}))
    _write(folder / "config.json", _json(dict(config)))
    _write(folder / "slurm.conf", slurm_conf.encode())
    page = report(ordered, summary, cpus, title=title, config=config, slurm_conf=slurm_conf, by=by)
    _write(folder / "report.html", page.encode())
    return folder / "report.html"


def _csv(records: Sequence[JobRecord]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows(map(_ROW, records))
    return out.getvalue().encode()


def _parquet(records: Sequence[JobRecord]) -> bytes:
    # Imported here: pyarrow takes a good part of a second, which those who only measure need not
    # pay.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    kinds = {"str": pa.string(), "bool": pa.bool_()}
    declared = {field.name: str(field.type) for field in msgspec.structs.fields(JobRecord)}
    types = {
        name: kinds.get(
            declared.get(name, "int").removeprefix("<class '").removesuffix("'>"), pa.int64()
        )
        for name in FIELDS
    }
    table = pa.table(
        {name: pa.array(list(map(attrgetter(name), records)), kind) for name, kind in types.items()}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, default=str) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)
