"""scontrol write config: the running configuration as a slurm.conf. Follows scontrol(1) of 22.05.

Place: under scontrol, read when it is typed. Keys stand in groups, what has no value behind a `#`.
"""

import time

from understudy.commands.shared.client import RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.commands.scontrol.session import Session

_RULE = 48
# Groups in their order, with the beginnings of the keys that belong there; what fits nowhere is
# "OTHER".
_GROUPS = (
    ("CONTROL", ("ClusterName", "SlurmUser", "SlurmctldHost", "SlurmctldPort", "SlurmdPort",
    "SlurmdUser")),
    (
        "LOGGING & OTHER PATHS",
        ("SlurmctldLogFile", "SlurmdLogFile", "SlurmdPidFile", "SlurmdSpoolDir",
        "SlurmSchedLogFile", "SlurmctldPidFile", "StateSaveLocation"),
    ),
    (
        "ACCOUNTING",
        (
            "AccountingStorageBackupHost", "AccountingStorageEnforce", "AccountingStorageHost",
            "AccountingStoragePort", "AccountingStorageType",
            "AccountingStorageUser", "AccountingStoreFlags", "AcctGather", "ExtSensors",
            "JobAcctGatherFrequency", "JobAcctGatherType",
        ),
    ),
    (
        "SCHEDULING & ALLOCATION",
        (
            "PreemptMode", "PreemptType", "PreemptExemptTime", "PriorityDecayHalfLife",
            "PriorityCalcPeriod", "PriorityFavorSmall", "PriorityFlags",
            "PriorityMaxAge", "PriorityUsageResetPeriod", "PriorityType", "PriorityWeight",
            "SchedulerParameters", "SchedulerTimeSlice",
            "SchedulerType", "SelectType", "SlurmSchedLogLevel",
        ),
    ),
    ("TOPOLOGY", ("TopologyPlugin",)),
    (
        "TIMERS",
        (
            "BatchStartTimeout", "CompleteWait", "EpilogMsgTime", "GetEnvTimeout", "InactiveLimit",
            "KillWait", "MinJobAge", "SlurmctldTimeout",
            "SlurmdTimeout", "WaitTime",
        ),
    ),
    ("POWER", ("ResumeProgram", "ResumeRate", "ResumeTimeout", "Suspend")),
    ("DEBUG", ("DebugFlags", "SlurmctldDebug", "SlurmdDebug")),
    ("EPILOG & PROLOG", ("Epilog=", "Prolog=", "SrunEpilog", "SrunProlog", "TaskEpilog",
    "TaskProlog")),
    ("PROCESS TRACKING", ("ProctrackType",)),
    ("RESOURCE CONFINEMENT", ("TaskPlugin",)),
)  # fmt: skip
# What `show config` says of the daemon rather than of its configuration.
_NOT_KEYS = frozenset(
    {"BOOT_TIME", "HASH_VAL", "MULTIPLE_SLURMD", "NEXT_JOB_ID", "SLURM_CONF", "SLURM_VERSION"}
)
_UNITS = (" sec", " min", " usec", " nodes/min", " percent")


def write_config(session: "Session", words: list[str]) -> int:
    """Write it to FILE.TIME, beside the cluster's own file if none is named."""
    client = session.context.client
    try:
        answer = client.query("config", ["name", "value"])
        values = _of_slurm_conf(answer.rows)
        nodes = client.query("nodes", list(_NODE_COLUMNS)).dicts()
        partitions = client.query("partitions", list(_PARTITION_COLUMNS)).dicts()
    except RefusedError as error:
        session.complain(f"slurm_load_ctl_conf error: {error.text}")
        return 1
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(answer.now))
    target = f"{words[0] if words else values['SLURM_CONF']}.{stamp}"
    try:
        with open(target, "w", encoding="utf-8") as file:
            file.write("\n".join(config_lines(values, nodes, partitions, stamp)) + "\n")
    except OSError as error:
        session.context.complain(f"Could not create file {target}: {error.strerror}")
        return 0
    session.say(f"Slurm config saved to {target}")
    return 0


def _of_slurm_conf(rows: "list[list[str]]") -> dict[str, str]:
    """What is behind the title of another file does not belong there."""
    ends = [at for at, (name, _) in enumerate(rows) if name.endswith(":")]
    return dict(rows[: ends[0]] if ends else rows)


def config_lines(
    values: dict[str, str],
    nodes: "list[dict[str, Any]]",
    partitions: "list[dict[str, Any]]",
    stamp: str,
) -> list[str]:
    """The file line by line."""
    title = f"#  Configuration file for Slurm - {stamp}  #"
    lines = ["#" * len(title), title, "#" * len(title), "#", "#"]
    group_of = {name: _group_of(name) for name in values if name not in _NOT_KEYS}
    for group in (*(name for name, _ in _GROUPS), "OTHER"):
        lines += _heading(group)
        lines += [
            _entry(name, values[name]) for name, belongs in group_of.items() if belongs == group
        ]
    lines += _heading("NODES") + [_node_line(node) for node in nodes]
    return lines + _heading("PARTITIONS") + [_partition_line(partition) for partition in partitions]


def _group_of(name: str) -> str:
    for group, beginnings in _GROUPS:
        if any(
            name == each[:-1] if each.endswith("=") else name.startswith(each)
            for each in beginnings
        ):
            return group
    return "OTHER"


def _heading(text: str) -> list[str]:
    return ["#", "#" * _RULE, f"#{text.center(_RULE - 2)}#", "#" * _RULE]


def _entry(name: str, value: str) -> str:
    if name.startswith("SlurmctldHost["):
        name = "SlurmctldHost"
    if name in {"SlurmUser", "SlurmdUser"}:
        value = value.partition("(")[0]
    value = next((value.removesuffix(unit) for unit in _UNITS if value.endswith(unit)), value)
    return (
        f"#{name}="
        if value in {"", "(null)", "(null type)"}
        or (name == "DefMemPerNode" and value == "UNLIMITED")
        else f"{name}={value}"
    )


_NODE_COLUMNS = (
    "name", "address", "hostname", "sockets", "cores_per_socket", "threads_per_core", "memory_mb",
    "tmp_disk_mb", "weight", "features", "gres",
    "port", "state",
)  # fmt: skip
_FUTURE = 6


def _node_line(node: "dict[str, Any]") -> str:
    parts = [f"NodeName={node['name']}"]
    if node["address"] != node["name"]:
        parts.append(f"NodeAddr={node['address']}")
    if node["hostname"] != node["name"]:
        parts.append(f"NodeHostName={node['hostname']}")
    parts.append(
        f"Sockets={node['sockets']} CoresPerSocket={node['cores_per_socket']} "
        f"ThreadsPerCore={node['threads_per_core']}"
    )
    parts.append(f"RealMemory={node['memory_mb']}")
    for key, column, default in (
        ("TmpDisk", "tmp_disk_mb", 0),
        ("Weight", "weight", 1),
        ("Gres", "gres", ""),
        ("Port", "port", 6818),
    ):
        if node[column] not in {default, None}:
            parts.append(f"{key}={node[column]}")
    if node["features"]:
        parts.append(f"Feature={','.join(node['features'])}")
    if node["state"] == _FUTURE:
        parts.append("State=FUTURE")
    return " ".join(parts)


_PARTITION_COLUMNS = (
    "name", "allow_groups", "allow_accounts", "allow_qos", "deny_accounts", "deny_qos", "alternate",
    "is_default", "default_time_s",
    "disable_root_jobs", "exclusive_user", "grace_time_s", "hidden", "least_loaded_nodes",
    "max_cpus_per_node", "max_nodes", "max_time_s",
    "min_nodes", "nodes",
    "oversubscribe", "priority_job_factor", "priority_tier", "qos", "requires_reservation",
    "root_only", "state", "tres_billing_weights",
)  # fmt: skip


def _partition_line(partition: "dict[str, Any]") -> str:
    """Only what differs from a partition of which nothing is said."""
    from understudy.commands.shared.texts import full_duration

    parts = [f"PartitionName={partition['name']}"]

    def add(key: str, value: object) -> None:
        if value:
            parts.append(f"{key}={value}")

    for key, column in (
        ("AllowGroups", "allow_groups"), ("AllowAccounts", "allow_accounts"),
        ("AllowQos", "allow_qos"), ("DenyAccounts", "deny_accounts"),
        ("DenyQos", "deny_qos"),
    ):  # fmt: skip
        words = partition[column]
        add(
            key, "" if not words or [word.upper() for word in words] == ["ALL"] else ",".join(words)
        )
    add("Alternate", partition["alternate"])
    add("Default", "YES" if partition["is_default"] else "")
    if partition["default_time_s"] is not None:
        add("DefaultTime", full_duration(partition["default_time_s"]))
    for key, column in (
        ("DisableRootJobs", "disable_root_jobs"),
        ("ExclusiveUser", "exclusive_user"),
    ):
        add(key, "YES" if partition[column] else "")
    add("GraceTime", partition["grace_time_s"])
    for key, column in (("Hidden", "hidden"), ("LLN", "least_loaded_nodes")):
        add(key, "YES" if partition[column] else "")
    add("MaxCPUsPerNode", partition["max_cpus_per_node"])
    add("MaxNodes", partition["max_nodes"])
    if partition["max_time_s"] is not None:
        add("MaxTime", full_duration(partition["max_time_s"]))
    parts.append(f"MinNodes={partition['min_nodes']}")
    add("Nodes", partition["nodes"])
    add("OverSubscribe", "" if partition["oversubscribe"] == "NO" else partition["oversubscribe"])
    for key, column in (
        ("PriorityJobFactor", "priority_job_factor"),
        ("PriorityTier", "priority_tier"),
    ):
        add(key, "" if partition[column] == 1 else partition[column])
    add("QOS", partition["qos"])
    for key, column in (("ReqResv", "requires_reservation"), ("RootOnly", "root_only")):
        add(key, "YES" if partition[column] else "")
    parts.append(f"State={partition['state']}")
    add("TRESBillingWeights", partition["tres_billing_weights"])
    return " ".join(parts)
