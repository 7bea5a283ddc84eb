"""Sweeps in real processes: what dies, and what is interrupted, changes nothing of their tables.
Covers: tool/sweep/dask_runner, tool/sweep/local_cluster, tool/sweep/member, tool/replay/apart.
"""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from understudy.experiments.sweep.rows import MEASURED
from understudy.tool.cluster import processes

pytest.importorskip("distributed")

SWEEP = """title = "Small cells"
seeds = [1, 2]
[workload]
model = { kind = "synthetic", jobs = 40, nodes = 16, days = 0.2, load = 0.9 }
[axes]
"workload.run_times" = [0.5, 1.0]
scheduler = ["easy", "backfill", "fcfs"]
"""
CELLS = 12
PATIENCE_S = 300  # for what takes a few seconds on an idle machine


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("sweep") / "sweep.toml"
    found.write_text(SWEEP)
    return found


@pytest.fixture(scope="module")
def alone(path, tmp_path_factory):
    """The table of a sweep that was left alone."""
    out = tmp_path_factory.mktemp("alone")
    sweep = start(path, out)
    assert sweep.wait(PATIENCE_S) == 0, said(out)
    assert (out / "sweep.html").read_text().count("<tr>") == CELLS + 1
    return table(out)


def start(path, out, *options):
    command = [sys.executable, "-m", "understudy.tool.understudy.understudy", "sweep", str(path)]
    options = options or ("--workers", "2")
    with (out.parent / f"{out.name}.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--out", str(out), *options],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )


def said(out):
    return (out.parent / f"{out.name}.log").read_text()


def table(out):
    """All that does not differ from run to run."""
    with (out / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert all(row["state"] == "done" for row in rows)
    return [{k: v for k, v in row.items() if k not in MEASURED} for row in rows]


def kept(out):
    return len(list((out / "cells").glob("*.json")))


def wait_until(is_so):
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def members(sweep, kind):
    """Pids of the sweep's schedulers or workers."""
    found = []
    for child in processes.descendants([processes.identify("sweep", sweep.pid)]):
        words = Path(f"/proc/{child.pid}/cmdline")
        if words.exists() and f"understudy.tool.sweep.member\0{kind}" in words.read_text():
            found.append(child)
    return found


def interrupt_after(sweep, out, count, number):
    wait_until(lambda: kept(out) >= count or sweep.poll() is not None)
    sweep.send_signal(number)
    assert sweep.wait(PATIENCE_S) == 128 + number, said(out)


def test_deaths_and_interrupts_change_nothing(path, alone, tmp_path):
    out = tmp_path / "out"
    interrupt_after(start(path, out), out, 1, signal.SIGINT)
    assert "interrupted; the same command goes on" in said(out)
    sweep = start(path, out)
    wait_until(lambda: kept(out) >= 2)
    for kind in ("worker", "scheduler"):
        (victim, *_) = members(sweep, kind)
        before = kept(out)
        victim.signal(signal.SIGKILL)
        wait_until(lambda before=before: kept(out) > before)
    interrupt_after(sweep, out, 5, signal.SIGTERM)
    assert kept(out) < CELLS
    assert not (out / "sweep.parquet").exists()
    sweep = start(path, out)
    assert sweep.wait(PATIENCE_S) == 0, said(out)
    assert "the Dask scheduler has ended: another one is started" in said(out)
    assert table(out) == alone


def test_a_killed_command_leaves_nothing_running(path, tmp_path):
    out = tmp_path / "out"
    sweep = start(path, out)
    wait_until(lambda: kept(out) >= 1)
    left = processes.descendants([processes.identify("sweep", sweep.pid)])
    assert left
    sweep.kill()
    sweep.wait()
    wait_until(lambda: not any(each.is_running for each in left))


def foreign(tmp_path, kind, *options):
    module = f"distributed.cli.dask_{kind}"
    with (tmp_path / f"{kind}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, *options, "--no-dashboard", "--host", "127.0.0.1"],
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )


def test_a_cluster_that_is_there_is_used_and_one_that_is_lost_is_said(path, alone, tmp_path):
    out = tmp_path / "out"
    for is_lost in (True, False):
        told = tmp_path / f"scheduler{is_lost}.json"
        scheduler = foreign(tmp_path, "scheduler", "--port", "0", "--scheduler-file", str(told))
        workers = [
            foreign(
                tmp_path,
                "worker",
                *("--scheduler-file", str(told), "--nthreads", "1", "--no-nanny"),
                *("--name", str(number), "--death-timeout", "60"),
                *("--local-directory", str(tmp_path)),
            )
            for number in range(2)
        ]
        try:
            wait_until(told.exists)
            address = told.read_text().partition('"address": "')[2].partition('"')[0]
            assert address.startswith("tcp://127.0.0.1:")
            sweep = start(path, out, "--dask", address)
            if is_lost:
                wait_until(lambda: kept(out) >= 2)
                scheduler.kill()
                assert sweep.wait(PATIENCE_S) == 1
                assert f"the Dask scheduler at {address} is gone; " in said(out)
                assert "kept, and the same command goes on" in said(out)
            else:
                assert sweep.wait(PATIENCE_S) == 0, said(out)
        finally:
            for each in (scheduler, *workers):
                each.kill()
                each.wait()
    assert table(out) == alone


def test_a_scheduler_that_does_not_answer_is_said_in_a_line(path, tmp_path):
    out = tmp_path / "out"
    sweep = start(path, out, "--dask", "tcp://127.0.0.1:1")
    assert sweep.wait(PATIENCE_S) == 1
    (line,) = said(out).strip().split("\n")[1:]
    assert line.startswith("understudy sweep: error: no Dask scheduler at tcp://127.0.0.1:1: ")
