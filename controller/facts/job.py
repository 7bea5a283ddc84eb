"""What follows from a job and is stored nowhere: nodes and CPUs that it will take, times, memory,
what it is billed for.

Place: facts; shown by views, recorded by accounting, told to programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.facts.feasibility import largest_node, nodes_if_empty, times_for_memory
from understudy.controller.facts.tres import tres_text
from understudy.controller.priority.tres import billing, billing_weights, tres_of
from understudy.controller.tables.gres_texts import counts_of
from understudy.controller.tables.job import HELD_BY_ADMIN, HELD_BY_USER
from understudy.controller.tables.licenses import read_licenses
from understudy.controller.tables.shape import (
    least_cpus,
    memory_asked_mb,
    nodes_of_size,
    says_tasks,
    tasks_of,
)
from understudy.model.gres import gpus_in, is_unsaid
from understudy.model.noted import NO_NODES
from understudy.model.records import NO_TASKS
from understudy.model.states import JobState

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job

# in a spec's `extra`: the number of CPUs a node that is shown
MIN_CPUS_NODE: Final = "min_cpus_node"
REQUIRED_NODES: Final = "required_nodes"  # as an update said them
EXCLUDED_NODES: Final = "excluded_nodes"


def is_expected(job: Job, now: float) -> int | None:
    """When a pending job is expected to start: by the scheduler's promise, or because it begins
    later.
    """
    if job.expected_start is not None:
        return job.expected_start
    if job.begin_time is not None and job.begin_time > now:
        return job.begin_time
    return None


def start_time(_core: Core, job: Job, now: float) -> int | None:
    return is_expected(job, now) if job.state is JobState.PENDING else job.start_time


def end_time(_core: Core, job: Job, now: float) -> int | None:
    if job.state is JobState.PENDING:
        start = is_expected(job, now)
        return None if start is None or job.time_limit_s is None else start + job.time_limit_s
    return job.end_time


def run_time_s(_core: Core, job: Job, now: float) -> int:
    if job.state is JobState.PENDING or job.start_time is None:
        return 0
    if job.state is JobState.SUSPENDED:
        return job.pre_suspend_s
    end = now if job.state is JobState.RUNNING else job.end_time
    if job.suspend_time is not None:
        return job.pre_suspend_s + max(0, int(now if end is None else end) - job.suspend_time)
    return max(0, int(now if end is None else end) - job.start_time)


def node_count(core: Core, job: Job, now: float) -> int:
    """Nodes held; while pending those that it would get if all were free, or an estimate of a job
    that is held or fits nowhere.
    """
    if job.allocation is not None:
        return job.allocation.node_count
    estimates = core.node_estimates
    is_tried = _is_tried(job, now)
    known = estimates.get(job.job_id)
    if known is not None and known[0] == is_tried:
        return known[1]
    if len(estimates) > 2 * len(core.tables.jobs):  # most of those jobs are gone
        estimates.clear()
    count = _estimated_nodes(core, job, is_tried=is_tried)
    estimates[job.job_id] = (is_tried, count)
    return count


def _is_tried(job: Job, now: float) -> bool:
    """Whether schedulers look for nodes for it."""
    is_put_off = job.dependency is not None or (job.begin_time is not None and job.begin_time > now)
    return (
        job.is_pending
        and not job.is_held
        and not is_put_off
        and job.reason not in {HELD_BY_USER, HELD_BY_ADMIN}
    )


def _estimated_nodes(core: Core, job: Job, *, is_tried: bool) -> int:
    if NO_NODES in job.spec.extra:
        return 0
    if is_tried:
        for name in job.partitions:
            where = core.tables.partitions.get(name)
            if where is not None and (found := nodes_if_empty(core, job, where)):
                return found
    return nodes_of_size(job, largest_node(core, job.partitions))


def step_memory_mb(core: Core, megabytes: int) -> int:
    """What a step is said to have of memory: none where nobody counts it."""
    return megabytes if core.selector.consumes_memory else 0


def memory_text(megabytes: int) -> str:
    """`4000M`, `2G`, `62.50G`: in a larger unit where that makes a whole number of halves."""
    size, units = megabytes, "MGTP"
    while size >= 1024 and size % 512 == 0 and len(units) > 1:
        units = units[1:]
        if size % 1024:
            return f"{size / 1024:.2f}{units[0]}"
        size //= 1024
    return f"{size}{units[0]}"


def cpus_asked(job: Job) -> int:
    """Without those that MaxMemPerCPU adds for its memory."""
    return job.min_cpus // times_for_memory(job)


def cpus_shown(_core: Core, job: Job, _now: float) -> int:
    """Those that it holds, or else asks for."""
    if job.allocation is not None:
        return job.allocation.cpus
    return 0 if NO_NODES in job.spec.extra else cpus_asked(job)


def tres_requested(core: Core, job: Job, _now: float) -> str:
    if NO_NODES in job.spec.extra:
        return ""
    cpus, nodes = cpus_asked(job), job.asked_nodes
    memory = _memory_of_gpus(job) or memory_asked_mb(job, nodes)
    if cpus < job.min_cpus:
        memory = (job.spec.mem_per_cpu_mb or 0) * cpus
    if not memory and not gpus_in(
        job.spec.mem_per_tres or ""
    ):  # all of it, also where it is not counted
        memory = _node_memory_mb(core, job.partition) * nodes
    plain = (
        f"cpu={cpus},{f'mem={memory_text(memory)},' if memory else ''}node={nodes},"
        f"billing={_billing(core, job, cpus, memory)}"
    )
    return plain + _further_tres(core, job)


def _memory_of_gpus(job: Job) -> int:
    """What it asks for of each GPU, times its GPUs; 0 where that is nothing, or a default."""
    said = job.spec.mem_per_tres
    if not said or is_unsaid(said):
        return 0
    return gpus_in(said) * counts_of(job).get("gres/gpu", 0)


def _node_memory_mb(core: Core, partition: str) -> int:
    """What a node that is not chosen yet is taken to have."""
    where = core.tables.partitions.get(partition)
    return 0 if where is None else where.first_node_memory_mb


def _billing(core: Core, job: Job, cpus: int, memory_mb: int) -> int:
    """What the job bills where its partition has weights, else its CPUs."""
    where = core.tables.partitions.get(job.partition)
    if where is None or not where.tres_billing_weights:
        return cpus
    return int(
        billing(
            {**tres_of(job), "mem": float(memory_mb)},
            billing_weights(where.tres_billing_weights),
            takes_largest=core.settings.bills_largest,
        )
    )


def tres_allocated(core: Core, job: Job, _now: float) -> str:
    held = job.allocation
    if held is None:
        return job.last_tres
    memory = sum(group.memory_mb * group.nodes.bit_count() for group in held.groups)
    cost = _billing(core, job, held.cpus, memory)
    plain = (
        f"cpu={held.cpus},{f'mem={memory_text(memory)},' if memory else ''}node="
        f"{held.node_count},billing={cost}"
    )
    return plain + _further_tres(core, job)


def keep_tres(core: Core, job: Job, now: float) -> None:
    """A job that is over is to run again: until it does, what it had is shown."""
    job.last_tres = "" if job.is_active else tres_allocated(core, job, now)


def _further_tres(core: Core, job: Job) -> str:
    """What AccountingStorageTRES names of generic resources, licences and burst buffers, in its
    order: `,license/a=2,gres/gpu=1`.
    """
    settings = core.settings
    if not job.spec.licenses and not settings.tracked_gres and job.burst_buffer is None:
        return ""
    devices = tres_text(core, counts_of(job)) if settings.tracked_gres else ""
    buffer = _buffer_tres(core, job)
    if not buffer and (
        not job.spec.licenses
        or not any(name.startswith("license/") for name in settings.tracked_tres)
    ):
        return devices
    counts: dict[str, int] = {}
    for name, count in read_licenses(job.spec.licenses) if job.spec.licenses else ():
        if f"license/{name.lower()}" in settings.tracked_tres:
            counts[name] = counts.get(name, 0) + count
    parts = [
        *filter(None, devices.split(",")),
        *(f"license/{name}={count}" for name, count in counts.items() if count),
        *filter(None, [buffer]),
    ]
    places = {name: place for place, name in enumerate(settings.tracked_tres)}
    parts.sort(key=lambda part: places.get(part.partition("=")[0].lower(), len(places)))
    return "".join(f",{part}" for part in parts)


def _buffer_tres(core: Core, job: Job) -> str:
    """`bb/lua=2G`, where AccountingStorageTRES names it."""
    request = job.burst_buffer
    if request is None or f"bb/{request.kind}" not in core.settings.tracked_tres:
        return ""
    size = request.mebibytes
    return f"bb/{request.kind}={memory_text(size)}" if size else ""


def min_memory_mb(_core: Core, job: Job, _now: float) -> int | None:
    if job.memory_per_cpu_mb is not None:
        return job.memory_per_cpu_mb
    if job.memory_per_node_mb is None:
        return 0
    return job.memory_per_node_mb or None


def sixteen_bits(count: int) -> int:
    """As Slurm keeps a number of CPUs of a task or a node; what stands for none said is 1."""
    return 1 if count & 0xFFFF in (0, 0xFFFE) else count & 0xFFFF


def min_cpus_node(core: Core, job: Job, now: float) -> int:
    """The fewest CPUs of each of its nodes."""
    return sixteen_bits(_min_cpus_node(core, job, now))


def _min_cpus_node(core: Core, job: Job, _now: float) -> int:
    # updates of what it was made of leave it as it was
    known = job.spec.extra.get(MIN_CPUS_NODE, "")
    if known:
        return int(known)
    spec = job.spec
    times = times_for_memory(job)  # which CPUs of a task MaxMemPerCPU adds is not said
    if spec.ntasks_per_tres:
        least = job.cpus_per_task
    elif spec.tres_per_task and is_unsaid(spec.cpus_per_tres):  # CPUs of a GPU come later
        least = spec.ntasks_per_node or 1
    else:
        least = least_cpus(job)
    least = max(least // times, spec.min_cpus_node or 0)
    where = core.tables.partitions.get(job.partition)
    _, most = (None, None) if where is None else where.memory_limits_mb
    if not most or job.memory_per_node_mb is None or spec.mem_per_tres:
        return least
    memory = job.memory_per_node_mb or _node_memory_mb(core, job.partition)
    return max(least, -(-memory // most))


def num_tasks(_core: Core, job: Job, _now: float) -> int:
    """NO_TASKS where nothing was said of tasks and none ever ran."""
    never_ran = job.is_finished and not job.node_list and not job.restarts
    if NO_NODES in job.spec.extra:
        return NO_TASKS if never_ran else 0
    if never_ran and not says_tasks(job.spec):
        return NO_TASKS
    return tasks_of(job)
