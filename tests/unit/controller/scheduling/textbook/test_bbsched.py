"""sched/bbsched: windows, ages, methods, words."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import buffered, windows
from scheduling_harness import World, table, tables_of

from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.textbook.bbsched import BBSched
from understudy.controller.scheduling.textbook.variants import EasyBb
from understudy.model.errors import ConfigError


def world(nodes, parameters=None, policy=BBSched, **licenses):
    tables = tables_of(table(nodes))
    tables.licenses.totals = licenses
    return World(tables, policy, SelectConsTres(frozenset({"CR_CPU"})), parameters, check=True)


def replayed(jobs, nodes, parameters=None, policy=BBSched, **licenses):
    """Starts by id of (submit, run, limit, processors, then of each licence) each."""
    w = world(nodes, parameters, policy, **licenses)
    for submit, run, limit, cpus, *needs in jobs:
        asked = ",".join(f"{name}:{n}" for name, n in zip(licenses, needs, strict=True) if n)
        w.submit(at=submit, cpus=cpus, run_s=run, limit_s=limit, licenses=asked)
    w.run()
    return w


# The worked example: all wait for one job that has the machine.
EXAMPLE = [
    (0, 10, 10, 100, 100),
    *[(1, 50, 50, *needs) for needs in [(80, 20), (10, 85), (40, 5), (10, 0), (20, 0)]],
]


@pytest.mark.parametrize(
    ("parameters", "first"),
    [
        ({}, {3, 4, 5, 6}),
        ({"bbs_exact": "0"}, {3, 4, 5, 6}),
        ({"bbs_preset": "paper", "bbs_mutation": "0.05"}, {3, 4, 5, 6}),
        ({"bbs_tradeoff": "3.5"}, {2, 6}),
        ({"bbs_rule": "code"}, {2, 6}),
        ({"bbs_method": "baseline"}, {2, 5}),
        ({"bbs_method": "weighted"}, {3, 4, 5, 6}),
        ({"bbs_method": "weighted_cpu"}, {2, 6}),
        ({"bbs_method": "weighted_bb"}, {3, 4, 5, 6}),
        ({"bbs_method": "weighted", "bbs_weights": "0.8+0.2"}, {2, 6}),
        ({"bbs_method": "constrained_cpu"}, {2, 6}),
        ({"bbs_method": "constrained_bb"}, {3, 4, 5, 6}),
        ({"bbs_method": "bin_packing"}, {2, 6}),
    ],
)
def test_the_worked_example(parameters, first):
    w = replayed(EXAMPLE, 100, parameters, bb=100)
    assert {job for job, start in w.starts.items() if start == 10} == first


def test_nobody_outside_the_window_is_chosen_but_backfilled():
    w = replayed(EXAMPLE, 100, {"bbs_window": "1"}, bb=100)
    assert {job for job, start in w.starts.items() if start == 10} == {2, 5}


def test_who_was_passed_over_as_often_as_the_bound_goes_first():
    # Job 2 needs the whole machine, and there is always a small job that fits.
    jobs = [(0, 10, 10, 2, 0), (1, 10, 10, 4, 0)]
    jobs += [(5 * i, 10, 10, 2, 0) for i in range(1, 40)]
    few = replayed(jobs, 4, {"bbs_bound": "3"}, bb=1)
    many = replayed(jobs, 4, {"bbs_bound": "12"}, bb=1)
    assert few.starts[2] < many.starts[2] < max(many.starts.values())
    assert few.policy.figures["passes_for_old"] > 0


def test_wfp_puts_first_who_has_waited_long_for_little():
    # Both lack the same licence; the second asks for less time.
    jobs = [(0, 100, 100, 1, 9), (1, 90, 900, 1, 9), (50, 9, 10, 1, 9)]
    assert replayed(jobs, 4, {"bbs_method": "baseline"}, bb=9).starts[2] == 100
    w = replayed(jobs, 4, {"bbs_method": "baseline", "bbs_order": "wfp"}, bb=9)
    assert (w.starts[3], w.starts[2]) == (100, 109)


def test_objectives_are_those_that_are_named():
    jobs = [(0, 10, 10, 100, 100, 0), *[(*job, 1) for job in EXAMPLE[1:]]]
    w = replayed(jobs, 100, {"bbs_objectives": "license/bb"}, bb=100, other=9)
    assert {job for job, start in w.starts.items() if start == 10} == {3, 4, 5, 6}


def test_processors_alone_are_the_objective_where_nothing_else_is():
    w = world(100, {"bbs_objectives": "none", "bbs_weights": "1"}, bb=100)
    assert w.policy.options.objectives == ()
    assert replayed(EXAMPLE, 100, {"bbs_objectives": "none"}, bb=100).policy.figures[
        "largest_front"
    ] == 1  # fmt: skip


def test_an_objective_has_to_be_counted():
    with pytest.raises(
        ConfigError, match="bbs_objectives=mem: mem is not counted, cpu, license/bb"
    ):
        world(100, {"bbs_objectives": "mem"}, bb=100)


def test_it_counts_what_it_does():
    figures = replayed(EXAMPLE, 100, bb=100).policy.figures
    assert figures["windows"] == figures["exact_fronts"] >= 2
    assert figures["largest_front"] == 2
    assert figures["evaluations"] > figures["front_sizes"] >= figures["windows"]


job = st.tuples(
    st.integers(0, 30),  # submit
    st.integers(1, 20),  # run
    st.integers(0, 10),  # how much longer the limit is
    st.integers(1, 6),  # processors
    st.integers(0, 9),
    st.integers(0, 3),
)


@given(jobs=st.lists(job, max_size=25), width=st.integers(1, 6), bound=st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_each_job_starts_when_the_reference_says(jobs, width, bound):
    asked = [
        buffered.Asked(i, submit, run, run + more, tuple(needs))
        for i, (submit, run, more, *needs) in enumerate(sorted(jobs, key=lambda job: job[0]), 1)
    ]
    policy = windows.BBSched((6, 9, 3), width, bound, factor=3)
    expected = buffered.simulate(asked, (6, 9, 3), policy)
    ordered = [(each.submit, each.run, each.req, *each.needs) for each in asked]
    words = {"bbs_window": str(width), "bbs_bound": str(bound)}
    assert replayed(ordered, 6, words, bb=9, other=3).starts == expected


@pytest.mark.parametrize(
    "words",
    [
        {"bbs_window": "1"},
        {"bbs_method": "baseline"},
        {"bbs_method": "bin_packing", "bbs_window": "1"},
    ],
)
@given(jobs=st.lists(job, max_size=25))
@settings(max_examples=30, deadline=None)
def test_a_window_of_one_and_the_baseline_are_easy(words, jobs):
    jobs = [(submit, run, run + more, *needs) for submit, run, more, *needs in jobs]
    easy = replayed(jobs, 6, policy=EasyBb, bb=9, other=3)
    assert replayed(jobs, 6, words, bb=9, other=3).starts == easy.starts


@given(jobs=st.lists(job, max_size=30), seed=st.integers(1, 9))
@settings(max_examples=20, deadline=None)
def test_the_same_seed_gives_the_same_schedule_and_everybody_starts(jobs, seed):
    words = {"bbs_seed": str(seed), "bbs_exact": "0", "bbs_generations": "5", "bbs_bound": "3"}
    jobs = [(submit, run, run + more, *needs) for submit, run, more, *needs in jobs]
    first = replayed(jobs, 6, words, bb=9, other=3)
    assert first.starts == replayed(jobs, 6, words, bb=9, other=3).starts
    assert len(first.starts) == len(jobs)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"bbs_window": "0"}, "bbs_window=0: not a whole number from 1 to 64"),
        ({"bbs_window": "many"}, "bbs_window=many: not a whole number"),
        ({"bbs_method": "best"}, "bbs_method=best: there are bbsched, baseline, weighted"),
        ({"bbs_order": "lifo"}, "bbs_order=lifo: there are fcfs, wfp"),
        ({"bbs_mutation": "1.5"}, "bbs_mutation=1.5: more than 1"),
        ({"bbs_tradeoff": "-1"}, "bbs_tradeoff=-1: not a number from 0 to 2147483647"),
        ({"bbs_weights": "1+x"}, "bbs_weights=1\\+x: not a number from 0 to"),
        ({"bbs_objectives": "nodes"}, "bbs_objectives=nodes: 'nodes' is none of license"),
        ({"bbs_preset": "mine"}, "bbs_preset=mine: there are default, paper"),
        ({"bbs_weights": ""}, "bbs_weights=: not a number from 0 to"),
        ({"bbs_weights": "0+0"}, "bbs_weights=0\\+0: one has to be more than 0"),
        ({"bbs_weights": "0.5++0.5"}, "bbs_weights=0.5\\+\\+0.5: not a number from 0 to"),
    ],
)
def test_a_word_that_cannot_be_read_is_an_error_that_names_it(words, text):
    with pytest.raises(ConfigError, match=f"SchedulerParameters {text}"):
        world(4, words)
    with pytest.raises(ConfigError, match=f"SchedulerParameters {text}"):
        BBSched.check_parameters(words)


@pytest.mark.parametrize("weights", ["1", "0.5+0.3+0.2"])
def test_weights_are_as_many_as_the_objectives(weights):
    count = weights.count("+") + 1
    text = f"bbs_weights={re.escape(weights)}: {count} for the 2 objectives cpu, license/bb"
    with pytest.raises(ConfigError, match=text):
        world(4, {"bbs_weights": weights}, bb=100)
    w = world(4, {"bbs_weights": "1+2"}, bb=100)
    with pytest.raises(ConfigError, match=text):
        w.policy.reconfigure({"bbs_weights": weights})
    assert len(w.policy.options.weights) == 2


def test_other_words_hold_from_a_reconfiguration_on():
    w = world(100, bb=100)
    w.policy.reconfigure({"bbs_method": "constrained_cpu"})
    assert w.policy.options.method == "constrained_cpu"
    with pytest.raises(ConfigError):
        w.policy.reconfigure({"bbs_method": "none"})
    assert w.policy.options.method == "constrained_cpu"
