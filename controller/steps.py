"""Steps of running jobs: created for srun with a signed credential, signalled, ended.

Place: the controller's core. The controller lays a step out and signs its credential; srun takes both to the node daemons, and these say when it is
over. Follows: srun(1), scancel(1), `../docs/adr/0011-the-streams-of-steps.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core import log
from understudy.controller.het_jobs import components
from understudy.controller.later import Later
from understudy.controller.rights import may_control
from understudy.controller.step import Held, Place, Step, distribution_of, lay_out, takes_memory
from understudy.controller.step_gres import Gres, gpus_of, is_busy, share_out, too_many, used_of
from understudy.model import hostlist
from understudy.model.errors import ERROR_TEXT, ErrorCode, SlurmError
from understudy.model.states import JobState
from understudy.model.task_usage import merge
from understudy.protocol import endings
from understudy.protocol.messages import BATCH_STEP, Ok, SignalTasks, StepCreated

if TYPE_CHECKING:
    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.ports import Sender
    from understudy.protocol.messages import AwaitStep, CreateStep, GetStep, Message, StepComplete, StepSpec

SIGKILL: Final = 9
SIGTERM: Final = 15
OUT_OF_MEMORY: Final = 125  # the "signal" of a step that used more memory than it had
_OF_BATCH_NODE: Final = frozenset(
    (
        *("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS"),
        *("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "SLURM_SHARDS_ON_NODE"),
    )
)
OF_JOB: Final = -1  # the step id in a credential that is for the job's nodes rather than for a step


def create_step(core: Core, message: CreateStep, sender: Sender) -> StepCreated:
    """Srun wants a step of a running job."""
    job = _own_job(core, message.job_id, sender)
    if job.is_pending:
        raise SlurmError(ErrorCode.JOB_PENDING)
    if job.state is JobState.SUSPENDED:
        raise SlurmError(ErrorCode.SUSPENDED)
    if not job.is_running:
        raise SlurmError(ErrorCode.ALREADY_DONE)
    spec, allocation, now = message.spec, job.allocation, core.time.now()
    assert allocation is not None
    if (job if job.het is None else job.het.components.get(0, job)).next_step_id >= core.settings.max_step_count:
        raise SlurmError(ErrorCode.TOO_MANY_STEPS)
    used: dict[int, tuple[int, int]] = {}
    taken: dict[int, list[Gres]] = {}
    for other in job.steps.values():
        if other.is_running and not other.overlap:
            for place in other.places:
                cpus, memory_mb = used.get(place.node, (0, 0))
                used[place.node] = cpus + place.cpus, memory_mb + (place.memory_mb if other.takes_memory else 0)
                taken.setdefault(place.node, []).append(place.gres)
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
    try:
        required = [core.tables.nodes.index_of[name] for name in hostlist.expand(spec.nodes)] if spec.nodes else []
        excluded = core.names.to_bitmap(spec.excluded_nodes) if spec.excluded_nodes else 0
    except (KeyError, ValueError):
        raise SlurmError(ErrorCode.INVALID_NODE) from None
    places = lay_out(spec, held, required, excluded)
    if any(gres.values()) or spec.gres or spec.tres_per_step or spec.tres_per_task:
        nodes_of = [place.node for place in places]
        shares = share_out(spec, [len(place.tasks) for place in places], [gres[node] for node in nodes_of], [used_gres[node] for node in nodes_of])
        places = [place._replace(gres=share) for place, share in zip(places, shares, strict=True)]
    nodes = 0
    for place in places:
        nodes |= 1 << place.node
    names = core.tables.nodes.nodes
    expression = hostlist.compress([names[place.node].name for place in places], sort=False)
    # The components of a heterogeneous job count their steps together.
    leader = job if job.het is None else job.het.components.get(0, job)
    step_id = leader.next_step_id if spec.step_id is None else spec.step_id
    if step_id in job.steps or step_id > leader.next_step_id:
        raise SlurmError(ErrorCode.INVALID_JOB)
    step = Step(
        step_id,
        spec.name,
        places,
        expression,
        int(now),
        distribution_of(spec, sum(len(place.tasks) for place in places), len(places)),
        spec.overlap,
        spec.time_limit_s,
        spec.host,
        spec.pid,
        spec.submit_line,
        open_nodes=nodes,
        takes_memory=takes_memory(spec),
        asked=_shown(spec, job, sum(len(place.tasks) for place in places)),
    )
    leader.next_step_id = max(leader.next_step_id, step_id + 1)
    core.journal.job(leader.job_id)
    steps = job.steps if isinstance(job.steps, dict) else {}
    steps[step.step_id] = step
    job.steps = steps
    core.last_job_update = now
    core.journal.job(job.job_id)
    if spec.time_limit_s is not None and spec.time_limit_s > 0:
        limit_step(core, job, step, spec.time_limit_s, now)
    return describe(core, job, step)


def _shown(spec: StepSpec, job: Job, tasks: int) -> dict[str, str]:
    """What is shown of the generic resources that the step asks for: CPUs with them; of one that asks for none what its job asks of each node."""
    if not spec.asked:
        return {"tres_per_node": job.spec.gres} if job.spec.gres else {}
    kinds = {"tres_per_node", "tres_per_socket", "tres_per_step", "tres_per_task"}
    if kinds.isdisjoint(spec.asked):
        return spec.asked | ({"tres_per_node": job.spec.gres} if job.spec.gres else {})
    per_step = ",".join(filter(None, (f"cpu:{tasks * (spec.cpus_per_task or 1)}", spec.asked.get("tres_per_step"))))
    return spec.asked | {"tres_per_step": per_step}


def describe(core: Core, job: Job, step: Step) -> StepCreated:
    """What srun needs to launch the step, or sattach to find it."""
    from understudy.controller.job_programs import node_environment  # noqa: PLC0415 - as below
    from understudy.controller.start import job_environment, parts_environment  # noqa: PLC0415 - start launches jobs, which needs no steps

    nodes = 0
    for place in step.places:
        nodes |= 1 << place.node
    settings = core.settings
    credential = b""
    if core.step_signer is not None:
        now = int(core.time.now())
        told = node_environment(core, job, is_over=False) if settings.has_prolog else ()
        credential = core.step_signer.sign_step(
            job.job_id, job.restarts, step.step_id, step.node_list, job.user_id, job.group_id, now, program_environment=told
        )
    ends = [when for when in (job.end_time, None if not step.time_limit_s else step.start_time + step.time_limit_s) if when is not None]
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
        [each for each in job_environment(core, job) if each.partition("=")[0] not in _OF_BATCH_NODE] + parts_environment(core, step),
        job.end_time,
        int(settings.kill_wait_s),
        core.users.user_name(job.user_id),
        min(ends, default=None),
        [gpus_of(place.gres) for place in step.places] if job.allocation is not None and any(group.gres for group in job.allocation.groups) else [],
        settings.mpi_default,
        [place.memory_mb or job.memory_per_node_mb or (job.memory_per_cpu_mb or 0) * place.cpus for place in step.places],
    )


def daemons_of(core: Core, nodes: int) -> list[tuple[str, str, str]]:
    """Name, address and nodes of the daemons that stand for the nodes (a bitmap)."""
    return [(daemon.name, daemon.address, core.names.to_expression(part)) for daemon, part in core.parts(nodes)]


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
    step = None if job is None or job.restarts != message.restart else job.steps.get(message.step_id)
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
        _end(core, job, step)
    return Ok()


def _end(core: Core, job: Job, step: Step) -> None:
    now = core.time.now()
    step.end_time = int(now)
    if step.state is JobState.RUNNING:
        ended_with_job = job.is_finished and job.state not in {JobState.COMPLETED, JobState.FAILED}
        if step.exit_signal == OUT_OF_MEMORY:
            step.state = JobState.OUT_OF_MEMORY
        elif step.killed_by is not None or ended_with_job or (step.exit_signal and step.exit_signal in {SIGKILL, SIGTERM}):
            step.state = JobState.CANCELLED
        elif step.exit_signal or step.exit_code:
            step.state = JobState.FAILED
        else:
            step.state = JobState.COMPLETED
    job.derived_exit_code = max(job.derived_exit_code, step.exit_code)
    core.last_job_update = now
    core.journal.job(job.job_id)
    for later in step.awaited:
        later.give(Ok())
    step.awaited.clear()


def end_steps(core: Core, job: Job, nodes: int) -> None:
    """The nodes (a bitmap) are free of the job: what of its steps was there is over, whoever said so."""
    for step in job.steps.values():
        if step.is_running and step.open_nodes & nodes:
            step.open_nodes &= ~nodes
            if not step.open_nodes:
                step.exit_signal = step.exit_signal or SIGKILL
                _end(core, job, step)


def signal_step(core: Core, job: Job, step: Step, signal: int, *, ends: bool) -> None:
    """Send a signal to the step's tasks. `ends`: that is to end it."""
    run = job.restarts
    message = SignalTasks(job.job_id, run, step.step_id, signal, ends)

    def is_wanted() -> bool:
        return job.restarts == run and step.is_running

    parts = core.parts(step.open_nodes)
    if len(parts) == 1:
        core.agents.send(parts[0][0].name, message, wanted=is_wanted)
    elif parts:
        core.agents.send_to_many(
            [(daemon.name, core.names.to_expression(part)) for daemon, part in parts], lambda _expression: message, wanted=is_wanted
        )


def signal_steps(core: Core, job: Job, signal: int) -> None:
    """Send a signal to all steps of the job."""
    for step in job.steps.values():
        if step.is_running:
            signal_step(core, job, step, signal, ends=False)


def cancel_step(core: Core, text: str, signal: int | None, sender: Sender) -> None:
    """Scancel JOB.STEP.

    Raises:
        SlurmError: no such step, or not the user's own.
    """
    job_text, _, step_text = text.partition(".")
    job = core.job(job_text)
    if not may_control(core, sender.user_id, job):
        raise SlurmError(ErrorCode.ACCESS_DENIED)
    if step_text == "batch" and job.is_running and not job.interactive:
        from understudy.controller.complete import signal_job  # noqa: PLC0415 - complete ends steps through this module

        signal_job(core, job, SIGKILL if signal is None else signal, batch_only=True)
        return
    found = [(each, each.steps[int(step_text)]) for each in components(job) if int(step_text) in each.steps] if step_text.isdecimal() else []
    running = [(each, step) for each, step in found if step.is_running]
    if not running:
        raise SlurmError(ErrorCode.INVALID_JOB)
    for each, step in running:
        if (signal is None or signal == SIGKILL) and each.is_running:
            step.killed_by = sender.user_id
        signal_step(core, each, step, SIGKILL if signal is None else signal, ends=signal is None or signal == SIGKILL)


def limit_step(core: Core, job: Job, step: Step, limit_s: int | None, now: float) -> None:
    """So long may the step run; None: as long as its job."""
    step.time_limit_s = limit_s
    if limit_s:
        core.at(max(step.start_time + limit_s, now), _time_out, core, job, step, job.restarts)


def _time_out(core: Core, job: Job, step: Step, run: int) -> None:
    is_due = bool(step.time_limit_s) and core.time.now() >= step.start_time + (step.time_limit_s or 0)  # it may have been given longer since
    if job.restarts == run and step.is_running and is_due:
        log.info("step %d.%d has reached its time limit", job.job_id, step.step_id)
        step.state = JobState.TIMEOUT
        signal_step(core, job, step, SIGTERM, ends=True)
