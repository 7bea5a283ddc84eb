"""Tasks and the GPUs that they see, as tasks of real Slurm's do."""

import pytest

from understudy.noded.gpu_bind import gpu_variables, gpus_of


@pytest.mark.parametrize(
    ("binding", "devices", "tasks", "seen"),
    [
        ("", [1, 2], 2, [[1, 2], [1, 2]]),
        ("closest", [1, 2], 2, [[1, 2], [1, 2]]),
        ("none", [1, 2], 2, [None, None]),
        ("single:1", [1, 2, 3], 2, [[1], [2]]),
        ("single:2", [1, 2], 5, [[1], [1], [2], [2], [1]]),
        ("per_task:1", [1, 2, 3], 3, [[1], [2], [3]]),
        ("per_task:2", [0, 1, 2, 3], 2, [[0, 1], [2, 3]]),
        ("per_task:2", [0, 1, 2], 2, [[0, 1], [2]]),
        ("map_gpu:1,2", [1, 2, 3], 2, [[1], [2]]),
        ("map_gpu:1*2,3", [1, 2, 3], 4, [[1], [1], [3], [1]]),
        ("map_gpu:0,1", [1, 2], 2, [[], [1]]),
        ("map_gpu:x", [1, 2], 2, [[], []]),
        ("mask_gpu:0x3,0x4", [1, 2, 3], 2, [[1], [2]]),
        ("verbose,map_gpu:2", [1, 2], 2, [[2], [2]]),
        ("map_gpu:2", [1, 2, 3], 1, [[1, 2, 3]]),
        ("per_task:1", [], 2, [[], []]),
    ],
)
def test_a_task_sees_the_gpus_that_it_is_bound_to(binding, devices, tasks, seen):
    assert [gpus_of(binding, devices, local, tasks) for local in range(tasks)] == seen


def test_one_that_is_bound_to_no_gpu_of_the_step_has_the_first():
    assert gpu_variables("map_gpu:0,1", [1, 2], [], 2)["CUDA_VISIBLE_DEVICES"] == "1"


def test_without_gpus_nothing_is_told():
    assert gpu_variables("single:1", [], [], 2) == {}
