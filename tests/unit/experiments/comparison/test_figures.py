"""Figures of a cell, by hand."""

import math

import numpy as np
import pytest

from understudy.experiments.comparison.figures import FIGURES, Ran, figures, shown, words


def ran(*jobs):
    """(submit, start, end, processors, buffer) of each."""
    return Ran(*(np.array(column, float) for column in zip(*jobs, strict=True)))


# on 4 processors and a buffer of 10; the third waits for ever
THREE = ran((0, 0, 100, 2, 5), (20, 100, 120, 4, 10), (60, math.nan, math.nan, 4, 1))


def test_three_jobs():
    of = figures(THREE, 4, 10)
    assert (of["mean_wait"], of["median_wait"], of["max_wait"]) == (40, 40, 80)
    assert of["mean_turnaround"] == 100
    assert of["mean_slowdown"] == pytest.approx((1 + 100 / 20) / 2)
    assert of["bsld_10"] == pytest.approx((1 + 100 / 20) / 2)
    assert of["bsld_60"] == pytest.approx((1 + 100 / 60) / 2)
    assert of["bsld_600"] == 1
    assert of["makespan"] == 120
    assert of["utilisation"] == pytest.approx((2 * 100 + 4 * 20) / (4 * 120))
    assert of["bb_utilisation"] == pytest.approx((5 * 100 + 10 * 20) / (10 * 120))
    # until the last submission only the first runs
    assert of["usage"] == pytest.approx(2 * 60 / (4 * 60))
    assert of["bb_usage"] == pytest.approx(5 / 10)
    assert of["never_started"] == 1


def test_without_a_buffer_nothing_of_it_is_used():
    of = figures(THREE, 4, 0)
    assert (of["bb_utilisation"], of["bb_usage"]) == (0, 0)


def test_one_instant_of_submissions_has_no_usage():
    assert figures(ran((5, 5, 9, 1, 0)), 1, 0)["usage"] == 0


def test_where_no_job_ran_there_are_no_figures():
    with pytest.raises(ValueError, match="no job ran"):
        figures(ran((0, math.nan, math.nan, 1, 0)), 1, 0)


@pytest.mark.parametrize("figure", FIGURES)
def test_each_has_a_name(figure):
    assert words(figure)


def test_values_are_shown_as_tables_have_them():
    assert shown("usage", 0.7231) == "72.31 %"
    assert shown("mean_wait", 14791.4) == "14,791"
    assert shown("bsld_600", 10.844) == "10.84"
    assert shown("never_started", 3) == "3"
