"""What is free on the nodes: now (the node table itself), on an empty cluster, or after the running
jobs have ended one after the other.

Place: scheduling, pure. Selectors look at a `Free`, so that "now", "ever" and "when" are one
question asked of different states.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np
from msgspec import structs

from understudy.controller.scheduling.select.gres_needs import untyped_names
from understudy.controller.tables.node import room_beside
from understudy.model import nodeset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from understudy.controller.tables.allocation import Allocation, ShareGroup
    from understudy.controller.tables.gres import GresTable
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.node import NodeTable
    from understudy.controller.tables.tables import Tables

# slurm.conf's default: how long a job that ought to have ended may still take
KILL_WAIT_S: Final = 30
FIRST_WINDOW_S: Final = 30  # of the search for a start in the future
JOBS_IN_A_GROUP: Final = 200
MOST_FOUND: Final = 4096  # starts of jobs that are remembered
MOST_STATES: Final = 64  # of which vectors are kept
_NOTHING: Final[frozenset[str]] = frozenset()


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
    def free_gres(self, key: str) -> NDArray[np.int64] | None: ...
    def used_cores_of(self, nodes: NDArray[np.intp], /) -> list[int]: ...


@dataclass(slots=True, eq=False)
class FreeState:
    """A state that is not the present one."""

    free_cpus: NDArray[np.int64]
    free_memory: NDArray[np.int64]
    idle_nodes: int
    full_nodes: int
    exclusive_nodes: int
    gres: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    spec_cores: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def empty(cls, table: NodeTable) -> FreeState:
        """Every node idle."""
        gres = {} if table.gres is None else table.gres.total
        return cls(
            table.cpus, table.memory, nodeset.mask(len(table.nodes)), 0, 0, gres, table.spec_cores
        )

    def free_gres(self, key: str) -> NDArray[np.int64] | None:
        """As in `NodeTable`."""
        return self.gres.get(key)

    def used_cores_of(self, nodes: NDArray[np.intp], /) -> list[int]:
        """Of these nodes (indices): the system's."""
        return (
            [self.spec_cores.get(node, 0) for node in nodes.tolist()]
            if self.spec_cores
            else [0] * len(nodes)
        )


class StateWithout:
    """The present state, but some running jobs gone; `completing`: those that are completing, too.
    More may be removed later.
    """

    def __init__(
        self, tables: Tables, gone: Iterable[Job] = (), *, completing: bool = True
    ) -> None:
        table = tables.nodes
        self.free_cpus, self.free_memory = table.free_cpus.copy(), table.free_memory.copy()
        self.idle_nodes, self.full_nodes, self.exclusive_nodes = (
            table.idle_nodes,
            table.full_nodes,
            table.exclusive_nodes,
        )
        self._jobs = table.job_count.copy()
        self._tables = tables
        self._gone: list[Allocation] = []
        self._left_out: set[int] = set()
        self._cleaned = table.completing_nodes if completing else 0
        if completing and table.completing_nodes:
            self._without_completing(tables)
        for job in gone:
            self.remove(job)

    def _without_completing(self, tables: Tables) -> None:
        table = tables.nodes
        at = nodeset.positions_array(table.completing_nodes)
        self.free_cpus[at], self.free_memory[at], self._jobs[at] = (
            table.cpus[at],
            table.memory[at],
            0,
        )
        for job in tables.running.values():
            holding = job.holding
            if holding is not None and holding.nodes & table.completing_nodes:
                self._count(holding, table.completing_nodes, -1)
        if any(table.sharing.held.values()):
            self._count_shared(at)
        self._tidy(table.completing_nodes, at)

    def remove(self, job: Job, *, suspended: bool = False) -> None:
        """Another job is gone, too; if it is `suspended`, its memory and generic resources stay
        taken.
        """
        held = job.holding
        assert held is not None
        if suspended:
            for group in held.groups:
                if group.memory_mb or group.gres:
                    self._jobs[nodeset.positions_array(group.nodes)] += 1  # it is still there
            held = structs.replace(
                held,
                groups=tuple(structs.replace(group, memory_mb=0, gres=()) for group in held.groups),
            )
        at = nodeset.positions_array(held.nodes)
        self._count(held, held.nodes, 1)
        self._gone.append(held)
        self._left_out.add(job.job_id)
        if held.is_shared:
            self._count_shared(at)
        self._tidy(held.nodes, at)

    @property
    def jobs(self) -> list[Job]:
        """The jobs that are left."""
        return [job for job in self._tables.running.values() if job.job_id not in self._left_out]

    def free_gres(self, key: str) -> NDArray[np.int64] | None:
        """As in `NodeTable`."""
        free, gres = self._tables.nodes.free_gres(key), self._tables.nodes.gres
        if gres is not None and key.partition(":")[0] in gres.shared:
            return room_beside(gres, key, self._groups_left())
        if free is not None:
            free = free.copy()
            for group in (group for held in self._gone for group in held.groups):
                if count := sum(
                    held.amount
                    for held in group.gres
                    if key in (held.name, f"{held.name}:{held.type}")
                ):
                    free[nodeset.positions_array(group.nodes)] += count
        return free

    def devices(self) -> GresTable | None:
        """Which devices are in use."""
        table = self._tables.nodes.gres
        return (
            None
            if table is None
            else table.beside((group.nodes, group.gres) for group in self._groups_left())
        )

    def _groups_left(self) -> Iterator[ShareGroup]:
        held = (job.holding for job in self._tables.running.values())
        return (
            group
            for each in held
            if each is not None and not any(each is gone for gone in self._gone)
            for group in each.groups
        )

    def used_cores_of(self, nodes: NDArray[np.intp], /) -> list[int]:
        """Bit masks of the cores in use on these nodes (indices)."""
        used = self._tables.nodes.used_cores_of(nodes)
        at = {index: place for place, index in enumerate(nodes.tolist())}
        here = nodeset.from_array(nodes)
        for index in nodeset.indices(self._cleaned & here):
            used[at[index]] = self._tables.nodes.spec_cores.get(index, 0)
        if self._cleaned & here:
            for job in self._tables.running.values():
                for group in job.holding.groups if job.holding is not None else ():
                    for index in nodeset.indices(group.nodes & self._cleaned & here):
                        used[at[index]] |= group.cores
        for held in self._gone:
            for group in held.groups:
                for index in nodeset.indices(group.nodes & here):
                    used[at[index]] &= ~group.cores
        if any(held.is_shared for held in self._gone):  # others may have the same cores
            for job in self.jobs:
                for group in job.holding.groups if job.holding is not None else ():
                    for index in nodeset.indices(group.nodes & here):
                        used[at[index]] |= group.cores
        return used

    def _count_shared(self, nodes: NDArray[np.intp]) -> None:
        """Cores that several jobs have count once."""
        table = self._tables.nodes
        for node, used in zip(nodes.tolist(), self.used_cores_of(nodes), strict=True):
            self.free_cpus[node] = table.cpus[node] - (
                used & ~table.nodes[node].spec_cores
            ).bit_count() * table.cpus_of_core(node)

    def _count(self, held: Allocation, nodes: int, sign: int) -> None:
        for group in held.groups:
            if part := group.nodes & nodes:
                at = nodeset.positions_array(part)
                self.free_cpus[at] += sign * group.cpus
                self.free_memory[at] += sign * group.memory_mb
                self._jobs[at] -= sign

    def _tidy(self, nodes: int, at: NDArray[np.intp]) -> None:
        idle = nodeset.from_array(at[self._jobs[at] == 0])
        self.idle_nodes |= idle
        self.exclusive_nodes &= ~idle
        self.full_nodes = self.full_nodes & ~nodes | nodeset.from_array(at[self.free_cpus[at] <= 0])


@dataclass(slots=True, eq=False)
class Overlay:
    """Another state seen otherwise: memory, devices and who has nodes to himself are as there;
    subclasses say what is not.
    """

    base: Free

    @property
    def free_memory(self) -> NDArray[np.int64]:
        return self.base.free_memory

    @property
    def exclusive_nodes(self) -> int:
        return self.base.exclusive_nodes

    def free_gres(self, key: str) -> NDArray[np.int64] | None:
        """As in `NodeTable`."""
        return self.base.free_gres(key)


@dataclass(slots=True, eq=False)
class WithoutCores(Overlay):
    """Another state, without the cores (masks by node) that are kept from who asks."""

    blocked: Mapping[int, int]
    free_cpus: NDArray[np.int64]
    idle_nodes: int
    full_nodes: int

    def used_cores_of(self, nodes: NDArray[np.intp], /) -> list[int]:
        """Those that are in use, and those that are kept."""
        return [
            used | self.blocked.get(node, 0)
            for node, used in zip(nodes.tolist(), self.base.used_cores_of(nodes), strict=True)
        ]


def devices_in(free: Free, table: NodeTable) -> GresTable | None:
    """Which devices are in use in a state."""
    while isinstance(free, Overlay):
        free = free.base
    if isinstance(free, StateWithout):
        return free.devices()
    if free is table or table.gres is None:
        return table.gres
    jobs = free.jobs if isinstance(free, StateAfter) else ()
    return table.gres.beside(
        (group.nodes, group.gres)
        for job in jobs
        if job.holding is not None
        for group in job.holding.groups
    )


def restricted(free: Free, table: NodeTable, blocked: Mapping[int, int] | None) -> Free:
    """The state without the blocked cores (masks by node); the state itself if there are none."""
    if not blocked:
        return free
    cpus, idle, full = free.free_cpus.copy(), free.idle_nodes, free.full_nodes
    at = np.array(sorted(blocked), dtype=np.intp)
    for node, used in zip(at.tolist(), free.used_cores_of(at), strict=True):
        cores = int(table.cores[node])
        cpus[node] = (cores - (used | blocked[node]).bit_count()) * table.cpus_of_core(node)
        idle &= ~(1 << node)
        if not cpus[node]:
            full |= 1 << node
    return WithoutCores(free, blocked, cpus, idle, full)


@dataclass(slots=True, eq=False)
class _Held:
    """What a running job holds, as vectors over its nodes."""

    allocation: Allocation
    at: NDArray[np.intp]
    cpus: NDArray[np.int64]
    memory: NDArray[np.int64]
    untyped: frozenset[str]  # names of generic resources that it asked for without a type
    is_shared: bool

    @classmethod
    def of(cls, job: Job, allocation: Allocation) -> _Held:
        at = [nodeset.positions_array(g.nodes) for g in allocation.groups]
        sizes = [len(each) for each in at]
        return cls(
            allocation,
            np.concatenate(at),
            np.repeat(np.array([g.cpus for g in allocation.groups], dtype=np.int64), sizes),
            np.repeat(np.array([g.memory_mb for g in allocation.groups], dtype=np.int64), sizes),
            untyped_names(job) if any(g.gres for g in allocation.groups) else _NOTHING,
            allocation.is_shared,
        )


@dataclass(slots=True, eq=False)
class _Seen:
    """Some nodes over time. `here`: 1 for each of them, else 0. The lists: the jobs that hold some
    of them, by place in the order of their ends; looked up one by one, which vectors do slowly.
    """

    here: NDArray[np.int64]
    free_now: int
    order: list[int] | None = None
    ends: list[float] = field(default_factory=list)
    next_ends: list[float] = field(default_factory=list)
    free: list[int] = field(default_factory=list)  # CPUs, after each


class _Found(NamedTuple):
    """(start, nodes) of a job of that shape, None if there is no start up to `until`."""

    shape: object  # that it stays the only one with its id
    until: int | None
    what: tuple[int, int] | None

    def holds(self, until: int | None) -> bool:
        if self.what is None:
            return self.until is None or (until is not None and until <= self.until)
        return until is None or self.what[0] <= until


class Timeline:
    """The running jobs in the order of their expected ends, and what is free after each of them.

    Kept from one question to the next as long as no job has started or ended and nothing has
    changed but jobs that wait: thousands may be submitted while a pass goes on.

    What is free on a node after the first n jobs have ended is the same whatever nodes a question
    is about. So there is one state a job, made when somebody asks, and of it only what he looks at:
    the bitmaps by comparing two vectors, free CPUs and memory by going on from an earlier state.
    """

    def __init__(
        self,
        tables: Tables,
        *,
        linear_window_s: int = 0,
        kill_wait_s: int = KILL_WAIT_S,
        most_in_group: int = JOBS_IN_A_GROUP,
    ) -> None:
        self.tables = tables
        self.linear_window_s = linear_window_s
        self.kill_wait_s = kill_wait_s
        self.most_in_group = most_in_group
        self._stamp: tuple[int, int] | None = None
        self._held: dict[int, _Held] = {}
        self._states: dict[int, StateAfter] = {}
        self._cpus_after: dict[int, NDArray[np.int64]] = {}
        self._memory_after: dict[int, NDArray[np.int64]] = {}
        self._ranked = False
        self._gres: dict[tuple[int, str], NDArray[np.int64]] = {}
        self._seen: dict[int, _Seen] = {}
        self._found: dict[tuple[int, int], _Found] = {}

    def _refresh(self) -> None:
        table, running = self.tables.nodes, self.tables.running
        stamp = (table.generation, self.tables.held_version)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self._states.clear()
        self._cpus_after.clear()
        self._memory_after.clear()
        self._gres.clear()
        self._seen.clear()
        self._found.clear()
        self._ranked = False
        forever = float("inf")
        held: dict[int, _Held] = {}
        known = self._held
        order: list[tuple[float, int]] = []
        for job_id, job in running.items():
            holding, began = job.holding, job.start_time
            if holding is None or began is None or not holding.nodes:
                continue
            before = known.get(job_id)
            held[job_id] = (
                before
                if before is not None and before.allocation is holding
                else _Held.of(job, holding)
            )
            if job.preempt_time is not None and job.end_time is not None:
                order.append((float(job.end_time), job_id))  # in its grace time
            else:
                order.append(
                    (
                        forever
                        if job.time_limit_s is None
                        else float(began + job.suspended_s + job.time_limit_s),
                        job_id,
                    )
                )
        self._held = held
        order.sort()
        pieces = self._pieces = [held[job_id] for _, job_id in order]
        self._jobs = [running[job_id] for _, job_id in order]
        self._shares = any(piece.is_shared for piece in pieces)
        # of those that will end, first in `order`
        self._ends = np.array([end for end, _ in order if end < forever], dtype=np.float64)
        self._next_ends = np.append(self._ends[1:], forever) if len(self._ends) else self._ends
        self._bounds = np.zeros(len(pieces) + 1, dtype=np.intp)
        np.cumsum([len(piece.at) for piece in pieces], out=self._bounds[1:])
        self._at = (
            np.concatenate([piece.at for piece in pieces]) if pieces else np.zeros(0, dtype=np.intp)
        )
        self._cpus = (
            np.concatenate([piece.cpus for piece in pieces])
            if pieces
            else np.zeros(0, dtype=np.int64)
        )
        # What neither is free nor belongs to a running job is held by jobs that are completing.
        self._left_jobs = table.job_count - np.bincount(self._at, minlength=len(table.nodes))
        self._completing = nodeset.from_flags(self._left_jobs > 0)

    def _rank_nodes(self) -> None:
        """The first and the last job on each node, as places in the order."""
        self._ranked = True
        size, jobs = len(self.tables.nodes.nodes), len(self._pieces)
        ranks = np.repeat(np.arange(jobs), np.diff(self._bounds))
        # Of several values for one place the one that comes last stays.
        self._last = np.full(size, -1, dtype=np.intp)
        self._last[self._at] = ranks
        self._first = np.full(size, jobs, dtype=np.intp)
        self._first[self._at[::-1]] = ranks[::-1]
        self._first[self._left_jobs > 0] = -1

    def once(
        self,
        shape: object,
        usable: int,
        now: int,
        until: int | None,
        look: Callable[[], tuple[int, int] | None],
    ) -> tuple[int, int] | None:
        """What `look` finds of a job of that shape, (start, nodes). Asked again, in the next pass
        or for another job, that is known for as long as it is not yet to be.
        """
        self._refresh()
        if self._completing & usable or not len(self._ends) or now >= self._ends[0]:
            return look()
        key = (id(shape), usable)
        known = self._found.get(key)
        if known is not None and known.holds(until):
            return known.what
        found = look()
        if found is None or found[0] > now:
            if len(self._found) >= MOST_FOUND:
                self._found.clear()
            self._found[key] = _Found(shape, until, found)
        return found

    def by(self, until: int | None) -> StateAfter:
        """The state in which no job is left that is expected to end by then (None: ever), nor one
        that is completing.
        """
        self._refresh()
        ended = (
            len(self._ends) if until is None else int(self._ends.searchsorted(until, side="right"))
        )
        return self._state(ended - 1)

    def states(
        self, usable: int, now: int, until: int | None = None, least_cpus: int = 0
    ) -> Iterator[tuple[int, Free]]:
        """(start, what is free then), later and later: now, after the completing jobs, then after
        each group of running jobs that hold usable nodes.

        A group takes the jobs that end within a window behind the first end of all, which is
        rounded up to the next full 30 s. Each further window is twice as long (or longer by a fixed
        time), and again as long as the next job to end, on any node, does not end within it, so
        that thousands of running jobs need few tests; the price is that a start is that of the
        group's last job. Whether a group is complete is asked after each job, of the next to end on
        any node: if that ends within the window, the group goes on to the next job on usable nodes,
        however late. A job without a time limit never ends. Starts after `until` are left out, and
        states in which the usable nodes have fewer than `least_cpus` CPUs free. Only the usable
        nodes are what is said of them.
        """
        self._refresh()
        table = self.tables.nodes
        seen = self._seen.get(usable)
        if seen is None:
            if len(self._seen) >= MOST_STATES:
                self._seen.clear()
            here = nodeset.to_flags(usable, len(table.nodes)).astype(np.int64)
            seen = self._seen[usable] = _Seen(here, table.free_cpus_on(usable))
        if seen.free_now >= least_cpus:
            yield now, table
        if self._completing & usable and (until is None or now < until):
            yield now + 1, self._state(-1)
        # whoever ends later is too late
        known = (
            len(self._ends) if until is None else int(self._ends.searchsorted(until, side="right"))
        )
        if not known or (
            until is not None
            and not self._shares
            and int(self.cpus(known - 1) @ seen.here) < least_cpus
        ):
            return
        if seen.order is None:
            self._follow(seen)
        assert seen.order is not None
        order, ends, next_ends = seen.order, seen.ends, seen.next_ends
        # the first job in the order behind which there are as many
        enough = bisect_left(seen.free, least_cpus)
        if enough >= len(order) or (until is not None and ends[enough] > until):
            return
        first, window, linear = 0, FIRST_WINDOW_S, self.linear_window_s
        boundary = int(ends[0]) + FIRST_WINDOW_S - int(ends[0]) % FIRST_WINDOW_S
        while first < len(ends):
            after = max(bisect_right(next_ends, boundary + window), first)
            after = min(after + 1, first + self.most_in_group, len(ends))
            start = int(ends[after - 1])
            if start <= now:
                start = max(start + self.kill_wait_s, now + 1)
            elif until is not None and start > until:
                return
            if after > enough and (until is None or start <= until):
                yield start, self._state(order[after - 1])
            first = after
            window = window + linear if linear else window * 2
            if first < len(ends):  # windows in which nobody ends, on whatever node, are passed over
                missing = int(next_ends[first - 1]) - boundary - window
                if missing > 0 and linear:
                    window += -(-missing // linear) * linear
                while boundary + window < next_ends[first - 1]:
                    window *= 2

    def _follow(self, seen: _Seen) -> None:
        """Which jobs that will end hold some of the nodes, and how many CPUs are free there after
        each of them.
        """
        if not len(self._ends):
            seen.order = []
            return
        freed = np.add.reduceat(seen.here[self._at] * self._cpus, self._bounds[:-1])[
            : len(self._ends)
        ]
        order = freed.nonzero()[0]
        free = int(self.cpus(-1) @ seen.here) + freed[order].cumsum()
        seen.order, seen.free = order.tolist(), free.tolist()
        seen.ends, seen.next_ends = self._ends[order].tolist(), self._next_ends[order].tolist()

    def _state(self, rank: int) -> StateAfter:
        state = self._states.get(rank)
        if state is None:
            if not self._ranked:
                self._rank_nodes()
            idle = nodeset.from_flags(self._last <= rank)
            table = self.tables.nodes
            full = table.full_nodes & nodeset.from_flags(self._first > rank)
            state = self._states[rank] = StateAfter(
                self, rank, idle, full, table.exclusive_nodes & ~idle
            )
        return state

    def cpus(self, rank: int) -> NDArray[np.int64]:
        """Free CPUs after the job at that place in the order has ended, and all before it."""
        table = self.tables.nodes
        found = self._cpus_after.get(rank)
        if found is None:
            found = self._after(rank, self._cpus_after, table.free_cpus, table.cpus, self._cpus)
            if self._shares and rank >= 0:
                self._count_shared(found, rank)
        return found

    def memory(self, rank: int) -> NDArray[np.int64]:
        """Free memory, as `cpus`."""
        table = self.tables.nodes
        found = self._memory_after.get(rank)
        if found is None:
            held = (
                np.concatenate([piece.memory for piece in self._pieces])
                if self._pieces
                else np.zeros(0, dtype=np.int64)
            )
            found = self._after(rank, self._memory_after, table.free_memory, table.memory, held)
        return found

    def _after(
        self,
        rank: int,
        known: dict[int, NDArray[np.int64]],
        free: NDArray[np.int64],
        total: NDArray[np.int64],
        held: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """One of the two, by going on from an earlier state. `held`: what each running job has on
        each of its nodes.
        """
        if not known:
            now = free.copy()
            if self._completing:
                ours = np.bincount(self._at, held, len(now)).astype(np.int64)
                np.copyto(now, total - ours, where=self._left_jobs > 0)
            known[-1] = now
            if rank < 0:
                return now
        if len(known) > MOST_STATES:
            now = known[-1]
            known.clear()
            known[-1] = now
        base = max(place for place in known if place < rank)
        part = slice(self._bounds[base + 1], self._bounds[rank + 1])
        found = known[rank] = known[base].copy()
        np.add.at(found, self._at[part], held[part])
        return found

    def _count_shared(self, cpus: NDArray[np.int64], rank: int) -> None:
        """Where jobs share cores, a core is free when the last of them has left it."""
        table = self.tables.nodes
        shared = 0
        for piece in self._pieces:
            if piece.allocation.is_shared:
                shared |= piece.allocation.nodes
        at = nodeset.positions_array(shared & ~self._completing)
        for node, used in zip(at.tolist(), self.used_cores(rank, at), strict=True):
            cpus[node] = table.cpus[node] - (
                used & ~table.nodes[node].spec_cores
            ).bit_count() * table.cpus_of_core(node)

    def gres(self, rank: int, key: str) -> NDArray[np.int64] | None:
        """Free devices of a name, or name and type, after the job at that place in the order has
        ended, all before it and those that complete.

        Slurm does not give back what a job asked for without a type if it is only counted (no File)
        and nodes have it by type: as far ahead as it looks, the job keeps it.
        """
        table = self.tables.nodes.gres
        if table is None or key not in table.total:
            return None
        found = self._gres.get((rank, key))
        if found is None and key.partition(":")[0] in table.shared:
            found = room_beside(
                table,
                key,
                (group for piece in self._pieces[rank + 1 :] for group in piece.allocation.groups),
            )
            self._gres[rank, key] = found
        if found is None:
            found = table.total[key].copy()
            for place, piece in enumerate(self._pieces):
                for group in piece.allocation.groups:
                    count = sum(
                        held.amount
                        for held in group.gres
                        if key in (held.name, f"{held.name}:{held.type}")
                        and (
                            place > rank
                            or (held.type and not held.devices and held.name in piece.untyped)
                        )
                    )
                    if count:
                        found[nodeset.positions_array(group.nodes)] -= count
            self._gres[rank, key] = found
        return found

    def jobs_after(self, rank: int) -> list[Job]:
        """The jobs that have not ended by then, in the order of their ends."""
        return self._jobs[rank + 1 :]

    def used_cores(self, rank: int, nodes: NDArray[np.intp]) -> list[int]:
        """Bit masks of the cores that later jobs hold on these nodes (indices)."""
        spec_cores = self.tables.nodes.spec_cores
        used = (
            {node: spec_cores.get(node, 0) for node in nodes.tolist()}
            if spec_cores
            else dict.fromkeys(nodes.tolist(), 0)
        )
        asked = nodeset.from_array(nodes)
        for piece in self._pieces[rank + 1 :]:
            for group in piece.allocation.groups:
                for node in nodeset.indices(group.nodes & asked):
                    used[node] |= group.cores
        return list(used.values())


@dataclass(slots=True, eq=False)
class StateAfter:
    """What is free after the first running jobs, up to the one at place `rank` in the order of
    their ends, have ended.
    """

    timeline: Timeline
    rank: int
    idle_nodes: int
    full_nodes: int
    exclusive_nodes: int

    @property
    def free_cpus(self) -> NDArray[np.int64]:
        return self.timeline.cpus(self.rank)

    @property
    def free_memory(self) -> NDArray[np.int64]:
        return self.timeline.memory(self.rank)

    def free_gres(self, key: str) -> NDArray[np.int64] | None:
        """As in `NodeTable`."""
        return self.timeline.gres(self.rank, key)

    @property
    def jobs(self) -> list[Job]:
        return self.timeline.jobs_after(self.rank)

    def used_cores_of(self, nodes: NDArray[np.intp], /) -> list[int]:
        """Bit masks of the cores in use on these nodes (indices)."""
        return self.timeline.used_cores(self.rank, nodes)
