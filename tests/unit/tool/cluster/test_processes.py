"""Pid files. How processes are ended is in tests/e2e/test_processes.py."""

import pytest

from understudy.tool.cluster.processes import Process, read_pid_file, recorded


def test_a_pid_file_names_a_process_by_pid_and_start_time(tmp_path):
    (tmp_path / "controller.pid").write_text("17 4711\n")
    assert read_pid_file(tmp_path / "controller.pid") == Process("controller", 17, 4711)


@pytest.mark.parametrize("content", ["", "17", "17 x\n", "one two three"])
def test_a_pid_file_that_says_nothing_sensible_means_nobody(tmp_path, content):
    (tmp_path / "controller.pid").write_text(content)
    assert read_pid_file(tmp_path / "controller.pid") is None


def test_pid_files_are_read_in_the_order_of_their_names(tmp_path):
    for name in ("noded1", "agent", "noded0"):
        (tmp_path / f"{name}.pid").write_text("17 4711\n")
    assert [process.name for process in recorded(tmp_path)] == ["agent", "noded0", "noded1"]
