"""Plans as permutations, against an implementation that looks at every instant.

Covers: controller/scheduling/plan_based/candidates, controller/scheduling/plan_based/annealing.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.planned import Hold, Work, best_score, nine_orders, plan, score, search
from scheduling_harness import finished

from understudy.controller.scheduling.plan_based import annealing
from understudy.controller.scheduling.plan_based.annealing import (
    Annealing,
    Descent,
    Found,
    accepted,
    best_of_all,
    best_of_candidates,
)
from understudy.controller.scheduling.plan_based.candidates import Size, candidates
from understudy.controller.scheduling.plan_based.sequence import Entry, Objective, Plans
from understudy.controller.scheduling.profile import Profile
from understudy.controller.scheduling.resources import Resources

CPUS, OTHER = 8, 10
KINDS = Resources({"cpus": CPUS, "bb": OTHER})
NOW = 50

works = st.builds(
    lambda submit, length, procs, other: (submit, length, procs, other),
    st.integers(0, NOW),
    st.integers(1, 30),
    st.integers(1, CPUS),
    st.integers(0, OTHER),
)
queues = st.lists(works, min_size=1, max_size=9).map(
    lambda rows: [
        Work(i, submit, length, length, procs, other)
        for i, (submit, length, procs, other) in enumerate(sorted(rows))
    ]
)


@st.composite
def machines(draw):
    """Who runs: what they hold fits, and each is expected to end later."""
    holds, cpus, other = [], CPUS, OTHER
    for _ in range(draw(st.integers(0, 4))):
        if not cpus:
            break
        hold = Hold(
            NOW - 1,
            NOW + draw(st.integers(1, 40)),
            draw(st.integers(1, cpus)),
            draw(st.integers(0, other)),
        )
        cpus, other = cpus - hold.procs, other - hold.other
        holds.append(hold)
    return holds


def need(work):
    return KINDS.need({"cpus": work.procs, "bb": work.other})


def profile(holds):
    free = {
        "cpus": CPUS - sum(hold.procs for hold in holds),
        "bb": OTHER - sum(hold.other for hold in holds),
    }
    return Profile.with_ends(
        NOW, [(hold.end, need(hold), 0) for hold in holds], KINDS, KINDS.free(free)
    )


def plans_of(holds, queue, power=2, kind="wait"):
    entries = [Entry(need(work), work.req, work.submit) for work in queue]
    return Plans(profile(holds), entries, Objective(kind, power))


def sizes_of(queue):
    return [Size(work.procs, work.other, work.req) for work in queue]


@given(machines(), queues, st.randoms(use_true_random=False), st.sampled_from([1, 2, 3]))
def test_each_order_is_placed_and_scored_as_by_looking_at_every_instant(holds, queue, rng, power):
    plans = plans_of(holds, queue, power)
    for _ in range(4):
        order = list(range(len(queue)))
        rng.shuffle(order)
        first = next(
            (i for i, (a, b) in enumerate(zip(order, plans.order, strict=False)) if a != b), 0
        )
        trial = plans.evaluate(order, first)
        plans.take(trial)
        expected = plan(holds, (CPUS, OTHER), [queue[i] for i in order], NOW)
        assert dict(enumerate(plans.starts)) == expected
        assert plans.score == score(queue, expected, power)


@given(machines(), queues)
def test_no_job_of_a_plan_could_begin_a_step_earlier(holds, queue):
    plans = plans_of(holds, queue)
    Found.of_queue(plans)
    kept = profile(holds)
    for number, entry in enumerate(plans.entries):
        start = plans.starts[number]
        for earlier in [when for when in kept.times if when < start]:
            least = kept.least(earlier, earlier + entry.length_s)
            assert not KINDS.fits(least, entry.need)
        kept.reserve(start, start + entry.length_s, entry.need)  # which looks whether it fits


@given(machines(), queues, st.randoms(use_true_random=False))
def test_a_trial_is_given_up_only_above_the_limit(holds, queue, rng):
    plans = plans_of(holds, queue)
    order = list(range(len(queue)))
    rng.shuffle(order)
    exact = plans.evaluate(order).score
    assert plans.evaluate(order, 0, exact).score == exact
    assert plans.evaluate(order, 0, exact - 1) is None
    assert plans.evaluate(order, 0, exact - 1, lambda: exact).score == exact


@settings(max_examples=30, deadline=None)
@given(machines(), queues.filter(lambda queue: len(queue) <= 5), st.sampled_from([1, 2, 3]))
def test_of_five_jobs_the_best_of_all_orders_is_found(holds, queue, power):
    found = best_of_all(plans_of(holds, queue, power), sizes_of(queue))
    assert found.score == best_score(holds, (CPUS, OTHER), queue, NOW, power)


@settings(max_examples=60, deadline=None)
@given(machines(), queues, st.integers(0, 99), st.sampled_from([1, 2, 3]))
def test_annealing_decides_as_another_implementation_with_the_same_draws(holds, queue, seed, power):
    mine, other = Random(seed), Random(seed)
    found = finished(Annealing().search(plans_of(holds, queue, power), sizes_of(queue), mine))
    assert dict(enumerate(found.starts)) == search(holds, (CPUS, OTHER), queue, NOW, power, other)
    assert mine.getstate() == other.getstate()


@settings(max_examples=40, deadline=None)
@given(machines(), queues, st.integers(0, 9))
def test_no_search_ends_worse_than_an_order_it_began_with(holds, queue, seed):
    orders = [
        score(queue, plan(holds, (CPUS, OTHER), order, NOW), 2) for order in nine_orders(queue)
    ]
    sizes = sizes_of(queue)
    annealed = finished(Annealing().search(plans_of(holds, queue), sizes, Random(seed)))
    assert annealed.score <= min(orders)
    descended = finished(Descent(10, 20).search(plans_of(holds, queue), sizes, Random(seed)))
    assert descended.score <= orders[0] == descended.before


def is_the_same_if_all_is_placed_each_time(holds, queue, seed, power):
    """Whether a descent that remembers orders decides and draws as one that does not."""

    def placed_each_time(plans, order, first, temperature, rng, known):
        return accepted(plans, order, first, temperature, rng)

    def run():
        rng, plans = Random(seed), plans_of(holds, queue, power)
        found = finished(Descent(20, 20).search(plans, sizes_of(queue), rng))
        return found, plans.order, plans.evaluations, rng.getstate()

    mine = run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annealing, "accepted", placed_each_time)
        return run() == mine


@settings(max_examples=40, deadline=None)
@given(machines(), queues, st.integers(0, 9), st.sampled_from([1, 2]))
def test_what_a_descent_knows_of_orders_changes_nothing_but_the_time(holds, queue, seed, power):
    assert is_the_same_if_all_is_placed_each_time(holds, queue, seed, power)


@pytest.mark.parametrize("seed", [3, 80, 107])
def test_what_was_given_up_may_be_taken_when_the_walk_has_gone_up(seed):
    rng = Random(seed)
    count, longest = rng.randint(5, 9), rng.randint(1, 3)
    queue = [
        Work(i, NOW, 0, rng.randint(1, longest), rng.randint(1, CPUS), 0) for i in range(count)
    ]
    assert is_the_same_if_all_is_placed_each_time([], queue, seed, 1)


@given(queues)
def test_the_nine_orders_are_those_of_the_paper(queue):
    assert [[queue[i] for i in order] for order in candidates(sizes_of(queue))] == nine_orders(
        queue
    )


def test_the_best_of_the_nine_is_the_first_of_equals():
    queue = [Work(i, 0, 10, 10, 4, 0) for i in range(6)]
    found, worst = finished(best_of_candidates(plans_of([], queue), sizes_of(queue)))
    assert found.order == [0, 1, 2, 3, 4, 5]
    assert found.score == worst


@pytest.mark.parametrize("kind", ["start", "makespan"])
def test_the_latest_start_or_end_may_be_what_counts(kind):
    queue = [Work(0, 0, 10, 10, 4, 0), Work(1, 0, 30, 30, 8, 0), Work(2, 0, 10, 10, 4, 0)]
    found = best_of_all(plans_of([], queue, kind=kind), sizes_of(queue))
    assert found.score == {"start": NOW + 10, "makespan": NOW + 40}[kind]


def test_a_job_waits_for_the_instant_before_which_it_may_not_start():
    entries = [Entry(KINDS.need({"cpus": 8}), 10, 0, NOW + 3), Entry(KINDS.need({"cpus": 8}), 4, 0)]
    plans = Plans(profile([]), entries, Objective())
    Found.of_queue(plans)
    assert plans.starts == [NOW + 3, NOW + 13]
    plans.take(plans.evaluate([1, 0]))
    assert plans.starts == [NOW + 4, NOW]
    assert plans.alone == [NOW + 3, NOW]


def test_a_heavier_wait_counts_more():
    entries = [Entry(KINDS.need({"cpus": 8}), 10, NOW, 0, weight) for weight in (1, 5)]
    plans = Plans(profile([]), entries, Objective("wait", 1))
    sizes = [Size(8, 0, 10)] * 2
    assert best_of_all(plans, sizes).starts == [NOW + 10, NOW]


@pytest.mark.parametrize("count", [3, 8])
@pytest.mark.parametrize("kind", [Annealing(), Descent(5, 10)])
def test_nobody_is_planned_ahead_of_a_higher_rank_where_both_want_all(kind, count):
    queue = [Work(i, 0, 40 - i, 40 - i, 8, 0) for i in range(count)]
    sizes = [Size(8, 0, 40 - i, rank=i // 2) for i in range(count)]
    found = finished(kind.search(plans_of([], queue), sizes, Random(3)))
    ranks = [sizes[number].rank for number in found.order]
    assert ranks == sorted(ranks)
