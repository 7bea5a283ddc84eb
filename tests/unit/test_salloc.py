"""salloc: what it refuses before it asks for anything, and which options it and srun have."""

from __future__ import annotations

import pytest
from fake_controller import FakeClient, record, run_command

from understudy.commands.salloc import OPTIONS, USAGE, USAGE_EXIT, salloc
from understudy.commands.srun_options import OPTIONS as SRUN_OPTIONS


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("--chdir=/nosuch", 1, "salloc: error: chdir(/nosuch): No such file or directory\n"),
        ("--signal=B:USR1@10", 255, "salloc: error: Invalid --signal specification\n"),
        ("--container=/x", 1, "salloc: error: --container requires LaunchParameters=use_interactive_step\n"),
        (
            "--distribution=arbitrary",
            1,
            "salloc: error: With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option\n",
        ),
    ],
)
def test_what_a_command_of_its_own_host_cannot_have_is_refused(option: str, code: int, said: str) -> None:
    client = FakeClient()
    outcome = run_command(salloc, option, "true", client=client, usage_exit=USAGE_EXIT)
    assert (outcome.code, outcome.err, client.asked) == (code, said, [])


def test_it_says_what_it_takes() -> None:
    client = FakeClient(config=[record("config", name="GresTypes", value="gpu,fpga")])
    assert run_command(salloc, "--usage", client=client).out == USAGE + "\n"
    assert run_command(salloc, "--gres=help", client=client).lines == ["Valid gres options are:", "gpu[[:type]:count]", "fpga[[:type]:count]"]


def test_some_options_of_sbatch_are_not_theirs() -> None:
    assert "kill-on-invalid-dep" not in OPTIONS.by_long
    assert not {"kill-on-invalid-dep", "get-user-env", "wait-all-nodes"} & SRUN_OPTIONS.by_long.keys()
    assert SRUN_OPTIONS.by_long["pack-group"].dest == "het_group"
