"""What node daemons take from slurm.conf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from understudy.noded.settings import KILL_JOB, KILL_LARGEST, LIMITS, NodeSettings, read_settings

if TYPE_CHECKING:
    from pathlib import Path


def settings(tmp_path: Path, text: str) -> NodeSettings:
    path = tmp_path / "slurm.conf"
    path.write_text(
        "ClusterName=c\nSlurmctldHost=h\n" + text + "\nNodeName=n1 CPUs=1\n"
        "PartitionName=p Nodes=n1\n"
    )
    return read_settings(path)


def test_without_a_word_no_program_runs_and_nothing_is_measured(tmp_path: Path) -> None:
    found = settings(tmp_path, "")
    assert (
        found.kill_wait_s,
        found.prolog,
        found.epilog,
        found.task_prolog,
        found.gather_s,
        found.over_memory,
    ) == (30.0, (), (), "", 0, "")
    assert found.propagated == frozenset(LIMITS)
    assert read_settings(tmp_path / "nowhere") == NodeSettings()


def test_programs_may_be_patterns(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.sh").touch()
    found = settings(
        tmp_path,
        f"Prolog={tmp_path}/*.sh\nEpilog=/one\nTaskProlog=/two\nPrologEpilogTimeout=5\nKillWait=7",
    )
    assert found.prolog == (f"{tmp_path}/a.sh", f"{tmp_path}/b.sh")
    assert (found.epilog, found.task_prolog, found.program_limit_s, found.kill_wait_s) == (
        ("/one",),
        "/two",
        5.0,
        7.0,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PropagateResourceLimits=NONE", frozenset()),
        ("PropagateResourceLimits=CORE,rlimit_stack", frozenset({"CORE", "STACK"})),
        ("PropagateResourceLimitsExcept=MEMLOCK", frozenset(LIMITS) - {"MEMLOCK"}),
    ],
)
def test_which_limits_go_on_to_jobs(tmp_path: Path, text: str, expected: frozenset[str]) -> None:
    assert settings(tmp_path, text).propagated == expected


@pytest.mark.parametrize(
    ("text", "cgroup", "expected"),
    [
        ("JobAcctGatherType=jobacct_gather/linux", "", (30, "")),
        (
            "JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherFrequency=task=5,energy=1",
            "",
            (5, ""),
        ),
        (
            "JobAcctGatherType=jobacct_gather/linux\nJobAcctGatherParams=UsePss,OverMemoryKill",
            "",
            (30, KILL_JOB),
        ),
        ("TaskPlugin=task/affinity,task/cgroup", "ConstrainRAMSpace=yes", (0, KILL_LARGEST)),
        ("TaskPlugin=task/cgroup", "ConstrainCores=yes", (0, "")),
        ("TaskPlugin=task/affinity", "ConstrainRAMSpace=yes", (0, "")),
    ],
)
def test_when_memory_is_looked_at_and_bounded(
    tmp_path: Path, text: str, cgroup: str, expected: tuple[int, str]
) -> None:
    (tmp_path / "cgroup.conf").write_text(cgroup + "\n")
    found = settings(tmp_path, text)
    assert (found.gather_s, found.over_memory) == expected


def test_when_and_how_prologs_run(tmp_path: Path) -> None:
    found = settings(tmp_path, "HealthCheckProgram=/h\nPrologFlags=Serial,Contain")
    assert (found.health_program, found.is_serial, found.begins_early) == ("/h", True, True)


def test_a_node_has_an_address_in_the_tree(tmp_path):
    (tmp_path / "slurm.conf").write_text("TopologyPlugin=topology/tree\n")
    (tmp_path / "topology.conf").write_text(
        "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3\nSwitchName=top Switches=s[1-2]\n"
    )
    settings = read_settings(tmp_path / "slurm.conf")
    assert settings.topology_address("n3") == ("top.s2.n3", "switch.switch.node")
    assert settings.topology_address("n9") == ("n9", "node")
    (tmp_path / "slurm.conf").write_text("ClusterName=c\n")
    assert read_settings(tmp_path / "slurm.conf").topology_address("n3") == ("n3", "node")
