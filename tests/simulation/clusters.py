"""Whole clusters in one virtual loop, with everything that can happen to them drawn from one seed.

A simulation has two phases. In the first, users submit, cancel, hold and change jobs,
administrators take nodes out and bring them back, nodes misbehave, links fail and daemons die;
after every stimulus the controller's tables are checked (controller/edge/validate.py), and what
users were told. In the second everything is healed, and then all jobs must come to an end within a
bounded time.

    simulate(seed)       raises SimulationFailed, which names the seed and the command that runs it
        again
    simulate(seed).log   a digest of every message that anybody received, and when: equal for equal
        seeds
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import random
import signal
import tempfile
import threading
import traceback
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulation.draw import EPOCH, TEXTBOOK, Draw

from understudy.auth.keys import create_keys
from understudy.clock.daemon import Daemon
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.controller.edge.main import start as start_controller
from understudy.controller.edge.validate import validate
from understudy.controller.facts.feasibility import could_ever_run
from understudy.model import nodeset
from understudy.model.cluster import Cluster, NodeDaemon
from understudy.model.hostlist import compress
from understudy.model.records import JOBS, NODES, PARTITIONS
from understudy.model.states import JobState, NodeFlag, NodeState
from understudy.model.task_numbers import parse_tasks
from understudy.noded.faults import Fault, FaultTable
from understudy.noded.main import start as start_noded
from understudy.protocol.messages import (
    AwaitEmpty,
    CancelJobs,
    ControlJobs,
    Emulation,
    Failure,
    JobSpec,
    Message,
    Query,
    Reconfigure,
    Rows,
    SubmitJob,
    Submitted,
    UpdateJobs,
    UpdateNodes,
    UpdatePartition,
)
from understudy.tool.faults.disk import Disk
from understudy.tool.faults.lives import (
    CountedTime,
    FailingNetwork,
    Life,
    LinkFault,
    MortalMessenger,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from understudy.controller.edge.main import Controller
    from understudy.noded.daemon import FrontEnd

ROOT, ANN, BOB = 0, 1000, 1001
LONGEST_S = 120  # of real time
AGAIN_S = 5.0  # after it, as what was raised may have been swallowed
HOPELESS = (
    "DependencyNeverSatisfied",
    "PartitionTimeLimit",
    "PartitionNodeLimit",
    "PartitionConfig",
    "BadConstraints",
)
INTERNAL_ERROR = 2090
SAVES_POWER = (
    NodeFlag.POWERED_DOWN | NodeFlag.POWERING_DOWN | NodeFlag.POWERING_UP | NodeFlag.NO_RESPOND
)


class SimulationFailed(AssertionError):  # noqa: N818  says what happened
    """Something that must hold does not. The text says what, with which seed, and how to see it
    again.
    """


@dataclass
class Outcome:
    """What a simulation that went well has shown."""

    draw: Draw
    log: str = ""  # digest of all that was heard
    events: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    lost_messages: int = 0
    # name, start, end, state, nodes
    schedule: list[tuple[str, int | None, int | None, str, str]] = field(default_factory=list)
    days: float = 0.0


class Simulation:
    """One cluster under one seed."""

    command = "python tests/simulation/run.py --seed {} --trace"
    drawn = staticmethod(Draw.of)

    def __init__(self, seed: int, folder: Path, trace: Callable[[str], None] | None = None) -> None:
        self.draw = self.drawn(seed)
        self.folder, self.trace = folder, trace
        self.rng = random.Random(f"happenings {seed}")
        self.loop = VirtualEventLoop()
        self.network = FailingNetwork()
        self.disk = Disk(self.loop, self.draw.disk_s)
        self.lives = 0
        self.cluster = self._cluster()
        self.digest = hashlib.sha256()
        self.events = 0
        self.recent: deque[str] = deque(maxlen=40)
        self.problems: list[str] = []
        self.controller: Controller | None = None
        self.life_of: dict[str, Life] = {}
        self.daemons: dict[str, Daemon] = {}
        self.front_ends: dict[str, FrontEnd] = {}
        self.faults = {noded.name: FaultTable() for noded in self.cluster.nodeds}
        self.clock = CountedTime(self.loop, EPOCH, self._new_life("clients"), seems_real=False)
        self.users = {
            user: self._messenger(f"user{user}", self.life_of["clients"], user_id=user)
            for user in (ROOT, ANN, BOB)
        }
        self.told: dict[int, str] = {}  # job id -> name, as acknowledged
        self.owner: dict[int, int] = {}
        self.arrays: dict[int, int] = {}  # job id -> bitmap of its tasks
        # ... that somebody asked to cancel by number: where they still waited, nobody hears
        # of them again
        self.withdrawn: dict[int, int] = {}
        self.answered: set[str] = set()
        self.refused: Counter[str] = Counter()
        # job id -> (state, restarts) when last looked at
        self.seen: dict[int, tuple[JobState, int]] = {}
        self.runs: dict[str, float] = {}  # name -> how long it is to run
        # For all jobs to end once everything is healed: one after the other, and the slowest
        # repetitions.
        self.patience_s = 86_400.0 + 2 * self.draw.jobs * (self.draw.longest_run_s + 300)
        # jobs whose sizes were changed, perhaps beyond what any node has
        self.resized: set[int] = set()
        self.is_healed = False

    # --- the cluster ------------------------------------------------------------------------------

    def _cluster(self) -> Cluster:
        draw = self.draw
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        create_keys(
            self.folder / "keys", ["controller", *(f"noded{i}" for i in range(draw.node_daemons))]
        )
        (self.folder / "slurm.conf").write_text(draw.conf)
        names = [f"n{number}" for number in range(1, draw.nodes + 1)]
        bounds = [draw.nodes * part // draw.node_daemons for part in range(draw.node_daemons + 1)]
        nodeds = [
            NodeDaemon(f"noded{i}", "", compress(names[bounds[i] : bounds[i + 1]]))
            for i in range(draw.node_daemons)
        ]
        return Cluster(
            "simulation",
            str(self.folder / "slurm.conf"),
            time="virtual",
            epoch=EPOCH,
            key_folder=str(self.folder / "keys"),
            nodeds=nodeds,
            state=draw.state,
            latency_s=draw.latency_s,
            link_latency=draw.link_latency,
            user_id=0,
        )

    def _new_life(self, name: str) -> Life:
        self.lives += 1
        life = self.life_of[name] = Life(self.lives)
        return life

    def _messenger(self, name: str, life: Life, user_id: int = 0) -> MortalMessenger:
        draw = self.draw
        return MortalMessenger(
            name,
            self.loop,
            self.network,
            life,
            user_id=user_id,
            latency_s=draw.latency_s,
            link_latency=draw.link_latency,
            heard=self._heard,
        )

    def _daemon(self, name: str) -> Daemon:
        life = self._new_life(name)
        time = CountedTime(self.loop, EPOCH, life, seems_real=self.draw.seems_real)
        daemon = self.daemons[name] = Daemon(
            name, self.cluster, self.folder, self._messenger(name, life), time
        )
        return daemon

    async def start_controller(self) -> None:
        if not self.is_alive("controller"):
            self._note("controller starts")
            daemon = self._daemon("controller")
            # turns that end by the machine's time would not be the same from run to run
            self.controller = await start_controller(
                daemon,
                write_elsewhere=self.disk.writer(self.life_of["controller"]),
                clock=self.loop.time,
            )
            core = self.controller.core
            settle = core.after_event

            def after_event() -> None:
                settle()
                self._check()

            core.after_event = core.agents.after_event = after_event
            self.controller.server.after_event = after_event
            self._check()

    async def start_noded(self, name: str) -> None:
        if not self.is_alive(name):
            self._note(f"{name} starts")
            self.front_ends[name] = await start_noded(self._daemon(name), faults=self.faults[name])

    def is_alive(self, name: str) -> bool:
        return name in self.life_of and self.life_of[name].is_alive

    def kill(self, name: str) -> None:
        if not self.is_alive(name):
            return
        self._note(f"{name} dies")
        messenger = self.daemons[name].messenger
        assert isinstance(messenger, MortalMessenger)
        messenger.die()
        if name != "controller":
            self.front_ends.pop(name, None)
        elif self.controller is not None:
            if self.controller.store is not None:
                self.controller.store.close()
            self.controller = None

    # --- what must hold ---------------------------------------------------------------------------

    def _heard(self, receiver: str, sender: str, message: Message) -> None:
        self._note(f"{sender} > {receiver}: {brief(message)}")

    def _note(self, what: str) -> None:
        entry = f"{self.loop.now_us / 1e6:.6f} {what}"
        self.events += 1
        self.digest.update(entry.encode())
        if HOPELESS[0] not in entry and not entry.endswith("Ping()"):
            self.recent.append(entry)
        if self.trace is not None:
            self.trace(entry)

    def _check(self) -> None:
        if self.controller is None or self.problems:
            return
        try:
            validate(self.controller.core)
            self._check_histories()
        except AssertionError as error:
            self.problems.append(f"at {self.loop.now_us / 1e6:.6f}: {error}")
            self._give_up()

    def _check_histories(self) -> None:
        """What has ended stays ended until it is requeued, and no run of a job comes back."""
        assert self.controller is not None
        seen = self.seen
        for job_id, job in self.controller.core.tables.jobs.items():
            now = (job.state, job.restarts)
            before = seen.get(job_id)
            if before == now:
                continue
            if before is not None:
                assert job.restarts >= before[1], (
                    f"restarts went back from {before[1]}: {job.story}"
                )
                assert (
                    not before[0].is_finished
                    or job.is_pending
                    or job.restarts > before[1]
                    or job.state is before[0]
                ), f"was {before[0].name}: {job.story}"
            seen[job_id] = now

    def _give_up(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def violation(self, what: str) -> None:
        self.problems.append(f"at {self.loop.now_us / 1e6:.6f}: {what}")
        self._give_up()

    # --- what users do ----------------------------------------------------------------------------

    def ask(
        self,
        user: int,
        message: Message,
        then: Callable[[Message], None] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        def answered(answer: Message) -> None:
            if isinstance(answer, Failure) and (
                answer.code in (INTERNAL_ERROR, 1000) or "nternal error" in answer.text
            ):
                self.violation(f"{message} was answered by {answer}")
            for result in getattr(answer, "results", ()):
                if result[1] == INTERNAL_ERROR or "nternal error" in result[2]:
                    self.violation(f"{message} was answered by {answer}")
            if then is not None:
                then(answer)

        self.users[user].send("controller", message, answered, timeout_s)

    def submit(self, number: int) -> None:
        rng, draw = self.rng, self.draw
        user = rng.choice((ROOT, ANN, ANN, BOB))
        name = f"j{number}"
        run_s = (
            float(rng.randint(1, draw.longest_run_s))
            if rng.random() < 0.9
            else round(rng.uniform(0, 5), 3)
        )
        outlasts = rng.random() < draw.limits_matter
        minutes = max(
            1,
            int(run_s / 60 * (rng.uniform(0.1, 0.9) if outlasts else rng.uniform(1.05, 4)))
            + (0 if outlasts else 1),
        )
        fields: dict[str, Any] = {
            "name": name,
            "time_limit_s": None if rng.random() < 0.1 else 60 * minutes,
        }
        most = draw.nodes * draw.cpus
        match rng.randrange(4):
            case 0:
                fields["num_tasks"] = rng.randint(1, most + (1 if rng.random() < 0.05 else 0))
            case 1:
                fields["num_tasks"] = min(most, 2 ** rng.randint(0, 5))
            case 2:
                fields["min_nodes"] = fields["max_nodes"] = rng.randint(1, draw.nodes)
            case _:
                fields["num_tasks"], fields["cpus_per_task"] = (
                    rng.randint(1, draw.nodes),
                    rng.randint(1, draw.cpus),
                )
        if draw.scheduler not in TEXTBOOK:
            fields |= self._special_wishes(number)
        tasks = 1
        if draw.arrays and rng.random() < draw.arrays:
            tasks = rng.randint(1, 6)
            fields["array"] = rng.choice(
                (f"1-{tasks}", f"0-{tasks - 1}", f"10-{9 + tasks}")
            ) + rng.choice(("", "%1", "%2"))
        if draw.licenses and rng.random() < 0.3:
            fields["licenses"] = f"matlab:{rng.randint(1, draw.licenses)}"
        exit_code = rng.choice((1, 127)) if rng.random() < 0.1 else 0
        self.runs[name] = run_s
        message = SubmitJob(JobSpec(**fields), "#!/bin/sh\n", Emulation(run_s, exit_code))

        def answered(answer: Message) -> None:
            self.answered.add(name)
            if isinstance(answer, Submitted):
                if answer.job_id in self.told:
                    self.violation(
                        f"id {answer.job_id} was given to {self.told[answer.job_id]} and to {name}"
                    )
                self.told[answer.job_id], self.owner[answer.job_id] = name, user
                if "array" in fields:
                    self.arrays[answer.job_id] = parse_tasks(
                        fields["array"].partition("%")[0], 1000
                    )
            elif isinstance(answer, Failure):
                self.refused[f"{answer.code} {answer.text}"] += 1

        self.ask(user, message, answered)

    def _special_wishes(self, number: int) -> dict[str, Any]:
        rng, draw = self.rng, self.draw
        fields: dict[str, Any] = {}
        now = self.clock.now()
        if rng.random() < 0.1:
            fields["hold"] = True
        if rng.random() < 0.1:
            fields["begin_time"] = now + rng.randint(0, 600)
        if rng.random() < 0.1 and self.told:
            kind = rng.choice(("afterany", "afterok", "afternotok", "after", "singleton"))
            fields["dependency"] = (
                kind if kind == "singleton" else f"{kind}:{rng.choice(sorted(self.told))}"
            )
            if kind == "singleton":
                fields["name"] = "alone"
        if rng.random() < 0.1:
            fields["exclusive"] = True
        if rng.random() < 0.1:
            fields["nice"] = rng.randint(0, 1000)
        if rng.random() < 0.05:
            fields["excluded_nodes"] = f"n{rng.randint(1, draw.nodes)}"
        if rng.random() < 0.05:
            fields["required_nodes"] = f"n{rng.randint(1, draw.nodes)}"
            fields.pop("excluded_nodes", None)
        if rng.random() < 0.1:
            fields["requeue"] = rng.random() < 0.5
        if rng.random() < 0.05:
            fields["deadline"] = now + rng.randint(100, 10_000)
        if draw.memory_mb and rng.random() < 0.2:
            fields["mem_per_node_mb"] = rng.randint(1, draw.memory_mb)
        if draw.seed % 2 and rng.random() < 0.3:
            fields["partition"] = rng.choice(("half", "half,main", "main,half"))
        if rng.random() < 0.05:
            fields["kill_signal"], fields["kill_signal_before_s"] = (
                rng.choice((10, 15)),
                rng.randint(0, 120),
            )
        if "name" in fields:
            self.runs.setdefault(f"j{number}", 0.0)
        return fields

    def meddle(self) -> None:
        """Somebody does something to a job."""
        if not self.told:
            return
        rng = self.rng
        job = rng.choice(sorted(self.told))
        user = rng.choice((ROOT, self.owner[job]))
        ids = [str(job)]
        if job in self.arrays and rng.random() < 0.5:
            ids = [f"{job}_{rng.choice(('0', '1', '3', '10', '[1-2]', '[0-11]'))}"]
        message: Message
        match rng.randrange(12):
            case 0 | 1 | 2:
                message = CancelJobs(ids)
            case 3:
                message = CancelJobs(
                    ids, signal=rng.choice((9, 10, 15, 18, 19)), batch_only=rng.random() < 0.5
                )
            case 4:
                message = ControlJobs(rng.choice(("hold", "uhold")), ids)
            case 5 | 6:
                message = ControlJobs("release", ids)
            case 7:
                message = ControlJobs(rng.choice(("requeue", "requeuehold")), ids)
            case 8:
                columns = {"jobs": JOBS, "nodes": NODES, "partitions": PARTITIONS}
                table = rng.choice(sorted(columns))
                self.ask(user, Query(table, sorted(columns[table])), self._expect_rows)
                return
            case 9:
                message = CancelJobs([], where={"name": [self.told[job]]})
            case _:
                message = UpdateJobs(ids, self._change())
                if message.changes.keys() & {"numcpus", "numnodes"}:
                    self.resized.add(job)
        if isinstance(message, CancelJobs) and "_" in ids[0]:
            tasks = parse_tasks(ids[0].partition("_")[2].strip("[]"), 1000)
            self.withdrawn[job] = self.withdrawn.get(job, 0) | tasks
        self.ask(user, message)

    def _expect_rows(self, answer: Message) -> None:
        if not isinstance(answer, Rows) and not (
            isinstance(answer, Failure) and answer.code in (1005, 1006, 5004)
        ):
            self.violation(f"a query was answered by {answer}")

    def _change(self) -> dict[str, str]:
        rng, draw = self.rng, self.draw
        key = rng.choice(
            (
                "priority",
                "timelimit",
                "timelimit+",
                "nice",
                "partition",
                "starttime",
                "numnodes",
                "dependency",
                "comment",
                "jobname",
                "numcpus",
            )
        )
        values = {
            "priority": str(rng.choice((0, 1, 1000, 4_000_000_000))),
            "timelimit": str(rng.randint(1, 200)),
            "timelimit+": "5",
            "nice": str(rng.randint(0, 500)),
            "partition": rng.choice(("main", "half", "nowhere")),
            "starttime": f"now+{rng.randint(0, 500)}",
            "numnodes": str(rng.randint(1, draw.nodes)),
            "dependency": rng.choice(("", f"afterany:{rng.choice(sorted(self.told))}")),
            "comment": "hm",
            "jobname": "renamed",
            "numcpus": str(rng.randint(1, draw.nodes * draw.cpus)),
        }
        return {key: values[key]}

    def trouble_nodes(self) -> None:
        """An administrator does something to nodes or to a partition."""
        rng = self.rng
        first = rng.randint(1, self.draw.nodes)
        last = min(self.draw.nodes, first + rng.choice((0, 0, 1, 5)))
        state = rng.choice(("DOWN", "DRAIN", "RESUME", "RESUME", "UNDRAIN", "IDLE", "FAIL"))
        match rng.randrange(8):
            case 0:
                self.ask(
                    ROOT,
                    UpdatePartition(
                        "update", "main", {"state": rng.choice(("UP", "DOWN", "DRAIN", "INACTIVE"))}
                    ),
                )
            case 1:
                self.ask(ROOT, Reconfigure())
            case _:
                self.ask(
                    ROOT, UpdateNodes(f"n[{first}-{last}]", {"state": state, "reason": "because"})
                )

    # --- what goes wrong --------------------------------------------------------------------------

    def misbehave(self, lasts_s: float) -> None:
        rng = self.rng
        nodes = [f"n{rng.randint(1, self.draw.nodes)}" for _ in range(rng.randint(1, 3))]
        fault = rng.choice(
            (
                Fault(silent=True),
                Fault(epilog_s=rng.uniform(1, 200)),
                Fault(launch_code=4002, launch_text="no"),
                Fault(launch_code=2021, launch_text="no"),
            )
        )
        self._note(f"{nodes} have {fault}")
        for table in self.faults.values():
            table.put(nodes, fault)

        def heal() -> None:
            for table in self.faults.values():
                table.clear(nodes)

        self._after(lasts_s, heal)

    def cut(self, lasts_s: float) -> None:
        pair = frozenset(("controller", f"noded{self.rng.randrange(self.draw.node_daemons)}"))
        self._note(f"cut between {sorted(pair)}")
        fault = LinkFault(pair, pair, loss=1.0)
        self.network.faults.append(fault)

        def heal() -> None:
            if fault in self.network.faults:
                self.network.faults.remove(fault)

        self._after(lasts_s, heal)

    def bounce(self, name: str, away_s: float) -> None:
        self.kill(name)

        def start() -> None:
            task = self.loop.create_task(
                self.start_controller() if name == "controller" else self.start_noded(name)
            )
            task.add_done_callback(self._started)

        self._after(away_s, start)

    def _started(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self.violation(
                "a daemon did not start: " + "".join(traceback.format_exception(task.exception()))
            )

    def _after(self, seconds: float, action: Callable[..., None], *args: Any) -> None:
        self.clock.call_at(self.clock.now() + seconds, action, *args)

    # --- the phases -------------------------------------------------------------------------------

    async def run(self) -> Outcome:
        self.done: asyncio.Future[None] = self.loop.create_future()
        self.loop.set_exception_handler(self._exception)
        self.loop.on_stalled = self._stalled
        self.users[ROOT].add_peer("controller", "")
        await self.start_controller()
        for noded in self.cluster.nodeds:
            await self.start_noded(noded.name)
        self._plan()
        await self.done
        for name in ["controller", *self.front_ends]:
            self.kill(name)
        if self.problems:
            raise SimulationFailed(self.report())
        return self.outcome

    def _plan(self) -> None:
        rng, draw = self.rng, self.draw
        span = float(draw.span_s)

        def when() -> float:
            # Half of what happens falls together, on full seconds, where races are.
            instant = rng.uniform(0.0, span)
            return float(int(instant)) if rng.random() < 0.5 else instant

        def lasts() -> float:
            return rng.choice((0.5, 5.0, 50.0, 500.0)) * rng.uniform(0.5, 1.5)

        for number in range(1, draw.jobs + 1):
            self._after(when(), self.submit, number)
        for _ in range(draw.meddling):
            self._after(when(), self.meddle)
        for _ in range(draw.node_trouble):
            self._after(when(), self.trouble_nodes)
        for _ in range(draw.faults):
            self._after(when(), self.misbehave, lasts())
        for _ in range(draw.cuts):
            self._after(when(), self.cut, lasts())
        for _ in range(draw.node_daemon_deaths):
            self._after(when(), self.bounce, f"noded{rng.randrange(draw.node_daemons)}", lasts())
        for _ in range(draw.controller_deaths):
            self._after(when(), self.bounce, "controller", rng.choice((0.01, 1.0, lasts())))
        self._after(span + 1.0, self._heal)

    def _heal(self) -> None:
        """All that was broken works again; what people have stopped they let go."""
        self._note("healing begins")
        self.network.faults.clear()
        for table in self.faults.values():
            table.clear()
        tasks = [self.loop.create_task(self.start_controller())]
        tasks += [
            self.loop.create_task(self.start_noded(noded.name)) for noded in self.cluster.nodeds
        ]
        for task in tasks:
            task.add_done_callback(self._started)
        # by now what waited for a repetition has been repeated
        self._after(2 * 1000.0, self._let_go)
        self._after(2 * 1000.0 + self.patience_s, self._lose_patience)

    def _let_go(self) -> None:
        self.is_healed = True
        self.ask(ROOT, UpdatePartition("update", "main", {"state": "UP"}))
        for number in range(1, self.draw.nodes + 1):
            self.ask(ROOT, UpdateNodes(f"n{number}", {"state": "RESUME"}))
        self.ask(ROOT, ControlJobs("release", [], where={"state": [int(JobState.PENDING)]}))
        self.ask(
            ROOT, CancelJobs([], signal=signal.SIGCONT, where={"state": [int(JobState.RUNNING)]})
        )
        self._after(1.0, self._cancel_hopeless)
        self.ask(ROOT, AwaitEmpty(), self._empty, float("inf"))

    def _cancel_hopeless(self) -> None:
        """Jobs that wait for what will never be are cancelled by their users in the end."""
        if self.done.done():
            return
        self.ask(ROOT, CancelJobs([], where={"reason": list(HOPELESS)}))
        if self.controller is not None:
            core = self.controller.core
            resized = [
                job
                for job in core.tables.pending.values()
                if job.job_id in self.resized
                or (job.array is not None and job.array.job_id in self.resized)
            ]
            too_large = [
                job
                for job in resized
                if not any(
                    could_ever_run(core, job, core.tables.partitions[name])
                    for name in job.partitions
                )
            ]
            if too_large:
                self.ask(ROOT, CancelJobs([str(job.job_id) for job in too_large]))
        self._after(6 * 3600.0, self._cancel_hopeless)

    def _lose_patience(self) -> None:
        if not self.done.done():
            self.ask(ROOT, Query("jobs", ["job_id", "name", "state", "flags"]), self._unfinished)

    def _unfinished(self, answer: Message) -> None:
        if isinstance(answer, Rows):
            left = [row for row in answer.rows if row[2] < JobState.COMPLETED or row[3]]
            assert self.controller is not None
            jobs = sorted(
                (self.controller.core.tables.jobs[row[0]] for row in left),
                key=lambda job: job.reason == "Priority",
            )[:3]
            told = "\n".join(
                f"    {job.reason} {job.story}\n      {brief(job.spec)} {job}" for job in jobs
            )
            self.violation(
                f"{len(left)} jobs have not ended {self.patience_s / 86_400:.1f} days "
                f"after all was healed:\n{told}"
            )
        else:
            self.violation(f"the controller does not answer although all is healed: {answer}")

    def _stalled(self, reason: str) -> None:
        if not self.done.done() and self.is_healed:
            self._lose_patience()
        elif not self.done.done():
            self.violation(reason)

    def _empty(self, answer: Message) -> None:
        if isinstance(answer, Failure):
            self.violation(f"AwaitEmpty was answered by {answer}")
            return
        columns = [
            "job_id",
            "name",
            "state",
            "flags",
            "submit_time",
            "start_time",
            "end_time",
            "nodes",
            "restarts",
            "exit_code",
            "time_limit_s",
        ]
        columns += ["array_job_id", "array_task_id", "array_task_expression"]
        self.ask(ROOT, Query("jobs", columns), lambda answer: self._judge(answer, columns))

    # --- the verdict ------------------------------------------------------------------------------

    def _judge(self, answer: Message, columns: list[str]) -> None:
        if not isinstance(answer, Rows):
            self.violation(f"the query for the jobs was answered by {answer}")
            return
        draw = self.draw
        jobs = [dict(zip(columns, row, strict=True)) for row in answer.rows]
        found = {job["job_id"]: job for job in jobs}
        for job_id, name in self.told.items():
            if job_id not in found:
                if not draw.min_job_age_s:
                    self.violation(f"job {job_id} ({name}) was acknowledged and is not there")
                continue
            if found[job_id]["name"] not in (name, "alone", "renamed"):
                self.violation(
                    f"job {job_id} was acknowledged as {name} and is {found[job_id]['name']}"
                )
        for job in jobs:
            if not JobState(job["state"]).is_finished or job["flags"]:
                self.violation(f"AwaitEmpty was answered, and not finished: {job}")
            if job["start_time"] and job["end_time"] < job["start_time"]:
                self.violation(f"ends before it starts: {job}")
            if draw.is_peaceful and job["state"] == JobState.COMPLETED:
                self._check_duration(job)
        if not draw.min_job_age_s:
            for job_id, tasks in self.arrays.items():
                numbers = sorted(
                    number
                    for job in jobs
                    if job["array_job_id"] == job_id
                    for number in _tasks(job)
                )
                missing = (
                    tasks
                    & ~sum(1 << number for number in set(numbers))
                    & ~self.withdrawn.get(job_id, 0)
                )
                if missing or len(numbers) != len(set(numbers)):
                    self.violation(
                        f"array {job_id} was of {nodeset.indices(tasks)} and has {numbers}"
                    )
        if len(self.answered) < draw.jobs and not (draw.cuts or draw.controller_deaths):
            self.violation(f"{draw.jobs - len(self.answered)} submissions were not answered")
        assert self.controller is not None
        allowed = NodeFlag.PLANNED | (SAVES_POWER if draw.suspend_s else NodeFlag.NONE)
        for node in self.controller.core.tables.nodes.nodes:
            if node.state is not NodeState.IDLE or node.flags & ~allowed:
                self.violation(f"node {node.name} is {node.state.name} {node.flags!r} in the end")
        for name, front_end in self.front_ends.items():
            if front_end.core.jobs:
                self.violation(f"{name} still has {front_end.core.running_jobs}")
            if len(front_end.executor.jobs):
                self.violation(f"{name} still runs {len(front_end.executor.jobs)} scripts")
        self.outcome = Outcome(
            draw,
            self.digest.hexdigest(),
            self.events,
            Counter(JobState(job["state"]).name for job in jobs),
            self.refused,
            self.network.lost,
            [
                (
                    job["name"],
                    job["start_time"],
                    job["end_time"],
                    JobState(job["state"]).name,
                    job["nodes"],
                )
                for job in jobs
            ],
            self.loop.now_us / 86_400e6,
        )
        self._give_up()

    def _check_duration(self, job: dict[str, Any]) -> None:
        """Undisturbed, a job takes what it takes, and the way of two messages, in whole seconds."""
        run_s = self.runs.get(job["name"])
        if not run_s:
            return
        slowest = self.draw.latency_s + max(self.draw.link_latency.values(), default=0.0)
        if not run_s - 1.0 <= job["end_time"] - job["start_time"] <= run_s + 2 * slowest + 1.0:
            self.violation(f"was to run {run_s} s: {job}")

    def _exception(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, SimulationFailed):
            self._give_up()
        else:
            self.violation(
                f"{context.get('message')}: {error!r}\n"
                f"{''.join(traceback.format_exception(error)) if error else ''}"
            )

    def report(self) -> str:
        return "\n".join(
            [
                f"seed {self.draw.seed}: {self.problems[0]}",
                *self.problems[1:5],
                f"drawn: {self.draw}",
                "before that:",
                *(f"    {entry[:400]}" for entry in self.recent),
                f"to see it again: {self.command.format(self.draw.seed)}",
            ]
        )


def _tasks(job: dict[str, Any]) -> list[int]:
    """The numbers of the tasks for which a record stands."""
    if job["array_task_id"] is not None:
        return [job["array_task_id"]]
    if not job["array_task_expression"]:
        return []  # all were cancelled one by one
    return nodeset.indices(parse_tasks(job["array_task_expression"].partition("%")[0], 1000))


def brief(message: object) -> str:
    """A message without the fields that have their defaults."""
    if not isinstance(message, Message):
        return repr(message)
    names, defaults = message.__struct_fields__, message.__struct_defaults__
    given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    shown = [
        f"{name}={brief(value)}"
        for name in names
        if (value := getattr(message, name)) != given.get(name, ...)
        and (name not in given or value)
    ]
    return f"{type(message).__name__}({', '.join(shown)})"


class _Tracebacks(logging.Handler):
    """Errors that are only logged are errors, too."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(logging.WARNING)
        self._simulation = simulation

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            error = record.exc_info[1]
            self._simulation.violation(f"{record.getMessage()}: {error!r}")
        self._simulation._note(f"log {record.levelname} {record.name}: {record.getMessage()}")


def simulate(
    seed: int,
    trace: Callable[[str], None] | None = None,
    kind: type[Simulation] = Simulation,
) -> Outcome:
    """Run the simulation of a seed.

    Raises:
        SimulationFailed: what must hold does not.
    """
    with tempfile.TemporaryDirectory(
        prefix="understudy-simulation-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    ) as folder:
        simulation = kind(seed, Path(folder), trace)
        handler = _Tracebacks(simulation)
        root = logging.getLogger("understudy")
        propagated, root.propagate = root.propagate, False
        root.addHandler(handler)

        def spins(_number: int, frame: FrameType | None) -> None:
            where = "".join(traceback.format_stack(frame)[-12:])
            simulation.problems.append(
                f"at {simulation.loop.now_us / 1e6:.6f}: not done after {LONGEST_S} s of real "
                f"time, {simulation.events} events; it was here:\n{where}"
            )
            late.append(SimulationFailed(simulation.report()))
            raise late[0]

        late: list[SimulationFailed] = []
        watched = threading.current_thread() is threading.main_thread()
        if watched:
            before = signal.signal(signal.SIGALRM, spins)
            signal.setitimer(signal.ITIMER_REAL, LONGEST_S, AGAIN_S)
        try:
            with asyncio.Runner(loop_factory=lambda: simulation.loop) as runner:
                outcome = runner.run(simulation.run())
            if late:
                raise late[0]
            return outcome
        finally:
            if watched:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            root.removeHandler(handler)
            root.propagate = propagated
