"""Keys and the files beside them, as daemons find them at their start."""

import pytest

from understudy.auth.handshake import AuthError
from understudy.auth.keys import check_folder, create_key, read_key


def test_a_key_that_others_may_read_is_refused(tmp_path):
    create_key(tmp_path / "key")
    assert len(read_key(tmp_path / "key")) == 32
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(AuthError, match="may be read by others: chmod 600 it"):
        read_key(tmp_path / "key")


@pytest.mark.parametrize("name", [".", "cluster.json", "slurm.conf", "state"])
def test_a_run_directory_that_everybody_may_write_is_refused(tmp_path, name):
    for file in ("cluster.json", "slurm.conf"):
        (tmp_path / file).write_text("")
    (tmp_path / "state").mkdir()
    check_folder(tmp_path)
    (tmp_path / name).chmod(0o777)
    with pytest.raises(AuthError, match="may be written by everybody: chmod o-w it"):
        check_folder(tmp_path)
