"""sstat: which steps it means, what it says of those that are not there, and its columns."""

import pytest
from fake_controller import FakeClient, record, run_command

from understudy.commands.shared.client import RefusedError
from understudy.commands.sstat import sstat
from understudy.protocol.messages import BATCH_STEP


@pytest.fixture
def client():
    made = FakeClient(
        jobs=[record("jobs", job_id=7), record("jobs", job_id=8)],
        steps=[record("steps", job_id=7, step=step, nodes="n1") for step in ("batch", "0", "1")],
    )
    made.answers["GetStep"] = [7, 0, 0, "n1", [[0], [1]], [1], b"", [], 32, []]
    return made


def said(client, line):
    return run_command(sstat, *line.split(), client=client)


def test_a_job_means_its_first_step_and_all_steps_include_its_script(client):
    assert said(client, "-n -P -j 7 -o jobid,nodelist,ntasks").out == "7.0|n1|2\n"
    assert said(client, "-n -P -a -j 7 -o jobid").out == "7.batch\n7.0\n7.1\n"
    assert said(client, "-n -P -j 7+1 -o jobid").out == "7.0\n"
    assert said(client, "-n -P -j 7.batch -o jobid,nodelist").out == "7.batch|n1\n"
    assert client.asked[-1] == ("GetStep", {"job_id": 7, "step_id": BATCH_STEP})


def test_what_does_not_run_is_named_and_no_failure(client):
    client.answers["GetStep"] = RefusedError(2017, "Invalid job id specified")
    missing = said(client, "-n -j 7.99")
    assert (missing.code, missing.err) == (0, "sstat: error: StepId=7.99 not found running.\n")
    assert said(client, "-n -j 8").err == "sstat: error: No steps running for job 8\n"
    assert said(client, "-n -j 9").err == "sstat: error: couldn't get steps for job 9\n"
    assert said(client, "-n -j 8_99").err == "sstat: error: No steps running for job 8\n"
    wrong = said(client, "-j abc")
    assert (wrong.code, wrong.err) == (1, "sstat: fatal: Bad job/step specified: abc\n")


def test_a_controller_that_is_away_is_said_once_for_each_job_and_no_failure(client):
    client.answers["GetStep"] = client.answers["Query"] = RefusedError(1005, "connect failure")
    away = said(client, "-P -o jobid -j 7,8.1,9.batch -a")
    assert (away.code, away.out) == (0, "JobID\n")
    assert away.err == "".join(
        f"sstat: error: couldn't get steps for job {job}\n" for job in (7, 8, 9)
    )


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("-j daemon -j abc", "Bad job/step specified: daemon"),
        ("-j 7_[1-2]", "Bad job array element specified: 7"),
        ("-j 7+", "Bad hetjob offset specified: 7"),
        ("-j 7_1.x", "Bad step specified: 7_1"),
        ("-j 7.", "Bad step specified: 7"),
    ],
)
def test_what_is_no_step_is_named_up_to_where_it_ends(client, line, error):
    wrong = said(client, line)
    assert (wrong.code, wrong.out, wrong.err) == (1, "", f"sstat: fatal: {error}\n")


def test_lists_come_together_and_what_follows_a_number_is_passed_over(client):
    assert said(client, "-n -P -o jobid -j 7.0x -j 7.1.2").out == "7.0\n7.1\n"
    assert said(client, "-n -P -o jobid -j 7x 7_1_2").out == "7.0\n7.0\n"
    assert said(client, "-n -P -o jobid -j 7x,7,7_1,7_1_2,7_2").out == "7.0\n7.0\n7.0\n"
    assert said(client, "-n -P -o jobid 7.0 7.1").out == "7.0\n"


def test_steps_of_no_job_are_said_of_the_job(client):
    client.answers["GetStep"] = RefusedError(2017, "Invalid job id specified")
    for word in ("9.5", "9_2.5", "9.batch"):
        assert said(client, f"-n -j {word}").err == "sstat: error: couldn't get steps for job 9\n"


def test_all_steps_of_an_array_are_those_of_its_tasks_in_their_order():
    steps = [
        record("steps", job_id=number, step="batch", nodes="n1", array_job_id=5, array_task_id=task)
        for number, task in ((5, 3), (6, 1), (7, 2))
    ]
    client = FakeClient(jobs=[record("jobs", job_id=5)], steps=steps)
    client.answers["GetStep"] = [5, 0, 0, "n1", [[0]], [1], b"", [], 32, []]
    assert said(client, "-a -n -P -o jobid -j 5").out == "6.batch\n7.batch\n5.batch\n"
    assert said(client, "-a -n -P -o jobid -j 7").out == "7.batch\n"


def test_columns_are_as_wide_as_their_names_and_names_are_cut_without_a_mark(client):
    head = said(client, "-j 7 -o tresusageinmaxn,ntasks%-5").out.splitlines()[0]
    assert head == "TRESUsageInMaxNode NTask "


USED = [
    [0, "c1", 11, 700_000, 118_456_320, 121_827_328, 0, 1_685_838, 1697],
    [2, "c2", 12, 1_460_000, 328_331_265, 331_542_528, 3, 1_685_840, 1697],
]


@pytest.fixture
def running(client):
    client.answers["GetStep"] = [
        7,
        0,
        0,
        "c[1-2]",
        [[0], [2]],
        [1],
        b"",
        [(0, "unix:/n", "c[1-2]")],
        32,
        [],
    ]
    client.answers["StatTasks"] = [USED]
    client.another = lambda _address, _name: client
    client.close = lambda: None
    return client


def test_what_tasks_use_is_told_in_the_unit_that_divides_it(running):
    line = (
        "-n -P -j 7.0 -o maxrss,averss,maxvmsize,maxdiskread,mincpu,maxrssnode,maxrsstask,"
        "reqcpufreqmin"
    )
    assert said(running, line).out == "328331265|218158K|323772K|1685840|00:00:00|c2|2|Unknown\n"
    assert said(running, "--noconvert -n -P -j 7.0 -o maxvmsize").out == "331542528\n"


def test_all_that_tasks_use_at_once(running):
    assert (
        said(running, "-n -P -j 7.0 -o tresusageintot").out
        == "cpu=00:00:02,energy=0,fs/disk=3371678,mem=446787585,pages=3,"
        "vmem=442744K\n"
    )
    assert (
        said(running, "-n -P -j 7.0 -o tresusageinmaxt").out
        == "cpu=00:00:02,fs/disk=2,mem=2,pages=2,"
        "vmem=2\n"
    )
    assert said(running, "-n -P -j 7.0 -o tresusageoutmaxn").out == "energy=c1,fs/disk=c1\n"


def test_a_job_with_a_script_alone_has_nothing_to_show_and_that_is_no_error(client):
    client.tables["steps"] = [record("steps", job_id=7, step="batch", nodes="n1")]
    shown = said(client, "-n -j 7")
    assert (shown.code, shown.out, shown.err) == (0, "", "")


def test_an_option_that_is_not_known_is_named_without_a_hint(client):
    wrong = said(client, "--nosuch")
    assert (wrong.code, wrong.err) == (1, "sstat: unrecognized option '--nosuch'\n")
