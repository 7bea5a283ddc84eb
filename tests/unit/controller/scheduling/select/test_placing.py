"""On which sockets and cores of a node tasks are placed.

Covers: controller/scheduling/select/sockets.
"""

import pytest

from understudy.controller.scheduling.select.placing import place
from understudy.controller.scheduling.select.sockets import SocketRules, whole_sockets

ALL = 0b1111_1111  # two sockets of four cores


def test_cores_are_taken_from_each_socket_in_turn():
    assert place(ALL, 5, 2, 4, 1, 2) == 0b0011_0111
    assert place(0b1111_1110, 3, 2, 4, 1, 2) == 0b0001_0110


def test_tasks_of_several_cpus_stay_within_a_socket():
    assert place(ALL, 4, 2, 4, 4, 2) == 0b0000_1111
    assert place(ALL, 5, 2, 4, 3, 2) == 0b0011_0111
    assert place(ALL, 5, 2, 4, 2, 2) == 0b0001_1111


def test_tasks_larger_than_a_socket_take_from_each_in_turn():
    assert place(ALL, 5, 2, 4, 10, 2) == 0b0011_0111


def test_in_blocks_the_tightest_socket_that_suffices_is_taken_else_the_one_with_most():
    assert place(0b1111_1000, 2, 2, 4, 1, 2, block=True) == 0b0011_0000
    assert place(0b0011_1111, 1, 2, 4, 1, 2, block=True) == 0b0001_0000
    assert place(0b1111_1100, 5, 2, 4, 1, 2, block=True) == 0b1111_0100


def test_one_socket_gives_its_lowest_free_cores():
    assert place(0b1111_0101, 3, 1, 8, 1, 1) == 0b0001_0101


def test_tasks_per_socket_bound_the_cores_of_each():
    assert SocketRules(tasks_each=2, cores_each=1).usable(ALL, 2, 8) == 0b0001_0001


def test_fewer_tasks_than_sockets_hold_leave_out_the_first_sockets():
    rules = SocketRules(tasks_each=4, cores_each=2)
    assert rules.usable(ALL, 2, 8, tasks=4) == 0b0011_0000
    assert rules.usable(ALL, 2, 8, tasks=5) == 0b0011_0011


def test_sockets_with_too_few_free_cores_do_not_count():
    assert SocketRules(min_free=3).usable(0b1111_0011, 2, 8) == 0b1111_0000
    assert SocketRules(min_free=3, min_count=2).usable(0b1111_0011, 2, 8) == 0


def test_whole_sockets_are_free_or_not():
    assert SocketRules(whole=True).usable(0b1111_1110, 2, 8) == 0b1111_0000
    assert whole_sockets(0b0001_0000, 2, 8) == 0b1111_0000


@pytest.mark.parametrize(
    ("cores", "of_task", "expected"),
    [
        (0b0000_0001, 1, 0b0000_1111),
        (0b0001_0001, 1, 0b1111_1111),
        (0b0011_0001, 1, 0b1111_0001),
        (0b0111_0011, 1, 0b1111_0011),
        (0b0001_1111, 1, 0b0001_1111),
        (0b0111_1111, 1, 0b1111_1111),
        (0b0011_1111, 3, 0b1111_1111),
    ],
)  # fmt: skip
def test_a_socket_to_which_a_job_comes_back_in_vain_is_not_given_whole(cores, of_task, expected):
    assert whole_sockets(cores, 2, 8, cores, of_task) == expected
