"""The tables of columns between controller and commands."""

import pytest

from understudy.model import records


@pytest.mark.parametrize("table", records.TABLES)
def test_every_column_has_a_meaning_and_says_what_none_means(table: str) -> None:
    for name, column in records.TABLES[table].items():
        assert column.meaning, name
        assert column.optional == (
            "None:" in column.meaning or "None for" in column.meaning or "; None" in column.meaning
        ), name


def test_values_are_checked_against_their_column() -> None:
    assert records.accepts("jobs", "job_id", 7)
    assert not records.accepts("jobs", "job_id", "7")
    assert not records.accepts("jobs", "job_id", True)
    assert not records.accepts("jobs", "job_id", None)
    assert records.accepts("jobs", "end_time", None)
    assert records.accepts("nodes", "cpu_load", 1)
    assert records.accepts("partitions", "allow_groups", ["a"])


def test_unknown_tables_have_no_columns() -> None:
    with pytest.raises(KeyError):
        records.columns("shoes")
    assert records.columns("config") == ["name", "value"]
