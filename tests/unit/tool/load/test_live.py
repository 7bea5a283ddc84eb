"""What a load shows while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy.tool.load.kinds import plan_of
from understudy.tool.load.live import Live, live_table
from understudy.tool.load.measure import Tally, histogram, record
from understudy.tool.load.run import Course
from understudy.tool.load.samples import Sampler
from understudy.tool.load.target import Target


def second(course: Course, *latencies_s: float, errors: tuple[str, ...] = ()) -> None:
    tally = Tally(sent=len(latencies_s), answered=len(latencies_s))
    for each in latencies_s:
        record(tally.latencies, each)
    tally.errors.update(errors)
    course.take(
        0,
        {
            "streams": {"sbatch": tally.packed()},
            "late": histogram().encode().decode(),
            "jobs": [1, 2],
            "waiting": 7,
            "cpu": 0.5,
        },
    )
    course.end_second()


def sample(at: float, **numbers: float) -> dict[str, object]:
    return {"at": at, "daemons": {"controller": {"cpu_s": at / 2, "mb": 60.0 + at}}, **numbers}


@pytest.fixture
def course() -> Course:
    found = Course(plan_of("mass-completion"))
    second(found, 0.002, 0.004)
    return found


@pytest.fixture
def sampler() -> Sampler:
    found = Sampler(Target("understudy", Path("/nowhere"), {}, ["n1"]), 0.0)
    told = {"pending": 5, "running": 3, "agents": 1, "agent_queue": 2, "lock_waiting": 4}
    found.samples += [
        sample(1.0, **told, loop_us=1000, requests_waiting=9, bytes_sent=0),
        sample(2.0, **told, loop_us=3000, requests_waiting=9, bytes_sent=4000),
    ]
    return found


def test_the_table_has_each_stream_the_daemons_and_the_controller(
    course: Course, sampler: Sampler
) -> None:
    text = "\n".join(live_table(course, sampler.samples))
    assert "4 jobs" not in text
    assert "2 jobs acknowledged, 7 requests unanswered" in text
    assert [line.split()[0] for line in text.splitlines()[2:6]] == [
        "stream",
        "sbatch",
        "squeue",
        "sinfo",
    ]
    assert "controller     50  62" in text
    assert "5 pending, 3 running; agents: 1 in flight, 2 queued" in text
    assert "late 2.0 ms/s" in text
    assert "9 requests, 4 of them for locks" in text
    assert "out 4.0" in text


def test_latencies_are_of_the_last_second_and_counts_of_the_whole(course: Course) -> None:
    second(course, 0.5)
    (row,) = (line for line in live_table(course, []) if line.startswith("sbatch"))
    cells = row.split()
    assert cells[1:3] == ["3", "3"]
    assert float(cells[4]) == pytest.approx(500, rel=0.01)
    course.end_second()
    (row,) = (line for line in live_table(course, []) if line.startswith("sbatch"))
    assert row.split()[3:9] == ["0.0", *"-----"]


def test_of_many_errors_the_most_frequent_are_shown(course: Course) -> None:
    texts = ("a", "b", "b", "c", "c", "c", "d", "d", "d", "d")
    second(course, 0.1, errors=texts)
    shown = [line for line in live_table(course, []) if line.startswith("error:")]
    assert shown == ["error: sbatch: d (4)", "error: sbatch: c (3)", "error: sbatch: b (2)"]


def test_real_slurm_tells_less(course: Course) -> None:
    slurm = {"at": 1.0, "daemons": {"slurmctld": {"cpu_s": 1.0, "mb": 9.0}}}
    assert live_table(course, [slurm | {"agents": 2, "pending": 1}])[-1].startswith("jobs: 1 pend")
    assert live_table(course, [slurm])[-2].startswith("slurmctld")


def test_on_a_terminal_the_table_is_written_over_itself_and_fits(
    course: Course, sampler: Sampler
) -> None:
    written: list[str] = []
    live = Live(written.append, lambda: (30, 6))
    live.show(course, sampler)
    live.show(course, sampler)
    assert not written[0].startswith("\x1b")
    assert written[1] == "\x1b[5F\x1b[J" + written[0]
    assert written[0].count("\n") == 5
    assert max(map(len, written[0].splitlines())) <= 29


def test_elsewhere_each_second_is_a_line(course: Course, sampler: Sampler) -> None:
    written: list[str] = []
    live = Live(written.append, None)
    live.show(course, sampler)
    live.show(course, sampler)
    assert [text.count("\n") for text in written] == [1, 1]
    assert "\x1b" not in "".join(written)
