"""Whole clusters under faults: a short form of tests/simulation/chaos.py, and that it would notice.
More by hand: make chaos SEEDS=500.

Covers: tool/faults/cluster, tool/faults/disk, tool/faults/inject, tool/faults/invariants,
tool/faults/limits_held, tool/faults/lives, tool/faults/run, tool/faults/safety,
experiments/random_faults.
"""

from dataclasses import replace

import pytest
from simulation.chaos import backups_of, check_determinism, draw, run_chaos
from simulation.fuzz import ScheduleFailed
from simulation.schedules import Schedule

from understudy.controller.saved.store import Dirty, Store
from understudy.experiments.random_faults import WEIGHTS
from understudy.noded.daemon import FrontEnd
from understudy.tool.faults.cluster import FaultyCluster

SEEDS = range(1, 16)
JOBS = 10
NOTICED_S = 24.5 + 80  # the controller starts 24.5 s before the zero
CONF = (
    "SchedulerType=sched/backfill",
    "SelectType=select/linear",
    "SlurmdTimeout=60",
    "ReturnToService=2",
    "MinJobAge=0",
    "NodeName=n[1-4] CPUs=2",
    "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
)


def schedule(*faults):
    """Eight jobs of two nodes on four, and these faults."""
    jobs = tuple(
        {"id": f"j{n}", "at": n, "user": "fu1", "run": 100, "options": ["--nodes=2", "--time=5"]}
        for n in range(8)
    )
    return Schedule(0, conf=CONF, jobs=jobs, events=faults, span_s=100.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_fails_nothing_is_lost_and_all_comes_to_an_end(seed):
    outcome = run_chaos(draw(seed, JOBS))
    assert outcome.steps
    assert outcome.faults


@pytest.mark.parametrize(
    ("seed", "of"),
    [
        (12, "an exit code that came late and was not saved"),
        (38, "records of a job that could not be saved"),
        (63, "a launch whose answer was lost with its node"),
        (591, "limits that nobody knew of while accounting was away"),
    ],
)
def test_what_was_found_is_not_found_again(seed, of):
    assert run_chaos(draw(seed)).steps, of


def test_the_seeds_here_draw_every_fault():
    kinds = {event["fault"] for seed in SEEDS for event in draw(seed).events if "fault" in event}
    assert kinds == set(WEIGHTS)


@pytest.mark.parametrize("kind", ["crash", "stall"])
def test_who_starts_waits_for_the_clock_and_who_runs_does_not(kind):
    outcome = run_chaos(
        schedule(
            {"at": 10, "fault": kind, "of": "clock", "for": 90},
            {"at": 20, "fault": "crash", "of": "controller", "for": 5},
            {"at": 130, "fault": kind, "of": "clock", "for": 1000},
        )
    )
    sent = [float(e.split()[0]) - 24.5 for e in outcome.heard if " controller > noded" in e]
    assert outcome.ends == {"COMPLETED": 8}
    assert [at for at in sent if 20 < at < 100] == []
    assert [at for at in sent if 100 < at < 130]
    assert [at for at in sent if 130 < at < 400]


def test_the_seeds_here_draw_faults_of_the_clock():
    assert {
        event["fault"]
        for seed in SEEDS
        for event in draw(seed).events
        if event.get("of") == "clock"
    }


def test_some_of_the_seeds_here_have_a_backup_controller_and_faults_of_it():
    drawn = [draw(seed) for seed in SEEDS]
    assert any(backups_of(schedule) for schedule in drawn)
    assert any(event.get("of") == "backup1" for each in drawn for event in each.events)


@pytest.mark.parametrize("seed", [3, 13])  # the second has two controllers
def test_two_runs_of_a_seed_go_the_same_way_to_the_last_message(seed):
    drawn = draw(seed, JOBS)
    check_determinism(drawn, run_chaos(drawn))


def test_a_difference_between_two_runs_is_named():
    drawn = draw(3, JOBS)
    outcome = run_chaos(drawn)
    outcome.heard[7] = "something else"
    with pytest.raises(ScheduleFailed, match="differ at message 7:\n    something else"):
        check_determinism(drawn, outcome)


def test_a_failure_names_the_command_that_shows_it_again(monkeypatch):
    monkeypatch.setattr(FaultyCluster, "go_on", lambda _self, _name: None)  # once still, for ever
    stalled = schedule({"at": 20, "fault": "stall", "of": "n1", "for": 30})
    with pytest.raises(ScheduleFailed, match=r"python tests/simulation/chaos\.py --seed 0"):
        run_chaos(stalled)


def test_a_job_that_was_acknowledged_and_not_written_is_missed(monkeypatch):
    write = Store.write
    monkeypatch.setattr(
        Store, "write", lambda self, batch: write(self, batch._replace(jobs=batch.jobs[:0]))
    )
    crash = schedule({"at": 50, "fault": "crash", "of": "controller", "for": 1})
    with pytest.raises(ScheduleFailed, match=r"acknowledged|on disk and in memory differ"):
        run_chaos(crash)


def test_a_change_that_is_not_written_is_missed(monkeypatch):
    noted = Dirty.job
    starts = {"n": 0}

    def job(self, job_id):
        starts["n"] += 1
        if starts["n"] % 3:
            noted(self, job_id)

    monkeypatch.setattr(Dirty, "job", job)
    with pytest.raises(ScheduleFailed, match="on disk"):
        run_chaos(schedule({"at": 50, "fault": "slow", "of": "n1", "for": 1, "times": 2}))


def test_a_run_that_is_started_twice_is_noticed(monkeypatch):
    do = FrontEnd.do
    monkeypatch.setattr(FrontEnd, "do", lambda self, effects: do(self, [*effects, *effects][:2]))
    with pytest.raises(ScheduleFailed, match="started twice as its run 0"):
        run_chaos(schedule({"at": 50, "fault": "slow", "of": "n1", "for": 1, "times": 2}))


def test_nodes_without_power_lose_their_jobs_whichever_of_their_nodes_it_is():
    """n2 and n4 are second nodes: the scripts go on elsewhere."""
    outcome = run_chaos(schedule({"at": 50, "fault": "crash", "of": "n2,n4", "for": 10}))
    lost = [
        entry.split("TerminateJob(job_id=")[1].split(",")[0]
        for entry in outcome.heard
        if "TerminateJob(job_id" in entry and float(entry.split()[0]) < NOTICED_S
    ]
    assert set(lost) == {"1", "2"}
    assert outcome.ends == {"COMPLETED": 8}


def test_the_disk_keeps_the_controller_from_acknowledging():
    full = schedule({"at": 0, "fault": "disk_full", "for": 200})
    outcome = run_chaos(full)
    told = [entry for entry in outcome.heard if "LaunchBatch" in entry]
    assert outcome.ends == {"COMPLETED": 8}
    assert float(told[0].split()[0]) > 200 + 24


def test_shrinking_keeps_what_fails(monkeypatch):
    from simulation.chaos import ChaosRun
    from simulation.fuzz import shrink

    monkeypatch.setattr(FaultyCluster, "go_on", lambda _self, _name: None)
    drawn = schedule(
        {"at": 10, "fault": "slow", "of": "n3", "for": 1, "times": 2},
        {"at": 20, "fault": "stall", "of": "n1", "for": 30},
    )
    with pytest.raises(ScheduleFailed) as caught:
        run_chaos(drawn)
    smaller, _ = shrink(replace(drawn, conf=CONF), caught.value.problem, ChaosRun)
    assert [event["fault"] for event in smaller.events] == ["stall"]
