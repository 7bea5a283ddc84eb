"""What a starter sends, and what a zygote must share with it."""

import os

import pytest

from understudy.tool.zygote.request import (
    Request,
    environment,
    facts,
    first_environment,
    fixed,
)

PARTS = [
    *(b"1", b"/v/bin/python", b"0:1 ", b"22"),
    *(b"3", b"0", b"1", b"2"),
    *(b"3", b"/v/bin/sbatch", b"", b"-H"),
    *(b"HOME=/root", b"EMPTY=", b"WITH=a=b"),
]


def test_a_request_has_the_command_line_and_the_environment_of_who_typed_it():
    request = Request(b"".join(part + b"\0" for part in PARTS))
    assert (request.version, request.python, request.facts) == (b"1", b"/v/bin/python", b"0:1 ")
    assert request.umask == 0o22
    assert request.descriptors == [0, 1, 2]
    assert request.words == [b"/v/bin/sbatch", b"", b"-H"]
    assert request.command == "sbatch"
    assert request.environ == {b"HOME": b"/root", b"EMPTY": b"", b"WITH": b"a=b"}


@pytest.mark.parametrize("length", [0, 1, 4, 8])
def test_half_a_request_is_none(length):
    with pytest.raises((ValueError, IndexError)):
        Request(b"".join(part + b"\0" for part in PARTS[:length]))


def test_of_a_variable_that_is_there_twice_the_first_counts_as_in_python():
    assert environment([b"A=1", b"nothing", b"A=2", b""]) == {b"A": b"1"}


def test_variables_that_are_read_at_a_process_start_are_fixed():
    given = {b"PYTHONPATH": b"x", b"LC_ALL": b"C", b"LANG": b"C", b"LD_PRELOAD": b"y", b"TZ": b"z"}
    assert fixed({**given, b"HOME": b"/"}) == {
        name: given[name] for name in (b"PYTHONPATH", b"LC_ALL", b"LANG", b"LD_PRELOAD")
    }


def test_a_process_knows_where_it_is():
    assert facts() == facts()
    assert facts().count(b":") == 6
    name = next(name for name in os.environb if name in first_environment())
    assert first_environment()[name] == os.environb[name]
