"""Starting jobs: what a scheduling policy asks for is done here, or refused.

Place: the controller's core; implements understudy.controller.scheduling.api.Planner. Follows: sbatch(1) "OUTPUT ENVIRONMENT VARIABLES".
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import msgspec

from understudy.controller.alarms import watch_limits
from understudy.controller.arrays import array_environment, explain_limit, split
from understudy.controller.core import log, nodeset_indices
from understudy.controller.eligibility import notify_dependents
from understudy.controller.het_jobs import components, group_environment, whole
from understudy.controller.job import BAD_CONSTRAINTS, HELD_BY_ADMIN, JobEvent, advance
from understudy.controller.job_programs import begin_prolog, node_environment
from understudy.controller.limits import end_by_deadline
from understudy.controller.log_lines import allocated, is_told
from understudy.controller.partitions import limit_broken
from understudy.controller.prologs import LAUNCH_FAILED_HELD, begin_on_nodes, is_ready
from understudy.controller.reservations import may_take, watch_end
from understudy.model import nodeset
from understudy.model.gres import GPU, SHARED
from understudy.model.states import JobFlag, NodeFlag
from understudy.protocol.messages import Failure, LaunchBatch, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from understudy.controller.core import Core, DaemonRecord
    from understudy.controller.gres import GresTable, Held, Layout
    from understudy.controller.job import Allocation, Job
    from understudy.controller.partitions import Partition
    from understudy.controller.step import Step

NO_ENVIRONMENT: Final[list[str]] = []
PRIORITY_REASON: Final = "Priority"


class Planning:
    """The planner that policies are given."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def start(self, job: Job, partition: Partition, allocation: Allocation, now: float) -> bool:
        """Start the job, unless it may not start (any more) or the nodes are not what the policy thinks."""
        core = self._core
        core.tables.looked_at = job
        if not self._may_start(job, partition, allocation, now):
            return False
        first = core.daemon_of_node[allocation.first_node]
        if first is None:
            return False
        job = self._begin(job, partition, allocation, now)
        if not begin_prolog(core, job) and not (job.flags and job.flags & JobFlag.CONFIGURING):
            hand_over(core, job, first)
        elif job.interactive:
            _tell_waiting(core, job)
        if core.gang is not None and allocation.is_shared:
            core.gang.add(job, now)
        if core.dependents or core.singletons:
            notify_dependents(core, job, now)
        return True

    def start_together(self, plans: Sequence[tuple[Job, Partition, Allocation]], now: float) -> bool:
        """Start all components of a heterogeneous job, the leader first, or none."""
        core = self._core
        with ExitStack() as counted:  # what one gets counts for the limits of the next
            for plan in plans:
                if not self._may_start(*plan, now):
                    return False
                if core.job_limits is not None and core.job_limits.enforced:
                    counted.enter_context(core.job_limits.counting(*plan))
        if any(core.daemon_of_node[allocation.first_node] is None for _, _, allocation in plans):
            return False
        for job, partition, allocation in plans:
            self._begin(job, partition, allocation, now)
        leader, _, held = plans[0]
        daemon = core.daemon_of_node[held.first_node]
        assert daemon is not None
        if not begin_prolog(core, leader) and not leader.flags & JobFlag.CONFIGURING:
            hand_over(core, leader, daemon)
        if core.gang is not None:
            for job, _, allocation in plans:
                if allocation.is_shared:
                    core.gang.add(job, now)
        if core.dependents or core.singletons:
            for job, _, _ in plans:
                notify_dependents(core, job, now)
        return True

    def _may_start(self, job: Job, partition: Partition, allocation: Allocation, now: float) -> bool:
        core = self._core
        nodes = core.tables.nodes
        taken = allocation.nodes
        if not job.is_eligible(now) or not taken or taken & ~nodes.up_nodes & ~nodes.completing_nodes or taken & nodes.exclusive_nodes:
            return False
        if taken & nodes.completing_nodes:
            return False
        if not partition.can_schedule or limit_broken(job, partition) or not core.tables.licenses.are_free(job.spec.licenses):
            return False
        if core.tables.reservations and not may_take(core, job, partition, allocation, now):
            return False
        limits = core.tables.limits
        if limits.enforced and (reason := limits.before(job, partition, now) or limits.by_allocation(job, partition, allocation, now)):
            self.explain(job, reason)
            return False
        return True

    def _begin(self, job: Job, partition: Partition, allocation: Allocation, now: float) -> Job:
        """The job, or a task that is split off an array's record, takes its nodes."""
        core = self._core
        nodes, taken = core.tables.nodes, allocation.nodes
        reservation, job.used_reservation, job.blocked_cores = job.used_reservation, "", None
        if job.array_tasks:
            job = split(core, job, (job.array_tasks & -job.array_tasks).bit_length() - 1)
        nodes.allocate(allocation)
        advance(job, JobEvent.ALLOCATED, now)
        start = job.start_time = int(now)
        if job.spec.deadline is not None:
            _end_by(job, int(job.spec.deadline) - start)
        job.end_time = None if job.time_limit_s is None else start + job.time_limit_s
        job.allocation = allocation
        job.partition = partition.name
        job.used_reservation = reservation
        job.node_list = core.names.to_expression(taken)
        job.reason, job.reason_detail = "None", ""
        job.expected_start, job.expected_nodes = None, 0
        job.launch_acknowledged = job.kill_sent = job.script_ended = False
        job.exit_code = job.exit_signal = 0
        job.last_sched_eval = start
        tables = core.tables
        del tables.pending[job.job_id]
        tables.running[job.job_id] = job
        core.counters.started += 1
        tables.licenses.take(job.job_id, job.spec.licenses)
        core.last_job_update = core.last_node_update = now
        watch_limits(core, job, partition)
        if reservation:
            watch_end(core, job)
        core.priorities.started(job, now)
        if job.array is not None:
            job.array.running += 1
            explain_limit(core, job.array)
        waits = core.power is not None and taken & nodes.boot_nodes
        if waits:
            job.flags |= JobFlag.CONFIGURING
        if told := taken & ((nodes.boot_nodes if waits else 0) | core.reboots):
            _forget_reasons(core, told)
        core.journal.job(job.job_id)
        if is_told():
            allocated(job, allocation.cpus)
        if job.job_id in core.breakpoints:
            core.breakpoints.discard(job.job_id)
            core.time.pause(f"job {job.job_id} starts")
        return job

    def preempt(self, job: Job, victims: Sequence[Job], now: float) -> bool:
        """Have the victims make room for the job. Whether they have done so at once, as suspended ones do."""
        from understudy.controller.preempt import make_room  # noqa: PLC0415 - rare

        return make_room(self._core, job, victims, now)

    def give_up(self, job: Job, now: float) -> None:
        """End a pending job that cannot be over by its deadline any more."""
        end_by_deadline(self._core, job, now)

    def explain(self, job: Job, reason: str, detail: str = "") -> None:
        """Record why a pending job does not start now. One that could never run is held until somebody releases it."""
        self._core.tables.looked_at = job
        if reason == BAD_CONSTRAINTS and job.priority:
            job.priority, job.admin_priority, job.held_by = 0, None, BAD_CONSTRAINTS
            self._core.journal.job(job.job_id)
            self._core.policy.note("change", self._core.time.now())
        job.last_sched_eval = int(self._core.time.now())
        if job.reason != reason or job.reason_detail != detail:
            job.note_wait(self._core.time.now())
            job.reason, job.reason_detail = reason, detail
            self._core.last_job_update = self._core.time.now()

    def promise(self, job: Job, start: int | None, nodes: int) -> None:
        """Record when and where a pending job is expected to start."""
        job.expected_start, job.expected_nodes = start, nodes


def _end_by(job: Job, left_s: int) -> None:
    """A job that is content with less, or that named no limit, gets as many minutes as there are until its deadline."""
    if job.time_limit_s is None or (job.spec.time_min_s and job.time_limit_s > left_s):
        job.time_limit_s = max(left_s // 60 * 60, 60)


def _forget_reasons(core: Core, nodes: int) -> None:
    """A job has got nodes (a bitmap) that are off or are to boot: what was said of them is forgotten, unless they are to take no others."""
    for index in nodeset_indices(nodes):
        node = core.tables.nodes.nodes[index]
        if not node.flags & NodeFlag.DRAIN:
            node.reason, node.reason_time, node.reason_user_id = "", None, 0
    core.journal.nodes(nodes)


def hand_over(core: Core, job: Job, daemon: DaemonRecord) -> None:
    """The job's nodes are there: its script is launched, or who waits for it may begin."""
    if core.settings.prolog_flags:
        for each in components(job):
            begin_on_nodes(core, each)
    if job.interactive:
        job.launch_acknowledged = True
        _tell_waiting(core, job)
    elif "deferbatch" not in core.settings.prolog_flags or is_ready(job):
        launch(core, job, daemon)


def _tell_waiting(core: Core, job: Job) -> None:
    from understudy.controller.allocate import tell_waiting  # noqa: PLC0415 - it starts jobs through this module

    tell_waiting(core, job)


def launch(core: Core, job: Job, daemon: DaemonRecord) -> None:
    """Send the job to the node daemon of its first node, until it has it or the job is over."""
    run, job_id = job.restarts, job.job_id
    assert job.start_time is not None
    credential = b""
    if core.signer is not None:
        credential = core.signer.sign(job_id, run, job.node_list, job.user_id, job.start_time)
    if core.settings.emulates_jobs and job.emulation is not None:
        script, spec, environment = "", None, NO_ENVIRONMENT
    else:
        script, spec, environment = core.scripts.get(job_id, ""), job.spec, job_environment(core, job)
    message = LaunchBatch(
        job_id,
        run,
        job.node_list,
        job.start_time,
        credential,
        job.user_id,
        job.group_id,
        job.emulation,
        script,
        spec,
        environment,
        job.time_limit_s if core.policy.exact_limits else None,
        begins_after_s=_turn(core) if core.launch_s and job.emulation is not None else 0.0,
    )
    if not core.settings.emulates_jobs:
        told = node_environment(core, job, is_over=False)
        message = msgspec.structs.replace(message, memory_mb=_first_nodes_memory_mb(job), program_environment=told)

    def is_wanted() -> bool:
        return job.restarts == run and job.is_running

    def launched(answer: Message) -> None:
        if job.restarts != run or not job.is_running:
            return
        if type(answer) is Failure:
            _could_not_launch(core, job, daemon, answer)
        else:
            job.launch_acknowledged = True
            core.journal.job(job_id)

    core.agents.send(daemon.name, message, wanted=is_wanted, done=launched)


def _turn(core: Core) -> float:
    """How long an emulated job has to wait until those are launched that were sent before it; it is one of them from now on.

    The controller counts, which sends all of them: in turns of each node daemon schedules would depend on how nodes are dealt to daemons.
    """
    now = core.time.now()
    begin = max(now, core.launches_until)
    core.launches_until = begin + core.launch_s
    return begin - now


def _first_nodes_memory_mb(job: Job) -> int:
    """What the job may use where its script runs; 0: nobody said. Where memory is given to nobody, what was asked for counts."""
    held = job.allocation
    share = held.share_on(held.first_node) if held is not None else None
    if share is None or share.memory_mb:
        return share.memory_mb if share is not None else 0
    return job.memory_per_node_mb or (job.memory_per_cpu_mb or 0) * share.cpus


def job_environment(core: Core, job: Job) -> list[str]:
    """What only the controller knows for the job's environment. The node daemon adds what belongs to its node."""
    variables = own_environment(core, job)
    if job.het is not None:
        variables |= group_environment([own_environment(core, each) for each in whole(job)])
    return [f"{name}={value}" for name, value in variables.items() if value != ""]


def own_environment(core: Core, job: Job) -> dict[str, object]:
    """What follows from the job itself; "" where nothing does."""
    allocation = job.allocation
    assert allocation is not None
    spec = job.spec
    count = allocation.node_count
    variables: dict[str, object] = {
        **array_environment(job),
        "SLURM_CLUSTER_NAME": core.settings.cluster_name,
        "SLURM_CPUS_PER_TASK": job.cpus_per_task if spec.cpus_per_task else "",
        "SLURM_JOB_ACCOUNT": spec.account,
        "SLURM_JOB_CPUS_PER_NODE": allocation.per_node_text("cpus"),
        "SLURM_JOB_GID": job.group_id,
        "SLURM_JOB_ID": job.job_id,
        "SLURM_JOBID": job.job_id,
        "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_NODELIST": job.node_list,
        "SLURM_JOB_NUM_NODES": count,
        "SLURM_JOB_PARTITION": job.partition,
        "SLURM_JOB_QOS": spec.qos,
        "SLURM_JOB_UID": job.user_id,
        "SLURM_JOB_USER": core.users.user_name(job.user_id),
        "SLURM_MEM_PER_CPU": _memory(job, job.memory_per_cpu_mb, spec.mem_per_cpu_mb),
        "SLURM_MEM_PER_NODE": _memory(job, job.memory_per_node_mb, spec.mem_per_node_mb),
        "SLURM_NNODES": count,
        "SLURM_NODELIST": job.node_list,
        "SLURM_NPROCS": job.num_tasks if spec.num_tasks else "",
        "SLURM_NTASKS": job.num_tasks if spec.num_tasks else "",
        "SLURM_NTASKS_PER_NODE": spec.ntasks_per_node or "",
        "SLURM_RESTART_COUNT": job.restarts or "",
        "SLURM_TASKS_PER_NODE": _tasks_per_node(job, allocation),
    }
    if spec.gres or spec.tres_per_job or spec.tres_per_socket or spec.tres_per_task:
        variables |= gres_environment(job, core.tables.nodes.gres)
    return variables


def _memory(job: Job, held: int | None, asked: int | None) -> int | str:
    """What a job is told of its memory: what it asked for, and a batch script of a default, too; nothing where it has all of the node."""
    return "" if not held or (job.interactive and asked is None) or job.spec.mem_per_tres else held


def _tasks_per_node(job: Job, allocation: Allocation) -> str:
    """As many tasks as were asked for, or else as fit on the CPUs."""
    spec = job.spec
    if spec.num_tasks is not None and spec.overcommit and allocation.node_count == 1:
        return str(job.num_tasks)
    if spec.num_tasks is None and not spec.ntasks_per_node and not spec.overcommit:
        rows = [(max(cpus // (spec.cpus_per_task or 1), 1), count) for cpus, count in allocation.per_node()]
        return ",".join(f"{tasks}(x{count})" if count > 1 else str(tasks) for tasks, count in rows)
    return allocation.per_node_text("tasks")


def gres_environment(job: Job, table: GresTable | None) -> dict[str, object]:
    """What a job with generic resources is told of them; the GPUs are those of its first node, where the batch script runs."""
    allocation, spec = job.allocation, job.spec
    assert allocation is not None
    share = allocation.share_on(allocation.first_node)
    held = [] if share is None else [each for each in share.gres if each.name == GPU or (each.name in SHARED and each.devices)]
    parts = {each.name: each for each in held if each.name in SHARED}
    devices = ",".join(str(device) for each in held for device in nodeset.indices(each.devices))
    by_mps = parts.get("mps")
    of_all = "" if by_mps else devices  # what not only CUDA knows
    return {
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": ""
        if by_mps is None or table is None
        else _percentage(by_mps, table.layouts[share.node] if share else ()),
        "CUDA_VISIBLE_DEVICES": devices,
        "GPU_DEVICE_ORDINAL": of_all,
        "ROCR_VISIBLE_DEVICES": of_all,
        "SLURM_CPUS_PER_GPU": _plain(spec.cpus_per_tres),
        "SLURM_GPUS": _plain(spec.tres_per_job),
        "SLURM_GPUS_ON_NODE": sum(1 if each.name in SHARED else each.amount for each in held) or "",
        "SLURM_GPUS_PER_NODE": spec.extra.get("gpus_per_node", ""),
        "SLURM_GPUS_PER_SOCKET": _plain(spec.tres_per_socket),
        "SLURM_GPUS_PER_TASK": _plain(spec.tres_per_task),
        "SLURM_GPU_BIND": spec.extra.get("tres_bind", "").removeprefix("gpu:"),
        "SLURM_GPU_FREQ": spec.extra.get("tres_freq", "").removeprefix("gpu:"),
        "SLURM_JOB_GPUS": devices,
        "SLURM_MEM_PER_GPU": _plain(spec.mem_per_tres),
        "SLURM_SHARDS_ON_NODE": parts["shard"].amount if "shard" in parts else "",
    }


def parts_environment(core: Core, step: Step) -> list[str]:
    """What a step's tasks are told of the parts of GPUs that it has, which are as many on each of its nodes."""
    place, table = step.places[0], core.tables.nodes.gres
    parts = {each.name: each for each in place.gres if each.name in SHARED}
    found = []
    if (mps := parts.get("mps")) and mps.devices and table is not None:
        found.append(f"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={_percentage(mps, table.layouts[place.node])}")
    if shard := parts.get("shard"):
        found.append(f"SLURM_SHARDS_ON_NODE={shard.amount}")
    return found


def _percentage(held: Held, layout: Layout) -> int:
    """How much of its GPU a job has."""
    gpu = held.devices.bit_length() - 1
    return next((held.amount * 100 // group.parts[gpu] for group in layout if group.name == held.name and group.parts and group.parts[gpu]), 0)


def _plain(text: str) -> str:
    return text.replace("gres:gpu:", "")


def _could_not_launch(core: Core, job: Job, daemon: DaemonRecord, answer: Failure) -> None:
    from understudy.controller.requeue import requeue_job  # noqa: PLC0415 - requeue ends jobs, ending starts nothing

    log.error("node daemon %s refused job %d: %s (%d)", daemon.name, job.job_id, answer.text, answer.code)
    requeue_job(core, job, core.time.now(), hold_reason=LAUNCH_FAILED_HELD, held_by=HELD_BY_ADMIN, event=JobEvent.LAUNCH_FAILED)
