"""Limits of associations and qualities of service, from submission to the end. Reasons and
precedence as recorded from real Slurm 22.05.8.

Covers: controller/edge/limits, controller/enforcement/line, controller/enforcement/use.
"""

from __future__ import annotations

from typing import Any

import pytest
from controller_harness import OTHER, ROOT, USER, FakeSender
from enforcement_harness import WAIT_S, House, submit, sums

from understudy.controller.tables.allocation import Allocation, ShareGroup
from understudy.controller.tables.gres import Held
from understudy.model.associations import Association, AssociationState
from understudy.model.errors import ERROR_TEXT, ErrorCode
from understudy.model.qos import Qos
from understudy.protocol.messages import (
    CancelJobs,
    ControlJobs,
    Emulation,
    Failure,
    JobSpec,
    SubmitJob,
    Submitted,
    UpdateJobs,
)

SIZE = {"num_tasks": 8, "min_nodes": 2, "time_limit_s": 300}

# Association's limit, QOS's limit, and the reasons; all are broken by a job of SIZE.
BROKEN: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    (
        {"max_tres_per_job": {"cpu": 4}},
        {"max_tres_per_job": {"cpu": 4}},
        "AssocMaxCpuPerJobLimit",
        "QOSMaxCpuPerJobLimit",
    ),
    (
        {"max_tres_per_job": {"node": 1}},
        {"max_tres_per_job": {"node": 1}},
        "AssocMaxNodePerJobLimit",
        "QOSMaxNodePerJobLimit",
    ),
    (
        {"max_tres_per_job": {"billing": 4}},
        {"max_tres_per_job": {"billing": 4}},
        "AssocMaxBillingPerJob",
        "QOSMaxBillingPerJob",
    ),
    (
        {"max_tres_per_node": {"cpu": 3}},
        {"max_tres_per_node": {"cpu": 3}},
        "AssocMaxCpuPerNode",
        "QOSMaxCpuPerNode",
    ),
    (
        {"max_wall": 2},
        {"max_wall": 2},
        "AssocMaxWallDurationPerJobLimit",
        "QOSMaxWallDurationPerJobLimit",
    ),
    ({"grp_tres": {"cpu": 4}}, {"grp_tres": {"cpu": 4}}, "AssocGrpCpuLimit", "QOSGrpCpuLimit"),
    ({"grp_tres": {"node": 1}}, {"grp_tres": {"node": 1}}, "AssocGrpNodeLimit", "QOSGrpNodeLimit"),
    (
        {"grp_tres_run_mins": {"cpu": 10}},
        {"grp_tres_run_mins": {"cpu": 10}},
        "AssocGrpCPURunMinutesLimit",
        "QOSGrpCPURunMinutesLimit",
    ),
    (
        {"grp_tres_mins": {"cpu": 0}},
        {"grp_tres_mins": {"cpu": 0}},
        "AssocGrpCPUMinutesLimit",
        "QOSGrpCPUMinutesLimit",
    ),
    (
        {"max_tres_mins_per_job": {"cpu": 10}},
        {"max_tres_mins_per_job": {"cpu": 10}},
        "AssocMaxCpuMinutesPerJobLimit",
        "QOSMaxCpuMinutesPerJobLimit",
    ),
    ({"grp_wall": 0}, {"grp_wall": 0}, "AssocGrpWallLimit", "QOSGrpWallLimit"),
    ({"grp_jobs": 0}, {"grp_jobs": 0}, "AssocGrpJobsLimit", "QOSGrpJobsLimit"),
    ({"max_jobs": 0}, {"max_jobs_per_user": 0}, "AssocMaxJobsLimit", "QOSMaxJobsPerUserLimit"),
    ({}, {"max_jobs_per_account": 0}, "", "MaxJobsPerAccount"),
    ({}, {"max_tres_per_user": {"cpu": 4}}, "", "QOSMaxCpuPerUserLimit"),
    ({}, {"max_tres_per_user": {"node": 1}}, "", "QOSMaxNodePerUserLimit"),
    ({}, {"max_tres_per_account": {"cpu": 4}}, "", "MaxCpuPerAccount"),
    ({}, {"min_tres_per_job": {"cpu": 100}}, "", "QOSMinCpuNotSatisfied"),
    ({}, {"min_tres_per_job": {"node": 3}}, "", "QOSMinNode"),
]
NOT_AT_SUBMISSION = ("JobsLimit", "JobsPerAccount", "JobsPerUserLimit")


def end_period(house: House) -> None:
    """A period ends, and the schedulers look at all jobs again."""
    house.run(60)
    house.set_association(6)
    house.run(WAIT_S)


def answer(house: House, sender: Any = USER, **spec: Any) -> Any:
    return house.ask(
        SubmitJob(
            JobSpec(**{"name": "j", "work_dir": "/"} | spec), "#!/bin/sh\n", Emulation(100.0)
        ),
        sender,
    )


@pytest.mark.parametrize(
    ("association", "_qos", "reason", "_other"), [each for each in BROKEN if each[2]]
)
@pytest.mark.parametrize("number", [4, 3, 2])
def test_an_associations_limit_keeps_a_job_waiting_alone(
    association: Any, _qos: Any, reason: str, _other: str, number: int
) -> None:
    house = House()
    house.set_association(number, **association)
    blocked, free = submit(house, **SIZE), submit(house, OTHER, account="other")
    house.run(WAIT_S)
    assert (blocked.reason, free.is_running) == (reason, True)
    house.set_association(
        number,
        **{name: {} if isinstance(value, dict) else None for name, value in association.items()},
    )
    house.run(WAIT_S)
    assert blocked.is_running


@pytest.mark.parametrize(("_association", "qos", "_other", "reason"), BROKEN)
def test_a_qos_limit_keeps_a_job_waiting_alone(
    _association: Any, qos: Any, _other: str, reason: str
) -> None:
    house = House()
    house.set_qos("q", **qos)
    blocked, free = submit(house, **SIZE, qos="q"), submit(house)
    house.run(WAIT_S)
    assert (blocked.reason, free.is_running) == (reason, True)
    house.set_qos(
        "q", **{name: {} if isinstance(value, dict) else None for name, value in qos.items()}
    )
    house.run(WAIT_S)
    assert blocked.is_running


@pytest.mark.parametrize(("association", "qos", "reason", "qos_reason"), BROKEN)
def test_who_could_never_start_is_refused_where_the_qos_says_so(
    association: Any, qos: Any, reason: str, qos_reason: str
) -> None:
    house = House()
    house.set_qos("q", flags=("DenyOnLimit",))
    house.set_association(4, **association)
    for own_reason in (reason, qos_reason):
        said = answer(house, **SIZE, qos="q")
        if own_reason.endswith(NOT_AT_SUBMISSION) or not own_reason:
            assert not isinstance(said, Failure)
        else:
            assert said == Failure(2050, f"{own_reason}\n{ERROR_TEXT[2050]}")
        house.set_association(
            4,
            **{
                name: {} if isinstance(value, dict) else None for name, value in association.items()
            },
        )
        house.set_qos("q", **qos)


TWO = {"cpu": 1, "mem": 50}
# Limits that a job of SIZE breaks all, in the order in which it is refused for them.
DENIED_BY_QOS: list[tuple[str, Any, list[str]]] = [
    ("max_tres_per_account", TWO, ["MaxCpuPerAccount", "MaxMemoryPerAccount"]),
    ("max_tres_per_user", {"cpu": 1}, ["QOSMaxCpuPerUserLimit"]),
    ("grp_tres", {"cpu": 1, "mem": 50}, ["QOSGrpCpuLimit"]),
    ("max_tres_per_user", {"mem": 50}, ["QOSMaxMemoryPerUser"]),
    ("grp_tres", {"mem": 50}, ["QOSGrpMemLimit"]),
    ("max_tres_mins_per_job", TWO, ["QOSMaxCpuMinutesPerJobLimit", "QOSMaxMemoryMinutesPerJob"]),
    ("grp_tres_mins", TWO, ["QOSGrpCPUMinutesLimit", "QOSGrpMemoryMinutes"]),
    ("grp_tres_run_mins", TWO, ["QOSGrpCPURunMinutesLimit", "QOSGrpMemoryRunMinutes"]),
    ("max_wall", 1, ["QOSMaxWallDurationPerJobLimit"]),
    ("grp_wall", 0, ["QOSGrpWallLimit"]),
    ("max_tres_per_job", {"cpu": 1, "node": 1}, ["QOSMaxCpuPerJobLimit", "QOSMaxNodePerJobLimit"]),
    ("max_tres_per_node", {"cpu": 1}, ["QOSMaxCpuPerNode"]),
    ("min_tres_per_job", {"cpu": 50, "mem": 90000}, ["QOSMinCpuNotSatisfied", "QOSMinMemory"]),
]
DENIED_BY_ASSOCIATION: list[tuple[str, Any, list[str]]] = [
    ("grp_tres", {"cpu": 1, "node": 1}, ["AssocGrpCpuLimit", "AssocGrpNodeLimit"]),
    ("grp_tres_mins", TWO, ["AssocGrpCPUMinutesLimit", "AssocGrpMemMinutes"]),
    ("grp_tres_run_mins", TWO, ["AssocGrpCPURunMinutesLimit", "AssocGrpMemRunMinutes"]),
    ("grp_wall", 0, ["AssocGrpWallLimit"]),
    ("max_tres_per_job", TWO, ["AssocMaxCpuPerJobLimit", "AssocMaxMemPerJob"]),
    ("max_tres_per_node", {"cpu": 1}, ["AssocMaxCpuPerNode"]),
    ("max_tres_mins_per_job", TWO, ["AssocMaxCpuMinutesPerJobLimit", "AssocMaxMemMinutesPerJob"]),
    ("max_wall", 1, ["AssocMaxWallDurationPerJobLimit"]),
]


@pytest.mark.parametrize("of_qos", [True, False])
def test_of_several_limits_a_submission_is_held_against_the_first(of_qos: bool) -> None:
    house = House()
    house.set_qos("q", flags=("DenyOnLimit",))
    order = DENIED_BY_QOS if of_qos else DENIED_BY_ASSOCIATION
    limits: dict[str, Any] = {}
    for name, value, _ in order:
        limits[name] = {**limits.get(name, {}), **value} if isinstance(value, dict) else value
    for name, _, said in order:
        for reason in said:
            if of_qos:
                house.set_qos("q", **limits)
            else:
                house.set_association(4, **limits)
            assert answer(house, **SIZE, qos="q", mem_per_cpu_mb=60) == Failure(
                2050, f"{reason}\n{ERROR_TEXT[2050]}"
            )
            if isinstance(limits[name], dict):
                limits[name] = dict(list(limits[name].items())[1:])
            else:
                limits[name] = None


def test_a_submission_that_asks_for_all_memory_counts_for_a_nodes() -> None:
    house = House()
    house.set_qos("q", flags=("DenyOnLimit",), max_tres_per_job={"mem": 100})
    assert isinstance(answer(house, qos="q", mem_per_node_mb=90), Submitted)
    assert answer(house, qos="q", mem_per_node_mb=0) == Failure(
        2050, f"QOSMaxMemoryPerJob\n{ERROR_TEXT[2050]}"
    )


@pytest.mark.parametrize(
    ("where", "limits", "reason"),
    [
        (4, {"max_submit_jobs": 2}, "AssocMaxSubmitJobLimit"),
        (2, {"grp_submit_jobs": 2}, "AssocGrpSubmitJobsLimit"),
        ("q", {"grp_submit_jobs": 2}, "QOSGrpSubmitJobsLimit"),
        ("q", {"max_submit_jobs_per_user": 2}, "QOSMaxSubmitJobPerUserLimit"),
        ("q", {"max_submit_jobs_per_account": 2}, "MaxSubmitJobsPerAccount"),
    ],
)
def test_one_job_too_many_is_refused(where: Any, limits: Any, reason: str) -> None:
    house = House()
    (house.set_qos if isinstance(where, str) else house.set_association)(where, **limits)
    refusal = Failure(2050, f"{reason}\n{ERROR_TEXT[2050]}")
    assert answer(house, qos="q", array="0-2") == refusal
    first = submit(house, qos="q")
    house.run(WAIT_S)
    assert answer(house, qos="q", array="0-1") == refusal
    submit(house, qos="q", hold=True)
    assert answer(house, qos="q") == refusal
    house.finish(first)
    submit(house, qos="q")


def test_a_limit_of_the_qos_goes_before_the_associations() -> None:
    house = House()
    house.set_qos("q", grp_tres={"cpu": 12}, max_tres_per_job={"cpu": 8})
    house.set_association(3, grp_tres={"cpu": 6}, max_tres_per_job={"cpu": 4})
    first, second, plain = (
        submit(house, num_tasks=6, qos="q"),
        submit(house, num_tasks=7, qos="q"),
        submit(house, num_tasks=5),
    )
    house.run(WAIT_S)
    assert first.is_running
    assert (second.reason, plain.reason) == ("QOSGrpCpuLimit", "AssocMaxCpuPerJobLimit")


def test_the_partitions_qos_goes_before_the_jobs_unless_that_says_otherwise() -> None:
    house = House()
    house.core.tables.partitions["main"].qos = "part"
    house.set_qos("part", max_tres_per_job={"cpu": 4})
    house.set_qos("q", max_tres_per_job={"cpu": 8})
    house.set_qos("over", max_tres_per_job={"cpu": 8}, flags=("OverPartQOS",))
    jobs = [submit(house, num_tasks=6, qos=qos) for qos in ("q", "over", "normal")]
    house.run(WAIT_S)
    assert [job.reason for job in jobs] == ["QOSMaxCpuPerJobLimit", "None", "QOSMaxCpuPerJobLimit"]
    assert jobs[1].is_running


def test_the_reasons_come_in_slurms_order() -> None:
    house = House()
    before = {
        "grp_jobs": 0,
        "grp_wall": 0,
        "max_jobs_per_account": 0,
        "max_jobs_per_user": 0,
        "max_wall": 1,
    }
    after = {
        "grp_tres_mins": {"cpu": 0},
        "grp_tres": {"cpu": 1},
        "grp_tres_run_mins": {"cpu": 1},
        "max_tres_mins_per_job": {"cpu": 1},
        "max_tres_per_job": {"cpu": 1},
        "max_tres_per_node": {"cpu": 1},
        "min_tres_per_job": {"cpu": 99},
        "max_tres_per_account": {"cpu": 1},
        "max_tres_per_user": {"cpu": 1},
    }
    house.set_qos("q", **before, **after)
    job = submit(house, **SIZE, qos="q")
    seen = []
    for name in (*before, *after):
        main = house.core.tables.partitions["main"]
        seen.append(
            house.limits.before(job, main, house.time.now())
            or house.limits.by_request(job, main, house.time.now())
        )
        house.set_qos("q", **{name: {} if name in after else None})
    assert seen == [
        "QOSGrpJobsLimit",
        "QOSGrpWallLimit",
        "MaxJobsPerAccount",
        "QOSMaxJobsPerUserLimit",
        "QOSMaxWallDurationPerJobLimit",
        "QOSGrpCPUMinutesLimit",
        "QOSGrpCpuLimit",
        "QOSGrpCPURunMinutesLimit",
        "QOSMaxCpuMinutesPerJobLimit",
        "QOSMaxCpuPerJobLimit",
        "QOSMaxCpuPerNode",
        "QOSMinCpuNotSatisfied",
        "MaxCpuPerAccount",
        "QOSMaxCpuPerUserLimit",
    ]


def test_a_job_at_its_limit_holds_nobody_back_even_if_it_does_not_fit() -> None:
    house = House()
    house.set_qos("q", grp_tres={"cpu": 4}, priority=1)
    fillers = [
        submit(house, OTHER, account="other", min_nodes=1, num_tasks=7, time_limit_s=3600)
        for _ in range(4)
    ]
    house.run(WAIT_S)
    blocked = submit(house, qos="q", num_tasks=8, min_nodes=1)
    behind = submit(house, num_tasks=1)
    house.run(5)
    assert all(job.is_running for job in fillers)
    assert (blocked.reason, behind.is_running) == ("QOSGrpCpuLimit", True)


@pytest.mark.parametrize(
    ("limits", "passes"), [({}, False), ({"min_prio_threshold": 1 << 33}, True)]
)
def test_a_job_below_the_priority_threshold_starts_if_it_can_but_holds_nobody_back(
    limits: Any, passes: bool
) -> None:
    house = House(parameters={"bf_interval": "-1"})
    house.set_qos("q", **limits)
    assert submit(house, qos="q", num_tasks=28, min_nodes=4).is_pending
    house.run(5)
    waiting, behind = submit(house, qos="q", num_tasks=8, min_nodes=1), submit(house, num_tasks=1)
    house.run(WAIT_S)
    assert (waiting.reason, behind.is_running) == ("Resources", passes)
    assert len(house.core.tables.running) == 1 + passes


@pytest.mark.parametrize(
    ("limits", "stops"),
    [
        ({"max_jobs": 0}, False),
        ({"grp_jobs": 0}, False),
        ({"grp_tres": {"cpu": 1}}, True),
        ({"grp_tres_run_mins": {"cpu": 1}}, True),
    ],
)
def test_with_assoc_limit_stop_a_limit_by_resource_is_as_good_as_a_lack_of_nodes(
    limits: Any, stops: bool
) -> None:
    """In the main pass alone, and what is behind in the queue does not get the nodes elsewhere."""
    house = House(parameters={"assoc_limit_stop": "", "bf_interval": "-1"})
    house.set_association(4, **limits)
    blocked, behind = submit(house, num_tasks=2), submit(house, OTHER)
    elsewhere = submit(house, OTHER, partition="small")
    house.run(WAIT_S)
    assert blocked.reason.startswith("Assoc")
    assert (behind.is_running, elsewhere.is_running) == (not stops, not stops)
    assert not stops or behind.reason == "Priority"


def test_backfill_is_content_with_the_time_of_time_min_where_a_limit_forbids_more() -> None:
    house = House()
    house.set_qos("q", max_wall=5)
    job = house.submit(qos="q", time_limit_s=540, time_min_s=60)
    house.run(WAIT_S)
    assert (job.is_running, job.time_limit_s) == (True, 60)
    longer = house.submit(qos="q", time_limit_s=540, time_min_s=360)
    house.run(120)
    assert (longer.reason, longer.time_limit_s) == ("QOSMaxWallDurationPerJobLimit", 540)


def test_with_assoc_limit_stop_backfill_passes_a_job_at_its_limit() -> None:
    house = House(parameters={"assoc_limit_stop": "", "bf_interval": "10"})
    house.set_association(4, grp_tres={"cpu": 1})
    blocked, behind = submit(house, num_tasks=2), submit(house, OTHER)
    house.run(WAIT_S)
    assert (blocked.reason, behind.is_running) == ("AssocGrpCpuLimit", True)


def test_nodes_count_once_however_many_jobs_share_them() -> None:
    house = House()
    house.set_qos("q", grp_tres={"node": 1})
    first, second = submit(house, qos="q"), submit(house, qos="q")
    third = submit(house, qos="q", num_tasks=8, min_nodes=1)
    house.run(WAIT_S)
    assert first.is_running
    assert second.is_running
    assert third.reason == "QOSGrpNodeLimit"
    for job in (first, second):
        house.finish(job)
        house.epilog(job)
    house.run(WAIT_S)
    assert third.is_running


def test_nodes_count_where_they_are_limited_also_those_of_jobs_freed_by_their_qos() -> None:
    """First what a QOS says of nodes holds for its jobs, then the association's for another job."""
    house = House()
    house.set_qos("q", grp_tres={"node": 2})
    house.set_association(4, grp_tres={"node": 2})
    first = submit(house, qos="q", num_tasks=16)
    house.run(WAIT_S)
    assert first.is_running
    second = submit(house)
    house.run(WAIT_S)
    assert second.reason == "AssocGrpNodeLimit"


def test_who_takes_any_number_of_nodes_gets_no_more_than_the_limit() -> None:
    house = House()
    house.set_association(2, grp_tres={"node": 2})
    job = submit(house, min_nodes=1, max_nodes=3, num_tasks=3)
    house.run(WAIT_S)
    assert job.allocation is not None
    assert job.allocation.node_count <= 2


@pytest.mark.parametrize(
    "limits",
    [
        {"max_tres_per_job": {"node": 2}},
        {"grp_tres": {"node": 2}},
        {"max_tres_per_user": {"node": 2}},
    ],
)
def test_a_job_with_more_nodes_for_its_tasks_than_the_limit_is_refused_or_has_bad_constraints(
    limits: Any,
) -> None:
    """Slurm 22.05.8: refused; held with BadConstraints if the limit was set while it waited; who
    asks for so many nodes waits for the limit.
    """
    house = House()
    busy = submit(house, qos="over", num_tasks=32)
    house.run(WAIT_S)
    before = submit(house, qos="q", num_tasks=17)
    house.set_qos("q", **limits)
    for spec in ({"num_tasks": 17}, {"num_tasks": 6, "ntasks_per_node": 2}):
        assert answer(house, qos="q", **spec) == Failure(2014, ERROR_TEXT[2014])
    waiting = submit(house, qos="q", min_nodes=3)
    within = submit(house, qos="q", num_tasks=16)
    house.finish(busy)
    house.epilog(busy)
    house.run(WAIT_S)
    assert (before.is_pending, before.reason, before.priority) == (True, "BadConstraints", 0)
    assert "Node" in waiting.reason
    assert within.allocation is not None
    assert within.allocation.node_count == 2


@pytest.mark.parametrize("is_idle", [True, False])
@pytest.mark.parametrize(
    ("asked", "is_within"),
    [
        ({"num_tasks": 24}, False),
        ({"num_tasks": 20}, True),
        ({"num_tasks": 23, "min_nodes": 3}, True),
        ({"num_tasks": 24, "min_nodes": 3}, False),
        ({"num_tasks": 24, "min_nodes": 1, "max_nodes": 4}, True),
        ({"num_tasks": 3, "cpus_per_task": 8}, False),
    ],
)
def test_what_a_job_takes_of_a_node_is_counted_on_average_and_rounded_down(
    asked: dict[str, int],
    is_within: bool,
    is_idle: bool,
) -> None:
    """Slurm 22.05.8; also while no nodes are found, of the nodes that it is shown to ask for."""
    house = House()
    house.set_association(3, max_tres_per_node={"cpu": 7})
    if not is_idle:
        other = submit(house, OTHER, account="other", num_tasks=32)
        house.run(WAIT_S)
        assert other.is_running
    job = submit(house, **asked)
    house.run(WAIT_S)
    if is_within:
        assert job.is_running if is_idle else job.reason == "Resources"
    else:
        assert job.reason == "AssocMaxCpuPerNode"


def test_only_so_many_pending_jobs_grow_old_as_may() -> None:
    house = House()
    house.set_qos("q", grp_jobs=0, grp_jobs_accrue=1)
    first, second, third = (submit(house, qos="q") for _ in range(3))
    house.run(WAIT_S)
    assert [job.accrues for job in (first, second, third)] == [True, False, False]
    house.set_qos("q", max_jobs_accrue_per_user=2, grp_jobs_accrue=2)
    end_period(house)
    assert [job.accrues for job in (first, second, third)] == [True, True, False]
    assert (first.accrue_time, second.accrue_time is not None) == (None, True)
    house.ask(CancelJobs([str(first.job_id)]), USER)
    fourth = submit(house, qos="q")
    house.run(WAIT_S)
    # who has been refused is looked at again at the end of a period
    assert (third.accrues, fourth.accrues) == (False, True)
    house.ask(CancelJobs([str(second.job_id)]), USER)
    end_period(house)
    assert third.accrues


def test_tasks_of_arrays_grow_old_one_by_one_where_that_is_limited() -> None:
    house = House()
    house.set_qos("q", grp_jobs=0, grp_jobs_accrue=3)
    small, large = submit(house, qos="q", array="1-2"), submit(house, qos="q", array="1-4")
    house.run(WAIT_S)
    records = [
        (job.job_id, job.array_task_id, job.accrues) for job in house.core.tables.pending.values()
    ]
    assert sorted(records) == [(1, 2, True), (2, None, False), (3, 1, True), (4, 1, True)]
    assert (
        small.array_tasks.bit_count(),
        large.array_tasks.bit_count(),
        house.limits.of_qos["q"].whole.accruing,
    ) == (0, 3, 3)
    house.ask(CancelJobs(["1_1"]), USER)
    assert house.limits.of_qos["q"].whole.accruing == 2
    house.run(WAIT_S)
    assert len(house.core.tables.pending) == 3
    end_period(house)
    assert [
        job.array_task_id
        for job in house.core.tables.pending.values()
        if job.accrues and job.array is large.array
    ] == [1, 2]


def test_an_array_whose_age_nobody_limits_stays_one_record_and_counts_with_all_its_tasks() -> None:
    house = House()
    house.set_qos("q", grp_jobs=0)
    submit(house, qos="q", array="1-3")
    house.run(WAIT_S)
    assert (len(house.core.tables.pending), house.limits.of_qos["q"].whole.accruing) == (1, 3)


def test_a_job_without_a_limit_gets_the_longest_that_it_may_have() -> None:
    house = House()
    main = house.core.tables.partitions["main"]
    main.default_time_s = None
    house.set_association(4, max_wall=7)
    assert submit(house).time_limit_s == 420
    house.set_qos("q", max_wall=3)
    assert submit(house, qos="q").time_limit_s == 180


def test_what_an_administrator_sets_is_not_limited() -> None:
    house = House()
    house.set_qos("q", max_wall=5)
    job = submit(house, qos="q", time_limit_s=120, hold=True)
    house.ask(UpdateJobs([str(job.job_id)], {"TimeLimit": "8"}), ROOT)
    house.ask(ControlJobs("release", [str(job.job_id)]), ROOT)
    house.run(WAIT_S)
    assert job.is_running


def test_an_update_goes_to_an_account_and_qos_that_the_user_may_have() -> None:
    house = House()
    house.set_qos("over", max_submit_jobs_per_user=0)
    job = submit(house, hold=True)

    def update(sender: Any, **changes: str) -> int:
        return house.ask(UpdateJobs([str(job.job_id)], changes), sender).results[0][1]

    assert update(USER, qos="part") == update(USER, qos="nope") == update(ROOT, qos="nope") == 2066
    assert update(USER, account="other") == update(ROOT, account="other") == 2045
    assert update(USER, qos="over") == 2050
    assert (update(USER, qos="q"), job.spec.qos) == (0, "q")
    assert (update(ROOT, qos="part"), job.spec.qos) == (0, "part")
    assert sums(house.limits)["part"][1] == 1
    assert "q" not in sums(house.limits)


def test_a_limit_factor_widens_the_associations_limits() -> None:
    house = House()
    house.set_association(3, grp_tres={"cpu": 4})
    house.set_qos("q", limit_factor=2.0)
    wide, plain = submit(house, qos="q", num_tasks=8), submit(house, num_tasks=8)
    house.run(WAIT_S)
    assert (wide.is_running, plain.reason) == (True, "AssocGrpCpuLimit")


def test_a_qos_may_pass_the_partitions_limits() -> None:
    house = House()
    job = submit(house, partition="small", qos="q", time_limit_s=1200)
    house.run(WAIT_S)
    assert job.reason == "PartitionTimeLimit"
    house.set_qos("q", flags=("PartitionTimeLimit",))
    other = submit(house, partition="small", qos="q", time_limit_s=1200)
    house.run(WAIT_S)
    assert other.is_running


def test_who_may_not_have_the_qos_any_more_waits() -> None:
    house = House()
    job = submit(house, qos="q", begin_time=house.time.now() + 10)
    house.set_association(3, delta_qos=())
    house.run(2 * WAIT_S)
    assert job.reason == "InvalidQOS"
    house.set_association(3, delta_qos=("+q",))
    house.run(WAIT_S)
    assert job.is_running


def test_who_waits_counts_as_submitted_when_his_association_has_lost_his_qos() -> None:
    house = House()
    house.set_association(4, grp_submit_jobs=2)
    submit(house, qos="q", hold=True)
    submit(house, qos="q", hold=True)
    house.set_association(3, delta_qos=())
    answer = house.ask(SubmitJob(JobSpec(name="j", work_dir="/"), "#!/bin/sh\n"))
    assert isinstance(answer, Failure)
    assert answer.code == ErrorCode.VIOLATES_POLICY


def test_who_runs_counts_in_his_qos_as_long_as_he_does() -> None:
    house = House()
    house.set_qos("q", grp_jobs=1)
    first, second = submit(house, qos="q"), submit(house, OTHER, qos="q")
    house.run(WAIT_S)
    assert (first.is_running, second.reason) == (True, "QOSGrpJobsLimit")
    house.set_association(4, qos=("normal",))
    house.run(WAIT_S)
    assert second.is_pending
    house.finish(first)
    house.epilog(first)
    house.run(WAIT_S)
    assert second.is_running


def test_sums_are_counted_at_every_level_and_come_back_to_nothing() -> None:
    house = House()
    house.set_qos("q", grp_tres={"node": 9})
    job = submit(house, **SIZE, qos="q")
    house.run(WAIT_S)
    held = sums(house.limits)
    for where in ("a4", "a3", "a2", "a1", "q", "q 1000", "q lower"):
        assert held[where][:2] == (1, 1), where
        assert held[where][2] == {"cpu": 8, "mem": 80, "node": 2, "billing": 8}
    house.finish(job)
    assert sums(house.limits) == {}


def test_sums_are_the_same_when_they_are_made_again() -> None:
    house = House()
    submit(house, **SIZE, qos="q")
    submit(house, qos="q", array="0-5%2")
    submit(house, OTHER, account="other", hold=True)
    house.run(WAIT_S)
    before = sums(house.limits)
    house.set_qos("q", grp_jobs=99)
    assert sums(house.limits) == before


def test_nothing_is_enforced_that_slurm_conf_does_not_name() -> None:
    house = House(enforce="associations")
    house.set_association(2, grp_jobs=0)
    assert answer(house, OTHER, account="none").code == 2045
    job = submit(house, qos="part")
    house.run(WAIT_S)
    assert job.is_running
    job = House(enforce="none").submit(OTHER, account="none", qos="none")
    assert (job.spec.account, job.spec.qos) == ("lower", ""), "the default one, and no such QOS"


def test_nodes_in_use_come_first_for_whom_nodes_are_limited() -> None:
    house = House()
    house.set_association(2, grp_tres={"node": 3})
    for tasks, account in ((7, "other"), (4, "")):
        submit(house, OTHER, account=account, num_tasks=tasks, min_nodes=1, max_nodes=1)
    limited, free = (
        submit(house, OTHER, num_tasks=1),
        submit(house, OTHER, account="other", num_tasks=1),
    )
    house.run(WAIT_S)
    assert (limited.node_list, free.node_list) == ("n2", "n1"), "the least that suffices is on n1"


def test_who_finds_no_nodes_and_has_too_many_already_lets_others_pass() -> None:
    house = House()
    house.set_association(2, grp_tres={"node": 3})
    submit(house, OTHER, min_nodes=2, num_tasks=2, ntasks_per_node=1)
    for _ in range(2):
        submit(house, OTHER, account="other", min_nodes=1, max_nodes=1, num_tasks=8)
    wide = submit(house, OTHER, min_nodes=2, num_tasks=16, ntasks_per_node=8)
    small = submit(house, OTHER, account="other", num_tasks=1)
    house.run(WAIT_S)
    assert wide.reason == "AssocGrpNodeLimit"
    assert small.is_running


def test_while_accounting_knows_root_alone_it_is_enforced_for_root_alone() -> None:
    house = House(enforce="associations")
    root = [
        Association(1, "c", "root", qos=("normal",)),
        Association(2, "c", "root", "root", parent_id=1, is_default=True),
    ]
    house.core.associations = AssociationState("c", 1, associations=root, qos=[Qos(1, "normal")])
    assert answer(house, ROOT, account="nosuch").code == 2045
    assert isinstance(answer(house, ROOT), Submitted)
    assert isinstance(answer(house, OTHER, account="nosuch"), Submitted)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"grp_jobs": 1}, "QOSGrpJobsLimit"), ({"grp_tres": {"node": 2}}, "QOSGrpNodeLimit")],
)
def test_components_of_a_heterogeneous_job_count_together(limits: Any, reason: str) -> None:
    """Slurm 22.05.8: it waits, and the component that is too much says why."""
    house = House()
    house.set_qos("q", **limits)
    specs = [JobSpec(name="h", work_dir="/", qos="q", min_nodes=nodes) for nodes in (2, 1)]
    said = house.ask(
        SubmitJob(specs[0], "#!/bin/sh\n", Emulation(100.0), components=specs[1:]), USER
    )
    assert isinstance(said, Submitted)
    house.run(WAIT_S)
    parts = [house.core.tables.jobs[said.job_id + offset] for offset in (0, 1)]
    assert [job.is_pending for job in parts] == [True, True]
    assert parts[1].reason == reason
    house.set_qos(
        "q", **{name: {} if isinstance(value, dict) else None for name, value in limits.items()}
    )
    house.run(WAIT_S)
    assert [job.is_running for job in parts] == [True, True]


@pytest.mark.parametrize(("most", "is_taken"), [(1, False), (2, True)])
def test_components_of_a_heterogeneous_job_are_submitted_together(
    most: int, is_taken: bool
) -> None:
    house = House()
    house.set_association(3, grp_submit_jobs=most)
    specs = [JobSpec(name="h", work_dir="/") for _ in range(2)]
    said = house.ask(
        SubmitJob(specs[0], "#!/bin/sh\n", Emulation(100.0), components=specs[1:]), USER
    )
    assert isinstance(said, Submitted if is_taken else Failure)
    assert len(house.core.tables.pending) == 2 * is_taken
    assert isinstance(answer(house), Failure if is_taken else Submitted)


def test_all_devices_count_that_a_job_would_get_with_its_nodes() -> None:
    """Slurm 22.05.8: who has a node alone has all of its devices, and waits where his limit is
    less.
    """
    house = House()
    house.set_qos("q", max_tres_per_user={"gres/gpu": 2})
    job, partition = submit(house, qos="q"), house.core.tables.partitions["main"]
    for count, reason in ((2, ""), (4, "QOSMaxGRESPerUser")):
        held = Allocation.of_groups((ShareGroup(1, 8, 0xFF, 0, 1, (Held("gpu", "", count, 0),)),))
        assert house.limits.by_allocation(job, partition, held, 0.0) == reason


def test_who_has_no_association_has_the_normal_qos_where_nothing_is_enforced() -> None:
    house = House(enforce="")
    stranger = FakeSender(user_id=4242)
    assert house.submit(stranger).spec.qos == "normal"
    assert house.submit(stranger, qos="q").spec.qos == "q"
