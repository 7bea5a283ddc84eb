"""The states of jobs. Covers: controller/tables/transitions."""

from __future__ import annotations

import pytest
from controller_harness import Harness

from understudy.controller.tables.job_states import TRANSITIONS, JobEvent, advance
from understudy.controller.tables.transitions import InvalidTransition
from understudy.model.states import JobFlag, JobState

START = (JobState.PENDING, JobFlag.NONE)
RUN_FLAGS = JobFlag.CONFIGURING | JobFlag.STOPPED


def reachable() -> set[tuple[JobState, JobFlag]]:
    """All that a job can become."""
    found, ahead = {START}, [START]
    while ahead:
        state, flags = ahead.pop()
        for (before, _), change in TRANSITIONS.items():
            if before is state and change.may_happen(flags):
                after = (change.state, change.flags_after(flags))
                if after not in found:
                    found.add(after)
                    ahead.append(after)
    return found


def test_every_state_of_the_table_can_be_reached() -> None:
    assert {state for state, _ in reachable()} == {state for state, _ in TRANSITIONS}


def test_what_a_running_job_does_is_said_of_running_jobs_alone() -> None:
    wrong = {
        (state, flags)
        for state, flags in reachable()
        if flags & RUN_FLAGS and state not in (JobState.RUNNING, JobState.SUSPENDED)
    }
    assert wrong == set()


def test_only_what_has_ended_is_completing() -> None:
    completing = {state for state, flags in reachable() if flags & JobFlag.COMPLETING}
    assert completing.isdisjoint({JobState.RUNNING, JobState.SUSPENDED})
    assert JobState.PENDING in completing, "requeued, and its nodes are not free yet"


def test_a_job_is_held_as_a_special_exit_or_for_its_reservation_only_while_it_waits() -> None:
    held = JobFlag.SPECIAL_EXIT | JobFlag.RESV_DEL_HOLD
    assert {state for state, flags in reachable() if flags & JobFlag.SPECIAL_EXIT} == {
        JobState.PENDING
    }
    assert not any(state.is_finished for state, flags in reachable() if flags & held)


def test_a_run_that_is_followed_by_another_is_over_for_the_moment_until_it_waits() -> None:
    assert all(state.is_finished for state, flags in reachable() if flags & JobFlag.REQUEUE)
    ends = {TRANSITIONS[JobState.RUNNING, event] for event in JobEvent if "to run again" in event}
    assert {(each.state, each.gains) for each in ends} == {
        (JobState.COMPLETED, JobFlag.COMPLETING | JobFlag.REQUEUE),
        (JobState.FAILED, JobFlag.COMPLETING | JobFlag.REQUEUE),
    }


def test_only_what_is_over_is_requeued() -> None:
    assert {state for state, event in TRANSITIONS if event is JobEvent.REQUEUED} == {
        state for state, _ in reachable() if state.is_finished
    }


def test_a_job_that_holds_nodes_is_not_started() -> None:
    change = TRANSITIONS[JobState.PENDING, JobEvent.ALLOCATED]
    assert not change.may_happen(JobFlag.COMPLETING)
    assert change.may_happen(JobFlag.NONE)


def test_what_cannot_happen_is_refused_with_the_story_and_changes_nothing() -> None:
    h = Harness()
    job = h.submit()
    job.log[:] = [(7.0, "allocated")]
    with pytest.raises(InvalidTransition, match=r"requeued while job 1 RUNNING: 7\.000 allocated"):
        advance(job, JobEvent.REQUEUED, 8.0)
    assert (job.state, job.flags, len(job.log)) == (JobState.RUNNING, JobFlag.NONE, 1)
    h.cancel(job)
    with pytest.raises(InvalidTransition, match=r"exited well while job 1 CANCELLED\|COMPLETING"):
        advance(job, JobEvent.EXITED_WELL, 9.0)
