"""Daemons of a replay that is no more are found, ended, and no others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.tool.cluster.processes import daemons_of
from understudy.tool.replay.folder import remove_stale


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("UNDERSTUDY_REGISTRY", str(tmp_path / "registry"))
    return folder


def test_what_a_replay_left_that_is_no_more_is_removed_with_its_daemons(temporary):
    folder = temporary / "understudy-replay-dead"
    folder.mkdir()
    (folder / "replaying").touch()
    sleep = "import time; time.sleep(600)"
    daemon = subprocess.Popen(
        [
            sys.executable,
            "-c",
            sleep,
            "-m",
            "understudy.noded",
            "--run-dir",
            str(folder),
            "--name",
            "noded0",
        ]
    )
    while not daemons_of(folder):
        assert daemon.poll() is None
    assert remove_stale(temporary) == [folder]
    assert daemon.wait() != 0
    assert not folder.exists()


def test_only_daemons_of_the_directory_are_taken_for_its_daemons(tmp_path):
    assert daemons_of(tmp_path) == []
    other = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", "--run-dir", str(tmp_path)]
    )
    while os.fsencode(tmp_path) not in Path(f"/proc/{other.pid}/cmdline").read_bytes():
        pass
    assert daemons_of(tmp_path) == []
    other.kill()
    other.wait()
