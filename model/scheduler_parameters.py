"""SchedulerParameters whose values Slurm does not take: what its log says of them, and then it goes
on with the default.

Place: the vocabulary; read by understudy.model.conf, so that `understudy conf check` and the
controller's log name them. Follows: slurm.conf(5) SchedulerParameters; ranges and texts as
slurmctld 22.05.8 logs them. What is no number counts as 0, as C reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.model.times import leading_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST: Final = 2**31 - 1
_BACKFILL: Final = "Invalid SchedulerParameters {key}: {value}"
_PLAIN: Final = "Invalid {key}: {value}"
_IGNORED: Final = "ignoring SchedulerParameters: {key} value of {value}"


class Range(NamedTuple):
    """What is taken."""

    least: int
    most: int = _MOST
    text: str = _BACKFILL
    but: frozenset[int] = frozenset()  # of these none


RANGES: Final[dict[str, Range]] = {
    "bf_interval": Range(-1, 10_800, but=frozenset((0,))),
    "bf_max_time": Range(1, 3600),
    "bf_window": Range(1, 43_200),
    "bf_max_job_test": Range(1, 1_000_000),
    "bf_max_job_start": Range(0, 10_000),
    "bf_max_job_array_resv": Range(0, 1000),
    "bf_max_job_assoc": Range(0),
    "bf_max_job_part": Range(0),
    "bf_max_job_user": Range(0),
    "bf_max_job_user_part": Range(0),
    "bf_min_age_reserve": Range(0, 2_592_000),
    "bf_min_prio_reserve": Range(1),
    "bf_node_space_size": Range(2, 2_000_000),
    "bf_resolution": Range(1, 3600),
    "bf_yield_interval": Range(1, 10_000_000, "Invalid backfill scheduler {key}: {value}"),
    "max_rpc_cnt": Range(0, 1000),
    "batch_sched_delay": Range(0, text=_PLAIN),
    "default_queue_depth": Range(0, text=_IGNORED),
    "partition_job_depth": Range(0, text=_IGNORED),
    "sched_max_job_start": Range(0, text=_PLAIN),
    "sched_min_interval": Range(0, text=_PLAIN),
}


def number(
    parameters: Mapping[str, str], key: str, default: int, *, least: int = 0, most: int = 2**63
) -> int:
    """The parameter's value if it is in the range, else the default."""
    text = parameters.get(key, "")
    if not text:  # a bare word
        return default
    value = leading_number(text)
    return value if least <= value <= most else default


def backfill_interval_s(parameters: Mapping[str, str]) -> int:
    """bf_interval, 30 for a value that is not taken; -1: backfill never runs."""
    return number(parameters, "bf_interval", 0, least=-1, most=10_800) or 30


def complaints(text: str) -> Iterator[str]:
    """What is wrong with the words of SchedulerParameters, in their order."""
    for word in text.split(","):
        key, has_value, value = word.strip().lstrip("=").partition("=")
        allowed = RANGES.get(key.lower())
        if allowed is None or not has_value:
            continue
        number = leading_number(value)
        if not allowed.least <= number <= allowed.most or number in allowed.but:
            yield allowed.text.format(key=key.lower(), value=number)
