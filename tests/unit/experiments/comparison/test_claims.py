"""Claims, the cells that they are made of, and what a page says of them.

Covers: experiments/comparison/cells, experiments/comparison/claims.
"""

import pytest

from understudy.experiments.comparison.cells import (
    Cell,
    Drawn,
    Pair,
    Row,
    by_policy,
    cells,
    chosen,
    key,
    ratios,
)
from understudy.experiments.comparison.claims import FAILS, HOLDS, NOT_RUN, OPEN, judge
from understudy.experiments.comparison.comparison import (
    Claim,
    Comparison,
    Form,
    Policy,
    Workload,
)

YEAR, DAY = Workload("year", "year.swf"), Workload("day", "day.swf")
POLICIES = (Policy("a", "easy"), Policy("b", "plan", "plan_seed={seed},plan_depth=1"))
BOTH = Comparison(
    "title", "asks", "a", (YEAR, DAY), POLICIES, Form(jobs=5), Form((1, 2), (1, 2)), ("mean_wait",)
)


def rows(**waits):
    """Rows of each policy on `year`, a seed a value; "" for a cell that failed."""
    return [
        Row(Pair("year", seed, 0), policy, {"mean_wait": wait, "max_wait": 7.0}, f"hash{wait}")
        if wait != ""
        else Row(Pair("year", seed, 0), policy, failed="exit code 1")
        for policy, some in waits.items()
        for seed, wait in enumerate(some, 1)
    ]


def verdict(found, **claim):
    of = judge(Claim("text", "a", **claim), found, "year")
    return of.word, of.found


def test_seeds_come_first_so_that_what_is_interrupted_can_be_compared():
    wanted = cells(BOTH, BOTH.full)
    assert len(wanted) == 2 * 2 * 2 * 2
    assert [(each.drawn.seed, each.drawn.part) for each in wanted[:5]] == [(1, 1)] * 4 + [(1, 2)]
    assert [each.policy.name for each in wanted[:2]] == ["a", "b"]


def test_a_form_may_have_some_policies_and_workloads_and_the_user_others():
    some = Form(policies=("b",), workloads=("day",))
    assert [each.name for each in cells(BOTH, some)] == ["b on day, seed 1"]
    more = chosen(some, seeds=(4, 5), parts=None, jobs=9)
    assert [each.name for each in cells(BOTH, more)] == ["b on day, seed 4", "b on day, seed 5"]
    assert more.jobs == 9


def test_a_cell_has_its_seed_in_the_parameters_and_another_key_for_all_that_matters():
    one, two = (Cell(Drawn(YEAR, seed, 0, 0), POLICIES[1]) for seed in (1, 2))
    assert two.parameters == "plan_seed=2,plan_depth=1"
    keys = {key(one, "sha", 8), key(two, "sha", 8), key(one, "other", 8), key(one, "sha", 9)}
    assert len(keys) == 4
    alike = Cell(Drawn(DAY, 1, 3, 0), Policy("c", "plan", "plan_seed=1,plan_depth=1"))
    assert key(alike, "sha", 8) == key(one, "sha", 8)


def test_ratios_are_within_pairs_and_leave_out_zeros():
    found = by_policy(rows(a=[10.0, 0.0, 30.0], b=[20.0, 20.0, 10.0, 5.0]), "year")
    assert ratios(found["a"], found["b"], "mean_wait") == [0.5, 3]


def test_a_claim_on_each_pair():
    found = rows(a=[10.0, 12.0], b=[20.0, 11.0])
    assert verdict(found, to="b", most=1.1)[0] == HOLDS
    assert verdict(found, to="b", most=1)[0] == FAILS
    assert verdict(found, least=10, most=12) == (HOLDS, "11.00 (2 pairs, 10.00 to 12.00)")


def test_a_ranking_needs_an_interval_that_carries_it():
    close = rows(a=[9.9, 10.2, 9.7], b=[10.0, 10.0, 10.0])
    clear = rows(a=[5.0, 5.5, 5.2], b=[10.0, 10.0, 10.0])
    ranking = {"to": "b", "over": "mean", "most": 1, "ranks": True}
    assert verdict(close, **ranking)[0] == OPEN
    assert verdict(clear, **ranking)[0] == HOLDS
    assert verdict(rows(a=[5.0], b=[10.0]), **ranking) == (OPEN, "0.500 (1 pair)")
    # the other way round: it is not so, and the spread says that it is not
    other = ranking | {"most": None, "least": 1}
    assert verdict(clear, **other)[0] == FAILS
    assert verdict(close, **other)[0] == OPEN


def test_of_many_rankings_each_needs_a_wider_interval():
    found = rows(a=[9.0, 9.5, 9.2], b=[10.0, 10.0, 10.0])
    ranking = Claim("text", "a", to="b", over="mean", most=1, ranks=True)
    assert judge(ranking, found, "year").word == HOLDS
    of_ten = judge(ranking, found, "year", 10)
    assert of_ten.word == OPEN
    assert "99.5 % interval" in of_ten.found
    plain = Claim("text", "a", to="b", over="mean", most=1)
    assert judge(plain, found, "year", 10).word == HOLDS


def test_a_median_has_an_interval_from_five_pairs_on():
    found = rows(a=[5.0, 6.0, 6.5, 7.0, 30.0], b=[10.0] * 5)
    word, said = verdict(found, to="b", over="median", most=0.85)
    assert word == HOLDS
    assert said.startswith("0.650 (5 pairs, 0.500 to 3.000; 95 % interval 0.")
    assert verdict(found, to="b", over="median", most=0.85, ranks=True)[0] == OPEN


def test_of_several_others_the_median_of_each_pair_is_taken():
    found = rows(a=[10.0], b=[10.0], c=[20.0], d=[40.0])
    assert verdict(found, to=("b", "c", "d"), most=0.5) == (HOLDS, "0.500 (1 pair)")


def test_schedules_are_the_same_or_not():
    found = rows(a=[1.0, 2.0], b=[1.0, 2.5])
    assert verdict(found, to="b", same_schedule=True) == (FAILS, "1 of 2 pairs")
    assert verdict(found[:1] + found[2:], to="b", same_schedule=True) == (HOLDS, "1 of 1 pair")


@pytest.mark.parametrize("found", [rows(a=[1.0]), rows(b=[1.0]), rows(a=[""], b=[1.0])])
def test_a_cell_that_is_missing_leaves_the_claim_unlooked_at(found):
    assert verdict(found, to="b", most=1) == (NOT_RUN, "")


def test_a_ratio_to_nothing_decides_nothing():
    assert verdict(rows(a=[1.0], b=[0.0]), to="b", most=1)[0] == OPEN
