"""Replays from Python: the command line that comes of the arguments, and what comes back.

Covers: api/replaying.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

import understudy
from understudy import UnderstudyError
from understudy.experiments.run_tables import has_parquet
from understudy.experiments.swf import write_swf
from understudy.experiments.trace import TraceJob


@pytest.fixture
def trace(tmp_path):
    """A job that is larger than the machine, and one that is not."""
    jobs = [TraceJob(1, 0, 10, 2, 10, 10), TraceJob(2, 5, 10, 1, 10, 10)]
    write_swf(tmp_path / "-two.swf", jobs, {"MaxNodes": "2", "MaxProcs": "2"})
    return tmp_path / "-two.swf"


def test_the_results_are_values_and_no_file_is_left(trace, monkeypatch):
    monkeypatch.chdir(trace.parent)
    result = understudy.replay("-two.swf", scheduler="easy")
    assert [(job["job"], job["start"], job["end"]) for job in result.jobs] == [
        *((1, 0, 10), (2, 10, 20)),
    ]
    assert (result.exit_code, result.folder, result.attempts) == (0, None, [])
    assert result.summary["schedule_sha256"] == result.schedule_sha256
    assert "2 jobs of -two.swf on 2 nodes" in result.said
    if has_parquet():
        assert result.table().column("start").to_pylist() == [0, 10]
    assert [path.name for path in trace.parent.iterdir()] == ["-two.swf"]


def test_files_stay_where_out_says_and_jobs_that_never_start_are_a_result(trace, tmp_path):
    result = understudy.replay(trace, out=tmp_path / "runs", nodes=1, cpus=1, scheduler="fcfs")
    assert result.exit_code == 4
    assert result.folder == tmp_path / "runs"
    assert (tmp_path / "runs" / "report.html").exists()
    assert result.jobs[0]["start"] is None


def test_what_fails_is_said_in_the_commands_words(trace, tmp_path):
    with pytest.raises(UnderstudyError, match=r"^\S*none\.swf: No such file or directory$"):
        understudy.replay(tmp_path / "none.swf")
    with pytest.raises(UnderstudyError, match="nobody-has-this"):
        understudy.replay(trace, scheduler="nobody-has-this")
    with pytest.raises(UnderstudyError, match="No such option"):
        understudy.replay(trace, options=["--no-such-option"])
    (tmp_path / "empty.swf").write_text("")
    with pytest.raises(UnderstudyError, match=r"empty\.swf"):
        understudy.replay(tmp_path / "empty.swf")


def test_it_can_be_called_in_a_thread_and_where_a_loop_runs(trace):
    found = []

    async def within():
        found.append(understudy.replay(trace, scheduler="easy").schedule_sha256)

    asyncio.run(within())
    thread = threading.Thread(target=lambda: asyncio.run(within()))
    thread.start()
    thread.join(120)
    assert len(found) == 2
    assert len(set(found)) == 1


def test_it_ends_with_who_called_it(tmp_path):
    """Its input is closed then."""
    program = "import signal; signal.pause()"
    replaying = (
        "import sys, understudy.tool.understudy.understudy as command\n"
        f"command.main = lambda: exec({program!r})\n"
        "from understudy.api.replaying import main\nmain()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", replaying], stdin=subprocess.PIPE)
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(60) == -signal.SIGTERM
    assert os.listdir(tmp_path) == []


def test_a_time_that_is_over_ends_it(trace):
    with pytest.raises(TimeoutError, match=r"ended after 0\.01 s"):
        understudy.replay(trace, timeout_s=0.01)


def test_one_text_where_several_are_expected_is_said(trace):
    for name in ("settings", "faults", "options"):
        with pytest.raises(UnderstudyError, match=f"^{name}='A=1': a list is expected"):
            understudy.replay(trace, **{name: "A=1"})
