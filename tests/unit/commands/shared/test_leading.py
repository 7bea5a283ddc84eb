"""The number that a text begins with is the one that C reads."""

import pytest

from understudy.commands.shared.leading import leading_integer


@pytest.mark.parametrize(
    ("text", "number"),
    [("", 0), ("x", 0), ("5", 5), ("5x", 5), ("-5", -5), ("+5", 5), (" 5", 5), ("- 5", 0),
     ("5%7", 5), ("--5", 0), ("4294967296", 0), ("99999999999", 1215752191)],
)  # fmt: skip
def test_digits_count_until_something_else_follows(text, number):
    assert leading_integer(text) == number
