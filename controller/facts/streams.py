"""The files of a job's output, errors and input: names with their patterns filled in.

Place: facts. Follows: sbatch(1) "FILENAME PATTERN".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.model.states import JobState

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job


def stands_for_one(job: Job) -> bool:
    """Whether it is an array's record with one task, held or for later, which no scheduler has
    looked at yet: it is shown as an array still.
    """
    if job.array_task_id is None or job.state is not JobState.PENDING or job.array is None:
        return False
    is_put_off = job.is_held or job.reason == "BeginTime"
    return is_put_off and job.array.count == 1 and not job.last_scheduler and not job.restarts


def fill_pattern(core: Core, job: Job, text: str) -> str:
    """A file name of sbatch as records show it: of its patterns these alone are replaced, wherever
    they stand, and without regard to widths.
    """
    if "%" not in text:
        return text
    for letter, value in (
        ("A", job.job_id if job.array is None else job.array.job_id),
        (
            "a",
            4294967294 if job.array_task_id is None or stands_for_one(job) else job.array_task_id,
        ),
        ("j", job.job_id),
        ("u", core.users.user_name(job.user_id)),
        ("x", job.spec.name),
    ):
        text = text.replace(f"%{letter}", str(value))
    return text


def in_work_dir(job: Job, name: str) -> str:
    if name == "none":
        return "/dev/null"
    return name if name.startswith("/") or not name else f"{job.spec.work_dir.rstrip('/')}/{name}"


def _default_output(job: Job) -> str:
    return "slurm-%j.out" if job.array is None else "slurm-%A_%a.out"


def std_out(core: Core, job: Job, _now: float) -> str:
    return fill_pattern(core, job, in_work_dir(job, job.spec.std_out or _default_output(job)))


def std_err(core: Core, job: Job, _now: float) -> str:
    return fill_pattern(
        core, job, in_work_dir(job, job.spec.std_err or job.spec.std_out or _default_output(job))
    )


def std_in(core: Core, job: Job, _now: float) -> str:
    return fill_pattern(core, job, in_work_dir(job, job.spec.std_in or "/dev/null"))
