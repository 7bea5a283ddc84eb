"""What is on record of jobs, changed afterwards: comments, exit codes, keys; and the end of jobs
that nobody knows to be running.

Place: the core of the accounting daemon, with the store at hand. Follows sacctmgr(1), `modify job`
and `show runawayjobs`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import and_, or_

from understudy.accounting import schema
from understudy.model.errors import ErrorCode, SlurmError
from understudy.model.states import JobState
from understudy.protocol.messages import JobRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement

    from understudy.accounting.store import Store
    from understudy.protocol.messages import AccountingChange

    Row = dict[str, Any]

# what users may change of their own jobs
OWNERS: Final = frozenset(("comment", "derived_exit_status"))
_TEXTS: Final = frozenset(("comment", "admin_comment", "system_comment", "wckey"))


def chosen(store: Store, message: AccountingChange) -> list[Row]:
    """The last run of each job that meets the conditions clusters, job_ids, users; by cluster and
    number.

    Raises:
        SlurmError: a word of job_ids names no job.
    """
    table = schema.jobs.c
    where = message.where
    tests: list[ColumnElement[bool]] = [
        column.in_(values)
        for column, values in (
            (table.cluster, where.get("clusters")),
            (table.user, where.get("users")),
        )
        if values
    ]
    if jobs := where.get("job_ids"):
        tests.append(or_(*map(_is_named, jobs)))
    rows = store.find(
        schema.jobs, tests, (table.cluster, table.job_id, table.submit_time, table.restarts)
    )
    return list({(row["cluster"], row["job_id"]): row for row in rows}.values())


def _is_named(job: str | int) -> ColumnElement[bool]:
    """`7` means all tasks of an array and all components of a heterogeneous job, too; `7_1` a task,
    `7+1` a component.
    """
    table = schema.jobs.c
    named = re.fullmatch(r"(\d+)(?:([_+])(\d+))?", str(job), re.ASCII)
    if named is None:
        raise SlurmError(ErrorCode.INVALID_JOB)
    number, mark, behind = named.groups()
    if mark == "_":
        return and_(table.array_job_id == int(number), table.array_task_id == int(behind))
    if mark == "+":
        return and_(table.het_job_id == int(number), table.het_offset == int(behind))
    return or_(
        *(column == int(number) for column in (table.job_id, table.array_job_id, table.het_job_id))
    )


def changed(rows: Sequence[Row], values: Mapping[str, Any]) -> list[JobRecord]:
    """The records after the change. `runaway`: the job has ended when it was last heard of.

    Raises:
        SlurmError: jobs have no such field.
    """
    changes: dict[str, Any] = {}
    for name, value in values.items():
        if name in _TEXTS:
            changes[name] = str(value)
        elif name == "derived_exit_status" and isinstance(value, int):  # as wait(2) gives it
            changes |= {"derived_exit_code": value >> 8, "derived_exit_signal": value & 127}
        elif name != "runaway":
            raise SlurmError(-1, f"a job has no {name}")
    return [_record(row, changes, is_runaway="runaway" in values) for row in rows]


def _record(row: Row, changes: Mapping[str, Any], *, is_runaway: bool) -> JobRecord:
    known = {
        field.name: msgspec.convert(row[field.name], field.type)
        for field in msgspec.structs.fields(JobRecord)
        if row[field.name] is not None
    }
    if is_runaway:
        last = max(row[name] or 0 for name in ("start_time", "eligible_time", "submit_time"))
        known |= {"end_time": last, "state": int(JobState.COMPLETED)}
    return JobRecord(**{**known, **changes})
