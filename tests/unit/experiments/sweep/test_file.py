"""A sweep's file: what it may say, and what is said of one that is wrong.
Covers: experiments/toml_lines.
"""

import pytest

from understudy.experiments.sweep.file import SweepError, read_sweep
from understudy.experiments.toml_lines import line_of

WHOLE = """title = "A sweep"
seeds = [1, 2]
[workload]
trace = "some.swf"
jobs = 100
[axes]
"word.bf_interval" = [30, 300]
scheduler = ["easy"]
[short]
seeds = [7]
workload.jobs = 3
axes."word.bf_interval" = [60]
"""


def write(tmp_path, text):
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    return path


def test_the_short_form_has_what_it_says_and_else_what_the_file_says(tmp_path):
    path = write(tmp_path, WHOLE)
    long, short = read_sweep(path).sweep, read_sweep(path, short=True).sweep
    assert (long.seeds, long.workload.jobs) == ((1, 2), 100)
    assert (short.seeds, short.workload.jobs) == ((7,), 3)
    assert short.workload.trace == "some.swf"
    assert short.axes == {"word.bf_interval": [60], "scheduler": ["easy"]}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"A sweep"', "7", "line 1: title: Expected `str`, got `int`"),
        ("jobs = 100", "jbos = 100", "line 5: there is no key 'jbos' here"),
        ("jobs = 100", "jobs = -1", "line 5: workload.jobs: Expected `int` >= 0"),
        ("seeds = [1, 2]", "seeds = [1, 1]", "line 2: seeds: one is there twice"),
        ("seeds = [1, 2]", "seeds = []", "line 2: seeds: at least one is needed"),
        ("[axes]", "[axes", ": line 6: Expected ']'"),
        ('"word.bf_interval" = [60]', '"word.bf_interval" = [60\n\n', ": line 12: Unclosed array"),
        ('trace = "some.swf"', "", "line 3: a workload needs a trace, traces or a model"),
        ('trace = "some.swf"', 'trace = "a"\ntraces = ["b"]', "trace and traces: one of them"),
        ('title = "A sweep"', "", ": 'title' is missing"),
        ("[1, 2]", "[" * 9999, ": maximum recursion depth exceeded"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path, before, after, said):
    path = write(tmp_path, WHOLE.replace(before, after, 1))
    with pytest.raises(SweepError) as raised:
        read_sweep(path)
    assert str(raised.value).startswith(str(path))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_none_is_said(tmp_path):
    with pytest.raises(SweepError, match="No such file"):
        read_sweep(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(SweepError, match="not in UTF-8"):
        read_sweep(tmp_path / "bytes.toml")
    with pytest.raises(SweepError, match=r"no table \[short\]"):
        read_sweep(write(tmp_path, WHOLE.partition("[short]")[0]), short=True)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (["title"], 1),
        (["workload"], 3),
        (["workload", "jobs"], 5),
        (["workload", "none"], 3),
        (["axes", "word.bf_interval"], 7),
        (["short", "axes", "word.bf_interval"], 12),
        (["none"], 0),
    ],
)
def test_the_line_of_a_key_is_found(path, line):
    assert line_of(WHOLE, path) == line


def test_tables_that_are_given_several_times_have_the_line_of_the_first_or_of_their_number():
    text = "[[axes.policy]]\nname = 1\n[[axes.policy]]\nname = 2\n"
    assert line_of(text, ["axes", "policy"]) == 1
    assert line_of(text, ["axes", "policy", "name"]) == 2
    assert line_of(text, ["axes", "policy", "2"]) == 3
    assert line_of(text, ["axes", "policy", "2", "name"]) == 4
    assert line_of(text, ["axes", "policy", "3"]) == 1
