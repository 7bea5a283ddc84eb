"""A replay that cannot go on says why, and leaves no process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from understudy.commands.processes import recorded

UNDERSTUDY = str(Path(sys.executable).parent / "understudy")
SCONTROL = str(Path(sys.executable).parent / "scontrol")
JOB = "{id} {submit} -1 100 1 -1 -1 1 200 -1 1 1 1 -1 1 -1 -1 -1\n"


class Replay:
    """A replay that stands at its first hour."""

    def __init__(self, folder: Path) -> None:
        trace = folder / "two.swf"
        trace.write_text(JOB.format(id=1, submit=0) + JOB.format(id=2, submit=7200))
        (folder / "tmp").mkdir()
        self.out = folder / "out"
        self.environment = {**os.environ, "UNDERSTUDY_REGISTRY": str(folder / "registry"), "TMPDIR": str(folder / "tmp")}
        self.environment.pop("SLURM_CONF", None)
        arguments = ["replay", str(trace), "--nodes", "4", "--scheduler", "easy", "--break", "1h", "--out", str(self.out), "--patience", "1"]
        self.process = subprocess.Popen([UNDERSTUDY, *arguments], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + 30
        while "paused (breakpoint)" not in self.run(UNDERSTUDY, "clock", "status"):
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        (self.run_dir,) = (path.parent for path in folder.glob("tmp/*/cluster.json"))
        self.daemons = recorded(self.run_dir)

    def run(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=30, check=False).stdout

    def end(self) -> tuple[int, str]:
        said, _ = self.process.communicate(timeout=30)
        assert [daemon.name for daemon in self.daemons if daemon.is_running] == []
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
    daemon.signal(signal.SIGKILL)
    code, said = replay.end()
    assert code == 1
    assert f"the run ended early: {name} died\nThe daemons' logs are in {replay.run_dir}/logs" in said


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
    assert code == 1
    assert "nobody has anything left to do" in said
    assert "unfinished: job 2 (2)" in said
    assert (replay.out / "jobs.csv").read_text().splitlines()[2].startswith("2,7200,,,PENDING,")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_whoever_interrupts_it_gets_it_ended(replay, number):
    replay.process.send_signal(number)
    code, said = replay.end()
    assert code == 1
    assert "interrupted" in said
