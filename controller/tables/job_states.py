"""The states of a job: one table says what each event makes of its base state and flags, one
function moves a job, and nothing else assigns them.

Place: tables, pure; `job.py` has the record. Follows: squeue(1) "JOB STATE CODES"; scontrol(1)
requeue, which 22.05.8 was seen to take of every batch job that does not wait, of a completing one,
too.

A run ends (COMPLETING), and its nodes are given back. A running job that goes back into the queue
is CANCELLED and REQUEUE for a moment (COMPLETED or FAILED where RequeueExit has it run again), in
which accounting hears of the run, and then PENDING and COMPLETING until its nodes are free. What is
over has REQUEUE for a moment, too: accounting calls such a run REQUEUED from then on.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from understudy.controller.tables.transitions import Change, InvalidTransition
from understudy.model.states import JobFlag, JobState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.tables.job import Job

_REMEMBERED: Final = 8  # events, for the job's story


class JobEvent(StrEnum):
    """What can happen to a job."""

    RELEASED = "released"
    MARKED_SPECIAL = "marked special"  # requeuehold State=SpecialExit, RequeueExitHold
    RESERVATION_DELETED = "reservation deleted"
    CANNOT_RUN = "cannot run"
    ALLOCATED = "allocated"
    CONFIGURES = "configures"  # its nodes boot, or PrologSlurmctld runs
    CONFIGURED = "configured"
    STOPPED = "stopped"  # by a signal
    CONTINUED = "continued"
    SUSPENDED = "suspended"
    RESUMED = "resumed"
    EXITED_WELL = "exited well"
    EXITED_BADLY = "exited badly"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    TAKEN_BACK = "taken back"  # ended, to be requeued
    RUNS_AGAIN_WELL = "exited well to run again"  # RequeueExit, of code 0
    RUNS_AGAIN_BADLY = "exited badly to run again"
    NODE_FAILED = "node failed"
    LAUNCH_FAILED = "launch failed"
    DEADLINE_PASSED = "deadline passed"
    RAN_OUT_OF_MEMORY = "ran out of memory"
    PREEMPTED = "preempted"
    NODES_FREED = "nodes freed"
    WANTED_AGAIN = "wanted again"  # what is over, to be requeued
    REQUEUED = "requeued"
    STAGES_OUT = "stages out"  # its burst buffer, behind it
    STAGED_OUT = "staged out"


_P, _R, _S = JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED
_ENDS: Final = {
    JobEvent.EXITED_WELL: JobState.COMPLETED,
    JobEvent.EXITED_BADLY: JobState.FAILED,
    JobEvent.TIMED_OUT: JobState.TIMEOUT,
    JobEvent.CANCELLED: JobState.CANCELLED,
    JobEvent.TAKEN_BACK: JobState.CANCELLED,
    JobEvent.RUNS_AGAIN_WELL: JobState.COMPLETED,
    JobEvent.RUNS_AGAIN_BADLY: JobState.FAILED,
    JobEvent.NODE_FAILED: JobState.NODE_FAIL,
    JobEvent.LAUNCH_FAILED: JobState.FAILED,
    JobEvent.DEADLINE_PASSED: JobState.DEADLINE,
    JobEvent.RAN_OUT_OF_MEMORY: JobState.OUT_OF_MEMORY,
    JobEvent.PREEMPTED: JobState.PREEMPTED,
}
# what a job's chronicle has of what is done to it while it runs; its start and end are told anyway
_TOLD: Final = frozenset(
    (
        JobEvent.CONFIGURES,
        JobEvent.CONFIGURED,
        JobEvent.STOPPED,
        JobEvent.CONTINUED,
        JobEvent.SUSPENDED,
        JobEvent.RESUMED,
        JobEvent.NODE_FAILED,
    )
)
_TO_RUN_AGAIN: Final = (
    JobEvent.TAKEN_BACK,
    JobEvent.RUNS_AGAIN_WELL,
    JobEvent.RUNS_AGAIN_BADLY,
)
_OVER: Final = tuple(dict.fromkeys(_ENDS.values()))
_COMPLETING: Final = JobFlag.COMPLETING
_HELD: Final = JobFlag.SPECIAL_EXIT | JobFlag.RESV_DEL_HOLD
_OF_A_RUN: Final = JobFlag.CONFIGURING | JobFlag.STOPPED | _HELD

TRANSITIONS: Final[Mapping[tuple[JobState, JobEvent], Change[JobState, JobFlag]]] = {
    (_P, JobEvent.RELEASED): Change(_P, loses=_HELD),
    (_P, JobEvent.MARKED_SPECIAL): Change(_P, gains=JobFlag.SPECIAL_EXIT),
    (_P, JobEvent.RESERVATION_DELETED): Change(_P, gains=JobFlag.RESV_DEL_HOLD),
    (_S, JobEvent.RESERVATION_DELETED): Change(_S, gains=JobFlag.RESV_DEL_HOLD),
    (_P, JobEvent.CANNOT_RUN): Change(JobState.FAILED, loses=_HELD),
    (_P, JobEvent.CANCELLED): Change(JobState.CANCELLED, loses=_HELD),
    (_P, JobEvent.DEADLINE_PASSED): Change(JobState.DEADLINE, loses=_HELD),
    (_P, JobEvent.NODE_FAILED): Change(JobState.NODE_FAIL, loses=_HELD),
    (_P, JobEvent.ALLOCATED): Change(_R, loses=_HELD, bars=_COMPLETING),
    (_R, JobEvent.CONFIGURES): Change(_R, gains=JobFlag.CONFIGURING),
    (_R, JobEvent.CONFIGURED): Change(_R, loses=JobFlag.CONFIGURING, needs=JobFlag.CONFIGURING),
    **{(each, JobEvent.STOPPED): Change(each, gains=JobFlag.STOPPED) for each in (_R, _S)},
    **{(each, JobEvent.CONTINUED): Change(each, loses=JobFlag.STOPPED) for each in (_R, _S)},
    (_R, JobEvent.SUSPENDED): Change(_S, loses=JobFlag.STOPPED),
    (_S, JobEvent.RESUMED): Change(_R, loses=JobFlag.STOPPED),
    **{
        (active, event): Change(
            state,
            gains=_COMPLETING | JobFlag.REQUEUE if event in _TO_RUN_AGAIN else _COMPLETING,
            loses=_OF_A_RUN,
        )
        for event, state in _ENDS.items()
        for active in (_R, _S)
    },
    **{
        (over, JobEvent.NODES_FREED): Change(over, loses=_COMPLETING, needs=_COMPLETING)
        for over in (_P, *_OVER)
    },
    **{
        (over, JobEvent.STAGES_OUT): Change(over, gains=JobFlag.STAGE_OUT, bars=JobFlag.REQUEUE)
        for over in _OVER
    },
    **{
        (over, JobEvent.STAGED_OUT): Change(over, loses=JobFlag.STAGE_OUT, needs=JobFlag.STAGE_OUT)
        for over in _OVER
    },
    **{(over, JobEvent.WANTED_AGAIN): Change(over, gains=JobFlag.REQUEUE) for over in _OVER},
    **{
        (over, JobEvent.REQUEUED): Change(_P, loses=JobFlag.REQUEUE | JobFlag.STAGE_OUT)
        for over in _OVER
    },
}


def advance(job: Job, event: JobEvent, now: float) -> None:
    """Move the job.

    Raises:
        InvalidTransition: with the job's story; the job is unchanged.
    """
    change = TRANSITIONS.get((job.state, event))
    flags = None if change is None else change.after(job.flags)
    if change is None or flags is None:
        raise InvalidTransition(f"{event} while {job.story}")
    job.log.append((now, event))
    if len(job.log) > _REMEMBERED:
        del job.log[:-_REMEMBERED]
    if job.state is _P:
        job.note_wait(now)
    elif job.chronicle is not None and event in _TOLD:
        job.chronicle.happened(now, event.value)
    job.state = change.state
    job.flags = flags
