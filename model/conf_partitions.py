"""Partitions from PartitionName lines.

Place: a part of understudy.model.conf. Follows slurm.conf(5) "PARTITION CONFIGURATION".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.model import conf_values, hostlist
from understudy.model.conf_keys import LINE_KEYS, with_defaults
from understudy.model.conf_scan import ERROR, WARNING, ConfLine, Finding, expanded

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.model.conf_nodes import NodeSetConf

_KEYS: Final = LINE_KEYS["partitionname"]
_STATES: Final = frozenset({"UP", "DOWN", "DRAIN", "INACTIVE"})
_OVERSUBSCRIBE = re.compile(r"(NO|EXCLUSIVE)|(YES|FORCE)(?::(\d{1,4}))?", re.ASCII)


@dataclass(slots=True)
class PartitionConf:
    """One partition as configured. Times in seconds, memory in MB, None: no limit, or not set where
    it says so.
    """

    name: str
    nodes: list[str]  # names in the order of the node table
    expression: str  # as configured
    node_sets: tuple[str, ...]
    file: str
    line: int
    settings: dict[str, str]  # all keys as given, DEFAULT lines included, in lower case
    state: str = "UP"
    is_default: bool = False
    max_time_s: int | None = None
    default_time_s: int | None = None  # None: not set
    default_time_is_unlimited: bool = False
    min_nodes: int = 0
    max_nodes: int | None = None
    priority_tier: int = 1
    priority_job_factor: int = 1
    oversubscribe: str = "NO"  # NO, EXCLUSIVE, YES:n, FORCE:n
    default_memory_per_node_mb: int | None = None  # None: not set; so the next three
    default_memory_per_cpu_mb: int | None = None
    max_memory_per_node_mb: int | None = None
    max_memory_per_cpu_mb: int | None = None
    max_cpus_per_node: int | None = None
    grace_time_s: int = 0
    over_time_limit_s: int | None = None  # None: not set
    over_time_limit_is_unlimited: bool = False
    preempt_mode: str = ""
    hidden: bool = False
    root_only: bool = False
    disable_root_jobs: bool | None = None  # None: as the cluster's
    exclusive_user: bool = False
    least_loaded_nodes: bool = False
    requires_reservation: bool = False
    allow_groups: tuple[str, ...] | None = None  # None: all; so the next two
    allow_accounts: tuple[str, ...] | None = None
    allow_qos: tuple[str, ...] | None = None
    deny_accounts: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    alloc_nodes: str = "ALL"
    alternate: str = ""
    qos: str = ""
    select_type_parameters: str = ""
    tres_billing_weights: str = ""
    job_defaults: str = ""


class _Reader:
    """Reads the values of one partition's settings and reports what cannot be read."""

    def __init__(
        self, line: ConfLine, settings: dict[str, str], report: Callable[[Finding], None]
    ) -> None:
        self.line, self.settings, self._report = line, settings, report

    def complain(
        self, key: str, text: str, message: str, severity: str = ERROR, kind: str = "bad_value"
    ) -> None:
        self._report(Finding(kind, severity, self.line.file, self.line.line, text, message, key))

    def text(self, key: str, default: str = "") -> str:
        return self.settings.get(key.lower(), default)

    def value(self, key: str) -> int | bool | str | tuple[int, int] | None:
        """As its kind says; None if it is not set, cannot be read, or sets no limit."""
        text = self.settings.get(key.lower())
        if text is None:
            return None
        try:
            return conf_values.value_of(_KEYS[key.lower()], text)
        except ValueError as error:
            self.complain(key, text, str(error))
            return None

    def number(self, key: str) -> int | None:
        value = self.value(key)
        return value if isinstance(value, int) else None

    def count(self, key: str, default: int) -> int:
        value = self.number(key)
        return default if value is None else value

    def yes(self, key: str) -> bool:
        return bool(self.value(key))

    def names(self, key: str) -> tuple[str, ...] | None:
        text = self.text(key)
        return (
            None
            if not text or text.upper() == "ALL"
            else tuple(name for name in text.split(",") if name)
        )

    def oversubscribe(self) -> str:
        given = self.text("OverSubscribe") or self.text("Shared") or "NO"
        text = given.upper()
        match = _OVERSUBSCRIBE.fullmatch(text)
        if match is None:
            self.complain("OverSubscribe", given, f'Bad value "{given}" for OverSubscribe')
            return "NO"
        return match[1] or f"{match[2]}:{int(match[3] or 4)}"

    def state(self) -> str:
        text = self.text("State", "UP").upper()
        if text not in _STATES:
            self.complain("State", text, f'Bad value "{self.text("State")}" for State')
            return "UP"
        return text


def read_partitions(
    lines: list[ConfLine],
    index_of: dict[str, int],
    node_sets: dict[str, NodeSetConf],
    report: Callable[[Finding], None],
) -> list[PartitionConf]:
    """All partitions in the order of their lines; one that is there already is an error, and the
    first line counts.
    """
    defaults: dict[str, str] = {}
    partitions: dict[str, PartitionConf] = {}
    for line in lines:
        given = dict(line.pairs)
        if line.value.upper() == "DEFAULT":
            defaults.update(given)
            continue
        for name in line.value.split(","):
            if not name:
                continue
            if name in partitions:
                message = f"duplicate entry for partition {name}"
                report(
                    Finding(
                        "duplicate_partition",
                        ERROR,
                        line.file,
                        line.line,
                        name,
                        message,
                        "PartitionName",
                    )
                )
                continue
            partitions[name] = _read(
                name,
                _Reader(line, with_defaults(defaults, given), report),
                index_of,
                node_sets,
                report,
            )
    return list(partitions.values())


def _read(
    name: str,
    reader: _Reader,
    index_of: dict[str, int],
    node_sets: dict[str, NodeSetConf],
    report: Callable[[Finding], None],
) -> PartitionConf:
    line, settings = reader.line, reader.settings
    nodes, sets = _nodes(line, settings.get("nodes", ""), index_of, node_sets, report)
    default_time = reader.text("DefaultTime")
    over = reader.text("OverTimeLimit")
    tier = reader.number("PriorityTier")
    factor = reader.number("PriorityJobFactor")
    priority = reader.number("Priority")
    per_node, per_cpu = _memory(reader, "Def")
    most_per_node, most_per_cpu = _memory(reader, "Max")
    disable_root = reader.value("DisableRootJobs")
    most_time = reader.number("MaxTime")
    default_seconds = _default_time(name, reader, most_time)
    over_minutes = (
        None if not over or over.upper() in ("UNLIMITED", "INFINITE") else _minutes(reader, over)
    )
    return PartitionConf(
        name=name,
        nodes=nodes,
        expression=settings.get("nodes", ""),
        node_sets=sets,
        file=line.file,
        line=line.line,
        settings=settings,
        state=reader.state(),
        is_default=reader.yes("Default"),
        max_time_s=most_time,
        default_time_s=default_seconds,
        default_time_is_unlimited=default_time.upper() in ("UNLIMITED", "INFINITE"),
        min_nodes=reader.count("MinNodes", 0),
        max_nodes=reader.number("MaxNodes"),
        priority_tier=_first(tier, priority),
        priority_job_factor=_first(factor, priority),
        oversubscribe=reader.oversubscribe(),
        default_memory_per_node_mb=per_node,
        default_memory_per_cpu_mb=per_cpu,
        max_memory_per_node_mb=most_per_node,
        max_memory_per_cpu_mb=most_per_cpu,
        max_cpus_per_node=reader.number("MaxCPUsPerNode"),
        grace_time_s=reader.count("GraceTime", 0),
        over_time_limit_s=over_minutes,
        over_time_limit_is_unlimited=over.upper() in ("UNLIMITED", "INFINITE"),
        preempt_mode=reader.text("PreemptMode").upper(),
        hidden=reader.yes("Hidden"),
        root_only=reader.yes("RootOnly"),
        disable_root_jobs=disable_root if isinstance(disable_root, bool) else None,
        exclusive_user=reader.yes("ExclusiveUser"),
        least_loaded_nodes=reader.yes("LLN"),
        requires_reservation=reader.yes("ReqResv"),
        allow_groups=reader.names("AllowGroups"),
        allow_accounts=reader.names("AllowAccounts"),
        allow_qos=reader.names("AllowQos"),
        deny_accounts=reader.names("DenyAccounts") or (),
        deny_qos=reader.names("DenyQos") or (),
        alloc_nodes=reader.text("AllocNodes", "ALL"),
        alternate=reader.text("Alternate"),
        qos=reader.text("QOS"),
        select_type_parameters=reader.text("SelectTypeParameters"),
        tres_billing_weights=reader.text("TRESBillingWeights"),
        job_defaults=_job_defaults(settings),
    )


def _memory(reader: _Reader, which: str) -> tuple[int | None, int | None]:
    """(MB of a node, MB of a CPU), of which the first counts if both are there. `which`: Def or
    Max.
    """
    per_node, key = reader.number(f"{which}MemPerNode"), f"{which}MemPerCPU"
    per_cpu = reader.number(key)
    if per_node is not None and per_cpu is not None:
        message = f"{key} ignored, since it's mutually exclusive with {which}MemPerNode"
        reader.complain(key, str(per_cpu), message, WARNING, "reset_value")
        per_cpu = None
    return per_node, per_cpu


def _default_time(name: str, reader: _Reader, most: int | None) -> int | None:
    """In seconds; None if there is none, or more than `most`, MaxTime."""
    text = reader.text("DefaultTime")
    if text.upper() == "NONE":
        return None
    seconds = reader.number("DefaultTime")
    if seconds is not None and most is not None and seconds > most:
        message = f"DefaultTime={text} of partition {name} is longer than its MaxTime: ignored"
        reader.complain("DefaultTime", text, message, WARNING, "reset_value")
        return None
    return seconds


def _first(*values: int | None) -> int:
    return next((value for value in values if value is not None), 1)


def _minutes(reader: _Reader, text: str) -> int | None:
    try:
        minutes = conf_values.number("OverTimeLimit", text, 65535)
    except ValueError as error:
        reader.complain("OverTimeLimit", text, str(error))
        return None
    return None if minutes is None else minutes * 60


def _job_defaults(settings: dict[str, str]) -> str:
    parts = [
        f"{name}={settings[name.lower()]}"
        for name in ("DefCpuPerGPU", "DefMemPerGPU")
        if name.lower() in settings
    ]
    return ",".join(parts) or settings.get("jobdefaults", "")


def _nodes(
    line: ConfLine,
    expression: str,
    index_of: dict[str, int],
    node_sets: dict[str, NodeSetConf],
    report: Callable[[Finding], None],
) -> tuple[list[str], tuple[str, ...]]:
    """The names of a partition's nodes in the order of the table, and the node sets among them."""
    if not expression:
        return [], ()
    words = expanded(line, "Nodes", expression, report)
    chosen: set[str] = set()
    sets: list[str] = []
    unknown: list[str] = []
    for word in words:
        if word in index_of:
            chosen.add(word)
        elif word in node_sets:
            sets.append(word)
            chosen.update(node_sets[word].names)
        elif word.upper() == "ALL":
            chosen.update(index_of)
        else:
            unknown.append(word)
    if unknown:
        shown = hostlist.compress(unknown)
        message = f"PartitionName={line.value}: node names {shown} are not defined"
        report(Finding("undefined_nodes", ERROR, line.file, line.line, shown, message, "Nodes"))
    return sorted(chosen, key=index_of.__getitem__), tuple(sets)
