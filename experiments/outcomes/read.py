"""What became of the jobs of a run, read back from whatever holds it.

Place: below `compare` and `why`; reads files. Of the kinds that there are, each becomes the same
records, in seconds from the zero of its trace:

    run      the folder that `understudy replay --out` writes, its jobs.csv or its jobs.parquet
    history  the folder that `understudy import` writes, or its past.csv
    answers  a file as `understudy replay --answers` takes it, jobs by their places
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.experiments import answers
from understudy.experiments.records import FIELDS, JobRecord
from understudy.experiments.stories import STORIES, KeptStories, Story

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

JOBS: Final = "jobs.csv"
PAST: Final = "past.csv"
ATTEMPTS: Final = "attempts.csv"
NEEDED: Final = ("job", "submit", "start", "end", "state", "cpus")
_INSTEAD: Final = {"nodes": "", "req_time": -1}  # of a file that has no such column
_MOST: Final = 2**53  # as JSON and spreadsheets have whole numbers
_TYPES: Final = {each.name: each.type for each in msgspec.structs.fields(JobRecord)}
_GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"


class RunError(ValueError):
    """What was named is no run, or its files cannot be used. Says which, and the line."""


@dataclass(slots=True, eq=False)
class Run:
    """One run, its jobs in the order of their numbers."""

    path: Path  # as it was named
    kind: str  # run, history, answers
    records: list[JobRecord]
    attempts: list[JobRecord] = field(default_factory=list)  # earlier runs of requeued jobs
    config: dict[str, Any] = field(default_factory=dict)  # config.json; {} where there is none
    utilization: float | None = None  # 0 to 1, where somebody has worked it out
    folder: Path | None = None
    _stories: KeptStories | None = None

    @property
    def zero(self) -> float | None:
        """Second 0, in seconds since the epoch, where the run says so."""
        zero = self.config.get("zero")
        return float(zero) if isinstance(zero, int | float) else None

    @property
    def is_named(self) -> bool:
        """Whether its jobs have ids of the trace's, beside their places."""
        return any(record.id for record in self.records)

    def story(self, record: JobRecord) -> Story:
        """What the run tells of a record; one that is empty where it tells nothing.

        Raises:
            StoriesError: the file of stories is damaged.
        """
        if self._stories is None and self.folder is not None and (self.folder / STORIES).exists():
            self._stories = KeptStories(self.folder / STORIES)
        found = None if self._stories is None else self._stories.find(record.id, record.submit)
        return Story(record.id, record.submit) if found is None else found


def read_run(path: str | Path) -> Run:
    """The run that is there.

    Raises:
        RunError: it is none, or is damaged.
        OSError: a file cannot be read.
    """
    path = Path(path)
    if not path.is_dir():
        return _of_file(path)
    for name, kind in ((JOBS, "run"), (PAST, "history"), ("jobs.parquet", "run")):
        if (path / name).exists():
            run = Run(path, kind, _records(path / name), folder=path)
            break
    else:
        hint = (
            "; it is a scenario, which `understudy replay` runs"
            if (path / "workload.jsonl").exists()
            else ""
        )
        raise RunError(f"{path}: no run: it has neither {JOBS} nor {PAST}{hint}")
    if run.kind == "history":
        run.config = _object(path / "about.json")
        return run
    if (path / ATTEMPTS).exists():
        run.attempts = _records(path / ATTEMPTS, has_runs=True)
    run.config = _object(path / "config.json")
    found = _object(path / "summary.json").get("utilization")
    run.utilization = float(found) if isinstance(found, int | float) else None
    return run


def _object(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise RunError(f"{path}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise RunError(f"{path}: expected a JSON object")
    return found


def _of_file(path: Path) -> Run:
    content = _content(path)
    head = content[: content.find(b"\n")].decode("utf-8", "replace").strip()
    if tuple(head.split(",")) == answers.FIELDS:
        return Run(path, "answers", _of_answers(path))
    kind = "history" if path.name.startswith("past") else "run"
    return Run(path, kind, _records(path, content))


def _of_answers(path: Path) -> list[JobRecord]:
    try:
        found = answers.read_answers(path)
    except answers.AnswersError as error:
        raise RunError(str(error)) from None
    return [
        JobRecord(job, each.submit, each.start, each.end, "COMPLETED", each.procs, "", each.req)
        for job, each in sorted(found.items())
    ]


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if content.startswith(_GZIP):
        try:
            return gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise RunError(f"{path}: damaged gzip file: {error}") from None
    return content


def _records(
    path: Path, content: bytes | None = None, *, has_runs: bool = False
) -> list[JobRecord]:
    """In the order of their jobs. While a run goes on its jobs.csv has a line for each run of a
    job: the last counts, unless `has_runs`.
    """
    content = _content(path) if content is None else content
    if not content.strip():
        raise RunError(f"{path}: empty")
    found = _of_parquet(path, content) if content.startswith(_PARQUET) else _of_csv(path, content)
    ordered = sorted(found, key=_order)
    if has_runs:
        return ordered
    last = {(record.job, record.id): record for record in ordered}
    return ordered if len(last) == len(ordered) else list(last.values())


def _order(record: JobRecord) -> tuple[Any, ...]:
    start, end = record.start, record.end
    return (
        record.job,
        record.id,
        record.submit,
        -1 if start is None else start,
        -1 if end is None else end,
        record.state,
    )


# --- the columns of jobs.csv ----------------------------------------------------------------------


def _of_csv(path: Path, content: bytes) -> list[JobRecord]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RunError(f"{path} line {line}: this is no text") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    head: list[str] = []
    try:
        head = next(reader, [])
        _check_head(path, head)
        rows = list(reader)
    except csv.Error as error:
        raise RunError(f"{path} line {reader.line_num}: {error}") from None
    try:
        if any(len(row) != len(head) for row in rows):
            raise ValueError
        columns = zip(*rows, strict=True) if rows else [()] * len(head)
        return _made(
            {
                name: _READ[_TYPES[name]](column)
                for name, column in zip(head, columns, strict=True)
                if name in _TYPES
            },
            len(rows),
        )
    except ValueError:
        _name_bad_line(path, head, text)
        raise


def _check_head(path: Path, head: Sequence[str]) -> None:
    missing = [name for name in NEEDED if name not in head]
    if not missing and len(set(head)) == len(head):
        return
    shown = ",".join(head)[:60]
    if len(missing) == len(NEEDED):
        raise RunError(
            f"{path} line 1: expected the columns of {JOBS} "
            f"({','.join(FIELDS[:5])} ...), found {shown!r}"
        )
    what = f"no column {', '.join(missing)}" if missing else "a column that is there twice"
    raise RunError(f"{path} line 1: {what}, in {shown!r}")


def _made(columns: dict[str, Sequence[Any]], count: int) -> list[JobRecord]:
    """A record for each row of the columns, of which those that are not there have what the record
    has by itself.
    """
    columns |= {name: [value] * count for name, value in _INSTEAD.items() if name not in columns}
    names = [name for name in _TYPES if name in columns]
    if names == list(_TYPES):
        return list(map(JobRecord, *(columns[name] for name in names)))
    return [
        JobRecord(**dict(zip(names, row, strict=True)))
        for row in zip(*(columns[name] for name in names), strict=True)
    ]


def _within(values: Sequence[int]) -> None:
    if values and not (min(values) > -_MOST and max(values) < _MOST):
        raise ValueError


def _flag(text: str) -> bool:
    if text not in ("True", "False"):
        raise ValueError
    return text == "True"


def _read_whole(column: Sequence[str]) -> list[int]:
    values = list(map(int, column))
    _within(values)
    return values


def _read_optional(column: Sequence[str]) -> list[int | None]:
    values = [int(text) if text else None for text in column]
    _within([value for value in values if value is not None])
    return values


def _read_text(column: Sequence[str]) -> Sequence[str]:
    return column


def _read_flags(column: Sequence[str]) -> list[bool]:
    return list(map(_flag, column))


# by the type that the record's field has
_READ: Final[dict[Any, Any]] = {
    int: _read_whole,
    int | None: _read_optional,
    str: _read_text,
    bool: _read_flags,
}
_EXPECTED: Final[dict[Any, str]] = {
    int: "a whole number",
    int | None: "a whole number or nothing",
    bool: "True or False",
}


def _name_bad_line(path: Path, head: Sequence[str], text: str) -> None:
    """Find the line that could not be read.

    Raises:
        RunError: this one.
    """
    for line, row in _numbered(text):
        if len(row) != len(head):
            raise RunError(
                f"{path} line {line}: {len(row)} columns, where the first line names {len(head)}"
            )
        for name, value in zip(head, row, strict=True):
            kind = _TYPES.get(name)
            try:
                if kind is not None:
                    _READ[kind]([value])
            except ValueError:
                raise RunError(
                    f"{path} line {line}: {name} is {value[:40]!r}, not {_EXPECTED[kind]}"
                ) from None


def _numbered(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows behind the header with the lines on which they begin."""
    reader = csv.reader(io.StringIO(text, newline=""))
    next(reader)
    line = reader.line_num + 1
    for row in reader:
        yield line, row
        line = reader.line_num + 1


def _of_parquet(path: Path, content: bytes) -> list[JobRecord]:
    # Imported here: it takes a good part of a second, which readers of jobs.csv need not pay.
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        table = pq.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        raise RunError(f"{path}: damaged Parquet file: {str(error).splitlines()[0]}") from None
    _check_head(path, table.column_names)
    columns: dict[str, Sequence[Any]] = {}
    for name in table.column_names:
        if name not in _TYPES:
            continue
        kind = _TYPES[name]
        try:
            columns[name] = msgspec.convert(table[name].to_pylist(), list[kind])  # type: ignore[valid-type]
        except msgspec.ValidationError as error:
            raise RunError(f"{path}: column {name}: {error}") from None
    return _made(columns, table.num_rows)
