"""Job dependencies: their syntax, and whether they are met.

Place: tables, no I/O. Follows: sbatch(1) --dependency; squeue(1) %E on how they are
shown.

    afterok:17:18,after:19+10     all must be met
    afterok:17?afterany:18        one must be met
    aftercorr:20                  task 3 of this array after task 3 of that has ended well
    afterok:20_3                  one task of an array; without a task all of them
    singleton                     no earlier job of the same name and user is pending or running
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from understudy.model.errors import ErrorCode, SlurmError

if TYPE_CHECKING:
    from collections.abc import Container


SINGLETON: Final = "singleton"
CORRESPONDING: Final = "aftercorr"
# until what it leaves behind has been taken away, which nothing is here
BURST_BUFFER: Final = "afterburstbuffer"
_KINDS: Final = ("after", "afterany", BURST_BUFFER, "afterok", "afternotok", CORRESPONDING)
# with what squeue shows behind it
_JOB: Final = re.compile(r"\s*(\d+)(?:_(\d+|\*))?(?:\+(\d+))?(?:\([a-z]*\))?\Z")


class Outlook(Enum):
    """What a dependency, or a term of it, amounts to now."""

    MET = "met"
    WAITING = "unfulfilled"
    NEVER = "failed"


@dataclass(frozen=True, slots=True)
class Term:
    """One condition. `delay_min`: minutes after the other job's start, for `after`."""

    kind: str
    job_id: int = 0
    delay_min: int = 0
    outlook: Outlook = Outlook.WAITING
    task: int | None = None  # of the array `job_id`
    is_array: bool = False  # all tasks of the array are meant

    def __str__(self) -> str:
        if self.kind == SINGLETON:
            return f"{SINGLETON}({self.outlook.value})"
        delay = f"+{self.delay_min}" if self.delay_min else ""
        task = "_*" if self.is_array else "" if self.task is None else f"_{self.task}"
        return f"{self.kind}:{self.job_id}{task}{delay}({self.outlook.value})"


@dataclass(frozen=True, slots=True)
class Dependency:
    """Conditions of which all, or any one, must be met."""

    terms: tuple[Term, ...]
    any_suffices: bool = False

    def __str__(self) -> str:
        return ("?" if self.any_suffices else ",").join(map(str, self.terms))

    @property
    def outlook(self) -> Outlook:
        """Met, never to be met, or still open."""
        outlooks = [term.outlook for term in self.terms]
        if not outlooks:
            return Outlook.MET
        if self.any_suffices:
            if Outlook.MET in outlooks:
                return Outlook.MET
            return Outlook.WAITING if Outlook.WAITING in outlooks else Outlook.NEVER
        if Outlook.NEVER in outlooks:
            return Outlook.NEVER
        return Outlook.WAITING if Outlook.WAITING in outlooks else Outlook.MET

    @property
    def job_ids(self) -> list[int]:
        """The jobs on which it depends."""
        return [term.job_id for term in self.terms if term.job_id]


def parse(text: str, own_job_id: int = 0, arrays: Container[int] = ()) -> Dependency | None:
    """The dependency that the text describes, None for an empty one. `arrays`: the numbers of those
    that there are.

    Raises:
        SlurmError: unknown kind, malformed job id, or the job itself.
    """
    if text in ("", "0"):
        return None
    terms: list[Term] = []
    for part in re.split(r"[,?]", text):
        kind, _, jobs = part.strip().partition(":")
        kind = kind.lower()
        if kind == SINGLETON and not jobs:
            terms.append(Term(SINGLETON))
            continue
        if kind.isdigit() and not jobs:  # a bare number means afterany
            kind, jobs = "afterany", kind
        if kind == "expand" and jobs:
            raise SlurmError(ErrorCode.NOT_SUPPORTED)
        if kind not in _KINDS or not jobs:
            raise SlurmError(ErrorCode.DEPENDENCY_PROBLEM)
        for job in jobs.split(":"):
            match = _JOB.match(job)
            if match is None or int(match[1]) in {0, own_job_id}:
                raise SlurmError(ErrorCode.DEPENDENCY_PROBLEM)
            task = int(match[2]) if match[2] and match[2] != "*" else None
            is_array = match[2] == "*" or (task is None and int(match[1]) in arrays)
            terms.append(
                Term(kind, int(match[1]), int(match[3] or 0), task=task, is_array=is_array)
            )
    return Dependency(tuple(dict.fromkeys(terms)), any_suffices="?" in text)
