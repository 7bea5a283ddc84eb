"""The states of a step: one table says which follows which, one function moves a step, and nothing
else assigns its state.

Place: tables, pure; `step.py` has the record. Follows: sacct(1) "JOB STATE CODES". A step has no
flags. One whose time is over is TIMEOUT from then on, while its tasks are still being ended.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from understudy.controller.tables.transitions import Change, InvalidTransition
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.tables.step import Step


class StepEvent(StrEnum):
    """What can happen to a step."""

    TIMED_OUT = "timed out"
    EXITED_WELL = "exited well"
    EXITED_BADLY = "exited badly"
    KILLED = "killed"  # by somebody, or with its job
    RAN_OUT_OF_MEMORY = "ran out of memory"


_AFTER: Final = {
    StepEvent.TIMED_OUT: JobState.TIMEOUT,
    StepEvent.EXITED_WELL: JobState.COMPLETED,
    StepEvent.EXITED_BADLY: JobState.FAILED,
    StepEvent.KILLED: JobState.CANCELLED,
    StepEvent.RAN_OUT_OF_MEMORY: JobState.OUT_OF_MEMORY,
}
TRANSITIONS: Final[Mapping[tuple[JobState, StepEvent], Change[JobState, JobFlag]]] = {
    **{(JobState.RUNNING, event): Change(state) for event, state in _AFTER.items()},
    **{(JobState.TIMEOUT, event): Change(JobState.TIMEOUT) for event in _AFTER},
}


def advance(step: Step, event: StepEvent, now: float) -> None:
    """Move the step.

    Raises:
        InvalidTransition: with the step's story; the step is unchanged.
    """
    change = TRANSITIONS.get((step.state, event))
    if change is None:
        raise InvalidTransition(f"{event} while {step.story}")
    step.log.append((now, event))
    step.state = change.state
