"""A job is submitted, or looked at as if it were (`--test-only`).

Place: requests; `jobs/take_in.py` makes the job.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from understudy.controller.facts.feasibility import could_ever_run
from understudy.controller.jobs.site_rules import review_submission
from understudy.controller.jobs.take_in import (
    checked,
    checked_components,
    note_submission,
    take_in,
    take_in_components,
)
from understudy.controller.reservations.admission import earliest_start
from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.slurm.main_pass import run_length
from understudy.controller.tables.dependency import parse as parse_dependency
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.noted import NO_NODES
from understudy.protocol.messages import SubmitJob, Submitted

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition


def submit(core: Core, message: SubmitJob, sender: Sender) -> Submitted:
    """sbatch: take in a batch job."""
    if not message.script and message.emulation is None and not message.test_only:
        raise SlurmError(ErrorCode.NO_SCRIPT)
    if (known := core.submissions.job_of(sender.user_id, message.token)) is not None:
        return Submitted(known)
    notes: list[str] = []
    if core.job_submit:
        message, notes = review_submission(core, message, sender)
    answer = _submit(core, message, sender)
    return (
        msgspec.structs.replace(answer, note="\n".join([*notes, *filter(None, [answer.note])]))
        if notes
        else answer
    )


def _submit(core: Core, message: SubmitJob, sender: Sender) -> Submitted:
    if message.components:
        return _submit_components(core, message, sender)
    if message.test_only:
        return _test_only(core, checked(core, message, sender)[0], core.time.now())
    job_id = take_in(core, message, sender).job_id
    note_submission(core, message, sender, job_id)
    return Submitted(job_id)


def _submit_components(core: Core, message: SubmitJob, sender: Sender) -> Submitted:
    if message.test_only:
        return _test_components(core, checked_components(core, message, sender), core.time.now())
    leader = take_in_components(core, message, sender)
    note_submission(core, message, sender, leader.job_id)
    return Submitted(leader.job_id)


def _test_components(core: Core, jobs: list[Job], now: float) -> Submitted:
    """--test-only of a heterogeneous job: from when on there are nodes for each component, all
    their processors, and the nodes.
    """
    for job in jobs:
        _check_dependency(core, job)
    first = min(core.take_job_id() for _ in jobs)
    start, taken = int(now), 0
    for job in jobs:
        job.excluded_nodes |= taken
        partitions = [core.tables.partitions[name] for name in job.partitions]
        fitting = [
            partition
            for partition in partitions
            if core.selector.could_ever_run(Ask(job, partition, partition.nodes), core.tables)
        ]
        found = earliest_start(core, job, fitting[0], now) if fitting else None
        if found is None:
            raise SlurmError(ErrorCode.NOT_AVAILABLE)
        start, taken = max(start, found[0]), taken | found[1]
    when = datetime.fromtimestamp(start, tz=UTC).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    processors, where = sum(job.min_cpus for job in jobs), core.names.to_expression(taken)
    return Submitted(
        first, f"Job {first} to start at {when} using {processors} processors on {where}"
    )


def _check_dependency(core: Core, job: Job) -> None:
    """Whether it could wait for what it asks for; jobs that there are not are none to wait for.

    Raises:
        SlurmError: it is no dependency.
    """
    if job.spec.dependency:
        parse_dependency(job.spec.dependency, core.next_job_id, core.arrays)


def _delay_s(core: Core, job: Job, partition: Partition) -> int:
    """How much later a job starts for those that wait already, as far as --test-only knows: the
    time for which they fill the partition.
    """
    now = core.time.now()
    waiting = [
        each
        for each in core.tables.pending.values()
        if each is not job and partition.name in each.partitions and each.is_eligible(now)
    ]
    return sum(run_length(each, partition) * each.min_nodes for each in waiting) // max(
        partition.nodes.bit_count(), 1
    )


def _processors(core: Core, job: Job, nodes: int) -> int:
    """Of the bitmap of nodes: all of them, or as many as it asks for."""
    if not job.exclusive:
        return job.min_cpus
    return sum(kind.cpus * (kind.nodes & nodes).bit_count() for kind in core.tables.nodes.kinds)


def _test_only(core: Core, job: Job, now: float) -> Submitted:
    """What --test-only asks: when and where it would start. It uses up a job id, as Slurm's
    does.
    """
    _check_dependency(core, job)
    job_id = core.take_job_id()
    for name in job.partitions:
        partition = core.tables.partitions[name]
        if not could_ever_run(core, job, partition):
            continue
        is_of_none = NO_NODES in job.spec.extra
        found = (int(now), 0) if is_of_none else earliest_start(core, job, partition, now)
        if found is not None:
            start, nodes = (
                max(found[0], job.begin_time or 0) + _delay_s(core, job, partition),
                found[1],
            )
            when = datetime.fromtimestamp(start, tz=UTC).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
            where = core.names.to_expression(nodes)
            processors = 0 if is_of_none else _processors(core, job, nodes)
            return Submitted(
                job_id,
                f"Job {job_id} to start at {when} using {processors} processors on "
                f"nodes {where} in partition {name}",
            )
    raise SlurmError(ErrorCode.NOT_AVAILABLE)
