"""sdiag: what is counted, and how it is printed.

Covers: commands/sdiag, commands/shared/requests, controller/scheduling/cycles,
controller/tables/counters.
"""

from __future__ import annotations

import pytest
from controller_harness import ROOT, USER, Harness
from fake_controller import FakeClient, run_command

from understudy.clock.pauses import Pauses
from understudy.commands.sdiag import report, sdiag
from understudy.commands.shared.client import RefusedError
from understudy.controller.requests.statistics import get_statistics
from understudy.controller.scheduling.cycles import Cycles
from understudy.controller.tables.counters import Counters
from understudy.model.errors import SlurmError
from understudy.protocol.messages import CancelJobs, GetStatistics, Ok, Ping, Query, Statistics

_NAMES = (
    "count",
    "depth",
    "last_depth",
    "last_queue",
    "queue",
    "started",
    "started_before",
    "when",
    "last_us",
    "longest_us",
    "us",
)


def _numbers(**given: int) -> dict[str, int]:
    names = (
        "submitted",
        "started",
        "completed",
        "cancelled",
        "failed",
        "failures",
        "pending",
        "running",
        "agent_queue",
        "agents",
    )
    empty = dict.fromkeys(
        [*names, *(f"{kind}_{name}" for kind in ("main", "backfill") for name in _NAMES)], 0
    )
    return empty | given


def test_requests_are_counted_by_type_and_by_user() -> None:
    counters = Counters()
    for message in (Ping(), Query("jobs", []), Ping()):
        counters.request(message, 7, 10)
    assert counters.requests == {
        ("REQUEST_PING", 1008): [2, 20],
        ("REQUEST_JOB_INFO", 2003): [1, 10],
    }
    assert counters.users == {7: [3, 30]}
    counters.reset(5.0)
    assert (counters.requests, counters.users, counters.since) == ({}, {}, 5.0)


def test_a_cycle_is_remembered_when_the_sums_begin_again() -> None:
    cycles = Cycles()
    cycles.ran(4, 2, 100.5)
    cycles.took(30)
    cycles.ran(2, 1, 101.5)
    cycles.took(20)
    assert (
        cycles.count,
        cycles.depth,
        cycles.last_depth,
        cycles.started,
        cycles.us,
        cycles.longest_us,
    ) == (2, 6, 2, 3, 50, 30)
    cycles.reset()
    assert (cycles.count, cycles.depth, cycles.last_us, cycles.started, cycles.started_before) == (
        0,
        0,
        20,
        3,
        3,
    )


def test_jobs_are_counted_as_they_come_start_and_end() -> None:
    h = Harness()
    job = h.submit()
    h.submit(hold=True)
    answer = get_statistics(h.core, GetStatistics(), USER)
    assert isinstance(answer, Statistics)
    assert (
        answer.numbers["submitted"],
        answer.numbers["started"],
        answer.numbers["running"],
        answer.numbers["pending"],
    ) == (2, 1, 1, 1)
    assert job.is_running
    with pytest.raises(SlurmError, match="Access/permission denied"):
        get_statistics(h.core, GetStatistics(reset=True), USER)
    assert get_statistics(h.core, GetStatistics(reset=True), ROOT) == Ok()
    assert h.core.counters.submitted == 0


def test_what_a_policy_counts_of_its_own_is_told_and_begins_again() -> None:
    h = Harness()
    h.core.policy.figures["largest_front"] = 7
    answer = get_statistics(h.core, GetStatistics(), USER)
    assert isinstance(answer, Statistics)
    assert answer.numbers["policy_largest_front"] == 7
    get_statistics(h.core, GetStatistics(reset=True), ROOT)
    assert h.core.policy.figures == {"largest_front": 0}


def test_the_report_shows_what_a_policy_counts_of_its_own() -> None:
    client = FakeClient()
    numbers = _numbers(policy_largest_front=7, policy_windows=3)
    client.answers["GetStatistics"] = [1000.0, 900.0, numbers, [], []]
    lines = run_command(sdiag, client=client).lines
    place = lines.index("Policy statistics")
    assert lines[place + 1 : place + 3] == ["\tLargest front: 7", "\tWindows: 3"]


def test_the_report_names_means_only_where_there_were_cycles() -> None:
    client = FakeClient()
    client.answers["GetStatistics"] = [
        1000.0,
        900.0,
        _numbers(submitted=3, main_count=4, main_us=40, main_depth=8),
        [["A", 9, 2, 30]],
        [["u", 5, 2, 30]],
    ]
    lines = run_command(sdiag, client=client).lines
    assert "Jobs submitted: 3" in lines
    assert [line for line in lines if "ean" in line] == [
        "\tMean cycle:   10",
        "\tMean depth cycle:  2",
    ]
    assert "\tCycles per minute: 2" in lines
    assert f"\t{'A':<40}(    9) count:2      ave_time:15     total_time:30" in lines
    assert "\tLast cycle when: N/A" in lines


def test_requests_are_sorted_as_asked() -> None:
    client = FakeClient()
    client.answers["GetStatistics"] = [
        1000.0,
        900.0,
        _numbers(),
        [["A", 9, 5, 10], ["B", 3, 2, 90]],
        [],
    ]

    def order(*options: str) -> list[str]:
        return [
            line[1]
            for line in run_command(sdiag, *options, client=client).lines
            if line[:2] in {"\tA", "\tB"}
        ]

    assert (order(), order("-i"), order("-t"), order("-T")) == (
        ["A", "B"],
        ["B", "A"],
        ["B", "A"],
        ["B", "A"],
    )


def test_a_reset_is_for_administrators() -> None:
    client = FakeClient()
    assert run_command(sdiag, "-r", client=client).out == "Reset scheduling statistics\n"
    client.answers["GetStatistics"] = RefusedError(2002, "Access/permission denied")
    outcome = run_command(sdiag, "-r", client=client)
    assert (outcome.code, outcome.err) == (
        255,
        "slurm_reset_statistics: Access/permission denied\n",
    )
    assert run_command(sdiag, "--json", client=client).err.startswith(
        "sdiag: unrecognized option '--json'"
    )


def test_cancellations_are_counted_by_what_was_named_and_tasks_as_submitted() -> None:
    h = Harness()
    counters = h.core.counters
    array = h.submit(array="1-4", hold=True)
    assert counters.submitted == 4
    for names in (["%d_[1-2]"], ["%d_3", "%d_9"], ["%d"], ["%d"]):
        h.ask(CancelJobs([name % array.job_id for name in names]), USER)
    assert counters.cancelled == 3  # tasks that there are not, and what has ended, do not count
    h.cancel(h.submit(), ROOT)
    assert (counters.submitted, counters.cancelled, counters.completed) == (5, 4, 0)


def test_a_requeued_run_has_completed_and_one_whose_node_is_lost_has_not() -> None:
    h = Harness()
    job = h.submit()
    assert job.is_running
    assert h.control("requeue", job, ROOT) == 0
    assert h.core.counters.completed == 1
    lost = h.submit(requeue=False, required_nodes="n4")
    h.update_nodes("n4", state="down", reason="x")
    assert lost.is_finished
    assert (h.core.counters.completed, h.core.counters.failed) == (1, 0)


def test_of_all_and_reset_the_last_counts() -> None:
    client = FakeClient()
    client.answers["GetStatistics"] = [1000.0, 900.0, _numbers(submitted=7), [], []]
    assert "Jobs submitted: 7" in run_command(sdiag, "-r", "-a", client=client).lines
    assert run_command(sdiag, "-a", "-r", client=client).out == "Reset scheduling statistics\n"


def test_exceptions_of_the_controller_are_shown_where_there_were_some() -> None:
    assert not [line for line in report(0.0, 0.0, _numbers(), [], []) if "Exceptions" in line]
    assert "Exceptions:     3" in report(0.0, 0.0, _numbers(failures=3), [], [])


def test_waits_for_the_loop_are_shown_where_it_is_looked_at() -> None:
    h = Harness()
    now = 5.0
    timers = []
    h.core.pauses = Pauses(lambda: now)
    h.core.pauses.watch_loop(lambda _delay, callback: timers.append(callback))
    now += 0.35
    timers.pop()()
    h.core.pauses.collections.took(80)
    h.core.pauses.collections.took(40)
    told = h.ask(GetStatistics())
    shown = report(told.now, told.since, told.numbers, [], [])
    begin = next(i for i, line in enumerate(shown) if "loop delay" in line)
    assert shown[begin - 1].startswith("Latency for 1000 calls")
    assert [" ".join(line.split()) for line in shown[begin : begin + 7]] == [
        "Last loop delay: 250000 microseconds",
        "Max loop delay: 250000",
        "Mean loop delay: 250000",
        "Garbage collections: 2",
        "Max collection: 80",
        "Total collections: 120",
        "",
    ]
    assert h.ask(GetStatistics(reset=True), ROOT) == Ok()
    assert h.ask(GetStatistics()).numbers["loop_longest_us"] == 0


def test_in_virtual_time_nobody_waits_for_the_loop() -> None:
    assert not any("loop delay" in line for line in report(0.0, 0.0, _numbers(), [], []))
