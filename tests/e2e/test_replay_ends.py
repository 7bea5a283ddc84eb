"""A replay that cannot go on says why, and leaves no process.

Covers: tool/replay/results.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from understudy.tool.cluster.processes import daemons_of, recorded

UNDERSTUDY = str(Path(sys.executable).parent / "understudy")
SCONTROL = str(Path(sys.executable).parent / "scontrol")
JOB = "{id} {submit} -1 100 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1\n"


class Replay:
    """A replay that stands at its first hour."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        trace = folder / "two.swf"
        trace.write_text(JOB.format(id=1, submit=0) + JOB.format(id=2, submit=7200))
        (folder / "tmp").mkdir()
        self.out = folder / "out"
        self.environment = {
            **os.environ,
            "UNDERSTUDY_REGISTRY": str(folder / "registry"),
            "TMPDIR": str(folder / "tmp"),
        }
        self.environment.pop("SLURM_CONF", None)
        arguments = [
            "replay",
            str(trace),
            "--nodes",
            "4",
            "--scheduler",
            "easy",
            "--break",
            "1h",
            "--out",
            str(self.out),
            "--patience",
            "6",
        ]
        self.process = subprocess.Popen(
            [UNDERSTUDY, *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deadline = time.monotonic() + 30
        while "paused (breakpoint)" not in self.run(UNDERSTUDY, "clock", "status"):
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (self.run_dir,) = (path.parent for path in folder.glob("tmp/*/cluster.json"))
        self.daemons = recorded(self.run_dir)

    def run(self, *command: str) -> str:
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=30, check=False
        ).stdout

    def left(self) -> list[str]:
        """What is left of it but its results: processes, temporary files, its place in the
        registry.
        """
        files = [*(self.folder / "tmp").iterdir(), *(self.folder / "registry").glob("*")]
        return [process.name for process in daemons_of(self.run_dir)] + [
            path.name for path in files
        ]

    def end(self) -> tuple[int, str]:
        said, _ = self.process.communicate(timeout=30)
        assert [daemon.name for daemon in self.daemons if daemon.is_running] == []
        assert self.left() == []
        return self.process.returncode, said


@pytest.fixture
def replay(tmp_path):
    replay = Replay(tmp_path)
    yield replay
    replay.process.kill()
    for daemon in replay.daemons:
        daemon.signal(signal.SIGKILL)


@pytest.mark.parametrize("name", ["noded0", "controller"])
def test_a_daemon_that_dies_ends_it_and_is_named(replay, name):
    (daemon,) = (each for each in replay.daemons if each.name == name)
    log = replay.out / "logs" / f"{name}.log"
    daemon.signal(signal.SIGUSR1)  # it says where it is
    while "_run_module_as_main" not in log.read_text():
        time.sleep(0.02)
    daemon.signal(signal.SIGKILL)
    code, said = replay.end()
    assert code == 1
    assert f"the run ended early: {name} died\n" in said
    assert "_run_module_as_main" in said, "its last lines"
    assert f"What became of the jobs by then, and the daemons' logs: {replay.out}\n" in said
    assert (replay.out / "logs" / f"{name}.log").exists()
    assert not replay.run_dir.exists()


def test_a_clock_that_dies_ends_it(replay):
    (clock,) = (each for each in replay.daemons if each.name == "clock")
    clock.signal(signal.SIGKILL)
    code, said = replay.end()
    assert code == 1
    assert "the clock service is gone" in said


def test_a_daemon_that_hangs_ends_it_and_is_named(replay):
    (noded,) = (each for each in replay.daemons if each.name == "noded0")
    noded.signal(signal.SIGSTOP)
    replay.run(UNDERSTUDY, "clock", "resume")
    code, said = replay.end()  # among the rest that the hanging daemon is gone, too
    assert code == 1
    assert "noded0" in said
    assert "has not reported for" in said


def test_jobs_that_can_never_start_end_it_and_are_named(replay):
    replay.run(SCONTROL, "update", "nodename=n[1-4]", "state=drain", "reason=test")
    replay.run(UNDERSTUDY, "clock", "resume")
    code, said = replay.end()
    assert code == 4
    assert (
        "1 of 2 jobs never started\n    1: ReqNodeNotAvail" in said
        or "1 of 2 jobs never started\n    1: Resources, as job 2" in said
    )
    assert (replay.out / "jobs.csv").read_text().splitlines()[2].startswith("2,7200,,,PENDING,")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_whoever_interrupts_it_gets_it_ended(replay, number):
    replay.process.send_signal(number)
    code, said = replay.end()
    assert code == 128 + number
    assert "interrupted" in said
    assert (
        (replay.out / "jobs.csv").read_text().splitlines()[1].startswith("1,0,0,100,COMPLETED,1,")
    ), "what is known by then, asked of the cluster"
    assert json.loads((replay.out / "summary.json").read_text())["ran"] == 1
    assert not replay.run_dir.exists()


def test_nothing_is_left_of_one_that_is_killed(replay):
    assert {daemon.name for daemon in replay.daemons} == {"agent", "clock", "controller", "noded0"}
    replay.process.kill()
    replay.process.communicate()
    deadline = time.monotonic() + 60
    while replay.left():
        assert time.monotonic() < deadline, replay.left()
        time.sleep(0.05)
    assert (replay.out / "logs" / "controller.log").exists()


def test_nothing_is_left_of_one_in_a_single_process_that_is_killed(tmp_path):
    trace = tmp_path / "endless.swf"
    trace.write_text("".join(JOB.format(id=number, submit=number) for number in range(1, 50_001)))
    (tmp_path / "tmp").mkdir()
    arguments = [
        "replay",
        str(trace),
        "--nodes",
        "4",
        "--one-process",
        "--out",
        str(tmp_path / "out"),
    ]
    process = subprocess.Popen(
        [UNDERSTUDY, *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "out" / "logs" / "replay.log").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert list((tmp_path / "tmp").iterdir())
    process.kill()
    process.wait()
    while left := list((tmp_path / "tmp").iterdir()):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
