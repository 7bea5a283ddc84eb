"""What is generated from the commands' declarations: the page of options, manual pages,
completion.

Covers: commands/shared/option_help, tool/manual/completions, tool/manual/man_pages,
tool/manual/option_page, tool/understudy/manual.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest
from typer.testing import CliRunner

from understudy.commands import salloc
from understudy.commands.srun import srun_options
from understudy.commands.submission.options import ACTIONS
from understudy.tool.manual.catalogue import (
    ACCEPTED_OF_JOBS,
    EMULATED,
    WITHOUT_EFFECT,
    Command,
    commands,
    spelled,
    unknown_names,
)
from understudy.tool.manual.completions import SHELLS, script
from understudy.tool.manual.man_pages import plain, roff
from understudy.tool.manual.option_page import page
from understudy.tool.understudy.app import app_with

NAMES = [command.name for command in commands()]
# of commands that submit: what is no option of the job
OWN = {"sbatch": frozenset(), "salloc": salloc._OWN, "srun": srun_options.OWN}


@pytest.mark.parametrize("name", OWN)
def test_an_option_of_a_job_does_something_or_is_listed_as_without_effect(name):
    """Else it would be kept with the job's other words, and nobody would be told."""
    assert not [
        option.long
        for option in Command(name).options.options
        # --bb is read by the controller, from what is kept; --bbf with all others (check_whole)
        if option.dest not in (*ACTIONS, *OWN[name], "clusters", "bb", "bbf")
        and option.long not in ACCEPTED_OF_JOBS
    ]


def test_the_page_of_options_has_every_option_of_every_command():
    text = page()
    assert all(f"## {name}\n" in text for name in NAMES)
    assert all(
        f"`--{each.long}" in text or f", --{each.long}" in text
        for command in commands()
        for each in command.listed
    )


def test_every_name_that_no_declaration_holds_is_still_right():
    assert list(unknown_names()) == []


def test_all_commands_of_the_package_are_described():
    assert {
        "sbatch",
        "squeue",
        "sinfo",
        "scancel",
        "scontrol",
        "sacct",
        "sacctmgr",
        "strigger",
        "scrontab",
    } <= set(NAMES)


def option(command, name):
    return next(each for each in Command(command).listed if each.long == name)


@pytest.mark.parametrize(
    ("command", "name", "effect"),
    [
        ("sbatch", "time", EMULATED),
        ("sbatch", "cpu-freq", WITHOUT_EFFECT),
        ("squeue", "federation", WITHOUT_EFFECT),
        ("scancel", "hurry", EMULATED),
    ],
)
def test_what_has_an_effect(command, name, effect):
    assert Command(command).effect(option(command, name)) == effect


def test_options_are_spelled_as_manuals_do():
    assert spelled(option("squeue", "partitions")) == "-p, --partitions=LIST"
    assert spelled(option("squeue", "jobs")) == "-j, --jobs[=LIST]"
    assert spelled(option("squeue", "me")) == "--me"


def test_other_names_are_told_with_their_option():
    assert "users" in Command("squeue").other_names(option("squeue", "user"))
    assert "users" not in [each.long for each in Command("squeue").listed]


@pytest.mark.parametrize("name", NAMES)
def test_a_manual_page_names_every_option_and_field(name):
    command = Command(name)
    text = plain(command)
    assert text.startswith(f"NAME\n    {name} - ")
    assert all(spelled(each) in text for each in command.listed)
    assert all(names in text for _, names, _ in command.fields)
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("name", NAMES)
def test_a_manual_page_for_man_has_no_line_that_roff_takes_for_a_request(name):
    requests = {
        line.split()[0] for line in roff(Command(name)).splitlines() if line.startswith((".", "'"))
    }
    assert requests <= {".TH", ".SH", ".TP"}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_script_has_every_option_and_is_sound(shell, tmp_path):
    text = script(shell)
    for command in commands():
        assert all(each.long in text for each in command.listed)
    if shutil.which(shell):
        path = tmp_path / "script"
        path.write_text(text)
        subprocess.run([shell, "-n", path], check=True, timeout=30)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("squeue --partit", "--partitions="),
        ("sbatch --open-mode = a", "append"),
        ("sbatch --mail-type BEGIN,EN", "BEGIN,END"),
        ("scontrol sho", "show"),
        ("strigger --flags ''", "PERM"),
        ("sbatch -p de", "debug"),
        ("scancel 1", "17"),
        ("squeue -w n1", "n1"),
    ],
)
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(line, expected, tmp_path):
    for name, says in (("squeue", "17\\n23\\n"), ("sinfo", "debug\\nn1\\nn2\\n")):
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{says}'\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "script").write_text(script("bash"))
    program = f"""
    PATH={tmp_path}:$PATH; source {tmp_path}/script; compopt() {{ :; }}
    COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=()
    _understudy_${{COMP_WORDS[0]}}; printf '%s\\n' "${{COMPREPLY[@]}}" """
    said = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert said.stdout.split() == [expected]


def test_understudy_man_and_completion():
    run = CliRunner().invoke
    assert run(app_with("man"), ["man", "squeue"]).stdout.startswith("NAME\n    squeue - ")
    assert "squeue " in run(app_with("man"), ["man"]).stdout
    assert run(app_with("man"), ["man", "nosuch"]).exit_code == 1
    assert "complete -F" in run(app_with("completion"), ["completion", "bash"]).stdout
    assert run(app_with("completion"), ["completion", "tcsh"]).exit_code == 1
