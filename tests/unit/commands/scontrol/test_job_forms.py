"""Many jobs as scontrol shows them, at once as one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from understudy.commands.scontrol import job_forms
from understudy.commands.scontrol.job_forms import COLUMNS, JobTexts
from understudy.commands.scontrol.records import job_lines, render
from understudy.model.records import JOBS

# what decides what else is shown, and what a place in a form must not be taken for
VALUES: dict[type, list[Any]] = {
    int: [0, 1, 3, 1800000000],
    str: ["", "n1", "a{b}", "{0} %s %", "x y"],
    list: [[], ["SPREAD_JOB"]],
    bool: [False, True],
    float: [0.0, 1.5],
}


def rows(count: int, *, of_a_kind: bool) -> list[list[Any]]:
    """Jobs that differ in all columns, or in two of them."""
    chance = random.Random(14)
    found = []
    drawn = {name: _draw(chance, name) for name in COLUMNS}
    for _ in range(count):
        changed = chance.sample(COLUMNS, 2) if of_a_kind else COLUMNS
        job = drawn | {name: _draw(chance, name) for name in changed}
        found.append([job[name] for name in COLUMNS])
    return found


def _draw(chance: random.Random, name: str) -> Any:
    if name == "cpu_freq":
        return chance.choice(["", "1000-2000:ondemand"])
    if JOBS[name].optional and chance.random() < 0.3:
        return None
    if name == "state":
        return chance.randrange(4)
    return chance.choice(VALUES[JOBS[name].kind])


@pytest.mark.parametrize("one_line", [True, False])
@pytest.mark.parametrize("of_a_kind", [True, False])
def test_jobs_are_shown_at_once_as_each_would_be(*, of_a_kind: bool, one_line: bool) -> None:
    texts = JobTexts(one_line=one_line)
    for row in rows(400, of_a_kind=of_a_kind):
        job = dict(zip(COLUMNS, row, strict=True))
        assert texts.text(row) == render(job_lines(job), one_line=one_line)


def test_where_none_are_alike_no_forms_are_made_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(job_forms, "_FEW", 10)
    monkeypatch.setattr(
        JobTexts, "_form", lambda _self, job: made.append(job) or ""  # type: ignore[func-returns-value]
    )  # fmt: skip
    texts = JobTexts(one_line=True)
    for row in rows(100, of_a_kind=False):
        texts.text(row)
    assert 10 <= len(made) <= 10 + 100 // 10
