"""Time slices. The first test is what real Slurm 22.05 did with the same jobs."""

from __future__ import annotations

import pytest
from controller_harness import ROOT, START, FakeTime, Harness, make_tables

from understudy.controller.jobs.gang import Gang
from understudy.controller.jobs.suspend import preempt_suspend
from understudy.controller.saved.records import decode_job, encode_job
from understudy.controller.saved.recover import recover
from understudy.controller.tables.settings import Settings
from understudy.model.states import JobState
from understudy.noded.emulated import EmulatedJobs
from understudy.protocol.messages import Emulation, LaunchBatch

SLICE_S = 10


def harness(
    rows: int = 3, count: int = 1, time: FakeTime | None = None, *, register: bool = True
) -> Harness:
    tables = make_tables(count)
    tables.partitions["main"].oversubscribe = f"FORCE:{rows}"
    h = Harness(
        tables, settings=Settings(min_job_age_s=0, time_slice_s=SLICE_S), time=time, register=False
    )
    h.core.gang = Gang(h.core, SLICE_S)
    if register:
        h.register("noded0")
    return h


@pytest.fixture
def h() -> Harness:
    return harness()


def states(h: Harness) -> str:
    """R or S for each job, in order."""
    code = {JobState.RUNNING: "R", JobState.SUSPENDED: "S", JobState.PENDING: "P"}
    return "".join(code.get(job.state, "-") for job in h.core.tables.jobs.values())


def test_jobs_take_turns_as_in_slurm(h: Harness) -> None:
    h.run(5)
    for tasks in (4, 4, 2, 2, 1):
        h.submit(num_tasks=tasks, mem_per_cpu_mb=1)
    h.acknowledge()
    assert states(h) == "RSSSP"
    second = h.core.tables.jobs[2]
    assert (second.start_time, second.suspend_time, second.pre_suspend_s) == (
        START + 5,
        START + 5,
        0,
    )
    seen = []
    for _ in range(5):
        h.run(SLICE_S)
        h.acknowledge()
        seen.append(states(h))
    assert seen == ["RSSSP", "SRSSP", "SSRRP", "RSSSP", "SRSSP"]


def test_a_small_job_fills_the_gaps_of_every_row(h: Harness) -> None:
    for tasks in (3, 3, 1):
        h.submit(num_tasks=tasks, mem_per_cpu_mb=1)
    h.acknowledge()
    seen = [states(h)]
    for _ in range(4):
        h.run(SLICE_S)
        h.acknowledge()
        seen.append(states(h))
    assert seen == ["RSR", "RSR", "SRR", "RSR", "SRR"]


def test_the_end_of_a_job_moves_with_every_resume(h: Harness) -> None:
    h.run(1)
    first, second = (h.submit(num_tasks=4, mem_per_cpu_mb=1, time_limit_s=600) for _ in range(2))
    h.acknowledge()
    assert first.end_time == second.end_time == START + 601
    h.run(20)
    assert (first.state, second.state) == (JobState.SUSPENDED, JobState.RUNNING)
    assert second.end_time == START + 620
    assert second.suspended_s == 19
    assert (first.end_time, first.pre_suspend_s) == (START + 601, 19)


def test_when_a_job_ends_the_next_goes_on_at_once(h: Harness) -> None:
    jobs = [h.submit(num_tasks=4, mem_per_cpu_mb=1) for _ in range(3)]
    h.acknowledge()
    h.run(3)
    h.complete(jobs[0])
    h.acknowledge()
    assert [job.state for job in jobs[1:]] == [JobState.RUNNING, JobState.SUSPENDED]
    h.cancel(jobs[2])
    assert jobs[1].is_running


def test_nobody_waits_for_a_slice_where_all_run(h: Harness) -> None:
    for _ in range(2):
        h.submit(num_tasks=2, mem_per_cpu_mb=1)
    h.acknowledge()
    before = h.time.waiting
    h.run(100)
    assert states(h) == "RR"
    assert h.time.waiting <= before


def test_a_job_that_an_administrator_suspends_leaves_the_row_until_it_is_resumed(
    h: Harness,
) -> None:
    first, second = (h.submit(num_tasks=4, mem_per_cpu_mb=1) for _ in range(2))
    h.acknowledge()
    assert h.control("resume", second, ROOT) == 2087
    assert h.control("suspend", first, ROOT) == 0
    h.acknowledge()
    assert (first.state, second.state) == (JobState.SUSPENDED, JobState.RUNNING)
    h.run(50)
    assert (first.state, second.state) == (JobState.SUSPENDED, JobState.RUNNING)


def test_a_job_that_another_preempts_leaves_its_row_and_is_back_when_that_one_is_over(
    h: Harness,
) -> None:
    """Suspended as the one whose turn it was, it had kept all others waiting for ever."""
    first, second = (h.submit(num_tasks=4, mem_per_cpu_mb=1) for _ in range(2))
    h.acknowledge()
    assert states(h) == "RS"
    preempt_suspend(h.core, first, h.time.now())
    h.acknowledge()
    assert states(h) == "SR"
    h.run(5 * SLICE_S)
    assert states(h) == "SR"
    h.complete(second)
    h.acknowledge()
    assert first.is_running
    third = h.submit(num_tasks=4, mem_per_cpu_mb=1)
    h.acknowledge()
    assert (first.state, third.state) == (JobState.RUNNING, JobState.SUSPENDED)
    h.run(2 * SLICE_S)
    h.acknowledge()
    assert (first.state, third.state) == (JobState.SUSPENDED, JobState.RUNNING)


def test_jobs_that_are_resumed_run_beside_others_until_their_turn_is_over() -> None:
    """As recorded: jobs 1 to 3 of 4 CPUs each, suspended and resumed by an administrator between
    turns.
    """
    h = harness()
    jobs = [h.submit(num_tasks=4, mem_per_cpu_mb=1) for _ in range(3)]
    h.acknowledge()
    h.run(4 * SLICE_S + 4)
    for job in (jobs[0], jobs[1], jobs[2]):
        assert h.control("suspend", job, ROOT) == 0
    h.acknowledge()
    assert states(h) == "SSS"
    h.run(SLICE_S)
    h.control("resume", jobs[0], ROOT)
    h.control("resume", jobs[1], ROOT)
    seen = [states(h)]
    for number in range(7):
        h.run(SLICE_S)
        h.acknowledge()
        seen.append(states(h))
        if number == 1:
            h.control("resume", jobs[2], ROOT)
            seen.append(states(h))
    assert seen == ["RRS", "RRS", "SRS", "SRR", "RSR", "SSR", "SRS", "RSS", "SSR"]


def test_a_job_that_waits_for_its_turn_and_is_suspended_keeps_its_place() -> None:
    h = harness(2)
    jobs = [h.submit(num_tasks=4, mem_per_cpu_mb=1) for _ in range(2)]
    h.acknowledge()
    h.control("suspend", jobs[1], ROOT)
    third = h.submit(num_tasks=4, mem_per_cpu_mb=1)
    h.run(50)
    assert third.is_pending
    assert h.control("resume", jobs[1], ROOT) == 0
    h.acknowledge()
    assert states(h) == "RRP"
    h.run(2 * SLICE_S)
    h.acknowledge()
    assert states(h).count("R") == 1


def test_after_a_restart_they_take_turns_again(h: Harness) -> None:
    jobs = [h.submit(num_tasks=4, mem_per_cpu_mb=1) for _ in range(2)]
    h.acknowledge()
    h.run(2)
    saved = [decode_job(encode_job(job)) for job in jobs]
    again = harness(time=FakeTime(h.time.now()), register=False)
    for octets, node in zip(h.core.tables.nodes.nodes, again.core.tables.nodes.nodes, strict=True):
        node.state = octets.state
    recover(again.core, saved)
    again.register("noded0", [(1, 0), (2, 0)], started=START - 100)
    assert states(again) == "RS"
    again.run(2 * SLICE_S)
    assert states(again) == "SR"


@pytest.mark.parametrize(("sleeps", "end"), [(False, 130.0), (True, 105.0)])
def test_the_time_of_a_sleeping_script_goes_on_while_it_is_stopped(
    sleeps: bool, end: float
) -> None:
    jobs = EmulatedJobs(1.0, sleeps=sleeps)
    jobs.start(LaunchBatch(1, 0, "n1", 0, b"", 0, 0, Emulation(100.0), "", None, [], None), 5.0)
    jobs.signal((1, 0), 19, 20.0)
    assert jobs.next_end() is None
    jobs.signal((1, 0), 18, 45.0)
    assert jobs.next_end() == end


def test_a_script_that_slept_over_its_end_ends_when_it_goes_on() -> None:
    jobs = EmulatedJobs(1.0, sleeps=True)
    jobs.start(LaunchBatch(1, 0, "n1", 0, b"", 0, 0, Emulation(10.0), "", None, [], None), 5.0)
    jobs.signal((1, 0), 19, 6.0)
    jobs.signal((1, 0), 18, 45.0)
    assert jobs.next_end() == 45.0
