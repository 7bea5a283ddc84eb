"""Node sets against plain Python sets of positions.

Covers: model/bits, model/nodeset.
"""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.model import nodeset

positions = st.one_of(
    st.sets(st.integers(0, 200)),
    st.sets(st.integers(0, 3000), max_size=400),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(1, 900))).map(
        lambda spans: {i for start, length in spans for i in range(start, start + length)}
    ),
)


@given(positions)
def test_positions_come_back_in_ascending_order(chosen: set[int]) -> None:
    bits = nodeset.from_positions(chosen)
    assert bits == sum(1 << i for i in chosen)
    assert nodeset.indices(bits) == sorted(chosen)
    assert list(nodeset.iterate(bits)) == sorted(chosen)
    assert nodeset.positions_array(bits).tolist() == sorted(chosen)
    assert nodeset.positions_of_few(bits).tolist() == sorted(chosen)
    assert nodeset.from_array(nodeset.positions_array(bits)) == bits
    assert not chosen or nodeset.first(bits) == min(chosen)


@given(positions, st.integers(-2, 3000))
def test_lowest_and_highest_take_the_ends(chosen: set[int], count: int) -> None:
    bits = nodeset.from_positions(chosen)
    order = sorted(chosen)
    assert nodeset.indices(nodeset.lowest(bits, count)) == order[: max(count, 0)]
    assert nodeset.indices(nodeset.highest(bits, count)) == (order[-count:] if count > 0 else [])


@given(positions, st.integers(0, 3000))
def test_rank_and_position_are_inverse(chosen: set[int], at: int) -> None:
    bits = nodeset.from_positions(chosen)
    assert nodeset.rank(bits, at) == sum(1 for i in chosen if i < at)
    expected = sorted(chosen)[at] if at < len(chosen) else -1
    assert nodeset.position(bits, at) == expected
    assert nodeset.first(bits) == min(chosen, default=-1)
    assert nodeset.last(bits) == max(chosen, default=-1)


@given(positions, positions)
def test_bits_are_compared_as_sets_are(chosen: set[int], others: set[int]) -> None:
    bits, rest = nodeset.from_positions(chosen), nodeset.from_positions(others)
    assert set(nodeset.indices(nodeset.without(bits, rest))) == chosen - others
    assert nodeset.are_among(bits, rest) == chosen.issubset(others)
    assert nodeset.are_among(bits & rest, rest)


@given(positions)
def test_runs_are_maximal_and_give_the_bitmap_back(chosen: set[int]) -> None:
    bits = nodeset.from_positions(chosen)
    found = nodeset.runs(bits)
    assert nodeset.from_runs(found) == bits
    assert all(length > 0 for _, length in found)
    assert all(start + length < following for (start, length), (following, _) in pairwise(found))


@given(positions, st.integers(0, 3000))
def test_vectors_of_booleans_hold_the_same_nodes(chosen: set[int], size: int) -> None:
    bits = nodeset.from_positions(chosen)
    flags = nodeset.to_flags(bits, size)
    assert flags.shape == (size,)
    assert flags.dtype == np.bool_
    assert np.flatnonzero(flags).tolist() == sorted(i for i in chosen if i < size)
    assert nodeset.from_flags(flags) == bits & nodeset.mask(size)
    assert nodeset.select(bits, flags) == bits & nodeset.mask(size)
