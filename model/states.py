"""The states of jobs and nodes, with Slurm's numbers, names and short forms.

Place: the vocabulary that every daemon and command shares. It knows no other module.
Follows: squeue(1) "JOB STATE CODES", sinfo(1) "NODE STATE CODES".
"""

from enum import IntEnum, IntFlag
from typing import Final


class JobState(IntEnum):
    """A job's base state."""

    PENDING = 0
    RUNNING = 1
    SUSPENDED = 2
    COMPLETED = 3
    CANCELLED = 4
    FAILED = 5
    TIMEOUT = 6
    NODE_FAIL = 7
    PREEMPTED = 8
    BOOT_FAIL = 9
    DEADLINE = 10
    OUT_OF_MEMORY = 11

    @property
    def is_finished(self) -> bool:
        """Whether a job in this state will never run again (without a requeue)."""
        return self >= JobState.COMPLETED


class JobFlag(IntFlag):
    """What a job is doing beside its base state; shown in its place by squeue."""

    NONE = 0
    LAUNCH_FAILED = 0x0100
    REQUEUE = 0x0400
    REQUEUE_HOLD = 0x0800
    SPECIAL_EXIT = 0x1000
    RESIZING = 0x2000
    CONFIGURING = 0x4000
    COMPLETING = 0x8000
    STOPPED = 0x10000
    STAGE_OUT = 0x40000
    RESV_DEL_HOLD = 0x200000


JOB_STATE_CODE: Final[dict[JobState, str]] = {
    JobState.PENDING: "PD",
    JobState.RUNNING: "R",
    JobState.SUSPENDED: "S",
    JobState.COMPLETED: "CD",
    JobState.CANCELLED: "CA",
    JobState.FAILED: "F",
    JobState.TIMEOUT: "TO",
    JobState.NODE_FAIL: "NF",
    JobState.PREEMPTED: "PR",
    JobState.BOOT_FAIL: "BF",
    JobState.DEADLINE: "DL",
    JobState.OUT_OF_MEMORY: "OOM",
}


class NodeState(IntEnum):
    """A node's base state."""

    UNKNOWN = 0
    DOWN = 1
    IDLE = 2
    ALLOCATED = 3
    ERROR = 4
    MIXED = 5
    FUTURE = 6


class NodeFlag(IntFlag):
    """What is true of a node beside its base state."""

    NONE = 0
    CLOUD = 0x0080
    DRAIN = 0x0200
    COMPLETING = 0x0400
    NO_RESPOND = 0x0800
    POWERED_DOWN = 0x1000
    FAIL = 0x2000
    POWERING_UP = 0x4000
    MAINT = 0x8000
    REBOOT_REQUESTED = 0x10000
    POWERING_DOWN = 0x40000
    PLANNED = 0x80000
    RESERVED = 0x100000
    INVALID_REG = 0x400000  # its daemon tells of less than is configured
    REBOOT_ISSUED = 0x800000
    POWER_DOWN = 0x1000000  # asked for, as the next two
    POWER_UP = 0x2000000
    POWER_DRAIN = 0x4000000  # drained until it is off
