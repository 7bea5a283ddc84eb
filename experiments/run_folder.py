"""One folder per run: the job records, the summary, the configuration and the report.

Place: the edge; the only module of a run's results that writes files.

FOLDER/
    jobs.csv jobs.parquet   job,submit,start,end,state,cpus,nodes,req_time; seconds from the trace's zero; nodes as a host list expression
    summary.json            the figures of `metrics.Summary`
    config.json slurm.conf  what was run
    report.html             all of it to look at
"""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.experiments.records import FIELDS
from understudy.experiments.report import report

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.experiments.metrics import Summary
    from understudy.experiments.records import JobRecord


def write_run_folder(
    folder: str | Path,
    records: Sequence[JobRecord],
    summary: Summary,
    *,
    cpus: int,
    config: Mapping[str, Any],
    slurm_conf: str,
    title: str = "Replay",
) -> Path:
    """Write all files, each whole or not at all; earlier files of the same names are replaced. Returns the report's path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ordered = sorted(records, key=lambda record: record.job)
    _write(folder / "jobs.csv", _csv(ordered))
    _write(folder / "jobs.parquet", _parquet(ordered))
    _write(folder / "summary.json", _json(summary.as_dict()))
    _write(folder / "config.json", _json(dict(config)))
    _write(folder / "slurm.conf", slurm_conf.encode())
    page = report(ordered, summary, cpus, title=title, config=config, slurm_conf=slurm_conf)
    _write(folder / "report.html", page.encode())
    return folder / "report.html"


def _csv(records: Sequence[JobRecord]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    writer.writerows((r.job, r.submit, r.start, r.end, r.state, r.cpus, r.nodes, r.req_time) for r in records)
    return out.getvalue().encode()


def _parquet(records: Sequence[JobRecord]) -> bytes:
    # Imported here: pyarrow takes a good part of a second, which those who only measure need not pay.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    seconds, text = pa.int64(), pa.string()
    types = dict(zip(FIELDS, (seconds, seconds, seconds, seconds, text, seconds, text, seconds), strict=True))
    table = pa.table({name: pa.array([getattr(r, name) for r in records], kind) for name, kind in types.items()})
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
