"""What a value of `set` is taken for, as by sacctmgr of 22.05.8.

Covers: commands/sacctmgr/words.
"""

import pytest

from understudy.commands.sacctmgr.keys import Key
from understudy.commands.sacctmgr.words import (
    ValueRefusedError,
    Vocabulary,
    number,
    read_value,
)

WORDS = Vocabulary(lambda: {"cpu": 1}, lambda: ["normal", "q1"], lambda text: text)


def read(kind, text, operator="="):
    return read_value(Key("Name", 1, "name", kind), operator, text, f"Name={text}", WORDS, print)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7", 7), ("7x", 7), ("", 0), ("-1", None), ("4294967295", None), ("99999999999", 1215752191)],
)
def test_limits_have_32_bits(text, expected):
    assert number("GrpJobs", text) == expected


@pytest.mark.parametrize(
    ("operator", "text", "expected"),
    [
        ("=", "+nodecay", ["NoDecay"]),  # a sign within the value says nothing
        ("=", "denyonlimit,-nodecay", ["DenyOnLimit", "NoDecay"]),
        ("+=", "nodecay", ["+NoDecay"]),
        ("-=", "nodecay", ["-NoDecay"]),
    ],
)
def test_flags_come_and_go_by_the_operator_alone(operator, text, expected):
    assert read("flags", text, operator) == expected


def test_no_mode_of_preemption_is_the_cluster_s():
    assert [read("mode", text) for text in ("off", "", "Cancel")] == [
        "cluster",
        "cluster",
        "cancel",
    ]
    with pytest.raises(ValueRefusedError, match="Bad Preempt Mode given: Name=cancel,off"):
        read("mode", "cancel,off")


def test_a_default_qos_must_be_there_and_minus_one_takes_it_away():
    assert read("default_qos", "Q1") == "q1"
    assert read("default_qos", "-1") is None
    with pytest.raises(ValueRefusedError, match="bad default qos ''"):
        read("default_qos", "")
