"""What accounting keeps: jobs, their batch steps, reservations, and times in which nodes could not
be used.

Place: accounting, pure. Follows what slurmdbd of 22.05 has in its tables.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from understudy.controller.facts.job import step_memory_mb, tres_allocated, tres_requested
from understudy.controller.facts.tres import amounts, cpu_count, node_counts, tres_text
from understudy.controller.tables.gres_texts import held_counts
from understudy.controller.tables.job import BAD_CONSTRAINTS
from understudy.model.distribution import shown
from understudy.model.prolog_flags import prolog_words
from understudy.model.reservations import TIME_FLOAT, flags_text
from understudy.model.states import JobFlag, JobState, NodeFlag, NodeState
from understudy.model.task_numbers import format_tasks
from understudy.protocol.messages import (
    EventRecord,
    JobRecord,
    JobText,
    ReservationRecord,
    StepRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from understudy.controller.core.core import Core
    from understudy.controller.facts.tres import NodeBills
    from understudy.controller.tables.gres import Held
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import Node
    from understudy.controller.tables.reservation import Reservation
    from understudy.controller.tables.step import Step
    from understudy.model.conf import SlurmConfig

_SIGTERM: Final = 15
_ENDED: Final = frozenset((JobState.TIMEOUT, JobState.PREEMPTED, JobState.DEADLINE))
_NOT_BLOCKING: Final = frozenset(("None", "Priority", "Resources"))
RESIZING: Final = int(JobFlag.RESIZING)  # in place of a base state: it went on with fewer nodes
# in place of a base state: the run ended because the job was put back into the queue
REQUEUED: Final = int(JobFlag.REQUEUE)
_OUT: Final = NodeFlag.DRAIN | NodeFlag.FAIL


class Kept(NamedTuple):
    """What the configuration has accounting keep: AccountingStoreFlags, TrackWCKey, PrologFlags."""

    comment: bool = False
    script: bool = False
    environment: bool = False
    wckeys: bool = False
    extern_step: bool = False


def kept_of(config: SlurmConfig) -> Kept:
    """What the configuration says."""
    return Kept(
        comment="job_comment" in config.words("AccountingStoreFlags"),
        script="job_script" in config.words("AccountingStoreFlags"),
        environment="job_env" in config.words("AccountingStoreFlags"),
        wckeys=config.boolean("TrackWCKey"),
        extern_step="contain" in prolog_words(config.text("PrologFlags")),
    )


def signature(job: Job) -> tuple[object, ...]:
    """What has to differ before accounting is told of a job again."""
    spec = job.spec
    return (
        *(
            recorded_state(job),
            job.restarts,
            job.submit_time,
            job.start_time,
            job.end_time if job.is_finished else None,
            job.shown_eligible_time,
        ),
        *(
            spec.account,
            spec.qos,
            spec.name,
            spec.wckey,
            spec.comment,
            job.admin_comment,
            job.partition,
            job.time_limit_s,
        ),
        *((step.step_id, step.end_time) for step in job.steps.values()),
        len(job.batch_usage),
        *(
            job.array_tasks | job.withdrawn_tasks,
            job.array_task_id,
            job.node_list,
            job.pre_suspend_s,
            job.priority if job.is_pending else None,
        ),
    )


def is_between_runs(job: Job) -> bool:
    """Whether it was put back into the queue, and its last run's nodes are not free of it yet: its
    next run is on record from then on.
    """
    return job.is_completing and job.is_pending


def blocking_reason(job: Job) -> str:
    """Why it waits, other than for its turn; "" if for nothing else."""
    reason = job.reason_detail or job.reason
    return reason if job.is_pending and reason not in _NOT_BLOCKING else ""


def recorded_state(job: Job) -> int:
    """Its state, or REQUEUED for a run that ends only to be followed by another."""
    return REQUEUED if job.flags & JobFlag.REQUEUE and job.is_finished else int(job.state)


def job_record(core: Core, job: Job, kept: Kept, blocked: str) -> JobRecord:
    """The record of the job's present run. `blocked`: for what else than its turn it has waited."""
    spec, now = job.spec, core.time.now()
    user = core.users.user_name(job.user_id)
    state = core.associations
    account = spec.account or state.default_account(user) or ""
    association = state.find(account, user, job.partition)
    qos = spec.qos or (state.default_qos(association) if association is not None else "")
    known_qos = state.qos.get(qos)
    held = job.allocation
    ran = held is not None
    array = job.array
    reservation = job.used_reservation or spec.reservation
    reserved = core.tables.reservations.by_name.get(reservation)
    # of a job that is ended from outside accounting is told before its script has gone
    was_ended = not job.flags & JobFlag.REQUEUE and (
        job.state in _ENDED or (job.state is JobState.CANCELLED and job.killed_by is not None)
    )
    derived = _derived(job, was_ended=was_ended)
    # what is a signal elsewhere is a code here
    was_refused = job.state is JobState.FAILED and job.reason == BAD_CONSTRAINTS
    return JobRecord(
        job_id=job.job_id,
        submit_time=_told_from(job),
        restarts=job.restarts,
        user=user,
        user_id=job.user_id,
        group_id=job.group_id,
        group=core.users.group_name(job.group_id),
        name=spec.name,
        account=account,
        association_id=association.id if association is not None else 0,
        partition=job.partition if ran else ",".join(job.partitions),
        qos=qos,
        qos_id=known_qos.id if known_qos is not None else 0,
        wckey=spec.wckey if kept.wckeys else "",
        wckey_id=_wckey_id(core, user, spec.wckey) if kept.wckeys else 0,
        state=recorded_state(job),
        reason=blocked or "None",
        eligible_time=job.shown_eligible_time if job.resize_time is None else job.resize_time,
        start_time=_start(job) if ran or was_refused else None,
        end_time=job.end_time if job.is_finished else None,
        suspended_s=job.suspended_s,
        exit_code=0 if was_ended else job.exit_signal if was_refused else job.exit_code,
        exit_signal=0 if was_ended or was_refused else job.exit_signal,
        derived_exit_code=derived[0],
        derived_exit_signal=derived[1],
        nodes=job.node_list,
        node_count=held.node_count if held is not None else 0,
        tres_requested=amounts(tres_requested(core, job, now)),
        tres_allocated=amounts(tres_allocated(core, job, now)) if ran else {},
        time_limit_min=_limit_min(core, job, ran=ran),
        priority=job.priority,
        constraints=job.features,
        work_dir=spec.work_dir,
        submit_line=spec.submit_line,
        # Slurm keeps it when the job is over
        comment=spec.comment if kept.comment and job.is_finished else "",
        admin_comment=job.admin_comment,
        reservation=reservation,
        reservation_id=reserved.reservation_id if reserved is not None else 0,
        flags=_flags(job),
        killed_by=job.killed_by if recorded_state(job) == JobState.CANCELLED else None,
        het_job_id=job.het.job_id if job.het is not None else 0,
        het_offset=job.het_offset,
        array_job_id=array.job_id if array is not None else 0,
        array_task_id=job.array_task_id,
        array_tasks=_tasks(job),
        **{name: each.key for name, each in job_texts(core, job, kept).items()},
    )


def _flags(job: Job) -> str:
    """As Slurm spells it."""
    if job.allocation is None or not job.last_scheduler:
        return "StartRecieved"
    return f"Sched{job.last_scheduler},StartRecieved"


def job_texts(core: Core, job: Job, kept: Kept) -> dict[str, JobText]:
    """What is kept of a batch job's script and environment, by the record's fields."""
    script = core.scripts.get(job.job_id, "")
    texts = {
        "script": script if kept.script else "",
        "environment": "".join([f"{each}\n" for each in job.spec.environment]),
    }
    if not script or not kept.environment:
        del texts["environment"]
    return {
        name: JobText(sha256(text.encode(errors="surrogateescape")).hexdigest(), text)
        for name, text in texts.items()
        if text
    }


def _told_from(job: Job) -> int:
    """What its present record has as the time of its submission: one that has shrunk to fewer nodes
    has another from then on.
    """
    return job.submit_time if job.resize_time is None else job.resize_time


def _start(job: Job) -> int | None:
    """A job that lost a node begins anew in accounting; one that gave back nodes does not."""
    return job.resize_time if job.resize_time is not None and job.spec.no_kill else job.start_time


def resized_records(core: Core, job: Job, kept: Kept, now: int) -> list[JobRecord | StepRecord]:
    """The records, which end, of a job that shrinks to fewer nodes. Its steps stay on record as
    they are now.
    """
    record = msgspec.structs.replace(job_record(core, job, kept, ""), state=RESIZING, end_time=now)
    if not core.settings.enforced.steps:
        return [record]
    steps = [
        each
        if each.end_time is not None
        else msgspec.structs.replace(each, state=RESIZING, end_time=now)
        for each in step_records(core, job, kept)
    ]
    return [record, *steps]


def _derived(job: Job, *, was_ended: bool) -> tuple[int, int]:
    """The highest exit code of the steps, or else signal, as far as they were over when the job
    ended.
    """
    if job.end_time is None or not job.is_finished:
        return 0, 0
    over = [
        step
        for step in job.steps.values()
        if step.end_time is not None and (not was_ended or step.end_time < int(job.end_time))
    ]
    code = max((step.exit_code for step in over), default=0)
    return code, 0 if code else max((step.exit_signal for step in over), default=0)


def _wckey_id(core: Core, user: str, name: str) -> int:
    return next(
        (each.id for each in core.associations.wckeys if (each.user, each.name) == (user, name)), 0
    )


def _limit_min(core: Core, job: Job, *, ran: bool) -> int | None:
    """None: unlimited; -1: the longest of the partition, of a job that has not started."""
    if not ran and not job.time_limit_is_set:
        partition = core.tables.partitions.get(job.partitions[0])
        if partition is None or (
            partition.default_time_s is None and not partition.default_time_is_unlimited
        ):
            return -1
    return None if job.time_limit_s is None else -(-job.time_limit_s // 60)


def _tasks(job: Job) -> str:
    """The tasks for which an array's record stands."""
    if job.array is None or job.array_task_id is not None:
        return ""
    tasks, limit = job.array_tasks | job.withdrawn_tasks, job.array.limit
    return format_tasks(tasks) + (f"%{limit}" if limit and tasks else "")


def step_records(core: Core, job: Job, kept: Kept) -> list[StepRecord]:
    """The batch step, and the external one where there is one, of a job that runs or has run."""
    held = job.allocation
    if held is None or job.start_time is None:
        return []
    found = []
    since = job.resize_time
    if job.job_id in core.scripts and since is None:
        found.append(_batch_step(core, job))
    found += [
        _numbered_step(core, job, step)
        for step in job.steps.values()
        if since is None or (step.start_time or 0) >= since
    ]
    if kept.extern_step and since is None:
        state = JobState.COMPLETED if job.is_finished else job.state
        found.append(
            _step(
                job,
                "extern",
                state,
                0,
                0,
                amounts(tres_allocated(core, job, core.time.now())),
                job.node_list,
                held.node_count,
            )
        )
    return found


def _batch_step(core: Core, job: Job) -> StepRecord:
    held = job.allocation
    assert held is not None
    share = held.share_on(held.first_node)
    assert share is not None
    tres = _tres(core, share.cpus, share.memory_mb, 1, share.gres)
    step = _step(
        job, "batch", *_batch_end(job), tres, core.tables.nodes.nodes[held.first_node].name, 1
    )
    if step.state == JobState.CANCELLED and job.state is JobState.FAILED:
        step = msgspec.structs.replace(step, killed_by=job.killed_by)
    return with_usage(step, job.batch_usage) if job.batch_usage else step


def with_usage(step: StepRecord, used: Mapping[str, int]) -> StepRecord:
    """The record with what the step's processes have used."""
    rest = {"energy": 0} | {
        name: value for name, value in used.items() if name not in {"user_cpu_us", "system_cpu_us"}
    }
    return msgspec.structs.replace(
        step,
        user_cpu_us=used.get("user_cpu_us", 0),
        system_cpu_us=used.get("system_cpu_us", 0),
        usage=rest,
    )


def _tres(
    core: Core, cpus: int, memory_mb: int, nodes: int, gres: Iterable[Held]
) -> dict[str, int]:
    tracked = amounts(tres_text(core, held_counts(gres))) if core.settings.tracked_gres else {}
    return {"cpu": cpus, "mem": step_memory_mb(core, memory_mb), "node": nodes, **tracked}


def _numbered_step(core: Core, job: Job, step: Step) -> StepRecord:
    tres = _tres(
        core,
        step.cpus,
        step.memory_mb,
        len(step.places),
        [held for place in step.places for held in place.gres],
    )
    usage = {
        name: value
        for name, value in step.usage.items()
        if name not in {"user_cpu_us", "system_cpu_us"}
    }
    if step.usage and core.settings.gathers_usage:  # of what nobody measures this alone is said
        usage["energy"] = 0
    return StepRecord(
        job_id=job.job_id,
        submit_time=_told_from(job),
        restarts=job.restarts,
        step=str(step.step_id),
        name=step.name,
        state=int(step.state),
        start_time=step.start_time,
        end_time=step.end_time,
        exit_code=step.exit_code,
        exit_signal=step.exit_signal,
        nodes=step.node_list,
        node_count=len(step.places),
        tasks=step.tasks,
        cpus=step.cpus,
        tres_allocated=tres,
        layout=shown(step.distribution),
        submit_line=step.submit_line,
        killed_by=step.killed_by,
        user_cpu_us=step.usage.get("user_cpu_us", 0),
        system_cpu_us=step.usage.get("system_cpu_us", 0),
        usage=usage,
    )


def _batch_end(job: Job) -> tuple[int, int | None, int]:
    """State, exit code and signal of the batch step: what is killed with its job is cancelled."""
    if not job.is_finished:
        return int(job.state), 0, 0
    if job.state is JobState.NODE_FAIL:
        return int(JobState.CANCELLED), None, 0
    if job.state in {JobState.CANCELLED, JobState.TIMEOUT, JobState.PREEMPTED, JobState.DEADLINE}:
        if job.exit_code:  # it had something to say
            return int(JobState.FAILED), job.exit_code, 0
        return int(JobState.CANCELLED), 0, job.exit_signal or _SIGTERM
    if job.exit_signal and job.state is not JobState.OUT_OF_MEMORY:
        return int(JobState.CANCELLED), 0, job.exit_signal
    return int(job.state), job.exit_code, job.exit_signal


def _step(
    job: Job,
    name: str,
    state: int,
    code: int | None,
    signal: int,
    tres: dict[str, int],
    nodes: str,
    count: int,
) -> StepRecord:
    return StepRecord(
        job_id=job.job_id,
        submit_time=job.submit_time,
        restarts=job.restarts,
        step=name,
        name=name,
        state=state,
        start_time=job.start_time,
        end_time=job.end_time if job.is_finished else None,
        suspended_s=job.pre_suspend_s,
        exit_code=code,
        exit_signal=signal,
        nodes=nodes,
        node_count=count,
        tasks=count,
        cpus=tres.get("cpu", 0),
        tres_allocated=tres,
        layout="Unknown",
    )


def node_event(core: Core, bills: NodeBills, node: Node, now: float) -> EventRecord | None:
    """Why the node cannot be used; None if it can. `bills`: one for all the nodes that are told of
    together.
    """
    if node.state is not NodeState.DOWN and not node.flags & _OUT:
        return None
    state = int(node.state) | int(node.flags & _OUT)
    return unusable(core, bills, node, now, state, node.reason, node.reason_user_id)


def unusable(
    core: Core,
    bills: NodeBills,
    node: Node,
    now: float,
    state: int,
    reason: str,
    user_id: int | None,
) -> EventRecord:
    """The node cannot be used from now on."""
    tres = {
        "cpu": node.effective_cpus,
        "mem": node.memory_mb,
        "node": 1,
    }
    if bill := bills.of(node):
        tres["billing"] = bill
    counts = node_counts(core, node)
    tres |= {name: counts[name] for name in core.settings.tracked_gres if counts.get(name)}
    return EventRecord(node.name, int(now), None, state, reason, user_id, tres)


# --- reservations ---------------------------------------------------------------------------------


def reservation_record(core: Core, reservation: Reservation) -> ReservationRecord:
    """The reservation as it is, from when on it has been so."""
    return ReservationRecord(
        reservation.reservation_id,
        reservation.name,
        max(reservation.start_time, reservation.recorded_from),
        reservation.end_time,
        core.names.to_expression(reservation.nodes) if reservation.nodes else "",
        {"cpu": cpu_count(core, reservation)},
        flags_text(reservation.flags),
        _associations(core, reservation),
    )


def _associations(core: Core, reservation: Reservation) -> list[int]:
    """Whose it is by the numbers of associations, negative of those that are kept out: of its
    accounts, of its users with them, or of its users.
    """
    state = core.associations
    sign = (
        -1
        if reservation.excludes_users or (reservation.excludes_accounts and not reservation.users)
        else 1
    )
    found = [
        each.id
        for each in state.associations.values()
        if each.user in (reservation.users or ("",))
        and (each.account in reservation.accounts if reservation.accounts else each.user)
    ]
    return [sign * each for each in sorted(found)]


def reservation_changes(
    core: Core, told: ReservationRecord | None, reservation: Reservation | None, now: int
) -> list[ReservationRecord]:
    """What to tell of a reservation that was made, changed, or, None, is gone; the last one is how
    it is from now on.

    What has been in force stays on record as it was: a change ends it, and begins another.
    """
    ended = (
        []
        if told is None or told.end_time <= now
        else [msgspec.structs.replace(told, end_time=max(now, told.start_time))]
    )
    if reservation is None:
        return ended
    if reservation.flags & TIME_FLOAT:  # it never begins
        return []
    new = reservation_record(core, reservation)
    if told is None or told.end_time <= now:
        return [new]
    if told.start_time > now or new.start_time > now:
        return [new] if told.start_time == new.start_time else [*ended, new]
    if new == msgspec.structs.replace(told, end_time=new.end_time):
        return [] if new == told else [new]
    reservation.recorded_from = now
    new = reservation_record(core, reservation)
    return [new] if new.start_time == told.start_time else [*ended, new]
