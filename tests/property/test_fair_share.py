"""Properties of use, decay and ranks, over many trees and histories."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.controller.priority.api import Share
from understudy.controller.priority.classic import ClassicShares
from understudy.controller.priority.fair_share import fair_tree, level_fair_share
from understudy.controller.priority.tree import ShareTree
from understudy.controller.priority.usage import Ledger


@st.composite
def trees(draw: st.DrawFn) -> tuple[ShareTree, np.ndarray]:
    """A tree of accounts and users, parents first, and what each association used."""
    rows = [Share(1, 0, "root", "")]
    accounts = [1]
    for number in range(2, draw(st.integers(3, 25))):
        parent = draw(st.sampled_from(accounts))
        is_user = draw(st.booleans())
        shares = draw(st.one_of(st.none(), st.integers(0, 4)) if is_user else st.integers(0, 4))
        rows.append(
            Share(
                number,
                parent,
                f"a{parent if is_user else number}",
                f"u{number}" if is_user else "",
                shares,
            )
        )
        if not is_user:
            accounts.append(number)
    made = ShareTree(rows)
    own = [draw(st.integers(0, 3)) * 10.0 if row.user else 0.0 for row in rows]
    return made, made.summed(np.array(own))


def walked(tree: ShareTree, use: np.ndarray) -> list[float]:
    """Fair Tree as the documentation tells it: sort, walk depth first, count down."""
    level = level_fair_share(tree, use)
    count = len(tree.users)
    factors = [0.0] * len(use)
    children: dict[int, list[int]] = {}
    with_users = set(tree.paths.ravel().tolist())
    for place, parent in enumerate(tree.parent.tolist()):
        if place in with_users:
            children.setdefault(parent, []).append(place)
    rank = shared = count

    def visit(places: list[int], *, has_tied: bool) -> None:
        nonlocal rank, shared
        ordered = sorted(places, key=lambda place: (-level[place], not tree.is_user[place]))
        at = 0
        while at < len(ordered):
            place = ordered[at]
            tied = has_tied if at == 0 else level[place] == level[ordered[at - 1]]
            if tree.is_user[place]:
                if not tied:
                    shared = rank
                factors[place] = shared / count
                rank -= 1
                at += 1
                continue
            same = [other for other in ordered[at:] if level[other] == level[place]]
            visit([child for other in same for child in children[other]], has_tied=tied)
            at += len(same)

    if count:
        visit(children.get(0, []), has_tied=False)
    return factors


@given(trees())
def test_one_sort_ranks_as_the_walk_does(made: tuple[ShareTree, np.ndarray]) -> None:
    tree, use = made
    assert np.allclose(fair_tree(tree, use), walked(tree, use))


@given(trees())
def test_all_users_of_a_better_account_come_before_all_of_a_worse_one(
    made: tuple[ShareTree, np.ndarray],
) -> None:
    tree, use = made
    level, factors = level_fair_share(tree, use), fair_tree(tree, use)
    for one in range(len(tree.users)):
        for other in range(len(tree.users)):
            for a, b in zip(tree.paths[one], tree.paths[other], strict=True):
                if a < 0 or b < 0 or level[a] < level[b]:
                    break
                if level[a] > level[b]:
                    assert factors[tree.users[one]] > factors[tree.users[other]]
                    break


@given(trees())
def test_factors_are_between_0_and_1_and_somebody_is_first(
    made: tuple[ShareTree, np.ndarray],
) -> None:
    tree, use = made
    assert ((fair_tree(tree, use) >= 0) & (fair_tree(tree, use) <= 1)).all()
    for is_depth_oblivious in (False, True):
        classic = ClassicShares(tree, is_depth_oblivious=is_depth_oblivious)
        classic.begin(use)
        for place in tree.users.tolist():
            classic.update(place, float(use[place]), float(use[0]))
        assert all(0 <= classic.factor(place) <= 1 for place in range(len(use)))
    if len(tree.users):
        assert fair_tree(tree, use).max() == 1.0


class Plain:
    """What `Ledger` does, period by period and job by job."""

    def __init__(self, period_s: int, half_life_s: int) -> None:
        self.period_s, self.last, self.use = period_s, 0, [0.0, 0.0]
        self.decay = 1 - 0.693 / half_life_s if half_life_s else 1.0
        self.jobs: dict[int, tuple[int, float, int]] = {}

    def advance(self, now: int) -> None:
        while self.last + self.period_s <= now:
            end = self.last + self.period_s
            self.use = [each * self.decay**self.period_s for each in self.use]
            for place, rate, start in self.jobs.values():
                seconds = end - max(start, self.last)
                self.use[place] += rate * seconds * self.decay**seconds
            self.last = end


@given(
    st.sampled_from([60, 300]),
    st.sampled_from([0, 120, 604_800]),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 1), st.integers(0, 6)), max_size=12),
)
def test_any_number_of_periods_in_one_step_are_as_if_each_had_run(
    period_s: int, half_life_s: int, events: list[tuple[int, int, int]]
) -> None:
    quick, plain = (
        Ledger(2, origin=0, period_s=period_s, half_life_s=half_life_s),
        Plain(period_s, half_life_s),
    )
    now = 0
    for wait, place, job_id in events:
        now += wait
        quick.advance(now)
        plain.advance(now)
        if job_id in plain.jobs:
            del plain.jobs[job_id]
            quick.end(job_id)
        else:
            plain.jobs[job_id] = (place, 1.0 + job_id, now)
            quick.begin(job_id, place, 1.0 + job_id, now)
    quick.advance(now + 10 * period_s)
    plain.advance(now + 10 * period_s)
    assert quick.last == plain.last
    assert np.allclose(quick.use, plain.use, rtol=1e-9, atol=1e-9)
