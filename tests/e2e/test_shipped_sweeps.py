"""The sweeps that are shipped, each in its short form."""

import csv
from pathlib import Path

import pytest

from understudy.tool.sweep.run import sweep

pytest.importorskip("distributed")

SHIPPED = sorted((Path(__file__).parents[2] / "examples/experiments/sweeps").glob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_short_form_makes_a_table_and_a_page(path, tmp_path):
    found = sweep(path, tmp_path / "out", workers=2, short=True)
    assert found.failed == ()
    assert all(each.value("ran") == each.value("jobs") for each in found.outcomes)
    with (tmp_path / "out" / "sweep.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(found.outcomes) == found.ran
    page = found.page.read_text()
    assert "<section>" in page
    if "executions" in path.read_text():
        assert "All executions of a cell have the same schedule." in page
