"""Slurm's own names for the daemons: command lines, run directories, which nodes a slurmd stands
for.

Covers: tool/cluster/slurmctld, tool/cluster/slurmd, tool/cluster/slurmdbd.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from understudy.model.cluster import Backup, Cluster, NodeDaemon
from understudy.model.conf import SlurmConfig, load
from understudy.tool.cluster import daemons, slurmctld, slurmd, slurmdbd
from understudy.tool.cluster.processes import identify
from understudy.tool.cluster.run_dir import LaunchError

if TYPE_CHECKING:
    from pathlib import Path

HOST = os.uname().nodename.partition(".")[0]


def config_of(tmp_path: Path, nodes: str) -> SlurmConfig:
    path = tmp_path / "slurm.conf"
    path.write_text(f"ClusterName=c\nSlurmctldHost={HOST}\n{nodes}\nPartitionName=p\n")
    return load(path)


def test_a_command_line_is_read_as_slurms_daemons_read_theirs() -> None:
    start = daemons.read_line(slurmd.KIND, ["-Dc", "-N", "n[1-2]", "-vvv", "-f", "/c", "-L/l"], {})
    assert (
        str(start.conf),
        start.foreground,
        start.clear,
        start.verbose,
        start.log,
        start.values["N"],
    ) == ("/c", True, True, 3, "/l", "n[1-2]")
    assert str(daemons.read_line(slurmctld.KIND, [], {"SLURM_CONF": "/e"}).conf) == "/e"
    assert str(daemons.read_line(slurmdbd.KIND, [], {}).conf) == "/etc/slurm/slurm.conf"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [(["-V"], 0, "slurm 22.05.8"), (["-h"], 0, "Usage: slurmctld"), (["-Q"], 1, "slurmctld: ")],
)
def test_some_command_lines_ask_for_no_daemon(arguments: list[str], code: int, text: str) -> None:
    with pytest.raises(daemons.NoDaemonError) as found:
        daemons.read_line(slurmctld.KIND, arguments, {})
    assert found.value.code == code
    assert found.value.text.startswith(text)


def test_clusters_of_the_same_name_have_run_directories_of_their_own(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    first, second = (
        daemons.run_dir_of(tmp_path / name, "c", environ) for name in ("a.conf", "b.conf")
    )
    assert first != second
    assert first.parent == tmp_path / "understudy"
    assert daemons.run_dir_of(tmp_path / "a.conf", "c", environ) == first
    assert (
        daemons.run_dir_of(tmp_path / "a.conf", "c", {"UNDERSTUDY_RUN_DIR": str(tmp_path)})
        == tmp_path
    )


def test_a_slurmd_stands_for_the_nodes_that_are_named_or_for_those_of_its_host(
    tmp_path: Path,
) -> None:
    config = config_of(
        tmp_path,
        f"NodeName={HOST} CPUs=1\nNodeName=n[1-3] CPUs=1\n"
        f"NodeName=m1 NodeHostname={HOST} Port=7000 CPUs=1",
    )
    assert slurmd.own_nodes("n[1-2]", config) == ["n1", "n2"]
    assert set(slurmd.own_nodes("", config)) == {HOST, "m1"}
    with pytest.raises(LaunchError, match='lookup failure for node "x"'):
        slurmd.own_nodes("x", config)
    with pytest.raises(LaunchError, match="Unable to determine"):
        slurmd.own_nodes("", config_of(tmp_path, "NodeName=n[1-3] CPUs=1"))


def test_who_joins_takes_its_nodes_from_others() -> None:
    cluster = Cluster(
        "c", "", nodeds=[NodeDaemon("a", "unix:/a", "n[1-4]"), NodeDaemon("b", "unix:/b", "n5")]
    )
    cluster.join("b", "unix:/b", ["n4", "n5"])
    cluster.join("d", "unix:/d", ["n2"])
    assert [(each.name, each.nodes) for each in cluster.nodeds] == [
        ("a", "n[1,3]"),
        ("b", "n[4-5]"),
        ("d", "n2"),
    ]


def test_this_host_is_printed_as_a_line_of_slurm_conf() -> None:
    line, up = slurmd.hardware().splitlines()
    assert line.startswith(f"NodeName={HOST} CPUs={os.cpu_count()} Boards=1 SocketsPerBoard=")
    assert up.startswith("UpTime=")


def test_a_slurmctld_is_the_first_controller_that_does_not_run() -> None:
    cluster = Cluster("c", "", controller_unix="unix:/c", backups=[Backup("backup1", "ctl2")])
    assert slurmctld.own_name(cluster, ()) == "controller"
    assert slurmctld.own_name(cluster, {"controller", "accounting"}) == "backup1"
    assert slurmctld.own_name(cluster, {"backup1"}) == "controller"
    assert slurmctld.own_name(cluster, {"controller", "backup1"}) == "controller"


@pytest.mark.parametrize(("other", "is_kept"), [("backup1", True), ("accounting", False)])
def test_the_state_that_another_controller_uses_is_not_forgotten(
    tmp_path: Path, other: str, *, is_kept: bool
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "state.sqlite").touch()
    parent = identify(other, os.getppid())
    (tmp_path / f"{other}.pid").write_text(f"{parent.pid} {parent.start_time}\n")
    daemons.forget_state(tmp_path)
    assert (tmp_path / "state" / "state.sqlite").exists() is is_kept
