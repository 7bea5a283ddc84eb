"""A run directory belongs to one cluster and one command at a time, and what an ended cluster left
is recognised.
"""

import os
import socket
import tempfile
from pathlib import Path

import pytest

from understudy.commands.shared import locate
from understudy.model.cluster import Cluster
from understudy.tool.cluster.processes import identify
from understudy.tool.cluster.run_dir import (
    SOCKET_PATH_BYTES,
    LaunchError,
    check_port,
    clear_stale,
    exclusive,
    make_socket_folder,
    remove_traces,
    running,
    socket_folder,
)


@pytest.fixture
def short(monkeypatch):
    """A folder whose path leaves room for a socket's; pytest's own may not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERSTUDY_REGISTRY", str(tmp_path / "registry"))


def write_pid(run_dir: Path, name: str, pid: int, start_time: int) -> None:
    (run_dir / f"{name}.pid").write_text(f"{pid} {start_time}\n")


def test_a_second_command_on_a_run_directory_is_told_to_wait(tmp_path):
    with (
        exclusive(tmp_path),
        pytest.raises(LaunchError, match="another understudy command"),
        exclusive(tmp_path),
    ):
        pass
    with exclusive(tmp_path):
        pass


def test_a_running_cluster_is_named_with_its_controllers_pid(tmp_path):
    me = identify("me", os.getpid())
    write_pid(tmp_path, "agent", me.pid, me.start_time)
    write_pid(tmp_path, "controller", me.pid, me.start_time)
    with pytest.raises(LaunchError, match=rf"already running: controller, pid {me.pid}\."):
        clear_stale(tmp_path)
    assert len(running(tmp_path)) == 2


def test_what_a_dead_cluster_left_is_named_and_removed(tmp_path):
    me = identify("me", os.getpid())
    write_pid(tmp_path, "controller", me.pid, me.start_time - 1)  # somebody else has the pid now
    (tmp_path / "controller.sock").touch()
    (tmp_path / "key").touch()
    assert clear_stale(tmp_path) == [f"controller (pid {me.pid})"]
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_an_ended_cluster_leaves_the_registry(tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    Cluster("tux", "slurm.conf").save(run_dir)
    locate.register(locate.Location(name="tux", run_dir=str(run_dir)))
    assert locate.latest() is not None
    remove_traces(run_dir)
    assert locate.latest() is None


def test_a_busy_port_is_named_with_who_asked_for_it():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(LaunchError, match=rf"port {port} \(SlurmctldPort in site\.conf\)"):
            check_port(port, "SlurmctldPort in site.conf")


def test_sockets_are_in_the_run_directory_if_its_path_is_short(tmp_path):
    run_dir = Path("/r")
    assert make_socket_folder(run_dir) == run_dir


def test_sockets_of_a_long_run_directory_have_a_short_one_of_its_owner_that_goes_with_the_cluster(
    short, tmp_path, monkeypatch
):
    run_dir = tmp_path / ("x" * SOCKET_PATH_BYTES)
    run_dir.mkdir()
    folder = make_socket_folder(run_dir)
    assert folder.parent == short
    assert folder.stat().st_mode & 0o777 == 0o755
    assert make_socket_folder(run_dir) == folder
    (folder / "controller.sock").touch()
    Cluster("tux", "slurm.conf", controller_unix=f"unix:{folder}/controller.sock").save(run_dir)
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    remove_traces(run_dir)
    assert not folder.exists()


def test_sockets_have_a_short_path_also_where_the_folder_for_temporary_files_has_a_long_one(
    tmp_path, monkeypatch
):
    long = tmp_path / ("long" * 30)
    long.mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    folder = socket_folder(long / "run")
    assert len(str(folder / "controller.sock")) < SOCKET_PATH_BYTES
    assert folder.parent == Path("/tmp")


def test_a_short_folder_in_which_others_can_write_is_refused(short):
    run_dir = Path("/" + "x" * SOCKET_PATH_BYTES)
    make_socket_folder(run_dir).chmod(0o775)
    with pytest.raises(LaunchError, match="belongs to somebody else"):
        make_socket_folder(run_dir)
