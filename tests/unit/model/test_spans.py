"""Spans of time as people write them."""

import pytest

from understudy.model.spans import duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5h", 5400), ("1d12h", 129_600), ("5m", 300), ("5min2s", 302), ("2w", 1209600)],
)
def test_a_span_is_read(text, seconds):
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "d", "1x", "-5", "5 m", "1d-2", "h5"])
def test_what_is_none_is_none(text):
    assert duration_s(text) is None
