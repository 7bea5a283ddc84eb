"""Windows of BBSched that are small enough to look at all subsets."""

from hypothesis import strategies as st

_KINDS = st.integers(2, 4)


@st.composite
def problems(draw, most=9):
    kinds = draw(_KINDS)
    free = draw(st.lists(st.integers(1, 25), min_size=kinds, max_size=kinds))
    needs = draw(
        st.lists(
            st.tuples(st.integers(1, free[0]), *(st.integers(0, each) for each in free[1:])),
            max_size=most,
        )
    )
    return needs, free
