"""What can be found out before a replay runs is found out then.

Covers: tool/replay/request.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from understudy.tool.cluster import launch
from understudy.tool.replay.request import ReplayRequest
from understudy.tool.replay.traces import ReplayError, replay


@pytest.fixture
def trace(tmp_path, monkeypatch):
    def start(*_arguments, **_options):
        raise AssertionError("a cluster was prepared")

    monkeypatch.setattr(launch, "prepare", start)
    path = tmp_path / "one.swf"
    path.write_text("; MaxProcs: 1\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1\n")
    return path


def test_a_folder_that_cannot_be_written_is_named(trace):
    with pytest.raises(ReplayError, match=r"--out .*/one.swf/run: Not a directory"):
        replay(ReplayRequest(trace, trace / "run"))


def test_answers_that_are_not_there_are_named(trace, tmp_path):
    with pytest.raises(ReplayError, match=r"none.csv: No such file or directory$"):
        replay(ReplayRequest(trace, tmp_path / "run", answers=tmp_path / "none.csv"))


def test_answers_of_another_kind_are_named_once(trace, tmp_path):
    with pytest.raises(ReplayError, match=r"^[^ ]*one.swf line 1: expected the header"):
        replay(ReplayRequest(trace, tmp_path / "run", answers=trace))


def test_a_break_that_is_no_time_is_refused(trace, tmp_path):
    with pytest.raises(ReplayError, match="--break 'soon' is neither a time after the start"):
        replay(ReplayRequest(trace, tmp_path / "run", pause_at="soon"))


def test_a_break_that_nobody_could_end_is_refused(trace, tmp_path):
    with pytest.raises(ReplayError, match="leave out --one-process"):
        replay(ReplayRequest(trace, tmp_path / "run", pause_at="1d", one_process=True))


def test_a_trace_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ReplayError, match=r"none.swf: No such file or directory$"):
        replay(ReplayRequest(Path("none.swf"), tmp_path / "run"))


def test_a_bad_line_is_named_with_the_file_once(trace, tmp_path):
    trace.write_text("1 0\n")
    with pytest.raises(
        ReplayError, match=r"^[^ ]*one.swf line 1: 2 columns where 18 are " r"expected$"
    ):
        replay(ReplayRequest(trace, tmp_path / "run", strict=True))


def test_a_machine_of_which_only_the_processors_are_known_may_be_too_large(trace, tmp_path):
    trace.write_text(trace.read_text().replace("MaxProcs: 1", "MaxProcs: 293312"))
    with pytest.raises(ReplayError, match=r"293,312 nodes of 1 CPUs: .* --nodes, --cpus"):
        replay(ReplayRequest(trace, tmp_path / "run"))


def test_a_machine_of_which_nothing_is_known_is_not_guessed_from_the_largest_job(trace, tmp_path):
    trace.write_text(trace.read_text().partition("\n")[2])
    with pytest.raises(
        ReplayError,
        match=r"one.swf: its header has neither MaxNodes nor MaxProcs.* 1 processors.*--nodes "
        r"and --cpus",
    ):
        replay(ReplayRequest(trace, tmp_path / "run"))


def test_columns_that_are_not_used_are_named_with_the_number_of_jobs(trace, tmp_path, capsys):
    trace.write_text(
        "; MaxProcs: 1\n1 0 -1 10 1 -1 -1 1 20 64 1 1 1 -1 1 1 -1 -1\n"
        "2 0 -1 10 1 -1 -1 1 20 32 1 1 1 -1 1 2 1 -1\n"
    )
    with pytest.raises(AssertionError, match="a cluster was prepared"):
        replay(ReplayRequest(trace, tmp_path / "run"))
    assert (
        "not used: requested memory (2 jobs), partition (2 jobs), preceding job (1 jobs); "
        "`understudy import`" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'add account "a1', "line 1: No closing quotation"),
        (b"add account caf\xe9", "it is not in UTF-8: unexpected end of data at byte 15"),
        (None, "No such file or directory"),
    ],
)
def test_accounting_set_up_that_cannot_be_read_is_named(trace, tmp_path, text, said):
    path = tmp_path / "accounts.txt"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(ReplayError, match=f"^--accounting {path}:? {said}"):
        replay(ReplayRequest(trace, tmp_path / "run", accounting=path))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("jobs.txt", "JobID|State\n"),
        ("a.sacct", ""),
        ("jobs.json", "{}"),
        ("a.events", ""),
        ("x", "-dt 0 -e a | b"),
    ],
)
def test_a_history_that_is_no_trace_is_said_to_need_an_import(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ReplayError, match=f"{name}: this is .*`understudy import "):
        replay(ReplayRequest(tmp_path / name, tmp_path / "run"))


def test_a_replay_imports_neither_accounts_nor_tables_before_it_needs_them():
    """They are half of the memory with which it begins."""
    program = (
        "import sys, understudy.tool.replay.traces, understudy.controller.edge.main, "
        "understudy.noded.main; print(*[name for name in ('sqlalchemy', 'alembic', 'pyarrow') "
        "if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []
