"""What a load consists of: streams of command lines, each with its rate and its times.

Place: tool/load, the values that all its other modules share; read from a TOML file, or made by
kinds.py. It reads files and starts nothing. What each key means: docs/load-testing.md.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from understudy.experiments.toml_lines import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

POISSON, EVEN, DAY = "poisson", "even", "day"
ARRIVALS: Final = (POISSON, EVEN, DAY)
# What may stand in braces in a command line.
PLACES: Final = ("nodes", "job", "node", "partition", "user", "account", "number")


CPUS: Final = 4  # of a node of a cluster that is started, if nothing is said


class PlanError(Exception):
    """The load cannot be meant; the text names the file and the key."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Command lines of one kind. Times are seconds of the cluster's time since the load began."""

    name: str
    command: str  # with what PLACES names put in
    rate: float = 0.0  # a second, on average; 0: `count` at once
    count: int = 0  # no more than so many; 0: as many as there is time for
    burst: int = 1  # so many at once
    arrivals: str = POISSON
    begin: float = 0.0
    until: float = 0.0  # 0: the end of the load
    nodes: tuple[int, ...] = (1,)  # of which one is drawn for {nodes}; 0: all that there are
    run: tuple[float, float] = (1.0, 10.0)  # of a submitted job: seconds, uniformly between
    ends_at: float = 0.0  # in place of `run`: when all its jobs end
    users: int = 0  # so many of the host's users submit in turn; 0: who runs the load
    accounts: int = 0  # load1, load2 ... for {account}
    then: str = ""  # a command line that follows each, with the same values and job
    after: float = 0.0  # so much later, and not before the answer
    expected: tuple[str, ...] = ()  # parts of refusals that belong to the load

    @property
    def program(self) -> str:
        """The command's name."""
        return self.command.split(None, 1)[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole load, and the cluster that it starts if it finds none."""

    name: str
    streams: tuple[Stream, ...]
    duration: float = 30.0  # seconds of the cluster's time
    seed: int = 1
    connections: int = 64  # all processes together
    processes: int = 1
    timeout: float = 60.0  # real seconds that a request may take
    nodes: int = 1000
    cpus: int = CPUS  # of each
    accounting: bool = False
    time: str = "real"
    conf: str = ""  # further lines of slurm.conf
    connect_as: tuple[str, ...] = ()  # users of this host whose connections take turns


_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "float": (int, float),
    "int": (int,),
    "str": (str,),
    "bool": (bool,),
}


def read_plan(path: Path) -> Plan:
    """Read a plan.

    Raises:
        PlanError: it cannot be used; with the file and the key.
    """
    try:
        _, table = read_toml(path)
    except ValueError as error:
        raise PlanError(str(error)) from None
    return parse_plan(table, str(path), path.stem)


def parse_plan(table: Mapping[str, Any], where: str, name: str) -> Plan:
    """The plan that a table describes.

    Raises:
        PlanError: it cannot be used.
    """
    streams = table.get("stream", [])
    if not isinstance(streams, list) or not streams:
        raise PlanError(f"{where}: no [[stream]]: there is nothing to send")
    rest = {key: value for key, value in table.items() if key != "stream"}
    values = _values(Plan, rest, where, skip=("name", "streams"))
    plan = Plan(name=name, streams=tuple(_stream(each, where) for each in streams), **values)
    _check(plan, where)
    return plan


def _stream(table: Any, where: str) -> Stream:
    if not isinstance(table, dict):
        raise PlanError(f"{where}: stream: a table [[stream]] is meant")
    command = table.get("command")
    if not isinstance(command, str) or not command.strip():
        raise PlanError(f"{where}: stream {table.get('name', '')}: command is missing")
    name = str(table.get("name") or command.split("{", 1)[0].strip())
    at = f"{where}: stream {name}"
    rest = {key: value for key, value in table.items() if key not in ("name", "command")}
    for key in ("nodes", "run"):
        if isinstance(rest.get(key), int | float) and not isinstance(rest[key], bool):
            rest[key] = [rest[key]] * (1 if key == "nodes" else 2)
    return Stream(name=name, command=command, **_values(Stream, rest, at, skip=("name", "command")))


def _values(
    kind: type[Plan | Stream], table: Mapping[str, Any], where: str, skip: tuple[str, ...]
) -> dict[str, Any]:
    types = {each.name: str(each.type) for each in fields(kind) if each.name not in skip}
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in types:
            raise PlanError(f"{where}: {key}: no such key; there are {', '.join(sorted(types))}")
        element = types[key].removeprefix("tuple[").split(",")[0].rstrip("]")
        is_list = types[key].startswith("tuple")
        each = value if is_list else [value]
        if not isinstance(each, list) or not all(
            isinstance(one, _KINDS[element])
            and isinstance(one, bool) == (element == "bool")
            and (not isinstance(one, int | float) or 0 <= one < float("inf"))
            for one in each
        ):
            what = {"str": "text", "bool": "true or false"}.get(element, "number of at least 0")
            raise PlanError(f"{where}: {key} = {value!r}: a {'list of ' * is_list}{what} is meant")
        found[key] = tuple(value) if is_list else value
    return found


def _check(plan: Plan, where: str) -> None:
    for key in ("duration", "connections", "processes", "timeout", "nodes", "cpus"):
        if not getattr(plan, key):
            raise PlanError(f"{where}: {key} = 0: at least 1 is needed")
    if plan.connections < plan.processes:
        raise PlanError(f"{where}: connections = {plan.connections}: fewer than processes")
    names = [stream.name for stream in plan.streams]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"{where}: stream {name}: there are two of this name")
    for stream in plan.streams:
        _check_stream(stream, f"{where}: stream {stream.name}")


def _check_stream(stream: Stream, where: str) -> None:
    if not stream.rate and not stream.count:
        raise PlanError(f"{where}: neither rate nor count says how many")
    if stream.burst < 1:
        raise PlanError(f"{where}: burst = {stream.burst}: at least 1 is needed")
    if stream.arrivals not in ARRIVALS:
        raise PlanError(f"{where}: arrivals = {stream.arrivals!r}: one of {', '.join(ARRIVALS)}")
    if len(stream.run) != 2 or stream.run[0] > stream.run[1]:
        raise PlanError(f"{where}: run = {list(stream.run)}: [shortest, longest] is meant")
    if not stream.nodes:
        raise PlanError(f"{where}: nodes = []: of what?")
    for key, line in (("command", stream.command), ("then", stream.then)):
        try:
            put_in(line, dict.fromkeys(PLACES, ""))
            shlex.split(line)
        except (KeyError, ValueError, IndexError) as error:
            raise PlanError(
                f"{where}: {key} = {line!r}: {error} (in braces may stand {', '.join(PLACES)})"
            ) from None


def put_in(line: str, values: Mapping[str, object]) -> str:
    """The command line with what stands in braces put in.

    Raises:
        KeyError, ValueError, IndexError: something else stands in braces.
    """
    return line.format_map(values)
