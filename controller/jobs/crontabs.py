"""Crontabs: files of users whose entries are jobs that come again.

Place: jobs. Follows: scrontab(1); slurm.conf(5) ScronParameters. An entry is one
job: it waits for the entry's next time, and when it has ended and its nodes are free it is requeued
for the time after that. Who cancels it comments its lines out.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.jobs.requeue import requeue_job
from understudy.controller.tables.crontabs import Entry
from understudy.model.cron import CronTime

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

DISABLED: Final = "#DISABLED: "
OFF: Final = "scrontab is disabled on this cluster"
PREFIX: Final = "crontab:"
DENIED, NO_FILE = 2002, 2


def comes_again(core: Core, job: Job, now: float) -> bool:
    """Requeue an entry's job that has ended and whose nodes are free. False: it is over."""
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
    core.journal.document(f"{PREFIX}{entry.user_id}")


def only_entries_wait(core: Core) -> bool:
    """Whether no job but entries of crontabs could start: virtual time need not go on for these."""
    pending = core.tables.pending.items()
    return not any(
        job_id not in core.crontabs.entries and job.priority and job.eligible_time is not None
        for job_id, job in pending
    )


# --- the saved state ------------------------------------------------------------------------------


def encode(core: Core, name: str) -> bytes | None:
    """A user's file and entries, for the store."""
    user_id = int(name.removeprefix(PREFIX))
    text = core.crontabs.texts.get(user_id)
    if text is None:
        return None
    return msgspec.msgpack.encode(
        [
            text,
            [
                astuple(entry)
                for entry in core.crontabs.entries.values()
                if entry.user_id == user_id
            ],
        ]
    )


def decode(core: Core, name: str, record: bytes) -> None:
    """Put back what was saved."""
    text, entries = msgspec.msgpack.decode(record)
    core.crontabs.texts[int(name.removeprefix(PREFIX))] = text
    for entry in entries:
        core.crontabs.entries[entry[0]] = Entry(*entry)
