"""The replay's core against a clock and a controller made of a heap.

Covers: controller/jobs/following, experiments/recording.
"""

import heapq
import itertools
from types import SimpleNamespace

import pytest

from understudy.experiments.recording import Recording
from understudy.experiments.records import REJECTED, JobRecord, record_of
from understudy.experiments.replay import Replayer, ReplayOptions, owners, submission
from understudy.experiments.trace import TraceJob
from understudy.protocol.messages import (
    AwaitEmpty,
    Emulation,
    Failure,
    FollowJobs,
    JobRun,
    JobRuns,
    Ok,
    Query,
    Rows,
    SubmitJob,
    Submitted,
)

EPOCH = 1_700_000_000.0
LATENCY = 0.001


def run_of(number, tag, submit, start, end, state, cpus=1, nodes="n1", limit=60, **fields):
    """What the controller tells of a run."""
    plain = dict.fromkeys(JobRun.__struct_fields__, "")
    plain |= dict.fromkeys(
        (
            "array_job_id",
            "het_job_id",
            "het_offset",
            "exit_code",
            "exit_signal",
            "node_count",
            "memory_mb",
            "restarts",
            "promise_moves",
        ),
        0,
    )
    plain |= {"first_promise": None, "last_promise": None}
    known = {
        "job_id": number,
        "tag": tag,
        "submit": submit,
        "start": start,
        "end": end,
        "limit_s": limit,
        "state": state,
        "cpus": cpus,
        "nodes": nodes,
    }
    return JobRun(
        **{**plain, "eligible": submit, "priority": 1, "preemptions": 0, **known, **fields}
    )


class Clock:
    """Runs timers in their order; time is that of the timer."""

    def __init__(self, now=EPOCH + 0.25):
        self.time = now
        self.timers = []
        self.numbers = itertools.count()

    def now(self):
        return self.time

    def call_at(self, when, callback, *args):
        cancelled = []
        heapq.heappush(
            self.timers,
            (when, next(self.numbers), lambda *given: cancelled or callback(*given), args),
        )
        return SimpleNamespace(cancel=lambda: cancelled.append(True))

    def run(self):
        while self.timers:
            when, _, callback, args = heapq.heappop(self.timers)
            self.time = max(self.time, when)
            callback(*args)


class Controller:
    """Starts every job one second after its submission; refuses those of more than `cpus`."""

    def __init__(self, clock, cpus=100, refuse=None):
        self.clock, self.cpus, self.refuse = clock, cpus, refuse or {}
        self.plan = Rows([["row"]], 0.0)
        self.runs, self.open, self.received = {}, {}, []
        self.asked = None
        self.empty_at = clock.now()

    def send(
        self, peer, message, on_reply=None, timeout_s=10.0, *, only_failures=False, ahead_s=0.0
    ):
        assert peer == "controller"
        self.received.append((self.clock.now() + ahead_s, message, timeout_s))
        self.clock.call_at(
            self.clock.now() + ahead_s + LATENCY, self._answer, message, on_reply, only_failures
        )

    def _answer(self, message, on_reply, only_failures):
        if isinstance(message, FollowJobs) and FollowJobs not in self.refuse:
            if message.batch:
                self.asked = on_reply
                return
            if self.asked is not None:
                self.clock.call_at(self.clock.now() + LATENCY, self.asked, JobRuns([]))
                self.asked = None
        when, answer = self._handle(message)
        if only_failures and not isinstance(answer, Failure):
            return
        self.clock.call_at(when + LATENCY, on_reply, answer)

    def _handle(self, message):
        now = self.clock.now()
        if type(message) in self.refuse:
            return now, self.refuse[type(message)]
        match message:
            case SubmitJob(spec=spec, emulation=emulation):
                if spec.num_tasks > self.cpus:
                    return now, Failure(2014, "Requested node configuration is not available")
                job_id = len(self.runs) + 1
                start = int(now) + 1
                end = start + int(min(emulation.run_s, spec.time_limit_s))
                state = "COMPLETED" if emulation.run_s <= spec.time_limit_s else "TIMEOUT"
                nodes, limit = f"n[1-{spec.num_tasks}]", spec.time_limit_s
                self.runs[job_id] = run_of(
                    job_id, emulation.tag, int(now), start, end, state, spec.num_tasks, nodes, limit
                )
                self.empty_at = max(self.empty_at, end)
                return now, Submitted(job_id)
            case Query():
                return now, self.plan
            case AwaitEmpty():
                return max(now, self.empty_at), Ok()
            case FollowJobs(after=after):
                ended, self.runs = list(self.runs.values()), {}
                return now, JobRuns(
                    ended, [run for number, run in self.open.items() if number > after]
                )
        raise AssertionError(message)


def job(number, submit, run=10, procs=1, req=60, raw_run=None):
    return TraceJob(number, submit, run, procs, req, raw_run or run)


def replay(jobs, controller=None, clock=None, options=None, on_progress=None):
    clock = clock or Clock()
    controller = controller or Controller(clock)
    outcomes = []
    more = {"on_progress": on_progress} if on_progress else {}
    Replayer(jobs, controller, clock, options, **more).start(outcomes.append)
    assert not outcomes, "the answer never comes before start returns"
    clock.run()
    (outcome,) = outcomes
    return outcome, controller


def test_each_job_is_submitted_at_its_time_and_jobs_of_one_instant_in_their_order():
    outcome, controller = replay([job(1, 0), job(2, 0), job(3, 500), job(4, 500), job(5, 501)])
    submissions = [
        (when, message.spec.name)
        for when, message, _ in controller.received
        if isinstance(message, SubmitJob)
    ]
    zero = EPOCH + 1
    assert submissions == [
        (zero, "1"),
        (zero, "2"),
        (zero + 500, "3"),
        (zero + 500, "4"),
        (zero + 501, "5"),
    ]
    assert outcome.error == ""


def test_submissions_that_are_sent_together_are_each_delivered_at_their_time():
    sent = []

    class Watching(Controller):
        def send(self, peer, message, *rest, **more):
            sent.append(self.clock.now())
            super().send(peer, message, *rest, **more)

    clock = Clock()
    _, controller = replay(
        [job(n, 100 * n) for n in range(6)], Watching(clock), clock, ReplayOptions(jobs_ahead=4)
    )
    zero = EPOCH + 1
    assert [when for when, message, _ in controller.received if isinstance(message, SubmitJob)] == [
        zero + 100 * n for n in range(6)
    ]
    assert sent[1:7] == [zero] * 4 + [zero + 400] * 2
    assert [
        when for when, message, _ in controller.received if isinstance(message, AwaitEmpty)
    ] == [zero + 500]


def test_plans_are_asked_for_behind_the_pass_of_their_second_and_only_until_the_end():
    clock, told = Clock(), []
    controller = Controller(clock)
    outcomes = []
    options = ReplayOptions(plans_at=(5, 7, 5000))
    Replayer(
        [job(1, 0)], controller, clock, options, on_plan=lambda *plan: told.append(plan)
    ).start(outcomes.append)
    clock.run()
    asked = [when for when, message, _ in controller.received if isinstance(message, Query)]
    assert asked == [EPOCH + 1 + 5.75, EPOCH + 1 + 7.75]
    assert told == [(5, [["row"]]), (7, [["row"]])]
    assert outcomes[0].error == ""


def test_a_plan_that_is_refused_ends_the_replay():
    clock = Clock()
    controller = Controller(clock)
    controller.plan = Failure(2, "no")
    outcome, _ = replay([job(1, 0)], controller, clock, ReplayOptions(plans_at=(5,)))
    assert "the plan at 5 s was not told" in outcome.error


def test_a_job_asks_for_what_the_trace_says():
    _, controller = replay(
        [job(7, 0, run=60, raw_run=75, procs=3, req=60)], options=ReplayOptions(partition="batch")
    )
    message = controller.received[1][1]
    assert (
        message.spec.name,
        message.spec.num_tasks,
        message.spec.time_limit_s,
        message.spec.partition,
    ) == ("7", 3, 60, "batch")
    assert message.spec.min_nodes is None
    assert message.emulation == Emulation(run_s=75, tag="7")
    assert message.script.startswith("#!")


def test_records_count_from_the_traces_zero():
    outcome, _ = replay([job(1, 0), job(2, 100, run=60, raw_run=75, procs=2)])
    assert outcome.records == [
        JobRecord(
            1, 0, 1, 11, "COMPLETED", 1, "n[1-1]", 60, "1", eligible=0, priority=1, exit_code="0:0"
        ),
        JobRecord(
            2,
            100,
            101,
            161,
            "TIMEOUT",
            2,
            "n[1-2]",
            60,
            "2",
            eligible=100,
            priority=1,
            exit_code="0:0",
        ),
    ]
    assert outcome.simulated_seconds == pytest.approx(161, abs=0.01)


def test_a_given_zero_is_kept_and_jobs_that_are_late_go_at_once():
    clock = Clock(now=EPOCH + 50)
    _, controller = replay(
        [job(1, 0), job(2, 20), job(3, 70)], clock=clock, options=ReplayOptions(zero=EPOCH)
    )
    assert [when for when, message, _ in controller.received if isinstance(message, SubmitJob)] == [
        EPOCH + 50,
        EPOCH + 50,
        EPOCH + 70,
    ]


def test_requested_times_can_be_rounded_up_to_minutes():
    _, controller = replay(
        [job(1, 0, req=61), job(2, 0, req=120)], options=ReplayOptions(limit_step_s=60)
    )
    assert [
        message.spec.time_limit_s
        for _, message, _ in controller.received
        if isinstance(message, SubmitJob)
    ] == [120, 120]


def test_a_rejected_job_is_recorded_and_the_others_keep_their_numbers():
    clock = Clock()
    outcome, _ = replay(
        [job(1, 0), job(2, 0, procs=9), job(3, 0)], Controller(clock, cpus=8), clock
    )
    assert outcome.rejected == {2: "Requested node configuration is not available"}
    assert [(r.job, r.state, r.start) for r in outcome.records] == [
        (1, "COMPLETED", 1),
        (2, REJECTED, None),
        (3, "COMPLETED", 1),
    ]


@pytest.mark.parametrize("is_told_early", [False, True])
def test_a_rejected_job_that_the_controller_keeps_as_failed_is_recorded_once(is_told_early):
    class KeepsRefused(Controller):
        def _handle(self, message):
            when, answer = super()._handle(message)
            if isinstance(answer, Failure):
                failed = run_of(
                    99,
                    message.emulation.tag,
                    int(when),
                    None,
                    int(when),
                    "FAILED",
                    reason="BadConstraints",
                )
                if is_told_early:
                    self.asked(JobRuns([failed]))
                else:
                    self.runs[99] = failed
            return when, answer

    clock = Clock()
    outcome, _ = replay([job(1, 0), job(2, 0, procs=9)], KeepsRefused(clock, cpus=8), clock)
    assert [(r.job, r.state) for r in outcome.records] == [(1, "COMPLETED"), (2, REJECTED)]


def test_the_wait_for_an_empty_cluster_has_no_deadline():
    _, controller = replay([job(1, 0)])
    assert [
        timeout for _, message, timeout in controller.received if isinstance(message, AwaitEmpty)
    ] == [float("inf")]


def test_an_empty_trace_ends_at_once():
    outcome, _ = replay([])
    assert (outcome.records, outcome.error) == ([], "")


def test_progress_is_told_after_each_instant():
    told = []
    replay(
        [job(1, 0), job(2, 0), job(3, 9)],
        options=ReplayOptions(jobs_ahead=1),
        on_progress=lambda *what: told.append(what),
    )
    assert told == [(2, 3, EPOCH + 1), (3, 3, EPOCH + 10)]


@pytest.mark.parametrize(
    ("kind", "failure", "error"),
    [
        (
            SubmitJob,
            Failure(1005, "no connection"),
            "submission of job 1 was not answered: no connection (1005)",
        ),
        (
            SubmitJob,
            Failure(5004, "too late"),
            "submission of job 1 was not answered: too late (5004)",
        ),
        (AwaitEmpty, Failure(1006, "lost"), "the cluster did not become empty: lost (1006)"),
        (
            FollowJobs,
            Failure(-1, "no such table"),
            "what became of the jobs was not answered: no such table (-1)",
        ),
        (
            FollowJobs,
            JobRuns([]),
            "the controller told nothing of 2 jobs that it did not refuse, the first is 1",
        ),
    ],
)
def test_a_replay_that_cannot_go_on_says_why_and_submits_no_more(kind, failure, error):
    clock = Clock()
    outcome, controller = replay(
        [job(1, 0), job(2, 1000)],
        Controller(clock, refuse={kind: failure}),
        clock,
        ReplayOptions(jobs_ahead=1),
    )
    assert outcome.error == error
    if kind is SubmitJob:
        assert (
            len(
                [message for _, message, _ in controller.received if isinstance(message, SubmitJob)]
            )
            == 1
        )


def test_a_replay_that_is_given_up_has_what_became_of_the_jobs_so_far():
    clock = Clock()
    controller = Controller(clock)
    controller.open[1] = run_of(
        1, "1", int(EPOCH) + 1, None, None, "PENDING", nodes="", reason="Resources"
    )
    outcomes = []
    replayer = Replayer([job(1, 0), job(2, 1000)], controller, clock, ReplayOptions(jobs_ahead=1))
    replayer.start(outcomes.append)
    replayer.give_up("nothing to do")
    clock.run()
    (outcome,) = outcomes
    assert outcome.error == "nothing to do"
    assert [
        (each.job, each.state, each.start, each.end, each.reason) for each in outcome.records
    ] == [(1, "PENDING", None, None, "Resources")]


def test_a_replay_that_stalls_with_waiting_jobs_has_gone_through_with_running_ones_not():
    for state, error in (
        ("PENDING", ""),
        ("SUSPENDED", ""),
        ("RUNNING", "nothing to do; unfinished: job 2 (RUNNING)"),
    ):
        clock = Clock()
        controller = Controller(clock)
        controller.empty_at = float("inf")
        controller.open[2] = run_of(2, "2", int(EPOCH) + 1, None, None, state)
        outcomes = []
        replayer = Replayer([job(1, 0), job(2, 0)], controller, clock)
        replayer.start(outcomes.append)
        clock.call_at(EPOCH + 1.001, replayer.stall, "nothing to do")
        clock.run()
        assert [outcome.error for outcome in outcomes] == [error]


def test_a_run_that_was_requeued_is_an_attempt_and_the_last_run_is_the_record():
    recording = Recording(lambda told, task: record_of(told, 0, int(told.tag), task))
    first = run_of(1, "1", 0, 10, 20, "PREEMPTED", preemptions=1)
    recording.add([first])
    recording.add(
        [run_of(1, "1", 20, 140, 200, "COMPLETED", restarts=1, preemptions=1, scheduler="Backfill")]
    )
    (record,), (attempt,) = recording.records, recording.attempts
    assert (record.start, record.state, record.restarts, record.preemptions, record.backfilled) == (
        140,
        "COMPLETED",
        1,
        1,
        True,
    )
    assert (attempt.start, attempt.end, attempt.state) == (10, 20, "PREEMPTED")


def test_tasks_of_an_array_have_records_of_their_own_though_the_controller_has_one():
    recording = Recording(lambda told, task: record_of(told, 0, told.job_id, task))
    recording.add(
        [run_of(7, "a", 0, None, 9, "CANCELLED", nodes="", array_job_id=5, array_tasks="1-2,9")]
    )
    recording.add([run_of(6, "a", 0, 1, 8, "COMPLETED", array_job_id=5, array_tasks="3")])
    assert [(record.id, record.state, record.start,
        record.end) for record in recording.records] == [
        ("a_3", "COMPLETED", 1, 8), ("a_1", "CANCELLED", None, None),
        ("a_2", "CANCELLED", None, None), ("a_9", "CANCELLED", None, None),
    ]  # fmt: skip


def test_a_timer_that_comes_a_clock_tick_early_still_sends_its_jobs():
    class EarlyClock(Clock):
        def run(self):
            while self.timers:
                when, _, callback, args = heapq.heappop(self.timers)
                self.time = max(self.time, when - 1e-9)
                callback(*args)

    clock = EarlyClock()
    outcome, _ = replay([job(1, 0), job(2, 5), job(3, 6)], clock=clock)
    assert [record.job for record in outcome.records] == [1, 2, 3]


def test_with_owners_a_jobs_user_group_and_queue_in_the_trace_become_user_account_and_qos():
    owned = TraceJob(1, 0, 60, 1, 60, 60, user=7, group=3, queue=2)
    _, controller = replay([owned, job(2, 5)], options=ReplayOptions(owners=True))
    first, second = (
        message for _, message, _ in controller.received if isinstance(message, SubmitJob)
    )
    assert (first.user_id, first.spec.account, first.spec.qos) == (
        owners([owned])["u7"],
        "a3",
        "q2",
    )
    assert (second.user_id, second.spec.account, second.spec.qos) == (-1, "", "")


def test_jobs_that_are_added_come_in_their_time_and_the_run_is_not_over_before():
    clock = Clock()
    controller = Controller(clock)
    outcomes = []
    replayer = Replayer([job(1, 0), job(2, 50)], controller, clock)
    replayer.start(outcomes.append)
    # all of the trace has been sent ahead by then, and its end is awaited
    clock.call_at(EPOCH + 1 + 20, lambda: replayer.add([job(7, 300), job(8, 5)]))
    coming = []
    clock.call_at(EPOCH + 1 + 21, lambda: coming.extend(replayer.coming()))
    clock.run()
    (outcome,) = outcomes
    assert [(each.job, each.submit) for each in outcome.records] == [
        (1, 0),
        (2, 50),
        (3, 300),
        (4, 20),
    ]
    assert [each.id for each in outcome.records] == ["1", "2", "3", "4"]
    assert [each.submit for each in coming] == [50, 300]
    assert outcome.error == ""


def test_what_others_submit_is_awaited_and_told_of():
    clock = Clock()
    controller = Controller(clock)
    outcomes = []
    replayer = Replayer([job(1, 0)], controller, clock)
    replayer.start(outcomes.append)

    def submit():
        tag = replayer.tag("own")
        spec = SubmitJob(
            submission(job(1, 0), ReplayOptions()).spec, "", Emulation(run_s=5, tag=tag)
        )
        controller.send("controller", spec, lambda _answer: replayer.expect(-1))

    clock.call_at(EPOCH + 1 + 10, replayer.expect, 1)
    clock.call_at(EPOCH + 1 + 900, submit)
    clock.run()
    (outcome,) = outcomes
    assert [(each.job, each.id, each.submit) for each in outcome.records] == [
        (1, "1", 0),
        (2, "own 2", 900),
    ]
