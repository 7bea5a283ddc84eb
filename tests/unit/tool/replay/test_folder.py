"""A replay's run directory goes with the replay; what others left is removed, and nothing that
lives.

Covers: tool/cluster/if_killed.
"""

from pathlib import Path

import pytest

from understudy.tool.replay.folder import remove_stale, replay_dir


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("UNDERSTUDY_REGISTRY", str(tmp_path / "registry"))
    return folder


def test_nothing_is_left_of_a_replay_that_went_well(temporary, tmp_path):
    with replay_dir(tmp_path / "out") as replay:
        (replay.path / "logs" / "controller.log").write_text("well")
        assert (tmp_path / "out" / "logs" / "controller.log").exists()
    assert list(temporary.iterdir()) == []
    assert list((tmp_path / "out").iterdir()) == []


def test_one_without_results_keeps_its_logs_to_itself(temporary):
    with replay_dir(None) as replay:
        assert (replay.path / "logs").is_dir()
        replay.has_failed = True
    assert list(temporary.iterdir()) == []


def test_the_logs_of_one_that_failed_stay_until_the_next_one_and_other_files_for_ever(
    temporary, tmp_path
):
    logs = tmp_path / "out" / "logs"

    def fail() -> None:
        with replay_dir(tmp_path / "out") as replay:
            (replay.path / "logs" / "noded0.log").write_text("ill")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    with replay_dir(tmp_path / "elsewhere") as replay:
        (replay.path / "logs" / "clock.log").write_text("ill")
        replay.has_failed = True
    assert list(temporary.iterdir()) == []
    assert (logs / "noded0.log").read_text() == "ill"
    assert (tmp_path / "elsewhere" / "logs" / "clock.log").read_text() == "ill"
    (logs / "mine.log").touch()
    with replay_dir(tmp_path / "out"):
        assert [path.name for path in logs.iterdir()] == ["mine.log"]
    assert [path.name for path in logs.iterdir()] == ["mine.log"]


def test_a_replay_that_lives_and_folders_of_which_nobody_knows_are_left_alone(temporary, tmp_path):
    unknown = temporary / "understudy-replay-unknown"
    unknown.mkdir()
    elsewhere = tmp_path / "mine"
    elsewhere.mkdir()
    (elsewhere / "replaying").touch()
    (temporary / "understudy-replay-link").symlink_to(elsewhere)
    with replay_dir(tmp_path / "out") as replay:
        assert remove_stale(temporary) == []
        assert replay.path.is_dir()
    assert unknown.is_dir()
    assert (elsewhere / "replaying").exists()


def test_a_folder_has_its_lock_from_the_moment_at_which_the_lock_has_its_name(
    tmp_path, monkeypatch
):
    """Two replays that start together: the one must not take the other's folder for stale."""
    seen = []
    rename = Path.rename

    def look_and_rename(self, target):
        removed = remove_stale(Path(self).parents[1])
        seen.append(removed)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", look_and_rename)
    with replay_dir(tmp_path / "out") as replay:
        assert replay.path.is_dir()
        assert replay.path not in remove_stale(replay.path.parent)
    assert seen
    assert all(replay.path not in removed for removed in seen)
