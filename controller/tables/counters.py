"""Counts that `sdiag` shows: jobs by state, requests by type and user, passes of schedulers.

Place: tables. Follows: sdiag(1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final

from understudy.model.states import JobState
from understudy.protocol.messages import Message, Query

if TYPE_CHECKING:
    from understudy.controller.tables.job import Job

# Slurm's names and numbers of requests, by our messages; those of queries by table.
_REQUESTS: Final = {
    "SubmitJob": ("REQUEST_SUBMIT_BATCH_JOB", 4003),
    "CancelJobs": ("REQUEST_KILL_JOB", 5032),
    "UpdateJobs": ("REQUEST_UPDATE_JOB", 3001),
    "ControlJobs": ("REQUEST_UPDATE_JOB", 3001),
    "UpdateNodes": ("REQUEST_UPDATE_NODE", 3002),
    "RebootNodes": ("REQUEST_REBOOT_NODES", 1011),
    "UpdatePartition": ("REQUEST_UPDATE_PARTITION", 3005),
    "UpdateReservation": ("REQUEST_UPDATE_RESERVATION", 3009),
    "UpdateStep": ("REQUEST_UPDATE_JOB_STEP", 5007),
    "NotifyJob": ("REQUEST_JOB_NOTIFY", 4022),
    "SetConfiguration": ("REQUEST_SET_DEBUG_LEVEL", 1010),
    "Reconfigure": ("REQUEST_RECONFIGURE", 1003),
    "Ping": ("REQUEST_PING", 1008),
    "GetScript": ("REQUEST_BATCH_SCRIPT", 2051),
    "GetStatistics": ("REQUEST_STATS_INFO", 2035),
    "RegisterNodes": ("MESSAGE_NODE_REGISTRATION_STATUS", 1002),
    "BatchComplete": ("REQUEST_COMPLETE_BATCH_SCRIPT", 5018),
    "EpilogComplete": ("MESSAGE_EPILOG_COMPLETE", 6012),
    "AssociationsChanged": ("ACCOUNTING_UPDATE_MSG", 10001),
}
_QUERIES: Final = {
    "jobs": ("REQUEST_JOB_INFO", 2003),
    "nodes": ("REQUEST_NODE_INFO", 2007),
    "partitions": ("REQUEST_PARTITION_INFO", 2009),
    "config": ("REQUEST_BUILD_INFO", 2001),
    "ping": ("REQUEST_PING", 1008),
    "licenses": ("REQUEST_LICENSE_INFO", 1021),
    "federation": ("REQUEST_FED_INFO", 2049),
    "reservations": ("REQUEST_RESERVATION_INFO", 2024),
    "topology": ("REQUEST_TOPO_INFO", 2028),
    "burst_buffer": ("REQUEST_BURST_BUFFER_INFO", 2020),
    "steps": ("REQUEST_JOB_STEP_INFO", 2005),
    "priorities": ("REQUEST_PRIORITY_FACTORS", 2026),
    "shares": ("REQUEST_SHARE_INFO", 2022),
}
_NOT_COMPLETED: Final = frozenset({JobState.CANCELLED, JobState.NODE_FAIL})
_FAILED: Final = frozenset({JobState.BOOT_FAIL})


@cache
def _of_type(kind: type[Message]) -> tuple[str, int]:
    name = kind.__name__
    return _REQUESTS.get(name) or (f"REQUEST_{name.upper()}", 0)


def _kind(message: Message) -> tuple[str, int]:
    kind = type(message)
    if kind is Query:
        return _QUERIES.get(message.table) or _of_type(kind)  # type: ignore[attr-defined]
    return _of_type(kind)


def request_name(message: Message) -> str:
    """Slurm's name of a request."""
    return _kind(message)[0]


@dataclass(slots=True)
class Counters:
    """Counts of one controller."""

    since: float = 0.0
    submitted: int = 0
    started: int = 0
    completed: int = 0
    # requests that ended or signalled something, an array or a heterogeneous job being one; not
    # jobs that the controller gave up
    cancelled: int = 0
    failed: int = 0
    # of the controller itself: passes, timers and requests that ended with an exception
    failures: int = 0
    backed_off: int = 0  # requests whose senders were told to ask again later
    # (name, number): [count, microseconds]
    requests: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    users: dict[int, list[int]] = field(default_factory=dict)

    def request(self, message: Message, user_id: int, microseconds: int) -> None:
        """A request has been handled."""
        kind = _kind(message)
        by_kind = self.requests.get(kind)
        if by_kind is None:
            by_kind = self.requests[kind] = [0, 0]
        by_kind[0] += 1
        by_kind[1] += microseconds
        by_user = self.users.get(user_id)
        if by_user is None:
            by_user = self.users[user_id] = [0, 0]
        by_user[0] += 1
        by_user[1] += microseconds

    def ended(self, job: Job) -> None:
        """A run of a job has come to its end."""
        if job.state in _FAILED:
            self.failed += 1
        elif job.state not in _NOT_COMPLETED:
            self.completed += 1

    def reset(self, now: float) -> None:
        """Count from nought."""
        self.since = now
        self.submitted = self.started = self.completed = self.cancelled = self.failed = (
            self.failures
        ) = self.backed_off = 0
        self.requests.clear()
        self.users.clear()
