"""How tasks are dealt to nodes."""

import numpy as np

from understudy.controller.scheduling.select.dealing import deal, shares_of_nodes


def shares(cpus, wanted, min_nodes, core=2, least=1):
    return shares_of_nodes(np.array(cpus), wanted, min_nodes, core, least).tolist()


def dealt(tasks, room, at_a_time=1):
    return deal(tasks, np.array(room), at_a_time).tolist()


def test_each_further_node_that_the_job_must_have_keeps_a_core():
    assert shares([16, 16, 16], 39, 3) == [16, 16, 7]
    assert shares([16] * 5, 35, 5) == [16, 13, 2, 2, 2]


def test_nodes_beyond_those_that_it_must_have_serve_the_least_when_nothing_is_left():
    assert shares([16] * 4, 8, 1) == [8, 1, 1, 1]
    assert shares([16] * 3, 30, 3, least=8) == [16, 12, 8]


def test_a_node_keeps_back_cores_of_its_own_size_whatever_cores_the_others_have():
    assert shares([4, 4, 1], 4, 3, np.array([2, 2, 1])) == [1, 1, 1]
    assert shares([4, 4, 1], 6, 3, np.array([2, 1, 1])) == [2, 3, 1]
    assert (
        shares([4, 4, 1], 3, 3, core=2) == shares([4, 4, 1], 3, 3, np.array([2, 2, 2])) == [1, 1, 1]
    )


def test_every_node_gets_a_task_before_the_others_are_dealt_a_core_at_a_time():
    assert dealt(30, [16, 14, 1, 1, 1, 1], 2) == [14, 12, 1, 1, 1, 1]
    assert dealt(33, [16, 16, 1, 1, 1, 1], 2) == [15, 14, 1, 1, 1, 1]
    assert dealt(20, [16, 4, 1, 1, 1, 1], 2) == [12, 4, 1, 1, 1, 1]


def test_tasks_for_which_there_is_no_room_are_dealt_one_by_one():
    assert dealt(6, [2, 2, 1]) == [3, 2, 1]
    assert dealt(11, [2, 2, 2, 2, 1]) == [3, 3, 2, 2, 1]


def test_a_node_without_room_for_a_whole_task_still_takes_one():
    assert dealt(3, [2, 0]) == [2, 1]
