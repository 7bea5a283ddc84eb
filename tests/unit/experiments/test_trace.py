"""The machine that a trace's header describes."""

import pytest

from understudy.experiments.swf import parse_swf
from understudy.experiments.trace import Machine, TraceError

JOB = "1 0 -1 10 80 -1 -1 80 60" + " -1" * 9


def machine(*header, **said):
    return parse_swf([*header, JOB]).machine(**said)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (["; MaxNodes: 1152", "; MaxProcs: 9216"], Machine(1152, 8)),
        (["; MaxNodes: 100", "; MaxProcs: 100"], Machine(100, 1)),
        (["; MaxProcs: 9216"], Machine(9216, 1)),
        (["; MaxNodes: 128 (all of them)"], Machine(128, 1)),
        (["; MaxNodes: 1,152", "; MaxProcs: 9,216"], Machine(1152, 8)),
    ],
)
def test_nodes_share_the_processors_of_the_header(header, expected):
    assert machine(*header) == expected


def test_what_the_user_says_wins_over_the_header():
    header = ["; MaxNodes: 1152", "; MaxProcs: 9216"]
    assert machine(*header, nodes=10) == Machine(10, 1)
    assert machine(*header, nodes=10, cpus=4) == Machine(10, 4)
    assert machine(*header, cpus=16) == Machine(576, 16)
    assert machine("; MaxNodes: 1152", cpus=16) == Machine(1152, 16)


def test_a_header_that_does_not_fit_equal_nodes_is_said():
    assert machine("; MaxNodes: 10", "; MaxProcs: 25") == Machine(
        10, 3, "25 processors of the header are no multiple of its 10 nodes: 3 CPUs on each node"
    )
    assert machine("; MaxNodes: 10", "; MaxProcs: 5")[:2] == (10, 1)


def test_without_a_header_the_machine_is_not_guessed():
    with pytest.raises(
        TraceError, match=r"neither MaxNodes nor MaxProcs.*largest job has 80 " r"processors"
    ):
        machine()


def test_a_column_that_says_the_same_of_all_jobs_is_not_missed():
    lines = [f"{job} 0 -1 10 1 -1 -1 1 60 -1 1 {job} 1 -1 5 1 -1 -1 more" for job in (1, 2, 3)]
    assert parse_swf(lines).unused == {"user": 3, "columns behind the 18th": 3}
