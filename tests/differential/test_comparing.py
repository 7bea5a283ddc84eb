"""The pure parts of the tester: what is made equal, how a difference is named and made shorter,
what is drawn, and what is kept.
"""

import json
import re
from pathlib import Path

import pytest

from differential.compare import (
    ERRORS,
    EXIT,
    OUTPUT,
    STATE,
    Difference,
    Observation,
    compare,
    first_lines,
    general,
    own_rules,
)
from differential.grammar import drawn, drawn_options
from differential.keep import scenario_of
from differential.ledger import CLOSED, OPEN, Ledger
from differential.pairs import lines_of
from differential.real_slurm import node_count, with_ports
from differential.record import STARTED, records, script_of
from differential.sequence import Sequence, Step, read_lines
from differential.shrink import shrunk
from differential.sides import JOB, Side, kit


def seen(*, code=0, output=(), errors=()):
    return Observation(code, list(output), list(errors))


def test_each_of_exit_code_output_and_errors_is_compared():
    one = seen(code=0, output=["a"], errors=["e"])
    assert compare(one, seen(code=0, output=["a"], errors=["e"]), 0, "squeue") is None
    assert compare(one, seen(code=1, output=["a"], errors=["e"]), 0, "squeue").kind == EXIT
    assert compare(one, seen(code=0, output=["b"], errors=["e"]), 0, "squeue").kind == OUTPUT
    assert compare(one, seen(code=0, output=["a"], errors=[]), 0, "squeue").kind == ERRORS
    assert compare(one, seen(output=["b"]), 3, "scontrol show job", STATE).kind == STATE


def test_times_that_go_on_are_equal_and_limits_are_not():
    assert own_rules(["59:59 left"], "squeue") == own_rules(["59:58 left"], "squeue")
    assert own_rules(["ExitCode=0:15"], "scontrol") == ["ExitCode=0:15"]
    assert own_rules(["F 0:15 00:00:07"], "sacct") == ["F 0:15 T:TT"]
    assert own_rules(["ExitCode=143:0"], "scontrol") == own_rules(["ExitCode=0:15"], "scontrol")
    assert own_rules(["SlurmdPort   = 1", "SlurmdUser   = root"], "scontrol") == [
        "SlurmdUser   = root"
    ]
    assert own_rules(["limit 10:00"], "squeue") != own_rules(["limit 20:00"], "squeue")


def test_the_kits_rules_count_jobs_from_the_sequences_first():
    normals = []
    for first in (7301, 7420):
        normal = kit().Normal("/w", ["/bin"], "/etc/slurm/slurm.conf")
        normal.base, normal.rebased = first, True
        normals.append(normal(f"Submitted batch job {first + 2}"))
    assert normals == ["Submitted batch job J003"] * 2


def test_a_job_that_was_not_submitted_is_counted_from_the_sequences_first(tmp_path):
    shown = []
    for first in (7301, 7420):
        side = Side("one", tmp_path, {"SLURM_CONF": ""}, [])
        side.begin(first)
        shown.append(JOB.sub(side.label, f"Job {first} to start, not 7300"))
        side.submitted = [first]
        assert JOB.sub(side.label, f"{first + 1}") == "J001+1"
    assert shown == ["Job J000+0 to start, not 7300"] * 2


def test_one_cause_has_one_name_whatever_was_drawn():
    def named(number, user):
        slurm = [f"slurm_update error: Invalid job id {number}", f"by {user}"]
        return Difference(0, "scontrol update x", ERRORS, slurm, ["nothing", f"by {user}"])

    assert named(17, "root").signature == named(23, "daemon").signature
    assert named(17, "root").signature != Difference(0, "squeue", ERRORS, ["a"], []).signature


def test_of_keys_and_values_the_first_pair_that_differs_names_it():
    slurm = ["   Priority=1 Nice=0 Account=a1", "   X=1"]
    ours = ["   Priority=1 Nice=5 Account=a1", "   X=1"]
    assert first_lines(slurm, ours) == ("Nice=0", "Nice=5")
    assert first_lines(["a"], ["a", "b"]) == ("", "b")
    assert general("job 'x y' of n[1-3] J001_4 was 17") == "job 'X' of NODES J was N"


def test_a_sequence_is_made_as_short_as_shows_it():
    steps = [Step(run=f"squeue -{letter} {number}") for number, letter in enumerate("abcdefgh")]
    runs = []

    def shows(candidate):
        runs.append(candidate)
        words = " ".join(step.run for step in candidate)
        return "-c" in words and "-f" in words

    found = shrunk(steps, shows, most_runs=200)
    assert [step.run for step in found] == ["squeue -c", "squeue -f"]
    assert len(runs) <= 200


def test_shrinking_ends_after_so_many_runs():
    runs = []
    steps = [Step(run=f"squeue {number}") for number in range(50)]
    shrunk(steps, lambda candidate: bool(runs.append(candidate)), most_runs=7)
    assert len(runs) == 7


def test_lines_of_scripts_variables_and_words_are_taken_away():
    step = Step(
        run="sbatch -n 2 @j1", env=(("A", "1"),), script="#!/bin/bash\n#SBATCH -N1\nsleep 1\n"
    )
    smaller = step.smaller()
    assert Step(run="sbatch 2 @j1", env=step.env, script=step.script) in smaller
    assert any(each.env == () for each in smaller)
    assert any("SBATCH" not in each.script and "sleep" in each.script for each in smaller)
    assert not any("'@" in each.run for each in smaller)


def test_lines_of_a_file_say_who_types_them_and_what_changes_something():
    steps = read_lines("# mine\n!sbatch -H --wrap true\n\n@bin squeue -j @j1\n!scancel @j1\n")
    assert [(each.run, each.user, each.saves, each.changes) for each in steps] == [
        ("sbatch -H --wrap true", "", "j1", True),
        ("squeue -j @j1", "bin", "", False),
        ("scancel @j1", "", "", True),
    ]


def test_a_seed_draws_the_same_again_and_seeds_draw_all_areas():
    assert drawn(5).steps == drawn(5).steps
    areas, runs = set(), []
    for seed in range(1, 400):
        sequence = drawn(seed)
        areas |= sequence.areas
        runs += [step.run for step in sequence.steps]
    assert {"submit", "list", "jobs", "cancel", "nodes", "accounts", "wrong"} <= areas
    commands = {run.split()[0] for run in runs}
    assert {"sbatch", "squeue", "sinfo", "sacct", "scancel", "scontrol", "sacctmgr"} <= commands


def test_numbers_of_jobs_are_filled_in_and_unknown_ones_are_nobodys():
    assert Step(run="scancel @j1 @j2_1").filled({"j1": "7"}) == "scancel 7 999999_1"


def test_steps_survive_being_written_down():
    for seed in range(1, 60):
        for step in drawn(seed).steps:
            assert Step.unpacked(json.loads(json.dumps(step.packed()))) == step


def test_the_ledger_goes_on_where_it_ended(tmp_path):
    ledger = Ledger(tmp_path)
    difference = Difference(0, "squeue -x", ERRORS, ["a 1"], ["b"])
    sequence = Sequence([Step(run="squeue -x")], 41, {"list"})
    ledger.tried(sequence, [difference])
    ledger.found(difference.signature, 41, {"list"}, sequence.steps, difference)
    ledger.save()
    again = Ledger(tmp_path)
    assert again.next_seed == 42
    assert again.again(difference.signature)
    assert not again.again("another")
    assert again.causes[difference.signature]["times"] == 2
    assert "squeue -x" in again.listing()
    again.causes[difference.signature]["status"] = CLOSED
    assert again.listing(OPEN) == ""
    assert re.search(r"squeue +1 +1", again.statistics())
    assert "0 open, 1 closed" in again.statistics()


def test_a_find_is_a_scenario_that_waits_where_it_waited():
    steps = [Step(run="sbatch -H x", saves="j1", changes=True), Step(run="squeue", user="bin")]
    scenario = scenario_of(steps, {0: r"^\S+ PENDING$"}, "squeue", "what")
    assert [*map(sorted, scenario["steps"])] == [
        ["run", "save"],
        ["match", "wait"],
        ["run", "user"],
    ]
    assert scenario["accounting"]


def test_each_node_gets_an_address_and_a_port():
    conf = "NodeName=DEFAULT CPUs=4\nNodeName=n[1-2] RealMemory=9\nPartitionName=p Nodes=n[1-2]\n"
    text, nodes = with_ports(conf, [7, 8])
    assert nodes == ["n1", "n2"]
    assert node_count(conf) == 2
    assert "NodeName=n2 NodeAddr=127.0.0.1 Port=8 RealMemory=9" in text


@pytest.mark.parametrize(
    ("line", "by", "number"),
    [
        ("[2026-01-01T00:00:05.836] sched: Allocate JobId=1 NodeList=n[1-4] #CPUs=16", None, "1"),
        ("[2026-01-01T00:00:05.836] sched/backfill: _start_job: Started JobId=4 in high on n4",
         "/backfill", "4"),
        ("[2026-01-01T00:00:05.836] sched: Allocate JobId=5_2(7) NodeList=n1 #CPUs=1", None, "7"),
    ],
)  # fmt: skip
def test_starts_are_read_from_the_controllers_log(line, by, number):
    match = STARTED.match(line)
    assert match[2] == by
    assert (match[4] or match[3]) == number


def test_jobs_are_read_and_scripts_run_as_long_as_they_shall():
    text = "JobId=1 JobName=a JobState=PENDING Reason=None\n\nNo jobs\n"
    assert records(text) == [
        {"JobId": "1", "JobName": "a", "JobState": "PENDING", "Reason": "None"}
    ]
    assert "sleep 2.5" in script_of({"run": 2.5})
    assert "3) sleep 9;;" in script_of({"run": {"3": 9}, "exit": 2})
    assert script_of({"run": 1, "exit": 2}).endswith("exit 2\n")


def test_each_option_is_typed_with_each_other_one_in_both_orders() -> None:
    lines = list(lines_of("sprio", 1))
    names = {option.long for option in drawn_options("sprio")}
    assert len(lines) == len(names) ** 2
    assert all(line.split()[0] == "sprio" and "-" in line for line in lines)
    assert lines == list(lines_of("sprio", 1))
    assert lines != list(lines_of("sprio", 2))
    assert all(line.endswith(" --wrap true") for line in lines_of("sbatch", 1))


def test_ledgers_of_workers_add_up(tmp_path: Path) -> None:
    both = [Ledger(tmp_path / name) for name in ("a", "b")]
    for seed, ledger in enumerate(both, 7):
        ledger.tried(Sequence([Step("squeue")], seed, {"list"}), [])
        ledger.causes["squeue | x"] = {"status": "open", "times": 1}
    both[0].take_in(both[1])
    assert both[0].counts["sequences"]["list"] == both[0].causes["squeue | x"]["times"] == 2
    assert both[0].next_seed == 9
