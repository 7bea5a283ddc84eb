"""What is free on the nodes: now (the node table itself), on an empty cluster, or after the running jobs have ended one after the other.

Place: scheduling, pure. Selectors look at a `Free`, so that "now", "ever" and "when" are one question asked of different states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from understudy.controller.job import Allocation
    from understudy.controller.nodes import NodeTable
    from understudy.controller.scheduling.api import Tables

KILL_WAIT_S: Final = 30  # slurm.conf's default: how long a job that ought to have ended may still take
FIRST_WINDOW_S: Final = 30  # of the search for a start in the future
JOBS_IN_A_GROUP: Final = 200


class Free(Protocol):
    """The free part of the cluster; `NodeTable` is one."""

    @property
    def free_cpus(self) -> NDArray[np.int64]: ...
    @property
    def free_memory(self) -> NDArray[np.int64]: ...
    @property
    def idle_nodes(self) -> int: ...
    @property
    def full_nodes(self) -> int: ...
    @property
    def exclusive_nodes(self) -> int: ...


@dataclass(slots=True, eq=False)
class FreeState:
    """A state that is not the present one."""

    free_cpus: NDArray[np.int64]
    free_memory: NDArray[np.int64]
    idle_nodes: int
    full_nodes: int
    exclusive_nodes: int

    @classmethod
    def empty(cls, table: NodeTable) -> FreeState:
        """Every node idle."""
        return cls(table.cpus, table.memory, nodeset.mask(len(table.nodes)), 0, 0)


@dataclass(slots=True, eq=False)
class _Held:
    """What a running job holds, as vectors over its nodes."""

    allocation: Allocation
    at: NDArray[np.intp]
    cpus: NDArray[np.int64]
    memory: NDArray[np.int64]

    @classmethod
    def of(cls, allocation: Allocation) -> _Held:
        at = [nodeset.positions_array(g.nodes) for g in allocation.groups]
        sizes = [len(each) for each in at]
        return cls(
            allocation,
            np.concatenate(at),
            np.repeat(np.array([g.cpus for g in allocation.groups], dtype=np.int64), sizes),
            np.repeat(np.array([g.memory_mb for g in allocation.groups], dtype=np.int64), sizes),
        )


class Timeline:
    """The running jobs in the order of their expected ends, and what is free after each group of them.

    Kept from one question to the next as long as no job has started or ended and no table has changed.
    """

    def __init__(self, tables: Tables, *, linear_window_s: int = 0, kill_wait_s: int = KILL_WAIT_S) -> None:
        self.tables = tables
        self.linear_window_s = linear_window_s
        self.kill_wait_s = kill_wait_s
        self._stamp: tuple[int, int] | None = None
        self._held: dict[int, _Held] = {}
        self._series: dict[tuple[int, bool, bytes], tuple[list[tuple[int, FreeState]], Iterator[tuple[int, FreeState]]]] = {}

    def _refresh(self) -> None:
        table, running = self.tables.nodes, self.tables.running
        stamp = (table.generation, self.tables.version)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self._series.clear()
        held: dict[int, _Held] = {}
        known = self._held
        jobs = [job for job in running.values() if job.allocation is not None and job.start_time is not None]
        for job in jobs:
            assert job.allocation is not None
            before = known.get(job.job_id)
            held[job.job_id] = before if before is not None and before.allocation is job.allocation else _Held.of(job.allocation)
        self._held = held
        forever = float("inf")

        def expected_end(job_id: int) -> float:
            job = running[job_id]
            assert job.start_time is not None
            return forever if job.time_limit_s is None else float(job.start_time + job.pre_suspend_s + job.time_limit_s)

        order = sorted((expected_end(job.job_id), job.job_id) for job in jobs)
        pieces = [held[job_id] for _, job_id in order]
        self._ends = np.array([end for end, _ in order], dtype=np.float64)
        self._sizes = np.array([len(piece.at) for piece in pieces], dtype=np.intp)
        self._bounds = np.concatenate((np.zeros(1, dtype=np.intp), np.cumsum(self._sizes)))
        self._at = np.concatenate([piece.at for piece in pieces]) if pieces else np.zeros(0, dtype=np.intp)
        self._cpus = np.concatenate([piece.cpus for piece in pieces]) if pieces else np.zeros(0, dtype=np.int64)
        self._memory = np.concatenate([piece.memory for piece in pieces]) if pieces else np.zeros(0, dtype=np.int64)
        # What neither is free nor belongs to a running job is held by jobs that are completing.
        size = len(table.nodes)
        count = np.bincount(self._at, minlength=size)
        self._left_jobs = table.job_count - count
        self._left_cpus = table.cpus - table.free_cpus
        np.subtract.at(self._left_cpus, self._at, self._cpus)
        self._left_memory = table.memory - table.free_memory
        np.subtract.at(self._left_memory, self._at, self._memory)
        self._completing = nodeset.from_flags(self._left_jobs > 0)

    def states(self, usable: int, now: int) -> Iterator[tuple[int, FreeState]]:
        """(start, what is free then), later and later: after the completing jobs, then after each group of running jobs that hold usable nodes.

        A group begins with the next job to end and takes those that end within a window behind it, counted from that end rounded up to 30 s. Each
        further window is twice as long (or longer by a fixed time), so that thousands of running jobs need few tests; the price is that a start is
        that of the group's last job. A job without a time limit never ends.

        Questions about the same running jobs share one series of states, worked out as far as somebody has looked.
        """
        self._refresh()
        if len(self._ends):
            here = nodeset.to_flags(usable, len(self.tables.nodes.nodes))
            holding = np.logical_or.reduceat(here[self._at], self._bounds[:-1]) & np.isfinite(self._ends)
        else:
            holding = np.zeros(0, dtype=np.bool_)
        with_completing = bool(self._completing & usable)
        if len(self._series) > 64:  # each may hold a dozen vectors over all nodes
            self._series.clear()
        key = (now, with_completing, holding.tobytes())
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = ([], self._work_out(np.flatnonzero(holding), now, with_completing=with_completing))
        known, further = series
        at = 0
        while True:
            if at == len(known):
                state = next(further, None)
                if state is None:
                    return
                known.append(state)
            yield known[at]
            at += 1

    def _work_out(self, order: NDArray[np.intp], now: int, *, with_completing: bool) -> Iterator[tuple[int, FreeState]]:
        """The states as the running jobs at these places end."""
        table = self.tables.nodes
        cpus, memory, jobs = table.free_cpus.copy(), table.free_memory.copy(), table.job_count.copy()

        def state() -> FreeState:
            idle = nodeset.from_flags(jobs == 0)
            return FreeState(cpus.copy(), memory.copy(), idle, nodeset.from_flags(cpus <= 0), table.exclusive_nodes & ~idle)

        if with_completing:
            cpus += self._left_cpus
            memory += self._left_memory
            jobs -= self._left_jobs
            yield now + 1, state()
        ends = self._ends[order]
        first, window = 0, FIRST_WINDOW_S
        while first < len(ends):
            boundary = int(ends[first]) + FIRST_WINDOW_S - int(ends[first]) % FIRST_WINDOW_S
            after = min(int(ends.searchsorted(boundary + window, side="right")), first + JOBS_IN_A_GROUP)
            group = order[first:after]
            if group[-1] - group[0] + 1 == len(group):
                part: slice | NDArray[np.intp] = slice(self._bounds[group[0]], self._bounds[group[-1] + 1])
            else:
                part = np.concatenate([np.arange(self._bounds[j], self._bounds[j + 1]) for j in group])
            at = self._at[part]
            np.add.at(cpus, at, self._cpus[part])
            np.add.at(memory, at, self._memory[part])
            np.subtract.at(jobs, at, 1)
            start = int(ends[after - 1])
            if start <= now:
                start = max(start + self.kill_wait_s, now + 1)
            yield start, state()
            first = after
            window = window + self.linear_window_s if self.linear_window_s else window * 2
