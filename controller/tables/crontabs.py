"""The crontabs that the controller keeps.

Place: tables; values alone. understudy.controller.jobs.crontabs changes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Entry:
    """A line of a crontab, with the options above it: lines `first` .. `last`, counted from 1."""

    job_id: int
    when: str
    first: int
    last: int
    user_id: int


@dataclass(slots=True, eq=False)
class Crontabs:
    """The users' files, and the jobs that are their entries."""

    texts: dict[int, str] = field(default_factory=dict)  # by user id
    entries: dict[int, Entry] = field(default_factory=dict)  # by job id
