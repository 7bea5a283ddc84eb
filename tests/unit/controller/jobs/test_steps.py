"""Interactive jobs and their steps in the controller.

Covers: controller/requests/allocate, controller/requests/steps.
"""

from __future__ import annotations

import pytest
from controller_harness import OTHER, USER, FakeSender, Harness

from understudy.controller.later import Later
from understudy.controller.tables.settings import Settings
from understudy.controller.tables.step import Step
from understudy.model.states import JobState
from understudy.protocol.messages import (
    BATCH_STEP,
    Allocated,
    AllocateJob,
    AwaitJob,
    AwaitStep,
    CancelJobs,
    CompleteJob,
    CreateStep,
    Failure,
    GetStep,
    JobResults,
    JobSpec,
    Ok,
    SignalTasks,
    StepComplete,
    StepCreated,
    StepSpec,
    UpdateStep,
)


@pytest.fixture
def harness() -> Harness:
    return Harness()


def allocate(harness: Harness, **spec: object) -> Allocated:
    answer = harness.ask(AllocateJob(JobSpec(**spec)), USER)  # type: ignore[arg-type]
    assert isinstance(answer, Allocated)
    return answer


def test_an_interactive_job_starts_within_the_request(harness: Harness) -> None:
    answer = allocate(harness, num_tasks=1)
    assert answer.is_running
    assert harness.core.tables.jobs[answer.job_id].state is JobState.RUNNING


def test_its_end_is_what_its_command_says(harness: Harness) -> None:
    job_id = allocate(harness, num_tasks=1).job_id
    harness.ask(CompleteJob(job_id, 3), USER)
    job = harness.core.tables.jobs[job_id]
    assert (job.state, job.exit_code, job.reason) == (JobState.FAILED, 3, "NonZeroExitCode")


def test_a_step_is_laid_out_and_ends_when_all_nodes_say_so(harness: Harness) -> None:
    job_id = allocate(harness, min_nodes=2, num_tasks=2).job_id
    created = harness.ask(CreateStep(job_id, StepSpec(name="x")), USER)
    assert isinstance(created, StepCreated)
    assert created.tasks == [[0], [1]]
    harness.ask(StepComplete(job_id, 0, 0, "n1", 0, 0), FakeSender("noded0", 0, 0, is_daemon=True))
    assert harness.core.tables.jobs[job_id].steps[0].is_running
    harness.ask(StepComplete(job_id, 0, 0, "n2", 4, 0), FakeSender("noded0", 0, 0, is_daemon=True))
    step = harness.core.tables.jobs[job_id].steps[0]
    assert (step.state, step.exit_code) == (JobState.FAILED, 4)
    assert harness.core.tables.jobs[job_id].derived_exit_code == 4


def test_a_step_keeps_no_more_ports_than_there_are() -> None:
    harness = Harness(settings=Settings(mpi_ports=2))
    job_id = allocate(harness, num_tasks=1).job_id
    assert isinstance(harness.ask(CreateStep(job_id, StepSpec(ports=2)), USER), StepCreated)
    refused = harness.ask(CreateStep(job_id, StepSpec(ports=3, overlap=True)), USER)
    assert refused == Failure(2060, "Requires more ports than can be reserved")


def test_a_step_that_is_asked_for_again_is_the_same_also_from_the_saved_state(
    harness: Harness,
) -> None:
    job_id = allocate(harness, num_tasks=1).job_id
    asked = CreateStep(job_id, StepSpec(name="x"), "token")
    first, again = harness.ask(asked, USER), harness.ask(asked, USER)
    job = harness.core.tables.jobs[job_id]
    job.steps = {0: Step.unpack(job.steps[0].pack())}
    third = harness.ask(asked, USER)
    assert [each.step_id for each in (first, again, third)] == [0, 0, 0]
    assert harness.ask(CreateStep(job_id, StepSpec(overlap=True), "other"), USER).step_id == 1


def test_only_the_owner_gets_a_step(harness: Harness) -> None:
    job_id = allocate(harness, num_tasks=1).job_id
    answer = harness.ask(CreateStep(job_id, StepSpec()), OTHER)
    assert isinstance(answer, Failure)
    assert answer.code == 2002


def test_cancelling_a_step_kills_its_tasks(harness: Harness) -> None:
    job_id = allocate(harness, num_tasks=1).job_id
    harness.ask(CreateStep(job_id, StepSpec()), USER)
    answer = harness.ask(CancelJobs([f"{job_id}.0", f"{job_id}.7"]), USER)
    assert isinstance(answer, JobResults)
    assert [code for _, code, _ in answer.results] == [0, 2017]
    assert [sent.message for sent in harness.sent(SignalTasks)] == [
        SignalTasks(job_id, 0, 0, 9, ends=True)
    ]


def test_others_may_not_cancel_a_step_and_a_pending_job_has_none(harness: Harness) -> None:
    job_id = allocate(harness, num_tasks=1).job_id
    harness.ask(CreateStep(job_id, StepSpec()), USER)
    waiting = harness.submit(hold=True).job_id
    for sender, code in ((OTHER, 2010), (USER, 0)):
        answer = harness.ask(CancelJobs([f"{job_id}.0", f"{waiting}.0"]), sender)
        assert [result[1] for result in answer.results] == [code, 0]


def test_who_waits_for_the_end_of_a_job_hears_of_it(harness: Harness) -> None:
    job_id = allocate(harness, num_tasks=1).job_id
    waiting = harness.ask(AwaitJob(job_id, until_end=True), USER)
    assert isinstance(waiting, Later)
    assert waiting.answer is None
    harness.ask(CancelJobs([str(job_id)]), USER)
    assert isinstance(waiting.answer, Allocated)
    assert waiting.answer.state == int(JobState.CANCELLED)


def test_a_steps_time_limit_is_changed_while_it_runs(harness: Harness) -> None:
    job_id = allocate(harness, num_tasks=1, time_limit_s=36000).job_id
    harness.ask(CreateStep(job_id, StepSpec(name="x", time_limit_s=600)), USER)
    step = harness.core.tables.jobs[job_id].steps[0]
    for text, limit_s in (
        ("+10", 1200),
        ("-5", 900),
        ("3", 180),
        ("unlimited", None),
        ("20", 1200),
    ):
        assert harness.ask(UpdateStep(str(job_id), "0", text), USER) == Ok()
        assert step.time_limit_s == limit_s
    for text in ("-30", "x"):
        assert harness.ask(UpdateStep(str(job_id), "", text), USER).code == 2051
    harness.run(1100)
    assert step.state is JobState.RUNNING
    harness.run(200)
    assert step.state is JobState.TIMEOUT


def test_srun_hears_of_its_steps_end_when_the_controller_knows(harness: Harness) -> None:
    job_id = allocate(harness, num_tasks=1).job_id
    harness.ask(CreateStep(job_id, StepSpec(name="x")), USER)
    waiting = harness.ask(AwaitStep(job_id, 0), USER)
    assert isinstance(waiting, Later)
    assert waiting.answer is None
    harness.ask(StepComplete(job_id, 0, 0, "n1", 0, 0), FakeSender("noded0", 0, 0, is_daemon=True))
    assert waiting.answer == Ok()
    assert harness.ask(AwaitStep(job_id, 0), USER) == Ok()
    assert isinstance(harness.ask(AwaitStep(job_id, 0), OTHER), Failure)


def test_who_used_too_much_memory_is_cancelled_by_the_daemons_user_or_out_of_memory(
    harness: Harness,
) -> None:
    job_id = allocate(harness, num_tasks=2).job_id
    daemon = FakeSender("noded0", 0, 0, is_daemon=True)
    harness.ask(CreateStep(job_id, StepSpec(name="x")), USER)
    harness.ask(StepComplete(job_id, 0, 0, "n1", 137, 9, fault="killed"), daemon)
    harness.ask(CreateStep(job_id, StepSpec(name="x")), USER)
    harness.ask(StepComplete(job_id, 0, 1, "n1", 0, 125), daemon)
    killed, constrained = harness.core.tables.jobs[job_id].steps.values()
    assert (killed.state, killed.killed_by) == (JobState.CANCELLED, 0)
    assert constrained.state is JobState.OUT_OF_MEMORY
    harness.ask(CompleteJob(job_id, 0, 125), USER)
    job = harness.core.tables.jobs[job_id]
    assert (job.state, job.reason, job.exit_signal) == (JobState.OUT_OF_MEMORY, "OutOfMemory", 125)


def test_a_running_script_is_a_step_of_one_task_for_sstat(harness: Harness) -> None:
    interactive = allocate(harness, num_tasks=1).job_id
    assert isinstance(harness.ask(GetStep(interactive, BATCH_STEP), USER), Failure)
    job = harness.submit(min_nodes=2)
    harness.run()
    created = harness.ask(GetStep(job.job_id, BATCH_STEP), USER)
    assert isinstance(created, StepCreated)
    assert (created.tasks, len(created.daemons)) == ([[0]], 1)
