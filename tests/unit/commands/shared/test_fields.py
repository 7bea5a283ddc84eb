"""Lines of output fields: each text once, and as it would be alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from understudy.commands.shared.fields import Cell, Field, lines

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDS = [{"name": f"n{at % 2}", "size": at % 3, "list": [at]} for at in range(12)]


def values_of(name: str) -> list[Any]:
    return [record[name] for record in RECORDS]


def field(columns: str, make: Callable[..., str], whole: str = "") -> Field:
    return Field("x", "x", "X", columns, make, whole=whole)


def test_a_text_is_made_once_for_all_lines_that_have_its_values() -> None:
    made: list[tuple[Any, ...]] = []

    def make(*values: Any) -> str:
        made.append(values)
        return ":".join(map(str, values))

    shown = lines([Cell(field("name size", make), 6, suffix="|")], values_of, len(RECORDS))
    assert shown == [f"{record['name']}:{record['size']}".ljust(6) + "|" for record in RECORDS]
    assert sorted(made) == [(f"n{name}", size) for name in range(2) for size in range(3)]


@pytest.mark.parametrize(
    "cell",
    [
        Cell(None, suffix=", "),
        Cell(field("", lambda: "N/A"), 5),
        Cell(field("list", str), 4, right=True),
        Cell(field("size", lambda size: "(null)" if size == 1 else f"{size}"), 3),
        Cell(field("name", str, whole="all"), 1, right=True, suffix=" "),
        Cell(field("name", str), -1),
    ],
)
def test_many_lines_are_as_each_would_be(cell: Cell) -> None:
    alone = [
        line
        for record in RECORDS
        for line in lines([cell], lambda name, record=record: [record[name]], 1)  # type: ignore[misc]
    ]
    assert lines([cell], values_of, len(RECORDS)) == alone
