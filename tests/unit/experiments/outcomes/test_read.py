"""What holds a run is read back."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes_harness import records, text_of, written

from understudy.experiments.metrics import summarize
from understudy.experiments.outcomes.read import RunError, read_run
from understudy.experiments.records import JobRecord
from understudy.experiments.run_folder import write_run_folder

ROOT = Path(__file__).parents[4]
HEAD = "job,submit,start,end,state,cpus\n"
ONE = JobRecord(1, 0, 5, 9, "COMPLETED", 2, "n[1-2]", 60, "a,b", name="two\nlines", user="ada")


@given(found=records(), shuffled=st.randoms())
def test_a_run_is_what_was_written_in_whatever_order_its_lines_are(
    tmp_path_factory, found, shuffled
):
    path = tmp_path_factory.mktemp("run") / "jobs.csv"
    mixed = found.copy()
    shuffled.shuffle(mixed)
    assert read_run(written(path, mixed)).records == found


def test_all_files_of_a_folder_tell_of_the_same_jobs(tmp_path):
    earlier = JobRecord(1, 0, 1, 2, "PREEMPTED", 2, "n1", 60, "a,b")
    write_run_folder(
        tmp_path, [ONE], summarize([ONE], 4, 1.0), cpus=4, config={"zero": 100}, slurm_conf="",
        attempts=[earlier],
    )  # fmt: skip
    run = read_run(tmp_path)
    assert (run.records, run.attempts, run.zero, run.kind) == ([ONE], [earlier], 100.0, "run")
    assert run.utilization == pytest.approx(8 / 36)
    assert read_run(tmp_path / "jobs.csv").records == [ONE]
    assert read_run(tmp_path / "jobs.parquet").records == [ONE]
    (tmp_path / "jobs.csv").unlink()
    assert read_run(tmp_path).records == [ONE]


def test_answers_are_a_run_whose_jobs_have_places_alone():
    run = read_run(ROOT / "examples" / "year-easy.csv.gz")
    assert (run.kind, run.is_named, len(run.records)) == ("answers", False, 30_000)


def test_while_a_run_goes_on_the_last_line_of_a_job_counts(tmp_path):
    first = JobRecord(1, 0, 1, 2, "PREEMPTED", 2, "n1", 60, "1")
    last = JobRecord(1, 5, 6, 9, "COMPLETED", 2, "n1", 60, "1", restarts=1)
    assert read_run(written(tmp_path / "jobs.csv", [last, first])).records == [last]


def test_few_columns_suffice_and_others_are_passed_over(tmp_path):
    path = tmp_path / "past.csv"
    path.write_text("colour," + HEAD + "red,7,0,,,PENDING,4\n")
    run = read_run(path)
    assert (run.kind, run.records) == (
        "history",
        [JobRecord(7, 0, None, None, "PENDING", 4, "", -1)],
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "jobs.csv: empty"),
        (b"\n\n", "jobs.csv: empty"),
        (b"a,b\n1,2\n", "jobs.csv line 1: expected the columns of jobs.csv"),
        (b"job,submit,start,end,state\n", "jobs.csv line 1: no column cpus"),
        (b"job,job,submit,start,end,state,cpus\n", "line 1: a column that is there twice"),
        (HEAD.encode() + b"1,0,0,9,COMPLETED,1\n2,0,0", "line 3: 3 columns, where"),
        (HEAD.encode() + b"1,0,soon,9,COMPLETED,1\n", "line 2: start is 'soon', not a whole"),
        (HEAD.encode() + b",0,,9,COMPLETED,1\n", "line 2: job is '', not a whole number"),
        (HEAD.encode() + b'1,0,0,9,"A\nB",1\n1,0,0,9,C,x\n', "line 4: cpus is 'x'"),
        (HEAD.encode() + b"1,0,0,9,C,1" + b"0" * 30 + b"\n", "line 2: cpus is '1000"),
        (HEAD.encode() + b"1,0,0,9,C,1\n2,0,0,9,\xff\xfe,1\n", "line 3: this is no text"),
        (bytes(range(256)) * 4, "jobs.csv line 2: this is no text"),
        (gzip.compress(HEAD.encode() * 99, mtime=0)[:-9], "jobs.csv: damaged gzip file"),
        (b"PAR1 and then nothing", "jobs.csv: damaged Parquet file"),
        (HEAD.encode() + b"1,0,0,9,C,1," + b"x" * 200_000 + b"\n", "line 2: field larger"),
        (b"id,submit,start,end,procs,req\n1,2,3\n", "jobs.csv line 2: expected six whole numbers"),
    ],
)  # fmt: skip
def test_a_broken_file_is_said_in_one_line_with_its_line(tmp_path, content, said):
    path = tmp_path / "jobs.csv"
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"jobs\.csv") as caught:
        read_run(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(found=records(), cut=st.integers(0, 2000), junk=st.binary(max_size=4))
def test_a_file_that_was_cut_or_spoilt_is_read_or_said_in_one_line(
    tmp_path_factory, found, cut, junk
):
    path = tmp_path_factory.mktemp("cut") / "jobs.csv"
    content = text_of(found).encode()
    path.write_bytes(content[:cut] + junk + content[cut + len(junk) :])
    said = str(path)
    try:
        read_run(path)
    except RunError as error:
        said = str(error)
    assert said.startswith(str(path))
    assert "\n" not in said


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("workload.jsonl", "", "no run: it has neither jobs.csv nor past.csv; it is a scenario"),
        ("other", "", "no run: it has neither jobs.csv nor past.csv"),
    ],
)
def test_a_folder_that_is_no_run_is_said(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(RunError, match=said):
        read_run(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '"text"'])
def test_a_configuration_that_is_none_is_said(tmp_path, content):
    written(tmp_path / "jobs.csv", [ONE])
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match=r"config\.json"):
        read_run(tmp_path)


def test_what_a_history_says_of_its_zero_is_known(tmp_path):
    (tmp_path / "past.csv").write_text(HEAD + "7,0,,,PENDING,4\n")
    (tmp_path / "about.json").write_text(json.dumps({"zero": 86_400}))
    assert read_run(tmp_path).zero == 86_400.0
