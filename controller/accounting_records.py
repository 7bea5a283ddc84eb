"""A job as accounting keeps it.

Place: the controller's core, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.job_columns import tres_allocated, tres_requested
from understudy.protocol.messages import JobRecord

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job

_MEGABYTES: Final = {"M": 1, "G": 1 << 10, "T": 1 << 20, "P": 1 << 30}


def amounts(text: str) -> dict[str, int]:
    """The resources of `cpu=4,mem=1.50G,node=2`; memory in MB."""
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, amount = part.partition("=")
        factor = _MEGABYTES.get(amount[-1:], 0)
        found[name] = int(float(amount[:-1]) * factor) if factor else int(float(amount or 0))
    return found


def signature(job: Job) -> tuple[object, ...]:
    """What has to differ before accounting is told of a job again."""
    return (job.state, job.restarts, job.start_time, job.end_time if job.is_finished else None, job.eligible_time, job.spec.account, job.spec.qos)


def job_record(core: Core, job: Job) -> JobRecord:
    """The record of the job's present run."""
    spec, now = job.spec, core.time.now()
    user = core.users.user_name(job.user_id)
    state = core.associations
    account = spec.account or state.default_account(user) or ""
    association = state.find(account, user, job.partition)
    return JobRecord(
        job_id=job.job_id,
        submit_time=job.submit_time,
        restarts=job.restarts,
        user=user,
        user_id=job.user_id,
        group_id=job.group_id,
        group=core.users.group_name(job.group_id),
        name=spec.name,
        account=account,
        association_id=association.id if association is not None else 0,
        partition=job.partition,
        qos=spec.qos or (state.default_qos(association) if association is not None else ""),
        wckey=spec.wckey,
        state=int(job.state),
        reason=job.reason,
        eligible_time=job.eligible_time,
        start_time=job.start_time,
        end_time=job.end_time if job.is_finished else None,
        suspended_s=job.pre_suspend_s,
        exit_code=job.exit_code,
        exit_signal=job.exit_signal,
        derived_exit_code=job.derived_exit_code,
        nodes=job.node_list,
        node_count=job.allocation.node_count if job.allocation is not None else 0,
        tres_requested=amounts(tres_requested(core, job, now)),
        tres_allocated=amounts(tres_allocated(core, job, now)) if job.allocation is not None else {},
        time_limit_min=None if job.time_limit_s is None else -(-job.time_limit_s // 60),
        priority=job.priority,
        constraints=spec.features,
        work_dir=spec.work_dir,
        submit_line=spec.submit_line,
        comment=spec.comment,
        admin_comment=job.admin_comment,
        reservation=spec.reservation,
    )
