"""What `understudy replay FOLDER` does: a scenario through a cluster under virtual time, and what
became of each job as `result.jsonl`.

Place: beside traces.py, for folders instead of traces. Submissions and the administrator's
commands are the commands themselves (in_time.py), with sbatch's own options. The format is
documented in docs/scenarios.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shlex
import shutil
import time as real_time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from understudy.clock.participant import ClockLost
from understudy.commands.sbatch import sbatch
from understudy.documents.states import job_state
from understudy.experiments.outcomes.read import PAST
from understudy.experiments.recorded_machine import recorded_machine
from understudy.experiments.recording import Follower, Recording
from understudy.experiments.records import REJECTED, JobRecord, record_of
from understudy.experiments.run_folder import JobsFile
from understudy.experiments.scenario import (
    Event,
    Scenario,
    Submission,
    complete_conf,
    read_scenario,
    with_job_ids,
)
from understudy.model.nouns import many
from understudy.model.states import JobState
from understudy.protocol.messages import (
    AwaitEmpty,
    AwaitRecorded,
    Emulation,
    JobRun,
    Query,
    Rows,
    SubmitJob,
    Submitted,
)
from understudy.tool.cluster import launch
from understudy.tool.cluster.cluster_run import Participant, in_one_process
from understudy.tool.replay.change import COMMANDS, SCRIPT, ChangeFailedError, copies
from understudy.tool.replay.check import show
from understudy.tool.replay.conf import RunConf, edits_of, made_conf, site_conf
from understudy.tool.replay.folder import replay_dir
from understudy.tool.replay.in_time import run_command, submitted_as
from understudy.tool.replay.request import ReplayRequest, faults_of, run_in, virtual_cluster
from understudy.tool.replay.results import (
    INTERRUPTED,
    ReplayError,
    RunResults,
    UsageError,
    early_end,
    exit_code,
    foreseen_code,
    heeding_interrupts,
    raise_if_ended_early,
    write_results,
)
from understudy.tool.replay.scenario_check import preview_scenario
from understudy.tool.replay.traces import set_up_accounting

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Coroutine, Sequence
    from pathlib import Path

    from understudy.experiments.trace import TraceJob
    from understudy.model.cluster import Cluster
    from understudy.model.conf import SlurmConfig
    from understudy.protocol.messages import Message
    from understudy.tool.faults.run import Faults

_Value = TypeVar("_Value", int, str)
_COLUMNS: Final = [
    "job_id",
    "array_job_id",
    "array_task_id",
    "name",
    "state",
    "flags",
    "submit_time",
    "eligible_time",
    "start_time",
    "end_time",
    "nodes",
    "cpus",
    "priority",
    "reason",
    "restarts",
    "time_limit_s",
]
_OPEN: Final = (JobState.PENDING, JobState.RUNNING, JobState.SUSPENDED)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a scenario is run with: a cluster whose run directory is ready, and what is to go wrong
    with it.
    """

    scenario: Scenario
    run_conf: RunConf
    cluster: Cluster
    faults: Faults | None


def prepare(request: ReplayRequest, run_dir: Path) -> Prepared:
    """Read the scenario's folder and make the run directory ready.

    Raises:
        ScenarioError, ConfigError, UsageError, LaunchError: something cannot be used.
    """
    scenario = read_scenario(
        request.trace, needs_conf=request.conf is None, is_faulty=request.is_faulty
    )
    run_conf = _run_conf(request, scenario, run_dir / "source")
    faults = faults_of(request, run_conf.config, scenario.faults)
    machine = recorded_machine()
    zero = float(machine.zero) if scenario.zero is None else scenario.zero
    cluster = virtual_cluster(
        request,
        run_dir,
        run_conf,
        epoch=zero - scenario.lead_s,
        zero=zero,
        users=scenario.users,
        groups=scenario.groups,
        is_faulty=faults is not None,
        **machine.cluster,
    )
    return Prepared(scenario, run_conf, cluster, faults)


def replay_scenario(request: ReplayRequest) -> int:
    """Run it; 0 if it went through to its end or its horizon."""
    began = real_time.perf_counter()
    _refuse_other_options(request)
    if not request.check:
        request.out.mkdir(parents=True, exist_ok=True)
    with replay_dir(None if request.check else request.out) as folder:
        prepared = prepare(request, folder.path)
        scenario, run_conf = prepared.scenario, prepared.run_conf
        if request.forks is not None:
            request.forks.place(prepared.cluster.zero)
        print(
            f"{scenario.name}: {many(len(scenario.submissions), 'submission')}, "
            f"{many(len(scenario.events), 'command')}"
            + (f", {many(len(scenario.faults), 'fault')}" if scenario.faults else ""),
            flush=True,
        )
        run = ScenarioRun(scenario, prepared.cluster.zero, run_conf.config, is_check=request.check)
        if request.check:
            in_one_process(prepared.cluster, folder.path, run.go)
            return run.foreseen_code
        return (
            _run_and_write(request, prepared, run, folder.path, began)
            if request.forks is None
            else request.forks.finish(
                folder, partial(_run_and_write, request, prepared, run, folder.path, began)
            )
        )


def _run_and_write(
    request: ReplayRequest, prepared: Prepared, run: ScenarioRun, run_dir: Path, began: float
) -> int:
    """The run itself and its folder. The exit code."""
    scenario, run_conf, faults = prepared.scenario, prepared.run_conf, prepared.faults
    forks, text = request.forks, run_conf.text
    with contextlib.closing(JobsFile(request.folder)) as file:
        run.recording.write, run.recording.write_stories = file.add, file.add_stories
        if forks is not None:
            forks.keep(file)
            forks.follow(run)
        try:
            run_in(request, prepared.cluster, run_dir, run_conf, faults, run.go)
        except (launch.LaunchError, ClockLost, KeyboardInterrupt) as error:
            run.error, run.signal = early_end(error, run.signal)
    run.write_results(request.folder)
    results = RunResults(
        run.records(),
        run.attempts(),
        sum(node.cpus for node in run_conf.config.nodes),
        real_time.perf_counter() - began,
        error=run.error,
        signal=run.signal,
        faults={} if faults is None else faults.figures(),
        watched=run.recording.watched,
    )
    about = {
        "scenario": scenario.name,
        "zero": prepared.cluster.zero,
        "calendar": scenario.zero is not None,
        "scheduler": run_conf.config.text("SchedulerType"),
        "title": scenario.title,
        "settings": " ".join(map(shlex.quote, request.settings)),
        "daemons": "one process" if request.one_process else "one process each",
    }
    if forks is not None:
        about |= forks.about()
        text = forks.slurm_conf or text
    summary, report = write_results(
        request.folder, results, about, text, f"Scenario {scenario.name}"
    )
    raise_if_ended_early(results, request.folder)
    print(f"report       {report}")
    return exit_code(summary)


def _run_conf(request: ReplayRequest, scenario: Scenario, source: Path) -> RunConf:
    """The configuration of the run, made in `source`: the scenario's own, or the one that was named
    in its place.
    """
    edits = edits_of(request.settings, request.scheduler, request.parameters)
    if request.conf is None:
        shutil.copytree(scenario.folder, source, ignore=shutil.ignore_patterns("*.jsonl", PAST))
        return made_conf(scenario.conf, source, edits)
    return site_conf(
        request.conf,
        source,
        edits,
        lambda text: complete_conf(text, accounting=bool(scenario.accounting)),
    )


def _refuse_other_options(request: ReplayRequest) -> None:
    """A scenario has its own machine, accounting and submissions: what would change them is not
    passed over.

    Raises:
        UsageError: one is given.
    """
    given = {
        "--nodes": request.nodes,
        "--cpus": request.cpus,
        "--accounting": request.accounting,
        "--answers": request.answers,
        "--limit": request.limit,
        "--plan-at": request.plans_at,
        "--partition": request.partition,
    }
    for option, value in given.items():
        if value:
            raise UsageError(
                f"{option} is for traces; a scenario has all of it in its folder; --conf "
                "takes another slurm.conf for one run, and --set changes it"
            )


def emulation_of(submission: Submission) -> Emulation:
    """How its job, or the tasks of its array, behave."""
    run, code, signal_number, ended = (
        submission.run,
        submission.exit,
        submission.signal,
        submission.ended,
    )
    differing = [each for each in (code, signal_number, ended) if isinstance(each, dict)]
    tasks = dict.fromkeys(task for each in differing for task in each)
    return Emulation(
        0.0 if isinstance(run, dict) else run,
        0 if isinstance(code, dict) else code,
        0 if isinstance(signal_number, dict) else signal_number,
        task_run_s={str(task): seconds for task, seconds in run.items()}
        if isinstance(run, dict)
        else {},
        fault="" if isinstance(ended, dict) else ended,
        tag=submission.id,
        task_end={
            str(task): (_of(code, task, 0), _of(signal_number, task, 0), _of(ended, task, ""))
            for task in tasks
        },
    )


def _of(value: _Value | dict[int, _Value], task: int, default: _Value) -> _Value:
    return value.get(task, default) if isinstance(value, dict) else value


class ScenarioRun:
    """One run of a scenario by a participant."""

    _p: Participant

    def __init__(
        self, scenario: Scenario, zero: float, config: SlurmConfig, *, is_check: bool
    ) -> None:
        """`is_check`: a preview, without a run."""
        self._scenario, self._zero, self._config, self._is_check = scenario, zero, config, is_check
        self.foreseen_code = 0  # of a preview
        self.ids: dict[str, int] = {}
        self._of_id: dict[int, str] = {}
        self.rejected: dict[str, tuple[float, str]] = {}
        self._known: list[list[Any]] = []  # rows of the job table in the end
        self.recording = Recording(self._record)
        self._told: dict[int, JobRun] = {}
        self.error = ""  # why it ended early
        self.signal = 0
        self._submitting: set[asyncio.Task[None]] = set()
        self._awaited = 0  # how often it was asked to be told of the end
        self._expected = 0  # submissions of others, that are yet to come
        self._end: Callable[[str], None] = lambda _why: None
        self._added: list[str] = []  # tags of jobs that others have submitted

    @property
    def participant(self) -> Participant:
        """Who does it."""
        return self._p

    async def go(self, participant: Participant) -> None:
        """Issue everything at its time; wait until all is over, or the horizon; ask what became of
        the jobs.
        """
        self._p = participant
        ended: asyncio.Future[str] = self._p.loop.create_future()

        def end(why: str) -> None:
            if not ended.done():
                ended.set_result(why)

        def interrupted(number: int) -> None:
            self.signal = number
            end(INTERRUPTED)

        asking = self._p.loop.create_task(self._go(ended, end))

        def abandon(_number: int) -> None:
            asking.cancel()

        self._p.on_stalled(end)
        with heeding_interrupts(self._p, interrupted, abandon):
            try:
                await asking
            except asyncio.CancelledError:
                if not self.signal:
                    raise
        if self.signal:
            self.error = INTERRUPTED

    async def _go(self, ended: asyncio.Future[str], end: Callable[[str], None]) -> None:
        await set_up_accounting(self._p, self._scenario.accounting)
        preview = await preview_scenario(
            self._p, self._scenario, self._config, whole=self._is_check
        )
        if self._is_check:
            print(preview.text())
            self.foreseen_code = foreseen_code(preview)
            return
        show(preview)
        follower = Follower(self._p.messenger, self.recording, len(self._scenario.submissions))
        follower.follow()
        self._end = end
        issuing = self._start(self.issue_all())
        horizon = self._zero + self._scenario.horizon_s
        if horizon != float("inf"):
            self._p.time.call_at(horizon, end, "")
        why = await ended
        has_failed = issuing.done() and not issuing.cancelled() and issuing.exception() is not None
        if has_failed or (why and not issuing.done()):
            self.error = why
        for task in self._submitting:
            task.cancel()
        if self._p.cluster.keeps_accounting:
            await self._p.messenger.call("controller", AwaitRecorded(), 600.0)
        answer = await self._p.messenger.call("controller", Query("jobs", _COLUMNS), 600.0)
        told: asyncio.Future[str] = self._p.loop.create_future()
        follower.finish(told.set_result)
        error = await told
        if not isinstance(answer, Rows):
            error = f"the job table was not answered: {answer}"
        else:
            self._known = answer.rows
        self.error = self.error or error

    def _start(self, submitting: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Have it submit; who is the last asks to be told of the end."""
        task = self._p.loop.create_task(submitting)
        self._submitting.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._submitting.discard(task)
            if not task.cancelled() and task.exception():
                self._end(str(task.exception()))
            self._await_empty()

        task.add_done_callback(ended)
        return task

    def _give_up(self, why: str) -> None:
        self.error = why
        self._end(why)

    def _await_empty(self) -> None:
        if self._submitting or self._expected:
            return
        self.recording.await_end(self._give_up)
        self._awaited += 1
        number = self._awaited

        def answered(_answer: Message) -> None:
            # else there is more to come since
            if number == self._awaited and not (self._submitting or self._expected):
                self._end("")

        self._p.messenger.send("controller", AwaitEmpty(), answered, float("inf"))

    # --- more than the scenario has -------------------------------------------------------------

    def words(self, words: Sequence[str]) -> list[str]:
        """With jobs' ids and instants in them as in the scenario's own commands."""
        return [self._with_times(with_job_ids(word, self.ids)) for word in words]

    def multiply(self, load: float, rng: random.Random) -> None:
        """Have submissions that are to come be made `load` times in the mean, as drawn."""
        now = self._p.time.now() - self._zero
        items = [
            replace(each, id=f"{each.id}.{number}")
            for each in self._scenario.submissions
            if each.at >= now
            for number in range(2, copies(load, rng) + 2)
        ]
        self._start(self._issue([(each.at, 1, number, each) for number, each in enumerate(items)]))

    def add_trace(self, jobs: Sequence[TraceJob]) -> None:
        """A scenario's jobs have options, users and more."""
        raise ChangeFailedError(
            f"trace: {many(len(jobs), 'job')} of a trace cannot join a scenario; `load` makes more "
            "of its own, `do` has sbatch"
        )

    def tag(self, name: str) -> str:
        """By which a job that is submitted beside the scenario's is told of."""
        taken = {each.id for each in self._scenario.submissions} | set(self._added)
        tag, number = name or "job", 1
        while tag in taken:
            number += 1
            tag = f"{name or 'job'}-{number}"
        self._added.append(tag)
        return tag

    def expect(self, more: int) -> None:
        """So many submissions of others are yet to come, before which the run is not over; a
        negative number: so many have come.
        """
        self._expected += more
        if more < 0:
            self._await_empty()

    # --- what the scenario has ------------------------------------------------------------------

    async def issue_all(self) -> None:
        """Events and submissions, each at its time."""
        items: list[tuple[float, int, int, Submission | Event]] = [
            *((event.at, 0, number, event) for number, event in enumerate(self._scenario.events)),
            *((each.at, 1, number, each) for number, each in enumerate(self._scenario.submissions)),
        ]
        await self._issue(items)

    async def _issue(self, items: list[tuple[float, int, int, Submission | Event]]) -> None:
        for at, _, _, item in sorted(items, key=lambda entry: entry[:3]):
            when = self._zero + at + recorded_machine().issued_after_s
            if when > self._p.time.now():
                due = self._p.loop.create_future()
                self._p.time.call_at(when, due.set_result, None)
                await due
            await (self._submit(item) if isinstance(item, Submission) else self._command(item))

    async def _submit(self, submission: Submission) -> None:
        user_id = self._p.cluster.users[submission.user]

        def behaves(message: SubmitJob) -> SubmitJob:
            return msgspec.structs.replace(message, emulation=emulation_of(submission))

        options = [with_job_ids(word, self.ids) for word in submission.options]
        name = submission.name or submission.id
        outcome = await run_command(
            self._p.messenger,
            self._p.cluster.name,
            "sbatch",
            sbatch,
            [f"--job-name={name}", "--chdir=/", "--output=/dev/null", *options],
            stdin=SCRIPT,
            environ={"HOME": "/", "USER": submission.user},
            change=submitted_as(user_id, self._scenario.group_of(submission.user), behaves),
        )
        last = outcome.answers[-1] if outcome.answers else None
        if isinstance(last, Submitted):
            self.ids[submission.id] = last.job_id
            self._of_id[last.job_id] = submission.id
        else:
            text = outcome.err.strip() or outcome.out.strip()
            self.rejected[submission.id] = (submission.at, text)

    async def _command(self, event: Event) -> None:
        words = self.words(event.command)
        command = COMMANDS.get(words[0])
        if command is None:
            raise ReplayError(
                f"{shlex.join(words)}: not a command that a scenario may use "
                f"({', '.join(COMMANDS)})"
            )
        outcome = await run_command(
            self._p.messenger,
            self._p.cluster.name,
            words[0],
            command,
            words[1:],
        )
        if outcome.code:
            print(
                f"{shlex.join(words)}: exit {outcome.code}: "
                f"{outcome.err.strip() or outcome.out.strip()}",
                flush=True,
            )

    def _with_times(self, word: str) -> str:
        """`@60` anywhere in a word is the zero plus 60 s."""
        head, at, rest = word.partition("@")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        if not at or not digits:
            return word
        instant = real_time.strftime(
            "%Y-%m-%dT%H:%M:%S", real_time.localtime(self._zero + int(digits))
        )
        return head + instant + rest[len(digits) :]

    def write_results(self, out: Path) -> None:
        """OUT/result.jsonl."""
        header = {
            "header": 1,
            "workload": self._scenario.name,
            "program": "understudy",
            "controller_start": -self._scenario.lead_s,
        }
        lines = [header, *self.results()]
        (out / "result.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def results(self) -> list[dict[str, Any]]:
        """The lines of result.jsonl, by job number; what the job table has forgotten is known from
        what was told when it ended.
        """
        known = {row[0] for row in self._known}
        rows = [dict(zip(_COLUMNS, row, strict=True)) for row in self._known]
        rows += [_row(told) for told in self._told.values() if told.job_id not in known]
        attempts = self._attempts()
        results = []
        for record in sorted(rows, key=lambda row: int(row["job_id"])):
            task = record["array_task_id"]
            submission = self._of_id.get(record["array_job_id"] or record["job_id"])
            if submission is None:
                continue
            state = JobState(record["state"])
            is_over = state not in _OPEN
            # who is ended before has a start time, too
            started = bool(record["nodes"]) and state is not JobState.PENDING
            name = submission if task is None else f"{submission}_{task}"
            results.append(
                {
                    "job": name,
                    "state": job_state(int(state), record["flags"])
                    if state is JobState.PENDING
                    else state.name,
                    "submit": self._after(record["submit_time"]),
                    "eligible": self._after(record["eligible_time"]),
                    "start": self._after(record["start_time"]) if started else None,
                    "end": self._after(record["end_time"]) if is_over and started else None,
                    "nodes": record["nodes"] if started else "",
                    "cpus": record["cpus"],
                    "priority": record["priority"],
                    "reason": record["reason"],
                    "restarts": record["restarts"],
                    "limit": record["time_limit_s"],
                    **({"attempts": attempts[name]} if name in attempts else {}),
                }
            )
        results += [
            {
                "job": name,
                "state": REJECTED,
                "start": None,
                "end": None,
                "nodes": "",
                "message": text,
            }
            for name, (_, text) in self.rejected.items()
        ]
        return results

    def _attempts(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for each in self.recording.attempts:
            found.setdefault(each.id, []).append(
                {"start": each.start, "end": each.end, "state": each.state, "nodes": each.nodes}
            )
        return found

    def _record(self, told: JobRun, task: str) -> JobRecord | None:
        if not told.tag:
            return None
        self._told[told.job_id] = told
        return record_of(told, int(self._zero), told.job_id, task)

    def records(self) -> list[JobRecord]:
        """A record for each job: array tasks and components of heterogeneous jobs one by one, in
        the order of their numbers, and then the refused.
        """
        taken = [
            record
            for (tag, _, _), record in self.recording.last.items()
            if tag not in self.rejected
        ]
        found = sorted(taken, key=lambda record: record.job)
        found += [
            JobRecord(0, int(at), None, None, REJECTED, 0, "", -1, id=name, name=name, reason=text)
            for name, (at, text) in self.rejected.items()
        ]
        return [
            msgspec.structs.replace(record, job=number) for number, record in enumerate(found, 1)
        ]

    def attempts(self) -> list[JobRecord]:
        """Earlier runs of jobs, with the numbers that these have among the records."""
        numbers = {record.id: record.job for record in self.records()}
        return [
            msgspec.structs.replace(each, job=numbers[each.id]) for each in self.recording.attempts
        ]

    def _after(self, instant: float | None) -> int | None:
        return None if not instant else int(instant - self._zero)


def _row(told: JobRun) -> dict[str, Any]:
    """What was told of a job's run, as the job table would have it."""
    return {
        "job_id": told.job_id,
        "array_job_id": told.array_job_id,
        "array_task_id": int(told.array_tasks) if told.array_tasks.isdecimal() else None,
        "state": JobState.__members__.get(told.state, JobState.CANCELLED),
        "flags": 0,
        "submit_time": told.submit,
        "eligible_time": told.eligible,
        "start_time": told.start,
        "end_time": told.end,
        "nodes": told.nodes,
        "cpus": told.cpus,
        "priority": told.priority,
        "reason": told.reason,
        "restarts": told.restarts,
        "time_limit_s": told.limit_s,
    }
