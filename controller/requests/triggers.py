"""strigger: triggers are set and cleared.

Place: requests; `notices/event_triggers.py` tests and fires them. Follows: strigger(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.notices.event_triggers import (
    DENIED,
    EVERY,
    NO_JOB,
    NO_NODE,
    NO_SUCH_TRIGGER,
    SAVED_AS,
    matches,
    watch,
)
from understudy.controller.tables.triggers import Trigger
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import Message, Ok

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import ClearTriggers, SetTrigger


def set_trigger(core: Core, message: SetTrigger, sender: Sender) -> Message:
    """Keep a trigger."""
    if not core.is_slurm_user(sender.user_id):
        raise SlurmError(DENIED)
    triggers = core.triggers
    if message.resource == "job":
        job = (
            core.tables.jobs.get(int(message.resource_id))
            if message.resource_id.isdecimal()
            else None
        )
        if job is None or job.is_finished:
            raise SlurmError(NO_JOB)
    elif message.resource == "node" and message.resource_id != EVERY:
        try:
            core.names.to_bitmap(message.resource_id)
        except ValueError:
            raise SlurmError(NO_NODE) from None
    made = Trigger(
        triggers.next_id,
        message.resource,
        message.resource_id,
        tuple(message.events),
        message.offset_s,
        sender.user_id,
        sender.group_id,
        message.is_permanent,
        message.program,
    )
    if any(each.fires_at is None and each.identity == made.identity for each in triggers.listed):
        raise SlurmError(ErrorCode.DUPLICATE_TRIGGER)
    triggers.next_id += 1
    if not core.is_executable(message.program):
        raise SlurmError(DENIED)
    triggers.listed.append(made)
    watch(core)
    core.journal.document(SAVED_AS)
    return Ok()


def clear_triggers(core: Core, message: ClearTriggers, sender: Sender) -> Message:
    """Forget all triggers that match: by number, by job, by who set them."""
    is_admin = core.is_slurm_user(sender.user_id)
    if message.user_id >= 0 and not is_admin and message.user_id != sender.user_id:
        raise SlurmError(DENIED)
    found = [
        each for each in core.triggers.listed if each.fires_at is None and matches(each, message)
    ]
    if not found:
        raise SlurmError(NO_SUCH_TRIGGER, "No such process")
    if not is_admin and any(each.user_id != sender.user_id for each in found):
        raise SlurmError(DENIED)
    core.triggers.listed = [each for each in core.triggers.listed if each not in found]
    core.journal.document(SAVED_AS)
    return Ok()
