"""sinfo's output fields. Follows sinfo(1) -o and -O of 22.05.

A field's `merge` says how nodes come together in one line:
    partition  a property of the partition: lines differ in it
    node       a property of the node: lines differ in it
    range      a number of each node: the least with "+" where they differ (with --exact: lines
               differ in it)
    spread     a number of each node: least and greatest with "-" where they differ
    group      made from the whole line: counts, node lists
The columns of `group` fields are attributes of understudy.commands.sinfo.Group.
"""

from understudy.commands.shared.fields import Cell, Field, FieldTable
from understudy.commands.shared.texts import limit, or_null, timestamp
from understudy.documents.states import node_state, node_state_code, node_state_complete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_AVAILABILITY = {"UP": "up", "DOWN": "down", "DRAIN": "drain", "INACTIVE": "inactive"}


def _plain(value: "Any") -> str:
    return str(value)


def _job_size(least: int, most: int | None) -> str:
    least = max(least, 1)
    if most is None:
        return f"{least}-infinite"
    return str(least) if least == most else f"{least}-{most}"


def _time_limit(seconds: int | None) -> str:
    return limit(seconds, "infinite")


def _default_time(seconds: int | None, unlimited: bool) -> str:
    if seconds is None:
        return "infinite" if unlimited else "n/a"
    return limit(seconds)


def _all(values: list[str] | None) -> str:
    return "all" if values is None else ",".join(values)


def _features(values: list[str]) -> str:
    return ",".join(values) or "(null)"


def _user(reason: str, name: str) -> str:
    return name if reason else "Unknown"


def _user_long(reason: str, name: str, number: int) -> str:
    return f"{name}({number})" if reason else "Unknown"


def _when(reason: str, when: int | None) -> str:
    return timestamp(when if reason else None, "Unknown")


def _load(value: float) -> str:
    return f"{value:.2f}"


class _SinfoFields(FieldTable):
    """`%all` has a blank behind the fields of capital letters."""

    __slots__ = ()

    def all_cells(self) -> list[Cell]:
        cells = super().all_cells()
        for cell in cells:
            if cell.field is not None and cell.field.letter.isupper():
                cell.suffix = " " + cell.suffix
        return cells


FIELDS = _SinfoFields(
    [
        Field(
            "a",
            "available",
            "AVAIL",
            "state",
            lambda state: _AVAILABILITY.get(state, state.lower()),
            merge="partition",
        ),
        Field(
            "A",
            "nodeai",
            "NODES(A/I)",
            "allocated idle",
            lambda held, idle: f"{held}/{idle}",
            merge="group",
        ),
        Field("b", "features_act", "ACTIVE_FEATURES", "active_features", _features, merge="node"),
        Field(
            "B",
            "maxcpuspernode",
            "MAX_CPUS_PER_NODE",
            "max_cpus_per_node",
            lambda most: "UNLIMITED" if most is None else str(most),
            merge="partition",
        ),
        Field("c", "cpus", "CPUS", "cpus", _plain, merge="range"),
        Field("C", "cpusstate", "CPUS(A/I/O/T)", "cpu_counts", "/".join, merge="group"),
        Field("d", "disk", "TMP_DISK", "tmp_disk_mb", _plain, merge="range"),
        Field("D", "nodes", "NODES", "count", _plain, merge="group"),
        Field("e", "freemem", "FREE_MEM", "free_memory_mb", _plain, merge="spread"),
        Field("E", "reason", "REASON", "reason", lambda reason: reason or "none", merge="node"),
        Field("f", "features", "AVAIL_FEATURES", "features", _features, merge="node"),
        Field("F", "nodeaiot", "NODES(A/I/O/T)", "node_counts", "/".join, merge="group"),
        Field("g", "groups", "GROUPS", "allow_groups", _all, merge="partition"),
        Field("G", "gres", "GRES", "gres", or_null, merge="node"),
        Field("h", "oversubscribe", "OVERSUBSCRIBE", "oversubscribe", _plain, merge="partition"),
        Field("H", "timestamp", "TIMESTAMP", "reason reason_time", _when, merge="node"),
        Field(
            "I",
            "priorityjobfactor",
            "PRIO_JOB_FACTOR",
            "priority_job_factor",
            _plain,
            merge="partition",
        ),
        Field("l", "time", "TIMELIMIT", "max_time_s", _time_limit, merge="partition"),
        Field(
            "L",
            "defaulttime",
            "DEFAULTTIME",
            "default_time_s default_time_is_unlimited",
            _default_time,
            merge="partition",
        ),
        Field("m", "memory", "MEMORY", "memory_mb", _plain, merge="range"),
        Field("M", "preemptmode", "PREEMPT_MODE", "preempt_mode", _plain, merge="partition"),
        Field("n", "nodehost", "HOSTNAMES", "hostname", _plain, merge="node", whole="header"),
        Field("N", "nodelist", "NODELIST", "node_list", _plain, merge="group", whole="header"),
        Field("o", "nodeaddr", "NODE_ADDR", "address", _plain, merge="node", whole="header"),
        Field("O", "cpusload", "CPU_LOAD", "cpu_load", _load, merge="spread"),
        Field("p", "prioritytier", "PRIO_TIER", "priority_tier", _plain, merge="partition"),
        Field(
            "P",
            "partition",
            "PARTITION",
            "name is_default",
            lambda name, default: name + "*" if default else name,
            merge="partition",
        ),
        Field(
            "r",
            "root",
            "ROOT",
            "root_only",
            lambda only: "yes" if only else "no",
            merge="partition",
        ),
        Field("R", "partitionname", "PARTITION", "name", _plain, merge="partition"),
        Field("s", "size", "JOB_SIZE", "min_nodes max_nodes", _job_size, merge="partition"),
        Field(
            "S",
            "allocnodes",
            "ALLOCNODES",
            "alloc_nodes",
            lambda nodes: "all" if nodes in {"", "ALL"} else nodes,
            merge="partition",
        ),
        Field("t", "statecompact", "STATE", "state flags", node_state_code, merge="node"),
        Field("T", "statelong", "STATE", "state flags", node_state, merge="node"),
        Field("u", "user", "USER", "reason reason_user", _user, merge="node"),
        Field(
            "U", "userlong", "USER", "reason reason_user reason_user_id", _user_long, merge="node"
        ),
        Field("v", "version", "VERSION", "version", or_null, merge="node"),
        Field("V", "cluster", "CLUSTER", "cluster", _plain, merge="group"),
        Field("w", "weight", "WEIGHT", "weight", _plain, merge="range"),
        Field("X", "sockets", "SOCKETS", "sockets", _plain, merge="range"),
        Field("Y", "cores", "CORES", "cores_per_socket", _plain, merge="range"),
        Field("Z", "threads", "THREADS", "threads_per_core", _plain, merge="range"),
        Field(
            "z",
            "socketcorethread",
            "S:C:T",
            "sockets cores_per_socket threads_per_core",
            _plain,
            merge="range",
        ),
        # without a letter
        Field("", "allocmem", "ALLOCMEM", "alloc_memory_mb", _plain, merge="node"),
        Field("", "comment", "COMMENT", "comment", or_null, merge="node"),
        Field("", "extra", "EXTRA", "extra", or_null, merge="node"),
        Field("", "gresused", "GRES_USED", "gres_used", or_null, merge="node"),
        Field("", "port", "PORT", "port", _plain, merge="node"),
        Field(
            "",
            "statecomplete",
            "STATECOMPLETE",
            "state flags",
            lambda state, flags: node_state_complete(state, flags).lower(),
            merge="node",
        ),
    ]
)
