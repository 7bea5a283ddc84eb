"""The table of variables: who is told which, and of what."""

from pathlib import Path

import pytest

from understudy.model import environment
from understudy.model.environment import (
    COMMAND,
    COMPONENT,
    GROUP,
    JOB,
    NODES,
    SBATCH,
    SITE,
    SRUN,
    TASKS,
    VARIABLES,
    binding,
    handed_on,
    is_for,
    of_components,
    read,
    told,
    working_cluster,
    written,
)

COMPOSERS = [
    *("controller/facts/environment.py", "controller/notices/mail.py", "controller/jobs/start.py"),
    *("commands/sbatch.py", "commands/salloc.py", "commands/srun/environment.py"),
    *("commands/submission/export.py", "noded/environment.py", "noded/real.py"),
    *("noded/real_steps.py", "noded/task_exec.py", "noded/gpu_bind.py", "protocol/messages.py"),
    *("commands/submission/options.py", "commands/srun/bindings.py", "noded/task_pmix.py"),
    "model/environment.py",
]


def test_each_fact_that_is_told_is_gathered_by_somebody():
    root = Path(__file__).parents[3]
    *texts, own = [(root / path).read_text() for path in COMPOSERS]
    texts.append(own.rpartition("VARIABLES = {")[2].partition("\n}")[2])
    for variable, (fact, _) in VARIABLES.items():
        ways = (f'"{fact}"', f"    {fact}: ")
        assert any(way in text for text in texts for way in ways), variable


def test_each_of_those_who_are_told_is_told_something():
    bits = [
        value
        for name, value in vars(environment).items()
        if name.isupper() and type(value) is int and name[0] != "_"
    ]
    assert sum(bits) == (1 << len(bits)) - 1
    assert all(any(whom & bit for _, whom in VARIABLES.values()) for bit in bits)


def test_a_binding_is_told_in_four_variables():
    assert binding("CPU", "quiet", "map_cpu:", "0,1") == {
        "SLURM_CPU_BIND": "quiet,map_cpu:0,1",
        "SLURM_CPU_BIND_VERBOSE": "quiet",
        "SLURM_CPU_BIND_TYPE": "map_cpu:",
        "SLURM_CPU_BIND_LIST": "0,1",
    }
    assert binding("MEM", "verbose", "local", "", "prefer")["SLURM_MEM_BIND"] == (
        "verbose,prefer,local"
    )


@pytest.mark.parametrize(
    ("who", "names"),
    [
        (JOB, "SLURM_JOB_NODELIST SLURM_NODELIST"),
        (SITE, "SLURM_JOB_NODELIST"),
        (NODES, "SLURM_NODELIST"),
        (GROUP, "SLURM_JOB_NODELIST"),
        (SBATCH, ""),
    ],
)
def test_one_fact_has_other_names_for_others(who, names):
    assert told(who, {"nodes": "n1"}) == dict.fromkeys(names.split(), "n1")


def test_nothing_is_told_of_what_is_not_so():
    facts = {"cpus_per_task": None, "name": "", "label": False, "step_id": 0}
    assert told(SRUN, facts) == {"SLURM_STEP_ID": "0", "SLURM_STEPID": "0"}
    assert told(SRUN, {"label": True}) == {"SLURM_LABELIO": "1"}


def test_a_command_and_tasks_are_not_told_of_the_node_of_a_script():
    found = told(JOB, {"devices": "0,1", "job_id": 7, "user": "ann"})
    assert found["SLURM_JOB_GPUS"] == "0,1"
    assert handed_on(COMMAND, found) == {"SLURM_JOB_ID": "7", "SLURM_JOBID": "7"}
    assert not is_for(TASKS, "SLURM_JOB_GPUS")
    assert not is_for(COMPONENT, "HOME")


def test_each_component_is_told_under_its_number_and_the_older_name():
    assert of_components([{"A": "1"}, {"A": "2"}]) == {
        "A_HET_GROUP_0": "1",
        "A_PACK_GROUP_0": "1",
        "A_HET_GROUP_1": "2",
        "A_PACK_GROUP_1": "2",
    }


def test_what_is_written_is_read():
    assert read(written({"A": "b=c", "D": ""})) == {"A": "b=c", "D": ""}


def test_the_controller_is_found_without_a_file():
    assert working_cluster("c", "h:6817") == "c:h:6817:9728:109"
