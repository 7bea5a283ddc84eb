"""What a sweep is: jobs, a machine, and what is varied. A TOML file each; docs/sweeps.md describes
the format.

Place: the model of sweeps; reads their files and nothing else. What becomes of axes is in `cells`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from understudy.experiments.toml_lines import line_of, read_toml

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Size = Annotated[int, msgspec.Meta(ge=1)]
_Positive = Annotated[float, msgspec.Meta(gt=0)]
_PLACE: Final = re.compile(r" - at `(.*)`$")


class SweepError(ValueError):
    """A sweep that cannot be read or run. Says which file, which line of it, and the mend."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the file: a word that it does not know is an error."""


class Model(_Part, frozen=True):
    """A workload out of a model instead of a trace."""

    kind: Literal["lublin", "synthetic"]
    jobs: _Size = 1_000
    nodes: _Size = 100
    cpus: _Size = 1
    days: _Positive = 10.0
    load: _Positive | None = None  # offered; None (synthetic): as it comes
    users: _Count = 0
    groups: _Count = 0
    queues: _Count = 0


class Workload(_Part, frozen=True):
    """Which jobs. What changes them is done in the order in which it stands here; spans are seconds
    or texts as `30d`.
    """

    trace: str = ""
    traces: tuple[str, ...] = ()  # several, merged
    by_date: bool = False  # merged by the dates of their headers
    model: Model | None = None
    leave_out: tuple[int, ...] = ()  # users, by their numbers in the trace
    begin: float | str = 0.0
    end: float | str = ""
    jobs: _Count = 0  # the first so many; 0: all
    thin: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0  # share of the jobs
    run_times: _Positive = 1.0
    interarrival: _Positive = 1.0
    load: _Positive | None = None  # offered, by what `load_by` says
    load_by: Literal["interarrival", "thinning", "run_times"] = "interarrival"
    perfect: bool = False  # limits
    shift: float | str = 0.0


class Replay(_Part, frozen=True):
    """Options of `understudy replay`, under their names; `sacctmgr` are lines of its `--accounting`
    behind those of the file.
    """

    nodes: _Size | None = None
    cpus: _Size | None = None
    scheduler: str = ""
    parameters: str = ""
    conf: str = ""
    set: tuple[str, ...] = ()
    partition: str = ""
    accounting: str = ""
    sacctmgr: tuple[str, ...] = ()
    failures: str = ""
    fault: tuple[str, ...] = ()
    latency: _Positive | None = None
    noded: _Size | None = None
    state_on_disk: bool = False
    strict: bool = False


class Picture(_Part, frozen=True):
    """`heat`: a figure over two axes. `lines`: a figure over an axis, a line for each value of
    `by`, with intervals over all else. `pareto`: two figures of all cells, and those that none
    beats in both.
    """

    kind: Literal["heat", "lines", "pareto"]
    x: str
    y: str = ""  # of heat an axis, of pareto a figure
    figure: str = "mean_wait"
    by: str = ""
    # of pareto: figures of which more is better
    more: tuple[str, ...] = ()


class Sweep(_Part, frozen=True):
    """A file."""

    title: str
    workload: Workload
    axes: dict[str, Any] = {}
    replay: Replay = Replay()
    asks: str = ""
    how: Literal["grid", "list", "sample"] = "grid"
    samples: _Size = 10  # of `sample`
    sample_seed: int = 1
    seeds: tuple[_Count, ...] = (1,)
    executions: _Size = 1  # of each cell
    runs: bool = False  # the folder of each cell's replay is kept
    figures: tuple[str, ...] = ()  # columns of the page
    pictures: tuple[Picture, ...] = ()
    notes: tuple[str, ...] = ()


class SweepFile:
    """A file as read: the sweep, and where in it things stand."""

    def __init__(self, path: Path, text: str, sweep: Sweep) -> None:
        self.path, self.sweep, self._text = path, sweep, text

    def fault(self, where: Sequence[str], what: str) -> SweepError:
        """What is wrong with the key at that path."""
        return fault(self.path, self._text, where, what)


def fault(path: Path, text: str, where: Sequence[str], what: str) -> SweepError:
    """With the file and the line of the key at that path."""
    line = line_of(text, where)
    return SweepError(f"{path}{f' line {line}' if line else ''}: {what}")


def read_sweep(path: Path, *, short: bool = False) -> SweepFile:
    """Read a file. `short`: with what its table [short] has instead.

    Raises:
        SweepError: it cannot be read, or has what no sweep has.
    """
    try:
        text, content = read_toml(path)
    except ValueError as error:
        raise SweepError(str(error)) from None
    other: dict[str, Any] = content.pop("short", {})
    if short:
        if not other or not isinstance(other, dict):
            raise SweepError(f"{path}: it has no table [short], so no short form")
        content = _merged(content, other)
    try:
        sweep = msgspec.convert(content, Sweep)
    except msgspec.ValidationError as error:
        what, where = understood(error)
        raise fault(path, text, where, what) from None
    found = SweepFile(path, text, sweep)
    _check(found)
    return found


def understood(error: msgspec.ValidationError) -> tuple[str, list[str]]:
    """What a refusal says, and the path of keys to which it is said."""
    text = str(error)
    match = _PLACE.search(text)
    where = [
        each
        for each in re.findall(r"[^.\[\]`$]+", match[1] if match else "")
        if not each.isdigit() and each != "..."
    ]
    what = text[: match.start()] if match else text
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        where.append(unknown[1])
        return f"there is no key {unknown[1]!r} here", where
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        return f"{missing[1]!r} is missing", where
    return f"{'.'.join(where)}: {what}" if where else what, where


def _merged(content: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The tables with what another has of them instead."""
    found = dict(content)
    for key, value in other.items():
        before = found.get(key)
        is_table = isinstance(before, dict) and isinstance(value, dict)
        found[key] = _merged(before or {}, value) if is_table else value
    return found


def _check(file: SweepFile) -> None:
    """What no type says.

    Raises:
        SweepError: there is no workload, or more than one; or no value.
    """
    sweep = file.sweep
    workload = sweep.workload
    kinds = [name for name in ("trace", "traces", "model") if getattr(workload, name)]
    if len(kinds) != 1:
        raise file.fault(
            ["workload"],
            f"{' and '.join(kinds)}: one of them is enough"
            if kinds
            else "a workload needs a trace, traces or a model",
        )
    if not sweep.seeds:
        raise file.fault(["seeds"], "seeds: at least one is needed")
    if len(set(sweep.seeds)) < len(sweep.seeds):
        raise file.fault(["seeds"], "seeds: one is there twice")
