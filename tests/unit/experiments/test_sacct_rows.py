"""Lines of sacct become past jobs.

Covers: experiments/past.
"""

import pytest

from understudy.experiments.past import Count, HistoryError
from understudy.experiments.past_options import Choices
from understudy.experiments.sacct_rows import read_rows

HEADER = "JobID|JobName|Comment|Submit|Start|End|State|ExitCode|SubmitLine"
ROW = "7|n|c|2023-11-14T22:13:20|2023-11-14T22:13:30|2023-11-14T22:14:20|COMPLETED|0:0|sbatch a.sh"


def read(*lines, strict=False, **options):
    counts = Count("dump", strict=strict)
    return list(read_rows([line + "\n" for line in lines], counts, Choices(**options))), counts


def test_columns_are_found_by_their_names_in_any_order_and_case():
    (record,), _ = read(
        "state|END|jobid|Start|submit|NCPUS|User",
        "FAILED|1700000060|12|1700000010|1700000000|8|ada",
    )
    assert (record.job, record.state, record.submit, record.ran_s, record.cpus, record.user) == (
        "12",
        "FAILED",
        1_700_000_000,
        50,
        8,
        "ada",
    )


def test_without_the_column_eligible_no_job_was_held():
    (record,), _ = read(HEADER, ROW.replace("COMPLETED", "CANCELLED by 0"))
    assert record.eligible == record.submit
    (held,), _ = read(HEADER + "|Eligible", ROW + "|Unknown")
    assert held.eligible is None


def test_parsable_with_its_bar_at_the_end_and_other_delimiters_are_read():
    assert len(read(HEADER + "|", ROW + "|")[0]) == 1
    for delimiter in (";", ",", "\t", "^^", "~|~"):
        assert len(read(HEADER.replace("|", delimiter), ROW.replace("|", delimiter))[0]) == 1, (
            delimiter
        )


def test_columns_can_be_named_where_there_is_no_header():
    assert len(read(ROW, columns=HEADER.replace("|", ","))[0]) == 1


def test_steps_repeated_headers_and_blank_lines_are_left_out_and_counted():
    step = ROW.replace("7|", "7.batch|", 1)
    records, counts = read(HEADER, ROW, step, "", HEADER, step.replace(".batch", ".0"), strict=True)
    assert len(records) == 1
    assert counts.left_out == {"steps": 2, "the header again": 1}


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        (ROW + "| grep x", "c"),
        (ROW.replace("|c|", "|a|b|"), "a|b"),
        (ROW.replace("|c|", "|a|b|c|") + " | x | y", "a|b|c"),
        (ROW + "|", "c"),
    ],
)
def test_bars_within_free_text_do_not_move_the_other_columns(text, comment):
    for header, row in ((HEADER, text), (HEADER + "|", text + "|")):
        (record,), counts = read(header, row, strict=True)
        assert (record.submit, record.state, record.comment) == (
            1_700_000_000,
            "COMPLETED",
            comment,
        )
        assert record.submit_line.startswith("sbatch a.sh")
        assert not counts.bad


def test_a_bar_does_not_become_the_first_character_of_a_submission_line():
    (record,), _ = read(
        "JobID|Submit|SubmitLine|TimelimitRaw|Comment",
        "7|2023-11-14T22:13:20||UNLIMITED|x | y || z",
        strict=True,
    )
    assert (record.submit_line, record.limit_min, record.comment) == ("", -1, "x | y || z")


def test_of_several_ways_to_part_a_row_the_one_that_fills_most_columns_is_taken():
    (record,), _ = read(
        "JobID|Submit|SubmitLine|Start|Comment",
        "7|2023-11-14T22:13:20|sbatch a.sh|2023-11-14T22:13:30|x | y || z",
        strict=True,
    )
    assert (record.submit_line, record.start, record.comment) == (
        "sbatch a.sh",
        1_700_000_010,
        "x | y || z",
    )


WIDE = (
    "Account|Comment|Constraints|Elapsed|JobID|JobName|NCPUS|State|Submit|SubmitLine|User|WorkDir"
)


@pytest.mark.parametrize(
    ("row", "comment", "constraints", "name"),
    [
        (
            "phys||a|b|00:00:04|7|n|2|COMPLETED|1700000000|sbatch -C a|b run.sh|ada|/home",
            "",
            "a|b",
            "n",
        ),
        (
            (
                "phys|x|y||00:00:04|7|na|me|2|COMPLETED|1700000000|sbatch -J na|me --comment=x|y "
                "run.sh|ada|/home"
            ),
            "x|y",
            "",
            "na|me",
        ),
        (
            (
                "phys|x|[a|b]|00:00:04|7|end||2|COMPLETED|1700000000|sbatch -J end| --comment=x -C "
                "[a|b] run.sh|ada|/home"
            ),
            "x",
            "[a|b]",
            "end|",
        ),
    ],
)
def test_each_of_several_texts_keeps_its_bars(row, comment, constraints, name):
    (record,), _ = read(WIDE, row, strict=True)
    assert (record.comment, record.constraints, record.name, record.user) == (
        comment,
        constraints,
        name,
        "ada",
    )
    assert record.submit_line.endswith(" run.sh")


@pytest.mark.parametrize(
    ("header", "row", "column"),
    [
        ("JobID|Submit|Comment|Account|JobName", "7|1700000000|a|b|phys|n", "account"),
        ("JobID|Submit|Comment|Constraints|State", "7|1700000000|x|a|b|COMPLETED", "constraints"),
        ("Submit|Comment|ReqMem|JobID|JobName", "1700000000|x||1.5G|7|n", "jobid"),
    ],
)
def test_a_row_that_can_be_read_in_several_ways_is_named_and_not_read(header, row, column):
    records, counts = read(header, row)
    assert not records
    assert f"several ways to join them: {column} may be " in counts.bad[0]


def test_what_another_column_tells_leaves_one_way():
    (record,), counts = read(
        "JobID|Submit|Comment|User|NNodes|Start|SubmitLine",
        "7|1700000000|a|b|ada|0|Unknown|",
        strict=True,
    )
    assert (record.comment, record.user, record.nodes, record.start) == ("a|b", "ada", 0, None)
    (record,), _ = read(
        "JobID|Submit|Comment|Constraints|SubmitLine",
        "7|1700000000|a|b|gpu|sbatch -C gpu a.sh",
        strict=True,
    )
    assert (record.comment, record.constraints) == ("a|b", "gpu")
    assert not counts.notes


def test_a_submission_line_that_may_have_bars_of_the_comment_is_not_used():
    (record,), counts = read(
        "JobID|Submit|Comment|SubmitLine", "7|1700000000|c|sbatch x|y", strict=True
    )
    assert record.submit_line == ""
    assert (
        counts.notes[
            "bars that may belong to submitline or to another text: the columns are taken alone"
        ]
        == 1
    )
    (record,), counts = read(
        "JobID|Submit|Comment|SubmitLine", "7|1700000000|c|x|sbatch y", strict=True
    )
    assert (record.comment, record.submit_line) == ("c|x", "sbatch y")
    assert not counts.notes


def test_a_text_that_begins_with_a_bar_is_unlikely_and_said():
    (record,), counts = read(
        "JobID|Submit|Comment|Constraints|State", "7|1700000000||a|b|COMPLETED", strict=True
    )
    assert (record.comment, record.constraints) == ("", "a|b")
    assert (
        counts.notes[
            "bars that may belong to constraints or to another text: the likelier is taken"
        ]
        == 1
    )


def test_a_row_with_a_new_line_before_its_job_id_is_not_lost():
    good = "phys||a|00:00:04|7|n|2|COMPLETED|1700000000|sbatch run.sh|ada|/home"
    torn = [
        "phys|two",
        "lines||00:00:04|8|n|2|FAILED|1700000000|sbatch --wrap=sleep 3",
        "echo 'a|b'",
        "exit 0 --comment=two",
        "lines|bob|/home",
    ]
    for lines in ([good, *torn, good], [*torn, good], [good, *torn], [good, *torn, *torn]):
        records, counts = read(WIDE, *lines, strict=True)
        assert sum(record.job == "8" for record in records) == sum(
            line == "phys|two" for line in lines
        )
        found = next(record for record in records if record.job == "8")
        assert (found.state, found.user, found.comment, found.submit_line[-17:]) == (
            "FAILED",
            "bob",
            "two\nlines",
            "comment=two\nlines",
        )
        assert not counts.left_out


def test_a_header_that_names_no_column_of_use_is_read():
    with pytest.raises(HistoryError, match="no column JobID"):
        read("Foo|Bar", "1|2")


def test_new_lines_within_a_submission_line_are_joined():
    records, counts = read(
        "Comment|JobID|Submit|State|SubmitLine|User",
        "c|1|1700000000|COMPLETED|sbatch --wrap=a",
        "b|c",
        "d|ada",
        "c|2|1700000000|FAILED|x|bob",
    )
    assert [(record.job, record.user) for record in records] == [("1", "ada"), ("2", "bob")]
    assert records[0].submit_line == "sbatch --wrap=a\nb|c\nd"
    assert not counts.bad


def test_new_lines_in_the_last_column_belong_to_its_row():
    records, counts = read(HEADER, ROW + " --wrap=a", "b", "c | d", ROW, strict=True)
    assert len(records) == 2
    assert counts.left_out["further lines of a submission line or comment"] == 2


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("7|n|c", "3 fields where the header has 9"),
        (ROW.replace("COMPLETED", "DONE"), "'DONE' is no state of a job"),
        (ROW.replace("2023-11-14T22:13:20", "14 Nov"), "'14 Nov' is no time of sacct"),
        (
            ROW.replace("2023-11-14T22:13:20", "").replace("2023-11-14T22:13:30", ""),
            "neither a submit nor a start time",
        ),
        (ROW.replace("7|", "x7|", 1), "'x7' is no job's id"),
        (
            "1|" * 19 + "1",
            "20 fields where the header has 9, and no free text in which the others could be",
        ),
    ],
)
def test_a_line_that_cannot_be_used_is_named_and_the_others_are_used(line, why):
    records, counts = read(HEADER, line, ROW)
    assert len(records) == 1
    assert counts.bad[0].startswith("dump line 2: ")
    assert why in counts.bad[0]
    with pytest.raises(HistoryError, match=r"^dump line 2: "):
        read(HEADER, line, ROW, strict=True)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([], "dump: empty"),
        (["   JobID  JobName", "------ -----"], "run sacct with -P"),
        ([ROW], "no header"),
        (["State|Submit", "COMPLETED|1700000000"], "no column JobID"),
        (["JobID|State", "1|COMPLETED"], "neither a column Submit nor Start"),
        (
            [HEADER + "|Cluster", ROW + "|a", ROW + "|b"],
            (r"several clusters \(a, b\): choose one with " r"--cluster"),
        ),
    ],
)
def test_a_file_that_is_no_output_of_sacct_is_refused_in_one_line(lines, why):
    with pytest.raises(HistoryError, match=why):
        read(*lines)


def test_one_of_several_clusters_can_be_chosen():
    records, counts = read(HEADER + "|Cluster", ROW + "|a", ROW + "|b", cluster="b")
    assert len(records) == 1
    assert counts.left_out == {"of other clusters": 1}


def test_what_slurm_refused_and_kept_as_failed_is_left_out():
    header = "JobID|State|Submit|Start|End|NodeList|AllocTRES"
    at, later = "2024-01-01T00:00:00", "2024-01-01T00:00:01"
    rows = [
        f"1|FAILED|{at}|{at}|{at}|None assigned|",
        f"2|FAILED|{at}|{at}|{at}|n1|cpu=1",  # which ended at once
        f"3|FAILED|{at}|{later}|{later}|None assigned|",  # which ended when its turn came
        f"4|REQUEUED|{at}|{at}|{later}|None assigned|",
    ]
    records, counts = read(header, *rows)
    assert [record.job for record in records] == ["2", "3"]
    assert counts.left_out == {
        "refused when it was submitted, or requeued before it ran: without nodes": 2
    }
    # without such columns nobody can tell
    assert (
        len(read("JobID|State|Submit|Start|End", *(row.rsplit("|", 2)[0] for row in rows))[0]) == 4
    )
