"""Which jobs squeue shows."""

from understudy.documents.job_texts import task_numbers
from understudy.documents.states import COMPLETED, COMPLETING, SPECIAL_EXIT, STAGE_OUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANY_CASE = {"account", "name"}
_NOT_OVER = COMPLETING | STAGE_OUT  # beside a state in which jobs are over


class Filter:
    """Which jobs to show."""

    def __init__(self) -> None:
        self.is_empty = False  # an option names nothing, which is what it lets through
        self.jobs: list[tuple[int, int | None]] | None = None  # (job, array task or None)
        self.states: list[tuple[int, int]] | None = None  # (base state, 0) or (-1, flag)
        self.all_states = False
        self.texts: dict[str, set[str]] = {}  # column: any of these
        self.users: list[int] | None = None
        self.licenses: set[str] | None = None
        self.nodes: set[str] | None = None

    def columns(self) -> list[str]:
        """The columns that the filter itself reads."""
        return [
            "job_id",
            "array_job_id",
            "array_task_id",
            "array_task_expression",
            "het_job_id",
            "state",
            "flags",
            "nodes",
            "licenses",
            "user_id",
            *self.texts,
        ]

    def kept(self, jobs: "list[dict[str, Any]]") -> "list[dict[str, Any]]":
        """Those of the jobs that are to be shown."""
        asked = (self.jobs, self.states, self.users, self.licenses, self.nodes)
        if self.is_empty or self.all_states or self.texts or any(one is not None for one in asked):
            return [job for job in jobs if self.keeps(job)]
        return [job for job in jobs if job["state"] < COMPLETED or job["flags"] & _NOT_OVER]

    def keeps(self, job: "dict[str, Any]") -> bool:
        """Whether a job is to be shown; `job` holds the filter's columns."""
        if self.is_empty or (
            self.jobs is not None
            and not any(self._is(job, number, task) for number, task in self.jobs)
        ):
            return False
        if not self.all_states:
            if self.states is None:
                if job["state"] >= COMPLETED and not job["flags"] & _NOT_OVER:
                    return False
            elif not any(
                _in_state(job["state"], job["flags"], base, flag) for base, flag in self.states
            ):
                return False
        if not self.has_texts(job):
            return False
        if self.users is not None and job["user_id"] not in self.users:
            return False
        if self.licenses is not None and not self.licenses.intersection(
            part.split(":")[0].split("@")[0] for part in job["licenses"].split(",")
        ):
            return False
        if self.nodes is not None:
            if not job["nodes"]:
                return False
            from understudy.model.hostlist import expand

            return not self.nodes.isdisjoint(expand(job["nodes"]))
        return True

    def has_texts(self, record: "dict[str, Any]") -> bool:
        """Whether the record, as far as it has them, has the texts that are asked for."""
        for column, values in self.texts.items():
            mine = record.get(column)
            if mine is None:
                continue
            if column in ANY_CASE:
                mine = mine.lower()
            if mine not in values and not (
                column == "partition" and values.intersection(mine.split(","))
            ):
                return False
        return True

    def names_one(self) -> bool:
        """Whether a single job is asked for, which the controller is asked for by its number."""
        return self.jobs is not None and len(self.jobs) == 1

    def names_tasks_of(self, job: "dict[str, Any]") -> bool:
        """Whether of an array's record only some tasks are wanted."""
        own = (job["job_id"], job["array_job_id"])
        return self.jobs is not None and all(
            task is not None for number, task in self.jobs if number in own
        )

    @staticmethod
    def _is(job: "dict[str, Any]", number: int, task: int | None) -> bool:
        if task is None:
            return number in (job["job_id"], job["array_job_id"], job["het_job_id"])
        if job["array_job_id"] != number and job["job_id"] != number:
            return False
        return bool(job["array_task_id"] == task) or task in task_numbers(
            job["array_task_expression"]
        )


def _in_state(state: int, flags: int, base: int, flag: int) -> bool:
    if base >= 0:
        return state == base and not flags & (COMPLETING | SPECIAL_EXIT)
    return bool(flags & flag)
