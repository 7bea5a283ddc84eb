"""States of nodes and shares, from the controller to a run's folder and back.

Covers: experiments/watched.
"""

import pytest

from understudy.experiments.run_tables import RunError
from understudy.experiments.watched import NODES, SHARES, Nodes, Share, Watched
from understudy.protocol.messages import JobRuns


def test_what_was_told_is_written_and_read_again(tmp_path):
    seen = Watched()
    seen.add(JobRuns([], nodes=[(1000, 0, 0, 0, 0), (1010, 3, 0, 0, 0)]))
    seen.add(JobRuns([], nodes=[(1010, 3, 1, 0, 0), (1020, 2, 1, 1, 1)]))
    seen.add(JobRuns([], shares=[("a", "", 0.25), ("a", "ada", 0.25)]))
    for name, content in seen.since(1000).files().items():
        (tmp_path / name).write_bytes(content)
    read = Watched.read(tmp_path)
    # within a second the last counts
    assert read.nodes == [Nodes(0, 0, 0, 0, 0), Nodes(10, 3, 1, 0, 0), Nodes(20, 2, 1, 1, 1)]
    assert read.shares == [Share("a", "", 0.25), Share("a", "ada", 0.25)]


def test_of_what_is_not_known_there_is_no_file(tmp_path):
    assert Watched().files() == {}
    assert Watched.read(tmp_path).nodes == []


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (NODES, "", "line 1: expected at,allocated"),
        (NODES, "at,allocated,down,drained,off\n1,2,3,4\n", "line 2: 4 columns"),
        (NODES, "at,allocated,down,drained,off\n1,2,3,4,x\n", "line 2: could not convert"),
        (SHARES, "account,user,share\na,,much\n", "line 2: could not convert"),
    ],
)
def test_a_damaged_file_is_said_with_its_line(name, text, said, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(RunError, match=said):
        Watched.read(tmp_path)
