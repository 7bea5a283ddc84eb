"""A cluster without daemons: virtual events drive a policy, a selector and the tables directly.

world = World(table(nodes=100, cpus=1), Easy, SelectConsTres())
world.submit(at=0, cpus=4, run_s=50, limit_s=60)
world.run()
world.starts[1]
"""

from __future__ import annotations

import csv
import gzip
import heapq
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from understudy.controller.scheduling.api import Ask, Note
from understudy.controller.tables.het_job import join
from understudy.controller.tables.job import HetJob, Job
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.controller.tables.node import Node, NodeTable
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.tables import Tables
from understudy.model import nodeset
from understudy.model.states import NodeState
from understudy.protocol.messages import JobSpec

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from understudy.controller.tables.allocation import Allocation

T = TypeVar("T")
SHARED = Path(__file__).resolve().parents[3] / "shared"
HOP_S = 0.003  # from an event to the controller's knowing


def node(
    index: int,
    *,
    sockets: int = 1,
    cores: int = 1,
    threads: int = 1,
    memory: int = 1000,
    weight: int = 1,
    features: str = "",
    spec_cores: int = 0,
    mem_spec: int = 0,
) -> Node:
    """A node that is up; `cores` a socket, `threads` a core."""
    return Node(
        name=f"n{index}", index=index, cpus=sockets * cores * threads, boards=1, sockets=sockets,
        cores_per_socket=cores, threads_per_core=threads,
        memory_mb=memory, tmp_disk_mb=0, weight=weight,
        features=tuple(features.split(",")) if features else (), gres="", address="", hostname="",
        port=0, state=NodeState.IDLE, spec_cores=spec_cores, mem_spec_mb=mem_spec,
    )  # fmt: skip


def form(jobs: list[Job]) -> None:
    """The jobs, which have ids by now, are the components of one."""
    whole = HetJob(jobs[0].job_id)
    for offset, job in enumerate(jobs):
        join(whole, job, offset)


def table_of(nodes: list[Node]) -> NodeTable:
    made = NodeTable(nodes)
    for each in nodes:
        made.set_availability(each)
    return made


def table(nodes: int, **each: Any) -> NodeTable:
    """That many nodes, all alike."""
    return table_of([node(i, **each) for i in range(nodes)])


def tables_of(made: NodeTable, partitions: list[Partition] | None = None) -> Tables:
    """Tables with the given partitions, or one, `main`, of all nodes."""
    given = partitions or [Partition("main", nodes=nodeset.mask(len(made.nodes)), is_default=True)]
    for partition in given:
        partition.place(partition.nodes, made)
    return Tables(made, {partition.name: partition for partition in given})


def make_job(job_id: int = 1, *, submit: int = 0, limit_s: int | None = 3600, **fields: Any) -> Job:
    """A pending, eligible job. Fields of `Job`, and those of `JobSpec` that Job has not."""
    own = {name: value for name, value in fields.items() if name in Job.__struct_fields__}
    said = {name: value for name, value in fields.items() if name not in own}
    if "num_tasks" in own:
        said.setdefault("num_tasks", own["num_tasks"])
    job = Job(
        job_id,
        JobSpec(**said),
        1000,
        1000,
        submit,
        own.pop("partitions", ("main",)),
        time_limit_s=limit_s,
        eligible_time=submit,
        **own,
    )
    if "min_cpus" not in own:
        job.min_cpus = max(job.num_tasks * job.cpus_per_task, job.min_nodes)
    return job


def check_tables(tables: Tables) -> None:
    """What is held adds up: nothing given twice, nothing lost."""
    made = tables.nodes
    used_cpus, used_memory, used_cores, jobs = ([0] * len(made.nodes) for _ in range(4))
    for job in tables.jobs.values():
        if (
            job.allocation is None
            or job.is_pending
            or (job.is_finished and not job.completing_nodes)
        ):
            continue
        for share in job.allocation.shares:
            assert not used_cores[share.node] & share.cores
            assert share.cores.bit_count() * made.nodes[share.node].threads_per_core >= share.cpus
            used_cores[share.node] |= share.cores
            used_cpus[share.node] += share.cpus
            used_memory[share.node] += share.memory_mb
            jobs[share.node] += 1
    for i, each in enumerate(made.nodes):
        assert used_cpus[i] <= each.cpus
        assert used_memory[i] <= each.memory_mb
        assert made.free_cpus[i] == each.cpus - used_cpus[i]
        assert made.free_memory[i] == each.memory_mb - used_memory[i]
        assert made.used_cores[i] == used_cores[i]
        assert made.job_count[i] == jobs[i]
        assert (made.idle_nodes >> i & 1) == (jobs[i] == 0)
        assert (made.full_nodes >> i & 1) == (used_cpus[i] == each.cpus)


def finished(work: Generator[None, None, T]) -> T:
    """What comes of something that lets others have their turn."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class World:
    """The planner, and a heap of events. Jobs run `run_s` from their start time on, cut at their
    limit.
    """

    def __init__(
        self,
        made: NodeTable | Tables,
        policy: Any,
        selector: Any,
        parameters: Mapping[str, str] | None = None,
        *,
        check: bool = False,
    ) -> None:
        self.tables = made if isinstance(made, Tables) else tables_of(made)
        self.selector = selector
        self.policy = policy(self.tables, selector, self, parameters or {})
        self.check = check
        self.run_s: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.start_log: list[tuple[float, int]] = []
        self.promises: dict[int, list[tuple[int, int | None]]] = {}
        self.now = 0.0
        self.passes = 0
        self._events: list[tuple[float, int, int, Any]] = []
        self._count = 0
        self._last_id = 0

    # --- what the planner does --------------------------------------------------------------------

    def start(self, ask: Ask, allocation: Allocation, now: float) -> bool:
        job, partition = ask.job, ask.partition
        assert job.is_pending
        if not self.tables.licenses.are_free(job.spec.licenses):
            return False
        self.tables.licenses.take(job.job_id, job.spec.licenses)
        if ask.time_limit_s is not None:
            job.time_limit_s = ask.time_limit_s
        job.used_reservation = ask.reservation
        self.tables.nodes.allocate(allocation)
        advance(job, JobEvent.ALLOCATED, now)
        job.allocation, job.partition, job.start_time = allocation, partition.name, int(now)
        del self.tables.pending[job.job_id]
        self.tables.running[job.job_id] = job
        self.starts[job.job_id] = job.start_time
        self.start_log.append((now, job.job_id))
        run = (
            self.run_s[job.job_id]
            if job.time_limit_s is None
            else min(self.run_s[job.job_id], job.time_limit_s)
        )
        self._at(max(job.start_time + run + HOP_S, now + HOP_S), 0, job)
        return True

    def start_together(self, plans: Sequence[tuple[Ask, Allocation]], now: float) -> bool:
        return all(self.start(*plan, now) for plan in plans)

    def give_up(self, job: Job, now: float) -> None:
        advance(job, JobEvent.DEADLINE_PASSED, now)
        del self.tables.pending[job.job_id]

    def explain(self, job: Job, reason: str, detail: str = "") -> None:
        job.reason, job.reason_detail = reason, detail

    def promise(self, job: Job, start: int | None, nodes: int) -> None:
        job.expected_start, job.expected_nodes = start, nodes
        self.promises.setdefault(job.job_id, []).append((int(self.now), start))

    def tried(self, job: Job, scheduler: str) -> None:
        job.last_scheduler = scheduler

    def await_switches(self, job: Job, now: int) -> None:
        job.switches_since = now

    def ask_for_whole_nodes(self, job: Job) -> None:
        job.exclusive = True

    def stage_in(self, job: Job, now: float) -> bool:
        raise AssertionError("nobody has burst buffers here")

    def stage_expected(self, now: float) -> None:
        raise AssertionError("nobody has burst buffers here")

    # --- events -----------------------------------------------------------------------------------

    def _at(self, when: float, kind: int, what: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, kind, self._count, what))

    def submit(
        self, *, at: int, run_s: int, limit_s: int | None = None, cpus: int = 1, **fields: Any
    ) -> Job:
        self._last_id += 1
        fields.setdefault("num_tasks", cpus)
        job = make_job(self._last_id, submit=at, limit_s=limit_s, **fields)
        self.run_s[job.job_id] = run_s
        self.tables.jobs[job.job_id] = job
        self._at(at + HOP_S, 1, job)
        return job

    def call(self, when: float, function: Any) -> None:
        """Let the test do something at that time."""
        self._at(when, 2, function)

    def run(self, until: float = float("inf")) -> None:
        policy = self.policy
        while True:
            due = policy.next_run()
            if self._events and (due is None or self._events[0][0] <= due):
                if self._events[0][0] > until:
                    return
                self.now, kind, _, what = heapq.heappop(self._events)
                self._happen(kind, what)
            elif due is not None:
                if due > until:
                    return
                assert due >= self.now - 1, "a pass in the past"
                self.now = max(self.now, due)
                self.passes += 1
                for _ in policy.run(self.now):
                    pass
                if self.check:
                    check_tables(self.tables)
                again = policy.next_run()
                assert again is None or again > self.now, "the same pass again"
            else:
                return

    def _happen(self, kind: int, what: Any) -> None:
        if kind == 0:
            advance(what, JobEvent.EXITED_WELL, self.now)
            what.end_time = self.ends[what.job_id] = int(self.now)
            del self.tables.running[what.job_id]
            self.tables.nodes.release(what.allocation, what.allocation.nodes)
            self.tables.licenses.give_back(what.job_id)
            self.policy.note(Note.FREE, self.now)
        elif kind == 1:
            self.tables.pending[what.job_id] = what
            self.policy.note(Note.SUBMIT, self.now)
        else:
            what()


def read_swf(path: Path) -> Iterator[tuple[int, int, int, int, int]]:
    """(id, submit, run, processors, requested time) of a normalised trace."""
    with gzip.open(path, "rt") as lines:
        for line in lines:
            if not line.startswith(";"):
                f = line.split()
                yield int(f[0]), int(f[1]), int(f[3]), int(f[7]), int(f[8])


def oracle(name: str) -> Path:
    """A file of answers, or a skip."""
    path = SHARED / "oracles" / name
    if not path.exists():
        pytest.skip(f"the answers of {name} are not beside this repository")
    return path


def read_starts(path: Path) -> dict[int, int]:
    with gzip.open(path, "rt") as lines:
        return {int(row["id"]): int(row["start"]) for row in csv.DictReader(lines)}
