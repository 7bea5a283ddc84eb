"""Sizes of burst buffers, and the lines that ask for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.model.burst_buffers import (
    InvalidRequestError,
    datawarp_line,
    directives,
    read_datawarp,
    read_lua,
    size_of,
    size_text,
    with_symbols,
)

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), ("17", 17), ("1K", 1024), ("1KiB", 1024), ("1KB", 1000), ("2m", 2 << 20),
        ("3GB", 3_000_000_000), ("1gib", GIB), ("1TB", 10**12), ("1P", 1 << 50), ("5N", 5),
        ("5nodes", 5), ("1node", 1),
    ],
)  # fmt: skip
def test_sizes_have_units_of_1024_and_of_1000(text, size):
    assert size_of(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "3Q", "1Gi", "0x10"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="^" if not text else None):
        size_of(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0"), (10, "10"), (GIB, "1GiB"), (10 * GIB, "10GiB"), (10**9, "1GB"), (1500, "1500"),
        (1_500_000, "1500KB"), (10 << 60, "10240PiB"), (1024 * 1000, "1000KiB"),
        (10**6 * 1024, "1024MB"),
    ],
)  # fmt: skip
def test_sizes_are_shown_with_the_largest_unit_that_divides_them(size, text):
    assert size_text(size) == text


@given(st.integers(0, 1 << 62))
def test_a_size_that_is_shown_is_read_as_itself(size):
    assert size_of(size_text(size)) == size


def test_directives_stand_above_the_first_line_that_is_no_comment():
    script = "#!/bin/sh\n\n# x\n#BB_LUA pool=a\n#SBATCH -n1\n#BB_LUA capacity=1\ntrue\n#BB_LUA no\n"
    assert directives(script, ("BB_LUA",)) == ["#BB_LUA pool=a", "#BB_LUA capacity=1"]
    assert directives("true\n#BB_LUA\n", ("BB_LUA",)) == []


def test_the_directive_alone_asks_for_all_stages_and_no_space():
    request = read_lua(["#BB_LUA"], ["a"])
    assert (request.text, request.sizes) == ("#BB_LUA", ())
    assert read_lua(["#BB_LUA pool=a"], ["a"]).sizes == ()


def test_several_lines_add_up():
    request = read_lua(["#BB_LUA pool=a capacity=1G", "#BB_LUA pool=b capacity=3"], ["a", "b"])
    assert request.sizes == (("a", GIB), ("b", 3))


@pytest.mark.parametrize(("text", "size"), [("1.5G", 1), ("3Q", 3), ("12x", 12), ("10KB", 10_000)])
def test_what_follows_the_digits_of_a_request_and_is_no_unit_counts_for_nothing(text, size):
    assert read_lua([f"#BB_LUA pool=a capacity={text}"], ["a"]).sizes == (("a", size),)


@pytest.mark.parametrize(
    "line",
    [
        "#BB_LUA pool=b capacity=1G", "#BB_LUA pool=b", "#BB_LUA capacity=1G",
        "#BB_LUA pool=a capacity=0", "#BB_LUA pool=a capacity=G", "#BB_LUA setup=soon",
        "#BB_LUA fail=nothing", "#BB_LUA data_in=-1",
    ],
)  # fmt: skip
def test_requests_of_lua_that_cannot_be(line):
    with pytest.raises(InvalidRequestError):
        read_lua([line], ["a"])


def test_words_of_ours_say_how_long_stages_take_and_which_fail():
    request = read_lua(["#BB_LUA data_in=90 fail=post_run,teardown"], [])
    assert request.seconds is not None
    assert request.seconds["data_in"] == 90
    assert request.fails == {"post_run", "teardown"}


def test_datawarp_reads_job_and_persistent_buffers():
    lines = [
        "#DW jobdw capacity=2GiB access_mode=striped type=scratch pool=b",
        "#DW stage_in type=file source=/a destination=/b",
        "#DW persistentdw name=kept",
        "#DW swap 3",
        "#BB create_persistent name=made capacity=1G access=striped type=scratch",
        "#BB destroy_persistent name=gone hurry",
    ]
    request = read_datawarp(lines, ["a", "b"], "a")
    assert request.sizes == (("b", 2 * GIB),)
    assert (request.uses, request.destroys) == (("kept",), (("gone", True),))
    assert request.swap == 3 * GIB
    [made] = request.creates
    assert (made.name, made.size, made.pool, made.access) == ("made", GIB, "a", "striped")


@pytest.mark.parametrize(
    "line",
    [
        "#DW jobdw access_mode=striped", "#DW jobdw capacity=1G access_mode=odd",
        "#DW jobdw capacity=1G type=odd", "#DW jobdw capacity=1G pool=x", "#DW persistentdw",
        "#DW odd", "#BB odd", "#BB create_persistent name=1a capacity=1G",
        "#BB create_persistent name=a", "#DW stage_in source=/a", "#DW swap",
    ],
)  # fmt: skip
def test_requests_of_datawarp_that_cannot_be(line):
    with pytest.raises(InvalidRequestError):
        read_datawarp([line], ["a"], "a")


def test_without_a_pool_datawarp_refuses():
    with pytest.raises(InvalidRequestError):
        read_datawarp(["#DW jobdw capacity=1G"], [], "")


def test_the_short_form_of_datawarp_is_a_line():
    assert (
        datawarp_line("capacity=1G access=striped type=scratch")
        == "#DW jobdw capacity=1GiB access_mode=striped type=scratch"
    )
    assert datawarp_line("swap=2") == "#DW swap 2"
    assert datawarp_line("#DW persistentdw name=a") == "#DW persistentdw name=a"


def test_symbols_are_replaced():
    symbols = {"j": "17", "u": "ann"}
    assert with_symbols("#DW name=%u_%j%% %z", symbols) == "#DW name=ann_17% %z"
