"""The words of `understudy up` and `down`."""

from pathlib import Path

import pytest

from understudy.commands.understudy_cluster import _announce, down
from understudy.model.cluster import Cluster


def test_down_makes_no_run_directory(tmp_path, capsys):
    with pytest.raises(SystemExit):
        down(tmp_path / "none")
    assert f"there is no run directory {tmp_path}/none" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_what_is_to_be_typed_can_be_pasted_into_a_shell(capsys):
    _announce(Cluster("tux", "tux.conf"), Path("/run of/tux"), 1.0)
    said = capsys.readouterr().out
    assert "\n  export SLURM_CONF='/run of/tux'/slurm.conf\n" in said
    assert said.endswith("understudy down --run-dir '/run of/tux'\n")
