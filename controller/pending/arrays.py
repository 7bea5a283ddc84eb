"""Job arrays: one record for all tasks that nobody has looked at yet; a task gets a record, and a
job id, of its own when it starts or is changed.

Place: pending. Follows: sbatch(1) --array; Slurm's documentation of job arrays. The
array's own record keeps the array's job id, and the last task that is left takes it over.

Tasks that wait for the limit of tasks at a time (`%N`) are not eligible; when one of the array's
tasks ends, the policy is told.

Textbook policies know nothing of arrays: for them all tasks get their records at once.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from understudy.controller.core.alarms import wait_until, watch_deadline
from understudy.controller.core.changes import job_changed
from understudy.controller.pending.dependencies import watch_dependency
from understudy.controller.pending.purge import schedule_purge
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.job import JobArray
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.task_numbers import parse
from understudy.protocol.messages import Emulation

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.core.reactions import End
    from understudy.controller.tables.job import Job

TASK_LIMIT: Final = "JobArrayTaskLimit"
TOLD_S: Final = 2  # Slurm tells accounting of a job that waits some seconds after it was submitted


def read_tasks(core: Core, text: str) -> tuple[int, int]:
    """(bitmap of tasks, limit) of a submitted array.

    Raises:
        SlurmError: not an array expression.
    """
    try:
        return parse(text, core.settings.max_array_size)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_ARRAY) from None


def _step(text: str) -> int:
    """What SLURM_ARRAY_TASK_STEP says: that of the first range with one, however even the numbers
    are.
    """
    _, colon, rest = text.partition(":")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return int(digits) if colon and digits else 1


def make_array(core: Core, job: Job, tasks: int, limit: int) -> None:
    """The submitted job is an array."""
    numbers = nodeset.indices(tasks)
    array = JobArray(
        job.job_id, limit, len(numbers), numbers[0], numbers[-1], _step(job.spec.array)
    )
    join(core, job, array, tasks)


def join(core: Core, job: Job, array: JobArray, tasks: int) -> None:
    """The job is a record of the array; `tasks` (a bitmap) are those that have no records of their
    own.
    """
    core.arrays[array.job_id] = array
    array.records[job.job_id] = job
    job.array, job.array_tasks = array, tasks
    if tasks.bit_count() == 1 and job.array_task_id is None:
        _become(job, tasks.bit_length() - 1)


def restore(core: Core, job: Job, saved: JobArray) -> None:
    """A saved record of an array is back; `saved`: what it says of the array."""
    array = core.arrays.get(saved.job_id)
    if array is None:
        try:
            numbers = nodeset.indices(parse(job.spec.array, 1 << 26)[0])
        except ValueError:
            numbers = [0]
        array = JobArray(
            saved.job_id, saved.limit, len(numbers), numbers[0], numbers[-1], _step(job.spec.array)
        )
    array.has_lost_tasks |= saved.has_lost_tasks
    join(core, job, array, job.array_tasks)


def split_all(core: Core, job: Job) -> None:
    """Each task gets a record of its own."""
    while job.array_tasks:
        split(core, job, (job.array_tasks & -job.array_tasks).bit_length() - 1)


def split(core: Core, job: Job, task: int) -> Job:
    """The task gets a record of its own, in the array's state; the array's becomes that of the last
    task if but one is left there, or of the only.
    """
    assert job.array_tasks >> task & 1, job.story
    assert job.array is not None
    job.withdrawn_tasks = 0
    if job.array_tasks == 1 << task:
        _become(job, task)
        job_changed(core, job, core.time.now())
        return job
    own = copy.copy(job)
    own.job_id = core.take_job_id()
    own.log = list(job.log)
    if job.chronicle is not None:
        own.chronicle = job.chronicle.copied()
    job.array_tasks &= ~(1 << task)
    own.forget_promises()
    _become(own, task)
    if job.array_tasks.bit_count() == 1:
        _become(job, job.array_tasks.bit_length() - 1)
    job.array.records[own.job_id] = own
    tables = core.tables
    tables.jobs[own.job_id] = own
    core.scripts[own.job_id] = core.scripts.get(job.job_id, "")
    if own.is_pending:
        tables.pending[own.job_id] = own
        if own.dependency is not None:
            watch_dependency(core, own)
        if own.begin_time is not None and own.begin_time > core.time.now():
            wait_until(core, own.begin_time, own.job_id)
        watch_deadline(core, own)
    else:  # cancelled before it ran, and now somebody asks for one of its tasks
        schedule_purge(core, own, core.time.now())
    for each in (job, own):
        job_changed(core, each, core.time.now())
    return own


def _become(job: Job, task: int) -> None:
    """The record is that of one task."""
    job.array_task_id, job.array_tasks = task, 0
    emulation = job.emulation
    if emulation is not None and (emulation.task_run_s or emulation.task_end):
        run_s = emulation.task_run_s.get(str(task), emulation.run_s)
        end = emulation.task_end.get(
            str(task), (emulation.exit_code, emulation.signal, emulation.fault)
        )
        job.emulation = Emulation(run_s, end[0], end[1], fault=end[2], tag=emulation.tag)


def fill_up(core: Core, job: Job, _now: float) -> None:
    """A job has its nodes: it may be the last of as many tasks as its array may run."""
    if job.array is not None:
        explain_limit(core, job.array)


def explain_limit(core: Core, array: JobArray) -> None:
    """As many tasks run as may: the others wait for that."""
    if array.is_full:
        core.changed(Note.MET, core.time.now())  # the queue is another one now
        for job in array.records.values():
            if (
                job.is_pending
                and job.priority
                and job.dependency is None
                and job.reason != TASK_LIMIT
            ):
                job.note_wait(core.time.now())
                job.reason, job.reason_detail = TASK_LIMIT, ""
                job.expected_start, job.expected_nodes = None, 0
                job_changed(core, job, core.time.now())


def make_room(core: Core, job: Job, _end: End, now: float) -> None:
    """A task has ended: another may run."""
    if job.array is not None and job.array.limit:
        admit(core, job.array, now)


def admit(core: Core, array: JobArray, now: float) -> None:
    """Who waited for the array's limit is eligible from now on; its age goes on counting."""
    if array.is_full:
        return
    for job in array.records.values():
        if job.is_pending and job.reason == TASK_LIMIT and job.eligible_time is not None:
            if job.accrue_time is None:
                job.accrue_time = job.eligible_time
            job.eligible_time = int(now)
            job_changed(core, job, now)


def separate(core: Core, job: Job, tasks: int) -> list[Job]:
    """Records for just these tasks (a bitmap; 0 for a record of one): the array's own if all that
    are left are meant, else new ones.
    """
    if not tasks or tasks == job.array_tasks:
        return [job]
    return [split(core, job, task) for task in nodeset.indices(tasks)]


def withdraw(core: Core, job: Job, tasks: int) -> None:
    """These waiting tasks (a bitmap) are none of the array's from here on: nobody hears of them
    again. Accounting has them if it was told of them.
    """
    now = core.time.now()
    if now - job.submit_time >= TOLD_S:
        job.withdrawn_tasks |= tasks
    job.array_tasks &= ~tasks
    if job.array is not None:
        job.array.has_lost_tasks = True
    if core.following is not None:
        core.following.note_withdrawn(job, tasks, now)
    job_changed(core, job, now)
