"""Heterogeneous jobs: submitted, started and ended together; what may be done to one component.

Covers: controller/tables/het_job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from controller_harness import ROOT, USER, Harness
from scheduling_harness import World, form, table

from understudy.controller.jobs.preempt import end_preempted
from understudy.controller.saved.records import decode_job, encode_job
from understudy.controller.saved.recover import recover
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.tables.preemption import Preemption, Rules
from understudy.controller.tables.settings import Settings
from understudy.model.errors import ErrorCode
from understudy.model.states import JobState
from understudy.protocol.messages import (
    Allocated,
    AllocateJob,
    CancelJobs,
    ControlJobs,
    CreateStep,
    Emulation,
    Failure,
    GetAllocation,
    JobSpec,
    Registered,
    SignalTasks,
    StepCreated,
    StepSpec,
    SubmitJob,
    Submitted,
    UpdateJobs,
    UpdateReservation,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.tables.job import Job


def submit(harness: Harness, *specs: JobSpec) -> list[Job]:
    answer = harness.ask(
        SubmitJob(specs[0], "#!/bin/sh\n", Emulation(100.0), components=list(specs[1:])), USER
    )
    assert isinstance(answer, Submitted), answer
    jobs = harness.core.tables.jobs
    return [jobs[answer.job_id + offset] for offset in range(len(specs))]


@pytest.fixture
def harness() -> Harness:
    return Harness()


def states(jobs: Iterable[Job]) -> list[JobState]:
    return [job.state for job in jobs]


def test_components_start_together_on_nodes_of_their_own_and_the_leader_alone_is_launched(
    harness: Harness,
) -> None:
    jobs = submit(
        harness, JobSpec(name="a", min_nodes=1), JobSpec(name="b", min_nodes=2, num_tasks=3)
    )
    harness.run(0)
    assert states(jobs) == [JobState.RUNNING] * 2
    assert [job.node_list for job in jobs] == ["n1", "n[2-3]"]
    assert [launch.job_id for launch in harness.launches()] == [jobs[0].job_id]


def test_nothing_starts_where_one_component_does_not_fit(harness: Harness) -> None:
    jobs = submit(harness, JobSpec(min_nodes=1), JobSpec(min_nodes=4))
    harness.run(0)
    assert states(jobs) == [JobState.PENDING] * 2


def test_licences_are_needed_for_all_components_at_once() -> None:
    few = Harness(settings=Settings(licenses={"lic": 3}))
    jobs = submit(few, JobSpec(licenses="lic:2"), JobSpec(licenses="lic:2"))
    few.run(0)
    assert states(jobs) == [JobState.PENDING] * 2
    enough = submit(few, JobSpec(licenses="lic:2"), JobSpec(licenses="lic:1"))
    few.run(0)
    assert states(enough) == [JobState.RUNNING] * 2
    assert few.core.tables.licenses.used == {"lic": 3}


def test_the_columns_tell_of_the_whole(harness: Harness) -> None:
    first, second = submit(harness, JobSpec(hold=True), JobSpec(hold=True))
    rows = harness.query(
        "jobs",
        "job_id",
        "het_job_id",
        "het_job_offset",
        "het_job_id_set",
        het_job_id=[first.job_id],
    )
    ids = f"{first.job_id}-{second.job_id}"
    assert rows == [[first.job_id, first.job_id, 0, ids], [second.job_id, first.job_id, 1, ids]]


@pytest.mark.parametrize(
    ("requeue", "state"), [(True, JobState.PENDING), (False, JobState.NODE_FAIL)]
)
def test_nodes_that_have_booted_end_all_components_once(
    harness: Harness, requeue: bool, state: JobState
) -> None:
    jobs = submit(harness, JobSpec(requeue=requeue), JobSpec(requeue=requeue))
    harness.acknowledge()
    harness.run(10)
    now = harness.time.now()
    assert isinstance(harness.register("noded0", started=now, booted=now), Registered)
    assert states(jobs) == [state] * 2


def test_all_components_end_as_the_leader_ends(harness: Harness) -> None:
    jobs = submit(harness, JobSpec(), JobSpec())
    harness.run(0)
    harness.finish(jobs[0], 3)
    assert [(job.state, job.exit_code) for job in jobs] == [(JobState.FAILED, 3)] * 2


def test_a_running_component_is_ended_alone_a_pending_one_not_at_all(harness: Harness) -> None:
    running = submit(harness, JobSpec(), JobSpec())
    harness.run(0)
    assert harness.result(harness.ask(CancelJobs([f"{running[0].job_id}+1"], None), USER)) == 0
    assert states(running) == [JobState.RUNNING, JobState.CANCELLED]
    pending = submit(harness, JobSpec(hold=True), JobSpec(hold=True))
    assert harness.result(harness.ask(CancelJobs([f"{pending[0].job_id}+1"], None), USER)) == 2108
    assert harness.result(harness.ask(CancelJobs([f"{pending[0].job_id}+2"], None), USER)) == 2017
    assert harness.cancel(pending[1]) == 2108
    assert harness.cancel(pending[0]) == 0
    assert states(pending) == [JobState.CANCELLED] * 2


def test_holding_and_releasing_the_leader_concerns_all(harness: Harness) -> None:
    jobs = submit(harness, JobSpec(hold=True), JobSpec(hold=True))
    assert harness.control("release", jobs[0]) == 0
    harness.run(0)
    assert states(jobs) == [JobState.RUNNING] * 2


def test_only_the_leader_can_be_requeued(harness: Harness) -> None:
    jobs = submit(harness, JobSpec(), JobSpec())
    harness.run(0)
    assert harness.control("requeue", jobs[1]) == 2107
    assert harness.control("requeue", jobs[0]) == 0
    assert states(jobs) == [JobState.PENDING] * 2


def test_all_components_are_requeued_though_their_nodes_are_not_free_yet(harness: Harness) -> None:
    jobs = submit(harness, JobSpec(), JobSpec())
    harness.run(0)
    harness.acknowledge()
    harness.finish(jobs[0])
    assert all(job.is_completing for job in jobs)
    assert harness.control("requeue", jobs[0]) == 0
    assert states(jobs) == [JobState.PENDING] * 2
    harness.acknowledge()
    for job in jobs:
        harness.epilog(job)
    harness.run(200)
    assert states(jobs) == [JobState.RUNNING] * 2


def test_arrays_are_refused_and_one_bad_component_refuses_all(harness: Harness) -> None:
    for specs, code in (
        ((JobSpec(array="1-2"), JobSpec()), 2081),
        ((JobSpec(), JobSpec(partition="nosuch")), 2000),
    ):
        answer = harness.ask(SubmitJob(specs[0], "#!/bin/sh\n", components=list(specs[1:])), USER)
        assert isinstance(answer, Failure)
        assert answer.code == code
    assert states(harness.core.tables.jobs.values()) == [JobState.CANCELLED]


def test_a_component_that_no_node_could_hold_is_refused_and_those_before_it_cancelled(
    harness: Harness,
) -> None:
    specs = (JobSpec(), JobSpec(num_tasks=1, cpus_per_task=5), JobSpec())
    answer = harness.ask(SubmitJob(specs[0], "#!/bin/sh\n", components=list(specs[1:])), USER)
    assert isinstance(answer, Failure)
    assert answer.code == ErrorCode.NOT_AVAILABLE
    leader, refused = harness.core.tables.jobs.values()
    assert (leader.state, leader.exit_signal) == (JobState.CANCELLED, 1)
    assert (refused.state, refused.reason, refused.het) == (JobState.FAILED, "BadConstraints", None)
    assert not harness.core.tables.pending


def test_a_component_on_nodes_that_are_out_of_service_says_so_at_once(harness: Harness) -> None:
    harness.update_nodes("n1", state="DRAIN", reason="disk")
    jobs = submit(harness, JobSpec(), JobSpec(required_nodes="n1"))
    assert [job.reason for job in jobs] == ["None", "ReqNodeNotAvail"]
    assert jobs[1].reason_detail == "ReqNodeNotAvail, UnavailableNodes:n1"


def test_all_components_wait_for_the_reservation_of_one(
    harness: Harness,
) -> None:
    changes = {
        "starttime": str(int(harness.time.now()) + 3600),
        "duration": "600",
        "users": "ann",
        "nodes": "n2",
    }
    harness.ask(UpdateReservation("create", "r", changes), ROOT)
    jobs = submit(harness, JobSpec(), JobSpec(reservation="r"))
    assert [job.reason for job in jobs] == ["Reservation"] * 2


def test_nodes_that_one_component_names_are_not_for_the_others(harness: Harness) -> None:
    jobs = submit(harness, JobSpec(), JobSpec(required_nodes="n1"))
    harness.run(0)
    assert [job.node_list for job in jobs] == ["n2", "n1"]


def test_a_component_is_restored_into_its_whole(harness: Harness) -> None:
    jobs = submit(harness, JobSpec(hold=True), JobSpec(hold=True), JobSpec(hold=True))
    saved = [decode_job(encode_job(job)) for job in jobs]
    other = Harness()
    recover(other.core, saved)
    assert other.result(other.ask(ControlJobs("release", [str(jobs[0].job_id)]), ROOT)) == 0
    other.run(0)
    assert states(saved) == [JobState.RUNNING] * 3


def test_backfill_starts_components_when_there_are_nodes_for_all() -> None:
    simulation = World(table(3), Backfill, SelectConsTres())
    filler = simulation.submit(at=0, run_s=100, limit_s=120, min_nodes=2)
    parts = [simulation.submit(at=1, run_s=50, limit_s=60, min_nodes=count) for count in (1, 2)]
    form(parts)
    simulation.run()
    starts = [simulation.starts[job.job_id] for job in parts]
    assert starts[0] == starts[1] >= simulation.ends[filler.job_id]


def test_the_main_scheduler_lets_nobody_of_the_partition_pass_a_job_with_components() -> None:
    simulation = World(table(3), Backfill, SelectConsTres())
    parts = [simulation.submit(at=1, run_s=50, limit_s=60, min_nodes=1) for _ in range(2)]
    form(parts)
    small = simulation.submit(at=2, run_s=50, limit_s=60, min_nodes=1)
    simulation.run(until=20)
    assert (simulation.starts, small.reason) == ({}, "Priority")
    simulation.run()
    assert simulation.starts[small.job_id] >= simulation.starts[parts[0].job_id]


def test_an_interactive_one_is_told_of_all_its_components_and_its_steps_count_together(
    harness: Harness,
) -> None:
    answer = harness.ask(
        AllocateJob(
            JobSpec(min_nodes=1, num_tasks=1), components=[JobSpec(min_nodes=2, num_tasks=2)]
        ),
        USER,
    )
    assert isinstance(answer, Allocated)
    assert not answer.is_running
    harness.run(0)
    assert harness.launches() == []
    whole = harness.ask(GetAllocation(answer.job_id), USER)
    assert isinstance(whole, Allocated)
    assert [(each.job_id, each.nodes) for each in whole.components] == [
        (answer.job_id, "n1"),
        (answer.job_id + 1, "n[2-3]"),
    ]
    assert "SLURM_HET_SIZE=2" in whole.components[1].environment
    first = harness.ask(CreateStep(answer.job_id + 1, StepSpec()), USER)
    second = harness.ask(CreateStep(answer.job_id, StepSpec()), USER)
    assert isinstance(first, StepCreated)
    assert isinstance(second, StepCreated)
    assert (first.step_id, second.step_id) == (0, 1)
    assert harness.ask(
        CreateStep(answer.job_id + 1, StepSpec(step_id=0, overlap=True)), USER
    ) == Failure(2017, "Invalid job id specified")
    harness.ask(CreateStep(answer.job_id + 1, StepSpec(step_id=1, overlap=True)), USER)
    harness.ask(CancelJobs([f"{answer.job_id}.1"], None), USER)
    assert [sent.message.job_id for sent in harness.sent(SignalTasks)] == [
        answer.job_id,
        answer.job_id + 1,
    ]


def test_an_immediate_request_for_several_components_is_refused(harness: Harness) -> None:
    answer = harness.ask(AllocateJob(JobSpec(), immediate=True, components=[JobSpec()]), USER)
    assert answer == Failure(2016, "Requested nodes are busy")


def test_an_update_of_the_job_changes_all_components_and_one_of_a_component_that_one(
    harness: Harness,
) -> None:
    harness.ask(SubmitJob(JobSpec(hold=True), "#!/bin/sh\n", components=[JobSpec()]), USER)
    jobs = sorted(harness.core.tables.jobs.values(), key=lambda job: job.job_id)
    number = str(jobs[0].job_id)
    harness.ask(UpdateJobs([number], {"comment": "all"}), USER)
    harness.ask(UpdateJobs([f"{number}+1"], {"comment": "one"}), USER)
    assert [job.spec.comment for job in jobs] == ["all", "one"]


@pytest.mark.parametrize("victim", [0, 1])
def test_a_job_of_which_one_component_is_preempted_goes_back_as_a_whole(
    harness: Harness, victim: int
) -> None:
    tables = harness.core.tables
    tables.preemption = Preemption(
        tables.partitions,
        tables.running,
        Rules.read("preempt/partition_prio", "REQUEUE", 0),
        {},
        lambda _job: None,
    )
    jobs = submit(harness, JobSpec(min_nodes=1), JobSpec(min_nodes=1))
    harness.run(0)
    for _ in range(2):  # each component may be asked to go
        end_preempted(harness.core, jobs[victim], harness.core.time.now())
    assert states(jobs) == [JobState.PENDING] * 2
    end_preempted(harness.core, jobs[1 - victim], harness.core.time.now())
    for job in jobs:
        harness.epilog(job)
    assert [(job.state, job.restarts) for job in jobs] == [(JobState.PENDING, 1)] * 2


def test_a_job_of_which_one_component_loses_its_node_goes_back_as_a_whole(harness: Harness) -> None:
    jobs = submit(harness, JobSpec(min_nodes=1), JobSpec(min_nodes=1))
    harness.run(0)
    harness.update_nodes("n2", state="DOWN", reason="x")
    assert states(jobs) == [JobState.PENDING] * 2
    harness.epilog(jobs[0])
    assert [job.restarts for job in jobs] == [1, 1]
