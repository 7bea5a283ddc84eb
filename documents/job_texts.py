"""Names of jobs, tasks and steps as users see them, and what follows from a row of a job.

Place: documents; for lists of commands, too. Follows: squeue(1), sacct(1).
"""

import os

from understudy.documents.states import PENDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Row = dict[str, Any]

_TASKS_LENGTH = 64  # SLURM_BITSTR_LEN where it is not set
_LONGEST_ID = 31  # of a job id with its tasks, where it is not set
_FAILED = frozenset((5, 6, 10, 11))  # FAILED, TIMEOUT, DEADLINE, OUT_OF_MEMORY


def amount(row: "Row", which: str, name: str) -> int:
    return int((row[which] or {}).get(name, 0))


def nodes(row: "Row") -> int:
    """Nodes held; of a job that holds none those that it asks for."""
    return row["node_count"] or amount(row, "tres_requested", "node")


def elapsed(row: "Row") -> int:
    """How long it has run, in seconds."""
    start, end = row["start_time"], row["end_time"]
    if start is None:
        return 0
    return max(0, int((row["now"] if end is None else end) - start - (row["suspended_s"] or 0)))


def task_numbers(expression: str) -> list[int]:
    """The numbers of an array's expression, `1-3,7,10-20:5`."""
    numbers: list[int] = []
    for part in expression.split(","):
        span, _, step = part.partition(":")
        first, dash, last = span.partition("-")
        if first.isdigit():
            numbers += range(int(first), int(last if dash else first) + 1, int(step or 1))
    return numbers


def job_id_text(
    job_id: int,
    array_job_id: int,
    task_id: int | None,
    expression: str,
    most: int,
    het_id: int,
    het_offset: int,
) -> str:
    """`17`, `17_3`, `17_[4-9%2]`, `17+1`."""
    if expression:
        text = f"{array_job_id or job_id}_[{task_expression(expression, most)}]"
        return text if "SLURM_BITSTR_LEN" in os.environ else text[:_LONGEST_ID]
    if task_id is not None and array_job_id:
        return f"{array_job_id}_{task_id}"
    if het_id:
        return f"{het_id}+{het_offset}"
    return str(job_id)


def task_expression(expression: str, most: int) -> str:
    """The tasks of an array that are not split, cut to SLURM_BITSTR_LEN, with how many may run at a
    time.
    """
    expression = _cut(expression)
    return f"{expression}%{most}" if most else expression


def _cut(expression: str) -> str:
    """The length counts three bytes behind the text. 0, and what is no number, is without bound;
    below it the default counts.
    """
    given = os.environ.get("SLURM_BITSTR_LEN")
    sign, digits = (given[:1], given.lstrip("+-")) if given else ("", "")
    most = _TASKS_LENGTH if given is None or sign == "-" else int(digits) if digits.isdigit() else 0
    if not most or len(expression) <= most - 3 or ":" in expression:  # first-last:step is not cut
        return expression
    return expression[: max(most - 4, 0)] + "..."[: most - 1]


def reason_or_nodes(state: int, nodes: str, reason: str, detail: str) -> str:
    """What NODELIST(REASON) shows: why a job waits or failed in parentheses, else its nodes."""
    if state == PENDING or state in _FAILED:
        return f"({detail or reason})"
    return nodes


def step_id_text(job_id: int, array_job_id: int, task_id: int | None, step: str) -> str:
    """`17.0`, `17_3.batch`."""
    return (
        f"{array_job_id}_{task_id}.{step}"
        if array_job_id and task_id is not None
        else f"{job_id}.{step}"
    )


def in_places(jobs: "list[list[Any]]", columns: "Sequence[str]") -> "list[list[Any]]":
    """In the order of Slurm's list of jobs: a task that is split off takes the place of its array's
    record, which goes to the end.
    """
    own, whole = columns.index("job_id"), columns.index("array_job_id")
    split: dict[int, list[int]] = {}
    for job in jobs:
        if job[whole] and job[own] != job[whole]:
            split.setdefault(job[whole], []).append(job[own])
    if not split:
        return sorted(jobs, key=lambda job: job[whole] or job[own])

    behind: dict[int, int] = {}
    for array, numbers in split.items():
        numbers.sort()
        behind |= dict(zip([*numbers[1:], array], numbers, strict=True))

    def place(job: "list[Any]") -> tuple[int, int]:
        number, array = job[own], job[whole]
        return (behind[number], 1) if number in behind else (array or number, 0)

    return sorted(jobs, key=place)
