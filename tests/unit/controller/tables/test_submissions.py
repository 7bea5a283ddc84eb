"""What was submitted under which token."""

from __future__ import annotations

from understudy.controller.tables.submissions import LONGEST_TOKEN, MOST, Submissions


def test_a_token_tells_its_own_user_alone_which_job_was_made():
    table = Submissions()
    assert table.job_of(1, "a") is None
    assert table.note(1, "a", 7) == [(1, "a")]
    assert (table.job_of(1, "a"), table.job_of(2, "a"), table.job_of(1, "b")) == (7, None, None)


def test_no_token_and_one_that_no_command_makes_are_not_kept():
    table = Submissions()
    assert table.note(1, "", 7) == table.note(1, "x" * (LONGEST_TOKEN + 1), 8) == []
    assert table.job_of(1, "") is None
    assert table.job_of(1, "x" * (LONGEST_TOKEN + 1)) is None


def test_the_oldest_are_forgotten():
    table = Submissions()
    for number in range(MOST):
        table.note(1, f"{number}", number)
    assert table.note(1, "new", 5) == [(1, "new"), (1, "0")]
    assert (table.job_of(1, "0"), table.job_of(1, "1")) == (None, 1)
