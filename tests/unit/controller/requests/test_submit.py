"""What the controller takes and refuses, with Slurm's error numbers.

Covers: controller/facts/feasibility, controller/jobs/checks, controller/jobs/sizes,
controller/jobs/take_in, controller/pending/access.
"""

from __future__ import annotations

import inspect
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from controller_harness import OTHER, ROOT, START, USER, Harness, make_tables

from understudy.controller.facts.job import num_tasks
from understudy.controller.scheduling.select import request
from understudy.controller.tables import shape
from understudy.controller.tables.job import Job
from understudy.controller.tables.partition import Partition, limit_broken
from understudy.controller.tables.reservation import Reservation
from understudy.controller.tables.settings import Settings
from understudy.model.records import NO_TASKS
from understudy.model.states import JobState
from understudy.protocol.messages import (
    AllocateJob,
    ChangeNodeTable,
    Failure,
    JobSpec,
    Ok,
    SubmitJob,
    Submitted,
    UpdatePartition,
)


@pytest.fixture
def h() -> Harness:
    return Harness()


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"partition": "nosuch"}, 2000),
        ({"begin_time": float("inf")}, 2054),
        ({"deadline": float("nan")}, 2054),
        ({"min_nodes": 0}, 2006),
        ({"num_tasks": 5, "ntasks_per_node": 1}, 2014),
        ({"num_tasks": 5, "min_nodes": 1, "max_nodes": 1}, 2014),
        ({"cpus_per_task": 5}, 2014),
        ({"mem_per_node_mb": 5000}, 2014),
        ({"min_nodes": 3, "max_nodes": 2}, 2006),
        ({"num_tasks": 0}, 2025),
        ({"required_nodes": "n9"}, 2018),
        ({"required_nodes": "n[1-2"}, 2018),
        ({"required_nodes": "n1", "excluded_nodes": "n1"}, 2018),
        ({"required_nodes": "n1,n3", "excluded_nodes": "n2", "contiguous": True}, 2018),
        ({"required_nodes": "n1,n3", "min_nodes": 2, "max_nodes": 2, "contiguous": True}, 2006),
        ({"features": "nosuch"}, 2029),
        ({"features": "fast&nosuch"}, 2029),
        ({"licenses": "matlab"}, 2048),
        ({"prefer": "nosuch"}, 2133),
        ({"prefer": "fast", "min_nodes": 3}, 2014),
        ({"prefer": "fast", "required_nodes": "n3"}, 2014),
        ({"prefer": "nosuch*2"}, 2133),
        ({"prefer": "fast|nosuch"}, 2133),
        ({"prefer": "nosuch*"}, 2029),
        ({"prefer": "fast*"}, 2029),
        ({"prefer": "[fast"}, 2029),
        ({"gres": "gpu:1"}, 2072),
        ({"dependency": "bogus"}, 2038),
        ({"dependency": "afterok"}, 2038),
        ({"array": "3-1"}, 2081),
        ({"deadline": START - 10, "time_limit_s": 60}, 2051),
        ({"deadline": START + 10, "time_min_s": 60}, 2124),
        ({"partition": "small", "time_limit_s": 1200, "time_min_s": 660}, 2124),
        ({"batch_features": "fast"}, 2114),
        ({"extra": {"given_empty": "batch_features"}}, 2114),
        ({"extra": {"given_empty": "gres"}}, 2115),
        ({"extra": {"given_empty": "partition"}}, 2000),
        ({"extra": {"given_empty": "gres partition"}}, 2000),
        ({"extra": {"no_nodes": "1"}}, 2006),
        ({"extra": {"no_nodes": "1"}, "features": "nosuch"}, 2029),
        ({"licenses": "nosuch", "excluded_nodes": "nosuch", "features": "nosuch"}, 2048),
        ({"dependency": "nosuch", "features": "nosuch"}, 2038),
        ({"gres": "nosuch", "required_nodes": "nosuch", "partition": "nosuch"}, 2072),
        ({"required_nodes": "nosuch", "partition": "nosuch"}, 2018),
        ({"name": "x" * 1025}, 2012),
        ({"partition": "x" * 1025}, 2012),
        ({"extra": {"network": "x" * 1025}}, 2012),
        ({"work_dir": "/" * 4097}, 2012),
        ({"work_dir": "/home", "std_out": "x" * 4091}, 2012),
        ({"batch_features": "slow", "features": "fast"}, 2114),
    ],
)
def test_what_cannot_be_is_refused(h: Harness, spec: dict[str, Any], code: int) -> None:
    assert h.refused(**spec) == code
    assert not h.core.tables.pending


@pytest.mark.parametrize(("length", "answer"), [(4194304, Submitted), (4194305, Failure)])
def test_a_script_may_have_four_megabytes(h: Harness, length: int, answer: type) -> None:
    assert isinstance(h.ask(SubmitJob(JobSpec(), "x" * length), USER), answer)


def test_texts_may_be_as_long_as_slurm_takes_them(h: Harness) -> None:
    h.submit(name="x" * 1024, work_dir="/home", std_out="x" * 4090)


def test_a_refused_configuration_uses_up_a_job_id_and_leaves_a_failed_job(h: Harness) -> None:
    h.refused(cpus_per_task=5)
    (job,) = h.core.tables.jobs.values()
    assert (job.state, job.reason, job.job_id) == (JobState.FAILED, "BadConstraints", 1)
    # it has been looked at as any other
    assert (job.priority, job.last_sched_eval, job.accrues) == (4294901759, int(START), False)
    later = h.submit()
    assert (later.job_id, later.priority) == (2, 4294901758)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [({}, NO_TASKS), ({"num_tasks": 2}, 2), ({"min_nodes": 2, "ntasks_per_node": 3}, 6)],
)
def test_tasks_of_a_job_that_never_ran_are_known_if_they_were_asked_for(
    h: Harness, asked: dict[str, Any], shown: int
) -> None:
    job = h.submit(hold=True, **asked)
    assert num_tasks(h.core, job, START) == job.num_tasks
    h.cancel(job)
    assert num_tasks(h.core, job, START) == shown


def test_a_held_job_that_could_not_run_is_taken(h: Harness) -> None:
    assert h.submit(num_tasks=99, hold=True).reason == "JobHeldUser"


def test_more_memory_than_a_job_may_have_is_a_limit_and_not_impossible() -> None:
    job = Harness(settings=Settings(max_memory_per_node_mb=3000)).submit(mem_per_node_mb=5000)
    assert job.reason == "MaxMemPerLimit"


@pytest.mark.parametrize(
    ("asked", "is_broken"),
    [
        ({"mem_per_cpu_mb": 3001}, True),
        ({"mem_per_cpu_mb": 3000, "num_tasks": 8}, False),  # on as many nodes as it takes
        ({"mem_per_cpu_mb": 1600, "num_tasks": 8, "max_nodes": 4}, True),
        ({"mem_per_cpu_mb": 1500, "num_tasks": 8, "max_nodes": 4}, False),
        ({"mem_per_cpu_mb": 3000, "num_tasks": 6, "min_nodes": 4, "max_nodes": 4}, True),
        ({"mem_per_cpu_mb": 1600, "num_tasks": 6, "cpus_per_task": 2}, True),
        ({"mem_per_cpu_mb": 1439, "num_tasks": 3, "min_cpus_node": 3}, True),
        ({"mem_per_cpu_mb": 1439, "num_tasks": 3, "min_cpus_node": 2}, False),
        ({"mem_per_cpu_mb": 3000, "num_tasks": 1, "ntasks_per_node": 3}, True),
    ],
)
def test_memory_of_each_cpu_is_held_against_that_of_a_node_as_22_05_8_does(
    asked: dict[str, Any], is_broken: bool
) -> None:
    job = Harness(settings=Settings(max_memory_per_node_mb=3000)).submit(hold=True, **asked)
    where = Partition("p", max_memory_per_node_mb=3000, nodes=0b1111)
    assert (limit_broken(job, where) == "MaxMemPerLimit") is is_broken


def test_more_nodes_than_the_partition_has_are_a_limit_of_it(h: Harness) -> None:
    assert h.submit(min_nodes=5).reason == "PartitionNodeLimit"


@pytest.mark.parametrize(
    "spec",
    [
        {"num_tasks": 17},
        {"cpus_per_task": 17},
        {"num_tasks": 17, "required_nodes": "n1"},
        {"min_nodes": 5, "cpus_per_task": 4},
    ],
)
def test_a_job_larger_than_the_partition_waits_for_a_larger_one(
    h: Harness, spec: dict[str, Any]
) -> None:
    job = h.submit(**spec)
    assert (job.reason, job.is_pending, job.priority > 0) == ("PartitionConfig", True, True)


def test_a_job_larger_than_all_of_its_partitions_is_refused() -> None:
    tables = make_tables()
    tables.partitions["other"] = replace(tables.partitions["main"], name="other", is_default=False)
    h = Harness(tables)
    assert h.refused(num_tasks=17, partition="main,other") == 2014
    tables.partitions["main"].state = "DOWN"
    assert h.refused(num_tasks=17) == 2014


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"cpus_per_task": 5}, "CPU count per node"),
        ({"min_cpus_node": 5, "mem_per_node_mb": 99999}, "CPU count per node"),
        ({"num_tasks": 10, "ntasks_per_node": 5}, "CPU count per node"),
        ({"mem_per_node_mb": 5000, "tmp_disk_mb": 99999}, "Memory specification"),
        ({"mem_per_cpu_mb": 5000}, "Memory specification"),
        (
            {"tmp_disk_mb": 99999, "sockets_per_node": 9},
            "Temporary disk specification",
        ),
        ({"sockets_per_node": 9}, "Socket, core and/or thread specification"),
        ({"threads_per_core": 8}, "Socket, core and/or thread specification"),
    ],
)
def test_what_no_node_has_is_named(h: Harness, spec: dict[str, Any], what: str) -> None:
    answer = h.ask(SubmitJob(JobSpec(**spec), "#!/bin/sh\n"), USER)
    assert answer == Failure(
        2014, f"{what} can not be satisfied\nRequested node configuration is not available"
    )


def test_a_feature_that_no_node_has_costs_a_number(h: Harness) -> None:
    first = h.submit(hold=True).job_id
    assert h.refused(features="nix") == 2029
    assert h.submit(hold=True).job_id == first + 2


def test_a_range_of_nodes_asks_for_one_cpu(h: Harness) -> None:
    job = h.submit(min_nodes=2, max_nodes=3, hold=True)
    assert (job.min_cpus, job.num_tasks) == (1, 2)
    assert h.submit(min_nodes=2, max_nodes=2, hold=True).min_cpus == 2


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        ({"num_tasks": 9}, 3),
        ({"num_tasks": 3, "cpus_per_task": 3}, 3),
        ({"min_nodes": 2, "max_nodes": 3}, 3),
        ({"num_tasks": 20, "overcommit": True}, 1),
        ({"num_tasks": 20}, 5),
        ({"num_tasks": 9, "hold": True}, 3),
        ({"min_nodes": 2, "max_nodes": 3, "hold": True}, 2),
        ({"num_tasks": 20, "overcommit": True, "hold": True}, 5),
        ({"num_tasks": 20, "overcommit": True, "min_nodes": 1, "max_nodes": 1, "hold": True}, 5),
        ({"num_tasks": 1, "cpus_per_task": 2, "hold": True}, 2),
        ({"num_tasks": 4, "cpus_per_task": 2, "hold": True}, 2),
        ({"num_tasks": 3, "cpus_per_task": 2, "min_nodes": 2, "max_nodes": 3, "hold": True}, 3),
        ({"cpus_per_task": 2, "hold": True}, 1),
        ({"num_tasks": 5, "ntasks_per_node": 2, "hold": True}, 2),
        ({"num_tasks": 20, "min_nodes": 2, "max_nodes": 2}, 5),
    ],
)
def test_a_pending_job_shows_the_nodes_that_it_would_get(
    h: Harness, spec: dict[str, Any], nodes: int
) -> None:
    h.submit(num_tasks=16)
    job = h.submit(**spec)
    assert h.query("jobs", "node_count", job_id=[job.job_id]) == [[nodes]]


def test_no_default_partition_is_an_error() -> None:
    tables = make_tables()
    tables.partitions["main"].is_default = False
    assert Harness(tables).refused() == 2001


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"partition": "small", "time_limit_s": 1200}, "PartitionTimeLimit"),
        ({"partition": "small", "time_limit_s": -1}, "PartitionTimeLimit"),
        ({"partition": "small", "min_nodes": 2}, "PartitionNodeLimit"),
        ({"partition": "small", "min_nodes": 2, "time_limit_s": 1200}, "PartitionNodeLimit"),
    ],
)
def test_a_partitions_limits_keep_a_job_waiting_or_refuse_it(
    spec: dict[str, Any], reason: str
) -> None:
    h = Harness()
    job = h.submit(**spec)
    assert (job.is_pending, job.reason) == (True, reason)
    strict = Harness(settings=Settings(enforce_part_limits="ALL"))
    assert strict.refused(**spec) in (2051, 2006)


def test_an_array_that_is_refused_was_never_eligible(h: Harness) -> None:
    for spec in ({}, {"array": "1,3"}, {"array": "1", "begin_time": h.time.now() + 100}):
        h.refused(min_nodes=4, mem_per_node_mb=10**9, **spec)
    now = int(h.time.now())
    assert [job.eligible_time for job in h.core.tables.jobs.values()] == [now, None, now + 100]


def test_memory_beyond_a_partitions_limit_is_refused_last_and_told_first() -> None:
    def beyond(rule: str) -> Harness:
        h = Harness(settings=Settings(enforce_part_limits=rule))
        small = h.core.tables.partitions["small"]
        small.max_memory_per_node_mb, small.deny_qos = 10, ("normal",)
        return h

    spec = {"partition": "small", "mem_per_node_mb": 100, "qos": "normal"}
    assert beyond("ALL").refused(**spec) == 2066
    assert beyond("NO").submit(**spec).reason == "MaxMemPerLimit"


def test_a_job_for_later_names_its_partitions_by_tier_and_is_bound_by_the_first(h: Harness) -> None:
    tables = h.core.tables
    tables.partitions["high"] = replace(
        tables.partitions["main"], name="high", is_default=False, priority_tier=9, max_time_s=7200
    )
    tables.partitions["main"].max_time_s, tables.partitions["main"].default_time_s = 36000, None
    h.submit(partition="main,high", begin_time=h.time.now() + 500)
    h.submit(partition="main,high", hold=True)
    assert h.query("jobs", "partition", "time_limit_s") == [
        ["high,main", 7200],
        ["main,high", 7200],
    ]


def test_a_job_in_two_partitions_runs_where_it_may(h: Harness) -> None:
    job = h.submit(partition="small,main", min_nodes=2)
    assert (job.is_running, job.partition) == (True, "main")


@pytest.mark.parametrize(
    ("partition", "state", "spec", "code"),
    [
        # whatever limits it breaks: small has n1 for 10 minutes, main lasts a day
        ("small,main", "UP", {"time_limit_s": 90_000}, 0),
        ("small,main", "UP", {"time_limit_s": 900, "mem_per_node_mb": 5000}, 2014),
        ("small,small2", "UP", {"time_limit_s": 900, "features": "slow"}, 2014),
        ("small,small2", "UP", {"time_limit_s": 900, "features": "fast"}, 0),
        # or MaxNodes is all that is against it in the last, or that is closed
        ("main,small", "UP", {"min_nodes": 9}, 0),
        ("small,main", "UP", {"min_nodes": 9}, 2014),
        ("main,small", "UP", {"min_nodes": 2, "num_tasks": 99}, 0),
        ("main,few", "UP", {"min_nodes": 2, "features": "fast", "cpus_per_task": 5}, 2014),
        ("small,few", "UP", {"min_nodes": 2}, 0),
        ("small,few", "UP", {"min_nodes": 2, "features": "fast&slow"}, 2014),
        ("main,small", "DOWN", {"cpus_per_task": 9}, 0),
        ("small,main", "DOWN", {"cpus_per_task": 9}, 2014),
    ],
)
def test_of_several_partitions_one_must_be_able_to_hold_the_job_as_22_05_8_sees_it(
    h: Harness, partition: str, state: str, spec: dict[str, Any], code: int
) -> None:
    table = h.core.tables.partitions
    table["small"].state = state
    table["small2"] = replace(table["small"], name="small2")
    table["few"] = replace(table["main"], name="few", max_nodes=1)
    if code:
        assert h.refused(partition=partition, **spec) == code
    else:
        assert h.submit(partition=partition, **spec).is_pending


@pytest.mark.parametrize("state", ["INACTIVE", "DRAIN"])
def test_of_several_partitions_those_that_take_no_jobs_are_left_out(h: Harness, state: str) -> None:
    h.core.tables.partitions["small"].state = state
    job = h.submit(partition="small,main", hold=True)
    assert job.partitions == ("main",)
    h.core.tables.partitions["main"].state = state
    assert h.refused(partition="small,main") == 2070


@pytest.mark.parametrize(("state", "code"), [("INACTIVE", 2070), ("DRAIN", 2070)])
def test_closed_partitions_take_no_jobs(h: Harness, state: str, code: int) -> None:
    h.core.tables.partitions["main"].state = state
    assert h.refused() == code


def test_a_partition_that_is_down_takes_jobs_and_starts_none(h: Harness) -> None:
    h.core.tables.partitions["main"].state = "DOWN"
    assert h.submit().reason == "PartitionDown"


def test_who_may_use_a_partition(h: Harness) -> None:
    main = h.core.tables.partitions["main"]
    main.allow_groups = ("staff",)
    assert h.refused(OTHER) == 2003
    assert h.submit(USER).is_running
    main.allow_groups, main.root_only = None, True
    assert h.refused(USER) == 2002
    main.root_only, main.disable_root_jobs = False, True
    assert h.refused(ROOT) == 2002
    main.disable_root_jobs, main.allow_accounts = False, ("physics",)
    waiting = h.submit(account="art")
    assert (waiting.reason, waiting.is_running) == ("AccountNotAllowed", False)
    assert (
        waiting.reason_detail
        == "Job's account not permitted to use this partition (main allows physics "
        "not art)"
    )
    assert h.submit(account="physics").is_running
    main.allow_accounts, main.deny_qos = None, ("slow", "low")
    waiting = h.submit(qos="slow")
    assert (waiting.reason, waiting.is_running) == ("QOSNotAllowed", False)
    assert (
        waiting.reason_detail
        == "Job's QOS not permitted to use this partition (main denies slow,low "
        "including slow)"
    )


def test_where_partition_limits_are_enforced_an_account_that_may_not_use_it_is_refused() -> None:
    h = Harness(settings=Settings(enforce_part_limits="ALL"))
    h.core.tables.partitions["main"].allow_accounts = ("physics",)
    h.core.tables.partitions["small"].deny_qos = ("slow",)
    assert h.refused(account="art") == 2045
    assert h.refused(qos="slow", partition="small") == 2066


@pytest.mark.parametrize("rule", ["NO", "ALL"])
def test_a_partition_has_as_many_cpus_as_it_allows_of_its_nodes(rule: str) -> None:
    """As seen of 22.05.8: too few of them are told before too few nodes."""
    h = Harness(settings=Settings(enforce_part_limits=rule))
    main = h.core.tables.partitions["main"]
    main.max_cpus_per_node = 2
    nodes = main.nodes.bit_count()
    if rule == "ALL":
        assert h.refused(num_tasks=2 * nodes + 1) == 2005
        assert h.refused(num_tasks=2 * nodes + 1, min_nodes=nodes + 1) == 2005
        return
    assert h.submit(num_tasks=2 * nodes + 1).reason == "PartitionConfig"
    assert h.refused(num_tasks=3, min_nodes=1, max_nodes=1) == 2014


def test_who_has_no_place_with_the_cpus_of_his_memory_is_refused(h: Harness) -> None:
    """As seen of 22.05.8: CPUs that MaxMemPerCPU adds are none that a partition has too few of."""
    h.core.tables.partitions["main"].max_memory_per_cpu_mb = 100
    assert h.refused(mem_per_cpu_mb=450) == 2014
    assert h.submit(num_tasks=1, mem_per_cpu_mb=350).is_running


def test_only_administrators_submit_for_others(h: Harness) -> None:
    message = SubmitJob(JobSpec(), "#!/bin/sh\n", user_id=1001, group_id=1000)
    assert h.ask(message, USER) == Failure(2010, "Invalid user id")
    assert isinstance(h.ask(message, ROOT), Submitted)
    assert h.core.tables.jobs[1].user_id == 1001


def test_nodes_are_rebooted_for_jobs_of_administrators_alone(h: Harness) -> None:
    text = "rebooting of nodes is only allowed for admins\nAccess/permission denied"
    asks = JobSpec(extra={"reboot": "1"}, partition="nosuch")
    assert h.ask(SubmitJob(asks, "#!/bin/sh\n"), USER) == Failure(2002, text), "before all else"
    both = SubmitJob(JobSpec(), "#!/bin/sh\n", components=[asks])
    assert h.ask(both, USER) == Failure(2002, f"0: {text}")
    assert isinstance(
        h.ask(SubmitJob(JobSpec(extra={"reboot": "1"}), "#!/bin/sh\n"), ROOT), Submitted
    )
    assert list(h.core.tables.jobs) == [1], "no number has been used"


def test_max_job_count_makes_sbatch_try_again() -> None:
    h = Harness(settings=Settings(max_job_count=1))
    h.submit()
    assert h.refused() == 11


def test_job_ids_begin_where_the_site_says_and_start_again_after_the_last() -> None:
    h = Harness(settings=Settings(first_job_id=10, max_job_id=12, min_job_age_s=0))
    assert [h.submit(hold=True).job_id for _ in range(3)] == [10, 11, 12]
    h.core.tables.pending.pop(10)
    del h.core.tables.jobs[10]
    assert h.submit(hold=True).job_id == 10


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (1, 1, 1, None, 1)),
        ({"min_nodes": 2, "max_nodes": 2}, (2, 1, 2, 2, 2)),
        ({"num_tasks": 5}, (5, 1, 1, None, 5)),
        ({"num_tasks": 2, "cpus_per_task": 2}, (2, 2, 1, None, 4)),
        ({"ntasks_per_node": 2, "min_nodes": 2}, (4, 1, 2, None, 4)),
        ({"ntasks_per_node": 2, "num_tasks": 5}, (5, 1, 3, None, 5)),
    ],
)
def test_sizes_are_filled_in_as_sbatch_does(
    h: Harness, spec: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    job = h.submit(hold=True, **spec)
    assert (
        job.num_tasks,
        job.cpus_per_task,
        job.min_nodes,
        job.max_nodes,
        job.min_cpus,
    ) == expected


def test_time_limits_come_from_the_submitter_or_the_partition(h: Harness) -> None:
    def limit(**spec: Any) -> tuple[int | None, bool]:
        job = h.submit(hold=True, **spec)
        return job.time_limit_s, job.time_limit_is_set

    assert limit() == (3600, False)
    assert limit(partition="small") == (600, False)
    assert limit(time_limit_s=120) == (120, True)
    assert limit(time_limit_s=-1) == (None, True)


def test_default_memory_comes_from_the_partition_then_from_the_cluster() -> None:
    h = Harness(settings=Settings(default_memory_per_node_mb=300))
    assert h.submit(hold=True).memory_per_node_mb == 300
    h.core.tables.partitions["main"].default_memory_per_cpu_mb = 100
    h.core.forget_feasibility()
    job = h.submit(hold=True)
    assert (job.memory_per_node_mb, job.memory_per_cpu_mb) == (None, 100)
    assert h.submit(hold=True, mem_per_node_mb=7).memory_per_node_mb == 7


def test_priorities_fall_by_one_from_job_to_job(h: Harness) -> None:
    first, held, second, nice = h.submit(), h.submit(hold=True), h.submit(), h.submit(nice=100)
    assert (first.priority, held.priority, second.priority, nice.priority) == (
        4294901759,
        0,
        4294901758,
        4294901657,
    )
    assert h.submit(ROOT, priority=77).priority == 77
    assert h.submit(USER, priority=77).priority != 77
    assert h.refused(USER, nice=-5) == 2123
    assert h.submit(USER, priority=0).priority != 0


def test_required_nodes_are_used_and_count_for_the_size(h: Harness) -> None:
    job = h.submit(required_nodes="n[2,4]")
    assert (job.node_list, job.min_nodes) == ("n[2,4]", 2)
    job = h.submit(required_nodes="n[2,4]", contiguous=True)
    assert (job.required_nodes, job.spec.required_nodes, job.min_nodes) == (0b1110, "n[2,4]", 3)


def test_test_only_says_when_and_where_without_a_job(h: Harness) -> None:
    answer = h.ask(SubmitJob(JobSpec(min_nodes=2), "x", test_only=True))
    assert isinstance(answer, Submitted)
    assert "using 2 processors on nodes n[1-2] in partition main" in answer.note
    assert not h.core.tables.jobs


def test_test_only_refuses_what_is_no_dependency(h: Harness) -> None:
    for spec in (JobSpec(dependency="x"), JobSpec(dependency="afterok:7:x", min_nodes=2)):
        assert h.ask(SubmitJob(spec, "x", test_only=True)).code == 2038
        assert h.ask(SubmitJob(JobSpec(), "x", test_only=True, components=[spec])).code == 2038
    waits = JobSpec(dependency="afterok:999")
    assert isinstance(h.ask(SubmitJob(waits, "x", test_only=True)), Submitted), "no such job"


def test_test_only_says_no_start_before_the_begin_time(h: Harness) -> None:
    begin = int(h.core.time.now()) + 86400
    answer = h.ask(SubmitJob(JobSpec(begin_time=begin), "x", test_only=True))
    assert (
        time.strftime("to start at %Y-%m-%dT%H:%M:%S using", time.localtime(begin)) in answer.note
    )


def test_what_jobs_have_alike_in_their_environments_is_kept_once() -> None:
    h = Harness()
    first, second = (h.submit(environment=[b"PATH=/usr/bin".decode(), f"N={n}"]) for n in range(2))
    assert first.spec.environment == ["PATH=/usr/bin", "N=0"]
    assert second.spec.environment[0] is first.spec.environment[0]


def test_an_administrator_may_raise_the_priority_of_a_job_in_somebody_elses_name(
    h: Harness,
) -> None:
    answer = h.ask(SubmitJob(JobSpec(nice=-200), "#!/bin/sh\n", user_id=1000, group_id=1000), ROOT)
    job = h.core.tables.jobs[answer.job_id]
    assert (job.user_id, job.nice) == (1000, -200)


def test_memory_beyond_maxmempercpu_is_paid_for_with_more_cpus_for_each_task() -> None:
    h = Harness(settings=Settings(max_memory_per_cpu_mb=20, min_job_age_s=0))
    job = h.submit(num_tasks=1, mem_per_cpu_mb=30)
    assert (job.cpus_per_task, job.memory_per_cpu_mb) == (2, 15)
    assert job.allocation is not None
    assert (job.allocation.cpus, job.allocation.shares[0].memory_mb) == (2, 30)


def test_memory_of_a_node_beyond_maxmempercpu_takes_cpus_of_the_node() -> None:
    h = Harness(settings=Settings(max_memory_per_cpu_mb=20, min_job_age_s=0))
    job = h.submit(num_tasks=1, mem_per_node_mb=50)
    assert job.allocation is not None
    assert (job.allocation.cpus, job.allocation.tasks) == (3, 1)


@pytest.mark.parametrize("asked", [{}, {"mem_per_node_mb": 0}, {"mem_per_cpu_mb": 0}])
def test_who_says_nothing_of_memory_is_held_to_limits_by_all_of_the_first_nodes(
    asked: dict[str, int],
) -> None:
    def house(**limits: int) -> Harness:
        h = Harness(settings=Settings(max_memory_per_node_mb=3999))
        for name, limit in limits.items():  # one limit of its own is enough
            setattr(h.core.tables.partitions["main"], name, limit)
        return h

    assert house().submit(**asked).reason == "MaxMemPerLimit"
    assert house(max_memory_per_node_mb=4000).submit(**asked).is_running
    job = house(max_memory_per_cpu_mb=1500).submit(**asked)
    assert job.allocation is not None
    assert job.allocation.cpus == 3
    assert house(max_memory_per_cpu_mb=999).refused(**asked) == 2014


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"mem_per_node_mb": 1600}, (2, "cpu=1,mem=1600M,node=1,billing=1")),
        ({"mem_per_node_mb": 0}, (4, "cpu=1,mem=4000M,node=1,billing=1")),
        ({"mem_per_cpu_mb": 1200, "cpus_per_task": 2}, (2, "cpu=2,mem=2400M,node=1,billing=2")),
        ({"mem_per_cpu_mb": 1001}, (1, "cpu=1,mem=1001M,node=1,billing=1")),
        (
            {"mem_per_cpu_mb": 1800, "ntasks_per_node": 2, "num_tasks": 4, "min_nodes": 2},
            (2, "cpu=4,mem=7200M,node=2,billing=4"),
        ),
    ],
)
def test_cpus_that_maxmempercpu_adds_are_shown_as_slurm_does(
    asked: dict[str, int], shown: tuple[int, str]
) -> None:
    h = Harness(settings=Settings(max_memory_per_cpu_mb=1000))
    h.submit(hold=True, **{"num_tasks": 1} | asked)
    assert [tuple(row) for row in h.query("jobs", "min_cpus_node", "tres_requested")] == [shown]


def test_jobs_have_no_memory_under_defmempercpu_0_but_go_where_some_is_left() -> None:
    h = Harness(settings=Settings(default_memory_per_cpu_mb=0))
    h.submit(num_tasks=1, mem_per_node_mb=4000, required_nodes="n1")
    job = h.submit(num_tasks=1)
    assert (job.is_running, job.node_list, job.memory_per_cpu_mb) == (True, "n2", 0)
    assert job.allocation is not None
    assert job.allocation.shares[0].memory_mb == 0
    assert h.submit(num_tasks=1).node_list == "n2"


def test_a_partitions_maxmempercpu_is_before_the_clusters_and_too_much_waits_where_closed() -> None:
    h = Harness(settings=Settings(max_memory_per_cpu_mb=20, min_job_age_s=0))
    partition = next(iter(h.core.tables.partitions.values()))
    partition.max_memory_per_cpu_mb = 10
    assert h.refused(num_tasks=1, mem_per_node_mb=50) == 2014
    partition.state = "DOWN"
    h.core.forget_feasibility()
    assert h.submit(num_tasks=1, mem_per_node_mb=50).is_pending
    partition.state = "UP"
    partition.max_memory_per_cpu_mb = 1000
    h.core.forget_feasibility()
    assert h.submit(num_tasks=1, mem_per_node_mb=50).is_running


def test_a_job_waits_for_switches_from_its_submission_and_a_held_one_from_its_first_pass() -> None:
    h = Harness()
    assert h.submit(switches=1).switches_since == int(START)
    assert h.submit(switches=1, hold=True).switches_since is None


def test_a_partition_with_req_resv_takes_jobs_of_reservations_alone(h: Harness) -> None:
    h.core.tables.partitions["main"].requires_reservation = True
    assert h.refused() == 2002
    h.core.tables.reservations.by_name["r"] = Reservation(
        "r", 1, int(START), int(START) + 600, nodes=0b1, users=("ann",), user_ids=(1000,)
    )
    assert not h.submit(reservation="r").is_finished


def test_a_job_that_would_do_with_less_may_wait_for_a_partition_that_allows_that() -> None:
    h = Harness()
    job, other = (
        h.submit(partition="small", time_limit_s=1200),
        h.submit(partition="small", time_limit_s=1200, time_min_s=600),
    )
    assert job.reason == "PartitionTimeLimit"
    assert (job.is_eligible(START + 1), other.is_eligible(START + 1)) == (False, True)


@pytest.mark.parametrize(
    ("spec", "limit_s"), [({"time_limit_s": 180, "time_min_s": 60}, 60), ({"time_limit_s": 60}, 60)]
)
def test_a_job_that_would_do_with_less_is_given_the_minutes_until_its_deadline(
    spec: dict[str, Any], limit_s: int
) -> None:
    h = Harness()
    job = h.submit(deadline=START + 100, **spec)
    h.run(5)
    assert (job.is_running, job.time_limit_s) == (True, limit_s)


def test_a_deadline_alone_lets_a_job_have_a_minute_where_the_partition_has_no_default() -> None:
    h = Harness()
    main = h.core.tables.partitions["main"]
    main.max_time_s, main.default_time_s = 3600, None
    assert h.submit(deadline=START + 7200, hold=True).spec.time_min_s == 60
    main.default_time_s = 300
    assert not h.submit(deadline=START + 7200, hold=True).spec.time_min_s


@pytest.mark.parametrize(
    ("spec", "code"),
    [({"time_limit_s": 99 * 86400}, 2015), ({"dependency": "singleton", "hold": True}, 2038)],
)
def test_who_wants_nodes_at_once_hears_what_is_in_the_way(spec: dict[str, Any], code: int) -> None:
    tables = make_tables()
    tables.partitions["main"].max_time_s = 3600
    answer = Harness(tables).ask(AllocateJob(JobSpec(**spec), immediate=True), USER)
    assert isinstance(answer, Failure)
    assert answer.code == code


def read_of(what: str) -> set[str]:
    """Which fields of it are read where nodes are chosen."""
    controller = Path(request.__file__).parents[2]
    texts = [path.read_text() for path in (controller / "scheduling" / "select").glob("*.py")]
    texts.append((controller / "tables" / "shape.py").read_text())
    return set(re.findall(rf"\b{what}\.([a-z]\w*)", "\n".join(texts)))


def test_whether_a_partition_could_hold_a_job_is_remembered_with_all_that_decides_it():
    fields = set(JobSpec.__struct_fields__)
    assert fields >= request._BESIDE, "no longer fields of JobSpec"
    decide = read_of("spec") & fields
    assert {"features", "distribution", "tres_per_task"} <= decide
    assert not decide & request._BESIDE


def test_a_request_is_kept_with_all_of_a_job_and_a_partition_that_it_is_made_from():
    texts = Path(request.__file__).read_text() + inspect.getsource(shape)
    of_job = set(re.findall(r"\bjob\.([a-z]\w*)", texts)) & set(Job.__struct_fields__)
    assert of_job - {"spec", "allocation", "user_id"} <= set(request._OF_JOB)
    read = set(re.findall(r"\bpartition\.([a-z]\w*)", texts)) & set(Partition.__slots__)
    assert read | {"default_memory_per_node_mb"} <= set(request._OF_PARTITION)


def test_who_asks_for_the_same_as_another_is_not_the_other(h: Harness) -> None:
    first = h.submit(num_tasks=2, time_limit_s=600, name="a")
    second = h.submit(num_tasks=2, time_limit_s=600, name="b")
    other = h.submit(OTHER, num_tasks=2, time_limit_s=1200, name="b")
    assert (second.spec.name, second.num_tasks, second.job_id) == ("b", 2, first.job_id + 1)
    assert (other.user_id, other.time_limit_s) == (1001, 1200)
    assert first.log is not second.log
    assert h.refused(num_tasks=2, time_limit_s=600, name="x" * 1025) == 2012


def test_who_asks_for_other_licences_is_checked_for_them_alone(h: Harness) -> None:
    h.core.tables.licenses.totals = {"bb": 10}
    first = h.submit(num_tasks=1, licenses="bb:4")
    known = len(h.core.patterns)
    second = h.submit(num_tasks=1, licenses="bb:5")
    assert len(h.core.patterns) == known
    assert (first.spec.licenses, second.spec.licenses) == ("bb:4", "bb:5")
    assert h.refused(num_tasks=1, licenses="bb:11") == 2048
    assert h.refused(num_tasks=1, licenses="bb:x") == 2048
    assert h.refused(num_tasks=1, licenses="b" * 1025) == 2012


def test_what_was_checked_is_checked_again_once_a_partition_is_another(h: Harness) -> None:
    assert h.submit(num_tasks=1).is_running
    h.ask(UpdatePartition("update", "main", {"state": "DRAIN"}), ROOT)
    assert h.refused(num_tasks=1) == 2070
    h.ask(UpdatePartition("update", "main", {"state": "UP"}), ROOT)
    assert h.submit(num_tasks=1).is_running
    assert h.core.patterns
    assert h.ask(ChangeNodeTable("delete", "n4"), ROOT) == Ok()
    assert not h.core.patterns


def test_an_answer_is_not_another_jobs(h: Harness):
    assert isinstance(h.ask(SubmitJob(JobSpec(), "#!/bin/sh\n"), USER), Submitted)
    known = len(h.core.feasible)
    h.ask(SubmitJob(JobSpec(name="b", comment="c", nice=3), "#!/bin/sh\n"), USER)
    assert len(h.core.feasible) == known
    h.ask(SubmitJob(JobSpec(distribution="cyclic"), "#!/bin/sh\n"), USER)
    assert len(h.core.feasible) > known


def test_a_job_with_whole_nodes_needs_memory_for_all_of_their_cpus() -> None:
    for each, reason in ((700, "None"), (1000, "MaxMemPerLimit")):  # nodes of four CPUs
        h = Harness(settings=Settings(max_memory_per_node_mb=3000))
        assert h.submit(mem_per_cpu_mb=each).is_running
        assert h.submit(mem_per_cpu_mb=each, exclusive=True).reason == reason


@pytest.mark.parametrize("features", ["", "nosuch"])
def test_an_allocation_of_no_node_is_refused_before_what_else_is_wrong(
    h: Harness, features: str
) -> None:
    spec = JobSpec(extra={"no_nodes": "nodelist"}, features=features)
    assert h.ask(AllocateJob(spec), USER).code == 2006
    assert h.ask(SubmitJob(spec, "", test_only=True), USER).code == 2006, "srun --test-only"


def test_an_allocation_with_a_deadline_is_left_to_the_scheduler(h: Harness) -> None:
    assert not h.ask(AllocateJob(JobSpec(deadline=START + 3600)), USER).nodes
    assert h.ask(AllocateJob(JobSpec()), USER).nodes
