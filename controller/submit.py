"""Submission: what sbatch sends becomes a job record, or is refused as Slurm refuses it.

Place: the controller's core. Follows: sbatch(1) on options and their defaults; slurm.conf(5) on limits.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from math import prod
from operator import attrgetter, or_
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from understudy.controller.alarms import watch_deadline
from understudy.controller.arrays import make_array, read_tasks, split_all, split_ended
from understudy.controller.core import log
from understudy.controller.dependency import check_circle
from understudy.controller.dependency import parse as parse_dependency
from understudy.controller.eligibility import note_end, review, watch_dependency
from understudy.controller.enforcement.access import at_work, check_policy, give_default_time, resolve
from understudy.controller.feasibility import complaint, could_ever_run, is_too_large
from understudy.controller.het_jobs import form as form_het_job
from understudy.controller.job import BAD_CONSTRAINTS, HELD_BY_USER, Job, JobEvent, advance
from understudy.controller.job_submit import review_submission
from understudy.controller.partitions import limit_broken
from understudy.controller.prioritise import prioritise
from understudy.controller.reservations import catch_up, check_access, earliest_start, first_reason
from understudy.controller.scheduling.features import check_form
from understudy.controller.scheduling.licenses import read_licenses
from understudy.controller.scheduling.main_pass import run_length
from understudy.controller.scheduling.reserved import WAITS
from understudy.model import nodeset
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.gres import GPU, SHARED, BadCountError, gpus_in, mixes_types, read_request
from understudy.protocol.messages import AllocateJob, SubmitJob, Submitted

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.partitions import Partition
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import JobSpec

UNLIMITED_S: Final = -1
LEAST_TO_DEADLINE_S: Final = 60  # what 22.05.8 shows as TimeMin
MAX_SCRIPT: Final = 4 * 1024 * 1024  # characters
_MAX_TEXT: Final = 1024  # of a job's texts, as Slurm 22.05.8 was seen to take them
_MAX_PATH: Final = 4096
_TEXTS: Final = attrgetter("account", "comment", "features", "licenses", "mail_user", "name", "partition", "qos", "wckey")
_STREAMS: Final = attrgetter("std_in", "std_out", "std_err")
_LIMIT_CODES: Final = {
    "PartitionTimeLimit": 2051,
    "PartitionNodeLimit": 2006,
    "PartitionCpuLimit": 2005,
    "MaxMemPerLimit": 2044,
    "AccountNotAllowed": 2045,
    "QOSNotAllowed": 2066,
}


def submit(core: Core, message: SubmitJob, sender: Sender) -> Submitted:
    """sbatch: take in a batch job."""
    if not message.script and message.emulation is None and not message.test_only:
        raise SlurmError(ErrorCode.NO_SCRIPT)
    notes: list[str] = []
    if core.job_submit:
        message, notes = review_submission(core, message, sender)
    answer = _submit(core, message, sender)
    return msgspec.structs.replace(answer, note="\n".join([*notes, *filter(None, [answer.note])])) if notes else answer


def _submit(core: Core, message: SubmitJob, sender: Sender) -> Submitted:
    if message.components:
        return _submit_components(core, message, sender)
    if message.test_only:
        return _test_only(core, _checked(core, message, sender)[0], core.time.now())
    return Submitted(take_in(core, message, sender).job_id)


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


def _checked(core: Core, message: SubmitJob | AllocateJob, sender: Sender) -> tuple[Job, int, int]:
    """The job's record, not in the tables yet; of an array its tasks and how many of them may run at a time."""
    now, spec = core.time.now(), message.spec
    user_id, group_id = _allowed_as(core, message, sender)
    tasks, task_limit = read_tasks(core, spec.array) if spec.array else (0, 0)
    job = build_job(core, message, user_id, group_id, now, by_admin=core.is_operator(sender.user_id))
    check_policy(core, job, tasks.bit_count() or 1)
    if core.tables.reservations:
        catch_up(core, now)
    if spec.reservation:
        check_reservation(core, job)
    return job, tasks, task_limit


def take_in(core: Core, message: SubmitJob | AllocateJob, sender: Sender) -> Job:
    """Put a new job into the tables."""
    try:
        job, tasks, task_limit = _checked(core, message, sender)
    except SlurmError as error:
        if error.code == ErrorCode.INVALID_FEATURE:  # found out late: the job has had a number
            core.take_job_id()
        raise
    now, spec, tables = core.time.now(), message.spec, core.tables
    job_id = job.job_id = core.take_job_id()
    tables.jobs[job_id] = job
    core.counters.submitted += tasks.bit_count() or 1
    if spec.dependency:
        try:
            job.dependency = parse_dependency(spec.dependency, job_id, core.arrays)
            check_circle(job, job.dependency, tables.jobs, core.settings.max_depend_depth)
        except SlurmError:
            del tables.jobs[job_id]
            raise
        if job.dependency is not None:
            watch_dependency(core, job)
    if isinstance(message, SubmitJob):
        core.scripts[job_id] = intern(message.script)
    else:
        job.interactive = True
    # Users submit job after job from the same shell: what is equal is kept once, which is 2 instead of 8 kB a job.
    spec.environment[:] = map(intern, spec.environment)
    if tasks:
        make_array(core, job, tasks, task_limit)
    is_held = spec.hold or (spec.priority == 0 and core.is_operator(sender.user_id))
    if not is_held and not is_feasible(core, job):  # of a held job it is found out when it is released
        job.reason = BAD_CONSTRAINTS
        job.priority = _held_or_fixed(job, is_admin=core.is_operator(sender.user_id))
        advance(job, JobEvent.CANNOT_RUN, now)
        job.eligible_time = job.start_time = job.end_time = int(now)
        job.exit_signal = 1  # so Slurm shows it: 0:1
        note_end(core, job, now)
        core.journal.job(job_id)
        refuse(core, job)
    if not is_held and "switches" in spec.extra:
        job.switches_since = int(now)  # it has been looked at
    if core.tables.reservations and job.reason == "None" and (reason := first_reason(core, job, now)):
        job.reason, job.reason_detail = WAITS, "" if reason == WAITS else reason
    job.priority = _held_or_fixed(job, is_admin=core.is_operator(sender.user_id))
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
    core.last_job_update = now
    core.journal.job(job_id)
    core.changed("submit", now)
    return job


def check_submission(core: Core, message: SubmitJob, sender: Sender) -> tuple[list[Job], int]:
    """The records that a submission would make, in no table, and how many tasks an array has.

    Raises:
        SlurmError: as it would be refused.
    """
    if message.components:
        return _checked_components(core, message, sender), 1
    if message.spec.reservation:  # without using up a job id
        catch_up(core, core.time.now())
        check_access(core, message.spec.reservation, _allowed_as(core, message, sender)[0], message.spec.account)
    job, tasks, _ = _checked(core, message, sender)
    return [job], tasks.bit_count() or 1


def _submit_components(core: Core, message: SubmitJob, sender: Sender) -> Submitted:
    if message.test_only:
        return _test_components(core, _checked_components(core, message, sender), core.time.now())
    leader = take_in_components(core, message, sender)
    core.scripts[leader.job_id] = intern(message.script)
    return Submitted(leader.job_id)


def _checked_components(core: Core, message: SubmitJob | AllocateJob, sender: Sender) -> list[Job]:
    (user_id, group_id), now = _allowed_as(core, message, sender), core.time.now()
    by_admin = core.is_operator(sender.user_id)
    specs = [message.spec, *message.components]
    if any(spec.array for spec in specs):
        raise SlurmError(ErrorCode.INVALID_ARRAY)
    jobs = [build_job(core, msgspec.structs.replace(message, spec=spec), user_id, group_id, now, by_admin=by_admin) for spec in specs]
    limits = at_work(core)
    with ExitStack() as taken_in:
        for job in jobs:
            check_policy(core, job, 1)
            if limits is not None:
                taken_in.enter_context(limits.with_submitted(job, core.tables.partitions[job.partitions[0]]))
    for job in jobs:
        job.excluded_nodes |= reduce(or_, (other.required_nodes for other in jobs if other is not job))
    return jobs


def take_in_components(core: Core, message: SubmitJob | AllocateJob, sender: Sender) -> Job:
    """Take in a heterogeneous job: all components, or none; the leader. Whether each could ever run is found out by the scheduler."""
    jobs = _checked_components(core, message, sender)
    tables, now, by_admin = core.tables, core.time.now(), core.is_operator(sender.user_id)
    dependency = parse_dependency(message.spec.dependency, 0, core.arrays) if message.spec.dependency else None
    for job in jobs:
        job.job_id = core.take_job_id()
        tables.jobs[job.job_id] = job
    form_het_job(jobs)
    core.counters.submitted += len(jobs)
    for job in jobs:
        job.interactive = isinstance(message, AllocateJob)
        job.dependency = dependency
        if dependency is not None:
            watch_dependency(core, job)
        job.priority = _held_or_fixed(job, is_admin=by_admin)
        tables.pending[job.job_id] = job
        job.last_sched_eval = int(now)
        review(core, job, now)
        prioritise(core, job, now)
        if job.spec.deadline is not None:
            watch_deadline(core, job)
        core.journal.job(job.job_id)
    core.last_job_update = now
    core.changed("submit", now)
    return jobs[0]


def _test_components(core: Core, jobs: list[Job], now: float) -> Submitted:
    """--test-only of a heterogeneous job: from when on there are nodes for each component, all their processors, and the nodes."""
    first = min(core.take_job_id() for _ in jobs)
    start, taken = int(now), 0
    for job in jobs:
        job.excluded_nodes |= taken
        partitions = [core.tables.partitions[name] for name in job.partitions]
        fitting = [partition for partition in partitions if core.selector.could_ever_run(job, partition, core.tables)]
        found = earliest_start(core, job, fitting[0], now) if fitting else None
        if found is None:
            raise SlurmError(ErrorCode.NOT_AVAILABLE)
        start, taken = max(start, found[0]), taken | found[1]
    when = datetime.fromtimestamp(start, tz=UTC).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    processors, where = sum(job.min_cpus for job in jobs), core.names.to_expression(taken)
    return Submitted(first, f"Job {first} to start at {when} using {processors} processors on {where}")


def check_reservation(core: Core, job: Job) -> None:
    """Refuse reservations that the user may not use. The job id is used up."""
    try:
        check_access(core, job.spec.reservation, job.user_id, job.spec.account)
    except SlurmError:
        core.take_job_id()
        raise


def _check_lengths(message: SubmitJob | AllocateJob) -> None:
    spec = message.spec
    folder = len(spec.work_dir)
    too_long = (
        max(map(len, _TEXTS(spec))) > _MAX_TEXT
        or len(spec.extra.get("network", "")) > _MAX_TEXT
        or folder > _MAX_PATH
        or any(len(path) + (0 if path.startswith("/") else folder + 1) > _MAX_PATH for path in _STREAMS(spec) if path)
        or (isinstance(message, SubmitJob) and len(message.script) > MAX_SCRIPT)
    )
    if too_long:
        raise SlurmError(ErrorCode.TOO_LONG)


def build_job(core: Core, message: SubmitJob | AllocateJob, user_id: int, group_id: int, now: float, *, by_admin: bool) -> Job:
    """The job record, checked, without an id and not in the tables.

    Raises:
        SlurmError: as Slurm would refuse it.
    """
    _check_lengths(message)
    partitions = _partitions(core, message.spec, user_id)
    first = partitions[0]
    spec = fill_gpus(core, message.spec, first)
    access = resolve(core, user_id, spec.account, spec.qos, spec.wckey, partitions, reservation=spec.reservation)
    if (access.account, access.qos, access.wckey) != (spec.account, spec.qos, spec.wckey):
        spec = msgspec.structs.replace(spec, account=access.account, qos=access.qos, wckey=access.wckey)
    tasks, cpus_per_task, min_nodes, max_nodes, min_cpus = size(spec)
    if "spread_job" in spec.extra and spec.num_tasks is not None and max_nodes is None:
        max_nodes = max(min_nodes, min(tasks, len(core.tables.nodes.nodes)))
    if spec.nice < 0 and not by_admin:
        raise SlurmError(ErrorCode.INVALID_NICE)
    if spec.time_min_s and (spec.time_limit_s or 0) > 0 and spec.time_min_s > (spec.time_limit_s or 0):
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)
    if spec.time_min_s and all(each.max_time_s is not None and spec.time_min_s > each.max_time_s for each in partitions):
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)
    ordered = partitions
    if spec.begin_time is not None and spec.begin_time > now and not spec.hold and not spec.dependency:
        ordered = sorted(partitions, key=lambda each: -each.priority_tier)
    job = Job(
        job_id=0,
        spec=spec,
        user_id=user_id,
        group_id=group_id,
        submit_time=int(now),
        partitions=tuple([partition.name for partition in ordered]),
        partition=ordered[0].name,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        num_tasks=tasks,
        cpus_per_task=cpus_per_task,
        min_cpus=min_cpus,
        exclusive=spec.exclusive,
        requeue=core.settings.requeue_by_default if spec.requeue is None else spec.requeue,
        emulation=message.emulation if isinstance(message, SubmitJob) else None,
        nice=spec.nice,
        qos_flags=access.qos_flags,
    )
    if spec.begin_time is not None and spec.begin_time > now:
        job.begin_time = int(spec.begin_time)
    set_time_limit(job, first, spec.time_limit_s)
    give_default_time(core, job, first)
    if spec.time_min_s and job.time_limit_s is not None and spec.time_min_s > job.time_limit_s:
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)
    set_memory(core, job, first)
    _fit_memory_cap(core, job, partitions)
    _named_nodes(core, job)
    _check_words(core, spec)
    if spec.deadline is not None and spec.deadline < int(now):
        raise SlurmError(ErrorCode.INVALID_TIME_LIMIT)
    if spec.deadline is not None and spec.deadline < int(now) + (spec.time_min_s or 0):
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)
    if spec.deadline is not None and job.time_limit_s is None and not spec.time_limit_s and not spec.time_min_s:
        job.spec = msgspec.structs.replace(job.spec, time_min_s=LEAST_TO_DEADLINE_S)  # it may be given as little, so that it ends in time
    if (wanted := spec.extra.get("batch")) and not set(wanted.split(",")) <= set(re.split(r"[&|,]", spec.features)):
        raise SlurmError(ErrorCode.INVALID_BATCH_FEATURES)
    _enforce_limits(core, job, partitions)
    return job


def fill_gpus(core: Core, spec: JobSpec, partition: Partition) -> JobSpec:
    """The specification with what follows for a job with GPUs: numbers of tasks and nodes, and the defaults for CPUs and memory for each GPU."""
    if not (spec.gres or spec.tres_per_job or spec.tres_per_socket or spec.tres_per_task or spec.ntasks_per_tres):
        return spec
    try:
        gpus = {name: gpus_in(getattr(spec, name)) for name in ("gres", "tres_per_job", "tres_per_task", "tres_per_socket")}
    except ValueError as error:
        raise _no_gres(error) from None
    changes: dict[str, Any] = {}
    if spec.ntasks_per_tres:
        if gpus["tres_per_job"]:
            changes["num_tasks"] = max(spec.num_tasks or 0, gpus["tres_per_job"] * spec.ntasks_per_tres)
        elif gpus["gres"]:
            changes["num_tasks"] = max(spec.num_tasks or 0, (spec.min_nodes or 1) * gpus["gres"] * spec.ntasks_per_tres)
            if spec.ntasks_per_node is None:
                changes["ntasks_per_node"] = gpus["gres"] * spec.ntasks_per_tres
        elif spec.num_tasks is not None and not any(gpus.values()):
            changes["tres_per_job"] = f"gres:gpu:{-(-spec.num_tasks // spec.ntasks_per_tres)}"
            gpus["tres_per_job"] = 1
    if gpus["tres_per_job"] and gpus["gres"] and spec.tres_per_job.count(",") == 0:
        nodes = gpus["tres_per_job"] // gpus["gres"]
        if nodes and gpus["tres_per_job"] % gpus["gres"] == 0 and not spec.max_nodes:
            changes |= {"min_nodes": nodes, "max_nodes": nodes}
    if gpus["tres_per_job"] and gpus["tres_per_task"] and spec.num_tasks is None:
        changes["num_tasks"] = max(gpus["tres_per_job"] // gpus["tres_per_task"], 1)
    if any(gpus.values()):
        defaults = core.settings.gpu_defaults | partition.gpu_defaults
        if not spec.cpus_per_tres and not spec.cpus_per_task and "cpu" in defaults:
            changes["cpus_per_tres"] = f"gres:gpu:{defaults['cpu']}"
        if not spec.mem_per_tres and spec.mem_per_node_mb is None and spec.mem_per_cpu_mb is None and "mem" in defaults:
            changes["mem_per_tres"] = f"gres:gpu:{defaults['mem']}"
    return msgspec.structs.replace(spec, **changes) if changes else spec


def size(spec: JobSpec) -> tuple[int, int, int, int | None, int]:
    """(tasks, CPUs per task, least nodes, most nodes, least CPUs) with sbatch's defaults."""
    cpus_per_task = spec.cpus_per_task or 1
    min_nodes = spec.min_nodes or 1
    max_nodes = spec.max_nodes or None
    if (spec.min_nodes is not None and spec.min_nodes < 1) or (max_nodes is not None and max_nodes < min_nodes):
        raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    if spec.num_tasks is not None:
        tasks = spec.num_tasks
        if tasks < 1:
            raise SlurmError(ErrorCode.INVALID_TASK_COUNT)
    elif spec.ntasks_per_node:
        tasks = spec.ntasks_per_node * min_nodes
    else:
        tasks = min_nodes
        if spec.min_nodes is not None or "extra_node_info" in spec.extra:  # a task for each thread of the nodes described
            described = (spec.extra.get("sockets_per_node", 1), spec.extra.get("cores_per_socket", 1), spec.threads_per_core or 1)
            is_range = max_nodes is not None and max_nodes > min_nodes
            tasks = max((1 if is_range else min_nodes) * prod(map(int, described)), min_nodes)
    if cpus_per_task < 1:
        raise SlurmError(ErrorCode.INVALID_CPU_COUNT)
    if spec.num_tasks is not None and min_nodes > tasks and spec.min_nodes is not None:
        # Fewer tasks than nodes: sbatch lowers the number of nodes, as no node may be without a task.
        min_nodes = tasks
        max_nodes = None if max_nodes is None else max(tasks, 1) if max_nodes == spec.min_nodes else max_nodes
    if spec.num_tasks is not None and max_nodes is not None:
        max_nodes = max(min(max_nodes, tasks), 1)
    if spec.ntasks_per_node:
        min_nodes = max(min_nodes, -(-tasks // spec.ntasks_per_node))
        if max_nodes is not None and max_nodes < min_nodes:
            raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    min_cpus = min_nodes if spec.overcommit else max(tasks * cpus_per_task, min_nodes)
    if spec.num_tasks is None and not (spec.ntasks_per_node or spec.overcommit) and max_nodes is not None and max_nodes > min_nodes:
        min_cpus = cpus_per_task  # of a range, no more than one task is certain
    return tasks, cpus_per_task, min_nodes, max_nodes, min_cpus


def set_time_limit(job: Job, partition: Partition, asked_s: int | None) -> None:
    """The limit asked for (0 and -1: unlimited; whole minutes, rounded up by the command), else the partition's."""
    if asked_s is None:
        job.time_limit_is_set = False
        job.time_limit_s = partition.default_time_s if partition.default_time_s is not None else partition.max_time_s
    else:
        job.time_limit_is_set = True
        job.time_limit_s = None if asked_s <= 0 else asked_s


def set_memory(core: Core, job: Job, partition: Partition) -> None:
    """Memory asked for, else DefMemPerCPU or DefMemPerNode of the partition, else the cluster's."""
    spec = job.spec
    job.memory_per_node_mb, job.memory_per_cpu_mb = spec.mem_per_node_mb, spec.mem_per_cpu_mb
    if spec.mem_per_tres:
        job.memory_per_node_mb = 0
        return
    if spec.mem_per_node_mb is not None or spec.mem_per_cpu_mb is not None:
        return
    settings = core.settings
    if partition.default_memory_per_cpu_mb is not None:
        job.memory_per_cpu_mb = partition.default_memory_per_cpu_mb
    elif partition.default_memory_per_node_mb is not None:
        job.memory_per_node_mb = partition.default_memory_per_node_mb
    elif settings.default_memory_per_cpu_mb is not None:
        job.memory_per_cpu_mb = settings.default_memory_per_cpu_mb
    elif settings.default_memory_per_node_mb is not None:
        job.memory_per_node_mb = settings.default_memory_per_node_mb


def _fit_memory_cap(core: Core, job: Job, partitions: list[Partition]) -> None:
    """MaxMemPerCPU refuses nobody: who asks for more memory for a CPU gets so many CPUs for a task that each has less."""
    general = core.settings.max_memory_per_cpu_mb
    caps = [general if partition.max_memory_per_cpu_mb is None else partition.max_memory_per_cpu_mb for partition in partitions]
    job.memory_cap_mb = min(filter(None, caps), default=None)
    if job.memory_cap_mb is not None and job.memory_per_cpu_mb is not None and job.memory_per_cpu_mb > job.memory_cap_mb:
        times = -(-job.memory_per_cpu_mb // job.memory_cap_mb)
        job.memory_per_cpu_mb = -(-job.memory_per_cpu_mb // times)
        job.cpus_per_task *= times
        job.min_cpus *= times


def find_partitions(core: Core, text: str) -> list[Partition]:
    """The partitions of a comma separated list, the default one for "".

    Raises:
        SlurmError: no such partition, or no default one.
    """
    table = core.tables.partitions
    if not text:
        for partition in table.values():
            if partition.is_default:
                return [partition]
        raise SlurmError(ErrorCode.NO_PARTITION)
    try:
        return [table[name] for name in text.split(",")] if "," in text else [table[text]]
    except KeyError:
        raise SlurmError(ErrorCode.INVALID_PARTITION) from None


def check_features(core: Core, expression: str, code: int = ErrorCode.INVALID_FEATURE) -> None:
    """Refuse a feature that no node has, and what is no expression."""
    words = expression.replace("&", " ").replace("|", " ").replace(",", " ")
    for bracket in "()[]":
        words = words.replace(bracket, " ")
    for word in words.split():
        name = word.partition("*")[0]
        if name and not core.tables.nodes.with_feature(name):
            raise SlurmError(code)
    if code == ErrorCode.INVALID_FEATURE:
        check_form(expression)


def _partitions(core: Core, spec: JobSpec, user_id: int) -> list[Partition]:
    try:
        partitions = find_partitions(core, spec.partition)
    except SlurmError as error:
        if error.code != ErrorCode.INVALID_PARTITION:
            raise
        missing = next(name for name in spec.partition.split(",") if name not in core.tables.partitions)
        raise SlurmError(ErrorCode.INVALID_PARTITION, f"invalid partition specified: {missing}\n{error.text}") from None
    is_admin = core.is_slurm_user(user_id)
    partitions = [_open_partition(core, partition) for partition in partitions]
    partitions = [partition for partition in partitions if partition.can_submit]
    if not partitions:
        raise SlurmError(ErrorCode.PARTITION_NOT_AVAILABLE)
    for partition in partitions:
        if partition.root_only and not is_admin:
            raise SlurmError(ErrorCode.ACCESS_DENIED)
        if partition.requires_reservation and not spec.reservation and all(each.requires_reservation for each in partitions):
            raise SlurmError(ErrorCode.ACCESS_DENIED)
        if user_id == 0 and (partition.disable_root_jobs or core.settings.disable_root_jobs):
            raise SlurmError(ErrorCode.ACCESS_DENIED)
        if partition.allow_groups is not None and not is_admin and not core.users.groups_of(user_id).intersection(partition.allow_groups):
            raise SlurmError(ErrorCode.GROUP_NOT_PERMITTED)
    return partitions


def _open_partition(core: Core, partition: Partition) -> Partition:
    """The partition, or while it takes no jobs its alternate."""
    seen: list[str] = []
    while not partition.can_submit and partition.alternate in core.tables.partitions and partition.name not in seen:
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
        count = job.required_nodes.bit_count()
        if job.max_nodes is not None and count > job.max_nodes:
            raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
        if count > job.min_nodes:
            job.min_nodes = count
            job.min_cpus = max(job.min_cpus, count)
            if spec.num_tasks is None and not spec.ntasks_per_node:
                job.num_tasks = count
                job.min_cpus = max(job.min_cpus, count * job.cpus_per_task)
    if spec.excluded_nodes:
        job.excluded_nodes = node_bitmap(core, spec.excluded_nodes)
        if job.excluded_nodes & job.required_nodes:
            raise SlurmError(ErrorCode.INVALID_NODE)


def node_bitmap(core: Core, expression: str) -> int:
    """The nodes of a host list expression.

    Raises:
        SlurmError: an unknown node, or not such an expression.
    """
    try:
        return core.names.to_bitmap(expression)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_NODE) from None


def _check_words(core: Core, spec: JobSpec) -> None:
    if spec.features:
        check_features(core, spec.features)
    if spec.prefer:
        check_features(core, spec.prefer, ErrorCode.INVALID_PREFERENCE)
    if spec.licenses:
        check_licenses(core, spec.licenses)
    if spec.gres or spec.tres_per_job or spec.tres_per_socket or spec.tres_per_task or spec.cpus_per_tres or spec.mem_per_tres:
        check_gres(core, spec)


def check_licenses(core: Core, text: str) -> None:
    """Refuse a licence that is not configured, or more of it than there is."""
    try:
        licenses = read_licenses(text)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_LICENSES) from None
    if any(count > core.tables.licenses.totals.get(name, 0) for name, count in licenses):
        raise SlurmError(ErrorCode.INVALID_LICENSES)


def _no_gres(error: ValueError) -> SlurmError:
    return SlurmError(ErrorCode.INVALID_TRES if isinstance(error, BadCountError) else ErrorCode.INVALID_GRES)


def check_gres(core: Core, spec: JobSpec) -> None:
    """Refuse what is no generic resource of the cluster, and what contradicts itself."""
    try:
        wants = [read_request(text) for text in (spec.gres, spec.tres_per_job, spec.tres_per_socket, spec.tres_per_task)]
        others = read_request(spec.cpus_per_tres) + read_request(spec.mem_per_tres)
    except ValueError as error:
        raise _no_gres(error) from None
    together = tuple(want for each in wants for want in each)
    if any(want.name not in core.settings.gres_types for want in together + others):
        raise SlurmError(ErrorCode.INVALID_GRES)
    names = {want.name for want in together}
    if GPU in names and not names.isdisjoint(SHARED):
        raise SlurmError(ErrorCode.INVALID_GRES)
    if mixes_types(together):
        raise SlurmError(ErrorCode.MIXED_GRES)
    if any(wants[1:]) + len(others) and not getattr(core.selector, "counts_gpus", True):
        raise SlurmError(ErrorCode.UNSUPPORTED_GRES)
    per_job, per_task = wants[1], wants[3]
    if any(whole.count < (spec.min_nodes or 1) for whole in per_job):
        raise SlurmError(ErrorCode.INVALID_GRES)
    for whole in per_job:
        for each in per_task:
            if (whole.name, whole.type) == (each.name, each.type) and whole.count % each.count:
                raise SlurmError(ErrorCode.INVALID_GRES)
    if spec.tres_per_socket and "sockets_per_node" not in spec.extra:
        raise SlurmError(ErrorCode.INVALID_GRES)


def _enforce_limits(core: Core, job: Job, partitions: list[Partition]) -> None:
    """EnforcePartLimits: ALL of the partitions must allow the job, ANY one of them, or (NO) it is taken in and waits."""
    rule = core.settings.enforce_part_limits
    if rule == "NO":
        return
    max_memory = (core.settings.max_memory_per_node_mb, core.settings.max_memory_per_cpu_mb)
    broken = [limit_broken(job, partition, max_memory) or _too_small(core, job, partition) for partition in partitions]
    if not any(broken) or (rule == "ANY" and not all(broken)):
        return
    raise SlurmError(_LIMIT_CODES[next(filter(None, broken))])


def _too_small(core: Core, job: Job, partition: Partition) -> str:
    """Whether all of the partition would not be enough."""
    if job.min_nodes > partition.nodes.bit_count():
        return "PartitionNodeLimit"
    cpus = sum(kind.all_cpus * (kind.nodes & partition.nodes).bit_count() for kind in core.tables.nodes.kinds)
    return "PartitionCpuLimit" if job.min_cpus > cpus and not job.spec.overcommit else ""


def is_feasible(core: Core, job: Job) -> bool:
    """Whether the job may wait. One of its partitions could hold it, or it breaks limits of one, which may change.

    Where a single partition is open and smaller than the job, that waits for a larger one, too. Nor is it noticed in a closed partition that a node's
    CPUs are too few for the job's memory (MaxMemPerCPU); the scheduler will.
    """
    max_memory = (core.settings.max_memory_per_node_mb, core.settings.max_memory_per_cpu_mb)
    needs_cpus = job.memory_cap_mb is not None and job.memory_per_node_mb is not None and job.memory_per_node_mb > job.memory_cap_mb
    for name in job.partitions:
        partition = core.tables.partitions[name]
        if is_too_large(core, job, partition) or job.asked_nodes > partition.nodes.bit_count():
            if partition.can_schedule and len(job.partitions) == 1:
                return True
            continue
        if limit_broken(job, partition, max_memory) or (needs_cpus and not partition.can_schedule):
            return True
        if could_ever_run(core, job, partition) and (not job.spec.reservation or _fits_reservation(core, job, partition)):
            return True
    return False


def refuse(core: Core, job: Job) -> NoReturn:
    """Say what it is that no node has."""
    error = SlurmError(ErrorCode.NOT_AVAILABLE)
    why = complaint(core, job, core.tables.partitions[job.partitions[-1]])
    raise SlurmError(ErrorCode.NOT_AVAILABLE, f"{why}\n{error.text}") if why else error


def _fits_reservation(core: Core, job: Job, partition: Partition) -> bool:
    """Whether the nodes of one of the job's reservations, if it is bound to them, could hold it; one that has not begun is not asked."""
    own, now = core.tables.reservations.of(job), core.time.now()
    if any(not reservation.binds_nodes or not reservation.is_active(now) for reservation in own):
        return True
    return any(core.selector.could_ever_run(job, replace(partition, nodes=partition.nodes & each.nodes), core.tables) for each in own)


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


def _delay_s(core: Core, job: Job, partition: Partition) -> int:
    """How much later a job starts for those that wait already, as far as --test-only knows: the time for which they fill the partition."""
    now = core.time.now()
    waiting = [each for each in core.tables.pending.values() if each is not job and partition.name in each.partitions and each.is_eligible(now)]
    return sum(run_length(each, partition) * each.min_nodes for each in waiting) // max(partition.nodes.bit_count(), 1)


def _test_only(core: Core, job: Job, now: float) -> Submitted:
    """What --test-only asks: when and where it would start. It uses up a job id, as Slurm's does."""
    job_id = core.take_job_id()
    for name in job.partitions:
        partition = core.tables.partitions[name]
        if not could_ever_run(core, job, partition):
            continue
        found = earliest_start(core, job, partition, now)
        if found is not None:
            start, nodes = max(found[0], job.begin_time or 0) + _delay_s(core, job, partition), found[1]
            when = datetime.fromtimestamp(start, tz=UTC).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
            where = core.names.to_expression(nodes)
            return Submitted(job_id, f"Job {job_id} to start at {when} using {job.min_cpus} processors on nodes {where} in partition {name}")
    raise SlurmError(ErrorCode.NOT_AVAILABLE)
