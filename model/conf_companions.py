"""gres.conf, topology.conf and cgroup.conf, which lie beside slurm.conf.

Place: a part of understudy.model.conf. Follows gres.conf(5), topology.conf(5), cgroup.conf(5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.model import conf_values, hostlist
from understudy.model.conf_eras import remark
from understudy.model.conf_keys import Era, Key, Kind
from understudy.model.conf_scan import ERROR, WARNING, ConfLine, Finding, Scan, expanded

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

_GRES_KEYS: Final = frozenset(
    {
        "nodename",
        "name",
        "type",
        "file",
        "count",
        "cores",
        "cpus",
        "flags",
        "links",
        "multiplefiles",
        "autodetect",
        "ignore",
    }
)
_SWITCH_KEYS: Final = frozenset(
    {"switchname", "switches", "nodes", "linkspeed", "blockname", "blocksizes", "blocks"}
)
CGROUP_KEYS: Final[dict[str, Key]] = {
    key.name.lower(): key
    for key in (
        Key("AllowedDevicesFile", era=Era.OLD),
        Key("AllowedKmemSpace", Kind.DECIMAL),
        Key("AllowedRAMSpace", Kind.DECIMAL, default="100"),
        Key("AllowedSwapSpace", Kind.DECIMAL, default="0"),
        Key("CgroupAutomount", Kind.BOOLEAN, "no"),
        Key("CgroupMountpoint", default="/sys/fs/cgroup"),
        Key("CgroupPlugin"),
        Key("CgroupReleaseAgentDir", era=Era.OLD),
        Key("ConstrainCores", Kind.BOOLEAN, "no"),
        Key("ConstrainDevices", Kind.BOOLEAN, "no"),
        Key("ConstrainKmemSpace", Kind.BOOLEAN, "no"),
        Key("ConstrainRAMSpace", Kind.BOOLEAN, "no"),
        Key("ConstrainSwapSpace", Kind.BOOLEAN, "no"),
        Key("EnableControllers", Kind.BOOLEAN, era=Era.NEW),
        Key("EnableExtraControllers", era=Era.NEW),
        Key("IgnoreSystemd", Kind.BOOLEAN, "no"),
        Key("IgnoreSystemdOnFailure", Kind.BOOLEAN, "no"),
        Key("MaxKmemPercent", Kind.DECIMAL, default="100"),
        Key("MaxRAMPercent", Kind.DECIMAL, default="100"),
        Key("MaxSwapPercent", Kind.DECIMAL, default="100"),
        Key("MemoryLimitEnforcement", Kind.BOOLEAN),
        Key("MemoryLimitThreshold", Kind.DECIMAL),
        Key("MemorySwappiness", Kind.LONG),
        Key("MinKmemSpace", Kind.LONG, default="30"),
        Key("MinRAMSpace", Kind.LONG, default="30"),
        Key("SignalChildrenProcesses", Kind.BOOLEAN, era=Era.NEW),
        Key("SystemdTimeout", era=Era.NEW),
        Key("TaskAffinity", Kind.BOOLEAN, era=Era.OLD),
    )
}


@dataclass(slots=True)
class GresConf:
    """One line of gres.conf. `nodes` is "" where it is for every node."""

    nodes: str
    name: str
    type: str
    files: str
    count: int
    cores: str
    flags: str
    auto_detect: str
    file: str
    line: int


@dataclass(slots=True)
class SwitchConf:
    """One switch of topology.conf; `nodes` are those directly below it, `switches` the names of
    those below it.
    """

    name: str
    nodes: list[str]
    switches: list[str]
    link_speed: int
    file: str
    line: int


def read_gres(scan: Scan, report: Callable[[Finding], None]) -> list[GresConf]:
    """All lines of gres.conf; a count that is not given is that of the files, else 1."""
    found = []
    for line in scan.lines:
        _report_unknown(line, _GRES_KEYS, report)
        given = dict(line.pairs)
        files = given.get("file", given.get("multiplefiles", ""))
        count = _number(line, given, "Count", report)
        if count is None:
            count = len(expanded(line, "File", files, report)) if files else 1
        cores = given.get("cores", given.get("cpus", ""))
        found.append(
            GresConf(
                nodes=given.get("nodename", ""),
                name=given.get("name", ""),
                type=given.get("type", ""),
                files=files,
                count=count,
                cores=cores,
                flags=given.get("flags", ""),
                auto_detect=given.get("autodetect", ""),
                file=line.file,
                line=line.line,
            )
        )
    return found


def read_topology(scan: Scan, report: Callable[[Finding], None]) -> list[SwitchConf]:
    """All switches of topology.conf in the order of the file."""
    found = []
    for line in scan.lines:
        _report_unknown(line, _SWITCH_KEYS, report)
        if line.key != "switchname":
            continue
        given = dict(line.pairs)
        speed = _number(line, given, "LinkSpeed", report)
        nodes = expanded(line, "Nodes", given.get("nodes", ""), report)
        switches = expanded(line, "Switches", given.get("switches", ""), report)
        found += [
            SwitchConf(name, nodes, switches, 1 if speed is None else speed, line.file, line.line)
            for name in expanded(line, "SwitchName", line.value, report)
        ]
    return found


def check_topology(
    switches: list[SwitchConf], nodes: Container[str], report: Callable[[Finding], None]
) -> None:
    """What Slurm would refuse of a tree of switches (errors), and what it warns of: nodes that do
    not exist, or are below two switches.
    """
    known: dict[str, SwitchConf] = {}
    leaf_of: dict[str, str] = {}

    def complain(
        severity: str, switch: SwitchConf, text: str, message: str, kind: str = "bad_value"
    ) -> None:
        report(Finding(kind, severity, switch.file, switch.line, text, message, "SwitchName"))

    for switch in switches:
        if switch.name in known:
            complain(ERROR, switch, switch.name, f"Switch ({switch.name}) has already been defined")
        known[switch.name] = switch
        if switch.nodes and switch.switches:
            complain(
                ERROR,
                switch,
                switch.name,
                f"switch {switch.name} has both child switches and nodes",
            )
        if not switch.nodes and not switch.switches:
            complain(
                ERROR,
                switch,
                switch.name,
                f"switch {switch.name} has neither child switches nor nodes",
            )
        missing = [name for name in switch.nodes if name not in nodes]
        if missing:
            complain(
                WARNING,
                switch,
                missing[0],
                f"Invalid hostnames in switch configuration: {hostlist.compress(missing)}",
                "undefined_nodes",
            )
        twice = [
            name for name in switch.nodes if leaf_of.setdefault(name, switch.name) != switch.name
        ]
        if twice:
            complain(
                WARNING,
                switch,
                twice[0],
                f"Multiple leaf switches contain nodes: {hostlist.compress(twice)}",
            )
    for switch in switches:
        for below in switch.switches:
            if below not in known or _reaches(known, below, switch.name):
                complain(
                    ERROR,
                    switch,
                    below,
                    f"Switch configuration {switch.name} has invalid child ({below})",
                )


def _reaches(known: Mapping[str, SwitchConf], start: str, name: str) -> bool:
    """Whether the switch `name` is `start` or below it."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        at = waiting.pop()
        if at == name:
            return True
        if at in known and at not in seen:
            seen.add(at)
            waiting += known[at].switches
    return False


def read_cgroup(scan: Scan, report: Callable[[Finding], None]) -> dict[str, str]:
    """The settings of cgroup.conf, keys in lower case: those whose values can be read."""
    settings: dict[str, str] = {}
    for line in scan.lines:
        _report_unknown(line, CGROUP_KEYS, report)
        name, value, written = line.key, line.value, line.written[0]
        key = CGROUP_KEYS.get(name)
        if len(line.pairs) > 1:
            message = f'cannot read "{line.written[1]}" behind {written}'
            report(
                Finding(
                    "parse_error", ERROR, line.file, line.line, line.written[1], message, written
                )
            )
        if key is None:
            continue
        if key.era is not Era.CURRENT:
            message, kind = remark(key, written, value), f"{key.era.value}_key"
            report(Finding(kind, WARNING, line.file, line.line, written, message, written))
        else:
            try:
                conf_values.value_of(key, value)
            except ValueError as error:
                message = str(error).replace(f'value "{value}"', f"value ({value})")
                report(Finding("bad_value", ERROR, line.file, line.line, value, message, key.name))
                continue
        settings[name] = value
    return settings


def _report_unknown(
    line: ConfLine, known: dict[str, Key] | frozenset[str], report: Callable[[Finding], None]
) -> None:
    for (key, _), written in zip(line.pairs, line.written, strict=True):
        if key not in known:
            report(
                Finding(
                    "unknown_key",
                    ERROR,
                    line.file,
                    line.line,
                    written,
                    f"unrecognized key: {written}",
                    written,
                )
            )


def _number(
    line: ConfLine, given: dict[str, str], key: str, report: Callable[[Finding], None]
) -> int | None:
    text = given.get(key.lower())
    if text is None:
        return None
    try:
        return conf_values.number(key, text.rstrip("gGtT") if key == "Count" else text)
    except ValueError as error:
        report(Finding("bad_value", ERROR, line.file, line.line, text, str(error), key))
        return None
