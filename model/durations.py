"""Lengths of time as options of `understudy` take them: `90`, `30d`, `1d12h`.

Place: the vocabulary. Slurm's own forms of times are in times.py.
"""

from __future__ import annotations

import re
from typing import Final

_UNIT_S: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def duration_s(text: str) -> float | None:
    """Seconds of `90`, `30d`, `1d12h`, `5m`; None if it is not a duration."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if not re.fullmatch(r"(\d+(\.\d+)?(s|min|m|h|d|w))+", text):
        return None
    return sum(
        float(number) * _UNIT_S[unit]
        for number, unit in re.findall(r"(\d+(?:\.\d+)?)(s|min|m|h|d|w)", text)
    )
