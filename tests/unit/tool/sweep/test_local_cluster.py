"""What a sweep's own cluster is started with; tests/e2e/test_sweeps.py starts it."""

import stat

import pytest

from understudy.tool.replay.folder import held
from understudy.tool.sweep import local_cluster
from understudy.tool.sweep.member import command, tls_options


def test_only_this_user_can_read_the_key(tmp_path):
    pytest.importorskip("distributed")
    security = local_cluster._security(tmp_path)
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    assert (tmp_path / "key.pem").read_text() == security.tls_scheduler_key
    assert security.require_encryption
    assert tls_options(tmp_path)[::2] == ["--tls-ca-file", "--tls-cert", "--tls-key"]


@pytest.mark.parametrize("text", ["", "{", "{}"])
def test_a_scheduler_that_has_not_said_all_has_no_address_yet(tmp_path, text):
    told = tmp_path / "scheduler.json"
    assert local_cluster._address(told) == ""
    told.write_text(text)
    assert local_cluster._address(told) == ""
    told.write_text('{"address": "tls://127.0.0.1:7"}')
    assert local_cluster._address(told) == "tls://127.0.0.1:7"


def test_members_are_started_by_their_kind():
    assert command("worker", ["--x"])[2:] == ["understudy.tool.sweep.member", "worker", "--x"]


def test_what_a_sweep_that_was_killed_has_left_is_removed_and_nothing_that_lives(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead, lives, unknown = (
        tmp_path / f"understudy-sweep-{name}" for name in ("dead", "lives", "unknown")
    )
    for folder in (dead, lives, unknown):
        folder.mkdir()
    with held(dead):
        pass
    (dead / "worker.log").touch()
    with held(lives):
        assert local_cluster.remove_dead() == [dead]
    assert sorted(tmp_path.iterdir()) == [lives, unknown]
