"""squeue: what it prints for given records.

Covers: commands/shared/fields, commands/squeue/fields, commands/squeue/filter,
commands/squeue/steps, commands/squeue/wanted, commands/shared/in_order, documents/job_texts.
"""

from __future__ import annotations

import json

import pytest
from fake_controller import FakeClient, record, run_command

from understudy.commands.shared.client import RefusedError
from understudy.commands.shared.texts import timestamp
from understudy.commands.squeue.fields import FIELDS
from understudy.commands.squeue.squeue import squeue
from understudy.documents.job_texts import job_id_text, task_expression, task_numbers
from understudy.model.records import JOBS


def job(job_id: int, **values: object) -> dict[str, object]:
    ordinary = {
        "name": "wrap",
        "user_name": "root",
        "group_name": "root",
        "partition": "debug",
        "node_count": 1,
        "cpus": 1,
        "reason": "None",
    }
    return record("jobs", job_id=job_id, **{**ordinary, **values})


RUNNING = job(
    7301,
    name="run1",
    state=1,
    nodes="n1",
    node_count=1,
    cpus=4,
    run_time_s=5,
    time_limit_s=1800,
    time_limit_is_set=True,
    priority=4294901759,
)
PENDING = job(
    7302,
    name="pend1",
    state=0,
    reason="JobHeldUser",
    partition="batch",
    time_limit_s=3600,
    required_nodes="n2",
)
DONE = job(7303, name="done", state=3, nodes="n1")
COMPLETING = job(
    7304, name="ending", state=3, flags=0x8000, nodes="n2", user_id=1, user_name="daemon"
)
ARRAY = job(
    7310,
    name="arr",
    state=0,
    array_job_id=7310,
    array_task_expression="3-9",
    array_max_tasks=2,
    reason="JobArrayTaskLimit",
)


@pytest.fixture
def client() -> FakeClient:
    return FakeClient(
        jobs=[RUNNING, PENDING, DONE, COMPLETING, ARRAY],
        nodes=[record("nodes", name="n1"), record("nodes", name="n2")],
    )


def test_every_column_of_every_field_is_one_of_the_jobs_table() -> None:
    read = {
        column for field in FIELDS.fields for column in field.columns if not column.startswith("@")
    }
    assert read <= JOBS.keys()


def test_planned_starts_and_nodes_have_fields_of_their_own() -> None:
    planned = job(7302, state=0, expected_start=86_400, expected_nodes="n[1-2]")
    other = job(7303, state=0)
    shown = run_command(
        squeue, "-h", "-O", "PlannedStart,PlannedNodes", client=FakeClient(jobs=[planned, other])
    )
    assert [line.split() for line in shown.lines] == [
        [timestamp(86_400), "n[1-2]"],
        ["N/A", "(null)"],
    ]


def test_the_default_listing_has_slurms_columns_and_leaves_out_what_is_finished(
    client: FakeClient,
) -> None:
    assert run_command(squeue, "-S", "i", client=client).lines == [
        "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)",
        "              7301     debug     run1     root  R       0:05      1 n1",
        "              7302     batch    pend1     root PD       0:00      1 (JobHeldUser)",
        "              7304     debug   ending   daemon CG       0:00      1 n2",
        "        7310_[3-9%2]     debug      arr     root PD       0:00      1 (JobArrayTaskLimit)"[
            2:
        ],
    ]


def test_a_cluster_that_is_asked_for_is_named_over_the_listing(client: FakeClient) -> None:
    client.has_accounting = True
    assert run_command(squeue, "-M", "test", "-o", "%t", "-t", "R", client=client).lines[:2] == [
        "CLUSTER: test",
        "ST",
    ]
    assert (
        run_command(
            squeue, "-o", "%t", "-t", "R", client=client, environ={"SLURM_CLUSTERS": "all"}
        ).lines[0]
        == "CLUSTER: test"
    )
    assert "CLUSTER: test" not in run_command(squeue, "-h", "-M", "test", client=client).lines


def test_the_order_is_by_partition_then_state_then_priority(client: FakeClient) -> None:
    assert run_command(squeue, "-h", "-o", "%i", "-t", "PD,R", client=client).lines == [
        "7302",
        "7310_[3-9%2]",
        "7301",
    ]


def test_special_exits_are_not_among_the_jobs_that_wait() -> None:
    client = FakeClient(jobs=[PENDING, job(7305, state=0, flags=0x1000)])
    for states, found in (("PD", ["7302 PD"]), ("SE", ["7305 SE"])):
        assert run_command(squeue, "-ho", "%i %t", "-t", states, client=client).lines == found
    assert len(run_command(squeue, "-ho", "%i", client=client).lines) == 2


def test_jobs_that_the_keys_do_not_tell_apart_come_latest_first() -> None:
    held = [job(number, state=0, partition="zz") for number in (1, 2, 3)]
    assert run_command(squeue, "-h", "-o", "%A", client=FakeClient(jobs=held)).lines == [
        "3",
        "2",
        "1",
    ]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["-t", "R"], ["7301"]),
        (["-t", "running"], ["7301"]),
        (["-t", "CG"], ["7304"]),
        (["-t", "CD"], ["7303"]),
        (["-t", "all", "-S", "i"], ["7301", "7302", "7303", "7304", "7310_[3-9%2]"]),
        (["-n", "run1,ending", "-S", "i"], ["7301", "7304"]),
        (["-p", "batch"], ["7302"]),
        (["-w", "n[1-2]", "-S", "i"], ["7301", "7304"]),
        (["-u", "1"], ["7304"]),
        (["-j", "7301,7302", "-S", "-i"], ["7302", "7301"]),
        (["-j7302"], ["7302"]),
        (["-j", "7310_5"], ["7310_5"]),
        (["-r", "-j", "7310_5"], ["7310_5"]),
        (["-r", "-n", "arr"], [f"7310_{task}" for task in range(3, 10)]),
        (["-A", "acct"], []),
        (["-n", "RUN1"], ["7301"]),
        (["-p", "BATCH"], []),
        *[([option, ""], []) for option in ("-j", "-u", "-p", "-A", "-q", "-n", "-R", "-w", "-L")],
        (["-j", "7310_5,7310_7,7310_8"], ["7310_[5,7-8]"]),
    ],
)
def test_filters_keep_the_jobs_they_name(
    client: FakeClient, arguments: list[str], shown: list[str]
) -> None:
    assert run_command(squeue, "-h", "-o", "%i", *arguments, client=client).lines == shown


@pytest.mark.parametrize(
    ("letter", "header", "running", "pending"),
    [
        ("a", "ACCOUNT", "(null)", "(null)"),
        ("B", "EXEC_HOST", "n/a", "n/a"),
        ("E", "DEPENDENCY", "(null)", "(null)"),
        ("l", "TIME_LIMIT", "30:00", "1:00:00"),
        ("L", "TIME_LEFT", "29:55", "1:00:00"),
        ("n", "REQ_NODES", "", "n2"),
        ("p", "PRIORITY", "0.99998474121093", "0.00000000000000"),
        ("r", "REASON", "None", "JobHeldUser"),
        ("R", "NODELIST(REASON)", "n1", "(JobHeldUser)"),
        ("z", "S:C:T", "*:*:*", "*:*:*"),
        ("X", "CORE_SPEC", "N/A", "N/A"),
        ("Y", "SCHEDNODES", "(null)", "(null)"),
        ("K", "ARRAY_TASK_ID", "N/A", "N/A"),
        ("5t|%j", "ST   |NAME", "R    |run1", "PD   |pend1"),
        (".2T", "ST", "RU", "PE"),
    ],
)
def test_letters_print_what_slurm_prints(
    client: FakeClient, letter: str, header: str, running: str, pending: str
) -> None:
    assert run_command(
        squeue, "-S", "i", "-j", "7301,7302", "-o", f"%{letter}", client=client
    ).lines == [header, running, pending]


def test_long_names_print_in_twenty_columns_unless_a_width_is_given(client: FakeClient) -> None:
    result = run_command(squeue, "-j", "7301", "-O", "jobid,Name:6,STATE:.9", client=client)
    assert result.lines == [
        "JOBID               NAME      STATE",
        "7301                run1    RUNNING",
    ]


def test_files_are_shown_as_they_were_given_and_gres_is_what_each_node_gives() -> None:
    given = job(
        7, work_dir="/w", raw_std_out="/w/%x-%j.out", raw_std_err="", tres_per_node="gres:gpu:1"
    )
    default = job(8, work_dir="/w", raw_std_out="", raw_std_err="/w/e%j", tres_per_node="")
    shown = run_command(
        squeue,
        "-h",
        "-S",
        "i",
        "-O",
        "stdout:15,stderr:15,gres:12",
        client=FakeClient(jobs=[given, default]),
    ).out.splitlines()
    assert [line.split() for line in shown] == [
        ["/w/%x-%j.out", "/w/%x-%j.out", "gres:gpu:1"],
        ["/w/slurm-8.out", "/w/e%j", "N/A"],
    ]


def test_an_unknown_long_name_is_complained_of_and_left_out(client: FakeClient) -> None:
    result = run_command(squeue, "-j", "7301", "-O", "nosuchfield", client=client)
    assert (result.code, result.lines, result.err) == (
        0,
        ["", ""],
        "squeue: error: Invalid job format specification: nosuchfield\n",
    )


def test_all_fields_are_fifty_two(client: FakeClient) -> None:
    assert (
        len(run_command(squeue, "-h", "-j", "7301", "-o", "%all", client=client).out.split("|"))
        == 52
    )


def test_environment_variables_give_defaults_that_the_command_line_overrides(
    client: FakeClient,
) -> None:
    environ = {"SQUEUE_FORMAT": "%i %j", "SQUEUE_PARTITION": "batch"}
    assert run_command(squeue, client=client, environ=environ).lines == ["JOBID NAME", "7302 pend1"]
    assert run_command(squeue, "-o", "%P", client=client, environ=environ).lines == [
        "PARTITION",
        "batch",
    ]
    assert run_command(
        squeue, "-h", client=client, environ={**environ, "SQUEUE_FORMAT2": "jobid:8"}
    ).lines == ["7302 pend1"]
    assert run_command(
        squeue,
        "-h",
        client=client,
        environ={"SQUEUE_PARTITION": "batch", "SQUEUE_FORMAT2": "jobid:8"},
    ).lines == ["7302    "]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            ["--foo"],
            1,
            "squeue: unrecognized option '--foo'\nTry \"squeue --help\" for more information\n",
        ),
        (["-h", "-j", "bad"], 1, "squeue: error: Invalid job id: bad\n"),
        (["-h", "--jobs=7301", "bad"], 1, "squeue: error: Invalid job id: bad\n"),
        (["-h", "-j", "7301", "bad"], 1, "squeue: error: Unrecognized option: bad\n"),
        (["-j", "0"], 1, "squeue: error: Invalid job id: 0\n"),
        (
            ["-j", "-5"],
            1,
            "squeue: invalid option -- '5'\nTry \"squeue --help\" for more information\n",
        ),
        (["-j", "99"], 1, "slurm_load_jobs error: Invalid job id specified\n"),
        (["-w", "n9"], 1, "squeue: error: Invalid node name n9\n"),
        (
            ["-u", "nosuch", "--jobs=x"],
            1,
            "squeue: error: Invalid user: nosuch\n\nsqueue: error: Invalid job id: x\n",
        ),
        (
            ["-j", "x", "-u", "nosuch"],
            1,
            "squeue: error: Invalid user: nosuch\n\nsqueue: error: Invalid job id: x\n",
        ),
        (["--jobs=x", "-u", "nosuch"], 1, "squeue: error: Invalid job id: x\n"),
        (["-w", "n[1-"], 1, "squeue: error: Invalid node name n]\n"),
        (["-w", "n1,n[2"], 1, "squeue: error: Invalid node name n]\n"),
        (["-w", "["], 1, "squeue: error: Invalid node name \n"),
        (["-w", "]"], 1, "squeue: error: Invalid node name ]\n"),
        (["-w", "n[1-2]["], 1, "squeue: error: Invalid node name n[1-2]]\n"),
        (["-w", "n[1]]"], 1, "squeue: error: 'n[1]]' invalid entry for --nodelist\n"),
        (
            ["-w", "n[2-1]"],
            1,
            (
                "squeue: error: _parse_single_range: Invalid range: `2-1'\n"
                "squeue: error: 'n[2-1]' invalid entry for --nodelist\n"
            ),
        ),
        (["-u", "nosuchuser"], 0, "squeue: error: Invalid user: nosuchuser\n\n"),
        (["-S", "foo"], 1, "squeue: error: Invalid sort specification: o\n"),
        (
            ["-o", "%i", "-O", "jobid"],
            1,
            "squeue: error: -O (--Format) is incompatible with -o (--format)\n",
        ),
        (
            ["-O", "jobid", "-o", "%i"],
            1,
            "squeue: error: -o (--format) is incompatible with -O (--Format)\n",
        ),
        (["-S", "#"], 1, "squeue: error: Invalid sort specification: #\n"),
        (["-i", "0"], 1, "squeue: error: --iterate=0\n\n"),
        (
            ["-o", "%i", "-l"],
            1,
            (
                "squeue: fatal: Options -o(--format) and -l(--long) are mutually exclusive. "
                "Please remove one and retry.\n"
            ),
        ),
        (
            ["-S", "jobid"],
            1,
            "squeue: Invalid sort specification: b\nsqueue: error: Invalid sort specification: o\n",
        ),
        (["-s", "7301"], 1, "squeue: error: Invalid job_step id: 7301.??\n"),
        (["-s", "x."], 1, "squeue: error: Invalid job_step id: x.??\n"),
        (["-s", "x.0"], 1, "squeue: error: Invalid job_step id: x.0\n"),
        (["-s", "0.8"], 1, "squeue: error: Invalid job_step id: 0.8\n"),
        (["--jobs=x", "-1"], 1, "squeue: error: Invalid job id: x\n"),
        (["--steps=x", "-t", "nosuch"], 1, "squeue: error: Invalid job_step id: x.??\n"),
        (["-i", "0", "--version"], 1, "squeue: error: --iterate=0\n\n"),
        (["--version", "-1"], 0, ""),
        (["-u", "nosuch", "--me", "--version"], 0, "squeue: error: Invalid user: nosuch\n\n"),
    ],
)
def test_mistakes_are_answered_in_slurms_words(
    client: FakeClient, arguments: list[str], code: int, error: str
) -> None:
    result = run_command(squeue, *arguments, client=client)
    assert (result.code, result.err) == (code, error)


@pytest.mark.parametrize("states", ["nosuch", "PD,nosuch", "nosuch,all"])
def test_an_unknown_state_is_answered_with_all_states(client: FakeClient, states: str) -> None:
    result = run_command(squeue, "-t", states, client=client)
    assert result.err.startswith(
        "squeue: error: Invalid job state specified: nosuch\n"
        "squeue: error: Valid job states include: PENDING,RUNNING,"
    )
    assert result.err.endswith("STAGE_OUT,STOPPED\n\n")


def test_a_controller_that_cannot_be_reached_is_said_so(client: FakeClient) -> None:
    client.answers["Query"] = RefusedError(
        1005, "Unable to contact slurm controller (connect failure)"
    )
    result = run_command(squeue, client=client)
    assert (result.code, result.err) == (
        1,
        "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
    )


def test_array_expressions_name_their_tasks() -> None:
    assert task_numbers("1-3,7,10-20:5") == [1, 2, 3, 7, 10, 15, 20]


@pytest.mark.parametrize(
    ("length", "shown"),
    [
        ("0", "1,4,9,16,25%3"),
        ("x", "1,4,9,16,25%3"),
        ("-3", "1,4,9,16,25%3"),
        ("11", "1,4,9,1...%3"),
        ("13", "1,4,9,16,...%3"),
        ("14", "1,4,9,16,25%3"),
        ("4", "...%3"),
        ("1", "%3"),
    ],
)
def test_long_lists_of_tasks_are_cut_to_slurm_bitstr_len(
    monkeypatch: pytest.MonkeyPatch, length: str, shown: str
) -> None:
    monkeypatch.setenv("SLURM_BITSTR_LEN", length)
    assert task_expression("1,4,9,16,25", 3) == shown


def test_without_it_64_characters_are_shown_of_the_tasks_and_31_of_the_job_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SLURM_BITSTR_LEN", raising=False)
    tasks = ",".join(str(number * number) for number in range(1, 31))
    assert task_expression(tasks, 0) == tasks[:60] + "..."
    assert job_id_text(81, 81, None, tasks, 3, 0, 0) == "81_[1,4,9,16,25,36,49,64,81,100"


def test_a_failed_job_shows_why_in_place_of_its_nodes_and_a_cancelled_one_its_nodes() -> None:
    ended = [
        job(1, state=5, nodes="n1", reason="NonZeroExitCode"),
        job(2, state=4, nodes="n1", reason="None"),
        job(3, state=4, reason="JobHeldUser"),
    ]
    assert run_command(
        squeue, "-h", "-t", "all", "-S", "i", "-o", "%R", client=FakeClient(jobs=ended)
    ).lines == ["(NonZeroExitCode)", "n1", ""]


def test_a_job_of_several_partitions_is_listed_once_for_each_that_is_asked_for() -> None:
    client = FakeClient(jobs=[job(1, partition="a,b")])
    assert run_command(squeue, "-h", "-P", "-S", "P", "-o", "%P", client=client).lines == ["a", "b"]
    assert run_command(squeue, "-h", "-P", "-p", "b", "-o", "%P", client=client).lines == ["b"]
    assert run_command(squeue, "-h", "-p", "b", "-o", "%P", client=client).lines == ["a,b"]


def step(job_id: int, number: str, **values: object) -> dict[str, object]:
    return record(
        "steps",
        job_id=job_id,
        step=number,
        **{
            "name": number,
            "user_name": "root",
            "state": 1,
            "num_tasks": 1,
            "nodes": "n1",
            **values,
        },
    )


def test_steps_come_by_partition_and_job() -> None:
    steps = [
        step(3, "batch", partition="b"),
        step(9, "batch", partition="a", array_job_id=7, array_task_id=1),
        step(4, "0", partition="b"),
    ]
    client = FakeClient(steps=steps)
    assert run_command(squeue, "-hs", "-o", "%i", client=client).lines == [
        "7_1.batch",
        "3.batch",
        "4.0",
    ]
    assert run_command(squeue, "-hs", "-S", "-i", "-o", "%i", client=client).lines == [
        "7_1.batch",
        "4.0",
        "3.batch",
    ]
    assert run_command(squeue, "-hs", "4.0", "-o", "%i", client=client).lines == ["4.0"]
    assert run_command(squeue, "-h", "--steps=", "-o", "%i", client=client).lines == []
    assert run_command(squeue, "-hs", "-p", "a", "-n", "x", "-o", "%i", client=client).lines == [
        "7_1.batch"
    ]
    shown = run_command(squeue, "-s", "-o", "%all", client=client).lines
    assert (
        shown[0] == "TRES_PER_JOB|STEPID|NAME|TIME_LIMIT|USER|TASKS|TIME|NODELIST|PARTITION|"
        "START_TIME|UID|"
    )
    assert (
        run_command(squeue, "-hls", client=client).lines
        == run_command(squeue, "-hs", client=client).lines
    )
    assert len(run_command(squeue, "-ls", client=client).lines) == 5


def test_without_a_controller_the_document_says_so(client: FakeClient) -> None:
    client.answers["Query"] = RefusedError(
        1005, "Unable to contact slurm controller (connect failure)"
    )
    outcome = run_command(squeue, "--json", client=client)
    what = {
        "description": "Failed while looking for jobs",
        "error_number": -1,
        "error": "Unspecified error",
        "source": "slurm_load_jobs",
    }
    document = json.loads(outcome.out)
    assert (outcome.code, outcome.err, document["errors"], document["jobs"]) == (0, "", [what], [])


def test_without_a_controller_it_is_the_nodes_that_cannot_be_had(client: FakeClient) -> None:
    client.answers["Query"] = RefusedError(
        1005, "Unable to contact slurm controller (connect failure)"
    )
    outcome = run_command(squeue, "-w", "n1", client=client)
    assert (outcome.code, outcome.err) == (
        1,
        "slurm_load_node error: Unable to contact slurm controller (connect failure)\n",
    )


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["-o", "%.2l|%2l|"], ["TI|TI|", "30:00|30|"]),
        (["-o", "%.2N|%2N|"], ["NODELIST|NO|", "node1|no|"]),
        (["-o", "%.2R|%2R|"], ["NODELIST(REASON)|NO|", "node1|no|"]),
        (["-O", "schednodes:.2,qos:3,qos:.3,jobid:.2"], ["SCHEDNODESQOSQOSJO", "(null)   (nu73"]),
    ],
)
def test_durations_and_nodes_are_not_cut_where_they_are_right_justified(
    arguments: list[str], lines: list[str]
) -> None:
    client = FakeClient(jobs=[job(7301, state=1, nodes="node1", time_limit_s=1800)])
    assert run_command(squeue, *arguments, client=client).out.splitlines() == lines


def test_reasons_are_cut_where_nodes_are_not() -> None:
    assert (
        run_command(squeue, "-h", "-o", "%.2R|", client=FakeClient(jobs=[PENDING])).out == "(J|\n"
    )


def test_the_later_one_of_me_and_user_counts(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getuid", lambda: 0)
    assert (
        run_command(squeue, "--me", "-u", "daemon", "-h", "-o", "%A", client=client).out == "7304\n"
    )
    assert (
        "7304"
        not in run_command(squeue, "-u", "daemon", "--me", "-h", "-o", "%A", client=client).out
    )


@pytest.mark.parametrize(
    ("word", "shown"),
    [("7301 7302", "7301"), ("7301x", "7301"), ("7310_3-5", "7310_3"), ("7301.batch", "7301")],
)
def test_of_what_follows_the_number_of_a_job_nothing_counts(
    client: FakeClient, word: str, shown: str
) -> None:
    assert run_command(squeue, "-h", "-o", "%i", "-j", word, client=client).out.split() == [shown]


def test_jobs_of_several_partitions_are_listed_for_each_whatever_is_shown_of_them() -> None:
    client = FakeClient(jobs=[job(7301, partition="a,b", state=0)])
    assert (
        run_command(squeue, "-P", "-h", "-o", "%A", "-S", "i", client=client).out == "7301\n7301\n"
    )


def test_verbose_names_the_options(client: FakeClient) -> None:
    said = run_command(
        squeue, "-vv", "-h", "-j", "7301", "-o", "%A", client=client
    ).out.splitlines()
    assert said[:2] == ["-" * 29, "all         = false"]
    assert {
        "format      = %A",
        "job_flag    = 1",
        "jobs        = 7301",
        "sibling      = false",
        "verbose     = 2",
        "job_list[0] = 7301",
    } <= set(said)
    assert said[-5:] == ["-" * 29, "", "", "last_update_time=0 records=1", "7301"]


def test_licenses_of_the_environment_count_unless_partitions_are_named() -> None:
    client = FakeClient(
        jobs=[job(7301, state=1, licenses="matlab:1"), job(7302, state=1, licenses="fluent:1")]
    )
    environ = {"SQUEUE_LICENSES": "matlab"}
    assert (
        run_command(squeue, "-h", "-o", "%A", "-S", "i", client=client, environ=environ).out
        == "7301\n"
    )
    assert (
        run_command(
            squeue, "-h", "-o", "%A", "-S", "i", "-L", "fluent", client=client, environ=environ
        ).out
        == "7301\n"
    )
    assert (
        run_command(
            squeue, "-h", "-o", "%A", "-S", "i", "-p", "debug", client=client, environ=environ
        ).out
        == "7301\n7302\n"
    )


def test_a_format_of_times_without_a_field_is_complained_of_once(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_TIME_FORMAT", "x")
    monkeypatch.setattr("sys.argv", ["/bin/squeue"])
    shown = run_command(
        squeue,
        "-h",
        "-o",
        "%V",
        client=FakeClient(
            jobs=[job(7301, state=1, submit_time=0), job(7302, state=1, submit_time=0)]
        ),
    ).out
    assert [len(line) for line in shown.splitlines()] == [19, 19]
    assert capsys.readouterr().err == "squeue: error: invalid SLURM_TIME_FORMAT = 'x'\n"


def test_tasks_with_even_gaps_are_not_cut_and_the_last_is_not_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    array = job(7310, array_job_id=7310, array_task_expression="1-28:3", state=0)
    monkeypatch.setenv("SLURM_BITSTR_LEN", "5")
    monkeypatch.setattr(FIELDS.by_letter["i"], "whole", "")
    client = FakeClient(jobs=[array, job(7311, state=0)])
    assert run_command(squeue, "-h", "-S", "i", "-o", "%.4i|%4i", client=client).lines == [
        "7310_[1-28:3]|7310",
        "7311|7311",
    ]
    assert run_command(squeue, "-h", "-r", "-j", "7310", "-o", "%K", client=client).lines == [
        str(task) for task in range(1, 26, 3)
    ]
    assert run_command(squeue, "-h", "-r", "-j", "7310_28", "-o", "%K", client=client).lines == [
        "28"
    ]


def test_an_array_asked_for_alone_comes_with_its_latest_task_first() -> None:
    array = job(7310, array_job_id=7310, array_task_id=3, start_time=9)
    tasks = [job(7311 + at, array_job_id=7310, array_task_id=at, start_time=9) for at in range(2)]
    client = FakeClient(jobs=[array, *tasks, job(7320)])

    def listed(*words: str) -> list[str]:
        return run_command(squeue, "-h", "-o", "%i", *words, client=client).lines

    assert listed("-j", "7310") == ["7310_3", "7310_1", "7310_0"]
    assert listed("-j", "7310,7320") == ["7310_0", "7310_1", "7310_3", "7320"]
    assert listed("--jobs=7320", "--jobs") == listed("--jobs", "--jobs=7320") == ["7320"]


def test_waiting_tasks_of_an_array_share_a_line() -> None:
    array = job(
        7310,
        name="a",
        array_job_id=7310,
        array_task_expression="4-6",
        state=0,
        reason="JobHeldUser",
    )
    tasks = [
        job(7311, name="a", array_job_id=7310, array_task_id=1, state=0, reason="JobHeldAdmin"),
        job(7312, name="a", array_job_id=7310, array_task_id=2, state=0, reason="JobHeldUser"),
        job(7313, name="b", array_job_id=7310, array_task_id=3, state=0, reason="JobHeldUser"),
        job(7314, name="a", array_job_id=7310, array_task_id=7, state=1),
    ]
    client = FakeClient(jobs=[array, *tasks])
    joined = ["7310_[1-2,4-6] JobHeldUser,JobHeldAdmin", "7310_3 JobHeldUser", "7310_7 None"]
    assert sorted(run_command(squeue, "-h", "-o", "%i %r", client=client).lines) == sorted(joined)
    assert len(run_command(squeue, "-h", "-r", "-o", "%T", client=client).lines) == 7
    alone = [{**array, "array_task_id": 4, "array_task_expression": ""}, *tasks]
    assert len(run_command(squeue, "-h", "-o", "%i", client=FakeClient(jobs=alone)).lines) == 5


@pytest.mark.parametrize(
    ("arguments", "environ", "error"),
    [
        (["--jobs=x"], {"SQUEUE_STATES": "nosuch"}, "Invalid job id: x\n"),
        (["-w", "n9"], {"SQUEUE_USERS": "nosuch"}, "Invalid node name n9\n"),
        (["x"], {"SQUEUE_USERS": "nosuch"}, "Unrecognized option: x\n"),
        (["--me"], {"SQUEUE_USERS": "nosuch"}, ""),
        (["-t", "all"], {"SQUEUE_STATES": "nosuch", "SQUEUE_USERS": "x"}, "Invalid user: x\n\n"),
    ],
)
def test_states_and_users_of_the_environment_are_looked_at_last(
    client: FakeClient, arguments: list[str], environ: dict[str, str], error: str
) -> None:
    said = run_command(squeue, *arguments, client=client, environ=environ).err
    assert said == (f"squeue: error: {error}" if error else "")


def test_clusters_of_the_environment_are_looked_for_first(client: FakeClient) -> None:
    client.has_accounting = True
    said = run_command(squeue, "--version", client=client, environ={"SLURM_CLUSTERS": "far"})
    assert (said.code, said.lines) == (1, [])
