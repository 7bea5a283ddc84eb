"""Numbers of a job array's tasks: sbatch's `--array` expressions, and their short form.

Place: the vocabulary. Tasks are an int used as a bitmap. Follows: sbatch(1) --array; the forms that
22.05.8 takes, refuses and shows.

    parse("0,3-9:2%4", 1001)     (tasks 0, 3, 5, 7, 9; at most 4 at a time)
    format_tasks(tasks)          "0,3,5,7,9"
"""

from __future__ import annotations

import re
from typing import Final

from understudy.model import nodeset

_PART: Final = re.compile(
    r"\s*(?:([+-]?\d+)(?:-\s*([+-]?\d+)(?::\s*([+-]?\d+))?)?|" r"(?=%))\]?(?:%.*)?\Z", re.DOTALL
)
_LIMIT: Final = re.compile(r"\d*")
# tasks with even gaps are shown as first-last:step if they span more than this
_SHORTEST_STEP_FORM: Final = 10
_FEWEST_IN_STEP_FORM: Final = 6  # and are so many


def parse(text: str, max_array_size: int) -> tuple[int, int]:
    """(bitmap of tasks, how many may run at a time or 0 for any number). Commas alone name no task;
    a limit without a number before it is task 0.

    Raises:
        ValueError: not an array expression, or a number that is not below MaxArraySize.
    """
    limit = _LIMIT.match(text.partition("%")[2])
    tasks = parse_tasks(text.removeprefix("["), max_array_size)
    return tasks, int(limit[0]) if limit is not None and limit[0] else 0


def parse_tasks(text: str, max_array_size: int) -> int:
    """The bitmap of tasks that an expression names.

    Raises:
        ValueError: as `parse`.
    """
    tasks = 0
    if not text:
        raise ValueError("not an array expression: ''")
    for part in filter(None, text.split(",")):
        match = _PART.match(part)
        if match is None:
            raise ValueError(f"not an array expression: {text!r}")
        first = int(match[1] or 0)
        last = first if match[2] is None else int(match[2])
        step = 1 if match[3] is None else int(match[3])
        if first < 0 or last < first or last >= max_array_size or step < 1:
            raise ValueError(f"not an array expression: {text!r}")
        for task in range(first, last + 1, step):
            tasks |= 1 << task
    return tasks


def format_tasks(tasks: int) -> str:
    """The short form of a bitmap: ranges, or first-last:step."""
    if not tasks:
        return ""
    found = nodeset.indices(tasks)
    first, last = found[0], found[-1]
    if last - first > _SHORTEST_STEP_FORM and len(found) >= _FEWEST_IN_STEP_FORM:
        step = found[1] - first
        if step > 1 and found == list(range(first, last + 1, step)):
            return f"{first}-{last}:{step}"
    return ",".join(
        str(start) if length == 1 else f"{start}-{start + length - 1}"
        for start, length in nodeset.runs(tasks)
    )
