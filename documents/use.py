"""What steps have used, as sacct and its documents name it.

Place: documents. What accounting keeps of it is said in `model/task_usage.py`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Row = dict[str, Any]

IN = (
    ("cpu", "cpu_us"),
    ("energy", ""),
    ("fs/disk", "read"),
    ("mem", "rss"),
    ("pages", "pages"),
    ("vmem", "vmsize"),
)
OUT = (("energy", ""), ("fs/disk", "written"))


def was_measured(row: "Row") -> bool:
    """Whether the step has ended, and what it used is known at least in part."""
    return bool(row["end_time"] and "energy" in (row.get("usage") or ()))


def amount_of(row: "Row", which: str, quantity: str) -> "int | str | None":
    """`which`: sum, ave, max, max_task, max_node ...; None: nobody has looked at the tasks."""
    used = row.get("usage") or {}
    if not used.get("tasks"):
        return None
    if which == "ave":
        return int(used[f"sum_{quantity}"]) // int(used["tasks"])
    kind, _, place = which.partition("_")
    found = int(used[f"{kind}_{quantity}_{place}" if place else f"{kind}_{quantity}"])
    return _node(row, found) if place == "node" else found


def _node(row: "Row", place: int) -> str:
    from understudy.model.hostlist import expand

    names = expand(row["nodes"] or "")
    return names[place] if place < len(names) else ""
