"""Lengths of time on the command line of `understudy`."""

import pytest

from understudy.model.durations import duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("30d", 2_592_000), ("1d12h", 129_600), ("5m", 300), ("5min", 300)],
)
def test_a_length_of_time_is_read(text, seconds):
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "d", "1x", "1d 2h", "2000-01-31", "1e3"])
def test_other_texts_are_none(text):
    assert duration_s(text) is None
