"""Slurm's names for the limits that keep a job waiting, or out.

Place: enforcement, pure. Follows: squeue(1) JOB REASON CODES; the names are as irregular
as Slurm's.
"""

from __future__ import annotations

from functools import cache
from typing import Final

ASSOCIATION, QOS = "Assoc", "QOS"  # whose limit it is
INVALID_ACCOUNT: Final = "InvalidAccount"
INVALID_QOS: Final = "InvalidQOS"
_KINDS: Final = {
    "cpu": "Cpu",
    "mem": "Mem",
    "node": "Node",
    "energy": "Energy",
    "billing": "Billing",
    "gres": "GRES",
    "license": "License",
    "bb": "BB",
}
# Form of limit -> what stands before and behind the resource; those of the second line have it in a
# form of their own for some resources.
_AROUND: Final = {
    "grp": ("Grp", ""),
    "grp_mins": ("Grp", "Minutes"),
    "grp_run_mins": ("Grp", "RunMinutes"),
    "per_job": ("Max", "PerJob"),
    "per_node": ("Max", "PerNode"),
    "mins_per_job": ("Max", "MinutesPerJob"),
    "per_user": ("Max", "PerUser"),
    "per_account": ("Max", "PerAccount"),
    "min": ("Min", ""),
}
_SPECIAL: Final = {
    ("grp", "Cpu"): "GrpCpuLimit",
    ("grp", "Mem"): "GrpMemLimit",
    ("grp", "Node"): "GrpNodeLimit",
    ("grp_mins", "Cpu"): "GrpCPUMinutesLimit",
    ("grp_run_mins", "Cpu"): "GrpCPURunMinutesLimit",
    ("per_job", "Cpu"): "MaxCpuPerJobLimit",
    ("per_job", "Node"): "MaxNodePerJobLimit",
    ("mins_per_job", "Cpu"): "MaxCpuMinutesPerJobLimit",
    ("per_user", "Cpu"): "MaxCpuPerUserLimit",
    ("per_user", "Node"): "MaxNodePerUserLimit",
    ("min", "Cpu"): "MinCpuNotSatisfied",
}


def is_of_resources(reason: str) -> bool:
    """Whether a limit's reason is of what a job would hold: not of the number of jobs, nor of time
    alone.
    """
    return not ("Jobs" in reason or "Wall" in reason or reason in (INVALID_ACCOUNT, INVALID_QOS))


@cache
def of_tres(owner: str, form: str, tres: str) -> str:
    """The reason of a limit on a trackable resource: `of_tres("QOS", "per_user", "cpu")` is
    QOSMaxCpuPerUserLimit.
    """
    kind = _KINDS.get(tres.partition("/")[0], "Unknown")
    own = _SPECIAL.get((form, kind))
    if own is None:
        before, behind = _AROUND[form]
        if kind == "Mem" and owner == QOS:
            kind = "Memory"
        own = f"{before}{kind}{behind}"
    return own if form == "per_account" else owner + own


def is_limit(reason: str) -> bool:
    """Whether an association's or a QOS's limit is the reason."""
    return reason.startswith(("Assoc", "QOSGrp", "QOSMax", "QOSMin")) or (
        reason.startswith("Max") and reason.endswith("PerAccount")
    )
