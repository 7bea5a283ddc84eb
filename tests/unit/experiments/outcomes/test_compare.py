"""Runs side by side. Covers: experiments/outcomes/differences."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes_harness import records, two_runs, written

from understudy.experiments.outcomes.compare import compare
from understudy.experiments.outcomes.read import RunError
from understudy.experiments.records import JobRecord


def compared(tmp_path_factory, *runs, **options):
    folder = tmp_path_factory.mktemp("runs")
    paths = [written(folder / f"{number}.csv", run) for number, run in enumerate(runs)]
    return compare(paths, **options)


@settings(max_examples=40, deadline=None)
@given(records())
def test_a_run_beside_itself_differs_in_nothing(tmp_path_factory, found):
    comparison = compared(tmp_path_factory, found, found)
    (against,) = comparison.against
    first, second = comparison.runs
    assert first.figures == second.figures
    assert (against.longer, against.shorter, against.first_differences) == (0, 0, ())
    assert against.equal_starts == against.pairs
    for change in (against.wait, against.slowdown):
        if change.difference is not None:
            assert (change.difference.mean, change.difference.low, change.difference.high) == (
                0,
                0,
                0,
            )
    groups = [group for found in against.by.values() for group in found]
    assert all(group.total == group.longer == group.shorter == 0 for group in groups)
    onlys = (
        against.not_in_first, against.not_in_this, against.started_in_first_only,
        against.started_in_this_only,
    )  # fmt: skip
    assert [only.count for only in onlys] == [0, 0, 0, 0]


@settings(max_examples=40, deadline=None)
@given(two_runs())
def test_runs_that_change_places_negate_the_differences(tmp_path_factory, runs):
    first, second = runs
    (there,) = compared(tmp_path_factory, first, second).against
    (back,) = compared(tmp_path_factory, second, first).against
    assert (there.pairs, there.longer, there.shorter) == (back.pairs, back.shorter, back.longer)
    for one, other in ((there.wait, back.wait), (there.slowdown, back.slowdown)):
        assert (one.first, one.second) == (other.second, other.first)
        if one.difference is not None and other.difference is not None:
            assert other.median == pytest.approx(-one.median)
            assert (other.difference.mean, other.difference.low, other.difference.high) == (
                pytest.approx(
                    (-one.difference.mean, -one.difference.high, -one.difference.low), abs=1e-9
                )
            )
    for way, groups in there.by.items():
        totals = {group.name: (group.total, group.longer, group.shorter) for group in groups}
        assert {g.name: (-g.total, g.shorter, g.longer) for g in back.by[way]} == totals
    assert (there.not_in_first, there.not_in_this) == (back.not_in_this, back.not_in_first)
    assert there.started_in_first_only == back.started_in_this_only
    assert [(each.job, each.fates) for each in there.first_differences] == [
        (each.job, each.fates[::-1]) for each in back.first_differences
    ]


@settings(max_examples=30, deadline=None)
@given(two_runs(), st.randoms())
def test_the_order_of_lines_changes_nothing(tmp_path_factory, runs, shuffled):
    first, second = runs
    mixed = second.copy()
    shuffled.shuffle(mixed)
    one, other = (compared(tmp_path_factory, first, each) for each in (second, mixed))
    assert one.against == other.against
    assert one.jobs == other.jobs


def test_waits_of_jobs_are_compared_in_pairs(tmp_path_factory):
    first = [JobRecord(n, 0, 10 * n, 99, "COMPLETED", n, "", 60, f"j{n}") for n in (1, 2, 3)]
    second = [
        JobRecord(9, 0, 15, 99, "COMPLETED", 1, "", 60, "j1", user="ada"),
        JobRecord(8, 0, 10, 99, "COMPLETED", 2, "", 60, "j2"),
        JobRecord(7, 0, 30, 99, "COMPLETED", 3, "", 60, "j3"),
        JobRecord(6, 0, 30, 99, "COMPLETED", 3, "", 60, "j4"),
    ]
    comparison = compared(tmp_path_factory, first, second)
    (against,) = comparison.against
    assert (against.matched, against.pairs, against.longer, against.shorter) == (3, 3, 1, 1)
    assert against.wait.difference is not None
    assert against.wait.difference.mean == pytest.approx((5 - 10 + 0) / 3)
    assert (against.wait.median, against.equal_starts) == (0.0, 1)
    assert (against.not_in_first.count, against.not_in_first.first) == (1, ("j4",))
    assert {group.name: group.total for group in against.by["user"]} == {"": -10, "ada": 5}
    assert [group.name for group in against.by["size"]] == ["1", "2", "3-4"]
    assert [group.name for group in against.most("user", longer=True)] == ["ada"]
    assert [each.job for each in against.first_differences] == ["j1", "j2"]
    assert len(comparison.jobs) == 4


def test_only_jobs_that_are_far_enough_apart_are_told_of(tmp_path_factory):
    first = [JobRecord(n, 0, 0, 99, "COMPLETED", 1, "", 60, f"j{n}") for n in (1, 2, 3)]
    starts = {1: 4, 2: 60, 3: None}
    second = [JobRecord(n, 0, at, 99, "COMPLETED", 1, "", 60, f"j{n}") for n, at in starts.items()]
    (against,) = compared(tmp_path_factory, first, second, apart_s=60).against
    assert [each.job for each in against.first_differences] == ["j2", "j3"]


def test_runs_without_common_ids_are_matched_by_place(tmp_path_factory):
    first = [JobRecord(1, 0, 5, 9, "COMPLETED", 1, "", 60, "a")]
    second = [JobRecord(1, 0, 7, 9, "COMPLETED", 1, "", 60, "b")]
    comparison = compared(tmp_path_factory, first, second)
    assert (comparison.matched_by, comparison.against[0].pairs) == ("place", 1)


def test_jobs_of_the_same_id_are_matched_in_their_order(tmp_path_factory):
    first = [JobRecord(n, n, n, 9, "COMPLETED", 1, "", 60, "same") for n in (1, 2)]
    (against,) = compared(tmp_path_factory, first, first[:1]).against
    assert (against.matched, against.not_in_this.count, against.wait.first) == (1, 1, 0.0)


def test_a_day_has_groups_of_hours(tmp_path_factory):
    found = [
        JobRecord(n, 3600 * n, 3600 * n, None, "RUNNING", 1, "", 60, f"j{n}") for n in range(48)
    ]
    (against,) = compared(tmp_path_factory, found, found).against
    assert [(group.name, group.pairs) for group in against.by["time of day"]] == [
        (f"{hour:02}-{hour + 4:02} h", 8) for hour in range(0, 24, 4)
    ]


def test_each_further_run_is_compared_with_the_first(tmp_path_factory):
    runs = [[JobRecord(1, 0, at, 99, "COMPLETED", 1, "", 60, "a")] for at in (5, 6, 8)]
    comparison = compared(tmp_path_factory, *runs)
    changes = [each.wait.difference for each in comparison.against]
    assert [(each.letter) for each in comparison.against] == ["B", "C"]
    assert [change.mean for change in changes if change is not None] == [1.0, 3.0]


def test_answers_are_compared_by_place(tmp_path):
    answers = tmp_path / "answers.csv"
    answers.write_text("id,submit,start,end,procs,req\n1,0,4,9,2,60\n")
    run = written(tmp_path / "jobs.csv", [JobRecord(1, 0, 9, 14, "COMPLETED", 2, "", 60, "id77")])
    comparison = compare([answers, run])
    assert (comparison.matched_by, comparison.against[0].longer) == ("place", 1)
    assert comparison.runs[0].figures["requeued_runs"] is None


def test_too_few_runs_and_runs_without_jobs_are_refused(tmp_path):
    empty = written(tmp_path / "jobs.csv", [])
    with pytest.raises(ValueError, match="2 to 26 runs, not 1"):
        compare([empty])
    with pytest.raises(RunError, match=r"jobs\.csv: no job"):
        compare([empty, empty])
    with pytest.raises(OSError, match="none"):
        compare([empty, Path("none")])
