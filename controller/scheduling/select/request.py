"""What a job asks for, in the terms of node selection: numbers and bitmaps, every default filled
in.

Place: scheduling, pure. Made from an `Ask` for one question to a selector.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.controller.scheduling.select.features import (
    counted_features,
    counted_nodes,
    feature_sets,
)
from understudy.controller.scheduling.select.gres_needs import GresNeeds
from understudy.controller.tables.shape import cpus_for_memory, memory_of, reach_of
from understudy.model.errors import SlurmError
from understudy.protocol.messages import JobSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from understudy.controller.scheduling.api import Ask
    from understudy.controller.scheduling.select.free import Free
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeKind, NodeTable
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.shape import Reach

DEFAULT_ROWS = 4  # of FORCE and YES without a number
ALL_MEMORY = 0  # of --mem=0: all memory of a node on which none is in use
_MOST_KEPT: Final = 10_000  # ours: requests of other shapes that are kept

# --- what a request depends on --------------------------------------------------------------------

_OF_JOB: Final = (
    *("min_nodes", "max_nodes", "num_tasks", "cpus_per_task", "min_cpus", "memory_per_node_mb"),
    *("memory_per_cpu_mb", "exclusive", "required_nodes", "excluded_nodes"),
    *("qos_flags", "partitions"),
)
# What of its options it does not depend on, or what the job or the question has itself. All others
# count, those that are still to come too: a request too many is worked out, none is another job's.
_BESIDE: Final = frozenset(
    (
        *("name", "partition", "account", "qos", "wckey", "comment", "time_limit_s"),
        *("time_min_s", "begin_time", "deadline", "mem_per_node_mb", "mem_per_cpu_mb"),
        *("required_nodes", "excluded_nodes", "exclusive", "licenses", "dependency", "array"),
        *("nice", "priority", "hold", "requeue", "no_kill", "kill_signal"),
        *("kill_signal_before_s", "kill_signal_batch", "kill_signal_reservation"),
        *("kill_on_invalid_dep", "work_dir", "std_in", "std_out", "std_err", "open_mode"),
        *("mail_type", "mail_user", "environment", "arguments", "command", "submit_line"),
        *("extra", "switches", "switches_wait_s", "batch_features", "site_factor"),
    )
)
_of_job: Final = attrgetter(*_OF_JOB)
_of_spec: Final = attrgetter(*(name for name in JobSpec.__struct_fields__ if name not in _BESIDE))
_OF_PARTITION: Final = (
    *("name", "nodes", "min_nodes", "max_nodes", "default_memory_per_node_mb"),
    *("default_memory_per_cpu_mb", "oversubscribe", "exclusive_user", "select_type_parameters"),
    *("max_cpus_per_node", "least_loaded_nodes", "memory_limits_mb", "first_node_memory_mb"),
)
_of_partition: Final = attrgetter(*_OF_PARTITION)


def shape_key(job: Job) -> tuple[Any, ...]:
    """Equal for jobs that ask for the same, whoever has them, however long they run."""
    return _of_job(job), _of_spec(job.spec)


class Shape:
    """What follows for requests that are equal, on idle nodes of a kind; kept by the selector."""

    __slots__ = ("each", "kind", "of_core", "shares")

    def __init__(self, kind: NodeKind) -> None:
        self.kind = kind
        self.each = 0  # CPUs of such a node for the tasks
        self.of_core = 0  # of them, of one core
        # by number of tasks: CPUs, cores (a mask), memory, tasks
        self.shares: dict[int, tuple[int, int, int, int]] = {}


class Request(msgspec.Struct, eq=False):
    """One job's needs in one partition."""

    tasks: int
    cpus_per_task: int
    min_nodes: int
    wanted_nodes: int  # taken if there are so many; no reason to wait
    max_nodes: int
    tasks_per_node: int  # 0: any number
    min_cpus_per_node: int
    held_cpus_per_node: int  # the same in whole tasks: what it holds at least
    threads_per_core: int  # to be used, 0: all
    tasks_per_core: int  # 0: any number
    memory_per_node_mb: int | None
    memory_per_cpu_mb: int | None
    tmp_disk_mb: int
    exclusive: bool
    contiguous: bool
    least_loaded: bool
    required: int  # bitmap
    choices: tuple[int, ...]  # bitmaps of allowed nodes, features considered; tried in order
    rows: int = 1  # jobs of the partition that may share a core
    shares: bool = False  # it is one of those that share cores
    partition: str = ""
    shared_in: str = ""  # the partition, if it may share cores there
    user_id: int = 0
    owns: bool = False  # no job of another user may be on its nodes
    view: Free | None = None  # what is free for it, where that is not what is free for all
    # whether the partition gives whole sockets; None: as the cluster
    socket_rule: bool | None = None
    max_cpus_per_node: int | None = None  # of all jobs of the partition
    cpus_left: NDArray[np.int64] | None = None  # of that, on each node
    # by node, where the job gets fewer CPUs than its tasks asked for
    cpus_at_most: dict[int, int] | None = None
    near_devices: bool = False  # its nodes were chosen for their cores near devices
    is_serial: bool = False  # one CPU is all that it needs
    tasks_on_node: int = 0  # that each node of the job gets, where that is said
    uses_threads: bool = False  # --hint=multithread, whatever the site's rule
    tasks_per_socket: int = 0
    min_sockets: int = 0  # with at least min_cores_per_socket free cores
    min_cores_per_socket: int = 0
    spreads: bool = False  # over many nodes, in index order
    # one socket after the other, in place of a core from each in turn; None: as the site says
    fills_sockets: bool | None = None
    memory_cpus: int = 0  # CPUs that it holds at least on each node, for its memory (MaxMemPerCPU)
    gres: GresNeeds | None = None
    # how many run on each node that it gets: `tasks_per_node`, or all of one node, or one on each
    tasks_are_known: bool = False
    # reserved cores (masks by node), which it may not have
    blocked_cores: Mapping[int, int] | None = None
    # it is asked whether the nodes could ever hold the job, as when it is submitted
    if_empty: bool = False
    switches: int = 0  # leaf switches that its nodes may be on, 0 for any number
    spared: int = 0  # bitmap of nodes that come last, whatever their weight
    favoured: int = 0  # bitmap of nodes that come first among those of their weight
    foremost: int = 0  # bitmap of nodes that come before all others, whatever their weight
    # (bitmap, how many of its nodes the job must have at least)
    counted: tuple[tuple[int, int], ...] = ()

    # what its selector has worked out for all of its shape; None: nobody else may have it
    shapes: list[Shape] | None = None

    @property
    def cpus(self) -> int:
        return self.tasks * self.cpus_per_task

    def but(self, **changes: Any) -> Request:
        """Another one, with these changes."""
        return msgspec.structs.replace(self, shapes=None, **changes)

    @classmethod
    def of(cls, ask: Ask, table: NodeTable, most_nodes: int | None = None) -> Request | None:
        """The job's request; None if it contradicts itself (more nodes than allowed, an unreadable
        feature list).

        `most_nodes`: what limits of associations and qualities of service allow; who asks for more
        waits for them.
        """
        job, partition = ask.job, ask.partition
        spec = job.spec
        features = spec.prefer if ask.prefers else spec.features
        counts = counted_nodes(features) if "*" in features else 0
        if ask.most_nodes is not None:
            most_nodes = min(ask.most_nodes, ask.most_nodes if most_nodes is None else most_nodes)
        reach = reach_of(job, partition, len(table.nodes), most_nodes, counts)
        gres = GresNeeds.of(job)
        if reach is None or (gres is not None and table.gres is None):
            return None
        per_node, per_cpu = memory_of(job, partition)
        memory_cpus = cpus_for_memory(job, partition)
        try:
            choices, counted = _choices(features, table, partition.nodes & ~job.excluded_nodes)
        except SlurmError:
            return None
        tasks, min_nodes, wanted, max_nodes = reach
        cpus_per_task, tasks_per_node = max(job.cpus_per_task, 1), spec.ntasks_per_node or 0
        own_cpus, agrees = spec.min_cpus_node or 0, spec.oversubscribe and not job.exclusive
        rows = sharing_rows(partition, agrees=agrees)
        return cls(
            tasks=max(tasks, min_nodes),
            cpus_per_task=cpus_per_task,
            min_nodes=min_nodes,
            wanted_nodes=wanted,
            max_nodes=max_nodes,
            tasks_per_node=tasks_per_node,
            min_cpus_per_node=max(own_cpus, memory_cpus),
            held_cpus_per_node=max(own_cpus - own_cpus % cpus_per_task, memory_cpus),
            rows=rows,
            shares=rows > 1 or shares_cores(partition, agrees=agrees),
            partition=partition.name,
            shared_in=partition.name if rows > 1 else "",
            user_id=job.user_id,
            owns=partition.exclusive_user or spec.exclusive_for == "user",
            socket_rule=_socket_rule(partition.select_type_parameters),
            max_cpus_per_node=partition.max_cpus_per_node,
            is_serial=max(job.min_cpus, tasks, wanted) == 1
            and not (spec.spread_job or job.required_nodes),
            tasks_on_node=1 if spec.overcommit or spec.num_tasks == 1 else tasks_per_node,
            spreads=spec.spread_job,
            uses_threads=spec.hint == "multithread",
            tasks_per_socket=spec.ntasks_per_socket or 0,
            min_sockets=spec.sockets_per_node or 0,
            min_cores_per_socket=spec.cores_per_socket or 0,
            threads_per_core=spec.threads_per_core or 0,
            tasks_per_core=spec.ntasks_per_core or 0,
            memory_per_node_mb=per_node,
            memory_per_cpu_mb=per_cpu,
            tmp_disk_mb=spec.tmp_disk_mb or 0,
            exclusive=wants_whole_nodes(job, partition),
            contiguous=spec.contiguous,
            least_loaded=partition.least_loaded_nodes,
            required=job.required_nodes,
            choices=choices,
            counted=counted,
            switches=ask.switches,
            fills_sockets=_fills_sockets(spec.distribution),
            memory_cpus=memory_cpus,
            gres=gres,
            tasks_are_known=tasks_per_node > 0 or _tasks_are_known(job, partition, reach),
            blocked_cores=ask.blocked_cores or None,
        )


def _tasks_are_known(job: Job, partition: Partition, reach: Reach) -> bool:
    """All of one node, or one on each of as many nodes."""
    nodes = reach.max_nodes
    return (
        job.spec.num_tasks is not None
        and reach.min_nodes == nodes
        and nodes in (job.max_nodes, partition.max_nodes, reach.tasks)
        and nodes in (1, reach.tasks)
    )


def _choices(
    features: str, table: NodeTable, allowed: int
) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """The bitmaps to try one after the other, and those of which so many nodes must be had.

    Raises:
        SlurmError: the features cannot be read.
    """
    if not features:
        return (allowed,), ()
    if "*" in features:
        allowed, counted = counted_features(features, table.with_feature, allowed)
        return (allowed,), counted
    return feature_sets(features, table.with_feature, allowed), ()


def wants_whole_nodes(job: Job, partition: Partition) -> bool:
    """Whether the job shares its nodes with nobody."""
    return job.exclusive or partition.oversubscribe == "EXCLUSIVE"


def shares_cores(partition: Partition, *, agrees: bool) -> bool:
    """Whether a job of the partition is one of those that share cores; with FORCE:1, too, which
    lets nobody have the same ones.
    """
    how = partition.oversubscribe
    return how.startswith("FORCE") or (agrees and how.startswith("YES"))


def sharing_rows(partition: Partition, *, agrees: bool) -> int:
    """How many jobs may share a core in the partition: FORCE:n for all, YES:n for those who
    `agree`.
    """
    if shares_cores(partition, agrees=agrees):
        return int(partition.oversubscribe.partition(":")[2] or DEFAULT_ROWS)
    return 1


def _socket_rule(parameters: str) -> bool | None:
    """What a partition's SelectTypeParameters say of sockets."""
    if not parameters:
        return None
    words = parameters.upper().split(",")
    return True if "CR_SOCKET" in words else False if "CR_CORE" in words else None


def _fills_sockets(distribution: str) -> bool | None:
    """Whether tasks go to the cores of one socket after the other (-m plane=N, *:block); None if
    nothing is said.
    """
    if not distribution:
        return None
    first, *others = distribution.partition(",")[0].lower().split(":")
    if first.startswith("plane"):
        return True
    return others[0] == "block" if others else None


class Requests:
    """Makes requests, and keeps one of each shape: thousands of jobs ask for the same."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], Request] = {}

    def of(self, ask: Ask, table: NodeTable, most_nodes: int | None = None) -> Request | None:
        """As `Request.of`; the caller's own."""
        job, spec = ask.job, ask.job.spec
        # features mean other nodes from time to time, devices are read from texts
        if ask.blocked_cores or spec.features or spec.prefer:
            return Request.of(ask, table, most_nodes)
        key = (
            *(_of_job(job), _of_spec(spec), _of_partition(ask.partition)),
            *(most_nodes, ask.most_nodes, ask.switches, len(table.nodes)),
        )
        kept = self._kept.get(key)
        if kept is None:
            request = Request.of(ask, table, most_nodes)
            if request is None or request.gres is not None:
                return request
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            request.shapes = []
            self._kept[key] = kept = request
        return msgspec.structs.replace(kept, user_id=job.user_id)
