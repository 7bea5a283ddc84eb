"""scontrol hold, release, requeue, suspend, resume, top: what is done to several jobs, one by one.

Place: requests; `jobs/` does it. Follows: scontrol(1).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from understudy.controller.core.lookups import may_control
from understudy.controller.jobs.hold import ACTIONS, ONE, UNEXPECTED, hold, release, top
from understudy.controller.jobs.requeue import requeue
from understudy.controller.jobs.suspend import resume, suspend
from understudy.controller.pending.arrays import separate
from understudy.controller.requests.select import find, for_each_task, is_task_list
from understudy.controller.tables.het_job import components, require_leader, require_single
from understudy.controller.tables.job import HELD_BY_ADMIN, HELD_BY_USER
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import JobResults

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import ControlJobs

_NAMED: Final = re.compile(r"(?P<number>\d+)(?:\+\d+|_(?P<tasks>[^_]*))?")


def control_jobs(core: Core, message: ControlJobs, sender: Sender) -> JobResults:
    """Do the same with each job named, or with all that match."""
    if message.action not in ACTIONS:
        raise SlurmError(ErrorCode.NOT_SUPPORTED)
    now = core.time.now()

    def act(job: Job) -> None:
        _act(core, job, message, sender, now)

    if message.action == "top":
        return JobResults([_top_jobs(core, text, act, sender) for text in message.job_ids])
    is_stopping = message.action in {"suspend", "resume"}
    if is_stopping and not core.is_operator(sender.user_id):
        return JobResults([_refusal(core, text) for text in message.job_ids])
    results = for_each_task(core, message.job_ids, message.where, act)
    if is_stopping:
        results = [
            (text, *(_of_unknown(core, text) if error == ErrorCode.INVALID_JOB else (error, said)))
            for text, error, said in results
        ]
    return JobResults(results)


def _refusal(core: Core, text: str) -> tuple[str, int, str]:
    """What is said to who may suspend nothing: not which tasks and components there are."""
    match = _NAMED.fullmatch(text)
    if match is None or (match["tasks"] and not is_task_list(match["tasks"])):
        error = SlurmError(ErrorCode.INVALID_JOB)
    elif int(match["number"]) not in core.tables.jobs:
        error = SlurmError(UNEXPECTED)
    else:
        error = SlurmError(ErrorCode.ACCESS_DENIED)
        text = text.replace("[", "").replace("]", "")  # so tasks are named in answers
    return text, error.code, error.text


def _of_unknown(core: Core, text: str) -> tuple[int, str]:
    """What Slurm says of what is not there to suspend: of a component the same whether there is one
    or not.
    """
    number, plus, offset = text.partition("+")
    code: int = ErrorCode.INVALID_JOB
    if (head := text.partition("_")[0]).isdecimal() and int(head) not in core.tables.jobs:
        code = UNEXPECTED
    elif plus and number.isdecimal() and offset.isdecimal():
        code = ErrorCode.NOT_WHOLE
    error = SlurmError(code)
    return error.code, error.text


def _top_jobs(
    core: Core, text: str, act: Callable[[Job], None], sender: Sender
) -> tuple[str, int, str]:
    """Move jobs of a list to the top. It ends with one that there is not; else the last refusal
    tells.
    """
    refusal: SlurmError | None = None
    try:
        _may_act(core, "top", sender)
        for each in text.split(","):
            if not ONE.fullmatch(each):
                raise SlurmError(ErrorCode.INVALID_JOB)
            for record, tasks in find(core, each):
                for job in separate(core, record, tasks):
                    try:
                        act(job)
                    except SlurmError as error:
                        refusal = error
    except SlurmError as error:
        refusal = error
    return (text, 0, "") if refusal is None else (text, refusal.code, refusal.text)


def _may_act(core: Core, action: str, sender: Sender) -> None:
    if not core.is_operator(sender.user_id) and (
        action in ("suspend", "resume") or (action == "top" and not core.settings.users_may_top)
    ):
        raise SlurmError(ErrorCode.ACCESS_DENIED)


def _act(core: Core, job: Job, message: ControlJobs, sender: Sender, now: float) -> None:
    action = message.action
    by_admin = core.is_operator(sender.user_id)
    _may_act(core, action, sender)
    if action in {"hold", "uhold", "release"} and job.is_finished:
        raise SlurmError(ErrorCode.FINISHED)
    if not may_control(core, sender.user_id, job):
        raise SlurmError(
            ErrorCode.ACCESS_DENIED
            if action in {"requeue", "requeuehold"}
            else ErrorCode.INVALID_USER
        )
    if action in ("suspend", "resume"):
        require_single(job)
        for each in components(job):
            (suspend if action == "suspend" else resume)(core, each, now)
        return
    if action == "top":
        top(core, job, now)
        return
    if action in ("requeue", "requeuehold"):
        require_leader(job)
        if "incomplete" in message.options and (job.is_pending or job.is_finished):
            return
        requeue(
            core,
            job,
            now,
            hold=action == "requeuehold",
            held_by=HELD_BY_ADMIN if by_admin else HELD_BY_USER,
            is_special="special_exit" in message.options,
        )
        return
    for each in components(job):
        if action == "release":
            release(core, each, by_admin, now)
        else:
            hold(
                core,
                each,
                HELD_BY_ADMIN if by_admin and action == "hold" else HELD_BY_USER,
                by_admin,
                now,
            )
