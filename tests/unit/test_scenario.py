"""Scenario folders as they are read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from understudy.controller.build import build_settings
from understudy.experiments.scenario import ScenarioError, read_scenario
from understudy.model.cluster import Cluster
from understudy.model.conf import read_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("about", "front_end"), [({}, True), ({"front_end": False}, False)])
def test_one_daemon_answers_for_all_nodes_unless_the_scenario_says_otherwise(tmp_path: Path, about: dict[str, bool], front_end: bool) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n[1-4] CPUs=4\nPartitionName=main Nodes=ALL")
    (tmp_path / "workload.jsonl").write_text("")
    (tmp_path / "about.json").write_text(json.dumps(about))
    config = read_text(read_scenario(tmp_path).conf)
    assert not config.errors
    assert build_settings(config, Cluster("x", ""), lambda _name: 0).front_end is front_end


@pytest.mark.parametrize(
    ("line", "said"),
    [('{"id": "a", "at": 0, "user": "u"}', "line 1: 'run' is missing"), ('{"id": "a", "at": "x", "user": "u", "run": 1}', "line 1: could not")],
)
def test_a_line_that_does_not_serve_is_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n1")
    (tmp_path / "workload.jsonl").write_text(line)
    with pytest.raises(ScenarioError, match=said):
        read_scenario(tmp_path)
