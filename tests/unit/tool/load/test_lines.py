"""Command lines as messages."""

import pytest

from understudy.protocol.wire_table import WIRE
from understudy.tool.load.lines import (
    LineError,
    is_recordable,
    messages_of,
    script_of,
    with_script,
)

NAMES = {tag: name for name, (tag, _, _) in WIRE.items()}


def sent(line, script=""):
    found = []
    for tag, *values in messages_of(line, script):
        name = NAMES[tag]
        found.append((name, dict(zip(WIRE[name][1], values, strict=True))))
    return found


def test_a_submission_is_what_sbatch_sends():
    script = script_of(2.5)
    ((name, fields),) = sent("sbatch -N2 --time=10 --output=/dev/null", script)
    assert (name, fields["script"]) == ("SubmitJob", script)
    spec = dict(zip(WIRE["JobSpec"][1], fields["spec"][1:], strict=True))
    assert (spec["min_nodes"], spec["time_limit_s"], spec["std_out"]) == (2, 600, "/dev/null")


def test_another_script_is_all_that_changes():
    (one,), (other,) = (messages_of("sbatch -N2", script_of(run)) for run in (1, 2))
    assert with_script(one, script_of(2)) == other


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("squeue", ["Query"]),
        ("sinfo", ["Query", "Query"]),
        ("scontrol show job 17", ["Query"]),
        ("scontrol hold 17", ["ControlJobs"]),
        ("scontrol reconfigure", ["Reconfigure"]),
        ("scontrol update nodename=n1 state=resume", ["UpdateNodes"]),
        ("scancel 17", ["CancelJobs"]),
        ("sdiag", ["GetStatistics"]),
    ],
)
def test_commands_send_what_they_send(line, names):
    assert is_recordable(line)
    assert [name for name, _ in sent(line)] == names


def test_a_signal_goes_to_its_job():
    ((name, fields),) = sent("scancel --signal=USR1 --full 17 18")
    assert (name, fields["job_ids"], fields["signal"], fields["full"]) == (
        "CancelJobs",
        ["17", "18"],
        10,
        True,
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("sbatch --nodes=none", "is not a valid node count"),
        ("scontrol conquer", "invalid keyword"),
        ("scancel --signal=NONE 17", "Unknown job signal"),
        ("squeue --nonsense", "nonsense"),
    ],
)
def test_what_sends_nothing_says_why(line, text):
    with pytest.raises(LineError, match=text):
        messages_of(line)


def test_commands_that_do_more_than_ask_are_not_messages():
    assert not is_recordable("srun -N4 true")
    assert not is_recordable("sacct")
