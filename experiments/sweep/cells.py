"""Cells of a sweep: each a choice of values of all axes and a seed, and what is run for it.

Place: between a sweep's file and those who run its cells. Pure: a sample is of its seed alone.

An axis is named by what it changes: `scheduler`, `parameters`, `sacctmgr`, `conf.KEY`, `word.WORD`,
`workload.KEY`, `model.KEY`, `replay.KEY`; an axis with any other name has tables as its values,
each a variant with a name and several changes. Changes are made in the order of the axes' names, so
that the order in a file decides nothing but the order of the table.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import random
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from understudy.controller.offers import offered
from understudy.controller.scheduling import registry
from understudy.experiments.faults import read_words
from understudy.experiments.node_failures import Model
from understudy.experiments.sweep.file import Replay, SweepError, Workload, understood
from understudy.model.conf_edit import EditError, read_edit
from understudy.model.conf_words import WORDS
from understudy.model.errors import ConfigError
from understudy.model.scheduler_parameters import complaints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.experiments.sweep.file import Sweep, SweepFile

_Kind = TypeVar("_Kind", Workload, Replay)
_TABLES: Final = ("conf", "word", "workload", "model", "replay")
_PLAIN: Final = ("scheduler", "parameters", "sacctmgr")
_OF_VARIANTS: Final = ("name", "set", *_PLAIN, *_TABLES)
_LISTS: Final = ("set", "sacctmgr", "fault")  # of a replay: values come behind, instead of in place
MOST: Final = 100_000  # cells


class Cell(NamedTuple):
    """What is run. `values`: of each axis as the table shows it, in the file's order."""

    number: int  # its place, from 1
    values: dict[str, Any]
    seed: int
    workload: Workload
    replay: Replay
    execution: int = 1

    @property
    def name(self) -> str:
        """`scheduler=easy workload.load=0.8 seed=1`."""
        shown = [f"{axis}={value}" for axis, value in self.values.items()]
        again = [f"execution={self.execution}"] if self.execution > 1 else []
        return " ".join([*shown, f"seed={self.seed}", *again])


def key(cell: Cell, files: Mapping[str, str], version: str) -> str:
    """Equal for cells that have the same outcome, whatever they are called. `files`: hashes of the
    files that they name.
    """
    inputs = {
        "workload": msgspec.to_builtins(cell.workload),
        "replay": msgspec.to_builtins(cell.replay),
        "files": dict(files),
        "seed": cell.seed,
        "version": version,
        "execution": cell.execution,
    }
    return hashlib.sha256(msgspec.json.encode(inputs, order="deterministic")).hexdigest()[:24]


def cells(file: SweepFile) -> list[Cell]:
    """All of them, the last axis changing soonest and seeds before it.

    Raises:
        SweepError: an axis changes what is not there, or to what it cannot be.
    """
    sweep = file.sweep
    axes = {name: _values(file, name, given) for name, given in sweep.axes.items()}
    _cell(file, {}, sweep.seeds[0], 0)
    for name, values in axes.items():
        if isinstance(values, list):
            for value in values:
                _cell(file, {name: value}, sweep.seeds[0], 0)  # says what is wrong with it alone
    points = _points(file, axes)
    if len(points) * len(sweep.seeds) * sweep.executions > MOST:
        raise file.fault(["axes"], f"more than {MOST:,} cells: take a sample (how = 'sample')")
    return [
        _cell(file, point, seed, number)._replace(execution=execution)
        for number, (point, seed, execution) in enumerate(
            product(points, sweep.seeds, range(1, sweep.executions + 1)), 1
        )
    ]


class _Range(NamedTuple):
    """Values to sample from."""

    low: float
    high: float
    log: bool
    whole: bool

    def draw(self, chance: random.Random) -> float:
        if self.log:
            found = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
        else:
            found = chance.uniform(self.low, self.high)
        found = min(max(found, self.low), self.high)
        return round(found) if self.whole else float(f"{found:.6g}")


def _values(file: SweepFile, name: str, given: Any) -> list[Any] | _Range:
    """The values of an axis.

    Raises:
        SweepError: there are none.
    """
    where = ["axes", name]
    if isinstance(given, dict):
        if not given.keys() <= {"from", "to", "log", "whole"} or not {"from", "to"} <= given.keys():
            raise file.fault(where, f"axes.{name}: a range has from, to, and may have log, whole")
        if file.sweep.how != "sample":
            raise file.fault(where, f"axes.{name}: a range needs how = 'sample'; else give values")
        low, high = given["from"], given["to"]
        log = bool(given.get("log"))
        if not all(type(each) in (int, float) for each in (low, high)) or not low < high:
            raise file.fault(where, f"axes.{name}: from is a number below to")
        if log and low <= 0:
            raise file.fault(where, f"axes.{name}: a logarithmic range begins above 0")
        return _Range(low, high, log, bool(given.get("whole")))
    if not isinstance(given, list) or not given:
        raise file.fault(where, f"axes.{name}: expected a list of values")
    shown = [_shown(value) for value in given]
    if any(shown.count(each) > 1 for each in shown):
        raise file.fault(where, f"axes.{name}: a value is there twice")
    return given


def _points(file: SweepFile, axes: Mapping[str, list[Any] | _Range]) -> list[dict[str, Any]]:
    sweep = file.sweep
    if sweep.how == "sample":
        return _sample(sweep, axes)
    lists = {name: values for name, values in axes.items() if isinstance(values, list)}
    if sweep.how == "list":
        lengths = {len(values) for values in lists.values()}
        if len(lengths) > 1:
            raise file.fault(
                ["axes"],
                "how = 'list' takes the first values together, then the second ones ...: all axes "
                f"need as many ({', '.join(f'{n}: {len(v)}' for n, v in lists.items())})",
            )
        rows: Sequence[tuple[Any, ...]] = list(zip(*lists.values(), strict=True)) or [()]
    else:
        if math.prod(len(values) for values in lists.values()) > MOST:
            raise file.fault(["axes"], f"more than {MOST:,} cells: take a sample (how = 'sample')")
        rows = list(product(*lists.values()))
    return [dict(zip(lists, row, strict=True)) for row in rows]


def _sample(sweep: Sweep, axes: Mapping[str, list[Any] | _Range]) -> list[dict[str, Any]]:
    """So many points, none twice; all of them where there are no more. Each axis draws for itself,
    so that their order decides nothing.
    """
    chances = {name: random.Random(f"{sweep.sample_seed} {name}") for name in axes}  # noqa: S311
    found: dict[str, dict[str, Any]] = {}
    for _ in range(sweep.samples * 100):
        if len(found) == sweep.samples:
            break
        point = {
            name: values.draw(chances[name])
            if isinstance(values, _Range)
            else chances[name].choice(values)
            for name, values in axes.items()
        }
        found.setdefault(repr(sorted((name, _shown(each)) for name, each in point.items())), point)
    return list(found.values())


def _shown(value: Any) -> Any:
    """A value as tables have it: a variant's name, several lines as one."""
    if isinstance(value, dict):
        return str(value.get("name", value))
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def _cell(file: SweepFile, point: Mapping[str, Any], seed: int, number: int) -> Cell:
    sweep = file.sweep
    changes = _Changes(
        msgspec.to_builtins(sweep.workload),
        {name: value for name, value in msgspec.to_builtins(sweep.replay).items() if value},
    )
    for name in sorted(point):
        try:
            changes.make(name, point[name])
        except (SweepError, EditError, ConfigError) as error:
            text = str(error).removeprefix("--set ")
            raise file.fault(["axes", name], f"{_told(name, point[name])}: {text}") from None
    where = ["axes", *point] if len(point) == 1 else ["axes"] if point else ["replay"]
    told = ", ".join(_told(*each) for each in point.items()) or "replay"
    try:
        workload = msgspec.convert(changes.workload, Workload)
        replay = msgspec.convert(_with_seed(changes.replay, seed), Replay)
        _check(replay)
    except msgspec.ValidationError as error:
        what, _ = understood(error)
        raise file.fault(where, f"{told}: {what}") from None
    except ValueError as error:
        raise file.fault(where, f"{told}: {error}") from None
    return Cell(
        number, {name: _shown(value) for name, value in point.items()}, seed, workload, replay
    )


def _told(axis: str, value: Any) -> str:
    """An axis in what is said to be wrong; of variants, which one."""
    variant = f" {value['name']!r}" if isinstance(value, dict) and "name" in value else ""
    return f"axes.{axis}{variant}"


def _check(replay: Replay) -> None:
    """What each of its cells would fail by, or, as Slurm does, take the default for.

    Raises:
        ValueError: there is such a thing; says which.
    """
    for setting in (f"SchedulerParameters={replay.parameters}", *replay.set):
        name, _, words = setting.partition("=")
        if name.rstrip("+-").lower() == "schedulerparameters":
            for complaint in complaints(words):
                raise SweepError(f"{complaint}: the default would be taken")
    if replay.failures:
        Model.read(replay.failures)
    for fault in replay.fault:
        read_words(fault)


class _Changes:
    """The base of a sweep, changed by one value after another."""

    def __init__(self, workload: dict[str, Any], replay: dict[str, Any]) -> None:
        self.workload, self.replay = workload, replay

    def make(self, axis: str, value: Any) -> None:
        """Make what a value of that axis says.

        Raises:
            SweepError, EditError, ConfigError: it cannot be.
        """
        table, dot, name = axis.partition(".")
        if dot and table in _TABLES:
            self._one(table, name, value)
        elif axis in _PLAIN:
            self._plain(axis, value)
        elif isinstance(value, dict):
            self._variant(value)
        else:
            raise SweepError(
                f"nothing is called so: an axis is {', '.join(_PLAIN)}, "
                f"{', '.join(f'{each}.NAME' for each in _TABLES)}, or has tables with a name each"
            )

    def _variant(self, value: Mapping[str, Any]) -> None:
        if "name" not in value:
            raise SweepError("a variant needs a name")
        for each, what in value.items():
            if each not in _OF_VARIANTS:
                raise SweepError(
                    f"a variant has no {each!r}: it may have {', '.join(_OF_VARIANTS)}"
                )
            if each in _PLAIN:
                self._plain(each, what)
            elif each == "set":
                for line in _listed(what):
                    read_edit(str(line))
                self._put("set", what)
            elif each in _TABLES:
                if not isinstance(what, dict):
                    raise SweepError(f"{each} is a table")
                for key_, inner in what.items():
                    self._one(each, key_, inner)

    def _plain(self, name: str, value: Any) -> None:
        if name == "scheduler":
            registry.scheduler(str(value))
        self._put(name, value)

    def _one(self, table: str, name: str, value: Any) -> None:
        if table == "conf":
            setting = f"{name}={_text(value)}"
            read_edit(setting)
            self._put("set", setting)
        elif table == "word":
            self._put("set", _word(name, value))
        elif table == "model":
            if not isinstance(self.workload.get("model"), dict):
                raise SweepError("the workload is of no model, but of a trace")
            self.workload["model"] = {**self.workload["model"], name: value}
        elif table == "workload":
            _known(name, Workload)
            self.workload[name] = value
        else:
            _known(name, Replay)
            if name == "scheduler":
                registry.scheduler(str(value))
            self._put(name, value)

    def _put(self, name: str, value: Any) -> None:
        if name in _LISTS:
            self.replay[name] = [*self.replay.get(name, ()), *_listed(value)]
        else:
            self.replay[name] = value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _known(name: str, kind: type[_Kind]) -> None:
    known = kind.__struct_fields__
    if name not in known:
        raise SweepError(f"there is no {name!r}; there are {', '.join(known)}")


def _text(value: Any) -> str:
    """As slurm.conf has it."""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _word(name: str, value: Any) -> str:
    """The change of a word of SchedulerParameters: with a value, or there (true) or not (false).

    Raises:
        SweepError: no scheduler reads it.
    """
    words = WORDS["schedulerparameters"]
    known = {*words.acts, *words.idle, *_declared()}
    if name.lower() not in known:
        close = difflib.get_close_matches(name.lower(), sorted(known), 1)
        meant = f" (is {close[0]} meant?)" if close else ""
        raise SweepError(f"SchedulerParameters has no word {name}{meant}")
    if isinstance(value, bool):
        return f"SchedulerParameters{'+' if value else '-'}={name}"
    setting = f"SchedulerParameters+={name}={value}"
    read_edit(setting)
    return setting


def _declared() -> set[str]:
    """Words that installed policies read."""
    found: set[str] = set()
    for name in offered(registry.SCHEDULERS):
        found |= {word.lower() for word in registry.scheduler(name).parameter_words}
    return found


def _with_seed(replay: dict[str, Any], seed: int) -> dict[str, Any]:
    """With the seed where texts say `{seed}`."""

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{seed}", str(seed))
        return [put(each) for each in value] if isinstance(value, list | tuple) else value

    return {name: put(value) for name, value in replay.items()}
