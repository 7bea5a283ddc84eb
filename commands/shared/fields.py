"""Output fields: one declaration each serves `-o`, `-O` and the query for the columns that are
needed.

Place: commands alone; pure. A field says how to make its text from raw columns of
understudy.model.records; columns that begin with "@" are not asked of the controller but supplied
by the command (`@now`).

A format of `-o` is `%[.][width]letter` with any text between; one of `-O` is
`name[:[.][width][text]],...`.
"""

from understudy.model.times import split_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

_NULL = "(null)"
LONG_FORMAT_WIDTH = 20  # squeue(1), -O: what a field without a size gets


class Field:
    """One output field: its letter for `-o` ("" if it has none), its names for `-O`, its header,
    the columns it reads, and how they become text.
    """

    __slots__ = ("columns", "header", "letter", "make", "merge", "names", "whole")

    def __init__(
        self,
        letter: str,
        names: str,
        header: str,
        columns: str,
        make: "Callable[..., str]",
        *,
        merge: str = "",
        whole: str = "",
    ) -> None:
        self.letter = letter
        self.names = names.split()
        self.header = header
        self.columns = columns.split()
        self.make = make
        # the command's own: how records are put together that differ in this field
        self.merge = merge
        self.whole = (
            # what a width does not cut where it is right justified: "text", "all" (the header,
            # too), "nodes" (all, but no reasons), "tasks", "header" (that alone)
            whole
        )


class Cell:
    """One place in an output line: a field (None: nothing but the text behind), its width (0: that
    of the text, -1: left out), the text behind it.
    """

    __slots__ = ("field", "right", "suffix", "width")

    def __init__(
        self, field: Field | None, width: int = 0, *, right: bool = False, suffix: str = ""
    ) -> None:
        self.field = field
        self.width = width
        self.right = right
        self.suffix = suffix


class FieldTable:
    """All fields of a command."""

    __slots__ = ("by_letter", "by_name", "fields")

    def __init__(self, fields: "Sequence[Field]") -> None:
        self.fields = fields
        self.by_letter = {field.letter: field for field in fields if field.letter}
        self.by_name = {name: field for field in fields for name in field.names}

    def all_cells(self) -> list[Cell]:
        """What `%all` stands for: the small letters, then the capitals."""
        cells = [
            Cell(self.by_letter[letter], suffix="|")
            for letter in sorted(self.by_letter, key=str.swapcase)
        ]
        cells[-1].suffix = ""
        return cells

    def parse_short(self, text: str, complain: "Callable[[str], None]") -> list[Cell]:
        """The cells of a `-o` format. `complain` is called with the letter of each unknown field,
        which is then printed as it stands.
        """
        if text == "%all":
            return self.all_cells()
        head, *specifications = text.split("%")
        cells = [Cell(None, suffix=head)] if head else []
        for specification in specifications:
            if not specification:
                continue
            right = specification.startswith(".")
            start = end = 1 if right else 0
            while end < len(specification) and specification[end].isdigit():
                end += 1
            width = int(specification[start:end] or 0)
            kind, suffix = specification[end : end + 1], specification[end + 1 :]
            field = self.by_letter.get(kind)
            if field is None:
                complain(kind)
                cells.append(Cell(None, suffix="%" + specification))
            else:
                cells.append(Cell(field, width, right=right, suffix=suffix))
        return cells

    def parse_long(
        self,
        text: str,
        complain: "Callable[[str], None]",
        *,
        negative_suffix: str | None = None,
        knows_all: bool = False,
    ) -> list[Cell]:
        """The cells of a `-O` format. `complain` is called with each unknown name, of which what
        follows the width is kept.

        `negative_suffix`: what follows the text of a field of negative width; None: it is not
        printed. `knows_all`: whether `all` is a name.
        """
        cells = []
        for part in text.split(","):
            if not part:
                continue
            name, colon, size = part.partition(":")
            if knows_all and name.lower() == "all":
                cells += self.all_cells()
                continue
            field = self.by_name.get(name.lower())
            right = size.startswith(".")
            width, suffix = split_number(size[1:] if right else size)
            if field is None:
                complain(name)
                cells.append(Cell(None, suffix=suffix))
            elif not colon:
                cells.append(Cell(field, LONG_FORMAT_WIDTH))
            elif width >= 0:
                cells.append(Cell(field, width, right=right, suffix=suffix))
            elif negative_suffix is not None:
                cells.append(Cell(field, suffix=negative_suffix + suffix))
            else:
                cells += [Cell(field, -1), Cell(None, suffix=suffix)]
        return cells


# Which texts of a field a width cuts all the same.
_CUT: "dict[str, Callable[[str], bool]]" = {
    "text": lambda _text: False,
    "all": lambda _text: False,
    "nodes": lambda text: text.startswith("("),
    "tasks": lambda text: "[" not in text,
    "header": lambda _text: True,
}


def needed_columns(cells: "Iterable[Cell]", also: "Iterable[str]" = ()) -> list[str]:
    """The controller's columns that the cells read, each once, those in `also` first."""
    names = dict.fromkeys(also)
    for cell in cells:
        if cell.field is not None:
            for name in cell.field.columns:
                if not name.startswith("@"):
                    names[name] = None
    return list(names)


def fitted(text: str, cell: Cell, *, is_header: bool = False) -> str:
    """The text in the cell's width, cut if need be, and what follows it; some headers are not."""
    width = cell.width
    if width <= 0:
        return text + cell.suffix if not width else ""
    is_whole = (
        is_header
        and cell.right
        and cell.field is not None
        and cell.field.whole in {"all", "nodes", "header"}
    )
    if len(text) > width and not is_whole:
        return text[:width] + cell.suffix
    return (text.rjust(width) if cell.right else text.ljust(width)) + cell.suffix


def header_line(cells: "Sequence[Cell]") -> str:
    return "".join(
        [
            fitted(cell.field.header if cell.field is not None else "", cell, is_header=True)
            for cell in cells
        ]
    )


def lines(
    cells: "Sequence[Cell]", values_of: "Callable[[str], list[Any]]", count: int
) -> list[str]:
    """So many lines. `values_of` gives the values of a column of a field, a "@" column, too.

    Made cell by cell, not line by line, and of values that many lines have once: where there are
    many lines this takes a third of the time.
    """
    columns: dict[str, list[Any]] = {}
    parts: list[list[str]] = []
    for cell in cells:
        if cell.field is None:
            parts.append([cell.suffix] * count)
            continue
        if cell.width < 0:
            continue
        names = cell.field.columns
        for name in names:
            if name not in columns:
                columns[name] = values_of(name)
        values: list[Any] = [()] * count  # of a field that reads nothing
        if len(names) == 1:
            values = columns[names[0]]
        elif names:
            values = list(zip(*[columns[name] for name in names], strict=True))
        try:
            different = list(set(values))
        except TypeError:  # lists
            different = values
        if len(different) * 2 > count:
            parts.append(_texts(cell, values))
        else:
            text_of = dict(zip(different, _texts(cell, different), strict=True))
            parts.append([text_of[value] for value in values])
    return ["".join(line) for line in zip(*parts, strict=True)] if parts else [""] * count


def _texts(cell: Cell, values: "Sequence[Any]") -> list[str]:
    """The cell's text for each value; of a field with several columns a value is all of theirs."""
    assert cell.field is not None
    make, width, suffix = cell.field.make, cell.width, cell.suffix
    if len(cell.field.columns) == 1:
        texts = [make(value) for value in values]
    else:
        texts = [make(*value) for value in values]
    if width and cell.right and cell.field.whole:
        is_cut = _CUT[cell.field.whole]
        return [(text[:width] if is_cut(text) else text).rjust(width) + suffix for text in texts]
    if width and cell.right:
        return [text[:width].rjust(width) + suffix for text in texts]
    if width:
        if width < len(_NULL):  # the C library leaves out what has no room whole
            texts = ["" if text == _NULL else text for text in texts]
        return [text[:width].ljust(width) + suffix for text in texts]
    return [text + suffix for text in texts] if suffix else texts
