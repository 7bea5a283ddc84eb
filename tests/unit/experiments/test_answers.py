"""Schedules are compared with answers from elsewhere."""

import gzip

import pytest

from understudy.experiments.answers import Answer, AnswersError, Difference, compare, read_answers
from understudy.experiments.records import REJECTED, JobRecord

HEAD = "id,submit,start,end,procs,req\n"


def record(job, start, end, state="COMPLETED"):
    return JobRecord(job, 0, start, end, state, 1, "n1", 60)


def test_answers_are_read_plain_and_compressed(tmp_path):
    text = HEAD + "1,0,5,10,2,60\n"
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert (
        read_answers(tmp_path / "a.csv")
        == read_answers(tmp_path / "a.csv.gz")
        == {1: Answer(0, 5, 10, 2, 60)}
    )


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("job,start\n", "line 1: expected the header"),
        (HEAD + "1,0,5,10,2,60\n1,2,x\n", "line 3: expected six"),
        ("", "line 1"),
    ],
)
def test_a_file_that_is_none_says_where(tmp_path, text, where):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(AnswersError, match=where):
        read_answers(tmp_path / "a.csv")


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(HEAD.encode())[:-5])
    with pytest.raises(AnswersError, match="damaged gzip file"):
        read_answers(tmp_path / "a.csv.gz")


def test_a_run_that_agrees_says_so():
    comparison = compare(
        [record(1, 5, 10), record(2, 6, 9)], {1: Answer(0, 5, 10, 1, 60), 2: Answer(0, 6, 9, 1, 60)}
    )
    assert comparison.agrees
    assert comparison.equal_ends == 2
    assert comparison.text() == "2 of 2 start times equal the answers"


def test_differences_are_shown_in_the_order_of_time():
    answers = {n: Answer(0, 100 - n, 200, 1, 60) for n in range(1, 6)}
    comparison = compare(
        [record(1, 99, 200), record(2, 0, 200), record(3, None, None, REJECTED), record(9, 7, 8)],
        answers,
        keep=3,
    )
    assert (comparison.jobs, comparison.equal_starts, comparison.equal_ends, comparison.agrees) == (
        6,
        1,
        2,
        False,
    )
    assert comparison.differences == (
        Difference(9, None, 7),
        Difference(5, 95, None),
        Difference(4, 96, None),
    )
    assert comparison.text().splitlines()[1:3] == [
        "  job 9: expected not at all, was 7 s",
        "  job 5: expected 95 s, was not at all",
    ]


def test_a_job_that_was_rejected_and_is_not_in_the_answers_is_no_difference():
    assert compare(
        [record(1, 5, 10), record(2, None, None, REJECTED)], {1: Answer(0, 5, 10, 1, 60)}
    ).agrees
