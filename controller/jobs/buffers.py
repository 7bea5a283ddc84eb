"""The lives of burst buffers: staged in before a job, kept while it runs, staged out and torn down
behind it.

Place: jobs. The tables have the space (`tables/burst_buffers.py`), schedulers say whose turn it is
(`jobs/stage_in.py`). How long a stage takes, or what it does, is for the surroundings to say
(`core.run_stage`): a model of emulated ones, a program of the site's for real jobs. Follows Slurm's
guide to burst buffers, and what 22.05.8 with burst_buffer/lua was seen to do.

A stage that fails leaves the buffer as it is, and the job held, or in STAGE_OUT, until somebody
cancels it; with Flags=TeardownFailure the buffer goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from understudy.controller.core.changes import job_changed
from understudy.controller.core.core import log
from understudy.controller.jobs.end import end_job
from understudy.controller.jobs.requeue import requeue_job
from understudy.controller.pending.eligibility import notify_dependents, review
from understudy.controller.pending.purge import schedule_purge
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.burst_buffers import (
    FAILED,
    NO_SPACE,
    STAGES_IN,
    UNUSED,
    Buffer,
    BufferState,
    Readiness,
)
from understudy.controller.tables.job import HELD_BY_ADMIN
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.model.states import JobFlag
from understudy.model.times import leading_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.core.reactions import End
    from understudy.controller.tables.job import Job

SAVED_AS: Final = "burst_buffer/"  # with the job's id, or a persistent one's name, behind it
AT_ONCE: Final = 128  # so many buffers are in a stage at a time (Slurm's guide, of lua)
AGAIN_S: Final = 60  # until a job is looked at whose buffer a restart has cost, as 22.05.8 does
RETRY_S: Final = 10.0  # until a teardown that failed is tried again, as 22.05.8 does
TRIES: Final = 3  # of a teardown, as 22.05.8 does
PRE_RUN_ERROR: Final = "Burst buffer pre_run error"
_LIMITS: Final = {"data_in": "StageInTimeout", "data_out": "StageOutTimeout"}
_OTHER: Final = "OtherTimeout"
_SAVED: Final = (  # new ones go to the end
    *("job_id", "user_id", "space", "created", "name", "access", "type"),
    *("account", "hurry", "has_failed", "tries", "reservation", "maker", "environment"),
)


class Stage(NamedTuple):
    """What the surroundings are asked: have this stage of a buffer run."""

    name: str
    buffer: Buffer
    job: Job
    limit_s: int  # then it has failed


def save(core: Core, buffer: Buffer) -> None:
    """The buffer has changed, or is gone."""
    core.journal.document(f"{SAVED_AS}{buffer.name or buffer.job_id}")


def _begin(
    core: Core,
    job: Job,
    buffer: Buffer,
    stage: str,
    then: Callable[[Core, Job, Buffer, float], None],
) -> None:
    """Have a stage run, and then what follows; one at a time, an earlier one counts no more."""
    table, timeouts_s = core.tables.burst_buffers, core.settings.burst_buffer.timeouts_s
    _leave(core, buffer)
    buffer.run += 1
    run = buffer.run

    def is_current() -> bool:
        return buffer.run == run and table.buffers.get(job.job_id) is buffer

    def ended(message: str, told: str = "") -> None:
        if not is_current():
            return
        now, buffer.told = core.time.now(), told
        _leave(core, buffer)
        if message:
            _fail(core, job, buffer, stage, message, now)
        else:
            then(core, job, buffer, now)
        core.after_event()

    def start() -> None:
        if not is_current():
            return
        at_work[buffer.job_id] = None
        limit_s = timeouts_s[_LIMITS.get(stage, _OTHER)]
        core.run_stage(Stage(stage, buffer, job, limit_s), ended)

    at_work = table.at_work.setdefault(stage, {})
    if len(at_work) < AT_ONCE:
        start()
    else:
        table.queued.setdefault(stage, []).append(start)
    save(core, buffer)


def _leave(core: Core, buffer: Buffer) -> None:
    """The buffer is in no stage any more: the next of those who wait for the place may have it."""
    table = core.tables.burst_buffers
    for stage, at_work in table.at_work.items():
        if at_work.pop(buffer.job_id, 0) is None:
            queued = table.queued.get(stage, [])
            while queued and len(at_work) < AT_ONCE:
                queued.pop(0)()


def _fail(core: Core, job: Job, buffer: Buffer, stage: str, message: str, now: float) -> None:
    kind = core.tables.burst_buffers.kind
    if stage == "teardown":
        _not_torn_down(core, job, buffer, f"burst_buffer/{kind}: teardown: {message}", now)
        return
    text = f"burst_buffer/{kind}: slurm_bb_{stage}: {message}"
    log.error("job %d: %s", job.job_id, text)
    buffer.has_failed = True
    if stage == "post_run":  # as 22.05.8 shows it
        buffer.become(BufferState.STAGING_OUT)
    if stage == "pre_run":
        _cannot_run(core, job, now)
        return
    if job.is_pending:
        _hold(job, FAILED, now)
    job.reason_detail = text
    save(core, buffer)
    if "TeardownFailure" in core.settings.burst_buffer.flags:
        tear_down(core, job, buffer, now, hurry=True)
    job_changed(core, job, now, Note.CHANGE)


def _hold(job: Job, held_by: str, now: float) -> None:
    job.note_wait(now)
    job.priority, job.admin_priority, job.held_by = 0, None, held_by
    job.reason = held_by


# --- before a job runs ----------------------------------------------------------------------------


def stage_in(core: Core, job: Job, now: float) -> bool:
    """The job's turn has come: it gets its space, and its data are staged in. False: there is no
    space for it.
    """
    table = core.tables.burst_buffers
    if job.array_tasks or job.job_id in table.buffers or not table.fits(job):
        return False
    buffer = table.take(job, BufferState.STAGING_IN, now)
    assert job.burst_buffer is not None
    for made in job.burst_buffer.creates:
        save(core, table.persistent[made.name])
    for name, _ in job.burst_buffer.destroys:
        if (gone := table.persistent.get(name)) is not None:
            gone.become(BufferState.DELETING)
    _begin(core, job, buffer, "setup", _is_set_up)
    job_changed(core, job, now)
    return True


def _is_set_up(core: Core, job: Job, buffer: Buffer, now: float) -> None:
    table, request = core.tables.burst_buffers, job.burst_buffer
    assert request is not None
    for made in request.creates:
        if (own := table.persistent.get(made.name)) is not None:
            own.become(BufferState.ALLOCATED)
            save(core, own)
    for name, _ in request.destroys:
        if (gone := table.persistent.get(name)) is not None:
            table.destroy(name)
            save(core, gone)
    if request.creates or request.destroys:
        core.changed(Note.CHANGE, now)
    _begin(core, job, buffer, "data_in", _has_data)


def _has_data(core: Core, job: Job, buffer: Buffer, now: float) -> None:
    """A site's script is asked how much space it has really taken."""
    if core.buffer_script is None or not buffer.size:
        _is_staged_in(core, job, buffer, now)
    else:
        _begin(core, job, buffer, "real_size", _is_measured)


def _is_measured(core: Core, job: Job, buffer: Buffer, now: float) -> None:
    core.tables.burst_buffers.grow(buffer, leading_number(buffer.told))
    _is_staged_in(core, job, buffer, now)


def _is_staged_in(core: Core, job: Job, buffer: Buffer, now: float) -> None:
    buffer.become(BufferState.STAGED_IN)
    save(core, buffer)
    job_changed(core, job, now, Note.CHANGE)


def try_again(core: Core, job: Job, now: float) -> None:
    """The job is released: what has failed before it is tried once more."""
    buffer = core.tables.burst_buffers.buffers.get(job.job_id)
    if job.reason == FAILED:
        job.reason, job.reason_detail = NO_SPACE, ""
    if buffer is not None and buffer.has_failed and buffer.state is BufferState.STAGING_IN:
        buffer.has_failed, job.reason = False, STAGES_IN
        _begin(core, job, buffer, "setup", _is_set_up)
        job_changed(core, job, now)
    elif buffer is not None and buffer.state is BufferState.PRE_RUN:
        buffer.become(BufferState.STAGED_IN)


def lacks_buffer(core: Core, job: Job) -> str:
    """Why the job's burst buffer keeps it from starting, "" if it does not."""
    table = core.tables.burst_buffers
    if not core.policy.stages_buffers:
        return "" if table.fits(job) else NO_SPACE
    ready = table.readiness(job)
    if ready is Readiness.READY:
        return ""
    return NO_SPACE if ready is Readiness.WAITING else STAGES_IN


def lacks_paths(core: Core, job: Job) -> str:
    """What of a site's script keeps the job from starting, "" if nothing does: it is about to, and
    the script tells what its environment gets. If it does not the job is held.
    """
    buffer = core.tables.burst_buffers.buffers.get(job.job_id)
    if core.buffer_script is None or buffer is None or buffer.environment is not None:
        return ""
    buffer.environment = core.buffer_script.paths(job)
    if buffer.environment is None:
        buffer.become(BufferState.PRE_RUN)
        _hold(job, HELD_BY_ADMIN, core.time.now())
    save(core, buffer)
    return "" if buffer.environment is not None else HELD_BY_ADMIN


def take_at_start(core: Core, job: Job, now: float) -> None:
    """The job has its nodes. A policy that stages nothing in gives it its buffer now."""
    table = core.tables.burst_buffers
    if job.burst_buffer is None or core.policy.stages_buffers:
        return
    buffer = table.take(job, BufferState.RUNNING, now)
    for made in job.burst_buffer.creates:
        table.persistent[made.name].become(BufferState.ALLOCATED)
        save(core, table.persistent[made.name])
    for name, _ in job.burst_buffer.destroys:
        if (gone := table.persistent.get(name)) is not None:
            table.destroy(name)
            save(core, gone)
    save(core, buffer)


def begin_pre_run(core: Core, job: Job, then: Callable[[Core, Job, float], None]) -> None:
    """The job has its nodes: it is configuring until its buffer is ready for it. `then`: what
    follows.
    """
    buffer = core.tables.burst_buffers.buffers.get(job.job_id)
    if buffer is None or buffer.state is not BufferState.STAGED_IN:
        return
    buffer.become(BufferState.PRE_RUN)
    advance(job, JobEvent.CONFIGURES, core.time.now())
    _pre_run(core, job, buffer, then)


def _pre_run(
    core: Core, job: Job, buffer: Buffer, then: Callable[[Core, Job, float], None]
) -> None:
    def may_run(_core: Core, _job: Job, _buffer: Buffer, now: float) -> None:
        buffer.become(BufferState.RUNNING)
        save(core, buffer)
        core.in_pre_run.discard(job.job_id)
        then(core, job, now)

    core.in_pre_run.add(job.job_id)
    _begin(core, job, buffer, "pre_run", may_run)


def _cannot_run(core: Core, job: Job, now: float) -> None:
    """Its buffer could not be made ready: the job waits for another run, whether it was to be
    requeued or not; whoever waits for its nodes waits for nothing.
    """
    if not job.is_running:
        return
    if job.interactive:
        job.killed_by = 0
        end_job(core, job, JobEvent.CANCELLED, now, reason="None")
    else:
        requeue_job(core, job, now)
    job.reason_detail = PRE_RUN_ERROR
    job_changed(core, job, now)


# --- behind it ------------------------------------------------------------------------------------


def stage_out(core: Core, job: Job, _end: End, now: float) -> None:
    """The job's run is over."""
    buffer = core.tables.burst_buffers.buffers.get(job.job_id)
    if buffer is None:
        return
    core.in_pre_run.discard(job.job_id)
    if not core.policy.stages_buffers:
        core.tables.burst_buffers.give_back(job)
        save(core, buffer)
    elif buffer.state in UNUSED or buffer.hurry:
        tear_down(core, job, buffer, now, hurry=True)
    elif buffer.state is BufferState.RUNNING:
        buffer.become(BufferState.POST_RUN)
        if not job.flags & JobFlag.REQUEUE:
            advance(job, JobEvent.STAGES_OUT, now)
        job.reason_detail = f"burst_buffer/{core.tables.burst_buffers.kind}: Stage-out in progress"
        _begin(core, job, buffer, "post_run", _is_run)


def _is_run(core: Core, job: Job, buffer: Buffer, now: float) -> None:
    buffer.become(BufferState.STAGING_OUT)
    _begin(core, job, buffer, "data_out", _is_staged_out)
    job_changed(core, job, now)


def _is_staged_out(core: Core, job: Job, buffer: Buffer, now: float) -> None:
    buffer.become(BufferState.STAGED_OUT)
    if core.mailer is not None:
        core.mailer.staged_out(job)
    _stages_out_no_more(core, job, now)
    tear_down(core, job, buffer, now)


def _stages_out_no_more(core: Core, job: Job, now: float) -> None:
    """What it left is where it belongs: those that wait for that may go on."""
    if not job.flags & JobFlag.STAGE_OUT:
        return
    advance(job, JobEvent.STAGED_OUT, now)
    job.reason_detail = ""
    notify_dependents(core, job, now)
    job_changed(core, job, now)


def tear_down(core: Core, job: Job, buffer: Buffer, now: float, *, hurry: bool = False) -> None:
    """The buffer goes; `hurry`: with all that is in it."""
    buffer.become(BufferState.TEARDOWN)
    buffer.hurry = hurry
    _begin(core, job, buffer, "teardown", _is_torn_down)
    job_changed(core, job, now)


def _is_torn_down(core: Core, job: Job, buffer: Buffer, now: float) -> None:
    table = core.tables.burst_buffers
    table.give_back(job)
    save(core, buffer)
    _leave_persistent(core, job)
    _stages_out_no_more(core, job, now)
    if job.is_finished and not job.is_completing:
        schedule_purge(core, job, now)
        core.check_empty()
    elif job.is_pending and not job.is_completing:
        review(core, job, now)
    # backfill sees it at its next pass, the main scheduler when it looks anyway, as in 22.05.8
    job_changed(core, job, now, Note.POWERED)


def _leave_persistent(core: Core, job: Job) -> None:
    """What a job has begun to make, and not made, is gone, and what it has not destroyed stays."""
    table, request = core.tables.burst_buffers, job.burst_buffer
    assert request is not None, job.story
    for made in request.creates:
        own = table.persistent.get(made.name)
        if own and own.state is BufferState.ALLOCATING and own.maker == job.job_id:
            table.destroy(made.name)
            save(core, own)
    for name, _ in request.destroys:
        if name in table.persistent:
            table.persistent[name].become(BufferState.ALLOCATED)


def _not_torn_down(core: Core, job: Job, buffer: Buffer, text: str, now: float) -> None:
    """It is tried again after a while, and then given up."""
    buffer.tries += 1
    buffer.become(BufferState.TEARDOWN_FAIL if buffer.tries >= TRIES else BufferState.TEARDOWN)
    log.error("job %d: %s", job.job_id, text)
    if buffer.tries >= TRIES:
        _is_torn_down(core, job, buffer, now)
        return
    job.reason_detail = text
    run = buffer.run

    def again() -> None:
        if buffer.run == run and core.tables.burst_buffers.buffers.get(job.job_id) is buffer:
            _begin(core, job, buffer, "teardown", _is_torn_down)

    core.at(now + RETRY_S, again)
    job_changed(core, job, now)


def give_up(core: Core, job: Job, now: float) -> None:
    """The job is over: if it has never run, so is its buffer."""
    buffer = core.tables.burst_buffers.buffers.get(job.job_id)
    if buffer is not None and buffer.state in UNUSED:
        tear_down(core, job, buffer, now, hurry=True)


def hurry(core: Core, job: Job, now: float) -> None:
    """What scancel --hurry wants: nothing of the job's is staged out."""
    buffer = core.tables.burst_buffers.buffers.get(job.job_id)
    if buffer is None:
        return
    buffer.hurry = True
    if job.flags & JobFlag.STAGE_OUT and buffer.state is not BufferState.TEARDOWN:
        tear_down(core, job, buffer, now, hurry=True)


def revoke(core: Core, job: Job, now: float) -> None:
    """Another needs the space sooner: what is staged for the job goes, to be staged again."""
    buffer = core.tables.burst_buffers.buffers[job.job_id]
    buffer.become(BufferState.ALLOC_REVOKE)
    tear_down(core, job, buffer, now, hurry=True)


def encode(core: Core, name: str) -> bytes | None:
    """A buffer, for the store."""
    table, key = core.tables.burst_buffers, name.removeprefix(SAVED_AS)
    buffer = table.buffers.get(int(key)) if key.isdecimal() else table.persistent.get(key)
    if buffer is None:
        return None
    fields = (getattr(buffer, each) for each in _SAVED)
    return msgspec.msgpack.encode([buffer.state.value, *fields])


def decode(core: Core, record: bytes) -> None:
    """Put back what was saved, if burst buffers are still on."""
    if core.tables.burst_buffers:
        state, *fields = msgspec.msgpack.decode(record)
        known = dict(zip(_SAVED, fields, strict=False))
        core.tables.burst_buffers.restore(Buffer(state=BufferState(state), **known))


def resume(core: Core, now: float, then: Callable[[Core, Job, float], None]) -> None:
    """The controller is back, and with it the buffers that were saved: what was staged for jobs
    that have not started goes, to be staged again; all else goes on where it was, and what had
    failed is tried again. `then`: what follows a pre-run.
    """
    table = core.tables.burst_buffers
    for buffer in table.persistent.values():
        buffer.become(BufferState.ALLOCATED)
    for job_id, buffer in list(table.buffers.items()):
        job = core.tables.jobs.get(job_id)
        if job is None or job.burst_buffer is None:
            log.error("burst buffer of job %d, which is not there any more, is given up", job_id)
            table.forget(job_id)
            save(core, buffer)
            continue
        for name in job.burst_buffer.uses:
            if name in table.persistent:
                table.persistent[name].used_by[job_id] = None
        match buffer.state:
            case BufferState.PRE_RUN if job.is_active:
                _pre_run(core, job, buffer, then)
            case BufferState.POST_RUN | BufferState.STAGING_OUT:
                buffer.become(BufferState.POST_RUN)
                _begin(core, job, buffer, "post_run", _is_run)
            case BufferState.RUNNING:
                pass
            case BufferState.PRE_RUN if job.held_by:  # by `lacks_paths`
                pass
            case _:
                if job.is_pending:
                    job.begin_time = int(now) + AGAIN_S
                    review(core, job, now)
                tear_down(core, job, buffer, now, hurry=True)
