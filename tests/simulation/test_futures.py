"""`understudy branch`: each command of docs/futures.md prints what the page says, changes do what
they say, and what goes wrong is said and leaves nothing behind.

Covers: tool/replay/branch, tool/replay/change, tool/replay/replayed, tool/understudy/branch.
"""

import csv
import errno
import importlib
import json
import os
import re
import shlex
import shutil
import signal
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.experiments.futures import Deed, Future, read_deed
from understudy.tool.replay import forks
from understudy.tool.replay.branch import BranchRequest, branch
from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.results import InterruptedRunError, UsageError
from understudy.tool.replay.scenarios import replay_scenario
from understudy.tool.replay.traces import replay
from understudy.tool.understudy.app import app_with

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "futures.md").read_text()
SHOWN = re.findall(r"^    \$ (understudy branch .*)\n((?:    [^$\n].*\n)+)", PAGE, re.MULTILINE)
FAULTS = ROOT / "examples" / "faults"


def run(folder, *futures, at=("60",), trace=FAULTS, most=None, **options):
    request = ReplayRequest(trace, folder, **options)
    return branch(BranchRequest(request, at, futures, folder, most))


def rows(folder):
    with (folder / "jobs.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def trace(tmp_path):
    """Twenty jobs of one CPU, a minute apart, on a machine of four."""
    path = tmp_path / "some.swf"
    lines = [
        f"{job} {job * 60} -1 200 1 -1 -1 1 300 -1 1 1 1 -1 1 -1 -1 -1\n" for job in range(1, 21)
    ]
    path.write_text("; MaxNodes: 4\n; MaxProcs: 4\n" + "".join(lines))
    return path


@pytest.mark.parametrize(("command", "lines"), SHOWN, ids=[command[30:] for command, _ in SHOWN])
def test_a_command_of_the_page_prints_what_the_page_says(command, lines, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = shlex.split(command)[1:]
    ran = CliRunner().invoke(app_with("branch"), [words[0], "--out", str(tmp_path), *words[1:]])
    assert ran.exit_code == ("slurm_update error" in lines), ran.output
    for line in lines.splitlines():
        assert line.strip() in ran.output.splitlines()


def test_the_call_of_the_page_gives_what_the_command_gives(tmp_path, monkeypatch, capfd):
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(code.replace("runs/branch", str(tmp_path)), {})
    assert capfd.readouterr().out.splitlines()[-1] == "305.875 642.125"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--at", "60"], 2, "a command behind --, or --file: one of the two"),
        (["--at", "60", "--", "rm", "x"], 2, "rm: not a command that can be used here"),
        (["--", "scancel", "1"], 2, "--at: when is the run to be forked?"),
        (["--at", "soon", "--", "scancel", "1"], 2, "--at 'soon' is neither a time"),
        (["--at", "1999-01-01T00:00:00", "--", "scancel", "1"], 2, "the run begins later"),
        (["--at", "60", "--at", "60", "--", "scancel", "1"], 2, "--at 60: given twice"),
        (["--at", "60", "--file", "none.toml"], 2, "none.toml: No such file or directory"),
        (["--at", "60", "--", "scancel", "{j99}"], 2, "the scenario has no submission j99"),
        (["--at", "9d", "--", "scancel", "1"], 2, "--at 9d: the run was over before"),
    ],
)
def test_what_cannot_be_asked_for_is_said_in_a_line(words, code, said, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    out = ["branch", "examples/faults", "--out", str(tmp_path)]
    ran = CliRunner().invoke(app_with("branch"), [*out, *words])
    assert ran.exit_code == code, ran.output
    assert said in re.sub(r"\s+", " ", ran.output)
    assert [path.name for path in tmp_path.iterdir()] in ([], ["original"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"check": True}, "--check"),
    ],
)
def test_a_run_that_cannot_be_forked_is_refused(options, said, tmp_path):
    with pytest.raises(UsageError, match=said):
        run(tmp_path, Future("a"), **options)


def test_state_on_disk_is_each_futures_own(tmp_path):
    replay_scenario(ReplayRequest(FAULTS, tmp_path / "alone", one_process=True, state="disk"))
    drain = Future("a", (read_deed("scontrol update NodeName=n[1-4] State=DRAIN Reason=x"),))
    outcome = run(tmp_path / "out", Future("same"), drain, at=("60",), state="disk")
    alone = (tmp_path / "alone" / "jobs.csv").read_bytes()
    assert (tmp_path / "out" / "original" / "jobs.csv").read_bytes() == alone
    assert (tmp_path / "out" / "same" / "jobs.csv").read_bytes() == alone
    assert (outcome.code, rows(tmp_path / "out" / "a") != rows(tmp_path / "alone")) == (0, True)


def test_the_configuration_cannot_be_changed_while_the_controller_is_down(tmp_path):
    run(
        tmp_path,
        Future("a", settings=("KillWait=9",)),
        Future("b", failures="exponential:mtbf=20m,repair=60s"),
        faults=("crash of=controller at=50 for=30",),
    )
    assert not (tmp_path / "a").exists()
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    assert config["faults_crash"] == 1
    assert rows(tmp_path / "b") != rows(tmp_path / "original")


def test_a_trace_cannot_join_a_scenario_and_must_be_there(tmp_path, trace):
    with pytest.raises(UsageError, match="future a: trace: a scenario's jobs have options"):
        run(tmp_path, Future("a", trace=trace))
    with pytest.raises(UsageError, match="there is no such file"):
        run(tmp_path, Future("a", trace=tmp_path / "none"), trace=trace)
    with pytest.raises(UsageError, match="two have the name 'a'"):
        run(tmp_path, Future("a"), Future("a"))


def test_a_future_with_an_event_is_the_scenario_that_has_it(tmp_path):
    """An administrator's command is issued 0.2 s behind its instant."""
    folder = tmp_path / "scenario"
    folder.mkdir()
    for path in FAULTS.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    words = ["scontrol", "update", "NodeName=n[1-3]", "State=DRAIN", "Reason=x"]
    (folder / "events.jsonl").write_text(json.dumps({"at": 75, "cmd": words}) + "\n")
    replay_scenario(ReplayRequest(folder, tmp_path / "whole", one_process=True))
    outcome = run(tmp_path / "out", Future("a", (read_deed(words),)), at=("75.2",))
    for name in ("jobs.csv", "result.jsonl"):
        assert (outcome.futures[0].folder / name).read_text() == (
            tmp_path / "whole" / name
        ).read_text()
    config = json.loads((outcome.futures[0].folder / "config.json").read_text())
    assert config["branched_at"] == "75.2"
    assert config["changes"] == [shlex.join(words)]


def test_more_jobs_of_a_trace_come_and_are_told_of(tmp_path, trace):
    more = tmp_path / "more.swf"
    more.write_text("1 30 -1 100 1 -1 -1 2 300 -1 1 1 1 -1 1 -1 -1 -1\n")
    outcome = run(
        tmp_path / "out",
        Future("more", trace=more),
        Future("twice", load=2.0),
        Future("sbatch", (Deed(("sbatch", "-n2", "-t9", "--wrap=x"), 5000.0, 30.0),)),
        at=("10min",),
        trace=trace,
        nodes=4,
        cpus=1,
    )
    assert outcome.code == 0
    added, twice, late = (rows(each.folder) for each in outcome.futures)
    assert [row["job"] for row in added][20:] == ["21"]
    # the zero of what is read is its first job's
    assert (added[20]["cpus"], int(added[20]["submit"]) >= 600) == ("2", True)
    assert len(twice) == 20 + sum(int(row["submit"]) >= 600 for row in added[:20])
    assert all(row["state"] == "COMPLETED" for row in [*added, *twice])
    # the run waits for what is yet to be submitted, though the cluster is empty
    assert (late[20]["submit"], late[20]["run"]) == ("5600", "30")


def test_sbatch_does_not_wait_for_what_is_still_to_come(tmp_path, monkeypatch):
    """It would wait in the process that has the job run."""
    sbatch = importlib.import_module("understudy.commands.sbatch")
    monkeypatch.setattr(sbatch, "_await_end", lambda *_: 9)
    folder = tmp_path / "scenario"
    shutil.copytree(FAULTS, folder)
    words = ["sbatch", "--wait", "-n1", "-t9", "--wrap=x"]
    (folder / "events.jsonl").write_text(json.dumps({"at": 50, "cmd": words}) + "\n")
    outcome = run(tmp_path / "out", Future("a", (Deed(tuple(words), run_s=30.0),)), trace=folder)
    assert (outcome.futures[0].error, outcome.code) == ("", 0)
    assert len(rows(outcome.futures[0].folder)) == len(rows(outcome.original.folder)) + 1


def test_a_trace_that_is_forked_is_to_the_byte_what_it_is_without(tmp_path, trace):
    replay(ReplayRequest(trace, tmp_path / "whole", nodes=4, cpus=1, one_process=True))
    outcome = run(
        tmp_path / "out", Future("same"), at=("7min", "700"), trace=trace, nodes=4, cpus=1
    )
    whole = (tmp_path / "whole" / "jobs.csv").read_bytes()
    assert [each.at for each in outcome.futures] == ["7min", "700"]
    for each in (outcome.original, *outcome.futures):
        assert (each.folder / "jobs.csv").read_bytes() == whole
        assert not (each.folder / "logs").exists()


def test_another_configuration_and_policy_take_over_and_what_cannot_says_so(tmp_path):
    outcome = run(
        tmp_path,
        Future("fifo", settings=("SchedulerType=sched/builtin", "KillWait=9")),
        Future("easy", settings=("SchedulerType=sched/easy",)),
        Future("none", settings=("SchedulerType=sched/nobodys",)),
        Future("nodes", settings=("NodeName=n[1-8] CPUs=8",)),
        Future("order", settings=("PriorityType=priority/multifactor",)),
    )
    fifo, easy, none, nodes, order = outcome.futures
    assert fifo.summary["mean_wait"] > outcome.original.summary["mean_wait"]
    assert "KillWait=9" in (fifo.folder / "slurm.conf").read_text()
    assert "easy cannot take over from backfill while the controller runs" in easy.error
    assert "sched/nobodys" in none.error
    assert nodes.error.startswith("set NodeName=n[1-8] CPUs=8: ")
    assert order.error.startswith("set PriorityType=priority/multifactor: PriorityType")
    assert outcome.code == 1
    for each in (easy, none, nodes, order):
        assert not each.folder.exists()


def test_a_change_wakes_a_cluster_that_stands_still(tmp_path):
    """Jobs wait for ever on drained nodes, until a future sets these up."""
    folder = tmp_path / "scenario"
    folder.mkdir()
    for path in FAULTS.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    drain = ["scontrol", "update", "NodeName=n[1-8]", "State=DRAIN", "Reason=x"]
    (folder / "events.jsonl").write_text(json.dumps({"at": 50, "cmd": drain}) + "\n")
    up = read_deed("scontrol update NodeName=n[1-8] State=RESUME")
    outcome = run(tmp_path / "out", Future("same"), Future("up", (up,)), at=("1d",), trace=folder)
    same, changed = outcome.futures
    assert same.summary["never_started"] == outcome.original.summary["never_started"] > 5
    assert (changed.summary["never_started"], changed.summary["ran"]) == (0, 16)
    assert min(int(row["start"]) for row in rows(changed.folder) if int(row["start"]) > 900) >= (
        86_400
    )
    assert outcome.code == 4


def test_a_command_that_fails_later_ends_its_future_and_leaves_nothing(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "summary.json").write_text("{}")  # of an earlier run
    deed = Deed(("scontrol", "hold", "4711"), after_s=100.0)
    outcome = run(tmp_path, Future("a", (deed,)), Future("b"))
    assert outcome.futures[0].error.startswith("scontrol hold 4711: Invalid job id specified")
    assert not outcome.futures[0].folder.exists()
    assert outcome.futures[1].code == outcome.original.code == 0


def test_where_the_host_has_no_more_processes_a_future_waits_for_another(tmp_path, monkeypatch):
    fork, tried = os.fork, []

    def few():
        tried.append(1)
        if len(tried) == 2:
            raise OSError(errno.EAGAIN, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", few)
    outcome = run(tmp_path, Future("a"), Future("b"), most=1)
    assert outcome.code == 0
    assert len(tried) == 4  # the unchanged run had to end in between

    def none():
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", none)
    outcome = run(tmp_path, Future("a"))
    assert outcome.code == 1
    assert outcome.futures[0].error == "it could not begin: Resource temporarily unavailable"


def test_a_future_that_is_killed_is_told_of_and_the_others_go_on(tmp_path, monkeypatch):
    begun = forks.Forks._has_begun

    def die(self):
        begun(self)
        if self.name == "a":
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(forks.Forks, "_has_begun", die)
    outcome = run(tmp_path, Future("a"), Future("b"))
    assert (outcome.futures[0].code, outcome.futures[0].error) == (137, "ended by SIGKILL")
    assert outcome.futures[1].code == 0


def test_who_interrupts_ends_all_futures_and_each_leaves_what_it_knows(tmp_path, monkeypatch):
    begun = forks.Forks._has_begun

    def interrupt(self):
        begun(self)
        if self.name == "b":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            os.kill(os.getppid(), signal.SIGINT)
            os.kill(os.getpid(), signal.sigwait([signal.SIGINT]))  # it has been handed on
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    monkeypatch.setattr(forks.Forks, "_has_begun", interrupt)
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    with pytest.raises(InterruptedRunError) as caught:
        run(tmp_path, Future("a"), Future("b"), most=3)
    assert caught.value.number == signal.SIGINT
    assert json.loads((tmp_path / "b" / "config.json").read_text())["ended_early"] == "interrupted"
    assert list((tmp_path / "t").glob("understudy-replay-*")) == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_future_that_is_interrupted_while_it_ends_ends(tmp_path, monkeypatch):
    parent, rmdir = os.getpid(), Path.rmdir

    def interrupted(folder):
        if os.getpid() != parent and folder.name == "logs":  # it is leaving
            os.kill(os.getpid(), signal.SIGINT)
        rmdir(folder)

    monkeypatch.setattr(Path, "rmdir", interrupted)
    outcome = run(tmp_path, Future("a"))
    assert [(each.code, each.error) for each in outcome.futures] == [(0, "")]


def test_the_shipped_tuesday_has_its_scenario_and_its_futures_can_be_read(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "experiments" / "tuesday"))
    tuesday = importlib.import_module("tuesday")
    form = replace(
        tuesday.FORMS["short"],
        first=tuesday.TUESDAY - 2 * tuesday.HOUR,
        last=tuesday.TUESDAY + tuesday.HOUR,
    )
    outcome = tuesday.run(form, tmp_path)
    assert [each.name for each in outcome.futures] == [
        "off-at-once",
        "drain",
        "maintenance-tonight",
    ]
    assert [each.error for each in outcome.futures] == ["", "", ""]
    assert len(tuesday.table(form, outcome).splitlines()) == 6
