"""Raw column values to the texts that Slurm's commands print: durations, times, sizes.

Place: commands alone; no state but SLURM_TIME_FORMAT. Follows squeue(1), sinfo(1) and scontrol(1)
of 22.05.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MEGABYTE_UNITS = "MGTPE"
_ONE_UNITS = " KMGTPE"
_checked_format = ""  # what has been complained of


def duration(seconds: int) -> str:
    """As squeue and sinfo print: `0:05`, `30:00`, `1:00:00`, `2-00:00:00`."""
    minutes, second = divmod(max(int(seconds), 0), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}-{hour:02}:{minute:02}:{second:02}"
    if hours:
        return f"{hour}:{minute:02}:{second:02}"
    return f"{minute}:{second:02}"


def full_duration(seconds: int) -> str:
    """As scontrol prints: `00:00:05`, `2-00:00:00`."""
    minutes, second = divmod(max(int(seconds), 0), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (
        f"{days}-{hour:02}:{minute:02}:{second:02}"
        if days
        else f"{hour:02}:{minute:02}:{second:02}"
    )


def limit(seconds: int | None, unlimited: str = "UNLIMITED") -> str:
    """A time limit as squeue and sinfo print it."""
    return unlimited if seconds is None else duration(seconds)


def full_limit(seconds: int | None, unlimited: str = "UNLIMITED") -> str:
    """A time limit as scontrol prints it."""
    return unlimited if seconds is None else full_duration(seconds)


def timestamp(when: float | None, unknown: str = "N/A") -> str:
    """A point in time, in the local zone, as SLURM_TIME_FORMAT says."""
    if when is None:
        return unknown
    moment = time.localtime(when)
    wanted = _time_format()
    if wanted in {"", "standard"}:
        year, month, day, hour, minute, second = moment[:6]
        return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
    if wanted == "relative":
        return _relative(moment)
    return time.strftime(wanted, moment)


def _time_format() -> str:
    global _checked_format
    wanted = os.environ.get("SLURM_TIME_FORMAT", "standard")
    if "%" in wanted or wanted in {"", "standard", "relative"}:
        return wanted
    if _checked_format != wanted:
        sys.stderr.write(
            f"{os.path.basename(sys.argv[0])}: error: invalid SLURM_TIME_FORMAT = '{wanted}'\n"
        )
        _checked_format = wanted
    return "standard"


def _relative(moment: time.struct_time) -> str:
    today = time.localtime()
    if moment.tm_year != today.tm_year:
        return f"{moment.tm_mday} {time.strftime('%b %Y', moment)}"
    distance = moment.tm_yday - today.tm_yday
    if distance == 0:
        return time.strftime("%H:%M:%S", moment)
    clock = time.strftime("%H:%M", moment)
    if distance == -1:
        return f"Ystday {clock}"
    if distance == 1:
        return f"Tomorr {clock}"
    if 1 < distance < 7:
        return f"{time.strftime('%a', moment)} {clock}"
    return f"{moment.tm_mday} {time.strftime('%b', moment)} {clock}"


def last_of_each(words: "Iterable[str]") -> list[str]:
    """Each word once, where it stands last: so formats are read that are lists of words."""
    found: dict[str, None] = {}
    for word in words:
        found.pop(word, None)
        found[word] = None
    return list(found)


def date_line(now: float) -> str:
    """The line above long listings, `Sat Nov 07 09:29:16 2026`."""
    return time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(now))


_convert = True


def convert_units(*, convert: bool) -> None:
    """Whether `megabytes` and `thousands` go to larger units (--noconvert: not)."""
    global _convert
    _convert = convert


_EXACT = 1 << 24


def megabytes(amount: int) -> str:
    """A size: `0`, `500M`, `4000M`, `4G`, `1.50G`. It goes to a larger unit only where a whole
    number of halves results.
    """
    if amount > _EXACT:  # Slurm has it as a number of 24 bits and an exponent
        import struct

        amount = int(struct.unpack("f", struct.pack("f", amount))[0])
    return "0" if amount == 0 else _in_units(amount, _MEGABYTE_UNITS)


def thousands(amount: int) -> str:
    """A count, plain or in units of 1024 where it divides (`4K`)."""
    return _in_units(amount, _ONE_UNITS).rstrip()


def _in_units(amount: int, units: str) -> str:
    size, unit = amount, 0
    while _convert and size >= 1024 and size % 512 == 0 and unit + 1 < len(units):
        if size % 1024:
            return f"{size / 1024:.2f}{units[unit + 1]}"
        size //= 1024
        unit += 1
    return f"{size}{units[unit]}"


def or_null(text: str) -> str:
    """The text, or Slurm's word for none."""
    return text or "(null)"


def or_na(text: str) -> str:
    return text or "N/A"


def joined(values: "Iterable[str] | None", everything: str = "ALL") -> str:
    """A list, where None stands for everything."""
    return everything if values is None else ",".join(values)
