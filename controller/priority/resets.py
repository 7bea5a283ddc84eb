"""PriorityUsageResetPeriod: when all use is forgotten.

Place: priority, pure. Follows: slurm.conf(5). Resets are at midnight of the
controller's time zone.
"""

from __future__ import annotations

from datetime import datetime, timedelta


def next_reset(period: str, now: float) -> int | None:
    """The first reset after `now`; None if there is none. NOW is one at the start and whenever
    slurm.conf is read again: not for here.
    """
    local = datetime.fromtimestamp(now).astimezone()
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    if period == "DAILY":
        when = midnight + timedelta(days=1)
    elif period == "WEEKLY":  # Sunday
        when = midnight + timedelta(days=7 - (midnight.weekday() + 1) % 7)
    elif period == "MONTHLY":
        when = _month(midnight, midnight.month + 1)
    elif period == "QUARTERLY":
        when = _month(midnight, (midnight.month - 1) // 3 * 3 + 4)
    elif period == "YEARLY":
        when = _month(midnight, 13)
    else:
        return None
    return int(when.astimezone().timestamp())


def _month(day: datetime, month: int) -> datetime:
    """The first day of that month; 13 is January of the next year."""
    return datetime(day.year + (month - 1) // 12, (month - 1) % 12 + 1, 1)  # noqa: DTZ001 - local time, as administrators think
