"""scancel: what it asks of the controller, and what it says of refusals.

Covers: commands/shared/verbose, controller/jobs/cancel.
"""

from __future__ import annotations

from typing import cast

import pytest
from fake_controller import FakeClient, Outcome, record, run_command

from understudy.commands.scancel import scancel
from understudy.commands.shared.client import CONNECT_FAILED_TEXT, RefusedError

JOBS = [
    record("jobs", job_id=7301, name="a", state=1, nodes="n1", partition="debug"),
    record("jobs", job_id=7302, name="b", state=0, partition="batch", user_id=1),
    record("jobs", job_id=7303, name="b", state=1, nodes="n[2-3]", partition="batch"),
    record("jobs", job_id=7304, name="b", state=3, nodes="n4", partition="batch"),
]


def cancel(
    *arguments: str, results: list[tuple[str, int, str]] | None = None, stdin: str = ""
) -> tuple[Outcome, list[dict[str, object]]]:
    client = FakeClient(jobs=JOBS)
    client.answers["CancelJobs"] = [results or []]
    outcome = run_command(scancel, *arguments, client=client, stdin=stdin)
    return outcome, [fields for _, fields in client.asked]


def job_ids(asked: list[dict[str, object]]) -> list[str]:
    return [job for fields in asked for job in cast("list[str]", fields["job_ids"])]


@pytest.mark.parametrize(
    ("arguments", "jobs"),
    [
        (["7301", "7302_3", "7310_[1-4]"], ["7301", "7302_3", "7310_[1-4]"]),
        (["7301,7302"], ["7301", "7302"]),
        (["7310_[1,3]"], ["7310_[1,3]"]),
        (["-n", "b"], ["7302", "7303"]),
        (["-n", "b", "-t", "PD"], ["7302"]),
        (["-p", "batch", "-w", "n3"], ["7303"]),
        (["-u", "1"], ["7302"]),
        (["-p", "batch", "7301", "7303"], ["7303"]),
    ],
)
def test_jobs_are_named_or_found_by_filters(arguments: list[str], jobs: list[str]) -> None:
    outcome, asked = cancel(*arguments)
    assert (outcome.code, job_ids(asked)) == (0, jobs)


def test_nothing_is_asked_where_nothing_matches() -> None:
    outcome, asked = cancel("-p", "nosuch")
    assert (outcome.code, outcome.err, asked) == (0, "", [])


@pytest.mark.parametrize(("text", "sent"), [("+9", 9), ("-1", 65535), ("99999999999", 59391)])
def test_16_bits_of_a_number_are_sent(text: str, sent: int) -> None:
    _, asked = cancel("-s", text, "7301")
    assert asked[0]["signal"] == sent


def test_a_signal_and_its_reach_are_passed_on() -> None:
    _, asked = cancel("-b", "-s", "USR1", "7301")
    assert (asked[0]["signal"], asked[0]["batch_only"], asked[0]["full"]) == (10, True, False)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "scancel: error: No job identification provided\n"),
        (["abc"], "scancel: error: Invalid job id abc\n"),
        (
            ["-t", "nosuch"],
            (
                "Invalid job state specified: nosuch\n"
                "Valid job states are PENDING, RUNNING, and SUSPENDED\n"
            ),
        ),
        (["-u", "nosuchuser"], "scancel: error: Invalid user name: nosuchuser\n"),
        (["-s", "NOSUCH", "7301"], "Unknown job signal: NOSUCH\n"),
        (["-s", "0", "7301"], "Unknown job signal: 0\n"),
        (["-s", "65536", "7301"], "Unknown job signal: 65536\n"),
        (["-s", "NOSUCH", "-t", "nosuch", "abc"], "Unknown job signal: NOSUCH\n"),
        (
            ["-t", "no", "-s", "NOSUCH", "-u", "nosuchuser", "abc"],
            (
                "Invalid job state specified: no\n"
                "Valid job states are PENDING, RUNNING, and SUSPENDED\n"
            ),
        ),
        (["-s", "NOSUCH", "-1"], "Unknown job signal: NOSUCH\n"),
        (
            ["--nosuch", "-s", "NOSUCH"],
            (
                "scancel: unrecognized option '--nosuch'\n"
                'Try "scancel --help" for more information\n'
            ),
        ),
    ],
)
def test_mistakes_are_answered_in_slurms_words(arguments: list[str], error: str) -> None:
    outcome, asked = cancel(*arguments)
    assert (outcome.code, outcome.err, asked) == (1, error, [])


def test_jobs_that_have_ended_are_no_error_unless_asked_for() -> None:
    gone = [("99999", 2017, "Invalid job id specified")]
    assert cancel("99999", results=gone)[0].err == ""
    outcome, _ = cancel("-v", "99999", results=gone)
    assert outcome.code == 0
    assert (
        outcome.err
        == "scancel: Terminating job 99999\nscancel: error: Kill job error on job id 99999: "
        "Invalid job id specified\n"
    )


def test_a_refusal_is_said_and_gives_its_number_as_exit_code() -> None:
    outcome, _ = cancel("7302", results=[("7302", 2002, "Access/permission denied")])
    assert (outcome.code, outcome.err) == (
        210,
        "scancel: error: Kill job error on job id 7302: Access/permission denied\n",
    )


def test_without_a_controller_the_job_and_the_reason_are_named() -> None:
    client = FakeClient()
    client.answers["CancelJobs"] = RefusedError(
        1005, "Unable to contact slurm controller (connect failure)"
    )
    outcome = run_command(scancel, "1", client=client)
    expected = (
        "scancel: error: Kill job error on job id 1: Unable to contact slurm controller "
        "(connect failure)\n"
    )
    assert (outcome.code, outcome.err) == (8, expected)


def test_interactive_asks_for_each_job() -> None:
    outcome, asked = cancel("-i", "-n", "b", stdin="n\ny\n")
    assert (
        outcome.out == "Cancel job_id=7302 name=b partition=batch [y/n]? Cancel job_id=7303 name=b "
        "partition=batch [y/n]? "
    )
    assert [fields["job_ids"] for fields in asked] == [["7303"]]


@pytest.mark.parametrize("option", ["-n", "-p", "-A", "-q", "-R", "-w", "--wckey"])
def test_a_filter_without_a_text_matches_no_job(option: str) -> None:
    outcome, asked = cancel(option, "")
    assert (outcome.code, outcome.err, asked) == (0, "", [])


@pytest.mark.parametrize(
    ("said", "asked_times", "is_cancelled"),
    [
        ("y\n", 1, True),
        ("Yes\n", 1, True),
        ("n\ny\n", 1, False),
        ("x\n\ny\n", 3, True),
        (" y\nN\n", 2, False),
        ("", 1, False),
    ],
)
def test_it_asks_until_it_is_told_yes_or_no(
    said: str, asked_times: int, is_cancelled: bool
) -> None:
    outcome, asked = cancel("-i", "7301", stdin=said)
    assert outcome.out == "Cancel job_id=7301 name=a partition=debug [y/n]? " * asked_times
    assert [fields["job_ids"] for fields in asked] == ([["7301"]] if is_cancelled else [])


def test_jobs_of_a_federation_are_refused() -> None:
    outcome, asked = cancel("--sibling=x", "7301")
    assert (outcome.code, outcome.err, asked) == (
        2239 & 0xFF,
        "scancel: error: Kill job error on job id 7301: Not a valid federated job\n",
        [],
    )


def test_the_name_has_a_longer_name() -> None:
    assert cancel("--jobname=a")[1][0]["job_ids"] == ["7301"]


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (
            ["5"],
            8,
            (
                "scancel: error: Kill job error on job id 5: Unable to contact slurm "
                "controller (connect failure)\n"
            ),
        ),
        *(
            (
                arguments,
                1,
                "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
            )
            for arguments in (["5.0"], ["-i", "5"], ["-u0"])
        ),
    ],
)
def test_without_a_controller_it_says_what_it_asked_for(
    arguments: list[str], code: int, error: str
) -> None:
    client = FakeClient()
    client.answers["Query"] = client.answers["CancelJobs"] = RefusedError(1005, CONNECT_FAILED_TEXT)
    outcome = run_command(scancel, *arguments, client=client)
    assert (outcome.code, outcome.err) == (code, error)


def test_three_times_verbose_names_the_options() -> None:
    assert "verbose" not in cancel("-vv", "-n", "a")[0].err
    said = cancel("-vvv", "-n", "a", "-u", "1", "-s", "USR1", "7301", "7302")[0].err.splitlines()
    assert said[0] == "scancel: account        : (null)"
    assert {
        "scancel: job_name       : a",
        "scancel: signal         : 10",
        "scancel: state          : ?",
        "scancel: job_id[1]      : 7302",
    } <= set(said)


def test_verbose_says_what_of_the_job_is_meant() -> None:
    assert cancel("-v", "-f", "7301")[0].err == "scancel: Terminating full job 7301\n"
    assert (
        cancel("-v", "-b", "-s", "USR1", "7301")[0].err == "scancel: Signal 10 to batch job 7301\n"
    )
    assert cancel("-v", "7303.0")[0].err == "scancel: Terminating step 7303.0\n"


ARRAY = [
    record(
        "jobs",
        job_id=7310,
        name="a",
        state=0,
        array_job_id=7310,
        array_task_expression="2-9",
        array_max_tasks=2,
        partition="debug",
    ),
    record(
        "jobs",
        job_id=7311,
        name="a",
        state=1,
        array_job_id=7310,
        array_task_id=0,
        nodes="n1",
        partition="debug",
    ),
    record(
        "jobs",
        job_id=7312,
        name="a",
        state=2,
        array_job_id=7310,
        array_task_id=1,
        nodes="n2",
        partition="debug",
    ),
    record(
        "jobs",
        job_id=7320,
        name="h",
        state=1,
        het_job_id=7320,
        het_job_offset=0,
        nodes="n1",
        partition="debug",
    ),
    record(
        "jobs",
        job_id=7321,
        name="h",
        state=1,
        het_job_id=7320,
        het_job_offset=1,
        nodes="n2",
        partition="debug",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "jobs"),
    [
        (["-t", "PD", "7310"], ["7310_[2-9%2]"]),
        (["-t", "PD", "7310_*"], ["7310_[2-9%2]"]),
        # what has no record of its own goes together, as in 22.05.8
        (["-t", "PD", "7310_[0-4]"], ["7310_[2-9%2]"]),
        (["-t", "PD", "7310_0"], []),
        (["-t", "PD", "7311"], []),
        (["-t", "PD", "-u", "0"], ["7310_[2-9%2]"]),
        (["-t", "R", "7310"], ["7310_0"]),
        (["-t", "R", "7310_5"], []),
        (["-t", "R", "7311"], ["7310_0"]),
        (["-t", "S", "7310"], ["7310_1"]),
        (["-w", "n1", "7310"], ["7310_0"]),
        (["-p", "debug", "7310_[0-1]"], ["7310_0", "7310_1"]),
        (["-s", "KILL", "7310_[0,5]"], ["7310_[2-9%2]", "7310_0"]),
        (["-b", "7310_1"], ["7310_1"]),
        (["-n", "a", "7310_4,7310_[2,3]"], ["7310_[2-9%2]"]),
        (["-t", "R", "7310_0.3"], ["7311.3", "7311.3"]),  # once before the tasks that wait
        (["7310.3"], []),
        (["-n", "a"], ["7310_[2-9%2]", "7310_0", "7310_1"]),
        (["-t", "R", "7310_"], ["7310_0"]),
        (["7320.1", "7320.1"], ["7320.1", "7320.1"]),
        (["-t", "R", "7320"], ["7320"]),
        (["-t", "R", "7320+1"], ["7320"]),
        (["-t", "R", "7321"], ["7321"]),
        (["7310_[0-4]"], ["7310_[0-4]"]),
    ],
)
def test_filters_choose_among_the_records_of_an_array(
    arguments: list[str], jobs: list[str]
) -> None:
    client = FakeClient(jobs=ARRAY)
    client.answers["CancelJobs"] = [[]]
    run_command(scancel, *arguments, client=client)
    assert [job for _, fields in client.asked for job in fields["job_ids"]] == jobs


def test_each_task_that_is_not_there_is_told_of() -> None:
    client = FakeClient(jobs=[*ARRAY, *JOBS])
    client.answers["CancelJobs"] = [[]]

    def said(*words: str) -> list[str]:
        outcome = run_command(scancel, *words, client=client)
        assert outcome.code == 1
        begin, end = "scancel: error: Kill job error on job id ", ": Invalid job id specified"
        lines = outcome.err.splitlines()
        assert all(line.startswith(begin) and line.endswith(end) for line in lines)
        return [line[len(begin) : -len(end)] for line in lines]

    assert said("-t", "R", "7301_[1-2]") == ["7301_1", "7301_2"]  # which is no array
    assert said("-t", "R", "7301_*") == ["7301_*"]
    assert said("-t", "S", "7310_[8-11]") == ["7310_10", "7310_11"]
    assert said("-n", "x", "99_[1,3]") == ["99_1", "99_3"]
    assert client.asked == []


def test_a_step_is_ended_twice_where_a_job_behind_its_own_waits() -> None:
    client = FakeClient(jobs=ARRAY)
    error = "scancel: error: Kill job error on job step id 7311: no such\n"
    for name, number, times in (("7310_0", 7311, 2), ("7320", 7320, 1)):
        client.answers["CancelJobs"] = [[(f"{number}.0", 2017, "no such")]]
        outcome = run_command(scancel, f"{name}.0", client=client)
        told = error.replace("7311", str(number)) * times
        assert (outcome.code, outcome.err) == (225, told)


def test_a_signal_to_a_step_that_is_not_there_is_told_of_by_the_controller_alone() -> None:
    refused = [("7303.0", 2017, "no such")]
    outcome = cancel("-s", "USR1", "7303.0", results=refused)[0]
    assert (outcome.code, outcome.err) == (0, "")
    outcome = cancel("-s", "USR1", "--ctld", "7303.0", results=refused)[0]
    error = "scancel: error: Kill job error on job step id 7303: no such\n"
    assert (outcome.code, outcome.err) == (225, error)


def test_a_question_names_the_task_of_a_step() -> None:
    client = FakeClient(jobs=ARRAY)
    client.answers["CancelJobs"] = [[]]
    question = "Cancel step_id=7310_1.0 name=a partition=debug [y/n]? "
    for answers, times in (("y\ny\n", 2), ("n\ny\n", 1)):
        said = run_command(scancel, "-i", "7310_1.0", client=client, stdin=answers).out
        assert said == question * times


@pytest.mark.parametrize(
    ("arguments", "jobs"),
    [
        (["--user=1", "--me"], ["7301", "7303"]),
        (["--me", "--user=1"], ["7302"]),
        (["-u1", "-uroot"], ["7301", "7303"]),
    ],
)
def test_the_user_named_last_counts(
    arguments: list[str], jobs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getuid", lambda: 0)
    assert job_ids(cancel(*arguments)[1]) == jobs


@pytest.mark.parametrize(
    ("state", "name"), [("rv", "REVOKED"), ("SI", "SIGNALING"), ("s", "SUSPENDED")]
)
def test_a_state_is_told_in_full(state: str, name: str) -> None:
    error = "scancel: error: No active jobs match ALL job filters, including: state="
    assert cancel("-v", "-t", state)[0].err == f"{error}{name} \n"


def test_a_state_that_was_asked_for_goes_along() -> None:
    assert cancel("-t", "PD", "-n", "b")[1][0]["where"] == {"state": [0]}
    assert cancel("-n", "b")[1][0]["where"] == {}


def test_special_exits_are_cancelled_as_the_pending_jobs_that_they_are() -> None:
    client = FakeClient(jobs=[record("jobs", job_id=7301, state=0, flags=0x1000)])
    client.answers["CancelJobs"] = [[]]
    assert run_command(scancel, "-t", "SPECIAL_EXIT", client=client).code == 0
    assert not client.asked
    assert run_command(scancel, "-t", "PD", client=client).code == 0
    assert [fields["job_ids"] for _, fields in client.asked] == [["7301"]]


def test_a_signal_waits_for_a_job_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    text = "Job can not be altered now, try again later"
    outcome, asked = cancel("-v", "-s", "USR1", "7302", results=[("7302", 2020, text)])
    assert (outcome.code, sum(pauses), len(asked)) == (2020 & 0xFF, 95, 11)
    assert outcome.err.splitlines()[1] == "scancel: Job is in transitional state, retrying"
    assert outcome.err.splitlines()[-1] == f"scancel: error: Kill job error on job id 7302: {text}"


def test_a_variable_that_says_nothing_is_told_of_before_the_line_is_read() -> None:
    environ = {"SCANCEL_BATCH": "1"}
    outcome = run_command(scancel, "--nosuch", client=FakeClient(jobs=JOBS), environ=environ)
    first, second, *_ = outcome.err.splitlines()
    assert first == "scancel: error: Unrecognized SCANCEL_BATCH value: 1"
    assert second == "scancel: unrecognized option '--nosuch'"
