"""What is sent to those who run cells: the content of all files that a cell names, and the options
of its replay. So a worker needs this program, but none of our folders.

Place: between a sweep's cells and `work`, which carries orders out. Reads files.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.experiments.sweep.cells import Cell, cells, key
from understudy.experiments.sweep.file import SweepError, Workload
from understudy.experiments.sweep.names import check_names
from understudy.model.conf import read
from understudy.model.conf_copy import COMPANIONS, copy_configuration
from understudy.model.durations import duration_s
from understudy.model.errors import ConfigError
from understudy.tool.sweep.version import program_version

if TYPE_CHECKING:
    from understudy.experiments.sweep.file import Replay, SweepFile

_FAILURES_FILE: Final = re.compile(r"(?<=file=)[^,]+")
_ACCOUNTING: Final = "sacctmgr.txt"
_UNCHANGED: Final = Workload()


class Source(msgspec.Struct, frozen=True):
    """A file, or all files of a folder, by their names in it."""

    name: str
    is_folder: bool
    files: dict[str, bytes]

    @property
    def sha256(self) -> str:
        found = hashlib.sha256()
        for name in sorted(self.files):
            found.update(f"{name} {len(self.files[name])}\0".encode() + self.files[name])
        return found.hexdigest()


class Recipe(msgspec.Struct, frozen=True):
    """How a workload is made: `work.make_workload`. `seed` is 0 where chance has no part."""

    workload: Workload
    sources: tuple[str, ...]  # hashes
    seed: int
    processors: int  # of the machine, for a load; 0: as the header says
    cpus: int | None

    @property
    def key(self) -> str:
        packed = msgspec.json.encode(self, order="deterministic")
        return hashlib.sha256(packed).hexdigest()[:24]


class Order(msgspec.Struct, frozen=True):
    """A cell to be run: `work.run_cell`."""

    key: str
    name: str
    options: tuple[str, ...]  # of `understudy replay`; files are relative to the cell's folder
    files: dict[str, bytes]
    recipe: str  # key
    version: str
    keeps_run: bool = False


class Plan(msgspec.Struct, frozen=True):
    """All of a sweep."""

    cells: list[Cell]
    orders: list[Order]  # of each cell
    recipes: dict[str, Recipe]  # by key
    sources: dict[str, Source]  # by hash


def plan(file: SweepFile, traces: Path | None = None) -> Plan:
    """Read all that a sweep names. `traces`: where its traces are, if not beside it.

    Raises:
        SweepError: something is not there, or cannot be used.
    """
    check_names(file)
    reader = _Reader(file, traces)
    found = Plan(cells(file), [], {}, {})
    for cell in found.cells:
        sources = reader.sources(cell)
        recipe = reader.recipe(cell, sources)
        for source in sources:
            found.sources.setdefault(source.sha256, source)
        found.recipes.setdefault(recipe.key, recipe)
        files = reader.files(cell.replay)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        hashes |= {f"source {n}": sha for n, sha in enumerate(recipe.sources)}
        found.orders.append(
            Order(
                key(cell, hashes, program_version()),
                cell.name,
                options(cell.replay, cell.seed, files),
                files,
                recipe.key,
                program_version(),
                file.sweep.runs,
            )
        )
    return found


def options(replay: Replay, seed: int, files: dict[str, bytes]) -> tuple[str, ...]:
    """The words of `understudy replay` behind its trace."""
    found = ["--seed", str(seed)]
    for name in ("nodes", "cpus", "scheduler", "parameters", "partition", "latency", "noded"):
        if value := getattr(replay, name):
            found += [f"--{name}", f"{value:g}" if isinstance(value, float) else str(value)]
    for name, values in (("set", replay.set), ("fault", replay.fault)):
        for value in values:
            found += [f"--{name}", value]
    if replay.failures:
        found += ["--failures", _FAILURES_FILE.sub("failures.csv", replay.failures)]
    if replay.conf:
        found += ["--conf", "conf/slurm.conf"]
    if _ACCOUNTING in files:
        found += ["--accounting", _ACCOUNTING]
    found += ["--strict"] * replay.strict + ["--state-on-disk"] * replay.state_on_disk
    return tuple(found)


class _Reader:
    """Files that cells name, each read once."""

    def __init__(self, file: SweepFile, traces: Path | None) -> None:
        self._file, self._traces = file, traces
        self._sources: dict[str, Source] = {}
        self._confs: dict[str, tuple[dict[str, bytes], int]] = {}
        self._read: dict[tuple[str, str], bytes] = {}

    def sources(self, cell: Cell) -> list[Source]:
        """The traces, or the scenario, of a workload."""
        workload = cell.workload
        names = workload.traces or ((workload.trace,) if workload.trace else ())
        found = [self._source(name, cell) for name in names]
        plain = msgspec.structs.replace(workload, trace="")
        if any(source.is_folder for source in found) and plain != _UNCHANGED:
            raise self._fault(
                "workload",
                cell,
                f"{names[0]} is a scenario, whose jobs no sweep changes; vary its "
                "configuration, or make a trace of it",
            )
        return found

    def recipe(self, cell: Cell, sources: list[Source]) -> Recipe:
        """How its workload is made."""
        workload = cell.workload
        for name in ("begin", "end", "shift"):
            value = getattr(workload, name)
            if isinstance(value, str) and value and duration_s(value.lstrip("-")) is None:
                raise self._fault(
                    f"workload.{name}", cell, f"{name}: {value!r} is no time such as 30d, 12h, 90"
                )
        has_chance = workload.model or workload.thin != 1 or workload.load_by == "thinning"
        replay = cell.replay
        processors = (replay.nodes or 0) * (replay.cpus or 1)
        if workload.load and replay.conf:
            processors = self._conf(replay.conf, cell)[1]
        return Recipe(
            workload,
            tuple(source.sha256 for source in sources),
            cell.seed if has_chance else 0,
            processors if workload.load else 0,
            replay.cpus if workload.load else None,
        )

    def files(self, replay: Replay) -> dict[str, bytes]:
        """What its replay is given beside the trace, by the names in its folder."""
        found: dict[str, bytes] = {}
        if replay.conf:
            found |= {f"conf/{n}": c for n, c in self._conf(replay.conf, None)[0].items()}
        if replay.accounting or replay.sacctmgr:
            before = self._content("accounting", replay.accounting) if replay.accounting else b""
            lines = "".join(f"{line}\n" for line in replay.sacctmgr)
            found[_ACCOUNTING] = before.rstrip(b"\n") + b"\n" * bool(before) + lines.encode()
        if match := _FAILURES_FILE.search(replay.failures):
            found["failures.csv"] = self._content("failures", match[0])
        return found

    def _source(self, name: str, cell: Cell) -> Source:
        if name not in self._sources:
            path = self._file.path.parent / name
            if not path.exists() and self._traces is not None:
                path = self._traces / name
            self._sources[name] = self._read_source(path, name, cell)
        return self._sources[name]

    def _read_source(self, path: Path, name: str, cell: Cell) -> Source:
        try:
            if path.is_dir():
                files = {
                    each.relative_to(path).as_posix(): each.read_bytes()
                    for each in sorted(path.rglob("*"))
                    if each.is_file()
                }
                return Source(path.resolve().name, True, files)
            return Source(path.name, False, {path.name: path.read_bytes()})
        except OSError as error:
            where = "" if self._traces is not None else "; --traces names another folder"
            raise self._fault(
                "workload.trace", cell, f"{name}: {error.strerror} ({path}{where})"
            ) from None

    def _conf(self, name: str, cell: Cell | None) -> tuple[dict[str, bytes], int]:
        """A configuration with its companions, and the processors of its machine."""
        if name not in self._confs:
            path = self._file.path.parent / name
            try:
                config = read(path)
                for finding in config.errors:
                    raise ConfigError(finding.message, finding.file, finding.line)
                with tempfile.TemporaryDirectory() as made:
                    copy_configuration(path, Path(made))
                    files = {
                        each.name: each.read_bytes()
                        for each in Path(made).iterdir()
                        if each.name in (*COMPANIONS, "slurm.conf")
                    }
            except (OSError, ValueError, ConfigError) as error:
                text = getattr(error, "strerror", None) or str(error)
                raise self._fault("replay.conf", cell, f"{name}: {text}") from None
            self._confs[name] = files, sum(node.cpus for node in config.nodes)
        return self._confs[name]

    def _content(self, what: str, name: str) -> bytes:
        if (what, name) not in self._read:
            try:
                self._read[what, name] = (self._file.path.parent / name).read_bytes()
            except OSError as error:
                raise self._fault(f"replay.{what}", None, f"{name}: {error.strerror}") from None
        return self._read[what, name]

    def _fault(self, what: str, cell: Cell | None, text: str) -> SweepError:
        """What is wrong with that key, which an axis may have set."""
        if cell is not None and what in cell.values:
            return self._file.fault(["axes", what], f"axes.{what}: {text}")
        return self._file.fault(what.split("."), text)
