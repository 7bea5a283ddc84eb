"""Random clusters under each research policy: none fails, starves a job or gives out more than
there is. More by hand: python tests/simulation/policies.py --count 100.

Covers: controller/scheduling/textbook/pools.
"""

from dataclasses import replace

import pytest
from simulation.fuzz import ScheduleFailed, run_schedule
from simulation.policies import POLICIES, PolicyRun, run_under, under
from simulation.schedules import Schedule

from understudy.controller.scheduling.textbook.further import BurstBuffer
from understudy.controller.scheduling.textbook.pools import TextbookPolicy
from understudy.controller.tables.burst_buffers import BurstBuffers

JOBS = 8
SCHEDULERS = ("fcfs", "easy", "easy-bb", "easy-nobb", "filler", "sjf-bb", "conservative", "bbsched",
              "plan")  # fmt: skip


@pytest.mark.parametrize(("number", "policy"), list(enumerate(POLICIES)))
def test_under_each_policy_nobody_starves_and_nothing_is_given_out_twice(number, policy):
    run_under(policy, 4 + number % 5, JOBS)


@pytest.mark.parametrize(
    ("policy", "seed", "jobs"),
    [
        ("easy-bb-3", 50090, 30),  # jobs share CPUs with others that are there already
        ("easy-bb-3", 50105, 30),  # a team that can never start
        ("conservative", 50083, 30),  # space of a persistent buffer, which nobody gives back
        ("plan-annealing", 50082, 30),
        ("plan-annealing", 70171, 40),  # planned in two places, and too late for its deadline
        ("easy-nobb", 60141, 40),
        ("easy", 60021, 40),  # suspended while its nodes boot
    ],
)
def test_in_schedules_where_the_cluster_stood_still_everybody_starts(policy, seed, jobs):
    run_under(policy, seed, jobs)


@pytest.mark.parametrize(
    ("policy", "seed", "jobs"),
    [
        *((each, 13, JOBS) for each in ("easy-bb", "conservative", "bbsched-genetic")),
        ("plan-annealing", 13, JOBS),
        ("bbsched-genetic", 110007, 40),  # jobs that share cores leave their nodes in parts
        ("fcfs", 320015, 40),  # a node of a job fails
        ("filler", 120000, 40),  # partitions have nodes in common
        ("fcfs", 120508, 40),  # at the head of a queue is who is never to start
        ("conservative", 120003, 40),  # some nodes of a job are clean before others
    ],
)
def test_the_schedule_is_the_same_however_nodes_are_dealt(policy, seed, jobs):
    first = run_under(policy, seed, jobs, daemons=1)
    assert {run_under(policy, seed, jobs, daemons=count).hash for count in (1, 2, 3)} == {
        first.hash
    }


def test_the_policies_are_all_of_ours_and_half_of_their_clusters_have_burst_buffers():
    assert {name for name, _ in POLICIES.values()} == set(SCHEDULERS)
    drawn = [under("filler", seed, JOBS) for seed in range(1, 41)]
    assert 15 < sum(bool(each.burst_buffer) for each in drawn) < 30


SMALL = Schedule(
    0,
    conf=(
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        "NodeName=n[1-4] CPUs=2",
        "PartitionName=p Nodes=n[1-4] Default=YES MaxTime=INFINITE",
        "PartitionName=q Nodes=n4 MaxTime=INFINITE",
    ),
)


def of(scheduler, jobs, events=()):
    """(begin, run, options) each."""
    return replace(
        SMALL,
        conf=(f"SchedulerType=sched/{scheduler}", *SMALL.conf),
        jobs=tuple(
            {"id": f"j{number}", "at": at, "user": "fu1", "run": run, "options": options}
            for number, (at, run, options) in enumerate(jobs)
        ),
        events=events,
    )


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_components_of_a_heterogeneous_job_start_together_however_many_small_jobs_come(scheduler):
    small = [(float(at), 50, ["--ntasks=3", "--time=1"]) for at in range(2, 40, 4)]
    wide = (1.0, 20, ["--ntasks=4", "--time=1", ":", "--partition=q", "--ntasks=2"])
    first = (0.0, 60, ["--partition=q", "--ntasks=2", "--time=2"])
    outcome = run_schedule(of(scheduler, [first, wide, *small]), make=PolicyRun)
    assert outcome.ends == {"COMPLETED": 13}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_a_suspended_job_leaves_is_counted_once(scheduler):
    suspend = {"at": 5.0, "cmd": ["scontrol", "suspend", "{j0}"]}
    resume = {"at": 90.0, "cmd": ["scontrol", "resume", "{j0}"]}
    jobs = [
        (0.0, 100, ["--ntasks=6", "--time=5"]),
        *((10.0, 60, ["--ntasks=5", "--time=2"]) for _ in range(3)),
    ]
    outcome = run_schedule(of(scheduler, jobs, (suspend, resume)), make=PolicyRun)
    assert outcome.ends == {"COMPLETED": 4}


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_cpus_that_jobs_share_come_back_once(scheduler):
    shared = ["--partition=p,q", "--ntasks=2", "--oversubscribe", "--ntasks-per-core=1"]
    jobs = [
        (13.5, 45, [*shared, "--time=2"]),
        (16.7, 20, ["--partition=q", "--nodes=1-3", "--time=3"]),
        (26.0, 100, ["--partition=q", "--nodes=1", "--ntasks-per-node=2", "--time=2"]),
        (27.2, 1, ["--time=2", "--exclusive", "--oversubscribe", "--sockets-per-node=1"]),
    ]
    conf = (
        f"SchedulerType=sched/{scheduler}",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Socket,CR_ONE_TASK_PER_CORE",
        "NodeName=n[1-4] CPUs=2 Sockets=2 CoresPerSocket=1 ThreadsPerCore=1",
        "PartitionName=p Nodes=n[1-4] OverSubscribe=YES:2 MaxTime=2 Default=YES",
        "PartitionName=q Nodes=n[1-4] PriorityTier=5 OverSubscribe=YES:4 MaxTime=INFINITE",
    )
    schedule = replace(of(scheduler, jobs), conf=conf)
    assert run_schedule(schedule, make=PolicyRun).ends == {"COMPLETED": 4}


def test_who_starves_or_is_given_too_much_is_noticed(monkeypatch):
    monkeypatch.setattr(TextbookPolicy, "start", lambda *_arguments: 0)
    with pytest.raises(ScheduleFailed, match=r"waits for .* although the cluster is empty"):
        run_schedule(of("easy", [(0.0, 10, ["--ntasks=1"])]), make=PolicyRun)
    monkeypatch.undo()
    monkeypatch.setattr(BurstBuffers, "is_free", lambda *_arguments: True)
    monkeypatch.setattr(BurstBuffers, "fits", lambda *_arguments: True)
    buffered = replace(
        of("filler", [(0.0, 10, ["--ntasks=1", "--bb=#BB_LUA pool=pa capacity=9"])] * 2),
        burst_buffer=("Pools=pa:10",),
    )
    conf = (*buffered.conf, "BurstBufferType=burst_buffer/lua")
    monkeypatch.setattr(BurstBuffer, "free", lambda *_arguments: 99)
    with pytest.raises(ScheduleFailed, match="pool pa: 18 of 10"):
        run_schedule(replace(buffered, conf=conf), make=PolicyRun)
