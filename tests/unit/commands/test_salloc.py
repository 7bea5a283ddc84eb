"""salloc: what it refuses before it asks for anything, and which options it and srun have.

Covers: commands/srun/srun_options, commands/srun/srun_settings.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from fake_controller import FakeClient, record, run_command

from understudy.commands.salloc import OPTIONS, USAGE, USAGE_EXIT, own_code, salloc
from understudy.commands.sbatch import sbatch
from understudy.commands.shared.client import RefusedError
from understudy.commands.srun.srun import srun
from understudy.commands.srun.srun_options import OPTIONS as SRUN_OPTIONS
from understudy.commands.submission.allocation import AllocationError, exit_code
from understudy.protocol.messages import JobSpec


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("--chdir=/nosuch", 1, "salloc: error: chdir(/nosuch): No such file or directory\n"),
        ("--signal=B:USR1@10", 255, "salloc: error: Invalid --signal specification\n"),
        ("--kill-command=FOO", 255, "salloc: error: Invalid --kill-command specification\n"),
        ("-K0", 255, "salloc: error: Invalid --kill-command specification\n"),
        ("--x11", 255, "salloc: error: No DISPLAY variable set, cannot setup x11 forwarding.\n"),
        ("--immediate=x", 1, 'salloc: error: Invalid numeric value "x" for immediate.\n'),
        (
            "--container=/x",
            1,
            "salloc: error: --container requires LaunchParameters=use_interactive_step\n",
        ),
        (
            "--distribution=arbitrary",
            1,
            (
                "salloc: error: With Arbitrary distribution you need to specify a nodelist or "
                "hostfile with the -w option\n"
            ),
        ),
    ],
)
def test_what_a_command_of_its_own_host_cannot_have_is_refused(
    option: str, code: int, said: str
) -> None:
    client = FakeClient()
    outcome = run_command(salloc, option, "true", client=client, usage_exit=USAGE_EXIT)
    assert (outcome.code, outcome.err, client.asked) == (code, said, [])


@pytest.mark.parametrize(("command", "is_said"), [(salloc, True), (srun, True), (sbatch, False)])
def test_that_there_are_more_nodes_than_tasks_is_not_kept_quiet_by_salloc_and_srun(
    command: Any, is_said: bool
) -> None:
    options = ("-Q", "-N3", "-n2", *(("--wrap=true",) if command is sbatch else ("true",)))
    client = FakeClient()
    client.answers = dict.fromkeys(("SubmitJob", "AllocateJob"), RefusedError(2000, "no"))
    said = run_command(command, *options, client=client).err
    assert ("Warning: can't run 2 processes on 3 nodes, setting nnodes to 2" in said) is is_said


def test_it_says_what_it_takes() -> None:
    client = FakeClient(config=[record("config", name="GresTypes", value="gpu,fpga")])
    assert run_command(salloc, "--usage", client=client).out == USAGE + "\n"
    assert run_command(salloc, "--gres=help", client=client).lines == [
        "Valid gres options are:",
        "gpu[[:type]:count]",
        "fpga[[:type]:count]",
    ]


@pytest.mark.parametrize(
    ("code", "own"), [(0, 0), (7, 7), (-9, 0), (-2, 0), (-1, 0), (-15, 1), (-10, 1), (-6, 1)]
)
def test_a_command_that_its_user_ends_went_well(code: int, own: int) -> None:
    assert own_code(code) == own


@pytest.mark.parametrize(
    ("code", "immediate", "ends"), [(2016, 1, 8), (110, 5, 8), (2016, 0, 9), (2015, 1, 9)]
)
def test_the_environment_says_what_a_command_without_resources_ends_with(
    code: int, immediate: int, ends: int
) -> None:
    error = AllocationError(code, "")
    assert (
        exit_code(error, immediate, {"SLURM_EXIT_ERROR": "9", "SLURM_EXIT_IMMEDIATE": "8"}) == ends
    )
    assert exit_code(error, immediate, {"SLURM_EXIT_ERROR": "0"}) == 1


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            "--propagate=cpu",
            "srun: error: Bad rlimit name: cpu\nsrun: error: --propagate=cpu is not valid.\n",
        ),
        ("--open-mode=x", "srun: error: Invalid --open-mode specification\n"),
        ("--threads=0", 'srun: error: Invalid numeric value "0" for --threads.\n'),
        ("--resv-ports=x", 'srun: error: Invalid numeric value "x" for --resv-port.\n'),
        ("--msg-timeout=x", 'srun: error: Invalid numeric value "x" for --msg-timeout.\n'),
        ("--x11=first", "srun: error: No DISPLAY variable set, cannot setup x11 forwarding.\n"),
    ],
)
def test_srun_refuses_values_that_its_options_cannot_have(option: str, said: str) -> None:
    client = FakeClient()
    outcome = run_command(srun, option, "true", client=client, usage_exit=USAGE_EXIT)
    assert (bool(outcome.code), outcome.err, client.asked) == (True, said, [])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--mem=1", "--mem-per-cpu=1"),
            "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.",
        ),
        (
            ("--gpus-per-task=1", "--ntasks-per-gpu=1"),
            "--gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU",
        ),
        (
            ("--ntasks-per-node=1", "--ntasks-per-gpu=1"),
            (
                "--ntasks-per-node is mutually exclusive with --ntasks-per-gpu and "
                "SLURM_NTASKS_PER_GPU"
            ),
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused_by_each_command(
    options: tuple[str, ...], said: str
) -> None:
    for command in (salloc, srun, sbatch):
        outcome = run_command(
            command,
            *options,
            *(["--wrap=true"] if command is sbatch else ["true"]),
            client=FakeClient(),
        )
        assert (outcome.code, outcome.err) == (1, f"{command.__name__}: fatal: {said}\n")
    outcome = run_command(
        srun,
        "--gpus-per-task=1",
        "true",
        client=FakeClient(),
        environ={"SLURM_NTASKS_PER_GPU": "1"},
    )
    assert (outcome.code, outcome.err[:38]) == (1, "srun: fatal: --gpus-per-task is mutual")


def test_some_options_of_sbatch_are_not_theirs() -> None:
    assert "kill-on-invalid-dep" not in OPTIONS.by_long
    assert (
        not {"kill-on-invalid-dep", "get-user-env", "wait-all-nodes"} & SRUN_OPTIONS.by_long.keys()
    )
    assert SRUN_OPTIONS.by_long["pack-group"].dest == "het_group"


@pytest.mark.parametrize("command", [salloc, srun])
def test_a_component_takes_over_what_the_one_before_it_asked_for_and_variables_hold_for_all(
    command: Any,
) -> None:
    client = FakeClient(ping=[record("ping", host="h")])
    client.answers["AllocateJob"] = RefusedError(2000, "no")
    own = ["true"] if command is srun else []
    first = ["-n1", "-t5", "--mem=5", "-Jn", "-w", "a", "--comment=x", *own]
    more = [":", "-n2", "-t7", *own, ":", "-n3", "true"]
    environ = {"SALLOC_PARTITION": "p", "SLURM_PARTITION": "p"}
    run_command(command, *first, *more, client=client, environ=environ)
    asked = dict(client.asked)["AllocateJob"]
    found = [msgspec.convert(each, JobSpec) for each in (asked["spec"], *asked["components"])]
    assert [
        (spec.num_tasks, spec.time_limit_s, spec.mem_per_node_mb, spec.name, spec.partition)
        for spec in found
    ] == [(1, 300, 5, "n", "p"), (2, 420, 5, "n", "p"), (3, 420, 5, "n", "p")]
    assert [spec.required_nodes for spec in found] == ["a", "", ""]
