"""Which solution is chosen, by BBSched's rules and by other methods."""

from fractions import Fraction

import pytest
from hypothesis import given
from reference import windows
from small_windows import problems

from understudy.controller.scheduling.textbook.deciding import (
    Fullness,
    by_published_code,
    by_tradeoff,
    packed_like_bins,
    weights_in_units,
    weights_of_one,
)
from understudy.controller.scheduling.textbook.subsets import Solution, Window

# nodes and TB, with 100 of each free
JOBS = [(80, 20), (10, 85), (40, 5), (10, 0), (20, 0)]
FULL = Fullness((100, 100), (0, 0))
J1_J5, ALL_BUT_J1 = 0b10001, 0b11110


def window():
    return Window(JOBS, (100, 100), [0, 1])


def test_the_worked_example_has_two_solutions():
    assert window().front(100) == [Solution((100, 20), J1_J5), Solution((80, 90), ALL_BUT_J1)]


def test_a_gain_in_buffers_of_more_than_twice_the_loss_in_nodes_is_taken():
    front = window().front(100)
    assert by_tradeoff(front, FULL, Fraction(2)).chosen == ALL_BUT_J1
    assert by_tradeoff(front, FULL, Fraction(7, 2)).chosen == J1_J5  # 0.7 is not more than 0.7


def test_the_published_code_does_not_take_a_loss_of_a_fifth_of_the_nodes():
    front = window().front(100)
    assert by_published_code(front, FULL).chosen == J1_J5
    assert by_published_code(front, Fullness((1000, 100), (0, 0))).chosen == ALL_BUT_J1
    # beside what is in use, 0.7 more are no 30 %
    assert by_published_code(front, Fullness((1000, 1000), (0, 800))).chosen == J1_J5


@pytest.mark.parametrize(
    ("of_nodes", "chosen"), [("0.5", ALL_BUT_J1), ("0.8", J1_J5), ("0.2", ALL_BUT_J1)]
)
def test_weights_choose_by_the_sum(of_nodes, chosen):
    part = Fraction(of_nodes)
    weights = weights_in_units([part, 1 - part], (100, 100))
    assert window().heaviest(weights).chosen == chosen


def test_who_is_constrained_fills_one_resource_and_of_equal_ones_the_other():
    assert window().heaviest(weights_of_one(0, (100, 100))).chosen == J1_J5
    assert window().heaviest(weights_of_one(1, (100, 100))).chosen == ALL_BUT_J1
    tie = Window([(5, 1), (5, 3)], (5, 9), [0, 1])
    assert tie.heaviest(weights_of_one(0, (5, 9))).chosen == 0b10


def test_bins_are_packed_with_what_is_most_like_what_is_free():
    assert packed_like_bins(window(), (100, 100)) == J1_J5


def test_bins_are_packed_by_parts_of_what_there_is_not_by_numbers():
    # 400 of 1,000 TB are less than 5 of 10 nodes
    made = Window([(1, 400), (5, 0)], (5, 1000), [0, 1])
    assert packed_like_bins(made, (5, 1000)) == 0b10


def test_bins_are_packed_with_the_earlier_of_two_that_are_alike():
    assert packed_like_bins(Window([(3, 1), (3, 1)], (4, 4), [0, 1]), (4, 4)) == 0b01


@given(problem=problems())
def test_the_rule_is_that_of_the_reference(problem):
    needs, free = problem
    capacity = tuple(2 * each for each in free)
    front = Window(needs, free, range(len(free))).front(10**6)
    chosen = by_tradeoff(front, Fullness(capacity, (0,) * len(free)), Fraction(2)).chosen
    assert tuple(i for i in range(len(needs)) if chosen >> i & 1) == windows.decide(
        needs, free, capacity, 2
    )


@given(problem=problems())
def test_each_method_leaves_no_room_for_another_job(problem):
    needs, free = problem
    capacity = tuple(2 * each for each in free)
    made = Window(needs, free, range(len(free)))
    chosen = {
        packed_like_bins(made, capacity),
        made.heaviest(weights_of_one(0, capacity)).chosen,
        made.heaviest(weights_of_one(1, capacity)).chosen,
    }
    for mask in chosen:
        left = [
            there_is - sum(need[k] for i, need in enumerate(needs) if mask >> i & 1)
            for k, there_is in enumerate(free)
        ]
        assert min(left) >= 0
        for i, need in enumerate(needs):
            if not mask >> i & 1:
                assert any(a > b for a, b in zip(need, left, strict=True))
