"""What `understudy replay` does: a trace through a cluster under virtual time, and a folder with what came of it.

Place: the edge that joins launch.py (processes), clock (this process takes part in time) and experiments (the replay itself, figures, the report).
Reads and writes files, prints for people. The cluster is registered while it runs, so `squeue`, `sinfo`, `scontrol` and `understudy clock` work on
it from another terminal.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
import tempfile
import time as real_time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.commands import launch
from understudy.commands.cluster_run import Participant, in_one_process, in_processes
from understudy.commands.in_time import run_command
from understudy.commands.sacctmgr import sacctmgr
from understudy.commands.understudy_clock import instant
from understudy.experiments.answers import Answer, compare, read_answers
from understudy.experiments.metrics import summarize
from understudy.experiments.progress import Progress
from understudy.experiments.replay import Replayer, ReplayOptions, ReplayOutcome, owners
from understudy.experiments.replay_conf import replay_conf
from understudy.experiments.run_folder import write_run_folder
from understudy.experiments.scenario import complete_conf
from understudy.experiments.swf import Trace, read_swf
from understudy.model.hostlist import RANGE_LIMIT
from understudy.protocol.messages import Message, Query, Rows

if TYPE_CHECKING:
    import asyncio

DEFAULT_EPOCH: Final = 946_684_800.0  # 2000-01-01 UTC, for traces that do not say when they began
MAX_NODES: Final = RANGE_LIMIT  # they are written as one range
SET_UP_S: Final = 60.0  # how long before the trace begins accounting is set up, where it is
_SHOWN_WAITING: Final = 10


class ReplayError(Exception):
    """The replay could not be run; the text is for the user."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What the user asked for."""

    trace: Path
    out: Path
    nodes: int | None = None
    cpus: int = 1
    scheduler: str = "backfill"
    conf: Path | None = None
    answers: Path | None = None
    noded: int = 1
    one_process: bool = False
    strict: bool = False
    limit: int | None = None
    pause_at: str = ""
    parameters: str = ""
    state: str = "memory"
    latency_s: float = 0.001
    limit_s: float = 60.0  # of real time
    accounting: Path | None = None


def replay(request: ReplayRequest) -> int:
    """Run it; 0 if it went through (and all start times equal the answers, where there are any)."""
    began = real_time.perf_counter()
    trace = _read(request)
    jobs = trace.jobs[: request.limit] if request.limit else trace.jobs
    if not jobs:
        raise ReplayError(f"{request.trace}: no job that can be replayed")
    nodes = request.nodes or trace.max_nodes or -(-(trace.max_procs or max(job.procs for job in jobs)) // request.cpus)
    if request.conf is None and nodes > MAX_NODES:
        raise ReplayError(
            f"{nodes:,} nodes of {request.cpus} CPUs: a cluster has at most {MAX_NODES:,}. Say how many the machine had: --nodes, --cpus"
        )
    epoch = float(trace.unix_start_time or DEFAULT_EPOCH)
    set_up = _accounting_lines(request.accounting)
    zero = epoch + (SET_UP_S if set_up else 1.0)
    answers = _look_ahead(request, zero=zero)
    text = (
        _read_conf(request.conf)
        if request.conf
        else replay_conf(nodes, request.cpus, request.scheduler, jobs=len(jobs), parameters=request.parameters)
    )
    if set_up:
        text = complete_conf(text, accounting=True)
    total_cpus, nodes = _machine_size(request, nodes)
    is_textbook = request.conf is None and request.scheduler in ("easy", "fcfs")
    run_dir = Path(tempfile.mkdtemp(prefix="understudy-replay-"))
    conf = request.conf if request.conf and not set_up else run_dir / "replay.conf"
    if conf != request.conf:
        conf.write_text(text)
    print(f"{len(jobs):,} jobs of {request.trace.name} on {nodes:,} nodes ({total_cpus:,} CPUs), {_scheduler_name(request, text)}", flush=True)
    options = ReplayOptions(zero=zero, limit_step_s=1 if is_textbook else 60, owners=bool(set_up))
    completed = False
    try:
        cluster = launch.prepare(
            run_dir,
            conf,
            time="virtual",
            epoch=epoch,
            zero=zero,
            noded=request.noded,
            port=0,
            state=request.state,
            participants=["replay"],
            latency_s=request.latency_s,
            limit_s=request.limit_s,
            users=owners(jobs) if set_up else {},
            groups=owners(jobs) if set_up else {},
            plans_when_asked=True,
        )

        async def work(participant: Participant) -> tuple[ReplayOutcome, float]:
            await set_up_accounting(participant, set_up)
            return await _replay(participant, jobs, options)

        if request.one_process:
            outcome, wall_seconds = in_one_process(cluster, run_dir, work)
        else:
            outcome, wall_seconds = in_processes(cluster, run_dir, work, pause_at=request.pause_at)
        completed = not outcome.error
    finally:
        if completed:
            shutil.rmtree(run_dir, ignore_errors=True)
    ended_early = f"the replay ended early: {outcome.error}\nThe daemons' logs are in {run_dir / 'logs'}" if outcome.error else ""
    if not outcome.records:
        raise ReplayError(ended_early or "the cluster knows no job")
    summary = summarize(outcome.records, total_cpus, wall_seconds, outcome.simulated_seconds)
    config = {
        "trace": request.trace.name,
        "nodes": nodes,
        "cpus_per_node": total_cpus // nodes if nodes else 0,
        "scheduler": _scheduler_name(request, text),
        "daemons": "one process" if request.one_process else f"one process each, {request.noded} node daemon(s)",
        "message_latency_s": request.latency_s,
        "jobs_left_out": dict(trace.dropped),
        "bad_lines": trace.bad_line_count,
        "jobs_refused": len(outcome.rejected),
    }
    report = write_run_folder(
        request.out, outcome.records, summary, cpus=total_cpus, config=config, slurm_conf=text, title=f"Replay of {request.trace.name}"
    )
    _print_table(summary.as_dict(), outcome, real_time.perf_counter() - began)
    if ended_early:
        raise ReplayError(f"{ended_early}\nWhat became of the jobs by then: {report}")
    agrees = answers is None or _print_answers(request, outcome, answers)
    print(f"report       {report}")
    return 0 if agrees else 1


def _read(request: ReplayRequest) -> Trace:
    try:
        trace = read_swf(request.trace, strict=request.strict)
    except (OSError, EOFError) as error:
        raise ReplayError(f"{request.trace}: {getattr(error, 'strerror', None) or error}") from error
    except ValueError as error:
        raise ReplayError(str(error)) from error
    for bad in trace.bad_lines[:5]:
        print(f"{request.trace} line {bad.number}: {bad.why}", file=sys.stderr)
    if trace.bad_line_count > 5:
        print(f"{request.trace}: {trace.bad_line_count} bad lines in all", file=sys.stderr)
    for reason, count in trace.dropped.items():
        print(f"{request.trace}: {count:,} jobs left out: {reason}", file=sys.stderr)
    return trace


def _read_conf(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise ReplayError(f"--conf {path}: {error.strerror}") from error


def _look_ahead(request: ReplayRequest, zero: float) -> dict[int, Answer] | None:
    """Find out now what would otherwise be found out when the run is over; returns the answers, if there are any.

    Raises:
        ReplayError: the answers cannot be read, the folder cannot be written, or the clock cannot be stopped there.
    """
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=request.out):
            pass
    except OSError as error:
        raise ReplayError(f"--out {request.out}: {error.strerror}") from error
    if request.pause_at:
        if request.one_process:
            raise ReplayError("--break needs daemons that others can ask: leave out --one-process")
        try:
            instant(request.pause_at, zero)
        except ValueError as error:
            raise ReplayError(f"--break {error}") from error
    if request.answers is None:
        return None
    try:
        return read_answers(request.answers)
    except OSError as error:
        raise ReplayError(f"{request.answers}: {error.strerror}") from error
    except ValueError as error:
        raise ReplayError(str(error)) from error


def _machine_size(request: ReplayRequest, nodes: int) -> tuple[int, int]:
    if request.conf is None:
        return nodes * request.cpus, nodes
    from understudy.model.conf import load

    config = load(request.conf)
    return sum(node.cpus for node in config.nodes), len(config.nodes)


def _scheduler_name(request: ReplayRequest, conf: str) -> str:
    if request.conf is None:
        return f"sched/{request.scheduler}"
    for line in conf.splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "schedulertype":
            return value.strip()
    return "sched/backfill"


def _accounting_lines(path: Path | None) -> list[str]:
    """Arguments of `sacctmgr -i`, one command a line."""
    if path is None:
        return []
    try:
        return [line for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    except OSError as error:
        raise ReplayError(f"--accounting {path}: {error.strerror}") from error


async def set_up_accounting(participant: Participant, lines: list[str]) -> None:
    """Have the accounting daemon do what the lines say.

    Raises:
        ReplayError: it refused one.
    """
    for line in lines:
        words = ["-i", *shlex.split(line)]
        outcome = await run_command(participant.loop, participant.messenger, participant.cluster.name, "sacctmgr", sacctmgr, words)
        if outcome.code:
            raise ReplayError(f"sacctmgr {line}: {outcome.err.strip() or outcome.out.strip()}")


# --- the replay itself -----------------------------------------------------------------------------------------------------------


async def _replay(participant: Participant, jobs: list[Any], options: ReplayOptions) -> tuple[ReplayOutcome, float]:
    loop, messenger, cluster = participant.loop, participant.messenger, participant.cluster
    ended: asyncio.Future[ReplayOutcome] = loop.create_future()

    def done(outcome: ReplayOutcome) -> None:
        if not ended.done():
            ended.set_result(outcome)

    def stalled(reason: str) -> None:
        """Say what waits for what, as far as the controller can still be asked."""

        def listed(answer: Message) -> None:
            waiting = ""
            if isinstance(answer, Rows):
                shown = [f"job {row[0]} ({row[1]}) {row[2] or 'running'}" for row in answer.rows[:_SHOWN_WAITING]]
                more = f" and {len(answer.rows) - len(shown)} more" if len(answer.rows) > len(shown) else ""
                waiting = f"; unfinished: {', '.join(shown)}{more}" if shown else ""
            replayer.give_up(reason + waiting)

        messenger.send("controller", Query("jobs", ["job_id", "name", "reason", "state"], {"state": [0, 1, 2]}), listed, 600.0)

    participant.on_stalled(stalled)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lambda: done(ReplayOutcome([], error="interrupted")))
    began = real_time.perf_counter()
    with Progress(zero=lambda: cluster.zero) as progress:
        replayer = Replayer(jobs, messenger, participant.time, options, on_progress=progress.update)
        replayer.start(done)
        outcome = await ended
    return outcome, real_time.perf_counter() - began


def _print_table(summary: dict[str, Any], outcome: ReplayOutcome, in_all_s: float) -> None:
    if outcome.rejected:
        first = next(iter(outcome.rejected.items()))
        print(f"{len(outcome.rejected):,} jobs were refused, job {first[0]}: {first[1]}", file=sys.stderr)
    print_summary(summary)
    print(f"{'seconds in all':22} {in_all_s:.1f}")


def print_summary(summary: dict[str, Any]) -> None:
    """The figures of a run, one a line."""
    shown = {key: value for key, value in summary.items() if key != "schedule_sha256"}
    for key, value in shown.items():
        print(f"{key:22} {value:,.3f}" if isinstance(value, float) else f"{key:22} {value:,}")
    print(f"{'schedule_sha256':22} {summary['schedule_sha256']}")


def _print_answers(request: ReplayRequest, outcome: ReplayOutcome, expected: dict[int, Answer]) -> bool:
    if request.limit:
        replayed = {record.job for record in outcome.records}
        expected = {job: answer for job, answer in expected.items() if job in replayed}
    comparison = compare(outcome.records, expected)
    print(comparison.text())
    return comparison.agrees
