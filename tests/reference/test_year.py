"""The example year is what the generator and the reference implementation make."""

import gzip
from pathlib import Path

import pytest
from make_year import DAYS, HEADER, JOBS, LOAD, NODES, answers, year

from understudy.experiments.swf import read_swf, write_swf
from understudy.experiments.transform import offered_load

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def jobs():
    return year()


def test_the_year_is_what_the_generator_writes(jobs, tmp_path):
    write_swf(tmp_path / "year.swf.gz", jobs, HEADER)
    written, kept = (folder / "year.swf.gz" for folder in (tmp_path, EXAMPLES))
    assert gzip.decompress(written.read_bytes()) == gzip.decompress(kept.read_bytes())


def test_the_answers_are_what_the_reference_says(jobs):
    assert gzip.decompress((EXAMPLES / "year-easy.csv.gz").read_bytes()).decode() == answers(
        jobs, NODES
    )


@pytest.mark.parametrize("name", ["year.swf.gz", "year-easy.csv.gz"])
def test_the_compressed_files_carry_no_time_stamp(name):
    assert (EXAMPLES / name).read_bytes()[4:8] == bytes(4)


def test_the_year_is_a_year_of_the_stated_load():
    trace = read_swf(EXAMPLES / "year.swf.gz", strict=True)
    assert len(trace.jobs) == JOBS
    assert (trace.max_procs, trace.max_nodes, trace.unix_start_time) == (
        NODES,
        NODES,
        1_704_067_200,
    )
    assert trace.jobs[-1].submit / 86_400 == pytest.approx(DAYS, abs=1)
    assert offered_load(trace.jobs, NODES) == pytest.approx(LOAD, rel=0.01)
