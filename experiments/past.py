"""Jobs of the past, as a site's accounting tells them, and the count of what was not used.

Place: the model between the readers of histories (sacct_rows, sacct_json, simulator_events,
swf_rows) and the scenario that past_scenario makes of them. Pure.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import msgspec

UNLIMITED: Final = -1
PARTITION_LIMIT: Final = -2  # the job said nothing, and had its partition's
NAMED_BAD_LINES: Final = 20  # of more than these only the count is kept


class HistoryError(ValueError):
    """A history that cannot be used, or with `strict` a line of it. Says the file, the line and
    why.
    """


class OptionError(HistoryError):
    """The command line is wrong: an option says nothing that can be understood."""


class PastJob(msgspec.Struct, gc=False):
    """One record: a job, a task of an array, or a component of a heterogeneous job. "" and None:
    not said. Times: seconds since the epoch.
    """

    line: int  # where it stood; 0 if the source has no lines
    job: str  # JobID: 123, 123_7, 123_[1-4%2], 123+0
    state: str  # its first word: COMPLETED, CANCELLED ...
    submit: int | None = None
    eligible: int | None = None
    start: int | None = None
    end: int | None = None
    elapsed: int | None = None
    suspended: int = 0
    exit_code: int = 0
    signal: int = 0
    limit_min: int | None = None  # minutes, UNLIMITED or PARTITION_LIMIT
    name: str = ""
    user: str = ""
    uid: int | None = None
    group: str = ""
    gid: int | None = None
    account: str = ""
    partition: str = ""
    qos: str = ""
    nodes: int | None = None  # allocated, or what is asked for while it waits
    cpus: int | None = None
    min_nodes: int | None = None  # requested
    req_cpus: int | None = None
    memory: str = ""  # ReqMem as it is
    req_tres: str = ""
    alloc_tres: str = ""
    req_gres: str = ""
    constraints: str = ""
    reservation: str = ""
    node_list: str = ""
    wckey: str = ""
    comment: str = ""
    submit_line: str = ""
    flags: str = ""

    @property
    def was_refused(self) -> bool:
        """Whether it was never a job: Slurm records a submission that it refuses for its size,
        nodes or reservation as one that failed at once, without nodes. Also a record of one that
        was requeued before it ever ran.
        """
        if self.node_list or self.alloc_tres:
            return False
        is_failed = self.state == "FAILED" and self.submit is not None
        return self.state == "REQUEUED" or (is_failed and self.submit == self.start == self.end)

    @property
    def has_run(self) -> bool:
        """Whether it ever began: Slurm before 21.08 gives jobs that were cancelled while pending
        their end as their start.
        """
        if self.start is None or not self.start:
            return False
        if self.state == "PENDING":
            return False
        return not (
            self.state in ("CANCELLED", "DEADLINE", "BOOT_FAIL")
            and not self.node_list
            and (self.end is None or self.end <= self.start)
        )

    @property
    def ran_s(self) -> int:
        """Seconds that it ran, without those in which it was suspended; 0 if it never did or has
        not ended.
        """
        if not self.has_run:
            return 0
        if self.elapsed is not None:
            return self.elapsed
        return max(0, self.end - (self.start or 0) - self.suspended) if self.end else 0


@dataclass(slots=True)
class Count:
    """What became of the lines of a history. `strict`: the first bad one ends the reading."""

    source: str = ""
    strict: bool = False
    lines: int = 0
    left_out: Counter[str] = field(default_factory=Counter)  # by plan: reason: lines
    # the first of the lines that say nothing that can be used, as "FILE line N: why"
    bad: list[str] = field(default_factory=list)
    bad_count: int = 0
    notes: Counter[str] = field(default_factory=Counter)  # what was assumed: of how many jobs

    def bad_line(self, number: int, why: str) -> None:
        """Note a line that is no job and should be one.

        Raises:
            HistoryError: with `strict`.
        """
        text = f"{self.source} line {number}: {why}" if number else f"{self.source}: {why}"
        if self.strict:
            raise HistoryError(text)
        self.bad_count += 1
        if len(self.bad) < NAMED_BAD_LINES:
            self.bad.append(text)
