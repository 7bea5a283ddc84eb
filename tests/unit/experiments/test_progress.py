"""The line that says how far a replay is."""

import io

from understudy.experiments.progress import Progress


class Wall:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_plain_lines_come_now_and_then_and_at_the_end():
    out, wall = io.StringIO(), Wall()
    with Progress(out=out, wall=wall, zero=lambda: 1000.0, is_terminal=False) as progress:
        wall.now = 101.0
        progress.update(10, 1000, 1000.0 + 86_400)
        wall.now = 110.0
        progress.update(100, 1000, 1000.0 + 2 * 86_400)
        wall.now = 120.0
        progress.update(1000, 1000, 1000.0 + 20 * 86_400)
    assert out.getvalue().splitlines() == [
        "100 of 1,000 jobs, day 2.0, 10 jobs/s, 90 s left",
        "1,000 of 1,000 jobs, day 20.0, 50 jobs/s, waiting for the last to end",
    ]


def test_a_run_that_is_cut_short_still_says_how_far_it_came():
    out, wall = io.StringIO(), Wall()
    with Progress(out=out, wall=wall, is_terminal=False) as progress:
        wall.now = 101.0
        progress.update(3, 40_000, 0.0)
    assert out.getvalue() == "3 of 40,000 jobs, 3 jobs/s, 3 h 42 min left\n"


def test_a_terminal_gets_a_bar():
    out, wall = io.StringIO(), Wall()
    with Progress(out=out, wall=wall, is_terminal=True) as progress:
        wall.now = 101.0
        progress.update(50, 100, 0.0)
    assert "50 of 100 jobs" in out.getvalue()
    assert "50%" in out.getvalue()
