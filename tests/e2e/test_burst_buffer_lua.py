"""A site's burst_buffer.lua, run: which function is called when, with which arguments, and that it
ends. As 22.05.8 was seen to call them.

Covers: controller/edge/burst_buffer_lua, controller/edge/burst_buffers.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from buffer_harness import BufferHarness
from controller_harness import USER

from understudy.clock.timekeeper import Timekeeper
from understudy.controller.edge.burst_buffers import set_runner
from understudy.controller.edge.lua_script import FUNCTIONS
from understudy.controller.edge.programs import Programs
from understudy.protocol.messages import JobSpec, SubmitJob

if TYPE_CHECKING:
    from pathlib import Path

NOTES = """
local function note(name, ...)
  local file = io.open("{folder}/calls", "a")
  file:write(name .. "(" .. table.concat({{...}}, " ") .. ")\\n")
  file:close()
end
for _, name in ipairs({{{names}}}) do
  _G[name] = function(...) note(name:sub(10), ...) return slurm.SUCCESS end
end
function slurm_bb_pools()
  return slurm.SUCCESS, '{{"pools":[{{"id":"fast","quantity":100,"granularity":10}},{{"id":"x"}}]}}'
end
"""


class Site(BufferHarness):
    """A controller's core whose stages are those of a script, in a loop of its own."""

    def __init__(self, folder: Path, text: str) -> None:
        names = ",".join(f'"{name}"' for name in FUNCTIONS)
        script = folder / "burst_buffer.lua"
        script.write_text(NOTES.format(folder=folder, names=names) + text)
        super().__init__(emulates_jobs=False)
        conf = replace(self.core.settings.burst_buffer, script=str(script))
        conf.timeouts_s = dict.fromkeys(conf.timeouts_s, 2)
        self.core.settings = replace(self.core.settings, burst_buffer=conf)
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.programs = Programs(self.loop, Timekeeper(self.loop, 0.0), folder)
        self.table.pools.clear()
        set_runner(self.core, self.programs, folder / "files")

    def goes_on(self, condition, limit_s: float = 30.0) -> None:
        """Real processes take their time; the cluster's stands still."""
        end = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < end, self.calls()
            self.loop.run_until_complete(asyncio.sleep(0.02))
            self.run(0)

    def until(self, job, state: str) -> None:
        self.goes_on(lambda: self.table.state_of(job) == state)

    def calls(self) -> list[str]:
        """Without the folder that the files are in."""
        with contextlib.suppress(OSError):
            text = (self.folder / "calls").read_text()
            return text.replace(f"{self.folder}/files/", "").splitlines()
        return []

    def close(self) -> None:
        self.loop.run_until_complete(self.programs.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


@pytest.fixture
def site(tmp_path):
    made = []

    def make(text: str = "") -> Site:
        made.append(Site(tmp_path, text))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_jobs_functions_are_called_in_slurms_order_with_its_arguments(site):
    house = site("""
      function slurm_bb_paths(id, script, path)
        note("paths", id, script, path)
        local file = io.open(path, "w") file:write("BB_DIR=/fast/" .. id .. "\\nno\\n") file:close()
        return slurm.SUCCESS
      end
      function slurm_bb_real_size(id) note("real_size", id) return slurm.SUCCESS, "25" end
    """)
    assert [(pool.name, pool.total, pool.granularity) for pool in house.table.pools.values()] == [
        ("fast", 1000, 10),
        ("x", 0, 1),
    ]
    spec = JobSpec(name="a", extra={})
    job_id = house.ask(SubmitJob(spec, "#!/bin/sh\n#BB_LUA pool=fast capacity=11\n"), USER).job_id
    job = house.core.tables.jobs[job_id]
    house.run(60)
    house.until(job, "staged-in")
    assert house.buffer(job).size == 25
    house.run(60)
    house.until(job, "running")
    house.acknowledge()
    assert house.buffer(job).environment == ["BB_DIR=/fast/1"]
    house.complete(job)
    house.until(job, "complete")
    script = "job.1/script"
    assert house.calls() == [
        f"job_process({script})",
        f"setup(1 1000 1000 fast 20 {script})",
        f"data_in(1 {script})",
        "real_size(1)",
        f"paths(1 {script} job.1/path)",
        f"pre_run(1 {script})",
        f"post_run(1 {script})",
        f"data_out(1 {script})",
        f"job_teardown(1 {script} false)",
    ]
    assert not (house.folder / "files/job.1").exists()


def test_lines_of_an_option_are_the_script_and_have_their_symbols_replaced(site):
    house = site("""
      function slurm_bb_setup(id, user, group, pool, size, script)
        for line in io.lines(script) do note("setup", pool, size, line) end
        return slurm.SUCCESS
      end
    """)
    job = house.submit(extra={"bb": "#BB_LUA %j"}, name="a")
    house.core.scripts[job.job_id] = ""
    house.run(60)
    house.until(job, "staged-in")
    assert house.calls()[1:] == [
        "setup((null) 0 #!/bin/bash)",
        "setup((null) 0 #BB_LUA 1)",
        "data_in(1 job.1/replaced)",
    ]


def test_what_the_script_says_against_a_job_is_told_and_its_files_go(site):
    house = site('function slurm_bb_job_process() return slurm.ERROR, "not today" end')
    answer = house.ask(SubmitJob(JobSpec(name="a"), "#!/bin/sh\n#BB_LUA\n"), USER)
    assert answer.text == "burst_buffer/lua: not today\nBurst Buffer request invalid"
    assert not list((house.folder / "files").iterdir())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('function slurm_bb_setup() return slurm.ERROR, "no" end', "no"),
        ("function slurm_bb_setup() return slurm.ERROR end", "(null)"),
        ("function slurm_bb_setup() while true do end end", "Timeout @ 2000 msec"),
        ("function slurm_bb_setup() os.exit(3) end", "(null)"),
    ],
)
def test_a_function_that_fails_holds_the_job_with_what_it_said(site, text, said):
    house = site(text)
    job = house.submit(extra={"bb": "#BB_LUA"})
    house.run(60)
    house.goes_on(lambda: job.reason == "BurstBufferOperation")
    assert job.reason_detail == f"burst_buffer/lua: slurm_bb_setup: {said}"


def test_a_stage_that_is_cut_short_is_killed_and_torn_down(site):
    house = site("""
      function slurm_bb_data_in(id)
        note("data_in", id) os.execute("sleep 1.9") note("slept")
        return slurm.SUCCESS
      end
    """)
    job = house.submit(extra={"bb": "#BB_LUA"})
    house.run(60)
    house.goes_on(lambda: "data_in(1)" in house.calls())
    house.cancel(job)
    house.until(job, "complete")
    assert house.calls()[-1] == "job_teardown(1 job.1/script true)"
    assert "slept()" not in house.calls()


def test_pools_are_asked_for_now_and_again(site):
    house = site()
    script = house.folder / "burst_buffer.lua"
    script.write_text(script.read_text().replace('"quantity":100', '"quantity":7'))
    assert house.table.pools["fast"].total == 1000
    house.run(31)
    house.goes_on(lambda: house.table.pools["fast"].total == 70)
    script.write_text(script.read_text().replace("pools", "pulls", 1).replace('"pools"', '"p"'))
    house.run(31)
    house.goes_on(lambda: not house.programs._running)
    assert house.table.pools["fast"].total == 70  # of nonsense nothing is made


def test_the_status_is_what_the_script_says(site):
    house = site('function slurm_bb_get_status(...) return 0, "asked " .. select("#", ...) end')
    told: list[str] = []
    house.core.ask_buffers(["a", "b c"], told.append)
    house.goes_on(lambda: told)
    assert told == ["asked 2"]
