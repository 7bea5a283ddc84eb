"""Slurm's ways to write times, durations, memory sizes and signals.

Place: the vocabulary, used by commands, the controller and the reader of slurm.conf; imports nothing heavy. Nobody's clock is read here: the present
is handed in. Follows sbatch(1) "--time", "--begin", "--mem", "--signal" and scontrol(1) SLURM_TIME_FORMAT, checked against 22.05.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86400
WEEK: Final = 7 * DAY

_UNLIMITED: Final = frozenset({"unlimited", "infinite", "-1"})


# --- durations -------------------------------------------------------------------------------------------------------------------

_DURATION = re.compile(
    r"""(?:
        (?P<days>\d{1,9})-(?:(?P<day_hours>\d{1,9})(?::(?P<day_minutes>\d{1,9})(?::(?P<day_seconds>\d{1,9}))?)?)?
      | (?:(?P<hours>\d{1,9}):)?(?P<minutes>\d{1,9}):(?P<seconds>\d{1,9})
      | (?P<only_minutes>\d{1,9})
    )""",
    re.VERBOSE | re.ASCII,
)


def parse_limit(text: str) -> int | None:
    """A time limit in seconds; None for UNLIMITED, INFINITE and -1.

    "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours", "days-hours:minutes", "days-hours:minutes:seconds". Each part may be larger
    than a clock shows. Nothing is rounded; sbatch rounds up to minutes, see `whole_minutes`.

    Raises:
        ValueError: anything else.
    """
    text = text.strip()
    if text.lower() in _UNLIMITED:
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"Invalid time limit specification: {text[:80]!r}")
    part = {name: int(digits) for name, digits in match.groupdict(default="0").items()}
    return (
        part["days"] * DAY
        + (part["day_hours"] + part["hours"]) * HOUR
        + (part["day_minutes"] + part["minutes"] + part["only_minutes"]) * MINUTE
        + part["day_seconds"]
        + part["seconds"]
    )


def whole_minutes(seconds: int) -> int:
    """Seconds rounded up to whole minutes, as sbatch takes a limit."""
    return -(-seconds // MINUTE) * MINUTE


def format_elapsed(seconds: int | None) -> str:
    """As squeue and sinfo print a duration: `M:SS`, `H:MM:SS`, `D-HH:MM:SS`; UNLIMITED for None, INVALID for what is negative."""
    if seconds is None:
        return "UNLIMITED"
    if seconds < 0:
        return "INVALID"
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    if not hours:
        return f"{minute}:{second:02d}"
    days, hour = divmod(hours, 24)
    if not days:
        return f"{hour}:{minute:02d}:{second:02d}"
    return f"{days}-{hour:02d}:{minute:02d}:{second:02d}"


def format_duration(seconds: int | None) -> str:
    """As scontrol and sacct print a duration: `HH:MM:SS`, `D-HH:MM:SS`; UNLIMITED for None, INVALID for what is negative."""
    if seconds is None:
        return "UNLIMITED"
    if seconds < 0:
        return "INVALID"
    days, rest = divmod(seconds, DAY)
    clock = f"{rest // HOUR:02d}:{rest // MINUTE % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


# --- points in time --------------------------------------------------------------------------------------------------------------

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
    "week": WEEK,
    "weeks": WEEK,
}
_CLOCK_NAMES: Final = {"midnight": 0, "noon": 12 * HOUR, "fika": 15 * HOUR, "teatime": 16 * HOUR}

_NOW = re.compile(r"now\s*(?:([+-])\s*(\d{1,10})\s*([a-z]*))?", re.IGNORECASE | re.ASCII)
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(AM|PM)?", re.IGNORECASE | re.ASCII)
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?:T(?:(\d{1,2}):(\d{2})(?::(\d{2}))?)?)?", re.ASCII)
_SHORT_DATE = re.compile(r"(\d{2})(\d{2})(\d{2})|(\d{1,2})([/.])(\d{1,2})(?:\5(\d{2}))?", re.ASCII)


def parse_time(text: str, now: float) -> int:
    """A point in time in seconds since the epoch; `now` is the present, and the local time zone is meant.

    `now`, `now+COUNT[seconds|minutes|hours|days|weeks]`, a time of day (`16:00`, `4:30PM`, `midnight`, `noon`, `fika`, `teatime`: the next one to
    come), a date (`2030-01-20`, `2030-01-20T12:34:00`, `012030`, `01/20/30`, `01/20`, `today`, `tomorrow`), a date with a time of day in either
    order, `utsSECONDS`.

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


# What Slurm's reader takes before it gives up.
_TAKEN = re.compile(
    r"now\s*[+-]\s*|now|today|tomorrow|midnight|noon|fika|teatime|\d{4}-(?=\d\d-)|\d{1,2}[/.]\d{1,2}[/.]\d\d|\d{1,2}(?=[^:\d]|\d\d|\Z)",
    re.IGNORECASE | re.ASCII,
)


def not_understood_from(text: str) -> int:
    """The place in a text that is no time from which Slurm does not understand it."""
    match = _TAKEN.match(text)
    return match.end() if match else 0


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
    for word in re.findall(r"\S+(?:\s+[AaPp][Mm])?", text):
        if (match := _ISO.fullmatch(word)) and date is None:
            date = _date(int(match[1]), int(match[2]), int(match[3]), text)
            if match[4] is not None:
                if clock is not None:
                    raise _bad_time(text)
                clock = _clock(int(match[4]), int(match[5]), int(match[6] or 0), text)
        elif (of_day := _time_of_day(word, text)) is not None and clock is None:
            clock = of_day
        elif date is None:
            date = _day(word, midnight, text)
        else:
            raise _bad_time(text)
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
        if not 1 <= hour <= 12:
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
    if match is None:
        raise _bad_time(text)
    if match[1]:
        return _date(2000 + int(match[3]), int(match[1]), int(match[2]), text)
    month, day = int(match[4]), int(match[6])
    if match[7]:
        return _date(2000 + int(match[7]), month, day, text)
    date = _date(midnight.year, month, day, text)
    return date if date >= midnight else _date(midnight.year + 1, month, day, text)


def _date(year: int, month: int, day: int, text: str) -> datetime:
    """A day; one behind a month's end counts on into the next, as in the C library (30 February is 2 March)."""
    if not (1 <= month <= 12 and 1 <= day <= 31 and year >= 1):
        raise _bad_time(text)
    return datetime(year, month, 1) + timedelta(days=day - 1)  # noqa: DTZ001 - local time, see parse_time


def format_time(when: int | None, style: str = "standard", *, now: float = 0.0, unknown: str = "Unknown") -> str:
    """A point in time for a reader, in local time.

    style: SLURM_TIME_FORMAT, that is "standard" (`2030-01-20T12:34:00`), "relative" (to `now`), or a format of strftime(3).
    unknown: what stands for None.
    """
    if when is None:
        return unknown
    moment = datetime.fromtimestamp(when)  # noqa: DTZ006 - local time, see parse_time
    if not style or style == "standard":
        return moment.isoformat(timespec="seconds")
    return moment.strftime(_relative(moment, datetime.fromtimestamp(int(now))) if style == "relative" else style)  # noqa: DTZ006


def _relative(moment: datetime, present: datetime) -> str:
    days = moment.toordinal() - present.toordinal()
    if days == 0:
        return "%H:%M:%S"
    if days == -1:
        return "Ystday %H:%M"
    if days == 1:
        return "Tomorr %H:%M"
    if moment.year != present.year:
        return "%-d %b %Y"
    return "%a %H:%M" if 1 < days < 7 else "%-d %b %H:%M"


# --- memory ----------------------------------------------------------------------------------------------------------------------

_MEMORY = re.compile(r"(\d{1,15})\s*([KMGT]?)B?", re.IGNORECASE | re.ASCII)


def parse_memory(text: str) -> int:
    """A memory size in MB: `4G`, `4GB`, `1024` (MB), `100K` (rounded up to 1), `2T`.

    Raises:
        ValueError: anything else, fractions and negative numbers included.
    """
    match = _MEMORY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"Invalid memory specification: {text[:80]!r}")
    size = int(match[1])
    unit = match[2].upper()
    if unit == "K":
        return -(-size // 1024)
    return size * {"": 1, "M": 1, "G": 1024, "T": 1024 * 1024}[unit]


def format_memory(megabytes: int) -> str:
    """As squeue and scontrol print a job's memory: the largest unit that divides it (`4G`, `100M`, `1500M`)."""
    if megabytes == 0:
        return "0"
    for unit in ("M", "G", "T"):
        if megabytes % 1024:
            return f"{megabytes}{unit}"
        megabytes //= 1024
    return f"{megabytes}P"


# --- signals ---------------------------------------------------------------------------------------------------------------------

# Those that Slurm's commands know by name; others are given by number.
SIGNALS: Final[dict[str, int]] = {
    "HUP": 1,
    "INT": 2,
    "QUIT": 3,
    "ABRT": 6,
    "KILL": 9,
    "USR1": 10,
    "USR2": 12,
    "ALRM": 14,
    "TERM": 15,
    "CONT": 18,
    "STOP": 19,
    "TSTP": 20,
    "TTIN": 21,
    "TTOU": 22,
    "URG": 23,
    "XCPU": 24,
}
_SIGNAL_NAMES: Final = {number: name for name, number in SIGNALS.items()}


def parse_signal(text: str) -> int:
    """A signal's number from `9`, `USR1`, `SIGUSR1`, in any case.

    Raises:
        ValueError: not a signal.
    """
    word = text.strip().upper()
    if re.fullmatch(r"\d{1,5}", word, re.ASCII):
        number = int(word)
        if number:
            return number
    number_of_name = SIGNALS.get(word.removeprefix("SIG"))
    if number_of_name is None:
        raise ValueError(f"Invalid signal: {text[:80]!r}")
    return number_of_name


def signal_name(number: int) -> str:
    """`USR1` for 10; the number as text where there is no name."""
    return _SIGNAL_NAMES.get(number, str(number))


def parse_signal_option(text: str) -> tuple[int, int, bool, bool]:
    """The option --signal=[{R|B}:]SIGNAL[@SECONDS] as (signal, seconds before the limit: 60 if not said, batch shell only, for reservations).

    Raises:
        ValueError: not of this form.
    """
    options, colon, rest = text.strip().rpartition(":")
    letters = options.upper()
    if colon and (not letters or set(letters) - {"B", "R"}):
        raise ValueError(f"Invalid signal specification: {text[:80]!r}")
    name, at, seconds = rest.partition("@")
    if at and not re.fullmatch(r"\d{1,5}", seconds, re.ASCII):
        raise ValueError(f"Invalid signal specification: {text[:80]!r}")
    before = int(seconds) if at else 60
    if before > 65535:
        raise ValueError(f"Invalid signal specification: {text[:80]!r}")
    return parse_signal(name), before, "B" in letters, "R" in letters
