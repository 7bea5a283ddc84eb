"""Power saving: idle nodes are switched off, and on again for the jobs that get them. Times as real
Slurm 22.05 shows them.

Covers: controller/tables/power_plan.
"""

from __future__ import annotations

import math

import pytest
from controller_harness import ROOT, START, FakeSender, FakeTime, Harness, make_tables

from understudy.controller.edge.build import build_tables
from understudy.controller.nodes.power import REBOOTED, TIMED_OUT, Power
from understudy.controller.saved.records import decode_node, encode_node
from understudy.controller.saved.recover import recover
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.power_plan import Pace, PowerPlan
from understudy.controller.tables.settings import Settings
from understudy.model.conf import read_text
from understudy.model.states import JobFlag, JobState, NodeFlag, NodeState
from understudy.protocol.messages import (
    AllocateJob,
    AwaitJob,
    ChangeNodeTable,
    Failure,
    JobSpec,
    LaunchBatch,
    Ok,
    RebootNodes,
    TerminateJob,
)

CONF = """ClusterName=c
SlurmctldHost=localhost
SuspendTime=15
SuspendTimeout=8
ResumeTimeout=30
SuspendProgram=/bin/true
ResumeProgram=/bin/true
{}
NodeName=n[1-4] CPUs=4 RealMemory=4000
PartitionName=main Nodes=n[1-4] Default=YES
PartitionName=side Nodes=n[3-4] {}
"""


def plan_of(extra: str = "", side: str = "") -> PowerPlan:
    plan = PowerPlan.of(read_text(CONF.format(extra, side)))
    assert plan is not None
    return plan


def harness(extra: str = "", *, boot_s: float = 6.0) -> Harness:
    h = Harness(
        make_tables(),
        settings=Settings(min_job_age_s=0, boot_s=boot_s, credential_lifetime_s=20),
        register=False,
    )
    h.core.power = Power(h.core, plan_of(extra))
    h.register("noded0")
    return h


@pytest.fixture
def h() -> Harness:
    return harness()


def flags(h: Harness) -> list[NodeFlag]:
    return [node.flags for node in h.core.tables.nodes.nodes]


OFF, FALLING = NodeFlag.POWERED_DOWN, NodeFlag.POWERING_DOWN
RISING = NodeFlag.POWERING_UP | NodeFlag.NO_RESPOND


def test_idle_nodes_are_switched_off_at_a_ten_second_look_and_are_off_at_another(
    h: Harness,
) -> None:
    h.run(20.9)
    assert flags(h) == [NodeFlag.NONE] * 4
    h.run(0.2)
    assert flags(h) == [FALLING] * 4
    assert h.core.tables.nodes.up_nodes == 0
    h.run(9.8)
    assert flags(h) == [FALLING] * 4
    h.run(0.2)
    assert flags(h) == [OFF] * 4
    assert h.core.tables.nodes.up_nodes == 0b1111
    assert h.query("nodes", "last_busy") == [[None]] * 4


def test_a_node_that_is_deleted_while_it_is_switched_off_is_neither_on_nor_off(h: Harness) -> None:
    h.run(21.1)
    assert flags(h)[0] == FALLING
    assert h.ask(ChangeNodeTable("delete", "n1"), ROOT) == Ok()
    h.run(60)
    assert flags(h) == [NodeFlag.NONE, OFF, OFF, OFF]
    assert h.core.tables.nodes.nodes[0].state is NodeState.FUTURE


def test_an_idle_cluster_stands_still(h: Harness) -> None:
    h.run(100)
    assert h.time.waiting == 0


def test_a_job_waits_for_its_nodes_and_its_time_counts_from_their_being_there(h: Harness) -> None:
    h.run(62.3)
    job = h.submit(required_nodes="n1", time_limit_s=60)
    assert job.is_running
    assert job.flags == JobFlag.CONFIGURING
    assert (job.start_time, job.end_time) == (START + 62, START + 122)
    assert flags(h)[0] == OFF
    h.run(1)
    assert flags(h)[0] == RISING
    assert not h.launches()
    h.run(6)
    assert flags(h)[0] == NodeFlag.NONE
    assert job.flags == JobFlag.CONFIGURING
    h.run(22)
    assert job.flags == JobFlag.NONE
    assert (job.start_time, job.end_time) == (START + 91, START + 151)
    assert h.launches(job)
    h.acknowledge()
    h.complete(job)
    h.run(30)
    assert flags(h)[0] == FALLING


def test_a_job_that_is_cancelled_while_its_nodes_boot_is_never_launched(h: Harness) -> None:
    h.run(60)
    job = h.submit(required_nodes="n1")
    h.run(2)
    h.cancel(job)
    assert not h.sent(LaunchBatch)
    assert h.sent(TerminateJob, job)
    h.acknowledge()
    h.epilog(job)
    h.run(40)
    assert not h.sent(LaunchBatch)
    assert flags(h)[0] in (FALLING, OFF)


def test_a_node_that_does_not_boot_in_time_is_down_and_off_and_its_job_waits_again() -> None:
    h = harness(boot_s=100)
    h.run(60)
    job = h.submit(required_nodes="n1")
    h.run(45)
    node = h.core.tables.nodes.nodes[0]
    assert (node.state, node.flags, node.reason) == (
        NodeState.DOWN,
        OFF | NodeFlag.NO_RESPOND,
        TIMED_OUT,
    )
    assert job.is_pending
    assert h.query("nodes", "last_busy", name=["n1"]) == [[None]]
    assert h.update_nodes("n1", state="resume") == Ok()
    assert (node.state, node.flags, node.reason) == (NodeState.IDLE, OFF | NodeFlag.NO_RESPOND, "")
    assert h.core.tables.nodes.up_nodes & 1


def test_nodes_that_are_up_are_taken_first(h: Harness) -> None:
    h.run(60.5)
    h.update_nodes("n3", state="power_up")
    assert flags(h)[2] == OFF | NodeFlag.POWER_UP
    h.run(9)
    assert flags(h)[2] == NodeFlag.NONE
    job = h.submit()
    assert job.node_list == "n3"
    assert not job.flags


def test_power_down_waits_for_the_jobs_of_a_node(h: Harness) -> None:
    job = h.submit(required_nodes="n1")
    h.acknowledge()
    assert h.update_nodes("n1", state="power_down") == Ok()
    h.run(5)
    assert flags(h)[0] == NodeFlag.POWER_DOWN
    assert h.update_nodes("n1", state="resume").code == 2028
    assert h.update_nodes("n1", state="power_up") == Ok()
    assert flags(h)[0] == NodeFlag.POWER_DOWN
    h.complete(job)
    h.run(1.1)
    assert flags(h)[0] == FALLING
    h.update_nodes("n1", state="resume")
    assert flags(h)[0] == OFF


def test_power_down_asap_keeps_new_jobs_away_until_the_node_is_off(h: Harness) -> None:
    job = h.submit(required_nodes="n1")
    h.acknowledge()
    h.update_nodes("n1", state="power_down_asap")
    node = h.core.tables.nodes.nodes[0]
    assert node.flags == NodeFlag.DRAIN | NodeFlag.POWER_DOWN | NodeFlag.POWER_DRAIN
    assert (node.reason, node.reason_user_id) == ("POWER_DOWN_ASAP", 65534)
    assert h.submit(required_nodes="n1").is_pending
    h.complete(job)
    h.run(1.1)
    assert (node.flags, node.reason) == (FALLING, "POWER_DOWN_ASAP")


def test_power_down_force_requeues_the_jobs_of_a_node(h: Harness) -> None:
    job = h.submit(required_nodes="n1")
    h.acknowledge()
    h.update_nodes("n1", state="power_down_force")
    assert job.is_pending
    h.run(1.1)
    assert flags(h)[0] == FALLING


def test_without_power_saving_such_states_are_refused() -> None:
    h = Harness()
    for state in ("power_up", "power_down", "power_down_asap", "power_down_force"):
        assert h.update_nodes("n1", state=state).code == 2028


@pytest.mark.parametrize(
    ("rate", "off"),
    [
        ("SuspendRate=1", [1, 1, 1, 1, 2, 2, 2]),
        ("SuspendRate=2", [2, 2, 3, 3, 3, 4, 4]),
        ("SuspendRate=0", [4] * 7),
    ],
)
def test_so_many_nodes_are_switched_off_by_and_by(rate: str, off: list[int]) -> None:
    h = harness(rate)
    h.run(21.1)
    seen = []
    for _ in off:
        seen.append(sum(bool(each) for each in flags(h)))
        h.run(10)
    assert seen == off


@pytest.mark.parametrize(
    ("extra", "stay"),
    [
        ("SuspendExcNodes=n[2,4]", [1, 3]),
        ("SuspendExcNodes=n[1-3]:2,n4", [0, 1, 3]),
        ("SuspendExcParts=side", [2, 3]),
        ("SuspendExcStates=DRAIN", [0]),
    ],
)
def test_exempt_nodes_stay_on(extra: str, stay: list[int]) -> None:
    h = harness(extra)
    h.update_nodes("n1", state="drain", reason="x")
    h.run(60)
    assert [index for index, each in enumerate(flags(h)) if not each & OFF] == (
        stay if extra != "SuspendExcNodes=n[1-3]:2,n4" else [1, 2, 3]
    )


def test_the_longest_time_of_a_nodes_partitions_counts() -> None:
    assert plan_of(side="SuspendTime=100 ResumeTimeout=90").suspend_time_s == (15, 15, 100, 100)
    assert plan_of(side="SuspendTime=100 ResumeTimeout=90").resume_timeout_s == (30, 30, 90, 90)
    assert plan_of(side="SuspendTime=INFINITE").suspend_time_s == (15, 15, math.inf, math.inf)
    assert plan_of("SlurmctldParameters=power_save_interval=3").interval_s == 3


@pytest.mark.parametrize(
    "gone", ["SuspendTime=15\n", "SuspendProgram=/bin/true\n", "ResumeProgram=/bin/true\n"]
)
def test_there_is_no_power_saving_without_a_time_or_a_program(gone: str) -> None:
    assert PowerPlan.of(read_text(CONF.format("", "").replace(gone, ""))) is None


def test_nodes_are_let_go_at_the_pace_that_was_recorded() -> None:
    pace, went = Pace(), []
    for second in (0, 1, 11, 13, 23, 33, 43, 53, 63, 73, 83, 93):
        pace.forget(float(second), 10)
        now = pace.room(7)
        pace.count += now
        went.append(now)
    assert went == [7, 0, 1, 0, 2, 1, 1, 1, 1, 1, 2, 1]
    assert pace.room(0) == math.inf


def test_looks_that_were_left_out_count_as_looks() -> None:
    one, other = Pace(7.0, 0.0), Pace(7.0, 0.0)
    one.forget(23.0, 10)
    for second in (10, 20, 23):
        other.forget(float(second), 10)
    assert one.count == pytest.approx(other.count)


def test_nodes_in_the_cloud_are_off_and_hidden_until_they_are_needed() -> None:
    config = read_text(
        CONF.format(
            "NodeName=c1 CPUs=4 RealMemory=4000 State=CLOUD\nPartitionName=cloud Nodes=c1", ""
        )
    )
    tables, _ = build_tables(config)
    plan = PowerPlan.of(config)
    assert plan is not None
    h = Harness(tables, settings=Settings(min_job_age_s=0, boot_s=6), register=False)
    h.core.power = Power(h.core, plan)
    h.register("noded0")
    assert h.query("nodes", "name") == [["n1"], ["n2"], ["n3"], ["n4"]]
    job = h.submit(partition="cloud")
    assert job.flags == JobFlag.CONFIGURING
    h.run(2)
    index = tables.nodes.index_of["c1"]
    assert tables.nodes.nodes[index].flags == NodeFlag.CLOUD | RISING
    assert ["c1"] in h.query("nodes", "name")
    h.run(30)
    assert h.launches(job)


def test_with_private_data_cloud_all_nodes_are_shown() -> None:
    config = read_text(
        CONF.format("NodeName=c1 CPUs=4 State=CLOUD\nPartitionName=cloud Nodes=c1", "")
    )
    tables, _ = build_tables(config)
    h = Harness(tables, settings=Settings(shows_cloud=True), register=False)
    assert ["c1"] in h.query("nodes", "name")


def test_a_restart_goes_on_where_it_was(h: Harness) -> None:
    h.run(60)
    job = h.submit(required_nodes="n1")
    h.run(2)
    saved = [encode_node(node) for node in h.core.tables.nodes.nodes]
    tables = make_tables()
    for octets, node in zip(saved, tables.nodes.nodes, strict=True):
        decode_node(octets, node)
    job.launch_acknowledged = False
    again = Harness(tables, settings=h.core.settings, register=False, time=FakeTime(h.time.now()))
    again.core.power = Power(again.core, plan_of())
    recover(again.core, [job])
    again.register("noded0", started=START + 200)
    assert not again.launches()
    assert [node.flags for node in tables.nodes.nodes] == [RISING, OFF, OFF, OFF]
    again.run(60)
    assert job.flags == JobFlag.NONE
    assert again.launches(job)


def test_only_administrators_switch_nodes(h: Harness) -> None:
    assert isinstance(h.update_nodes("n1", FakeSender(), state="power_down"), Failure)
    assert h.update_nodes("n1", ROOT, state="power_down") == Ok()


def test_power_up_is_forgotten_for_a_node_that_is_just_being_switched_off(h: Harness) -> None:
    h.run(3)
    h.update_nodes("n1", state="power_down")
    h.run(2)
    assert flags(h)[0] == FALLING
    assert h.update_nodes("n1", state="power_up") == Ok()
    assert flags(h)[0] == FALLING
    h.run(30)
    assert flags(h)[0] == OFF


def test_power_down_takes_back_power_up(h: Harness) -> None:
    h.run(60.2)
    h.update_nodes("n1", state="power_up")
    h.update_nodes("n1", state="power_down")
    assert flags(h)[0] == NodeFlag.POWER_DOWN
    h.run(30)
    assert flags(h)[0] == OFF


def test_a_job_for_a_node_that_is_being_switched_off_waits_for_the_backfill_scheduler(
    h: Harness,
) -> None:
    h.run(22)
    job = h.submit(required_nodes="n1")
    asked = []
    h.core.policy.note = lambda what, now: asked.append((what, now - START))  # type: ignore[method-assign]
    h.run(10)
    assert job.is_pending
    assert flags(h)[0] == OFF
    assert {what for what, _ in asked} == {Note.POWERED}


def test_nodes_with_jobs_that_stand_still_stay_on(h: Harness) -> None:
    job = h.submit(required_nodes="n1", mem_per_cpu_mb=0)
    h.acknowledge()
    h.control("suspend", job, ROOT)
    h.run(100)
    assert [bool(each & OFF) for each in flags(h)] == [False, True, True, True]
    h.control("resume", job, ROOT)
    h.acknowledge()
    h.complete(job)
    h.run(60)
    assert flags(h) == [OFF] * 4


def test_the_time_without_jobs_counts_from_the_last_jobs_end_and_from_a_return_to_service(
    h: Harness,
) -> None:
    first, second = (h.submit(required_nodes="n1", mem_per_cpu_mb=1) for _ in range(2))
    h.acknowledge()
    before = h.query("nodes", "last_busy", name=["n1"])
    h.run(5)
    assert h.query("nodes", "last_busy", name=["n1"]) == before
    h.complete(first)
    assert h.query("nodes", "last_busy", name=["n1"]) == before
    h.run(2)
    h.complete(second)
    assert h.query("nodes", "last_busy", name=["n1"]) == [[START + 7]]
    h.update_nodes("n1", state="drain", reason="x")
    h.run(3)
    h.update_nodes("n1", state="undrain")
    assert h.query("nodes", "last_busy", name=["n1"]) == [[START + 10]]


def test_a_job_takes_the_reason_from_a_node_that_is_off(h: Harness) -> None:
    h.update_nodes("n1", state="power_down_asap")
    h.run(60.5)
    node = h.core.tables.nodes.nodes[0]
    assert (node.flags, node.reason) == (OFF, "POWER_DOWN_ASAP")
    h.submit(required_nodes="n1")
    assert (node.flags, node.reason) == (OFF, "")


def test_a_node_that_was_down_when_it_was_switched_on_stays_so() -> None:
    h = harness()
    h.run(60)
    h.update_nodes("n1", state="down", reason="off")
    h.update_nodes("n1", state="power_up")
    h.run(20)
    node = h.core.tables.nodes.nodes[0]
    assert (node.state, node.flags, node.reason) == (NodeState.DOWN, NodeFlag.NONE, "")


def test_a_node_that_boots_too_late_is_down_until_somebody_looks_after_it() -> None:
    h = harness(boot_s=45)
    h.run(60)
    h.submit(required_nodes="n1")
    h.run(40)
    node = h.core.tables.nodes.nodes[0]
    assert (node.state, node.flags, node.reason) == (
        NodeState.DOWN,
        OFF | NodeFlag.NO_RESPOND,
        TIMED_OUT,
    )
    h.run(8)
    assert (node.state, node.flags, node.reason) == (NodeState.DOWN, NodeFlag.NONE, REBOOTED)


def test_a_node_that_is_off_and_put_back_into_service_is_unknown_until_it_boots(h: Harness) -> None:
    h.run(60)
    h.update_nodes("n1", state="drain", reason="x")
    h.update_nodes("n1", state="resume")
    node = h.core.tables.nodes.nodes[0]
    assert (node.flags, node.boot_time) == (OFF | NodeFlag.NO_RESPOND, None)
    job = h.submit(required_nodes="n1")
    h.run(40)
    assert job.flags == JobFlag.NONE
    assert h.launches(job)


def test_a_reboot_is_not_for_nodes_that_are_off_and_ends_when_one_is_switched_off(
    h: Harness,
) -> None:
    h.run(60)
    assert h.ask(RebootNodes("n1"), ROOT) == Ok()
    assert flags(h)[0] == OFF
    h.update_nodes("n2", state="power_up")
    h.run(10)
    h.ask(RebootNodes("n2", asap=True), ROOT)
    h.run(2)
    assert flags(h)[1] == NodeFlag.DRAIN | NodeFlag.REBOOT_ISSUED
    h.update_nodes("n2", state="power_down")
    h.run(1.1)
    node = h.core.tables.nodes.nodes[1]
    assert (node.state, node.flags, node.reason) == (NodeState.IDLE, FALLING, "")


def test_who_waits_himself_goes_on_as_soon_as_the_nodes_are_there(h: Harness) -> None:
    h.run(62)
    answer = h.ask(AllocateJob(JobSpec(name="j", required_nodes="n1")), ROOT)
    job = h.core.tables.jobs[answer.job_id]
    assert job.flags == JobFlag.CONFIGURING
    h.ask(AwaitJob(job.job_id, until_ready=True), ROOT)
    h.run(8)
    assert job.flags == JobFlag.NONE
    assert job.start_time == START + 68


def test_a_job_that_never_began_fails_without_a_signal_and_who_waits_for_it_hears_why() -> None:
    h = harness(boot_s=100)
    h.run(60)
    job = h.submit(required_nodes="n[1-2]", requeue=False)
    h.run(45)
    assert (job.state, job.exit_code, job.exit_signal) == (JobState.NODE_FAIL, 0, 0)
    assert job.notice == "error: Node failure on n[1-2]"
