"""The controller's figures for Prometheus: nodes, CPUs, GPUs, the queue, partitions, accounts,
users, the scheduler, requests.

Place: views; served by understudy.clock.metrics. Names are those of the exporters that are usual
for Slurm (prometheus-slurm-exporter), so that their dashboards and alarms work; what they have no
name for begins with `understudy_`. Each table is looked at once, in slices: between two of them
others have the loop.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.controller.reservations.over_time import shown_nodes
from understudy.model import nodeset
from understudy.model.metrics import Family, counter, gauge
from understudy.model.states import JobFlag, JobState, NodeFlag, NodeState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from understudy.controller.core.core import Core
    from understudy.controller.scheduling.cycles import Cycles
    from understudy.controller.tables.job import Job
    from understudy.model.metrics import Samples

    Bools = NDArray[np.bool_]
    Numbers = NDArray[np.int64]

SLICE: Final = 1000  # jobs between two yields: about a millisecond
_COMPLETING, _CONFIGURING = int(JobFlag.COMPLETING), int(JobFlag.CONFIGURING)
_DEPENDENCY: Final = "Dependency"
_MINUTE_S: Final = 60


def figures(core: Core) -> Iterator[Family | None]:
    """All of them."""
    yield gauge("understudy_cluster_time_seconds", "The cluster's time.", core.time.now())
    yield from _machine(core)
    yield None
    yield from _jobs(core)
    yield from _scheduler(core)
    yield from _requests(core)


def _machine(core: Core) -> Iterator[Family | None]:
    """Nodes by state, and CPUs, of the whole and of each partition."""
    table = core.tables.nodes
    size = len(table.nodes)
    states = np.fromiter((node.state for node in table.nodes), np.int64, size)
    flags = np.fromiter((node.flags for node in table.nodes), np.int64, size)
    yield None
    for word, count in _by_state(core, states, flags):
        yield gauge(f"slurm_nodes_{word}", f"Nodes that sinfo shows as {word}.", count)
    yield gauge("slurm_nodes_total", "All nodes.", size)
    total = np.fromiter((node.cpus for node in table.nodes), np.int64, size)
    alloc = table.cpus - table.free_cpus
    whole = nodeset.to_flags(table.exclusive_nodes, size)
    alloc[whole] = table.cpus[whole]
    usable = (states == NodeState.IDLE) & (flags & NodeFlag.DRAIN == 0)
    left = total - alloc
    parts = {
        name: nodeset.to_flags(partition.nodes, size)
        for name, partition in core.tables.partitions.items()
    }
    for word, of_partition, cpus in (
        ("alloc", "allocated", alloc),
        ("idle", "idle", left * usable),
        ("other", "other", left * ~usable),
        ("total", "total", total),
    ):
        yield None
        yield gauge(f"slurm_cpus_{word}", f"CPUs: {of_partition}.", int(cpus.sum()))
        samples: Samples = {(name,): float(cpus[nodes].sum()) for name, nodes in parts.items()}
        text = f"CPUs of the partition: {of_partition}."
        yield Family(f"slurm_partition_cpus_{of_partition}", text, samples, ("partition",))
    yield from _gpus(core)


def _by_state(core: Core, states: Numbers, flags: Numbers) -> Iterator[tuple[str, int]]:
    """How many nodes sinfo shows in each state; of those that come first, the first that is so."""
    table = core.tables.nodes
    size = len(table.nodes)

    def having(nodes: int) -> Bools:
        return nodeset.to_flags(nodes, size)

    maintained, reserved = shown_nodes(core, core.time.now())
    drain = flags & NodeFlag.DRAIN != 0
    idle = (states == NodeState.IDLE) & having(table.idle_nodes)
    busy = (states == NodeState.IDLE) & ~idle
    full = (table.free_cpus == 0) | having(table.exclusive_nodes)
    left = np.ones(size, np.bool_)
    for word, nodes in (
        ("maint", having(maintained) & ~drain & idle),
        ("drain", drain),
        ("fail", flags & NodeFlag.FAIL != 0),
        ("down", states == NodeState.DOWN),
        ("err", states == NodeState.ERROR),
        ("comp", having(table.completing_nodes) & idle),
        ("resv", having(reserved) & idle),
        ("alloc", busy & full),
        ("mix", busy),
        ("idle", idle),
    ):
        found = left & nodes
        left &= ~nodes
        yield word, int(found.sum())


def _gpus(core: Core) -> Iterator[Family]:
    gres = core.tables.nodes.gres
    if gres is None or "gpu" not in gres.total:
        return
    total, free = int(gres.total["gpu"].sum()), int(gres.free["gpu"].sum())
    yield gauge("slurm_gpus_alloc", "GPUs that jobs hold.", total - free)
    yield gauge("slurm_gpus_idle", "GPUs that nobody holds.", free)
    yield gauge("slurm_gpus_total", "All GPUs.", total)
    share = (total - free) / total if total else 0.0
    yield gauge("slurm_gpus_utilization", "Share of the GPUs that jobs hold.", share)


class _Queue:
    """Counts of jobs, as one pass over them finds them."""

    def __init__(self) -> None:
        self.states: Counter[str] = Counter()
        self.pending_on_dependency = 0
        # by (word, account) and so on
        self.accounts: Counter[tuple[str, str]] = Counter()
        self.users: Counter[tuple[str, int]] = Counter()
        self.partitions: Counter[tuple[str, str]] = Counter()

    def add(self, job: Job) -> None:
        """Tasks of an array that have no record of their own count as jobs."""
        state, flags, count = job.state, int(job.flags), 1
        if state is JobState.PENDING:
            count = job.array_tasks.bit_count() or 1
            self.pending_on_dependency += count * (job.reason == _DEPENDENCY)
        word = state.name.lower()
        if flags & _COMPLETING:
            self.states["completing"] += count
        elif flags & _CONFIGURING:
            self.states["configuring"] += count
        else:
            self.states[word] += count
        if state <= JobState.SUSPENDED:
            self._of(f"jobs_{word}", job, count)
            if state is JobState.RUNNING and job.allocation is not None:
                self._of("cpus_running", job, job.allocation.cpus)

    def _of(self, what: str, job: Job, count: int) -> None:
        self.accounts[what, job.spec.account] += count
        self.users[what, job.user_id] += count
        self.partitions[what, job.partition] += count


def _jobs(core: Core) -> Iterator[Family | None]:
    queue, jobs = _Queue(), list(core.tables.jobs.values())
    for begin in range(0, len(jobs), SLICE):
        for job in jobs[begin : begin + SLICE]:
            queue.add(job)
        yield None
    for word in (*(state.name.lower() for state in JobState), "completing", "configuring"):
        yield gauge(f"slurm_queue_{word}", f"Jobs: {word}.", queue.states[word])
    text = "Jobs that wait for others."
    yield gauge("slurm_queue_pending_dependency", text, queue.pending_on_dependency)
    users = {
        (what, core.users.user_name(user)): count for (what, user), count in queue.users.items()
    }
    for whose, counts in (
        ("account", queue.accounts),
        ("user", users),
        ("partition", queue.partitions),
    ):
        for what in ("jobs_pending", "jobs_running", "jobs_suspended", "cpus_running"):
            samples: Samples = {
                (name,): float(n) for (each, name), n in counts.items() if each == what
            }
            text = f"{what.replace('_', ' ').capitalize()}, by {whose}."
            yield Family(f"slurm_{whose}_{what}", text, samples, (whose,))


def _scheduler(core: Core) -> Iterator[Family]:
    agents, counts = core.agents.statistics(), core.counters
    main, backfill = core.policy.main_cycles, core.policy.backfill_cycles
    since = core.time.now() - counts.since
    name = "slurm_scheduler_"
    yield gauge(f"{name}threads", "Messages to daemons that are under way.", agents.in_flight)
    yield gauge(f"{name}queue_size", "Messages to daemons that wait.", agents.queued)
    for kind, cycles in (("", main), ("backfill_", backfill)):
        text = f"{kind or 'main '}cycle, microseconds.".replace("_", " ")
        yield gauge(f"{name}{kind}last_cycle", f"The last {text}", cycles.last_us)
        yield gauge(f"{name}{kind}mean_cycle", f"A mean {text}", _mean(cycles, cycles.us))
    minutes = max(since, _MINUTE_S) / _MINUTE_S
    yield gauge(f"{name}cycle_per_minute", "Main cycles a minute.", main.count // minutes)
    depth = _mean(backfill, backfill.depth)
    yield gauge(f"{name}backfill_depth_mean", "Jobs that a backfill cycle looked at.", depth)
    text = "Jobs that backfill started, since "
    started, before = backfill.started, backfill.started_before
    yield counter(f"{name}backfilled_jobs_since_start_total", f"{text}the start.", started)
    of_cycle = f"{text}the statistics were reset."
    yield counter(f"{name}backfilled_jobs_since_cycle_total", of_cycle, started - before)
    for word in ("submitted", "started", "completed", "cancelled", "failed"):
        text = f"Jobs {word} since the statistics were reset."
        yield counter(f"understudy_jobs_{word}_total", text, getattr(counts, word))
    text = "Requests whose senders were told to ask again later, since the statistics were reset."
    yield counter("understudy_requests_backed_off_total", text, counts.backed_off)


def _mean(cycles: Cycles, amount: int) -> float:
    return amount // cycles.count if cycles.count else 0


def _requests(core: Core) -> Iterator[Family]:
    """What sdiag tells of requests, by type and by user."""
    types = {(name,): counted for (name, _), counted in core.counters.requests.items()}
    users = {(core.users.user_name(user),): each for user, each in core.counters.users.items()}
    for whose, label, counts in (("", "operation", types), ("user_", "user", users)):
        name = f"slurm_{whose}rpc_stats"
        number: Samples = {key: float(count) for key, (count, _) in counts.items()}
        yield Family(name, f"Requests, by {label}.", number, (label,))
        mean: Samples = {key: float(us // max(count, 1)) for key, (count, us) in counts.items()}
        yield Family(f"{name}_avg_time", f"Microseconds of one, by {label}.", mean, (label,))
        total: Samples = {key: float(us) for key, (_, us) in counts.items()}
        yield Family(f"{name}_total_time", f"Microseconds of all, by {label}.", total, (label,))
