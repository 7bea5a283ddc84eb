"""Times at which cron entries recur: five fields or a name such as @hourly, and the next minute
that matches.

Place: the vocabulary; pure, and light enough for commands. Follows: scrontab(1), crontab(5). Times
are those of the local zone.
"""

import time
from typing import Final

NAMED: Final[dict[str, str]] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
    "@elevenses": "0 11 * * *",
    "@fika": "0 15 * * *",
    "@teatime": "0 16 * * *",
}
_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# name in messages, least, most, names of values
FIELDS: Final = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 7, _DAYS),
)
# after that the calendar begins again: what does not match until then never will
_YEARS: Final = 28


class CronError(ValueError):
    """A field that says no time; the text names it."""


class CronTime:
    """When an entry recurs."""

    __slots__ = ("any_day", "any_weekday", "days", "hours", "minutes", "months", "text", "weekdays")

    def __init__(self, text: str) -> None:
        """Read five fields, or a name.

        Raises:
            CronError: as it says.
        """
        self.text = text
        words = NAMED.get(text.lower(), text).split()
        if len(words) != len(FIELDS):
            raise CronError("bad time specification" if text.startswith("@") else "missing field")
        self.minutes, self.hours, self.days, self.months, weekdays = (
            _read(word, *field) for word, field in zip(words, FIELDS, strict=True)
        )
        self.weekdays = frozenset(day % 7 for day in weekdays)
        self.any_day, self.any_weekday = words[2].startswith("*"), words[4].startswith("*")

    def is_on(self, day: time.struct_time) -> bool:
        """Whether it recurs on that day. Where both kinds of days are restricted, either
        suffices.
        """
        if day.tm_mon not in self.months:
            return False
        by_date, by_weekday = day.tm_mday in self.days, (day.tm_wday + 1) % 7 in self.weekdays
        return (
            by_date or by_weekday
            if not (self.any_day or self.any_weekday)
            else by_date and by_weekday
        )

    def after(self, now: float) -> int | None:
        """The first matching minute that begins after `now`; None: none does."""
        moment = time.localtime(int(now) // 60 * 60 + 60)
        year, month, day, first_hour, first_minute = moment[:5]
        for distance in range(366 * _YEARS):
            today = time.localtime(time.mktime((year, month, day + distance, 12, 0, 0, 0, 0, -1)))
            if not self.is_on(today):
                continue
            for hour in range(first_hour if not distance else 0, 24):
                if hour not in self.hours:
                    continue
                for minute in range(first_minute if not distance and hour == first_hour else 0, 60):
                    if minute in self.minutes:
                        found = int(
                            time.mktime(
                                (
                                    today.tm_year,
                                    today.tm_mon,
                                    today.tm_mday,
                                    hour,
                                    minute,
                                    0,
                                    0,
                                    0,
                                    -1,
                                )
                            )
                        )
                        if found > now:
                            return found
        return None


def _read(text: str, name: str, least: int, most: int, names: "tuple[str, ...]") -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step_text = part.partition("/")
        step = 1
        if slash:
            if not step_text.isdecimal() or not int(step_text):
                raise CronError(f"bad {name}")
            step = int(step_text)
        if span == "*":
            first, last = least, most
        else:
            low, dash, high = span.partition("-")
            first = _value(low, name, least, most, names)
            last = _value(high, name, least, most, names) if dash else (most if slash else first)
            if last < first:
                raise CronError(f"bad {name}")
        values.update(range(first, last + 1, step))
    return frozenset(values)


def _value(text: str, name: str, least: int, most: int, names: "tuple[str, ...]") -> int:
    if text.lower()[:3] in names and text.isalpha():
        return names.index(text.lower()[:3]) + (1 if names is _MONTHS else 0)
    if not text.isdecimal() or not least <= int(text) <= most:
        raise CronError(f"bad {name}")
    return int(text)
