"""The files of a step's tasks, and srun's patterns in their names.

Place: a part of a step's process (`taskd.py`). Follows: srun(1), "IO Redirection".
"""

from __future__ import annotations

import os

from understudy.model.file_patterns import without_backslashes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from understudy.noded.task import Task


class Files:
    """What is open. Tasks that name the same file share what is open, as they share the offset in
    it.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._open: dict[str, int] = {}

    def input_of(self, task: Task) -> int:
        return self.open(expand(self._order["std_in"], self._order, task), os.O_RDONLY)

    def output_of(self, task: Task, pattern: str) -> int:
        return self.open(
            expand(pattern, self._order, task),
            os.O_WRONLY | os.O_CREAT | (os.O_APPEND if self._order["append"] else os.O_TRUNC),
        )

    def open(self, path: str, flags: int) -> int:
        found = self._open.get(path) if flags & os.O_WRONLY else None
        if found is None:
            found = os.open(path, flags | os.O_CLOEXEC, 0o666)
            if flags & os.O_WRONLY:
                self._open[path] = found
        return found

    def open_all(self, tasks: list[Task]) -> None:
        """Open the files of all tasks.

        Raises:
            OSError: one of them cannot be opened.
        """
        order = self._order
        for task in tasks:
            if order["std_in"]:
                os.close(self.input_of(task))
            for pattern in {order["std_out"], order["std_err"]} - {""}:
                self.output_of(task, pattern)


def expand(pattern: str, order: dict[str, Any], task: Task) -> str:
    """A file name with its patterns: srun(1), "IO Redirection"."""
    if pattern == "none":
        return os.devnull
    found = ""
    at = 0
    values = {
        "A": order["array_job"] or str(order["job"]),
        "a": order["array_task"] or "4294967294",
        "J": f"{order['job']}.{order['step']}",
        "j": str(order["job"]),
        "s": str(order["step"]),
        "N": order["host"],
        "n": str(task.node["id"]),
        "t": str(task.number),
        "u": order["user"],
        "x": order["job_name"],
    }
    if "\\" in pattern:
        return without_backslashes(pattern)
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if letter != "%" or at == len(pattern):
            found += letter
            continue
        end = at
        while end < len(pattern) and pattern[end].isdigit():
            end += 1
        width, key = pattern[at:end], pattern[end : end + 1]
        if key == "%" and not width:
            found += "%"
        elif key in values:
            found += (
                values[key].rjust(min(int(width or 0), 10), "0") if key in "Aajsnt" else values[key]
            )
        else:
            found += "%" + width + key
        at = end + 1
    return found
