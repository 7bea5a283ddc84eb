"""scrontab: its times, its file, and the jobs that come again.

Covers: commands/scrontab, controller/requests/crontabs, controller/tables/crontabs, model/cron.
"""

from __future__ import annotations

import time

import pytest
from controller_harness import OTHER, ROOT, START, USER, Harness
from fake_controller import FakeClient, record, run_command

from understudy.commands.scrontab import scrontab
from understudy.commands.shared.client import RefusedError
from understudy.controller.jobs.crontabs import only_entries_wait
from understudy.controller.saved import documents
from understudy.controller.tables.settings import Settings
from understudy.model.cron import CronError, CronTime
from understudy.model.states import JobState
from understudy.protocol.messages import (
    AwaitEmpty,
    CancelJobs,
    Crontab,
    CrontabSet,
    Failure,
    GetCrontab,
    JobSpec,
    SetCrontab,
    UpdateJobs,
)


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def after(when, text):
    """`2026-11-21T20:30` style in and out."""
    found = CronTime(text).after(time.mktime(time.strptime(when, "%Y-%m-%dT%H:%M:%S")))
    return None if found is None else time.strftime("%Y-%m-%dT%H:%M", time.localtime(found))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2026-11-21T20:31"),  # a Saturday
        ("30 20 * * *", "2026-11-22T20:30"),  # this minute has begun
        ("*/20 * * * *", "2026-11-21T20:40"),
        ("5-50/15 21 * * *", "2026-11-21T21:05"),
        ("0 4 * * 1-5", "2026-11-23T04:00"),
        ("0 4 * * mon,Wed", "2026-11-23T04:00"),
        ("0 0 * * 7", "2026-11-22T00:00"),
        ("0 0 1 * *", "2026-12-01T00:00"),
        ("0 0 1 jan *", "2027-01-01T00:00"),
        ("0 0 1 * 2", "2026-11-24T00:00"),  # either day will do
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("0 0 30 2 *", None),
        ("@hourly", "2026-11-21T21:00"),
        ("@daily", "2026-11-22T00:00"),
        ("@midnight", "2026-11-22T00:00"),
        ("@weekly", "2026-11-22T00:00"),
        ("@monthly", "2026-12-01T00:00"),
        ("@yearly", "2027-01-01T00:00"),
        ("@elevenses", "2026-11-22T11:00"),
        ("@fika", "2026-11-22T15:00"),
        ("@teatime", "2026-11-22T16:00"),
    ],
)
def test_the_next_time(text, expected):
    assert after("2026-11-21T20:30:00", text) == expected


def test_an_hour_that_the_clocks_skip_does_not_hide_later_ones(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    assert after("2027-03-28T01:59:30", "0 * * * *") == "2027-03-28T03:00"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("60 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * 0 * *", "bad day of month"),
        ("* * * foo *", "bad month"),
        ("* * * * 8", "bad day of week"),
        ("*/0 * * * *", "bad minute"),
        ("9-5 * * * *", "bad minute"),
        ("* * * *", "missing field"),
        ("@reboot", "bad time specification"),
    ],
)
def test_what_says_no_time(text, complaint):
    with pytest.raises(CronError, match=complaint):
        CronTime(text)


# --- the controller -------------------------------------------------------------------------------

TEXT = "#SCRON -n 1\n0 * * * * first\n@daily second\n"


def entries(*whens):
    return [
        (when, at, at, JobSpec(name=f"cron{at}", work_dir="/"), "#!/bin/sh\n")
        for at, when in enumerate(whens, 1)
    ]


@pytest.fixture
def h():
    return Harness(settings=Settings(allows_crontabs=True, min_job_age_s=0))


def install(h, *whens, text="0 * * * * x\n", sender=USER, user_id=-1):
    answer = h.ask(SetCrontab(text, entries(*whens), user_id, 1000), sender)
    assert isinstance(answer, CrontabSet), answer
    assert answer.failure == ""
    return [h.core.tables.jobs[job_id] for job_id in answer.job_ids]


def test_an_entry_is_a_job_that_waits_for_its_time_and_comes_again(h):
    (job,) = install(h, "0 * * * *")
    assert (job.state, job.reason, job.user_id) == (JobState.PENDING, "BeginTime", 1000)
    assert h.query("jobs", "cron_spec") == [["0 * * * *"]]
    begin = job.begin_time
    assert begin is not None
    assert begin % 3600 == 0
    assert 0 < begin - START <= 3600
    h.run(begin - START)
    assert job.state is JobState.RUNNING
    h.complete(job)
    assert (job.state, job.reason, job.restarts) == (JobState.PENDING, "BeginTime", 1)
    assert job.begin_time == begin + 3600
    h.run(3600)
    assert job.state is JobState.RUNNING


def test_a_run_that_fails_does_not_end_it_and_one_that_lasts_skips_times(h):
    (job,) = install(h, "*/10 * * * *")
    h.run(600)
    h.acknowledge()
    h.run(1500)
    h.finish(job, 3)
    h.acknowledge()
    h.epilog(job)
    assert job.state is JobState.PENDING
    assert 0 < job.begin_time - h.time.now() <= 600


@pytest.mark.parametrize("runs", [False, True])
def test_cancelling_ends_it_and_comments_its_lines_out(h, runs):
    answer = h.ask(
        SetCrontab(
            TEXT,
            [
                ("0 * * * *", 1, 2, JobSpec(name="a", work_dir="/"), "#!/bin/sh\n"),
                *entries("@daily")[:0],
            ],
        ),
        USER,
    )
    job = h.core.tables.jobs[answer.job_ids[0]]
    if runs:
        h.run(3600)
        h.acknowledge()
    assert h.cancel(job) == 0
    assert h.ask(GetCrontab(), USER) == Crontab(
        "#DISABLED: #SCRON -n 1\n#DISABLED: 0 * * * * first\n@daily second\n"
    )
    if runs:
        h.acknowledge()
        h.epilog(job)
    assert job.state is JobState.CANCELLED


def test_a_signal_does_not_disable_it(h):
    (job,) = install(h, "* * * * *")
    h.run(60)
    h.ask(CancelJobs([str(job.job_id)], 10, full=True), USER)
    assert "DISABLED" not in h.ask(GetCrontab(), USER).text


def test_another_file_cancels_the_old_jobs_that_wait_and_lets_running_ones_end(h):
    runs, waits = install(h, "* * * * *", "@yearly")
    h.run(60)
    (new,) = install(h, "@daily")
    assert (runs.state, waits.state, new.state) == (
        JobState.RUNNING,
        JobState.CANCELLED,
        JobState.PENDING,
    )
    h.complete(runs)
    assert runs.state is JobState.COMPLETED


def test_no_text_removes_the_file(h):
    (job,) = install(h, "@daily")
    h.ask(SetCrontab("", []), USER)
    assert job.state is JobState.CANCELLED
    assert h.ask(GetCrontab(), USER).code == 2


def test_a_job_that_is_refused_undoes_all(h):
    install(h, "@daily", text="old\n")
    bad = [
        *entries("@daily"),
        ("@daily", 2, 2, JobSpec(partition="nowhere", work_dir="/"), "#!/bin/sh\n"),
    ]
    answer = h.ask(SetCrontab("new\n", bad), USER)
    assert (answer.job_ids, answer.failed_entry, answer.failure) == (
        [],
        1,
        "Invalid partition name specified",
    )
    assert h.ask(GetCrontab(), USER).text == "old\n"
    assert len(h.core.tables.pending) == 1


def test_who_may_see_and_change_whose(h):
    install(h, "@daily", sender=ROOT, user_id=1000)
    assert h.ask(GetCrontab(1000), OTHER).code == 2002
    assert h.ask(SetCrontab("", [], 1000), OTHER).code == 2002
    assert isinstance(h.ask(GetCrontab(1000), ROOT), Crontab)
    assert next(iter(h.core.tables.pending.values())).user_id == 1000


def test_it_is_off_unless_the_configuration_says_so():
    answer = Harness().ask(SetCrontab("", []), USER)
    assert isinstance(answer, Failure)
    assert answer.text == "scrontab is disabled on this cluster"


def test_scontrol_may_not_change_the_jobs(h):
    (job,) = install(h, "@daily")
    assert h.result(h.ask(UpdateJobs([str(job.job_id)], {"TimeLimit": "5"}), USER)) == 2096


def test_they_survive_a_restart(h):
    (job,) = install(h, "@daily", text="@daily x\n")
    saved = documents.encode(h.core, "crontab:1000")
    later = Harness(settings=Settings(allows_crontabs=True))
    documents.decode(later.core, "crontab:1000", saved)
    assert later.ask(GetCrontab(), USER) == Crontab("@daily x\n")
    assert later.core.crontabs.entries[job.job_id].when == "@daily"
    h.ask(SetCrontab("", []), USER)
    assert documents.encode(h.core, "crontab:1000") is None


def test_jobs_that_come_again_keep_nobody_waiting(h):
    install(h, "@daily")
    assert not h.time.is_needed
    job = h.submit()
    later = h.ask(AwaitEmpty(), ROOT)
    h.complete(job)
    h.core.check_empty()
    assert later.answer is not None
    assert only_entries_wait(h.core)


# --- the command ----------------------------------------------------------------------------------

ENABLED = [record("config", name="ScronParameters", value="enable")]


@pytest.fixture
def client():
    made = FakeClient(config=ENABLED)
    made.answers = {"SetCrontab": [[7], -1, ""], "GetCrontab": ["@daily x\n"]}
    return made


def sent(client):
    return next(fields for name, fields in client.asked if name == "SetCrontab")


def test_a_file_is_read_into_entries_with_the_options_above_them(client):
    text = (
        "# a comment\nNAME=value\n#SCRON -t 5\n#SCRON -J mine --mem=100\n"
        "*/5 * * * *  /bin/run this\n\n@hourly other\n"
    )
    assert run_command(scrontab, "-", client=client, stdin=text).code == 0
    asked = sent(client)
    assert asked["text"] == text
    (when, first, last, spec, script), (when2, first2, last2, spec2, _) = asked["entries"]
    assert (when, first, last, when2, first2, last2) == ("*/5 * * * *", 3, 5, "@hourly", 7, 7)
    assert script.endswith("\n\n/bin/run this\n")
    assert "mine" in spec
    assert "other" in spec2
    assert 300 in spec
    assert any("NAME=value" in value for value in spec if isinstance(value, list))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("61 * * * * x\n", "line 1: bad minute"),
        ("* * * * *\n", "line 1: missing command"),
        ("# ok\n* * *\n", "line 2: missing field"),
        ("#SCRON --bogus\n* * * * * x\n", "line 1: unrecognized option '--bogus'"),
        ("#SCRON -N x\n* * * * * x\n", 'line 1: "x" is not a valid node count'),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_sent(client, text, complaint):
    said = run_command(scrontab, "-", client=client, stdin=text)
    assert said.code == 1
    assert said.err.splitlines()[0] == f"scrontab: error: {complaint}"
    assert not client.asked


def test_what_the_controller_refuses_is_said_with_its_line(client):
    client.answers["SetCrontab"] = [[], 1, "Invalid partition name specified"]
    said = run_command(scrontab, "-", client=client, stdin="@daily a\n\n@daily b\n")
    assert said.err.splitlines()[0] == "scrontab: error: line 3: Invalid partition name specified"


def test_listing_and_removing(client):
    assert run_command(scrontab, "-l", client=client).out == "@daily x\n"
    assert run_command(scrontab, "-r", client=client).code == 0
    assert sent(client)["text"] == ""
    client.answers["GetCrontab"] = RefusedError(2, "No such file or directory")
    said = run_command(scrontab, "-l", "-u", "root", client=client)
    assert (said.code, said.err) == (1, "no crontab for root\n")


def test_the_editor_gets_the_file_and_bad_lines_come_back_marked(client, tmp_path):
    log = tmp_path / "log"
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncat "$1" >> {log}\nprintf "99 * * * * x\\n" > "$1"\n')
    editor.chmod(0o755)
    said = run_command(
        scrontab, "-e", client=client, environ={"EDITOR": str(editor)}, stdin="y\nn\n"
    )
    assert said.code == 1
    assert said.out.count("Do you want to retry the edit? (y/n) ") == 2
    assert log.read_text() == "@daily x\n#BAD: 99 * * * * x\n"


def test_an_editor_that_changes_nothing_sends_nothing(client):
    assert (
        run_command(
            scrontab, "-e", client=client, environ={"VISUAL": "true", "EDITOR": "false"}
        ).code
        == 0
    )
    assert not any(name == "SetCrontab" for name, _ in client.asked)


def test_a_cluster_without_it_says_so():
    said = run_command(scrontab, "-l", client=FakeClient(config=[]))
    assert (said.code, said.err) == (1, "scrontab: fatal: scrontab is disabled on this cluster\n")
