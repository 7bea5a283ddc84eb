"""Replay a trace: each job is submitted at its time, by the message that sbatch sends, and the
controller tells what becomes of it.

Place: the pure core of `understudy replay`; a participant in the cluster's time like any daemon. It
is handed the messenger and the clock, and knows no processes, files or event loop. One timer is set
at a time: for the next submission.

    follow, submit ... submit -> AwaitEmpty -> (answered) -> finish -> on_done

Only refusals are answered (`only_failures`): a job is found again by its tag, the number in the
trace. recording.py follows what becomes of jobs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from understudy.experiments.gantt import COLUMNS, STATES
from understudy.experiments.recording import Follower, Recording
from understudy.experiments.records import REJECTED, JobRecord, record_of
from understudy.experiments.watched import Watched
from understudy.protocol.messages import (
    AwaitEmpty,
    Emulation,
    Failure,
    JobSpec,
    Message,
    Ok,
    Query,
    Rows,
    SubmitJob,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from understudy.experiments.stories import Story
    from understudy.experiments.trace import Pool, TraceJob
    from understudy.protocol.messages import JobRun

# codes of a Failure that the messenger makes itself: no connection, lost, timed out
UNREACHABLE: Final = (1005, 1006, 5004)
SCRIPT: Final = "#!/bin/sh\n"  # emulated nodes run nothing, but a job has a script
FIRST_USER_ID: Final = 20_000  # a trace's users are numbered from here
_MAY_WAIT: Final = ("PENDING", "SUSPENDED")  # for ever, with nothing wrong
_SHOWN: Final = 10
_BEHIND_PASS_S: Final = 0.75  # ours: textbook policies decide in the middle of a second


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
    return {
        f"u{user}": FIRST_USER_ID + user
        for user in sorted({job.user for job in jobs if job.user >= 0})
    }


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay."""

    controller: str = "controller"  # its name among the peers
    # the cluster's time at which the trace begins, a whole second; None: the next one after the
    # start
    zero: float | None = None
    limit_step_s: int = 1  # requested times are rounded up to this; 60 is what sbatch does
    partition: str = ""
    submit_timeout_s: float = 60.0
    # without end, so that under virtual time the clock sees a cluster that has nothing left to do
    drain_timeout_s: float = math.inf
    # a job's user, group and queue in the trace are its user, account and QOS: 7 is u7, a7, q7
    owners: bool = False
    # what the trace's pools are called among the cluster's licences
    licenses: tuple[Pool, ...] = ()
    user_id: int = -1  # who submits the jobs that are nobody's; -1: who runs the replay
    # submissions that are sent together, each to be delivered at its time: one window of virtual
    # time instead of one for each
    jobs_ahead: int = 64
    # seconds in the trace at which what runs and what is planned is asked for
    plans_at: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """What came of it. `error` is "" if the trace went through to its end; else why it did not, and
    `records` are those that could be had.

    `attempts` are earlier runs of jobs that were requeued.
    """

    records: list[JobRecord]
    rejected: dict[int, str] = field(default_factory=dict)  # trace job: what the controller said
    simulated_seconds: float = 0.0  # from the trace's zero until the cluster was empty
    error: str = ""
    attempts: list[JobRecord] = field(default_factory=list)
    watched: Watched = field(default_factory=Watched)


def _ignore(_submitted: int, _total: int, _now: float) -> None:
    """No one wants to know."""


def submission(job: TraceJob, options: ReplayOptions) -> SubmitJob:
    """What is sent for a job of the trace."""
    step, name = options.limit_step_s, str(job.id)
    spec = JobSpec(
        name=name,
        partition=options.partition,
        account=f"a{job.group}" if options.owners and job.group >= 0 else "",
        qos=f"q{job.queue}" if options.owners and job.queue >= 0 else "",
        num_tasks=job.procs,
        time_limit_s=-(-job.req // step) * step,
        licenses=_licenses(job, options.licenses) if options.licenses else "",
    )
    owner = FIRST_USER_ID + job.user if options.owners and job.user >= 0 else options.user_id
    return SubmitJob(
        spec=spec,
        script=SCRIPT,
        emulation=Emulation(run_s=max(1, job.raw_run), tag=name),
        user_id=owner,
        group_id=owner,
    )


def _licenses(job: TraceJob, pools: Sequence[Pool]) -> str:
    """`bb1:20,bb2:4`."""
    units = zip(pools, job.units(len(pools)), strict=True)
    return ",".join(f"{pool.name}:{count}" for pool, count in units if count)


class Replayer:
    """Submits `jobs`, which are in the order of their submit times, and collects what became of
    them.
    """

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        messenger: Sender,
        time: Clock,
        options: ReplayOptions | None = None,
        *,
        on_progress: Callable[[int, int, float], None] = _ignore,
        on_records: Callable[[Sequence[JobRecord]], None] = lambda _records: None,
        on_stories: Callable[[Sequence[Story]], None] = lambda _stories: None,
        on_plan: Callable[[int, Sequence[Sequence[Any]]], None] = lambda _at, _rows: None,
    ) -> None:
        """`on_progress` gets (submitted jobs, all jobs, the cluster's time) after each instant's
        submissions, `on_records` and `on_stories` what has become known, `on_plan` (second in the
        trace, rows of gantt.COLUMNS).
        """
        self._jobs = jobs
        self._messenger = messenger
        self._time = time
        self._options = options or ReplayOptions()
        self._on_progress = on_progress
        self._on_done: Callable[[ReplayOutcome], None] | None = None
        self._zero = 0.0
        self._next = 0  # index of the next job to submit
        self._rejected: dict[int, str] = {}
        self._of_tag = {str(job.id): job for job in jobs}
        self._on_records, self._on_plan = on_records, on_plan
        self._recording = Recording(self._record, on_records, on_stories, name_of=self._name_of)
        self._follower = Follower(messenger, self._recording, len(jobs), self._options.controller)
        self._stalled = ""
        self._simulated_seconds = 0.0
        self._given_up = ""
        self._timer: Any = None  # of the next submission
        self._awaited = 0  # how often it was asked to be told of the end
        self._expected = 0  # submissions of others, that are yet to come
        self._added: dict[str, int] = {}  # numbers of jobs that others have submitted, by tag

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
        self._follower.follow()
        first = self._jobs[0].submit if self._jobs else 0
        self._timer = self._time.call_at(self._zero + first, self._submit_due, first)
        for at in self._options.plans_at:
            self._time.call_at(self._zero + at + _BEHIND_PASS_S, self._ask_plan, at)

    def _ask_plan(self, at: int) -> None:
        if self._on_done is None or self._given_up or self._stalled:
            return
        self._messenger.send(
            self._options.controller,
            Query("jobs", list(COLUMNS), {"state": list(STATES)}),
            partial(self._planned, at),
        )

    def _planned(self, at: int, answer: Message) -> None:
        if isinstance(answer, Rows):
            self._on_plan(at, answer.rows)
        else:
            self._finish(f"the plan at {at} s was not told: {_text(answer)}")

    def give_up(self, why: str) -> None:
        """Submit no more, and end with what has become of the jobs by now."""
        if self._on_done is not None and not self._given_up:
            self._given_up = why
            self._emptied(Ok())

    def stall(self, why: str) -> None:
        """Nobody has anything left to do: jobs that wait will wait for ever, and the run is over.
        One that runs should have ended: then it failed.
        """
        if self._on_done is not None and not (self._given_up or self._stalled):
            self._stalled = why
            self._emptied(Ok())

    def abandon(self, why: str) -> None:
        """End at once, with what is known: nobody can be asked any more."""
        if self._on_done is not None:
            self._finish(why)

    def _submit_due(self, instant: int) -> None:
        """Send the jobs of this instant, those that are late, and some that come later, to be
        delivered at their time; set the timer for the next.
        """
        if self._on_done is None or self._given_up or self._stalled:
            return
        now = self._time.now()
        due = max(float(instant), now - self._zero)  # a timer may come a clock tick early
        jobs, options = self._jobs, self._options
        position, total = self._next, len(self._jobs)
        zero, last = self._zero, position + options.jobs_ahead
        while position < total and (jobs[position].submit <= due or position < last):
            job = jobs[position]
            message = submission(job, options)
            ahead_s = max(0.0, zero + job.submit - now)
            self._messenger.send(
                options.controller,
                message,
                partial(self._refused, job),
                options.submit_timeout_s,
                only_failures=True,
                ahead_s=ahead_s,
            )
            position += 1
        self._next = position
        self._on_progress(position, total, now)
        if position < total:
            self._timer = self._time.call_at(
                self._zero + jobs[position].submit, self._submit_due, jobs[position].submit
            )
        else:
            self._await_empty(max(0.0, zero + jobs[-1].submit - now) if jobs else 0.0)

    def _refused(self, job: TraceJob, answer: Message) -> None:
        if isinstance(answer, Failure) and answer.code not in UNREACHABLE:
            self._rejected[job.id] = answer.text
            self._on_records([self._refusal(job)])
        else:
            self._finish(f"submission of job {job.id} was not answered: {_text(answer)}")

    def _await_empty(self, ahead_s: float) -> None:
        """Ask to be told of the end, right behind the last submission."""
        if self._on_done is not None:
            self._recording.await_end(self.give_up)
            self._awaited += 1
            self._messenger.send(
                self._options.controller,
                AwaitEmpty(),
                partial(self._is_empty, self._awaited),
                self._options.drain_timeout_s,
                ahead_s=ahead_s,
            )

    def _is_empty(self, number: int, answer: Message) -> None:
        """The answer to one question; there may be more to come since."""
        if number == self._awaited and self._next == len(self._jobs) and not self._expected:
            self._emptied(answer)

    # --- more than the trace has ----------------------------------------------------------------

    def add(self, jobs: Sequence[TraceJob]) -> None:
        """Submit these, too. They get numbers behind those that there are, their own are not kept.
        One that is late is submitted at once.
        """
        if not jobs:
            return
        first = self._last_number() + 1
        new = [
            msgspec.structs.replace(job, id=number, original_id=-1)
            for number, job in enumerate(jobs, first)
        ]
        self._of_tag.update((str(job.id), job) for job in new)
        rest = [*self._jobs[self._next :], *new]
        rest.sort(key=lambda job: job.submit)
        self._jobs = [*self._jobs[: self._next], *rest]
        self._timer.cancel()
        self._timer = self._time.call_at(
            self._zero + rest[0].submit, self._submit_due, rest[0].submit
        )

    def coming(self) -> list[TraceJob]:
        """The jobs whose time is not past."""
        now = self._time.now() - self._zero
        return [job for job in self._jobs if job.submit >= now]

    def tag(self, name: str) -> str:
        """For a job of this name that somebody else submits: by it the job is told of."""
        number = self._last_number() + 1
        tag = f"{name or 'job'} {number}"
        self._added[tag] = number
        return tag

    def _last_number(self) -> int:
        return max(*(job.id for job in self._jobs), *self._added.values(), 0)

    def expect(self, more: int) -> None:
        """So many submissions of others are yet to come, before which the run is not over; a
        negative number: so many have come.
        """
        self._expected += more
        if more < 0 and not self._expected and self._next == len(self._jobs):
            self._await_empty(0.0)

    def _emptied(self, answer: Message) -> None:
        if isinstance(answer, Failure):
            self._finish(f"the cluster did not become empty: {_text(answer)}")
            return
        self._simulated_seconds = self._time.now() - self._zero
        self._follower.finish(self._told)

    def _told(self, error: str) -> None:
        if error:
            self._finish(self._given_up or error)
            return
        known = {record.job for record in self._recording.last.values()}
        lost = [
            job.id for job in self._jobs if job.id not in known and job.id not in self._rejected
        ]
        if lost and not self._given_up:
            error = (
                f"the controller told nothing of {len(lost)} jobs that it did not refuse, "
                f"the first is {lost[0]}"
            )
        at_work = [record for record in self._recording.unfinished if record.state not in _MAY_WAIT]
        if self._stalled and at_work:
            shown = ", ".join(f"job {record.id} ({record.state})" for record in at_work[:_SHOWN])
            more = f" and {len(at_work) - _SHOWN} more" if len(at_work) > _SHOWN else ""
            error = f"{self._stalled}; unfinished: {shown}{more}"
        self._finish(self._given_up or error)

    def _record(self, told: JobRun, task: str) -> JobRecord | None:
        if told.tag in self._added:
            return record_of(told, int(self._zero), self._added[told.tag], task)
        job = self._of_tag.get(told.tag)
        if job is None or job.id in self._rejected:
            return None
        user = "" if self._options.owners or job.user < 0 else f"u{job.user}"
        return record_of(told, int(self._zero), job.id, name=_own_id(job), user=user)

    def _name_of(self, tag: str) -> str:
        job = self._of_tag.get(tag)
        return tag if job is None else _own_id(job)

    def _refusal(self, job: TraceJob) -> JobRecord:
        user = f"u{job.user}" if job.user >= 0 else ""
        return JobRecord(
            job.id,
            job.submit,
            None,
            None,
            REJECTED,
            job.procs,
            "",
            job.req,
            _own_id(job),
            user=user,
            reason=self._rejected[job.id],
        )

    def _finish(self, error: str = "") -> None:
        if self._on_done is None:
            return
        done, self._on_done = self._on_done, None
        done(self.so_far(error))

    def so_far(self, error: str = "") -> ReplayOutcome:
        """What is known by now."""
        refused = [self._refusal(job) for job in self._jobs if job.id in self._rejected]
        # Of some that it refuses the controller keeps a job that has failed, as Slurm does.
        taken = [
            record for record in self._recording.last.values() if record.job not in self._rejected
        ]
        records = sorted([*taken, *refused], key=lambda record: record.job)
        return ReplayOutcome(
            records,
            self._rejected,
            self._simulated_seconds,
            error,
            self._recording.attempts,
            self._recording.watched,
        )


def _own_id(job: TraceJob) -> str:
    """What the trace calls the job."""
    return str(job.original_id if job.original_id >= 0 else job.id)


def _text(answer: Message) -> str:
    return (
        f"{answer.text} ({answer.code})"
        if isinstance(answer, Failure)
        else f"unexpected {type(answer).__name__}"
    )
