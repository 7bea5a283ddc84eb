"""What a command costs before it does anything: its imports."""

from __future__ import annotations

import subprocess
import sys

import pytest

from understudy.tool.manual.catalogue import module_of

HEAVY = (
    *(
        "asyncio",
        "msgspec",
        "msgpack",
        "cryptography",
        "typer",
        "dataclasses",
        "argparse",
        "logging",
        "json",
        "numpy",
        "uvloop",
        "socket",
        "rich",
    ),
    "sqlalchemy",
)

OF_SBATCH = [
    "auth",
    "auth.local",
    "commands",
    "commands.sbatch",
    "commands.shared",
    "commands.shared.client",
    "commands.shared.context",
    "commands.shared.locate",
    "commands.shared.options",
    "commands.shared.packing",
    "commands.submission",
    "commands.submission.batch_script",
    "commands.submission.export",
    "commands.submission.gres",
    "commands.submission.in_order",
    "commands.submission.job",
    "commands.submission.numbers",
    "commands.submission.option_table",
    "commands.submission.options",
    "commands.submission.shape",
    "commands.submission.whole",
    "model",
    "model.environment",
    "model.noted",
    "model.times",
    "protocol",
    "protocol.wire_table",
]


@pytest.mark.parametrize(
    "command",
    ["squeue", "sinfo", "smap", "scancel", "scontrol", "sbatch", "salloc", "srun", "sacctmgr"],
)
def test_a_command_imports_nothing_heavy(command: str) -> None:
    program = (
        f"import sys, {module_of(command)}; print(*[name for name in {HEAVY!r} if name in "
        "sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []


@pytest.mark.parametrize("command", ["squeue", "sinfo", "sbatch", "salloc", "srun"])
def test_the_commands_that_are_run_most_import_neither_re_nor_enum(command: str) -> None:
    program = (
        f"import sys, {module_of(command)}; print(*[name for name in ('re', 'enum', "
        "'typing') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", _with_paths(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == []


def test_plain_lists_of_nodes_are_read_and_written_without_re() -> None:
    program = (
        "import sys; from understudy.model.hostlist import compress, expand;"
        "print(compress(expand('n[08-10,12]') + expand('n1,n2')), *[name for name in ('re', "
        "'enum', 'typing') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-c", _with_paths(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["n[1-2,08-10,12]"]


def _with_paths(program: str) -> str:
    """Without site, whose .pth files may import anything, the search path has to be given."""
    return f"import sys; sys.path[:] = {sys.path!r}; {program}"


def test_sbatch_imports_what_each_submission_needs_and_nothing_else() -> None:
    program = (
        "import sys, understudy.commands.sbatch; print(*sorted(name.removeprefix('understudy.') "
        "for name in sys.modules if name.startswith('understudy.')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == OF_SBATCH
