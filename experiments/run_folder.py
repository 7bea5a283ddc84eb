"""One folder per run: the job records, the summary, the configuration and the report.

Place: the edge; the only module of a run's results that writes files, and reads them again.

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
from dataclasses import asdict
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.experiments.metrics import groups, summarize
from understudy.experiments.records import FIELDS, JobRecord
from understudy.experiments.report import Told, report
from understudy.model.conf import read_text
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from understudy.experiments.metrics import Summary

_ROW: Final = attrgetter(*FIELDS)


class JobsFile:
    """FOLDER/jobs.csv while the run goes on: a line for each job of which something has become
    known, at once on disk.
    """

    def __init__(self, folder: Path) -> None:
        # of an earlier run
        for name in ("summary.json", "report.html", "jobs.parquet", "attempts.csv"):
            (folder / name).unlink(missing_ok=True)
        self._file = (folder / "jobs.csv").open("w", encoding="utf-8", newline="")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(FIELDS)
        self._file.flush()

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
    write_whole(folder / "jobs.csv", _csv(ordered))
    write_whole(folder / "jobs.parquet", _parquet(ordered))
    if attempts:
        write_whole(folder / "attempts.csv", _csv(attempts))
    else:
        (folder / "attempts.csv").unlink(missing_ok=True)
    by = groups(ordered)
    listed = {name: [asdict(group) for group in found] for name, found in by.items()}
    write_whole(folder / "summary.json", _json({**summary.as_dict(), "by": listed}))
    write_whole(folder / "config.json", _json(dict(config)))
    write_whole(folder / "slurm.conf", slurm_conf.encode())
    told = Told(ordered, summary, cpus, title, config, slurm_conf, by, attempts)
    write_whole(folder / "report.html", report(told).encode())
    return folder / "report.html"


def read_run_folder(folder: Path) -> Told:
    """A run as it was written, under its folder's name. What jobs.csv has is enough: of a run that
    was ended from outside nothing else may be there.

    Raises:
        OSError: there is no jobs.csv.
        ValueError: a file that is none of a run; the text names it and its line.
    """
    records = read_jobs(folder / "jobs.csv")
    attempts = folder / "attempts.csv"
    earlier = read_jobs(attempts) if attempts.exists() else []
    config, known = _read_json(folder / "config.json"), _read_json(folder / "summary.json")
    slurm_conf = folder / "slurm.conf"
    text = slurm_conf.read_text(errors="replace") if slurm_conf.exists() else ""
    cpus = _machine_cpus(text) or max(_most_cpus(records), 1)
    wall_s, simulated_s = known.get("wall_seconds", 0.0), known.get("simulated_seconds")
    summary = summarize(records, cpus, wall_s, simulated_s, earlier)
    title = folder.resolve().name
    return Told(records, summary, cpus, title, config, text, groups(records), earlier)


def read_jobs(path: Path) -> list[JobRecord]:
    """The records of a jobs.csv. Columns that it does not have are as if nothing were known.

    Raises:
        OSError: it cannot be read.
        ValueError: it is none; the text names file and line.
    """
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.reader(file)
        try:
            header = next(rows, [])
            missing = [name for name in FIELDS[:8] if name not in header]
            if missing:
                raise ValueError(f"no column {missing[0]}")
            places = {name: header.index(name) for name in _READ if name in header}
            return [
                JobRecord(**{name: _READ[name](row[at]) for name, at in places.items()})
                for row in rows
            ]
        except IndexError:
            raise ValueError(f"{path}: line {rows.line_num}: it is cut short") from None
        except (ValueError, csv.Error) as error:
            raise ValueError(f"{path}: line {max(rows.line_num, 1)}: {error}") from error


def _optional(text: str) -> int | None:
    return int(text) if text else None


_READERS: Final[dict[str, Callable[[str], Any]]] = {"str": str, "bool": "True".__eq__, "int": int}
_READ: Final = {
    field.name: _READERS.get(str(field.type).removeprefix("<class '").removesuffix("'>"), _optional)
    for field in msgspec.structs.fields(JobRecord)
}


def _read_json(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path}: not an object")  # noqa: TRY004 - it is the file that is wrong
    return found


def _machine_cpus(slurm_conf: str) -> int:
    """All CPUs of a configuration; 0 if it cannot be read."""
    try:
        return sum(node.cpus for node in read_text(slurm_conf).nodes)
    except (ConfigError, ValueError):
        return 0


def _most_cpus(records: Sequence[JobRecord]) -> int:
    """The most that jobs held at one time."""
    changes = sorted(
        change
        for record in records
        if record.start is not None and record.end is not None
        for change in ((record.start, record.cpus), (record.end, -record.cpus))
    )
    return max(accumulate(cpus for _, cpus in changes), default=0)


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


def write_whole(path: Path, content: bytes) -> None:
    """Write the file under another name, and then give it its own."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)
