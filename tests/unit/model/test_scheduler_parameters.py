"""Numbers out of SchedulerParameters."""

from __future__ import annotations

import pytest

from understudy.model.scheduler_parameters import number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("7x", 7),
        (" +7", 7),
        ("x", 0),
        ("x7", 0),
        ("1_000", 1),
        ("", 100),
        ("-1", 100),
        ("51", 100),
    ],
)
def test_values_are_read_as_slurm_reads_them(text: str, value: int) -> None:
    assert number({"depth": text}, "depth", 100, most=50) == value


def test_zero_counts_as_not_given_where_it_is_too_little() -> None:
    assert number({"depth": "x"}, "depth", 100, least=1) == 100
    assert number({}, "depth", 100) == 100
