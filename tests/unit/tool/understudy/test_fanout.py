"""The words of `understudy fanout`."""

import pytest
from typer.testing import CliRunner

from understudy.experiments.fan_out_page import FanOutRow
from understudy.tool.understudy.app import app_with
from understudy.tool.understudy.fanout import line


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--nodes", "12,many"], "--nodes many: expected numbers from 1, at commas"),
        (["--widths", "0"], "--widths 0: expected numbers from 1, at commas"),
    ],
)
def test_what_is_no_number_is_refused(options, text):
    done = CliRunner().invoke(app_with("fanout"), ["fanout", *options])
    assert done.exit_code == 1
    assert text in done.output


def test_a_line_has_what_the_page_has():
    row = FanOutRow(1024, 0, 1, 0.25, 0.5, 0.002, 0.125, 1024, 5.0, 0.512, 3)
    assert line(row).split() == [
        "1024", "flat", "1", "0.250", "0.500", "0.002", "0.125", "1024", "500", "us", "3",
    ]  # fmt: skip
