"""Words of SchedulerParameters that textbook policies read: one that cannot be read is an error, as
an experiment with the default instead would be another experiment.

Place: scheduling, pure.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST = 2**31 - 1


def whole(
    parameters: Mapping[str, str], key: str, default: int, *, least: int = 0, most: int = _MOST
) -> int:
    """A whole number.

    Raises:
        ConfigError: it is none, or out of the range.
    """
    text = parameters.get(key)
    if text is None:
        return default
    value = int(text) if text.isascii() and text.isdecimal() else -1
    if not least <= value <= most:
        raise ConfigError(
            f"SchedulerParameters {key}={text}: not a whole number from {least} to {most}"
        )
    return value


def fraction(
    parameters: Mapping[str, str], key: str, default: str, part: str | None = None
) -> Fraction:
    """A number from 0 to 2147483647, exactly as it is written: 0.05 is a twentieth. `part`: of
    what is written.

    Raises:
        ConfigError: it is none.
    """
    text = parameters.get(key, default)
    try:
        value = Fraction(text if part is None else part)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if not 0 <= value <= _MOST:
        raise ConfigError(f"SchedulerParameters {key}={text}: not a number from 0 to {_MOST}")
    return value


def switch(parameters: Mapping[str, str], key: str) -> bool:
    """Whether a word is there: alone, or as `KEY=yes` and not `KEY=no`.

    Raises:
        ConfigError: another value.
    """
    text = parameters.get(key)
    if text is None:
        return False
    if text.lower() in ("", "yes", "1"):
        return True
    if text.lower() in ("no", "0"):
        return False
    raise ConfigError(f"SchedulerParameters {key}={text}: yes or no")


def choice(parameters: Mapping[str, str], key: str, default: str, known: Iterable[str]) -> str:
    """One of the known words, in lower case.

    Raises:
        ConfigError: another.
    """
    text = parameters.get(key, default).lower()
    names = list(known)
    if text not in names:
        raise ConfigError(f"SchedulerParameters {key}={text}: there are {', '.join(names)}")
    return text
