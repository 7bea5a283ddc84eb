"""sbatch: what it asks of the controller for given options, variables and scripts.

Covers: commands/submission/batch_script, commands/submission/cpu_frequency,
commands/submission/export, commands/submission/memory_binding, commands/submission/numbers,
commands/submission/option_table, commands/submission/options, commands/submission/other_script,
commands/submission/verbose, commands/submission/whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from fake_controller import NOW, FakeClient, Outcome, record, run_command

from understudy.commands.sbatch import USAGE_EXIT, sbatch
from understudy.commands.shared.client import RefusedError
from understudy.commands.submission.batch_script import ScriptError, directives
from understudy.commands.submission.export import exported
from understudy.commands.submission.option_table import OPTIONS
from understudy.commands.submission.options import ACTIONS
from understudy.commands.submission.other_script import other_options
from understudy.protocol.messages import JobSpec

if TYPE_CHECKING:
    from pathlib import Path


def submit(
    *arguments: str,
    environ: dict[str, str] | None = None,
    stdin: str = "",
    has_accounting: bool = False,
) -> tuple[Outcome, JobSpec | None, str]:
    """The outcome, and the specification and the script that were sent."""
    client = FakeClient(ping=[record("ping", host="h")])
    client.answers["SubmitJob"] = [7301, ""]
    client.has_accounting = has_accounting
    outcome = run_command(sbatch, *arguments, client=client, environ=environ, stdin=stdin)
    if not client.asked:
        return outcome, None, ""
    message, fields = client.asked[-1]
    assert message == "SubmitJob"
    return outcome, msgspec.convert(fields["spec"], JobSpec), fields["script"]


def spec_of(*arguments: str, environ: dict[str, str] | None = None) -> JobSpec:
    outcome, spec, _ = submit(*arguments, "--wrap", "true", environ=environ)
    assert spec is not None, outcome.err
    return spec


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "job.sh"


def test_every_action_belongs_to_an_option_and_sets_a_field_of_the_specification() -> None:
    assert ACTIONS.keys() <= {
        each.dest for option in OPTIONS.options for each in (option, option.by_variable)
    }


def components_of(
    *arguments: str, script: str = "", environ: dict[str, str] | None = None
) -> list[JobSpec]:
    client = FakeClient(ping=[record("ping", host="h")])
    client.answers["SubmitJob"] = [7301, ""]
    outcome = run_command(sbatch, *arguments, client=client, environ=environ, stdin=script)
    assert outcome.code == 0, outcome.err
    _, fields = client.asked[-1]
    return [msgspec.convert(each, JobSpec) for each in (fields["spec"], *fields["components"])]


def test_a_colon_parts_components_of_which_some_options_hold_for_the_others() -> None:
    specs = components_of(
        "-J",
        "het",
        "-p",
        "a",
        "-n",
        "2",
        ":",
        "-N",
        "2",
        "-t",
        "5",
        ":",
        "-p",
        "b",
        "--wrap",
        "true",
    )
    assert [
        (spec.name, spec.partition, spec.num_tasks, spec.min_nodes, spec.time_limit_s)
        for spec in specs
    ] == [
        ("het", "a", 2, None, 300),
        ("het", "", None, 2, 300),
        ("het", "b", None, None, 300),
    ]


def test_hetjob_lines_part_components_and_the_last_options_of_the_line_go_for_the_rest() -> None:
    text = (
        "#!/bin/sh\n#SBATCH -J a -n 2\n#SBATCH hetjob\n#SBATCH -n 3 -p x\n#SBATCH packjob\n"
        "#SBATCH -J c\n"
    )
    assert [(spec.name, spec.num_tasks) for spec in components_of(script=text)] == [
        ("a", 2),
        ("a", 3),
        ("c", None),
    ]
    assert [spec.name for spec in components_of("-J", "l", script=text)] == ["l", "l", "l"]
    specs = components_of("-J", "l", ":", "-p", "y", script=text)
    assert [(spec.name, spec.partition) for spec in specs] == [("l", ""), ("l", "y"), ("c", "y")]


def test_a_reboot_needs_whole_nodes_and_an_empty_list_of_nodes_is_no_list() -> None:
    assert spec_of("--reboot").exclusive
    assert spec_of("-w", "").extra["no_nodes"]


def test_what_asks_for_no_node_gives_way_to_an_option_that_says_how_many() -> None:
    for words, names in (
        (("-w", "", "-w", "n1"), ""),
        (("-n", "4294967296", "-n", "2"), ""),
        (("-B", "0", "-B", "1"), ""),
        (("-N", "0", "-N", "2"), ""),
        (("-B", "0", "-N", "2"), ""),
        (("-B", "0", "-n", "2"), ""),
        (("-w", "", "-n", "2"), "nodelist"),
        (("-N", "0", "-n", "2"), "nodes"),
        (("-w", "", "-N", "2"), ""),
        (("-n", "4294967296", "-N", "2"), "ntasks"),
    ):
        assert spec_of(*words).extra.get("no_nodes", "") == names


def test_variables_hold_for_every_component() -> None:
    specs = components_of(":", "-t", "6", "--wrap", "true", environ={"SBATCH_TIMELIMIT": "4"})
    assert [spec.time_limit_s for spec in specs] == [240, 360]


def test_a_wrapped_command_becomes_a_script() -> None:
    outcome, spec, text = submit("--wrap", "echo hello")
    assert (outcome.code, outcome.out) == (0, "Submitted batch job 7301\n")
    assert spec is not None
    assert (spec.name, spec.command) == ("wrap", "")
    assert text.startswith("#!/bin/sh\n")
    assert text.endswith("\necho hello\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-N2"], {"min_nodes": 2, "max_nodes": 2}),
        (["-N1-3"], {"min_nodes": 1, "max_nodes": 3}),
        (["-N1k"], {"min_nodes": 1024, "max_nodes": 1024}),
        (["-n3", "-c2"], {"num_tasks": 3, "cpus_per_task": 2}),
        (["-t", "5"], {"time_limit_s": 300}),
        (["-t", "1-00:00:30"], {"time_limit_s": 86460}),
        (["-t0"], {"time_limit_s": -1}),
        (["--mem=1G"], {"mem_per_node_mb": 1024}),
        (["--mem=2048K"], {"mem_per_node_mb": 2}),
        (["--mem-per-cpu=1500M"], {"mem_per_cpu_mb": 1500}),
        (["--mem=0"], {"mem_per_node_mb": 0}),
        (["--nice"], {"nice": 100}),
        (["--nice=-50"], {"nice": -50}),
        (["--exclusive"], {"exclusive": True}),
        (["--exclusive=user"], {"exclusive": False, "exclusive_for": "user", "extra": {}}),
        (["--no-requeue"], {"requeue": False}),
        (["-H", "--requeue"], {"hold": True, "requeue": True}),
        (
            ["--signal=B:USR1@120"],
            {"kill_signal": 10, "kill_signal_before_s": 120, "kill_signal_batch": True},
        ),
        (["--mail-type=end,fail", "--mail-user=me"], {"mail_type": "END,FAIL", "mail_user": "me"}),
        (
            ["-B", "2:*:1"],
            {"threads_per_core": 1, "sockets_per_node": 2, "extra_node_info": True},
        ),
        (
            ["--hint=memory_bound"],
            {"threads_per_core": 1, "hint": "memory_bound", "cores_per_socket": 1},
        ),
        (["--begin=now+60"], {"begin_time": NOW + 60}),
        (["--switches=2@1:30"], {"switches": 2, "switches_wait_s": 90}),
        (["--switches=2@soon"], {"switches": 2, "switches_wait_s": None}),
        (["--kill-on-invalid-dep=No"], {"kill_on_invalid_dep": False}),
        (["--spread-job", "--use-min-nodes"], {"spread_job": True, "use_min_nodes": True}),
        (["--tmp=1G", "--mincpus=3"], {"tmp_disk_mb": 1024, "min_cpus_node": 3}),
        (["-d", "afterok:17", "-a", "1-9%2"], {"dependency": "afterok:17", "array": "1-9%2"}),
        (["--reboot", "--gpus=2"], {"extra": {"reboot": "1"}, "tres_per_job": "gres:gpu:2"}),
        (["--tasks-per-node=2"], {"ntasks_per_node": 2}),
        (
            ["-w", "n[1-2]", "-x", "n3", "-C", "fast"],
            {"required_nodes": "n[1-2]", "excluded_nodes": "n3", "features": "fast"},
        ),
        (
            ["-k", "-O", "-s", "--contiguous"],
            {"no_kill": True, "overcommit": True, "oversubscribe": True, "contiguous": True},
        ),
    ],
)
def test_options_fill_the_specification(arguments: list[str], expected: dict[str, object]) -> None:
    spec = spec_of(*arguments)
    for name in ("alloc_node", "alloc_sid"):
        assert spec.extra.pop(name)
    assert {name: getattr(spec, name) for name in expected} == expected


def test_the_command_line_wins_over_variables_and_these_over_the_script(script: Path) -> None:
    script.write_text(
        "#!/bin/bash\n#SBATCH -J script -t 5 -p one --comment='two words'\ntrue\n#SBATCH -J late\n"
    )
    _, spec, _ = submit(
        "-t", "3", "job.sh", "a", "b c", environ={"SBATCH_JOB_NAME": "env", "SBATCH_TIMELIMIT": "8"}
    )
    assert spec is not None
    assert (spec.name, spec.time_limit_s, spec.partition, spec.comment) == (
        "env",
        180,
        "one",
        "two words",
    )
    assert spec.command == str(script)
    assert spec.arguments == ["a", "b c"]


def test_options_behind_the_script_are_its_arguments(script: Path) -> None:
    script.write_text("#!/bin/sh\n")
    _, spec, _ = submit("-J", "x", "./job.sh", "-J", "y")
    assert spec is not None
    assert (spec.name, spec.arguments, spec.command) == ("x", ["-J", "y"], "./job.sh")


def test_a_script_may_come_from_standard_input() -> None:
    _, spec, text = submit("-H", stdin="#!/bin/bash\n#SBATCH -J fromstdin\ntrue\n")
    assert spec is not None
    assert (spec.name, spec.command) == ("fromstdin", "")
    assert text == "#!/bin/bash\n#SBATCH -J fromstdin\ntrue\n"


def test_pbs_lines_are_read_unless_told_otherwise(script: Path) -> None:
    script.write_text("#!/bin/bash\n#PBS -N pbsname\n#PBS -l nodes=2,walltime=0:10:00\ntrue\n")
    _, spec, _ = submit("job.sh")
    assert spec is not None
    assert (spec.name, spec.min_nodes, spec.time_limit_s) == ("pbsname", 2, 600)
    _, spec, _ = submit("--ignore-pbs", "job.sh")
    assert spec is not None
    assert (spec.name, spec.min_nodes) == ("job.sh", None)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("echo no shebang\n", ("sbatch: error: This does not look like a batch script.  The first\n"
         "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
         "sbatch: error: For instance: #!/bin/sh\n")),
        ("", "sbatch: error: Batch script is empty!\n"),
        ("#!/bin/bash\r\ntrue\r\n",
        ("sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n"
         "sbatch: error: instead of expected UNIX line breaks (\\n).\n")),
        ('#!/bin/sh\n#SBATCH -t "5\n', 'sbatch: fatal: job.sh: line 2: Unmatched `"` in [ "5]\n'),
    ],
)  # fmt: skip
def test_scripts_that_are_none_are_refused_in_slurms_words(
    script: Path, text: str, error: str
) -> None:
    script.write_text(text, newline="")
    outcome, spec, _ = submit("job.sh")
    assert (outcome.code, outcome.err.replace(f"{script.parent}/", ""), spec) == (1, error, None)


@pytest.mark.parametrize(
    ("line", "code", "error"),
    [
        (
            "--foo",
            255,
            "sbatch: unrecognized option '--foo'\nTry \"sbatch --help\" for more information\n",
        ),
        (
            "-N",
            255,
            (
                "sbatch: option requires an argument -- 'N'\n"
                'Try "sbatch --help" for more information\n'
            ),
        ),
        ("foo", 255, "sbatch: error: Invalid directive found in batch script: foo\n"),
        ("-t x", 255, "sbatch: error: Invalid --time specification\n"),
    ],
)
def test_bad_directives_are_refused_in_slurms_words(
    script: Path, line: str, code: int, error: str
) -> None:
    script.write_text(f"#!/bin/sh\n#SBATCH {line}\n")
    client = FakeClient()
    outcome = run_command(sbatch, "job.sh", client=client, usage_exit=USAGE_EXIT)
    assert (outcome.code, outcome.err, client.asked) == (code, error, [])


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["-n", "abc"], 1, 'Invalid numeric value "abc" for --ntasks.'),
        (["-c", "0"], 1, 'Invalid numeric value "0" for --cpus-per-task.'),
        (["-N", "x"], 255, '"x" is not a valid node count'),
        (["-N", "3-2"], 255, "Maximum node count 2 is less than minimum node count 3"),
        (["--mem=abc"], 255, "Invalid --mem specification"),
        (["--signal=foo"], 255, "Invalid --signal specification"),
        (["--mail-type=x"], 255, "Invalid --mail-type specification"),
        (["--exclusive=foo"], 255, "Invalid --exclusive specification"),
        (["-m", "foo"], 255, "Invalid --distribution specification"),
        (["-m", "pack,foo"], 255, "Invalid --distribution specification"),
        (["-B", "x"], 1, 'Invalid numeric value "x" for first arg of -B.'),
        (["--uid=nosuchuser"], 255, "Invalid --uid specification"),
        (["--kill-on-invalid-dep=x"], 255, "Invalid --kill-on-invalid-dep specification"),
        (["-N3", "-mplane=2"], 1, "Too few processes for the requested {plane,node} distribution"),
    ],
)
def test_bad_values_are_refused_in_slurms_words(
    arguments: list[str], code: int, error: str
) -> None:
    outcome, spec, _ = submit(*arguments, "--wrap", "x")
    assert (outcome.code, outcome.err, spec) == (code, f"sbatch: error: {error}\n", None)


def test_a_bad_time_is_shown_with_its_place() -> None:
    outcome, _, _ = submit("--begin=foo", "--wrap", "x")
    assert (outcome.code, outcome.err) == (
        255,
        "Invalid time specification (pos=0): foo\nsbatch: error: Invalid --begin specification\n",
    )


def test_memory_per_node_and_per_cpu_exclude_each_other() -> None:
    outcome, _, _ = submit("--mem=1", "--mem-per-cpu=1", "--wrap", "x")
    assert (outcome.code, outcome.err) == (
        1,
        "sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n",
    )


def test_the_controllers_refusal_is_passed_on() -> None:
    client = FakeClient()
    client.answers["SubmitJob"] = RefusedError(2000, "Invalid partition name specified")
    outcome = run_command(sbatch, "-p", "nosuch", "--wrap", "x", client=client)
    assert (outcome.code, outcome.err) == (
        1,
        "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
    )


def test_an_option_and_its_value_may_stand_in_two_lines(script: Path) -> None:
    script.write_text(
        "#!/bin/sh\n#SBATCH -p\n#SBATCH debug\n# between\n#SBATCH --time\n#SBATCH 5 -n2\ntrue\n"
    )
    outcome, spec, _ = submit("job.sh")
    assert outcome.code == 0
    assert spec is not None
    assert (spec.partition, spec.time_limit_s, spec.num_tasks) == ("debug", 300, 2)


def test_a_cluster_that_is_named_is_named_in_the_answer() -> None:
    assert (
        submit("-M", "test", "--wrap", "true", has_accounting=True)[0].out
        == "Submitted batch job 7301 on cluster test\n"
    )
    assert (
        submit(
            "--parsable", "--wrap", "true", environ={"SLURM_CLUSTERS": "all"}, has_accounting=True
        )[0].out
        == "7301;test\n"
    )
    mixed, _, _ = submit("-M", "far,test", "--wrap", "true", has_accounting=True)
    assert (mixed.code, mixed.err) == (0, "sbatch: error: No cluster 'far' known by database.\n")
    assert submit("-M", "far", "--wrap", "true", has_accounting=True)[0].code == 1
    assert submit("-M", "test", "--wrap", "true")[0].code == 1  # where clusters are nobody knows


def test_parsable_prints_the_number_alone_and_quiet_nothing() -> None:
    assert submit("--parsable", "--wrap", "x")[0].out == "7301\n"
    assert submit("-Q", "--wrap", "x")[0].out == ""


@pytest.mark.parametrize(
    ("export", "expected"),
    [
        ("FOO", {"FOO": "1"}),
        ("NONE", {}),
        ("ALL,FOO=9", {"FOO": "9", "BAR": "2"}),
        ("NEW=x,OTHER", {"NEW": "x"}),
        (None, {"FOO": "1", "BAR": "2"}),
    ],
)
def test_export_chooses_the_environment(export: str | None, expected: dict[str, str]) -> None:
    spec = spec_of(*([f"--export={export}"] if export else []), environ={"FOO": "1", "BAR": "2"})
    sent = dict(entry.split("=", 1) for entry in spec.environment)
    assert {
        name: value for name, value in sent.items() if not name.startswith("SLURM_")
    } == expected
    assert sent["SLURM_JOB_NAME"] == "wrap"


def test_wait_ends_with_the_jobs_exit_code() -> None:
    client = FakeClient(jobs=[record("jobs", job_id=7301, state=5, exit_code=3)])
    client.answers["SubmitJob"] = [7301, ""]
    assert run_command(sbatch, "--wait", "--wrap", "exit 3", client=client).code == 3
    client.tables["jobs"] = [record("jobs", job_id=7301, state=5, exit_signal=9)]
    assert run_command(sbatch, "--wait", "--wrap", "kill -9 $$", client=client).code == 1


def test_test_only_prints_what_the_controller_foresees() -> None:
    client = FakeClient()
    client.answers["SubmitJob"] = [
        8,
        "Job 8 to start at 2026-01-01T00:00:00 using 1 processors on nodes n1 in partition debug",
    ]
    outcome = run_command(sbatch, "--test-only", "--wrap", "x", client=client)
    assert (outcome.code, outcome.out) == (0, "")
    assert (
        outcome.err
        == "sbatch: Job 8 to start at 2026-01-01T00:00:00 using 1 processors on nodes n1 in "
        "partition debug\n"
    )
    assert client.asked[0][1]["test_only"] is True


def test_directives_end_at_the_first_command_and_comments_end_a_line() -> None:
    text = (
        "#!/bin/sh\n\n# a comment\n#SBATCH -N 2 # two\n##SBATCH -c4\n#SBATCH -J 'a b'c\n"
        "sleep 1\n#SBATCH -n 3\n"
    )
    assert directives(text, "x") == [["-N", "2"], ["-J", "a bc"]]


def test_a_quote_without_end_names_its_line() -> None:
    with pytest.raises(ScriptError, match="line 2"):
        directives("#!/bin/sh\n#SBATCH -J 'x\n", "job.sh")


def test_pbs_resources_become_options() -> None:
    assert other_options("#PBS -l nodes=2:ppn=4,mem=4gb -q long\n", "x") == [
        ("nodes", "2"), ("ntasks", "8"), ("mem", "4g"), ("partition", "long"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("#PBS -l nodes=n1+n2", [("nodelist", "n1,n2")]),
        ("#PBS -l select=2:ncpus=2:mem=1gb", [("mincpus", "2"), ("mem", "1g"), ("nodes", "2")]),
        (
            "#PBS -l cput=1:00,file=10mb,nice=5,pmem=10mb,procs=4",
            [("time", "1:00"), ("tmp", "10m"), ("nice", "5")],
        ),
        ("#PBS -t 1-3", [("array", "1-3")]),
        ("#PBS -m abe -M bob", [("mail-type", "FAIL,BEGIN,END"), ("mail-user", "bob")]),
        ("#PBS -W depend=afterok:1", [("dependency", "afterok:1")]),
        ("#PBS -h -V -j oe -k oe -S /bin/sh -W umask=022", [("hold", None)]),
        (
            "#BSUB -J lsf -n 2,4 -W 10 -q long -x",
            [
                ("job-name", "lsf"),
                ("ntasks", "4"),
                ("time", "10"),
                ("partition", "long"),
                ("exclusive", None),
            ],
        ),
        ("#BSUB -M 5000 -m 'n1 n2'", [("mem", "5000K"), ("nodelist", "n1,n2")]),
        ("#BSUB -J lsf\n#PBS -N pbs", [("job-name", "pbs"), ("job-name", "lsf")]),
    ],
)
def test_lines_for_other_systems_become_options(
    line: str, options: list[tuple[str, str | None]]
) -> None:
    assert other_options(line, "x") == options


def test_lines_for_other_systems_count_more_than_sbatchs_own(script: Path) -> None:
    script.write_text("#!/bin/sh\n#BSUB -J lsf\n#PBS -N pbs\n#SBATCH -J slurm\ntrue\n")
    _, spec, _ = submit("job.sh")
    assert spec is not None
    assert spec.name == "lsf"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (
            "#PBS -Z x",
            "sbatch: invalid option -- 'Z'\nsbatch: error: Unrecognized command line parameter ?\n",
        ),
        (
            "#BSUB --nosuch",
            (
                "sbatch: unrecognized option '--nosuch'\n"
                "sbatch: error: Unrecognized command line parameter ?\n"
            ),
        ),
        ("#BSUB foo", "sbatch: error: Invalid argument: foo\n"),
    ],
)
def test_lines_for_other_systems_are_refused_where_sbatch_does_not_know_them(
    script: Path, line: str, error: str
) -> None:
    script.write_text(f"#!/bin/sh\n{line}\ntrue\n")
    outcome, spec, _ = submit("job.sh")
    assert (outcome.code, outcome.err, spec) == (1, error, None)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (r"-J a#b", ["-J", "a"]),
        (r"-J '#b'", ["-J", "#b"]),
        (r"--comment=a\"b", ['--comment=a"b']),
        (r'--comment="a\"b"', ['--comment=a"b']),
        (r"--comment=a\ b", ["--comment=a", "b"]),
        ("-n 2\\", ["-n", "2"]),
        (r"-n 2 \ -J x", ["-n", "2"]),
        (r"-J ''", ["-J", ""]),
        ("# all of it", []),
    ],
)
def test_words_of_a_directive(line: str, words: list[str]) -> None:
    assert directives(f"#SBATCH {line}", "x") == [words]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("now+3min", 4),
        ("nowish", 3),
        ("4pm", 1),
        ("1234567890", 2),
        ("2034-13-06", 5),
        ("1/1/2034", 6),
        ("tomorrow+1hour", 8),
        ("abc", 0),
        ("25:00", 0),
        ("13:61", 3),
        ("12:5", 4),
        ("2034-01-32", 8),
        ("2034-01-01T25:00", 11),
        ("2034-01-01T12:61", 14),
        ("12:00xm", 5),
        ("now-", 3),
        ("now-1hour30", 9),
        ("tomorrow noon x", 14),
        ("1-1-20", 1),
    ],
)
def test_a_time_that_is_none_is_not_understood_from_some_place_on(text: str, place: int) -> None:
    outcome, _, _ = submit(f"--begin={text}", "--wrap", "true")
    assert (
        outcome.err == f"Invalid time specification (pos={place}): {text}\n"
        "sbatch: error: Invalid --begin specification\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["-N", "1-abc"], 255, '"abc" is not a valid node count'),
        (["-N", "4294967295"], 255, '"4294967295" is not a valid node count'),
        (["-N", f"{1 << 64}"], 255, f'"{1 << 64}" is not a valid node count'),
        (
            ["-N", "1-4294967295"],
            255,
            "Maximum node count -1 is less than minimum node count 1",
        ),
        (["--nodes", "--wrap", "true"], 255, '"-wrap" is not a valid node count'),
        (["--mem=abc", "nosuch.sh"], 255, "Invalid --mem specification"),
        (["--priority=-1", "--wrap=true"], 255, "Priority must be >= 0"),
        (["--priority=5000000000", "--wrap=true"], 255, "Priority must be < 4294967294"),
        (["--wait-all-nodes=2", "--wrap=true"], 255, "Invalid --wait-all-nodes specification"),
        (
            ["-m", "arbitrary", "--wrap=true"],
            1,
            (
                "With Arbitrary distribution you need to specify a nodelist or hostfile with "
                "the -w "
                "option"
            ),
        ),
        (
            ["--export-file=/nosuch", "--wrap=true"],
            1,
            "Could not open user environment file /nosuch",
        ),
        (
            ["--deadline=now+1hour", "--begin=now+2hours", "--wrap=true"],
            1,
            "Incompatible begin and deadline time specification",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_the_controller_is_asked(
    arguments: list[str], code: int, error: str
) -> None:
    outcome, spec, _ = submit(*arguments)
    assert (outcome.code, outcome.err, spec) == (code, f"sbatch: error: {error}\n", None)


def test_power_options_that_are_none_are_ignored_each_time_that_they_are_read() -> None:
    outcome, spec, _ = submit("--power=level,x", "--wrap", "true")
    assert outcome.err == "sbatch: error: Ignoring unrecognized power option (x)\n" * 2
    assert spec is not None


@pytest.mark.parametrize(
    ("option", "code", "first"),
    [
        ("--hint=help", 1, "Application hint options:"),
        ("--mem-bind=help", 255, "Memory bind options:"),
    ],
)
def test_options_tell_what_they_take(option: str, code: int, first: str) -> None:
    outcome, spec, _ = submit(option, "--wrap", "true")
    assert (outcome.code, outcome.lines[0], outcome.err, spec) == (code, first, "", None)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--open-mode=x", "sbatch: error: Invalid --open-mode specification\n"),
        ("--switches=0", 'sbatch: error: Invalid numeric value "0" for --switches.\n'),
        ("--mem=1 G", "sbatch: error: Invalid --mem specification\n"),
        (
            "-mplane",
            (
                "sbatch: error: Invalid plane size or size not specified\n"
                "sbatch: error: Invalid --distribution specification\n"
            ),
        ),
        (
            "--cpu-freq=1000:userspace",
            (
                "sbatch: error: gov on cpu-frec (userspace) illegal without max\n"
                "sbatch: error: Invalid --cpu-freq argument\n"
            ),
        ),
    ],
)
def test_values_are_refused_in_slurms_words(option: str, said: str) -> None:
    assert submit(option, "--wrap", "true")[0].err == said


def test_verbose_names_the_options_in_the_order_of_their_names() -> None:
    said = submit(
        "-v",
        "-n2",
        "-N1-2",
        "-t",
        "5",
        "-o",
        "/x",
        "--exclusive",
        "--gres=gpu",
        "--mail-type=END,BEGIN",
        "-H",
        "--wrap",
        "true",
    )[0].err
    rule = "-------------------- --------------------"
    values = {
        "exclusive": "exclusive", "gres": "gres:gpu", "hold": "set", "mail-type": "BEGIN,END",
        "nodes": "1-2", "ntasks": "2", "output": "/x",
        "time": "00:05:00", "verbose": "1", "wrap": "true",
    }  # fmt: skip
    lines = [
        "defined options",
        rule,
        *(f"{name:<20}: {value}" for name, value in values.items()),
        rule,
        "end of defined options",
    ]
    assert said.splitlines() == [f"sbatch: {line}" for line in lines]


def test_a_variable_asks_for_verbosity_and_a_script_does_not(script: Path) -> None:
    script.write_text("#!/bin/sh\n#SBATCH -v\n")
    assert submit(str(script))[0].err == ""
    for given in ([], ["-v"]):
        assert (
            "verbose             : 2"
            in submit(*given, "--wrap", "true", environ={"SBATCH_DEBUG": "2"})[0].err
        )
    assert submit(str(script), environ={"SBATCH_DEBUG": "x"})[0].err == ""


def test_of_exclusive_and_oversubscribe_the_last_one_holds() -> None:
    assert (spec_of("--exclusive", "-s").exclusive, spec_of("--exclusive", "-s").oversubscribe) == (
        False,
        True,
    )
    assert (spec_of("-s", "--exclusive").exclusive, spec_of("-s", "--exclusive").oversubscribe) == (
        True,
        False,
    )
    assert not spec_of("--exclusive=user", "-s").exclusive_for
    assert not spec_of("--exclusive", "--exclusive=user").exclusive


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "nx",
        "closest",
        "Close",
        "verbose,n",
        "single:0",
        "single:x",
        "per_task:",
        "map_gpu:",
        "mask_gpu:0x3,f",
    ],
)
def test_bindings_to_gpus_that_slurm_takes(text: str) -> None:
    assert spec_of("--gpus=1", f"--gpu-bind={text}").extra["tres_bind"] == f"gpu:{text}"


@pytest.mark.parametrize(
    "text", ["foo", "v,closest", "single", "single:-1", "per_task", "verbose,", "map_gpu"]
)
def test_bindings_to_gpus_that_slurm_refuses(text: str) -> None:
    outcome = submit("--gpus=1", f"--gpu-bind={text}", "--wrap", "true")[0]
    assert (outcome.code, outcome.err) == (
        255,
        f"sbatch: error: Invalid --gpu-bind argument: gpu:{text}\n",
    )


def test_numbers_of_gpus_are_looked_at() -> None:
    said = (
        "sbatch: error: Failed to validate 0x1, offending character is x\n"
        "sbatch: error: Invalid --gpu-bind argument: gpu:map_gpu:0x1\n"
    )
    assert submit("--gpus=1", "--gpu-bind=map_gpu:0x1", "--wrap", "true")[0].err == said


def test_more_that_variables_and_lists_may_say() -> None:
    assert (
        spec_of(environ={"SBATCH_CPU_FREQ_REQ": "high"}).extra == spec_of("--cpu-freq=high").extra
    )
    assert spec_of("-B", "2::2").threads_per_core == 2
    for text in (",", "gpu,", ",gpu"):
        assert spec_of(f"--gres={text}").extra["given_empty"] == "gres"


def test_what_is_given_empty_is_told_to_the_controller() -> None:
    """Covers: it looks at these behind other mistakes; the last of two counts."""
    for option, field in (("--partition=", "partition"), ("--batch=", "batch_features"),
                          ("--comment=", "comment"), ("-q", "qos")):  # fmt: skip
        words = [option] if "=" in option else [option, ""]
        assert spec_of(*words).extra["given_empty"] == field
    assert "given_empty" not in spec_of("--comment=", "--comment=x").extra


def test_commas_in_quotation_marks_belong_to_an_exported_value() -> None:
    assert exported({}, """A='x,y',B="1,2",C""") == {"A": "'x,y'", "B": '"1,2"'}


def test_what_is_asked_for_goes_on_as_slurm_understands_it() -> None:
    assert spec_of("-C", "fast,ib").features == "fast&ib"
    assert spec_of("-C", "[fast,ib]").features == "[fast,ib]"
    assert (
        spec_of("--mem-per-cpu=0").mem_per_cpu_mb,
        spec_of("--mem-per-cpu=0").mem_per_node_mb,
    ) == (None, 0)
    assert (
        spec_of("--mail-type=TIME_LIMIT,FAIL,ARRAY_TASKS,BEGIN").mail_type
        == "ARRAY_TASKS,BEGIN,FAIL,TIME_LIMIT"
    )


def test_quiet_is_quieter_than_parsable() -> None:
    assert submit("--parsable", "-Q", "--wrap", "true")[0].out == ""


@pytest.mark.parametrize(
    ("option", "code", "error"),
    [
        ("--profile=", 255, "invalid --profile= option"),
        ("--export-file=", 1, "Could not open user environment file "),
        ("--thread-spec=", 1, 'Invalid numeric value "" for --thread-spec.'),
    ],
)
def test_options_that_need_a_text_are_refused_without_one(
    option: str, code: int, error: str
) -> None:
    outcome, _, _ = submit(option, "--wrap", "true")
    assert (outcome.code, outcome.err) == (code, f"sbatch: error: {error}\n")


@pytest.mark.parametrize("value", ["", "10x", "+5", "task=5x,energy=3", ",5"])
def test_of_a_sampling_interval_its_beginning_counts(value: str) -> None:
    assert spec_of(f"--acctg-freq={value}").extra["acctg_freq"] == value
    for wrong in ("x", "task=", "-1"):
        said = submit(f"--acctg-freq={wrong}", "--wrap", "true")[0]
        error = f"sbatch: error: Invalid --acctg-freq specification: {wrong}\n"
        assert (said.code, said.err) == (255, error)


def test_other_options_without_a_text_are_as_if_not_given() -> None:
    spec = spec_of("--priority=", "--extra-node-info=", "--account=")
    assert (spec.priority, spec.account, spec.threads_per_core) == (None, "", None)
    assert spec_of("-p", "debug", environ={"SBATCH_PARTITION": ""}).partition == "debug"


@pytest.mark.parametrize(
    ("value", "priority"),
    [
        *(
            ("0", None),
            ("10", 10),
            ("10x", 10),
            ("1.5", 1),
            (" 7", 7),
            ("+5", 5),
            ("TOP", 4294967293),
            ("top", 4294967293),
        ),
        *(
            ("None", None),
            ("abc", None),
            ("0x10", None),
            ("00", None),
            ("-0", None),
            ("TOPx", None),
            ("", None),
        ),
    ],
)
def test_a_priority_is_the_number_that_its_text_begins_with_and_nought_is_none(
    value: str, priority: int | None
) -> None:
    assert spec_of(f"--priority={value}").priority == priority


def test_the_last_priority_counts_even_if_it_is_no_number() -> None:
    assert spec_of("--priority=0", "--priority=None").priority is None


def test_numbers_may_have_blanks_and_a_sign_before_them() -> None:
    spec = spec_of(
        "-n",
        " +3",
        "-N",
        " 2 ",
        "--mem=+5G",
        "--nice=10x",
        "--open-mode=Append",
        "--no-kill=set",
        "--signal=USR1@",
    )
    assert (spec.num_tasks, spec.min_nodes, spec.mem_per_node_mb, spec.nice, spec.open_mode) == (
        3,
        2,
        5120,
        10,
        "append",
    )
    assert (spec.no_kill, spec.kill_signal, spec.kill_signal_before_s) == (True, 10, 0)
