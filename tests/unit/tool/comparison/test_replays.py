"""The runner of comparisons: what is kept, what is run again, and what fails. Replays are real."""

import json
import math

import pytest

from understudy.experiments.comparison.cells import Cell, Drawn, Row
from understudy.experiments.comparison.comparison import Policy, Workload
from understudy.experiments.comparison.figures import FIGURES
from understudy.experiments.swf import write_swf
from understudy.experiments.trace import TraceJob
from understudy.tool.comparison import replays as module
from understudy.tool.comparison.replays import Replays

EASY, FCFS, ALIKE = Policy("easy", "easy"), Policy("fcfs", "fcfs"), Policy("also", "easy")
NONE = Policy("none", "nobody-has-this")


@pytest.fixture
def folder(tmp_path):
    """A trace in which a small job passes a large one, under EASY alone."""
    some = [(1, 0, 3, 100), (2, 1, 4, 100), (3, 2, 1, 50)]
    jobs = [TraceJob(n, submit, run, procs, run, run) for n, submit, procs, run in some]
    write_swf(tmp_path / "three.swf", jobs, {"MaxNodes": "4", "MaxProcs": "4"})
    return tmp_path


def cells(*policies):
    return [Cell(Drawn(Workload("three", "three.swf"), 1, 0, 0), each) for each in policies]


def run(folder, *policies, seconds=math.inf, **options):
    told: dict[int, Row] = {}
    replays = Replays(folder, folder / "kept", **options)
    replays.prepare(cells(*policies))
    module.run(
        [(replays, cell) for cell in cells(*policies)], 2, seconds, lambda *it: told.update([it])
    )
    assert all(policies[place].name == row.policy for place, row in told.items())
    return {row.policy: row for row in told.values()}


def kept(folder):
    return sorted((folder / "kept" / "cells").glob("*/row.json"))


def test_cells_are_run_once_and_then_taken_from_what_is_kept(folder, monkeypatch):
    rows = run(folder, EASY, FCFS, ALIKE)
    # starts 0, 100, 2 and 0, 100, 200
    assert rows["easy"].figures["mean_wait"] == 99 / 3
    assert rows["fcfs"].figures["mean_wait"] == (99 + 198) / 3
    assert rows["also"].schedule_sha256 == rows["easy"].schedule_sha256
    assert rows["easy"].jobs == 3
    assert len(kept(folder)) == 2
    assert list((folder / "kept" / "running").iterdir()) == []
    left = {path.name for path in kept(folder)[0].parent.iterdir()}
    assert left == {"row.json", "jobs.csv", "summary.json", "slurm.conf"}

    monkeypatch.setattr(Replays, "_replay", None)  # there is nothing left to run
    assert run(folder, EASY, FCFS, ALIKE, seconds=0) == rows
    # of a version that had a figure less
    for path in kept(folder):
        row = json.loads(path.read_text())
        del row["figures"]["usage"]
        path.write_text(json.dumps(row))
    assert run(folder, EASY, FCFS, ALIKE) == rows
    assert tuple(rows["easy"].figures) == FIGURES
    # by other code it is not the same cell, unless somebody says so
    monkeypatch.setattr(module, "code_sha256", lambda: "other")
    assert run(folder, EASY, seconds=0) == {}
    assert run(folder, EASY, seconds=0, any_code=True) == {"easy": rows["easy"]}


def test_none_is_begun_when_the_time_is_over(folder):
    assert run(folder, EASY, seconds=0) == {}


def test_a_replay_that_fails_says_why_and_is_not_kept(folder):
    rows = run(folder, NONE)
    assert "nobody-has-this" in rows["none"].failed
    assert rows["none"].failed.startswith("exit code 2: ")
    assert kept(folder) == []


def test_what_is_complete_is_kept_when_it_is_interrupted(folder):
    def interrupt(_place, _row):
        raise KeyboardInterrupt(15)

    replays = Replays(folder, folder / "kept")
    replays.prepare(cells(EASY, FCFS))
    with pytest.raises(KeyboardInterrupt):
        module.run([(replays, cell) for cell in cells(EASY, FCFS)], 1, math.inf, interrupt)
    assert len(kept(folder)) == 1
    assert list((folder / "kept" / "running").iterdir()) == []


def test_comparisons_share_workers_and_the_cells_that_they_have_in_common(folder, monkeypatch):
    began = []
    replay = Replays._replay
    monkeypatch.setattr(
        Replays, "_replay", lambda *it: began.append(it[1].policy.name) or replay(*it)
    )
    first, second = (Replays(folder, folder / "kept") for _ in range(2))
    wanted = [(first, each) for each in cells(EASY, FCFS)]
    wanted += [(second, each) for each in cells(ALIKE, FCFS)]
    for replays in (first, second):
        replays.prepare(cells(EASY))
    told = {}
    module.run(wanted, 2, math.inf, lambda place, row: told.update({place: row.policy}))
    assert told == {0: "easy", 1: "fcfs", 2: "also", 3: "fcfs"}
    assert sorted(began) == ["easy", "fcfs"]
