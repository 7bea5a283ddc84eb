"""Whether each job that was acknowledged is there: in the controller's table, or in accounting.

Place: tool/load, after a load.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final

from understudy.commands.shared.client import RefusedError, pack
from understudy.tool.load.target import TargetError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from understudy.tool.load.target import Target

_PATIENCE_S: Final = 20.0  # ours: until accounting has heard of all
_POLL_S: Final = 0.5  # ours
_AT_ONCE: Final = 1000


def missing(target: Target, jobs: Collection[int]) -> set[int]:
    """Those of the jobs that nobody knows.

    Raises:
        RefusedError, TargetError: the cluster does not answer.
    """
    left = set(jobs)
    deadline = time.monotonic() + _PATIENCE_S
    while left:
        left -= _in_table(target)
        if left:
            left -= _in_accounting(target, left)
        if not left or not _has_accounting(target) or time.monotonic() >= deadline:
            break
        time.sleep(_POLL_S)
    return left


def _has_accounting(target: Target) -> bool:
    return target.location is None or bool(target.location.accounting_addresses)


def _in_table(target: Target) -> set[int]:
    if target.location is None:
        return _numbers(target.command("squeue", "-a", "-h", "-t", "all", "-o", "%A %F").split())
    with contextlib.closing(target.client()) as client:
        rows = client.query("jobs", ["job_id", "array_job_id"]).rows
    return {number for row in rows for number in row}


def _in_accounting(target: Target, jobs: Collection[int]) -> set[int]:
    if not _has_accounting(target):
        return set()
    if target.location is None:
        with contextlib.suppress(TargetError):  # without accounting sacct fails
            words = ("sacct", "-n", "-X", "-P", "-S", "now-1day", "-o", "jobidraw,jobid")
            text = target.command(*words).replace("|", " ").replace("_", " ")
            return _numbers(text.split())
        return set()
    from understudy.commands.shared.accounting_client import AccountingClient

    location = target.location
    found: set[int] = set()
    wanted = sorted(jobs)
    with contextlib.closing(AccountingClient(lambda: location)) as client:
        for start in range(0, len(wanted), _AT_ONCE):
            where: dict[str, Any] = {"jobs": wanted[start : start + _AT_ONCE]}
            rows = client.call("AccountingQuery", "jobs", ["job_id", "array_job_id"], where, [])[0]
            found |= {number for row in rows for number in row}
    return found


def _numbers(words: Iterable[str]) -> set[int]:
    return {int(word) for word in words if word.isdigit()}


def cancel(target: Target, jobs: Collection[int]) -> None:
    """End those of the jobs that have not ended."""
    wanted = [str(each) for each in sorted(jobs)]
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        if target.location is None:
            with contextlib.suppress(TargetError):
                target.command("scancel", "-Q", *part)
        else:
            with contextlib.closing(target.client()) as client:
                client.send(pack("CancelJobs", part))
                name, answer = client.finish()
            if name == "Failure":
                raise RefusedError(answer[0], answer[1])
