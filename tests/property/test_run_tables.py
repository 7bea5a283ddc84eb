"""The jobs of a run are read back as they were written, whatever their texts hold."""

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from understudy.experiments.records import FIELDS, JobRecord
from understudy.experiments.run_folder import JobsFile, as_table
from understudy.experiments.run_tables import (
    JOBS,
    column_types,
    has_parquet,
    read_jobs,
    read_records,
)

# what a job's name may hold: all but what no command line can
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=8)
NUMBER = st.integers(-(2**40), 2**40)


def values(name):
    """What a field may hold; where a file has nothing for a number, it is None."""
    kind = column_types()[name]
    return TEXT if kind is str else st.booleans() if kind is bool else NUMBER


FIELDS_OF_A_RECORD = [field.name for field in msgspec.structs.fields(JobRecord)]
RECORDS = st.lists(
    st.builds(JobRecord, **{name: values(name) for name in FIELDS_OF_A_RECORD}), max_size=4
)


@given(RECORDS)
def test_a_table_of_jobs_is_read_as_it_was_written(records):
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = JobsFile(folder)
        file.add(records)
        file.close()
        assert read_records(folder / JOBS) == records
        found = read_jobs(folder / JOBS)
        assert found == [{name: getattr(each, name) for name in FIELDS} for each in records]
        columns = {name: [job[name] for job in found] for name in FIELDS}
        if has_parquet():
            assert as_table(columns).to_pylist() == found
