"""The order in which squeue shows jobs. Follows squeue(1) -S of 22.05, and its behaviour where the
page is silent.

Jobs that no key tells apart come with the latest start first, then those without one, last
submitted first. Keys are letters, one behind the other, each with "-" or "+" before it or not;
commas between them mean nothing.

Place: commands alone; pure.
"""

from understudy.commands.squeue.fields import FIELDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Job = dict[str, Any]

DEFAULT_SORT = "P,t,-p"
START_SORT = "S"
_NOT_GIVEN = 0xFFFF
_AS_SHOWN = frozenset("Ptpuja")  # keys that compare what the field shows, of texts and numbers
# What every order needs.
COLUMNS = ("job_id", "array_job_id", "state", "start_time", "expected_start")
_NOT_SORTABLE = frozenset("akoqrswxyAEFKRWXYZ")
_WITHOUT_EFFECT = frozenset("bcfhnO")  # of these, squeue complains of "b"


class BadSortError(Exception):
    """A key that there is not; the text is its letter."""


class SortKey:
    """One key: what to compare, and whether the greater comes first."""

    __slots__ = ("columns", "descending", "letter", "value")

    def __init__(self, letter: str, *, descending: bool) -> None:
        field = FIELDS.by_letter[letter]
        self.letter = letter
        self.columns = [column for column in field.columns if not column.startswith("@")]
        self.descending = descending
        self.value = _value(letter)


def read_sort(text: str, complain: "Callable[[str], None]") -> list[SortKey]:
    """The keys of a specification.

    Raises:
        BadSortError: a letter by which squeue does not sort.
    """
    keys = []
    for letter, descending in reversed(sort_letters(text)):  # as they are used: the last one first
        if letter not in FIELDS.by_letter or letter in _NOT_SORTABLE:
            raise BadSortError(letter)
        if letter == "b":
            complain("Invalid sort specification: b")
        if letter not in _WITHOUT_EFFECT:
            keys.append(SortKey(letter, descending=descending))
    return keys[::-1]


def columns_of(text: str) -> list[str]:
    """What the keys of a specification need, as far as they are keys."""
    fields = [
        FIELDS.by_letter[letter] for letter, _ in sort_letters(text) if letter in FIELDS.by_letter
    ]
    return [column for field in fields for column in field.columns if not column.startswith("@")]


def sort_letters(text: str) -> list[tuple[str, bool]]:
    """Each letter, and whether a minus stands before it."""
    found = []
    descending = False
    for letter in text:
        if letter in "+-":
            descending = letter == "-"
        elif letter != ",":
            found.append((letter, descending))
            descending = False
    return found


def starts_at(job: "Job") -> int:
    """When the job started or is expected to; 0 if nobody knows."""
    start = job["start_time"]
    if start is None and job["state"] == 0:
        start = job["expected_start"]
    return start or 0


def sort_jobs(jobs: "list[Job]", keys: list[SortKey]) -> None:
    """Order the jobs, which come in the order of `as_kept`."""
    with_start: list[Job] = []
    without: list[Job] = []
    for job in jobs:
        (with_start if starts_at(job) else without).append(job)
    with_start.sort(key=starts_at, reverse=True)
    jobs[:] = with_start + without[::-1]
    for key in reversed(keys):
        if key.letter == "S":
            _sort_but(jobs, starts_at, lambda job: not starts_at(job), descending=key.descending)
        elif key.letter == "N":
            _sort_but(jobs, key.value, lambda job: not job["nodes"], descending=key.descending)
            if key.descending:  # those without nodes come first then, as they were
                bare = [job for job in jobs if not job["nodes"]]
                jobs[:] = bare[::-1] + [job for job in jobs if job["nodes"]]
        elif not (key.letter in _AS_SHOWN and _are_alike(jobs, key.columns)):
            jobs.sort(key=key.value, reverse=key.descending)


def _are_alike(jobs: "list[Job]", columns: "list[str]") -> bool:
    """Whether all have the same values, as many jobs in a queue have: quickly seen."""
    return all(len({job[column] for job in jobs}) < 2 for column in columns)


def _sort_but(
    jobs: "list[Job]",
    value: "Callable[[Job], Any]",
    is_last: "Callable[[Job], bool]",
    *,
    descending: bool,
) -> None:
    """Sort; jobs of which the value says nothing come last, in the opposite of their order."""
    rest = [job for job in jobs if is_last(job)]
    known = [job for job in jobs if not is_last(job)]
    known.sort(key=value, reverse=descending)
    jobs[:] = known + rest[::-1]


def as_kept(jobs: "list[Job]") -> "list[Job]":
    """The jobs in the order of Slurm's job list.

    When a task is split off an array, it takes the place of the array's record, which goes to the
    end of the list; so a task stands where the record was last put, which was when the task before
    it was split off. The last task keeps the array's own number.
    """
    if not any(job["array_job_id"] for job in jobs):
        return sorted(jobs, key=lambda job: job["job_id"])
    places: list[tuple[int, int]] = []
    latest: dict[int, int] = {}
    in_order = sorted(jobs, key=lambda job: job["job_id"])
    for job in in_order:
        number: int = job["job_id"]
        array: int = job["array_job_id"]
        if array and number != array:
            places.append((latest.get(array, array), number))
            latest[array] = number
        else:
            places.append((number, number))
    keyed = [
        (latest.get(number, place), number, job)
        for (place, number), job in zip(places, in_order, strict=True)
    ]
    keyed.sort(key=lambda entry: entry[:2])
    return [job for _, _, job in keyed]


def _task_place(job: "Job") -> int:
    """The tasks of an array come by number, then those that are not split off."""
    task: int | None = job.get("array_task_id")
    if task is not None:
        return task
    return 1 << 32 if job.get("array_job_id") else -1


def _value(letter: str) -> "Callable[[Job], Any]":
    """Jobs compare by raw values where a text would compare badly ("10:00" before "5:00")."""
    field = FIELDS.by_letter[letter]
    special: dict[str, Callable[[Job], Any]] = {
        "i": lambda job: (job["array_job_id"] or job["job_id"], _task_place(job), job["job_id"]),
        "m": lambda job: job["min_memory_mb"] or 0,
        "z": lambda job: [
            _NOT_GIVEN if job[column] is None else job[column] for column in field.columns
        ],
        "S": starts_at,
        "N": _first_node,
        "L": lambda job: (
            float("inf") if job["time_limit_s"] is None else job["time_limit_s"] - job["run_time_s"]
        ),
        "l": lambda job: float("inf") if job["time_limit_s"] is None else job["time_limit_s"],
        "e": _end,
    }
    if letter in special:
        return special[letter]
    columns, make = field.columns, field.make
    if len(columns) > 1:
        return lambda job: make(*[job[column] for column in columns])
    column = columns[0] if columns else "job_id"

    def value(job: "Job") -> "Any":
        found = job[column]
        return (found is None, found if found is not None else 0)

    return value


def _end(job: "Job") -> float:
    """Without a time limit the end lies far away; without a start there is none."""
    if job["end_time"] is not None:
        return float(job["end_time"])
    return 1e12 + starts_at(job) if starts_at(job) else 0.0


def _first_node(job: "Job") -> "Any":
    from understudy.model.hostlist import expand, sort_key

    return sort_key(expand(job["nodes"])[0])
