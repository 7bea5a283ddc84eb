"""An error that is put in on purpose in what one side prints, in its exit code or in its state is
found and named. Needs real Slurm.
"""

import pytest

from differential.compare import ERRORS, EXIT, OUTPUT, STATE
from differential.real_slurm import missing
from differential.sequence import Step
from differential.sides import Pair

SEQUENCE = [
    Step(
        run="sbatch -o /dev/null -H -J alpha --wrap 'sleep 600'", saves="j1", changes=True
    ),
    Step(run="squeue -h -o '%i %j %T %r'"),
    Step(run="scancel abc", changes=True),
]  # fmt: skip


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    why = missing()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("pair")
    for above in (folder, *list(folder.parents)[:2]):
        above.chmod(above.stat().st_mode | 0o055)
    with Pair(folder).up() as both:
        yield both


def wrong_output(step, out, err, code):
    return out.replace("alpha", "alphq") if step.run.startswith("squeue") else out, err, code


def wrong_errors(step, out, err, code):
    return out, err.replace("Invalid", "Invald") if step.run.startswith("scancel") else err, code


def wrong_exit(step, out, err, code):
    return out, err, 7 if step.run.startswith("squeue") else code


def wrong_state(step, out, err, code):
    return out.replace("Nice=0", "Nice=1") if step.run.startswith("state") else out, err, code


def test_what_is_equal_is_equal_and_each_planted_error_is_found(pair):
    ours = pair.sides[1]
    assert pair.play(SEQUENCE) == []
    planted = {OUTPUT: wrong_output, ERRORS: wrong_errors, EXIT: wrong_exit, STATE: wrong_state}
    for kind, mutate in planted.items():
        ours.mutate = mutate
        found = pair.play(SEQUENCE)
        ours.mutate = None
        assert [each.kind for each in found] == [kind]
    assert "Nice=N" in found[0].signature
