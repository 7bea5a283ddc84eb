"""Fuzzed schedules: random configurations with jobs and administrators, each through a whole
cluster in one process, with a look at each step.

    python tests/simulation/fuzz.py --count 500 [--first 1] [--twice]       many
    python tests/simulation/fuzz.py --seed 17 [--shrink] [--keep FOLDER] [--trace]

A failure names its seed and the command that shows it again. `--shrink` leaves out jobs, events and
lines of the configuration while it still fails in the same way; `--keep` writes what is left as a
scenario folder, which `understudy replay FOLDER --one-process` takes, too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import logging
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.circles import Circle
from simulation.schedules import JOBS, Schedule, draw

from understudy.accounting.main import start as start_accounting
from understudy.accounting.store import Store
from understudy.auth.keys import create_keys
from understudy.clock.daemon import Daemon
from understudy.clock.timekeeper import Timekeeper
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.controller.edge.main import start as start_controller
from understudy.controller.scheduling.api import Ask, Note
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.tables.burst_buffers import NO_SPACE, Readiness
from understudy.controller.tables.partition import limit_broken
from understudy.experiments.recorded_machine import recorded_machine
from understudy.experiments.scenario import GROUP_ID, read_scenario
from understudy.experiments.shrinking import without_needless
from understudy.model.cluster import Cluster, NodeDaemon
from understudy.model.errors import ConfigError
from understudy.model.hostlist import compress
from understudy.model.states import JobState
from understudy.noded.main import start as start_noded
from understudy.protocol.messages import (
    CancelJobs,
    ControlJobs,
    Failure,
    Message,
    UpdateNodes,
    UpdatePartition,
    UpdateReservation,
)
from understudy.protocol.messenger import MemoryNetwork, Messenger
from understudy.tool.cluster.cluster_run import Participant
from understudy.tool.faults.invariants import Invariants
from understudy.tool.faults.lives import is_daemon
from understudy.tool.replay import scenarios as scenario_run
from understudy.tool.replay.traces import set_up_accounting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from understudy.controller.core.core import Core
    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.burst_buffers import Buffer
    from understudy.controller.tables.job import HetJob, Job
    from understudy.controller.tables.partition import Partition

LONGEST_S = 60  # of this process's CPU time: the machine may be busy
LONGEST_STILL_S = 900  # of real time: it waits for what never comes
AGAIN_S = 5.0  # after either, as what was raised may have been swallowed
# between two looks at what is left; a backfill interval, an age limit and a repetition are shorter
LOOK_S = 400.0
LOOKS = 40
COMMAND = "python tests/simulation/fuzz.py --seed {}"
# With these a job that waits for ever may keep others from being looked at, however empty the
# cluster is.
LOOKS_AT_FEW = (
    "bf_max_job",
    "depth",
    "bf_window",
    "bf_min_",
    "assoc_limit_stop",
    "max_job_start",
    "one_resv",
)
WAITS_FOR_NOTHING = ("None", "Priority", "Resources")


class ScheduleFailed(AssertionError):  # noqa: N818  says what happened
    """Something that must hold does not: what, with which seed, and how to see it again."""

    def __init__(self, schedule: Schedule, problem: str, command: str = COMMAND) -> None:
        super().__init__(
            f"seed {schedule.seed}: {problem}\nto see it again: {command.format(schedule.seed)}"
        )
        self.problem = problem


@dataclass
class Outcome:
    """How the jobs of a schedule ended, why those wait that never will start, and how many steps
    were looked at. `circles`: 1 if jobs preempt each other for ever.
    """

    steps: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    waiting: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    circles: int = 0
    hash: str = ""


class _Errors(logging.Handler):
    """Exceptions that are only logged are failures, too."""

    def __init__(self, run: Run) -> None:
        super().__init__(logging.WARNING)
        self._run = run

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._run.fail(f"{record.getMessage()}: {_told(record.exc_info[1])}")


class Run:
    """One schedule through one cluster."""

    STATE = "memory"
    command = COMMAND  # that shows it again

    def __init__(
        self,
        schedule: Schedule,
        folder: Path,
        trace: Callable[[str], None] | None,
        loop: VirtualEventLoop,
    ) -> None:
        self.schedule, self.folder, self.trace, self.loop = schedule, folder, trace, loop
        self.problem = ""
        self.task: asyncio.Task[Outcome] | None = None
        self.outcome = Outcome()
        self.core: Core | None = None
        self.run: scenario_run.ScenarioRun | None = None
        schedule.write(folder)
        self.scenario = read_scenario(folder)
        (folder / "slurm.conf").write_text(self.scenario.conf)
        for name in ("state", "spool", "logs"):
            (folder / name).mkdir()
        machine = recorded_machine()
        zero = float(machine.zero)
        names = node_names(schedule)
        count = min(schedule.node_daemons, len(names))
        create_keys(folder / "keys", ["controller", *(f"noded{part}" for part in range(count))])
        bounds = [len(names) * part // count for part in range(count + 1)]
        self.cluster = Cluster(
            "scenario",
            str(folder / "slurm.conf"),
            time="virtual",
            epoch=zero - machine.lead_s,
            zero=zero,
            key_folder=str(folder / "keys"),
            nodeds=[
                NodeDaemon(f"noded{part}", "", compress(names[bounds[part] : bounds[part + 1]]))
                for part in range(count)
            ],
            state=self.STATE,
            accounting="tcp:127.0.0.1:1" if schedule.accounting else "",
            user_id=0,
            users=self.scenario.users,
            groups={"users": GROUP_ID},
            **machine.cluster,
        )
        self.network = MemoryNetwork()
        self.time = Timekeeper(self.loop, self.cluster.epoch)
        self.daemons: list[Daemon] = []
        self.root, self.client = self._messenger("root", 0), self._messenger("replay", 0)

    def _messenger(self, name: str, user_id: int) -> Messenger:
        return Messenger(
            name,
            self.loop,
            None,
            user_id=user_id,
            group_id=user_id,
            latency_s=0.001,
            network=self.network,
            is_daemon=is_daemon(name),
        )

    def note(self, problem: str) -> None:
        """What must hold does not; the first such thing is what is told."""
        if not self.problem:
            self.problem = f"at {self.time.now() - self.cluster.zero:.3f}: {problem}"

    def fail(self, problem: str) -> None:
        """What must hold does not: the run is over."""
        if not self.problem:
            self.note(problem)
            if self.task is not None:
                self.task.cancel()

    def _exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, asyncio.CancelledError):
            self.fail(f"{context.get('message')}: {_told(error)}")

    async def go(self) -> Outcome:
        """All of it; the outcome, if nothing failed."""
        self.task = asyncio.current_task()
        self.loop.set_exception_handler(self._exception)
        try:
            await self._start()
            participant = Participant(
                self.loop,
                self.client,
                self.time,
                self.cluster,
                lambda react: setattr(self.loop, "on_stalled", react),
            )
            run = self.run = scenario_run.ScenarioRun(
                self.scenario, self.cluster.zero, self.config, is_check=False
            )
            run._p = participant
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                await set_up_accounting(participant, self.scenario.accounting)
                await run.issue_all()
            for line in said.getvalue().splitlines():
                self._trace(line)
                if "nternal error" in line or "Traceback" in line:
                    self.fail(line)
            for name, text in run.rejected.items():
                self._trace(f"{name} refused: {text}")
                if "nternal error" in text or "Traceback" in text:
                    self.fail(f"{name}: {text}")
            self.outcome.refused = len(run.rejected)
            await self._sleep(LOOK_S / 2)
            await self._heal()
            await self._drain()
            self._judge(run)
            return self.outcome
        finally:
            await self._close()

    async def _start(self) -> None:
        """All daemons, with a look after each step."""
        if self.schedule.accounting:
            self._make_database()
            await start_accounting(self._daemon("accounting"))
        controller = await start_controller(self._daemon("controller"))
        core = self.core = controller.core
        self.config = controller.config
        invariants, settle = Invariants(core), core.after_event

        def after_event() -> None:
            settle()
            if self.problem:
                return
            self.outcome.steps += 1
            try:
                invariants.check()
            except AssertionError as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                self.fail(f"{error or 'assertion'} ({where.name}: {where.line})")

        core.after_event = core.agents.after_event = controller.server.after_event = after_event
        for noded in self.cluster.nodeds:
            await start_noded(self._daemon(noded.name))

    def _daemon(self, name: str) -> Daemon:
        daemon = Daemon(name, self.cluster, self.folder, self._messenger(name, 0), self.time)
        self.daemons.append(daemon)
        return daemon

    def _make_database(self) -> None:
        (self.folder / "accounting").mkdir(mode=0o700)
        (self.folder / "accounting" / "accounting.sqlite").write_bytes(_empty_database())

    async def _close(self) -> None:
        for each in reversed(self.daemons):
            try:
                await each.close()
            except Exception as error:  # noqa: BLE001  the others are closed all the same
                self.note(f"{each.name} does not close: {_told(error)}")

    def _trace(self, line: str) -> None:
        if self.trace is not None:
            self.trace(line)

    async def _sleep(self, seconds: float) -> None:
        due = self.loop.create_future()
        self.time.call_at(self.time.now() + seconds, lambda: due.done() or due.set_result(None))
        await due

    async def _ask(self, message: Message) -> Message:
        answer = await self.root.call("controller", message, 600.0)
        if isinstance(answer, Failure) and "nternal error" in answer.text:
            self.fail(f"{message} was answered by {answer}")
        return answer

    async def _heal(self) -> None:
        """What people have stopped they let go."""
        core = self.core
        assert core is not None
        for name in list(core.tables.reservations.by_name):
            await self._ask(UpdateReservation("delete", name, {}))
        for name in list(core.tables.partitions):
            await self._ask(UpdatePartition("update", name, {"state": "UP"}))
        await self._ask(UpdateNodes(core.names.to_expression(core.names.all), {"state": "RESUME"}))
        await self._sleep(2.0)
        for name in list(core.tables.reservations.by_name):
            await self._ask(CancelJobs([], where={"reservation": [name]}))
            await self._ask(UpdateReservation("delete", name, {}))
        suspended = [
            str(job.job_id)
            for job in core.tables.running.values()
            if job.state is JobState.SUSPENDED and job.job_id not in core.preempt_suspended
        ]
        if suspended:
            await self._ask(ControlJobs("resume", suspended))
        await self._ask(
            CancelJobs([], signal=signal.SIGCONT, where={"state": [int(JobState.RUNNING)]})
        )
        await self._ask(ControlJobs("release", [], where={"state": [int(JobState.PENDING)]}))

    async def _drain(self) -> None:
        """Wait until all have ended but those that never will begin."""
        core = self.core
        assert core is not None
        before: object = None
        restarts: dict[int, int] = {}
        jobs = core.tables.jobs
        for _ in range(LOOKS):
            lately = [job for job in jobs.values() if job.restarts > restarts.get(job.job_id, 0)]
            restarts = {job.job_id: job.restarts for job in jobs.values()}
            await self._sleep(LOOK_S)
            left = (
                sorted(core.tables.pending),
                [(job.job_id, job.array_tasks) for job in core.tables.pending.values()],
                sum(job.restarts for job in jobs.values()),
            )
            is_at_rest = not (core.tables.running or core.completing or self._left_in_buffers())
            if is_at_rest and (before == left or not core.tables.pending):
                return
            before = left
        busy = [*core.tables.running.values(), *core.completing.values()]
        if lately and core.tables.preemption is not None:
            since = self.time.now() - 2 * LOOK_S  # who has just started is not to have ended
            old = [job for job in busy if job not in lately and (job.start_time or 0) < since]
            circle = Circle(core, self.time.now(), lately, LOOK_S)
            self.outcome.circles = int(not old and circle.closes())
        if (busy or lately) and not self.outcome.circles:
            self.fail(
                f"{len(busy)} jobs have not ended {LOOKS * LOOK_S:.0f} s after all was "
                f"healed, {len(lately)} were requeued lately: {(busy or lately)[0].story}"
            )

    def _judge(self, run: scenario_run.ScenarioRun) -> None:
        core = self.core
        assert core is not None
        purges = "MinJobAge=0" not in "\n".join(self.schedule.conf)
        for submission, job_id in run.ids.items():
            if job_id not in core.tables.jobs and not purges:
                self.fail(f"{submission}, job {job_id}, is lost")
        rows = []
        for job in core.tables.jobs.values():
            self.outcome.ends[job.state.name] += 1
            rows.append(
                f"{job.job_id} {job.start_time} {job.end_time} {job.state.name} {job.node_list} "
                f"{job.reason} {job.expected_start}"
            )
        self.outcome.hash = sha256("\n".join(rows).encode()).hexdigest()
        for job, buffer in self._left_in_buffers():
            if job.is_running and self.outcome.circles:  # who starts again for ever, uses it
                continue
            self.fail(f"its buffer is still {buffer.state}: {job.story}")
        self._judge_waiting()

    def _judge_waiting(self) -> None:
        """Nobody waits who could be started."""
        core = self.core
        assert core is not None
        # A heterogeneous job whose components cannot all have nodes waits for ever, and keeps those
        # of one of them, as a job does for whose counted features backfill asks too much. Jobs that
        # preempt each other for ever keep theirs.
        is_held_up = bool(self.outcome.circles) or any(
            job.priority and (job.het is not None or "*" in job.spec.features)
            for job in core.tables.pending.values()
        )
        looks_at_all = core.policy.name == "backfill" and not any(
            word in "\n".join(self.schedule.conf) for word in LOOKS_AT_FEW
        )
        passes = looks_at_all and not is_held_up
        now = self.time.now()
        policy = core.policy
        assert isinstance(policy, Builtin)
        policy.queue.note(Note.CHANGE)
        policy.queue.refresh(now)
        records = policy.queue.records
        # of all others, if nobody passes
        ahead = list(takewhile(lambda record: record.job is records[0].job, records))
        is_blocked = any(job.reason != "Priority" for job in core.tables.pending.values())
        for job in core.tables.jobs.values():
            if not job.is_pending:
                continue
            self.outcome.waiting[job.reason] += 1
            if not job.reason:
                self.fail(f"waits without a reason: {job.story} {job.spec.submit_line}")
            names = (
                job.partitions
                if passes and "*" not in job.spec.features  # of which backfill asks too much
                else [
                    record.partition.name
                    for record in ahead
                    if record.job is job and not is_held_up
                ]
            )
            if (
                job.reason in WAITS_FOR_NOTHING
                and core.tables.burst_buffers.readiness(job) is Readiness.READY
                and not (job.reason == "Priority" and is_blocked)
                and self._could_start(job, names)
            ):
                self.fail(
                    f"waits for {job.reason} although the cluster is empty: {job.story} "
                    f"{job.spec.submit_line}"
                )
        job = records[0].job if records else None
        if (
            job is not None
            and job.het is not None
            and looks_at_all
            and not self.outcome.circles
            and all(record.job.het is job.het for record in records)
        ):
            is_kept = any(
                each.reason not in WAITS_FOR_NOTHING for each in job.het.components.values()
            )
            if not is_kept and self._could_start_together(job.het):
                self.fail(
                    f"waits for {job.reason} with all its components although the cluster "
                    f"is empty: {job.story} {job.spec.submit_line}"
                )
        self._judge_buffers(passes=passes)

    def _judge_buffers(self, *, passes: bool) -> None:
        """Who could have space does not wait for it, if all are looked at."""
        core = self.core
        assert core is not None
        table = core.tables.burst_buffers
        waiting = list(core.tables.pending.values())
        # one that fails on its nodes time and again has them now and then
        if not passes or any(job.burst_buffer and job.burst_buffer.fails for job in waiting):
            return
        for job in waiting:
            if (
                job.reason == NO_SPACE
                and table.readiness(job) is Readiness.WAITING
                and job.job_id not in table.buffers
                and not job.array_tasks
                and table.fits(job)
                and self._could_start(job, job.partitions)
            ):
                self.fail(f"waits for space that is there: {job.story} {job.spec.submit_line}")

    def _left_in_buffers(self) -> list[tuple[Job, Buffer]]:
        """Jobs that have run, with the buffers that are to be staged out or taken down yet."""
        core = self.core
        assert core is not None
        table = core.tables.burst_buffers
        found = ((core.tables.jobs[each.job_id], each) for each in table.buffers.values())
        return [(job, each) for job, each in found if not job.is_pending and not each.has_failed]

    def _could_start_together(self, team: HetJob) -> bool:
        """Whether nothing keeps the components of a heterogeneous job from being started in the
        empty cluster, each on nodes of its own. A component keeps nodes in each of its partitions,
        in 22.05.8, too: of eight nodes, one with two partitions leaves six to the next, for ever.
        """
        core = self.core
        assert core is not None
        tables, now, taken = core.tables, self.time.now(), 0
        specs = [job.spec for job in team.components.values() if job.is_pending]
        if any("*" in each.features for each in specs):  # of which backfill asks too much
            return False
        if not tables.licenses.are_free(",".join(each.licenses for each in specs if each.licenses)):
            return False
        with contextlib.ExitStack() as counted:
            for _, job in sorted(team.components.items()):
                if not job.is_pending:
                    continue
                found = self._place(job, job.partitions, taken)
                if found is None or not job.is_eligible(now):
                    return False
                for partition in job.partitions:
                    kept = self._place(job, [partition], taken)
                    taken |= kept[1].nodes if kept is not None else 0
                if core.job_limits is not None and tables.limits.enforced:
                    counted.enter_context(core.job_limits.counting(job, *found))
        return True

    def _could_start(self, job: Job, partitions: Iterable[str]) -> bool:
        """Whether nothing keeps a job from being started in one of the partitions of the empty
        cluster.
        """
        core = self.core
        assert core is not None
        if job.het is not None:  # its components need nodes of their own
            return False
        return (
            job.is_eligible(self.time.now())
            and core.tables.licenses.are_free(job.spec.licenses)
            and self._place(job, partitions) is not None
        )

    def _place(
        self, job: Job, partitions: Iterable[str], taken: int = 0
    ) -> tuple[Partition, Allocation] | None:
        """Where the job could be, in the first of the partitions that has nodes for it beside those
        that are taken.
        """
        core = self.core
        assert core is not None
        tables, now = core.tables, self.time.now()
        for name in partitions:
            partition = tables.partitions.get(name)
            if partition is None or limit_broken(job, partition) or not partition.can_schedule:
                continue
            if tables.limits.enforced and (
                tables.limits.before(job, partition, now)
                or tables.limits.by_request(job, partition, now)
            ):
                continue
            allocation = core.selector.select(
                Ask(job, partition, partition.nodes & tables.nodes.up_nodes & ~taken), tables
            )
            if allocation is not None and not (
                tables.limits.enforced
                and tables.limits.by_allocation(job, partition, allocation, now)
            ):
                return partition, allocation
        return None


def _told(error: BaseException | None) -> str:
    """What it is, and the last lines of where."""
    where = "".join(traceback.format_exception(error)[-3:]) if error is not None else ""
    return f"{error!r}\n{where}"


@cache
def _empty_database() -> bytes:
    """An accounting database without anything in it: to make one takes longer than a schedule."""
    with tempfile.TemporaryDirectory(prefix="understudy-fuzz-") as folder:
        path = Path(folder) / "accounting.sqlite"
        Store(f"sqlite:///{path}", durable=False).close()
        return path.read_bytes()


def node_names(schedule: Schedule) -> list[str]:
    """The nodes of its configuration, in their order."""
    found = re.findall(r"NodeName=n(\d+)|NodeName=n\[(\d+)-(\d+)\]", "\n".join(schedule.conf))
    numbers = {number for each in found for number in _numbers(each)}
    return [f"n{number}" for number in sorted(numbers)]


def _numbers(found: tuple[str, str, str]) -> list[int]:
    one, first, last = found
    return [int(one)] if one else list(range(int(first), int(last) + 1))


def run_schedule(
    schedule: Schedule, trace: Callable[[str], None] | None = None, make: type[Run] = Run
) -> Outcome:
    """Run it.

    Raises:
        ScheduleFailed: what must hold does not.
        ConfigError: the configuration cannot be used at all.
    """
    with (
        tempfile.TemporaryDirectory(
            prefix="understudy-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
        ) as folder,
        contextlib.closing(VirtualEventLoop()) as loop,
    ):
        run = make(schedule, Path(folder), trace, loop)
        handler = _Errors(run)
        root = logging.getLogger("understudy")
        propagated, root.propagate = root.propagate, False
        root.addHandler(handler)

        late: list[ScheduleFailed] = []

        def spins(_number: int, frame: FrameType | None) -> None:
            where = "".join(traceback.format_stack(frame)[-8:])
            late.append(
                ScheduleFailed(
                    schedule,
                    f"not done after {LONGEST_S} s of CPU time; it was here:\n{where}",
                    make.command,
                )
            )
            raise late[0]

        before = {each: signal.signal(each, spins) for each in (signal.SIGPROF, signal.SIGALRM)}
        signal.setitimer(signal.ITIMER_PROF, LONGEST_S, AGAIN_S)
        signal.setitimer(signal.ITIMER_REAL, LONGEST_STILL_S, AGAIN_S)
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                try:
                    outcome = runner.run(run.go())
                except asyncio.CancelledError:
                    outcome = run.outcome
                except (ConfigError, ScheduleFailed):
                    raise
                except Exception as error:
                    raise ScheduleFailed(
                        schedule,
                        f"at the end: {error!r}\n{traceback.format_exc(limit=-3)}",
                        make.command,
                    ) from error
            if late:
                raise late[0]
            if run.problem:
                raise ScheduleFailed(schedule, run.problem, make.command)
            return outcome
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_PROF, 0)
            for each, handled in before.items():
                signal.signal(each, handled)
            root.removeHandler(handler)
            root.propagate = propagated


def kind_of(problem: str) -> str:
    """What failed, without what differs from run to run."""
    text = problem.partition(": ")[2] or problem
    return re.sub(r"\d+", "#", text.splitlines()[0])[:60]


def shrink(schedule: Schedule, problem: str, make: type[Run] = Run) -> tuple[Schedule, str]:
    """A smaller schedule that fails in the same way, by leaving out one thing after the other."""
    wanted = kind_of(problem)

    def fails(candidate: Schedule) -> bool:
        nonlocal problem
        try:
            run_schedule(candidate, make=make)
        except ScheduleFailed as failure:
            if kind_of(failure.problem) == wanted:
                problem = failure.problem
                return True
        except Exception:  # noqa: BLE001 - what is left makes no sense
            pass
        return False

    size = 0
    while size != _size(schedule):
        size = _size(schedule)
        for name in ("events", "jobs", "accounting", "conf"):
            fewer = without_needless(
                getattr(schedule, name),
                lambda items, rest=schedule, name=name: fails(replace(rest, **{name: items})),
            )
            schedule = replace(schedule, **{name: fewer})
    return schedule, problem


def _size(schedule: Schedule) -> int:
    return sum(
        len(each) for each in (schedule.events, schedule.jobs, schedule.accounting, schedule.conf)
    )


def _compare(schedule: Schedule, outcome: Outcome) -> None:
    for daemons in {1, 2, 3} - {schedule.node_daemons}:
        if run_schedule(replace(schedule, node_daemons=daemons)).hash != outcome.hash:
            raise ScheduleFailed(schedule, f"another schedule with {daemons} node daemons")


def main() -> int:
    """Run the seeds; 1 if one of them fails."""
    parser = argparse.ArgumentParser(
        description="Random configurations, jobs and administrators, through whole clusters in "
        "virtual time."
    )
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=JOBS, help="submissions of each")
    parser.add_argument("--trace", action="store_true", help="print what was refused")
    parser.add_argument(
        "--twice", action="store_true", help="with other node daemons, too, for the same hash"
    )
    parser.add_argument("--shrink", action="store_true", help="make what fails smaller")
    parser.add_argument(
        "--keep", type=Path, help="write a schedule that fails as a scenario folder"
    )
    arguments = parser.parse_args()
    seeds = (
        [arguments.seed]
        if arguments.seed is not None
        else range(arguments.first, arguments.first + arguments.count)
    )
    failed: dict[int, str] = {}
    ends: Counter[str] = Counter()
    steps = refused = circles = 0
    began = time.monotonic()
    for seed in seeds:
        schedule = draw(seed, arguments.jobs)
        try:
            outcome = run_schedule(schedule, print if arguments.trace else None)
            if arguments.twice:
                _compare(schedule, outcome)
        except ScheduleFailed as failure:
            problem = failure.problem
            if arguments.shrink:
                schedule, problem = shrink(schedule, problem)
                print(
                    f"seed {seed}, smaller: {problem}",
                    *schedule.conf,
                    *schedule.accounting,
                    *schedule.jobs,
                    *schedule.events,
                    sep="\n    ",
                )
            failed[seed] = problem
            print(failure, flush=True)
        except ConfigError as error:
            failed[seed] = str(error)
            print(f"seed {seed}: {error}")
        else:
            ends += outcome.ends
            steps += outcome.steps
            refused += outcome.refused
            circles += outcome.circles
            if arguments.seed is not None:
                print(outcome)
            continue
        if arguments.keep:
            schedule.write(arguments.keep)
    for seed, problem in failed.items():
        print(f"seed {seed}: {kind_of('at: ' + problem.partition(': ')[2])}")
    print(
        f"{len(seeds)} schedules, {steps} steps in {time.monotonic() - began:.1f} s: "
        f"{dict(ends)}, {refused} refused, {circles} preempt in circles; "
        f"failed: {len(failed)}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
