"""What a program finds around it that is to speak to one cluster."""

import os
from pathlib import Path

import pytest

from understudy.model.cluster import Cluster
from understudy.tool.cluster import surroundings as module
from understudy.tool.cluster.run_dir import LaunchError
from understudy.tool.cluster.surroundings import commands, elsewhere, surroundings


def test_the_commands_come_first_and_the_interpreters_folder_does_not(tmp_path):
    run_dir = tmp_path / "a run"
    run_dir.mkdir()
    found = surroundings(run_dir, {"PATH": "/usr/bin:/bin", "HOME": "/home/me"})
    assert found == {
        "PATH": f"{run_dir}/bin:/usr/bin:/bin",
        "HOME": "/home/me",
        "SLURM_CONF": f"{run_dir}/slurm.conf",
    }
    links = {path.name: path.resolve() for path in (run_dir / "bin").iterdir()}
    assert {"sbatch", "squeue", "scontrol", "understudy"} <= links.keys()
    assert "python" not in links
    assert links["squeue"] == commands()["squeue"].resolve()
    # once more is the same, and puts nothing twice on the path
    assert surroundings(run_dir, found) == found


def test_what_tells_of_another_clusters_job_is_left_out_and_options_stay(tmp_path):
    environ = {
        "PATH": "/bin",
        "SLURM_JOB_ID": "7",
        "SLURM_NTASKS": "3",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "n1",
        "SLURM_CLUSTERS": "other",
        "SBATCH_PARTITION": "long",
        "SLURM_TIME_FORMAT": "%s",
        "TMPDIR": "/tmp",
        "HOSTNAME": "here",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
    }
    found = surroundings(tmp_path, environ)
    assert found.keys() - {"PATH", "SLURM_CONF"} == {
        *("SBATCH_PARTITION", "SLURM_TIME_FORMAT", "TMPDIR", "HOSTNAME"),
    }
    # within a job of this cluster it is this job's
    own = {**environ, "SLURM_CONF": f"{tmp_path}/slurm.conf"}
    assert surroundings(tmp_path, own).keys() == own.keys()


def test_a_cluster_that_is_registered_in_its_run_directory_is_found_there(tmp_path):
    (tmp_path / "registry").mkdir()
    assert surroundings(tmp_path, {})["UNDERSTUDY_REGISTRY"] == f"{tmp_path}/registry"


def test_a_run_directory_with_a_colon_is_refused(tmp_path):
    folder = tmp_path / "a:b"
    folder.mkdir()
    with pytest.raises(LaunchError, match="with a colon in it"):
        surroundings(folder, {})


def test_commands_that_are_not_installed_are_missed(monkeypatch):
    monkeypatch.setattr(module, "entry_points", lambda **_: [])
    with pytest.raises(LaunchError, match="are not installed beside"):
        commands()


def test_links_of_an_earlier_installation_are_replaced(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "squeue").symlink_to("/nowhere/squeue")
    surroundings(tmp_path, {})
    assert (tmp_path / "bin" / "squeue").resolve() == commands()["squeue"].resolve()
    assert [path.name for path in (tmp_path / "bin").iterdir() if path.name.startswith(".")] == []


def test_what_leads_commands_elsewhere_is_named(tmp_path):
    cluster, ours = Cluster("tux", str(tmp_path / "tux.conf")), str(commands()["squeue"].parent)
    assert elsewhere(tmp_path, cluster, {"PATH": ours}) == ""
    for conf in (tmp_path / "slurm.conf", tmp_path / "tux.conf"):
        assert elsewhere(tmp_path, cluster, {"PATH": ours, "SLURM_CONF": str(conf)}) == ""
    other = tmp_path / "other"
    other.mkdir()
    (other / "squeue").write_text("#!/bin/sh\n")
    (other / "squeue").chmod(0o755)
    environ = {"PATH": f"{other}{os.pathsep}{ours}", "SLURM_CONF": "/etc/slurm/slurm.conf"}
    assert elsewhere(tmp_path, cluster, environ) == (
        f"SLURM_CONF is /etc/slurm/slurm.conf and another squeue comes first on the PATH "
        f"({other}/squeue)"
    )
    assert elsewhere(tmp_path, cluster, {"PATH": str(tmp_path)}) == "squeue is not on the PATH"
    assert Path(ours).is_dir()
