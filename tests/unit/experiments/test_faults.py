"""Lines of events.jsonl that are faults."""

import math

import pytest

from understudy.experiments.faults import KINDS, Fault, read_fault, read_words

LINES = [
    {"at": 60.0, "fault": "crash", "of": "n[1-4]", "for": 600.0},
    {"at": 0.0, "fault": "stall", "of": "controller"},
    {"at": 5.5, "fault": "slow", "of": "n1", "for": 60.0, "times": 3.0},
    {"at": 1.0, "fault": "partition", "of": "rack1", "to": "controller", "one_way": True},
    {"at": 1.0, "fault": "link", "of": "n1", "latency": 0.5, "loss": 0.1, "reorder": 0.2},
    {"at": 1.0, "fault": "link", "of": "n1", "duplicate": 1.0},
    {"at": 1.0, "fault": "disk_full", "of": "controller", "for": 20.0},
    {"at": 1.0, "fault": "disk_slow", "of": "controller", "seconds": 2.0},
    {"at": 1.0, "fault": "fsync_fails", "of": "controller"},
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["fault"])
def test_a_line_is_read_and_written_as_it_was(line):
    assert read_fault(line).as_line() == line


def test_each_kind_is_in_the_examples():
    assert {line["fault"] for line in LINES} == set(KINDS)


def test_a_partition_loses_everything_and_what_has_no_end_lasts():
    fault = read_fault({"at": 1, "fault": "partition", "of": "n1"})
    assert fault == Fault(1.0, "partition", "n1", math.inf, loss=1.0)


def test_a_disk_is_the_controllers_if_nothing_is_said():
    assert read_fault({"at": 1, "fault": "disk_full"}).of == "controller"
    assert read_fault({"at": 1, "fault": "disk_full", "of": "accounting"}).of == "accounting"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ({"at": 1, "fault": "flood", "of": "n1"}, "'flood' is none of crash, stall"),
        ({"at": 1, "fault": "crash", "of": "n1", "loss": 1}, "loss: not a key of the fault crash"),
        ({"at": 1, "fault": "link", "of": "n1", "loss": 1.5}, "loss: 1.5 is not a probability"),
        ({"at": 1, "fault": "link", "of": "n1", "loss": -1}, "loss: -1 is not a number from 0 on"),
        ({"at": 1, "fault": "slow", "of": "n1", "times": 0.5}, "times: 0.5 is not a number from 1"),
        ({"at": 1, "fault": "crash", "of": "n1", "for": math.inf}, "for: inf is not a number"),
        ({"at": 1, "fault": "disk_full", "of": "n1"}, "a disk is a controller's or accounting's"),
        ({"at": 1, "fault": "disk_slow", "of": "accounting"}, "only a controller's disk can be"),
    ],
)
def test_what_makes_no_sense_is_said(line, text):
    with pytest.raises(ValueError, match=text):
        read_fault(line)


def test_a_fault_is_of_somebody():
    with pytest.raises(KeyError, match="of"):
        read_fault({"at": 1, "fault": "crash"})


def test_words_of_a_command_line_say_the_same():
    words = "link of=n[1-4],rack2 to=controller at=60 for=600 loss=0.1 one_way=yes"
    line = {"at": 60, "fault": "link", "of": "n[1-4],rack2", "to": "controller", "for": 600}
    assert read_words(words) == read_fault(line | {"loss": 0.1, "one_way": True})
    assert not read_words("link of=n1 at=0 one_way=no").one_way


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("crash n1 at=60", "n1: not KEY=VALUE"),
        ("crash at=60", "of= is missing"),
        ("crash of=n1 at=soon", "at: 'soon' is not a number"),
        ("", "fault: '' is none of crash"),
    ],
)
def test_words_that_make_no_sense_are_said(words, text):
    with pytest.raises(ValueError, match=text):
        read_words(words)
