"""When daemons that died are started again."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.model.cluster import Cluster
from understudy.tool.cluster.come_back import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    WELL_S,
    Pauses,
    missing,
    start_missing,
)
from understudy.tool.cluster.hosts import begin_again
from understudy.tool.cluster.run_dir import LaunchError


def test_who_dies_again_and_again_waits_ever_longer_up_to_a_bound():
    pauses, now, found = Pauses(), 100.0, []
    for _ in range(10):
        [(name, pause_s)] = pauses.look(["controller"], now)
        assert name == "controller"
        assert pauses.look(["controller"], now) == []  # no news
        assert pauses.take_due(now + pause_s - 0.01) == []
        now += pause_s
        assert pauses.take_due(now) == ["controller"]
        assert pauses.take_due(now) == []
        found.append(pause_s)
    assert found == [0.5, 1, 2, 4, 8, 16, 32, *[LONGEST_PAUSE_S] * 3]
    assert pauses.look(["controller"], now + WELL_S) == [("controller", FIRST_PAUSE_S)]


def test_who_was_started_by_hand_meanwhile_is_left_alone():
    pauses = Pauses()
    pauses.look(["controller", "noded0"], 0.0)
    assert pauses.look(["noded0"], 0.1) == []
    assert pauses.take_due(9.0) == ["noded0"]


def cluster(tmp_path: Path, time: str = "real") -> Cluster:
    made = Cluster(
        name="c",
        conf=str(tmp_path / "slurm.conf"),
        key_folder=str(tmp_path / "keys"),
        controller_unix="unix:c",
        agent="unix:a",
        time=time,
        nodeds=[],
    )
    made.save(tmp_path)
    return made


def test_all_daemons_are_missing_of_which_no_pid_file_speaks(tmp_path):
    assert missing(cluster(tmp_path), tmp_path) == ["agent", "controller"]
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    pid = Path("/proc/self").resolve().name
    (tmp_path / "agent.pid").write_text(f"{pid} {stat[19]}\n")
    assert missing(cluster(tmp_path), tmp_path) == ["controller"]
    with pytest.raises(LaunchError, match=f"agent runs already, pid {pid}"):
        begin_again("agent", tmp_path)


def test_nobody_comes_back_under_virtual_time(tmp_path):
    with pytest.raises(LaunchError, match="controller died under virtual time"):
        start_missing(cluster(tmp_path, "virtual"), tmp_path, ["controller"])


def test_one_daemon_by_hand_is_one_that_the_cluster_has(tmp_path):
    with pytest.raises(LaunchError, match="is no cluster's run directory"):
        begin_again("controller", tmp_path)
    cluster(tmp_path)
    with pytest.raises(LaunchError, match="has no daemon clock; it has agent, controller"):
        begin_again("clock", tmp_path)
    assert begin_again("controller", tmp_path)[-2:] == ["--run-dir", str(tmp_path)]
