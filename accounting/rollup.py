"""Usage added up: how many resource-seconds each association and key used in an hour, a day, a
month, and what the cluster's time went to.

Place: the core of the accounting daemon, pure. Hours are added up from jobs and events, days and
months from hours and days; all begin at full hours, midnights and first days of months of the local
time zone, as in Slurm. A job's usage is what it was allocated times how long it ran.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    Usage = dict[tuple[str, int, str], int]  # (kind, subject, resource): amount times seconds

HOUR_S: Final = 3600
ASSOCIATION, WCKEY = "association", "wckey"
# together the cluster's time
ALLOCATED, DOWN, PLANNED_DOWN, IDLE, PLANNED = (
    "allocated",
    "down",
    "planned_down",
    "idle",
    "planned",
)
OVERCOMMITTED = "overcommitted"


def hour_of(when: float) -> int:
    """The full hour at or before."""
    return int(when) // HOUR_S * HOUR_S


def day_of(when: float) -> int:
    """The midnight at or before, in local time."""
    moment = time.localtime(when)
    return int(time.mktime((moment.tm_year, moment.tm_mon, moment.tm_mday, 0, 0, 0, 0, 0, -1)))


def month_of(when: float) -> int:
    """The first midnight of the month, in local time."""
    moment = time.localtime(when)
    return int(time.mktime((moment.tm_year, moment.tm_mon, 1, 0, 0, 0, 0, 0, -1)))


def hours(start: int, end: int) -> Iterator[int]:
    """The beginnings of the hours from `start` on that are over at `end`."""
    return iter(range(start, hour_of(end), HOUR_S))


def usage_of_hours(
    start: int,
    end: int,
    jobs: Iterable[Mapping[str, Any]],
    down: Iterable[Mapping[str, Any]],
    capacity: Iterable[Mapping[str, Any]],
    key_numbers: Mapping[tuple[str, str], int],
    reservations: Iterable[Mapping[str, Any]] = (),
) -> list[tuple[int, Usage]]:
    """The usage of each hour of [start, end), both full hours.

    The cluster's time is what it had times how long it had it, and is the sum of its parts:
    allocated (to jobs and, whether they are used or not, to reservations), down, planned down
    (reserved for maintenance), planned (asked for by jobs that may run and wait; CPUs alone), idle.
    What waiting jobs ask for beyond what is left is overcommitted, and no part of it.

    Args:
        start: the first hour.
        end: the end of the last.
        jobs: records with eligible_time, start_time, end_time (None: still runs or waits),
            suspended_s, association_id, user, wckey, reservation_id, tres_requested and
            tres_allocated.
        down: events with start_time, end_time and tres, in which nodes could not be used.
        capacity: the cluster's events, with start_time, end_time and tres: what it had.
        key_numbers: the numbers of keys, by (user, key).
        reservations: records with id, start_time, end_time, flags and tres.
    """
    spans = {hour: _Hour() for hour in range(start, end, HOUR_S)}

    def parts(begin: float | None, until: float | None) -> Iterator[tuple[_Hour, int]]:
        """The hours of a time, and how many of its seconds are in each."""
        first, last = (
            int(max(start if begin is None else begin, start)),
            int(min(end if until is None else until, end)),
        )
        hour = hour_of(first)
        while hour < last:
            yield spans[hour], min(last, hour + HOUR_S) - max(first, hour)
            hour += HOUR_S

    for event in capacity:
        for hour, seconds in parts(event["start_time"], event["end_time"]):
            hour.add(hour.capacity, event["tres"], seconds)
    reserved = set()
    for each in reservations:
        flags = (each["flags"] or "").split(",")
        if "IGNORE_JOBS" in flags:
            continue
        reserved.add(each["id"])
        for hour, seconds in parts(each["start_time"], each["end_time"]):
            hour.add(
                hour.planned_down if "MAINT" in flags else hour.allocated, each["tres"], seconds
            )
    for job in jobs:
        _add_job(
            job, start, parts, key_numbers, is_reserved=(job["reservation_id"] or 0) in reserved
        )
    for event in down:
        for hour, seconds in parts(event["start_time"], event["end_time"]):
            hour.add(hour.down, event["tres"], seconds)
    return [(when, hour.usage()) for when, hour in spans.items()]


def _add_job(
    job: Mapping[str, Any],
    start: int,
    parts: Callable[[float | None, float | None], Iterable[tuple[_Hour, int]]],
    key_numbers: Mapping[tuple[str, str], int],
    *,
    is_reserved: bool,
) -> None:
    began, ended = job["start_time"], job["end_time"]
    if job["eligible_time"] is not None:
        asked = (job["tres_requested"] or {}).get("cpu", 0)
        for hour, seconds in parts(job["eligible_time"], began if began is not None else ended):
            hour.waiting += asked * seconds
    if began is None:
        return
    # Suspended it holds all but its CPUs. When that was is not known, so its first hours bear it.
    suspended = max((job["suspended_s"] or 0) - max(start - began, 0), 0)
    subjects = [(ASSOCIATION, job["association_id"] or 0)]
    key = key_numbers.get((job["user"], job["wckey"]))
    if key is not None:
        subjects.append((WCKEY, key))
    held = job["tres_allocated"] or {}
    for hour, seconds in parts(began, ended):
        without = min(suspended, seconds)
        suspended -= without
        for name, amount in held.items():
            used = amount * (seconds - without if name == "cpu" else seconds)
            for kind, subject in subjects:
                hour.used[kind, subject, name] += used
            if not is_reserved:
                hour.allocated[name] += used


class _Hour:
    """What went on in one hour, in amounts times seconds."""

    __slots__ = ("allocated", "capacity", "down", "planned_down", "used", "waiting")

    def __init__(self) -> None:
        self.capacity: defaultdict[str, int] = defaultdict(int)
        self.allocated: defaultdict[str, int] = defaultdict(int)
        self.down: defaultdict[str, int] = defaultdict(int)
        self.planned_down: defaultdict[str, int] = defaultdict(int)
        self.used: defaultdict[tuple[str, int, str], int] = defaultdict(int)
        self.waiting = 0

    @staticmethod
    def add(to: defaultdict[str, int], amounts: Mapping[str, int] | None, seconds: int) -> None:
        for name, amount in (amounts or {}).items():
            to[name] += amount * seconds

    def usage(self) -> Usage:
        """Its parts. What would be more than there was is cut: time allocated first, as it is what
        is known best, then down.
        """
        found: Usage = dict(self.used)
        for name in self.capacity.keys() | self.allocated.keys():
            left = self.capacity.get(name, 0)
            parts = []
            for kind, amounts in (
                (ALLOCATED, self.allocated),
                (DOWN, self.down),
                (PLANNED_DOWN, self.planned_down),
            ):
                amount = min(amounts.get(name, 0), left)
                left -= amount
                parts.append((kind, amount))
            waiting = self.waiting if name == "cpu" else 0
            planned = min(waiting, left)
            parts += [
                (IDLE, left - planned),
                (PLANNED, planned),
                (OVERCOMMITTED, waiting - planned),
            ]
            found.update({(kind, 0, name): amount for kind, amount in parts if amount})
        return found


def added(parts: Iterable[Usage]) -> Usage:
    """The sum of several."""
    total: defaultdict[tuple[str, int, str], int] = defaultdict(int)
    for part in parts:
        for key, amount in part.items():
            total[key] += amount
    return dict(total)
