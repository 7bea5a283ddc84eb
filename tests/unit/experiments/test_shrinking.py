"""Less of what fails."""

from hypothesis import given
from hypothesis import strategies as st

from understudy.experiments.shrinking import without_needless


@given(st.sets(st.integers(0, 40)), st.integers(0, 40))
def test_what_is_needed_is_left_and_nothing_else(needed, size):
    items = tuple(range(size))
    needed &= set(items)
    assert set(without_needless(items, lambda fewer: needed <= set(fewer))) == needed


def test_who_fails_with_little_is_asked_seldom():
    asked = []

    def fails(items):
        asked.append(items)
        return 700 in items

    assert without_needless(tuple(range(1000)), fails) == (700,)
    assert len(asked) < 100
