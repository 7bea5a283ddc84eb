"""The genetic search, against the exact front.

Covers: controller/scheduling/chance.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_windows import problems

from understudy.controller.scheduling.chance import biased_bits, seeded
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


@pytest.mark.parametrize("chances", [0, 33, 3_277, 32_768, 65_535])
def test_bits_are_as_often_one_as_they_should_be(chances):
    count = 400_000
    ones = biased_bits(seeded(1), count, chances).bit_count()
    assert abs(ones / count - chances / 65_536) < 0.003
