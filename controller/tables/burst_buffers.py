"""Burst buffers: pools of space, and the buffers that jobs have of them.

Place: tables, pure. `model/burst_buffers.py` reads what is asked; `jobs/buffers.py` moves buffers
through their lives. Follows Slurm's guide to burst buffers, and scontrol(1) on what is shown.

Space is counted in a pool's own units, a request rounded up to the pool's granularity. A job's
buffer has its space from the begin of its stage-in to the end of its teardown; where the policy
stages nothing in (`SchedulingPolicy.stages_buffers`), from the job's start to its end. A persistent
one has it until it is destroyed. Of an array each task has a buffer, its record has none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import TYPE_CHECKING, Final, Protocol

from understudy.model.burst_buffers import MEBIBYTE
from understudy.model.times import YEAR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from understudy.controller.tables.job import Job
    from understudy.model.burst_buffers import Persistent, Request

NO_SPACE: Final = "BurstBufferResources"  # reasons for which a job waits
STAGES_IN: Final = "BurstBufferStageIn"
FAILED: Final = "BurstBufferOperation"
LONGEST_WAIT_S: Final = 3600  # as far ahead space is expected at most, where there will be some


class BufferState(StrEnum):
    """What a buffer is at, as commands show it."""

    PENDING = "pending"
    ALLOCATING = "allocating"  # this and the next two: of persistent ones
    ALLOCATED = "allocated"
    DELETING = "deleting"
    STAGING_IN = "staging-in"
    STAGED_IN = "staged-in"
    PRE_RUN = "pre-run"
    ALLOC_REVOKE = "alloc-revoke"
    RUNNING = "running"
    POST_RUN = "post-run"
    STAGING_OUT = "staging-out"
    STAGED_OUT = "staged-out"
    TEARDOWN = "teardown"
    TEARDOWN_FAIL = "teardown-fail"
    COMPLETE = "complete"


class Readiness(StrEnum):
    """How far a pending job's buffer is."""

    READY = auto()  # the job may start: also one that asked for none
    STAGING = auto()
    WAITING = auto()  # it has no space


class BufferScript(Protocol):
    """A site's script of burst buffers, where the controller waits for what it says."""

    def process(self, job: Job, script: str) -> str | None:
        """What it says against a new job, "" if nothing of use; None: the job may come in."""

    def paths(self, job: Job) -> list[str] | None:
        """What the job's environment gets of its buffer; None: the job cannot begin."""


# Until here the job has not run with it: its data are still where they came from.
UNUSED: Final = frozenset({BufferState.STAGING_IN, BufferState.STAGED_IN, BufferState.PRE_RUN})


@dataclass(slots=True, eq=False)
class Pool:
    """`total` and `used` in the pool's units, multiples of the granularity."""

    name: str
    total: int
    granularity: int = 1
    used: int = 0

    @property
    def free(self) -> int:
        """What is left of it; less than nothing where a reconfiguration has made it smaller."""
        return self.total - self.used

    def rounded(self, amount: int) -> int:
        """Up to the granularity."""
        return -(-amount // self.granularity) * self.granularity


@dataclass(slots=True, eq=False)
class Buffer:
    """A buffer that has space. `job_id` is that of its job, 0 of a persistent one, which has a
    `name`; `run` is raised whenever a stage begins, so that news of an earlier one is none.
    """

    job_id: int
    user_id: int
    space: dict[str, int]  # by pool
    state: BufferState
    created: float
    name: str = ""
    maker: int = 0  # id of the job that makes a persistent one
    access: str = ""
    type: str = ""
    account: str = ""  # that is charged for a persistent one
    reservation: str = ""  # in which its job is to run
    run: int = 0
    tries: int = 0  # of its teardown
    hurry: bool = False
    has_failed: bool = False  # a stage of it; it stays as it is until its job is cancelled
    used_by: dict[int, None] = field(default_factory=dict)  # ids of jobs, of a persistent one
    environment: list[str] | None = None  # what a script gives the job of it; None: it has not yet
    told: str = ""  # what the function of its last stage told

    @property
    def size(self) -> int:
        """All its space."""
        return sum(self.space.values())

    def become(self, state: BufferState) -> None:
        """It is at something else."""
        self.state = state


@dataclass(slots=True, eq=False)
class BurstBuffers:
    """All of a cluster; false where burst buffers are off."""

    kind: str = ""  # of the plug-in: lua or datawarp
    pools: dict[str, Pool] = field(default_factory=dict)
    buffers: dict[int, Buffer] = field(default_factory=dict)  # by job id
    persistent: dict[str, Buffer] = field(default_factory=dict)  # by name
    # what reservations that have begun keep for their jobs: name -> pool -> space
    reserved: dict[str, dict[str, int]] = field(default_factory=dict)
    # jobs whose buffers are in a stage, and what begins it for those that wait for a place
    at_work: dict[str, dict[int, None]] = field(default_factory=dict)
    queued: dict[str, list[Callable[[], None]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.kind)

    @property
    def total_mebibytes(self) -> int:
        """All that there is, as accounting counts it."""
        return sum(pool.total for pool in self.pools.values()) // MEBIBYTE

    def wanted(self, job: Job) -> dict[str, int]:
        """Pool -> units that the job needs, rounded up; of an array, that each task needs. Empty
        where it asks for none.
        """
        request = job.burst_buffer
        if request is None:
            return {}
        found = self._own(job, request)
        for made in request.creates:
            if made.name not in self.persistent and made.pool in self.pools:
                pool = self.pools[made.pool]
                found[made.pool] = found.get(made.pool, 0) + pool.rounded(made.size)
        return found

    def _lacks_pool(self, request: Request) -> bool:
        """Whether a pool that it names is there no more."""
        return any(name not in self.pools for name, _ in request.sizes) or any(
            made.pool not in self.pools for made in request.creates
        )

    def _own(self, job: Job, request: Request) -> dict[str, int]:
        """Without what its persistent ones need."""
        asked: dict[str, int] = {}
        for name, amount in request.sizes:
            asked[name] = asked.get(name, 0) + amount
        if request.swap and self.pools:
            name = request.sizes[0][0] if request.sizes else next(iter(self.pools))
            asked[name] = asked.get(name, 0) + request.swap * job.min_nodes
        return {
            name: self.pools[name].rounded(amount)
            for name, amount in asked.items()
            if name in self.pools
        }

    def held_back(self, pool: str, reservation: str) -> int:
        """What reservations other than the one named keep of the pool and have not given out."""
        return sum(
            max(space.get(pool, 0) - self._used_within(name, pool), 0)
            for name, space in self.reserved.items()
            if name != reservation
        )

    def _used_within(self, reservation: str, pool: str) -> int:
        return sum(
            buffer.space.get(pool, 0)
            for buffer in self.buffers.values()
            if buffer.reservation == reservation
        )

    def is_free(self, wanted: Mapping[str, int], reservation: str = "") -> bool:
        """Whether the pools have that much now, for a job of the reservation ("": of none)."""
        return all(
            amount <= pool.free - (self.held_back(name, reservation) if self.reserved else 0)
            for name, amount in wanted.items()
            if (pool := self.pools[name]) is not None
        )

    def fits(self, job: Job) -> bool:
        """Whether the job could have its buffer now: there is space, and the persistent ones that
        it uses are there.
        """
        request = job.burst_buffer
        if request is None:
            return True
        if self._lacks_pool(request) or any(
            name not in self.persistent or self.persistent[name].state is not BufferState.ALLOCATED
            for name in request.uses
        ):
            return False
        if any(
            name in self.persistent and self.persistent[name].used_by
            for name, _ in request.destroys
        ):
            return False
        return self.is_free(self.wanted(job), job.spec.reservation)

    def lacks_persistent(self, job: Job) -> bool:
        """Whether a persistent buffer that it uses is not there: no job that ends gives it that."""
        request = job.burst_buffer
        return request is not None and any(name not in self.persistent for name in request.uses)

    def exceeds(self, job: Job) -> bool:
        """Whether it asks for more than there is of a pool at all."""
        request = job.burst_buffer
        return request is not None and (
            self._lacks_pool(request)
            or any(amount > self.pools[name].total for name, amount in self.wanted(job).items())
        )

    def readiness(self, job: Job) -> Readiness:
        """How far the job's buffer is."""
        if job.burst_buffer is None:
            return Readiness.READY
        buffer = None if job.array_tasks else self.buffers.get(job.job_id)
        state = None if buffer is None else buffer.state
        if state is BufferState.STAGED_IN:
            return Readiness.READY
        # what is left of an earlier run has to go first
        return Readiness.STAGING if state is BufferState.STAGING_IN else Readiness.WAITING

    def state_of(self, job: Job) -> str:
        """As `scontrol show job` names it, "" for a job that asked for none."""
        if job.burst_buffer is None:
            return ""
        buffer = self.buffers.get(job.job_id)
        if buffer is not None:
            return buffer.state
        is_over = job.is_finished or job.restarts  # also an earlier run's
        return BufferState.COMPLETE if is_over else BufferState.PENDING

    def expected(self, job: Job, jobs: Mapping[int, Job], now: int) -> int:
        """When the job may expect space: now; when the first of the buffers that are in the way is
        expected to be free, at most an hour ahead; a year ahead if it asks for more than there is.
        """
        if self.exceeds(job):
            return now + YEAR
        if self.fits(job):
            return now
        pools = self.wanted(job)
        first = now + LONGEST_WAIT_S
        for buffer in self.buffers.values():
            holder = jobs.get(buffer.job_id)
            if (
                holder is not None
                and holder.end_time is not None
                and not pools.keys().isdisjoint(buffer.space)
            ):
                first = min(first, holder.end_time)
        return max(first, now + 1)

    # --- what changes them ------------------------------------------------------------------------

    def take(self, job: Job, state: BufferState, now: float) -> Buffer:
        """The job has its space from now on, and so have the persistent ones that it makes."""
        request = job.burst_buffer
        assert request is not None, job.story
        assert job.job_id not in self.buffers, job.story
        space = self._own(job, request)
        own = job.spec.reservation
        buffer = Buffer(job.job_id, job.user_id, space, state, now, reservation=own)
        self._use(space)
        self.buffers[job.job_id] = buffer
        for made in request.creates:
            if made.name not in self.persistent:
                self._create(made, job, now)
        for name in request.uses:
            self.persistent[name].used_by[job.job_id] = None
        return buffer

    def _create(self, made: Persistent, job: Job, now: float) -> None:
        space = {made.pool: self.pools[made.pool].rounded(made.size)}
        self.persistent[made.name] = Buffer(
            0,
            job.user_id,
            space,
            BufferState.ALLOCATING,
            now,
            made.name,
            job.job_id,
            made.access,
            made.type,
            job.spec.account,
        )
        self._use(space)

    def grow(self, buffer: Buffer, size: int) -> None:
        """The buffer turns out to be so large; it gets no smaller than it was meant to be."""
        more = size - buffer.size
        if more > 0:
            pool = next(iter(buffer.space))
            buffer.space[pool] += more
            self._use({pool: more})

    def give_back(self, job: Job) -> None:
        """The job's buffer is gone."""
        self.forget(job.job_id)

    def forget(self, job_id: int) -> None:
        """The buffer is gone, as its job is."""
        self._use(self.buffers.pop(job_id).space, -1)
        for other in self.persistent.values():
            other.used_by.pop(job_id, None)

    def destroy(self, name: str) -> None:
        """A persistent one is gone."""
        self._use(self.persistent.pop(name).space, -1)

    def restore(self, buffer: Buffer) -> None:
        """One that was saved is back."""
        buffer.space = {name: held for name, held in buffer.space.items() if name in self.pools}
        self._use(buffer.space)
        if buffer.name:
            self.persistent[buffer.name] = buffer
        else:
            self.buffers[buffer.job_id] = buffer

    def resize(self, pools: list[Pool]) -> None:
        """The configuration has been read again: those that are left keep what is used of them;
        one of which something is used stays.
        """
        for name, pool in list(self.pools.items()):
            if not pool.used and all(name != each.name for each in pools):
                del self.pools[name]
        for each in pools:
            known = self.pools.setdefault(each.name, each)
            known.total, known.granularity = each.total, each.granularity

    def _use(self, space: Mapping[str, int], sign: int = 1) -> None:
        for name, amount in space.items():
            self.pools[name].used += sign * amount
