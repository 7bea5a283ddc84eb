"""From slurm.conf to tables and settings.

Covers: controller/tables/tables.
"""

from __future__ import annotations

from understudy.controller.edge.build import build_settings, build_tables
from understudy.model.cluster import Cluster
from understudy.model.conf import read_text
from understudy.model.states import NodeFlag, NodeState

TEXT = """
ClusterName=tiny
SlurmctldHost=head
SlurmUser=slurm
FirstJobId=100
MinJobAge=60
EnforcePartLimits=YES
OverTimeLimit=2
DefMemPerCPU=512
AuthInfo=cred_expire=30
DependencyParameters=kill_invalid_depend,max_depend_depth=25
RequeueExit=3,7-9
Licenses=matlab:4,idl
ReturnToService=1
MpiParams=ports=12000-12002,disable_slurm_hydra_bootstrap
NodeName=DEFAULT CPUs=4 RealMemory=8000
NodeName=a[1-3] Feature=fast,ib Weight=5
NodeName=b[1-2] Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 CPUs=8 State=DRAIN Reason=new
NodeName=c1 State=FUTURE
PartitionName=all Nodes=ALL Default=YES MaxTime=2-0 OverSubscribe=EXCLUSIVE
PartitionName=b Nodes=b[1-2] MaxTime=INFINITE DefaultTime=30 MaxNodes=1 Hidden=YES PriorityTier=3 State=DOWN AllowGroups=g1,g2
"""  # noqa: E501


def test_nodes_and_partitions_are_as_configured() -> None:
    tables, names = build_tables(read_text(TEXT))
    assert names.to_expression(names.all) == "a[1-3],b[1-2],c1"
    a1, b1, c1 = (tables.nodes.nodes[tables.nodes.index_of[name]] for name in ("a1", "b1", "c1"))
    assert (a1.features, a1.weight, a1.state) == (("fast", "ib"), 5, NodeState.UNKNOWN)
    assert (b1.cpus, b1.sockets, b1.threads_per_core, b1.flags, b1.reason) == (
        8,
        2,
        2,
        NodeFlag.DRAIN,
        "new",
    )
    assert c1.state is NodeState.FUTURE
    everything, b = tables.partitions["all"], tables.partitions["b"]
    assert (
        everything.nodes,
        everything.is_default,
        everything.max_time_s,
        everything.oversubscribe,
    ) == (0b111111, True, 172800, "EXCLUSIVE")
    assert (b.nodes, b.max_time_s, b.default_time_s, b.max_nodes, b.hidden) == (
        0b011000,
        None,
        1800,
        1,
        True,
    )
    assert (b.priority_tier, b.state, b.allow_groups) == (3, "DOWN", ("g1", "g2"))


def test_the_systems_cores_are_kept_from_jobs_but_where_nodes_are_given_whole() -> None:
    text = (
        "ClusterName=x\nSlurmctldHost=h\nNodeName=n1 CPUs=4 CoreSpecCount=1\n"
        "PartitionName=p Nodes=n1\n"
    )
    assert build_tables(read_text(text + "SelectType=select/cons_tres\n"))[
        0
    ].nodes.free_cpus.tolist() == [3]
    assert build_tables(read_text(text + "SelectType=select/linear\n"))[
        0
    ].nodes.free_cpus.tolist() == [4]


def test_bindings_are_shown_and_nodes_that_are_down_have_a_reason() -> None:
    text = (
        f"{TEXT}NodeName=d1 CpuBind=socket\nDownNodes=a1 State=FAIL\n"
        "PartitionName=c Nodes=d1 CpuBind=Core\n"
    )
    tables, _ = build_tables(read_text(text))
    assert (tables.partitions["c"].cpu_bind, tables.partitions["b"].cpu_bind) == ("cores", "")
    assert [tables.nodes.nodes[tables.nodes.index_of[name]].cpu_bind for name in ("a1", "d1")] == [
        "",
        "sockets",
    ]
    assert tables.nodes.nodes[tables.nodes.index_of["a1"]].reason == "Set in slurm.conf"


def test_settings_have_the_units_that_the_controller_works_with() -> None:
    cluster = Cluster(name="x", conf="", executor="real", user_id=1234)
    settings = build_settings(read_text(TEXT), cluster, {"slurm": 64}.get)
    assert settings.admin_ids == {64, 1234}
    assert (
        settings.cluster_name,
        settings.controller_host,
        settings.first_job_id,
        settings.min_job_age_s,
    ) == ("tiny", "head", 100, 60)
    assert (
        settings.enforce_part_limits,
        settings.over_time_limit_s,
        settings.default_memory_per_cpu_mb,
    ) == ("ANY", 120, 512)
    assert (
        settings.credential_lifetime_s,
        settings.kill_invalid_dependency,
        settings.return_to_service,
    ) == (30, True, 1)
    assert settings.max_depend_depth == 25
    assert settings.requeue_exit_codes == {3, 7, 8, 9}
    assert settings.licenses == {"matlab": 4, "idl": 1}
    assert settings.mpi_ports == 3
    assert not settings.emulates_jobs


def test_defaults_are_slurms() -> None:
    settings = build_settings(
        read_text("ClusterName=x\nSlurmctldHost=h\nNodeName=n1\n"),
        Cluster("x", ""),
        lambda _name: None,
    )
    assert (
        settings.first_job_id,
        settings.max_job_count,
        settings.min_job_age_s,
        settings.slurmd_timeout_s,
    ) == (1, 10000, 300, 300)
    assert (
        settings.enforce_part_limits,
        settings.over_time_limit_s,
        settings.requeue_by_default,
    ) == ("NO", 0, True)
    assert (settings.default_memory_per_node_mb, settings.credential_lifetime_s) == (None, 120)
