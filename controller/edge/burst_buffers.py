"""Burst buffers' surroundings: the pools that burst_buffer.conf names, and what runs their stages.

Place: edge, beside `build.py` and `programs.py`. Of emulated jobs a stage takes as long as the
file's model says: fixed seconds, and size over rate. Of real ones a program of the site's does it:
it is given the stage and the job's id, the rest in its environment, and the script to read. What it
prints is the message if it fails. It (with datawarp: GetSysStatus) also tells what `scontrol show
bbstat` prints. Or the site's burst_buffer.lua does, if there is no program (`burst_buffer_lua.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.controller.core.core import log
from understudy.controller.edge.burst_buffer_lua import LuaScript
from understudy.controller.facts.environment import site_environment
from understudy.controller.tables.burst_buffers import BurstBuffers, Pool
from understudy.model.burst_buffers import LUA, with_symbols
from understudy.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from understudy.controller.core.core import Core
    from understudy.controller.edge.programs import Programs
    from understudy.controller.jobs.buffers import Stage
    from understudy.controller.tables.job import Job
    from understudy.model.conf import SlurmConfig


def pools_of(config: SlurmConfig) -> list[Pool]:
    """The pools that the configuration names."""
    return [Pool(each.name, each.total, each.granularity) for each in config.burst_buffer.pools]


def build_burst_buffers(config: SlurmConfig) -> BurstBuffers:
    """The cluster's burst buffers, without any in use; none where they are off."""
    kind = config.burst_buffer_kind
    pools = {pool.name: pool for pool in pools_of(config)} if kind else {}
    return BurstBuffers(kind, pools)


def set_runner(core: Core, programs: Programs, folder: Path) -> None:
    """Have stages run as they are to be here; `folder` is for files of theirs."""
    if (script := _lua_script(core, programs, folder)) is not None:
        core.tables.burst_buffers.resize(script.first_pools())
        script.ask_for_pools()
        core.buffer_script, core.run_stage, core.ask_buffers = script, script.run, script.ask
        return
    ends: dict[int, Callable[[], None]] = {}  # of programs, by job

    def run(stage: Stage, done: Callable[[str, str], None]) -> None:
        program = core.settings.burst_buffer.program
        if core.settings.emulates_jobs or not program:
            emulate(core, stage, done)
            return
        words = [program, stage.name, str(stage.job.job_id)]
        ends.pop(stage.job.job_id, lambda: None)()  # one that was cut short
        ends[stage.job.job_id] = programs.run_told(
            words,
            _environment(core, stage),
            _script(core, stage),
            stage.limit_s,
            lambda said: done(timed_out(stage) if said is None else said, ""),
        )

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


def _lua_script(core: Core, programs: Programs, folder: Path) -> LuaScript | None:
    """The site's script, where it is to run.

    Raises:
        ConfigError: what runs it is not installed.
    """
    conf = core.settings.burst_buffer
    if not conf.script or conf.program:
        return None
    if core.settings.emulates_jobs:
        log.info("%s", conf.about_script)
        return None
    if conf.lacks_lua:
        raise ConfigError(conf.about_script)
    return LuaScript(core, programs, folder, lambda job, text: _replaced(core, job, text))


def timed_out(stage: Stage) -> str:
    """What is said of a stage that took too long, as 22.05.8 does."""
    return f"Timeout @ {stage.limit_s * 1000} msec"


def emulate(core: Core, stage: Stage, done: Callable[[str, str], None]) -> None:
    """Let the time pass that the stage takes."""
    conf, request = core.settings.burst_buffer, stage.job.burst_buffer
    rate = conf.rates.get(stage.name, 0.0)
    own = {} if request is None or request.seconds is None else request.seconds
    takes_s = conf.seconds.get(stage.name, 0.0) + own.get(stage.name, 0.0)
    if rate:
        takes_s += stage.buffer.size / rate
    message = "failed" if request is not None and stage.name in request.fails else ""
    if takes_s > stage.limit_s:
        takes_s, message = stage.limit_s, timed_out(stage)
    core.at(core.time.now() + takes_s, done, message, "")


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
    text = core.scripts.get(job.job_id) or (
        "" if job.burst_buffer is None else job.burst_buffer.text
    )
    return _replaced(core, job, text)


def _replaced(core: Core, job: Job, text: str) -> str:
    """The text with symbols replaced in the lines that ask for the buffer."""
    array = job.job_id if job.array is None else job.array.job_id
    symbols = {
        "A": str(array),
        "a": "" if job.array_task_id is None else str(job.array_task_id),
        "d": job.spec.work_dir,
        "j": str(job.job_id),
        "u": core.users.user_name(job.user_id),
        "x": job.spec.name,
    }
    asked = frozenset(() if job.burst_buffer is None else job.burst_buffer.text.split("\n"))
    return "\n".join(
        with_symbols(line, symbols) if line in asked else line for line in text.split("\n")
    )
