"""From slurm.conf to the controller's tables and settings.

Place: edge; the only module of it that knows the configuration file. Follows:
slurm.conf(5).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from understudy.controller.core.core import LOCAL_IDS
from understudy.controller.edge.burst_buffers import build_burst_buffers
from understudy.controller.tables.gres_layout import build_gres
from understudy.controller.tables.node import Node, NodeTable
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.power_plan import PowerPlan
from understudy.controller.tables.settings import MAX_DEPEND_DEPTH, Enforced, Settings
from understudy.controller.tables.tables import Tables
from understudy.controller.tables.topology import Tree
from understudy.model import conf_values, nodeset
from understudy.model.cluster import FLAT
from understudy.model.cpu_binding import cpu_binding
from understudy.model.gres import gpu_defaults
from understudy.model.hostlist import NodeNames
from understudy.model.licenses import configured_licenses
from understudy.model.prolog_flags import prolog_words
from understudy.model.scheduler_parameters import number
from understudy.model.states import NodeFlag, NodeState
from understudy.model.times import leading_number
from understudy.model.tres import BASE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from understudy.model.cluster import Cluster
    from understudy.model.conf import NodeConf, PartitionConf, SlurmConfig

BOOT_S: Final = 30.0  # ours: how long an emulated node takes to boot, where nobody says
_STATES: Final[dict[str, tuple[NodeState, NodeFlag]]] = {
    "DOWN": (NodeState.DOWN, NodeFlag.NONE),
    "DRAIN": (NodeState.UNKNOWN, NodeFlag.DRAIN),
    "FAIL": (NodeState.UNKNOWN, NodeFlag.FAIL),
    "FAILING": (NodeState.UNKNOWN, NodeFlag.FAIL),
    "FUTURE": (NodeState.FUTURE, NodeFlag.NONE),
    "CLOUD": (NodeState.IDLE, NodeFlag.CLOUD | NodeFlag.POWERED_DOWN),
}


def build_tables(config: SlurmConfig) -> tuple[Tables, NodeNames]:
    """The tables that the configuration describes, and the nodes' names."""
    states = _STATES
    if PowerPlan.of(config) is None:  # nobody could switch them on
        states = _STATES | {"CLOUD": (NodeState.UNKNOWN, NodeFlag.CLOUD)}
    made = [_node(conf, index, states) for index, conf in enumerate(config.nodes)]
    # which gives whole nodes, the system's cores with them
    if config.text("SelectType") == "select/linear":
        for node in made:
            node.spec_cores = 0
    table = NodeTable(made, build_gres(config, made) if config.is_set("GresTypes") else None)
    if config.text("TopologyPlugin") == "topology/tree":
        optional = "topooptional" in {word.lower() for word in config.words("TopologyParam")}
        table.tree = Tree.of(config.topology, config.index_of, optional=optional)
    partitions: dict[str, Partition] = {}
    default = config.default_partition
    disable_root = config.boolean("DisableRootJobs")
    memory_limits = config.number("MaxMemPerNode") or None, config.number("MaxMemPerCPU") or None
    for conf in config.partitions:
        nodes = nodeset.from_positions(config.index_of[name] for name in conf.nodes)
        partition = _partition(conf, is_default=conf is default, disable_root=disable_root)
        partition.cluster_memory_limits_mb = memory_limits
        partition.place(nodes, table)
        partitions[conf.name] = partition
    tables = Tables(table, partitions, burst_buffers=build_burst_buffers(config))
    return tables, NodeNames(config.node_names)


def _node(conf: NodeConf, index: int, states: Mapping[str, tuple[NodeState, NodeFlag]]) -> Node:
    state, flags = states.get(conf.state.upper(), (NodeState.UNKNOWN, NodeFlag.NONE))
    return Node(
        name=conf.name,
        index=index,
        cpus=conf.cpus,
        boards=conf.boards,
        sockets=conf.sockets,
        cores_per_socket=conf.cores_per_socket,
        threads_per_core=conf.threads_per_core,
        memory_mb=conf.memory_mb,
        tmp_disk_mb=conf.tmp_disk_mb,
        weight=conf.weight,
        features=tuple(conf.features),
        gres=conf.gres,
        address=conf.address,
        hostname=conf.hostname,
        port=conf.port,
        state=state,
        flags=flags,
        reason=conf.reason,
        cpu_bind=_binding(conf.cpu_bind),
        spec_cores=conf.spec_cores,
        mem_spec_mb=conf.mem_spec_limit_mb,
        active_features=tuple(conf.features),
    )


def _partition(conf: PartitionConf, *, is_default: bool, disable_root: bool) -> Partition:
    return Partition(
        name=conf.name,
        node_expression=conf.expression,
        state=conf.state,
        is_default=is_default,
        max_time_s=conf.max_time_s,
        default_time_s=conf.default_time_s,
        default_time_is_unlimited=conf.default_time_is_unlimited,
        min_nodes=conf.min_nodes,
        max_nodes=conf.max_nodes,
        priority_tier=conf.priority_tier,
        priority_job_factor=conf.priority_job_factor,
        oversubscribe=conf.oversubscribe,
        default_memory_per_node_mb=conf.default_memory_per_node_mb,
        default_memory_per_cpu_mb=conf.default_memory_per_cpu_mb,
        max_memory_per_node_mb=conf.max_memory_per_node_mb,
        max_memory_per_cpu_mb=conf.max_memory_per_cpu_mb,
        max_cpus_per_node=conf.max_cpus_per_node,
        hidden=conf.hidden,
        root_only=conf.root_only,
        disable_root_jobs=disable_root
        if conf.disable_root_jobs is None
        else conf.disable_root_jobs,
        least_loaded_nodes=conf.least_loaded_nodes,
        allow_groups=conf.allow_groups,
        allow_accounts=conf.allow_accounts,
        allow_qos=conf.allow_qos,
        deny_accounts=conf.deny_accounts,
        deny_qos=conf.deny_qos,
        grace_time_s=conf.grace_time_s,
        preempt_mode=conf.preempt_mode,
        over_time_limit_s=conf.over_time_limit_s,
        over_time_limit_is_unlimited=conf.over_time_limit_is_unlimited,
        exclusive_user=conf.exclusive_user,
        requires_reservation=conf.requires_reservation,
        alloc_nodes=conf.alloc_nodes,
        alternate=conf.alternate,
        qos=conf.qos,
        node_sets=",".join(conf.node_sets),
        select_type_parameters=conf.select_type_parameters,
        tres_billing_weights=conf.tres_billing_weights,
        job_defaults=conf.job_defaults,
        cpu_bind=_binding(conf.settings.get("cpubind", "")),
    )


@lru_cache
def _binding(text: str) -> str:
    """How tasks are bound where nothing is said: it is shown. A word that is none counts for
    nothing.
    """
    try:
        return cpu_binding(text or "off")
    except ValueError:
        return ""


def build_settings(
    config: SlurmConfig, cluster: Cluster, user_id_of: Callable[[str], int | None]
) -> Settings:
    """What the controller takes from the configuration and from cluster.json. `user_id_of`: the
    number of a user's name.
    """
    slurm_user = user_id_of(config.text("SlurmUser"))
    settings = Settings(
        cluster_name=(config.cluster_name or cluster.name).lower(),  # Slurm knows it so
        cadence=cluster.cadence,
        controller_host=config.controllers[0][0] if config.controllers else "localhost",
        admin_ids=frozenset(
            {cluster.user_id} | ({slurm_user} if slurm_user is not None else set())
        ),
        private_data=frozenset(word.lower() for word in config.words("PrivateData")),
        max_job_id=LOCAL_IDS if cluster.is_unbounded else config.count("MaxJobId"),
        max_job_count=sys.maxsize if cluster.is_unbounded else config.count("MaxJobCount"),
        mail_program="" if cluster.executor == "emulated" else config.text("MailProg"),
        emulates_jobs=cluster.executor == "emulated",
        default_run_s=cluster.default_run_s,
    )
    for part in (_for_jobs, _for_nodes, _for_sharing, _for_accounting, _for_programs):
        settings = part(settings, config)
    if cluster.hops is not None and cluster.hops.width:
        width = len(config.nodes) if cluster.hops.width == FLAT else cluster.hops.width
        settings = replace(settings, tree_width=width)
    return settings


def _for_jobs(settings: Settings, config: SlurmConfig) -> Settings:
    """What bounds jobs and steps, and what they have by default."""
    return replace(
        settings,
        first_job_id=config.count("FirstJobId"),
        max_array_size=config.count("MaxArraySize"),
        min_job_age_s=config.seconds("MinJobAge") or 0,
        kill_wait_s=config.seconds("KillWait") or 0,
        complete_wait_s=config.seconds("CompleteWait") or 0,
        over_time_limit_s=config.seconds("OverTimeLimit"),
        enforce_part_limits=conf_values.part_limits(config.text("EnforcePartLimits")),
        default_memory_per_node_mb=config.number("DefMemPerNode") or None,
        default_memory_per_cpu_mb=config.number("DefMemPerCPU"),  # 0 is none, and not all
        max_memory_per_node_mb=config.number("MaxMemPerNode") or None,
        max_memory_per_cpu_mb=config.number("MaxMemPerCPU") or None,
        allows_crontabs="enable" in config.text("ScronParameters").lower(),
        requeue_by_default=config.boolean("JobRequeue"),
        disable_root_jobs=config.boolean("DisableRootJobs"),
        inactive_limit_s=config.seconds("InactiveLimit") or 0,
        max_step_count=config.count("MaxStepCount"),
        max_tasks_per_node=config.count("MaxTasksPerNode"),
        mpi_default=config.text("MpiDefault") or "none",
        mpi_ports=_ports(config.words("MpiParams")),
        kill_invalid_dependency="kill_invalid_depend"
        in {word.lower() for word in config.words("DependencyParameters")},
        max_depend_depth=_max_depend_depth(config.words("DependencyParameters")),
        requeue_exit_codes=_codes(config.words("RequeueExit")),
        requeue_exit_hold_codes=_codes(config.words("RequeueExitHold")),
        users_may_top="enable_user_top"
        in {word.lower() for word in config.words("SchedulerParameters")},
    )


def _ports(words: list[str]) -> int:
    """How many `ports=FIRST-LAST` of MpiParams names."""
    first, _, last = (
        dict(word.partition("=")[::2] for word in words).get("ports", "").partition("-")
    )
    return int(last) - int(first) + 1 if first.isdecimal() and last.isdecimal() else 0


def _for_nodes(settings: Settings, config: SlurmConfig) -> Settings:
    """What concerns nodes, and messages to them."""
    auth = dict(word.partition("=")[::2] for word in config.words("AuthInfo"))
    lifetime = auth.get("cred_expire", "")
    return replace(
        settings,
        return_to_service=config.count("ReturnToService"),
        front_end=any(line.key == "frontendname" for line in config.lines),
        resume_timeout_s=config.seconds("ResumeTimeout") or 0,
        boot_s=_boot_s(config.words("SlurmctldParameters")),
        shows_cloud="cloud" in {word.lower() for word in config.words("PrivateData")},
        slurmd_timeout_s=config.seconds("SlurmdTimeout") or 0,
        health_interval_s=config.seconds("HealthCheckInterval") or 0
        if config.is_set("HealthCheckProgram")
        else 0,
        health_states=frozenset(word.lower() for word in config.words("HealthCheckNodeState")),
        message_timeout_s=float(config.seconds("MessageTimeout") or 10),
        # 22.05 itself would take 50
        tree_width=config.count("TreeWidth") if config.is_set("TreeWidth") else 32,
        credential_lifetime_s=int(lifetime) if lifetime.isdecimal() else 120,
    )


def _for_sharing(settings: Settings, config: SlurmConfig) -> Settings:
    """Preemption, and what is shared out beside nodes."""
    return replace(
        settings,
        reservation_over_run_s=config.seconds("ResvOverRun"),
        preempt_type=config.text("PreemptType"),
        preempt_mode=config.text("PreemptMode"),
        preempt_exempt_s=config.seconds("PreemptExemptTime"),
        preempt_sends_user_signal="preempt_send_user_signal"
        in {word.lower() for word in config.words("SlurmctldParameters")},
        time_slice_s=config.count("SchedulerTimeSlice"),
        licenses=configured_licenses(config.text("Licenses")),
        bills_largest="MAX_TRES" in {word.upper() for word in config.words("PriorityFlags")},
        burst_buffer=config.burst_buffer,
        array_stage_count=number(config.scheduler_parameters, "bb_array_stage_cnt", 10),
        gres_types=tuple(dict.fromkeys(config.words("GresTypes"))),
        gpu_defaults=gpu_defaults(
            ",".join(
                f"{key}={config.text(key)}"
                for key in ("DefCpuPerGPU", "DefMemPerGPU")
                if config.is_set(key)
            )
        ),
    )


def _for_accounting(settings: Settings, config: SlurmConfig) -> Settings:
    """What is on record, and enforced."""
    return replace(
        settings,
        tracked_tres=tuple(
            dict.fromkeys(
                word.lower()
                for word in config.words("AccountingStorageTRES")
                if word.lower() not in BASE
            )
        ),
        enforced=Enforced.of(config.words("AccountingStorageEnforce")),
        tracked_gres=tuple(
            dict.fromkeys(
                word.lower()
                for word in config.words("AccountingStorageTRES")
                if word.lower().startswith("gres/")
            )
        ),
        gathers_usage=not config.text("JobAcctGatherType").lower().endswith("/none"),
    )


def _for_programs(settings: Settings, config: SlurmConfig) -> Settings:
    """Programs of the site's."""
    return replace(
        settings,
        prolog_slurmctld=config.text("PrologSlurmctld"),
        epilog_slurmctld=config.text("EpilogSlurmctld"),
        reservation_prolog=config.text("ResvProlog"),
        reservation_epilog=config.text("ResvEpilog"),
        has_prolog=config.is_set("Prolog"),
        prolog_flags=prolog_words(config.text("PrologFlags")),
        has_epilog=config.is_set("Epilog"),
        mail_domain=config.text("MailDomain"),
    )


def _boot_s(words: list[str]) -> float:
    for word in words:
        key, _, value = word.partition("=")
        if key.lower() == "understudy_boot_s" and value.isdecimal():
            return float(value)
    return BOOT_S


def _max_depend_depth(words: list[str]) -> int:
    given = [
        value
        for key, _, value in (word.partition("=") for word in words)
        if key.lower() == "max_depend_depth"
    ]
    return leading_number(given[-1]) if given else MAX_DEPEND_DEPTH


def _codes(words: list[str]) -> frozenset[int]:
    """Exit codes: `1,5-7`. What is no number is left out; the reader of the file has complained."""
    found: set[int] = set()
    for word in words:
        first, _, last = word.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
