"""The commands' own msgpack writes and reads what the library does."""

import subprocess
import sys

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.commands.shared import packing
from understudy.model.byte_texts import restored

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(0, 9), inner),
    max_leaves=30,
)
EDGES = [
    *(
        sign * (1 << power) + more
        for power in (5, 7, 8, 15, 16, 31, 32, 63)
        for sign in (1, -1)
        for more in (-1, 0, 1)
        if sign * (1 << power) + more >= -(1 << 63)
    ),
    *("x" * length for length in (31, 32, 255, 256, 65535, 65536)),
    *(b"x" * length for length in (0, 255, 256, 65535, 65536)),
    *([None] * length for length in (15, 16, 255, 256, 65535, 65536)),
    *(dict.fromkeys(range(length)) for length in (15, 16, 255, 256, 65536)),
]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a command, which has not imported the library, for values of any length."""
    monkeypatch.delitem(sys.modules, "msgpack")
    monkeypatch.setattr(packing, "_SHORT", 1 << 30)


@given(VALUES)
def test_values_are_packed_as_the_library_packs_them(value: object) -> None:
    assert packing.pack(value) == msgpack.packb(value)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "value", EDGES, ids=lambda value: f"{type(value).__name__} {len(str(value))}"
)
def test_values_at_the_edges_of_their_heads_come_back(value: object) -> None:
    packed: bytes = msgpack.packb(value)
    assert packing.pack(value) == packed
    assert packing.unpack(packed) == value


@pytest.mark.usefixtures("alone")
def test_many_values_come_back_without_the_library() -> None:
    @given(VALUES)
    def check(value: object) -> None:
        assert packing.unpack(msgpack.packb(value)) == restored(value)
        assert "msgpack" not in sys.modules

    check()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xa5abc",
        b"\x92\x01",
        b"\xc1",
        b"\xcd\x01",
        b"\x01\x02",
        b"\xd9",
        b"\xc4\x05ab",
        b"\xcb\x00",
        b"\xd4\x01\x00",
    ],
)
def test_what_is_cut_short_or_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="malformed"):
        packing.unpack(data)


def test_other_values_are_refused_as_the_library_refuses_them() -> None:
    for value, error in (
        (object(), TypeError),
        (1 << 64, OverflowError),
        ("\ud800", UnicodeEncodeError),
    ):
        with pytest.raises(error):
            msgpack.packb(value)
        with pytest.raises(error):
            packing.pack(value)


def test_long_answers_are_left_to_the_library() -> None:
    imports = "import sys; from understudy.commands.shared.packing import pack, unpack"
    program = f"{imports}; print(len(unpack(pack(['x' * 20000]))[0]), 'msgpack' in sys.modules)"
    assert subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split() == ["20000", "True"]
