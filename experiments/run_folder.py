"""One folder per run: the job records, the summary, the configuration and the report.

Place: the edge; the only module of a run's results that writes files, and reads them again.

FOLDER/
    jobs.csv jobs.parquet   a line for each job, with the columns of `records.JobRecord`; seconds
                            from the trace's zero; nodes as a host list expression. While the run
                            goes on jobs.csv has those that have ended, in that order, and is
                            replaced in the end. jobs.parquet is there where pyarrow is
                            installed (the extra `parquet`)
    stories.jsonl.gz        for what jobs waited when, and what they were promised
    nodes.csv shares.csv    nodes by their states over time; what was due to whom by fair share
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
import shutil
from dataclasses import asdict
from itertools import accumulate
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from understudy.experiments.metrics import groups, summarize
from understudy.experiments.records import FIELDS, JobRecord
from understudy.experiments.report import Told, report
from understudy.experiments.run_tables import (
    column_types,
    has_parquet,
    read_object,
    read_records,
)
from understudy.experiments.stories import STORIES, StoriesFile
from understudy.experiments.watched import NODES, SHARES, Watched
from understudy.experiments.whole_file import write_whole
from understudy.model.conf import read_text
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.experiments.metrics import Summary
    from understudy.experiments.stories import Story

_ROW: Final = attrgetter(*FIELDS)
# said once a run where it is so
NO_PARQUET: Final = (
    "no jobs.parquet: pyarrow is not installed (pip install 'understudy[parquet]' has it)"
)


class JobsFile:
    """FOLDER/jobs.csv and the stories while the run goes on: a line for each job of which something
    has become known, at once on disk.
    """

    def __init__(self, folder: Path) -> None:
        self._open(folder, "w")
        self._writer.writerow(FIELDS)
        self._file.flush()

    def _open(self, folder: Path, mode: str) -> None:
        # of an earlier run
        for name in ("summary.json", "report.html", "jobs.parquet", "attempts.csv", NODES, SHARES):
            (folder / name).unlink(missing_ok=True)
        self._file: TextIO = (folder / "jobs.csv").open(mode, encoding="utf-8", newline="")  # type: ignore[assignment]
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._stories = StoriesFile(folder, mode)

    def move(self, folder: Path) -> None:
        """Go on in another folder, with copies of what there is: this process is a fork, and the
        files are its parent's.
        """
        self.close()
        before = Path(self._file.name).parent
        for name in ("jobs.csv", STORIES):
            shutil.copyfile(before / name, folder / name)
        self._open(folder, "a")

    def add(self, records: Sequence[JobRecord]) -> None:
        """Write them down."""
        self._writer.writerows(map(_ROW, records))
        self._file.flush()

    def add_stories(self, stories: Sequence[Story]) -> None:
        """The same of stories."""
        self._stories.add(stories)

    def close(self) -> None:
        """No more will come."""
        self._file.close()
        self._stories.close()

    def discard(self) -> None:
        """There is no such run after all: the files go."""
        self.close()
        folder = Path(self._file.name).parent
        for name in ("jobs.csv", STORIES):
            (folder / name).unlink(missing_ok=True)


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
    watched: Watched | None = None,
) -> Path:
    """Write all files, each whole or not at all; earlier files of the same names are replaced.
    Returns the report's path.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(records, key=lambda record: record.job)
    write_whole(folder / "jobs.csv", _csv(ordered))
    if has_parquet():
        write_whole(folder / "jobs.parquet", _parquet(ordered))
    else:
        (folder / "jobs.parquet").unlink(missing_ok=True)
    if attempts:
        write_whole(folder / "attempts.csv", _csv(attempts))
    else:
        (folder / "attempts.csv").unlink(missing_ok=True)
    by = groups(ordered)
    listed = {name: [asdict(group) for group in found] for name, found in by.items()}
    write_whole(folder / "summary.json", _json({**summary.as_dict(), "by": listed}))
    write_whole(folder / "config.json", _json(dict(config)))
    write_whole(folder / "slurm.conf", slurm_conf.encode())
    watched = watched or Watched()
    files = watched.files()
    for name in (NODES, SHARES):
        if name in files:
            write_whole(folder / name, files[name])
        else:
            (folder / name).unlink(missing_ok=True)
    told = Told(ordered, summary, cpus, title, config, slurm_conf, by, attempts, watched)
    write_whole(folder / "report.html", report(told).encode())
    return folder / "report.html"


def read_run_folder(folder: Path) -> Told:
    """A run as it was written, under its folder's name. What jobs.csv has is enough: of a run that
    was ended from outside nothing else may be there.

    Raises:
        OSError: there is no jobs.csv.
        RunError: a file that is none of a run; the text names it and its line.
    """
    records = read_records(folder / "jobs.csv")
    attempts = folder / "attempts.csv"
    earlier = read_records(attempts) if attempts.exists() else []
    config, known = read_object(folder / "config.json"), read_object(folder / "summary.json")
    slurm_conf = folder / "slurm.conf"
    text = slurm_conf.read_text(errors="replace") if slurm_conf.exists() else ""
    cpus = _machine_cpus(text) or max(_most_cpus(records), 1)
    wall_s, simulated_s = known.get("wall_seconds", 0.0), known.get("simulated_seconds")
    summary = summarize(records, cpus, wall_s, simulated_s, earlier)
    title = folder.resolve().name
    watched = Watched.read(folder)
    return Told(records, summary, cpus, title, config, text, groups(records), earlier, watched)


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
    # Imported here, as in as_table: pyarrow takes a good part of a second, which those who only
    # measure need not pay.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    columns = zip(*map(_ROW, records), strict=True) if records else ([] for _ in FIELDS)
    table = as_table(dict(zip(FIELDS, columns, strict=True)))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def as_table(columns: Mapping[str, Sequence[Any]]) -> Any:
    """The jobs of a run as a pyarrow.Table; pyarrow has to be there."""
    import pyarrow as pa  # noqa: PLC0415

    kinds = {str: pa.string(), bool: pa.bool_(), int: pa.int64()}
    types = column_types()
    return pa.table({name: pa.array(columns[name], kinds[types[name]]) for name in columns})


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, default=str) + "\n").encode()
