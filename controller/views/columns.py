"""Columns of many records at once: what is a mere attribute of a record is read without a call in
Python for each.

Place: views, under the tables of columns.
"""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Getter = Callable[..., Any]


class Attribute:
    """A column that is an attribute of the record, maybe of a part of it: `spec.name`. To be called
    as all columns are, with the record second.
    """

    __slots__ = ("of",)

    def __init__(self, path: str) -> None:
        self.of: Final = attrgetter(path)

    def __call__(self, _context: object, record: object, *_: object) -> Any:
        return self.of(record)


class Constant:
    """A column that is the same for all."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Final = value

    def __call__(self, *_: object) -> Any:
        return self.value


def rows_of(
    getters: Iterable[Getter], records: Sequence[Any], context: object, *more: object
) -> list[list[Any]]:
    """A row for each record. Getters are called with the context, the record and whatever more."""
    columns: list[Iterable[Any]] = []
    for getter in getters:
        if type(getter) is Attribute:
            columns.append(map(getter.of, records))
        elif type(getter) is Constant:
            columns.append(repeat(getter.value, len(records)))
        else:
            columns.append(map(getter, repeat(context), records, *map(repeat, more)))
    if not columns:
        return [[] for _ in records]
    return list(map(list, zip(*columns, strict=True)))
