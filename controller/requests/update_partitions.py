"""scontrol create, update and delete partition.

Place: requests. Follows: scontrol(1) "PARTITIONS - SPECIFICATIONS FOR CREATE, UPDATE,
AND DELETE COMMANDS": administrators only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from understudy.controller.core.changes import job_changed
from understudy.controller.core.lookups import node_bitmap
from understudy.controller.pending.access import accounting_has_changed
from understudy.controller.pending.eligibility import review_all
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.partition import Partition
from understudy.model.cpu_binding import cpu_binding
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.hostlist import expand
from understudy.model.times import leading_number, parse_limit_in_minutes, parse_memory
from understudy.model.tres import BASE, TresError
from understudy.model.tres_weights import read_weights
from understudy.protocol.messages import Message, Ok

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import UpdatePartition

STATES: Final = ("UP", "DOWN", "DRAIN", "INACTIVE")
_FORCE: Final = 0x8000
_LEFT_AS_IT_IS: Final = 0xFFFFFFFE  # Slurm's number for what is not given
_INFINITE: Final = frozenset({"infinite", "unlimited", "-1"})


def update_partition(core: Core, message: UpdatePartition, sender: Sender) -> Message:
    """Create, change or delete a partition."""
    core.require_admin(sender)
    now = core.time.now()
    table = core.tables.partitions
    has_unknown_nodes = False
    if message.action == "create":
        if message.name in table or not message.name:
            raise SlurmError(ErrorCode.INVALID_PARTITION)
        table[message.name] = Partition(
            message.name, cluster_memory_limits_mb=core.settings.memory_limits_mb
        )
    elif message.name not in table:
        raise SlurmError(ErrorCode.INVALID_PARTITION)
    if message.action == "delete":
        _delete(core, message.name)
    elif message.action in ("create", "update"):
        partition = table[message.name]
        most_s = partition.max_time_s
        changes = {key.lower(): value for key, value in message.changes.items()}
        has_unknown_nodes = _change(core, partition, changes)
        _follow(core, partition, most_s)
    else:
        raise SlurmError(-1, f"unknown action {message.action}")
    core.forget_feasibility()
    if core.job_limits is not None:
        accounting_has_changed(core)
    core.journal.partition(message.name)
    core.last_partition_update = now
    review_all(core, now, partition=message.name)
    core.changed(Note.CHANGE, now)
    if has_unknown_nodes:
        raise SlurmError(ErrorCode.INVALID_NODE)
    return Ok()


def _follow(core: Core, partition: Partition, most_s: int | None) -> None:
    """Pending jobs without a time have the partition's MaxTime, whatever it is."""
    if partition.max_time_s == most_s:
        return
    for job in list(core.tables.pending.values()):
        is_its = job.partition == partition.name and not job.time_limit_is_set
        if is_its and job.time_limit_s == most_s:
            job.time_limit_s = partition.max_time_s
            job_changed(core, job, core.time.now())


def _delete(core: Core, name: str) -> None:
    jobs = [*core.tables.pending.values(), *core.tables.running.values(), *core.completing.values()]
    if any(job.partition == name or name in job.partitions for job in jobs):
        raise SlurmError(ErrorCode.PARTITION_IN_USE)
    del core.tables.partitions[name]


def _change(core: Core, partition: Partition, changes: dict[str, str]) -> bool:
    """All changes or none; whether nodes were named that do not exist, in which case it has the
    others, and goes on showing those that it had, as in 22.05.8.
    """
    trial = replace(partition)
    known, qos = core.associations.qos, changes.get("qos")
    if qos and known and qos not in known and core.settings.enforced.qos:
        raise SlurmError(ErrorCode.INVALID_QOS)
    try:
        read_weights(changes.get("tresbillingweights", ""), {*BASE, *core.settings.tracked_tres})
    except TresError:
        raise SlurmError(ErrorCode.INVALID_WEIGHTS) from None
    for key, text in sorted(changes.items(), key=lambda each: each[0] == "defaulttime"):
        if key == "nodes":
            continue
        setter = _SETTERS.get(key)
        if setter is None:
            raise SlurmError(-1, f"Update of this parameter is not supported: {key}={text}")
        try:
            setter(trial, text)
        except ValueError:
            raise SlurmError(-1, f"Invalid input {key}={text}") from None
    for field in Partition.__dataclass_fields__:
        setattr(partition, field, getattr(trial, field))
    if partition.is_default:
        for other in core.tables.partitions.values():
            other.is_default = other is partition
    if "nodes" in changes:
        nodes, are_all = _known_nodes(core, changes["nodes"])
        partition.place(nodes, core.tables.nodes)
        partition.has_other_nodes = not are_all
        if not are_all:
            return True
        partition.node_expression = changes["nodes"]
    return False


def _known_nodes(core: Core, text: str) -> tuple[int, bool]:
    """The nodes that there are, and whether these are all."""
    if text.upper() == "ALL":
        return core.names.all, True
    try:
        return node_bitmap(core, text), True
    except SlurmError:
        pass
    try:
        names = expand(text)
    except ValueError:
        return 0, False
    return node_bitmap(core, ",".join(name for name in names if name in core.names.index_of)), False


def _set_default_time(partition: Partition, text: str) -> None:
    """One above MaxTime changes nothing, and is no error."""
    limit_s, most_s = parse_limit_in_minutes(text), partition.max_time_s
    if most_s is None or (limit_s is not None and limit_s <= most_s):
        partition.default_time_s = limit_s
        partition.default_time_is_unlimited = limit_s is None


def _count(text: str) -> int | None:
    return None if text.lower() in _INFINITE else int(text)


def _yes(text: str) -> bool:
    if text.lower() not in ("yes", "no"):
        raise ValueError(text)
    return text.lower() == "yes"


def _names(text: str) -> tuple[str, ...] | None:
    return None if text.upper() in ("ALL", "") else tuple(text.split(","))


def _set(field: str, read: Callable[[str], object]) -> Callable[[Partition, str], None]:
    return lambda partition, text: setattr(partition, field, read(text))


def _set_memory(field: str, other: str) -> Callable[[Partition, str], None]:
    """There is one of the two at most. None for a CPU is not the same as none for a node: it is
    what jobs there have, and what is shown.
    """

    def change(partition: Partition, text: str) -> None:
        amount = None if text.lower() in _INFINITE else parse_memory(text)
        setattr(partition, field, amount if "per_cpu" in field else amount or None)
        setattr(partition, other, None)

    return change


def _cpu_binding(partition: Partition, text: str) -> None:
    partition.cpu_bind = cpu_binding(text, partition.cpu_bind)


def _over_time_limit(partition: Partition, text: str) -> None:
    partition.over_time_limit_is_unlimited = text.lower() in _INFINITE
    partition.over_time_limit_s = None if partition.over_time_limit_is_unlimited else 60 * int(text)


def _oversubscribe(text: str) -> str:
    """NO, EXCLUSIVE, YES:n, FORCE:n. The count has 15 bits, as in Slurm, and one above it makes it
    FORCE; where four jobs share by default, no number is none.
    """
    word, colon, count = text.upper().partition(":")
    if word not in ("YES", "FORCE"):
        return word
    number = 4
    if colon:
        number = leading_number(count) & 0xFFFF
        if number & _FORCE:
            word, number = "FORCE", number & ~_FORCE
    if not number:
        return "EXCLUSIVE"
    return "NO" if word == "YES" and number == 1 else f"{word}:{number}"


def _job_defaults(text: str) -> str:
    for word in filter(None, text.split(",")):
        key, _, value = word.partition("=")
        if key.lower() not in {"defcpupergpu", "defmempergpu"} or not value.isdecimal():
            raise SlurmError(ErrorCode.INVALID_JOB_DEFAULTS)
    return text


def _set_state(partition: Partition, text: str) -> None:
    if text.upper() not in STATES:
        raise ValueError(text)
    partition.state = text.upper()


def _set_least_nodes(partition: Partition, text: str) -> None:
    if int(text) != _LEFT_AS_IT_IS:
        partition.min_nodes = int(text)


def _set_priority(partition: Partition, text: str) -> None:
    """As in slurm.conf, that is both."""
    partition.priority_tier = partition.priority_job_factor = int(text)


_SETTERS: Final[dict[str, Callable[[Partition, str], None]]] = {
    "state": _set_state,
    "default": _set("is_default", _yes),
    "maxtime": _set("max_time_s", parse_limit_in_minutes),
    "defaulttime": _set_default_time,
    "minnodes": _set_least_nodes,
    "maxnodes": _set("max_nodes", _count),
    "prioritytier": _set("priority_tier", int),
    "priorityjobfactor": _set("priority_job_factor", int),
    "priority": _set_priority,
    "oversubscribe": _set("oversubscribe", _oversubscribe),
    "shared": _set("oversubscribe", _oversubscribe),
    "defmempernode": _set_memory("default_memory_per_node_mb", "default_memory_per_cpu_mb"),
    "defmempercpu": _set_memory("default_memory_per_cpu_mb", "default_memory_per_node_mb"),
    "maxmempernode": _set_memory("max_memory_per_node_mb", "max_memory_per_cpu_mb"),
    "maxmempercpu": _set_memory("max_memory_per_cpu_mb", "max_memory_per_node_mb"),
    "maxcpuspernode": _set("max_cpus_per_node", _count),
    "hidden": _set("hidden", _yes),
    "rootonly": _set("root_only", _yes),
    "disablerootjobs": _set("disable_root_jobs", _yes),
    "lln": _set("least_loaded_nodes", _yes),
    "allowgroups": _set("allow_groups", _names),
    "allowaccounts": _set("allow_accounts", _names),
    "allowqos": _set("allow_qos", _names),
    "denyaccounts": _set("deny_accounts", lambda text: _names(text) or ()),
    "denyqos": _set("deny_qos", lambda text: _names(text) or ()),
    "gracetime": _set("grace_time_s", int),
    "preemptmode": _set("preempt_mode", str.upper),
    "overtimelimit": _over_time_limit,
    "exclusiveuser": _set("exclusive_user", _yes),
    "reqresv": _set("requires_reservation", _yes),
    "allocnodes": _set("alloc_nodes", lambda text: text or "ALL"),
    "alternate": _set("alternate", lambda text: "" if text.upper() == "NONE" else text),
    "cpubind": _cpu_binding,
    "qos": _set("qos", str),
    "jobdefaults": _set("job_defaults", _job_defaults),
    "tresbillingweights": _set("tres_billing_weights", str),
}
