"""Burst buffers from the stage-in before a job to the teardown behind it.

Expected values are what 22.05.8 with burst_buffer/lua did with the same jobs, unless a test says
otherwise.
"""

from __future__ import annotations

import pytest
from buffer_harness import GIB, BufferHarness
from controller_harness import ROOT

from understudy.controller.jobs.buffers import AT_ONCE
from understudy.controller.tables.burst_buffers import BufferState
from understudy.model.burst_buffer_conf import BurstBufferConf
from understudy.model.errors import ErrorCode
from understudy.model.states import JobFlag, JobState
from understudy.protocol.messages import CancelJobs, ControlJobs

LINE = "#BB_LUA pool=fast capacity=1500MB"


def state_of(house: BufferHarness, job) -> str:
    return house.table.state_of(job)


def test_a_job_goes_through_all_stages_in_their_order():
    house = BufferHarness()
    job = house.ask_for(LINE)
    assert (state_of(house, job), job.reason) == ("pending", "BurstBufferResources")
    house.run(60)
    assert (state_of(house, job), job.reason) == ("staging-in", "BurstBufferStageIn")
    assert house.table.pools["fast"].used == 2 * GIB  # rounded up
    seen = []
    for expected in ("setup", "data_in"):
        assert house.stage_of(job) == expected
        house.end_stage(job)
        seen.append(state_of(house, job))
    assert seen == ["staging-in", "staged-in"]
    house.run(60)
    assert job.is_running
    assert job.flags & JobFlag.CONFIGURING
    assert (house.stage_of(job), state_of(house, job)) == ("pre_run", "pre-run")
    assert not house.launches(job)
    start = job.start_time
    house.run(5)
    house.end_stage(job)
    assert not job.flags & JobFlag.CONFIGURING
    assert job.start_time == start
    assert (house.launches(job)[0].job_id, state_of(house, job)) == (job.job_id, "running")
    house.complete(job)
    assert job.state is JobState.COMPLETED
    assert job.flags == JobFlag.STAGE_OUT
    assert job.reason_detail == "burst_buffer/lua: Stage-out in progress"
    assert (house.stage_of(job), state_of(house, job)) == ("post_run", "post-run")
    house.end_stage(job)
    assert (house.stage_of(job), state_of(house, job)) == ("data_out", "staging-out")
    house.end_stage(job)
    assert (house.stage_of(job), state_of(house, job)) == ("teardown", "teardown")
    assert not job.flags
    assert not job.reason_detail
    assert house.table.pools["fast"].used == 2 * GIB
    house.end_stage(job)
    assert state_of(house, job) == "complete"
    assert house.table.pools["fast"].used == 0
    assert not house.stages


def test_nodes_come_free_while_data_are_staged_out():
    house = BufferHarness(nodes=1)
    job = house.ask_for(LINE, exclusive=True)
    other = house.submit(exclusive=True, hold=True)
    house.begin(job)
    house.control("release", other)
    house.complete(job)
    house.run(60)
    assert other.is_running
    assert job.flags & JobFlag.STAGE_OUT


def test_a_job_waits_for_space_and_lower_ones_go_on():
    house = BufferHarness()
    first = house.ask_for("#BB_LUA pool=fast capacity=8G")
    second = house.ask_for("#BB_LUA pool=fast capacity=8G")
    plain = house.submit()
    house.run(60)
    assert house.stage_of(first) == "setup"
    assert (house.stage_of(second), second.reason) == ("", "BurstBufferResources")
    assert plain.is_running
    house.tear_down(first)  # up to its pre-run, and on
    house.run(60)
    house.end_stage(first)
    house.complete(first)
    assert house.buffer(second) is None
    house.tear_down(first)
    house.run(60)
    assert second.reason == "BurstBufferStageIn"


def test_a_job_that_asks_for_more_than_there_is_waits_for_ever_and_keeps_nobody():
    house = BufferHarness()
    large = house.ask_for("#BB_LUA pool=fast capacity=99999G")
    small = house.ask_for("#BB_LUA pool=fast capacity=1G")
    house.run(120)
    assert large.reason == "BurstBufferResources"
    assert large.expected_start is not None
    assert large.expected_start > house.time.now() + 364 * 86400
    assert house.stage_of(small) == "setup"


def test_a_stage_that_fails_before_the_job_holds_it_and_keeps_the_buffer():
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.run(60)
    house.end_stage(job, "failed on purpose")
    assert (job.priority, job.reason) == (0, "BurstBufferOperation")
    assert job.reason_detail == "burst_buffer/lua: slurm_bb_setup: failed on purpose"
    assert state_of(house, job) == "staging-in"
    assert house.table.pools["fast"].used == 2 * GIB
    house.run(600)
    assert job.reason_detail.endswith("failed on purpose")
    house.cancel(job)
    assert state_of(house, job) == "teardown"
    house.end_stage(job)
    assert (state_of(house, job), house.table.pools["fast"].used) == ("complete", 0)


def test_with_teardown_failure_the_buffer_of_a_failed_stage_goes():
    house = BufferHarness(conf=BurstBufferConf(flags=("TeardownFailure",)))
    job = house.ask_for(LINE)
    house.run(60)
    house.end_stage(job, "no")
    assert house.stage_of(job) == "teardown"
    house.end_stage(job)
    assert house.table.pools["fast"].used == 0
    assert job.priority == 0


def test_a_pre_run_that_fails_requeues_the_job_and_tears_the_buffer_down():
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.stage_in(job)
    house.end_stage(job, "failed")
    assert job.is_pending
    assert house.stage_of(job) == "teardown"
    house.acknowledge()
    house.epilog(job)
    assert (job.priority > 0, job.reason_detail) == (True, "Burst buffer pre_run error")
    house.end_stage(job)
    house.run(200)
    assert house.stage_of(job) == "setup"  # all over again


@pytest.mark.parametrize("stage", ["post_run", "data_out"])
def test_a_stage_that_fails_behind_the_job_leaves_it_in_stage_out(stage):
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.begin(job)
    house.complete(job)
    while house.stage_of(job) != stage:
        house.end_stage(job)
    house.end_stage(job, "failed")
    house.run(900)
    assert job.flags == JobFlag.STAGE_OUT
    assert job.reason_detail == f"burst_buffer/lua: slurm_bb_{stage}: failed"
    assert house.table.pools["fast"].used == 2 * GIB
    house.ask(CancelJobs([str(job.job_id)], hurry=True))
    house.tear_down(job)
    assert (job.flags, house.table.pools["fast"].used) == (JobFlag.NONE, 0)


def test_a_teardown_is_tried_three_times_and_then_given_up():
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.begin(job)
    house.complete(job)
    house.end_stage(job)
    house.end_stage(job)
    for _ in range(2):
        house.end_stage(job, "failed")
        assert job.reason_detail == "burst_buffer/lua: teardown: failed"
        assert not house.stage_of(job)
        house.run(10)
        assert house.stage_of(job) == "teardown"
    house.end_stage(job, "failed")
    assert house.table.pools["fast"].used == 0
    house.run(60)
    assert not house.stages


def test_who_depends_on_a_job_waits_for_its_stage_out_if_both_have_buffers():
    house = BufferHarness()
    first = house.ask_for("#BB_LUA pool=fast capacity=1G")
    after = f"{first.job_id}"
    both = house.ask_for("#BB_LUA pool=fast capacity=1G", dependency=f"afterok:{after}")
    plain = house.submit(dependency=f"afterok:{after}")
    for_it = house.submit(dependency=f"afterburstbuffer:{after}")
    house.begin(first)
    house.complete(first)
    house.run(60)
    assert plain.is_running
    assert (both.reason, for_it.reason) == ("Dependency", "Dependency")
    house.end_stage(first)
    house.end_stage(first)
    house.run(60)
    assert house.stage_of(both) == "setup"
    assert for_it.is_running


def test_a_job_that_was_held_for_a_stage_is_released_by_administrators_and_staged_again():
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.run(60)
    house.end_stage(job)
    house.end_stage(job, "no")
    assert house.control("release", job) == ErrorCode.ACCESS_DENIED
    assert job.reason_detail.endswith("slurm_bb_data_in: no")
    assert house.control("release", job, ROOT) == 0
    assert (house.stage_of(job), job.reason_detail) == ("setup", "")
    house.stage_in(job)
    assert job.is_running


def test_cancelled_before_it_runs_nothing_is_staged_out():
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.run(60)
    house.cancel(job)
    assert job.state is JobState.CANCELLED
    assert (house.stage_of(job), house.buffer(job).hurry) == ("teardown", True)
    house.end_stage(job)
    assert house.table.pools["fast"].used == 0


def test_cancelled_in_its_pre_run_nothing_is_staged_out():
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.stage_in(job)
    house.cancel(job)
    assert job.state is JobState.CANCELLED
    assert not job.flags & JobFlag.STAGE_OUT
    assert (house.stage_of(job), house.buffer(job).hurry) == ("teardown", True)


@pytest.mark.parametrize(("hurry", "stage"), [(False, "post_run"), (True, "teardown")])
def test_cancelled_while_it_runs_its_data_are_staged_out_unless_in_a_hurry(hurry, stage):
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.begin(job)
    house.ask(CancelJobs([str(job.job_id)], hurry=hurry))
    assert house.stage_of(job) == stage


def test_cancelled_while_it_stages_out_it_goes_on_unless_in_a_hurry():
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.begin(job)
    house.complete(job)
    house.ask(CancelJobs([str(job.job_id)]))
    assert house.stage_of(job) == "post_run"
    house.ask(CancelJobs([str(job.job_id)], hurry=True))
    assert house.stage_of(job) == "teardown"
    assert job.flags & JobFlag.STAGE_OUT
    house.end_stage(job)
    assert (job.flags, job.state) == (JobFlag.NONE, JobState.COMPLETED)


def test_news_of_a_stage_that_is_over_are_none():
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.run(60)
    _, stale = house.stages[job.job_id]
    house.cancel(job)
    stale("failed")
    assert house.stage_of(job) == "teardown"
    house.end_stage(job)
    stale("")
    assert house.table.pools["fast"].used == 0


def test_a_requeued_job_stages_out_and_is_staged_in_again():
    house = BufferHarness()
    job = house.ask_for(LINE)
    house.begin(job)
    assert house.control("requeue", job, ROOT) == 0
    assert (job.is_pending, job.flags & JobFlag.STAGE_OUT) == (True, JobFlag.NONE)
    assert house.stage_of(job) == "post_run"
    house.acknowledge()
    house.epilog(job)
    house.tear_down(job)
    assert house.table.pools["fast"].used == 0
    house.run(200)
    assert house.stage_of(job) == "setup"


def test_a_held_job_keeps_what_is_staged():
    house = BufferHarness(nodes=1)
    house.submit(exclusive=True)
    job = house.ask_for(LINE, exclusive=True)
    house.stage_in(job)
    assert (state_of(house, job), job.reason) == ("staged-in", "Resources")
    house.control("hold", job)
    house.run(120)
    assert (state_of(house, job), house.table.pools["fast"].used) == ("staged-in", 2 * GIB)


def test_a_policy_that_stages_nothing_gives_the_buffer_from_start_to_end():
    house = BufferHarness(stages_buffers=False)
    first = house.ask_for("#BB_LUA pool=fast capacity=8G")
    second = house.ask_for("#BB_LUA pool=fast capacity=8G")
    assert first.is_running
    assert state_of(house, first) == "running"
    assert house.table.pools["fast"].free == 2 * GIB
    house.run(60)
    assert second.is_pending
    house.complete(first)
    assert not first.flags
    house.run(60)
    assert second.is_running
    house.complete(second)
    assert house.table.pools["fast"].used == 0
    assert not house.stages


def test_no_more_buffers_than_128_are_in_a_stage_at_a_time():
    house = BufferHarness()
    jobs = [house.ask_for("#BB_LUA") for _ in range(AT_ONCE + 3)]
    house.run(120)
    at_work = [job for job in jobs if house.stage_of(job)]
    assert len(at_work) == AT_ONCE
    house.end_stage(at_work[0])
    assert sum(house.stage_of(job) == "setup" for job in jobs) == AT_ONCE
    waiting = next(job for job in jobs if not house.stage_of(job))
    house.cancel(waiting)
    for job in at_work[1:4]:
        house.end_stage(job)
    assert house.stage_of(waiting) == "teardown"


def test_of_an_array_some_tasks_get_buffers():
    house = BufferHarness(array_stage_count=2)
    job = house.ask_for("#BB_LUA pool=fast capacity=1G", array="0-5")
    house.run(60)
    tasks = list(job.array.records.values())
    assert sorted(len(house.stage_of(each)) > 0 for each in tasks) == [False, True, True]
    assert house.table.pools["fast"].used == 2 * GIB


def test_a_pass_gives_tasks_records_also_where_the_array_is_held():
    house = BufferHarness(array_stage_count=2)
    job = house.ask_for("#BB_LUA pool=fast capacity=1G", array="0-5", hold=True)
    house.run(60)
    tasks = list(job.array.records.values())
    assert sorted(each.array_task_id for each in tasks if not each.array_tasks) == [0, 1]
    assert not any(house.stage_of(each) for each in tasks)


def test_root_may_have_no_buffer():
    house = BufferHarness()
    assert house.refused(ROOT, extra={"bb": LINE}) == ErrorCode.BURST_BUFFER_DENIED


def test_users_are_refused_by_the_two_lists():
    for conf in (BurstBufferConf(allow=("bob",)), BurstBufferConf(deny=("1000",))):
        house = BufferHarness(conf=conf)
        assert house.refused(extra={"bb": LINE}) == ErrorCode.BURST_BUFFER_DENIED
    house = BufferHarness(conf=BurstBufferConf(allow=("ann",)))
    assert house.ask_for(LINE).burst_buffer is not None


@pytest.mark.parametrize(
    "line",
    [
        "#BB_LUA pool=slow capacity=1G",
        "#BB_LUA capacity=1G",
        "#BB_LUA pool=fast capacity=0",
        "#BB_LUA pool=fast capacity=0x10",
    ],
)
def test_what_cannot_be_is_refused(line):
    assert BufferHarness().refused(extra={"bb": line}) == ErrorCode.BURST_BUFFER_INVALID


def test_a_batch_job_whose_text_has_no_directive_has_no_buffer():
    job = BufferHarness().ask_for("pool=fast capacity=1G")
    assert job.burst_buffer is None
    assert "bb" not in job.spec.extra


def test_a_reconfiguration_changes_what_there_is_and_nobody_loses_his():
    house = BufferHarness()
    job = house.ask_for("#BB_LUA pool=fast capacity=8G")
    house.run(60)
    pools = {name: pool for name, pool in house.table.pools.items() if name == "fast"}
    pools["fast"].total = 4 * GIB
    house.table.resize(list(pools.values()))
    assert list(house.table.pools) == ["fast"]
    assert house.table.pools["fast"].free == -4 * GIB
    house.cancel(job)
    house.end_stage(job)
    assert house.table.pools["fast"].free == 4 * GIB
    assert house.ask(ControlJobs("release", [str(job.job_id)])) is not None
    assert BufferState.RUNNING not in {each.state for each in house.table.buffers.values()}
