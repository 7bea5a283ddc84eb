"""What `understudy replay` does: a trace through a cluster under virtual time, and a folder with
what came of it.

Place: the edge that joins launch.py (processes), clock (this process takes part in time) and
experiments (the replay itself, figures, the report). Reads and writes files, prints for people. The
cluster is registered while it runs, so `squeue`, `sinfo`, `scontrol` and `understudy clock` work on
it from another terminal.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
import tempfile
import time as real_time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from understudy.clock.participant import ClockLost
from understudy.commands.sacctmgr.sacctmgr import sacctmgr
from understudy.controller.scheduling import registry
from understudy.experiments.answers import Answer, compare, read_answers
from understudy.experiments.formats import read_trace
from understudy.experiments.gantt import as_json, plan_of
from understudy.experiments.progress import Progress
from understudy.experiments.replay import Replayer, ReplayOptions, ReplayOutcome, owners
from understudy.experiments.replay_conf import DEFAULT_SCHEDULER, replay_conf
from understudy.experiments.run_folder import JobsFile
from understudy.experiments.scenario import (
    FAULTS_SLURMD_TIMEOUT,
    ScenarioError,
    SetUpCommand,
    complete_conf,
    read_set_up,
)
from understudy.experiments.trace import POOLS, Machine, Pool, Trace, TraceError
from understudy.model.errors import ConfigError
from understudy.model.hostlist import LIMIT, compress
from understudy.model.licenses import configured_licenses
from understudy.model.nouns import many
from understudy.tool.cluster import launch
from understudy.tool.cluster.clock_client import instant
from understudy.tool.cluster.cluster_run import Participant, in_one_process
from understudy.tool.replay.check import (
    MESSAGES,
    USER,
    USER_ID,
    allowed_groups,
    preview_trace,
    show,
)
from understudy.tool.replay.conf import RunConf, edits_of, made_conf, site_conf
from understudy.tool.replay.folder import replay_dir
from understudy.tool.replay.in_time import run_command
from understudy.tool.replay.replayed import TraceSubject
from understudy.tool.replay.request import ReplayRequest, faults_of, run_in, virtual_cluster
from understudy.tool.replay.results import (
    FAILED,
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

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from understudy.experiments.preview import Preview
    from understudy.experiments.records import JobRecord
    from understudy.experiments.trace import TraceJob
    from understudy.model.cluster import Cluster
    from understudy.model.conf import SlurmConfig
    from understudy.tool.replay.forks import Forks

DEFAULT_EPOCH: Final = 946_684_800.0  # 2000-01-01 UTC, for traces that do not say when they began
MAX_NODES: Final = LIMIT
SET_UP_S: Final = 60.0  # ours: how long before the trace begins accounting is set up, where it is


def replay(request: ReplayRequest) -> int:
    """Run it; 0 if all jobs ran (and all start times equal the answers, where there are any), else
    as run_results.py has it.
    """
    began = real_time.perf_counter()
    trace = _read(request)
    jobs = trace.jobs[: request.limit] if request.limit else trace.jobs
    if not jobs:
        raise ReplayError(f"{request.trace}: no job that can be replayed")
    machine = _machine(request, trace)
    epoch = float(trace.unix_start_time or DEFAULT_EPOCH)
    set_up = _set_up(request.accounting)
    # Before the zero nodes register and the jobs are looked at, which takes a few messages.
    zero = epoch + (SET_UP_S if set_up else 1.0) + int(2 * MESSAGES * request.latency_s)
    answers = None if request.check else _look_ahead(request, zero=zero)
    if request.forks is not None:
        request.forks.place(zero)
    # a check leaves nothing behind
    with replay_dir(None if request.check else request.out) as folder:
        source, pools = folder.path / "source", trace.pools
        run_conf = _run_conf(
            request, machine, source, jobs=len(jobs), accounting=bool(set_up), pools=pools
        )
        scheduler = run_conf.config.text("SchedulerType")
        is_exact = request.conf is None and registry.scheduler(scheduler).exact_limits
        _announce(request, len(jobs), run_conf)
        options = ReplayOptions(
            zero=zero,
            limit_step_s=1 if is_exact else 60,
            owners=bool(set_up),
            partition=request.partition,
            licenses=_pools(request, trace, run_conf.config),
            plans_at=_plans_at(request, zero),
        )
        users = owners(jobs)
        if not set_up:
            users, options = {USER: USER_ID}, replace(options, user_id=USER_ID)
        groups = users | allowed_groups(run_conf.config)
        cluster = virtual_cluster(
            request,
            folder.path,
            run_conf,
            epoch=epoch,
            zero=zero,
            users=users,
            groups=groups,
            is_faulty=request.is_faulty,
            plans_when_asked=True,
        )
        if request.check:
            preview = in_one_process(
                cluster, folder.path, partial(_preview, request, jobs, options, set_up, run_conf)
            )
            print(preview.text())
            return foreseen_code(preview)
        run = partial(
            _run_and_write,
            request,
            (cluster, folder.path, jobs, options, set_up, run_conf),
            trace,
            answers,
            began,
        )
        return run() if request.forks is None else request.forks.finish(folder, run)


def _run_and_write(
    request: ReplayRequest,
    parts: tuple[Cluster, Path, list[TraceJob], ReplayOptions, list[SetUpCommand], RunConf],
    trace: Trace,
    answers: dict[int, Answer] | None,
    began: float,
) -> int:
    """The run itself and its folder. The exit code."""
    previews: list[Preview] = []
    run_conf, zero = parts[-1], parts[3].zero
    assert zero is not None
    results = _run(request, *parts, previews)
    results.cpus = sum(node.cpus for node in run_conf.config.nodes)
    about, text = _about(request, trace, run_conf, zero), run_conf.text
    about["before_the_run"] = previews[0].line() if previews else ""
    if request.forks is not None:
        about |= request.forks.about()
        text = request.forks.slurm_conf or text
    summary, report = write_results(
        request.folder, results, about, text, f"Replay of {request.trace.name}"
    )
    print(f"{'seconds in all':22} {real_time.perf_counter() - began:.1f}")
    raise_if_ended_early(results, request.folder)
    agrees = answers is None or _print_answers(request, results.records, answers)
    print(f"report       {report}")
    return exit_code(summary) or (0 if agrees else FAILED)


def _announce(request: ReplayRequest, jobs: int, run_conf: RunConf) -> None:
    config = run_conf.config
    total_cpus = sum(node.cpus for node in config.nodes)
    print(
        f"{many(jobs, 'job')} of {request.trace.name} on {many(len(config.nodes), 'node')} "
        f"({many(total_cpus, 'CPU')}), {config.text('SchedulerType')}",
        flush=True,
    )


def _read(request: ReplayRequest) -> Trace:
    try:
        trace = read_trace(request.trace, strict=request.strict)
    except (OSError, EOFError) as error:
        raise ReplayError(
            f"{request.trace}: {getattr(error, 'strerror', None) or error}"
        ) from error
    except ValueError as error:
        raise ReplayError(str(error)) from error
    for bad in trace.bad_lines[:5]:
        print(f"{request.trace} line {bad.number}: {bad.why}", file=sys.stderr)
    if trace.bad_line_count > 5:
        print(f"{request.trace}: {trace.bad_line_count} bad lines in all", file=sys.stderr)
    for reason, count in trace.dropped.items():
        print(f"{request.trace}: {count:,} jobs left out: {reason}", file=sys.stderr)
    used = ["user", "group", "queue"] if request.accounting else []
    if trace.pools:
        used.append("columns behind the 18th")
    unused = [
        f"{name} ({count:,} jobs)" for name, count in trace.unused.items() if name not in used
    ]
    if unused:
        print(
            f"{request.trace}: not used: {', '.join(unused)}; `understudy import` makes a "
            "scenario that uses them",
            file=sys.stderr,
        )
    return trace


def _look_ahead(request: ReplayRequest, zero: float) -> dict[int, Answer] | None:
    """Find out now what would otherwise be found out when the run is over; returns the answers, if
    there are any.

    Raises:
        ReplayError: the answers cannot be read, or the folder cannot be written.
        UsageError: the clock cannot be stopped there.
    """
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=request.out):
            pass
    except OSError as error:
        raise ReplayError(f"--out {request.out}: {error.strerror}") from error
    if request.pause_at:
        if request.one_process:
            raise UsageError("--break needs daemons that others can ask: leave out --one-process")
        try:
            instant(request.pause_at, zero)
        except ValueError as error:
            raise UsageError(f"--break {error}") from error
    _plans_at(request, zero)
    if request.answers is None:
        return None
    try:
        return read_answers(request.answers)
    except OSError as error:
        raise ReplayError(f"{request.answers}: {error.strerror}") from error
    except ValueError as error:
        raise ReplayError(str(error)) from error


def _plans_at(request: ReplayRequest, zero: float) -> tuple[int, ...]:
    """The seconds in the trace that `--plan-at` names.

    Raises:
        UsageError: one that is none.
    """
    try:
        found = sorted(
            {
                int(instant(text.strip(), zero) - zero)
                for text in request.plans_at.split(",")
                if text.strip()
            }
        )
    except ValueError as error:
        raise UsageError(f"--plan-at {error}") from error
    if found and found[0] < 0:
        raise UsageError(f"--plan-at {request.plans_at}: the trace begins later")
    return tuple(found)


def _plan_writer(
    request: ReplayRequest, config: SlurmConfig, zero: float
) -> Callable[[int, Sequence[Sequence[Any]]], None]:
    """Writes each plan into the run's folder, as a file of its own; those of an earlier run go."""
    for path in request.folder.glob("plan-*.json"):
        path.unlink()
    nodes = compress(node.name for node in config.nodes)

    def write(at: int, rows: Sequence[Sequence[Any]]) -> None:
        (request.folder / f"plan-{at}.json").write_text(as_json(plan_of(rows, at, zero, nodes)))

    return write


def _machine(request: ReplayRequest, trace: Trace) -> Machine:
    """The machine to make a configuration for; nothing is to be made where the user has one."""
    if request.conf is not None:
        return Machine(0, 0)
    try:
        machine = trace.machine(request.nodes, request.cpus)
    except TraceError as error:
        raise ReplayError(f"{request.trace}: {error}") from None
    if machine.note:
        print(f"{request.trace}: {machine.note}", file=sys.stderr)
    if machine.nodes > MAX_NODES:
        raise ReplayError(
            f"{machine.nodes:,} nodes of {machine.cpus} CPUs: a cluster has at most "
            f"{MAX_NODES:,}. Say how many the machine had: --nodes, --cpus"
        )
    return machine


def _about(request: ReplayRequest, trace: Trace, run_conf: RunConf, zero: float) -> dict[str, Any]:
    """What the report says of the run's circumstances."""
    nodes = len(run_conf.config.nodes)
    total_cpus = sum(node.cpus for node in run_conf.config.nodes)
    return {
        "trace": request.trace.name,
        "zero": zero,
        "calendar": trace.unix_start_time is not None,
        "nodes": nodes,
        "cpus_per_node": total_cpus // nodes if nodes else 0,
        "scheduler": run_conf.config.text("SchedulerType"),
        "settings": " ".join(map(shlex.quote, request.settings)),
        "daemons": "one process"
        if request.one_process
        else f"one process each, {request.noded} node daemon(s)",
        "message_latency_s": request.latency_s,
        "jobs_left_out": dict(trace.dropped),
        "bad_lines": trace.bad_line_count,
    }


def _pools(request: ReplayRequest, trace: Trace, config: SlurmConfig) -> tuple[Pool, ...]:
    """The trace's pools as the configuration's licences have them; those that it has not are said,
    and nobody asks for them.
    """
    counts = configured_licenses(config.text("Licenses"))
    missing = [f"{pool.name}:{pool.capacity}" for pool in trace.pools if pool.name not in counts]
    if missing:
        print(
            f"{request.trace}: not used: units of {POOLS}, as the configuration has no such "
            f"licences; it would be Licenses={','.join(missing)}",
            file=sys.stderr,
        )
        return ()
    return tuple(Pool(pool.name, counts[pool.name]) for pool in trace.pools)


def _run_conf(
    request: ReplayRequest,
    machine: Machine,
    folder: Path,
    *,
    jobs: int,
    accounting: bool,
    pools: Sequence[Pool],
) -> RunConf:
    """The configuration of the run: the user's or one for the machine, with what `--set` changes.

    Raises:
        ConfigError, EditError: it cannot be used.
        UsageError: it has the machine, and so has the command line.
    """

    def complete(text: str) -> str:
        return complete_conf(text, accounting=True) if accounting else text

    if request.conf is None:
        text = replay_conf(
            machine.nodes,
            machine.cpus,
            request.scheduler or DEFAULT_SCHEDULER,
            jobs=jobs,
            parameters=request.parameters,
            licenses=pools,
        )
        # nobody would notice that a node has failed
        detecting = [f"SlurmdTimeout={FAULTS_SLURMD_TIMEOUT}"] if request.is_faulty else []
        edits = edits_of([*detecting, *request.settings])
        try:
            return made_conf(complete(text), folder, edits)
        except ConfigError as error:
            raise UsageError(f"--scheduler, --parameters: {error.message}") from None
    if request.nodes or request.cpus:
        raise UsageError(
            "--nodes and --cpus say nothing beside --conf, which has the machine; --set "
            "'NodeName=...' changes a line of it"
        )
    return site_conf(
        request.conf,
        folder,
        edits_of(request.settings, request.scheduler, request.parameters),
        complete,
    )


def _set_up(path: Path | None) -> list[SetUpCommand]:
    """What `--accounting` names."""
    try:
        return [] if path is None else read_set_up(path)
    except ScenarioError as error:
        raise ReplayError(f"--accounting {error}") from error


async def set_up_accounting(participant: Participant, commands: Sequence[SetUpCommand]) -> None:
    """Have the accounting daemon do what the lines say.

    Raises:
        ReplayError: it refused one.
    """
    for command in commands:
        outcome = await run_command(
            participant.messenger,
            participant.cluster.name,
            "sacctmgr",
            sacctmgr,
            ["-i", *command.words],
        )
        if outcome.code:
            raise ReplayError(
                f"{command.place}: sacctmgr {shlex.join(command.words)}: "
                f"{outcome.err.strip() or outcome.out.strip()}"
            )


# --- the replay itself ----------------------------------------------------------------------------


async def _preview(
    request: ReplayRequest,
    jobs: list[TraceJob],
    options: ReplayOptions,
    set_up: list[SetUpCommand],
    run_conf: RunConf,
    participant: Participant,
) -> Preview:
    """What --check tells: how the jobs and the machine go together."""
    await set_up_accounting(participant, set_up)
    preview, _ = await preview_trace(
        participant, jobs, options, run_conf.config, whole=request.check
    )
    return preview


def _run(
    request: ReplayRequest,
    cluster: Cluster,
    run_dir: Path,
    jobs: list[TraceJob],
    options: ReplayOptions,
    set_up: list[SetUpCommand],
    run_conf: RunConf,
    previews: list[Preview],
) -> RunResults:
    """Run the trace through the cluster; what came of it is known however that ends."""
    results = RunResults()
    made: list[Replayer] = []
    began = real_time.perf_counter()
    faults = faults_of(request, run_conf.config)
    assert options.zero is not None
    write_plan = _plan_writer(request, run_conf.config, options.zero)

    async def work(participant: Participant) -> ReplayOutcome:
        await set_up_accounting(participant, set_up)
        preview, chosen = await preview_trace(
            participant, jobs, options, run_conf.config, whole=False
        )
        previews.append(preview)
        show(preview)
        return await _replay(
            participant, made, jobs, chosen, file, write_plan, results, request.forks
        )

    with contextlib.closing(JobsFile(request.folder)) as file:
        if request.forks is not None:
            request.forks.keep(file)
        try:
            outcome = run_in(request, cluster, run_dir, run_conf, faults, work)
        except (launch.LaunchError, ClockLost, KeyboardInterrupt) as error:
            text, results.signal = early_end(error, results.signal)
            outcome = made[0].so_far(text) if made else ReplayOutcome([], error=text)
    results.faults = {} if faults is None else faults.figures()
    results.records, results.attempts, results.error = (
        outcome.records,
        outcome.attempts,
        outcome.error,
    )
    results.wall_s = results.wall_s or real_time.perf_counter() - began
    results.simulated_s = outcome.simulated_seconds
    results.watched = outcome.watched
    return results


async def _replay(
    participant: Participant,
    made: list[Replayer],
    jobs: list[TraceJob],
    options: ReplayOptions,
    file: JobsFile,
    write_plan: Callable[[int, Sequence[Sequence[Any]]], None],
    results: RunResults,
    forks: Forks | None,
) -> ReplayOutcome:
    loop, messenger, cluster = participant.loop, participant.messenger, participant.cluster
    ended: asyncio.Future[ReplayOutcome] = loop.create_future()

    def done(outcome: ReplayOutcome) -> None:
        if not ended.done():
            ended.set_result(outcome)

    def interrupted(number: int) -> None:
        results.signal = number
        replayer.give_up(INTERRUPTED)

    began = real_time.perf_counter()
    with Progress(zero=lambda: cluster.zero) as progress:
        replayer = Replayer(
            jobs,
            messenger,
            participant.time,
            options,
            on_progress=progress.update,
            on_records=file.add,
            on_stories=file.add_stories,
            on_plan=write_plan,
        )
        made.append(replayer)
        if forks is not None:
            forks.follow(TraceSubject(participant, replayer))
        participant.on_stalled(replayer.stall)
        with heeding_interrupts(
            participant, interrupted, lambda _number: replayer.abandon(INTERRUPTED)
        ):
            replayer.start(done)
            outcome = await ended
    results.wall_s = real_time.perf_counter() - began
    return outcome


def _print_answers(
    request: ReplayRequest, records: list[JobRecord], expected: dict[int, Answer]
) -> bool:
    if request.limit:
        replayed = {record.job for record in records}
        expected = {job: answer for job, answer in expected.items() if job in replayed}
    comparison = compare(records, expected)
    print(comparison.text())
    return comparison.agrees
