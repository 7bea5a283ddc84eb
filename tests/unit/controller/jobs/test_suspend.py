"""Jobs that are suspended and resumed, and what they keep meanwhile."""

import pytest
from controller_harness import OTHER, ROOT, USER, Harness

from understudy.controller.edge.validate import validate
from understudy.controller.saved.records import decode_job, encode_job
from understudy.controller.saved.recover import recover
from understudy.model.states import JobFlag, JobState
from understudy.protocol.messages import (
    ControlJobs,
    CreateStep,
    SignalJob,
    SignalTasks,
    StepSpec,
    UpdateJobs,
)


def running(harness, **spec):
    job = harness.submit(**({"num_tasks": 4, "mem_per_node_mb": 1000} | spec))
    harness.run(0)
    harness.acknowledge()
    assert job.is_running
    return job


def signals(harness):
    return [sent.message.signal for sent in harness.sent(SignalJob)]


def test_a_suspended_job_stands_still_and_gives_up_its_cpus_but_not_its_memory():
    harness = Harness()
    job = running(harness, required_nodes="n1")
    harness.run(10)
    harness.ask(CreateStep(job.job_id, StepSpec()), USER)
    harness.run(20)
    assert harness.control("suspend", job, ROOT) == 0
    assert job.state is JobState.SUSPENDED
    assert signals(harness) == [19]
    table = harness.core.tables.nodes
    assert (table.free_cpus[0], table.free_memory[0]) == (4, 3000)
    assert job.priority == 0
    end = job.end_time
    harness.run(50)
    assert harness.query("jobs", "run_time_s", "pre_suspend_s") == [[30, 30]]
    assert harness.query("steps", "step", "run_time_s") == [["0", 20], ["batch", 30]]
    assert harness.control("resume", job, ROOT) == 0
    assert signals(harness) == [19, 18]
    assert job.is_running
    assert job.priority > 0
    assert job.end_time == end + 50
    assert (table.free_cpus[0], table.free_memory[0]) == (0, 3000)
    harness.run(5)
    assert harness.query("jobs", "run_time_s") == [[35]]
    harness.ask(CreateStep(job.job_id, StepSpec(overlap=True)), USER)
    harness.run(2)
    assert sorted(harness.query("steps", "run_time_s")) == [[2], [27], [37]]


def test_a_job_that_was_stopped_is_suspended_and_goes_on_when_it_is_resumed():
    harness = Harness()
    job = running(harness)
    harness.cancel(job, signal=19)
    assert job.flags == JobFlag.STOPPED
    harness.control("suspend", job, ROOT)
    assert (job.state, job.flags) == (JobState.SUSPENDED, JobFlag.NONE)
    harness.control("resume", job, ROOT)
    assert (job.state, job.flags) == (JobState.RUNNING, JobFlag.NONE)


def test_time_limits_do_not_end_suspended_jobs():
    harness = Harness()
    job = running(harness, time_limit_s=60)
    harness.run(10)
    harness.control("suspend", job, ROOT)
    harness.run(300)
    assert job.state is JobState.SUSPENDED
    harness.control("resume", job, ROOT)
    harness.run(49)
    assert job.is_running
    harness.run(40)
    assert job.state is JobState.TIMEOUT


def test_only_administrators_suspend_and_the_states_are_checked():
    harness = Harness()
    job = running(harness)
    assert harness.control("suspend", job, USER) == 2002
    assert harness.control("resume", job, ROOT) == 2087
    waiting = harness.submit(num_tasks=4, hold=True)
    assert harness.control("suspend", waiting, ROOT) == 2024
    assert harness.control("suspend", job, ROOT) == 0
    assert harness.control("suspend", job, ROOT) == 0
    harness.cancel(job)
    assert job.state is JobState.CANCELLED
    assert harness.control("suspend", job, ROOT) == 2021


def test_a_resumed_job_shares_its_cpus_with_whoever_has_them_by_then():
    harness = Harness()
    job = running(harness, required_nodes="n1")
    harness.control("suspend", job, ROOT)
    other = running(harness, required_nodes="n1")
    assert harness.control("resume", job, ROOT) == 0
    table = harness.core.tables.nodes
    assert table.free_cpus[0] == 0
    assert table.free_memory[0] == 2000
    harness.complete(other)
    assert table.free_cpus[0] == 0  # all its own now
    harness.complete(job)
    assert table.free_cpus[0] == 4
    assert table.idle_nodes & 1


def test_a_resumed_job_with_whole_nodes_has_those_to_itself_that_nobody_took_meanwhile():
    harness = Harness()
    job = running(harness, required_nodes="n[1-2]", min_nodes=2, exclusive=True)
    harness.control("suspend", job, ROOT)
    other = running(harness, required_nodes="n1")
    harness.control("resume", job, ROOT)
    table = harness.core.tables.nodes
    assert table.exclusive_nodes & 0b11 == 0b11
    harness.complete(other)
    assert table.exclusive_nodes & 0b11 == 0b11
    harness.complete(job)
    assert table.exclusive_nodes & 0b11 == 0


def test_who_ends_first_of_two_that_share_leaves_the_cpus_to_the_other():
    harness = Harness()
    job = running(harness, required_nodes="n1")
    harness.control("suspend", job, ROOT)
    other = running(harness, required_nodes="n1")
    harness.control("resume", job, ROOT)
    harness.complete(job)
    assert harness.core.tables.nodes.free_cpus[0] == 0
    harness.complete(other)
    assert harness.core.tables.nodes.free_cpus[0] == 4


def test_a_suspended_job_that_is_requeued_is_held():
    harness = Harness()
    job = running(harness)
    harness.control("suspend", job, ROOT)
    assert harness.control("requeue", job, ROOT) == 0
    harness.acknowledge()
    harness.epilog(job)
    assert job.is_pending
    assert job.held_by == "JobHeldAdmin"
    assert (job.suspend_time, job.pre_suspend_s) == (None, 0)


@pytest.mark.parametrize(("action", "reason"), [("hold", "JobHeldAdmin"), ("uhold", "JobHeldUser")])
def test_a_job_that_is_held_while_it_runs_stays_held_when_it_is_requeued(action, reason):
    harness = Harness()
    job = running(harness)
    harness.control(action, job, ROOT)
    assert (job.priority, job.held_by) == (0, reason)
    assert harness.control("requeue", job, ROOT) == 0
    harness.acknowledge()
    harness.epilog(job)
    assert (job.is_pending, job.priority, job.held_by) == (True, 0, reason)


def test_a_resumed_job_is_held_no_more():
    harness = Harness()
    job = running(harness)
    harness.control("suspend", job, ROOT)
    harness.control("hold", job, ROOT)
    harness.control("resume", job, ROOT)
    assert job.priority > 0
    assert harness.control("requeue", job, ROOT) == 0
    harness.acknowledge()
    harness.epilog(job)
    assert (job.is_pending, job.held_by) == (True, "")
    assert job.priority > 0


def test_a_suspended_job_that_is_cancelled_gives_everything_back():
    harness = Harness()
    job = running(harness, required_nodes="n1")
    harness.run(20)
    harness.control("suspend", job, ROOT)
    harness.run(7)
    harness.cancel(job)
    assert job.exit_signal == 9, "a process that sleeps hears no other signal"
    harness.acknowledge()
    harness.epilog(job)
    table = harness.core.tables.nodes
    assert (table.free_cpus[0], table.free_memory[0]) == (4, 4000)
    assert (job.suspended_s, job.pre_suspend_s) == (7, 20)


def test_suspended_and_sharing_jobs_come_back_after_a_restart():
    harness = Harness()
    job = running(harness, required_nodes="n1")
    still = running(harness, required_nodes="n2")
    harness.control("suspend", job, ROOT)
    harness.control("suspend", still, ROOT)
    running(harness, required_nodes="n1")
    harness.control("resume", job, ROOT)
    fresh = Harness(register=False)
    recover(
        fresh.core, [decode_job(encode_job(each)) for each in harness.core.tables.jobs.values()]
    )
    validate(fresh.core)
    again = fresh.core.tables.jobs[still.job_id]
    assert again.state is JobState.SUSPENDED
    assert (again.suspend_time, again.pre_suspend_s) == (still.suspend_time, still.pre_suspend_s)
    assert fresh.core.tables.nodes.free_cpus.tolist()[:2] == [0, 4]


def test_top_swaps_places_by_nice_values():
    harness = Harness()
    running(harness, num_tasks=16, mem_per_node_mb=10)
    first, second, third = (harness.submit(num_tasks=16) for _ in range(3))
    before = [each.priority for each in (first, second, third)]
    assert harness.control("top", third, USER) == 2002
    assert harness.control("top", third, ROOT) == 0
    assert [each.priority for each in (third, first, second)] == before
    assert [each.nice for each in (third, first, second)] == [-2, 1, 1]
    assert harness.control("top", third, ROOT) == 0
    assert [each.nice for each in (third, first, second)] == [-2, 1, 1]


def test_top_takes_from_all_others_of_the_kind_the_first_of_them_less_where_it_does_not_divide():
    harness = Harness()
    running(harness, num_tasks=16, mem_per_node_mb=10)
    jobs = [harness.submit(num_tasks=16) for _ in range(4)]
    for job, priority in zip(jobs, (1000, 300, 200, 900), strict=True):
        harness.ask(UpdateJobs([str(job.job_id)], {"priority": str(priority)}), ROOT)
    jobs[1].admin_priority = None
    assert harness.control("top", jobs[1], ROOT) == 0  # 700 from three
    assert [each.priority for each in jobs] == [767, 1000, 0 + 1, 666]


def test_top_leaves_others_jobs_alone_and_refuses_held_ones():
    harness = Harness()
    job = running(harness, num_tasks=16, mem_per_node_mb=10)
    other = harness.submit(OTHER, num_tasks=16)
    mine = harness.submit(num_tasks=16)
    held = harness.submit(num_tasks=16, hold=True)
    assert harness.control("top", mine, ROOT) == 0
    assert (other.nice, mine.nice) == (0, 0)
    assert harness.control("top", held, ROOT) == 2042
    assert harness.control("top", job, ROOT) == 2073
    assert harness.result(harness.ask(ControlJobs("top", ["999"]), ROOT)) == 2017


def test_the_steps_of_a_job_stand_still_with_it():
    harness = Harness()
    job = running(harness, min_nodes=2, num_tasks=2)
    for _ in range(2):
        harness.ask(CreateStep(job.job_id, StepSpec(overlap=True)), USER)
    harness.control("suspend", job, ROOT)
    told = [sent.message for sent in harness.sent(SignalTasks)]
    assert sorted((each.step_id, each.signal, each.ends) for each in told) == [
        (0, 19, False),
        (1, 19, False),
    ]
    harness.control("resume", job, ROOT)
    assert sorted(
        (each.step_id, each.signal)
        for each in [sent.message for sent in harness.sent(SignalTasks)][2:]
    ) == [(0, 18), (1, 18)]
