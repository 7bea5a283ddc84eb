"""srun --cpu-bind: which CPUs a task may use."""

import pytest

from understudy.commands.srun_settings import cpu_bind
from understudy.noded.task_exec import cpus_of


@pytest.mark.parametrize(
    ("binding", "local", "each", "cpus"),
    [
        ("", 0, 1, set()),
        ("none", 1, 1, set()),
        ("rank", 2, 1, {2}),
        ("cores", 1, 2, {2, 3}),
        ("map_cpu:3,1", 0, 1, {3}),
        ("map_cpu:3,1", 3, 1, {1}),
        ("map_cpu:0x2", 0, 1, {2}),
        ("mask_cpu:0x5,0x2", 0, 1, {0, 2}),
        ("mask_cpu:0x5,2", 1, 1, {1}),
    ],
)
def test_a_task_has_the_cpus_of_its_place(binding, local, each, cpus):
    assert cpus_of(binding, local, each) == cpus


@pytest.mark.parametrize(
    ("text", "binding"),
    [
        ("", ""),
        ("verbose", ""),
        ("q,cores", "cores"),
        ("verbose,map_cpu:0,1", "map_cpu:0,1"),
        ("MASK_CPU:0xf,0x1", "mask_cpu:0xf,0x1"),
        ("odd", "!odd"),
    ],
)
def test_the_option_is_read_without_how_much_is_said(text, binding):
    assert cpu_bind(text) == binding
