"""Keeping the roll-ups of usage up to date: which hours, days and months have to be added up, from
what, into what.

Place: between the pure arithmetic (rollup.py) and the store.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import or_

from understudy.accounting import rollup, schema

if TYPE_CHECKING:
    from understudy.accounting.ledger import Ledger
    from understudy.accounting.rollup import Usage
    from understudy.accounting.store import Store

_JOB_COLUMNS: Final = (
    *(
        "eligible_time",
        "start_time",
        "end_time",
        "suspended_s",
        "association_id",
        "user",
        "wckey",
        "reservation_id",
    ),
    *("tres_requested", "tres_allocated"),
)
# so much is added up at a time: the jobs of a week fit into memory
_CHUNK_S: Final = 7 * 24 * rollup.HOUR_S


def roll_up(store: Store, ledger: Ledger, cluster: str, now: float) -> None:
    """Add up all full hours that have not been, and the days and months to which they belong."""
    until = rollup.hour_of(now)
    start = store.rolled_until(cluster)
    if start is None:
        start = _first_hour(store, cluster)
    if start is None or start >= until:
        return
    first = start
    while start < until:
        end = min(start + _CHUNK_S, until)
        store.write_usage(cluster, "hour", _usage_of_hours(store, ledger, cluster, start, end))
        start = end
    days = _sums(store, cluster, "hour", rollup.day_of(first), until, rollup.day_of)
    store.write_usage(cluster, "day", days)
    months = _sums(store, cluster, "day", rollup.month_of(first), until, rollup.month_of)
    # how far it goes is noted with the last of it: who is interrupted before begins again
    store.write_usage(cluster, "month", months, until)


def _first_hour(store: Store, cluster: str) -> int | None:
    times = []
    for table in (schema.jobs, schema.events):
        rows = store.find(
            table,
            [table.c.cluster == cluster, table.c.start_time.is_not(None)],
            [table.c.start_time],
            ["start_time"],
        )
        times += [row["start_time"] for row in rows[:1]]
    return rollup.hour_of(min(times)) if times else None


def _usage_of_hours(
    store: Store, ledger: Ledger, cluster: str, start: int, end: int
) -> list[tuple[int, Usage]]:
    jobs, events, reservations = schema.jobs, schema.events, schema.reservations
    came = or_(jobs.c.eligible_time < end, jobs.c.start_time < end)
    found = store.find(
        jobs,
        [jobs.c.cluster == cluster, came, or_(jobs.c.end_time.is_(None), jobs.c.end_time > start)],
        columns=_JOB_COLUMNS,
    )
    times = store.find(events, [events.c.cluster == cluster, *_overlaps(events, start, end)])
    held = store.find(
        reservations, [reservations.c.cluster == cluster, *_overlaps(reservations, start, end)]
    )
    keys = {
        (each.user, each.name): each.id
        for each in ledger.wckeys.values()
        if each.cluster == cluster
    }
    down, capacity = (
        [each for each in times if each["node"]],
        [each for each in times if not each["node"]],
    )
    return rollup.usage_of_hours(start, end, found, down, capacity, keys, held)


def _overlaps(table: Any, start: int, end: int) -> list[Any]:
    return [table.c.start_time < end, or_(table.c.end_time.is_(None), table.c.end_time > start)]


def _sums(
    store: Store, cluster: str, period: str, start: int, end: int, period_of: Any
) -> list[tuple[int, Usage]]:
    """The usage of longer periods from the shorter ones in [start, end)."""
    table = schema.usage
    found: defaultdict[int, defaultdict[tuple[str, int, str], int]] = defaultdict(
        lambda: defaultdict(int)
    )
    for row in store.find(
        table,
        [
            table.c.period == period,
            table.c.cluster == cluster,
            table.c.start_time >= start,
            table.c.start_time < end,
        ],
    ):
        found[period_of(row["start_time"])][row["kind"], row["subject"], row["tres"]] += row[
            "amount"
        ]
    return [(when, dict(usage)) for when, usage in sorted(found.items())]
