"""A site's burst_buffer.lua in the lives of buffers: which of its functions keeps a job from what.
As Slurm 22.05.8 was seen to do.

Covers: controller/jobs/buffers, controller/jobs/buffer_requests.
"""

from pathlib import Path
from types import SimpleNamespace

import pytest
from buffer_harness import BufferHarness
from controller_harness import ROOT, USER

from understudy.controller.edge.burst_buffers import set_runner
from understudy.controller.facts.environment import job_environment
from understudy.model import burst_buffer_conf
from understudy.model.errors import ConfigError, ErrorCode
from understudy.protocol.messages import JobSpec, SubmitJob

LINE = "#BB_LUA pool=items capacity=2"


class Script:
    """What the controller waits for, said by the test."""

    def __init__(self) -> None:
        self.refusal: str | None = None
        self.environment: list[str] | None = []
        self.asked: list[str] = []

    def process(self, job, script):
        self.asked.append(f"process {job.job_id} {script}")
        return self.refusal

    def paths(self, job):
        self.asked.append(f"paths {job.job_id}")
        return self.environment


@pytest.fixture
def house():
    made = BufferHarness()
    made.core.buffer_script = made.script = Script()
    return made


def tell(house, job, told):
    """The stage that runs for the job ends well, and tells that."""
    _, done = house.stages.pop(job.job_id)
    done("", told)
    house.run(0)


def to_size(house):
    job = house.ask_for(LINE)
    house.run(60)
    house.end_stage(job)
    house.end_stage(job)
    assert house.stage_of(job) == "real_size"
    return job


@pytest.mark.parametrize(
    ("told", "size"), [("", 2), ("1", 2), ("5", 5), ("5x", 5), ("x", 2), ("-3", 2)]
)
def test_a_buffer_grows_to_its_real_size_and_never_shrinks(house, told, size):
    job = to_size(house)
    tell(house, job, told)
    assert house.buffer(job).state == "staged-in"
    assert (house.buffer(job).size, house.table.pools["items"].used) == (size, size)
    house.cancel(job)
    house.tear_down(job)
    assert house.table.pools["items"].used == 0


def test_a_real_size_that_fails_holds_the_job(house):
    job = to_size(house)
    house.end_stage(job, "real size failed")
    assert job.reason_detail == "burst_buffer/lua: slurm_bb_real_size: real size failed"
    assert job.priority == 0


def test_one_without_space_is_not_measured(house):
    job = house.ask_for("#BB_LUA")
    house.stage_in(job)
    assert (house.stage_of(job), house.script.asked) == (
        "pre_run",
        ["process 1 #!/bin/sh\n", "paths 1"],
    )


def test_what_the_script_tells_is_in_the_environment_of_the_job(house):
    house.script.environment = ["BB_DIR=/fast/1"]
    job = house.ask_for("#BB_LUA")
    house.begin(job)
    assert "BB_DIR=/fast/1" in job_environment(house.core, job)


def test_paths_that_fail_hold_the_job_until_somebody_releases_it(house):
    house.script.environment = None
    job = house.ask_for("#BB_LUA")
    house.stage_in(job)
    house.run(300)
    assert job.is_pending
    assert (job.priority, job.reason, house.buffer(job).state) == (0, "JobHeldAdmin", "pre-run")
    assert house.script.asked.count("paths 1") == 1
    house.script.environment = []
    house.control("release", job, ROOT)
    house.run(60)
    assert house.stage_of(job) == "pre_run"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("", "Burst Buffer request invalid"),
        ("no", "burst_buffer/lua: no\nBurst Buffer request invalid"),
    ],
)
def test_a_job_that_the_script_refuses_has_had_a_number(house, said, text):
    house.script.refusal = said
    spec = JobSpec(name="a", extra={"bb": "#BB_LUA"})
    answer = house.ask(SubmitJob(spec, "#!/bin/sh\n"), USER)
    assert (answer.code, answer.text) == (ErrorCode.BURST_BUFFER_INVALID, text)
    assert house.core.tables.jobs == {}
    house.script.refusal = None
    assert house.ask_for("#BB_LUA").job_id == 2


def test_words_of_ours_are_the_scripts_own(house):
    job = house.ask_for("#BB_LUA fail=paths setup=never")
    assert (job.burst_buffer.fails, job.burst_buffer.seconds) == (frozenset(), {})


def test_a_job_without_a_buffer_is_no_business_of_the_script(house):
    house.submit()
    house.run(60)
    assert house.script.asked == []


def test_without_what_runs_it_the_controller_does_not_start(monkeypatch):
    monkeypatch.setattr(burst_buffer_conf, "find_spec", lambda _name: None)
    conf = burst_buffer_conf.BurstBufferConf(script="/site/burst_buffer.lua")
    made = BufferHarness(conf=conf, emulates_jobs=False)
    with pytest.raises(ConfigError, match=r"burst_buffer.lua needs lupa, .* 'understudy\[lua\]'"):
        set_runner(made.core, SimpleNamespace(), Path())
    made = BufferHarness(conf=conf)
    set_runner(made.core, SimpleNamespace(), Path())
    assert made.core.buffer_script is None
