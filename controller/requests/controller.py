"""What administrators ask of the controller itself while it runs: what it logs, factors that hold
until slurm.conf is read again, words to jobs.

Place: requests. Follows: scontrol(1) setdebug, setdebugflags, schedloglevel,
fsdampeningfactor, notify, update stepid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.changes import job_changed
from understudy.controller.core.lookups import may_control
from understudy.controller.jobs.steps import limit_step
from understudy.controller.pending.awaited import tell_command
from understudy.controller.requests.select import for_each
from understudy.model.debug_flags import changed_flags
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobState
from understudy.model.times import parse_limit, whole_minutes
from understudy.protocol.messages import Message, NotifyTasks, Ok

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import NotifyJob, SetConfiguration, UpdateStep

_PERMISSION: Final = "Permission denied"
_KEYS: Final = frozenset(
    {"SlurmctldDebug", "DebugFlags", "SlurmSchedLogLevel", "FairShareDampeningFactor"}
)


def set_configuration(core: Core, message: SetConfiguration, sender: Sender) -> Message:
    """Change keys of the configuration until the file is read again."""
    if not core.is_admin(sender.user_id):
        raise SlurmError(ErrorCode.PERMISSION_DENIED, _PERMISSION)
    shown = dict(core.show_configuration())
    changes = {}
    for key, value in message.changes.items():
        if key not in _KEYS:
            raise SlurmError(ErrorCode.DISABLED)
        if key == "SlurmSchedLogLevel" and shown.get("SlurmSchedLogFile", "(null)") == "(null)":
            raise SlurmError(ErrorCode.DISABLED)
        if key == "DebugFlags":
            try:
                value = changed_flags("" if shown[key] == "(null)" else shown[key], value)  # noqa: PLW2901 - as it is kept
            except ValueError:
                raise SlurmError(-1) from None
        changes[key] = value
    core.change_configuration(changes)
    return Ok()


def notify_job(core: Core, message: NotifyJob, sender: Sender) -> Message:
    """A line of text for whoever reads the job's output: salloc, or what runs its script."""
    job = core.job(message.job_id)
    if job.user_id != sender.user_id and not core.is_slurm_user(sender.user_id):
        raise SlurmError(ErrorCode.INVALID_USER)
    if job.is_finished or job.state is JobState.SUSPENDED:
        raise SlurmError(ErrorCode.ALREADY_DONE)
    if job.state is not JobState.RUNNING or job.allocation is None:
        raise SlurmError(ErrorCode.DISABLED)
    tell_command(core, job, message.text)
    batch_host = job.allocation.nodes & -job.allocation.nodes
    for record, _ in core.parts(batch_host):
        core.agents.send(record.name, NotifyTasks(job.job_id, job.restarts, message.text))
    return Ok()


def update_step(core: Core, message: UpdateStep, sender: Sender) -> Message:
    """Another time limit for a step, or for all that a job runs."""
    now = core.time.now()

    def change(job: Job) -> None:
        if not may_control(core, sender.user_id, job):
            raise SlurmError(ErrorCode.INVALID_USER)
        step = job.steps.get(int(message.step)) if message.step.isdecimal() else None
        if message.step and (step is None or not step.is_running):
            raise SlurmError(ErrorCode.INVALID_JOB)
        for each in (
            [step] if step is not None else [each for each in job.steps.values() if each.is_running]
        ):
            limit_step(core, job, each, _new_limit(each.time_limit_s, message.time_limit), now)
        job_changed(core, job, now)

    for _, code, text in for_each(core, [message.job_id], {}, change):
        if code:
            raise SlurmError(code, text)
    return Ok()


def _new_limit(before: int | None, text: str) -> int | None:
    """Seconds; `+5` and `-5` change the limit that there is."""
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") and text[1:] else ("", text)
    try:
        given = parse_limit(digits)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_TIME_LIMIT) from None
    if given is None:
        return None
    given = whole_minutes(given)
    if not sign:
        return given
    changed = (before or 0) + (given if sign == "+" else -given)
    if before is None or changed <= 0:
        raise SlurmError(ErrorCode.INVALID_TIME_LIMIT)
    return changed
