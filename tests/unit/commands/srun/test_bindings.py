"""srun --cpu-bind: which CPUs a task may use.

Covers: model/cpu_binding.
"""

import pytest

from understudy.commands.srun.bindings import cpu_variables, memory_variables
from understudy.commands.srun.srun_settings import cpu_bind
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


@pytest.mark.parametrize(
    ("text", "implied", "whole", "kind", "values"),
    [
        ("q,rank", "", "quiet,rank", "rank", ""),
        ("v,map_cpu:1,0", "", "verbose,map_cpu:1,0", "map_cpu:", "1,0"),
        ("mask_cpu:0x2,0x1", "", "quiet,mask_cpu:2,1", "mask_cpu:", "2,1"),
        ("none", "threads", "quiet,none", "none", ""),
        ("", "cores", "quiet,cores", "cores", ""),
        ("v", "cores", "verbose,cores", "cores", ""),
        ("threads", "", "quiet,threadsthreads", "threads", "threads"),
    ],
)
def test_tasks_are_told_how_they_are_bound(
    text: str, implied: str, whole: str, kind: str, values: str
) -> None:
    told = cpu_variables(text, implied)
    assert (told["SLURM_CPU_BIND"], told["SLURM_CPU_BIND_TYPE"], told["SLURM_CPU_BIND_LIST"]) == (
        whole,
        kind,
        values,
    )


def test_nobody_is_told_of_a_binding_that_there_is_not() -> None:
    assert cpu_variables("v", "") == {}
    assert memory_variables("sort")["SLURM_MEM_BIND"] == "quiet"
