"""What a spread carries."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.experiments.comparison.spread import (
    bootstrap_median,
    five,
    paired,
    ratio,
    sign_flips,
    student,
)

RATIOS = st.lists(st.floats(0.01, 100), min_size=1, max_size=10)


def test_quartiles_are_interpolated():
    of = five([4, 1, 3, 2])
    assert (of.least, of.first, of.median, of.third, of.most, of.mean) == (
        1, 1.75, 2.5, 3.25, 4, 2.5,
    )  # fmt: skip


def test_a_ratio_is_shown_no_more_exactly_than_it_is():
    assert [ratio(each) for each in (0.9384, 12.5, 297.04, 15_249_561.2)] == [
        "0.938", "12.500", "297", "15,249,561",
    ]  # fmt: skip


def test_the_mean_of_a_half_and_a_double_is_one():
    of = paired([0.5, 2.0])
    assert of.mean == pytest.approx(1)
    assert of.below == 1
    assert of.chance == 1


def test_the_interval_is_students_on_the_logarithms():
    # logarithms 0.1, 0.2, 0.3: mean 0.2, standard error 0.1 / sqrt(3), t(2) = 4.303
    of = paired([math.exp(each) for each in (0.1, 0.2, 0.3)])
    half = 4.303 * 0.1 / math.sqrt(3)
    assert of.interval == pytest.approx((math.exp(0.2 - half), math.exp(0.2 + half)), rel=1e-4)


@pytest.mark.parametrize(
    ("freedom", "chance", "t"),
    [
        (1, 0.05, 12.706), (2, 0.05, 4.303), (3, 0.05, 3.182), (4, 0.05, 2.776), (4, 0.01, 4.604),
        (5, 0.05, 2.571), (9, 0.001, 4.781), (15, 0.05, 2.131), (30, 0.05, 2.042),
    ],
)  # fmt: skip
def test_students_distribution_is_that_of_tables(freedom, chance, t):
    assert student(freedom, chance) == pytest.approx(t, abs=6e-4)


def test_intervals_that_are_looked_at_together_are_wider():
    ratios = [0.7, 0.8, 0.75, 0.9, 0.85]
    alone, six = paired(ratios).interval, paired(ratios, 6).interval
    assert alone is not None
    assert six is not None
    assert six[0] < alone[0] < alone[1] < six[1]
    many = [each + step / 100 for each in ratios for step in range(4)]
    low, high = bootstrap_median(many, 6) or (1, 0)
    narrow = bootstrap_median(many) or (0, 1)
    assert low < narrow[0] < narrow[1] < high


def test_one_pair_has_no_interval():
    of = paired([0.7])
    assert (of.pairs, of.interval, of.chance) == (1, None, 1)


def test_all_signs_are_tried():
    # only +++ and --- are as far from 0 as three differences of one sign
    assert sign_flips([1, 2, 3]) == 2 / 8
    assert sign_flips([-1.5, -2.5, -3.5, -4.5, -5.5]) == 2 / 32
    # sums 3, 1, 1 and their opposites, twice: of 8 all are at least 0
    assert sign_flips([1, -2, 1]) == 1


def test_of_many_pairs_a_sample_of_signs_is_tried_the_same_each_time():
    mixed = [(-1) ** number * (1 + number / 7) for number in range(20)]
    assert 0 < sign_flips([1.0] * 20) <= 2**-14 or sign_flips([1.0] * 20) == 0
    assert sign_flips(mixed) == sign_flips(mixed) > 0.3


def test_a_median_of_few_values_has_no_interval():
    assert bootstrap_median([1, 2, 3, 4]) is None


def test_the_bootstrap_covers_the_median_and_is_the_same_each_time():
    values = [0.55, 0.6, 0.62, 0.65, 0.66, 0.7, 0.74, 0.84]
    found = bootstrap_median(values)
    assert found is not None
    assert found == bootstrap_median(values)
    assert 0.55 <= found[0] < 0.655 < found[1] <= 0.84


@given(RATIOS)
def test_turned_round_it_is_the_other_way_round(ratios):
    one, other = paired(ratios), paired([1 / each for each in ratios])
    assert one.mean * other.mean == pytest.approx(1)
    assert one.chance == pytest.approx(other.chance)
    if one.interval is not None and other.interval is not None:
        assert one.interval[0] * other.interval[1] == pytest.approx(1)
        assert one.interval[0] <= one.mean * (1 + 1e-9)


@given(RATIOS)
def test_a_chance_is_never_less_than_that_of_the_sign_turned_round(ratios):
    assert 2 / 2 ** len(ratios) <= paired(ratios).chance + 1e-12 <= 1 + 1e-9
