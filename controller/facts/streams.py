"""The files of a job's output, errors and input: names with their patterns filled in.

Place: facts. Follows: sbatch(1) "FILENAME PATTERN".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.model.states import JobState

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

_NO_TASK: Final = 4294967294  # of an array's record


def stands_for_one(job: Job) -> bool:
    """Whether it is an array's record with one task, held or for later, which no scheduler has
    looked at yet: it is shown as an array still.
    """
    if job.array_task_id is None or job.state is not JobState.PENDING or job.array is None:
        return False
    is_put_off = job.is_held or job.reason == "BeginTime"
    return is_put_off and job.array.count == 1 and not job.last_scheduler and not job.restarts


_PATTERNS: Final[tuple[tuple[str, Callable[[Core, Job], object]], ...]] = (
    ("%A", lambda _core, job: job.job_id if job.array is None else job.array.job_id),
    ("%a", lambda _core, job: _NO_TASK if _has_no_task(job) else job.array_task_id),
    ("%j", lambda _core, job: job.job_id),
    ("%u", lambda core, job: core.users.user_name(job.user_id)),
    ("%x", lambda _core, job: job.spec.name),
)


def _has_no_task(job: Job) -> bool:
    return job.array_task_id is None or stands_for_one(job)


def fill_pattern(core: Core, job: Job, text: str) -> str:
    """A file name of sbatch as records show it: of its patterns these alone are replaced, wherever
    they stand, and without regard to widths.
    """
    if "%" not in text:
        return text
    for pattern, value_of in _PATTERNS:
        if pattern in text:
            text = text.replace(pattern, str(value_of(core, job)))
    return text


def in_work_dir(job: Job, name: str) -> str:
    if name == "none":
        return "/dev/null"
    return name if name.startswith("/") or not name else f"{job.spec.work_dir.rstrip('/')}/{name}"


def _default_output(core: Core, job: Job) -> str:
    if job.array is None and "%" not in job.spec.work_dir:
        return in_work_dir(job, f"slurm-{job.job_id}.out")
    name = "slurm-%j.out" if job.array is None else "slurm-%A_%a.out"
    return fill_pattern(core, job, in_work_dir(job, name))


def std_out(core: Core, job: Job, _now: float) -> str:
    name = job.spec.std_out
    return fill_pattern(core, job, in_work_dir(job, name)) if name else _default_output(core, job)


def std_err(core: Core, job: Job, now: float) -> str:
    name = job.spec.std_err
    return fill_pattern(core, job, in_work_dir(job, name)) if name else std_out(core, job, now)


def std_in(core: Core, job: Job, _now: float) -> str:
    return fill_pattern(core, job, in_work_dir(job, job.spec.std_in or "/dev/null"))
