"""A look at a submission says what then becomes of it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from controller_harness import START, Harness, make_tables

from understudy.controller.tables.settings import Settings
from understudy.model.states import JobState
from understudy.protocol.messages import (
    Emulation,
    Failure,
    ForeseeJob,
    Foreseen,
    JobSpec,
    SubmitJob,
    Submitted,
)


def look(h: Harness, **spec: Any) -> Any:
    return h.ask(ForeseeJob(SubmitJob(JobSpec(**spec), "#!/bin/sh\n", Emulation(1.0))))


def test_a_job_that_starts_has_no_reason_not_to() -> None:
    h = Harness()
    assert look(h, num_tasks=3, cpus_per_task=2) == Foreseen(6, "", 1)
    assert look(h, array="1-7%2") == Foreseen(1, "", 7)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"time_limit_s": 100_000}, "PartitionTimeLimit"),
        ({"partition": "small", "min_nodes": 2}, "PartitionNodeLimit"),
        ({"num_tasks": 17}, "PartitionConfig"),
        ({"hold": True}, "JobHeldUser"),
    ],
)
def test_a_job_that_cannot_start_has_the_reason_that_squeue_shows(
    spec: dict[str, Any], reason: str
) -> None:
    h = Harness()
    assert look(h, **spec).reason == reason
    assert h.submit(**spec).reason == reason


def test_a_job_that_is_refused_is_refused_in_the_same_words() -> None:
    h = Harness()
    for spec in (
        {"partition": "nosuch"},
        {"cpus_per_task": 5},
        {"features": "nosuch"},
        {"reservation": "nosuch"},
    ):
        answer = look(h, **spec)
        assert isinstance(answer, Failure)
        assert answer == h.ask(SubmitJob(JobSpec(**spec), "#!/bin/sh\n", Emulation(1.0)))


def test_nodes_that_are_down_are_told_of() -> None:
    h = Harness()
    h.update_nodes("n[1-4]", state="DOWN", reason="x")
    assert look(h).reason.startswith("Resources (Nodes required for job are DOWN")


def test_a_closed_partition_is_told_of() -> None:
    tables = make_tables()
    tables.partitions["main"].state = "DOWN"
    assert look(Harness(tables)).reason == "PartitionDown"


def test_what_waits_for_a_time_or_for_others_is_looked_at_as_if_it_did_not() -> None:
    assert (
        look(
            Harness(), begin_time=START + 1e6, dependency="afterok:77", deadline=START + 2e6
        ).reason
        == ""
    )


def test_looking_changes_nothing() -> None:
    h = Harness()
    number, jobs, idle = (
        h.core.take_job_id(),
        dict(h.core.tables.jobs),
        h.core.tables.nodes.idle_nodes,
    )
    for spec in (
        {},
        {"partition": "nosuch"},
        {"time_limit_s": 100_000},
        {"reservation": "nosuch"},
        {"array": "1-3"},
        {"hold": True},
    ):
        look(h, **spec)
    assert h.core.tables.jobs == jobs
    assert not h.core.tables.pending
    assert h.core.tables.nodes.idle_nodes == idle
    assert h.core.take_job_id() == number + 1


def _spec(rng: random.Random) -> dict[str, Any]:
    """Any job, sensible or not."""
    choices: dict[str, list[Any]] = {
        "partition": ["main", "small", "main,small", "small,main", "none"],
        "num_tasks": [1, 2, 4, 9, 16, 17],
        "cpus_per_task": [1, 2, 4, 5],
        "min_nodes": [1, 2, 4, 5],
        "max_nodes": [1, 2, 4],
        "ntasks_per_node": [1, 2, 5],
        "time_limit_s": [60, 600, 3600, 90_000, -1],
        "time_min_s": [60, 700],
        "mem_per_node_mb": [0, 100, 4000, 4001],
        "mem_per_cpu_mb": [900, 3000],
        "features": ["fast", "slow", "fast&slow", "fast|slow", "[fast*1&slow*1]", "no"],
        "required_nodes": ["n1", "n[1-2]", "n4", "n7"],
        "excluded_nodes": ["n1", "n[2-4]"],
        "overcommit": [True],
        "contiguous": [True],
        "hold": [True],
        "array": ["1-3", "0-9999"],
    }
    return {key: rng.choice(values) for key, values in choices.items() if rng.random() < 0.2}


@pytest.mark.parametrize("rule", ["NO", "ANY", "ALL"])
def test_whatever_is_looked_at_becomes_what_was_said(rule: str) -> None:
    rng = random.Random(f"look {rule}")
    seen: dict[str, int] = {}
    for _ in range(300):
        spec = _spec(rng)
        h = Harness(settings=Settings(min_job_age_s=0, enforce_part_limits=rule))
        said = look(h, **spec)
        answer = h.ask(SubmitJob(JobSpec(**spec), "#!/bin/sh\n", Emulation(1.0)))
        if isinstance(said, Failure):
            assert said == answer, spec
            seen["refused"] = seen.get("refused", 0) + 1
            continue
        assert isinstance(answer, Submitted), (spec, said, answer)
        started = any(job.state is JobState.RUNNING for job in h.core.tables.jobs.values())
        assert started == (said.reason == ""), (spec, said)
        seen[said.reason.partition(" ")[0]] = seen.get(said.reason.partition(" ")[0], 0) + 1
    assert seen["refused"] > 20
    assert seen[""] > 20
    assert len(seen) >= 3
