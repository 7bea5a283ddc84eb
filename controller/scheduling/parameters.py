"""Numbers out of SchedulerParameters.

Place: scheduling, pure. A value that is not a number, or is outside its range, counts as not given, as it does for Slurm (which says so in its log).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.controller.scheduling.api import PolicyParameters


def number(parameters: PolicyParameters, key: str, default: int, *, least: int = 0, most: int = 2**63) -> int:
    """The parameter's value if it is a number in the range, else the default."""
    try:
        value = int(parameters[key])
    except (KeyError, ValueError):
        return default
    return value if least <= value <= most else default
