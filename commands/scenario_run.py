"""What `understudy replay FOLDER` does: a scenario through a cluster under virtual time, and what became of each job as `result.jsonl`.

Place: beside replay_run.py, for folders instead of traces. Submissions and the administrator's commands are the commands themselves (in_time.py),
with sbatch's own options. The format is documented in docs/scenarios.md.
"""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import tempfile
import time as real_time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.commands import launch
from understudy.commands.cluster_run import Participant, in_one_process, in_processes
from understudy.commands.in_time import run_command, submitted_as
from understudy.commands.replay_run import ReplayError, ReplayRequest, print_summary, set_up_accounting
from understudy.commands.sbatch import sbatch
from understudy.commands.scancel import scancel
from understudy.commands.scontrol import scontrol
from understudy.commands.states import job_state
from understudy.experiments.metrics import summarize
from understudy.experiments.records import JobRecord
from understudy.experiments.run_folder import write_run_folder
from understudy.experiments.scenario import (
    CONTROLLER_LEAD_S,
    GROUP_ID,
    ISSUED_AFTER_S,
    Event,
    Scenario,
    Submission,
    read_scenario,
    with_job_ids,
)
from understudy.model.states import JobState
from understudy.protocol.messages import AwaitEmpty, AwaitRecorded, Emulation, Message, Query, Rows, SubmitJob, Submitted

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from understudy.commands.client import Context

_COMMANDS: Final[dict[str, Callable[[list[str], Context], int]]] = {"scontrol": scontrol, "scancel": scancel, "sbatch": sbatch}
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
SCRIPT: Final = "#!/bin/sh\n"
# What a real node takes beside the script: from the decision to the script's start and from its end to the news (seconds), and until it is clean.
# Most jobs that recordings show to be launched alone are so quick that the loop's look 0.05 s after their run gives their nodes to others (after
# 0.04 s: every second one); of several launched together the later ones take longer. A script that is told to end leaves a child behind for a
# moment, and the node looks again after 1 s and 2 s more.
OVERHEAD_S: Final = 0.037
LAUNCH_S: Final = 0.006
EPILOG_S: Final = 0.01
KILL_S: Final = 3.67


def replay_scenario(request: ReplayRequest) -> int:
    """Run it; 0 if it went through to its end or its horizon."""
    began = real_time.perf_counter()
    scenario = read_scenario(request.trace)
    run_dir = Path(tempfile.mkdtemp(prefix="understudy-replay-"))
    source = run_dir / "source"
    shutil.copytree(scenario.folder, source, ignore=shutil.ignore_patterns("*.jsonl"))
    (source / "slurm.conf").write_text(scenario.conf)
    zero = float(_EPOCH + 30)
    cluster = launch.prepare(
        run_dir,
        source / "slurm.conf",
        time="virtual",
        epoch=zero - CONTROLLER_LEAD_S,
        zero=zero,
        noded=request.noded,
        port=0,
        state=request.state,
        participants=["replay"],
        latency_s=request.latency_s,
        limit_s=request.limit_s,
        users=scenario.users,
        groups={"users": GROUP_ID},
        job_overhead_s=OVERHEAD_S,
        job_launch_s=LAUNCH_S,
        kill_s=KILL_S,
        epilog_s=EPILOG_S,
        sleeps_while_stopped=True,
    )
    print(f"{scenario.name}: {len(scenario.submissions)} submissions, {len(scenario.events)} commands", flush=True)

    async def work(participant: Participant) -> tuple[list[dict[str, Any]], float]:
        return await _Run(participant, scenario).go(), real_time.perf_counter() - began

    try:
        if request.one_process:
            results, wall_s = in_one_process(cluster, run_dir, work)
        else:
            results, wall_s = in_processes(cluster, run_dir, work, pause_at=request.pause_at)
    finally:
        shutil.rmtree(run_dir, ignore_errors=True)
    request.out.mkdir(parents=True, exist_ok=True)
    lines = [{"header": 1, "workload": scenario.name, "program": "understudy", "controller_start": -CONTROLLER_LEAD_S}, *results]
    (request.out / "result.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _write_report(request, scenario, results, wall_s)
    return 0


_EPOCH: Final = 1_600_000_012  # the zero is 22 s behind a full minute: what the recordings of real Slurm agree with


class _Run:
    """One run of a scenario by a participant."""

    def __init__(self, participant: Participant, scenario: Scenario) -> None:
        self._p, self._scenario = participant, scenario
        self._ids: dict[str, int] = {}
        self._of_id: dict[int, str] = {}
        self._rejected: dict[str, str] = {}
        self._zero = participant.cluster.zero

    async def go(self) -> list[dict[str, Any]]:
        """Issue everything at its time; wait until all is over, or the horizon; ask what became of the jobs."""
        ended: asyncio.Future[str] = self._p.loop.create_future()

        def end(why: str) -> None:
            if not ended.done():
                ended.set_result(why)

        self._p.on_stalled(end)
        for number in (signal.SIGINT, signal.SIGTERM):
            self._p.loop.add_signal_handler(number, end, "interrupted")
        issuing = self._p.loop.create_task(self._issue_all())
        issuing.add_done_callback(lambda task: end(str(task.exception())) if not task.cancelled() and task.exception() else None)
        horizon = self._zero + self._scenario.horizon_s
        if horizon != float("inf"):
            self._p.time.call_at(horizon, end, "")
        issuing.add_done_callback(lambda _: self._p.messenger.send("controller", AwaitEmpty(), lambda _answer: end(""), float("inf")))
        why = await ended
        has_failed = issuing.done() and not issuing.cancelled() and issuing.exception() is not None
        if has_failed or (why and not issuing.done()):
            raise ReplayError(why)
        if self._p.cluster.accounting:
            await self._p.messenger.call("controller", AwaitRecorded(), 600.0)
        answer = await self._p.messenger.call("controller", Query("jobs", _COLUMNS), 600.0)
        if not isinstance(answer, Rows):
            raise ReplayError(f"the job table was not answered: {answer}")
        return self._results(answer)

    async def _issue_all(self) -> None:
        await set_up_accounting(self._p, self._scenario.accounting)
        items: list[tuple[float, int, int, Submission | Event]] = [
            *((event.at, 0, number, event) for number, event in enumerate(self._scenario.events)),
            *((each.at, 1, number, each) for number, each in enumerate(self._scenario.submissions)),
        ]
        for at, _, _, item in sorted(items, key=lambda entry: entry[:3]):
            when = self._zero + at + ISSUED_AFTER_S
            if when > self._p.time.now():
                due = self._p.loop.create_future()
                self._p.time.call_at(when, due.set_result, None)
                await due
            await (self._submit(item) if isinstance(item, Submission) else self._command(item))

    async def _submit(self, submission: Submission) -> None:
        user_id = self._p.cluster.users[submission.user]

        def behaves(message: SubmitJob) -> SubmitJob:
            run = submission.run
            emulation = (
                Emulation(0.0, submission.exit, task_run_s={str(task): seconds for task, seconds in run.items()})
                if isinstance(run, dict)
                else Emulation(run, submission.exit)
            )
            return msgspec.structs.replace(message, emulation=emulation)

        options = [with_job_ids(word, self._ids) for word in submission.options]
        name = submission.name or submission.id
        outcome = await run_command(
            self._p.loop,
            self._p.messenger,
            self._p.cluster.name,
            "sbatch",
            sbatch,
            [f"--job-name={name}", "--chdir=/", "--output=/dev/null", *options],
            stdin=SCRIPT,
            environ={"HOME": "/", "USER": submission.user},
            change=submitted_as(user_id, GROUP_ID, behaves),
        )
        last = outcome.answers[-1] if outcome.answers else None
        if isinstance(last, Submitted):
            self._ids[submission.id] = last.job_id
            self._of_id[last.job_id] = submission.id
        else:
            self._rejected[submission.id] = outcome.err.strip() or outcome.out.strip()

    async def _command(self, event: Event) -> None:
        words = [self._with_times(with_job_ids(word, self._ids)) for word in event.command]
        command = _COMMANDS.get(words[0])
        if command is None:
            raise ReplayError(f"{shlex.join(words)}: not a command that a scenario may use ({', '.join(_COMMANDS)})")
        outcome = await run_command(self._p.loop, self._p.messenger, self._p.cluster.name, words[0], command, words[1:])
        if outcome.code:
            print(f"{shlex.join(words)}: exit {outcome.code}: {outcome.err.strip() or outcome.out.strip()}", flush=True)

    def _with_times(self, word: str) -> str:
        """`@60` anywhere in a word is the zero plus 60 s."""
        head, at, rest = word.partition("@")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        if not at or not digits:
            return word
        instant = real_time.strftime("%Y-%m-%dT%H:%M:%S", real_time.localtime(self._zero + int(digits)))
        return head + instant + rest[len(digits) :]

    def _results(self, answer: Message) -> list[dict[str, Any]]:
        assert isinstance(answer, Rows)
        results = []
        for row in answer.rows:
            record = dict(zip(_COLUMNS, row, strict=True))
            task = record["array_task_id"]
            submission = self._of_id.get(record["array_job_id"] or record["job_id"])
            if submission is None:
                continue
            state = JobState(record["state"])
            is_over = state not in _OPEN
            started = bool(record["nodes"]) and state is not JobState.PENDING  # who is ended before has a start time, too
            results.append(
                {
                    "job": submission if task is None else f"{submission}_{task}",
                    "state": job_state(int(state), record["flags"]) if state is JobState.PENDING else state.name,
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
                }
            )
        results += [
            {"job": name, "state": "REJECTED", "start": None, "end": None, "nodes": "", "message": text} for name, text in self._rejected.items()
        ]
        return results

    def _after(self, instant: float | None) -> int | None:
        return None if not instant else int(instant - self._zero)


def _write_report(request: ReplayRequest, scenario: Scenario, results: list[dict[str, Any]], wall_s: float) -> None:
    from understudy.model.conf import read_text

    config = read_text(scenario.conf)
    cpus = sum(node.cpus for node in config.nodes)
    records = [
        JobRecord(
            number,
            result.get("submit") or 0,
            result["start"],
            result["end"],
            result["state"],
            result.get("cpus") or 0,
            result["nodes"],
            result["limit"] if result.get("limit") is not None else -1,
        )
        for number, result in enumerate(results, 1)
    ]
    summary = summarize(records, cpus, wall_s)
    about = {"scenario": scenario.name, "title": scenario.title, "daemons": "one process" if request.one_process else "one process each"}
    report = write_run_folder(request.out, records, summary, cpus=cpus, config=about, slurm_conf=scenario.conf, title=f"Scenario {scenario.name}")
    print_summary(summary.as_dict())
    print(f"report       {report}")
