"""Burst buffers' surroundings: the pools that burst_buffer.conf names, and what runs their stages.

Place: edge, beside `build.py` and `programs.py`. Of emulated jobs a stage takes as long as the
file's model says: fixed seconds, and size over rate. Of real ones a program of the site's does it:
it is given the stage and the job's id, the rest in its environment, and the script to read. What it
prints is the message if it fails. It (with datawarp: GetSysStatus) also tells what `scontrol show
bbstat` prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.facts.environment import site_environment
from understudy.controller.tables.burst_buffers import BurstBuffers, Pool
from understudy.model.burst_buffers import LUA, with_symbols

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.edge.programs import Programs
    from understudy.controller.jobs.buffers import Stage
    from understudy.model.conf import SlurmConfig

TIMED_OUT = "timed out"


def pools_of(config: SlurmConfig) -> list[Pool]:
    """The pools that the configuration names."""
    return [Pool(each.name, each.total, each.granularity) for each in config.burst_buffer.pools]


def build_burst_buffers(config: SlurmConfig) -> BurstBuffers:
    """The cluster's burst buffers, without any in use; none where they are off."""
    kind = config.burst_buffer_kind
    pools = {pool.name: pool for pool in pools_of(config)} if kind else {}
    return BurstBuffers(kind, pools)


def set_runner(core: Core, programs: Programs) -> None:
    """Have stages run as they are to be here."""

    def run(stage: Stage, done: Callable[[str], None]) -> None:
        program = core.settings.burst_buffer.program
        if core.settings.emulates_jobs or not program:
            emulate(core, stage, done)
        else:
            words = [program, stage.name, str(stage.job.job_id)]
            script = _script(core, stage)
            environment = _environment(core, stage)
            programs.run_told(words, environment, script, stage.limit_s, done)

    def ask(words: list[str], done: Callable[[str], None]) -> None:
        conf = core.settings.burst_buffer
        is_lua = core.tables.burst_buffers.kind == LUA
        program = [conf.program, "get_status"] if is_lua else [conf.get_sys_status]
        if not program[0]:
            done("")  # nobody could say
            return
        name = "slurm_bb_get_status" if is_lua else program[0]
        programs.run_asked(
            [*program, *words],
            conf.timeouts_s["OtherTimeout"],
            lambda said: done(f"Error running {name}\n" if said is None else said),
        )

    core.run_stage, core.ask_buffers = run, ask


def emulate(core: Core, stage: Stage, done: Callable[[str], None]) -> None:
    """Let the time pass that the stage takes."""
    conf, request = core.settings.burst_buffer, stage.job.burst_buffer
    rate = conf.rates.get(stage.name, 0.0)
    own = {} if request is None or request.seconds is None else request.seconds
    takes_s = conf.seconds.get(stage.name, 0.0) + own.get(stage.name, 0.0)
    if rate:
        takes_s += stage.buffer.size / rate
    message = "failed" if request is not None and stage.name in request.fails else ""
    if takes_s > stage.limit_s:
        takes_s, message = stage.limit_s, TIMED_OUT
    core.at(core.time.now() + takes_s, done, message)


def _environment(core: Core, stage: Stage) -> dict[str, str]:
    buffer, job = stage.buffer, stage.job
    return site_environment(core, job) | {
        "BB_STAGE": stage.name,
        "BB_POOL": ",".join(buffer.space),
        "BB_SIZE": ",".join(map(str, buffer.space.values())),
        "BB_USER_ID": str(job.user_id),
        "BB_GROUP_ID": str(job.group_id),
        "BB_HURRY": "1" if buffer.hurry else "0",
    }


def _script(core: Core, stage: Stage) -> str:
    """The job's script, or the lines of --bb, with symbols replaced in comments."""
    job = stage.job
    array = job.job_id if job.array is None else job.array.job_id
    symbols = {
        "A": str(array),
        "a": "" if job.array_task_id is None else str(job.array_task_id),
        "d": job.spec.work_dir,
        "j": str(job.job_id),
        "u": core.users.user_name(job.user_id),
        "x": job.spec.name,
    }
    text = core.scripts.get(job.job_id) or (
        "" if job.burst_buffer is None else job.burst_buffer.text
    )
    asked = frozenset(() if job.burst_buffer is None else job.burst_buffer.text.split("\n"))
    return "\n".join(
        with_symbols(line, symbols) if line in asked else line for line in text.split("\n")
    )
