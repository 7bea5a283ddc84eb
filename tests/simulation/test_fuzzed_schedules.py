"""Random configurations, jobs and administrators through whole clusters, with a look after each
step. More by hand: make fuzz-schedules N=5000.
"""

import contextlib
from collections import Counter
from dataclasses import replace

import pytest
from simulation.fuzz import ScheduleFailed, run_schedule, shrink
from simulation.schedules import Schedule, draw

from understudy.clock.daemon import Daemon
from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.tables.licenses import LicensePool
from understudy.controller.tables.node import NodeTable
from understudy.tool.faults.invariants import Invariants

BATCHES = 10
EACH = 50
JOBS = 12  # 60 by hand


@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_is_configured_and_done_nothing_fails_and_no_job_is_lost(batch):
    ends: Counter[str] = Counter()
    for seed in range(1 + EACH * batch, 1 + EACH * (batch + 1)):
        ends += run_schedule(draw(seed, JOBS)).ends
    assert ends["COMPLETED"] > EACH


# from 400002 on: passes that nodes asked for in parts, two jobs of one instant, a team with a limit
@pytest.mark.parametrize("seed", [3, 8, 22, 400002, 400116, 420008, 430198])
def test_schedules_do_not_depend_on_how_nodes_are_dealt_to_daemons(seed):
    schedule = draw(seed, 40)
    assert (
        len({run_schedule(replace(schedule, node_daemons=count)).hash for count in (1, 2, 3, 7)})
        == 1
    )


BURST = Schedule(
    0,
    conf=(
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "NodeName=n[1-8] CPUs=2",
        "PartitionName=p Nodes=n[1-8] Default=YES MaxTime=INFINITE",
    ),
    jobs=tuple(
        {
            "id": f"j{number}",
            "at": 0.0,
            "user": "fu1",
            "run": 9.93,
            "options": ["--ntasks=1", "--time=1"],
        }
        for number in range(80)
    ),
)


def test_jobs_that_are_launched_together_begin_one_after_another_whoever_launches_them():
    assert (
        len({run_schedule(replace(BURST, node_daemons=count)).hash for count in (1, 2, 3, 7)}) == 1
    )


def test_a_limit_is_not_held_against_jobs_that_were_submitted_before_it_was_set():
    accounts = ("add account a1 Description=d Organization=o", "add user fu1 account=a1")
    conf = (*BURST.conf, "AccountingStorageEnforce=limits")
    lowered = {
        "at": 0.01,
        "cmd": ["sacctmgr", "-i", "modify", "account", "a1", "set", "GrpSubmitJobs=1"],
    }
    outcome = run_schedule(
        replace(BURST, conf=conf, accounting=accounts, jobs=BURST.jobs[:20], events=(lowered,))
    )
    assert outcome.ends == {"COMPLETED": 20}


LICENSED = replace(
    BURST,
    conf=(*BURST.conf, "Licenses=lic:1"),
    jobs=tuple(
        {"id": f"j{number}", "at": number, "user": "fu1", "run": 50, "options": [*more, "--time=2"]}
        for number, more in enumerate((["-L", "lic:1"], [], ["-L", "lic:1"]))
    ),
)


def test_an_administrator_may_give_more_licences_to_a_job_that_runs_and_a_pass_to_none(monkeypatch):
    """Slurm 22.05.8: `scontrol show licenses` has more in use than there are."""
    given = {"at": 10.0, "cmd": ["scontrol", "update", "JobId={j1}", "Licenses=lic:1"]}
    assert run_schedule(replace(LICENSED, events=(given,))).ends == {"COMPLETED": 3}
    monkeypatch.setattr(LicensePool, "are_free", lambda *_arguments: True)
    with pytest.raises(ScheduleFailed, match="licences lic: 2 of 1"):
        run_schedule(LICENSED)


TIMES = {"q1": 5, "q2": 2, "normal": 5}  # minutes


def taking_places(jobs, mode="REQUEUE"):
    """One node, and jobs of these QOS; any of q2 may preempt any of q1."""
    return Schedule(
        0,
        conf=(
            "SchedulerParameters=bf_interval=5",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU",
            "PreemptType=preempt/qos",
            f"PreemptMode={mode}",
            "KillWait=5",
            "AuthInfo=cred_expire=5",
            "NodeName=n1 CPUs=1",
            "PartitionName=p Nodes=n1 Default=YES MaxTime=INFINITE",
        ),
        accounting=(
            "add qos q1",
            "add qos q2 Preempt=q1",
            "add account a1 Description=d Organization=o",
            "add user fu1 account=a1 qos=normal,q1,q2 defaultqos=normal",
        ),
        jobs=tuple(
            {
                "id": f"j{number}",
                "at": float(number),
                "user": "fu1",
                "run": 250,
                "options": ["--ntasks=1", f"--time={TIMES[qos]}", f"--qos={qos}"],
            }
            for number, qos in enumerate(jobs)
        ),
    )


def test_jobs_that_preempt_each_other_for_ever_as_in_slurm_are_no_failure():
    outcome = run_schedule(taking_places(["q1", "q1", "q1", "normal", "q2"]))
    assert (outcome.circles, outcome.ends["COMPLETED"]) == (1, 0)
    outcome = run_schedule(taking_places(["q1", "normal", "q1", "q2"]))
    assert (outcome.circles, outcome.ends) == (0, {"COMPLETED": 3, "TIMEOUT": 1})


def test_a_job_that_takes_a_place_in_vain_is_a_failure(monkeypatch):
    select = SelectConsTres.select

    def select_for_all_but_one(self, ask, tables):
        return None if ask.job.spec.name == "j1" else select(self, ask, tables)

    monkeypatch.setattr(SelectConsTres, "select", select_for_all_but_one)
    ends = run_schedule(taking_places(["q1", "q2"], "SUSPEND,GANG")).ends
    assert ends == {"COMPLETED": 1, "PENDING": 1}
    monkeypatch.setattr(Planning, "relent", lambda _self, _job, _now: None)
    with pytest.raises(ScheduleFailed, match="have not ended"):
        run_schedule(taking_places(["q1", "q2"], "SUSPEND,GANG"))


def test_who_is_suspended_in_vain_goes_on():
    """On whole nodes that two share, two that stand still keep out who has suspended the second."""
    jobs = (  # QOS, partition, run time, nodes: the first is suspended for the second
        ("q2", "high", 900, "--nodes=2"),
        ("q3", "low", 100, "--nodelist=n1"),
        ("q1", "low", 900, "--nodelist=n2"),
        ("q3", "low", 100, "--nodelist=n2"),
    )
    schedule = Schedule(
        0,
        conf=(
            "SelectType=select/linear",
            "PreemptType=preempt/qos",
            "PreemptMode=SUSPEND,GANG",
            "NodeName=n[1-2] CPUs=4",
            "PartitionName=low Nodes=n[1-2] Default=YES OverSubscribe=FORCE:2",
            "PartitionName=high Nodes=n[1-2] PriorityTier=9 OverSubscribe=YES:4",
        ),
        accounting=(
            "add qos q1",
            "add qos q2 Preempt=q1",
            "add qos q3 Preempt=q1,q2",
            "add account a1 Description=d Organization=o",
            "add user fu1 account=a1 qos=normal,q1,q2,q3 defaultqos=normal",
        ),
        jobs=tuple(
            {
                "id": f"j{number}",
                "at": 40.0 * number + 1,
                "user": "fu1",
                "run": run,
                "options": [f"--partition={partition}", f"--qos={qos}", where, "--time=30"],
            }
            for number, (qos, partition, run, where) in enumerate(jobs)
        ),
    )
    assert run_schedule(schedule).ends == {"COMPLETED": 4}


TOGETHER = {
    "in-one-of-two-partitions": ["-plow,mid", "-n11", ":", "-n4", ":", "-n1", "-pmid"],
    "the-second-in-one-of-two": ["-n1", "-pmid", ":", "-plow,mid", "-n11", ":", "-n1", "-pmid"],
    "with-a-wish": ["-N4", "--exclude=n1", "--prefer=fast", ":", "-n1", ":", "-N1"],
}


@pytest.mark.parametrize("options", TOGETHER.values(), ids=TOGETHER)
def test_components_start_together_though_one_has_no_nodes_in_one_of_its_partitions(options):
    """As seen of 22.05.8."""
    schedule = Schedule(
        0,
        conf=(
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU",
            "NodeName=n[1-5] CPUs=4 Feature=fast",
            "NodeName=n[6-8] CPUs=4",
            "PartitionName=low Nodes=n[1-8] PriorityTier=1 Default=YES",
            "PartitionName=mid Nodes=n[7-8] PriorityTier=5",
        ),
        jobs=({"id": "j1", "at": 1.0, "user": "fu1", "run": 5, "options": ["-t1", *options]},),
    )
    assert run_schedule(schedule).ends == {"COMPLETED": 1 + options.count(":")}


def test_the_same_seed_draws_and_does_the_same():
    assert draw(5) == draw(5)
    assert run_schedule(draw(5, 20)).hash == run_schedule(draw(5, 20)).hash


def test_the_seeds_draw_every_kind_of_configuration_job_and_deed():
    drawn = [draw(seed) for seed in range(1, 120)]
    text = "\n".join(
        "\n".join(
            [
                *each.conf,
                *each.gres,
                *each.topology,
                *each.accounting,
                repr(each.jobs),
                repr(each.events),
            ]
        )
        for each in drawn
    )
    for word in (
        "select/linear",
        "CR_Socket",
        "CR_CPU_Memory",
        "sched/builtin",
        "preempt/qos",
        "preempt/partition_prio",
        "SUSPEND,GANG",
        "PreemptMode=GANG",
        "GraceTime",
        "FORCE:2",
        "EXCLUSIVE",
        "ThreadsPerCore=2",
        "Gres=gpu:a",
        "Cores=0-",
        "topology/tree",
        "Licenses=lic",
        "multifactor",
        "SuspendTime",
        "MinJobAge=300",
        "AccountingStorageEnforce=safe",
        "MaxTRESPerUser",
        "GrpJobs",
        "MAINT",
        "MAGNETIC",
        "FLEX",
        "CoreCnt",
        "--array",
        "afterok",
        "':'",
        "--gpus-per-task",
        "--exclusive",
        "State=DRAIN",
        "'suspend'",
        "'requeue'",
        "reconfigure",
        "--switches",
        "--prefer",
        " QOS=q1",
        "CoreSpecCount",
        "'sacctmgr'",
        "'reboot'",
        "'name': 'a'",
    ):
        assert word in text, word
    assert {each.front_end for each in drawn} == {True, False}
    assert {each.node_daemons for each in drawn} == {1, 2, 3}


def test_a_failure_names_its_seed_and_the_command_and_can_be_made_smaller(monkeypatch):
    def check(self):
        assert not any(job.spec.name == "j7" for job in self.core.tables.running.values()), (
            "j7 runs"
        )

    monkeypatch.setattr(Invariants, "check", check)
    with pytest.raises(ScheduleFailed, match="j7 runs") as caught:
        run_schedule(BURST)
    assert "to see it again: python tests/simulation/fuzz.py --seed 0" in str(caught.value)
    smaller, problem = shrink(BURST, caught.value.problem)
    assert [job["id"] for job in smaller.jobs] == ["j7"]
    assert "j7 runs" in problem


def test_an_exception_in_a_pass_and_tables_that_contradict_each_other_are_noticed(monkeypatch):
    def fail(self, *_arguments):
        raise KeyError("of a pass")

    allocate = NodeTable.allocate
    monkeypatch.setattr(NodeTable, "allocate", fail)
    with pytest.raises(ScheduleFailed, match="of a pass"):
        run_schedule(BURST)

    def lose_a_cpu(self, allocation):
        allocate(self, allocation)
        self.free_cpus[0] -= 1

    monkeypatch.setattr(NodeTable, "allocate", lose_a_cpu)
    with pytest.raises(ScheduleFailed, match="free CPUs are not what jobs leave"):
        run_schedule(BURST)


def test_a_daemon_that_does_not_close_is_noticed_and_the_others_are_closed(monkeypatch):
    close, closed = Daemon.close, []

    async def fail_in_one(self):
        closed.append(self.name)
        await close(self)
        if self.name == "noded0":
            raise KeyError("of an end")

    monkeypatch.setattr(Daemon, "close", fail_in_one)
    with pytest.raises(ScheduleFailed, match=r"noded0 does not close: KeyError\('of an end'\)"):
        run_schedule(replace(BURST, node_daemons=2))
    assert closed == ["noded1", "noded0", "controller"]


def test_a_schedule_that_takes_for_ever_is_stopped_where_it_spins(monkeypatch):
    def spin(self):
        while True:
            pass

    monkeypatch.setattr("simulation.fuzz.LONGEST_S", 0.2)
    monkeypatch.setattr(Invariants, "check", spin)
    with pytest.raises(ScheduleFailed, match=r"s of CPU time; it was here:(.|\n)*in spin"):
        run_schedule(BURST)


def test_one_that_takes_for_ever_to_close_and_swallows_what_stops_it_fails(monkeypatch):
    close = Daemon.close

    async def never_end(self):
        with contextlib.suppress(AssertionError):
            while True:
                pass
        await close(self)

    monkeypatch.setattr("simulation.fuzz.LONGEST_S", 3.0)
    monkeypatch.setattr("simulation.fuzz.AGAIN_S", 0.2)
    monkeypatch.setattr(Daemon, "close", never_end)
    with pytest.raises(ScheduleFailed, match=r"s of CPU time; it was here:(.|\n)*in never_end"):
        run_schedule(BURST)
