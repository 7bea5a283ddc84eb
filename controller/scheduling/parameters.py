"""Numbers out of SchedulerParameters.

Place: scheduling, pure. Read as C reads numbers: the digits at the beginning count, and what begins with none is 0. A value outside its range
counts as not given, as it does for Slurm (which says so in its log).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.model.scheduler_parameters import leading_number

if TYPE_CHECKING:
    from understudy.controller.scheduling.api import PolicyParameters


def number(parameters: PolicyParameters, key: str, default: int, *, least: int = 0, most: int = 2**63) -> int:
    """The parameter's value if it is in the range, else the default."""
    text = parameters.get(key, "")
    if not text:  # a bare word
        return default
    value = leading_number(text)
    return value if least <= value <= most else default
