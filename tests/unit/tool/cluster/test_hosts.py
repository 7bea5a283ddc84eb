"""What hosts of a cluster share, and what each makes of it.

Covers: model/cluster.
"""

import stat

import pytest

from understudy.auth.keys import Keys
from understudy.model.cluster import Cluster
from understudy.tool.cluster import hosts
from understudy.tool.cluster.run_dir import LaunchError

CONF = (
    "ClusterName=c\nSlurmctldHost=head\nSlurmctldPort=7001\nNodeName=n[1-5] CPUs=2\n"
    "PartitionName=p Nodes=ALL\n"
)


@pytest.fixture
def prepare(tmp_path):
    (tmp_path / "slurm.conf").write_text(CONF)

    def prepare(more="", **options):
        (tmp_path / "slurm.conf").write_text(CONF + more)
        given = {
            "controller": "head",
            "noded": ["a", "b:7000"],
            "run_dir": tmp_path / "run",
        } | options
        return hosts.prepare(tmp_path / "site", tmp_path / "slurm.conf", **given)

    return prepare


def test_addresses_are_tcp_and_the_nodes_are_shared_in_order(prepare):
    cluster = prepare(clock="head", time="scaled", rate=2.0)
    assert cluster.controller == "tcp:head:7001"
    assert cluster.clock == "tcp:head:6816"
    assert [(each.name, each.address, each.nodes) for each in cluster.nodeds] == [
        ("noded0", "tcp:a:6818", "n[1-2]"),
        ("noded1", "tcp:b:7000", "n[3-5]"),
    ]
    assert cluster.participants == ["controller", "noded0", "noded1"]


def test_backup_controllers_have_names_hosts_and_a_state_that_they_share(prepare, tmp_path):
    cluster = prepare(
        "SlurmctldHost=spare\n", backups=["b1", "b2:7002"], state_dir=tmp_path / "shared"
    )
    assert [(each.name, each.host, each.address) for each in cluster.backups] == [
        ("backup1", "spare", "tcp:b1:7001"),
        ("backup2", "b2:7002", "tcp:b2:7002"),
    ]
    assert cluster.state_dir == str(tmp_path / "shared")
    assert cluster.controllers["backup1"] == "tcp:b1:7001"
    command = hosts.begin("backup1", tmp_path / "site", tmp_path / "run")
    assert command[-6:-3] == ["-m", "understudy.controller", "--run-dir"]
    assert command[-2:] == ["--name", "backup1"]


@pytest.mark.parametrize("has_folder", [True, False])
def test_a_host_has_a_copy_and_no_private_key_but_its_own(prepare, tmp_path, has_folder):
    folder = tmp_path / "private" if has_folder else None
    prepare(keys=folder)
    own = folder / "noded1" if folder else None
    command = hosts.begin("noded1", tmp_path / "site", tmp_path / "run", own)
    assert command[-2:] == ["--name", "noded1"]
    keys = tmp_path / "run" / "keys"
    assert sorted(path.name for path in keys.iterdir()) == ["noded1", "public"]
    assert stat.S_IMODE((keys / "noded1").stat().st_mode) == 0o600
    assert Cluster.load(tmp_path / "run").key_folder == str(keys)
    Keys("noded1", keys).refresh()
    assert (tmp_path / "run" / "slurm.conf").read_text() == CONF
    if folder:
        assert [path.name for path in (tmp_path / "site" / "keys").glob("[!.]*")] == ["public"]


@pytest.mark.parametrize(("url", "mode"), [("", 0o644), ("mysql://me:secret@db/slurm", 0o600)])
def test_a_databases_password_is_for_the_daemons_alone(prepare, tmp_path, monkeypatch, url, mode):
    monkeypatch.setenv("UNDERSTUDY_ACCOUNTING_URL", url)
    prepare()
    hosts.begin("noded1", tmp_path / "site", tmp_path / "run")
    for folder in ("site", "run"):
        assert stat.S_IMODE((tmp_path / folder / "cluster.json").stat().st_mode) == mode


def test_a_host_without_its_key_is_told_so(prepare, tmp_path):
    prepare(keys=tmp_path / "private")
    with pytest.raises(LaunchError, match=r"there is no .*/site/keys/noded0, the key of noded0"):
        hosts.begin("noded0", tmp_path / "site", tmp_path / "run")


def test_preparing_again_keeps_the_keys(prepare, tmp_path):
    prepare()
    keys = tmp_path / "site" / "keys"
    first = {path.name: path.read_bytes() for path in keys.iterdir()}
    prepare()
    assert {path.name: path.read_bytes() for path in keys.iterdir()} == first


@pytest.mark.parametrize(
    ("more", "options", "text"),
    [
        ("", {"noded": list("abcdef")}, "6 node daemons cannot share 5 nodes"),
        ("", {"noded": []}, "0 node daemons"),
        ("", {"time": "virtual"}, "needs a clock service"),
        ("", {"time": "virtual", "clock": "c", "executor": "real"}, "real jobs take real time"),
        ("", {"backups": ["b"]}, "controllers must share their state"),
        (
            "",
            {"backups": ["b"], "state_dir": "/s", "time": "virtual", "clock": "c"},
            "virtual time ends with its controller",
        ),
        (
            "AccountingStorageType=accounting_storage/slurmdbd\n",
            {},
            "asks for an accounting daemon",
        ),
    ],
)
def test_what_cannot_be_is_refused(prepare, more, options, text):
    with pytest.raises(LaunchError, match=text):
        prepare(more, **options)


def test_a_daemon_that_the_cluster_does_not_have_and_a_missing_site_are_named(prepare, tmp_path):
    prepare()
    with pytest.raises(
        LaunchError, match="has no daemon noded2; it has agent, controller, noded0, noded1"
    ):
        hosts.begin("noded2", tmp_path / "site", tmp_path / "run")
    with pytest.raises(LaunchError, match="understudy prepare"):
        hosts.begin("noded1", tmp_path / "nowhere", tmp_path / "run", patience_s=0)
    with pytest.raises(LaunchError, match="was prepared for run directories"):
        hosts.begin("noded1", tmp_path / "site", tmp_path / "other")
