"""Which jobs sacct shows: by what they are, by when they were there, and one record for each job
id. Follows sacct(1) "DEFAULT TIME WINDOW" of 22.05.

Place: commands alone; pure.
"""

from understudy.documents.job_texts import amount
from understudy.documents.states import COMPLETED, PENDING, RESIZING, RUNNING, SUSPENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]
    Range = tuple[int, int]


class JobName:
    """What -j names: a job, perhaps a task of its array, a component, and a step ("" for all)."""

    __slots__ = ("job", "offset", "step", "task")

    def __init__(self, job: int, task: "int | None", step: str, offset: "int | None") -> None:
        self.job, self.task, self.step, self.offset = job, task, step, offset


class Wanted:
    """What was asked for; None: anything."""

    __slots__ = (
        *(
            "accounts",
            "associations",
            "constraints",
            "cpus",
            "duplicates",
            "end",
            "flags",
            "groups",
            "jobs",
            "limits",
            "names",
            "node_names",
            "nodes",
        ),
        *("partitions", "qos", "reasons", "start", "states", "users", "wckeys", "whole"),
    )

    def __init__(self) -> None:
        self.accounts: set[str] | None = None
        self.associations: set[int] | None = None
        self.constraints: set[str] | None = None
        self.cpus: Range | None = None
        self.duplicates = False
        self.end: float | None = None  # None: no end
        self.flags: set[str] | None = None
        self.groups: set[int] | None = None
        self.jobs: list[JobName] | None = None
        self.limits: Range | None = None  # minutes
        self.names: set[str] | None = None
        self.node_names: set[str] | None = None
        self.nodes: Range | None = None
        self.partitions: set[str] | None = None
        self.qos: set[str] | None = None
        self.reasons: set[str] | None = None
        self.start: float = 0.0
        self.states: dict[int, None] | None = None  # as given
        self.users: set[int] | None = None
        self.wckeys: set[str] | None = None
        # a component means all, or the leader only itself; None: each as it is named
        self.whole: bool | None = None


def chosen(rows: "list[Row]", wanted: Wanted) -> "list[Row]":
    """The records to show, in order."""
    found = [row for row in rows if _is_meant(row, wanted) and was_there(row, wanted)]
    if not wanted.duplicates:
        latest: dict[tuple[str, int], Row] = {}
        for row in sorted(found, key=_run):
            latest[row["cluster"], row["job_id"]] = row
        found = [
            *latest.values(),
            *(
                row
                for row in found
                if row["state"] == RESIZING and row is not latest[row["cluster"], row["job_id"]]
            ),
        ]
    found.sort(key=_place)
    return found


def _run(row: "Row") -> "tuple[int, int]":
    return row["submit_time"], row["restarts"]


def _place(row: "Row") -> "tuple[Any, ...]":
    """Jobs by the time of their submission; of one second: by number, then arrays, task by task,
    what is left of each at its end.
    """
    array = row["array_job_id"] or 0
    task = row["array_task_id"]
    return (
        row["cluster"],
        row["submit_time"],
        array,
        1 << 32 if array and task is None else task or 0,
        row["job_id"],
        *_run(row),
    )


def _is_in(value: "Any", among: "set[Any] | None") -> bool:
    return among is None or value in among


def _is_within(value: int, limits: "Range | None") -> bool:
    return limits is None or limits[0] <= value <= limits[1]


def _is_meant(row: "Row", wanted: Wanted) -> bool:
    if wanted.jobs is not None and not any(
        is_named(row, each, wanted.whole) for each in wanted.jobs
    ):
        return False
    return (
        _is_in(row["user_id"], wanted.users)
        and _is_in(row["account"], wanted.accounts)
        and _is_in(row["association_id"], wanted.associations)
        and _is_in(row["group_id"], wanted.groups)
        and _is_in(row["name"], wanted.names)
        and _is_in(row["qos"], wanted.qos)
        and _is_in(row["reason"], wanted.reasons)
        and _is_in(row["wckey"], wanted.wckeys)
        and _is_within(amount(row, "tres_allocated", "node"), wanted.nodes)
        and _is_within(amount(row, "tres_allocated", "cpu"), wanted.cpus)
        and _is_within(
            row["time_limit_min"] if row["time_limit_min"] is not None else 1 << 32, wanted.limits
        )
        and (
            wanted.partitions is None
            or not wanted.partitions.isdisjoint(row["partition"].lower().split(","))
        )
        and (wanted.flags is None or not wanted.flags.isdisjoint(row["flags"].split(",")))
        and (wanted.constraints is None or wanted.constraints.issubset(_words(row["constraints"])))
        and (wanted.node_names is None or _ran_on(row["nodes"], wanted.node_names))
    )


def _words(text: str) -> "list[str]":
    for mark in "&|()[]*":
        text = text.replace(mark, ",")
    return text.split(",")


def _ran_on(expression: str, names: "set[str]") -> bool:
    from understudy.model.hostlist import expand

    return bool(expression) and not names.isdisjoint(expand(expression))


def is_named(row: "Row", name: JobName, whole: "bool | None") -> bool:
    """Whether `17`, `17_3` or `17+1` means this job: by its own number, as a part of its array, or
    as a component.
    """
    if name.task is not None:
        return bool(row["array_job_id"] == name.job and row["array_task_id"] == name.task)
    if row["het_job_id"] == name.job:
        return bool(
            whole
            or (name.offset is None and whole is None)
            or row["het_offset"] == (name.offset or 0)
        )
    return name.offset is None and bool(
        row["job_id"] == name.job or row["array_job_id"] == name.job
    )


def was_there(row: "Row", wanted: Wanted) -> bool:
    """Whether it was, at some time between the two, in one of the states; without states whether it
    was eligible or had not ended.
    """
    start, end = wanted.start, wanted.end if wanted.end is not None else float("inf")
    eligible, began, ended = row["eligible_time"], row["start_time"], row["end_time"]
    if wanted.states is None:
        if eligible is None:
            return wanted.jobs is not None and (ended is None or ended >= start)
        return eligible <= end and (ended is None or ended >= start)
    return any(_was_in(state, row, start, end, eligible, began, ended) for state in wanted.states)


def _was_in(
    state: int,
    row: "Row",
    start: float,
    end: float,
    eligible: "int | None",
    began: "int | None",
    ended: "int | None",
) -> bool:
    if state == PENDING:
        left = began if began is not None else ended
        return eligible is not None and eligible <= end and (left is None or left >= start)
    if state == RUNNING:
        if row["state"] == SUSPENDED:
            return False
        return began is not None and began <= end and (ended is None or ended >= start)
    if state == SUSPENDED:
        return bool(row["state"] == SUSPENDED)
    assert state >= COMPLETED
    return bool(row["state"] == state) and ended is not None and bool(start <= ended <= end)
