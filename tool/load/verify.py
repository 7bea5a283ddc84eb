"""Whether each job that was acknowledged is there: in the controller's table, or in accounting;
and where nothing keeps accounts, seen to end before the controller forgot it.

Place: tool/load, after a load; a `Watch` looks while it lasts.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from understudy.commands.shared.client import RefusedError, pack
from understudy.model.states import JobState
from understudy.tool.load.target import TargetError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from understudy.tool.load.target import Target

_PATIENCE_S: Final = 20.0  # ours: until accounting has heard of all
_POLL_S: Final = 0.5  # ours
_AT_ONCE: Final = 1000
_MARGIN_S: Final = 120.0  # ours: what a load may take beyond its plan
_LOOKS: Final = 3  # ours: while an ended job is still known
# States of jobs that squeue names and that will not run again, as 22.05 does.
_FINISHED: Final = frozenset(state.name for state in JobState if state.is_finished)


class Found(NamedTuple):
    """Of the jobs asked for: those that nobody knows, and those that are forgotten, as they should
    be a while after their end, which was seen.
    """

    lost: set[int]
    forgotten: set[int]


def missing(target: Target, jobs: Collection[int], ended: Collection[int] = ()) -> Found:
    """What became of the jobs, of which `ended` were seen to end.

    Raises:
        RefusedError, TargetError: the cluster does not answer.
    """
    left = set(jobs)
    deadline = time.monotonic() + _PATIENCE_S
    while left:
        left -= {number for numbers, _ in _table(target) for number in numbers}
        if left and target.has_accounting:
            left -= _in_accounting(target, left)
        if not left or not target.has_accounting or time.monotonic() >= deadline:
            break
        time.sleep(_POLL_S)
    forgotten = left.intersection(ended)
    return Found(left - forgotten, forgotten)


class Watch(threading.Thread):
    """Sees jobs end, where nothing keeps accounts and the controller forgets ended jobs before the
    load is over; elsewhere it does nothing.
    """

    def __init__(self, target: Target, duration: float) -> None:
        super().__init__(daemon=True)
        self._target = target
        self._over = threading.Event()
        self._period_s = target.forgets_after_s / target.speed / _LOOKS
        lasts_s = duration / target.speed + _MARGIN_S
        self._is_needed = not target.has_accounting and self._period_s * _LOOKS < lasts_s
        self.ended: set[int] = set()

    def run(self) -> None:
        while self._is_needed and not self._over.wait(self._period_s):
            # one that does not answer is asked again; in the end its silence is told
            with contextlib.suppress(RefusedError, TargetError):
                self.look()

    def look(self) -> None:
        """Remember who has ended; an array when all of its tasks that are left have."""
        rows = _table(self._target)
        busy = {number for numbers, has_ended in rows if not has_ended for number in numbers}
        self.ended |= {number for numbers, _ in rows for number in numbers} - busy

    def finish(self) -> None:
        """Look no more."""
        self._over.set()
        self.join()


def _table(target: Target) -> list[tuple[set[int], bool]]:
    """Each job's numbers, its own and its array's, and whether it has ended."""
    if target.location is None:
        lines = target.command("squeue", "-a", "-h", "-t", "all", "-o", "%A %F %T").splitlines()
        words = [line.split() for line in lines]
        return [(_numbers(each[:2]), each[-1] in _FINISHED) for each in words if each]
    with contextlib.closing(target.client()) as client:
        rows = client.query("jobs", ["job_id", "array_job_id", "state"]).rows
    return [
        ({job_id, array_job_id}, JobState(state).is_finished)
        for job_id, array_job_id, state in rows
    ]


def _in_accounting(target: Target, jobs: Collection[int]) -> set[int]:
    if target.location is None:
        words = ("sacct", "-n", "-X", "-P", "-S", "now-1day", "-o", "jobidraw,jobid")
        text = target.command(*words).replace("|", " ").replace("_", " ")
        return _numbers(text.split())
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
