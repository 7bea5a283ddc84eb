"""The states of steps."""

from __future__ import annotations

import pytest

from understudy.controller.tables.step import Step
from understudy.controller.tables.step_states import TRANSITIONS, StepEvent, advance
from understudy.controller.tables.transitions import InvalidTransition
from understudy.model.states import JobState


def step() -> Step:
    return Step(3, "s", [], "n1", 0)


def test_a_step_that_timed_out_stays_so_however_its_tasks_end() -> None:
    for event in StepEvent:
        late = step()
        advance(late, StepEvent.TIMED_OUT, 1.0)
        advance(late, event, 2.0)
        assert late.state is JobState.TIMEOUT


def test_every_event_can_end_a_running_step() -> None:
    assert {event for state, event in TRANSITIONS if state is JobState.RUNNING} == set(StepEvent)


def test_what_cannot_happen_is_refused_with_the_story() -> None:
    over = step()
    advance(over, StepEvent.KILLED, 5.0)
    with pytest.raises(
        InvalidTransition, match=r"exited well while step 3 on n1 CANCELLED: 5\.000 killed"
    ):
        advance(over, StepEvent.EXITED_WELL, 6.0)
    assert over.state is JobState.CANCELLED
