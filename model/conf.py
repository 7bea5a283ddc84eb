"""slurm.conf and its companions as one typed value.

Place: the vocabulary; the layer between lines (understudy.model.conf_scan) and verdict
(understudy.model.conf_check). The parts are read in conf_nodes, conf_partitions, conf_companions;
the keys are in conf_keys, their values in conf_values, `scontrol show config` in conf_show.

    config = load("slurm.conf")                      # ConfigError says file and line
    config.seconds("SlurmdTimeout")                  # 300 where the file says nothing
    config.nodes[0].cpus, config.partitions[0].nodes

`read` never gives up: it takes what it can and lists what is wrong; `load` raises the first thing
for which Slurm would refuse to start. Keys that came or went with other versions are taken with a
warning, as one wants to try a site's file whatever its age; a key that no version knows is an
error, as in Slurm.

Follows: slurm.conf(5) of 22.05, and 22.05.8's answers where the page is silent.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from understudy.model import (
    burst_buffer_conf,
    conf_companions,
    conf_nodes,
    conf_partitions,
    conf_plugins,
    conf_show,
    conf_values,
    conf_words,
)
from understudy.model.burst_buffer_conf import LUA_SCRIPT, BurstBufferConf
from understudy.model.burst_buffers import LUA
from understudy.model.conf_companions import GresConf, SwitchConf
from understudy.model.conf_eras import remark
from understudy.model.conf_keys import GLOBAL_KEYS, LINE_KEYS, REPEATABLE, Era, Key, Kind
from understudy.model.conf_nodes import DownNodesConf, NodeConf, NodeReader, NodeSetConf
from understudy.model.conf_partitions import PartitionConf
from understudy.model.conf_scan import ERROR, WARNING, ConfLine, Finding, Scan, scan, scan_text
from understudy.model.conf_together import contradictions, cpus_without_cores
from understudy.model.errors import ConfigError
from understudy.model.gres import read_configured
from understudy.model.prolog_flags import WORDS as PROLOG_WORDS
from understudy.model.scheduler_parameters import complaints

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DownNodesConf",
    "Finding",
    "GresConf",
    "NodeConf",
    "NodeSetConf",
    "PartitionConf",
    "SlurmConfig",
    "SwitchConf",
    "load",
    "read",
    "read_text",
]

_SHORT_NODE_KEYS: Final = frozenset(
    name for name, key in LINE_KEYS["nodename"].items() if key.kind is Kind.SHORT
)
_LARGEST_ARRAY: Final = 4_000_001
_LEAST_DBD_MESSAGES: Final = 10_000
_HOST = re.compile(r"([^()\s]+)(?:\(([^()\s]+)\))?")


@dataclass(slots=True)
class SlurmConfig:
    """A configuration. Not changed after it is read; `scontrol` changes the controller's tables
    instead.
    """

    path: str
    cluster_name: str = ""
    # global keys in lower case, as the file gives them (the last one counts)
    values: dict[str, str] = field(default_factory=dict)
    nodes: list[NodeConf] = field(default_factory=list)  # in the order of the lines
    index_of: dict[str, int] = field(default_factory=dict)  # a node's name to its place in `nodes`
    partitions: list[PartitionConf] = field(default_factory=list)
    node_sets: dict[str, NodeSetConf] = field(default_factory=dict)
    down_nodes: list[DownNodesConf] = field(default_factory=list)
    # (host, address or ""): the primary, then the backups
    controllers: list[tuple[str, str]] = field(default_factory=list)
    gres: list[GresConf] = field(default_factory=list)
    topology: list[SwitchConf] = field(default_factory=list)
    cgroup: dict[str, str] = field(default_factory=dict)
    burst_buffer: BurstBufferConf = field(default_factory=BurstBufferConf)
    # keys in lower case, "" for bare words
    scheduler_parameters: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)  # all that were read
    findings: list[Finding] = field(default_factory=list)
    lines: list[ConfLine] = field(default_factory=list)  # of slurm.conf and what it includes
    continued_lines: int = 0

    @property
    def node_names(self) -> list[str]:
        return [node.name for node in self.nodes]

    @property
    def default_partition(self) -> PartitionConf | None:
        """The last one that says so."""
        return next(
            (partition for partition in reversed(self.partitions) if partition.is_default), None
        )

    @property
    def burst_buffer_kind(self) -> str:
        """`lua` or `datawarp`, "" where burst buffers are off."""
        kind = self.text("BurstBufferType").rpartition("/")[2]
        return kind if kind in ("lua", "datawarp") else ""

    @property
    def errors(self) -> list[Finding]:
        """What Slurm would refuse, in the order of files and lines; what is missing comes last."""
        place = {name: index for index, name in enumerate(self.files)}
        return sorted(
            (each for each in self.findings if each.severity == ERROR),
            key=lambda each: (not each.line, place.get(each.file, len(place)), each.line),
        )

    def is_set(self, name: str) -> bool:
        """Whether the file gives the key."""
        return name.lower() in self.values

    def text(self, name: str) -> str:
        """A key's value as text, its default where the file says nothing.

        Raises:
            KeyError: there is no such key.
        """
        value = self.values.get(name.lower())
        return GLOBAL_KEYS[name.lower()].default if value is None else value

    def number(self, name: str) -> int | None:
        """A number; None for UNLIMITED, or where there is neither value nor default."""
        text = self.text(name)
        if not text:
            return None
        value = conf_values.value_of(GLOBAL_KEYS[name.lower()], text)
        assert isinstance(value, int | None), f"{name} is no number"
        return value

    def count(self, name: str) -> int:
        """A number that has a default and is not UNLIMITED."""
        value = self.number(name)
        assert value is not None, f"{name} has no value"
        return value

    def seconds(self, name: str) -> int | None:
        """A time in seconds, also of keys that count minutes; None for UNLIMITED, or where there is
        neither value nor default.
        """
        text = self.text(name)
        return conf_values.seconds_of(GLOBAL_KEYS[name.lower()], text) if text else None

    def boolean(self, name: str) -> bool:
        """Yes or no; for numbers, whether it is not 0."""
        text = self.text(name)
        return bool(text) and bool(conf_values.value_of(GLOBAL_KEYS[name.lower()], text))

    def words(self, name: str) -> list[str]:
        """The parts of a comma separated value."""
        return [word for word in (part.strip() for part in self.text(name).split(",")) if word]

    @property
    def controller_ports(self) -> tuple[int, int]:
        """SlurmctldPort: the first and the last."""
        return conf_values.ports("SlurmctldPort", self.text("SlurmctldPort"))

    def show(self, **running: str) -> list[tuple[str, str]]:
        """Names and values as `scontrol show config` prints them. `running`: what only a running
        controller knows, see conf_show.show.
        """
        return conf_show.show(self, **running)


def load(path: str | os.PathLike[str], *, strict: bool = True) -> SlurmConfig:
    """Read a configuration.

    strict: raise the first error; without, errors stay in `findings`.

    Raises:
        ConfigError: the file cannot be read, or Slurm would not start with it; says file and line.
    """
    config = read(path)
    if strict:
        for finding in config.errors:
            raise ConfigError(finding.message, finding.file, finding.line)
    return config


def read(path: str | os.PathLike[str]) -> SlurmConfig:
    """Read a configuration and its companions as far as possible; what is wrong is in `findings`.

    Raises:
        ConfigError: the file itself cannot be read.
    """
    name = os.fspath(path)
    try:
        lines = scan(name)
    except (OSError, ValueError) as error:
        raise ConfigError(getattr(error, "strerror", None) or str(error), name) from error
    config = _understand(lines)
    _read_companions(config)
    _check_gres(config)
    return config


def read_text(text: str, path: str = "slurm.conf") -> SlurmConfig:
    """The same for a text at hand, without companions."""
    return _understand(scan_text(text, path))


def _understand(lines: Scan) -> SlurmConfig:
    config = SlurmConfig(
        lines.path,
        files=lines.files,
        findings=lines.findings,
        lines=lines.lines,
        continued_lines=lines.continued_lines,
    )
    report = config.findings.append
    _report_keys(lines.lines, report)
    by_kind: dict[str, list[ConfLine]] = {kind: [] for kind in LINE_KEYS}
    given: dict[str, list[ConfLine]] = {}
    for line in lines.lines:
        (by_kind[line.key] if line.key in by_kind else given.setdefault(line.key, [])).append(line)
    _read_globals(config, given, report)
    _read_nodes(config, by_kind, report)
    config.partitions = conf_partitions.read_partitions(
        by_kind["partitionname"], config.index_of, config.node_sets, report
    )
    _check_together(config, report)
    return config


def _report_keys(lines: list[ConfLine], report: Callable[[Finding], None]) -> None:
    """Keys that no version knows, or another one; keys given twice on a line."""
    for line in lines:
        known = LINE_KEYS.get(line.key, GLOBAL_KEYS)
        seen: set[str] = set()
        for (name, value), written in zip(line.pairs, line.written, strict=True):
            key = known.get(name)
            if key is None:
                _report_foreign(line, name, written, report)
            elif key.era is not Era.CURRENT:
                report(
                    Finding(
                        f"{key.era.value}_key",
                        WARNING,
                        line.file,
                        line.line,
                        written,
                        remark(key, written, value, line_key=line.key),
                        written,
                    )
                )
            plain = "feature" if name == "features" else name
            if plain in seen:
                message = f"{written} is given twice on the line"
                report(
                    Finding(
                        "key_given_twice", WARNING, line.file, line.line, written, message, plain
                    )
                )
            seen.add(plain)
        if len(line.pairs) > 1 and line.key not in LINE_KEYS:
            rest = line.written[1]
            report(
                Finding(
                    "parse_error",
                    ERROR,
                    line.file,
                    line.line,
                    rest,
                    f'cannot read "{rest}" behind {line.written[0]}',
                    line.written[0],
                )
            )


def _report_foreign(
    line: ConfLine, name: str, written: str, report: Callable[[Finding], None]
) -> None:
    """A key that does not belong on its line."""
    belongs = next((kind for kind, keys in LINE_KEYS.items() if name in keys), "")
    if line.key in LINE_KEYS and name in GLOBAL_KEYS:
        hint = ": it stands on a line of its own"
    elif line.key not in LINE_KEYS and belongs:
        hint = f": it belongs on a {LINE_KEYS[belongs][belongs].name} line"
    else:
        hint = ""
    kind = "misplaced_key" if hint else "unknown_key"
    report(
        Finding(
            kind,
            ERROR,
            line.file,
            line.line,
            written,
            f"unrecognized key: {written}{hint}",
            written,
        )
    )


def _read_globals(
    config: SlurmConfig, given: dict[str, list[ConfLine]], report: Callable[[Finding], None]
) -> None:
    for name, lines in given.items():
        key = GLOBAL_KEYS.get(name)
        if key is None:
            continue
        if len(lines) > 1 and name not in REPEATABLE:
            numbers = ", ".join(str(line.line) for line in lines)
            last = lines[-1]
            message = f"{key.name} is given on lines {numbers}: the last one counts"
            report(
                Finding("repeated_key", WARNING, last.file, last.line, numbers, message, key.name)
            )
        for line in lines:
            if _is_valid(key, line, report):
                config.values[name] = line.value
    config.cluster_name = config.values.get("clustername", "")
    for part in config.values.get("schedulerparameters", "").split(","):
        name, _, value = part.strip().lstrip("=").partition("=")
        if name:
            config.scheduler_parameters[name.lower()] = value
    for line in given.get("slurmctldhost", []):
        if match := _HOST.fullmatch(line.value):
            config.controllers.append((match[1], match[2] or ""))
        else:
            report(
                Finding(
                    "bad_value",
                    ERROR,
                    line.file,
                    line.line,
                    line.value,
                    f'Bad value "{line.value}" for SlurmctldHost',
                    "SlurmctldHost",
                )
            )
    if not config.controllers:
        for host, address in (
            ("controlmachine", "controladdr"),
            ("backupcontroller", "backupaddr"),
        ):
            if host in config.values:
                config.controllers.append((config.values[host], config.values.get(address, "")))


def _is_valid(key: Key, line: ConfLine, report: Callable[[Finding], None]) -> bool:
    try:
        conf_values.value_of(key, line.value)
    except ValueError as error:
        report(Finding("bad_value", ERROR, line.file, line.line, line.value, str(error), key.name))
        return False
    return True


def _read_nodes(
    config: SlurmConfig, by_kind: dict[str, list[ConfLine]], report: Callable[[Finding], None]
) -> None:
    def number(line: ConfLine, key: str, text: str, default: str) -> int | None:
        del default
        return conf_nodes.number_or_report(
            report, line, key, text, short=key.lower() in _SHORT_NODE_KEYS
        )

    reader = NodeReader(report, number, config.number("SlurmdPort") or 6818)
    for line in by_kind["nodename"]:
        reader.read(line)
    config.nodes, config.index_of = reader.in_table_order()
    for line in by_kind["nodeset"]:
        config.node_sets[line.value] = conf_nodes.read_node_set(
            line, config.nodes, config.index_of, report
        )
    for line in by_kind["downnodes"]:
        down = conf_nodes.read_down_nodes(line, config.index_of, report)
        config.down_nodes.append(down)
        for name in down.names:
            node = config.nodes[config.index_of[name]]
            node.state, node.reason = down.state, down.reason


def _of_key(config: SlurmConfig, kind: str, severity: str, key: str, message: str) -> Finding:
    """The finding, at the last line with that key."""
    line = next((line for line in reversed(config.lines) if line.key == key.lower()), None)
    file, number, value = (line.file, line.line, line.value) if line else (config.path, 0, "")
    return Finding(kind, severity, file, number, value, message, key)


def _check_together(config: SlurmConfig, report: Callable[[Finding], None]) -> None:
    """What only all lines together show."""

    def complain(kind: str, severity: str, key: str, message: str) -> None:
        report(_of_key(config, kind, severity, key, message))

    for word in config.words("PrologFlags"):
        if word.lower() not in map(str.lower, PROLOG_WORDS):
            complain("bad_value", ERROR, "PrologFlags", f"Invalid PrologFlag: {word}")
    if not config.cluster_name:
        complain("missing_key", ERROR, "ClusterName", "ClusterName needs to be specified")
    if not config.controllers:
        complain("missing_key", ERROR, "SlurmctldHost", "No SlurmctldHost defined.")
    if not config.nodes:
        complain("missing_key", ERROR, "NodeName", "no node is defined: a NodeName line is needed")
    if not config.partitions:
        text = "No PartitionName information available!"
        complain("missing_key", ERROR, "PartitionName", text)
    if config.number("MaxJobCount") == 0:
        complain("bad_value", ERROR, "MaxJobCount", "MaxJobCount=0, No jobs permitted")
    first, last = config.number("FirstJobId"), config.number("MaxJobId")
    if first == 0:
        complain("bad_value", ERROR, "FirstJobId", "FirstJobId cannot be zero")
    if last is not None and (first is None or first > last):
        complain("bad_value", ERROR, "FirstJobId", "FirstJobId > MaxJobId")
    for which in ("Def", "Max"):
        per_cpu, per_node = f"{which}MemPerCPU", f"{which}MemPerNode"
        if config.is_set(per_cpu) and config.is_set(per_node):
            text = f"{per_cpu} ignored, since it's mutually exclusive with {per_node}"
            complain("reset_value", WARNING, per_cpu, text)
            del config.values[per_cpu.lower()]
    for text in complaints(config.text("SchedulerParameters")):
        complain("reset_value", WARNING, "SchedulerParameters", text)
    for key, text, partition in contradictions(config):
        if partition is None:
            complain("bad_value", ERROR, key, text)
        else:
            report(
                Finding(
                    "bad_value",
                    ERROR,
                    partition.file,
                    partition.line,
                    partition.settings[key.lower()],
                    text,
                    key,
                )
            )
    config.findings += cpus_without_cores(config)
    config.findings += conf_plugins.findings(config)
    # warnings: see conf_check
    config.findings += [
        finding for finding in conf_words.findings(config) if finding.severity == ERROR
    ]
    waiting = config.number("MaxDBDMsgs") if config.is_set("MaxDBDMsgs") else None
    if waiting is not None and waiting < _LEAST_DBD_MESSAGES:
        text = f"MaxDBDMsgs value ({waiting}) needs to be greater than {_LEAST_DBD_MESSAGES}"
        complain("bad_value", ERROR, "MaxDBDMsgs", text)
    tasks = config.number("MaxArraySize")
    if tasks is not None and tasks > _LARGEST_ARRAY:
        text = f"MaxArraySize value ({tasks}) is greater than {_LARGEST_ARRAY}"
        complain("reset_value", WARNING, "MaxArraySize", text)
    if config.number("TreeWidth") == 0:
        complain("reset_value", WARNING, "TreeWidth", "TreeWidth=0 is invalid")
        del config.values["treewidth"]


def _check_gres(config: SlurmConfig) -> None:
    """Generic resources of nodes and of gres.conf that are of no type of GresTypes, or cannot be
    read, are left out.
    """
    types = set(config.words("GresTypes"))
    seen: set[tuple[str, int]] = set()
    places = sorted((node.file, node.line, node.gres) for node in config.nodes if node.gres)
    for file, line, text in places:
        if (file, line) in seen:
            continue
        seen.add((file, line))
        try:
            unknown = [word.name for word in read_configured(text) if word.name not in types]
        except ValueError as error:
            config.findings.append(
                Finding(
                    "bad_value",
                    WARNING,
                    file,
                    line,
                    text,
                    f"Gres={text}: {error} is no generic resource",
                    "Gres",
                )
            )
            continue
        if unknown:
            config.findings.append(
                Finding(
                    "bad_value",
                    WARNING,
                    file,
                    line,
                    text,
                    f"Gres={text}: {unknown[0]} is not in GresTypes",
                    "Gres",
                )
            )
    for each in config.gres:
        if each.name and each.name not in types:
            message = f"Name={each.name}: it is not in GresTypes"
            config.findings.append(
                Finding("bad_value", WARNING, each.file, each.line, each.name, message, "Name")
            )


def _miss_topology(config: SlurmConfig, path: str, error: OSError) -> None:
    """The file that a tree needs is not there: no error, as sites' folders often have slurm.conf
    alone.
    """
    if config.text("TopologyPlugin") in ("topology/tree", "topology/hypercube"):
        message = (
            f"{config.text('TopologyPlugin')} needs topology.conf, without which there are no "
            f"switches here: 22.05.8 stops there (something wrong with opening/reading {path}: "
            f"{error.strerror})"
        )
        config.findings.append(_of_key(config, "missing_file", WARNING, "TopologyPlugin", message))


def _read_companions(config: SlurmConfig) -> None:
    """gres.conf, topology.conf and their like, where they lie beside slurm.conf; burst_buffer.conf
    only where burst buffers are on.
    """
    folder = os.path.dirname(config.path)
    report = config.findings.append
    names = ["gres.conf", "topology.conf", "cgroup.conf"]
    if config.burst_buffer_kind:
        names.append("burst_buffer.conf")
    for name in names:
        path = os.path.join(folder, name)
        try:
            lines = scan(path)
        except OSError as error:
            if name == "topology.conf":
                _miss_topology(config, path, error)
            continue
        config.files += lines.files
        config.findings += lines.findings
        if name == "gres.conf":
            config.gres = conf_companions.read_gres(lines, report)
        elif name == "topology.conf":
            config.topology = conf_companions.read_topology(lines, report)
            if config.text("TopologyPlugin") == "topology/tree":
                conf_companions.check_topology(config.topology, config.index_of, report)
        elif name == "cgroup.conf":
            config.cgroup = conf_companions.read_cgroup(lines, report)
        else:
            config.burst_buffer = burst_buffer_conf.read_burst_buffer(lines, report)
    script = os.path.join(folder, LUA_SCRIPT)
    if config.burst_buffer_kind == LUA and os.path.isfile(script):
        config.burst_buffer.script = script
