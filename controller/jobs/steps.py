"""Steps of running jobs: created for srun with a signed credential, signalled, ended.

Place: jobs. The controller lays a step out and signs its credential; srun takes
both to the node daemons, and these say when it is over. Follows: srun(1), scancel(1),
`../docs/adr/0011-the-streams-of-steps.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from understudy.controller.core.changes import job_changed
from understudy.controller.core.core import log
from understudy.controller.jobs.orders import signal_step
from understudy.controller.tables.step_states import StepEvent, advance
from understudy.model.states import JobState
from understudy.protocol.endings import OUT_OF_MEMORY
from understudy.protocol.messages import Ok

if TYPE_CHECKING:
    from understudy.controller.core.core import Core
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.step import Step

SIGKILL: Final = 9
SIGTERM: Final = 15


def end_step(core: Core, job: Job, step: Step) -> None:
    now = core.time.now()
    step.end_time = int(now)
    advance(step, _end_of(job, step), now)
    job.derived_exit_code = max(job.derived_exit_code, step.exit_code)
    job_changed(core, job, now)
    for later in step.awaited:
        later.give(Ok())
    step.awaited.clear()


def _end_of(job: Job, step: Step) -> StepEvent:
    if step.exit_signal == OUT_OF_MEMORY:
        return StepEvent.RAN_OUT_OF_MEMORY
    ended_with_job = job.is_finished and job.state not in {JobState.COMPLETED, JobState.FAILED}
    if step.killed_by is not None or ended_with_job or step.exit_signal in {SIGKILL, SIGTERM}:
        return StepEvent.KILLED
    if step.exit_signal or step.exit_code:
        return StepEvent.EXITED_BADLY
    return StepEvent.EXITED_WELL


def end_steps(core: Core, job: Job, nodes: int, *_: object) -> None:
    """The nodes (a bitmap) are free of the job: what of its steps was there is over, whoever said
    so.
    """
    for step in job.steps.values():
        if step.is_running and step.open_nodes & nodes:
            step.open_nodes &= ~nodes
            if not step.open_nodes:
                step.exit_signal = step.exit_signal or SIGKILL
                end_step(core, job, step)


def limit_step(core: Core, job: Job, step: Step, limit_s: int | None, now: float) -> None:
    """So long may the step run; None: as long as its job."""
    step.time_limit_s = limit_s
    if limit_s:
        core.at(max(step.start_time + limit_s, now), _time_out, core, job, step, job.restarts)


def _time_out(core: Core, job: Job, step: Step, run: int) -> None:
    # it may have been given longer since
    is_due = bool(step.time_limit_s) and core.time.now() >= step.start_time + (
        step.time_limit_s or 0
    )
    if job.restarts == run and step.is_running and is_due:
        log.info("step %d.%d has reached its time limit", job.job_id, step.step_id)
        advance(step, StepEvent.TIMED_OUT, core.time.now())
        signal_step(core, job, step, SIGTERM, ends=True)
