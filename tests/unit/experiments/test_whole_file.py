"""Files that are written whole or not at all."""

import os
import threading

import pytest

from understudy.experiments.whole_file import write_whole


def test_an_earlier_file_is_replaced_where_a_link_leads_to_it(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"earlier")
    link.symlink_to(path)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_a_pipe_is_written_and_stays_a_pipe(tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"new")
    reader.join()
    assert found == [b"new"]
    assert pipe.is_fifo()


def test_what_cannot_be_written_leaves_nothing(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "file", tmp_path / ("n" * 300)):
        with pytest.raises(OSError, match=str(tmp_path)):
            write_whole(path, b"new")
    assert not list(tmp_path.iterdir())
