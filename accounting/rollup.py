"""Usage added up: how many resource-seconds each association and key used in an hour, a day, a month, and what the cluster's time went to.

Place: the core of the accounting daemon, pure. Hours are added up from jobs and events, days and months from hours and days; all begin at full hours,
midnights and first days of months of the local time zone, as in Slurm. A job's usage is what it was allocated times how long it ran.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Usage = dict[tuple[str, int, str], int]  # (kind, subject, resource): amount times seconds

HOUR_S: Final = 3600
ASSOCIATION, WCKEY, ALLOCATED, DOWN, IDLE = "association", "wckey", "allocated", "down", "idle"


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


def next_day(day: int) -> int:
    """The midnight after: 23 to 25 hours later."""
    return day_of(day + 30 * HOUR_S)


def next_month(month: int) -> int:
    return month_of(month + 32 * 24 * HOUR_S)


def hours(start: int, end: int) -> Iterator[int]:
    """The beginnings of the hours from `start` on that are over at `end`."""
    return iter(range(start, hour_of(end), HOUR_S))


def usage_of_hours(
    start: int,
    end: int,
    jobs: Iterable[Mapping[str, Any]],
    down: Iterable[Mapping[str, Any]],
    capacity: Mapping[str, int],
    key_numbers: Mapping[tuple[str, str], int],
) -> list[tuple[int, Usage]]:
    """The usage of each hour of [start, end), both full hours.

    Args:
        start: the first hour.
        end: the end of the last.
        jobs: records with start_time, end_time (None: still runs), association_id, user, wckey and tres_allocated.
        down: events with start_time, end_time and tres, in which nodes could not be used.
        capacity: what the cluster has of each resource.
        key_numbers: the numbers of keys, by (user, key).
    """
    spans: dict[int, defaultdict[tuple[str, int, str], int]] = {hour: defaultdict(int) for hour in range(start, end, HOUR_S)}

    def add(kinds: list[tuple[str, int]], record: Mapping[str, Any], tres: Mapping[str, int]) -> None:
        begin, until = max(record["start_time"], start), min(record["end_time"] if record["end_time"] is not None else end, end)
        hour = hour_of(begin)
        while hour < until:
            seconds = min(until, hour + HOUR_S) - max(begin, hour)
            usage = spans[hour]
            for kind, subject in kinds:
                for name, amount in tres.items():
                    usage[kind, subject, name] += amount * seconds
            hour += HOUR_S

    for job in jobs:
        if job["start_time"] is None:
            continue
        kinds = [(ASSOCIATION, job["association_id"] or 0), (ALLOCATED, 0)]
        key = key_numbers.get((job["user"], job["wckey"]))
        if key is not None:
            kinds.append((WCKEY, key))
        add(kinds, job, job["tres_allocated"] or {})
    for event in down:
        add([(DOWN, 0)], event, event["tres"] or {})
    for usage in spans.values():
        for name, amount in capacity.items():
            rest = amount * HOUR_S - usage.get((ALLOCATED, 0, name), 0) - usage.get((DOWN, 0, name), 0)
            if rest > 0:
                usage[IDLE, 0, name] = rest
    return [(hour, dict(usage)) for hour, usage in spans.items()]


def added(parts: Iterable[Usage]) -> Usage:
    """The sum of several."""
    total: defaultdict[tuple[str, int, str], int] = defaultdict(int)
    for part in parts:
        for key, amount in part.items():
            total[key] += amount
    return dict(total)
