"""Finding the cluster: by SLURM_CONF, by registry, by what slurm.conf says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from understudy.commands.shared import locate
from understudy.commands.shared.locate import (
    BadConfigurationError,
    Location,
    NoClusterError,
    find,
    from_configuration,
    latest,
    message_timeout_s,
    register,
    takeover_timeout_s,
    unregister,
)
from understudy.model.conf_copy import copy_configuration

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    registry = str(tmp_path / "registry")
    monkeypatch.setenv("UNDERSTUDY_REGISTRY", registry)
    monkeypatch.setattr(locate, "SYSTEM_REGISTRY", str(tmp_path / "nowhere"))
    return {"UNDERSTUDY_REGISTRY": registry}


def cluster(tmp_path: Path, name: str, started: float) -> Location:
    run_dir = tmp_path / name
    run_dir.mkdir(exist_ok=True)
    (run_dir / "slurm.conf").write_text("ClusterName=x\nSlurmctldHost=localhost\n")
    conf = tmp_path / f"{name}.conf"
    conf.write_text("ClusterName=x\nSlurmctldHost=localhost\n")
    return Location(
        name=name,
        conf=str(conf),
        run_dir=str(run_dir),
        controller=f"tcp:{name}:1",
        controller_unix="unix:/s",
        started=started,
    )


def test_the_latest_cluster_is_found_without_slurm_conf(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    for name, started in (("a", 1.0), ("b", 3.5), ("c", 2.0)):
        register(cluster(tmp_path, name, started))
    assert find(environ).name == "b"
    assert unregister("b", str(tmp_path / "b"))
    assert not unregister("b", str(tmp_path / "b"))
    assert find(environ).name == "c"


def test_how_long_a_command_waits_is_said_by_the_file_that_it_goes_by(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    register(cluster(tmp_path, "a", 1.0))
    timeouts = {"a.conf": 20, "a/slurm.conf": 30, "elsewhere.conf": 40}
    for name, seconds in timeouts.items():
        (tmp_path / name).write_text(
            f"ClusterName=a\nSlurmctldHost=localhost\nSlurmctldPort=1\nMessageTimeout={seconds}\n"
            "NodeName=n1\nPartitionName=p Nodes=n1\n"
        )
    for name, seconds in timeouts.items():
        found = find({**environ, "SLURM_CONF": str(tmp_path / name)})
        assert (found.name, message_timeout_s(found)) == ("a", seconds)
    (tmp_path / "a.conf").unlink()
    assert message_timeout_s(find(environ)) == 30


def test_slurm_conf_names_a_registered_cluster_by_its_file_or_its_copy(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    register(cluster(tmp_path, "a", 1.0))
    register(cluster(tmp_path, "b", 2.0))
    link = tmp_path / "link.conf"
    link.symlink_to(tmp_path / "a.conf")
    for conf in (tmp_path / "a.conf", link, tmp_path / "a" / "slurm.conf"):
        assert find({**environ, "SLURM_CONF": str(conf)}).controller_addresses == [
            "unix:/s",
            "tcp:a:1",
        ]


def test_registering_again_replaces_the_entry(tmp_path: Path, environ: dict[str, str]) -> None:
    first, second = cluster(tmp_path, "a", 1.0), cluster(tmp_path, "a", 2.0)
    assert register(first) == register(second)
    found = latest(environ)
    assert found is not None
    assert found.started == 2.0


@pytest.mark.parametrize(
    ("text", "controller", "agent"),
    [
        ("SlurmctldHost=head\n", "tcp:head:6817", ""),
        (
            "slurmctldhost=head(10.0.0.1) # first\nSlurmctldHost=spare\nSlurmctldPort=7000-7009\n",
            "tcp:10.0.0.1:7000",
            "",
        ),
        ("ControlMachine=old\nControlAddr=old-ib\n", "tcp:old-ib:6817", ""),
        (
            "SlurmctldHost=h SlurmctldAddr=a\nAuthInfo=ttl=5,socket=/run/a\n",
            "tcp:a:6817",
            "unix:/run/a",
        ),
        ("ClusterName=x \\\n SlurmctldHost=h\n", "tcp:h:6817", ""),
        ("Include more.conf\n", "tcp:included:6817", ""),
    ],
)
def test_an_unregistered_file_says_where_the_controller_is(
    tmp_path: Path, environ: dict[str, str], text: str, controller: str, agent: str
) -> None:
    (tmp_path / "more.conf").write_text("SlurmctldHost=included\n")
    conf = tmp_path / "slurm.conf"
    conf.write_text(text)
    found = from_configuration(str(conf))
    assert (found.controller, found.agent) == (controller, agent)


@pytest.mark.parametrize(
    "text",
    [
        "SlurmctldHost=a(10.0.0.1)\nSlurmctldHost=b(10.0.0.2)\n",
        "ControlMachine=a ControlAddr=10.0.0.1\nBackupController=b BackupAddr=10.0.0.2\n",
    ],
)
def test_an_unregistered_file_says_where_backup_controllers_are(tmp_path: Path, text: str) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(text + "SlurmctldPort=7001\nSlurmctldTimeout=30\n")
    found = from_configuration(str(conf))
    assert found.controllers == [["tcp:10.0.0.1:7001"], ["tcp:10.0.0.2:7001"]]
    assert (found.controller_host, found.backups[0][0]) == ("a", "b")
    assert takeover_timeout_s(found) == 30


def test_a_copy_of_a_clusters_file_leads_to_it_and_another_of_its_name_does_not(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    text = "ClusterName=a\nSlurmctldHost=h\nSlurmctldPort=7001\nNodeName=n1\n"
    conf = tmp_path / "slurm.conf"
    conf.write_text(text)
    location = cluster(tmp_path, "a", 1.0)
    location.conf, location.controller = str(conf), "tcp:127.0.0.1:7001"
    register(location)
    copy = tmp_path / "copy.conf"
    copy.write_text(text)
    assert find({**environ, "SLURM_CONF": str(copy)}).run_dir == location.run_dir
    copy.write_text(text.replace("7001", "7002"))
    assert (
        find({**environ, "SLURM_CONF": str(copy)}).run_dir,
        from_configuration(str(copy)).controller,
    ) == ("", "tcp:h:7002")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Nonsense=1", "_parse_next_key: Parsing error at unrecognized key: Nonsense"),
        ("garbage here", 'Parse error in file {conf} line 4: "garbage here"'),
        ("MaxJobCount=abc", "MaxJobCount value (abc) is not a valid number"),
        ("EnforcePartLimits=2", "Bad EnforcePartLimits: 2"),
        ("MaxDBDMsgs=100", "MaxDBDMsgs value (100) needs to be greater than 10000"),
        ("SlurmSchedLogLevel=1", "SlurmSchedLogLevel requires SlurmSchedLogFile value"),
        ("PreemptMode=SUSPEND", "PreemptMode=SUSPEND requires GANG too"),
        ("DebugFlags=xyzzy", "Invalid DebugFlag: xyzzy"),
        (
            "NodeName=m1 Foo=3",
            'Parsing error at unrecognized key: Foo\nParse error in file {conf} line 4: " Foo=3"',
        ),
        ("PartitionName=x Nodes=zz9", ""),
    ],
)
def test_errors_in_the_file_are_told_as_slurms_commands_tell_them(
    tmp_path: Path, environ: dict[str, str], line: str, said: str
) -> None:
    """Also of a cluster that runs, whose daemons have read it before somebody broke it."""
    run_dir, conf = tmp_path / "run", tmp_path / "slurm.conf"
    run_dir.mkdir()
    text = "ClusterName=a\nSlurmctldHost=h\nNodeName=n1\n"
    conf.write_text(text)
    copy_configuration(conf, run_dir)
    register(
        Location(name="a", conf=str(conf), run_dir=str(run_dir), controller="tcp:127.0.0.1:6817")
    )
    assert find({**environ, "SLURM_CONF": str(conf)}).run_dir == str(run_dir)
    conf.write_text(f"{text}{line}\n")
    if not said:
        assert find({**environ, "SLURM_CONF": str(conf)}).run_dir == str(run_dir)
        return
    with pytest.raises(BadConfigurationError) as found:
        find({**environ, "SLURM_CONF": str(conf)})
    assert str(found.value) == said.format(conf=conf)


def test_files_that_do_not_serve_are_refused(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(BadConfigurationError, match="No such file"):
        find({**environ, "SLURM_CONF": str(tmp_path / "absent.conf")})
    (tmp_path / "empty.conf").write_text("ClusterName=x\n")
    with pytest.raises(BadConfigurationError, match="No SlurmctldHost defined"):
        find({**environ, "SLURM_CONF": str(tmp_path / "empty.conf")})
    (tmp_path / "nameless.conf").write_text("SlurmctldHost=h\nNodeName=n1\n")
    with pytest.raises(BadConfigurationError, match="ClusterName needs to be specified"):
        find({**environ, "SLURM_CONF": str(tmp_path / "nameless.conf")})
    with pytest.raises(NoClusterError):
        find(environ)


def test_damaged_and_foreign_entries_are_left_out(tmp_path: Path, environ: dict[str, str]) -> None:
    register(cluster(tmp_path, "good", 1.0))
    registry = tmp_path / "registry"
    (registry / "bad.json").write_text('{"name": "bad", "started": 9')
    (registry / "list.json").write_text("[1, 2]")
    (registry / "note.txt").write_text("{}")
    assert find(environ).name == "good"


@pytest.mark.parametrize(
    ("variables", "user", "folder"),
    [
        ({"UNDERSTUDY_REGISTRY": "/x"}, 0, "/x"),
        ({"XDG_RUNTIME_DIR": "/run/user/5"}, 5, "/run/user/5/understudy"),
    ],
)
def test_registries_are_per_user(variables: dict[str, str], user: int, folder: str) -> None:
    assert locate.own_registry(variables, user) == folder
    assert locate.own_registry({}, 0) == locate.SYSTEM_REGISTRY
