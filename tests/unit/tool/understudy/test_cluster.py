"""The words of `understudy up` and `down`."""

import subprocess
import sys
from pathlib import Path

import pytest

from understudy.commands.shared.locate import Location, register
from understudy.model.cluster import Cluster
from understudy.tool.replay.folder import replay_dir
from understudy.tool.understudy.cluster import announce, down


def test_down_makes_no_run_directory(tmp_path, capsys):
    with pytest.raises(SystemExit):
        down(tmp_path / "none")
    assert f"there is no run directory {tmp_path}/none" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_down_ends_no_replay_that_it_was_not_told_of(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_REGISTRY", str(tmp_path / "registry"))
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with replay_dir(None) as replay:
        register(Location("tux", run_dir=str(replay.path)))
        with pytest.raises(SystemExit):
            down(None)
        assert f"is a replay's ({replay.path})" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            down(replay.path)
        assert "no cluster runs in" in capsys.readouterr().err


def test_what_is_to_be_typed_can_be_pasted_into_a_shell(capsys):
    announce(Cluster("tux", "tux.conf"), Path("/run of/tux"), 1.0)
    said = capsys.readouterr().out
    assert "\n  export SLURM_CONF='/run of/tux'/slurm.conf\n" in said
    assert said.endswith("understudy down --run-dir '/run of/tux'\n")


def test_up_on_a_new_folder_imports_neither_the_loop_nor_what_daemons_alone_need() -> None:
    program = (
        "import sys, understudy.tool.understudy.cluster as cluster; from pathlib import Path; "
        "cluster._come_back(Path('/nowhere'), Path('/none'), supervise=False); "
        "import understudy.tool.cluster.launch; print(*[name for name in ('asyncio', 'logging', "
        "'understudy.protocol.messenger', 'understudy.clock.daemon') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == []
