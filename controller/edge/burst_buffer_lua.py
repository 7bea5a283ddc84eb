"""A site's burst_buffer.lua: which function of it is called when, with what, and what is made of
what it says.

Place: the edge, beside `burst_buffers.py`. Each call is a process of its own (`lua_script.py`),
which is killed when its time is over, when its stage is cut short, and with the controller. What
Slurm's controller calls itself and cannot end (job_process, paths, and pools when it starts) the
controller waits for, WAITS_S at most.

Follows Slurm's guide to burst buffers, and which functions 22.05.8 was seen to call, in which order
and with which arguments.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from understudy.controller.core.core import log
from understudy.controller.tables.burst_buffers import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.controller.core.core import Core
    from understudy.controller.edge.programs import Programs, Told
    from understudy.controller.jobs.buffers import Stage
    from understudy.controller.tables.job import Job

WAITS_S: Final = 10  # ours: so long at most the controller waits for a function
POOLS_S: Final = 30.0  # so often 22.05.8 asks what pools there are
NOTHING_SAID: Final = "(null)"  # as Slurm shows it
_MODULE: Final = "understudy.controller.edge.lua_script"
_REPLACED: Final = frozenset(("setup", "data_in", "post_run", "data_out"))  # see docs
_LARGEST: Final = 2**63 - 1


class LuaScript:
    """The script of a cluster. `symbols`: a job's script with what %j and the like stand for."""

    def __init__(
        self,
        core: Core,
        programs: Programs,
        folder: Path,
        symbols: Callable[[Job, str], str],
    ) -> None:
        self._core, self._programs, self._folder, self._symbols = core, programs, folder, symbols
        self._path = core.settings.burst_buffer.script
        self._running: dict[int, Callable[[], None]] = {}  # what ends a job's stage

    # --- what the controller waits for ------------------------------------------------------------

    def process(self, job: Job, script: str) -> str | None:
        """What the script says against a new job ("": nothing of use); None: it may come in."""
        path = self._script(job, script or _script_of_lines(job))
        code, said = self._wait("slurm_bb_job_process", path)
        if code == 0:
            return None
        self._forget(job.job_id)
        return said or ""

    def paths(self, job: Job) -> list[str] | None:
        """What the job's environment gets of its buffer; None: it cannot begin."""
        path = self._script(job, self._text(job))
        told = Path(path).with_name("path")
        code, _ = self._wait("slurm_bb_paths", str(job.job_id), path, str(told))
        if code:
            log.error("paths for job %d failed", job.job_id)
            return None
        try:
            lines = told.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
        except OSError:
            return []
        for line in lines:
            if line and "=" not in line:
                log.error("Invalid supplemental environment variable: %s", line)
        return [line for line in lines if "=" in line]

    def first_pools(self) -> list[Pool]:
        """What pools there are as the controller starts."""
        return _pools(*self._wait("slurm_bb_pools")) or []

    def _wait(self, function: str, *arguments: str) -> tuple[int, str | None]:
        limit_s = min(WAITS_S, self._core.settings.burst_buffer.timeouts_s["OtherTimeout"])
        told = self._programs.wait_for(self._words(function, arguments), limit_s)
        return _understood(told, function, limit_s)

    # --- what goes on beside it -------------------------------------------------------------------

    def run(self, stage: Stage, done: Callable[[str, str], None]) -> None:
        """Have a stage run; `done` gets what failed, and what the function said if nothing did. One
        of the same job that was cut short ends.
        """
        job_id, function = stage.job.job_id, _function(stage.name)
        if (end := self._running.pop(job_id, None)) is not None:
            end()
        words = self._words(function, self._arguments(stage))

        def ended(told: Told | None) -> None:
            if self._running.get(job_id) is not end_it:
                return
            del self._running[job_id]
            code, said = _understood(told, function, stage.limit_s)
            if not code and stage.name == "teardown":
                self._forget(job_id)
            done("", said or "") if not code else done(said or NOTHING_SAID, "")

        end_it = self._running[job_id] = self._programs.run_heard(words, stage.limit_s, ended)

    def ask(self, words: list[str], done: Callable[[str], None]) -> None:
        """What `scontrol show bbstat` prints."""
        function = "slurm_bb_get_status"
        limit_s = self._core.settings.burst_buffer.timeouts_s["OtherTimeout"]

        def ended(told: Told | None) -> None:
            code, said = _understood(told, function, limit_s)
            done(f"Error running {function}\n" if code else said or "")

        self._programs.run_heard(self._words(function, words), limit_s, ended)

    def ask_for_pools(self) -> None:
        """See every POOLS_S what pools there are."""
        self._core.at(self._core.time.now() + POOLS_S, self._ask_for_pools)

    def _ask_for_pools(self) -> None:
        core, function = self._core, "slurm_bb_pools"
        limit_s = core.settings.burst_buffer.timeouts_s["OtherTimeout"]

        def ended(told: Told | None) -> None:
            found = _pools(*_understood(told, function, limit_s))
            if found is not None:
                core.tables.burst_buffers.resize(found)
                core.after_event()
            self.ask_for_pools()

        self._programs.run_heard(self._words(function, ()), limit_s, ended)

    # --- arguments --------------------------------------------------------------------------------

    def _words(self, function: str, arguments: list[str] | tuple[str, ...]) -> list[str]:
        return [sys.executable, "-P", "-m", _MODULE, self._path, function, *arguments]

    def _arguments(self, stage: Stage) -> list[str]:
        job, buffer = stage.job, stage.buffer
        job_id, text = str(job.job_id), self._text(job)
        if stage.name == "real_size":
            return [job_id]
        script = self._script(job, text)
        if stage.name in _REPLACED and (replaced := self._symbols(job, text)) != text:
            script = self._script(job, replaced, "replaced")
        if stage.name == "setup":
            pool, size = next(iter(buffer.space), NOTHING_SAID), str(buffer.size)
            return [job_id, str(job.user_id), str(job.group_id), pool, size, script]
        if stage.name == "teardown":
            return [job_id, script, "true" if buffer.hurry else "false"]
        return [job_id, script]

    def _text(self, job: Job) -> str:
        return self._core.scripts.get(job.job_id) or _script_of_lines(job)

    def _script(self, job: Job, text: str, name: str = "script") -> str:
        """A file with the job's script, as the functions are to read it."""
        path = self._folder / f"job.{job.job_id}" / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        path.chmod(0o700)
        return str(path)

    def _forget(self, job_id: int) -> None:
        shutil.rmtree(self._folder / f"job.{job_id}", ignore_errors=True)


def _script_of_lines(job: Job) -> str:
    """What stands for a script where there is none but the lines of --bb."""
    return "" if job.burst_buffer is None else f"#!/bin/bash\n{job.burst_buffer.text}"


def _function(stage: str) -> str:
    return f"slurm_bb_{'job_' if stage == 'teardown' else ''}{stage}"


def _understood(told: Told | None, function: str, limit_s: int) -> tuple[int, str | None]:
    """The return code and what was said; what was logged goes into the controller's log."""
    if told is None:
        text = f"Timeout @ {limit_s * 1000} msec"
        log.error("Error running %s: %s", function, text)
        return -1, text
    for line in told.errors.splitlines():
        if line.startswith("error: "):
            log.error("%s", line.removeprefix("error: "))
        elif line.startswith("debug: "):
            log.debug("%s", line.removeprefix("debug: "))
        else:
            log.info("%s", line)
    try:
        code, said = json.loads(told.output)
    except ValueError:
        log.error("Error running %s: exit code %d", function, told.code)
        return -1, None
    return code, said


def _pools(code: int, said: str | None) -> list[Pool] | None:
    """The pools of what slurm_bb_pools said; None where nothing can be made of it. A pool has
    `quantity` times its granularity.
    """
    if code or said is None:
        return None if code else []
    try:
        found = [_pool(each) for each in json.loads(said)["pools"]]
    except (ValueError, KeyError, TypeError):
        log.error('slurm_bb_pools: Failed to parse pools: "%s"', said)
        return None
    return found


def _pool(told: dict[str, Any]) -> Pool:
    name = told["id"]
    quantity, granularity = int(told.get("quantity") or 0), int(told.get("granularity") or 1)
    if not isinstance(name, str) or not 0 <= quantity * granularity <= _LARGEST or granularity < 1:
        raise ValueError(name)
    return Pool(name, quantity * granularity, granularity)
