"""The story of a job. Covers: experiments/outcomes/fate, experiments/outcomes/telling."""

import csv

import msgspec
import pytest
from outcomes_harness import text_of, written

from understudy.experiments.outcomes.fate import Promise, Stretch
from understudy.experiments.outcomes.telling import lines
from understudy.experiments.outcomes.why import UnknownJobError, why
from understudy.experiments.records import JobRecord
from understudy.experiments.stories import StoriesFile, Story


def job(number, submit, start, **fields):
    end = None if start is None else start + 50
    fields.setdefault("id", f"j{number}")
    fields.setdefault("partition", "main")
    state = "PENDING" if start is None else "COMPLETED"
    return JobRecord(number, submit, start, end, state, 2, "n1", 60, **fields)


def fate_of(tmp_path, records, name, stories=(), attempts=()):
    written(tmp_path / "jobs.csv", records)
    if attempts:
        (tmp_path / "attempts.csv").write_text(text_of(attempts))
    if stories:
        file = StoriesFile(tmp_path)
        file.add(stories)
        file.close()
    (story,) = why(tmp_path, name).stories
    return story.fates[-1]


def test_reasons_last_until_the_next_and_promises_say_how_far_they_moved(tmp_path):
    story = Story("j1", 10, [(10, "None"), (12, "Priority")], [(20, 90), (30, 70)])
    fate = fate_of(tmp_path, [job(1, 10, 60)], "j1", [story])
    assert fate.stretches == (Stretch(10, 12, ""), Stretch(12, 60, "Priority"))
    assert fate.promises == (Promise(20, 90, 0), Promise(30, 70, -20))
    assert fate.wait == 50


def test_who_was_ahead_and_who_passed_are_told_apart_and_why(tmp_path):
    records = [
        job(1, 10, 100, priority=5),
        job(2, 0, 50, priority=9),  # before it
        job(3, 20, 60, priority=4, backfilled=True),
        job(4, 20, 61, priority=8),
        job(5, 20, 62, priority=5, scheduled_by="Submit"),
        job(6, 5, 63, priority=2),  # before it, with less priority
        job(7, 20, 64, partition="gpu"),  # elsewhere
        job(8, 20, 65, partition="main,gpu", priority=5),
        job(9, 20, 100),  # at the same time
        job(10, 0, 5),  # before it came
        job(11, 20, None),
    ]
    fate = fate_of(tmp_path, records, "j1")
    assert (fate.ahead, fate.ahead_jobs) == (1, ("j2",))
    assert [(passer.job, passer.why) for passer in fate.passers] == [
        ("j3", "backfilled"),
        ("j4", "higher priority"),
        ("j5", "started as it was submitted"),
        ("j6", "lower priority"),
        ("j8", "in partition main,gpu"),
    ]


def test_who_could_not_run_yet_was_not_passed(tmp_path):
    records = [job(1, 10, 100, eligible=80), job(2, 20, 60), job(3, 20, 90)]
    fate = fate_of(tmp_path, records, "j1")
    assert [passer.job for passer in fate.passers] == ["j3"]


def test_who_never_starts_is_passed_to_the_end(tmp_path):
    fate = fate_of(tmp_path, [job(1, 10, None, reason="Dependency"), job(2, 20, 9999)], "j1")
    assert fate.passed == 1
    assert lines(fate)[-1] == "never started: Dependency"


def test_whose_wait_was_ended_was_passed_by_nobody_after_that(tmp_path):
    story = Story("j1", 10, [(10, "Priority")], events=[(50, "CANCELLED", "")])
    records = [
        msgspec.structs.replace(job(1, 10, None, eligible=10), state="CANCELLED"),
        job(2, 0, 40),
        job(3, 0, 60),
        job(4, 20, 60),
    ]
    fate = fate_of(tmp_path, records, "j1", [story])
    assert (fate.ahead_jobs, fate.passed) == (("j2",), 0)
    assert lines(fate) == [
        "submitted   00:00:10",
        "waited      00:00:10: 40 s of Priority",
        "behind      1 job that had come before it: j2",
        "ended       00:00:50 CANCELLED, before it started",
    ]


def test_what_does_not_say_when_a_job_was_eligible_does_not_say_never(tmp_path):
    assert not any("never" in line for line in lines(fate_of(tmp_path, [job(1, 0, 60)], "j1")))
    fate = fate_of(tmp_path, [job(1, 0, None)], "j1")
    assert "eligible    never: it was held, or waited for what did not come" in lines(fate)


def test_each_run_of_a_requeued_job_is_told(tmp_path):
    written(tmp_path / "jobs.csv", [job(1, 80, 90, restarts=1)])
    (tmp_path / "attempts.csv").write_text(text_of([job(1, 0, 10)]))
    file = StoriesFile(tmp_path)
    file.add(
        [Story("j1", 0, events=[(40, "makes room", "j9")]), Story("j1", 80, [(80, "BeginTime")])]
    )
    file.close()
    (story,) = why(tmp_path, "j1").stories
    assert [fate.start for fate in story.fates] == [10, 90]
    first, second = map(lines, story.fates)
    assert "            00:00:40: makes room for job j9" in first
    assert "waited      00:01:20: 10 s of BeginTime" in second


def test_an_arrays_number_names_all_its_tasks_and_a_leaders_its_components(tmp_path):
    names = ["3_1", "3_2", "30_1", "5", "5+1", "x_y_2"]
    records = [job(n, 0, 1, id=name) for n, name in enumerate(names, 1)]
    written(tmp_path / "jobs.csv", records)
    found = {
        name: [story.job for story in why(tmp_path, name).stories]
        for name in ("3", "3_2", "5+1", "5+0", "x_y", "5")
    }
    assert found == {
        "3": ["3_1", "3_2"], "3_2": ["3_2"], "5+1": ["5+1"],
        "5+0": ["5"], "x_y": ["x_y_2"], "5": ["5", "5+1"],
    }  # fmt: skip


def test_a_place_names_a_job_that_has_no_such_id(tmp_path):
    written(tmp_path / "jobs.csv", [job(1, 0, 1), job(2, 0, 1)])
    assert [story.job for story in why(tmp_path, "2").stories] == ["j2"]


def test_an_unknown_job_is_said_in_a_line(tmp_path):
    written(tmp_path / "jobs.csv", [job(1, 0, 1), job(2, 0, 1)])
    with pytest.raises(UnknownJobError, match=r"no job 'j9'; it has 2, from j1 to j2$"):
        why(tmp_path, "j9")


def test_of_many_lines_the_first_and_the_last_are_told(tmp_path):
    story = Story("j1", 0, promises=[(at, at + 100) for at in range(40)])
    told = lines(fate_of(tmp_path, [job(1, 0, 60)], "j1", [story]))
    promised = [line for line in told if line.startswith("promised")]
    assert (len(promised), "            ... 28 more ..." in told) == (12, True)
    assert "00:00:39" in promised[-1]


def test_times_are_the_calendars_where_the_zero_is_known(tmp_path):
    fate = fate_of(tmp_path, [job(1, 0, 60, exit_code="1:0", scheduled_by="Main")], "j1")
    told = lines(fate, zero=0.0)
    assert "19" in told[0]
    assert told[-2].endswith("by the main scheduler on n1, after 1 min")
    assert ", exit code 1:0, after 50 s" in told[-1]


def test_what_the_columns_hold_is_told_where_there_are_no_stories(tmp_path):
    fate = fate_of(tmp_path, [job(1, 0, 60, waited_for="Resources")], "j1")
    assert "waited      longest for Resources" in lines(fate)
    rows = list(csv.reader((tmp_path / "jobs.csv").read_text().splitlines()))
    assert len(rows) == 2
