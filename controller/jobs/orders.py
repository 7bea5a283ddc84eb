"""Programs of the site around a job: PrologSlurmctld before its script, EpilogSlurmctld at its end,
and what they and the nodes' programs are told.

Place: jobs; the edge (`programs.py`) runs them. Follows: slurm.conf(5), "PROLOG
AND EPILOG SCRIPTS", and what Slurm 22.05.8 was seen to do. Where jobs are emulated no program is
run: a replay of a site's configuration must not call the site's programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.core import log
from understudy.controller.facts.environment import end_facts, node_environment, site_environment
from understudy.controller.tables.job_states import JobEvent
from understudy.protocol.messages import LaunchProlog, SignalJob, SignalTasks, TerminateJob

if TYPE_CHECKING:
    from understudy.controller.core.core import Core, DaemonRecord
    from understudy.controller.core.reactions import End
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.step import Step

# what the job's output says of its end
_WHY: Final = {JobEvent.PREEMPTED: "PREEMPTION", JobEvent.TAKEN_BACK: "JOB REQUEUE"}


def run_epilog(core: Core, job: Job, *_: object) -> None:
    """Run EpilogSlurmctld; nobody waits for it."""
    program = core.settings.epilog_slurmctld
    if program and not core.settings.emulates_jobs:
        core.run_script(
            [program],
            site_environment(core, job, context="epilog_slurmctld", **end_facts(job)),
            lambda code: (
                log.error("EpilogSlurmctld of job %d ended with %d", job.job_id, code)
                if code
                else None
            ),
        )


def end_on_nodes(core: Core, job: Job, end: End, _now: float) -> None:
    """The job's run has ended: so is what is left of it on nodes that are not clean, or silent."""
    assert job.allocation is not None
    why = "" if core.settings.emulates_jobs else _WHY.get(end.event, "")
    terminate(core, job, job.allocation.nodes & ~end.lost_nodes, why)


def terminate(core: Core, job: Job, nodes: int, why: str = "") -> None:
    """Have the node daemons end what is left of the job on the nodes (a bitmap), until they say
    that they will or the nodes are given back.
    """
    run, job_id = job.restarts, job.job_id

    def is_wanted() -> bool:
        return bool(job.completing_nodes & nodes) and job.restarts == run

    parts = core.parts(nodes)
    told = node_environment(core, job, is_over=True)
    lingers = core.settings.emulates_jobs and not (
        job.script_ended or job.interactive or job.het_offset
    )
    if parts:
        is_whole = len(parts) == 1 and parts[0][1] == job.completing_nodes
        core.agents.send_to_many(
            [
                (daemon.name, job.node_list if is_whole else core.names.to_expression(part))
                for daemon, part in parts
            ],
            lambda expression: TerminateJob(job_id, run, expression, told, why, lingers),
            wanted=is_wanted,
        )


def terminate_parts(core: Core, job: Job, parts: list[tuple[DaemonRecord, int]]) -> None:
    """Have daemons end what a job that goes on elsewhere has on nodes (bitmaps) that it has lost.
    Nobody waits for them.
    """
    for daemon, part in parts:
        core.agents.send_to_many(
            [(daemon.name, core.names.to_expression(part))],
            lambda expression: TerminateJob(job.job_id, job.restarts, expression),
        )


def signal_job(core: Core, job: Job, signal: int, *, batch_only: bool) -> None:
    """Send a signal to the job's processes, or to its script alone."""
    assert job.allocation is not None
    run = job.restarts
    message = SignalJob(job.job_id, run, signal, batch_only)

    def is_wanted() -> bool:
        return job.restarts == run and job.is_active

    nodes = job.allocation.nodes
    parts = core.parts(nodes & -nodes if batch_only else nodes)
    if parts:
        core.agents.send_to_many(
            [(daemon.name, core.names.to_expression(part)) for daemon, part in parts],
            lambda _expression: message,
            wanted=is_wanted,
        )


def ask(core: Core, job: Job, nodes: int) -> None:
    """Have the prolog run on these nodes (a bitmap) of the job."""
    run, told = job.restarts, node_environment(core, job, is_over=False)

    def is_wanted() -> bool:
        return job.restarts == run and job.is_active

    for daemon, part in core.parts(nodes):
        core.agents.send(
            daemon.name,
            LaunchProlog(job.job_id, run, core.names.to_expression(part), told),
            wanted=is_wanted,
        )


def signal_step(core: Core, job: Job, step: Step, signal: int, *, ends: bool) -> None:
    """Send a signal to the step's tasks. `ends`: that is to end it."""
    run = job.restarts
    message = SignalTasks(job.job_id, run, step.step_id, signal, ends)

    def is_wanted() -> bool:
        return job.restarts == run and step.is_running

    parts = core.parts(step.open_nodes)
    if parts:
        core.agents.send_to_many(
            [(daemon.name, core.names.to_expression(part)) for daemon, part in parts],
            lambda _expression: message,
            wanted=is_wanted,
        )


def signal_steps(core: Core, job: Job, signal: int) -> None:
    """Send a signal to all steps of the job."""
    for step in job.steps.values():
        if step.is_running:
            signal_step(core, job, step, signal, ends=False)
