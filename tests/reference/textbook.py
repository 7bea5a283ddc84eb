"""What two textbook policies do with a workload, job by job: plain, slow, and independent of the
product.

It shares no code with the controller: what both agree on is then more than one program's opinion.

The machine is a pool of identical processors without overheads. Decisions are taken at every
instant at which something happens: first all completions of that instant, then all submissions,
then one scheduling pass. The queue's order is (submit, id).

- FCFS starts jobs from the head of the queue until one does not fit.
- EASY does the same, then reserves for the head: running jobs are taken in the order of their
  estimated ends (start + requested time), those of one instant together, until the head would fit.
  That instant is the shadow time; what is then free beyond the head's need is extra. A waiting job,
  in the queue's order, starts now if it fits and either ends (now + requested) by the shadow time,
  or takes no more than the extra, which it uses up.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A job as the policies see it: `run` is at most `req`."""

    id: int
    submit: int
    run: int
    procs: int
    req: int


def fcfs(tasks: list[Task], processors: int) -> dict[int, int]:
    """Start times by id. Tasks that are larger than the machine are not in it."""
    return _simulate(tasks, processors, backfill=False)


def easy(tasks: list[Task], processors: int) -> dict[int, int]:
    """Start times by id. Tasks that are larger than the machine are not in it."""
    return _simulate(tasks, processors, backfill=True)


def _simulate(tasks: list[Task], processors: int, *, backfill: bool) -> dict[int, int]:
    arrivals = deque(
        sorted(
            (task for task in tasks if task.procs <= processors),
            key=lambda task: (task.submit, task.id),
        )
    )
    queue: deque[Task] = deque()
    running: dict[int, Task] = {}
    ends: list[tuple[int, int]] = []  # heap of (end, id)
    starts: dict[int, int] = {}
    free = processors

    def start(task: Task, now: int) -> None:
        nonlocal free
        free -= task.procs
        starts[task.id] = now
        running[task.id] = task
        heapq.heappush(ends, (now + task.run, task.id))

    while arrivals or ends:
        now = min(
            arrivals[0].submit if arrivals else ends[0][0],
            ends[0][0] if ends else arrivals[0].submit,
        )
        while ends and ends[0][0] == now:
            free += running.pop(heapq.heappop(ends)[1]).procs
        while arrivals and arrivals[0].submit == now:
            queue.append(arrivals.popleft())
        while queue and queue[0].procs <= free:
            start(queue.popleft(), now)
        if backfill and len(queue) > 1 and free > 0:
            shadow, extra = _reservation(
                queue[0], free, [(starts[i] + task.req, task.procs) for i, task in running.items()]
            )
            kept = deque([queue.popleft()])
            for task in queue:
                ends_in_time = now + task.req <= shadow
                if task.procs <= free and (ends_in_time or task.procs <= extra):
                    if not ends_in_time:
                        extra -= task.procs
                    start(task, now)
                else:
                    kept.append(task)
            queue = kept
    assert not queue, "every task that fits the machine starts"
    return starts


def _reservation(head: Task, free: int, estimates: list[tuple[int, int]]) -> tuple[int, int]:
    """(shadow time, extra processors) for a head that does not fit now."""
    estimates.sort()
    for place, (end, procs) in enumerate(estimates):
        free += procs
        last_of_its_instant = place + 1 == len(estimates) or estimates[place + 1][0] != end
        if last_of_its_instant and free >= head.procs:
            return end, free - head.procs
    raise AssertionError("the head fits into the empty machine")
