"""The emulated executor: how long jobs run, how they end, in which order."""

import signal

import pytest
from noded_harness import EPOCH, HandTime

from understudy.noded.emulated import EmulatedExecutor, EmulatedJobs, Ended, emulation_of
from understudy.noded.faults import Fault, FaultTable
from understudy.protocol.messages import Emulation, JobSpec, LaunchBatch

NOW = 1000.0


def launch(job_id, run_s=10.0, *, exit_code=0, number=0, **fields):
    return LaunchBatch(
        job_id,
        0,
        "n0",
        fields.pop("start_time", 1000),
        b"",
        1,
        1,
        Emulation(run_s, exit_code, number),
        **fields,
    )


def scripted(script, environment=(), spec_environment=()):
    return LaunchBatch(
        1,
        0,
        "n0",
        1000,
        b"",
        1,
        1,
        None,
        script,
        JobSpec(environment=list(spec_environment)),
        list(environment),
    )


@pytest.fixture
def jobs():
    return EmulatedJobs(1.0)


def test_a_job_runs_from_the_arrival_of_its_launch(jobs):
    jobs.start(launch(1, 10.0, exit_code=3, start_time=990), NOW)
    assert jobs.next_end() == 1010.0
    assert jobs.due(1009.999) == []
    assert jobs.due(1010.0) == [Ended((1, 0), 3, 0)]
    assert jobs.next_end() is None


def test_with_an_exact_limit_a_job_runs_from_its_start_time(jobs):
    jobs.start(launch(1, 10.0, start_time=995, exact_limit_s=60), NOW)
    jobs.start(launch(2, 60.0, start_time=995, exact_limit_s=60, exit_code=2), NOW)
    jobs.start(launch(3, 60.5, start_time=995, exact_limit_s=60, exit_code=2), NOW)
    assert jobs.due(1005.0) == [Ended((1, 0), 0, 0)]
    assert jobs.due(1055.0) == [
        Ended((2, 0), 2, 0),
        Ended((3, 0), 0, signal.SIGTERM, timed_out=True),
    ]


def test_a_job_begins_when_the_controller_says_that_it_is_launched():
    jobs = EmulatedJobs(1.0, 0.5)
    for job_id, after_s in ((1, 0.0), (2, 0.25), (3, 0.5)):
        jobs.start(launch(job_id, 10.0, begins_after_s=after_s), NOW)
    ends = []
    while (end := jobs.next_end()) is not None:
        ends.append((end - NOW, [ended.key[0] for ended in jobs.due(end)]))
    assert ends == [(10.5, [1]), (10.75, [2]), (11.0, [3])]


def test_a_job_whose_end_is_past_ends_at_once(jobs):
    jobs.start(launch(1, 3.0, start_time=990, exact_limit_s=60), NOW)
    assert jobs.next_end() == NOW


def test_jobs_that_end_at_one_instant_are_in_order_of_job_id(jobs):
    for job_id, run_s in ((9, 5.0), (3, 5.0), (12, 4.0), (5, 5.0)):
        jobs.start(launch(job_id, run_s), NOW)
    assert [ended.key[0] for ended in jobs.due(2000.0)] == [12, 3, 5, 9]


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]
)
def test_a_signal_that_is_not_caught_ends_the_job(jobs, number):
    jobs.start(launch(1), NOW)
    assert jobs.signal((1, 0), number, NOW + 1) == Ended((1, 0), 0, number)
    assert jobs.next_end() is None


@pytest.mark.parametrize(
    "number", [0, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCHLD, signal.SIGCONT]
)
def test_other_signals_change_nothing(jobs, number):
    jobs.start(launch(1), NOW)
    assert jobs.signal((1, 0), number, NOW + 1) is None
    assert jobs.next_end() == 1010.0


def test_time_stands_still_for_a_stopped_job(jobs):
    jobs.start(launch(1), NOW)
    jobs.start(launch(2, 500.0), NOW)
    jobs.signal((1, 0), signal.SIGSTOP, NOW + 4)
    jobs.signal((1, 0), signal.SIGTSTP, NOW + 5)
    assert jobs.next_end() == 1500.0
    jobs.signal((1, 0), signal.SIGCONT, NOW + 100)
    assert jobs.next_end() == NOW + 106
    assert jobs.due(NOW + 106) == [Ended((1, 0), 0, 0)]


def test_an_exact_limit_does_not_wait_for_a_stopped_job(jobs):
    jobs.start(launch(1, 10.0, exact_limit_s=60), NOW)
    jobs.signal((1, 0), signal.SIGSTOP, NOW + 4)
    assert jobs.next_end() == NOW + 60
    jobs.signal((1, 0), signal.SIGCONT, NOW + 20)
    assert jobs.next_end() == NOW + 26
    jobs.signal((1, 0), signal.SIGSTOP, NOW + 25)
    assert jobs.due(NOW + 59) == []
    assert jobs.due(NOW + 60) == [Ended((1, 0), 0, signal.SIGTERM, timed_out=True)]
    assert len(jobs) == 0


def test_a_launch_that_arrives_after_the_limit_still_tells_what_ended_the_job(jobs):
    jobs.start(launch(1, 70.0, start_time=900, exact_limit_s=60), NOW)
    assert jobs.due(NOW) == [Ended((1, 0), 0, signal.SIGTERM, timed_out=True)]


def test_a_stopped_job_can_be_killed(jobs):
    jobs.start(launch(1), NOW)
    jobs.signal((1, 0), signal.SIGSTOP, NOW)
    assert jobs.kill((1, 0)) == Ended((1, 0), 0, signal.SIGTERM)
    assert jobs.kill((1, 0)) is None
    assert jobs.next_end() is None


@pytest.mark.parametrize(
    ("script", "run_s"),
    [
        ("#!/bin/sh\nhostname\n", 1.5),
        ("#!/bin/sh\nsleep 20\n", 20.0),
        ("#!/bin/sh\nsleep 2; sleep 3m && srun sleep .5\n", 182.5),
        ("#!/bin/sh\nsleep 1m 30s\n", 90.0),
        ("#!/bin/sh\n# sleep 99\n/bin/sleep 2\n", 2.0),
        ("#!/bin/sh\nsleep 100 &\nsleep 5\n", 5.0),
        ("#!/bin/sh\nsleep 100 && true\n", 100.0),
        ("#!/bin/sh\nsleep $N; ./nosleep 7; x.sleep 3\n", 1.5),
        ("#!/bin/sh\n#UNDERSTUDY run=7.5\nsleep 20\n", 7.5),
        ("#!/bin/sh\nsleep 3; exit 3\n", 3.0),
    ],
)
def test_the_script_says_how_long_a_job_runs(script, run_s):
    assert emulation_of(scripted(script), 1.5).run_s == run_s


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("#!/bin/sh\n#UNDERSTUDY run=7 exit=2\n#UNDERSTUDY signal=9\n", Emulation(7.0, 2, 9)),
        ("#!/bin/sh\nsleep 3; exit 3", Emulation(3.0, 3, 0)),
        ("#!/bin/sh\nexit 1\ntrue\n", Emulation(1.5, 0, 0)),
        ("#!/bin/sh\n#UNDERSTUDY exit=0\nexit 4\n", Emulation(1.5, 0, 0)),
    ],
)
def test_the_script_says_how_a_job_ends(script, expected):
    assert emulation_of(scripted(script), 1.5) == expected


def test_the_environment_is_asked_before_the_commands_and_after_the_directives():
    environment = ["PATH=/bin", "UNDERSTUDY_RUN=30", "UNDERSTUDY_EXIT=4"]
    assert emulation_of(
        scripted("#!/bin/sh\nsleep 5\n", spec_environment=environment), 1.5
    ) == Emulation(30.0, 4, 0)
    assert emulation_of(scripted("#!/bin/sh\n#UNDERSTUDY run=2\n", environment), 1.5) == Emulation(
        2.0, 4, 0
    )
    assert emulation_of(scripted("", ["UNDERSTUDY_RUN=soon"]), 1.5) == Emulation(1.5, 0, 0)


def test_the_messages_emulation_comes_before_all():
    assert emulation_of(launch(1, 3.0, script="#UNDERSTUDY run=9"), 1.5) == Emulation(3.0, 0, 0)


def test_a_script_that_is_told_to_end_goes_on_for_a_moment():
    time, ended = HandTime(), []
    executor = EmulatedExecutor(
        time,
        1.0,
        lambda key, code, number, *, timed_out: ended.append((key, time.now())),
        kill_s=3.5,
    )
    executor.start(launch(1, 100.0))
    executor.kill((1, 0))
    executor.kill((1, 0))
    time.advance(3.4)
    assert not ended
    time.advance(200)
    assert ended == [((1, 0), EPOCH + 3.5)]


def test_a_job_takes_as_long_as_on_the_slowest_of_its_nodes():
    faults = FaultTable()
    faults.put(["n0"], Fault(times=2.0))
    faults.put(["n2"], Fault(times=3.0))
    assert [faults.slowness(nodes) for nodes in ("n1", "n[0-1]", "n[0-2]")] == [1.0, 2.0, 3.0]
    time, ended = HandTime(), []
    executor = EmulatedExecutor(
        time, 1.0, lambda key, *_end, **_how: ended.append(key), slowness=faults.slowness
    )
    executor.start(launch(1, run_s=10.0))
    time.advance(19)
    assert ended == []
    time.advance(1)
    assert ended == [(1, 0)]
