"""Host lists: what is written reads back, and node sets agree with plain lists of names."""

import contextlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.model import bits, hostlist
from understudy.model.hostlist import NodeNames

names = st.builds(
    lambda prefix, number: prefix + number,
    st.sampled_from(["n", "rack1n", "rack10n", "rack2n", "a-", "n0x", "login"]),
    st.one_of(
        st.just(""),
        st.integers(0, 30).map(str),
        st.integers(0, 120).map(lambda n: f"{n:02d}"),
        st.integers(95, 105).map(lambda n: f"{n:03d}"),
    ),
)


@given(st.lists(names, max_size=60))
def test_compressed_in_order_reads_back_in_order(given_names: list[str]) -> None:
    expression = hostlist.compress(given_names, sort=False)
    assert hostlist.expand(expression) == given_names
    assert hostlist.count(expression) == len(given_names)


@given(st.lists(names, max_size=60), st.randoms(use_true_random=False))
def test_sorted_expression_holds_the_same_names_and_ignores_their_order(
    given_names: list[str], random: object
) -> None:
    expression = hostlist.compress(given_names)
    assert Counter(hostlist.expand(expression)) == Counter(given_names)
    shuffled = list(given_names)
    random.shuffle(shuffled)
    assert hostlist.compress(shuffled) == expression


@given(st.lists(names, unique=True, max_size=60), st.integers(min_value=0))
def test_node_sets_read_back_and_hold_the_names_that_they_say(
    table_names: list[str], chosen: int
) -> None:
    table = NodeNames(table_names)
    chosen &= table.all
    expression = table.to_expression(chosen)
    assert table.to_bitmap(expression) == chosen
    held = [name for index, name in enumerate(table_names) if chosen >> index & 1]
    assert Counter(hostlist.expand(expression)) == Counter(held)
    assert table.to_bitmap(",".join(held)) == chosen
    assert expression == hostlist.compress(held)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(min_value=0))
def test_a_table_of_plain_numbers_writes_what_compress_writes(
    starts: list[int], chosen: int
) -> None:
    table_names = list(dict.fromkeys(f"n{start + step}" for start in starts for step in range(5)))
    table = NodeNames(table_names)
    chosen &= table.all
    assert table.to_expression(chosen) == hostlist.compress(
        name for index, name in enumerate(table_names) if chosen >> index & 1
    )


@given(st.text(alphabet="ab[]-,019 x", max_size=30))
def test_any_text_expands_or_is_refused_with_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert len(hostlist.expand(text)) == hostlist.count(text)
    with contextlib.suppress(ValueError):
        assert NodeNames(["a1", "b"]).to_bitmap(text) <= bits.mask(2)


@given(
    st.sampled_from(["n", "rack-3n", "n0x", "a9b"]),
    st.integers(0, 1200),
    st.integers(1, 40),
    st.integers(0, 3),
    st.booleans(),
)
def test_names_that_count_upwards_are_looked_at_at_once_and_as_if_one_by_one(
    prefix: str, first: int, count: int, width: int, is_broken: bool
) -> None:
    names = [f"{prefix}{number:0{width}d}" for number in range(first, first + count)]
    if is_broken:
        names.append(f"{prefix}{first + count + 1}")
    is_plain = not is_broken and len(str(first)) >= width
    assert (hostlist.counting(names) is not None) == is_plain
    with pytest.MonkeyPatch.context() as patch:
        quick = (hostlist.compress(names, sort=False), vars(hostlist.NodeNames(names)))
        patch.setattr(hostlist, "counting", lambda _names: None)
        assert quick == (hostlist.compress(names, sort=False), vars(hostlist.NodeNames(names)))
    keys = hostlist.version_keys(names)
    assert not is_plain or keys == sorted(keys), "their order in the node table"
