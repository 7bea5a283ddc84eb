"""TOML files as their readers need them: with a line in what is wrong, and on which line a key
stands, which the standard reader does not tell.

Place: below the readers of comparisons, sweeps, futures and loads.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """Its text, and what that says.

    Raises:
        ValueError: it cannot be read, or is no TOML; with the file and the line.
    """
    text = ""
    try:
        text = path.read_text("utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        what = str(error.strerror)
    except UnicodeDecodeError as error:
        what = f"it is not in UTF-8: {error.reason}"
    except tomllib.TOMLDecodeError as error:
        what = _with_line(str(error), text)
    except (ValueError, RecursionError) as error:  # more digits than there are numbers; nested
        what = str(error)
    raise ValueError(f"{path}: {what}") from None


def _with_line(said: str, text: str) -> str:
    """`what (at line 3, column 5)` as `line 3: what`; at the end, the last line that says
    something.
    """
    if match := re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", said):
        return f"line {match[2]}: {match[1]}"
    if match := re.fullmatch(r"(.*) \(at end of document\)", said):
        return f"line {len(text.rstrip().splitlines())}: {match[1]}"
    return said


def line_of(text: str, path: Sequence[str]) -> int:
    """The line (from 1) of the key at that path, else of the closest table above it that stands in
    the file; 0 if nothing of it does. Of tables that are given several times the first, or the one
    whose number (from 1) stands behind their name.
    """
    places: dict[tuple[str, ...], int] = {}
    tables: list[tuple[str, ...]] = [()]
    seen: Counter[tuple[str, ...]] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if words.startswith("["):
            header = words.partition("]")[0].strip("[ ")
            if found := _path(f"{header}=0"):
                seen[found] += 1
                tables = [found, (*found, str(seen[found]))]
                for table in tables:
                    _note(places, table, (), number)
        elif "=" in words and (found := _path(f"{words.partition('=')[0]}=0")):
            for table in tables:
                _note(places, table, found, number)
    for length in range(len(path), 0, -1):
        if number := places.get(tuple(path[:length]), 0):
            return number
    return 0


def _note(
    places: dict[tuple[str, ...], int], table: tuple[str, ...], key: tuple[str, ...], number: int
) -> None:
    """A key stands there, and so do the tables that its dots make."""
    whole = (*table, *key)
    for length in range(1, len(whole) + 1):
        places.setdefault(whole[:length], number)


def _path(text: str) -> tuple[str, ...]:
    """The keys of `a."b.c".d=0`; () where it is none."""
    try:
        found: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ()
    path = []
    while isinstance(found, dict) and found:
        ((key, found),) = found.items()
        path.append(key)
    return tuple(path)
