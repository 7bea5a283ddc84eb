"""sched/plan on clusters without daemons.

Covers: controller/scheduling/plan_based/planning, controller/scheduling/plan_based/settings,
controller/scheduling/plan_based/supply, controller/scheduling/plan_based/waiting.
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.planned import Work, plan_based
from scheduling_harness import World, node, table, table_of, tables_of

from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.plan_based.policy import PlanBased
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.textbook.fcfs import Fcfs
from understudy.controller.tables.licenses import LicensePool
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.reservation import Reservation
from understudy.model import nodeset
from understudy.model.errors import ConfigError

ANY_CPU = SelectConsTres(frozenset({"CR_CPU"}))


def world(nodes=4, other=0, policy=PlanBased, **parameters):
    tables = tables_of(table(nodes))
    if other:
        tables.licenses = LicensePool({"bb": other})
    words = {key: str(value) for key, value in parameters.items()}
    return World(tables, policy, ANY_CPU, words, check=True)


def submit(w, *jobs):
    """(submission, run time, processors, bb), the run time also asked for."""
    for at, run_s, cpus, *other in jobs:
        licenses = f"bb:{other[0]}" if other and other[0] else ""
        w.submit(at=at, run_s=run_s, limit_s=run_s, cpus=cpus, licenses=licenses)


FOUR = ((0, 10, 2, 2), (1, 10, 3, 6), (2, 20, 1, 6), (3, 5, 1, 1))


@pytest.mark.parametrize(
    ("power", "starts"), [(1, {1: 0, 2: 22, 3: 2, 4: 3}), (2, {1: 0, 2: 10, 3: 20, 4: 3})]
)
def test_four_jobs_start_as_worked_out_by_hand(power, starts):
    w = world(other=10, plan_alpha=power)
    submit(w, *FOUR)
    w.run()
    assert w.starts == starts


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 2, 3]), st.booleans())
def test_a_random_workload_starts_as_another_implementation_says(case, power, has_other):
    rng = Random(case)
    jobs = []
    for number in range(1, rng.choice((8, 16, 25))):
        run = rng.randint(1, 60)
        jobs.append(
            Work(
                number,
                rng.randint(0, 200),
                run,
                run + rng.choice((0, 0, 7, 100)),
                rng.randint(1, 6),
                rng.choice((0, rng.randint(0, 10))) if has_other else 0,
            )
        )
    jobs.sort(key=lambda job: job.submit)
    jobs = [Work(i, *[getattr(job, key) for key in ("submit", "run", "req", "procs", "other")])
            for i, job in enumerate(jobs, 1)]  # fmt: skip
    w = world(6, other=10 if has_other else 0, plan_alpha=power, plan_seed=case)
    for job in jobs:
        w.submit(
            at=job.submit,
            run_s=job.run,
            limit_s=job.req,
            cpus=job.procs,
            licenses=f"bb:{job.other}" if job.other else "",
        )
    w.run()
    assert w.starts == plan_based(jobs, (6, 10), power, seed=case)


def test_the_same_seed_gives_the_same_schedule_and_another_one_may_not():
    def starts(seed):
        rng = Random(5)
        w = world(8, plan_seed=seed)
        submit(w, *((rng.randint(0, 60), rng.randint(1, 60), rng.randint(1, 8)) for _ in range(25)))
        w.run()
        return w.starts

    assert starts(1) == starts(1)
    assert any(starts(1) != starts(seed) for seed in range(2, 6))


def test_one_waiting_job_after_the_other_is_first_come_first_served():
    jobs = [(at, 10, cpus) for at, cpus in ((0, 3), (1, 2), (12, 4), (30, 4), (31, 4))]
    results = []
    for policy in (PlanBased, Fcfs):
        w = world(4, policy=policy)
        submit(w, *jobs)
        w.run()
        results.append(w.starts)
    assert results[0] == results[1]


@given(
    st.lists(
        st.tuples(st.just(0), st.integers(1, 50), st.integers(1, 4), st.integers(0, 10)),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=50, deadline=None)
def test_with_exact_limits_and_no_arrivals_the_queues_plan_is_kept_to_the_end(jobs):
    w = world(4, other=10, plan_search="none")
    submit(w, *jobs)
    w.run()
    for number, start in w.starts.items():
        assert {when for _, when in w.promises.get(number, []) if when is not None} <= {start}


@pytest.mark.parametrize("search", ["none", "random", "annealing"])
def test_a_kept_plan_without_search_never_moves_a_job_back(search):
    rng = Random(11)
    w = world(8, plan_search=search, plan_keep="", plan_tries=0, plan_steps=0)
    for _ in range(80):
        run = rng.randint(1, 60)
        w.submit(at=rng.randint(0, 200), run_s=run, limit_s=run + rng.randint(0, 60),
                 cpus=rng.randint(1, 8))  # fmt: skip
    w.run()
    moves = 0
    for number, told in w.promises.items():
        starts = [when for _, when in told if when is not None]
        moves += len(starts) - 1
        if search != "annealing":  # which also looks at eight other orders
            assert starts == sorted(starts, reverse=True)
            assert w.starts[number] <= starts[-1]
    assert moves > 10


def test_zhengs_plan_orders_the_queue_and_backfilling_does_the_rest():
    def starts(search):
        w = world(4, plan_search=search, plan_alpha=1, plan_moves=10)
        # the last one would delay all those of two seconds, behind which a plan puts it, but not
        # the head
        submit(w, (0, 10, 2), (1, 1, 3), *[(1, 2, 4)] * 8, (2, 20, 1))
        w.run()
        return w.starts

    assert starts("annealing")[11] >= 18
    assert starts("zheng")[11] == 2
    assert starts("zheng")[2] == 10


def test_the_deepest_jobs_are_planned_first():
    jobs = [(0, 10, 2), (1, 10, 4), (2, 20, 2), (2, 20, 2)]
    w = world(4, plan_depth=1, plan_alpha=1)
    submit(w, *jobs)
    w.run()
    assert w.starts[2] == 10
    w = world(4, plan_depth=0, plan_alpha=1)
    submit(w, *jobs)
    w.run()
    assert w.starts[2] > 10


def starved(w):
    """A large job, and small ones without end for which it would wait."""
    submit(w, (0, 10, 3), (1, 1000, 4), *((at, 15, 2) for at in range(2, 400, 7)))
    w.run()
    return w.starts[2]


def test_who_has_waited_for_the_bound_is_planned_first():
    assert starved(world(4, plan_alpha=1)) > 300
    assert starved(world(4, plan_alpha=1, plan_bound=60)) <= 61 + 15


def test_by_default_the_bound_is_a_week():
    day = 86_400

    def waited(**words):
        w = world(4, plan_alpha=1, **words)
        small = ((at * day // 2, 3 * day, 2) for at in range(1, 60))
        submit(w, (0, day, 3), (1, 90 * day, 4), *small)
        w.run()
        return w.starts[2]

    assert waited(plan_bound=0) > 30 * day
    assert 7 * day < waited() <= 7 * day + 3 * day + 2


def slices(w, at, between):
    """One pass, with somebody else's turn in between; how many there were."""
    turns = 0
    for _ in w.policy.run(at):
        turns += 1
        between(turns)
    return turns


def long_queue(**words):
    """A full machine, and jobs of all lengths that wait for half of it, which comes free at 10."""
    w = world(4, **words)
    submit(w, (0, 10, 2), (0, 500, 2), *((1, 7 * i, 1 + i % 2) for i in range(1, 12)))
    w.run(until=9)
    w.call(10, lambda: None)
    return w


@pytest.mark.parametrize("search", ["annealing", "zheng"])
def test_a_search_lets_others_have_their_turn_and_ends_as_it_would_without(search):
    words = {"plan_search": search, "plan_steps": "4"}
    alone, w = long_queue(**words), long_queue(**words)
    alone.run(until=10.9)
    w.run(until=10.1)
    assert slices(w, w.policy.next_run(), lambda turn: None) > 20
    assert w.starts == alone.starts
    assert len(w.starts) > 2


def test_a_pass_is_given_up_if_something_has_changed_meanwhile_but_not_for_ever():
    w = long_queue()
    w.run(until=10.1)
    assert slices(w, w.policy.next_run(), lambda _: w.policy.note(Note.SUBMIT, w.now)) > 20
    w = long_queue()
    w.run(until=10.1)
    before = dict(w.starts)
    due = w.policy.next_run()
    for pass_number in (1, 2):
        turns = slices(w, due, lambda _: w.policy.note(Note.CHANGE, w.now))
        assert turns == 2, "one of the search, one at the end"
        assert w.starts == before
        due = w.policy.next_run()
        assert due is not None, f"pass {pass_number} is made anew"
    assert slices(w, due, lambda _: None) == 1, "the third pauses nowhere"
    assert len(w.starts) > len(before)


def test_beyond_the_window_jobs_come_behind_the_plan_in_the_queues_order():
    w = world(4, plan_window=1, plan_alpha=1)
    submit(w, (0, 10, 4), (1, 50, 4), (2, 5, 4), (3, 1, 4))
    w.run()
    assert w.starts == {1: 0, 2: 10, 3: 60, 4: 65}


def test_an_administrators_priority_and_tiers_come_before_any_plan():
    made = table(4)
    everything = nodeset.mask(4)
    tables = tables_of(
        made,
        [
            Partition("main", nodes=everything, is_default=True),
            Partition("high", nodes=everything, priority_tier=2),
        ],
    )
    w = World(tables, PlanBased, ANY_CPU, {"plan_alpha": "1"}, check=True)
    submit(w, (0, 10, 4), (1, 1, 4))
    w.submit(at=2, run_s=50, limit_s=50, cpus=4, partitions=("high",))
    w.submit(at=3, run_s=20, limit_s=20, cpus=4, admin_priority=7)
    w.run()
    assert w.starts == {1: 0, 3: 10, 4: 60, 2: 80}


def test_priorities_order_the_queue_or_weigh_waits_if_asked_to():
    for words in ({"plan_order": "priority", "plan_search": "none"}, {"plan_weight": "priority"}):
        w = world(4, **words)
        submit(w, (0, 10, 4))
        w.submit(at=1, run_s=10, limit_s=10, cpus=4, priority=1)
        w.submit(at=2, run_s=10, limit_s=10, cpus=4, priority=100)
        w.run()
        assert w.starts == {1: 0, 3: 10, 2: 20}


def test_jobs_with_nodes_or_features_of_their_own_are_planned_where_they_can_run():
    made = table_of([node(i, features="big" if i < 2 else "") for i in range(4)])
    w = World(made, PlanBased, ANY_CPU, {"plan_alpha": "1"}, check=True)
    w.submit(at=0, run_s=10, limit_s=10, cpus=2, features="big")
    w.submit(at=1, run_s=10, limit_s=10, cpus=1, features="big")
    w.submit(at=1, run_s=30, limit_s=30, cpus=1, required_nodes=0b0001)
    w.submit(at=2, run_s=5, limit_s=5, cpus=2)
    w.run()
    assert w.starts[1] == 0
    assert w.starts[4] == 2
    assert w.starts[2] == w.starts[3] == 10
    assert w.promises[2][0] == (1, 10)


def test_a_job_may_have_other_nodes_beside_the_one_that_it_names():
    w = World(table(4), PlanBased, ANY_CPU, check=True)
    w.submit(at=0, run_s=10, limit_s=10, cpus=2)
    w.submit(at=1, run_s=10, limit_s=10, cpus=3, required_nodes=0b1000)
    w.run()
    assert w.starts == {1: 0, 2: 10}


def test_partitions_without_nodes_in_common_are_planned_each_on_its_own():
    tables = tables_of(table(4), [Partition("a", nodes=0b0011), Partition("b", nodes=0b1100)])
    w = World(tables, PlanBased, ANY_CPU, check=True)
    for partition in ("a", "b"):
        w.submit(at=0, run_s=10, limit_s=10, cpus=2, partitions=(partition,))
        w.submit(at=1, run_s=10, limit_s=10, cpus=2, partitions=(partition,))
    w.submit(at=2, run_s=5, limit_s=5, cpus=2, partitions=("a", "b"))
    w.run()
    assert w.starts == {1: 0, 2: 10, 3: 0, 4: 15, 5: 10} or w.starts[5] == 10
    assert sorted(w.starts.values()) == [0, 0, 10, 10, 15]


def test_what_the_nodes_refuse_is_planned_again_for_when_they_can():
    # two nodes of two CPUs: one CPU is free on each, and a task of two CPUs needs both of one
    w = World(table(2, cores=2), PlanBased, SelectConsTres(frozenset({"CR_CPU"})), check=True)
    for limit in (10, 30):
        w.submit(
            at=0,
            run_s=limit,
            limit_s=limit,
            cpus=1,
            min_nodes=1,
            required_nodes=1 if limit == 10 else 2,
        )
    w.submit(at=1, run_s=10, limit_s=10, num_tasks=1, cpus_per_task=2)
    w.submit(at=2, run_s=5, limit_s=5, cpus=2)
    w.run()
    assert w.starts[3] == 10
    assert w.promises[3][0] == (1, 10)
    assert w.starts[4] == 2


def test_whole_nodes_are_planned_as_such():
    w = World(table(2, cores=4), PlanBased, SelectLinear(), check=True)
    w.submit(at=0, run_s=10, limit_s=10, cpus=1)
    w.submit(at=1, run_s=10, limit_s=10, cpus=5, min_nodes=2)
    w.submit(at=2, run_s=8, limit_s=8, cpus=1)
    w.run()
    assert w.starts == {1: 0, 2: 10, 3: 2}
    assert w.promises[2][0] == (1, 10)


def reserve(w, start, end, nodes, **fields):
    made = Reservation("r", 1, start, end, nodes=nodes, **fields)
    w.tables.reservations.by_name["r"] = made


def test_nobody_is_planned_on_nodes_that_are_reserved():
    w = world(4)
    reserve(w, 20, 50, 0b0011)
    w.call(50.0, lambda: w.policy.note(Note.CHANGE, w.now))
    submit(w, (0, 10, 4), (1, 15, 3), (2, 15, 2), (3, 60, 2))
    w.run()
    assert w.promises[2][0] == (1, 50)
    assert w.starts[2] >= 50
    assert w.starts[3] == 10
    w = world(4)
    reserve(w, 20, 50, 0b0011)
    submit(w, (0, 10, 4), (1, 10, 4))
    w.run()
    assert w.starts == {1: 0, 2: 10}, "it is over when the reservation begins"


def test_a_job_in_a_reservation_is_planned_for_its_begin_and_on_its_nodes():
    w = world(4)
    reserve(w, 20, 90, 0b0011)
    w.call(20.0, lambda: w.policy.note(Note.CHANGE, w.now))
    w.submit(at=0, run_s=10, limit_s=10, cpus=2, reservation="r")
    w.submit(at=1, run_s=10, limit_s=10, cpus=2, reservation="r")
    w.submit(at=2, run_s=10, limit_s=10, cpus=2, reservation="gone")
    w.run()
    assert w.starts == {1: 20, 2: 30}
    assert w.promises[1][0] == (0, 20)
    assert w.tables.jobs[3].reason == "Reservation"


def test_who_can_never_run_as_things_are_is_promised_nothing_and_holds_up_nobody():
    w = world(4, other=5)
    submit(w, (0, 10, 2), (0, 10, 5), (0, 10, 1, 6), (1, 10, 4))
    w.run()
    assert w.starts == {1: 0, 4: 10}
    assert {w.tables.jobs[number].expected_start for number in (2, 3)} == {None}
    assert w.tables.jobs[2].reason == "BadConstraints"
    assert w.tables.jobs[3].reason == "Licenses"


def test_a_job_that_no_node_would_do_for_is_told_so():
    w = world(1)
    w.submit(at=0, run_s=10, limit_s=10, excluded_nodes=1)
    w.run()
    assert w.tables.jobs[1].reason == "BadConstraints"


def test_reasons_say_what_is_short():
    w = world(4, other=10, plan_alpha=2)
    submit(w, *FOUR)
    w.run(until=4)
    assert {i: w.tables.jobs[i].reason for i in (2, 3)} == {2: "Resources", 3: "Priority"}
    w = world(4, other=10)
    submit(w, (0, 10, 1, 8), (1, 10, 1, 8))
    w.run(until=4)
    assert w.tables.jobs[2].reason == "Licenses"


def test_planned_nodes_are_told_unless_nobody_asks():
    w = world(4)
    submit(w, (0, 10, 3), (1, 10, 2), (2, 10, 2))
    w.run(until=4)
    assert {i: w.tables.jobs[i].expected_nodes for i in (2, 3)} == {2: 0b0011, 3: 0b1100}
    w = world(4)
    w.policy.plans_when_asked = True
    submit(w, (0, 10, 3), (1, 10, 2))
    w.run(until=4)
    assert (w.tables.jobs[2].expected_start, w.tables.jobs[2].expected_nodes) == (10, 0)
    w.policy.complete_plan(4.0)
    assert w.tables.jobs[2].expected_nodes == 0b0011


def test_jobs_without_a_limit_are_planned_for_a_year():
    w = world(4)
    w.submit(at=0, run_s=10, limit_s=None, cpus=4)
    w.submit(at=1, run_s=10, limit_s=10, cpus=4)
    w.run(until=5)
    assert w.tables.jobs[2].expected_start == 365 * 86_400
    w.run()
    assert w.starts == {1: 0, 2: 10}


def test_searches_are_counted():
    w = world(8)
    submit(w, (0, 20, 6), *((1, 10 + i, 1 + i % 5) for i in range(9)))
    w.run()
    counts = w.policy.planning.counts
    assert counts.searches >= 1
    assert counts.evaluations >= 189
    assert 0 <= counts.gain <= counts.searches
    assert w.policy.figures == {
        "searches": counts.searches,
        "evaluations": counts.evaluations,
        "searched_jobs": counts.jobs,
        "mean_gain_percent": round(100 * counts.gain / counts.searches),
    }
    w.policy.figures.update(dict.fromkeys(w.policy.figures, 0))  # as `sdiag -r` does
    w.call(w.now + 1, lambda: w.policy.note(Note.CHANGE, w.now))
    w.run()
    assert w.policy.figures["evaluations"] == 0


def test_random_searches_come_at_intervals_and_only_if_three_wait():
    w = world(4, plan_search="random", plan_interval=30)
    submit(w, (0, 500, 4), (1, 90, 4), (2, 80, 4))
    w.run(until=100)
    assert w.policy.planning.counts.searches == 0
    submit(w, (101, 5, 4), (105, 6, 4))
    w.run(until=120)
    assert w.policy.planning.counts.searches == 1
    w.run(until=200)
    assert w.policy.planning.counts.searches == 2, "the last arrival had to wait for its turn"
    assert [w.tables.jobs[i].expected_start for i in (4, 5)] == [500, 505]


@pytest.mark.parametrize(
    "word", ["plan_search=best", "plan_alpha=0", "plan_seed=x", "plan_objective=", "plan_depth=-1"]
)
def test_words_that_cannot_be_read_are_refused(word):
    key, _, value = word.partition("=")
    with pytest.raises(ConfigError, match=key):
        world(4, **{key: value})


def test_other_parameters_count_from_the_next_pass_on():
    w = world(4)
    submit(w, (0, 10, 4), (1, 10, 4), (2, 5, 4))
    w.run(until=4)
    w.policy.reconfigure({"plan_search": "none"})
    w.policy.note(Note.CHANGE, w.now)
    w.run()
    assert w.starts == {1: 0, 2: 10, 3: 20}
