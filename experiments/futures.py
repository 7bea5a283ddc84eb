"""Futures of a cluster: what is done differently from an instant on, in each of several copies.

Place: pure; reads what `understudy branch --file` names. What the words mean to a cluster is for
understudy.tool.replay.change. The format is documented in docs/futures.md.
"""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.node_failures import FailuresError, Model
from understudy.experiments.toml_lines import line_of, read_toml
from understudy.model.conf_edit import EditError, read_edit
from understudy.model.durations import duration_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

ORIGINAL: Final = "original"
COMMANDS: Final = ("scontrol", "sacctmgr", "scancel", "sbatch")
MOST_LOAD: Final = 100.0  # ours: a misplaced comma would fill the memory
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
_KEYS: Final = frozenset({"name", "do", "set", "trace", "load", "failures", "seed"})
_DEED_KEYS: Final = frozenset({"command", "after", "run", "user"})


class FuturesError(ValueError):
    """Alternatives that cannot be read; says where and why."""


@dataclass(frozen=True, slots=True)
class Deed:
    """A command line.

    `after_s`: so many seconds after the instant. `run_s`, `user`: of a job that `sbatch` submits,
    how long it runs (None: until its time limit) and whose it is ("": the administrator's).
    """

    words: tuple[str, ...]
    after_s: float = 0.0
    run_s: float | None = None
    user: str = ""

    @property
    def submits(self) -> bool:
        return self.words[0] == "sbatch"

    def __str__(self) -> str:
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True)
class Future:
    """One alternative. Without any change it becomes what the original becomes.

    `deeds` are done in order, `settings` are changes of slurm.conf as `--set` has them, `trace` is
    submitted as well, its zero at the instant, and of jobs that are still to come `load` are
    submitted for each (1: they alone). `failures`: of nodes, a model as `--failures` has it, drawn
    from `seed`, as are the jobs of `load`.
    """

    name: str
    deeds: tuple[Deed, ...] = ()
    settings: tuple[str, ...] = ()
    trace: Path | None = None
    load: float = 1.0
    failures: str = ""
    seed: int = 1

    @property
    def is_changed(self) -> bool:
        """Whether anything is done at all."""
        return bool(self.deeds or self.settings or self.trace or self.failures or self.load != 1.0)

    def changes(self) -> list[str]:
        """A line for each thing that is done, for people."""
        return [
            *(f"--set {text}" for text in self.settings),
            *(
                f"{deed} (after {deed.after_s:g} s)" if deed.after_s else f"{deed}"
                for deed in self.deeds
            ),
            *([f"trace {self.trace}"] if self.trace else []),
            *([f"load {self.load:g}"] if self.load != 1.0 else []),
            *([f"failures {self.failures}"] if self.failures else []),
        ]


def read_deed(text: str | Sequence[str], **settings: Any) -> Deed:
    """A command line: a text as one types it, or words.

    Raises:
        FuturesError: it is none, or not of a command that may be used.
    """
    try:
        words = tuple(shlex.split(text)) if isinstance(text, str) else tuple(text)
    except ValueError as error:
        raise FuturesError(f"{text!r}: {error}") from None
    if not words:
        raise FuturesError("an empty command")
    if words[0] not in COMMANDS:
        raise FuturesError(
            f"{words[0]}: not a command that can be used here ({', '.join(COMMANDS)})"
        )
    return Deed(words, **settings)


def read_futures(path: Path) -> tuple[Future, ...]:
    """The alternatives of a file.

    Raises:
        FuturesError: it cannot be read, or says what cannot be.
    """
    try:
        text, content = read_toml(path)
    except ValueError as error:
        raise FuturesError(str(error)) from None
    tables = content.pop("future", None)
    if content:
        raise FuturesError(f"{path}: {next(iter(content))}: it has [[future]] tables, nothing else")
    if not isinstance(tables, list) or not tables:
        raise FuturesError(f"{path}: no [[future]] table")
    found = []
    for number, table in enumerate(tables, 1):
        try:
            if not isinstance(table, dict):
                raise FuturesError("expected a table")
            found.append(_future(table, str(number), path.parent))
            check_names(found)
        except FuturesError as error:
            name = table.get("name", number) if isinstance(table, dict) else number
            key = re.split("[ :]", str(error))[0]
            line = line_of(text, ["future", str(number), key])
            raise FuturesError(f"{path} line {line}: future {name}: {error}") from None
    return tuple(found)


def check_names(futures: Iterable[Future]) -> None:
    """Each is a folder of its own.

    Raises:
        FuturesError: a name that is none, or that two have.
    """
    seen = {ORIGINAL}
    for future in futures:
        if not _NAME.fullmatch(future.name):
            raise FuturesError(
                f"name {future.name!r}: it names a folder: letters, digits, and . _ + - inside"
            )
        if future.name in seen:
            raise FuturesError(
                f"name {future.name!r} is that of the unchanged run"
                if future.name == ORIGINAL
                else f"two have the name {future.name!r}"
            )
        seen.add(future.name)


def _future(table: dict[str, Any], name: str, folder: Path) -> Future:
    for key in table:
        if key not in _KEYS:
            raise FuturesError(f"{key}: unknown; there are {', '.join(sorted(_KEYS))}")
    load = _number(table, "load", 1.0)
    if not 1.0 <= load <= MOST_LOAD:
        raise FuturesError(
            f"load {load:g}: from 1 to {MOST_LOAD:g}: jobs can come as well, not less"
        )
    failures = _text(table, "failures")
    if failures:
        try:
            Model.read(failures)
        except FailuresError as error:
            raise FuturesError(f"failures {failures}: {error}") from None
    seed = table.get("seed", 1)
    if type(seed) is not int:
        raise FuturesError(f"seed {seed!r}: expected a whole number")
    trace = _text(table, "trace")
    if trace and not (folder / trace).exists():
        raise FuturesError(f"trace {folder / trace}: there is no such file")
    return Future(
        name=_text(table, "name") or name,
        deeds=tuple(map(_deed, _list(table, "do"))),
        settings=tuple(map(_setting, _list(table, "set"))),
        trace=folder / trace if trace else None,
        load=load,
        failures=failures,
        seed=seed,
    )


def _setting(value: object) -> str:
    if not isinstance(value, str):
        raise FuturesError(f"set {value!r}: expected a text")
    try:
        read_edit(value)
    except EditError as error:
        raise FuturesError(f"set {str(error).removeprefix('--set ')}") from None
    return value


def _deed(value: object) -> Deed:
    if isinstance(value, str):
        return read_deed(value)
    if not isinstance(value, dict):
        raise FuturesError(f"do {value!r}: expected a command line, or a table with one")
    for key in value:
        if key not in _DEED_KEYS:
            raise FuturesError(f"do: {key}: unknown; there are {', '.join(sorted(_DEED_KEYS))}")
    after = value.get("after", 0)
    after_s = duration_s(after) if isinstance(after, str) else _number(value, "after", 0.0)
    if after_s is None or after_s < 0:
        raise FuturesError(f"do: after {after!r}: expected a time as 90, 12h or 1d6h")
    deed = read_deed(
        _text(value, "command"),
        after_s=after_s,
        run_s=_number(value, "run", 0.0) if "run" in value else None,
        user=_text(value, "user"),
    )
    if (deed.run_s is not None or deed.user) and not deed.submits:
        raise FuturesError(f"do: {deed}: run and user are for sbatch")
    if deed.run_s is not None and deed.run_s <= 0:
        raise FuturesError(f"do: run {deed.run_s:g}: expected seconds")
    return deed


def _list(table: dict[str, Any], key: str) -> list[object]:
    value = table.get(key, [])
    return value if isinstance(value, list) else [value]


def _text(table: dict[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise FuturesError(f"{key} {value!r}: expected a text")
    return value


def _number(table: dict[str, Any], key: str, default: float) -> float:
    value = table.get(key, default)
    if type(value) not in (int, float) or not math.isfinite(value):
        raise FuturesError(f"{key} {value!r}: expected a number")
    return float(value)
