"""The jobs of a run, read back from its table: jobs.csv, packed or not, or jobs.parquet.

Place: under all that looks at runs. Columns that a file does not have are as if nothing were known.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import zlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from understudy.experiments.records import FIELDS, JobRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

JOBS: Final = "jobs.csv"
NEEDED: Final = ("job", "submit", "start", "end", "state", "cpus")
_INSTEAD: Final = {"nodes": "", "req_time": -1}  # of a file that has no such column
_MOST: Final = 2**53  # as JSON and spreadsheets have whole numbers
_TYPES: Final = {each.name: each.type for each in msgspec.structs.fields(JobRecord)}
_GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"


class RunError(ValueError):
    """What was named is no run, or its files cannot be used. Says which, and the line."""


def has_parquet() -> bool:
    """Whether Parquet can be written and read here."""
    return find_spec("pyarrow") is not None


def column_types() -> dict[str, type]:
    """What the columns of the jobs hold, in their order: text, truth or whole numbers; these may be
    None.
    """
    return {name: kind if (kind := _TYPES.get(name)) in (str, bool) else int for name in FIELDS}


def read_records(path: Path, content: bytes | None = None) -> list[JobRecord]:
    """The records of a table, line by line. `content`: of the file, where it has been read.

    Raises:
        RunError: it is none of a run, or damaged.
        OSError: it cannot be read.
    """
    content = read_content(path) if content is None else content
    if not content.strip():
        raise RunError(f"{path}: empty")
    return _of_parquet(path, content) if content.startswith(_PARQUET) else _of_csv(path, content)


def read_jobs(path: Path) -> list[dict[str, Any]]:
    """The same as dictionaries, with None where nothing is known.

    Raises:
        RunError, OSError: as `read_records`.
    """
    return [{name: getattr(each, name) for name in FIELDS} for each in read_records(path)]


def read_vectors(path: Path, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Columns of numbers, NaN where nothing is known.

    Raises:
        RunError, OSError: as `read_records`.
    """
    records = read_records(path)
    return {
        name: np.array(
            [math.nan if (value := getattr(each, name)) is None else value for each in records],
            float,
        )
        for name in names
    }


def read_object(path: Path) -> dict[str, Any]:
    """The object of a JSON file beside a table; {} where there is none.

    Raises:
        RunError: it is none.
        OSError: it cannot be read.
    """
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise RunError(f"{path}: not an object")
    return found


def read_content(path: Path) -> bytes:
    """What is in the file, unpacked.

    Raises:
        RunError: it is damaged.
        OSError: it cannot be read.
    """
    content = path.read_bytes()
    if content.startswith(_GZIP):
        try:
            return gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise RunError(f"{path}: damaged gzip file: {error}") from None
    return content


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
    if not has_parquet():
        raise RunError(
            f"{path}: pyarrow, which reads it, is not installed: "
            "pip install 'understudy[parquet]'; a run's jobs.csv has the same"
        )
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
