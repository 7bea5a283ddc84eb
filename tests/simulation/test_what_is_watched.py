"""A replay's folder has the states of nodes over time, and what was due by fair share: as its jobs
and its faults have them, in one process and in many, and beside faults.
"""

import csv
from pathlib import Path

import pytest

from understudy.experiments.watched import Watched
from understudy.model.hostlist import expand
from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.scenarios import replay_scenario

FAULTS = Path(__file__).parents[2] / "examples" / "faults"
FAIR = ("PriorityType=priority/multifactor", "PriorityWeightFairshare=1000")


def watched(folder, **options):
    assert replay_scenario(ReplayRequest(FAULTS, folder, **options)) == 0
    return Watched.read(folder)


def jobs(folder):
    with (folder / "jobs.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_nodes_with_jobs_are_those_of_the_jobs(tmp_path):
    found = watched(tmp_path / "one", one_process=True)
    rows = jobs(tmp_path / "one")
    assert len(found.nodes) > 10
    for line, following in zip(found.nodes, found.nodes[1:], strict=False):
        if following.at - line.at < 3:
            continue  # times of jobs are whole seconds
        at = (line.at + following.at) // 2 + 0.5
        held = {
            node
            for row in rows
            if int(row["start"]) < at < int(row["end"])
            for node in expand(row["nodes"])
        }
        assert line.allocated == len(held), at
        assert line[2:] == (0, 0, 0)
    assert found.nodes[-1].allocated == 0
    assert watched(tmp_path / "many").nodes == found.nodes


def test_a_node_that_fails_is_down_until_it_is_back(tmp_path):
    found = watched(
        tmp_path,
        one_process=True,
        faults=("crash of=n1 at=60 for=600", "crash of=controller at=400 for=20"),
    )
    down = [line.at for line in found.nodes if line.down]
    assert down
    assert 60 < down[0] < 660 <= next(line.at for line in found.nodes if line.at > down[-1])
    assert max(line.down for line in found.nodes) == 1


@pytest.mark.parametrize("flags", ["", "NO_FAIR_TREE"])
def test_what_is_due_to_all_users_is_the_whole(flags, tmp_path):
    more = (f"PriorityFlags={flags}",) if flags else ()
    shares = watched(tmp_path, one_process=True, settings=(*FAIR, *more)).shares
    assert sum(each.share for each in shares if each.user) == pytest.approx(1)
    accounts = {each.account for each in shares}
    assert len(accounts) > 1
    assert not watched(tmp_path, one_process=True).shares
