"""Backslashes in the names of output files."""

import pytest

from understudy.model.file_patterns import without_backslashes


@pytest.mark.parametrize(
    ("pattern", "name"),
    [("\\%j", "%j"), ("p\\\\%j", "p\\%j"), ("a\\", "a"), ("a\\\\\\b", "a\\b"), ("plain", "plain")],
)
def test_each_backslash_is_left_out_but_what_follows_it_stays(pattern: str, name: str) -> None:
    assert without_backslashes(pattern) == name
