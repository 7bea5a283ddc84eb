"""Subsets of a window, against all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import windows
from small_windows import problems

from understudy.controller.scheduling.textbook.subsets import (
    Solution,
    Window,
    undominated,
)

amount = st.integers(0, 12)


def window_of(problem, objectives=None):
    needs, free = problem
    return Window(needs, free, list(range(len(free))) if objectives is None else objectives)


def places(mask):
    return tuple(i for i in range(mask.bit_length()) if mask >> i & 1)


@given(problem=problems())
def test_the_front_is_that_of_all_subsets(problem):
    front = window_of(problem).front(10**6)
    assert {each.used: places(each.chosen) for each in front} == windows.pareto(*problem)
    assert [each.used for each in front] == sorted((each.used for each in front), reverse=True)


@given(problem=problems())
def test_nobody_who_was_not_chosen_fits_beside_a_solution(problem):
    needs, free = problem
    for solution in window_of(problem).front(10**6):
        for i, need in enumerate(needs):
            if not solution.chosen >> i & 1:
                assert any(
                    used + more > there_is
                    for used, more, there_is in zip(solution.used, need, free, strict=True)
                )


@given(problem=problems(), weights=st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_the_heaviest_is_that_of_all_subsets(problem, weights):
    weights = weights[: len(problem[1])]
    found = window_of(problem).heaviest(weights)

    def weight(used):
        return sum(a * b for a, b in zip(weights, used, strict=True))

    assert weight(found.used) == max(map(weight, windows.feasible(*problem)))
    assert found.used == tuple(
        sum(problem[0][i][k] for i in places(found.chosen)) for k in range(len(problem[1]))
    )


def test_an_empty_window_has_the_empty_subset():
    window = window_of(([], [4, 4]))
    assert window.front(10) == [Solution((0, 0), 0)]
    assert window.heaviest([1, 1]) == Solution((0, 0), 0)


def test_a_window_of_one_is_that_job():
    assert window_of(([(3, 0)], [4, 4])).front(10) == [Solution((3, 0), 1)]


def test_of_subsets_that_use_the_same_the_fewest_and_earliest_jobs_stand_for_all():
    needs = [(2, 1), (1, 1), (1, 0), (2, 1)]
    assert window_of((needs, [2, 1])).front(100) == [Solution((2, 1), 0b0001)]


def test_what_is_no_objective_still_has_to_fit():
    needs = [(1, 5, 9), (1, 4, 1), (1, 4, 1)]
    assert window_of((needs, [3, 20, 9]), [0, 1]).front(100) == [Solution((2, 8), 0b110)]


def test_too_many_subsets_are_not_looked_at():
    needs = [(1 << i, 0) for i in range(8)]
    assert window_of((needs, [255, 0])).front(200) is None
    assert len(window_of((needs, [255, 0])).front(256)) == 1


def test_equal_jobs_are_one_subset_for_each_number_of_them():
    needs = [(1, 1)] * 20
    window = window_of((needs, [10, 10]))
    assert window.front(20) == [Solution((10, 10), 2**10 - 1)]


@given(vectors=st.lists(st.tuples(amount, amount, amount), min_size=65, max_size=90, unique=True))
def test_a_long_list_has_the_same_front_as_a_short_one(vectors):
    found = undominated(sorted(vectors, reverse=True))
    assert found == sorted(
        (each for each in vectors if not any(windows.dominates(other, each) for other in vectors)),
        reverse=True,
    )


@pytest.mark.parametrize("count", [11, 25])
def test_many_candidates_of_which_one_fits_are_as_many_subsets(count):
    window = window_of(([(7, 7)] * count, (7, 7)))
    assert window.front(100) == [Solution((7, 7), 1)]


def test_a_window_of_64_equal_jobs_has_few_amounts_and_the_earliest_of_them():
    window = window_of(([(1, 2)] * 64, (40, 70)))
    assert window.front(100) == [Solution((35, 70), 2**35 - 1)]


def test_amounts_beyond_64_bits_in_all_are_told_apart():
    needs = [(1 << 50, 1, 1 << 40), (1, 1 << 50, 1), (1 << 49, 1 << 49, 1 << 41)]
    free = (1 << 51, 1 << 51, 1 << 42)
    assert window_of((needs, free)).front(2) is None
    assert window_of((needs, free)).front(8) == [
        Solution(tuple(map(sum, zip(*needs, strict=True))), 0b111)
    ]
