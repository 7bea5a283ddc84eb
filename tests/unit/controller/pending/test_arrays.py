"""Job arrays: one record, split as tasks start, are changed, or end."""

from __future__ import annotations

from typing import Any

import pytest
from controller_harness import OTHER, ROOT, USER, Harness, make_tables

from understudy.controller.facts.environment import job_environment
from understudy.controller.saved.records import decode_job, encode_job
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.job import HELD_BY_USER
from understudy.controller.tables.settings import Settings
from understudy.model.errors import SlurmError
from understudy.model.states import JobState
from understudy.model.task_numbers import format_tasks, parse, parse_tasks
from understudy.protocol.messages import (
    CancelJobs,
    ControlJobs,
    JobResults,
    LaunchBatch,
    UpdateJobs,
)


def states(h: Harness, array: int) -> dict[str, str]:
    """What squeue would show: id and state of each record of the array."""
    rows = h.query(
        "jobs",
        "array_task_id",
        "array_task_expression",
        "array_max_tasks",
        "state",
        "reason",
        array_job_id=[array],
    )
    shown = {}
    for task, expression, most, state, reason in rows:
        name = (
            f"[{expression}%{most}]"
            if expression and most
            else f"[{expression}]"
            if expression
            else str(task)
        )
        shown[name] = JobState(state).name if state else reason
    return shown


def ids(h: Harness, array: int) -> dict[int | None, int]:
    return {job.array_task_id: job_id for job_id, job in h.core.arrays[array].records.items()}


def act(h: Harness, message: Any, sender: Any = USER) -> list[tuple[str, int, str]]:
    answer = h.ask(message, sender)
    assert isinstance(answer, JobResults)
    return answer.results


# --- expressions


@pytest.mark.parametrize(
    ("text", "tasks", "limit"),
    [
        ("1-4", [1, 2, 3, 4], 0),
        ("0,3-9:2%4", [0, 3, 5, 7, 9], 4),
        ("5", [5], 0),
        ("1,1", [1], 0),
        ("1-3%0", [1, 2, 3], 0),
        ("1-4%2%3", [1, 2, 3, 4], 2),
        ("[1-2]", [1, 2], 0),
        ("1,,2", [1, 2], 0),
        (" +1- 2", [1, 2], 0),
        ("1,%2", [0, 1], 2),
        ("%3", [0], 3),
        (",", [], 0),
    ],
)
def test_expressions_are_understood(text: str, tasks: list[int], limit: int) -> None:
    assert parse(text, 1001) == (sum(1 << task for task in tasks), limit)


@pytest.mark.parametrize("text", ["1-", "a", "5-1", "1-5000", "-1", "1-10:0", "1-3 ", "", "1001"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an array expression"):
        parse(text, 1001)


@pytest.mark.parametrize(
    "text",
    [
        "0-100:10",
        "1,3,5-7,20",
        "1-298:3",
        "3-9",
        "1,3,5",
        "7",
        "0,50,100",
        "0,4,8,12,16",
        "0-10,20",
    ],
)
def test_tasks_are_shown_as_slurm_shows_them(text: str) -> None:
    assert format_tasks(parse_tasks(text, 1001)) == text


# --- lives


def test_tasks_start_one_after_the_other_with_ids_of_their_own_and_the_last_keeps_the_arrays() -> (
    None
):
    h = Harness(make_tables(2, cpus=1))
    array = h.submit(array="1-3")
    assert states(h, 1) == {"1": "RUNNING", "2": "RUNNING", "3": "Resources"}
    assert ids(h, 1) == {1: 2, 2: 3, 3: 1}
    assert h.submit().job_id == 4
    h.complete(h.core.tables.jobs[2])
    assert array.is_running
    assert array.array_task_id == 3


def test_no_more_tasks_run_at_a_time_than_the_limit_says() -> None:
    h = Harness()
    array = h.submit(array="1-5%2")
    assert states(h, array.job_id) == {
        "1": "RUNNING",
        "2": "RUNNING",
        "[3-5%2]": "JobArrayTaskLimit",
    }
    h.complete(h.core.tables.jobs[2])
    assert states(h, array.job_id) == {
        "1": "COMPLETED",
        "2": "RUNNING",
        "3": "RUNNING",
        "[4-5%2]": "JobArrayTaskLimit",
    }


def test_who_waits_for_the_limit_is_eligible_when_another_task_ends_and_its_age_counts_on() -> None:
    """As 22.05.8 shows, and tells accounting."""
    h = Harness()
    array = h.submit(array="1-3%1")
    assert array.shown_eligible_time is None
    began = array.submit_time
    h.run(30)
    h.complete(h.core.job(f"{array.job_id}_1"))
    second = h.core.job(f"{array.job_id}_2")
    assert second.is_running
    assert (second.shown_eligible_time, second.accrue_time) == (second.start_time, began)
    assert (second.start_time or 0) >= began + 30
    assert array.shown_eligible_time is None
    act(h, UpdateJobs([str(array.job_id)], {"arraytaskthrottle": "2"}))
    third = h.core.job(f"{array.job_id}_3")
    assert (third.shown_eligible_time, third.accrue_time) == (third.start_time, began)


def test_a_limit_that_is_reached_and_one_that_is_not_any_more_make_another_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That nodes are free keeps the queue as it is."""
    h, told = Harness(), list[Note]()
    note = h.core.policy.note
    monkeypatch.setattr(
        h.core.policy, "note", lambda what, now: (told.append(what), note(what, now))
    )
    h.submit(array="1-3%1")
    assert told.count(Note.MET) == 1
    del told[:]
    h.complete(h.core.tables.jobs[2])
    assert told.count(Note.MET) == 2, "a task is over, and the next one runs"


def test_the_limit_can_be_changed() -> None:
    h = Harness()
    array = h.submit(array="1-5%1")
    assert act(h, UpdateJobs([str(array.job_id)], {"arraytaskthrottle": "3"})) == [
        (str(array.job_id), 0, "")
    ]
    assert states(h, array.job_id) == {
        "1": "RUNNING",
        "2": "RUNNING",
        "3": "RUNNING",
        "[4-5%3]": "JobArrayTaskLimit",
    }


def test_single_tasks_are_cancelled_and_the_array_shrinks() -> None:
    h = Harness(make_tables(1, cpus=1))
    array = h.submit(array="1-6").job_id
    assert act(h, CancelJobs([f"{array}_[1,3-4]"])) == [(f"{array}_[1,3-4]", 0, "")]
    assert states(h, array) == {"1": "CANCELLED", "[2,5-6]": "Resources"}
    assert act(h, CancelJobs([f"{array}_9"]))[0][1] == 2017
    assert act(h, CancelJobs([str(array)], None), OTHER)[0][1] == 2002


def test_an_array_whose_waiting_tasks_were_all_cancelled_one_by_one_is_cancelled_and_has_none() -> (
    None
):
    h = Harness(make_tables(1, cpus=1))
    array = h.submit(array="1-3", hold=True).job_id
    for task in (2, 1):
        assert act(h, CancelJobs([f"{array}_{task}"])) == [(f"{array}_{task}", 0, "")]
    assert h.query("jobs", "array_task_expression", array_job_id=[array]) == [["3"]]
    assert act(h, CancelJobs([f"{array}_3"], None), OTHER)[0][1] == 2002
    act(h, CancelJobs([f"{array}_3"]))
    assert h.query(
        "jobs", "job_id", "array_task_id", "array_task_expression", "state", array_job_id=[array]
    ) == [[array, None, "", int(JobState.CANCELLED)]]


def test_the_last_task_of_an_array_runs_under_its_number_after_the_others_were_cancelled() -> None:
    h = Harness(make_tables(1, cpus=1))
    array = h.submit(array="1-3", hold=True).job_id
    act(h, CancelJobs([f"{array}_[1-2]"]))
    act(h, ControlJobs("release", [str(array)]))
    assert states(h, array) == {"3": "RUNNING"}
    assert ids(h, array) == {3: array}


def test_an_array_is_cancelled_as_a_whole() -> None:
    h = Harness(make_tables(1, cpus=1))
    array = h.submit(array="1-6").job_id
    assert act(h, CancelJobs([str(array)])) == [(str(array), 0, "")]
    assert states(h, array) == {"1": "CANCELLED", "[2-6]": "CANCELLED"}
    assert not h.core.tables.pending
    assert act(h, CancelJobs([str(array)]))[0][1] == 2021


def test_one_task_of_an_array_that_was_cancelled_is_requeued_alone() -> None:
    h = Harness()
    blocker = h.submit(exclusive=True, min_nodes=4)
    array = h.submit(array="1-4").job_id
    act(h, CancelJobs([str(array)]))
    assert states(h, array) == {"[1-4]": "CANCELLED"}
    assert act(h, CancelJobs([f"{array}_2"]))[0][1] == 2021
    assert act(h, ControlJobs("requeue", [f"{array}_3"]))[0][1] == 0
    assert {
        job.array_task_id: job.is_pending
        for job in h.core.arrays[array].records.values()
        if job.array_task_id is not None
    } == {3: True}
    h.cancel(blocker)


def test_one_task_is_held_and_released() -> None:
    h = Harness(make_tables(1, cpus=1))
    h.submit()
    array = h.submit(array="1-3").job_id
    assert act(h, ControlJobs("hold", [f"{array}_2"])) == [(f"{array}_2", 0, "")]
    held = h.core.job(f"{array}_2")
    assert (held.held_by, held.priority, held.job_id) == (HELD_BY_USER, 0, 3)
    assert states(h, array) == {"2": "JobHeldUser", "[1,3]": "Resources"}
    act(h, ControlJobs("release", [str(array)]))
    assert held.priority > 0


def test_it_is_told_of_each_task_what_became_of_it() -> None:
    h = Harness(make_tables(1, cpus=1))
    h.submit()
    array = h.submit(array="1-4").job_id
    missing = SlurmError(2017).text
    assert act(h, ControlJobs("hold", [f"{array}_[2-6]"])) == [
        (f"{array}_2-4", 0, "No error"),
        (f"{array}_5-6", 2017, missing),
    ]
    assert act(h, ControlJobs("hold", [f"{array}_9", "99_1", f"{array}_x"])) == [
        (f"{array}_9", 2017, missing), ("99_1", 2017, missing), (f"{array}_x", 2017, missing)
    ]  # fmt: skip
    refused = SlurmError(2010)
    assert act(h, ControlJobs("hold", [str(array)]), OTHER) == [
        (f"{array}_1-4", 2010, refused.text)
    ]
    assert act(h, ControlJobs("suspend", ["99_1", f"{array}_9"]), ROOT) == [
        ("99_1", 1000, "Unexpected message received"), (f"{array}_9", 2017, missing)
    ]  # fmt: skip


def test_what_is_over_is_said_before_whose_it_is() -> None:
    h = Harness(make_tables(1))
    job = h.submit()
    h.run(1)
    act(h, CancelJobs([str(job.job_id)]))
    h.run(60)
    for message in (
        ControlJobs("hold", [str(job.job_id)]),
        UpdateJobs([str(job.job_id)], {"comment": "x"}),
    ):
        assert act(h, message, OTHER)[0][1] == 2084


def test_the_last_refusal_tells_of_jobs_that_are_moved_to_the_top_and_an_unknown_one_ends_it() -> (
    None
):
    h = Harness(make_tables(1, cpus=1))
    first, held = h.submit(), h.submit(hold=True)
    h.run(1)

    def codes(text: str, sender: Any = ROOT) -> tuple[str, int]:
        ((name, code, _),) = act(h, ControlJobs("top", [text]), sender)
        return name, code

    assert codes(f"{first.job_id},{held.job_id}") == (f"{first.job_id},{held.job_id}", 2042)
    assert codes(f"{held.job_id},{first.job_id}")[1] == 2073
    assert codes(f"99,{held.job_id}")[1] == codes(f"{held.job_id},99")[1] == 2017
    assert codes("99", USER)[1] == 2002


def test_what_is_changed_of_one_task_is_not_changed_of_the_others() -> None:
    h = Harness(make_tables(1, cpus=1))
    h.submit()
    array = h.submit(array="1-3", time_limit_s=600).job_id
    act(h, UpdateJobs([f"{array}_[1-2]"], {"timelimit": "5"}))
    assert {task: h.core.job(f"{array}_{task}").time_limit_s for task in (1, 2, 3)} == {
        1: 300,
        2: 300,
        3: 600,
    }
    act(h, UpdateJobs([str(array)], {"timelimit": "4"}))
    assert {h.core.job(f"{array}_{task}").time_limit_s for task in (1, 2, 3)} == {240}


def test_tasks_know_their_numbers_in_their_environment() -> None:
    h = Harness(settings=Settings(min_job_age_s=0, emulates_jobs=False))
    array = h.submit(array="2-8:3").job_id
    given = dict(entry.split("=", 1) for entry in job_environment(h.core, h.core.job(f"{array}_5")))
    assert {key: value for key, value in given.items() if "ARRAY" in key} == {
        "SLURM_ARRAY_JOB_ID": str(array),
        "SLURM_ARRAY_TASK_COUNT": "3",
        "SLURM_ARRAY_TASK_ID": "5",
        "SLURM_ARRAY_TASK_MAX": "8",
        "SLURM_ARRAY_TASK_MIN": "2",
        "SLURM_ARRAY_TASK_STEP": "3",
    }
    assert len(h.sent(LaunchBatch)) == 3


def test_output_files_have_array_and_task_in_their_names() -> None:
    h = Harness()
    array = h.submit(array="3").job_id
    assert h.query("jobs", "std_out", array_job_id=[array]) == [[f"/home/ann/slurm-{array}_3.out"]]


def test_a_job_waits_for_all_tasks_of_an_array() -> None:
    h = Harness()
    array = h.submit(array="1-2").job_id
    after = h.submit(dependency=f"afterok:{array}")
    assert h.query("jobs", "dependency", job_id=[after.job_id]) == [
        [f"afterok:{array}_*(unfulfilled)"]
    ]
    h.complete(h.core.job(f"{array}_1"))
    assert after.reason == "Dependency"
    h.complete(h.core.job(f"{array}_2"))
    assert after.is_running


def test_a_job_waits_for_one_task_of_an_array() -> None:
    h = Harness(make_tables(2, cpus=1))
    array = h.submit(array="1-2").job_id
    after = h.submit(dependency=f"afterok:{array}_1")
    never = h.submit(dependency=f"afternotok:{array}_1")
    assert str(after.dependency) == f"afterok:{array}_1(unfulfilled)"
    h.complete(h.core.job(f"{array}_1"))
    assert after.is_running
    assert never.reason == "DependencyNeverSatisfied"


def test_corresponding_tasks_wait_for_each_other() -> None:
    h = Harness()
    first = h.submit(array="1-3").job_id
    second = h.submit(array="1-3", dependency=f"aftercorr:{first}").job_id
    assert states(h, second) == {"1": "Dependency", "2": "Dependency", "3": "Dependency"}, (
        "a pass has made records for all"
    )
    h.complete(h.core.job(f"{first}_2"))
    assert states(h, second) == {"1": "Dependency", "2": "RUNNING", "3": "Dependency"}
    h.complete(h.core.job(f"{first}_1"), code=1)
    assert states(h, second) == {"1": "DependencyNeverSatisfied", "2": "RUNNING", "3": "Dependency"}
    late = h.submit(array="2-3", dependency=f"aftercorr:{first}").job_id
    assert states(h, late) == {"2": "RUNNING", "3": "Dependency"}


def test_a_task_without_a_counterpart_waits_for_all() -> None:
    h = Harness()
    first = h.submit(array="1-2").job_id
    second = h.submit(array="2-3", dependency=f"aftercorr:{first}").job_id
    h.complete(h.core.job(f"{first}_2"))
    assert states(h, second) == {"2": "RUNNING", "3": "Dependency"}
    h.complete(h.core.job(f"{first}_1"))
    assert states(h, second) == {"2": "RUNNING", "3": "RUNNING"}


@pytest.mark.parametrize(("code", "state"), [(0, "RUNNING"), (1, "DependencyNeverSatisfied")])
def test_tasks_wait_for_a_job_that_is_no_array_as_with_afterok(code: int, state: str) -> None:
    """As recorded from 22.05.8."""
    h = Harness()
    first = h.submit().job_id
    second = h.submit(array="1-2", dependency=f"aftercorr:{first}").job_id
    assert states(h, second) == {"1": "Dependency", "2": "Dependency"}
    h.complete(h.core.job(str(first)), code=code)
    assert states(h, second) == {"1": state, "2": state}


def test_a_requeued_task_waits_again_as_the_task_that_it_was() -> None:
    h = Harness()
    array = h.submit(ROOT, array="1-2").job_id
    task = h.core.job(f"{array}_1")
    h.acknowledge()
    act(h, ControlJobs("requeue", [f"{array}_1"]), ROOT)
    h.acknowledge()
    h.epilog(task)
    assert (task.array_task_id, task.reason) == (1, "BeginTime")
    h.run(200)
    assert task.is_running


def test_an_array_is_forgotten_with_its_last_task() -> None:
    h = Harness(settings=Settings(min_job_age_s=60))
    array = h.submit(array="1-2").job_id
    h.complete(h.core.job(f"{array}_2"))
    h.run(200)
    assert list(ids(h, array)) == [1]
    h.complete(h.core.job(f"{array}_1"))
    h.run(200)
    assert not h.core.arrays
    assert not h.core.tables.jobs


def test_policies_that_know_nothing_of_arrays_get_single_tasks() -> None:
    h = Harness(make_tables(1, cpus=1), exact_limits=True)
    array = h.submit(array="1-4%1").job_id
    assert ids(h, array) == {1: 2, 2: 3, 3: 4, 4: 1}
    assert sorted(states(h, array).values()) == ["JobArrayTaskLimit"] * 3 + ["RUNNING"]


def test_records_of_an_array_come_back_as_they_were_saved() -> None:
    h = Harness(make_tables(1, cpus=1))
    array = h.submit(array="1-6%3")
    saved = decode_job(encode_job(array))
    assert saved.array is not None
    assert (saved.array.job_id, saved.array.limit, saved.array_tasks, saved.array_task_id) == (
        array.job_id,
        3,
        array.array_tasks,
        None,
    )
    after = h.submit(dependency=f"afterok:{array.job_id}:{array.job_id}_2")
    assert decode_job(encode_job(after)).dependency == after.dependency


def test_each_task_runs_as_long_as_was_said_of_it() -> None:
    from understudy.protocol.messages import Emulation, JobSpec, SubmitJob

    h = Harness()
    h.ask(SubmitJob(JobSpec(array="1-3"), "#!/bin/sh\n", Emulation(5.0, task_run_s={"2": 20.0})))
    runs = {
        task: job.emulation.run_s
        for task in (1, 2, 3)
        if (job := h.core.job(f"1_{task}")).emulation is not None
    }
    assert runs == {1: 5.0, 2: 20.0, 3: 5.0}


def test_a_job_may_ask_to_be_cancelled_when_its_dependency_can_never_be_met() -> None:
    h = Harness()
    first = h.submit()
    doomed = h.submit(dependency=f"afternotok:{first.job_id}", kill_on_invalid_dep=True)
    patient = h.submit(dependency=f"afternotok:{first.job_id}")
    h.complete(first)
    assert (doomed.state, doomed.reason) == (JobState.CANCELLED, "DependencyNeverSatisfied")
    assert patient.state is JobState.PENDING


def test_a_single_task_is_shown_as_a_list_until_a_scheduler_has_looked_at_it() -> None:
    h = Harness(make_tables(1, cpus=1))
    h.submit()
    held = h.submit(array="5", hold=True)
    assert states(h, held.job_id) == {"[5]": "JobHeldUser"}
    h.control("release", held)
    assert states(h, held.job_id) == {"5": "Resources"}


def test_what_has_left_the_state_that_was_asked_for_is_not_cancelled() -> None:
    h = Harness()
    array = h.submit(array="0-3").job_id
    running = [
        row[0]
        for row in h.query("jobs", "array_task_id", "state", array_job_id=[array])
        if row[1] == 1
    ]
    assert running
    h.ask(CancelJobs([f"{array}_{task}" for task in running], where={"state": [0]}), USER)
    assert [
        row[0]
        for row in h.query("jobs", "array_task_id", "state", array_job_id=[array])
        if row[1] == 1
    ] == running
