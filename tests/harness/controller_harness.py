"""A controller's core without sockets: fake time, a fake wire, a simple policy; and a node daemon
that does what it is told.

`Harness` checks the tables (`validate`) after every stimulus.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from key_harness import keys_of

from understudy.auth.credential import Signer
from understudy.controller.core.agents import Agents
from understudy.controller.core.core import Core
from understudy.controller.core.locks import Locks
from understudy.controller.edge.passes import Passes
from understudy.controller.edge.reactions import connect
from understudy.controller.edge.rpc import RPCS
from understudy.controller.edge.validate import validate
from understudy.controller.jobs.start import Planning
from understudy.controller.later import Later
from understudy.controller.nodes.events import heard_of
from understudy.controller.ports import NoJournal
from understudy.controller.scheduling.api import Ask, SchedulingPolicy
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.tables.het_job import components
from understudy.controller.tables.node import Node, NodeTable
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.settings import Settings
from understudy.controller.tables.tables import Tables
from understudy.controller.views.query import run_query
from understudy.model.errors import SlurmError
from understudy.model.hostlist import NodeNames
from understudy.protocol.messages import (
    BatchComplete,
    CancelJobs,
    ControlJobs,
    Emulation,
    EpilogComplete,
    Failure,
    FindJobs,
    JobResults,
    JobsFound,
    JobSpec,
    LaunchBatch,
    Message,
    Ok,
    Query,
    RegisterNodes,
    SubmitJob,
    Submitted,
    TerminateJob,
    UpdateJobs,
    UpdateNodes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from understudy.controller.scheduling.api import Note
    from understudy.controller.tables.job import Job

START = 1_700_000_000.0


@dataclass
class FakeTimer:
    callback: Callable[..., None]
    args: tuple[Any, ...]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeTime:
    """Time that moves when it is told to."""

    def __init__(self, now: float = START, *, is_virtual: bool = False) -> None:
        self.is_virtual = is_virtual
        self._now = now
        self._heap: list[tuple[float, int, FakeTimer]] = []
        self._numbers = itertools.count()
        self.periodic: list[tuple[FakeTimer, Callable[[], bool]]] = []

    def now(self) -> float:
        return self._now

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> FakeTimer:
        timer = FakeTimer(callback, args)
        heapq.heappush(self._heap, (when, next(self._numbers), timer))
        return timer

    def run_until(self, until: float) -> None:
        """Move on, calling what is due."""
        while self._heap and self._heap[0][0] <= until:
            when, _, timer = heapq.heappop(self._heap)
            if not timer.cancelled:
                self._now = max(self._now, when)
                timer.callback(*timer.args)
        self._now = max(self._now, until)

    def jump(self, seconds: float) -> None:
        """Move on without calling anything: the time between two events."""
        self._now += seconds

    def call_after_wait(
        self, delay_s: float, callback: Callable[..., None], *args: Any
    ) -> FakeTimer:
        return self.call_at(self._now + delay_s, callback, *args)

    def wait_clock(self) -> float:
        return self._now

    def call_periodically(
        self, when: float, matters: Callable[[], bool], callback: Callable[..., None], *args: Any
    ) -> FakeTimer:
        """The real one asks what matters where nothing else is left."""
        timer = self.call_at(when, callback, *args)
        self.periodic.append((timer, matters))
        return timer

    @property
    def is_needed(self) -> bool:
        """Whether virtual time would go on."""
        periodic = {id(timer): matters for timer, matters in self.periodic}
        return any(
            not timer.cancelled and periodic.get(id(timer), lambda: True)()
            for _, _, timer in self._heap
        )

    @property
    def waiting(self) -> int:
        return sum(not timer.cancelled for _, _, timer in self._heap)


@dataclass
class Sent:
    peer: str
    message: Message
    on_reply: Callable[[Message], None] | None
    only_failures: bool = False

    def answer(self, message: Message) -> None:
        assert self.on_reply is not None
        if isinstance(message, Failure) or not self.only_failures:
            self.on_reply(message)


class FakeWire:
    """Keeps what is sent until the test answers it."""

    def __init__(self) -> None:
        self.peers: dict[str, str] = {}
        self.sent: list[Sent] = []

    def add_peer(self, name: str, address: str) -> None:
        self.peers[name] = address

    def send(
        self,
        peer: str,
        message: Message,
        on_reply: Callable[[Message], None] | None = None,
        timeout_s: float = 10.0,
        *,
        only_failures: bool = False,
    ) -> None:
        assert timeout_s > 0
        self.sent.append(Sent(peer, message, on_reply, only_failures))


@dataclass(frozen=True)
class FakeSender:
    name: str = "sbatch"
    user_id: int = 1000
    group_id: int = 1000
    is_daemon: bool = False
    is_node: bool = False


USER = FakeSender()
OTHER = FakeSender(user_id=1001)
ROOT = FakeSender(user_id=0, group_id=0)


class FakeUsers:
    def user_name(self, user_id: int) -> str:
        return {0: "root", 1000: "ann", 1001: "bob"}.get(user_id, str(user_id))

    def group_name(self, group_id: int) -> str:
        return {0: "root", 1000: "staff"}.get(group_id, str(group_id))

    def groups_of(self, user_id: int) -> frozenset[str]:
        return frozenset({"staff"} if user_id == 1000 else ())

    def user_id(self, name: str) -> int | None:
        return {"root": 0, "ann": 1000, "bob": 1001}.get(name)

    def is_group(self, name: str) -> bool:
        return name == "staff"


class FirstFit(SchedulingPolicy):
    """A policy for tests: at every event each eligible job is started if it fits, by priority."""

    name = "first fit"

    def __init__(
        self, tables: Tables, selector: Any, planner: Planning, *, exact_limits: bool = False
    ) -> None:
        super().__init__(tables, selector, planner, {})
        self.exact_limits = exact_limits
        self.due: float | None = None
        self.notes: list[Note] = []

    def note(self, what: Note, now: float) -> None:
        self.notes.append(what)
        self.due = now

    def next_run(self) -> float | None:
        return self.due

    def run(self, now: float) -> Iterator[None]:
        self.due = None
        nodes = self.tables.nodes
        for job in sorted(self.tables.pending.values(), key=lambda job: -job.priority):
            if job.het is not None:
                self._start_together(job, now)
                continue
            while job.is_eligible(now):  # again for the next task of an array
                self.planner.tried(job, "Main")
                for name in job.partitions:
                    partition = self.tables.partitions[name]
                    usable = (
                        partition.nodes
                        & nodes.up_nodes
                        & ~nodes.completing_nodes
                        & ~nodes.exclusive_nodes
                    )
                    ask = Ask(job, partition, usable)
                    allocation = self.selector.select(ask, self.tables)
                    if allocation is not None and self.planner.start(ask, allocation, now):
                        break
                else:
                    self.planner.explain(job, "Resources")
                    break
            yield

    def _start_together(self, leader: Job, now: float) -> None:
        if leader.het_offset or not all(job.is_eligible(now) for job in components(leader)):
            return
        plans, usable = [], self.tables.nodes.up_nodes & ~self.tables.nodes.completing_nodes
        for job in components(leader):
            partition = self.tables.partitions[job.partition]
            ask = Ask(job, partition, partition.nodes & usable)
            allocation = self.selector.select(ask, self.tables)
            if allocation is None:
                return
            usable &= ~allocation.nodes
            plans.append((ask, allocation))
        self.planner.start_together(plans, now)


def make_tables(
    count: int = 4, cpus: int = 4, memory_mb: int = 4000, names: Sequence[str] = ()
) -> Tables:
    names = names or [f"n{i + 1}" for i in range(count)]
    nodes = [
        Node(
            name,
            i,
            cpus,
            1,
            1,
            cpus,
            1,
            memory_mb,
            0,
            1,
            ("fast",) if i < count // 2 else ("slow",),
            "",
            name,
            name,
            6818,
        )
        for i, name in enumerate(names)
    ]
    every, expression = (1 << len(names)) - 1, ",".join(names)
    partitions = {
        "main": Partition(
            "main", every, expression, is_default=True, max_time_s=86400, default_time_s=3600
        ),
        "small": Partition("small", 1, "n1", max_time_s=600, max_nodes=1),
    }
    table = NodeTable(nodes)
    for partition in partitions.values():
        partition.place(partition.nodes, table)
    return Tables(table, partitions)


class Harness:
    """A core, and what surrounds it."""

    def __init__(
        self,
        tables: Tables | None = None,
        *,
        settings: Settings | None = None,
        daemons: dict[str, str] | None = None,
        journal: Any = None,
        is_virtual: bool = False,
        exact_limits: bool = False,
        register: bool = True,
        time: FakeTime | None = None,
    ) -> None:
        self.time = time or FakeTime(is_virtual=is_virtual)
        self.wire = FakeWire()
        tables = tables or make_tables()
        names = NodeNames([node.name for node in tables.nodes.nodes])
        settings = settings or Settings(min_job_age_s=0)
        for partition in tables.partitions.values():
            partition.cluster_memory_limits_mb = settings.memory_limits_mb
        agents = Agents(self.wire, self.time, tree_width=settings.tree_width)
        selector = SelectConsTres(frozenset({"CR_CORE_MEMORY"}))
        self.core = core = Core(
            tables=tables,
            names=names,
            settings=settings,
            time=self.time,
            agents=agents,
            journal=NoJournal() if journal is None else journal,
            users=FakeUsers(),
            signer=Signer(keys_of("controller")),
            selector=selector,
        )
        connect(core)
        self.locks = Locks()
        core.policy = FirstFit(tables, selector, Planning(core), exact_limits=exact_limits)
        self.passes = Passes(core, self.locks, soon=lambda callback: callback(), clock=lambda: 0.0)
        core.after_event = agents.after_event = self.passes.arm
        agents.on_response = lambda daemon, responds: heard_of(core, daemon, responds=responds)
        self.daemons = daemons or {"noded0": names.to_expression(names.all)}
        for name, nodes in self.daemons.items():
            core.add_daemon(name, f"unix:/{name}", names.to_bitmap(nodes))
        if register:
            for name in self.daemons:
                self.register(name)

    # --- stimuli

    def ask(self, message: Message, sender: Any = USER) -> Any:
        """The answer to a request; the tables are valid afterwards."""
        try:
            answer = RPCS[type(message)].handle(self.core, message, sender)
        except SlurmError as error:
            answer = Failure(error.code, error.text)
        self.passes.arm()
        self.run(0)
        if isinstance(answer, Later):
            return answer
        return answer

    def run(self, seconds: float = 0) -> None:
        self.time.run_until(self.time.now() + seconds)
        validate(self.core)

    def register(
        self,
        name: str,
        running: list[tuple[int, int]] | None = None,
        started: float = START - 100,
        booted: float = START - 100,
    ) -> Any:
        message = RegisterNodes(
            name, f"unix:/{name}", self.daemons[name], booted, started, running or []
        )
        return self.ask(message, FakeSender(name, 0, 0, is_daemon=True))

    def find(self, *jobs: Job) -> None:
        """The daemons that are asked for jobs have these of them, and no others."""
        here = [(job.job_id, job.restarts) for job in jobs]
        for sent in self.sent(FindJobs):
            self.wire.sent.remove(sent)
            assert isinstance(sent.message, FindJobs)
            sent.answer(JobsFound([run for run in sent.message.jobs if tuple(run) in here]))
        self.run(0)

    def submit(self, sender: Any = USER, run_s: float = 100.0, **spec: Any) -> Job:
        answer = self.ask(
            SubmitJob(
                JobSpec(**{"name": "j", "work_dir": "/home/ann"} | spec),
                "#!/bin/sh\n",
                Emulation(run_s),
            ),
            sender,
        )
        assert isinstance(answer, Submitted), answer
        return self.core.tables.jobs[answer.job_id]

    def refused(self, sender: Any = USER, **spec: Any) -> int:
        answer = self.ask(SubmitJob(JobSpec(**spec), "#!/bin/sh\n"), sender)
        assert isinstance(answer, Failure), answer
        return answer.code

    def sent(self, kind: type[Message], job: Job | None = None) -> list[Sent]:
        """Messages of a kind that wait for an answer."""
        return [
            sent
            for sent in self.wire.sent
            if type(sent.message) is kind
            and (job is None or getattr(sent.message, "job_id", 0) == job.job_id)
        ]

    def acknowledge(self, answer: Message | None = None) -> None:
        """Answer all that was sent."""
        while self.wire.sent:
            self.wire.sent.pop(0).answer(answer or Ok())
        self.run(0)

    def lose(self) -> None:
        """Nobody can be reached."""
        waiting, self.wire.sent = self.wire.sent, []
        for sent in waiting:
            sent.answer(Failure(1005, "no connection"))

    def finish(
        self,
        job: Job,
        code: int = 0,
        signal: int = 0,
        *,
        timed_out: bool = False,
        restart: int | None = None,
    ) -> Any:
        """The script ends."""
        message = BatchComplete(
            job.job_id, job.restarts if restart is None else restart, code, signal, timed_out
        )
        return self.ask(message, FakeSender("noded0", 0, 0, is_daemon=True))

    def epilog(
        self, job: Job, nodes: str | None = None, daemon: str = "noded0", restart: int | None = None
    ) -> Any:
        """The nodes are clean."""
        message = EpilogComplete(
            job.job_id,
            job.restarts if restart is None else restart,
            job.node_list if nodes is None else nodes,
        )
        return self.ask(message, FakeSender(daemon, 0, 0, is_daemon=True))

    def complete(self, job: Job, code: int = 0) -> None:
        """The whole end of a job."""
        self.acknowledge()
        self.finish(job, code)
        assert self.sent(TerminateJob, job)
        self.acknowledge()
        self.epilog(job)

    def cancel(self, job: Job, sender: Any = USER, signal: int | None = None) -> int:
        return self.result(self.ask(CancelJobs([str(job.job_id)], signal), sender))

    def control(self, action: str, job: Job, sender: Any = USER) -> int:
        return self.result(self.ask(ControlJobs(action, [str(job.job_id)]), sender))

    def update(self, job: Job, sender: Any = USER, **changes: str) -> int:
        return self.result(self.ask(UpdateJobs([str(job.job_id)], changes), sender))

    def update_nodes(self, nodes: str, sender: Any = ROOT, **changes: str) -> Any:
        return self.ask(UpdateNodes(nodes, changes), sender)

    def result(self, answer: Any) -> int:
        assert isinstance(answer, JobResults), answer
        return answer.results[0][1]

    def query(self, table: str, *columns: str, **where: list[Any]) -> list[list[Any]]:
        return self.rows(Query(table, list(columns), where))

    def rows(self, query: Query) -> list[list[Any]]:
        """All rows of a query."""
        generator = run_query(self.core, query)
        while True:
            try:
                next(generator)
            except StopIteration as stop:
                return list(stop.value.rows)

    def launches(self, job: Job | None = None) -> list[LaunchBatch]:
        return [sent.message for sent in self.sent(LaunchBatch, job)]  # type: ignore[misc]
