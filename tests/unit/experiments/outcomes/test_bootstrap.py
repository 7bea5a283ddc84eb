"""Intervals of means."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.experiments.outcomes.bootstrap import block_length, mean_interval

VALUES = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=60).map(np.array)


@given(VALUES, st.integers(0, 9))
def test_an_interval_holds_its_mean_and_lies_within_the_values(values, seed):
    found = mean_interval(values, seed, 100)
    assert found is not None
    assert found.mean == pytest.approx(values.mean())
    assert found.low <= found.mean <= found.high
    assert values.min() - 1e-6 <= found.low
    assert found.high <= values.max() + 1e-6


@given(VALUES)
def test_values_of_the_other_sign_have_the_interval_of_the_other_sign(values):
    here, there = mean_interval(values, 3, 100), mean_interval(-values, 3, 100)
    assert here is not None
    assert there is not None
    assert (there.mean, there.low, there.high) == pytest.approx((-here.mean, -here.high, -here.low))


@given(VALUES)
def test_the_same_seed_gives_the_same_interval(values):
    assert mean_interval(values, 1, 50) == mean_interval(values, 1, 50)


def test_of_nothing_there_is_none():
    assert mean_interval(np.array([], np.int64)) is None


def test_nine_tenths_of_the_intervals_hold_the_mean_that_the_values_are_drawn_around():
    random = np.random.default_rng(5)
    held = 0
    for seed in range(200):
        found = mean_interval(random.normal(7.0, 3.0, 400), seed, 300)
        assert found is not None
        held += found.low <= 7.0 <= found.high
    assert 180 <= held < 200


def test_neighbours_that_are_alike_make_the_interval_wider():
    random = np.random.default_rng(6)
    values = np.repeat(random.normal(0.0, 1.0, 200), 5)
    mixed = random.permutation(values)
    alike, apart = mean_interval(values), mean_interval(mixed)
    assert alike is not None
    assert apart is not None
    assert alike.high - alike.low > 1.5 * (apart.high - apart.low)


@pytest.mark.parametrize(("count", "length"), [(1, 1), (2, 1), (8, 2), (27, 3), (100_000, 46)])
def test_blocks_are_as_long_as_the_cube_root(count, length):
    assert block_length(count) == length
