"""Submission: what sbatch sends becomes a job record, or is refused as Slurm refuses it.

Place: jobs. Follows: sbatch(1) on options and their defaults; slurm.conf(5) on
limits.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import reduce
from operator import attrgetter, or_
from sys import intern
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from understudy.controller.core.alarms import watch_deadline
from understudy.controller.core.changes import job_changed, job_over
from understudy.controller.core.core import Pattern, log
from understudy.controller.core.lookups import find_partitions, node_bitmap
from understudy.controller.facts.feasibility import (
    complaint,
    could_ever_run,
    has_too_few_nodes,
    is_too_large,
    unavailable_nodes,
)
from understudy.controller.jobs.buffer_requests import (
    ask_site,
    check_nodes,
    take_request,
    without_script,
)
from understudy.controller.jobs.cancel import cancel
from understudy.controller.jobs.checks import (
    MAX_SCRIPT,
    MAX_TEXT,
    check_gpu_options,
    check_gres,
    check_kinds,
    check_lengths,
    check_licenses,
    check_words,
    enforce_limits,
    fits_reservation,
    is_given_empty,
)
from understudy.controller.jobs.sizes import (
    fill_gpus,
    fit_gpus,
    fit_memory_cap,
    set_memory,
    set_time_limit,
)
from understudy.controller.pending.access import at_work, check_policy, give_default_time, resolve
from understudy.controller.pending.arrays import make_array, read_tasks, split_all
from understudy.controller.pending.dependencies import (
    check_circle,
    evaluate,
    forget_dependency,
    watch_dependency,
)
from understudy.controller.pending.eligibility import review, split_ended
from understudy.controller.pending.prioritise import prioritise
from understudy.controller.reservations.admission import check_access, first_reason
from understudy.controller.reservations.over_time import catch_up
from understudy.controller.scheduling.api import Ask, Note
from understudy.controller.tables.burst_buffers import NO_SPACE
from understudy.controller.tables.chronicle import Chronicle
from understudy.controller.tables.dependency import parse as parse_dependency
from understudy.controller.tables.het_job import join as join_het_job
from understudy.controller.tables.job import (
    BAD_CONSTRAINTS,
    HELD_BY_USER,
    NOT_AVAILABLE,
    HetJob,
    Job,
)
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.controller.tables.partition import limit_broken
from understudy.controller.tables.reservation import WAITS
from understudy.controller.tables.shape import cpus_for_memory, name_nodes, shape_of
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.noted import NO_NODES
from understudy.protocol.messages import AllocateJob, SubmitJob

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.partition import Partition
    from understudy.protocol.messages import JobSpec

_MOST_PATTERNS: Final = 10_000  # ours: jobs of other kinds that are kept
_encode: Final = msgspec.msgpack.Encoder().encode
# errors that are found out when the job has a number, and behind those of its dependencies
_NUMBERED: Final = {ErrorCode.INVALID_FEATURE, ErrorCode.INVALID_BATCH_FEATURES}
_BEHIND_DEPENDENCIES: Final = _NUMBERED | {
    ErrorCode.INVALID_PREFERENCE,
    ErrorCode.INVALID_RESERVATION,
}
LEAST_TO_DEADLINE_S: Final = 60  # what 22.05.8 shows as TimeMin


def _allowed_as(core: Core, message: SubmitJob | AllocateJob, sender: Sender) -> tuple[int, int]:
    """User and group of a new job, if there may be one more."""
    user_id, group_id = sender.user_id, sender.group_id
    if message.user_id not in (-1, user_id):
        if not core.is_admin(user_id):
            raise SlurmError(ErrorCode.INVALID_USER)
        user_id = message.user_id
    if message.group_id not in (-1, group_id):
        if not core.is_admin(sender.user_id):
            raise SlurmError(ErrorCode.INVALID_GROUP)
        group_id = message.group_id
    if core.federation is not None and "DRAIN" in core.federation.state:
        raise SlurmError(ErrorCode.SUBMISSIONS_DISABLED)
    if len(core.tables.jobs) >= core.settings.max_job_count:
        log.warning("MaxJobCount %d reached", core.settings.max_job_count)
        raise SlurmError(ErrorCode.TRY_AGAIN, "Resource temporarily unavailable")
    return user_id, group_id


def _check_reboot(core: Core, message: SubmitJob | AllocateJob, sender: Sender) -> None:
    """Nodes are booted for jobs of administrators alone; whoever replays submits for others. Of a
    heterogeneous job the first component is named, whichever asks for it (as seen of 22.05.8).
    """
    if not any(spec.extra.get("reboot") for spec in (message.spec, *message.components)):
        return
    is_replayed = core.following is not None and message.user_id != -1
    if core.is_admin(message.user_id if is_replayed else sender.user_id):
        return
    error = SlurmError(ErrorCode.ACCESS_DENIED)
    whose = "0: " if message.components else ""
    text = f"{whose}rebooting of nodes is only allowed for admins\n{error.text}"
    raise SlurmError(error.code, text)


def checked(
    core: Core, message: SubmitJob | AllocateJob, sender: Sender
) -> tuple[Job, int, int, Pattern | None]:
    """The job's record, not in the tables yet; of an array its tasks and how many of them may run
    at a time; what is known of jobs like it.
    """
    now, spec = core.time.now(), message.spec
    user_id, group_id = _allowed_as(core, message, sender)
    _check_reboot(core, message, sender)
    if spec.array:
        check_kinds(core, spec)
    tasks, task_limit = read_tasks(core, spec.array) if spec.array else (0, 0)
    check_nodes(core, message)
    by_admin = core.is_operator(sender.user_id)
    job, pattern = _job_like(core, message, user_id, group_id, now, by_admin=by_admin)
    take_request(core, message, job)
    check_policy(core, job, tasks.bit_count() or 1)
    if core.tables.reservations:
        catch_up(core, now)
    if spec.reservation:
        _check_reservation(core, job)
    return job, tasks, task_limit, pattern


def note_submission(
    core: Core, message: SubmitJob | AllocateJob, sender: Sender, job_id: int
) -> None:
    """The job has been made: should the command ask again, it gets this one."""
    for each in core.submissions.note(sender.user_id, message.token, job_id):
        core.journal.submission(*each)


def _found_late(core: Core, spec: JobSpec, code: int) -> None:
    """What is found out when the job has a number uses that up; what its dependencies are not told
    comes before.
    """
    if code in _NUMBERED:
        core.take_job_id()
    if code in _BEHIND_DEPENDENCIES and spec.dependency:
        parse_dependency(spec.dependency, core.next_job_id, core.arrays)


def _depend(core: Core, job: Job) -> None:
    """Read what a job in the tables waits for; it goes out of them where that is nothing."""
    tables = core.tables
    try:
        job.dependency = parse_dependency(job.spec.dependency, job.job_id, core.arrays)
        check_circle(job, job.dependency, tables.jobs, core.settings.max_depend_depth)
    except SlurmError:
        del tables.jobs[job.job_id]
        raise
    if job.dependency is not None:
        watch_dependency(core, job)


def take_in(
    core: Core, message: SubmitJob | AllocateJob, sender: Sender, whole: HetJob | None = None
) -> Job:
    """Put a new job into the tables; `whole`: as the next component of a heterogeneous job."""
    try:
        job, tasks, task_limit, pattern = checked(core, message, sender)
    except SlurmError as error:
        _found_late(core, message.spec, error.code)
        raise
    now, spec, tables = core.time.now(), message.spec, core.tables
    job_id = job.job_id = core.take_job_id()
    ask_site(core, message, job)
    if core.following is not None:
        job.chronicle = Chronicle()
    tables.jobs[job_id] = job
    core.counters.submitted += tasks.bit_count() or 1
    if spec.dependency:
        _depend(core, job)
    if isinstance(message, AllocateJob):
        job.interactive = True
    elif not whole or not whole.components:
        core.scripts[job_id] = intern(message.script)
    # Users submit job after job from the same shell: what is equal is kept once, which is 2 instead
    # of 8 kB a job.
    if spec.environment:
        spec.environment[:] = map(intern, spec.environment)
    if tasks:
        make_array(core, job, tasks, task_limit)
    is_held = spec.hold or (spec.priority == 0 and core.is_operator(sender.user_id))
    # of a held job it is found out when it is released
    if not is_held and not _may_wait(core, job, pattern):
        _fail(core, job, now, is_admin=core.is_operator(sender.user_id))
    if whole is not None:
        whole.job_id = whole.job_id or job_id
        join_het_job(whole, job, len(whole.components))
    if not is_held and spec.switches is not None:
        job.switches_since = int(now)  # it has been looked at
    if (
        core.tables.reservations
        and job.reason == "None"
        and (reason := first_reason(core, job, now))
    ):
        job.reason, job.reason_detail = WAITS, "" if reason == WAITS else reason
    if job.reason == "None" and (names := unavailable_nodes(core, job)):
        job.reason = NOT_AVAILABLE
        job.reason_detail = f"{NOT_AVAILABLE}, UnavailableNodes:{names}"
    if job.burst_buffer is not None and job.reason == "None":
        job.reason = NO_SPACE  # none has been looked for yet
    is_admin = spec.priority is not None and core.is_operator(sender.user_id)
    job.priority = _held_or_fixed(job, is_admin=is_admin)
    tables.pending[job_id] = job
    job.last_sched_eval = int(now)
    review(core, job, now)
    prioritise(core, job, now)
    if job.array_tasks and job.dependency is not None:
        split_ended(core, job, now)
    if job.array_tasks and core.policy.exact_limits:
        split_all(core, job)
    if spec.deadline is not None:
        watch_deadline(core, job)
    job_changed(core, job, now, Note.SUBMIT)
    return job


def _fail(core: Core, job: Job, now: float, *, is_admin: bool) -> NoReturn:
    """The job could never run: it stays in the tables as failed, and is refused."""
    job.reason, job.last_sched_eval, job.accrues = BAD_CONSTRAINTS, int(now), False
    job.as_preferred = bool(job.spec.prefer)
    job.partition = job.partitions[-1]  # the last one that was tried
    if len(job.partitions) > 1 and not job.time_limit_is_set:
        last = core.tables.partitions[job.partition]
        set_time_limit(job, last, job.spec.time_limit_s)
        give_default_time(core, job, last)
    job.priority = _held_or_fixed(job, is_admin=is_admin)
    # elsewhere use would be brought up to date for it, and others' priorities with that
    if job.admin_priority is None and core.priorities.name == "basic":
        job.priority = core.priorities.assign(job, now)
    advance(job, JobEvent.CANNOT_RUN, now)
    if job.dependency is not None and evaluate(job, core.tables.jobs, now) is None:
        forget_dependency(core, job)
        job.dependency = None
    job.start_time = job.end_time = int(now)
    if job.dependency is None and not (job.array_tasks and (job.begin_time or 0) <= now):
        job.eligible_time = max(int(now), int(job.begin_time or 0))
    job.exit_signal = 1  # so Slurm shows it: 0:1
    job_over(core, job, now)
    job_changed(core, job, now)
    refuse(core, job)


def check_submission(core: Core, message: SubmitJob, sender: Sender) -> tuple[list[Job], int]:
    """The records that a submission would make, in no table, and how many tasks an array has.

    Raises:
        SlurmError: as it would be refused.
    """
    if message.components:
        return checked_components(core, message, sender), 1
    if message.spec.reservation:  # without using up a job id
        catch_up(core, core.time.now())
        check_access(
            core,
            message.spec.reservation,
            _allowed_as(core, message, sender)[0],
            message.spec.account,
        )
    job, tasks, *_ = checked(core, message, sender)
    if message.spec.dependency:
        parse_dependency(message.spec.dependency, core.next_job_id, core.arrays)
    return [job], tasks.bit_count() or 1


def checked_components(core: Core, message: SubmitJob | AllocateJob, sender: Sender) -> list[Job]:
    (user_id, group_id), now = _allowed_as(core, message, sender), core.time.now()
    by_admin = core.is_operator(sender.user_id)
    specs = [message.spec, *message.components]
    _check_reboot(core, message, sender)
    if any(spec.array for spec in specs):
        raise SlurmError(ErrorCode.INVALID_ARRAY)
    jobs = [
        build_job(
            core,
            msgspec.structs.replace(message, spec=spec),
            user_id,
            group_id,
            now,
            by_admin=by_admin,
        )
        for spec in specs
    ]
    limits = at_work(core)
    with ExitStack() as taken_in:
        for job in jobs:
            take_request(core, message if job is jobs[0] else without_script(message), job)
            check_policy(core, job, 1)
            if limits is not None:
                taken_in.enter_context(
                    limits.with_submitted(job, core.tables.partitions[job.partitions[0]])
                )
    _keep_apart(jobs)
    return jobs


def take_in_components(core: Core, message: SubmitJob | AllocateJob, sender: Sender) -> Job:
    """Take in a heterogeneous job; the leader. Component by component, as any other job; where one
    is refused those before it are cancelled, and their numbers have been used.
    """
    specs = [message.spec, *message.components]
    _check_reboot(core, message, sender)
    if any(spec.array for spec in specs):
        raise SlurmError(ErrorCode.INVALID_ARRAY)
    whole = HetJob(0)
    try:
        for offset, spec in enumerate(specs):
            part = msgspec.structs.replace(
                without_script(message) if offset else message,
                spec=msgspec.structs.replace(spec, dependency=message.spec.dependency),
                components=[],
            )
            take_in(core, part, sender, whole)
    except SlurmError:
        for job in reversed(whole.components.values()):
            job.exit_signal = 1  # so Slurm shows it
            cancel(core, job, core.time.now())
        raise
    jobs = list(whole.components.values())
    _keep_apart(jobs)
    if core.tables.reservations.keeps_whole(jobs[0], core.time.now()):
        for job in jobs:
            if job.reason == "None":
                job.reason = WAITS
                job_changed(core, job, core.time.now())
    return jobs[0]


def _keep_apart(jobs: list[Job]) -> None:
    """No component runs on nodes that another one names."""
    for job in jobs:
        job.excluded_nodes |= reduce(
            or_, (other.required_nodes for other in jobs if other is not job)
        )


def _check_reservation(core: Core, job: Job) -> None:
    """Refuse reservations that the user may not use. The job id is used up."""
    try:
        check_access(core, job.spec.reservation, job.user_id, job.spec.account)
    except SlurmError:
        core.take_job_id()
        raise


def _job_like(
    core: Core,
    message: SubmitJob | AllocateJob,
    user_id: int,
    group_id: int,
    now: float,
    *,
    by_admin: bool,
) -> tuple[Job, Pattern | None]:
    """As `build_job`. Thousands of jobs ask for the same under other names, or with other licences:
    who is as one that was checked is checked (`Core.patterns`), but for licences, unless they count
    in limits. None where the time, the environment or others decide.
    """
    spec = message.spec
    if (
        spec.environment
        or spec.begin_time is not None
        or spec.deadline is not None
        or spec.reservation
        or len(spec.name) > MAX_TEXT
        or len(spec.licenses) > MAX_TEXT
        or (isinstance(message, SubmitJob) and len(message.script) > MAX_SCRIPT)
    ):
        return build_job(core, message, user_id, group_id, now, by_admin=by_admin), None
    licenses = spec.licenses if core.tables.limits.enforced else ""
    asked = msgspec.structs.replace(spec, name="", licenses=licenses)
    key = (user_id, group_id, by_admin, _encode(asked))
    pattern = core.patterns.get(key)
    if pattern is None:
        job = build_job(core, message, user_id, group_id, now, by_admin=by_admin)
        if any(core.tables.partitions[name].allow_groups is not None for name in job.partitions):
            return job, None  # who is in a group may change at any time
        if len(core.patterns) >= _MOST_PATTERNS:
            core.patterns.clear()
        pattern = core.patterns[key] = Pattern(copy(job), is_as_asked=job.spec is spec)
        return job, pattern
    if spec.licenses:
        check_licenses(core, spec.licenses)
    alike = pattern.job
    job = msgspec.structs.replace(
        alike,
        spec=spec
        if pattern.is_as_asked
        else msgspec.structs.replace(alike.spec, name=spec.name, licenses=spec.licenses),
        submit_time=int(now),
        emulation=message.emulation if isinstance(message, SubmitJob) else None,
        log=[],
    )
    return job, pattern


def _may_wait(core: Core, job: Job, pattern: Pattern | None) -> bool:
    """As `is_feasible`, found out once for jobs that ask for the same."""
    if pattern is None:
        return is_feasible(core, job)
    if pattern.may_wait is None:
        pattern.may_wait = is_feasible(core, job)
    return pattern.may_wait


def _in_order(partitions: list[Partition], spec: JobSpec, now: float) -> list[Partition]:
    """As the job has them: as it names them, or, of one that begins later, by their tiers."""
    begins_later = spec.begin_time is not None and spec.begin_time > now
    if begins_later and not spec.hold and not spec.dependency:
        return sorted(partitions, key=lambda each: -each.priority_tier)
    return partitions


def build_job(
    core: Core,
    message: SubmitJob | AllocateJob,
    user_id: int,
    group_id: int,
    now: float,
    *,
    by_admin: bool,
) -> Job:
    """The job record, checked, without an id and not in the tables.

    Raises:
        SlurmError: as Slurm would refuse it.
    """
    check_lengths(message)
    check_kinds(core, message.spec)
    partitions = _partitions(core, message.spec, user_id)
    first = partitions[0]
    spec = fill_gpus(core, message.spec, first)
    spec, qos_flags = _allowed(core, spec, user_id, partitions)
    if NO_NODES in spec.extra and not _is_for_script(message):
        raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    shape = fit_gpus(shape_of(message.spec, len(core.tables.nodes.nodes)), spec)
    if spec.nice < 0 and not by_admin:
        raise SlurmError(ErrorCode.INVALID_NICE)
    _check_times(spec, partitions)
    ordered = _in_order(partitions, spec, now)
    job = Job(
        job_id=0,
        spec=spec,
        user_id=user_id,
        group_id=group_id,
        submit_time=int(now),
        partitions=tuple([partition.name for partition in ordered]),
        partition=ordered[0].name,
        **shape._asdict(),
        exclusive=spec.exclusive,
        requeue=core.settings.requeue_by_default if spec.requeue is None else spec.requeue,
        emulation=message.emulation if isinstance(message, SubmitJob) else None,
        nice=spec.nice,
        qos_flags=qos_flags,
    )
    if spec.begin_time is not None and spec.begin_time > now:
        job.begin_time = int(spec.begin_time)
    set_time_limit(job, first, spec.time_limit_s)
    give_default_time(core, job, first)
    if spec.time_min_s and job.time_limit_s is not None and spec.time_min_s > job.time_limit_s:
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)
    set_memory(core, job, first)
    fit_memory_cap(job, partitions)
    _check_counted(core, spec)
    _named_nodes(core, job)
    check_gres(core, spec)
    check_gpu_options(message.spec)
    _heed_deadline(job, first, int(now))
    check_words(core, spec)
    enforce_limits(core, job, partitions)
    return job


def _allowed(
    core: Core, spec: JobSpec, user_id: int, partitions: list[Partition]
) -> tuple[JobSpec, tuple[str, ...]]:
    """With the account, the QOS and the key that it comes under, and the flags of the QOS."""
    access = resolve(
        core,
        user_id,
        spec.account,
        spec.qos,
        spec.wckey,
        partitions,
        reservation=spec.reservation,
        no_qos=is_given_empty(spec, "qos"),
    )
    if (access.account, access.qos, access.wckey) == (spec.account, spec.qos, spec.wckey):
        return spec, access.qos_flags
    spec = msgspec.structs.replace(spec, account=access.account, qos=access.qos, wckey=access.wckey)
    return spec, access.qos_flags


def _is_for_script(message: SubmitJob | AllocateJob) -> bool:
    """Whether sbatch, or what does as it, asks; else salloc or srun."""
    return isinstance(message, SubmitJob) and bool(message.script or not message.test_only)


def _check_counted(core: Core, spec: JobSpec) -> None:
    if is_given_empty(spec, "gres"):
        raise SlurmError(ErrorCode.INVALID_TRES)
    if spec.licenses:
        check_licenses(core, spec.licenses)


def _check_times(spec: JobSpec, partitions: list[Partition]) -> None:
    """Refuse a --time-min above --time, or above what every partition allows; and instants that are
    none, as no command sends them.
    """
    if not all(math.isfinite(each or 0.0) for each in (spec.begin_time, spec.deadline)):
        raise SlurmError(ErrorCode.INVALID_TIME)
    limit_s = spec.time_limit_s or 0
    if not spec.time_min_s:
        return
    least_s = spec.time_min_s if spec.time_min_s > 0 else math.inf
    if 0 < limit_s < least_s:
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)
    if all(each.max_time_s is not None and least_s > each.max_time_s for each in partitions):
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)


def _heed_deadline(job: Job, partition: Partition, now: int) -> None:
    """Refuse a --deadline that cannot be met; a job without a time, in a partition that has no
    default, may be given as little as lets it end in time.
    """
    spec = job.spec
    if spec.deadline is None:
        return
    if spec.deadline < now:
        raise SlurmError(ErrorCode.INVALID_TIME_LIMIT)
    if spec.deadline < now + (spec.time_min_s or 0):
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)
    is_limited = job.time_limit_is_set and job.time_limit_s is not None
    if not (is_limited or spec.time_min_s or partition.default_time_s is not None):
        job.spec = msgspec.structs.replace(spec, time_min_s=LEAST_TO_DEADLINE_S)


def _no_partition(name: str) -> SlurmError:
    error = SlurmError(ErrorCode.INVALID_PARTITION)
    return SlurmError(error.code, f"invalid partition specified: {name}\n{error.text}")


def _partitions(core: Core, spec: JobSpec, user_id: int) -> list[Partition]:
    if spec.required_nodes:  # a name that is none comes before a partition that is none
        node_bitmap(core, spec.required_nodes)
    if is_given_empty(spec, "partition"):
        raise _no_partition("(null)")
    wanted = spec.partition
    if not wanted and (reservation := core.tables.reservations.by_name.get(spec.reservation)):
        wanted = reservation.partition
    try:
        partitions = find_partitions(core, wanted)
    except SlurmError as error:
        if error.code != ErrorCode.INVALID_PARTITION:
            raise
        missing = next(name for name in wanted.split(",") if name not in core.tables.partitions)
        raise _no_partition(missing) from None
    is_admin = core.is_slurm_user(user_id)
    partitions = [_open_partition(core, partition) for partition in partitions]
    partitions = [partition for partition in partitions if partition.can_submit]
    if not partitions:
        raise SlurmError(ErrorCode.PARTITION_NOT_AVAILABLE)
    for partition in partitions:
        if partition.root_only and not is_admin:
            raise SlurmError(ErrorCode.ACCESS_DENIED)
        if (
            partition.requires_reservation
            and not spec.reservation
            and all(each.requires_reservation for each in partitions)
        ):
            raise SlurmError(ErrorCode.ACCESS_DENIED)
        if user_id == 0 and (partition.disable_root_jobs or core.settings.disable_root_jobs):
            raise SlurmError(ErrorCode.ACCESS_DENIED)
        if (
            partition.allow_groups is not None
            and not is_admin
            and not core.users.groups_of(user_id).intersection(partition.allow_groups)
        ):
            raise SlurmError(ErrorCode.GROUP_NOT_PERMITTED)
    return partitions


def _open_partition(core: Core, partition: Partition) -> Partition:
    """The partition, or while it takes no jobs its alternate."""
    seen: list[str] = []
    while (
        not partition.can_submit
        and partition.alternate in core.tables.partitions
        and partition.name not in seen
    ):
        seen.append(partition.name)
        partition = core.tables.partitions[partition.alternate]
    return partition


def _named_nodes(core: Core, job: Job) -> None:
    spec = job.spec
    if spec.required_nodes:
        job.required_nodes = node_bitmap(core, spec.required_nodes)
        if spec.num_tasks is not None:  # no node may be without a task
            job.required_nodes = nodeset.lowest(job.required_nodes, spec.num_tasks)
        if spec.contiguous:
            first = nodeset.first(job.required_nodes)
            job.required_nodes = nodeset.span(first, nodeset.last(job.required_nodes) - first + 1)
        name_nodes(job, job.required_nodes.bit_count())
    if spec.excluded_nodes:
        job.excluded_nodes = node_bitmap(core, spec.excluded_nodes)
        if job.excluded_nodes & job.required_nodes:
            raise SlurmError(ErrorCode.INVALID_NODE)


def is_feasible(core: Core, job: Job) -> bool:
    """Whether the job may wait: in its only partition, or in one of several."""
    partitions = [core.tables.partitions[name] for name in job.partitions]
    if len(partitions) == 1:
        return _may_wait_there(core, job, partitions[0])
    return _may_wait_in_one(core, job, partitions)


def _may_wait_there(core: Core, job: Job, partition: Partition) -> bool:
    """Whether the partition could hold the job, or the job breaks a limit of it, which may change,
    or is larger than the partition while that is open.

    It is not noticed in a closed partition that a node's CPUs are too few for the job's memory
    (MaxMemPerCPU); the scheduler will.
    """
    if _is_larger(core, job, partition):
        return partition.can_schedule
    if limit_broken(job, partition):
        return True
    if cpus_for_memory(job, partition) > 1 and not partition.can_schedule:
        return True
    return _could_hold(core, job, partition)


def _may_wait_in_one(core: Core, job: Job, partitions: list[Partition]) -> bool:
    """Whether one of them could hold the job, whatever limits of time and memory it breaks there.
    Else it may wait where the last of them is closed, or MaxNodes is all that is against it there
    (as seen of 22.05.8).
    """
    if any(_could_hold(core, job, partition) for partition in partitions):
        return True
    last = min(reversed(partitions), key=attrgetter("priority_tier"))
    if not last.can_schedule:
        return True
    if last.max_nodes is None or job.asked_nodes <= last.max_nodes:
        return False
    if _is_larger(core, job, last):
        return True
    unbound = replace(last, max_nodes=None)
    return core.selector.could_ever_run(Ask(job, unbound, unbound.nodes), core.tables)


def _is_larger(core: Core, job: Job, partition: Partition) -> bool:
    return is_too_large(core, job, partition) or has_too_few_nodes(core, job, partition)


def _could_hold(core: Core, job: Job, partition: Partition) -> bool:
    return (
        NO_NODES not in job.spec.extra
        and not _is_larger(core, job, partition)
        and could_ever_run(core, job, partition)
        and (not job.spec.reservation or fits_reservation(core, job, partition))
    )


def refuse(core: Core, job: Job) -> NoReturn:
    """Say what it is that no node has."""
    if NO_NODES in job.spec.extra:
        raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    error = SlurmError(ErrorCode.NOT_AVAILABLE)
    why = complaint(core, job, core.tables.partitions[job.partitions[-1]])
    raise SlurmError(ErrorCode.NOT_AVAILABLE, f"{why}\n{error.text}") if why else error


def _held_or_fixed(job: Job, *, is_admin: bool) -> int:
    """0 for a held job, what an administrator fixes, or 1 until `prioritise` knows better."""
    spec = job.spec
    if spec.hold or (spec.priority == 0 and is_admin):
        job.held_by = HELD_BY_USER
        return 0
    if spec.priority is not None and is_admin:
        job.admin_priority = spec.priority
        return spec.priority
    return 1
