"""What the values of slurm.conf's keys mean: numbers, times, yes and no, log levels; refused with
Slurm's words.

Place: used by understudy.model.conf and its parts. Follows 22.05.8's answers to good and bad
values.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from understudy.model import times
from understudy.model.conf_keys import Kind
from understudy.model.debug_flags import LEVELS

if TYPE_CHECKING:
    from understudy.model.conf_keys import Key

_NUMBER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]{1,15}|[0-9]{1,18})([kKmM]?)", re.ASCII)
_YES: Final = frozenset({"yes", "up", "true", "1"})
_NO: Final = frozenset({"no", "down", "false", "0"})
_UNLIMITED: Final = frozenset({"unlimited", "infinite"})
# Those that count minutes where all others count seconds.
_IN_MINUTES: Final = frozenset({"overtimelimit", "resvoverrun"})


def number(
    name: str, text: str, largest: int = (1 << 64) - 1, *, suffixes: bool = True
) -> int | None:
    """A number, None for UNLIMITED or INFINITE.

    Raises:
        ValueError: in Slurm's words.
    """
    if text.lower() in _UNLIMITED:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None or (match[3] and not suffixes):
        raise ValueError(f'{name} value "{text}" is not a valid number')
    value = (
        int(match[2], 16 if match[2][:2] in ("0x", "0X") else 10)
        * {"": 1, "k": 1024, "m": 1024 * 1024}[match[3].lower()]
    )
    if match[1] == "-" and value:
        raise ValueError(f"{name} value ({text}) is less than zero")
    if value > largest:
        raise ValueError(f"{name} value ({text}) is greater than {largest}")
    return value


def check_decimal(name: str, text: str) -> None:
    """See that it is a number, with a fraction or without, or UNLIMITED or INFINITE.

    Raises:
        ValueError: in Slurm's words.
    """
    if text.lower() in _UNLIMITED:
        return
    try:
        float(text)
    except ValueError:
        raise ValueError(f"{name} value ({text}) is not a valid number") from None


def boolean(name: str, text: str) -> bool:
    """Yes, up, true, 1 or their opposites.

    Raises:
        ValueError: in Slurm's words.
    """
    word = text.lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise ValueError(f'"{text}" is not a valid option for "{name}"')


def limit(name: str, text: str) -> int | None:
    """A time limit in seconds, None for UNLIMITED.

    Raises:
        ValueError: in Slurm's words.
    """
    try:
        return times.parse_limit(text)
    except ValueError as error:
        raise ValueError(f'Bad value "{text}" for {name}') from error


def level(name: str, text: str) -> str:
    """A log level's name, also from its number.

    Raises:
        ValueError: in Slurm's words.
    """
    word = text.lower()
    if word in LEVELS:
        return word
    if word.isascii() and word.isdigit() and len(word) < 4:
        return LEVELS[min(int(word), len(LEVELS) - 1)]
    raise ValueError(f"Invalid {name} {text}")


def part_limits(text: str) -> str:
    """EnforcePartLimits as NO, ANY or ALL: a plain yes is ANY.

    Raises:
        ValueError: in Slurm's words.
    """
    word = text.lower()
    if word in _YES or word == "any":
        return "ANY"
    if word in _NO:
        return "NO"
    if word == "all":
        return "ALL"
    raise ValueError(f"Bad EnforcePartLimits: {text}")


def ports(name: str, text: str) -> tuple[int, int]:
    """The first and last port of `6817` or `6817-6820`.

    Raises:
        ValueError: in Slurm's words.
    """
    match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", text, re.ASCII)
    if match:
        first, last = int(match[1]), int(match[2] or match[1])
        if 0 < first <= last < 65536:
            return first, last
    raise ValueError(f"Invalid {name} {text}")


def value_of(key: Key, text: str) -> int | bool | str | tuple[int, int] | None:
    """A value as its kind says; None where there is no limit.

    Raises:
        ValueError: in Slurm's words.
    """
    match key.kind:
        case Kind.SHORT:
            return number(key.name, text, 65535, suffixes=False)
        case Kind.DECIMAL:
            check_decimal(key.name, text)
            return text
        case Kind.LONG:
            return number(key.name, text)
        case Kind.BOOLEAN:
            return boolean(key.name, text)
        case Kind.MINUTES | Kind.DURATION:
            return limit(key.name, text)
        case Kind.LEVEL:
            return level(key.name, text)
        case Kind.PORTS:
            return ports(key.name, text)
        case Kind.PART_LIMITS:
            return part_limits(text)
        case Kind.SECONDS_OR_NONE:
            try:
                return number(key.name, text)
            except ValueError:
                return None
        case Kind.TEXT:
            return text


def seconds_of(key: Key, text: str) -> int | None:
    """A value that is a time, in seconds; None where there is no limit.

    Raises:
        ValueError: not a time.
    """
    value = value_of(key, text)
    if key.kind is Kind.TEXT or isinstance(value, (str, tuple)):
        raise ValueError(f"{key.name} is not a time")
    return value * 60 if value is not None and key.name.lower() in _IN_MINUTES else value


def shown_preempt_mode(text: str) -> str:
    """PreemptMode as scontrol shows it: in capitals, GANG first."""
    words = [word.strip().upper() for word in text.split(",") if word.strip()]
    return ",".join(sorted(words, key=lambda word: word != "GANG"))
