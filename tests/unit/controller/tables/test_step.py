"""The layout of a step within its job."""

from __future__ import annotations

import pytest

from understudy.controller.tables.step import UNSPECIFIED, Held, Place, Step, deal, lay_out
from understudy.model.errors import ErrorCode, SlurmError
from understudy.protocol.messages import StepSpec

TWO = [Held(0, 3, 0), Held(1, 1, 0)]


def tasks_of(
    spec: StepSpec, held: list[Held], required: tuple[int, ...] = ()
) -> list[tuple[int, list[int]]]:
    return [(place.node, place.tasks) for place in lay_out(spec, held, list(required), 0)]


def code_of(spec: StepSpec, held: list[Held], required: tuple[int, ...] = ()) -> int:
    with pytest.raises(SlurmError) as refused:
        lay_out(spec, held, list(required), 0)
    return refused.value.code


def test_a_block_fills_each_node_and_leaves_none_empty() -> None:
    assert tasks_of(StepSpec(min_nodes=2, num_tasks=4), TWO) == [(0, [0, 1, 2]), (1, [3])]
    assert deal(3, [4, 4], "block") == [[0, 1], [2]]


def test_cyclic_and_plane_go_round_the_nodes() -> None:
    assert deal(5, [4, 4], "cyclic") == [[0, 2, 4], [1, 3]]
    assert deal(6, [4, 4], "plane=2") == [[0, 1, 4, 5], [2, 3]]


def test_without_a_number_of_tasks_each_node_gets_one() -> None:
    assert tasks_of(StepSpec(), TWO) == [(0, [0]), (1, [1])]


def test_a_step_takes_all_cpus_of_its_nodes_unless_it_is_exact() -> None:
    assert [place.cpus for place in lay_out(StepSpec(num_tasks=1), TWO, [], 0)] == [3]
    assert [place.cpus for place in lay_out(StepSpec(num_tasks=1, exact=True), TWO, [], 0)] == [1]


def test_a_step_waits_for_cpus_that_others_use_unless_it_overlaps() -> None:
    used = [Held(0, 4, 0, used_cpus=4)]
    assert code_of(StepSpec(num_tasks=1), used) == ErrorCode.NODES_BUSY
    assert tasks_of(StepSpec(num_tasks=1, overlap=True), used) == [(0, [0])]


def test_what_the_job_does_not_have_is_refused() -> None:
    assert code_of(StepSpec(num_tasks=5), TWO) == ErrorCode.TOO_MANY_CPUS
    assert code_of(StepSpec(min_nodes=3), TWO) == ErrorCode.TOO_MANY_CPUS
    assert code_of(StepSpec(), TWO, (7,)) == ErrorCode.NOT_AVAILABLE


@pytest.mark.parametrize(
    "name",
    [
        *("num_tasks", "min_nodes", "max_nodes", "relative", "cpus_per_task", "ntasks_per_node"),
        *("mem_per_node_mb", "mem_per_cpu_mb"),
    ],
)
def test_less_than_nothing_is_refused_whoever_asks(name: str) -> None:
    assert code_of(StepSpec(**{name: -1}), TWO) == ErrorCode.INVALID_TASK_COUNT


def test_relative_leaves_out_the_first_nodes() -> None:
    assert tasks_of(StepSpec(min_nodes=1, relative=1), TWO) == [(1, [0])]


def test_arbitrary_takes_one_entry_of_the_list_a_task() -> None:
    assert tasks_of(StepSpec(num_tasks=3, distribution="arbitrary"), TWO, (1, 0, 1)) == [
        (0, [1]),
        (1, [0, 2]),
    ]
    assert code_of(StepSpec(num_tasks=4, distribution="arbitrary"), TWO, (1, 0, 1)) == UNSPECIFIED


@pytest.mark.parametrize(
    ("asked", "per_cpu", "memory_mb"),
    [
        ({}, None, 1000),
        ({"mem_per_node_mb": 300}, None, 300),
        ({"mem_per_node_mb": 0}, 250, 1000),
        ({"mem_per_cpu_mb": 50}, None, 100),
        ({}, 250, 500),
    ],
)
def test_a_step_has_the_memory_that_it_asks_for_else_as_its_job(
    asked: dict[str, int], per_cpu: int | None, memory_mb: int
) -> None:
    held = [Held(0, 4, 1000, memory_per_cpu_mb=per_cpu)]
    assert (
        lay_out(StepSpec(num_tasks=2, exact=True, **asked), held, [], 0)[0].memory_mb == memory_mb
    )


def test_a_step_waits_for_memory_that_others_asked_for_if_it_asks_itself() -> None:
    used = [Held(0, 4, 1000, used_cpus=1, used_memory_mb=700)]
    assert (
        code_of(StepSpec(num_tasks=1, exact=True, mem_per_node_mb=400), used)
        == ErrorCode.NODES_BUSY
    )
    assert tasks_of(StepSpec(num_tasks=1, exact=True, mem_per_node_mb=300), used) == [(0, [0])]
    assert tasks_of(StepSpec(num_tasks=1, exact=True), used) == [(0, [0])]


def test_a_step_comes_back_from_the_saved_state() -> None:
    step = Step(3, "x", [Place(0, [0, 1], 2, 100)], "n1", 10, open_nodes=5, takes_memory=True)
    again = Step.unpack(step.pack())
    assert again.pack() == step.pack()
    assert again.open_nodes == 5
    assert again.tasks == 2


@pytest.mark.parametrize("wish", [{"overcommit": True}, {"overlap": True}])
def test_tasks_of_a_step_are_bounded_however_many_are_asked_for(wish: dict[str, bool]) -> None:
    places = lay_out(StepSpec(num_tasks=2 * 512, min_nodes=2, **wish), TWO, [], 0)
    assert sum(len(place.tasks) for place in places) == 2 * 512
    for tasks in (2 * 65_533 + 1, (1 << 64) - 2):
        with pytest.raises(SlurmError, match="Task count specification invalid"):
            lay_out(StepSpec(num_tasks=tasks, min_nodes=2, **wish), TWO, [], 0)
