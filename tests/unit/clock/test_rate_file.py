"""The line of scaled time that a clock service leaves to its next life."""

import json
import time

import pytest

from understudy.clock import rate_file
from understudy.clock.rates import Rates

EPOCH = 1000.0


@pytest.fixture
def path(tmp_path):
    rates = Rates(60.0, 100.0)
    rates.set(600.0, 110.0)
    rate_file.write(tmp_path / "clock.json", EPOCH, rates, 7e9)
    return tmp_path / "clock.json"


def test_time_goes_on_where_it_would_be(path):
    rates = Rates(1.0, 0.0)
    rates.wanted = 1.0
    assert rate_file.read(path, EPOCH, rates) == 7e9
    assert rates.segment == (600e6, 110.0, 600.0)
    assert rates.wanted == 60.0


def test_after_a_restart_of_the_host_the_time_of_day_says_how_long_it_was(path):
    line = json.loads(path.read_text())
    line |= {"host": "another", "written": time.time() - 10}
    path.write_text(json.dumps(line))
    rates = Rates(1.0, 0.0)
    rate_file.read(path, EPOCH, rates)
    assert rates.at(time.monotonic()) == pytest.approx(600e6 + 10 * 600e6, abs=600e6)


def test_a_line_of_another_cluster_says_nothing(path):
    rates = Rates(1.0, 0.0)
    assert rate_file.read(path, EPOCH + 1, rates) is None
    assert rates.segment == (0.0, 0.0, 1.0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"epoch": 1}', '{"segment": 3}'])
def test_what_is_no_line_is_logged_and_time_begins_anew(path, text, caplog):
    path.write_text(text)
    rates = Rates(1.0, 0.0)
    assert rate_file.read(path, EPOCH, rates) is None
    assert rates.segment == (0.0, 0.0, 1.0)
    assert "cannot read" in caplog.text


def test_a_disk_that_is_full_stops_no_clock(tmp_path, caplog):
    rate_file.write(tmp_path / "none" / "clock.json", EPOCH, Rates(1.0, 0.0), None)
    assert "cannot write" in caplog.text
