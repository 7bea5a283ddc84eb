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


class Extra:
    """A column that follows from one word of a job's `spec.extra` alone. What no job of a batch has
    said is worked out once for all of them.
    """

    __slots__ = ("key", "read")

    def __init__(self, key: str, read: Callable[[str | None], Any]) -> None:
        self.key: Final = key
        self.read: Final = read  # from what was said, None if nothing was

    def __call__(self, _context: object, record: Any, *_: object) -> Any:
        return self.read(record.spec.extra.get(self.key))


class Unless:
    """A column that is `none` wherever an attribute of the record is `empty`, or several are, as
    they are for most. A batch of which all are so is not asked one by one.
    """

    __slots__ = ("empty", "none", "of", "path", "work_out")

    def __init__(
        self,
        path: str | tuple[str, ...],
        empty: object,
        none: Any,
        work_out: Callable[..., Any],
    ) -> None:
        self.path: Final = path
        self.of: Final = attrgetter(path) if isinstance(path, str) else attrgetter(*path)
        self.empty, self.none, self.work_out = empty, none, work_out

    def __call__(self, context: object, record: object, *more: object) -> Any:
        return self.none if self.of(record) == self.empty else self.work_out(context, record, *more)


_extras = attrgetter("spec.extra")


def rows_of(
    getters: Iterable[Getter], records: Sequence[Any], context: object, *more: object
) -> list[list[Any]]:
    """A row for each record. Getters are called with the context, the record and whatever more."""
    columns: list[Iterable[Any]] = []
    said: list[dict[str, str]] | None = None
    words: set[str] = set()
    looked_at: dict[str | tuple[str, ...], list[Any]] = {}
    for getter in getters:
        if type(getter) is Attribute:
            columns.append(map(getter.of, records))
        elif type(getter) is Constant:
            columns.append(repeat(getter.value, len(records)))
        elif type(getter) is Extra:
            if said is None:
                said = list(map(_extras, records))
                words = words.union(*said)
            if getter.key in words:
                columns.append([getter.read(each.get(getter.key)) for each in said])
            else:
                columns.append(repeat(getter.read(None), len(records)))
        elif type(getter) is Unless:
            values = looked_at.get(getter.path)
            if values is None:
                values = looked_at[getter.path] = list(map(getter.of, records))
            if values.count(getter.empty) == len(records):
                columns.append(repeat(getter.none, len(records)))
            else:
                columns.append(map(getter, repeat(context), records, *map(repeat, more)))
        else:
            columns.append(map(getter, repeat(context), records, *map(repeat, more)))
    if not columns:
        return [[] for _ in records]
    return list(map(list, zip(*columns, strict=True)))
