"""Partitions as the controller holds them, made from the configuration's PartitionName lines, and
whether a job is within their limits.

Place: tables, no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from understudy.model import nodeset
from understudy.model.gres import gpu_defaults

if TYPE_CHECKING:
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeTable

PARTITION_TIME_LIMIT: Final = "PartitionTimeLimit"
PARTITION_NODE_LIMIT: Final = "PartitionNodeLimit"
MEMORY_LIMIT: Final = "MaxMemPerLimit"
ACCOUNT_NOT_ALLOWED: Final = "AccountNotAllowed"
QOS_NOT_ALLOWED: Final = "QOSNotAllowed"


@dataclass(slots=True, eq=False)
class Partition:
    """One partition. Times in seconds, None for no limit. `nodes` is a bitmap over the node
    table.
    """

    name: str
    nodes: int = 0
    node_expression: str = ""  # as configured
    has_other_nodes: bool = False  # than those, which are shown all the same
    state: str = "UP"  # UP, DOWN, DRAIN, INACTIVE
    is_default: bool = False
    max_time_s: int | None = None
    default_time_s: int | None = None
    min_nodes: int = 1
    max_nodes: int | None = None
    priority_tier: int = 1
    priority_job_factor: int = 1
    oversubscribe: str = "NO"  # NO, EXCLUSIVE, FORCE:n, YES:n
    default_memory_per_node_mb: int | None = None
    default_memory_per_cpu_mb: int | None = None
    max_memory_per_node_mb: int | None = None
    max_memory_per_cpu_mb: int | None = None
    max_cpus_per_node: int | None = None
    hidden: bool = False
    root_only: bool = False
    disable_root_jobs: bool = False
    least_loaded_nodes: bool = False
    allow_groups: tuple[str, ...] | None = None
    allow_accounts: tuple[str, ...] | None = None
    allow_qos: tuple[str, ...] | None = None
    deny_accounts: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    grace_time_s: int = 0
    preempt_mode: str = ""
    over_time_limit_s: int | None = None  # None: the cluster's
    over_time_limit_is_unlimited: bool = False
    default_time_is_unlimited: bool = False
    exclusive_user: bool = False
    requires_reservation: bool = False
    alloc_nodes: str = "ALL"
    alternate: str = ""
    qos: str = ""
    node_sets: str = ""
    select_type_parameters: str = ""
    tres_billing_weights: str = ""
    job_defaults: str = ""
    cpu_bind: str = ""  # as shown: cores, sockets ...
    # RealMemory of its first node: what one is taken to have where a job asks for all memory of its
    # nodes, or says nothing of memory
    first_node_memory_mb: int = 0
    # the cluster's MaxMemPerNode and MaxMemPerCPU
    cluster_memory_limits_mb: tuple[int | None, int | None] = (None, None)

    @property
    def memory_limits_mb(self) -> tuple[int | None, int | None]:
        """MaxMemPerNode and MaxMemPerCPU that hold in it: its own, of which one is enough, or the
        cluster's (as seen of 22.05.8).
        """
        own = self.max_memory_per_node_mb, self.max_memory_per_cpu_mb
        return self.cluster_memory_limits_mb if own == (None, None) else (own[0], own[1] or None)

    def place(self, nodes: int, table: NodeTable) -> None:
        """Give it these nodes of the table."""
        self.nodes = nodes
        self.first_node_memory_mb = int(table.memory[nodeset.first(nodes)]) if nodes else 0

    @property
    def gpu_defaults(self) -> dict[str, int]:
        """CPUs and memory for each GPU, as "cpu" and "mem", of jobs that say nothing."""
        return gpu_defaults(self.job_defaults) if self.job_defaults else {}

    @property
    def can_schedule(self) -> bool:
        """Whether pending jobs may be started: DRAIN keeps new ones out, but lets those start that
        are there.
        """
        return self.state in ("UP", "DRAIN")

    @property
    def can_submit(self) -> bool:
        return self.state in ("UP", "DOWN")


def all_memory_mb(job: Job, partition: Partition) -> int:
    """What a job that asks for all memory of its nodes, or says nothing of memory and has no
    default, is taken to ask for of each (as seen of 22.05.8); 0 if it asks for something else.
    """
    if job.memory_per_node_mb or job.memory_per_cpu_mb or job.spec.mem_per_tres:
        return 0
    says = job.memory_per_node_mb is not None or job.memory_per_cpu_mb is not None
    if not says and (partition.default_memory_per_node_mb or partition.default_memory_per_cpu_mb):
        return 0
    return partition.first_node_memory_mb


def _memory_of_a_node_mb(job: Job, partition: Partition) -> int:
    """What the job needs at least on one of its nodes, as MaxMemPerNode counts it: of --mem-per-cpu
    that of the CPUs that are certain there (154 drawn jobs of 22.05.8).
    """
    if not job.memory_per_cpu_mb:
        return job.memory_per_node_mb or all_memory_mb(job, partition)
    spec = job.spec
    cpus = max((spec.ntasks_per_node or 1) * job.cpus_per_task, spec.min_cpus_node or 0)
    if job.max_nodes is not None:
        cpus = max(cpus, -(-job.min_cpus // job.max_nodes))
    return cpus * job.memory_per_cpu_mb


def limit_broken(job: Job, partition: Partition, *, for_backfill: bool = False) -> str:
    """The partition's limit that the job breaks, "" if none.

    `for_backfill`: it may be content with the time of --time-min, which backfill alone gives.
    """
    passes = job.qos_flags
    most_s, least_s = (
        partition.max_time_s,
        (job.spec.time_min_s if for_backfill else None) or job.time_limit_s,
    )
    is_longer = (
        job.time_limit_is_set and most_s is not None and (least_s is None or least_s > most_s)
    )
    if (
        partition.max_nodes is not None
        and max(job.asked_nodes, job.max_nodes or 0) > partition.max_nodes
        and "PartitionMaxNodes" not in passes
    ):
        return PARTITION_NODE_LIMIT
    if job.min_nodes > 1 and job.asked_nodes > partition.nodes.bit_count():
        return PARTITION_NODE_LIMIT
    if (
        job.max_nodes is not None
        and job.max_nodes < partition.min_nodes
        and "PartitionMinNodes" not in passes
    ):
        return PARTITION_NODE_LIMIT
    if is_longer and "PartitionTimeLimit" not in passes:
        return PARTITION_TIME_LIMIT
    per_node, per_cpu = partition.memory_limits_mb
    if per_node is not None and _memory_of_a_node_mb(job, partition) > per_node:
        return MEMORY_LIMIT
    if (
        per_cpu is not None
        and job.memory_per_cpu_mb is not None
        and job.memory_per_cpu_mb > per_cpu
    ):
        return MEMORY_LIMIT
    return access_refused(job, partition)


def access_refused(job: Job, partition: Partition) -> str:
    """Whether the partition has no jobs of its account or QOS: the reason, "" if it has."""
    if partition.allow_accounts is not None or partition.deny_accounts:
        account, allowed = job.spec.account, partition.allow_accounts
        if account and (
            account not in allowed if allowed is not None else account in partition.deny_accounts
        ):
            return ACCOUNT_NOT_ALLOWED
    if partition.allow_qos is not None or partition.deny_qos:
        qos, allowed = job.spec.qos, partition.allow_qos
        if qos and (qos not in allowed if allowed is not None else qos in partition.deny_qos):
            return QOS_NOT_ALLOWED
    return ""
