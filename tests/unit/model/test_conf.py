"""What slurm.conf says: nodes, partitions, values with their defaults, and what is refused
where.

Covers: model/conf_companions, model/conf_nodes, model/conf_partitions, model/conf_values,
model/errors.
"""

from pathlib import Path

import pytest

from understudy.model import conf
from understudy.model.conf import SlurmConfig
from understudy.model.errors import ConfigError

HEAD = "ClusterName=test\nSlurmctldHost=head(10.0.0.1)\n"


def whole(text: str) -> str:
    """With a partition, which no configuration can do without."""
    return text if "PartitionName" in text else text.rstrip("\n") + "\nPartitionName=any\n"


def config_of(text: str) -> SlurmConfig:
    """A configuration without errors."""
    config = conf.read_text(whole(HEAD + text))
    assert [str(error) for error in config.errors] == []
    return config


def complaints(text: str) -> list[tuple[str, int, str]]:
    """Kind, line (of the text given) and severity of all that is noted."""
    found = conf.read_text(whole(HEAD + "NodeName=base\n" + text)).findings
    return [(each.kind, each.line - 3, each.severity) for each in found]


# --- nodes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "cores", "complaint"),
    [
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=2", {3, 7}, ""),
        ("Sockets=2 CoresPerSocket=4 CoreSpecCount=3", {3, 6, 7}, ""),
        ("Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=0,1", {0}, ""),
        ("Sockets=2 CoresPerSocket=4 CpuSpecList=2-4", {2, 3, 4}, ""),
        (
            "Sockets=2 CoresPerSocket=4 CoreSpecCount=2 CpuSpecList=0,1,2",
            {0, 1, 2},
            "CoreSpecCount=2 is invalid with CPUSpecList, reset to 0",
        ),
        (
            "Sockets=2 CoresPerSocket=4 CoreSpecCount=8",
            {7},
            "CoreSpecCount=8 is invalid, reset to 1",
        ),
        (
            "Sockets=2 CoresPerSocket=4 CpuSpecList=6-12",
            set(),
            (
                "CpuSpecList=6-12 - unable to convert it to bitmap of size CPUs=8. Ignoring "
                "CpuSpecList."
            ),
        ),
        (
            "CPUs=4 CpuSpecList=x",
            set(),
            "CpuSpecList=x - unable to convert it to bitmap of size CPUs=4. Ignoring CpuSpecList.",
        ),
    ],
)
def test_cores_of_the_system_are_as_slurm_22_05_chooses_them(
    settings: str, cores: set[int], complaint: str
) -> None:
    config = config_of(f"NodeName=n1 {settings}\n")
    assert config.nodes[0].spec_cores == sum(1 << core for core in cores)
    assert [each.message for each in config.findings] == (
        [f"NodeNames=n1 {complaint}"] if complaint else []
    )


def test_memory_of_the_system_is_less_than_the_node_has() -> None:
    config = config_of(
        "NodeName=n1 RealMemory=8000 MemSpecLimit=1000\n"
        "NodeName=n2 RealMemory=8000 MemSpecLimit=8000\n"
    )
    assert [each.mem_spec_limit_mb for each in config.nodes] == [1000, 0]
    assert [each.message for each in config.findings] == [
        "NodeNames=n2 MemSpecLimit=8000 is invalid, reset to 0"
    ]


@pytest.mark.parametrize(
    ("settings", "cpus", "boards", "sockets", "cores", "threads"),
    [
        ("", 1, 1, 1, 1, 1),
        ("CPUs=4", 4, 1, 4, 1, 1),
        ("Procs=4", 4, 1, 4, 1, 1),
        ("CPUs=8 ThreadsPerCore=2", 8, 1, 4, 1, 2),
        ("CPUs=8 CoresPerSocket=2 ThreadsPerCore=2", 8, 1, 2, 2, 2),
        ("CPUs=8 CoresPerSocket=4", 8, 1, 2, 4, 1),
        ("CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2", 4, 1, 1, 4, 2),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=2", 8, 2, 4, 2, 1),
        ("CoresPerSocket=4", 4, 1, 1, 4, 1),
        ("Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 32, 1, 2, 8, 2),
    ],
)
def test_what_is_not_said_of_a_node_s_processors_follows_from_the_rest(
    settings: str, cpus: int, boards: int, sockets: int, cores: int, threads: int
) -> None:
    node = config_of(f"NodeName=n1 {settings}").nodes[0]
    assert (node.cpus, node.boards, node.sockets, node.cores_per_socket, node.threads_per_core) == (
        cpus,
        boards,
        sockets,
        cores,
        threads,
    )


def test_cpus_that_fit_nothing_are_reset_with_a_warning() -> None:
    config = config_of("NodeName=n1 CPUs=3 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2\n")
    assert config.nodes[0].cpus == 8
    assert [(each.kind, each.severity) for each in config.findings] == [("reset_value", "warning")]


def test_default_lines_add_up_and_hold_for_later_lines_only() -> None:
    config = config_of(
        "NodeName=a CPUs=2\nNodeName=DEFAULT CPUs=4 RealMemory=100\nNodeName=b\n"
        "NodeName=default RealMemory=200 State=DOWN\nNodeName=c CPUs=8\n"
    )
    assert [(node.name, node.cpus, node.memory_mb, node.state) for node in config.nodes] == [
        ("a", 2, 1, "UNKNOWN"), ("b", 4, 100, "UNKNOWN"), ("c", 8, 200, "DOWN"),
    ]  # fmt: skip


def test_a_line_s_spelling_of_a_key_overrides_the_default_s_other_spelling() -> None:
    config = config_of(
        "NodeName=DEFAULT Features=x Procs=2\nNodeName=n Feature=a,b CPUs=4\n"
        "PartitionName=DEFAULT OverSubscribe=YES:3\n"
        "PartitionName=p Nodes=n Shared=FORCE"
    )
    assert (config.nodes[0].features, config.nodes[0].cpus) == (("a", "b"), 4)
    assert config.partitions[0].oversubscribe == "FORCE:4"


def test_addresses_hostnames_and_ports_go_with_the_names() -> None:
    config = config_of(
        "NodeName=n[1-3] NodeAddr=10.0.0.[1-3] NodeHostname=head Port=[7001-7003]\n"
        "NodeName=m\nSlurmdPort=7100\n"
    )
    assert [(node.name, node.address, node.hostname, node.port) for node in config.nodes] == [
        ("m", "m", "m", 7100), ("n1", "10.0.0.1", "head", 7001), ("n2", "10.0.0.2", "head", 7002),
        ("n3", "10.0.0.3", "head", 7003),
    ]  # fmt: skip


def test_down_nodes_change_the_state_of_nodes() -> None:
    config = config_of("DownNodes=n2 State=FAIL Reason=fan\nNodeName=n[1-2]\n")
    assert [(node.state, node.reason) for node in config.nodes] == [
        ("UNKNOWN", ""),
        ("FAIL", "fan"),
    ]


def test_node_sets_take_nodes_by_feature_and_by_name() -> None:
    config = config_of(
        "NodeName=g[1-2] Feature=gpu,fast\nNodeName=c[1-2] Feature=slow\n"
        "NodeSet=gpus Feature=gpu,none\nNodeSet=some Nodes=c2,g1\n"
        "PartitionName=a Nodes=gpus,c1\nPartitionName=b Nodes=some\n"
        "PartitionName=c Nodes=ALL\nPartitionName=d\n"
    )
    assert config.node_sets["gpus"].names == ["g1", "g2"]
    assert [(each.name, each.nodes, each.node_sets) for each in config.partitions] == [
        ("a", ["c1", "g1", "g2"], ("gpus",)), ("b", ["c2", "g1"], ("some",)),
        ("c", ["c1", "c2", "g1", "g2"], ()), ("d", [], ()),
    ]  # fmt: skip


# --- partitions -----------------------------------------------------------------------------------


def test_a_bare_partition_has_slurm_s_defaults() -> None:
    partition = config_of("NodeName=n1\nPartitionName=p Nodes=n1\n").partitions[0]
    assert (
        partition.state,
        partition.is_default,
        partition.max_time_s,
        partition.default_time_s,
    ) == ("UP", False, None, None)
    assert (
        partition.min_nodes,
        partition.max_nodes,
        partition.priority_tier,
        partition.oversubscribe,
    ) == (0, None, 1, "NO")
    assert (
        partition.allow_groups,
        partition.deny_qos,
        partition.hidden,
        partition.disable_root_jobs,
    ) == (None, (), False, None)


def test_a_partition_s_settings_are_typed() -> None:
    partition = config_of(
        "NodeName=n[1-4]\nPartitionName=DEFAULT MaxTime=1-0 Priority=7\n"
        "PartitionName=p Nodes=n[1-2] Default=YES DefaultTime=30 MaxTime=INFINITE MaxNodes=3 "
        "State=drain DefMemPerCPU=100 MaxMemPerNode=UNLIMITED "
        "AllowGroups=a,b DenyAccounts=x AllowQos=ALL GraceTime=60 OverTimeLimit=5 LLN=YES "
        "Hidden=1 OverSubscribe=exclusive PriorityTier=9\n"
    ).partitions[0]
    assert (
        partition.is_default,
        partition.default_time_s,
        partition.max_time_s,
        partition.max_nodes,
    ) == (True, 1800, None, 3)
    assert (
        partition.state,
        partition.default_memory_per_cpu_mb,
        partition.max_memory_per_node_mb,
    ) == ("DRAIN", 100, None)
    assert (partition.allow_groups, partition.deny_accounts, partition.allow_qos) == (
        ("a", "b"),
        ("x",),
        None,
    )
    assert (
        partition.grace_time_s,
        partition.over_time_limit_s,
        partition.least_loaded_nodes,
        partition.hidden,
    ) == (60, 300, True, True)
    assert (partition.oversubscribe, partition.priority_tier, partition.priority_job_factor) == (
        "EXCLUSIVE",
        9,
        7,
    )


def test_the_last_default_partition_counts() -> None:
    config = config_of(
        "NodeName=n\nPartitionName=a Default=YES\nPartitionName=b Default=YES\nPartitionName=c\n"
    )
    assert config.default_partition is config.partitions[1]


def test_a_default_time_beyond_the_limit_is_ignored() -> None:
    assert complaints("PartitionName=p Nodes=base MaxTime=10 DefaultTime=20") == [
        ("reset_value", 1, "warning")
    ]


# --- global keys ----------------------------------------------------------------------------------


def test_values_have_slurm_s_defaults_and_units() -> None:
    config = config_of(
        "NodeName=n\nOverTimeLimit=5\nKillWait=UNLIMITED\nSuspendTime=NONE\n"
        "PriorityMaxAge=14-0\nSchedulerParameters=bf_interval=60,Defer\n"
    )
    assert config.seconds("SlurmdTimeout") == 300
    assert config.seconds("overtimelimit") == 300
    assert config.seconds("KillWait") is None
    assert config.seconds("SuspendTime") is None
    assert config.seconds("PriorityMaxAge") == 14 * 86400
    assert config.number("DefMemPerCPU") is None
    assert config.count("MaxJobCount") == 10000
    assert (config.text("SchedulerType"), config.is_set("SchedulerType")) == (
        "sched/backfill",
        False,
    )
    assert (config.boolean("JobRequeue"), config.boolean("TrackWCKey")) == (True, False)
    assert config.scheduler_parameters == {"bf_interval": "60", "defer": ""}
    assert config.controllers == [("head", "10.0.0.1")]
    assert config.controller_ports == (6817, 6817)
    with pytest.raises(KeyError):
        config.text("NoSuchKey")


def test_the_controller_may_be_named_in_the_old_way() -> None:
    config = conf.read_text(
        "ClusterName=x\nControlMachine=a\nControlAddr=b\nBackupController=c\nNodeName=n\n"
        "PartitionName=p\n"
    )
    assert config.controllers == [("a", "b"), ("c", "")]
    assert config.errors == []


def test_nodes_are_in_the_order_of_their_names() -> None:
    config = config_of(
        "NodeName=z[1-2]\nNodeName=n[9-11] CPUs=2\nNodeName=b2\n"
        "PartitionName=p Nodes=ALL\nPartitionName=q Nodes=z1,n10\n"
    )
    assert config.node_names == ["b2", "n9", "n10", "n11", "z1", "z2"]
    assert [config.nodes[config.index_of[name]].cpus for name in ("n9", "z1")] == [2, 1]
    assert config.index_of == {name: index for index, name in enumerate(config.node_names)}


def test_the_last_of_repeated_keys_counts() -> None:
    config = config_of("NodeName=n\nKillWait=1\nWaitTime=1\nKillWait=2\n")
    assert config.seconds("KillWait") == 2
    assert [(each.kind, each.key, each.text) for each in config.findings] == [
        ("repeated_key", "KillWait", "4, 6")
    ]


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("KillWait=3 junk", [("parse_error", 1, "error")]),
        ("KillWait=3 WaitTime=4", [("parse_error", 1, "error")]),
        ("\nNoSuchKey=3", [("unknown_key", 2, "error")]),
        ("CPUs=3", [("misplaced_key", 1, "error")]),
        ("NodeName=x KillWait=3", [("misplaced_key", 1, "error")]),
        ("NodeName=x Foo=3", [("unknown_key", 1, "error")]),
        ("FastSchedule=1", [("old_key", 1, "warning")]),
        ("HashPlugin=hash/k12", [("new_key", 1, "warning")]),
        ("KillWait=junk", [("bad_value", 1, "error")]),
        ("KillWait=70000", [("bad_value", 1, "error")]),
        ("KillWait=3k", [("bad_value", 1, "error")]),
        ("KillWait=0x10\nMaxJobCount=1K\nSlurmctldPort=1-3\nSlurmctldDebug=9", []),
        ("MessageTimeout=-1", [("bad_value", 1, "error")]),
        ("JobRequeue=yes", [("bad_value", 1, "error")]),
        ("TrackWCKey=junk", [("bad_value", 1, "error")]),
        ("EnforcePartLimits=2", [("bad_value", 1, "error")]),
        ("EnforcePartLimits=ANY,ALL", [("bad_value", 1, "error")]),
        ("SlurmctldPort=0", [("bad_value", 1, "error")]),
        ("SlurmctldDebug=junk", [("bad_value", 1, "error")]),
        ("PriorityMaxAge=x", [("bad_value", 1, "error")]),
        ("FirstJobId=0", [("bad_value", 1, "error")]),
        ("MaxJobCount=0", [("bad_value", 1, "error")]),
        ("FirstJobId=9\nMaxJobId=8", [("bad_value", 1, "error")]),
        ("SlurmctldHost=a(", [("bad_value", 1, "error")]),
        ("NodeName=x[1-2", [("hostlist_error", 1, "error")]),
        ("NodeName=base", [("duplicate_node", 1, "error")]),
        ("NodeName=x[1-3] NodeAddr=a[1-2]", [("address_count_mismatch", 1, "error")]),
        ("NodeName=x[1-2] NodeAddr=a[1-3]", [("address_count_mismatch", 1, "error")]),
        ("NodeName=x[1-2] Port=[7000-7002]", [("address_count_mismatch", 1, "error")]),
        ("NodeName=x Port=a", [("bad_value", 1, "error")]),
        ("NodeName=x State=junk", [("bad_value", 1, "error")]),
        ("NodeName=x RealMemory=4G", [("bad_value", 1, "error")]),
        ("NodeName=x CPUs=0", [("reset_value", 1, "warning")]),
        ("NodeName=x CPUs=2 CPUs=3", [("key_given_twice", 1, "warning")]),
        ("NodeName=x Sockets=2 SocketsPerBoard=2", [("reset_value", 1, "warning")]),
        ("DownNodes=zz", [("undefined_nodes", 1, "warning")]),
        ("NodeSet=s Nodes=zz", [("undefined_nodes", 1, "error")]),
        ("PartitionName=p Nodes=base,zz[1-2]", [("undefined_nodes", 1, "error")]),
        ("PartitionName=p Nodes=x[2-1]", [("hostlist_error", 1, "error")]),
        ("PartitionName=p\nPartitionName=p", [("duplicate_partition", 2, "error")]),
        ("PartitionName=p MaxTime=x", [("bad_value", 1, "error")]),
        ("PartitionName=p State=x", [("bad_value", 1, "error")]),
        ("PartitionName=p Default=maybe", [("bad_value", 1, "error")]),
        ("PartitionName=p OverSubscribe=x", [("bad_value", 1, "error")]),
        ("PartitionName=p DefMemPerCPU=1 DefMemPerNode=2", [("reset_value", 1, "warning")]),
    ],
)
def test_what_slurm_refuses_or_resets_is_noted_with_its_line(
    text: str, expected: list[tuple[str, int, str]]
) -> None:
    assert complaints(text) == expected


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("SlurmctldHost=a\nNodeName=n", "ClusterName"),
        ("ClusterName=a\nNodeName=n", "SlurmctldHost"),
        ("ClusterName=a\nSlurmctldHost=b", "NodeName"),
        ("ClusterName=a\nSlurmctldHost=b\nNodeName=n\nPartitionName=DEFAULT", "PartitionName"),
    ],
)
def test_what_no_cluster_can_do_without_is_named(text: str, missing: str) -> None:
    assert [(error.kind, error.key) for error in conf.read_text(whole(text)).errors] == [
        ("missing_key", missing)
    ]


def test_loading_names_file_and_line_of_the_first_error(tmp_path: Path) -> None:
    (tmp_path / "nodes.conf").write_text("NodeName=n CPUs=x\n")
    path = tmp_path / "slurm.conf"
    path.write_text(whole(HEAD + "Include nodes.conf\nKillWait=y\n"))
    with pytest.raises(
        ConfigError, match=r"slurm\.conf line 4: KillWait value \"y\" is not a valid number$"
    ) as caught:
        conf.load(path)
    assert (caught.value.file, caught.value.line) == (str(path), 4)
    assert len(conf.load(path, strict=False).errors) == 2


def test_what_is_missing_is_said_behind_what_a_line_has_wrong() -> None:
    assert [error.line for error in conf.read_text("NodeName=n CPUs=x\n").errors] == [1, 0, 0, 0]


def test_a_file_that_is_not_there_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        conf.load(tmp_path / "slurm.conf")


def test_a_large_cluster_shares_one_line() -> None:
    config = config_of(
        "NodeName=n[1-16384] CPUs=4\nPartitionName=all Nodes=ALL\n"
        "PartitionName=same Nodes=n[1-16384]\n"
    )
    assert (
        len(config.nodes)
        == len(config.partitions[0].nodes)
        == len(config.partitions[1].nodes)
        == 16384
    )
    assert config.nodes[16383].name == "n16384"
    assert config.index_of["n16384"] == 16383


# --- companions -----------------------------------------------------------------------------------


def test_companions_beside_the_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(whole(HEAD + "NodeName=n[1-4] Gres=gpu:tesla:2\n"))
    (tmp_path / "gres.conf").write_text(
        "NodeName=n[1-4] Name=gpu Type=tesla File=/dev/nvidia[0-1] Cores=0-3\n"
        "Name=bandwidth Count=20\nAutoDetect=nvml\n"
    )
    (tmp_path / "topology.conf").write_text(
        "SwitchName=s[0-1] Nodes=n[1-2] LinkSpeed=10\nSwitchName=top Switches=s[0-1]\n"
    )
    (tmp_path / "cgroup.conf").write_text("ConstrainCores=yes\n")
    config = conf.load(tmp_path / "slurm.conf")
    assert [(gres.nodes, gres.name, gres.type, gres.count,
        gres.auto_detect) for gres in config.gres] == [
        ("n[1-4]", "gpu", "tesla", 2, ""), ("", "bandwidth", "", 20, ""), ("", "", "", 1, "nvml"),
    ]  # fmt: skip
    assert [(switch.name, switch.nodes, switch.switches,
        switch.link_speed) for switch in config.topology] == [
        ("s0", ["n1", "n2"], [], 10), ("s1", ["n1", "n2"], [], 10), ("top", [], ["s0", "s1"], 1),
    ]  # fmt: skip
    assert config.cgroup == {"constraincores": "yes"}


def test_errors_in_companions_name_their_file(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(whole(HEAD + "NodeName=n\n"))
    (tmp_path / "gres.conf").write_text("\nName=gpu Colour=red\n")
    with pytest.raises(ConfigError, match=r"gres\.conf line 2: unrecognized key: Colour"):
        conf.load(tmp_path / "slurm.conf")


def test_generic_resources_that_are_no_type_of_the_cluster_are_pointed_out(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        whole(
            HEAD + "GresTypes=gpu\nNodeName=n[1-2] Gres=gpu:2,tape:1\nNodeName=m Gres=gpu:a:b:1\n"
        )
    )
    (tmp_path / "gres.conf").write_text("Name=gpu Count=2\nName=nic Count=1\n")
    config = conf.read(tmp_path / "slurm.conf")
    said = [
        f"{finding.file.rpartition('/')[2]} {finding.line} {finding.message}"
        for finding in config.findings
    ]
    start = HEAD.count("\n") + 2
    assert said == [
        f"slurm.conf {start} Gres=gpu:2,tape:1: tape is not in GresTypes",
        f"slurm.conf {start + 1} Gres=gpu:a:b:1: gpu:a:b:1 is no generic resource",
        "gres.conf 2 Name=nic: it is not in GresTypes",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("topology", "line", "message"),
    [
        (
            "SwitchName=s1 Nodes=n1\nSwitchName=s1 Nodes=n2\n",
            2,
            "Switch (s1) has already been defined",
        ),
        (
            "SwitchName=s1 Nodes=n1\nSwitchName=t Switches=s[1-2]\n",
            2,
            "Switch configuration t has invalid child (s2)",
        ),
        (
            "SwitchName=s1 Nodes=n1\nSwitchName=t Switches=t,s1\n",
            2,
            "Switch configuration t has invalid child (t)",
        ),
        (
            "SwitchName=s1 Nodes=n1 Switches=s2\nSwitchName=s2 Nodes=n2\n",
            1,
            "switch s1 has both child switches and nodes",
        ),
        ("SwitchName=s1\n", 1, "switch s1 has neither child switches nor nodes"),
    ],
)
def test_a_tree_of_switches_that_is_none_is_refused(tmp_path, topology, line, message):
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=c\nTopologyPlugin=topology/tree\nNodeName=n[1-2]\n"
        "PartitionName=p Nodes=n[1-2]\n"
    )
    (tmp_path / "topology.conf").write_text(topology)
    found = [
        each
        for each in conf.read(tmp_path / "slurm.conf").errors
        if each.file.endswith("topology.conf")
    ]
    assert [(each.line, each.message) for each in found] == [(line, message)]


def test_a_tree_without_its_file_is_a_warning_as_sites_often_give_slurm_conf_alone(tmp_path):
    text = HEAD + "NodeName=n\nPartitionName=p Nodes=n\nTopologyPlugin=topology/tree\n"
    (tmp_path / "slurm.conf").write_text(text)
    (found,) = conf.read(tmp_path / "slurm.conf").findings
    assert (found.kind, found.severity, found.key) == ("missing_file", "warning", "TopologyPlugin")
    assert "something wrong with opening/reading" in found.message
    (tmp_path / "topology.conf").write_text("SwitchName=s Nodes=n\n")
    assert not conf.read(tmp_path / "slurm.conf").findings


def test_nodes_that_are_unknown_or_below_two_switches_are_warned_of(tmp_path):
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=c\nTopologyPlugin=topology/tree\nNodeName=n[1-2]\n"
        "PartitionName=p Nodes=n[1-2]\n"
    )
    (tmp_path / "topology.conf").write_text(
        "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[2-4]\n"
    )
    found = [
        each.message
        for each in conf.read(tmp_path / "slurm.conf").findings
        if each.file.endswith("topology.conf")
    ]
    assert found == [
        "Invalid hostnames in switch configuration: n[3-4]",
        "Multiple leaf switches contain nodes: n2",
    ]


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ("7002-7004", [7002, 7003, 7004]),
        ("7002,7005-7006", [7002, 7005, 7006]),
        ("7001", [7001] * 3),
    ],
)
def test_ports_of_nodes_need_no_brackets(ports: str, expected: list[int]) -> None:
    assert [node.port for node in config_of(f"NodeName=n[1-3] Port={ports}\n").nodes] == expected
