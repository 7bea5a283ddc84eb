"""Tasks and nodes where options do not say how many."""

import pytest

from understudy.model.shape import (
    described_threads,
    nodes_for,
    nodes_with_tasks,
    uncounted_tasks,
)


def test_nodes_that_are_described_have_so_many_threads() -> None:
    assert described_threads(2, 4, 2) == 16
    assert described_threads(2, None, None) == 2
    assert described_threads(None, None, None) is None


def test_no_node_is_without_a_task() -> None:
    assert nodes_with_tasks(2, 3, 5) == (2, 2)
    assert nodes_with_tasks(4, 3, 5) == (3, 4)
    assert nodes_with_tasks(4, 3, None) == (3, None)


@pytest.mark.parametrize(
    ("options", "tasks", "is_told"),
    [
        ((1, None, None, None), 1, False),
        ((2, 2, None, None), 2, False),
        ((2, 2, 3, None), 6, True),
        ((2, 3, 3, None), 6, False),
        ((3, 3, 2, 4), 6, True),
        ((1, None, None, 4), 4, True),
        ((2, 2, None, 1), 2, True),
        ((2, 3, None, 4), 2, False),
    ],
)
def test_tasks_follow_from_nodes_and_the_job_is_told_where_these_are_certain(
    options: tuple[int, int | None, int | None, int | None], tasks: int, is_told: bool
) -> None:
    assert uncounted_tasks(*options) == (tasks, is_told)


def test_tasks_that_do_not_fill_a_node_take_it() -> None:
    assert nodes_for(5, 2) == 3
