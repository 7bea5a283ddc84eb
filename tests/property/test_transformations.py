"""What must hold of any trace that is made of another."""

from hypothesis import given
from hypothesis import strategies as st

from understudy.experiments import transform
from understudy.experiments.swf import parse_swf
from understudy.experiments.trace import Trace, TraceJob

rows = st.lists(
    st.tuples(
        st.integers(0, 10_000),  # submit
        st.integers(1, 5_000),  # run
        st.integers(1, 64),
        st.integers(1, 5_000),  # limit
        st.integers(0, 9),  # user
        st.integers(0, 4),  # executable
    ),
    min_size=1,
    max_size=40,
)
factors = st.floats(0.05, 20)
seeds = st.integers(0, 2**32)


def trace(found):
    """In normal form, as a reader makes it."""
    lines = [
        f"{n} {submit} -1 {run} {procs} -1 -1 {procs} {req} -1 1 {user} {user} {exe} 1 1 -1 -1"
        for n, (submit, run, procs, req, user, exe) in enumerate(found, 1)
    ]
    return parse_swf(["; MaxNodes: 64", "; MaxProcs: 64", "; UnixStartTime: 1000", *lines])


def what(job):
    """All of a job but where and when it comes."""
    return (job.run, job.raw_run, job.procs, job.req, job.queue, job.original_id)


def is_normal(made: Trace) -> bool:
    jobs = made.jobs
    return (
        [job.id for job in jobs] == list(range(1, len(jobs) + 1))
        and jobs[0].submit == 0
        and sorted(job.submit for job in jobs) == [job.submit for job in jobs]
        and all(1 <= job.run <= job.req for job in jobs)
    )


@given(rows)
def test_by_one_all_stays(found):
    before = trace(found)
    for made in (
        transform.interarrival(before, 1),
        transform.run_times(before, 1),
        transform.thin(before, 1, 7),
        transform.clip(before),
        transform.shift(before, 0),
        transform.merge([before]),
    ):
        assert (made.jobs, made.header) == (before.jobs, before.header)


@given(rows, factors, seeds)
def test_all_that_is_made_is_in_normal_form(found, factor, seed):
    before = trace(found)
    for made in (
        transform.interarrival(before, factor),
        transform.run_times(before, factor),
        transform.thin(before, min(factor, 1), seed),
        transform.perfect(before),
        transform.merge([before, before]),
        transform.anonymise(before, b"key"),
    ):
        assert is_normal(made)


@given(rows, st.floats(0.01, 1), st.floats(0.01, 1), seeds)
def test_thinning_keeps_the_order_and_a_part_and_less_is_a_part_of_more(found, one, other, seed):
    before = trace(found)
    less, more = (transform.thin(before, share, seed) for share in sorted((one, other)))
    order = [job.original_id for job in before.jobs]
    kept = [job.original_id for job in more.jobs]
    assert kept == [each for each in order if each in set(kept)]
    assert {job.original_id for job in less.jobs} <= set(kept)


@given(rows, rows)
def test_who_merges_and_leaves_the_others_out_has_the_first_again(found, others):
    first, second = trace(found), trace(others)
    both = transform.merge([first, second])
    theirs = {job.user for job in both.jobs} - {job.user for job in first.jobs}
    again = transform.leave_out(both, theirs)
    assert [(job.submit, job.user, *what(job)) for job in again.jobs] == [
        (job.submit, job.user, *what(job)) for job in first.jobs
    ]
    assert len(both.jobs) == len(first.jobs) + len(second.jobs)


@given(rows, st.binary(min_size=1, max_size=40))
def test_anonymised_numbers_are_a_bijection_and_keep_all_figures(found, key):
    before = trace(found)
    after = transform.anonymise(before, key)
    for name in ("user", "group", "executable"):
        pairs = {
            (getattr(one, name), getattr(other, name))
            for one, other in zip(before.jobs, after.jobs, strict=True)
        }
        assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)
    assert [(job.submit, *what(job)) for job in after.jobs] == [
        (job.submit, *what(job)) for job in before.jobs
    ]


@given(st.lists(st.integers(0, transform.LARGEST_NAMED), min_size=2, unique=True), st.binary())
def test_no_two_users_become_one(users, key):
    jobs = [TraceJob(n, n, 1, 1, 1, 1, n, user=user) for n, user in enumerate(users, 1)]
    after = transform.anonymise(Trace(jobs=jobs), key)
    assert len({job.user for job in after.jobs}) == len(users)
    assert all(0 <= job.user <= transform.LARGEST_NAMED for job in after.jobs)


@given(rows, factors)
def test_times_between_submissions_change_the_load_and_nothing_else(found, factor):
    before = trace(found)
    made = transform.interarrival(before, factor)
    assert sorted(map(what, made.jobs)) == sorted(map(what, before.jobs))
    assert made.jobs[-1].submit == int(before.jobs[-1].submit * factor)
