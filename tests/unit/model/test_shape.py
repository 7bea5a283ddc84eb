"""Tasks and nodes where options do not say how many."""

from understudy.model.shape import described_threads, nodes_for, nodes_with_tasks


def test_nodes_that_are_described_have_so_many_threads() -> None:
    assert described_threads(2, 4, 2) == 16
    assert described_threads(2, None, None) == 2


def test_no_node_is_without_a_task() -> None:
    assert nodes_with_tasks(2, 3, 5) == (2, 2)
    assert nodes_with_tasks(4, 3, 5) == (3, 4)
    assert nodes_with_tasks(4, 3, None) == (3, None)


def test_tasks_that_do_not_fill_a_node_take_it() -> None:
    assert nodes_for(5, 2) == 3
