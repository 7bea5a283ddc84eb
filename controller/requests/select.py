"""Which jobs a request names: numbers, arrays and their tasks (`5_[1-3]`), components (`7+1`), and
what became of each.

Place: requests; used by those that act on several jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.controller.core.lookups import find_component
from understudy.controller.pending.arrays import separate
from understudy.controller.views.query import select_jobs
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.task_numbers import format_tasks, parse_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

NO_ERROR: Final = "No error"  # said of tasks for which it went well, beside others


def find(core: Core, text: str) -> list[tuple[Job, int]]:
    """The records that a user names: `17`, `17_3`, `17_[1-4]`, `17_*`; with each the tasks (a
    bitmap) of it that are meant if it has several, else 0.

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
    if text.startswith("[") != text.endswith("]"):
        raise SlurmError(ErrorCode.INVALID_JOB)
    try:
        return parse_tasks(text.removeprefix("[").removesuffix("]").partition("%")[0], 1 << 26)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_JOB) from None


def is_task_list(text: str) -> bool:
    try:
        return bool(_read_tasks(text))
    except SlurmError:
        return False


def for_each(
    core: Core,
    texts: list[str],
    where: dict[str, list[Any]],
    act: Callable[[Job], None],
    act_on_tasks: Callable[[Job, int], bool] = lambda _job, _tasks: False,
) -> list[tuple[str, int, str]]:
    """Do something to each job, array or task that a user names, or with none named to all
    unfinished ones that match: what became of each.

    For several tasks it went well if it did for one of them; else the first refusal tells.
    `act_on_tasks` is asked first where tasks are named that have no records of their own; unless it
    says that it has done all there is to do, they get records.
    """
    named: list[tuple[str, list[tuple[Job, int]] | None]] = [(text, None) for text in texts]
    if not named:
        named = [
            (str(job.job_id), [(job, job.array_tasks)])
            for job in select_jobs(core, where)
            if not job.is_finished
        ]
    results: list[tuple[str, int, str]] = []
    for text, given in named:
        try:
            found = find(core, text) if given is None else given
        except SlurmError as error:
            results.append((text, error.code, error.text))
            continue
        outcomes = list(
            _outcomes(
                core, found, act, act_on_tasks, are_named="_" in text and not text.endswith("*")
            )
        )
        refusals = [refusal for _, refusal in outcomes if refusal is not None]
        results.append(
            (text, refusals[0].code, refusals[0].text)
            if refusals and len(refusals) == len(outcomes)
            else (text, 0, "")
        )
    return results


def for_each_task(
    core: Core, texts: list[str], where: dict[str, list[Any]], act: Callable[[Job], None]
) -> list[tuple[str, int, str]]:
    """The same, with what became of an array's tasks if not all went well: `17_1-4` for those of
    whom the same is said.
    """
    results: list[tuple[str, int, str]] = []
    if not texts:
        for job in select_jobs(core, where):
            if job.array is None or not job.is_finished:
                results += _results(core, str(job.job_id), [(job, job.array_tasks)], act)
        return results
    for text in texts:
        number, _, tasks = text.partition("_")
        try:
            wanted = _read_tasks(tasks) if tasks and number.isdecimal() else 0
            found = find(core, text)
        except SlurmError as error:
            is_task = (
                error.code == ErrorCode.INVALID_JOB
                and number.isdecimal()
                and tasks
                and is_task_list(tasks)
            )
            results.append(
                (f"{number}_{format_tasks(wanted)}" if is_task else text, error.code, error.text)
            )
            continue
        results += _results(
            core, text, found, act, wanted, are_named="_" in text and not text.endswith("*")
        )
    return results


def _results(
    core: Core,
    text: str,
    found: list[tuple[Job, int]],
    act: Callable[[Job], None],
    wanted: int = 0,
    *,
    are_named: bool = False,
) -> list[tuple[str, int, str]]:
    """What became of the jobs; for records of an array task by task, those that were wanted and are
    not there last.
    """
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
    return [
        (f"{array.job_id}_{format_tasks(tasks)}", code, said or NO_ERROR)
        for (code, said), tasks in groups.items()
    ]


def _outcomes(
    core: Core,
    found: list[tuple[Job, int]],
    act: Callable[[Job], None],
    act_on_tasks: Callable[[Job, int], bool] = lambda _job, _tasks: False,
    *,
    are_named: bool,
) -> Iterator[tuple[int, SlurmError | None]]:
    """The tasks (a bitmap; 0 for a job that is none) of each record that something was done to, and
    the refusal.
    """
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
