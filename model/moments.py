"""Points in time as people write them.

Place: the vocabulary, used by commands and the controller. Nobody's clock is read here: the present
is handed in. Follows sbatch(1) "--begin", checked against 22.05.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

from understudy.model.times import DAY, HOUR, MINUTE

_UNITS: Final = {
    "": 1,
    "second": 1,
    "seconds": 1,
    "minute": MINUTE,
    "minutes": MINUTE,
    "hour": HOUR,
    "hours": HOUR,
    "day": DAY,
    "days": DAY,
    "week": 7 * DAY,
    "weeks": 7 * DAY,
}
_CLOCK_NAMES: Final = {"midnight": 0, "noon": 12 * HOUR, "fika": 15 * HOUR, "teatime": 16 * HOUR}

_NOW = re.compile(r"now\s*(?:([+-])\s*(\d{1,10})\s*([a-z]*))?", re.IGNORECASE | re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(AM|PM)?", re.IGNORECASE | re.ASCII)
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_MONTH_AND_DAY = re.compile(r"(\d{2})(\d{1,2})", re.ASCII)
_SHORT_DATE = re.compile(r"(\d{2})(\d{2})(\d{2})|(\d{1,2})([/.])(\d{1,2})(?:\5(\d{2}))?", re.ASCII)


def parse_time(text: str, now: float) -> int:
    """A point in time in seconds since the epoch; `now` is the present, and the local time zone is
    meant.

    `now`, `now+COUNT[seconds|minutes|hours|days|weeks]`, a time of day (`16:00`, `4:30PM`,
    `midnight`, `noon`, `fika`, `teatime`: the next one to come), a date (`2030-01-20`,
    `2030-01-20T12:34:00`, `012030`, `01/20/30`, `01/20`, `today`, `tomorrow`), a date with a time
    of day in either order, `utsSECONDS`. Between words, and around them, blanks, `T` and `-` are
    the same; of two dates or two times of day the last counts.

    Raises:
        ValueError: anything else.
    """
    text = text.strip()
    present = int(now)
    if match := _NOW.fullmatch(text):
        return present + _offset(match, text)
    if match := re.fullmatch(r"uts(\d{1,12})", text, re.ASCII):
        return int(match[1])
    try:
        return _calendar_time(text, datetime.fromtimestamp(present))  # noqa: DTZ006 - the site's own time zone is what people type
    except (OverflowError, OSError) as error:
        raise _bad_time(text) from error


_WORDS: Final = ("today", "tomorrow", *_CLOCK_NAMES)
_SEPARATORS: Final = " \t\n\r\v\fT-"
# The start of what follows separators: a name, a date whose marks would be separators elsewhere, or
# anything up to the next separator.
_WORD = re.compile(
    rf"(?i:{'|'.join(_WORDS)})|\d{{4}}-\d\d-\d\d|[^{_SEPARATORS}]+(?:\s+(?i:[ap]m))?", re.ASCII
)
_SIGNED = re.compile(r"\s*[+-]\s*", re.ASCII)
_COUNTED = re.compile(
    r"(\d+)\s*(?:seconds?|minutes?|hours?|days?|weeks?|(?=\s|\Z))", re.IGNORECASE | re.ASCII
)


class _Stop(Exception):  # noqa: N818 - not an error: how far a reader came
    """Nothing from this place on is understood."""

    def __init__(self, place: int) -> None:
        self.place = place


def not_understood_from(text: str) -> int:
    """The place in a text that is no time from which Slurm does not understand it."""
    if text == "0":
        return -1
    at = 0
    try:
        while at < len(text):
            if text[at] in _SEPARATORS:
                at += 1
                continue
            at = _word_end(text, at)
    except _Stop as stop:
        return stop.place
    return at


def _word_end(text: str, at: int) -> int:
    lowered = text.lower()
    if lowered.startswith("now", at):
        sign = _SIGNED.match(text, at + 3)
        if sign is None:
            return _end(text, at + 3)
        if not text[sign.end() : sign.end() + 1].isdigit():
            raise _Stop(at + 3)
        counted = _COUNTED.match(text, sign.end())
        if counted is None:
            raise _Stop(sign.end())
        return _end(text, counted.end())
    named = next((word for word in _WORDS if lowered.startswith(word, at)), None)
    if named is not None:
        return _end(text, at + len(named))
    if not text[at].isdigit():
        raise _Stop(at)
    if re.compile(r"\d{4}-\d{2}-\d{2}").match(text, at):
        _in_bounds(text, at + 5, 2, 1, 12)
        _in_bounds(text, at + 8, 2, 1, 31)
        return _end(text, at + 10)
    digits = re.compile(r"\d{1,2}").match(text, at)
    assert digits is not None
    return (
        _clock_end(text, at)
        if text[digits.end() : digits.end() + 1] == ":"
        else _date_end(text, at, digits.end())
    )


def _in_bounds(text: str, at: int, size: int, least: int, most: int) -> int:
    """The place behind a number."""
    for place in range(at, at + size):
        if not text[place : place + 1].isdigit():
            raise _Stop(place)
    if not least <= int(text[at : at + size]) <= most:
        raise _Stop(at)
    return at + size


def _clock_end(text: str, at: int) -> int:
    behind = at + 2 if text[at + 1 : at + 2].isdigit() else at + 1
    _in_bounds(text, at, behind - at, 0, 23)
    if text[behind : behind + 1] != ":":
        raise _Stop(behind)
    end = _in_bounds(text, behind + 1, 2, 0, 59)
    if text[end : end + 1] == ":":
        end = _in_bounds(text, end + 1, 2, 0, 59)
    half = re.compile(r"\s*[ap]m", re.IGNORECASE).match(text, end)
    if half is not None and int(text[at:behind]) <= 12:
        end = half.end()
    return _end(text, end)


def _date_end(text: str, at: int, behind: int) -> int:
    _in_bounds(text, at, behind - at, 1, 12)
    mark = text[behind : behind + 1]
    start = behind + 1 if mark in {"/", "."} else behind
    digits = re.compile(r"\d{1,2}").match(text, start)
    if digits is None:
        raise _Stop(start if mark in {"/", "."} else behind)
    end = _in_bounds(text, start, digits.end() - start, 1, 31)
    if mark in {"/", "."} and text[end : end + 1] == mark:
        return _end(text, _in_bounds(text, end + 1, 2, 0, 99))
    if text[end : end + 1].isdigit():
        end = _in_bounds(text, end, 2, 0, 99)
    return _end(text, end)


def _end(text: str, at: int) -> int:
    """A word ends here."""
    if at < len(text) and text[at] not in _SEPARATORS:
        raise _Stop(at)
    return at


def _bad_time(text: str) -> ValueError:
    return ValueError(f"Invalid time specification: {text[:80]!r}")


def _offset(match: re.Match[str], text: str) -> int:
    sign, count, unit = match.groups()
    if sign is None:
        return 0
    length = _UNITS.get(unit.lower())
    if length is None:
        raise _bad_time(text)
    return int(count) * length * (-1 if sign == "-" else 1)


def _calendar_time(text: str, present: datetime) -> int:
    midnight = present.replace(hour=0, minute=0, second=0, microsecond=0)
    date: datetime | None = None
    clock: int | None = None
    left = text
    while left := left.lstrip(_SEPARATORS):
        match = _WORD.match(left)
        if match is None:
            raise _bad_time(text)
        word, left = match[0].lower(), left[match.end() :]
        if left and left[0] not in _SEPARATORS:
            raise _bad_time(text)
        if (of_day := _time_of_day(word, text)) is not None:
            clock = of_day
        elif iso := _ISO.fullmatch(word):
            date = _date(int(iso[1]), int(iso[2]), int(iso[3]), text)
        else:
            date = _day(word, midnight, text)
    if date is None:
        if clock is None:
            raise _bad_time(text)
        date = midnight
        if midnight + timedelta(seconds=clock) < present:
            date += timedelta(days=1)
    hour, rest = divmod(clock or 0, HOUR)
    return int(date.replace(hour=hour, minute=rest // 60, second=rest % 60).timestamp())


def _time_of_day(word: str, text: str) -> int | None:
    named = _CLOCK_NAMES.get(word)
    if named is not None:
        return named
    match = _CLOCK.fullmatch(word)
    if match is None:
        return None
    hour = int(match[1])
    if match[4]:
        if hour > 12:
            raise _bad_time(text)
        hour = hour % 12 + (12 if match[4].upper() == "PM" else 0)
    return _clock(hour, int(match[2]), int(match[3] or 0), text)


def _clock(hour: int, minute: int, second: int, text: str) -> int:
    if hour > 23 or minute > 59 or second > 59:
        raise _bad_time(text)
    return hour * HOUR + minute * MINUTE + second


def _day(word: str, midnight: datetime, text: str) -> datetime:
    if word == "today":
        return midnight
    if word == "tomorrow":
        return midnight + timedelta(days=1)
    match = _SHORT_DATE.fullmatch(word)
    if match is None and (match := _MONTH_AND_DAY.fullmatch(word)) is not None:
        return _to_come(int(match[1]), int(match[2]), midnight, text)
    if match is None:
        raise _bad_time(text)
    if match[1]:
        return _date(2000 + int(match[3]), int(match[1]), int(match[2]), text)
    month, day = int(match[4]), int(match[6])
    if match[7]:
        return _date(2000 + int(match[7]), month, day, text)
    return _to_come(month, day, midnight, text)


def _to_come(month: int, day: int, midnight: datetime, text: str) -> datetime:
    """The next such day."""
    date = _date(midnight.year, month, day, text)
    return date if date >= midnight else _date(midnight.year + 1, month, day, text)


def _date(year: int, month: int, day: int, text: str) -> datetime:
    """A day; one behind a month's end counts on into the next, as in the C library (30 February is
    2 March).
    """
    if not (1 <= month <= 12 and 1 <= day <= 31 and year >= 1):
        raise _bad_time(text)
    return datetime(year, month, 1) + timedelta(days=day - 1)  # noqa: DTZ001 - local time, see parse_time
