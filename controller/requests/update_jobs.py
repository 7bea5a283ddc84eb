"""scontrol update jobid=...

Place: requests. Follows: scontrol(1) "JOBS - SPECIFICATIONS FOR UPDATE COMMAND":
owners may lower what they asked for, administrators may do all; much can be changed only while the
job is pending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.core.alarms import wait_until, watch_deadline, watch_limits
from understudy.controller.core.changes import job_changed
from understudy.controller.core.lookups import (
    check_features,
    find_partitions,
    may_control,
    node_bitmap,
)
from understudy.controller.facts.job import EXCLUDED_NODES, REQUIRED_NODES
from understudy.controller.jobs.checks import check_licenses
from understudy.controller.jobs.resize import keep_nodes, keep_number
from understudy.controller.jobs.site_rules import review_modification
from understudy.controller.jobs.sizes import set_time_limit
from understudy.controller.pending.access import check_policy, resolve
from understudy.controller.pending.arrays import TASK_LIMIT, admit, explain_limit
from understudy.controller.pending.dependencies import (
    check_circle,
    forget_dependency,
    watch_dependency,
)
from understudy.controller.pending.eligibility import review
from understudy.controller.requests.job_change import Change
from understudy.controller.requests.job_change_order import (
    FIRST_APPLIED,
    LOOKED_AT_TOGETHER,
    place_of,
)
from understudy.controller.requests.select import for_each_task
from understudy.controller.requests.update_job_layout import LAYOUT_SETTERS, keep_min_cpus_node
from understudy.controller.reservations.admission import check_access
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.dependency import parse as parse_dependency
from understudy.controller.tables.het_job import components
from understudy.controller.tables.job import HELD_BY_ADMIN, HELD_BY_USER
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.gres import mixes_types, read_request
from understudy.model.moments import parse_time
from understudy.model.noted import GIVEN_EMPTY, note
from understudy.model.times import (
    leading_number,
    parse_limit,
    parse_limit_in_minutes,
    parse_memory,
    whole_minutes,
)
from understudy.protocol.messages import JobResults

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import UpdateJobs

LEAST_PRIORITY: Final = 2  # however nice a job becomes, and if it was held until then
# observed at 22.05.8: until the scheduler finds that such a job is held no more
SEEN_AGAIN_S: Final = 30.0
MINUTE: Final = 60


def update_jobs(core: Core, message: UpdateJobs, sender: Sender) -> JobResults:
    """Change each job named."""
    now = core.time.now()
    changes = (
        review_modification(core, message.job_ids, message.changes, sender)
        if core.job_submit
        else message.changes
    )

    # a number alone means all components of a heterogeneous job
    whole = {int(text) for text in message.job_ids if text.isdecimal()}

    of_array = {key: text for key, text in changes.items() if key.lower() == "arraytaskthrottle"}

    def act(job: Job) -> None:
        try:
            if job.array is not None and job.array.job_id in whole:  # whoever asks, as in 22.05.8
                _apply(Change(core, job, now, by_admin=False, of_cluster=False), of_array)
            for each in components(job) if job.job_id in whole else [job]:
                _update(core, each, changes, sender, now)
        except ValueError as error:
            raise SlurmError(-1, str(error)) from error

    return JobResults(for_each_task(core, message.job_ids, {}, act))


def _check_rights(
    core: Core, job: Job, wanted: dict[str, str], change: Change, sender: Sender
) -> None:
    """Whether the sender may change the job at all, in the order of 22.05.8."""
    clears_late = wanted.get("burstbuffer") == "" and change.by_admin and job.is_finished
    if "burstbuffer" in wanted and not clears_late:
        raise SlurmError(ErrorCode.NOT_SUPPORTED)
    if job.is_finished:
        raise SlurmError(ErrorCode.FINISHED)
    if "admincomment" in wanted and not change.of_cluster:
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if not may_control(core, sender.user_id, job):
        raise SlurmError(ErrorCode.INVALID_USER)
    if job.job_id in core.crontabs.entries:
        raise SlurmError(ErrorCode.CRONTAB_JOB)


def _apply(change: Change, changes: dict[str, str]) -> SlurmError | None:
    """Make the changes in the order of 22.05.8, whatever the order of the line. What stops it
    behind those that are looked at together leaves what was made before.

    Raises:
        SlurmError: one of those is wrong, and nothing is changed.
    """
    before = {name: getattr(change.job, name) for name in LOOKED_AT_TOGETHER}
    change.asked = {key.lower().rstrip("+-"): value for key, value in changes.items()}
    for key, value in sorted(changes.items(), key=lambda each: place_of(each[0])):
        setter = _SETTERS.get(key.lower().rstrip("+-"))
        if setter is None:
            raise SlurmError(-1, f"Update of this parameter is not supported: {key}={value}")
        sign = key[-1] if key[-1] in "+-" else ""
        try:
            setter(change, sign + value)
        except SlurmError as error:
            if place_of(key) >= FIRST_APPLIED:
                return error
            for name, old in before.items():
                setattr(change.job, name, old)
            raise
    return None


def _update(core: Core, job: Job, changes: dict[str, str], sender: Sender, now: float) -> None:
    by_admin = core.is_operator(sender.user_id)
    change = Change(core, job, now, by_admin=by_admin, of_cluster=core.is_admin(sender.user_id))
    wanted = {key.lower(): value for key, value in changes.items()}
    _check_rights(core, job, wanted, change, sender)
    partitions = job.partitions
    wrong = _apply(change, changes)
    has_moved = job.partitions != partitions
    if (
        not has_moved
        and job.spec.reservation
        and change.spec.get("reservation") == ""
        and _must_have_reservation(core, job)
    ):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if change.spec:
        job.spec = msgspec.structs.replace(job.spec, **change.spec)
    was_held = job.reason if job.reason in (HELD_BY_ADMIN, HELD_BY_USER) else ""
    core.node_estimates.pop(job.job_id, None)
    if job.job_id in core.tables.pending:
        review(core, job, now, is_looked_at=not was_held)
        if was_held and job.priority:
            job.reason, job.reason_detail = was_held, ""
            core.at(now + SEEN_AGAIN_S, _see_again, core, job)
        core.priorities.changed(job, now, is_moved=has_moved)
    job_changed(core, job, now, Note.CHANGE)
    if has_moved and not job.spec.reservation and _must_have_reservation(core, job):
        raise SlurmError(ErrorCode.NOT_AVAILABLE_NOW)  # and there it is, as in 22.05.8
    if wrong is None and change.complaint is not None:
        raise SlurmError(change.complaint)
    if wrong is not None:
        raise wrong


def _must_have_reservation(core: Core, job: Job) -> bool:
    """Whether all of its partitions have ReqResv."""
    partitions = core.tables.partitions
    return all(
        name in partitions and partitions[name].requires_reservation for name in job.partitions
    )


def _see_again(core: Core, job: Job) -> None:
    """A pass of the scheduler finds that the job is held no more."""
    if job.job_id in core.tables.pending:
        review(core, job, core.time.now())
        job_changed(core, job, core.time.now())


def _time_limit(change: Change, text: str) -> None:
    job = change.job
    if text[:1] in "+-" and text[1:]:
        step = parse_limit(text[1:])
        if step is None:
            raise SlurmError(ErrorCode.INVALID_TIME_LIMIT)
        # no limit is Slurm's greatest number, which is one below none
        now_s = -60 if job.time_limit_s is None else job.time_limit_s
        limit: int | None = now_s + (step if text[0] == "+" else -step)
        if limit is not None and limit < 0:
            more, left = step // MINUTE, max(now_s, 0) // MINUTE
            raise SlurmError(
                -1, f"TimeLimit decrement larger than current time limit ({more} > {left})"
            )
    else:
        limit = parse_limit(text)
        limit = None if limit is None else whole_minutes(limit)
    if not change.by_admin:
        has_own = job.time_limit_is_set or not job.is_pending
        if limit is None:  # which is more than none of its own, too
            is_more = job.time_limit_s is not None or not has_own
        else:
            is_more = has_own and job.time_limit_s is not None and limit > job.time_limit_s
        partition = change.core.tables.partitions.get(job.partition)
        most = None if partition is None else partition.max_time_s
        if is_more and (
            not job.is_pending or (most is not None and (limit is None or limit > most))
        ):
            raise SlurmError(ErrorCode.ACCESS_DENIED)
    _check_time_min(change, limit)
    change.lift("time")
    job.time_limit_s, job.time_limit_is_set = limit, True
    if job.is_active and job.start_time is not None:
        job.end_time = None if limit is None else job.start_time + job.suspended_s + limit
        watch_limits(change.core, job)


def _check_time_min(change: Change, limit: int | None) -> None:
    """Whether the least time that is asked for along with a limit, or was before, is no more."""
    said = change.asked.get("timemin")
    if said is None and not change.job.is_pending:
        return
    least = change.job.spec.time_min_s or 0 if said is None else parse_limit_in_minutes(said)
    if limit is not None and (least is None or limit < least):
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)


def _priority(change: Change, text: str) -> None:
    job = change.job
    value = leading_number(text)
    if not 0 <= value <= 0xFFFFFFFE:
        raise SlurmError(-1, f"Invalid Priority value: {text}")
    if job.held_by and value:  # only a release ends it, whoever asks
        raise SlurmError(ErrorCode.HELD)
    if not change.by_admin and value > job.priority:
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if not change.by_admin and value and (value < job.priority or change.core.priorities.weights()):
        change.complaint = ErrorCode.NOT_PERSISTENT
        if change.core.priorities.weights():  # it would be worked out again
            return
    if not job.is_pending:
        job.priority = value or job.priority
        job.nice = 0 if value else job.nice
        return
    job.priority = value
    job.nice = 0 if value else job.nice
    job.admin_priority = value or None if change.by_admin else job.admin_priority
    if value == 0:
        job.held_by = HELD_BY_ADMIN if change.by_admin else HELD_BY_USER
        job.forget_eligible_time(change.now)
    else:
        job.held_by = ""


def _partition(change: Change, text: str) -> None:
    change.need_pending()
    if not text:
        raise SlurmError(ErrorCode.INVALID_PARTITION)
    partitions = find_partitions(change.core, text)
    job = change.job
    names = tuple(partition.name for partition in partitions)
    job.partitions, job.partition = names, names[0]
    if not job.time_limit_is_set:
        set_time_limit(job, partitions[0], None)


def _account(change: Change, text: str) -> None:
    """One that is not the user's stands for the default one, where accounts are not enforced; who
    has none changes nothing.
    """
    change.need_pending()
    known, core = change.core.associations, change.core
    if known.associations and not core.settings.enforced.associations:
        user = core.users.user_name(change.job.user_id)
        if known.find(text.lower(), user, change.job.partition) is None:
            text = known.default_account(user) or ""
        if not text:
            return
    _charge_to(change, account=text, qos=change.spec.get("qos", change.job.spec.qos))


def _qos(change: Change, text: str) -> None:
    if change.core.job_limits is None and not change.core.associations.qos:
        return
    if not text and not change.job.is_pending:
        return
    if text and text not in change.core.associations.qos and not change.core.settings.enforced.qos:
        return  # nor does one that there is not
    if text != change.job.spec.qos:
        change.need_pending()
    if change.by_admin and text in change.core.associations.qos:
        change.lift("qos")
    _charge_to(change, account=change.spec.get("account", change.job.spec.account), qos=text)


def _charge_to(change: Change, *, account: str, qos: str) -> None:
    """Another account or QOS, which the job's user must be allowed; an administrator may give any
    QOS. Without accounting there is neither.
    """
    core, job = change.core, change.job
    if core.job_limits is None and not core.associations.qos:
        return
    partitions = [
        core.tables.partitions[name] for name in job.partitions if name in core.tables.partitions
    ]
    access = resolve(
        core,
        job.user_id,
        account,
        qos,
        job.spec.wckey,
        partitions,
        reservation=job.spec.reservation,
        any_qos="qos" in job.lifted,
    )
    before = job.spec, job.qos_flags
    job.spec = msgspec.structs.replace(job.spec, account=access.account, qos=access.qos)
    job.qos_flags = access.qos_flags
    try:
        check_policy(core, job, job.array_tasks.bit_count() or 1)
    except SlurmError:
        job.spec, job.qos_flags = before
        raise SlurmError(ErrorCode.VIOLATES_POLICY) from None


def _nice(change: Change, text: str) -> None:
    nice = leading_number(text)
    if nice < 0:
        change.need_admin()
    job = change.job
    if not job.is_pending:
        job.nice = nice
        return
    if job.admin_priority is not None:  # a priority that was given stays as it is
        return
    if nice == job.nice:
        return
    if job.held_by and change.core.priorities.weights():
        job.nice = nice
        return
    job.priority = min(max(job.priority + job.nice - nice, LEAST_PRIORITY), 0xFFFFFFFE)
    job.nice, job.held_by = nice, ""  # which ends a hold


def _num_nodes(change: Change, text: str) -> None:
    if not change.job.is_pending:
        keep_number(change.core, change.job, text, change.now)
        return
    least, dash, most = text.partition("-")
    job = change.job
    change.lift("node")
    low, high = int(least), int(most) if dash else job.max_nodes
    # this stays, also where the number of nodes is refused
    tasks = max(low, int(change.asked.get("numtasks", 0)) or job.num_tasks)
    if "mincpusnode" not in change.asked or low > job.num_tasks:
        job.min_cpus = max(job.min_cpus, tasks * job.cpus_per_task)
    if low < 1 or (high is not None and high < low):
        if low and job.max_nodes is None:  # and so does this
            job.max_nodes = high
        raise SlurmError(ErrorCode.INVALID_NODE_COUNT)
    if job.num_tasks < low:
        job.num_tasks = change.spec["num_tasks"] = low
    job.min_nodes, job.max_nodes = low, high
    change.spec |= {"min_nodes": low, "max_nodes": high}
    change.doubt_cpus()


def _num_cpus(change: Change, text: str) -> None:
    change.need_pending()
    change.lift("cpu")
    least, _, most = text.partition("-")
    change.job.min_cpus = _positive(least, ErrorCode.INVALID_CPU_COUNT)
    change.set_extra("max_cpus", most)
    change.doubt_cpus()


def _num_tasks(change: Change, text: str) -> None:
    change.need_pending()
    job = change.job
    # which leaves the number of CPUs as it is, and a task for each node that is asked for
    tasks = _positive(text, ErrorCode.INVALID_TASK_COUNT)
    job.num_tasks = max(tasks, leading_number(change.asked.get("numnodes", "0")))
    change.spec["num_tasks"] = job.num_tasks


def _cpus_per_task(change: Change, text: str) -> None:
    change.need_pending()
    job = change.job
    keep_min_cpus_node(change)
    job.cpus_per_task = _positive(text, ErrorCode.INVALID_CPU_COUNT)
    change.spec["cpus_per_task"] = job.cpus_per_task


def _positive(text: str, code: int) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise SlurmError(code)
    return int(text)


def _memory_per_node(change: Change, text: str) -> None:
    change.need_pending()
    change.lift("mem")
    change.job.memory_per_node_mb, change.job.memory_per_cpu_mb = parse_memory(text), None
    change.spec |= {"mem_per_node_mb": change.job.memory_per_node_mb, "mem_per_cpu_mb": None}


def _memory_per_cpu(change: Change, text: str) -> None:
    change.need_pending()
    change.lift("mem")
    amount = parse_memory(text)
    if not amount:  # of nothing it does not matter of what
        _memory_per_node(change, text)
        return
    change.job.memory_per_cpu_mb, change.job.memory_per_node_mb = amount, None
    change.spec |= {"mem_per_cpu_mb": amount, "mem_per_node_mb": None}


def _features(change: Change, text: str) -> None:
    change.need_pending()
    if "[" not in text and "(" not in text:
        text = text.replace(",", "&")
    if text:
        check_features(change.core, text)
    change.spec["features"] = text


def _required_nodes(change: Change, text: str) -> None:
    job = change.job
    if not job.is_pending:
        keep_nodes(change.core, job, node_bitmap(change.core, text) if text else 0, change.now)
        return
    job.required_nodes = node_bitmap(change.core, text)
    change.spec["required_nodes"] = text
    change.set_extra(REQUIRED_NODES, text)


def _excluded_nodes(change: Change, text: str) -> None:
    change.need_pending()
    change.job.excluded_nodes = node_bitmap(change.core, text)
    change.spec["excluded_nodes"] = text
    change.set_extra(EXCLUDED_NODES, text)


def _prefer(change: Change, text: str) -> None:
    change.need_pending()
    if text:
        check_features(change.core, text, ErrorCode.INVALID_PREFERENCE)
    change.spec["prefer"] = text


def _licenses(change: Change, text: str) -> None:
    if text:
        check_licenses(change.core, text)
    if change.job.is_active:
        change.need_admin()
        # it has what it asks for now, whatever others have
        pool = change.core.tables.licenses
        pool.give_back(change.job.job_id)
        pool.take(change.job.job_id, text)
    else:
        change.need_pending()
    change.spec["licenses"] = text


def _gres(change: Change, text: str) -> None:
    change.need_pending()
    if not text:
        raise SlurmError(ErrorCode.INVALID_TRES)
    if text.lower() in {"none", "0"}:
        raise SlurmError(ErrorCode.INVALID_GRES)
    try:
        wants = read_request(text)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_GRES) from None
    if any(want.name not in change.core.settings.gres_types for want in wants):
        raise SlurmError(ErrorCode.INVALID_GRES)
    spec = change.job.spec
    others = (spec.tres_per_job, spec.tres_per_socket, spec.tres_per_task)
    if mixes_types(wants + tuple(want for other in others for want in read_request(other))):
        raise SlurmError(ErrorCode.MIXED_GRES)
    none = f"gres:{text.removeprefix('gres:')}"  # nothing is shown as it was said
    change.spec["gres"] = ",".join(f"gres:{want}" for want in wants) or none


def _start_time(change: Change, text: str) -> None:
    change.need_pending()
    job = change.job
    when = parse_time(text, change.now)
    job.begin_time = when if when > change.now else None
    if job.begin_time is None and job.eligible_time is not None and job.eligible_time > change.now:
        job.eligible_time = int(change.now)
    elif job.begin_time is not None:
        wait_until(change.core, job.begin_time, job.job_id)


def _dependency(change: Change, text: str) -> None:
    change.need_pending()
    job = change.job
    dependency = parse_dependency(text, job.job_id, change.core.arrays)
    check_circle(job, dependency, change.core.tables.jobs, change.core.settings.max_depend_depth)
    if job.dependency is not None:
        forget_dependency(change.core, job)
    job.dependency = dependency
    if dependency is not None:
        watch_dependency(change.core, job)
    change.spec["dependency"] = text


def _requeue(change: Change, text: str) -> None:
    change.job.requeue = text != "0"


def _deadline(change: Change, text: str) -> None:
    if change.job.is_running:
        return
    when = parse_time(text, change.now)
    if when < int(change.now):
        raise SlurmError(ErrorCode.INVALID_TIME)
    change.need_admin()
    change.job.spec = msgspec.structs.replace(change.job.spec, deadline=float(when))
    watch_deadline(change.core, change.job)


def _time_min(change: Change, text: str) -> None:
    if not change.job.is_pending:
        return
    least, job = parse_limit_in_minutes(text), change.job
    # a limit that the job was given for want of one says nothing of any but none
    limit = job.time_limit_s if job.time_limit_is_set or least is None else None
    if limit is not None and (least is None or least > limit):
        raise SlurmError(ErrorCode.INVALID_TIME_MIN)
    change.spec["time_min_s"] = least or None


def _comment(change: Change, text: str) -> None:
    change.spec["comment"] = text
    _note_empty(change, "comment", is_empty=not text)


def _admin_comment(change: Change, text: str) -> None:
    change.job.admin_comment = text
    _note_empty(change, "admin_comment", is_empty=not text)


def _note_empty(change: Change, name: str, *, is_empty: bool) -> None:
    """An empty text is shown as one, and not as none."""
    extra = change.spec.get("extra", change.job.spec.extra)
    change.set_extra(GIVEN_EMPTY, note(extra, GIVEN_EMPTY, name, is_so=is_empty))


def _array_limit(change: Change, text: str) -> None:
    array = change.job.array
    if array is None:
        return
    limit = leading_number(text)
    if limit < 0:
        raise SlurmError(-1, "Invalid ArrayTaskThrottle value")
    array.limit = limit
    admit(change.core, array, change.now)
    if not array.is_full:
        for job in array.records.values():
            if job.reason == TASK_LIMIT:
                job.reason = "None"
    explain_limit(change.core, array)
    for each in array.records.values():
        job_changed(change.core, each, change.core.time.now())


def _oversubscribe(change: Change, text: str) -> None:
    change.need_pending()
    word = text.lower()
    if word not in ("yes", "no", "ok", "1", "0"):
        raise SlurmError(-1, f"Invalid OverSubscribe value: {text}")
    change.need_admin()
    change.spec |= {"oversubscribe": word in ("yes", "1"), "exclusive": word in ("no", "0")}
    change.job.exclusive = word in ("no", "0")


def _contiguous(change: Change, text: str) -> None:
    change.need_pending()
    change.need_admin()
    change.spec["contiguous"] = text.lower() in ("1", "yes")


def _name(change: Change, text: str) -> None:
    job = change.job
    waits_for_name = job.dependency is not None and any(
        term.kind == "singleton" for term in job.dependency.terms
    )
    if waits_for_name:
        dependency = job.dependency
        forget_dependency(change.core, job)
        job.dependency = dependency
    job.spec = msgspec.structs.replace(job.spec, name=text)
    if waits_for_name:
        watch_dependency(change.core, job)


def _tmp_disk(change: Change, text: str) -> None:
    change.need_pending()
    change.spec["tmp_disk_mb"] = parse_memory(text)


def _text(field: str, *, pending: bool = False) -> Callable[[Change, str], None]:
    def change_text(change: Change, text: str) -> None:
        if pending:
            change.need_pending()
        change.spec[field] = text

    return change_text


def _std_out(change: Change, text: str) -> None:
    """No name is the working directory itself."""
    change.need_pending()
    change.spec["std_out"] = text or f"{change.job.spec.work_dir.rstrip('/')}/"


def _no_federation(_change: Change, _text: str) -> None:
    raise SlurmError(-1)


def _reservation(change: Change, text: str) -> None:
    job = change.job
    if text:
        check_access(change.core, text, job.user_id, job.spec.account)
    if text != job.spec.reservation:
        change.need_pending()
    change.spec["reservation"] = text


def _end_time(change: Change, text: str) -> None:
    """When a running job is to end at the latest: now, too. Its limit is shown in the whole minutes
    that this leaves it, one at least.
    """
    when = int(parse_time(text, change.now)) if text else 0
    if not when:
        return
    job = change.job
    if not job.is_running or job.start_time is None:
        raise SlurmError(ErrorCode.NOT_RUNNING)
    if when < int(change.now):
        raise SlurmError(ErrorCode.INVALID_TIME)
    if not change.by_admin and job.end_time is not None and when > job.end_time:
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    change.lift("time")
    job.time_limit_s, job.time_limit_is_set = (
        max((when - job.start_time - job.suspended_s) // MINUTE * MINUTE, MINUTE),
        True,
    )
    job.end_time = when
    watch_limits(change.core, job)


_SETTERS: Final[dict[str, Callable[[Change, str], None]]] = {
    **LAYOUT_SETTERS,
    "account": _account,
    "admincomment": _admin_comment,
    "arraytaskthrottle": _array_limit,
    "clusterfeatures": _no_federation,
    "clusters": _no_federation,
    "comment": _comment,
    "contiguous": _contiguous,
    "cpuspertask": _cpus_per_task,
    "deadline": _deadline,
    "dependency": _dependency,
    "eligibletime": _start_time,
    "endtime": _end_time,
    "excnodelist": _excluded_nodes,
    "excludednodelist": _excluded_nodes,
    "features": _features,
    "gres": _gres,
    "jobname": _name,
    "licenses": _licenses,
    "prefer": _prefer,
    "mailtype": _text("mail_type"),
    "mailuser": _text("mail_user"),
    "minmemorycpu": _memory_per_cpu,
    "minmemorynode": _memory_per_node,
    "mintmpdisknode": _tmp_disk,
    "name": _name,
    "nice": _nice,
    "nodelist": _required_nodes,
    "numcpus": _num_cpus,
    "numnodes": _num_nodes,
    "numtasks": _num_tasks,
    "oversubscribe": _oversubscribe,
    "partition": _partition,
    "priority": _priority,
    "qos": _qos,
    "reqnodelist": _required_nodes,
    "requeue": _requeue,
    "reservationname": _reservation,
    "shared": _oversubscribe,
    "starttime": _start_time,
    "stdout": _std_out,
    "timelimit": _time_limit,
    "timemin": _time_min,
    "wckey": _text("wckey", pending=True),
    "workdir": _text("work_dir", pending=True),
}
