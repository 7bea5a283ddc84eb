"""`understudy chaos`: campaigns that go well, are the same again, and fail.

Covers: tool/replay/chaos, tool/understudy/chaos.
"""

import json

import pytest
from typer.testing import CliRunner

from understudy.tool.faults.cluster import FaultyCluster
from understudy.tool.replay.chaos import CampaignOutcome, first_difference
from understudy.tool.understudy.app import app_with

SMALL = ["--hours", "2", "--faults", "4"]


def chaos(*words):
    return CliRunner().invoke(app_with("chaos"), ["chaos", *map(str, words)])


@pytest.fixture
def nobody_goes_on(monkeypatch):
    """A daemon that stands still does so for ever; not the clock, for which all wait."""
    go_on = FaultyCluster.go_on

    def clock_alone(self, name):
        if name == "clock":
            go_on(self, name)

    monkeypatch.setattr(FaultyCluster, "go_on", clock_alone)


def test_a_campaign_says_what_it_has_seen_and_is_the_same_again(tmp_path):
    first = chaos("--seed", 1, "--out", tmp_path, "--twice", *SMALL)
    assert first.exit_code == 0, first.output
    lines = dict(line.split() for line in first.output.splitlines())
    assert lines["jobs_COMPLETED"] == "12"
    assert int(lines["faults_crash"]) > 0
    again = chaos(tmp_path / "scenario", "--seed", 1)
    assert again.output == first.output


def test_a_sites_configuration_has_its_racks_cut_off(tmp_path):
    conf = "NodeName=n[1-4] CPUs=2\nPartitionName=main Nodes=ALL Default=YES State=UP\n"
    (tmp_path / "slurm.conf").write_text(f"ClusterName=site\nSlurmctldHost=here\n{conf}")
    (tmp_path / "topology.conf").write_text(
        "SwitchName=r1 Nodes=n[1-2]\nSwitchName=r2 Nodes=n[3-4]"
    )
    ran = chaos("--conf", tmp_path / "slurm.conf", "--out", tmp_path, "--faults", 20, "--hours", 2)
    assert ran.exit_code == 0, ran.output
    events = (tmp_path / "scenario" / "events.jsonl").read_text().splitlines()
    assert {"r1", "r2"} & {json.loads(line)["of"] for line in events}


@pytest.mark.usefixtures("nobody_goes_on")
def test_what_fails_is_made_smaller_and_the_command_that_shows_it_is_printed(tmp_path):
    ran = chaos("--seed", 1, "--out", tmp_path, "--shrink", *SMALL)
    assert ran.exit_code == 1
    scenario = tmp_path / "scenario"
    assert f"to see it again: understudy chaos {scenario} --seed 1" in ran.output
    (left,) = (json.loads(line) for line in (scenario / "events.jsonl").read_text().splitlines())
    assert left["fault"] == "stall"
    again = chaos(scenario, "--seed", 1)
    assert again.output.splitlines()[0] == ran.output.splitlines()[0]


def test_the_first_difference_between_two_runs_is_named():
    one, other = (CampaignOutcome(heard=["a", last]) for last in ("b", "c"))
    assert first_difference(one, other) == "message 1:\n    b\n    c"
    assert first_difference(one, one) == ""
    one, other = CampaignOutcome(), CampaignOutcome()
    other.ends["FAILED"] = 1
    assert "the ends" in first_difference(one, other)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NodeName=n1 CPUs=many\n", "slurm.conf"),
        (None, "No such file"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_line(tmp_path, text, said):
    conf = tmp_path / "slurm.conf"
    if text is not None:
        conf.write_text(text)
    ran = chaos("--conf", conf, "--out", tmp_path / "out")
    assert ran.exit_code == 1
    assert said in ran.output
    assert ran.output.count("\n") == 1
