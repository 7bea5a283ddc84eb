"""Hold, release, and what else `scontrol` does to whole jobs.

Place: the controller's core. Follows: scontrol(1) hold, uhold, release, requeue, requeuehold. A job held by an administrator is released by one only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from understudy.controller.arrays import find, for_each, for_each_task, separate
from understudy.controller.eligibility import review
from understudy.controller.het_jobs import components, require_leader, require_single
from understudy.controller.job import HELD_BY_ADMIN, HELD_BY_USER
from understudy.controller.prioritise import prioritise
from understudy.controller.requeue import requeue
from understudy.controller.rights import may_control
from understudy.controller.suspend import resume, suspend
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobFlag
from understudy.protocol.messages import JobResults

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import ControlJobs

ACTIONS = ("hold", "uhold", "release", "requeue", "requeuehold", "suspend", "resume", "top")
SCHEDULING_FAILED = "JobHeldAdmin, as scheduling it failed"
UNEXPECTED = 1000
_ONE = re.compile(r"\d+(_\d+)?")


def control_jobs(core: Core, message: ControlJobs, sender: Sender) -> JobResults:
    """Do the same with each job named, or with all that match."""
    if message.action not in ACTIONS:
        raise SlurmError(ErrorCode.NOT_SUPPORTED)
    now = core.time.now()

    def act(job: Job) -> None:
        _act(core, job, message, sender, now)

    if message.action == "top":
        return JobResults([_top_jobs(core, text, act, sender) for text in message.job_ids])
    is_refused = message.action in {"suspend", "resume"} and not core.is_operator(sender.user_id)
    results = (for_each if is_refused else for_each_task)(core, message.job_ids, message.where, act)
    if message.action in {"suspend", "resume"}:
        unknown = SlurmError(UNEXPECTED)
        results = [
            (text, unknown.code, unknown.text) if error == ErrorCode.INVALID_JOB and _is_unknown(core, text) else (text, error, said)
            for text, error, said in results
        ]
    return JobResults(results)


def _is_unknown(core: Core, text: str) -> bool:
    number = text.partition("_")[0]
    return number.isdecimal() and int(number) not in core.tables.jobs


def _top_jobs(core: Core, text: str, act: Callable[[Job], None], sender: Sender) -> tuple[str, int, str]:
    """Move jobs of a list to the top. It ends with one that there is not; else the last refusal tells."""
    refusal: SlurmError | None = None
    try:
        _may_act(core, "top", sender)
        for each in text.split(","):
            if not _ONE.fullmatch(each):
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
    if not core.is_operator(sender.user_id) and (action in ("suspend", "resume") or (action == "top" and not core.settings.users_may_top)):
        raise SlurmError(ErrorCode.ACCESS_DENIED)


def _act(core: Core, job: Job, message: ControlJobs, sender: Sender, now: float) -> None:
    action = message.action
    by_admin = core.is_operator(sender.user_id)
    _may_act(core, action, sender)
    if action in {"hold", "uhold", "release"} and job.is_finished:
        raise SlurmError(ErrorCode.FINISHED)
    if not may_control(core, sender.user_id, job):
        raise SlurmError(ErrorCode.ACCESS_DENIED if action in {"requeue", "requeuehold"} else ErrorCode.INVALID_USER)
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
        requeue(core, job, now, hold=action == "requeuehold", held_by=HELD_BY_ADMIN if by_admin else HELD_BY_USER)
        if "special_exit" in message.options:
            job.flags |= JobFlag.SPECIAL_EXIT
            core.journal.job(job.job_id)
        return
    for each in components(job):
        if action == "release":
            release(core, each, by_admin, now)
        else:
            hold(core, each, HELD_BY_ADMIN if by_admin and action == "hold" else HELD_BY_USER, by_admin, now)


def hold(core: Core, job: Job, held_by: str, by_admin: bool, now: float) -> None:
    """Keep a pending job from being started. An administrator's hold is changed by administrators only."""
    if job.held_by == HELD_BY_ADMIN and not by_admin:
        return
    job.priority, job.held_by, job.admin_priority = 0, held_by, None
    if not job.is_pending:  # it is held when it is queued again
        job.reason = held_by
        core.last_job_update = now
        core.journal.job(job.job_id)
        return
    job.expected_start, job.expected_nodes = None, 0
    _reviewed(core, job, now)


def set_aside(core: Core, job: Job, now: float) -> None:
    """Hold a pending job, all of it, at which a scheduler has failed."""
    for each in components(job):
        if each.is_pending:
            hold(core, each, HELD_BY_ADMIN, True, now)
            each.reason_detail = SCHEDULING_FAILED


def release(core: Core, job: Job, by_admin: bool, now: float) -> None:
    """Let a held job be started. It gets the priority of a new one."""
    if job.held_by == HELD_BY_ADMIN and not by_admin:
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if not job.is_pending:
        if job.held_by:
            job.reason = "None"
        job.priority, job.held_by = core.priorities.assign(job, now), ""
        core.last_job_update = now
        core.journal.job(job.job_id)
        return
    job.priority, job.held_by, job.admin_priority = 1, "", None
    job.flags &= ~(JobFlag.RESV_DEL_HOLD | JobFlag.SPECIAL_EXIT)
    _reviewed(core, job, now)


def top(core: Core, job: Job, now: float) -> None:
    """Move a pending job before its user's others of the same partition, account and QOS; they all give up, by their nice values, what it gains."""
    if not job.is_pending:
        raise SlurmError(ErrorCode.NOT_PENDING)
    if job.priority == 0:
        raise SlurmError(ErrorCode.HELD)
    if len(job.partitions) > 1:
        return

    def kind(each: Job) -> tuple[object, ...]:
        return each.user_id, each.partitions, each.spec.account, each.spec.qos

    others = [each for each in core.tables.pending.values() if each is not job and each.priority and kind(each) == kind(job)]
    gain = max((each.priority for each in others), default=0) - job.priority
    if gain <= 0 or job.admin_priority is not None:
        return
    rest = gain
    for left, each in zip(range(len(others), 0, -1), sorted(others, key=lambda each: each.job_id), strict=True):
        _nicer(core, each, rest // left, now)
        rest -= rest // left
    _nicer(core, job, -gain, now)
    core.changed("change", now)


def _nicer(core: Core, job: Job, more: int, now: float) -> None:
    job.nice += more
    job.priority = max(job.priority - more, 1)
    if job.admin_priority is not None:
        job.admin_priority = job.priority
    core.last_job_update = now
    core.journal.job(job.job_id)


def _reviewed(core: Core, job: Job, now: float) -> None:
    if not job.is_completing:
        review(core, job, now)
    prioritise(core, job, now)
    core.last_job_update = now
    core.journal.job(job.job_id)
    core.changed("change", now)
