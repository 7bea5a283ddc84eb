"""Licences that slurm.conf counts: `Licenses=fluent:30,matlab`.

Place: the vocabulary. Follows: slurm.conf(5) Licenses, and what 22.05.8 makes of odd values.
"""

from __future__ import annotations

from typing import Final

_MOST: Final = 1 << 32  # a count is an unsigned number of so many values


def configured_licenses(text: str) -> dict[str, int]:
    """Names and counts. One without a count is one licence; of a name that is given twice the
    counts are added.

    Raises:
        ValueError: a count is no number.
    """
    found: dict[str, int] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, colon, count = word.partition(":")
        if count and not (count.isascii() and count.isdecimal()):
            raise ValueError(f"Invalid configured licenses: {text}")
        found[name] = found.get(name, 0) + (int(count or 0) % _MOST if colon else 1)
    return found
