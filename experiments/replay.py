"""Replay a trace: each job is submitted at its time, by the message that sbatch sends, and at the end the controller is asked what became of it.

Place: the pure core of `understudy replay`; a participant in the cluster's time like any daemon. It is handed the messenger and the clock, and knows
no processes, files or event loop. One timer is set at a time: for the next submission.

    submit ... submit -> AwaitEmpty -> (answered) -> Query -> on_done

Only refusals are answered (`only_failures`): a job is found again by its name, the number in the trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from understudy.experiments.records import REJECTED, JobRecord
from understudy.model.states import JobState
from understudy.protocol.messages import AwaitEmpty, Emulation, Failure, JobSpec, Message, Ok, Query, Rows, SubmitJob

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.experiments.swf import TraceJob

COLUMNS: Final = ["name", "submit_time", "start_time", "end_time", "state", "cpus", "nodes", "time_limit_s"]
UNREACHABLE: Final = (1005, 1006, 5004)  # codes of a Failure that the messenger makes itself: no connection, lost, timed out
SCRIPT: Final = "#!/bin/sh\n"  # emulated nodes run nothing, but a job has a script
FIRST_USER_ID: Final = 20_000  # a trace's users are numbered from here
_STATE_NAME: Final = {int(state): state.name for state in JobState}


class Sender(Protocol):
    """The part of understudy.protocol.messenger.Messenger that is used here."""

    def send(
        self,
        peer: str,
        message: Message,
        on_reply: Callable[[Message], None] | None = None,
        timeout_s: float = 10.0,
        *,
        only_failures: bool = False,
        ahead_s: float = 0.0,
    ) -> None: ...


class Clock(Protocol):
    """The part of understudy.clock.timekeeper.Timekeeper that is used here."""

    def now(self) -> float: ...

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Any: ...


def owners(jobs: Sequence[TraceJob]) -> dict[str, int]:
    """The users of a trace with numbers of their own, as `ReplayOptions.owners` has them."""
    return {f"u{user}": FIRST_USER_ID + user for user in sorted({job.user for job in jobs if job.user >= 0})}


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay."""

    controller: str = "controller"  # its name among the peers
    zero: float | None = None  # the cluster's time at which the trace begins, a whole second; None: the next one after the start
    limit_step_s: int = 1  # requested times are rounded up to this; 60 is what sbatch does
    partition: str = ""
    submit_timeout_s: float = 60.0
    drain_timeout_s: float = math.inf  # without end, so that under virtual time the clock sees a cluster that has nothing left to do
    query_timeout_s: float = 600.0
    owners: bool = False  # a job's user, group and queue in the trace are its user, account and QOS: 7 is u7, a7, q7
    jobs_ahead: int = 64  # submissions that are sent together, each to be delivered at its time: one window of virtual time instead of one for each


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """What came of it. `error` is "" if the trace went through to its end; else why it did not, and `records` are those that could be had."""

    records: list[JobRecord]
    rejected: dict[int, str] = field(default_factory=dict)  # trace job: what the controller said
    simulated_seconds: float = 0.0  # from the trace's zero until the cluster was empty
    error: str = ""


def _ignore(_submitted: int, _total: int, _now: float) -> None:
    """No one wants to know."""


class Replayer:
    """Submits `jobs`, which are in the order of their submit times, and collects what became of them."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        messenger: Sender,
        time: Clock,
        options: ReplayOptions | None = None,
        *,
        on_progress: Callable[[int, int, float], None] = _ignore,
    ) -> None:
        """`on_progress` gets (submitted jobs, all jobs, the cluster's time) after each instant's submissions."""
        self._jobs = jobs
        self._messenger = messenger
        self._time = time
        self._options = options or ReplayOptions()
        self._on_progress = on_progress
        self._on_done: Callable[[ReplayOutcome], None] | None = None
        self._zero = 0.0
        self._next = 0  # index of the next job to submit
        self._rejected: dict[int, str] = {}
        self._records: list[JobRecord] = []
        self._simulated_seconds = 0.0
        self._given_up = ""

    @property
    def zero(self) -> float:
        """The cluster's time that is 0 in the trace; known after `start`."""
        return self._zero

    def start(self, on_done: Callable[[ReplayOutcome], None]) -> None:
        """Begin. `on_done` is called once, from a timer or an answer, never before this returns."""
        assert self._on_done is None, "a replayer starts once"
        self._on_done = on_done
        zero = self._options.zero
        self._zero = float(math.floor(self._time.now()) + 1) if zero is None else zero
        first = self._jobs[0].submit if self._jobs else 0
        self._time.call_at(self._zero + first, self._submit_due, first)

    def give_up(self, why: str) -> None:
        """Submit no more, and end with what has become of the jobs by now."""
        if self._on_done is not None and not self._given_up:
            self._given_up = why
            self._emptied(Ok())

    def _submit_due(self, instant: int) -> None:
        """Send the jobs of this instant, those that are late, and some that come later, to be delivered at their time; set the timer for the next."""
        if self._on_done is None or self._given_up:
            return
        now = self._time.now()
        due = max(float(instant), now - self._zero)  # a timer may come a clock tick early
        jobs, options, step = self._jobs, self._options, self._options.limit_step_s
        position, total = self._next, len(self._jobs)
        zero, last = self._zero, position + options.jobs_ahead
        while position < total and (jobs[position].submit <= due or position < last):
            job = jobs[position]
            spec = JobSpec(
                name=str(job.id),
                partition=options.partition,
                account=f"a{job.group}" if options.owners and job.group >= 0 else "",
                qos=f"q{job.queue}" if options.owners and job.queue >= 0 else "",
                num_tasks=job.procs,
                time_limit_s=-(-job.req // step) * step,
            )
            ahead_s = max(0.0, zero + job.submit - now)
            owner = FIRST_USER_ID + job.user if options.owners and job.user >= 0 else -1
            message = SubmitJob(spec=spec, script=SCRIPT, emulation=Emulation(run_s=max(1, job.raw_run)), user_id=owner, group_id=owner)
            self._messenger.send(
                options.controller, message, partial(self._refused, job), options.submit_timeout_s, only_failures=True, ahead_s=ahead_s
            )
            position += 1
        self._next = position
        self._on_progress(position, total, now)
        if position < total:
            self._time.call_at(self._zero + jobs[position].submit, self._submit_due, jobs[position].submit)
        else:
            self._await_empty(max(0.0, zero + jobs[-1].submit - now) if jobs else 0.0)

    def _refused(self, job: TraceJob, answer: Message) -> None:
        if isinstance(answer, Failure) and answer.code not in UNREACHABLE:
            self._rejected[job.id] = answer.text
        else:
            self._finish(f"submission of job {job.id} was not answered: {_text(answer)}")

    def _await_empty(self, ahead_s: float) -> None:
        """Ask to be told of the end, right behind the last submission."""
        if self._on_done is not None:
            self._messenger.send(self._options.controller, AwaitEmpty(), self._emptied, self._options.drain_timeout_s, ahead_s=ahead_s)

    def _emptied(self, answer: Message) -> None:
        if isinstance(answer, Failure):
            self._finish(f"the cluster did not become empty: {_text(answer)}")
            return
        self._simulated_seconds = self._time.now() - self._zero
        self._messenger.send(self._options.controller, Query(table="jobs", columns=COLUMNS), self._queried, self._options.query_timeout_s)

    def _queried(self, answer: Message) -> None:
        if not isinstance(answer, Rows):
            self._finish(self._given_up or f"the job table was not answered: {_text(answer)}")
            return
        found = {row[0]: row for row in answer.rows}
        lost = [job.id for job in self._jobs if str(job.id) not in found and job.id not in self._rejected]
        if lost and not self._given_up:
            self._finish(f"the controller does not know {len(lost)} jobs that it did not refuse, the first is {lost[0]}")
            return
        for job in self._jobs:
            if job.id in self._rejected:
                self._records.append(JobRecord(job.id, job.submit, None, None, REJECTED, job.procs, "", job.req))
            elif str(job.id) in found:
                self._records.append(self._record(job, found[str(job.id)]))
        self._records.sort(key=lambda record: record.job)
        self._finish(self._given_up)

    def _record(self, job: TraceJob, row: list[Any]) -> JobRecord:
        _, submit, start, end, state, cpus, nodes, limit = row
        if state == JobState.PENDING:  # what is told then is when it might start
            start = end = None
        elif state in (JobState.RUNNING, JobState.SUSPENDED):
            end = None
        zero = int(self._zero)
        return JobRecord(
            job.id,
            int(submit) - zero,
            None if not start else int(start) - zero,
            None if not end else int(end) - zero,
            _STATE_NAME.get(state, str(state)),
            cpus,
            nodes,
            -1 if limit is None else limit,
        )

    def _finish(self, error: str = "") -> None:
        if self._on_done is None:
            return
        done, self._on_done = self._on_done, None
        done(ReplayOutcome(self._records, self._rejected, self._simulated_seconds, error))


def _text(answer: Message) -> str:
    return f"{answer.text} ({answer.code})" if isinstance(answer, Failure) else f"unexpected {type(answer).__name__}"
