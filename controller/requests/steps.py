"""Steps: srun creates them, daemons say that they have ended, somebody waits for their end or
cancels them.

Place: requests; `jobs/steps.py` does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.changes import job_changed
from understudy.controller.core.lookups import may_control
from understudy.controller.facts.environment import daemons_of, job_environment, node_environment
from understudy.controller.jobs.orders import signal_job, signal_step
from understudy.controller.jobs.start import parts_facts
from understudy.controller.jobs.steps import SIGKILL, end_step, limit_step
from understudy.controller.later import Later
from understudy.controller.tables.het_job import components
from understudy.controller.tables.step import (
    Held,
    Place,
    Step,
    distribution_of,
    lay_out,
    takes_memory,
)
from understudy.controller.tables.step_gres import (
    Gres,
    gpus_of,
    is_busy,
    share_out,
    too_many,
    used_of,
)
from understudy.model import hostlist
from understudy.model.environment import TASKS
from understudy.model.errors import ERROR_TEXT, ErrorCode, SlurmError
from understudy.model.states import JobState
from understudy.model.task_usage import merge
from understudy.protocol import endings
from understudy.protocol.messages import BATCH_STEP, Ok, StepCreated

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.ports import Sender
    from understudy.controller.tables.job import Job
    from understudy.protocol.messages import (
        AwaitStep,
        CreateStep,
        GetStep,
        Message,
        StepComplete,
        StepSpec,
    )


def create_step(core: Core, message: CreateStep, sender: Sender) -> StepCreated:
    """Srun wants a step of a running job."""
    job = _own_job(core, message.job_id, sender)
    if job.is_pending:
        raise SlurmError(ErrorCode.JOB_PENDING)
    if job.state is JobState.SUSPENDED:
        raise SlurmError(ErrorCode.SUSPENDED)
    if not job.is_running:
        raise SlurmError(ErrorCode.ALREADY_DONE)
    if message.token:
        for known in job.steps.values():
            if known.token == message.token:  # asked again: its answer was lost
                return describe(core, job, known)
    spec, now = message.spec, core.time.now()
    # The components of a heterogeneous job count their steps together.
    leader = job if job.het is None else job.het.components.get(0, job)
    if leader.next_step_id >= core.settings.max_step_count:
        raise SlurmError(ErrorCode.TOO_MANY_STEPS)
    places = _places(core, job, spec)
    if spec.ports > core.settings.mpi_ports:
        raise SlurmError(ErrorCode.TOO_MANY_PORTS)
    nodes = 0
    for place in places:
        nodes |= 1 << place.node
    names = core.tables.nodes.nodes
    expression = hostlist.compress([names[place.node].name for place in places], sort=False)
    step_id = leader.next_step_id if spec.step_id is None else spec.step_id
    if step_id in job.steps or step_id > leader.next_step_id:
        raise SlurmError(ErrorCode.INVALID_JOB)
    tasks = sum(len(place.tasks) for place in places)
    step = Step(
        step_id,
        spec.name,
        places,
        expression,
        int(now),
        distribution_of(spec, tasks, len(places)),
        spec.overlap,
        spec.time_limit_s,
        spec.host,
        spec.pid,
        spec.submit_line,
        open_nodes=nodes,
        takes_memory=takes_memory(spec),
        asked=_shown(spec, job, tasks),
        token=message.token,
    )
    leader.next_step_id = max(leader.next_step_id, step_id + 1)
    job_changed(core, leader, now)
    steps = job.steps if isinstance(job.steps, dict) else {}
    steps[step.step_id] = step
    job.steps = steps
    job_changed(core, job, now)
    if spec.time_limit_s is not None and spec.time_limit_s > 0:
        limit_step(core, job, step, spec.time_limit_s, now)
    return describe(core, job, step)


def _places(core: Core, job: Job, spec: StepSpec) -> list[Place]:
    """Where the step's tasks go in what the job holds, beside its other steps, and the devices that
    they get there.

    Raises:
        SlurmError: there is no room, or the step asks for what the job does not have.
    """
    allocation = job.allocation
    assert allocation is not None
    used, taken = _in_use(job)
    gres = {share.node: share.gres for share in allocation.shares}
    used_gres = {node: used_of(taken.get(node, ())) for node in gres}
    held = [
        Held(
            *(share.node, share.cpus, share.memory_mb, *used.get(share.node, (0, 0))),
            memory_per_cpu_mb=job.memory_per_cpu_mb,
            has_busy_gres=is_busy(spec, share.gres, used_gres[share.node]),
        )
        for share in allocation.shares
    ]
    if said := too_many(spec, job.spec.gres, list(gres.values())):
        raise SlurmError(ErrorCode.INVALID_GRES, f"{said}\n{ERROR_TEXT[ErrorCode.INVALID_GRES]}")
    if (spec.num_tasks or 0) > core.settings.max_tasks_per_node * len(held):
        raise SlurmError(ErrorCode.INVALID_TASK_COUNT)
    places = lay_out(spec, held, *_named_nodes(core, spec))
    if not (any(gres.values()) or spec.gres or spec.tres_per_step or spec.tres_per_task):
        return places
    shares = share_out(
        spec,
        [len(place.tasks) for place in places],
        [gres[place.node] for place in places],
        [used_gres[place.node] for place in places],
    )
    return [place._replace(gres=share) for place, share in zip(places, shares, strict=True)]


def _in_use(job: Job) -> tuple[dict[int, tuple[int, int]], dict[int, list[Gres]]]:
    """What running steps keep from others, by node: (CPUs, memory in MB), and devices."""
    used: dict[int, tuple[int, int]] = {}
    taken: dict[int, list[Gres]] = {}
    for step in job.steps.values():
        if not step.is_running or step.overlap:
            continue
        for place in step.places:
            cpus, memory_mb = used.get(place.node, (0, 0))
            memory_mb += place.memory_mb if step.takes_memory else 0
            used[place.node] = (cpus + place.cpus, memory_mb)
            taken.setdefault(place.node, []).append(place.gres)
    return used, taken


def _named_nodes(core: Core, spec: StepSpec) -> tuple[list[int], int]:
    """(the nodes of --nodelist in their order, a bitmap of those of --exclude)."""
    index_of = core.tables.nodes.index_of
    try:
        required = [index_of[name] for name in hostlist.expand(spec.nodes)] if spec.nodes else []
        excluded = core.names.to_bitmap(spec.excluded_nodes) if spec.excluded_nodes else 0
    except (KeyError, ValueError):
        raise SlurmError(ErrorCode.INVALID_NODE) from None
    return required, excluded


def _shown(spec: StepSpec, job: Job, tasks: int) -> dict[str, str]:
    """What is shown of the generic resources that the step asks for: CPUs with them; of one that
    asks for none what its job asks of each node.
    """
    if not spec.asked:
        return {"tres_per_node": job.spec.gres} if job.spec.gres else {}
    kinds = {"tres_per_node", "tres_per_socket", "tres_per_step", "tres_per_task"}
    if kinds.isdisjoint(spec.asked):
        return spec.asked | ({"tres_per_node": job.spec.gres} if job.spec.gres else {})
    per_step = ",".join(
        filter(None, (f"cpu:{tasks * (spec.cpus_per_task or 1)}", spec.asked.get("tres_per_step")))
    )
    return spec.asked | {"tres_per_step": per_step}


def describe(core: Core, job: Job, step: Step) -> StepCreated:
    """What srun needs to launch the step, or sattach to find it."""
    nodes = 0
    for place in step.places:
        nodes |= 1 << place.node
    settings = core.settings
    credential = b""
    if core.step_signer is not None:
        now = int(core.time.now())
        told = node_environment(core, job, is_over=False) if settings.has_prolog else ()
        credential = core.step_signer.sign_step(
            job.job_id,
            job.restarts,
            step.step_id,
            step.node_list,
            job.user_id,
            job.group_id,
            now,
            program_environment=told,
        )
    ends = [
        when
        for when in (
            job.end_time,
            None if not step.time_limit_s else step.start_time + step.time_limit_s,
        )
        if when is not None
    ]
    return StepCreated(
        job.job_id,
        job.restarts,
        step.step_id,
        step.node_list,
        [place.tasks for place in step.places],
        [place.cpus for place in step.places],
        credential,
        daemons_of(core, nodes),
        settings.tree_width,
        job_environment(core, job, TASKS, parts_facts(core, step)),
        job.end_time,
        int(settings.kill_wait_s),
        core.users.user_name(job.user_id),
        min(ends, default=None),
        [gpus_of(place.gres) for place in step.places]
        if job.allocation is not None and any(group.gres for group in job.allocation.groups)
        else [],
        settings.mpi_default,
        [
            place.memory_mb or job.memory_per_node_mb or (job.memory_per_cpu_mb or 0) * place.cpus
            for place in step.places
        ],
    )


def get_step(core: Core, message: GetStep, sender: Sender) -> StepCreated:
    """A running step, for its owner."""
    job = _own_job(core, message.job_id, sender)
    if message.step_id == BATCH_STEP:
        return describe(core, job, _as_step(core, job))
    step = job.steps.get(message.step_id)
    if step is None or not step.is_running:
        raise SlurmError(ErrorCode.INVALID_JOB)
    return describe(core, job, step)


def _as_step(core: Core, job: Job) -> Step:
    """A running job's script as a step of one task."""
    if not job.is_running or job.interactive or job.allocation is None or job.start_time is None:
        raise SlurmError(ErrorCode.INVALID_JOB)
    first = job.allocation.first_node
    share = job.allocation.share_on(first)
    assert share is not None
    place = Place(first, [0], share.cpus, share.memory_mb, share.gres)
    return Step(BATCH_STEP, "batch", [place], core.tables.nodes.nodes[first].name, job.start_time)


def await_step(core: Core, message: AwaitStep, sender: Sender) -> Message | Later:
    """Answered when the step is over: what it had may be another's then."""
    step = _own_job(core, message.job_id, sender).steps.get(message.step_id)
    if step is None or not step.is_running:
        return Ok()
    later = Later()
    step.awaited.append(later)
    return later


def _own_job(core: Core, job_id: int, sender: Sender) -> Job:
    job = core.tables.jobs.get(job_id)
    if job is None:
        raise SlurmError(ErrorCode.INVALID_JOB)
    if job.user_id != sender.user_id and not core.is_admin(sender.user_id):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    return job


def step_complete(core: Core, message: StepComplete, sender: Sender) -> Message:
    """A node daemon says that a step has ended on some of its nodes."""
    if not sender.is_daemon:
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    job = core.tables.jobs.get(message.job_id)
    step = (
        None if job is None or job.restarts != message.restart else job.steps.get(message.step_id)
    )
    if job is None or step is None or not step.is_running:
        return Ok()
    try:
        nodes = core.names.to_bitmap(message.nodes)
    except ValueError:
        raise SlurmError(ErrorCode.INVALID_NODE) from None
    step.open_nodes &= ~nodes
    step.exit_code = max(step.exit_code, message.exit_code)
    step.exit_signal = step.exit_signal or message.exit_signal
    if message.fault == endings.KILLED:
        step.killed_by = sender.user_id
    merge(step.usage, message.usage)
    if not step.open_nodes:
        end_step(core, job, step)
    return Ok()


def cancel_step(core: Core, text: str, signal: int | None, sender: Sender) -> None:
    """Scancel JOB.STEP.

    Raises:
        SlurmError: no such step, or not the user's own.
    """
    job_text, _, step_text = text.partition(".")
    job = core.job(job_text)
    if job.is_pending:  # which has none, and that is no error
        return
    if not may_control(core, sender.user_id, job):
        raise SlurmError(ErrorCode.INVALID_USER)
    if step_text == "batch" and job.is_running and not job.interactive:
        signal_job(core, job, SIGKILL if signal is None else signal, batch_only=True)
        return
    found = (
        [
            (each, each.steps[int(step_text)])
            for each in components(job)
            if int(step_text) in each.steps
        ]
        if step_text.isdecimal()
        else []
    )
    running = [(each, step) for each, step in found if step.is_running]
    if not running:
        raise SlurmError(ErrorCode.INVALID_JOB)
    for each, step in running:
        if (signal is None or signal == SIGKILL) and each.is_running:
            step.killed_by = sender.user_id
        signal_step(
            core,
            each,
            step,
            SIGKILL if signal is None else signal,
            ends=signal is None or signal == SIGKILL,
        )
