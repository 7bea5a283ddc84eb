"""Nodes from NodeName, NodeSet and DownNodes lines.

Place: a part of understudy.model.conf. Follows slurm.conf(5) "NODE CONFIGURATION", "NODESET
CONFIGURATION", "DOWN NODE CONFIGURATION".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.model import bits, conf_values, hostlist
from understudy.model.conf_keys import with_defaults
from understudy.model.conf_scan import ERROR, WARNING, ConfLine, Finding, expanded

if TYPE_CHECKING:
    from collections.abc import Callable

NODE_STATES: Final = frozenset(
    {"UNKNOWN", "CLOUD", "DOWN", "DRAIN", "FAIL", "FAILING", "FUTURE", "IDLE"}
)


@dataclass(slots=True)
class NodeConf:
    """One node as configured. Memory and disk in MB."""

    name: str
    address: str
    hostname: str
    bcast_address: str
    port: int
    cpus: int
    boards: int
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory_mb: int
    tmp_disk_mb: int
    weight: int
    features: tuple[str, ...]
    gres: str
    state: str
    reason: str
    spec_cores: int  # a mask of the cores that are the system's (CoreSpecCount, CpuSpecList)
    mem_spec_limit_mb: int
    cpu_bind: str
    tres_weights: str
    file: str
    line: int


@dataclass(slots=True)
class NodeSetConf:
    """A named set of nodes: those with one of the features, and those listed. `names` in the order
    of the node table.
    """

    name: str
    features: tuple[str, ...]
    expression: str
    names: list[str]
    file: str
    line: int


@dataclass(slots=True)
class DownNodesConf:
    """Nodes that begin in another state."""

    names: list[str]
    state: str
    reason: str
    file: str
    line: int


@dataclass(slots=True)
class _Shape:
    """CPUs and how they are laid out."""

    cpus: int
    boards: int
    sockets: int
    cores: int
    threads: int


class NodeReader:
    """Takes NodeName lines in their order; keeps the DEFAULT values, the nodes so far, and what is
    wrong.
    """

    def __init__(
        self,
        report: Callable[[Finding], None],
        number: Callable[[ConfLine, str, str, str], int | None],
        default_port: int,
    ) -> None:
        """number: reads a number of a line, or reports it and answers None: (line, key, text,
        default).
        """
        self._report = report
        self._number = number
        self._port = default_port
        self._defaults: dict[str, str] = {}
        self.nodes: list[NodeConf] = []
        self.index_of: dict[str, int] = {}

    def read(self, line: ConfLine) -> None:
        given = dict(line.pairs)
        if line.value.upper() == "DEFAULT":
            # A DEFAULT line changes what it names and leaves the rest as an earlier one set it.
            self._defaults.update(given)
            return
        settings = with_defaults(self._defaults, given)
        names = expanded(line, "NodeName", line.value, self._report)
        if not names:
            return
        addresses = self._one_for_each(line, "NodeAddr", given.get("nodeaddr", ""), names)
        hostnames = self._one_for_each(line, "NodeHostname", given.get("nodehostname", ""), names)
        bcast = self._one_for_each(line, "BcastAddr", given.get("bcastaddr", ""), names)
        shape = self._shape(line, settings)
        ports = self._ports(line, settings.get("port", ""), names)
        features = tuple(
            feature
            for feature in settings.get("features", settings.get("feature", "")).split(",")
            if feature
        )
        state = settings.get("state", "UNKNOWN").upper()
        if state not in NODE_STATES:
            self._complain(
                line,
                "bad_value",
                ERROR,
                state,
                f'Bad value "{settings["state"]}" for State',
                "State",
            )
        memory = self._amount(line, settings, "RealMemory", "1")
        common = (
            shape.cpus, shape.boards, shape.sockets, shape.cores, shape.threads, memory,
            self._amount(line, settings, "TmpDisk", "0"),
            self._amount(line, settings, "Weight", "1"), features, settings.get("gres", ""), state,
            settings.get("reason", ""),
            self._spec_cores(line, settings, shape), self._spec_memory(line, settings, memory),
            settings.get("cpubind", ""), settings.get("tresweights", ""), line.file, line.line,
        )  # fmt: skip
        nodes, index_of = self.nodes, self.index_of
        twice = []
        for position, name in enumerate(names):
            if name in index_of:
                twice.append(name)
                continue
            index_of[name] = len(nodes)
            hostname = hostnames[position] if hostnames else name
            address = addresses[position] if addresses else hostname
            port = ports[position] if ports else self._port
            nodes.append(
                NodeConf(
                    name, address, hostname, bcast[position] if bcast else address, port, *common
                )
            )
        if twice:
            shown = hostlist.compress(twice)
            self._complain(
                line,
                "duplicate_node",
                ERROR,
                shown,
                f"Duplicated NodeName {shown} in the config file",
                "NodeName",
            )

    def in_table_order(self) -> tuple[list[NodeConf], dict[str, int]]:
        """The nodes by name, as Slurm's node table has them wherever their lines are in the file;
        and where each is.
        """
        names = [node.name for node in self.nodes]
        if hostlist.counting(names) is not None:
            return self.nodes, self.index_of
        keys = hostlist.version_keys(names)
        nodes = [self.nodes[at] for at in sorted(range(len(keys)), key=keys.__getitem__)]
        return nodes, {node.name: index for index, node in enumerate(nodes)}

    def _complain(
        self, line: ConfLine, kind: str, severity: str, text: str, message: str, key: str
    ) -> None:
        self._report(Finding(kind, severity, line.file, line.line, text, message, key))

    def _one_for_each(
        self, line: ConfLine, key: str, expression: str, names: list[str]
    ) -> list[str]:
        """Addresses in the order of the names; one alone is everybody's, another number is refused.
        [] if none are given or they cannot be used.
        """
        if not expression:
            return []
        found = expanded(line, key, expression, self._report)
        if len(found) == len(names):
            return found
        if len(found) == 1:
            return found * len(names)
        if found:
            text = f"{len(names)} names, {len(found)} addresses"
            self._complain(
                line,
                "address_count_mismatch",
                ERROR,
                text,
                f"{key} does not fit NodeName: {text}",
                key,
            )
        return []

    def _ports(self, line: ConfLine, expression: str, names: list[str]) -> list[int]:
        if not expression:
            return []
        # A range of ports may stand without brackets, which it needs to be one as a host list.
        listed = (
            f"[{expression}]"
            if expression[0].isdigit() and not expression.isdigit()
            else expression
        )
        texts = self._one_for_each(line, "Port", listed, names)
        found = [
            int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
            for text in texts
        ]
        if all(0 < port < 65536 for port in found):
            return found
        self._complain(line, "bad_value", ERROR, expression, f"Invalid Port {expression}", "Port")
        return []

    def _amount(self, line: ConfLine, settings: dict[str, str], key: str, default: str) -> int:
        value = self._number(line, key, settings.get(key.lower(), default), default)
        return int(default) if value is None else value

    def _spec_cores(self, line: ConfLine, settings: dict[str, str], shape: _Shape) -> int:
        """The cores that are the system's: those with CPUs of the list, else so many from the last
        of each socket down, the last socket first.
        """
        count, listed, cores = (
            self._amount(line, settings, "CoreSpecCount", "0"),
            settings.get("cpuspeclist", ""),
            shape.sockets * shape.cores,
        )
        if listed:
            if count:
                self._reset(line, "CoreSpecCount", count, 0, "is invalid with CPUSpecList")
            try:
                cpus = bits.from_positions(
                    int(cpu) for cpu in hostlist.expand(f"[{listed.strip('[]')}]")
                )
            except ValueError:
                cpus = -1
            if cpus < 0 or cpus >> shape.cpus:
                message = (
                    f"NodeNames={line.value} CpuSpecList={listed} - unable to convert it to "
                    f"bitmap of size CPUs={shape.cpus}. Ignoring CpuSpecList."
                )
                self._complain(line, "reset_value", WARNING, listed, message, "CpuSpecList")
                return 0
            each = max(shape.cpus // cores, 1)
            return sum(1 << core for core in range(cores) if cpus >> core * each & (1 << each) - 1)
        if count and count >= cores:
            self._reset(line, "CoreSpecCount", count, 1)
            count = 1
        return sum(
            1 << (shape.sockets - i % shape.sockets) * shape.cores - 1 - i // shape.sockets
            for i in range(min(count, cores))
        )

    def _spec_memory(self, line: ConfLine, settings: dict[str, str], memory: int) -> int:
        """The memory that is the system's, in MB."""
        found = self._amount(line, settings, "MemSpecLimit", "0")
        if found < memory:
            return found
        if found:
            self._reset(line, "MemSpecLimit", found, 0)
        return 0

    def _reset(
        self, line: ConfLine, key: str, value: int, to: int, why: str = "is invalid"
    ) -> None:
        self._complain(
            line,
            "reset_value",
            WARNING,
            str(value),
            f"NodeNames={line.value} {key}={value} {why}, reset to {to}",
            key,
        )

    def _shape(self, line: ConfLine, settings: dict[str, str]) -> _Shape:
        """CPUs, boards, sockets, cores and threads that fit each other."""
        given = {
            name: self._number(line, name, settings[name.lower()], "1")
            for name in (
                "Boards",
                "Sockets",
                "SocketsPerBoard",
                "CoresPerSocket",
                "ThreadsPerCore",
                "CPUs",
                "Procs",
            )
            if name.lower() in settings
        }
        for name, value in given.items():
            if value is None or value == 0:
                if value == 0:
                    self._reset(line, name, 0, 1)
                given[name] = 1
        boards = given.get("Boards") or 1
        cores = given.get("CoresPerSocket") or 1
        threads = given.get("ThreadsPerCore") or 1
        cpus = given.get("CPUs") or given.get("Procs")
        sockets = given.get("Sockets")
        per_board = given.get("SocketsPerBoard")
        if per_board:
            if sockets:
                message = (
                    f"NodeNames={line.value} Sockets={sockets} and "
                    f"SocketsPerBoard={per_board} is invalid, using SocketsPerBoard"
                )
                self._complain(line, "reset_value", WARNING, str(sockets), message, "Sockets")
            sockets = per_board * boards
        if sockets is None:
            sockets = max(cpus // (cores * threads), 1) if cpus else boards
        if cpus is None:
            cpus = sockets * cores * threads
        elif cpus not in (sockets, sockets * cores, sockets * cores * threads):
            forms = "Sockets, Sockets*CoresPerSocket or Sockets*CoresPerSocket*ThreadsPerCore"
            message = f"NodeNames={line.value} CPUs={cpus} match no {forms}. Resetting CPUs."
            self._complain(line, "reset_value", WARNING, str(cpus), message, "CPUs")
            cpus = sockets * cores * threads
        return _Shape(cpus, boards, sockets, cores, threads)


def read_node_set(
    line: ConfLine,
    nodes: list[NodeConf],
    index_of: dict[str, int],
    report: Callable[[Finding], None],
) -> NodeSetConf:
    """A NodeSet line; nodes that it lists and nobody defines are reported."""
    given = dict(line.pairs)
    features = tuple(feature for feature in given.get("feature", "").split(",") if feature)
    expression = given.get("nodes", "")
    chosen: set[str] = set()
    if features:
        wanted = frozenset(features)
        chosen.update(node.name for node in nodes if not wanted.isdisjoint(node.features))
    listed = expand_defined(line, "Nodes", expression, index_of, report) if expression else []
    chosen.update(listed)
    names = sorted(chosen, key=index_of.__getitem__)
    return NodeSetConf(line.value, features, expression, names, line.file, line.line)


def expand_defined(
    line: ConfLine,
    key: str,
    expression: str,
    index_of: dict[str, int],
    report: Callable[[Finding], None],
    severity: str = ERROR,
) -> list[str]:
    """The names of an expression that are nodes; the others are reported."""
    if expression.upper() == "ALL":
        return list(index_of)
    names = expanded(line, key, expression, report)
    unknown = [name for name in names if name not in index_of]
    if unknown:
        shown = hostlist.compress(unknown)
        message = f"{line.written[0]}={line.value}: node names {shown} are not defined"
        report(Finding("undefined_nodes", severity, line.file, line.line, shown, message, key))
        names = [name for name in names if name in index_of]
    return names


def read_down_nodes(
    line: ConfLine, index_of: dict[str, int], report: Callable[[Finding], None]
) -> DownNodesConf:
    """A DownNodes line."""
    given = dict(line.pairs)
    state = given.get("state", "DOWN").upper()
    if state not in NODE_STATES:
        report(
            Finding(
                "bad_value",
                ERROR,
                line.file,
                line.line,
                state,
                f'Bad value "{given["state"]}" for State',
                "State",
            )
        )
        state = "DOWN"
    # Slurm goes on when DownNodes names a node that it does not know.
    names = expand_defined(line, "DownNodes", line.value, index_of, report, WARNING)
    return DownNodesConf(
        names, state, given.get("reason") or "Set in slurm.conf", line.file, line.line
    )


def number_or_report(
    report: Callable[[Finding], None], line: ConfLine, key: str, text: str, *, short: bool
) -> int | None:
    """A number of a line, or a finding and None."""
    try:
        return conf_values.number(key, text, 65535 if short else (1 << 64) - 1, suffixes=not short)
    except ValueError as error:
        report(Finding("bad_value", ERROR, line.file, line.line, text, str(error), key))
        return None
