"""The genetic search, against the exact front.

Covers: controller/scheduling/chance.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_windows import problems

from understudy.controller.scheduling.chance import biased_words, seeded, words
from understudy.controller.scheduling.textbook.genetic import Search, search
from understudy.controller.scheduling.textbook.subsets import Window


def window(seed, count=18):
    source = seeded(seed)
    free = (source.randint(500, 4_000), source.randint(100, 600))
    needs = [
        (source.randint(1, free[0] // 3), source.choice([0, source.randint(20, 100)]))
        for _ in range(count)
    ]
    return Window(needs, free, [0, 1])


def area(front):
    """What the front dominates, of two objectives."""
    total = last = 0
    for used, _ in front:
        total += used[0] * (used[1] - last)
        last = used[1]
    return total


@pytest.mark.parametrize("seed", range(6))
def test_its_front_dominates_nearly_as_much_as_the_exact_one(seed):
    found = search(window(seed), seeded(seed), Search())
    assert area(found) >= 0.99 * area(window(seed).front(10**9))


@settings(max_examples=30, deadline=None)
@given(problem=problems(), seed=st.integers(0, 99))
def test_what_it_finds_fits_and_no_other_of_it_is_better(problem, seed):
    needs, free = problem
    if not needs:
        return
    found = search(Window(needs, free, range(len(free))), seeded(seed), Search(8, 20))
    for used, mask in found:
        assert used == tuple(
            sum(need[k] for i, need in enumerate(needs) if mask >> i & 1) for k in range(len(free))
        )
        assert all(a <= b for a, b in zip(used, free, strict=True))
    vectors = [used for used, _ in found]
    assert vectors == sorted(set(vectors), reverse=True)


def test_the_same_seed_finds_the_same():
    assert search(window(3), seeded(5), Search()) == search(window(3), seeded(5), Search())


def test_no_generation_leaves_what_was_drawn_first():
    found = search(window(3), seeded(5), Search(population=4, generations=0))
    assert 1 <= len(found) <= 4


def test_it_says_how_many_it_has_looked_at():
    made = window(3)
    search(made, seeded(5), Search(population=10, generations=7))
    assert made.evaluations == 10 + 7 * 10


def test_so_few_candidates_that_a_population_is_all_subsets_need_no_chance():
    source = seeded(5)
    state = source.getstate()
    needs, free = [(3, 1), (2, 4), (1, 1), (2, 2)], (5, 5)
    assert search(Window(needs, free, [0, 1]), source, Search()) == Window(
        needs, free, [0, 1]
    ).front(16)
    assert source.getstate() == state
    search(Window([*needs, (1, 2)], free, [0, 1]), source, Search())
    assert source.getstate() != state


def test_wide_windows_and_single_objectives_are_searched_alike():
    source = seeded(4)
    needs = [(source.randint(1, 9), source.randint(0, 9), 1) for _ in range(64)]
    for objectives in ([0], [0, 2], [0, 1, 2]):
        found = search(Window(needs, (60, 60, 15), objectives), seeded(1), Search(20, 60))
        for used, mask in found:
            sums = [sum(need[k] for i, need in enumerate(needs) if mask >> i & 1) for k in range(3)]
            assert used == tuple(sums[k] for k in objectives)
            assert all(a <= b for a, b in zip(sums, (60, 60, 15), strict=True))


def test_two_that_use_all_there_is_of_much_do_not_run_into_each_other():
    found = search(Window([(7, 7)] * 25, (7, 7), [0, 1]), seeded(1), Search())
    assert [used for used, _ in found] == [(7, 7)]


@pytest.mark.parametrize("length", [1, 20, 32, 33, 64])
@pytest.mark.parametrize("chances", [0, 33, 3_277, 32_768, 65_535])
def test_bits_are_as_often_one_as_they_should_be(chances, length):
    count = 400_000 // length
    drawn = biased_words(seeded(1), count, length, chances)
    assert max(drawn) < 1 << length
    ones = sum(each.bit_count() for each in drawn)
    assert abs(ones / count / length - chances / 65_536) < 0.003


def test_words_are_of_32_bits():
    drawn = words(seeded(1), 10_000)
    assert len(drawn) == 10_000
    assert max(drawn) < 1 << 32
    assert abs(sum(drawn) / 10_000 / (1 << 32) - 0.5) < 0.01
