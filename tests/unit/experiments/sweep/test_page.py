"""The table, the pictures and the page of a sweep.
Covers: experiments/sweep/rows, experiments/sweep/pictures, experiments/sweep/statistics.
"""

import csv
import io
import re
from xml.etree import ElementTree as ET

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from understudy.experiments.sweep.cells import Cell
from understudy.experiments.sweep.file import Picture, Replay, Sweep, Workload
from understudy.experiments.sweep.page import page
from understudy.experiments.sweep.pictures import asked, picture, short
from understudy.experiments.sweep.rows import Row, as_csv, as_parquet, columns, outcomes
from understudy.experiments.sweep.statistics import front, grouped, mean

AXES = {"load": [0.5, 1.0], "policy": ["a", "b <&>"]}
SWEEP = Sweep("A <sweep>", Workload(trace="t.swf"), AXES, asks="What?", notes=("A note.",))


def made():
    cells, rows = [], {}
    for load in AXES["load"]:
        for policy in AXES["policy"]:
            for seed in (1, 2):
                number = len(cells) + 1
                values = {"load": load, "policy": policy}
                cells.append(Cell(number, values, seed, SWEEP.workload, Replay()))
                figures = {"mean_wait": load * 100 + seed, "utilization": 0.1 * number, "jobs": 5}
                rows[f"k{number}"] = Row(f"k{number}", figures, "sha", {"speedup": 7.0})
    rows["k8"] = Row("k8", error="it broke")
    return outcomes(cells, [f"k{cell.number}" for cell in cells], rows)


def test_the_table_has_a_line_for_each_cell_and_types():
    table = columns(made(), list(AXES))
    assert list(table)[:6] == ["cell", "key", "load", "policy", "seed", "state"]
    assert table["state"] == ["done"] * 7 + ["failed"]
    assert table["mean_wait"][0] == 51.0
    assert table["mean_wait"][7] is None
    rows = list(csv.DictReader(io.StringIO(as_csv(table).decode())))
    assert (rows[7]["error"], rows[7]["mean_wait"], rows[0]["speedup"]) == ("it broke", "", "7.0")
    read = pq.read_table(pa.BufferReader(as_parquet(table)))
    assert read.schema.field("mean_wait").type == pa.float64()
    assert read.schema.field("cell").type == pa.int64()
    assert read.column("policy").to_pylist() == table["policy"]


def test_axes_of_mixed_kinds_have_one_type():
    cells = [
        Cell(n, {"x": x}, 1, SWEEP.workload, Replay()) for n, x in enumerate((1, 2.5, True), 1)
    ]
    for some, expected in ((cells[:2], [1.0, 2.5]), (cells, ["1", "2.5", "True"])):
        found = outcomes(some, ["k"] * len(some), {"k": Row("k")})
        table = columns(found, ["x"])
        assert table["x"] == expected
        as_parquet(table)


def test_means_are_over_all_that_is_not_asked_for():
    found = grouped(made(), ("load",), "mean_wait")
    assert found[0.5,].mean == 51.5
    assert found[0.5,].cells == 4
    assert found[1.0,].cells == 3
    assert mean([1.0]).half == 0
    assert mean([1.0, 3.0]).half == pytest.approx(12.706, abs=0.001)  # t of one degree, times 1


def test_the_front_is_what_none_beats():
    points = [(1, 5), (2, 3), (3, 4), (4, 1), (1, 6)]
    assert front(points, more_x=False, more_y=False) == [0, 1, 3]
    assert front([(1, 1), (2, 2)], more_x=False, more_y=True) == [0, 1]


@pytest.mark.parametrize(
    "drawn",
    [
        Picture("heat", "load", "policy"),
        Picture("lines", "load", by="policy"),
        Picture("lines", "policy"),
        Picture("pareto", "mean_wait", "utilization", by="policy", more=("utilization",)),
    ],
)
def test_pictures_stand_alone(drawn):
    text = picture(drawn, [each for each in made() if not each.row.error])
    ET.fromstring(text)
    assert "b &lt;&amp;&gt;" in text
    assert picture(drawn, []) == ""


def test_a_page_needs_nothing_else_and_says_what_failed():
    text = page(SWEEP, made(), 9, "understudy sweep s.toml")
    assert "8 of 9 cells, 1 of them without figures" in text
    assert "A &lt;sweep&gt;" in text
    assert "it broke" in text
    assert text.count("<section>") == 3
    assert not re.search(r'(src|href)="|@import|url\(', text)


def test_executions_are_told_apart_and_compared():
    sweep = Sweep("t", SWEEP.workload, executions=2)
    cells = [Cell(n, {}, 1, SWEEP.workload, Replay(), execution=n) for n in (1, 2)]
    for other, said in (("sha", "have the same schedule"), ("x", "1 of 1 have executions that")):
        rows = {"a": Row("a", {}, "sha"), "b": Row("b", {}, other)}
        found = outcomes(cells, ["a", "b"], rows)
        assert columns(found, [])["execution"] == [1, 2]
        assert said in page(sweep, found, 2, "command")


def test_pictures_that_axes_suggest():
    kinds = [each.kind for each in asked(SWEEP, made())]
    assert kinds == ["heat", "lines", "pareto"]
    one = Sweep("t", SWEEP.workload, {"load": [1, 2]})
    assert [each.kind for each in asked(one, made())] == ["lines", "pareto"]
    assert asked(Sweep("t", SWEEP.workload), made()) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0.523456, "0.523"), (1234.5, "1,234"), (2_500_000_0, "25M"), (3, "3")],
)
def test_figures_are_short(value, text):
    assert short(value) == text


def test_what_is_kept_comes_back_as_it_was():
    row = Row("k", {"jobs": 40, "mean_wait": 40.0, "max_wait": None}, measured={"speedup": 2})
    again = msgspec.json.decode(msgspec.json.encode(row), type=Row)
    assert as_csv(columns(outcomes([cell()], ["k"], {"k": again}), [])) == as_csv(
        columns(outcomes([cell()], ["k"], {"k": row}), [])
    )


def cell():
    return Cell(1, {}, 1, SWEEP.workload, Replay())
