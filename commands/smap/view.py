"""What smap shows, as lines of text: the nodes as a map of one character each, and below it who has
them. Follows the manual page of smap(1), which Slurm had until 20.02.

Each job, partition or reservation is given a character; the map shows it on all its nodes. Nodes
that nothing shown is on are `.` if they are free for jobs and `#` if they are not.

Place: commands alone; pure.
"""

from understudy.commands.shared.texts import duration, limit, thousands, timestamp
from understudy.documents.job_texts import job_id_text, reason_or_nodes
from understudy.documents.states import (
    ALLOCATED,
    IDLE,
    MIXED,
    NO_RESPOND,
    NODE_DRAIN,
    NODE_FAILING,
    job_state_code,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Row = dict[str, Any]

MARKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
FREE, USED, UNUSABLE = ".", "@", "#"
_JOB_NAMES = """
job_id array_job_id array_task_id array_task_expression array_max_tasks het_job_id
het_job_offset partition user_name name state flags run_time_s node_count nodes reason
reason_detail start_time expected_start priority
"""
JOB_COLUMNS = _JOB_NAMES.split()
PARTITION_COLUMNS = ["name", "is_default", "state", "max_time_s", "total_nodes", "nodes", "hidden"]
RESERVATION_COLUMNS = ["name", "start_time", "end_time", "users", "accounts", "node_count", "nodes"]
NODE_COLUMNS = ["name", "state", "flags"]


class Entry:
    """One line of the table: its texts, the nodes that it is on, and its mark on the map ("" if it
    is on none).
    """

    __slots__ = ("mark", "nodes", "texts")

    def __init__(self, texts: "list[str]", nodes: str) -> None:
        self.texts = texts
        self.nodes = nodes
        self.mark = ""


class View:
    """A table with its header, and the entries whose marks are on the map."""

    __slots__ = ("entries", "header", "widths")

    def __init__(self, header: "list[tuple[str, int]]", entries: list[Entry]) -> None:
        self.header = [name for name, _ in header]
        self.widths = [width for _, width in header]  # negative: to the left, 0: as long as it is
        self.entries = entries
        on_nodes = [entry for entry in entries if entry.nodes]
        for number, entry in enumerate(on_nodes):
            entry.mark = MARKS[number % len(MARKS)]

    def header_line(self) -> str:
        return self._line("ID", self.header)

    def lines(self) -> list[str]:
        return [self._line(entry.mark, entry.texts) for entry in self.entries]

    def _line(self, mark: str, texts: "Sequence[str]") -> str:
        parts = [f"{mark:<2}"]
        for text, width in zip(texts, self.widths, strict=True):
            parts.append(
                text
                if not width
                else text[:-width].ljust(-width)
                if width < 0
                else text[:width].rjust(width)
            )
        return " ".join(parts)


def jobs_view(rows: "Iterable[Row]") -> View:
    """Running jobs first, then those that wait, by priority."""
    shown = sorted(
        (row for row in rows if row["state"] <= 2 or row["flags"] & 0x8000),
        key=lambda row: (row["state"] == 0, -row["priority"]),
    )
    header = [
        ("JOBID", -18),
        ("PARTITION", 9),
        ("USER", 8),
        ("NAME", 9),
        ("ST", 2),
        ("TIME", 10),
        ("NODES", 5),
        ("NODELIST", 0),
    ]
    names = (
        "job_id",
        "array_job_id",
        "array_task_id",
        "array_task_expression",
        "array_max_tasks",
        "het_job_id",
        "het_job_offset",
    )
    entries = [
        Entry(
            [
                job_id_text(*[row[name] for name in names]),
                row["partition"],
                row["user_name"],
                row["name"],
                job_state_code(row["state"], row["flags"]),
                duration(row["run_time_s"]),
                thousands(row["node_count"]),
                reason_or_nodes(row["state"], row["nodes"], row["reason"], row["reason_detail"]),
            ],
            row["nodes"],
        )
        for row in shown
    ]
    return View(header, entries)


def partitions_view(rows: "Iterable[Row]") -> View:
    header = [("PARTITION", 10), ("AVAIL", 6), ("TIMELIMIT", 11), ("NODES", 6), ("NODELIST", 0)]
    entries = [
        Entry(
            [
                row["name"] + ("*" if row["is_default"] else ""),
                row["state"].lower(),
                limit(row["max_time_s"], "infinite"),
                thousands(row["total_nodes"]),
                row["nodes"],
            ],
            row["nodes"],
        )
        for row in rows
    ]
    return View(header, entries)


def reservations_view(rows: "Iterable[Row]") -> View:
    header = [
        ("NAME", 10),
        ("START_TIME", 19),
        ("END_TIME", 19),
        ("NODES", 6),
        ("ACCESS_CONTROL", -24),
        ("NODELIST", 0),
    ]
    entries = []
    for row in rows:
        access = [f"{key}={','.join(row[key])}" for key in ("users", "accounts") if row[key]]
        times = [timestamp(row["start_time"]), timestamp(row["end_time"])]
        entries.append(
            Entry(
                [row["name"], *times, thousands(row["node_count"]), " ".join(access), row["nodes"]],
                row["nodes"],
            )
        )
    return View(header, entries)


def node_marks(nodes: "Iterable[Row]", view: View) -> str:
    """The map: a character a node, in the order of the nodes. Of several entries on a node the
    first is shown.
    """
    from understudy.model.hostlist import expand

    marked: dict[str, str] = {}
    for entry in view.entries:
        if entry.nodes:
            for name in expand(entry.nodes):
                marked.setdefault(name, entry.mark)
    return "".join([marked.get(node["name"]) or _state_mark(node) for node in nodes])


def _state_mark(node: "Row") -> str:
    if node["flags"] & (NODE_DRAIN | NODE_FAILING | NO_RESPOND) or node["state"] not in {
        IDLE,
        ALLOCATED,
        MIXED,
    }:
        return UNUSABLE
    return FREE if node["state"] == IDLE else USED


def map_lines(marks: str, width: int) -> list[str]:
    """The map in lines of at most `width` characters."""
    width = max(width, 1)
    return [marks[at : at + width] for at in range(0, len(marks), width)]
