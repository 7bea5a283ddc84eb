"""Kinds of files that tell of jobs of the past, and who reads them: a new kind is a module with a
reader, and a line in `FORMATS`.

Place: beside the readers, which it names and imports when a file is theirs. Knows files, but
nothing of clusters, messages or time.

A reader of traces makes jobs in normal form, which `understudy replay` takes as they are
(`trace.Trace`). A reader of histories makes records with all that a site's accounting knows
(`past.PastJob`), of which `understudy import` makes a scenario; a reader of scenarios makes one
itself (`past_scenario.PastScenario`). A kind may have several.
"""

from __future__ import annotations

import gzip
import importlib
import re
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from understudy.experiments.trace import Trace, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_GZIP_MAGIC: Final = b"\x1f\x8b"
_HEAD_BYTES: Final = 4096  # of a file, to see what it is


class Format(NamedTuple):
    """How a kind of file is known, and who reads it; a reader is `module:function`, "" where the
    file has nothing of the sort.
    """

    name: str
    endings: tuple[str, ...]  # of the file's name, without .gz
    begins: re.Pattern[str]  # the first line that says something
    trace: str = ""  # (path, *, strict) -> Trace
    history: str = ""  # (lines, counts, choices) -> Iterator[PastJob]
    scenario: str = ""  # (lines, counts, read_line, zero, mapped) -> PastScenario


_HERE: Final = "understudy.experiments"
SWF: Final = Format(
    "a trace in the Standard Workload Format",
    (".swf",),
    re.compile(r";|\s*[+-]?\d[\d.+-]*(\s+[+-]?\d[\d.+-]*){17}(\s|$)"),
    f"{_HERE}.swf:read_swf",
    f"{_HERE}.swf_rows:read_swf_rows",
)
EVENTS: Final = Format(
    "an events file of the Slurm simulator",
    (".events",),
    re.compile(r"\s*-dt\s"),
    scenario=f"{_HERE}.simulator_events:read_events",
)
SACCT: Final = Format(
    "output of sacct",
    (".sacct",),
    re.compile(r"(\w+\|)+\w*$"),
    history=f"{_HERE}.sacct_rows:read_rows",
)
SACCT_JSON: Final = Format(
    "output of sacct --json",
    (".json",),
    re.compile(r"\s*\{"),
    history=f"{_HERE}.sacct_json:read_json",
)
# In this order they are asked: the first with the file's ending, else the first whose beginning it
# has. Who begins as another may, too, stands before it.
FORMATS: Final = (SWF, EVENTS, SACCT_JSON, SACCT)


def format_of(path: Path, otherwise: Format) -> Format:
    """Which kind of file this is, by its name or else by its beginning; `otherwise` where nothing
    says anything, as of a pipe, so that its reader says what is wrong.

    Raises:
        OSError: the file cannot be opened. TraceError: it is damaged.
    """
    name = path.name.lower().removesuffix(".gz")
    for each in FORMATS:
        if name.endswith(each.endings):
            return each
    if not path.is_file():  # a pipe, which can be read but once
        return otherwise
    first = next((line for line in read_head(path).splitlines() if line.strip()), "")
    return next((each for each in FORMATS if each.begins.match(first)), otherwise)


def reader(text: str) -> Callable[..., Any]:
    """The function that a `module:function` names."""
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]


def read_trace(path: Path, *, strict: bool = False) -> Trace:
    """Read a trace, plain or compressed with gzip.

    Raises:
        OSError: the file cannot be opened.
        TraceError: it is damaged, or of a kind that is no trace; with `strict` also at the first
            bad line.
    """
    kind = format_of(path, SWF)
    if not kind.trace:
        raise TraceError(
            f"{path}: this is {kind.name}; `understudy import {path} --out FOLDER` makes "
            "a scenario of it, which can be replayed"
        )
    trace: Trace = reader(kind.trace)(path, strict=strict)
    return trace


def read_head(path: Path) -> str:
    """The file's beginning; "" if it is empty."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        if head.startswith(_GZIP_MAGIC):
            try:
                with gzip.open(path) as packed:
                    head = packed.read(_HEAD_BYTES)
            except (OSError, EOFError, zlib.error) as error:
                raise TraceError(f"{path}: damaged gzip file: {error}") from error
    return head.decode("utf-8", "replace")
