"""What policies do where each job holds processors and units of a second and a third resource: bare
loops over events, independent of the product.

The machine is a pool of identical processors and pools of other things. Decisions are taken at
every instant at which something happens: first all completions of that instant, then all
submissions, then one pass. The queue's order is (submit, id). Amounts are tuples, processors first.

- fcfs: from the head while everything fits; the first that does not fit stops it.
- filler: everybody that fits, in order.
- easy-bb: EASY. The head's shadow time is the earliest at which all that it needs is there, if the
  running jobs end at their estimates, those of one instant together.
- easy-nobb: the same with processors alone in the shadow time and in the extra.
- sjf-bb: as easy-bb, those behind the head in the order of their estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter


@dataclass(frozen=True)
class Asked:
    """A job: `run` is at most `req`; `needs` are processors, then the further resources."""

    id: int
    submit: int
    run: int
    req: int
    needs: tuple[int, ...]


@dataclass
class Machine:
    """What is free, who waits in order, and who runs since when."""

    free: list[int]
    queue: list[Asked]
    running: dict[int, tuple[int, Asked]]
    starts: dict[int, int]

    def fits(self, job: Asked) -> bool:
        return all(need <= free for need, free in zip(job.needs, self.free, strict=True))

    def start(self, job: Asked, now: int) -> None:
        assert self.fits(job), "over-committed"
        self.free = [free - need for need, free in zip(job.needs, self.free, strict=True)]
        self.queue.remove(job)
        self.running[job.id] = (now, job)
        self.starts[job.id] = now


def simulate(jobs: list[Asked], capacity: tuple[int, ...], policy) -> dict[int, int]:
    """Start times by id. `policy(machine, now)` is one pass. Who is larger than the machine is left
    out.
    """
    ahead = sorted(
        (job for job in jobs if all(n <= c for n, c in zip(job.needs, capacity, strict=True))),
        key=attrgetter("submit", "id"),
    )
    machine = Machine(list(capacity), [], {}, {})
    while ahead or machine.running:
        ends = [start + job.run for start, job in machine.running.values()]
        now = min([*ends, *(job.submit for job in ahead[:1])])
        for start, job in list(machine.running.values()):
            if start + job.run == now:
                del machine.running[job.id]
                machine.free = [f + n for n, f in zip(job.needs, machine.free, strict=True)]
        while ahead and ahead[0].submit == now:
            machine.queue.append(ahead.pop(0))
        policy(machine, now)
    assert not machine.queue, "everybody who fits starts"
    return machine.starts


def fcfs(machine: Machine, now: int) -> None:
    while machine.queue and machine.fits(machine.queue[0]):
        machine.start(machine.queue[0], now)


def filler(machine: Machine, now: int) -> None:
    for job in list(machine.queue):
        if machine.fits(job):
            machine.start(job, now)


def easy_bb(machine: Machine, now: int) -> None:
    _easy(machine, now, counted=len(machine.free), by_limit=False)


def easy_nobb(machine: Machine, now: int) -> None:
    _easy(machine, now, counted=1, by_limit=False)


def sjf_bb(machine: Machine, now: int) -> None:
    _easy(machine, now, counted=len(machine.free), by_limit=True)


def _easy(machine: Machine, now: int, *, counted: int, by_limit: bool) -> None:
    fcfs(machine, now)
    if not machine.queue:
        return
    head, *others = machine.queue
    shadow, extra = now, machine.free[:counted]
    ends = sorted({start + job.req for start, job in machine.running.values()})
    while any(n > e for n, e in zip(head.needs[:counted], extra, strict=True)):
        shadow = ends.pop(0)
        for start, job in machine.running.values():
            if start + job.req == shadow:
                extra = [e + n for n, e in zip(job.needs[:counted], extra, strict=True)]
    extra = [e - n for n, e in zip(head.needs[:counted], extra, strict=True)]
    if by_limit:
        others.sort(key=attrgetter("req"))
    for job in others:
        if not machine.fits(job):
            continue
        if now + job.req > shadow:
            if any(n > e for n, e in zip(job.needs[:counted], extra, strict=True)):
                continue
            extra = [e - n for n, e in zip(job.needs[:counted], extra, strict=True)]
        machine.start(job, now)


def conservative(jobs: list[Asked], capacity: tuple[int, ...]) -> dict[int, int]:
    """Every job has a place from its submission on: the earliest beside all that have one. When
    something ends before its estimate, each job in the queue's order gives its place back and takes
    the earliest that there is then.
    """
    planned: dict[int, int] = {}

    def earliest(machine: Machine, job: Asked, now: int) -> int:
        held = [(now, start + other.req, other.needs) for start, other in machine.running.values()]
        held += [
            (planned[other.id], planned[other.id] + other.req, other.needs)
            for other in machine.queue
            if other.id in planned and other is not job
        ]
        candidates = sorted({now, *(end for _, end, _ in held if end > now)})
        for start in candidates:
            points = [start, *(b for b, _, _ in held if start < b < start + job.req)]
            if all(
                sum(n[k] for b, e, n in held if b <= point < e) + job.needs[k] <= capacity[k]
                for point in points
                for k in range(len(capacity))
            ):
                return start
        raise AssertionError("the job fits into the empty machine")

    running_before: set[int] = set()

    def one_pass(machine: Machine, now: int) -> None:
        nonlocal running_before
        if running_before - set(machine.running):
            for job in machine.queue:
                if job.id in planned:
                    planned[job.id] = earliest(machine, job, now)
        for job in machine.queue:
            if job.id not in planned:
                planned[job.id] = earliest(machine, job, now)
        for job in list(machine.queue):
            if planned[job.id] == now:
                machine.start(job, now)
        running_before = set(machine.running)

    return simulate(jobs, capacity, one_pass)
