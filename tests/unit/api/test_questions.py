"""Runs side by side, stories and sweeps, asked for in Python."""

import pytest

import understudy
from understudy.experiments.metrics import summarize
from understudy.experiments.records import JobRecord
from understudy.experiments.run_folder import write_run_folder


def run_of(folder, start):
    record = JobRecord(1, 0, start, start + 60, "COMPLETED", 1, "n1", 60, "1", user="ada")
    write_run_folder(
        folder, [record], summarize([record], 4, 1.0), cpus=4, config={}, slurm_conf=""
    )
    return folder


def test_runs_are_compared_and_a_job_tells_its_story(tmp_path):
    first, second = run_of(tmp_path / "a", 10), run_of(tmp_path / "b", 40)
    found = understudy.compare([first, str(second)])
    assert [len(run.figures) > 0 for run in found.runs] == [True, True]
    (against,) = found.as_dict()["against"]
    assert (against["pairs"], against["longer"], against["shorter"]) == (1, 1, 0)
    (story,) = understudy.why(second, 1).stories
    assert [run.start for run in story.fates] == [40]


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda path: understudy.compare([path / "none", path]), "none"),
        (lambda path: understudy.compare(str(path)), "a list is expected"),
        (lambda path: understudy.compare([path]), "expected 2 to 26 runs, not 1"),
        (lambda path: understudy.why(run_of(path / "a", 1), "17"), "no job '17'"),
        (lambda path: understudy.sweep(path / "none.toml", path / "out"), "none.toml"),
    ],
)
def test_what_cannot_be_asked_is_said_in_a_line(ask, text, tmp_path):
    with pytest.raises(understudy.UnderstudyError, match=text) as caught:
        ask(tmp_path)
    assert "\n" not in str(caught.value)
