"""A job's life in the controller's core.

Covers: controller/core/alarms, controller/core/core, controller/core/parts,
controller/edge/reactions, controller/jobs/end, controller/jobs/launch, controller/jobs/orders,
controller/jobs/requeue, controller/jobs/start, controller/jobs/time_limits,
controller/pending/eligibility, controller/pending/purge, controller/ports,
controller/requests/cancel, controller/requests/control, controller/requests/node_news,
controller/tables/alarms, controller/tables/job, protocol/endings.
"""

from __future__ import annotations

import pytest
from controller_harness import OTHER, ROOT, START, USER, FakeSender, Harness, make_tables
from key_harness import keys_of

from understudy.auth.credential import Verifier
from understudy.controller.jobs.launch import launch
from understudy.controller.jobs.start import Planning
from understudy.controller.jobs.suspend import stop
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.settings import Settings
from understudy.model.states import JobFlag, JobState
from understudy.protocol.messages import (
    AllocateJob,
    AwaitEmpty,
    BatchComplete,
    CancelJobs,
    ControlJobs,
    Failure,
    GetScript,
    JobSpec,
    LaunchBatch,
    Ok,
    Script,
    SignalJob,
    TerminateJob,
)


@pytest.fixture
def h() -> Harness:
    return Harness()


def test_a_job_runs_from_submission_to_completion(h: Harness) -> None:
    job = h.submit(min_nodes=2, num_tasks=8)
    assert job.state is JobState.RUNNING
    assert job.node_list == "n[1-2]"
    (launch,) = h.launches(job)
    assert launch.nodes == "n[1-2]"
    assert launch.emulation is not None
    assert launch.emulation.run_s == 100.0
    credential = Verifier(keys_of("noded0")).verify(launch.credential)
    assert (credential.job_id, credential.nodes, credential.user_id) == (
        job.job_id,
        "n[1-2]",
        USER.user_id,
    )
    h.acknowledge()
    assert job.launch_acknowledged
    h.run(99.5)
    assert h.finish(job) == Ok()
    assert job.state is JobState.COMPLETED
    assert job.is_completing
    assert job.end_time == int(START) + 99
    assert h.core.tables.nodes.completing_nodes == 0b11
    (terminate,) = h.sent(TerminateJob, job)
    assert terminate.message == TerminateJob(job.job_id, 0, "n[1-2]")
    h.epilog(job)
    assert not job.flags
    assert h.core.tables.nodes.idle_nodes == 0b1111
    assert job.node_list == "n[1-2]"


def test_emulated_jobs_that_start_together_begin_when_all_are_launched() -> None:
    for daemons in ({"noded0": "n[1-4]"}, {"noded0": "n[1-2]", "noded1": "n3", "noded2": "n4"}):
        h = Harness(daemons=daemons)
        h.core.launch_s = 0.25
        h.submit(min_nodes=1, exclusive=True, array="1-3")
        assert [launch.begins_after_s for launch in h.launches()] == [0.75] * 3
        h.time.jump(0.5)
        # behind what is not launched yet
        assert h.launches(h.submit())[0].begins_after_s == 0.5


def test_an_emulated_job_that_is_over_before_its_launch_is_not_launched() -> None:
    h = Harness()
    h.core.launch_s = 0.25
    job = h.submit()
    h.acknowledge()
    launch(h.core, job, h.core.daemons["noded0"])
    h.cancel(job)
    assert not h.launches()
    assert h.core.launches_until == h.core.time.now() + 0.25  # by the first launch alone


def test_an_emulated_job_that_is_suspended_before_its_launch_is_launched_and_stopped() -> None:
    h = Harness()
    h.core.launch_s = 0.25
    job = h.submit()
    h.acknowledge()
    launch(h.core, job, h.core.daemons["noded0"])
    stop(h.core, job, h.time.now())
    h.wire.sent.clear()
    h.time.run_until(h.time.now())
    assert [type(each.message) for each in h.wire.sent] == [LaunchBatch, SignalJob]


def test_the_nodes_of_several_daemons_are_given_back_as_each_reports() -> None:
    h = Harness(daemons={"noded0": "n[1-2]", "noded1": "n[3-4]"})
    job = h.submit(min_nodes=4, num_tasks=16)
    assert [launch.nodes for launch in h.launches()] == ["n[1-4]"]
    h.acknowledge()
    h.finish(job)
    assert {(sent.peer, sent.message.nodes) for sent in h.sent(TerminateJob)} == {
        ("noded0", "n[1-2]"),
        ("noded1", "n[3-4]"),
    }  # type: ignore[attr-defined]
    h.epilog(job, "n[3-4]", "noded1")
    assert h.core.tables.nodes.idle_nodes == 0b1100
    assert job.is_completing
    waiting = h.submit(num_tasks=1)
    assert waiting.node_list == "n3"
    h.epilog(job, "", "noded0")  # all that it stands for
    assert not job.is_completing


@pytest.mark.parametrize(
    ("code", "signal", "state", "reason"),
    [
        (0, 0, JobState.COMPLETED, "None"),
        (3, 0, JobState.FAILED, "NonZeroExitCode"),
        (0, 9, JobState.FAILED, "JobLaunchFailure"),
    ],
)
def test_the_exit_status_decides_the_state(
    h: Harness, code: int, signal: int, state: JobState, reason: str
) -> None:
    job = h.submit()
    h.finish(job, code, signal)
    assert (job.state, job.exit_code, job.exit_signal) == (state, code, signal)
    assert job.reason == reason


def test_a_script_that_is_told_to_end_may_end_with_a_code_of_its_own(h: Harness) -> None:
    job = h.submit()
    h.acknowledge()
    h.cancel(job)
    h.finish(job, 5)
    assert (job.state, job.exit_code, job.exit_signal) == (JobState.CANCELLED, 5, 0)
    h.finish(job, 0, 9)
    assert (job.exit_code, job.exit_signal) == (5, 0)


def test_news_that_comes_twice_or_of_an_earlier_run_changes_nothing(h: Harness) -> None:
    job = h.submit()
    assert h.finish(job, 1, restart=7) == Ok()
    assert job.is_running
    h.finish(job)
    assert h.finish(job, 5) == Ok()
    assert (job.state, job.exit_code) == (JobState.COMPLETED, 0)
    h.epilog(job, restart=3)
    assert job.is_completing
    h.epilog(job)
    assert h.epilog(job) == Ok()
    assert h.ask(BatchComplete(99, 0, 0, 0), FakeSender("noded0", 0, 0, is_daemon=True)) == Ok()


def test_only_daemons_may_report_a_jobs_end(h: Harness) -> None:
    job = h.submit()
    answer = h.ask(BatchComplete(job.job_id, 0, 0, 0), USER)
    assert isinstance(answer, Failure)
    assert job.is_running


def test_jobs_wait_for_resources_in_order_and_start_when_they_are_free(h: Harness) -> None:
    first = h.submit(exclusive=True, min_nodes=4)
    second = h.submit()
    assert second.is_pending
    assert second.reason == "Resources"
    h.complete(first)
    assert second.is_running


# --- cancel ---------------------------------------------------------------------------------------


def test_a_pending_job_is_cancelled_at_once(h: Harness) -> None:
    job = h.submit(hold=True)
    assert h.cancel(job) == 0
    assert (job.state, job.reason) == (JobState.CANCELLED, "JobHeldUser")
    assert job.end_time == job.start_time == int(START)
    assert h.cancel(job) == 2021


def test_a_running_job_is_cancelled_and_completes_when_its_nodes_are_clean(h: Harness) -> None:
    job = h.submit()
    h.acknowledge()
    assert h.cancel(job) == 0
    assert job.state is JobState.CANCELLED
    assert job.is_completing
    assert h.sent(TerminateJob, job)
    h.finish(job, 0, 15)
    assert job.exit_signal == 15
    assert h.cancel(job) == 2021
    h.epilog(job)
    assert h.core.tables.nodes.idle_nodes == 0b1111


def test_a_cancelled_job_whose_launch_is_on_its_way_is_terminated_behind_it(h: Harness) -> None:
    job = h.submit()
    h.cancel(job)
    assert [type(sent.message).__name__ for sent in h.wire.sent] == ["LaunchBatch", "TerminateJob"]
    h.acknowledge()
    assert not job.launch_acknowledged
    h.epilog(job)
    assert not job.is_completing


def test_only_the_owner_and_administrators_cancel(h: Harness) -> None:
    job = h.submit()
    assert h.cancel(job, OTHER) == 2002
    assert job.is_running
    assert h.cancel(job, ROOT) == 0


def test_a_signal_goes_to_running_jobs_only(h: Harness) -> None:
    job, held = h.submit(), h.submit(hold=True)
    assert h.result(h.ask(CancelJobs([str(job.job_id)], 10, full=True), USER)) == 0
    (sent,) = h.sent(SignalJob)
    assert sent.message == SignalJob(job.job_id, 0, 10, False)
    assert h.cancel(held, signal=10) == 2020
    assert job.is_running


def test_a_script_that_waits_is_killed_by_cancelling_it_and_cannot_be_signalled_otherwise() -> None:
    """As 22.05.8 does with `scancel --batch --signal=KILL` of a job that waits."""
    h = Harness()
    job = h.submit(hold=True)
    names = [str(job.job_id)]
    for each in ({"batch_only": True}, {"batch_only": True, "full": True}, {}):
        assert h.result(h.ask(CancelJobs(names, 15, **each), USER)) == 2020
    assert h.result(h.ask(CancelJobs(names, 9, batch_only=True), USER)) == 0
    assert job.state is JobState.CANCELLED


def test_a_signal_reaches_the_script_only_if_it_is_meant_for_it(h: Harness) -> None:
    job = h.submit()
    assert h.cancel(job, signal=10) == 0
    assert not h.sent(SignalJob)
    assert h.result(h.ask(CancelJobs([str(job.job_id)], 10, batch_only=True), USER)) == 0
    (sent,) = h.sent(SignalJob)
    assert sent.message == SignalJob(job.job_id, 0, 10, True)


def test_a_job_is_shown_stopped_until_it_is_continued_or_ends(h: Harness) -> None:
    job = h.submit()
    h.cancel(job, signal=19)
    assert job.flags == JobFlag.STOPPED
    h.cancel(job, signal=18)
    assert not job.flags
    h.cancel(job, signal=19)
    h.cancel(job)
    assert job.flags == JobFlag.COMPLETING


def test_the_script_alone_is_killed_where_no_signal_is_named(h: Harness) -> None:
    job = h.submit()
    assert h.result(h.ask(CancelJobs([str(job.job_id)], batch_only=True), USER)) == 0
    (sent,) = h.sent(SignalJob)
    assert sent.message == SignalJob(job.job_id, 0, 9, True)
    assert job.is_running


def test_jobs_are_cancelled_by_what_they_match(h: Harness) -> None:
    mine, theirs = h.submit(name="a"), h.submit(OTHER, name="a")
    h.submit(name="b")
    answer = h.ask(CancelJobs([], where={"name": ["a"]}))
    assert answer.results == [
        (str(mine.job_id), 0, ""),
        (str(theirs.job_id), 2002, "Access/permission denied"),
    ]
    assert h.result(h.ask(CancelJobs(["999"]))) == 2017


# --- requeue --------------------------------------------------------------------------------------


def test_a_running_job_is_requeued_and_waits_until_its_old_credential_is_worthless(
    h: Harness,
) -> None:
    job = h.submit()
    h.acknowledge()
    assert h.control("requeue", job) == 0
    assert job.state is JobState.PENDING
    assert job.flags == JobFlag.COMPLETING
    assert h.query("jobs", "state", "flags") == [[0, int(JobFlag.COMPLETING)]]
    h.acknowledge()
    h.run(7)
    h.epilog(job)
    assert (job.restarts, job.reason) == (1, "BeginTime")
    assert (job.submit_time, job.begin_time) == (START + 7, START + 7 + 121), (
        "counted from when its nodes are free of it"
    )
    h.run(120)
    assert job.is_pending
    h.run(2)
    assert job.is_running
    assert h.launches(job)[-1].restart == 1
    h.finish(job, restart=0)
    assert job.is_running


def test_the_scheduler_hears_whether_a_job_ended_by_itself(h: Harness) -> None:
    heard: list[Note] = []
    note = h.core.policy.note
    h.core.policy.note = lambda what, now: (heard.append(what), note(what, now))[1]  # type: ignore[method-assign]
    by_itself, cancelled = h.submit(), h.submit()
    h.acknowledge()
    h.finish(by_itself)
    h.epilog(by_itself)
    assert [what for what in heard if what in (Note.FREE, Note.CLEANED)] == [Note.FREE]
    assert h.cancel(cancelled) == 0
    h.epilog(cancelled)
    assert heard[-1] is Note.CLEANED


def test_a_finished_job_is_requeued_into_the_held_state(h: Harness) -> None:
    job = h.submit()
    h.complete(job)
    assert h.control("requeuehold", job) == 0
    assert (job.state, job.priority, job.held_by) == (JobState.PENDING, 0, "JobHeldUser")
    h.run(1000)
    assert h.control("release", job) == 0
    assert job.is_running


def test_requeue_is_refused_for_pending_jobs_and_for_those_that_do_not_want_it(h: Harness) -> None:
    assert h.control("requeue", h.submit(hold=True)) == 2024
    assert h.control("requeue", h.submit(requeue=False)) == 2037


@pytest.mark.parametrize("action", ["requeue", "requeuehold"])
def test_of_several_reasons_not_to_requeue_slurms_is_told(h: Harness, action: str) -> None:
    waiting = h.submit(hold=True, requeue=False)
    assert h.control(action, waiting) == 2037, "however it waits"
    job_id = h.ask(AllocateJob(JobSpec(hold=True)), USER).job_id
    assert h.control(action, h.core.tables.jobs[job_id]) == 2009, "no script"


@pytest.mark.parametrize("code", [0, 3])
def test_a_job_is_requeued_whose_nodes_are_not_free_of_it_yet(h: Harness, code: int) -> None:
    job = h.submit()
    h.acknowledge()
    h.finish(job, code)
    assert h.control("requeue", job) == 0
    assert (job.state, job.flags) == (JobState.PENDING, JobFlag.COMPLETING)
    assert h.control("requeuehold", job) == 2024, "now it is pending"
    assert h.core.counters.completed == 1
    h.acknowledge()
    h.epilog(job)
    assert (job.restarts, job.reason, job.begin_time) == (1, "BeginTime", START + 121)
    h.run(122)
    assert job.is_running


def test_a_completing_job_is_requeued_and_held(h: Harness) -> None:
    job = h.submit()
    h.acknowledge()
    h.cancel(job)
    assert h.control("requeuehold", job) == 0
    h.acknowledge()
    h.epilog(job)
    h.run(1000)
    assert (job.state, job.held_by) == (JobState.PENDING, "JobHeldUser")


def test_what_was_requeued_and_cancelled_before_its_nodes_were_free_is_requeued_again(
    h: Harness,
) -> None:
    job = h.submit()
    for _ in range(2):
        assert h.control("requeue", job) == 0
        assert h.cancel(job) == 0
        assert (job.state, job.flags) == (JobState.CANCELLED, JobFlag.COMPLETING)
    assert h.control("requeue", job) == 0
    h.acknowledge()
    h.epilog(job)
    assert job.is_pending


def test_a_special_exit_that_is_cancelled_is_cancelled(h: Harness) -> None:
    job = h.submit()
    h.complete(job, 3)
    h.ask(ControlJobs("requeuehold", [str(job.job_id)], options=["special_exit"]))
    assert (job.state, job.flags) == (JobState.PENDING, JobFlag.SPECIAL_EXIT)
    assert h.cancel(job) == 0
    assert (job.state, job.flags) == (JobState.CANCELLED, JobFlag.NONE)


@pytest.mark.parametrize(("code", "signal"), [(0, 0), (5, 0), (0, 9)])
def test_exit_codes_that_are_listed_have_a_job_run_again(code: int, signal: int) -> None:
    h = Harness(settings=Settings(requeue_exit_codes=frozenset({0, 5})))
    job = h.submit(requeue=False)
    h.acknowledge()
    h.finish(job, code, signal)
    h.acknowledge()
    h.epilog(job)
    assert (job.state, job.flags, job.reason) == (JobState.PENDING, JobFlag.NONE, "BeginTime")
    assert (job.restarts, job.exit_code, job.exit_signal) == (1, code, signal)
    assert h.core.counters.completed == 1
    h.run(122)
    assert (job.is_running, job.exit_code) == (True, 0)


def test_an_exit_code_may_hold_the_job_as_a_special_exit_until_it_is_released() -> None:
    h = Harness(settings=Settings(requeue_exit_hold_codes=frozenset({16})))
    job = h.submit()
    h.complete(job, 16)
    h.run(1000)
    assert (job.state, job.flags) == (JobState.PENDING, JobFlag.SPECIAL_EXIT)
    assert (job.reason, job.reason_detail, job.exit_code) == ("JobHeldUser", "", 16)
    assert h.control("release", job, USER) == 0
    assert (job.is_running, job.exit_code) == (True, 0)


def test_a_job_requeued_and_cancelled_before_its_nodes_are_free_stays_cancelled(h: Harness) -> None:
    job = h.submit()
    h.control("requeue", job)
    assert h.cancel(job) == 0
    h.epilog(job)
    assert job.state is JobState.CANCELLED
    assert not h.core.tables.pending


def test_a_launch_that_is_refused_requeues_and_holds_the_job(h: Harness) -> None:
    job = h.submit()
    h.wire.sent.pop(0).answer(Failure(2026, "Error generating job credential"))
    h.run(0)
    assert job.state is JobState.PENDING
    h.epilog(job)
    assert (job.priority, job.reason) == (0, "JobHeldAdmin")


# --- hold -----------------------------------------------------------------------------------------


def test_a_held_job_waits_for_release(h: Harness) -> None:
    job = h.submit(hold=True)
    assert (job.priority, job.reason, job.eligible_time) == (0, "JobHeldUser", None)
    assert h.control("release", job) == 0
    assert job.is_running


def test_a_job_that_nobody_holds_is_eligible_as_before_when_it_is_released(h: Harness) -> None:
    job = h.submit()
    since = job.eligible_time
    h.run(10)
    assert h.control("release", job) == 0
    assert job.eligible_time == since is not None
    h.control("hold", job)
    assert job.eligible_time is None


def test_a_job_that_could_never_run_is_held_until_somebody_releases_it(h: Harness) -> None:
    job = h.submit(begin_time=START + 50)
    Planning(h.core).explain(job, "BadConstraints")
    h.run(100)
    assert (job.state, job.priority, job.reason) == (JobState.PENDING, 0, "BadConstraints")
    assert h.control("release", job) == 0
    assert job.is_running


def test_what_an_administrator_holds_only_an_administrator_releases(h: Harness) -> None:
    job = h.submit(exclusive=True, min_nodes=4, begin_time=START + 50)
    assert h.control("hold", job, ROOT) == 0
    assert job.reason == "JobHeldAdmin"
    assert h.control("release", job) == 2002
    assert h.control("uhold", job, ROOT) == 0
    assert job.reason == "JobHeldUser"
    assert h.control("hold", job, OTHER) == 2010
    assert h.control("release", job) == 0
    assert job.reason == "BeginTime"


def test_a_hold_of_a_running_job_waits_until_it_is_queued_again(h: Harness) -> None:
    job = h.submit()
    assert h.control("hold", job) == 0
    assert (job.state.name, job.priority, job.reason) == ("RUNNING", 0, "JobHeldUser")
    assert h.control("release", job) == 0
    assert job.priority > 0
    assert job.reason == "None"


# --- time -----------------------------------------------------------------------------------------


def test_a_begin_time_is_waited_for(h: Harness) -> None:
    job = h.submit(begin_time=START + 100)
    assert (job.reason, job.eligible_time) == ("BeginTime", int(START) + 100)
    h.run(99)
    assert job.is_pending
    h.run(1)
    assert (job.is_running, job.start_time) == (True, int(START) + 100)


def test_a_job_that_is_cancelled_while_it_waits_has_waited_for_the_last_reason_until_then(
    h: Harness,
) -> None:
    job = h.submit(begin_time=START + 100)
    h.run(60)
    h.cancel(job)
    assert (job.state, job.longest_wait(START + 90)) == (JobState.CANCELLED, "BeginTime")
    assert job.waits["BeginTime"] == 60


def test_a_time_limit_is_noticed_on_the_thirty_second_grid(h: Harness) -> None:
    job = h.submit(time_limit_s=65)
    h.acknowledge()
    h.run(90)
    assert job.is_running
    h.run(1)
    assert (job.state, job.reason) == (JobState.TIMEOUT, "TimeLimit")
    assert job.end_time == int(START) + 91
    assert h.sent(TerminateJob, job)


def test_nobody_looks_at_the_limit_of_a_job_that_has_ended(h: Harness) -> None:
    timers = h.time.waiting
    soon, late = h.submit(time_limit_s=600), h.submit(time_limit_s=6000)
    h.acknowledge()
    armed = h.time.waiting
    assert armed > timers
    h.complete(soon)
    assert h.core.alarms.timer is not None
    assert h.core.alarms.timer[0] >= START + 6000
    h.complete(late)
    assert h.core.alarms.timer is None
    assert h.core.alarms.heap == []
    again = h.submit(time_limit_s=60)
    h.run(100)
    assert again.state is JobState.TIMEOUT


def test_a_script_that_ends_by_itself_after_its_limit_has_timed_out(h: Harness) -> None:
    job = h.submit(time_limit_s=65)
    h.run(75)
    h.finish(job)
    assert (job.state, job.end_time) == (JobState.TIMEOUT, int(START) + 75)


def test_with_exact_limits_the_node_daemon_ends_the_job() -> None:
    h = Harness(exact_limits=True)
    job = h.submit(time_limit_s=61)
    assert h.launches()[0].exact_limit_s == 61
    h.run(1000)
    assert job.is_running
    h.finish(job, 0, 15, timed_out=True)
    assert job.state is JobState.TIMEOUT


def test_over_time_limit_is_granted() -> None:
    h = Harness(settings=Settings(over_time_limit_s=120, min_job_age_s=0))
    job = h.submit(time_limit_s=60)
    h.run(180)
    assert job.is_running
    h.run(2)
    assert job.state is JobState.TIMEOUT


def test_a_job_is_warned_before_its_limit(h: Harness) -> None:
    job = h.submit(
        time_limit_s=600, kill_signal=10, kill_signal_before_s=60, kill_signal_batch=True
    )
    h.acknowledge()
    h.run(500)
    assert not h.sent(SignalJob)
    h.run(40)
    (sent,) = h.sent(SignalJob)
    assert sent.message == SignalJob(job.job_id, 0, 10, True)
    assert job.kill_sent


def test_a_warning_that_is_not_for_the_script_does_not_reach_it(h: Harness) -> None:
    job = h.submit(time_limit_s=600, kill_signal=10, kill_signal_before_s=60)
    h.acknowledge()
    h.run(560)
    assert job.is_running
    assert not h.sent(SignalJob)


def test_a_pending_job_ends_at_its_deadline(h: Harness) -> None:
    job = h.submit(hold=True, deadline=START + 5000, time_limit_s=60)
    h.run(4990)
    assert job.is_pending
    h.core.policy.notes.clear()
    h.run(60)
    assert (job.state, job.reason) == (JobState.DEADLINE, "DeadLine")
    assert (job.exit_code, job.exit_signal) == (0, 1)
    assert Note.CHANGE in h.core.policy.notes  # others may have what was promised to it


def test_finished_jobs_are_forgotten_after_their_age() -> None:
    h = Harness(settings=Settings(min_job_age_s=100))
    job = h.submit()
    h.complete(job)
    h.run(119)
    assert job.job_id in h.core.tables.jobs
    h.run(2)
    assert job.job_id not in h.core.tables.jobs
    assert not h.core.scripts


# --- the rest -------------------------------------------------------------------------------------


def test_await_empty_is_answered_when_the_last_job_is_gone(h: Harness) -> None:
    assert h.ask(AwaitEmpty()).answer == Ok()
    job, held = h.submit(), h.submit(hold=True)
    later = h.ask(AwaitEmpty())
    h.complete(job)
    assert later.answer is None
    h.cancel(held)
    assert later.answer == Ok()


def test_a_script_is_shown_to_its_owner(h: Harness) -> None:
    job = h.submit()
    assert h.ask(GetScript(str(job.job_id))) == Script("#!/bin/sh\n")
    assert isinstance(h.ask(GetScript(str(job.job_id)), OTHER), Failure)


def test_sixteen_thousand_nodes_are_one_job() -> None:
    h = Harness(make_tables(16384))
    job = h.submit(min_nodes=16384, num_tasks=16384 * 4)
    assert job.node_list == "n[1-16384]"
    h.complete(job)
    assert job.state is JobState.COMPLETED
