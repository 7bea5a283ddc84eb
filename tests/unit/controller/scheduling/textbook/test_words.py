"""Words of SchedulerParameters that must be right."""

from fractions import Fraction

import pytest

from understudy.controller.scheduling.textbook.words import choice, fraction, switch, whole
from understudy.model.errors import ConfigError


def test_a_word_that_is_not_there_is_its_default():
    assert whole({}, "w", 20) == 20
    assert fraction({}, "t", "0.5") == Fraction(1, 2)
    assert choice({}, "m", "a", ["a", "b"]) == "a"


def test_a_word_is_read_exactly():
    assert whole({"w": "7"}, "w", 20) == 7
    assert fraction({"t": "0.1"}, "t", "2") == Fraction(1, 10)
    assert choice({"m": "B"}, "m", "a", ["a", "b"]) == "b"


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "1.5", "101"])
def test_what_is_no_whole_number_in_the_range_is_an_error(text):
    with pytest.raises(ConfigError, match=f"w={text}: not a whole number from 1 to 100"):
        whole({"w": text}, "w", 20, least=1, most=100)


@pytest.mark.parametrize("text", ["", "x", "-1", "1/0", "1e400", "2147483648"])
def test_what_is_no_fraction_is_an_error(text):
    with pytest.raises(ConfigError, match="not a number from 0"):
        fraction({"t": text}, "t", "2")


def test_a_word_that_is_not_known_is_an_error_that_names_those_that_are():
    with pytest.raises(ConfigError, match="m=c: there are a, b"):
        choice({"m": "c"}, "m", "a", ["a", "b"])


def test_a_switch_is_on_or_off():
    assert [switch({"s": text}, "s") for text in ("", "yes", "1", "No", "0")] == [
        *(True, True, True, False, False)
    ]
    assert not switch({}, "s")
    with pytest.raises(ConfigError, match="s=maybe: yes or no"):
        switch({"s": "maybe"}, "s")
