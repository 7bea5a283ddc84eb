"""A quality of service: what a job of it gains, whom it may preempt, and the limits that hold for
it.

Place: the vocabulary that the accounting daemon keeps and the controller enforces. None as a limit:
there is none. Walls are in minutes as sacctmgr takes them, other times in seconds. Follows
sacctmgr(1), SPECIFICATIONS FOR QOS.
"""

from __future__ import annotations

from typing import Final

import msgspec

FLAGS: Final = (  # in the order in which sacctmgr lists them
    "DenyOnLimit",
    "EnforceUsageThreshold",
    "NoReserve",
    "PartitionMaxNodes",
    "PartitionMinNodes",
    "OverPartQOS",
    "PartitionTimeLimit",
    "RequiresReservation",
    "NoDecay",
    "UsageFactorSafe",
)
DEFAULT_NAME: Final = "normal"


class Qos(msgspec.Struct, frozen=True, array_like=True):
    """One quality of service."""

    id: int
    name: str
    description: str = ""
    priority: int = 0
    flags: tuple[str, ...] = ()
    grace_time_s: int = 0
    preempt: tuple[str, ...] = ()  # names of those that it may preempt
    # cluster: as the cluster's PreemptMode says; cancel, requeue, suspend ...
    preempt_mode: str = "cluster"
    preempt_exempt_time_s: int | None = None
    usage_factor: float = 1.0
    usage_threshold: float | None = None
    limit_factor: float | None = None
    grp_jobs: int | None = None
    grp_jobs_accrue: int | None = None
    grp_submit_jobs: int | None = None
    grp_wall: int | None = None
    grp_tres: dict[str, int] = {}
    grp_tres_mins: dict[str, int] = {}
    grp_tres_run_mins: dict[str, int] = {}
    max_jobs_per_account: int | None = None
    max_jobs_per_user: int | None = None
    max_jobs_accrue_per_account: int | None = None
    max_jobs_accrue_per_user: int | None = None
    max_submit_jobs_per_account: int | None = None
    max_submit_jobs_per_user: int | None = None
    max_tres_per_job: dict[str, int] = {}
    max_tres_per_node: dict[str, int] = {}
    max_tres_per_account: dict[str, int] = {}
    max_tres_per_user: dict[str, int] = {}
    max_tres_mins_per_job: dict[str, int] = {}
    max_wall: int | None = None
    min_prio_threshold: int | None = None
    min_tres_per_job: dict[str, int] = {}
    creation_time: int = 0
    mod_time: int = 0

    def has(self, flag: str) -> bool:
        """Whether the flag of this name, as in `FLAGS`, is set."""
        return flag in self.flags
