"""Files of comparisons and of published numbers."""

from pathlib import Path

import pytest

from understudy.experiments.comparison.comparison import (
    Beside,
    ComparisonError,
    read_comparison,
    read_published,
)
from understudy.experiments.comparison.figures import FIGURES

SHIPPED = sorted((Path(__file__).parents[4] / "examples" / "experiments").glob("*.toml"))
SMALL = """
title = "Two"
asks = "Which?"
base = "easy"
figures = ["mean_wait"]
[short]
jobs = 5
[full]
[[workloads]]
name = "year"
trace = "year.swf"
[[policies]]
name = "easy"
scheduler = "easy"
[[policies]]
name = "fcfs"
scheduler = "fcfs"
[[claims]]
text = "EASY is better"
of = "easy"
to = "fcfs"
most = 1
[[pictures]]
kind = "levels"
figure = "mean_wait"
"""
NUMBERS = """
source = "A paper"
[[tables]]
name = "one"
what = "a table"
base = "easy"
[[tables.rows]]
policy = "fcfs"
figures.mean_wait = [10, "E"]
boxes.mean_wait = [[1, 2, 3, 4, 5], "V"]
"""


def read(tmp_path, text):
    path = tmp_path / "two.toml"
    path.write_text(text)
    return read_comparison(path, FIGURES)


def test_a_file_says_all_that_is_run(tmp_path):
    found = read(tmp_path, SMALL)
    assert [each.name for each in found.policies] == ["easy", "fcfs"]
    assert (found.short.jobs, found.full.jobs, found.full.seeds) == (5, 0, (1,))
    assert found.claims[0].others == ("fcfs",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('base = "easy"', 'base = "esay"', "base: no policy 'esay'; there are easy, fcfs"),
        ('["mean_wait"]', '["wait"]', "figures: no figure 'wait'"),
        ('to = "fcfs"', 'to = ["fcfs", "sjf"]', "claim 1: no policy 'sjf'"),
        ('of = "easy"', 'of = "easy"\nworkload = "day"', "claim 1: no workload 'day'"),
        ('name = "fcfs"', 'name = "easy"', "policies: 'easy' is there twice"),
        ("jobs = 5", 'policies = ["sjf"]', "short: no policy 'sjf'"),
        ("jobs = 5", "job = 5", "unknown field `job` - at `$.short`"),
        ("jobs = 5", "jobs = -5", "`int` >= 0 - at `$.short.jobs`"),
        ("jobs = 5", "jobs = ", "Invalid value"),
        ("jobs = 5", "jobs = " + "[" * 9999, "maximum recursion depth exceeded"),
        ('kind = "levels"', 'kind = "pie"', "'pie'"),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path, old, new, said):
    with pytest.raises(ComparisonError) as caught:
        read(tmp_path, SMALL.replace(old, new))
    assert "two.toml: " in str(caught.value)
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ComparisonError, match=r"none\.toml: No such file"):
        read_comparison(tmp_path / "none.toml", FIGURES)


def test_published_numbers_have_a_source_and_a_class(tmp_path):
    (tmp_path / "paper.toml").write_text(NUMBERS)
    source, table = read_published(tmp_path, Beside("paper.toml", "one"))
    assert source == "A paper"
    assert table.rows[0].figures == {"mean_wait": (10, "E")}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('[10, "E"]', '[10, "R"]', "one, fcfs, mean_wait: class 'R' is none of E, V, G, A"),
        ('name = "one"', 'name = "two"', "no table 'one'; there are two"),
        ("[1, 2, 3, 4, 5]", "[1, 2]", "length 5"),
    ],
)
def test_published_numbers_that_nobody_can_use_are_named(tmp_path, old, new, said):
    (tmp_path / "paper.toml").write_text(NUMBERS.replace(old, new))
    with pytest.raises(ComparisonError, match=said):
        read_published(tmp_path, Beside("paper.toml", "one"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_what_is_shipped_fits_together(path):
    comparison = read_comparison(path, FIGURES)
    for beside in comparison.published:
        read_published(path.parent, beside)
