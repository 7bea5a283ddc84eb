"""What came of the cells of a sweep, and the table of all of them.

Place: between those who run cells, and a sweep's files and page. Pure.

A row's figures are those of a replay's summary, and of `comparison.figures` what that has beyond
it. What was measured on the wall differs from run to run and stands last, apart from them.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.experiments.sweep.cells import Cell

DONE: Final = "done"
FAILED: Final = "failed"
MEASURED: Final = ("wall_seconds", "cpu_seconds", "replay_seconds", "speedup")


class Row(msgspec.Struct, frozen=True):
    """What came of a cell. `error` is "" or why there are no figures.

    `measured`, in seconds: the cell on the wall and of CPU, all of it; the replay on the wall, from
    its first submission to its last end; simulated seconds over that.

    `files`: the folder of its replay by name, where it is to be kept, on its way from a worker.
    """

    key: str
    # int beside float: what is kept as 40 must not come back as 40.0
    figures: dict[str, int | float | None] = {}
    schedule_sha256: str = ""
    measured: dict[str, int | float | None] = {}
    error: str = ""
    files: dict[str, bytes] = {}

    @property
    def state(self) -> str:
        return FAILED if self.error else DONE


class Outcome(msgspec.Struct, frozen=True):
    """A cell of the table: which it was, and what came of it."""

    number: int
    values: dict[str, Any]
    seed: int
    row: Row
    execution: int = 1

    def value(self, name: str) -> Any:
        """Of an axis, the seed, or a figure; None where it has none."""
        if name in self.values:
            return self.values[name]
        if name in ("seed", "execution"):
            return self.seed if name == "seed" else self.execution
        return self.row.figures.get(name, self.row.measured.get(name))


def outcomes(cells: Sequence[Cell], keys: Sequence[str], rows: Mapping[str, Row]) -> list[Outcome]:
    """In the order of the cells; those without a row are left out."""
    return [
        Outcome(cell.number, cell.values, cell.seed, rows[key], cell.execution)
        for cell, key in zip(cells, keys, strict=True)
        if key in rows
    ]


def columns(found: Sequence[Outcome], axes: Sequence[str]) -> dict[str, list[Any]]:
    """The table, a list for each column. Axes that have texts and numbers are texts."""
    table: dict[str, list[Any]] = {
        "cell": [each.number for each in found],
        "key": [each.row.key for each in found],
    }
    for axis in axes:
        values = [each.values[axis] for each in found]
        kinds = {type(value) for value in values}
        if not kinds <= {int, float} and len(kinds) > 1:
            values = list(map(str, values))
        elif kinds == {int, float}:
            values = list(map(float, values))
        table[axis] = values
    table["seed"] = [each.seed for each in found]
    if any(each.execution > 1 for each in found):
        table["execution"] = [each.execution for each in found]
    table["state"] = [each.row.state for each in found]
    table["error"] = [each.row.error for each in found]
    names = dict.fromkeys(name for each in found for name in each.row.figures)
    for name in names:
        values = [each.row.figures.get(name) for each in found]
        is_mixed = {type(value) for value in values} >= {int, float}
        table[name] = [None if v is None else float(v) for v in values] if is_mixed else values
    table["schedule_sha256"] = [each.row.schedule_sha256 for each in found]
    for name in MEASURED:
        table[name] = [each.row.measured.get(name) for each in found]
    return table


def as_csv(table: Mapping[str, Sequence[Any]]) -> bytes:
    """With a line of names."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return out.getvalue().encode()


def as_parquet(table: Mapping[str, Sequence[Any]]) -> bytes:
    """With types: numbers are numbers."""
    import pyarrow as pa  # noqa: PLC0415  takes a good part of a second
    import pyarrow.parquet as pq  # noqa: PLC0415

    columns_ = {
        name: pa.array(list(values), pa.float64() if _is_empty(values) else None)
        for name, values in table.items()
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns_), sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _is_empty(values: Sequence[Any]) -> bool:
    return all(value is None for value in values)
