"""What the controller takes from slurm.conf, in the units that it works with.

Place: tables; made once from the configuration by understudy.controller.edge.build.
Follows: slurm.conf(5), defaults of 22.05.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from understudy.model.burst_buffer_conf import BurstBufferConf
from understudy.model.cadence import Cadence

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Enforced:
    """What slurm.conf asks for."""

    associations: bool = False
    limits: bool = False
    qos: bool = False
    safe: bool = False
    wckeys: bool = False
    jobs: bool = True  # False (nojobs): accounting is told of no jobs
    steps: bool = True

    @classmethod
    def of(cls, words: Iterable[str]) -> Enforced:
        """Read the words of AccountingStorageEnforce, or its old numbers."""
        said = {word.strip().lower() for word in words}
        everything = "all" in said
        limits = everything or "limits" in said or "safe" in said or "2" in said
        qos, safe, wckeys = (
            everything or "qos" in said,
            everything or "safe" in said,
            everything or "wckeys" in said or "wckey" in said,
        )
        without_jobs = "nojobs" in said
        return cls(
            associations=limits
            or qos
            or safe
            or wckeys
            or "1" in said
            or any(word.startswith("assoc") for word in said),
            limits=limits,
            qos=qos,
            safe=safe,
            wckeys=wckeys,
            jobs=not without_jobs,
            steps=not without_jobs and "nosteps" not in said,
        )


MAX_DEPEND_DEPTH: Final = 10  # jobs that are tested for a circle of dependencies


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Times in seconds, memory in MB, None for no limit."""

    cluster_name: str = "cluster"
    cadence: Cadence = field(default_factory=Cadence)  # of the controller's threads
    controller_host: str = "localhost"
    admin_ids: frozenset[int] = frozenset()  # SlurmUser and the cluster's owner; root is one anyway
    # what users see only of their own, words of PrivateData
    private_data: frozenset[str] = frozenset()
    first_job_id: int = 1
    max_job_id: int = 67_043_328
    max_job_count: int = 10_000
    max_array_size: int = 1001
    min_job_age_s: int = 300
    kill_wait_s: int = 30
    complete_wait_s: int = 0
    over_time_limit_s: int | None = 0
    enforce_part_limits: str = "NO"  # NO, ANY, ALL
    default_memory_per_node_mb: int | None = None
    default_memory_per_cpu_mb: int | None = None
    max_memory_per_node_mb: int | None = None
    max_memory_per_cpu_mb: int | None = None
    requeue_by_default: bool = True  # JobRequeue
    allows_crontabs: bool = False  # ScronParameters=enable
    disable_root_jobs: bool = False
    return_to_service: int = 0
    # one node daemon answers for all nodes (FrontendName): that it is well says nothing of them
    front_end: bool = False
    resume_timeout_s: int = 60
    boot_s: float = 30.0  # how long an emulated node takes to boot (understudy_boot_s)
    shows_cloud: bool = False  # PrivateData=cloud: also nodes in the cloud that are off
    slurmd_timeout_s: int = 300
    inactive_limit_s: int = 0  # how long srun and salloc may be silent; 0: for ever
    health_interval_s: int = 0  # 0: nodes' health is not looked at
    health_states: frozenset[str] = frozenset()  # words of HealthCheckNodeState in small letters
    message_timeout_s: float = 10.0
    tree_width: int = 32
    credential_lifetime_s: int = 120
    max_step_count: int = 40_000
    max_tasks_per_node: int = 512
    mpi_default: str = "none"
    mpi_ports: int = 0  # that a step may keep (MpiParams)
    kill_invalid_dependency: bool = False
    max_depend_depth: int = MAX_DEPEND_DEPTH
    requeue_exit_codes: frozenset[int] = frozenset()
    requeue_exit_hold_codes: frozenset[int] = frozenset()
    reservation_over_run_s: int | None = 0  # ResvOverRun
    preempt_type: str = "preempt/none"
    preempt_mode: str = "OFF"
    preempt_exempt_s: int | None = None
    users_may_top: bool = False  # enable_user_top
    preempt_sends_user_signal: bool = False
    time_slice_s: int = 30  # SchedulerTimeSlice
    licenses: dict[str, int] = field(default_factory=dict)
    bills_largest: bool = False  # PriorityFlags=MAX_TRES
    gres_types: tuple[str, ...] = ()  # in the order of the file
    # what AccountingStorageTRES names beside CPUs, memory and the like
    tracked_tres: tuple[str, ...] = ()
    enforced: Enforced = field(default_factory=Enforced)  # AccountingStorageEnforce
    # DefCpuPerGPU and DefMemPerGPU as "cpu" and "mem"
    gpu_defaults: dict[str, int] = field(default_factory=dict)
    # those of AccountingStorageTRES, as `gres/gpu`, in the order of the file
    tracked_gres: tuple[str, ...] = ()
    burst_buffer: BurstBufferConf = field(default_factory=BurstBufferConf)
    array_stage_count: int = 10  # tasks of an array that are split off to get buffers
    prolog_slurmctld: str = ""
    epilog_slurmctld: str = ""
    reservation_prolog: str = ""
    reservation_epilog: str = ""
    has_prolog: bool = False  # programs of the nodes'
    prolog_flags: frozenset[str] = frozenset()  # PrologFlags, words of model.prolog_flags
    has_epilog: bool = False
    gathers_usage: bool = False  # JobAcctGatherType
    mail_program: str = ""
    mail_domain: str = ""
    emulates_jobs: bool = True
    default_run_s: float = 1.0
    version: str = "22.05.8"

    @property
    def memory_limits_mb(self) -> tuple[int | None, int | None]:
        """MaxMemPerNode and MaxMemPerCPU, of partitions that have neither."""
        return self.max_memory_per_node_mb, self.max_memory_per_cpu_mb
