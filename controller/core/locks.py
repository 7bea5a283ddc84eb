"""Read and write locks for the controller's four kinds of state, always taken together by one call.

Place: the controller's core; it knows nothing of what it guards. No I/O; asyncio only for those who
wait in a task.

Slurm's controller takes its locks in a fixed order (configuration, jobs, nodes, partitions), so
that no two threads wait for each other. Here a request names all levels at once and gets all of
them or none, so nobody holds one level while waiting for another, and the order of the fields of
`Needs` is the order in which they are looked at.

Requests are served first come, first served: a waiting request keeps back every later one that
conflicts with it, and lets pass the ones that do not. So writers are not starved by readers, nor
the reverse.

Nearly always the locks are free. A handler that runs without a pause then needs no task and takes
no lock at all: it asks `available` and runs. Whoever pauses while it works (the scheduler between
its slices, a long listing) holds the locks that it needs across the pause.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from enum import IntEnum
from operator import lt
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Mode(IntEnum):
    """How a level is needed."""

    NONE = 0
    READ = 1
    WRITE = 2


NONE: Final = Mode.NONE
READ: Final = Mode.READ
WRITE: Final = Mode.WRITE


class Needs(NamedTuple):
    """What a piece of work needs of each level, in the order in which levels are taken."""

    config: Mode = NONE
    job: Mode = NONE
    node: Mode = NONE
    partition: Mode = NONE

    def conflicts_with(self, other: Needs) -> bool:
        """Whether both cannot be granted at the same time: one writes what the other reads or
        writes.
        """
        return any(
            mine + theirs > WRITE and mine and theirs
            for mine, theirs in zip(self, other, strict=True)
        )


class LockStatistics(NamedTuple):
    """Counts since the start, and how many wait now."""

    granted_at_once: int
    granted_after_waiting: int
    waiting: int
    longest_queue: int


class Locks:
    """All locks of one controller."""

    def __init__(self) -> None:
        self._readers = [0, 0, 0, 0]
        self._writers = [0, 0, 0, 0]
        self._held = 0
        self._queue: deque[tuple[Needs, Callable[[], None]]] = deque()
        # of those in the queue, by level
        self._awaited = _Awaited()
        self._is_serving = False
        self._at_once = self._waited = self._longest = 0

    def available(self, needs: Needs) -> bool:
        """Whether `needs` would be granted now: no holder and nobody in the queue is in the way."""
        if not self._held and not self._queue:
            return True
        return self._is_compatible(needs) and not self._awaited.conflicts_with(needs)

    def take(self, needs: Needs) -> bool:
        """Take the locks if they are available. Whoever gets True calls `drop` with the same
        needs.
        """
        if not self.available(needs):
            return False
        self._at_once += 1
        self._grant(needs)
        return True

    def drop(self, needs: Needs) -> None:
        """Give back what was taken, and serve the queue."""
        self._held -= 1
        assert self._held >= 0, "lock given back twice"
        for level, mode in enumerate(needs):
            if mode == READ:
                self._readers[level] -= 1
                assert self._readers[level] >= 0, "read lock given back twice"
            elif mode == WRITE:
                self._writers[level] -= 1
                assert self._writers[level] >= 0, "write lock given back twice"
        if self._queue:
            self._serve()

    def when_available(self, needs: Needs, granted: Callable[[], None]) -> None:
        """Call `granted` with the locks held, at once or when the turn comes. It, or what it
        starts, calls `drop`.
        """
        if self.take(needs):
            granted()
            return
        self._wait(needs, granted)

    @asynccontextmanager
    async def hold(
        self, *, config: Mode = NONE, job: Mode = NONE, node: Mode = NONE, partition: Mode = NONE
    ) -> AsyncIterator[None]:
        """Hold the named levels within the block; wait for them if need be."""
        needs = Needs(config, job, node, partition)
        if not self.take(needs):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            entry = self._wait(needs, lambda: self._hand_over(needs, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self.drop(needs)
                elif entry in self._queue:
                    self._queue.remove(entry)
                    self._awaited.remove(needs)
                    self._serve()
                raise
        try:
            yield
        finally:
            self.drop(needs)

    def statistics(self) -> LockStatistics:
        """How the locks are used."""
        return LockStatistics(self._at_once, self._waited, len(self._queue), self._longest)

    def _wait(self, needs: Needs, granted: Callable[[], None]) -> tuple[Needs, Callable[[], None]]:
        """Enter the queue; the entry."""
        entry = (needs, granted)
        self._queue.append(entry)
        self._awaited.add(needs)
        self._longest = max(self._longest, len(self._queue))
        return entry

    def _hand_over(self, needs: Needs, turn: asyncio.Future[None]) -> None:
        if turn.done():  # its task was cancelled meanwhile
            self.drop(needs)
        else:
            turn.set_result(None)

    def _is_compatible(self, needs: Needs) -> bool:
        return not any(
            mode and (self._writers[level] or (mode == WRITE and self._readers[level]))
            for level, mode in enumerate(needs)
        )

    def _grant(self, needs: Needs) -> None:
        self._held += 1
        for level, mode in enumerate(needs):
            if mode == READ:
                self._readers[level] += 1
            elif mode == WRITE:
                self._writers[level] += 1

    def _serve(self) -> None:
        """Grant all in the queue that neither a holder nor an earlier one in the queue keeps back.

        Most of them are done and drop their locks before they return. Others are served then by
        this very call, not by one within it: thousands may wait.
        """
        if self._is_serving:
            return
        self._is_serving = True
        kept: deque[tuple[Needs, Callable[[], None]]] = deque()
        earlier = _Awaited()  # of those that are kept
        failure: BaseException | None = None
        while self._queue:
            needs, granted = entry = self._queue.popleft()
            if earlier.conflicts_with(needs) or not self._is_compatible(needs):
                kept.append(entry)
                earlier.add(needs)
                continue
            self._awaited.remove(needs)
            held = [*self._readers, *self._writers]
            self._grant(needs)
            self._waited += 1
            try:
                granted()
            except BaseException as error:  # noqa: BLE001 - the others must not wait for ever
                failure = failure or error
            if any(map(lt, [*self._readers, *self._writers], held)):
                # somebody else has dropped his, too: the kept may have their turn
                self._queue.extendleft(reversed(kept))
                kept.clear()
                earlier = _Awaited()
        self._queue = kept
        self._is_serving = False
        if failure is not None:
            raise failure


class _Awaited:
    """How many wait for each level, and how many of them to write there."""

    __slots__ = ("_any", "_writers")

    def __init__(self) -> None:
        self._any = [0, 0, 0, 0]
        self._writers = [0, 0, 0, 0]

    def add(self, needs: Needs) -> None:
        for level, mode in enumerate(needs):
            self._any[level] += mode > NONE
            self._writers[level] += mode == WRITE

    def remove(self, needs: Needs) -> None:
        for level, mode in enumerate(needs):
            self._any[level] -= mode > NONE
            self._writers[level] -= mode == WRITE

    def conflicts_with(self, needs: Needs) -> bool:
        """Whether one of them does."""
        return any(
            mode and (self._writers[level] or (mode == WRITE and self._any[level]))
            for level, mode in enumerate(needs)
        )
