"""Scenario folders as they are read.

Covers: tool/replay/scenarios.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from understudy.controller.edge.build import build_settings
from understudy.experiments.scenario import (
    ScenarioError,
    SetUpCommand,
    complete_conf,
    read_scenario,
    read_set_up,
)
from understudy.model.cluster import Cluster
from understudy.model.conf import read_text
from understudy.tool.replay.scenarios import emulation_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("about", "front_end"), [({}, True), ({"front_end": False}, False)])
def test_one_daemon_answers_for_all_nodes_unless_the_scenario_says_otherwise(
    tmp_path: Path, about: dict[str, bool], front_end: bool
) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-4] CPUs=4\nPartitionName=main Nodes=ALL")
    (tmp_path / "workload.jsonl").write_text("")
    (tmp_path / "about.json").write_text(json.dumps(about))
    config = read_text(read_scenario(tmp_path).conf)
    assert not config.errors
    assert build_settings(config, Cluster("x", ""), lambda _name: 0).front_end is front_end


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "a", "at": 0, "user": "u"}', "line 1: 'run' is missing"),
        ('{"id": "a", "at": "x", "user": "u", "run": 1}', "line 1: could not"),
        ('{"id": "a", "at": 0, "user": "u", "run": 1, "exit": Infinity}', "line 1: cannot"),
        ("[" * 99_999, "line 1: maximum recursion depth exceeded"),
    ],
)
def test_a_line_that_does_not_serve_is_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n1")
    (tmp_path / "workload.jsonl").write_text(line)
    with pytest.raises(ScenarioError, match=said):
        read_scenario(tmp_path)


def test_only_a_new_line_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n1")
    name = "a\u2028b\x85c"
    (tmp_path / "workload.jsonl").write_text(
        json.dumps({"id": "a", "at": 0, "user": "u", "run": 1, "name": name}, ensure_ascii=False)
        + "\n"
    )
    assert [each.name for each in read_scenario(tmp_path).submissions] == [name]


def test_what_differs_from_task_to_task_is_read_and_told_to_the_node(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n1")
    line = {
        "id": "a",
        "at": 0,
        "user": "u",
        "run": {"1": 5, "2": 6},
        "exit": {"1": 3},
        "signal": 9,
        "ended": {"2": "cancelled"},
    }
    (tmp_path / "workload.jsonl").write_text(json.dumps(line))
    emulation = emulation_of(read_scenario(tmp_path).submissions[0])
    assert emulation.task_run_s == {"1": 5.0, "2": 6.0}
    assert emulation.task_end == {"1": (3, 9, ""), "2": (0, 9, "cancelled")}
    (tmp_path / "workload.jsonl").write_text(json.dumps(line | {"ended": "gone"}))
    with pytest.raises(ScenarioError, match="'gone' is neither cancelled nor memory"):
        read_scenario(tmp_path)


def test_a_history_has_a_calendar_and_users_with_their_numbers(tmp_path: Path) -> None:
    users = {"ada": {"uid": 7101, "gid": 50, "group": "phys"}}
    (tmp_path / "about.json").write_text(
        json.dumps({"zero": 1_700_000_000, "lead": 60, "users": users})
    )
    lines = [{"id": name, "at": 0, "user": name, "run": 1} for name in ("ada", "bob", "root")]
    (tmp_path / "workload.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(
        ScenarioError, match=r"slurm.conf: No such file or directory; " r"`--conf FILE`"
    ):
        read_scenario(tmp_path)
    scenario = read_scenario(tmp_path, needs_conf=False)
    assert (scenario.zero, scenario.lead_s, scenario.conf) == (1_700_000_000, 60, "")
    assert scenario.users == {"ada": 7101, "bob": 7102, "root": 0}
    assert (scenario.group_of("ada"), scenario.groups["phys"]) == (50, 50)
    (tmp_path / "about.json").write_text(json.dumps({"lead": "long"}))
    with pytest.raises(ScenarioError, match=r"about.json: could not"):
        read_scenario(tmp_path, needs_conf=False)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "AccountingStorageType=accounting_storage/none\n",
        "accountingstoragetype = accounting_storage/filetxt # old\n",
    ],
)
def test_a_configuration_that_keeps_no_accounts_keeps_them_where_there_are_some(said: str) -> None:
    text = complete_conf(f"{said}NodeName=n1\n", accounting=True)
    assert re.findall("(?im)^accountingstoragetype.*", text) == [
        "AccountingStorageType=accounting_storage/slurmdbd"
    ]
    assert "slurmdbd" not in complete_conf(f"{said}NodeName=n1\n")


def test_set_up_of_accounting_tells_where_each_command_stands(tmp_path: Path) -> None:
    path = tmp_path / "sacctmgr.txt"
    path.write_text("  # accounts\n\nadd account 'a 1' Fairshare=3\n")
    assert read_set_up(path) == [
        SetUpCommand(("add", "account", "a 1", "Fairshare=3"), f"{path} line 3")
    ]


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n1")
    (tmp_path / "workload.jsonl").write_bytes(b'{"id": "\x80"}')
    with pytest.raises(ScenarioError, match=r"workload.jsonl: 'utf-8' codec can't decode"):
        read_scenario(tmp_path)
