"""The page and the pictures of a comparison.

Covers: experiments/comparison/page, experiments/comparison/pictures.
"""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from understudy.experiments.comparison.cells import Pair, Row, cells
from understudy.experiments.comparison.comparison import (
    Claim,
    Comparison,
    Form,
    Picture,
    Policy,
    PublishedRow,
    PublishedTable,
    Workload,
)
from understudy.experiments.comparison.figures import FIGURES
from understudy.experiments.comparison.page import Run, page
from understudy.experiments.comparison.pictures import picture
from understudy.experiments.comparison.workloads import Made

COMPARISON = Comparison(
    "Three policies",
    "Which is best?",
    "easy",
    (Workload("year", "year.swf", scale=0.8),),
    tuple(Policy(name, name, "x=1" if name == "plan" else "") for name in ("fcfs", "easy", "plan")),
    Form(),
    Form(tuple(range(1, 7))),
    ("mean_wait", "usage"),
    ratios=("mean_wait",),
    claims=(
        Claim("FCFS is much worse", "fcfs", to="easy", least=10, why="The queue was short."),
        Claim("plans are better", "plan", to="easy", over="mean", most=1, ranks=True, why="Why."),
        Claim("nobody ran it", "plan", to="fcfs", most=1, why="Nobody knows."),
    ),
    notes=("Seconds differ.",),
)
TABLES = [
    PublishedTable("one", "a table.", (PublishedRow("easy", {"mean_wait": (14791, "E")}),)),
    PublishedTable(
        "two",
        "boxes.",
        (PublishedRow("plan", {}, {"mean_wait": ((0.5, 0.6, 0.7, 0.8, 1.1), "V")}),),
        "easy",
    ),
]
WAITS = {
    "fcfs": [50_000.0, "", 48_000.0],
    "easy": [10_000.0, 12_000.0, 11_000.0, 12_000.0, 13_000.0],
    "plan": [7_000.0, 8_000.0, 8_500.0, 7_500.0, 8_100.0],
}


def row(policy, seed, wait):
    pair = Pair("year", seed, 0)
    if wait == "":
        return Row(pair, policy, failed="exit code 1: broken")
    figures = dict.fromkeys(FIGURES, 0.5) | {"mean_wait": wait}
    return Row(pair, policy, figures, "hash", 40, code="old" if seed == 1 else "new")


ROWS = [row(policy, seed, w) for policy, some in WAITS.items() for seed, w in enumerate(some, 1)]
MADE = {
    Pair("year", seed, 0): Made(
        Path("/somewhere/year.swf"), "a" * 64, "b" * 64, 40, 96, 480_000, 1, 0, 864_000
    )
    for seed in range(1, 7)
}
RUN = Run(cells(COMPARISON, COMPARISON.full), ROWS, MADE, "understudy compare x.toml", "full", 99)
TEXT = page(
    COMPARISON, RUN, {"year": [("Paper", table) for table in TABLES]}, {"year": ["x-1.svg"]}
)


def test_it_says_what_was_run_on_what_and_what_was_not():
    assert "    understudy compare x.toml" in TEXT
    assert (
        "| year | `year.swf` `bbbbbbbbbbbb` | 40 | 96 | 480,000 | days 0.0 to 10.0, times 0.8 | "
        "1 to 6 |"
    ) in TEXT
    assert "Of 18 cells 12 were run; the full form as it is in the file has 99." in TEXT
    assert "Not run: fcfs on year, seed 4; fcfs on year, seed 5" in TEXT
    assert "Failed: fcfs on year, seed 2: exit code 1: broken." in TEXT
    assert "Hash of the scheduling code: `old` (3 cells), `new` (9 cells)." in TEXT
    assert "somewhere" not in TEXT


def test_parts_that_follow_each_other_are_a_range():
    made = {Pair("year", 1, part): MADE[Pair("year", 1, 0)] for part in (1, 2, 3, 7, 9, 10)}
    run = Run(RUN.cells, ROWS, made, "understudy compare x.toml", "full", 99)
    assert "| 1; parts 1 to 3, 7, 9, 10 |" in page(COMPARISON, run, {}, {})


def test_published_numbers_stand_below_ours_with_their_class():
    lines = TEXT.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("| `easy` | 5 |"))
    assert lines[place] == "| `easy` | 5 | 11,600 (10,000 to 13,000) | 50.00 % |"
    assert lines[place + 1] == "| *published (1)* | | *14,791* E |  |"
    assert "Published: Paper: (1) a table. (2) boxes. E:" in TEXT
    assert "V: exact, from the coordinates of a vector figure" in TEXT
    assert "| *published (2)* | | | *0.50 / 0.60 / 0.70 / 0.80 / 1.10* V | | |" in TEXT


def test_ratios_have_their_spread():
    (line,) = re.findall(r"^\| `plan` \| mean wait, s \| .*$", TEXT, re.MULTILINE)
    assert "0.675 (0.604 to 0.755)" in line
    assert line.endswith("| 5 of 5 | 0.062 |")


def test_claims_have_a_verdict_and_a_reason_only_where_they_do_not_hold():
    assert "| FCFS is much worse | 4.67" in TEXT
    assert "**does not hold** |" in TEXT
    assert "*FCFS is much worse*: The queue was short." in TEXT
    assert "Why." not in TEXT
    assert "| plans are better | 0.675 (5 pairs, 0.623 to 0.773; 95 % interval" in TEXT
    assert "## What does not agree, and why\n\n- Seconds differ." in TEXT


def test_a_page_of_nothing_says_that_nothing_was_run():
    empty = Run(RUN.cells, [], MADE, "understudy compare x.toml --for 0", "full", 18)
    text = page(COMPARISON, empty, {}, {})
    assert "Of 18 cells 0 were run" in text
    assert "and 6 more" in text
    assert text.count("**not run**") == 3


def test_levels_are_a_dot_a_cell_beside_what_was_published():
    svg = picture(COMPARISON, Picture("levels", "mean_wait"), "year", ROWS, TABLES)
    tree = ET.fromstring(svg)
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    assert svg.count("<circle") == 12
    assert svg.count('class="theirs"') == 1
    assert "easy: mean wait, s: 14,791" in svg
    again = picture(COMPARISON, Picture("levels", "mean_wait"), "year", ROWS, TABLES * 2)
    assert again.count('class="theirs"') == 2


def test_ratios_are_a_box_of_five_cells_or_more_and_dots_of_fewer():
    svg = picture(COMPARISON, Picture("ratios", "mean_wait"), "year", ROWS, TABLES)
    ET.fromstring(svg)
    assert svg.count('<g class="box ours">') == 1
    assert svg.count('<g class="box theirs">') == 1
    assert svg.count('<circle class="ours"') == 2  # of fcfs


def test_no_cell_is_no_picture():
    assert picture(COMPARISON, Picture("levels", "mean_wait"), "year", [], TABLES) == ""
    alone = [each for each in ROWS if each.policy == "easy"]
    assert picture(COMPARISON, Picture("ratios", "mean_wait"), "year", alone, TABLES) == ""


def test_what_was_not_asked_for_is_named_and_not_judged():
    some = cells(COMPARISON, Form(policies=("easy", "plan")))
    run = Run(some, ROWS, MADE, "understudy compare x.toml", "full", 18)
    assert "Not asked for: fcfs." in page(COMPARISON, run, {}, {})
    assert "Not asked for" not in TEXT
    nothing = Run([], [], {}, "understudy compare x.toml", "full", 18)
    assert "## What agrees" not in page(COMPARISON, nothing, {}, {})


def test_figures_of_parts_are_not_those_of_a_whole_log():
    part = cells(COMPARISON, Form(jobs=100))
    run = Run(part, ROWS, MADE, "understudy compare x.toml", "short", 3)
    both = {"year": [("Paper", table) for table in TABLES]}
    assert "seconds cannot" in page(COMPARISON, run, both, {})
    assert "seconds cannot" not in page(COMPARISON, run, {"year": both["year"][1:]}, {})
    assert "seconds cannot" not in TEXT
