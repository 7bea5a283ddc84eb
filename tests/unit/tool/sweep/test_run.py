"""What a sweep keeps, takes again, and writes, with cells that are not run: who runs them is faked.
tests/e2e/test_sweeps.py runs them. Covers: tool/sweep/progress, tool/sweep/version,
tool/understudy/sweep.
"""

import io
import shutil

import msgspec
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from understudy.experiments.sweep.file import SweepError
from understudy.experiments.sweep.rows import Row
from understudy.tool.sweep import run as module
from understudy.tool.sweep.dask_runner import DaskRunner
from understudy.tool.sweep.progress import SweepProgress
from understudy.tool.sweep.run import sweep
from understudy.tool.sweep.version import program_version
from understudy.tool.understudy.app import app_with

SWEEP = """title = "t"
[workload]
model = { kind = "synthetic", jobs = 10 }
[axes]
scheduler = ["easy", "fcfs", "backfill"]
"""


class Runner:
    """Runs so many orders, and then is interrupted."""

    most = 99
    ran: list[str]
    error = ""

    def __init__(self, plan, told, said):
        self.told = told

    def run_here(self, orders, workers):
        for number, order in enumerate(orders):
            if number == Runner.most:
                raise KeyboardInterrupt
            Runner.ran.append(order.name)
            failed = Runner.error if "fcfs" in order.name else ""
            files = {"jobs.csv": b"job\n"} if order.keeps_run and not failed else {}
            figures = {} if failed else {"mean_wait": 1.0}
            self.told(Row(order.key, figures, error=failed, files=files))

    def run_at(self, orders, address):
        raise SweepError(f"the Dask scheduler at {address} is gone")


@pytest.fixture(autouse=True)
def runner(monkeypatch):
    monkeypatch.setattr(module, "DaskRunner", Runner)
    Runner.most, Runner.ran, Runner.error = 99, [], ""


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "sweep.toml"
    found.write_text(SWEEP)
    return found


def test_one_that_was_interrupted_goes_on_and_ends_as_one_that_was_not(path, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    sweep(path, whole)
    assert len(Runner.ran) == 3
    Runner.most, Runner.ran = 1, []
    for left in (2, 1):
        with pytest.raises(KeyboardInterrupt):
            sweep(path, parts)
        assert not (parts / "sweep.csv").exists()
        assert len(list((parts / "cells").iterdir())) == 3 - left
    found = sweep(path, parts)
    assert found.ran == 1
    assert len(Runner.ran) == 3
    for name in ("sweep.csv", "sweep.html", "sweep.parquet", "sweep.toml"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()
    assert sweep(path, parts).ran == 0
    assert pq.read_table(found.table).num_rows == 3
    assert not list(parts.glob(".sweep*"))


def test_a_cell_that_failed_is_kept_until_it_is_wanted_again(path, tmp_path):
    Runner.error = "it broke"
    found = sweep(path, tmp_path / "out")
    assert [each.row.error for each in found.failed] == ["it broke"]
    assert sweep(path, tmp_path / "out").ran == 0
    Runner.error = ""
    again = sweep(path, tmp_path / "out", again=True)
    assert (again.ran, again.failed) == (1, ())


def test_a_cell_whose_file_is_broken_is_run_again(path, tmp_path):
    sweep(path, tmp_path / "out")
    (one, *_) = (tmp_path / "out" / "cells").iterdir()
    one.write_text("{")
    assert sweep(path, tmp_path / "out").ran == 1


def test_runs_are_kept_where_the_file_says_so(path, tmp_path):
    cells = tmp_path / "out" / "cells"
    Runner.error = "no"
    sweep(path, tmp_path / "out")
    assert not [each for each in cells.iterdir() if each.is_dir()]
    path.write_text(SWEEP.replace("[workload]", "runs = true\n[workload]"))
    assert sweep(path, tmp_path / "out").ran == 2  # one has failed: that is kept
    runs = [each for each in cells.iterdir() if each.is_dir()]
    assert [(each / "jobs.csv").read_text() for each in runs] == ["job\n"] * 2
    assert msgspec.json.decode(runs[0].with_suffix(".json").read_bytes(), type=Row).files == {}
    assert sweep(path, tmp_path / "out").ran == 0
    shutil.rmtree(runs[0])
    assert sweep(path, tmp_path / "out").ran == 1


def test_a_new_value_runs_alone(path, tmp_path):
    sweep(path, tmp_path / "out")
    path.write_text(SWEEP.replace('"fcfs"', '"conservative"'))
    assert sweep(path, tmp_path / "out").ran == 1


def test_two_sweeps_do_not_share_a_folder(path, tmp_path):
    with (
        module._locked(tmp_path / "out"),
        pytest.raises(SweepError, match="another sweep runs there"),
    ):
        sweep(path, tmp_path / "out")


def test_what_is_missing_is_one_line(path, tmp_path, monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _name: None)
    result = cli("sweep", path, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert result.output == (
        "understudy sweep: error: a sweep runs on Dask distributed, which is not installed: "
        "pip install 'understudy[sweep]'\n"
    )


def cli(*words):
    return CliRunner().invoke(app_with("sweep"), list(map(str, words)))


def test_the_command_lists_runs_and_refuses(path, tmp_path):
    listed = cli("sweep", path, "--dry-run", "--out", tmp_path / "none")
    assert listed.output.count("scheduler=") == 3
    assert listed.output.endswith("3 cells\n")
    assert not (tmp_path / "none").exists()
    result = cli("sweep", path, "--out", tmp_path / "out", "--workers", "2")
    assert result.exit_code == 0, result.output
    assert "3 of 3 cells" in result.output
    assert result.output.endswith(f"page {tmp_path / 'out' / 'sweep.html'}\n")
    assert cli("sweep", path, "--dask", "tcp://x", "--workers", "2").exit_code == 2
    (tmp_path / "file").write_text("")
    refused = cli("sweep", path, "--out", tmp_path / "file")
    assert (refused.exit_code, refused.output.count("\n")) == (1, 1)
    path.write_text("title = 1")
    wrong = cli("sweep", path, "--out", tmp_path / "other")
    assert (wrong.exit_code, wrong.output.count("\n")) == (1, 1)
    assert not (tmp_path / "other").exists()


def test_an_address_that_is_none_is_said_before_anybody_is_asked(path, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "DaskRunner", DaskRunner)
    for address in ("somewhere", "tcp://somewhere", "tcp://a b:1"):
        with pytest.raises(SweepError, match=r"expected an address as tcp://HOST:8786$"):
            sweep(path, tmp_path / "out", dask=address)


def test_interrupted_and_lost_ones_say_how_to_go_on(path, tmp_path):
    Runner.most = 2
    result = cli("sweep", path, "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert "interrupted; the same command goes on from here" in result.output
    lost = cli("sweep", path, "--out", tmp_path / "out", "--dask", "tcp://h:1")
    assert lost.exit_code == 1
    assert (
        "the Dask scheduler at tcp://h:1 is gone; 2 cells kept, and the same command goes on"
        in lost.output
    )


def test_progress_says_what_is_left():
    out, now = io.StringIO(), [0.0]
    with SweepProgress(4, 1, out=out, wall=lambda: now[0]) as progress:
        now[0] = 30.0
        progress.add(Row("k", {"mean_wait": 2.0}), "a cell")
        progress.say("something")
        progress.add(Row("k", error="no"), "another")
    lines = out.getvalue().splitlines()
    assert lines[0] == "1 of 4 cells, time left unknown"
    assert lines[1] == "2 of 4 cells, 1 min left: a cell: mean wait 2 s"
    assert lines[2] == "something"
    assert lines[-1] == "3 of 4 cells, 1 failed, 15 s left: another: no"


def test_the_program_has_one_version():
    assert program_version() == program_version()
    assert program_version().startswith("0.")
