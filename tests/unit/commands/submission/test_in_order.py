"""A command line is answered, or refused, where it first can be."""

import pytest
from fake_controller import FakeClient, Outcome, run_command

from understudy.commands.salloc import salloc
from understudy.commands.sbatch import sbatch
from understudy.commands.srun.srun import srun

COMMANDS = {"salloc": salloc, "sbatch": sbatch, "srun": srun}


def _typed(line: str) -> Outcome:
    name, *words = line.split()
    return run_command(COMMANDS[name], *words, client=FakeClient(), usage_exit=255)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("srun -n x --nosuch true", 'Invalid numeric value "x" for --ntasks.'),
        ("salloc --kill-command=x --nosuch", "Invalid --kill-command specification"),
        ("srun --nosuch -n x true", "unrecognized option '--nosuch'"),
        ("srun -n x --het-group=200 --nosuch true", "Invalid --het-group value: 200"),
        ("srun --het-group=200 --het-group=0 --nosuch true", "unrecognized option '--nosuch'"),
        ("sbatch -n x --wrap=true script", 'Invalid numeric value "x" for --ntasks.'),
        ("sbatch -n x --version", 'Invalid numeric value "x" for --ntasks.'),
    ],
)
def test_the_first_mistake_counts(line: str, said: str) -> None:
    outcome = _typed(line)
    assert said in outcome.err
    assert len([line for line in outcome.err.splitlines() if "Try" not in line]) == 1
    assert not outcome.out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("srun --gres=help -n x true", "Valid gres options are:"),
        ("salloc --gres=help --nosuch", "Valid gres options are:"),
        ("sbatch --gres=help --version", "Valid gres options are:"),
        ("srun --version --nosuch", "slurm "),
    ],
)
def test_help_comes_before_what_stands_behind(line: str, said: str) -> None:
    outcome = _typed(line)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(said)


def test_what_is_passed_over_is_said_once_and_before_a_mistake() -> None:
    notice = "srun: error: Ignoring unrecognized power option (x)"
    assert _typed("srun --power=x --nosuch").err.count(notice) == 1
    assert _typed("srun --power=x --mpi=nosuch true").err.count(notice) == 1
