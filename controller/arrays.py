"""Job arrays: one record for all tasks that nobody has looked at yet; a task gets a record, and a job id, of its own when it starts or is changed.

Place: the controller's core. Follows: sbatch(1) --array; Slurm's documentation of job arrays. The array's own record keeps the array's job id, and
the last task that is left takes it over.

Tasks that wait for the limit of tasks at a time (`%N`) are not eligible; when one of the array's tasks ends, the policy is told.

Textbook policies know nothing of arrays: for them all tasks get their records at once.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from understudy.controller.alarms import wait_until, watch_deadline
from understudy.controller.dependency import CORRESPONDING
from understudy.controller.eligibility import review, watch_dependency
from understudy.controller.het_jobs import find_component
from understudy.controller.job import JobArray
from understudy.controller.purge import schedule_purge
from understudy.controller.views import select_jobs
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.task_numbers import format_tasks, parse, parse_tasks
from understudy.protocol.messages import Emulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from understudy.controller.core import Core
    from understudy.controller.job import Job

NO_ERROR: Final = "No error"  # said of tasks for which it went well, beside others
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
    """What SLURM_ARRAY_TASK_STEP says: that of the first range with one, however even the numbers are."""
    _, colon, rest = text.partition(":")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return int(digits) if colon and digits else 1


def make_array(core: Core, job: Job, tasks: int, limit: int) -> None:
    """The submitted job is an array."""
    numbers = nodeset.indices(tasks)
    array = JobArray(job.job_id, limit, len(numbers), numbers[0], numbers[-1], _step(job.spec.array))
    join(core, job, array, tasks)


def join(core: Core, job: Job, array: JobArray, tasks: int) -> None:
    """The job is a record of the array; `tasks` (a bitmap) are those that have no records of their own."""
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
        array = JobArray(saved.job_id, saved.limit, len(numbers), numbers[0], numbers[-1], _step(job.spec.array))
    join(core, job, array, job.array_tasks)


def split_all(core: Core, job: Job) -> None:
    """Each task gets a record of its own."""
    while job.array_tasks:
        split(core, job, (job.array_tasks & -job.array_tasks).bit_length() - 1)


def split(core: Core, job: Job, task: int) -> Job:
    """The task gets a record of its own, in the array's state; the array's becomes that of the last task if but one is left there, or of the only."""
    assert job.array_tasks >> task & 1, job.story
    assert job.array is not None
    job.withdrawn_tasks = 0
    if job.array_tasks == 1 << task:
        _become(job, task)
        core.journal.job(job.job_id)
        return job
    own = copy.copy(job)
    own.job_id = core.take_job_id()
    own.log = list(job.log)
    job.array_tasks &= ~(1 << task)
    own.expected_start, own.expected_nodes = None, 0
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
    core.journal.job(job.job_id)
    core.journal.job(own.job_id)
    return own


def split_corresponding(core: Core, job: Job, other: Job, now: float) -> None:
    """A task of an array on which this one depends task by task has ended: the corresponding task need not wait for the others."""
    array, task = other.array, other.array_task_id
    if array is None or task is None or not other.is_finished or other.is_completing or not job.array_tasks >> task & 1 or job.dependency is None:
        return
    if any(term.kind == CORRESPONDING and term.job_id == array.job_id for term in job.dependency.terms):
        own = split(core, job, task)
        review(core, own, now)
        if own.dependency is None:
            core.changed("change", now)


def split_ended(core: Core, job: Job, now: float) -> None:
    """A new array depends on others task by task: look at which of those have ended already."""
    if job.dependency is None:
        return
    for term in job.dependency.terms:
        if term.kind == CORRESPONDING and term.job_id in core.arrays:
            for other in list(core.arrays[term.job_id].records.values()):
                split_corresponding(core, job, other, now)
            core.unsplit[job.job_id] = None
    if not job.array_tasks:
        review(core, job, now)


def split_waiting(core: Core, now: float) -> None:
    """A pass is about to look at the queue: arrays that wait task by task for others get records for all tasks."""
    for job_id in list(core.unsplit):
        job = core.tables.pending.get(job_id)
        if job is not None and not job.priority:
            continue
        del core.unsplit[job_id]
        if job is not None and job.array is not None and job.dependency is not None:
            split_all(core, job)
            for each in list(job.array.records.values()):
                if each.is_pending:
                    review(core, each, now)


def _become(job: Job, task: int) -> None:
    """The record is that of one task."""
    job.array_task_id, job.array_tasks = task, 0
    emulation = job.emulation
    if emulation is not None and (emulation.task_run_s or emulation.task_end):
        run_s = emulation.task_run_s.get(str(task), emulation.run_s)
        end = emulation.task_end.get(str(task), (emulation.exit_code, emulation.signal, emulation.fault))
        job.emulation = Emulation(run_s, end[0], end[1], fault=end[2], tag=emulation.tag)


def explain_limit(core: Core, array: JobArray) -> None:
    """As many tasks run as may: the others wait for that."""
    if array.is_full:
        for job in array.records.values():
            if job.is_pending and job.priority and job.dependency is None and job.reason != TASK_LIMIT:
                job.note_wait(core.time.now())
                job.reason, job.reason_detail = TASK_LIMIT, ""
                job.expected_start, job.expected_nodes = None, 0
                core.journal.job(job.job_id)


def find(core: Core, text: str) -> list[tuple[Job, int]]:
    """The records that a user names: `17`, `17_3`, `17_[1-4]`, `17_*`; with each the tasks (a bitmap) of it that are meant if it has several, else 0.

    Raises:
        SlurmError: there is no such job or task.
    """
    if "+" in text:
        return [(find_component(core, text), 0)]
    number, underscore, tasks = text.partition("_")
    if not number.isdecimal():
        raise SlurmError(ErrorCode.INVALID_JOB)
    array = core.arrays.get(int(number))
    if array is None:
        if underscore:
            raise SlurmError(ErrorCode.INVALID_JOB)
        return [(core.job(number), 0)]
    records = [array.records[job_id] for job_id in sorted(array.records)]
    if not underscore or tasks == "*":
        return [(job, job.array_tasks) for job in records]
    wanted = _read_tasks(tasks)
    found: list[tuple[Job, int]] = []
    for job in records:
        if job.array_tasks & wanted:
            found.append((job, job.array_tasks & wanted))
        elif job.array_task_id is not None and wanted >> job.array_task_id & 1:
            found.append((job, 0))
    if not found:
        raise SlurmError(ErrorCode.INVALID_JOB)
    return found


def _read_tasks(text: str) -> int:
    """The bitmap of tasks that follow an array's number; none for all.

    Raises:
        SlurmError: no list of tasks.
    """
    if text == "*":
        return 0
    try:
        return parse_tasks(text.removeprefix("[").removesuffix("]").partition("%")[0], 1 << 26)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_JOB) from None


def _is_task_list(text: str) -> bool:
    try:
        return bool(_read_tasks(text))
    except SlurmError:
        return False


def separate(core: Core, job: Job, tasks: int) -> list[Job]:
    """Records for just these tasks (a bitmap; 0 for a record of one): the array's own if all that are left are meant, else new ones."""
    if not tasks or tasks == job.array_tasks:
        return [job]
    return [split(core, job, task) for task in nodeset.indices(tasks)]


def withdraw(core: Core, job: Job, tasks: int) -> None:
    """These waiting tasks (a bitmap) are none of the array's from here on: nobody hears of them again. Accounting has them if it was told of them."""
    now = core.time.now()
    if now - job.submit_time >= TOLD_S:
        job.withdrawn_tasks |= tasks
    job.array_tasks &= ~tasks
    if core.following is not None:
        core.following.note_withdrawn(job, tasks, now)
    core.last_job_update = now
    core.journal.job(job.job_id)


def for_each(
    core: Core,
    texts: list[str],
    where: dict[str, list[Any]],
    act: Callable[[Job], None],
    act_on_tasks: Callable[[Job, int], bool] = lambda _job, _tasks: False,
) -> list[tuple[str, int, str]]:
    """Do something to each job, array or task that a user names, or with none named to all unfinished ones that match: what became of each.

    For several tasks it went well if it did for one of them; else the first refusal tells. `act_on_tasks` is asked first where tasks are named that
    have no records of their own; unless it says that it has done all there is to do, they get records.
    """
    named: list[tuple[str, list[tuple[Job, int]] | None]] = [(text, None) for text in texts]
    if not named:
        named = [(str(job.job_id), [(job, job.array_tasks)]) for job in select_jobs(core, where) if not job.is_finished]
    results: list[tuple[str, int, str]] = []
    for text, given in named:
        try:
            found = find(core, text) if given is None else given
        except SlurmError as error:
            results.append((text, error.code, error.text))
            continue
        outcomes = list(_outcomes(core, found, act, act_on_tasks, are_named="_" in text and not text.endswith("*")))
        refusals = [refusal for _, refusal in outcomes if refusal is not None]
        results.append((text, refusals[0].code, refusals[0].text) if refusals and len(refusals) == len(outcomes) else (text, 0, ""))
    return results


def for_each_task(core: Core, texts: list[str], where: dict[str, list[Any]], act: Callable[[Job], None]) -> list[tuple[str, int, str]]:
    """The same, with what became of an array's tasks if not all went well: `17_1-4` for those of whom the same is said."""
    results: list[tuple[str, int, str]] = []
    if not texts:
        for job in select_jobs(core, where):
            if job.array is None or not job.is_finished:
                results += _told(core, str(job.job_id), [(job, job.array_tasks)], act)
        return results
    for text in texts:
        number, _, tasks = text.partition("_")
        try:
            wanted = _read_tasks(tasks) if tasks and number.isdecimal() else 0
            found = find(core, text)
        except SlurmError as error:
            is_task = error.code == ErrorCode.INVALID_JOB and number.isdecimal() and tasks and _is_task_list(tasks)
            results.append((f"{number}_{format_tasks(wanted)}" if is_task else text, error.code, error.text))
            continue
        results += _told(core, text, found, act, wanted, are_named="_" in text and not text.endswith("*"))
    return results


def _told(
    core: Core, text: str, found: list[tuple[Job, int]], act: Callable[[Job], None], wanted: int = 0, *, are_named: bool = False
) -> list[tuple[str, int, str]]:
    """What became of the jobs; for records of an array task by task, those that were wanted and are not there last."""
    array = found[0][0].array
    groups: dict[tuple[int, str], int] = {}
    for tasks, refusal in _outcomes(core, found, act, are_named=are_named):
        key = (0, "") if refusal is None else (refusal.code, refusal.text)
        groups[key] = groups.get(key, 0) | tasks
        wanted &= ~tasks
    if wanted:
        missing = SlurmError(ErrorCode.INVALID_JOB)
        groups[missing.code, missing.text] = groups.get((missing.code, missing.text), 0) | wanted
    if array is None or all(not code for code, _ in groups):
        return [(text, code, said) for code, said in groups]
    return [(f"{array.job_id}_{format_tasks(tasks)}", code, said or NO_ERROR) for (code, said), tasks in groups.items()]


def _outcomes(
    core: Core,
    found: list[tuple[Job, int]],
    act: Callable[[Job], None],
    act_on_tasks: Callable[[Job, int], bool] = lambda _job, _tasks: False,
    *,
    are_named: bool,
) -> Iterator[tuple[int, SlurmError | None]]:
    """The tasks (a bitmap; 0 for a job that is none) of each record that something was done to, and the refusal."""
    for record, tasks in found:
        try:
            if tasks and are_named and act_on_tasks(record, tasks):
                yield tasks, None
                continue
        except SlurmError as error:
            yield tasks, error
            continue
        for job in separate(core, record, tasks):
            own = job.array_tasks or (0 if job.array_task_id is None else 1 << job.array_task_id)
            try:
                act(job)
            except SlurmError as error:
                yield own, error
            else:
                yield own, None


def array_environment(job: Job) -> dict[str, object]:
    """SLURM_ARRAY_* of a task."""
    array = job.array
    if array is None or job.array_task_id is None:
        return {}
    return {
        "SLURM_ARRAY_JOB_ID": array.job_id,
        "SLURM_ARRAY_TASK_COUNT": array.count,
        "SLURM_ARRAY_TASK_ID": job.array_task_id,
        "SLURM_ARRAY_TASK_MAX": array.last,
        "SLURM_ARRAY_TASK_MIN": array.first,
        "SLURM_ARRAY_TASK_STEP": array.step,
    }
