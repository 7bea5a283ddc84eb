"""A primary and a backup controller in virtual time: whatever befalls the one that leads, the other
leads in time, and never do both.

Covers: controller/edge/leadership, controller/saved/lease.
"""

import pytest
from simulation.chaos import run_chaos
from simulation.fuzz import ScheduleFailed
from simulation.schedules import Schedule

from understudy.controller.saved.lease import Lease

TIMEOUT_S = 20
CONF = (
    "SlurmctldHost=first",
    "SlurmctldHost=second",
    f"SlurmctldTimeout={TIMEOUT_S}",
    "SchedulerType=sched/backfill",
    "SelectType=select/linear",
    "SlurmdTimeout=60",
    "ReturnToService=2",
    "MinJobAge=0",
    "NodeName=n[1-4] CPUs=2",
    "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
)
JOBS = tuple(
    {"id": f"j{n}", "at": 15 * n, "user": "fu1", "run": 60, "options": ["--nodes=2", "--time=5"]}
    for n in range(8)
)


def run(*faults):
    return run_chaos(Schedule(0, conf=CONF, jobs=JOBS, events=faults, span_s=200.0))


@pytest.mark.parametrize(
    ("kind", "since"),
    [
        ("crash", 50),
        ("stall", 50),
        ("partition", 50),
        ("disk_full", 50),
        ("fsync_fails", 60),  # beats are there, or not, until a submission cannot be written
    ],
)
def test_the_backup_leads_in_time_and_nothing_is_lost(kind, since):
    outcome = run({"at": 50, "fault": kind, "of": "controller", "for": 500})
    primary, (at, name), *_ = outcome.leaders
    assert primary[1] == "controller"
    assert name == "backup1"
    assert 50 < at <= since + TIMEOUT_S + 5
    assert outcome.ends == {"COMPLETED": 8}
    sent = [float(entry.split()[0]) for entry in outcome.heard if "LaunchBatch" in entry]
    assert len(sent) == 8
    asked = [entry for entry in outcome.heard if "> backup1: SubmitJob" in entry]
    assert asked


def test_a_primary_that_is_started_again_has_the_lead_back_at_once():
    outcome = run({"at": 50, "fault": "crash", "of": "controller", "for": 100})
    assert [name for _, name in outcome.leaders] == ["controller", "backup1", "controller"]
    assert 150 < outcome.leaders[2][0] <= 150 + TIMEOUT_S / 4  # two looks at the lease
    assert outcome.ends == {"COMPLETED": 8}


def test_a_primary_that_wakes_stands_by_until_the_backup_dies():
    outcome = run(
        {"at": 50, "fault": "stall", "of": "controller", "for": 60},
        {"at": 150, "fault": "crash", "of": "backup1", "for": 5000},
    )
    assert [name for _, name in outcome.leaders] == ["controller", "backup1", "controller"]
    assert 150 < outcome.leaders[2][0] <= 150 + TIMEOUT_S + 5
    assert outcome.ends == {"COMPLETED": 8}


def test_what_befalls_the_backup_changes_nothing():
    outcome = run(
        {"at": 10, "fault": "crash", "of": "backup1", "for": 30},
        {"at": 50, "fault": "stall", "of": "backup1", "for": 60},
        {"at": 120, "fault": "partition", "of": "backup1", "for": 60},
        {"at": 190, "fault": "disk_full", "of": "backup1", "for": 60},
    )
    assert [name for _, name in outcome.leaders] == ["controller"]
    assert outcome.ends == {"COMPLETED": 8}


def test_a_standby_that_is_cut_off_itself_leaves_the_leader_alone():
    outcome = run({"at": 50, "fault": "partition", "of": "backup1", "for": 200})
    assert [name for _, name in outcome.leaders] == ["controller"]


def test_a_leader_that_reaches_the_nodes_goes_on_though_the_standby_does_not_reach_it():
    outcome = run({"at": 50, "fault": "partition", "of": "controller", "to": "backup1", "for": 200})
    assert [name for _, name in outcome.leaders] == ["controller"]
    assert outcome.ends == {"COMPLETED": 8}


def test_two_that_may_answer_at_the_same_time_are_noticed(monkeypatch):
    monkeypatch.setattr(Lease, "holds", lambda self: self.fence > 0)
    monkeypatch.setattr(Lease, "lose", lambda _self: None)
    with pytest.raises(ScheduleFailed, match="controller and backup1 may answer at the same time"):
        run({"at": 50, "fault": "stall", "of": "controller", "for": 500})
