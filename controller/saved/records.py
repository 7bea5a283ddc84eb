"""Job records, node states and partitions as they are saved: msgpack, with a version.

Place: saved; used by understudy.controller.saved.store. New fields go to the end
and have a default, so that older records are understood.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.controller.saved.older import current
from understudy.controller.tables.allocation import Allocation
from understudy.controller.tables.dependency import Dependency, Outlook, Term
from understudy.controller.tables.job import HetJob, Job, JobArray
from understudy.controller.tables.node_states import restore
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.reservation import Reservation
from understudy.controller.tables.step import Step
from understudy.model.states import JobFlag, JobState, NodeFlag, NodeState
from understudy.protocol.messages import Emulation, JobSpec  # noqa: TC001 - msgspec looks at the annotations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from understudy.controller.tables.node import Node

VERSION: Final = 1
# what reading a record raises in which an octet has changed
DAMAGED: Final = (msgspec.DecodeError, TypeError, ValueError, LookupError, OverflowError)


class StateError(Exception):
    """The saved state is of a version that this program does not know, or damaged."""


class JobRecord(msgspec.Struct, array_like=True):
    """A job on disk; bitmaps are bytes, little end first."""

    version: int
    job_id: int
    spec: JobSpec
    user_id: int
    group_id: int
    submit_time: int
    partitions: tuple[str, ...]
    priority: int
    admin_priority: int | None
    state: int
    flags: int
    partition: str
    reason: str
    reason_detail: str
    begin_time: int | None
    eligible_time: int | None
    start_time: int | None
    end_time: int | None
    time_limit_s: int | None
    time_limit_is_set: bool
    min_nodes: int
    max_nodes: int | None
    num_tasks: int
    cpus_per_task: int
    min_cpus: int
    memory_per_node_mb: int | None
    memory_per_cpu_mb: int | None
    exclusive: bool
    required_nodes: bytes
    excluded_nodes: bytes
    nice: int
    # of each term kind, job id, delay, outlook, task, whether it means an array
    dependency: tuple[bool, list[tuple[Any, ...]]] | None
    allocation: list[Any] | None
    node_list: str
    completing_nodes: bytes
    launch_acknowledged: bool
    exit_code: int
    exit_signal: int
    derived_exit_code: int
    restarts: int
    requeue: bool
    held_by: str
    admin_comment: str
    emulation: Emulation | None
    kill_sent: bool = False
    array_job_id: int = 0
    array_limit: int = 0
    array_task_id: int | None = None
    array_tasks: bytes = b""
    killed_by: int | None = None
    lifted: tuple[str, ...] = ()
    qos_flags: tuple[str, ...] = ()
    used_reservation: str = ""
    suspend_time: int | None = None
    pre_suspend_s: int = 0
    suspended_s: int = 0
    preempt_time: int | None = None
    preempt_suspended: bool = False
    het_job_id: int = 0
    het_offset: int = 0
    interactive: bool = False
    steps: list[list[Any]] = []
    next_step_id: int = 0
    prolog_nodes: bytes = b""
    resize_time: int | None = None
    array_has_lost_tasks: bool = False
    as_preferred: bool = False
    last_tres: str = ""


class NodeRecord(msgspec.Struct, array_like=True):
    """What is remembered of a node."""

    version: int
    name: str
    state: int
    flags: int
    reason: str
    reason_user_id: int
    reason_time: int | None
    boot_time: int | None
    slurmd_start_time: int | None
    weight: int
    features: tuple[str, ...]
    active_features: tuple[str, ...]
    comment: str
    extra: str
    next_state: int = 0
    boot_request_time: int = 0
    cpu_bind: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode_job = msgspec.msgpack.Decoder(JobRecord).decode
_decode_node = msgspec.msgpack.Decoder(NodeRecord).decode
# Fields that a record and a job have under the same name and in the same form.
_SAME: Final = (  # noqa: SIM905 - easier to read
    "job_id spec user_id group_id submit_time partitions priority admin_priority partition "
    "reason reason_detail begin_time eligible_time start_time "
    "end_time time_limit_s time_limit_is_set min_nodes max_nodes num_tasks cpus_per_task "
    "min_cpus memory_per_node_mb memory_per_cpu_mb exclusive "
    "nice node_list launch_acknowledged exit_code exit_signal derived_exit_code restarts "
    "requeue held_by admin_comment emulation kill_sent killed_by "
    "lifted qos_flags used_reservation "
    "suspend_time pre_suspend_s suspended_s preempt_time preempt_suspended interactive "
    "next_step_id resize_time as_preferred last_tres"
).split()


def _bytes(bitmap: int) -> bytes:
    return bitmap.to_bytes((bitmap.bit_length() + 7) >> 3, "little") if bitmap else b""


def _bitmap(octets: bytes) -> int:
    return int.from_bytes(octets, "little")


def _pack(term: Term) -> tuple[Any, ...]:
    return (term.kind, term.job_id, term.delay_min, term.outlook.value, term.task, term.is_array)


def _pack_dependency(left: Dependency | None) -> tuple[bool, list[tuple[Any, ...]]] | None:
    return None if left is None else (left.any_suffices, [_pack(term) for term in left.terms])


def _unpack(
    kind: str,
    job_id: int,
    delay_min: int,
    outlook: str,
    task: int | None = None,
    is_array: bool = False,
) -> Term:
    return Term(kind, job_id, delay_min, Outlook(outlook), task, is_array)


@contextmanager
def _reading(kind: str) -> Iterator[None]:
    """Say of what raises in it that the record is damaged."""
    try:
        yield
    except DAMAGED as error:
        raise StateError(f"damaged {kind} record: {error}") from error


def encode_job(job: Job) -> bytes:
    """The job's record. Written field by field: this is done several times in each job's life."""
    record = JobRecord(
        VERSION,
        job.job_id,
        job.spec,
        job.user_id,
        job.group_id,
        job.submit_time,
        job.partitions,
        job.priority,
        job.admin_priority,
        int(job.state),
        int(job.flags),
        job.partition,
        job.reason,
        job.reason_detail,
        job.begin_time,
        job.eligible_time,
        job.start_time,
        job.end_time,
        job.time_limit_s,
        job.time_limit_is_set,
        job.min_nodes,
        job.max_nodes,
        job.num_tasks,
        job.cpus_per_task,
        job.min_cpus,
        job.memory_per_node_mb,
        job.memory_per_cpu_mb,
        job.exclusive,
        _bytes(job.required_nodes),
        _bytes(job.excluded_nodes),
        job.nice,
        _pack_dependency(job.dependency),
        None if job.allocation is None else job.allocation.pack(),
        job.node_list,
        _bytes(job.completing_nodes),
        job.launch_acknowledged,
        job.exit_code,
        job.exit_signal,
        job.derived_exit_code,
        job.restarts,
        job.requeue,
        job.held_by,
        job.admin_comment,
        job.emulation,
        job.kill_sent,
        *((0, 0) if job.array is None else (job.array.job_id, job.array.limit)),
        job.array_task_id,
        _bytes(job.array_tasks),
        job.killed_by,
        job.lifted,
        job.qos_flags,
        job.used_reservation if job.allocation is not None else "",
        job.suspend_time,
        job.pre_suspend_s,
        job.suspended_s,
        job.preempt_time,
        job.preempt_suspended,
        *((0, 0) if job.het is None else (job.het.job_id, job.het_offset)),
        job.interactive,
        [step.pack() for step in job.steps.values()] if job.steps else [],
        job.next_step_id,
        _bytes(job.prolog_nodes),
        job.resize_time,
        job.array is not None and job.array.has_lost_tasks,
        *(job.as_preferred, job.last_tres),
    )
    return _encode(record)


def decode_job(octets: bytes) -> Job:
    """The job of a record.

    Raises:
        StateError: damaged, or of a later version.
    """
    with _reading("job"):
        record = _decode_job(octets)
        _check_version(record.version)
        job = Job(
            **{name: getattr(record, name) for name in _SAME},
            state=JobState(record.state),
            flags=JobFlag(record.flags),
        )
        job.spec = current(job.spec)
        job.required_nodes, job.excluded_nodes = (
            _bitmap(record.required_nodes),
            _bitmap(record.excluded_nodes),
        )
        job.completing_nodes, job.prolog_nodes = (
            _bitmap(record.completing_nodes),
            _bitmap(record.prolog_nodes),
        )
        if record.dependency is not None:
            any_suffices, terms = record.dependency
            job.dependency = Dependency(tuple(_unpack(*term) for term in terms), any_suffices)
        if record.array_job_id:
            job.array = JobArray(record.array_job_id, record.array_limit, 0, 0, 0, 0)
            job.array.has_lost_tasks = record.array_has_lost_tasks
            job.array_task_id, job.array_tasks = record.array_task_id, _bitmap(record.array_tasks)
        if record.het_job_id:
            job.het, job.het_offset = HetJob(record.het_job_id), record.het_offset
        if record.steps:
            steps = [Step.unpack(packed) for packed in record.steps]
            job.steps = {step.step_id: step for step in steps}
        if record.allocation is not None:
            job.allocation = Allocation.unpack(record.allocation)
    return job


def encode_node(node: Node) -> bytes:
    """What is remembered of the node."""
    return _encode(
        NodeRecord(
            VERSION,
            node.name,
            int(node.state),
            int(node.flags),
            node.reason,
            node.reason_user_id,
            node.reason_time,
            node.boot_time,
            node.slurmd_start_time,
            node.weight,
            node.features,
            node.active_features,
            node.comment,
            node.extra,
            int(node.next_state),
            node.boot_request_time,
            node.cpu_bind,
        )
    )


def decode_node(octets: bytes, node: Node, *, in_full: bool = False) -> None:
    """Set the node to what was remembered of it. Its weight is slurm.conf's, and so are its
    features unless it comes back `in_full`.

    Raises:
        StateError: damaged, or of a later version.
    """
    with _reading("node"):
        record = _decode_node(octets)
        _check_version(record.version)
        state, next_state = NodeState(record.state), NodeState(record.next_state)
        flags = NodeFlag(record.flags)
    if state is NodeState.FUTURE and node.state is not NodeState.FUTURE:
        return  # it was deleted by hand, and slurm.conf has it
    restore(node, state, flags)
    node.reason, node.reason_user_id, node.reason_time = (
        record.reason,
        record.reason_user_id,
        record.reason_time,
    )
    node.boot_time, node.slurmd_start_time = record.boot_time, record.slurmd_start_time
    if in_full:
        node.features, node.active_features = record.features, record.active_features
    node.comment, node.extra, node.cpu_bind = record.comment, record.extra, record.cpu_bind
    node.next_state, node.boot_request_time = next_state, record.boot_request_time


def encode_partition(partition: Partition) -> bytes:
    """The partition with its version; the node bitmap is made again from the expression."""
    fields: dict[str, Any] = {
        name: getattr(partition, name) for name in Partition.__dataclass_fields__ if name != "nodes"
    }
    return _encode((VERSION, fields))


def decode_partition(octets: bytes) -> Partition:
    """The partition of a record, its nodes not yet known as a bitmap.

    Raises:
        StateError: damaged, or of a later version.
    """
    with _reading("partition"):
        version, fields = msgspec.msgpack.decode(octets)
        _check_version(version)
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields.items()
            if name in Partition.__dataclass_fields__
        }
        return Partition(**known)


def encode_reservation(reservation: Reservation, nodes: str, names: Sequence[str]) -> bytes:
    """The reservation with its version; `nodes`: its nodes as a host list, `names`: of all nodes,
    by which its cores are kept.
    """
    fields: dict[str, Any] = {
        name: getattr(reservation, name)
        for name in Reservation.__dataclass_fields__
        if name not in ("nodes", "cores")
    }
    fields["node_expression"] = nodes
    cores = (
        None
        if reservation.cores is None
        else {names[node]: _bytes(mask) for node, mask in reservation.cores.items()}
    )
    return _encode((VERSION, fields, cores))


def decode_reservation(octets: bytes, index_of: dict[str, int]) -> Reservation:
    """The reservation of a record, its nodes not yet known as a bitmap.

    Raises:
        StateError: damaged, or of a later version.
    """
    with _reading("reservation"):
        version, fields, cores = msgspec.msgpack.decode(octets)
        _check_version(version)
        known: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in fields.items()
            if name in Reservation.__dataclass_fields__
        }
        reservation = Reservation(**known)
        if cores is not None:
            reservation.cores = {
                index_of[name]: _bitmap(mask) for name, mask in cores.items() if name in index_of
            }
    return reservation


def _check_version(version: int) -> None:
    if version > VERSION:
        raise StateError(f"the saved state is of version {version}, this program knows {VERSION}")
