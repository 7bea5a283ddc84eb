"""Tables of jobs are read; tests/property/test_run_tables.py has all that they may hold, and
outcomes/test_read.py what they may be broken by.
"""

import gzip

import numpy as np
import pytest

from understudy.experiments import run_tables
from understudy.experiments.records import FIELDS, JobRecord
from understudy.experiments.run_tables import (
    RunError,
    column_types,
    read_jobs,
    read_records,
    read_vectors,
)

TABLE = "job,submit,start,end,state,cpus,own\n1,0,5,9,COMPLETED,2,x\n2,3,,,PENDING,1,\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(TABLE)
    return path


def test_columns_that_are_not_there_are_as_if_nothing_were_known(table):
    assert read_records(table) == [
        JobRecord(1, 0, 5, 9, "COMPLETED", 2, "", -1),
        JobRecord(2, 3, None, None, "PENDING", 1, "", -1),
    ]
    assert [(job["start"], job["user"]) for job in read_jobs(table)] == [(5, ""), (None, "")]
    assert list(read_jobs(table)[0]) == list(column_types()) == list(FIELDS)


def test_vectors_have_nan_where_nothing_is_known(table):
    found = read_vectors(table, ("start", "cpus"))
    assert found["cpus"].tolist() == [2.0, 1.0]
    assert found["start"][0] == 5.0
    assert np.isnan(found["start"][1])


def test_a_packed_table_is_unpacked_and_a_damaged_one_is_said(table):
    table.write_bytes(gzip.compress(TABLE.encode()))
    assert len(read_records(table)) == 2
    table.write_bytes(table.read_bytes()[:-9])
    with pytest.raises(RunError, match="damaged gzip file"):
        read_records(table)


def test_a_value_is_named_with_its_line(table):
    table.write_text(TABLE.replace("PENDING,1", "PENDING,one"))
    with pytest.raises(RunError, match="line 3: cpus is 'one', not a whole number"):
        read_records(table)


def test_without_pyarrow_a_parquet_file_names_the_extra(tmp_path, monkeypatch):
    path = tmp_path / "jobs.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setattr(run_tables, "find_spec", lambda _name: None)
    with pytest.raises(RunError, match=r"jobs.parquet: pyarrow, .*understudy\[parquet\]"):
        read_records(path)
