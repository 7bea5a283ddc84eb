"""Crontabs: files of users whose entries are jobs that come again.

Place: the controller's core. Follows: scrontab(1); slurm.conf(5) ScronParameters. An entry is one job: it waits for the entry's next
time, and when it has ended and its nodes are free it is requeued for the time after that. Who cancels it comments its lines out.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.crontab_table import Entry
from understudy.model.cron import CronError, CronTime
from understudy.model.errors import SlurmError
from understudy.protocol.messages import Crontab, CrontabSet, SubmitJob

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import GetCrontab, SetCrontab

DISABLED: Final = "#DISABLED: "
OFF: Final = "scrontab is disabled on this cluster"
_PREFIX: Final = "crontab:"
_DENIED, _NO_FILE = 2002, 2


def get_crontab(core: Core, message: GetCrontab, sender: Sender) -> Crontab:
    """A user's file, for that user and administrators."""
    user_id = _owner(core, message.user_id, sender)
    text = core.crontabs.texts.get(user_id)
    if text is None:
        raise SlurmError(_NO_FILE, "No such file or directory")
    return Crontab(text)


def set_crontab(core: Core, message: SetCrontab, sender: Sender) -> CrontabSet:
    """Put another file in place of a user's, "" for none: its jobs are submitted, those of the old one that wait are cancelled."""
    if not core.settings.allows_crontabs:
        raise SlurmError(-1, OFF)
    user_id = _owner(core, message.user_id, sender)
    group_id = sender.group_id if user_id == sender.user_id else message.group_id
    now = core.time.now()
    old = [job_id for job_id, entry in core.crontabs.entries.items() if entry.user_id == user_id]
    made: list[int] = []
    for position, (when, first, last, spec, script) in enumerate(message.entries):
        try:
            made.append(_submit(core, when, first, last, SubmitJob(spec, script, None, user_id, group_id), sender, now))
        except SlurmError as error:
            _drop(core, made, now)
            return CrontabSet([], position, error.text.split("\n")[-1])
    _drop(core, old, now)
    if message.text:
        core.crontabs.texts[user_id] = message.text
    else:
        core.crontabs.texts.pop(user_id, None)
    core.journal.document(f"{_PREFIX}{user_id}")
    return CrontabSet(made)


def _owner(core: Core, user_id: int, sender: Sender) -> int:
    if user_id in (-1, sender.user_id):
        return sender.user_id
    if not core.is_admin(sender.user_id):
        raise SlurmError(_DENIED)
    return user_id


def _submit(core: Core, when: str, first: int, last: int, message: SubmitJob, sender: Sender, now: float) -> int:
    from understudy.controller.submit import submit  # noqa: PLC0415 - submission is far above what the store needs of this module

    try:
        begin = CronTime(when).after(now)
    except CronError as error:
        raise SlurmError(-1, str(error)) from None
    if begin is None:
        raise SlurmError(-1, "no such time")
    spec = msgspec.structs.replace(message.spec, begin_time=float(begin))
    job_id = submit(core, msgspec.structs.replace(message, spec=spec), sender).job_id
    core.tables.jobs[job_id].requeue = True
    core.crontabs.entries[job_id] = Entry(job_id, when, first, last, core.tables.jobs[job_id].user_id)
    return job_id


def _drop(core: Core, job_ids: list[int], now: float) -> None:
    """These do not come again; those that wait are cancelled."""
    from understudy.controller.cancel import cancel  # noqa: PLC0415 - as above

    for job_id in job_ids:
        del core.crontabs.entries[job_id]
        job = core.tables.jobs.get(job_id)
        if job is not None and job.is_pending:
            cancel(core, job, now)


def comes_again(core: Core, job: Job, now: float) -> bool:
    """Requeue an entry's job that has ended and whose nodes are free. False: it is over."""
    from understudy.controller.requeue import requeue_job  # noqa: PLC0415 - requeueing ends jobs, and so knows this module

    entry = core.crontabs.entries.get(job.job_id)
    if entry is None:
        return False
    begin = CronTime(entry.when).after(now)
    if begin is None:
        return False
    if core.following is not None:
        core.following.note(job, now)
    requeue_job(core, job, now, begin_time=begin)
    return True


def disable(core: Core, job: Job) -> None:
    """Somebody cancels an entry's job: comment its lines out."""
    entry = core.crontabs.entries.pop(job.job_id, None)
    if entry is None:
        return
    lines = core.crontabs.texts.get(entry.user_id, "").splitlines(keepends=True)
    for at in range(entry.first - 1, min(entry.last, len(lines))):
        if not lines[at].startswith(DISABLED):
            lines[at] = DISABLED + lines[at]
    core.crontabs.texts[entry.user_id] = "".join(lines)
    core.journal.document(f"{_PREFIX}{entry.user_id}")


def only_entries_wait(core: Core) -> bool:
    """Whether no job but entries of crontabs could start: virtual time need not go on for these."""
    pending = core.tables.pending.items()
    return not any(job_id not in core.crontabs.entries and job.priority and job.eligible_time is not None for job_id, job in pending)


# --- the saved state -----------------------------------------------------------------------------------------------------------------


def encode(core: Core, name: str) -> bytes | None:
    """A user's file and entries, for the store."""
    user_id = int(name.removeprefix(_PREFIX))
    text = core.crontabs.texts.get(user_id)
    if text is None:
        return None
    return msgspec.msgpack.encode([text, [astuple(entry) for entry in core.crontabs.entries.values() if entry.user_id == user_id]])


def decode(core: Core, name: str, record: bytes) -> None:
    """Put back what was saved."""
    text, entries = msgspec.msgpack.decode(record)
    core.crontabs.texts[int(name.removeprefix(_PREFIX))] = text
    for entry in entries:
        core.crontabs.entries[entry[0]] = Entry(*entry)
