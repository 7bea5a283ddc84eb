"""Backfilling where jobs hold more than processors, against an independent reference.

Covers: controller/scheduling/textbook/backfilling.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import buffered
from scheduling_harness import World, table

from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.textbook.easy import Easy
from understudy.controller.scheduling.textbook.fcfs import Fcfs
from understudy.controller.scheduling.textbook.variants import EasyBb, EasyNobb, Filler, SjfBb
from understudy.model.errors import ConfigError

REFERENCE = {
    Fcfs: buffered.fcfs,
    Easy: buffered.easy_bb,
    EasyBb: buffered.easy_bb,
    EasyNobb: buffered.easy_nobb,
    SjfBb: buffered.sjf_bb,
    Filler: buffered.filler,
}


def world(policy, nodes, parameters=None, **licenses):
    made = World(
        table(nodes), policy, SelectConsTres(frozenset({"CR_CPU"})), parameters, check=True
    )
    made.tables.licenses.totals = licenses
    return made


def asking(**licenses):
    return ",".join(f"{name}:{count}" for name, count in licenses.items() if count)


def timeline(policy, jobs, nodes=4, **licenses):
    """Starts by id of (submit, run, limit, processors, bb, other) each."""
    w = world(policy, nodes, **licenses)
    for submit, run, limit, cpus, *needs in jobs:
        w.submit(
            at=submit, cpus=cpus, run_s=run, limit_s=limit,
            licenses=asking(**dict(zip(licenses, needs, strict=True))),
        )  # fmt: skip
    w.run()
    return w.starts


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        (EasyBb, [0, 10, 20, 3]),
        (Easy, [0, 10, 20, 3]),
        (EasyNobb, [0, 22, 2, 3]),
        (Filler, [0, 22, 2, 3]),
        (Fcfs, [0, 10, 20, 20]),
    ],
)
def test_small_jobs_pass_a_head_that_lacks_a_buffer_only_where_nothing_is_kept_for_it(
    policy, starts
):
    jobs = [(0, 10, 10, 2, 2), (1, 10, 10, 3, 6), (2, 20, 20, 1, 6), (3, 5, 5, 1, 1)]
    found = timeline(policy, jobs, bb=10)
    assert [found[i] for i in range(1, 5)] == starts


job = st.tuples(
    st.integers(0, 30),  # submit
    st.integers(1, 20),  # run
    st.integers(0, 10),  # how much longer the limit is
    st.integers(1, 5),  # processors
    st.integers(0, 9),
    st.integers(0, 3),
)


@pytest.mark.parametrize("policy", list(REFERENCE))
@given(jobs=st.lists(job, max_size=30))
@settings(max_examples=60, deadline=None)
def test_each_job_starts_when_the_reference_says(policy, jobs):
    asked = [
        buffered.Asked(i, submit, run, run + more, (cpus, bb, other))
        for i, (submit, run, more, cpus, bb, other) in enumerate(
            sorted(jobs, key=lambda each: each[0]), 1
        )
    ]
    expected = buffered.simulate(asked, (5, 9, 3), REFERENCE[policy])
    ordered = [(each.submit, each.run, each.req, *each.needs) for each in asked]
    assert timeline(policy, ordered, nodes=5, bb=9, other=3) == expected


def test_a_depth_of_one_is_the_shadow_time_and_the_extra():
    jobs = [(0, 10, 10, 2, 2), (1, 10, 10, 3, 6), (2, 20, 20, 1, 6), (3, 5, 5, 1, 1)]
    w = world(EasyBb, 4, {"reservation_depth": "2"}, bb=10)
    for submit, run, limit, cpus, bb in jobs:
        w.submit(at=submit, cpus=cpus, run_s=run, limit_s=limit, licenses=asking(bb=bb))
    w.run()
    assert w.starts == {1: 0, 2: 10, 3: 20, 4: 3}
    assert w.promises[3][0] == (2, 20)  # the second that waits has a promise, too


def test_a_depth_that_is_no_number_is_refused():
    with pytest.raises(ConfigError, match="reservation_depth=two: not a whole number from 1"):
        world(EasyBb, 4, {"reservation_depth": "two"})


def test_who_lacks_only_a_licence_waits_for_it_by_name():
    w = world(EasyBb, 4, bb=10)
    w.submit(at=0, cpus=1, run_s=50, limit_s=50, licenses="bb:8")
    head = w.submit(at=1, cpus=1, run_s=50, limit_s=50, licenses="bb:8")
    behind = w.submit(at=2, cpus=1, run_s=50, limit_s=50, licenses="bb:3")
    large = w.submit(at=3, cpus=4, run_s=50, limit_s=50)
    w.submit(at=4, cpus=1, run_s=50, limit_s=50, licenses="bb:2")
    w.run(until=10)
    assert (head.reason, behind.reason, large.reason) == ("Licenses", "Licenses", "Priority")
    assert head.expected_start == 50


def test_who_asks_for_more_licences_than_there_are_holds_up_nobody():
    for policy in REFERENCE:
        w = world(policy, 4, bb=10)
        never = w.submit(at=0, cpus=1, run_s=5, limit_s=5, licenses="bb:11")
        w.submit(at=1, cpus=4, run_s=5, limit_s=5, licenses="bb:10")
        w.run()
        assert w.starts == {2: 1}
        assert never.reason == "Licenses"


def test_only_what_is_named_counts():
    w = world(EasyBb, 4, {"further_resources": "license/bb+mem"}, bb=10, other=1)
    assert [each.name for each in w.policy.further] == ["license/bb", "mem"]


@pytest.mark.parametrize("word", ["reservation_depth", "further_resources"])
def test_a_reconfiguration_with_a_word_that_cannot_be_read_changes_nothing(word):
    w = world(EasyBb, 4, {"reservation_depth": "2"}, bb=10)
    with pytest.raises(ConfigError, match=word):
        w.policy.reconfigure({word: "x"})
    assert w.policy.parameters == {"reservation_depth": "2"}
    assert w.policy.backfilling.style.depth == 2
