"""Partitions as the controller holds them, made from the configuration's PartitionName lines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Partition:
    """One partition. Times in seconds, None for no limit. `nodes` is a bitmap over the node table."""

    name: str
    nodes: int = 0
    node_expression: str = ""  # as configured
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

    @property
    def can_schedule(self) -> bool:
        """Whether pending jobs may be started: DRAIN keeps new ones out, but lets those start that are there."""
        return self.state in ("UP", "DRAIN")

    @property
    def can_submit(self) -> bool:
        return self.state in ("UP", "DOWN")
