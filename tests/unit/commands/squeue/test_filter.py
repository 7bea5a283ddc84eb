"""Which jobs squeue shows."""

from __future__ import annotations

import pytest

from understudy.commands.squeue.filter import Filter
from understudy.model.states import JobFlag, JobState


def job(state: JobState, flags: JobFlag = JobFlag.NONE) -> dict[str, object]:
    return {"job_id": 1, "array_job_id": 0, "state": int(state), "flags": int(flags), "user_id": 7}


@pytest.mark.parametrize("of_user", [False, True])
@pytest.mark.parametrize(
    ("state", "flags", "is_shown"),
    [
        (JobState.PENDING, JobFlag.NONE, True),
        (JobState.RUNNING, JobFlag.CONFIGURING, True),
        (JobState.COMPLETED, JobFlag.NONE, False),
        (JobState.FAILED, JobFlag.COMPLETING, True),
        (JobState.COMPLETED, JobFlag.STAGE_OUT, True),
    ],
)
def test_jobs_that_still_do_something_are_shown(state, flags, is_shown, of_user):
    chosen = Filter()
    chosen.users = [7] if of_user else None
    assert bool(chosen.kept([job(state, flags)])) is is_shown
