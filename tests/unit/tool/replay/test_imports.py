"""`understudy import` on what Slurm 22.05.8 wrote: tests/recorded/histories has one history of a
small cluster in several forms, and another one.

Covers: experiments/past_accounts, experiments/sacct_json, experiments/simulator_events,
experiments/swf_rows, tool/replay/submit_line, tool/understudy/import_history.
"""

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.experiments import formats
from understudy.experiments.outcomes.read import read_run
from understudy.experiments.past import HistoryError
from understudy.experiments.past_accounts import SiteAccounts
from understudy.experiments.scenario import read_scenario
from understudy.experiments.swf import read_swf
from understudy.experiments.trace import TraceError
from understudy.tool.replay.imports import ImportRequest, import_history
from understudy.tool.understudy.app import app_with

HISTORIES = Path(__file__).parents[3] / "recorded" / "histories"
ACCOUNTS = (HISTORIES / "past.cfg", HISTORIES / "qos.txt")


def bring_in(tmp_path, *names, **options):
    said: list[str] = []
    request = ImportRequest(
        tuple(HISTORIES / name for name in names), tmp_path / "out", say=said.append, **options
    )
    assert import_history(request) == 0
    return read_scenario(tmp_path / "out", needs_conf=False), said


def options_of(scenario, identity):
    return next(each for each in scenario.submissions if each.id == identity).options


def set_up_of(scenario):
    return [" ".join(command.words) for command in scenario.accounting]


def test_the_history_of_a_real_cluster_becomes_a_scenario_with_all_options(tmp_path):
    scenario, said = bring_in(
        tmp_path, "all.txt", conf=HISTORIES / "slurm.conf", accounts=ACCOUNTS, strict=True
    )
    assert len(scenario.submissions) == 32
    assert "--array=1-6%2" in options_of(scenario, "5")
    assert options_of(scenario, "9")[0] == "--dependency=afterok:{2}"
    assert options_of(scenario, "10")[0] == "--dependency=afternotok:{9},singleton"
    assert {"--gres=gpu:2", "--mem=1G", "--ntasks=4"} <= set(options_of(scenario, "3"))
    # of the script
    assert {"--mem-per-cpu=200M", "--constraint=fast", "--ntasks=8", "--nodes=2"} <= set(
        options_of(scenario, "2")
    )
    assert ":" in options_of(scenario, "7")
    assert "--time=7" in options_of(scenario, "39")  # changed by the administrator
    assert "--comment=a|b pipe" in options_of(scenario, "11")
    assert "--begin=now+3" in options_of(scenario, "38")  # held and released
    assert any("46 lines left out: steps" in line for line in said)
    assert (tmp_path / "out" / "slurm.conf").exists()
    assert (tmp_path / "out" / "gres.conf").exists()


@pytest.mark.parametrize("name", ["few.txt", "epoch.txt", "jobs.json"])
def test_other_columns_and_json_tell_of_the_same_jobs(tmp_path, name):
    whole, _ = bring_in(tmp_path / "a", "all.txt")
    part, _ = bring_in(tmp_path / "b", name)
    assert {each.id for each in part.submissions} == {each.id for each in whole.submissions}
    if name != "few.txt":  # which has but the last record of each job
        of = {each.id: each for each in whole.submissions}
        for each in part.submissions:
            assert (each.at, each.run) == (of[each.id].at, of[each.id].run), each.id


def test_a_dump_that_is_read_twice_is_there_once(tmp_path):
    packed = tmp_path / "all.txt.gz"
    packed.write_bytes(gzip.compress((HISTORIES / "all.txt").read_bytes()))
    said: list[str] = []
    import_history(
        ImportRequest((HISTORIES / "all.txt", packed), tmp_path / "out", say=said.append)
    )
    assert len(read_scenario(tmp_path / "out", needs_conf=False).submissions) == 32
    assert "48 lines left out: the same job in an earlier file" in said


def test_what_the_configuration_does_not_have_is_said(tmp_path):
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        (HISTORIES / "slurm.conf").read_text().replace("PartitionName=long", "PartitionName=other")
    )
    _, said = bring_in(tmp_path, "all.txt", conf=conf)
    assert any(
        "to the partition long, which" in line and "--map partition:long=NEW" in line
        for line in said
    )


def test_accounts_of_a_dump_become_commands_of_sacctmgr(tmp_path):
    scenario, _ = bring_in(tmp_path, "all.txt", accounts=ACCOUNTS)
    lines = set_up_of(scenario)
    assert (
        "add account optics parent=physics Description=optics Organization=physics "
        "Fairshare=3 GrpTRES=cpu=24" in lines
    )
    assert "add user bin account=optics DefaultAccount=optics Fairshare=1 MaxJobs=8" in lines
    assert "add qos high Priority=1000 MaxTRESPerUser=cpu=16" in lines
    assert "modify qos high set preempt=normal" in lines
    assert lines[-1] == "add coordinator account=physics name=daemon"
    assert lines.index("add qos low Priority=1") < lines.index(
        "add user daemon account=physics DefaultAccount=physics Fairshare=2 QOS=high,normal"
    )


def test_a_users_first_association_is_that_of_his_default_account_and_has_what_is_his_own(tmp_path):
    site = SiteAccounts()
    site.read((HISTORIES / "other" / "other.cfg").read_text(), "other.cfg")
    lines = [line for line in site.commands() if "games" in line or "qos" in line]
    assert lines == [
        "add qos fast",
        "add qos slow",
        (
            "add user games account=wet DefaultAccount=wet DefaultWCKey=alpha WCKeys=alpha,beta "
            "Fairshare=1 QOS=+fast,+slow"
        ),
        "add user games account=dry Fairshare=1 QOS=+fast,+slow",
    ]
    site.complete(
        {("games", "dry"): None},
        {"new": {("games", "dry"): None, ("bin", "dry"): None}, "normal": {("games", "dry"): None}},
    )
    assert "add user games account=dry Fairshare=1 QOS=+fast,+slow,+new" in site.commands()
    # of bin, one a partition
    assert sum("account=dry" in line and line.endswith("qos=+new") for line in site.commands()) == 3


def test_root_has_an_association_and_is_given_the_others():
    site = SiteAccounts()
    site.read(
        "Cluster - 'c':Fairshare=1:QOS='normal'\n"
        "Parent - 'root'\n"
        "User - 'root':DefaultAccount='a1':AdminLevel='Administrator':Fairshare=1:QOS='+q1'\n"
        "Account - 'a1':Fairshare=1\n"
        "Parent - 'a1'\n"
        "User - 'root':DefaultAccount='a1':AdminLevel='Administrator':Fairshare=2\n",
        "dump",
    )
    assert site.complete({("root", "root"): None, ("root", "a1"): None}, {}) == []
    assert site.commands()[-3:] == [
        "modify user root where account=root set Fairshare=1 QOS=+q1",
        "add user root account=a1 Fairshare=2",
        "modify user root set defaultaccount=a1",
    ]


def test_a_table_of_associations_tells_the_same_users():
    table, dump = SiteAccounts(), SiteAccounts()
    table.read((HISTORIES / "assoc.txt").read_text(), "assoc.txt")
    dump.read((HISTORIES / "past.cfg").read_text(), "past.cfg")
    assert set(table.users) == set(dump.users)
    assert set(table.accounts) == set(dump.accounts)
    assert table.users["bin", "optics", ""]["MaxJobs"] == "8"


def test_missing_accounts_are_made_and_named(tmp_path):
    scenario, said = bring_in(tmp_path, "all.txt", create_accounts=True)
    assert "add account bio" in set_up_of(scenario)
    assert "add user games account=bio qos=+low" in set_up_of(scenario)
    assert "3 accounts are made: physics, optics, bio" in said
    _, said = bring_in(tmp_path, "all.txt", accounts=ACCOUNTS, create_accounts=True)
    assert not any("made:" in line for line in said)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Account - 'a':Fairshare=1\nNonsense\n", "line 2: not understood: 'Nonsense'"),
        ("User|Account|Share\na|b\n", "line 2: 2 fields where the header has 3"),
        ("a|b\n", "neither of associations nor of QOS"),
        ("hello\n", "neither a file of `sacctmgr dump`"),
    ],
)
def test_accounts_that_are_none_are_refused_in_one_line(text, why):
    with pytest.raises(HistoryError, match=f"^x.*{why}"):
        SiteAccounts().read(text, "x")


EVENTS = """# a comment
-dt 5 -e submit_batch_job | -J jobid_1002 -sim-walltime -1 --uid=user1 -t 00:01:00 -n 1 -A a1 -p normal -q normal --constraint=CPU-N pseudo.job
-dt 0 -e submit_batch_job | -J jobid_1001 -sim-walltime 7 --uid=user5 -t 00:01:00 -n 12 --ntasks-per-node=12 -A a2 -p normal --gres=gpu:1 pseudo.job
-dt 9 -e submit_batch_job | -J jobid_1003 -sim-walltime 5 -cancel-in 60 --uid=user1 -t 5 -n 2 -d afterok:1001 pseudo.job
"""  # noqa: E501


def test_events_of_the_simulator_become_submissions_with_sbatchs_options(tmp_path):
    path = tmp_path / "small.events"
    path.write_text(EVENTS)
    import_history(ImportRequest((path,), tmp_path / "out", say=lambda _line: None, strict=True))
    first, second, third = read_scenario(tmp_path / "out", needs_conf=False).submissions
    assert (first.id, first.at, first.user, first.run, first.name) == (
        "1001",
        0,
        "user5",
        7,
        "jobid_1001",
    )
    assert set(first.options) == {
        "--time=00:01:00",
        "--ntasks=12",
        "--ntasks-per-node=12",
        "--account=a2",
        "--partition=normal",
        "--gres=gpu:1",
    }
    assert second.run > 60  # its limit ends it
    assert "--dependency=afterok:{1001}" in third.options
    (cancel,) = read_scenario(tmp_path / "out", needs_conf=False).events
    assert (cancel.at, cancel.command) == (69.5, ("scancel", "{1003}"))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("-dt 1 -e submit_batch_job -n 1", "no `|`"),
        ("-dt x -e submit_batch_job | -n 1 a", "no time"),
        ("-dt 1 | -n 1 a", "no event"),
        ("-dt 1 -e dance | -n 1 a", "'dance' is none that is known"),
        ("-dt 1 -e submit_batch_job | --no-such 1 a", "options that sbatch does not take"),
        ("-dt 1 -e submit_batch_job | -sim-walltime x -n 1 a", "-sim-walltime needs a number"),
        ("-dt 1 -e submit_batch_job | -n 1 -t soon a", "time limit"),
        ("-dt 1 -e submit_batch_job | -n 'a", "No closing quotation"),
    ],
)
def test_events_that_cannot_be_used_are_named(tmp_path, line, why):
    path = tmp_path / "small.events"
    path.write_text(EVENTS + line + "\n")
    said: list[str] = []
    import_history(ImportRequest((path,), tmp_path / "out", say=said.append))
    assert said[0].startswith(f"{path} line 5: ")
    assert why in said[0]
    with pytest.raises(HistoryError, match=r"small.events line 5: "):
        import_history(ImportRequest((path,), tmp_path / "out", say=said.append, strict=True))


SWF = """; MaxProcs: 64
; UnixStartTime: 1000000000
; Partition: 1 pbatch
1 0 10 50 8 -1 -1 8 100 2048 1 7 3 9 2 1 -1 -1
2 5 20 0 -1 -1 -1 4 60 -1 5 8 3 9 2 1 -1 -1
3 9 0 30 4 12 99 4 60 -1 0 8 3 9 2 2 1 15
4 9 0 30 4 -1 -1 4 60 -1 4 8 3 9 2 2 1 15
"""


def test_all_columns_of_swf_are_used_or_named(tmp_path):
    path = tmp_path / "a.swf"
    path.write_text(SWF)
    said: list[str] = []
    import_history(
        ImportRequest((path,), tmp_path / "out", say=said.append, maps=("partition:2=debug",))
    )
    scenario = read_scenario(tmp_path / "out", needs_conf=False)
    assert scenario.zero == 1_000_000_000
    first, _, third = scenario.submissions
    assert set(first.options) == {
        "--partition=pbatch",
        "--account=a3",
        "--qos=q2",
        "--time=2",
        "--mem-per-cpu=2M",
        "--ntasks=8",
    }
    assert (first.user, first.name, first.run) == ("u7", "e9", 50)
    assert scenario.events[0].command == ("scancel", "{2}")
    assert scenario.events[0].at == 25.5
    assert third.options[0] == "--dependency=afterany:{1}"
    assert "--partition=debug" in third.options
    assert third.exit == 1
    assert any("1 line left out: parts of jobs that were swapped out" in line for line in said)
    assert {
        "1 job: used CPU time, which is not used",
        "1 job: used memory, which is not used",
    } <= set(said)
    assert "1 job: think time, which is not used" in said


def test_a_history_can_become_a_trace(tmp_path):
    said: list[str] = []
    import_history(ImportRequest((HISTORIES / "all.txt",), tmp_path / "h.swf.gz", say=said.append))
    trace = read_swf(tmp_path / "h.swf.gz", strict=True)
    assert len(trace.jobs) == 40  # with each task of the arrays, without the two that never ran
    assert sorted({job.user for job in trace.jobs}) == [1, 2, 3, 4]
    assert "1 job: --exclusive, for which a trace has no column" in said


@pytest.mark.parametrize(
    ("arguments", "why", "code"),
    [
        (["none.txt"], "none.txt: No such file or directory", 1),
        (["few.txt", "--conf", "none.conf"], "none.conf", 1),
        (["few.txt", "--map", "old=new"], "--map old=new: must be KIND:OLD=NEW", 2),
        (["few.txt", "--map", "colour:a=b"], "--map colour:a=b: must be KIND:OLD=NEW", 2),
        (["few.txt", "--until", "later"], "--until later: no time", 2),
        (["few.txt", "--from", "soon"], "--from soon: no time", 2),
        (["few.txt", "--until", "2001-01-01"], "no job that can be submitted", 1),
        (["few.txt", "--accounts", "slurm.conf"], "neither a file of `sacctmgr dump`", 1),
        (["slurm.conf"], "no column JobID", 1),
    ],
)
def test_what_cannot_be_imported_is_said_in_one_line(tmp_path, arguments, why, code, monkeypatch):
    monkeypatch.chdir(HISTORIES)
    result = CliRunner().invoke(
        app_with("import"), ["import", *arguments, "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == code
    assert result.exception is None or isinstance(result.exception, SystemExit)
    error = [
        line for line in result.output.splitlines() if line.startswith("understudy import: error: ")
    ]
    assert len(error) == 1
    assert why in error[0]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b"\x1f\x8b\x08\x00damaged", "damaged gzip file"),
        (b'{"meta": 1}', 'no list "jobs"'),
        (b'{"jobs": [{"job_id": 1', "damaged JSON"),
        (b'{"jobs": [', "cut short"),
        (b'{"jobs": [1]}', "a job that is no object"),
        (b"\xff\xfe\x00", "no header of sacct -P"),
    ],
)
def test_files_of_another_kind_are_refused_in_one_line(tmp_path, content, why):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises((HistoryError, TraceError), match=why):
        import_history(ImportRequest((path,), tmp_path / "out", say=lambda _line: None))


def test_a_job_of_json_that_cannot_be_used_is_named(tmp_path):
    document = json.loads((HISTORIES / "jobs.json").read_text())
    document["jobs"][1]["state"]["current"] = "DONE"
    del document["jobs"][2]["time"]
    document["jobs"][3]["steps"] = 5
    document["jobs"][4]["time"]["elapsed"] = float("inf")
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(document, indent=1))
    said: list[str] = []
    import_history(ImportRequest((path,), tmp_path / "out", say=said.append))
    assert said[0] == f"{path}: job 2 of the list: 'DONE' is no state of a job"
    for number, text in enumerate(said[1:4], 3):
        assert text.startswith(f"{path}: job {number} of the list: ")
    path.write_text('{"jobs": [' + "[" * 99_999)
    with pytest.raises(HistoryError, match=r"jobs\.json: damaged JSON: maximum recursion depth"):
        import_history(ImportRequest((path,), tmp_path / "other"))


def test_what_json_of_22_05_writes_for_reservations_and_limits_is_understood(tmp_path):
    document = json.loads((HISTORIES / "jobs.json").read_text())
    completed = [
        record
        for record in document["jobs"]
        if record["state"]["current"] == "COMPLETED" and not record["array"]["job_id"]
    ]
    for place, record in enumerate(completed[-2:]):
        record["reservation"] = {"id": 7, "name": 3667558592 + place}
        record["time"]["limit"] = None
    again = completed[-3]  # its limit was its partition's, which is forgotten when it is requeued
    again["state"]["current"], again["time"]["limit"] = "REQUEUED", None
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(document))
    import_history(ImportRequest((path,), tmp_path / "out", say=lambda _line: None))
    scenario = read_scenario(tmp_path / "out", needs_conf=False)
    both = [
        set(each.options)
        for each in scenario.submissions
        if "--reservation=reservation7" in each.options
    ]
    assert len(both) == 2
    assert all("--time=UNLIMITED" in options for options in both)
    (requeued,) = (each for each in scenario.submissions if each.id == str(again["job_id"]))
    assert not any(option.startswith("--time") for option in requeued.options)


def test_one_account_is_made_and_several_are():
    site = SiteAccounts()
    said = site.complete(
        {("ada", "phys"): None, ("bob", "phys"): None}, {"high": {("ada", "phys"): None}}
    )
    assert "1 account is made: phys" in said
    assert any(line.startswith("2 users are made: ") for line in said)
    assert "1 QOS is made: high" in said


def test_what_is_a_trace_alone_is_not_imported_and_that_is_said(tmp_path, monkeypatch):
    line = formats.Format("a toy", (".toy",), re.compile("toy"), trace="toy:read")
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, line))
    path = tmp_path / "a.toy"
    path.write_text("toy\n")
    with pytest.raises(HistoryError, match=r"a.toy: this is a toy, which can be replayed, not"):
        import_history(ImportRequest((path,), tmp_path / "out"))


def test_what_has_a_scenario_of_its_own_is_imported_alone(tmp_path):
    path = tmp_path / "a.events"
    path.write_text("-dt 0 -e submit_batch_job | -n 1 -t 1 x\n")
    request = ImportRequest((HISTORIES / "all.txt", path), tmp_path / "out")
    with pytest.raises(HistoryError, match=r"a.events: an events file of .* is imported alone"):
        import_history(request)


def test_what_really_happened_is_written_beside_the_scenario(tmp_path):
    scenario, _ = bring_in(tmp_path, "all.txt")
    run = read_run(tmp_path / "out")
    assert (run.kind, len(run.records), run.zero) == ("history", 43, scenario.zero)
    assert {record.id.split("_")[0].split("+")[0] for record in run.records} == {
        each.id for each in scenario.submissions
    }
    (tmp_path / "few.events").write_text(
        "-dt 0 -e submit_batch_job | -J job_1 -sim-walltime 5 -n 1 -t 1 pseudo.job\n"
    )
    request = ImportRequest((tmp_path / "few.events",), tmp_path / "out", say=lambda _line: None)
    assert import_history(request) == 0
    assert not (tmp_path / "out" / "past.csv").exists()


def test_a_pipe_is_refused_in_one_line(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(HistoryError, match="pipe: a pipe is read but once"):
        import_history(
            ImportRequest((tmp_path / "pipe",), tmp_path / "out", say=lambda _line: None)
        )
    assert not (tmp_path / "out").exists()
