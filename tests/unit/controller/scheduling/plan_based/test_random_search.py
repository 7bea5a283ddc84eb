"""A random search by four criteria."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from scheduling_harness import finished

from understudy.controller.scheduling.plan_based.annealing import Found
from understudy.controller.scheduling.plan_based.candidates import Size
from understudy.controller.scheduling.plan_based.random_search import (
    Marker,
    Marks,
    Past,
    RandomSearch,
    gain,
)
from understudy.controller.scheduling.plan_based.sequence import Entry, Objective, Plans
from understudy.controller.scheduling.profile import Profile
from understudy.controller.scheduling.resources import Resources

KINDS = Resources({"cpus": 4})


def plans(*jobs):
    """(processors, seconds) of each job, all submitted at 0, and it is 0."""
    entries = [Entry(KINDS.need({"cpus": cpus}), length, 0) for cpus, length in jobs]
    return Plans(Profile(0, KINDS), entries, Objective("wait", 1)), [
        Size(cpus, 0, length) for cpus, length in jobs
    ]


def test_marks_by_hand():
    made, sizes = plans((4, 10), (4, 5))
    Found.of_queue(made)
    marker = Marker(made.entries, sizes, [1, 2], {})
    # waits 0 and 10; responses 10 and 15; slowdowns 1 and 3; user 1 waited 0 of 40 CPU seconds,
    # user 2 10 of 20: the mean is 0.25
    assert marker.marks(made.starts) == Marks(12.5, 5, 2, 1.25**2 + 0.75**2)


def test_what_users_waited_and_used_before_counts():
    made, sizes = plans((4, 10))
    Found.of_queue(made)
    marker = Marker(made.entries, sizes, [1], {1: Past(100, 60), 2: Past(0, 10)})
    # user 1 100 of 60 + 40, user 2 0 of 10: the mean is 0.5
    assert marker.marks(made.starts).fairness == 0.5**2 + 1.5**2


def test_gains_are_in_proportion_and_fairness_counts_more():
    assert gain(Marks(10, 10, 2, 4), Marks(5, 20, 2, 3), 10) == 0.5 - 1 + 0 + 2.5
    assert gain(Marks(10, 0, 2, 4), Marks(10, 1, 2, 4), 10) == -1
    assert gain(Marks(10, 0, 2, 4), Marks(10, 0, 2, 4), 10) == 0


def test_short_jobs_come_to_the_front():
    made, sizes = plans((4, 100), (4, 10), (4, 1))
    marker = Marker(made.entries, sizes, [1, 1, 1], {})
    found = finished(RandomSearch(tries=40).search(made, sizes, marker, Random(1)))
    assert found.order == [2, 1, 0]
    assert found.starts == [11, 1, 0]
    assert found.before == 210


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 50)), min_size=1, max_size=8),
    st.integers(0, 99),
)
def test_draws_decide_alone(jobs, seed):
    results = []
    for _ in range(2):
        made, sizes = plans(*jobs)
        marker = Marker(made.entries, sizes, [i % 3 for i in range(len(jobs))], {})
        results.append(finished(RandomSearch(tries=5).search(made, sizes, marker, Random(seed))))
    assert results[0] == results[1]


def test_ranks_stay_in_their_order():
    made, sizes = plans((4, 100), (4, 10), (4, 1))
    sizes = [size._replace(rank=rank) for size, rank in zip(sizes, (0, 1, 1), strict=True)]
    found = finished(
        RandomSearch().search(made, sizes, Marker(made.entries, sizes, [1] * 3, {}), Random(1))
    )
    assert found.order == [0, 2, 1]
