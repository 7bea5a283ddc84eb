"""Burst buffers beside all else: persistent ones, reservations, restarts, mail, what is shown.

Covers: controller/jobs/stage_in, controller/jobs/buffer_requests, controller/views/burst_buffers,
controller/edge/burst_buffers.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from buffer_harness import GIB, BufferHarness
from controller_harness import OTHER, ROOT, USER

from understudy.commands.scontrol.burst_buffer import lines
from understudy.controller.edge.burst_buffers import emulate, set_runner
from understudy.controller.jobs.buffers import SAVED_AS, Stage, decode, encode, resume
from understudy.controller.jobs.launch import buffer_is_ready
from understudy.controller.notices.mail import Mailer
from understudy.controller.saved import documents
from understudy.controller.tables.burst_buffers import BufferState, BurstBuffers, Pool
from understudy.model.burst_buffer_conf import BurstBufferConf
from understudy.model.errors import ErrorCode
from understudy.model.records import columns
from understudy.model.states import JobFlag
from understudy.protocol.messages import (
    AllocateJob,
    BufferStatus,
    Emulation,
    Failure,
    GetBufferStatus,
    JobSpec,
    SubmitJob,
    Submitted,
    UpdateReservation,
)

PERSISTENT = BurstBufferConf(flags=("EnablePersistent",))
CREATE = "#BB create_persistent name=kept capacity=4G"


def warp(**options) -> BufferHarness:
    options.setdefault("conf", PERSISTENT)
    return BufferHarness(Pool("wlm", 10 * GIB, GIB), kind="datawarp", **options)


def test_a_persistent_buffer_outlives_its_maker_until_it_is_destroyed():
    house = warp()
    maker = house.ask_for(CREATE)
    user = house.ask_for("#DW persistentdw name=kept")
    house.run(60)
    assert user.reason == "BurstBufferResources"  # it is not there yet
    assert house.table.persistent["kept"].state is BufferState.ALLOCATING
    house.begin(maker)
    house.complete(maker)
    house.tear_down(maker)
    assert house.table.persistent["kept"].state is BufferState.ALLOCATED
    assert house.table.pools["wlm"].used == 4 * GIB
    house.run(60)
    house.begin(user)
    gone = house.ask_for("#BB destroy_persistent name=kept")
    house.run(60)
    assert not house.stage_of(gone)  # it is in use
    house.complete(user)
    house.tear_down(user)
    house.run(60)
    house.end_stage(gone)
    assert not house.table.persistent
    assert house.table.pools["wlm"].used == 0


def test_persistent_buffers_are_for_operators_unless_enabled_and_never_of_arrays():
    house = warp(conf=BurstBufferConf())
    assert house.refused(extra={"bb": CREATE}) == ErrorCode.BURST_BUFFER_DENIED
    house = warp()
    assert house.refused(extra={"bb": CREATE}, array="0-1") == ErrorCode.BURST_BUFFER_INVALID
    house.run(60)
    house.begin(house.ask_for(CREATE))
    destroy = {"bb": "#BB destroy_persistent name=kept"}
    assert house.refused(OTHER, extra=destroy) == ErrorCode.BURST_BUFFER_DENIED


def test_a_persistent_buffer_that_was_not_made_is_none_and_one_not_destroyed_stays():
    house = warp()
    maker = house.ask_for(CREATE)
    house.run(60)
    house.cancel(maker)
    house.end_stage(maker)
    assert not house.table.persistent
    assert house.table.pools["wlm"].used == 0
    maker = house.ask_for(CREATE)
    house.begin(maker)
    gone = house.ask_for("#BB destroy_persistent name=kept")
    house.run(60)
    assert house.table.persistent["kept"].state is BufferState.DELETING
    house.cancel(gone)
    house.end_stage(gone)
    assert house.table.persistent["kept"].state is BufferState.ALLOCATED


def test_a_pool_that_is_gone_gives_nothing():
    house = BufferHarness()
    house.submit(exclusive=True, min_nodes=4)
    job = house.ask_for("#BB_LUA pool=items capacity=1", begin_time=house.time.now() + 300)
    house.table.resize([Pool("fast", 10 * GIB, GIB)])
    house.run(400)
    assert (house.stage_of(job), job.reason) == ("", "BurstBufferResources")
    assert house.table.exceeds(job)


def test_the_short_form_of_datawarp_is_kept_as_its_line():
    job = warp().ask_for("capacity=1G access=striped type=scratch")
    assert job.spec.extra["bb"] == "#DW jobdw capacity=1GiB access_mode=striped type=scratch"
    assert job.burst_buffer.sizes == (("wlm", GIB),)


def test_datawarp_revokes_what_is_staged_for_a_job_that_is_expected_later():
    house = warp(nodes=1)
    house.submit(exclusive=True, time_limit_s=600)
    later = house.ask_for("#DW jobdw capacity=8G", exclusive=True, time_limit_s=3600)
    house.run(60)
    house.end_stage(later)
    house.end_stage(later)
    assert house.buffer(later).state is BufferState.STAGED_IN
    sooner = house.ask_for("#DW jobdw capacity=8G", exclusive=True, time_limit_s=600)
    house.update(sooner, ROOT, priority=str(later.priority + 100))
    house.run(120)
    assert house.stage_of(later) == "teardown"
    house.end_stage(later)
    house.run(60)
    assert house.stage_of(sooner) == "setup"


def test_lua_revokes_nothing():
    house = BufferHarness(nodes=1)
    house.submit(exclusive=True, time_limit_s=600)
    later = house.ask_for("#BB_LUA pool=fast capacity=8G", exclusive=True, time_limit_s=3600)
    house.stage_in(later)
    sooner = house.ask_for("#BB_LUA pool=fast capacity=8G", exclusive=True, time_limit_s=600)
    house.update(sooner, ROOT, priority=str(later.priority + 100))
    house.run(120)
    assert house.buffer(later).state is BufferState.STAGED_IN


def test_the_script_asks_and_so_does_the_option_which_comes_first():
    house = BufferHarness()
    script = "#!/bin/sh\n#BB_LUA pool=items capacity=3\ntrue\n#BB_LUA pool=slow\n"
    spec = JobSpec(name="j", extra={"bb": "#BB_LUA pool=fast capacity=1G"})
    answer = house.ask(SubmitJob(spec, script, Emulation(9.0)), USER)
    assert isinstance(answer, Submitted)
    job = house.core.tables.jobs[answer.job_id]
    assert job.burst_buffer.text == "#BB_LUA pool=fast capacity=1G\n#BB_LUA pool=items capacity=3"
    assert house.table.wanted(job) == {"fast": GIB, "items": 3}


def test_an_interactive_job_needs_the_directive():
    house = BufferHarness()
    spec = JobSpec(name="j", extra={"bb": "pool=fast capacity=1G"})
    answer = house.ask(AllocateJob(spec), USER)
    assert isinstance(answer, Failure)
    assert answer.code == ErrorCode.BURST_BUFFER_INVALID


def test_a_job_of_no_nodes_may_have_none_with_lua():
    code = BufferHarness().refused(extra={"bb": "#BB_LUA"}, min_nodes=0)
    assert code == ErrorCode.BURST_BUFFER_INVALID


def test_a_reservation_keeps_space_for_its_jobs():
    house = BufferHarness()
    changes = {
        "starttime": str(int(house.time.now())),
        "duration": "600",
        "users": "ann",
        "nodecnt": "1",
        "burstbuffer": "lua:fast:8G",
    }
    house.ask(UpdateReservation("create", "r", changes), ROOT)
    outside = house.ask_for("#BB_LUA pool=fast capacity=4G")
    house.run(60)
    assert (house.stage_of(outside), outside.reason) == ("", "BurstBufferResources")
    inside = house.ask_for("#BB_LUA pool=fast capacity=4G", reservation="r")
    house.run(60)
    assert house.stage_of(inside) == "setup"
    house.ask(UpdateReservation("delete", "r", {}), ROOT)


@pytest.mark.parametrize(
    "stage", ["setup", "data_in", "pre_run", "post_run", "data_out", "teardown"]
)
def test_a_controller_that_comes_back_goes_on_or_stages_again(stage):
    house = BufferHarness()
    job = house.ask_for("#BB_LUA pool=fast capacity=1500MB")
    house.run(60)
    while house.stage_of(job) != stage:
        if house.stage_of(job) == "pre_run":
            house.end_stage(job)
            house.complete(job)
        else:
            house.end_stage(job)
            house.run(60)
    name = f"{SAVED_AS}{job.job_id}"
    saved = encode(house.core, name)
    state = house.buffer(job).state
    house.table.forget(job.job_id)
    assert encode(house.core, name) is None
    decode(house.core, saved)
    house.stages.clear()
    assert house.buffer(job).state is state
    assert house.table.pools["fast"].used == 2 * GIB
    resume(house.core, house.time.now(), buffer_is_ready)
    if stage in ("setup", "data_in", "teardown"):
        assert house.stage_of(job) == "teardown"
        house.end_stage(job)
        assert house.table.pools["fast"].used == 0
        house.run(30)
        assert not house.stages
        if stage != "teardown":
            house.run(60)
            assert house.stage_of(job) == "setup"
    elif stage == "data_out":
        assert house.stage_of(job) == "post_run"  # as 22.05.8 does it again
    else:
        assert house.stage_of(job) == stage


def test_the_store_saves_each_buffer_as_a_document_of_its_own():
    house = BufferHarness()
    noted = []
    house.core.journal.document = noted.append
    job = house.ask_for("#BB_LUA pool=fast capacity=1G")
    house.run(60)
    assert set(noted) == {f"burst_buffer/{job.job_id}"}
    record = documents.encode(house.core, noted[0])
    house.table.forget(job.job_id)
    assert documents.encode(house.core, noted[0]) is None  # it is taken out of the store
    documents.decode(house.core, noted[0], record)
    assert house.buffer(job).space == {"fast": GIB}
    house.core.tables.burst_buffers = BurstBuffers()
    documents.decode(house.core, noted[0], record)  # they are off by now
    assert not house.table.buffers


def test_a_buffer_whose_job_is_gone_is_given_up():
    house = BufferHarness()
    job = house.ask_for("#BB_LUA pool=fast capacity=1G")
    house.run(60)
    saved = encode(house.core, f"{SAVED_AS}{job.job_id}")
    house.cancel(job)
    house.end_stage(job)
    fields = msgspec.msgpack.decode(saved)
    fields[1] = 4711
    decode(house.core, msgspec.msgpack.encode(fields))
    assert house.table.pools["fast"].used == GIB
    resume(house.core, house.time.now(), buffer_is_ready)
    assert house.table.pools["fast"].used == 0


def test_mail_tells_that_the_data_are_where_they_belong():
    house = BufferHarness(mail_program="/bin/mail")
    sent = []
    house.core.run_script = lambda words, _environment, _done: sent.append(words[2])
    house.core.mailer = Mailer(house.core)
    job = house.ask_for("#BB_LUA", mail_type="STAGE_OUT")
    house.begin(job)
    house.complete(job)
    house.end_stage(job)
    house.run(65)
    house.end_stage(job)
    assert sent == [f"Slurm Job_id={job.job_id} Name=j Staged Out, StageOut time 00:01:05"]


def _as_dict(names, row):
    return dict(zip(names, row, strict=True))


def shown(house: BufferHarness, sender=None) -> list[str]:
    from understudy.controller.views.query import run_query
    from understudy.protocol.messages import Query

    names = columns("burst_buffer")
    generator = run_query(house.core, Query("burst_buffer", names, {}), sender)
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            return [line for row in stop.value.rows for line in lines(_as_dict(names, row))]


def test_what_scontrol_shows_is_what_slurm_shows(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    house = BufferHarness(conf=BurstBufferConf(timeouts_s={
        "StageInTimeout": 40, "StageOutTimeout": 40, "ValidateTimeout": 5, "OtherTimeout": 20,
    }))  # fmt: skip
    first = house.ask_for("#BB_LUA pool=fast capacity=1500MB")
    second = house.ask_for("#BB_LUA")
    house.run(60)
    created = [line.partition("CreateTime=")[2].partition(" ")[0] for line in shown(house)[8:10]]
    on_all = "Pool=(null) Size=0 State=allocated UserID=ann(1000)"
    on_fast = "Pool=fast Size=2GiB State=allocated UserID=ann(1000)"
    assert shown(house) == [
        "Name=lua DefaultPool=(null) Granularity=1 TotalSpace=0 FreeSpace=0 UsedSpace=0",
        "PoolName[0]=fast Granularity=1GiB TotalSpace=10GiB FreeSpace=8GiB UsedSpace=2GiB",
        "PoolName[1]=items Granularity=1 TotalSpace=10 FreeSpace=10 UsedSpace=0",
        "Flags=DisablePersistent",
        "StageInTimeout=40 StageOutTimeout=40 ValidateTimeout=5 OtherTimeout=20",
        "GetSysState=(null)",
        "GetSysStatus=(null)",
        "Allocated Buffers:",
        f"  JobID={second.job_id} CreateTime={created[0]} {on_all}",
        f"  JobID={first.job_id} CreateTime={created[1]} {on_fast}",
        "Per User Buffer Use:",
        "  UserID=ann(1000) Used=2GiB",
    ]


def test_with_private_data_users_see_their_own():
    house = BufferHarness(conf=BurstBufferConf(flags=("PrivateData",), deny=("bob",)))
    house.ask_for("#BB_LUA pool=fast capacity=1G")
    house.run(60)
    assert not any("JobID" in line for line in shown(house, OTHER))
    assert any("JobID" in line for line in shown(house, ROOT))
    assert "DenyUsers=bob" in shown(house)


def test_emulated_stages_take_what_the_model_says():
    conf = BurstBufferConf(seconds={"data_in": 5.0}, rates={"data_in": 128.0 * (1 << 20)})
    house = BufferHarness(conf=conf)
    set_runner(house.core, SimpleNamespace(), Path())
    job = house.ask_for("#BB_LUA pool=fast capacity=1G data_in=3")
    house.run(5)
    begun = house.buffer(job).created
    house.run(begun + 15.9 - house.time.now())
    assert house.buffer(job).state is BufferState.STAGING_IN
    house.run(0.2)
    assert house.table.state_of(job) in ("staged-in", "running")


@pytest.mark.parametrize(
    ("words", "limit_s", "message", "takes_s"),
    [
        ("", 300, "", 2),
        ("fail=setup", 300, "failed", 2),
        ("setup=400", 300, "Timeout @ 300000 msec", 300),
    ],
)
def test_an_emulated_stage_ends_in_time(words, limit_s, message, takes_s):
    house = BufferHarness(conf=BurstBufferConf(seconds={"setup": 2.0}))
    job = house.ask_for(f"#BB_LUA {words}")
    house.run(60)
    said = []
    stage = Stage("setup", house.buffer(job), job, limit_s)
    emulate(house.core, stage, lambda text, _: said.append((text, house.time.now())))
    begin = house.time.now()
    house.run(1000)
    assert said == [(message, begin + takes_s)]


def test_a_real_stage_is_a_program_that_is_given_the_script():
    house = BufferHarness(conf=BurstBufferConf(program="/site/bb"), emulates_jobs=False)
    calls = []
    programs = SimpleNamespace(run_told=lambda *call: calls.append(call) or (lambda: None))
    set_runner(house.core, programs, Path())
    script = "#!/bin/sh\n#BB_LUA pool=fast capacity=1G dir=/x/%u/%j\necho %u\n"
    answer = house.ask(SubmitJob(JobSpec(name="j"), script, None), USER)
    house.run(60)
    [(words, environment, given, limit_s, done)] = calls
    assert words == ["/site/bb", "setup", str(answer.job_id)]
    assert (environment["BB_POOL"], environment["BB_SIZE"]) == ("fast", str(GIB))
    assert f"dir=/x/ann/{answer.job_id}\necho %u" in given
    assert limit_s == 300
    done("")
    assert calls[-1][0][1] == "data_in"
    assert calls[-1][3] == 86400


@pytest.mark.parametrize(
    ("kind", "values", "program", "failure"),
    [
        ("lua", {"program": "/site/bb"}, ["/site/bb", "get_status"],
         "Error running slurm_bb_get_status\n"),
        ("datawarp", {"get_sys_status": "/opt/dwstat", "program": "/x"}, ["/opt/dwstat"],
         "Error running /opt/dwstat\n"),
        ("lua", {}, None, ""),
        ("datawarp", {}, None, ""),
    ],
)  # fmt: skip
def test_what_bbstat_prints_is_asked_of_the_sites_program(kind, values, program, failure):
    house = BufferHarness(kind=kind, conf=BurstBufferConf(**values))
    calls = []
    programs = SimpleNamespace(run_asked=lambda *call: calls.append(call))
    set_runner(house.core, programs, Path())
    answer = house.ask(GetBufferStatus(["a", "b"]), USER)
    if program is None:
        assert answer.answer == BufferStatus("")
        return
    [(words, limit_s, done)] = calls
    assert (words, limit_s) == ([*program, "a", "b"], 300)
    done("all is well\n")
    assert answer.answer == BufferStatus("all is well\n")
    failed = house.ask(GetBufferStatus([]), USER)
    calls[-1][2](None)
    assert failed.answer == BufferStatus(failure)


def test_buffers_of_a_heterogeneous_job_are_those_of_its_components():
    house = BufferHarness()
    line = {"bb": "#BB_LUA pool=fast capacity=1G"}
    message = SubmitJob(
        JobSpec(name="a", extra=line), "#!/bin/sh\n#BB_LUA pool=items capacity=2\n",
        Emulation(9.0), components=[JobSpec(name="b", extra=line)],
    )  # fmt: skip
    leader = house.core.tables.jobs[house.ask(message, USER).job_id]
    wanted = [house.table.wanted(each) for each in leader.het.components.values()]
    assert wanted == [{"fast": GIB, "items": 2}, {"fast": GIB}]
    house.run(60)
    for each in leader.het.components.values():
        house.end_stage(each)
        house.end_stage(each)
    house.run(60)
    assert leader.is_running
    assert leader.flags & JobFlag.CONFIGURING
