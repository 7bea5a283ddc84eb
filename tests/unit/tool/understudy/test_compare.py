"""`understudy compare` on a small trace: pages, exit codes, what is missing.

Covers: tool/comparison/write, tool/understudy/compare.
"""

import pytest
from typer.testing import CliRunner

from understudy.experiments.swf import write_swf
from understudy.experiments.trace import TraceJob
from understudy.tool.understudy.app import app_with

FILE = """
title = "Two policies"
asks = "Which is better?"
base = "easy"
figures = ["mean_wait", "bsld_600"]
[short]
seeds = [1, 2]
policies = ["easy"]
[full]
[[workloads]]
name = "few"
trace = "few.swf"
[[policies]]
name = "easy"
scheduler = "easy"
[[policies]]
name = "fcfs"
scheduler = "fcfs"
[[pictures]]
kind = "levels"
figure = "mean_wait"
[[published]]
file = "paper.toml"
table = "one"
"""
NUMBERS = """
source = "A paper"
[[tables]]
name = "one"
what = "a table."
[[tables.rows]]
policy = "easy"
figures.mean_wait = [10, "E"]
"""


@pytest.fixture
def folder(tmp_path):
    jobs = [TraceJob(n, n, 60, 1 + n % 3, 90, 60) for n in range(1, 9)]
    write_swf(tmp_path / "few.swf", jobs, {"MaxNodes": "4", "MaxProcs": "4"})
    (tmp_path / "two.toml").write_text(FILE)
    (tmp_path / "paper.toml").write_text(NUMBERS)
    return tmp_path


def compare(folder, *arguments, file="two.toml", traces=""):
    return CliRunner().invoke(
        app_with("compare"),
        [
            *("compare", str(folder / file), "--traces", str(folder / traces)),
            *("--kept", str(folder / "kept"), "--pages", str(folder / "pages"), *arguments),
        ],
    )


def test_a_page_and_a_picture_are_written(folder):
    (folder / "pages").mkdir()
    (folder / "pages" / "two-7.svg").write_text("of an earlier run")
    result = compare(folder, "--full", "--workers", "1")
    assert result.exit_code == 0, result.output
    page = (folder / "pages" / "two.md").read_text()
    assert "    understudy compare two.toml --full\n" in page
    assert "Of 2 cells 2 were run; the full form as it is in the file has 2." in page
    assert "| *published (1)* | | *10.00* E |  |" in page
    assert "![two-1.svg](two-1.svg)" in page
    assert [each.name for each in folder.glob("pages/*.svg")] == ["two-1.svg"]
    assert str(folder) not in page


def test_the_form_can_be_changed_and_the_page_says_so(folder):
    result = compare(folder, "--seeds", "3", "--jobs", "5", "--policies", "fcfs,easy", "--for", "0")
    assert result.exit_code == 0, result.output
    page = (folder / "pages" / "two.md").read_text()
    assert "understudy compare two.toml --seeds 3 --jobs 5 --policies fcfs,easy" in page
    assert "Not run: fcfs on few, seed 3; easy on few, seed 3." in page.replace(
        "easy on few, seed 3; fcfs on few, seed 3", "fcfs on few, seed 3; easy on few, seed 3"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"traces": "gone"}, 1, "few.swf: No such file or directory. Traces are not shipped"),
        ({"file": "none.toml"}, 1, "none.toml: No such file"),
    ],
)
def test_what_is_missing_is_said(folder, arguments, code, said):
    result = compare(folder, **arguments)
    assert result.exit_code == code
    assert said in result.output


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--seeds", "one"], 2, "--seeds one"),
        (["--parts", "1"], 1, "no part_length"),
        (["--policies", "easy,sjf"], 1, "no policy 'sjf'; there are easy, fcfs"),
        (["--workloads", "many"], 1, "no workload 'many'; there are few"),
        (["--workers", "0"], 2, "--workers"),
    ],
)
def test_words_that_cannot_be_followed_are_named(folder, arguments, code, said):
    result = compare(folder, *arguments)
    assert result.exit_code == code
    assert said in result.output


def test_a_cell_that_fails_is_on_the_page_and_in_the_exit_code(folder):
    (folder / "two.toml").write_text(FILE.replace('scheduler = "fcfs"', 'scheduler = "nobody"'))
    result = compare(folder, "--policies", "fcfs")
    assert result.exit_code == 1
    assert "Failed: fcfs on few, seed 1: exit code 2" in (folder / "pages" / "two.md").read_text()
