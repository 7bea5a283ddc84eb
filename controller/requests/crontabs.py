"""scrontab: a user's crontab is read, shown and replaced.

Place: requests; `jobs/crontabs.py` runs its entries. Follows: scrontab(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from understudy.controller.jobs.cancel import cancel
from understudy.controller.jobs.crontabs import DENIED, NO_FILE, OFF, PREFIX
from understudy.controller.requests.submit import submit
from understudy.controller.tables.crontabs import Entry
from understudy.model.cron import CronError, CronTime
from understudy.model.errors import SlurmError
from understudy.protocol.messages import Crontab, CrontabSet, SubmitJob

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import GetCrontab, SetCrontab


def get_crontab(core: Core, message: GetCrontab, sender: Sender) -> Crontab:
    """A user's file, for that user and administrators."""
    user_id = _owner(core, message.user_id, sender)
    text = core.crontabs.texts.get(user_id)
    if text is None:
        raise SlurmError(NO_FILE, "No such file or directory")
    return Crontab(text)


def set_crontab(core: Core, message: SetCrontab, sender: Sender) -> CrontabSet:
    """Put another file in place of a user's, "" for none: its jobs are submitted, those of the old
    one that wait are cancelled.
    """
    if not core.settings.allows_crontabs:
        raise SlurmError(-1, OFF)
    user_id = _owner(core, message.user_id, sender)
    group_id = sender.group_id if user_id == sender.user_id else message.group_id
    now = core.time.now()
    old = [job_id for job_id, entry in core.crontabs.entries.items() if entry.user_id == user_id]
    made: list[int] = []
    for position, (when, first, last, spec, script) in enumerate(message.entries):
        try:
            made.append(
                _submit(
                    core,
                    when,
                    first,
                    last,
                    SubmitJob(spec, script, None, user_id, group_id),
                    sender,
                    now,
                )
            )
        except SlurmError as error:
            _drop(core, made, now)
            return CrontabSet([], position, error.text.split("\n")[-1])
    _drop(core, old, now)
    if message.text:
        core.crontabs.texts[user_id] = message.text
    else:
        core.crontabs.texts.pop(user_id, None)
    core.journal.document(f"{PREFIX}{user_id}")
    return CrontabSet(made)


def _owner(core: Core, user_id: int, sender: Sender) -> int:
    if user_id in (-1, sender.user_id):
        return sender.user_id
    if not core.is_admin(sender.user_id):
        raise SlurmError(DENIED)
    return user_id


def _submit(
    core: Core, when: str, first: int, last: int, message: SubmitJob, sender: Sender, now: float
) -> int:

    try:
        begin = CronTime(when).after(now)
    except CronError as error:
        raise SlurmError(-1, str(error)) from None
    if begin is None:
        raise SlurmError(-1, "no such time")
    spec = msgspec.structs.replace(message.spec, begin_time=float(begin))
    job_id = submit(core, msgspec.structs.replace(message, spec=spec), sender).job_id
    core.tables.jobs[job_id].requeue = True
    core.crontabs.entries[job_id] = Entry(
        job_id, when, first, last, core.tables.jobs[job_id].user_id
    )
    return job_id


def _drop(core: Core, job_ids: list[int], now: float) -> None:
    """These do not come again; those that wait are cancelled."""
    for job_id in job_ids:
        del core.crontabs.entries[job_id]
        job = core.tables.jobs.get(job_id)
        if job is not None and job.is_pending:
            cancel(core, job, now)
