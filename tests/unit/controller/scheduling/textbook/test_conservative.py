"""sched/conservative against a reference that shares no code with it."""

from hypothesis import given, settings
from hypothesis import strategies as st
from reference import buffered
from scheduling_harness import World, table

from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.textbook.conservative import Conservative


def replayed(jobs, nodes, **licenses):
    """A world that has run (submit, run, limit, processors, then of each licence) each."""
    made = World(table(nodes), Conservative, SelectConsTres(frozenset({"CR_CPU"})), check=True)
    made.tables.licenses.totals = licenses
    for submit, run, limit, cpus, *needs in jobs:
        asked = ",".join(f"{name}:{n}" for name, n in zip(licenses, needs, strict=True) if n)
        made.submit(at=submit, cpus=cpus, run_s=run, limit_s=limit, licenses=asked)
    made.run()
    return made


def test_a_job_may_pass_others_that_it_does_not_delay():
    w = replayed([(0, 10, 10, 3), (1, 10, 10, 4), (2, 8, 8, 1), (3, 8, 8, 1)], 4)
    assert w.starts == {1: 0, 2: 10, 3: 2, 4: 20}


def test_the_second_that_waits_is_not_delayed_either():
    # EASY would start job 4, which delays job 3 and not the head.
    jobs = [(0, 10, 10, 3), (1, 10, 10, 4), (2, 10, 10, 3), (3, 25, 25, 1)]
    w = replayed(jobs, 4)
    assert w.starts == {1: 0, 2: 10, 3: 20, 4: 20}


def test_an_early_end_compresses_the_plan():
    w = replayed([(0, 4, 10, 4), (1, 10, 10, 4), (2, 10, 10, 4)], 4)
    assert w.starts == {1: 0, 2: 4, 3: 14}
    assert w.promises[3] == [(2, 20), (4, 14)]


job = st.tuples(
    st.integers(0, 30),  # submit
    st.integers(1, 20),  # run
    st.integers(0, 10),  # how much longer the limit is
    st.integers(1, 5),  # processors
    st.integers(0, 9),
)


@given(jobs=st.lists(job, max_size=25))
@settings(max_examples=150, deadline=None)
def test_each_job_starts_when_the_reference_says(jobs):
    asked = [
        buffered.Asked(i, submit, run, run + more, tuple(needs))
        for i, (submit, run, more, *needs) in enumerate(sorted(jobs, key=lambda job: job[0]), 1)
    ]
    ordered = [(each.submit, each.run, each.req, *each.needs) for each in asked]
    assert replayed(ordered, 5, bb=9).starts == buffered.conservative(asked, (5, 9))


@given(jobs=st.lists(job, max_size=25))
@settings(max_examples=50, deadline=None)
def test_nobody_starts_later_than_promised_first(jobs):
    w = replayed([(s, run, run + more, *needs) for s, run, more, *needs in jobs], 5, bb=9)
    for number, promises in w.promises.items():
        starts = [start for _, start in promises]
        assert starts == sorted(starts, reverse=True)
        assert w.starts[number] <= starts[0]
