"""Names of figures and axes in a sweep's file."""

import pytest

from understudy.experiments.sweep.file import SweepError, read_sweep
from understudy.experiments.sweep.names import check_names

BASE = """title = "t"
[workload]
trace = "t.swf"
[axes]
scheduler = ["easy"]
"""


def check(tmp_path, text, head=""):
    path = tmp_path / "sweep.toml"
    path.write_text(head + BASE + text)
    check_names(read_sweep(path))


@pytest.mark.parametrize(
    "picture",
    [
        'kind = "heat"\nx = "scheduler"\ny = "seed"',
        'kind = "lines"\nx = "seed"\nby = "scheduler"\nfigure = "speedup"',
        'kind = "pareto"\nx = "mean_wait"\ny = "utilization"\nmore = ["utilization"]',
    ],
)
def test_what_there_is_may_be_drawn(tmp_path, picture):
    check(tmp_path, f"[[pictures]]\n{picture}\n", 'figures = ["mean_wait", "usage"]\n')


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        ('kind = "heat"\nx = "schedular"\ny = "seed"', "no axis 'schedular' (is scheduler meant?)"),
        ('kind = "heat"\nx = "seed"', "no axis ''; there are scheduler, seed"),
        ('kind = "lines"\nx = "seed"\nfigure = "wait"', "no figure 'wait'"),
        ('kind = "lines"\nx = "seed"\nby = "execution"', "no axis 'execution'"),
        ('kind = "pareto"\nx = "mean_wait"\ny = "utilisation"', "is utilization meant?"),
    ],
)
def test_what_there_is_not_is_said_with_its_line(tmp_path, picture, said):
    with pytest.raises(SweepError) as raised:
        check(tmp_path, f"[[pictures]]\n{picture}\n")
    assert "line 6: pictures: " in str(raised.value)
    assert said in str(raised.value)


def test_a_column_that_is_none_is_said(tmp_path):
    with pytest.raises(SweepError, match="line 1: figures: no figure 'mean_wiat'"):
        check(tmp_path, "", 'figures = ["mean_wiat"]\n')
