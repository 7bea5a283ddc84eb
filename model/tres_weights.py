"""Weights of trackable resources: `CPU=1.0,Mem=0.25G,GRES/gpu=2.0`, as in TRESBillingWeights and
PriorityWeightTRES.

Place: the vocabulary; pure. Follows slurm.conf(5) TRESBillingWeights and 22.05.8's answers to good
and bad words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from understudy.model.tres import TresError, is_in_megabytes

if TYPE_CHECKING:
    from collections.abc import Container

_UNITS: Final = "KMGTP"
# as C reads a floating number: what can be read of the beginning, else 0
_NUMBER: Final = re.compile(r"\s*[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


def read_weights(text: str, known: Container[str] | None = None) -> dict[str, float]:
    """What one of each resource weighs, by name in lower case: one MB where memory is meant.
    `known`: the resources that there are, in lower case; None: whatever is named.

    Raises:
        TresError: in Slurm's words.
    """
    found: dict[str, float] = {}
    for word in text.split(","):
        if not word:
            continue
        name, _, value = word.partition("=")
        if not name or not value:
            raise TresError(f'"{word.rstrip("=")}" is an invalid TRES weight entry')
        key = name.lower()
        if known is not None and key not in known:
            shown = name.replace("/", ":", 1)
            raise TresError(f"TRES weight '{shown}' is not a configured TRES type.")
        match = _NUMBER.match(value)
        digits = match[0] if match else ""
        unit = value[len(digits) : len(digits) + 1]
        if unit and unit.upper() not in _UNITS:
            raise TresError(f"Invalid unit type '{unit}'. Possible options are '{_UNITS}'")
        found[key] = _float(digits) / _factor(key, unit.upper())
    return found


def _float(digits: str) -> float:
    if "x" in digits.lower():
        return float(int(digits, 16))
    return float(digits or 0)


def _factor(name: str, unit: str) -> float:
    """By how much a weight with the unit is more than one of a single one."""
    if not unit:
        return 1.0
    factor = 1024.0 ** (_UNITS.index(unit) + 1)
    is_memory = is_in_megabytes(name) or name == "fs/disk"
    return factor / 1024.0**2 if is_memory else factor
