"""Usage added up: the parts are the whole of the cluster's time, whatever happened, and it does not
matter in how many steps it is done.
"""

from hypothesis import given
from hypothesis import strategies as st

from understudy.accounting.rollup import (
    ALLOCATED,
    DOWN,
    HOUR_S,
    IDLE,
    PLANNED,
    PLANNED_DOWN,
    added,
    usage_of_hours,
)

HOUR = 1_795_280_400
HOURS = 5
TIMES = st.integers(HOUR - 1000, HOUR + HOURS * HOUR_S + 1000)
PARTS = (ALLOCATED, DOWN, PLANNED_DOWN, IDLE, PLANNED)


@st.composite
def spans(draw):
    start, end = sorted((draw(TIMES), draw(TIMES)))
    return start, draw(st.sampled_from([end, None]))


@st.composite
def jobs(draw):
    start, end = draw(spans())
    eligible = draw(st.one_of(st.none(), st.integers(HOUR - 1000, start)))
    has_run = draw(st.booleans())
    cpus = draw(st.integers(1, 40))
    return {
        "eligible_time": eligible,
        "start_time": start if has_run else None,
        "end_time": end,
        "association_id": draw(st.integers(1, 3)),
        "user": "anna",
        "wckey": draw(st.sampled_from(["", "key"])),
        "suspended_s": draw(st.integers(0, 500)),
        "reservation_id": draw(st.integers(0, 2)),
        "tres_requested": {"cpu": cpus},
        "tres_allocated": {"cpu": cpus, "mem": 100},
    }


@st.composite
def times(draw, most):
    start, end = draw(spans())
    return {
        "start_time": start,
        "end_time": end,
        "tres": {"cpu": draw(st.integers(0, most)), "mem": draw(st.integers(0, 1000))},
    }


@st.composite
def reservations(draw):
    start, end = draw(spans())
    flags = draw(st.sampled_from(["", "MAINT", "SPEC_NODES,IGNORE_JOBS"]))
    return {
        "id": draw(st.integers(1, 3)),
        "start_time": start,
        "end_time": end or start,
        "flags": flags,
        "tres": {"cpu": draw(st.integers(0, 16))},
    }


@st.composite
def histories(draw):
    """What the cluster had (changing once), and what happened on it."""
    change = draw(TIMES)
    sizes = [
        {
            "start_time": draw(st.integers(HOUR - 2000, change)),
            "end_time": change,
            "tres": {"cpu": 16, "mem": 1000},
        },
        {
            "start_time": change,
            "end_time": None,
            "tres": {"cpu": draw(st.integers(1, 32)), "mem": 1000},
        },
    ]
    return (
        draw(st.lists(jobs(), max_size=8)),
        draw(st.lists(times(8), max_size=4)),
        sizes,
        draw(st.lists(reservations(), max_size=3)),
    )


def add_up(history, start=HOUR, end=HOUR + HOURS * HOUR_S):
    job_rows, down, sizes, held = history
    return usage_of_hours(start, end, job_rows, down, sizes, {("anna", "key"): 9}, held)


@given(histories())
def test_the_parts_of_each_hour_are_the_whole_of_what_there_was(history):
    for hour, usage in add_up(history):
        for name in ("cpu", "mem"):
            whole = 0
            for size in history[2]:
                until = HOUR + HOURS * HOUR_S if size["end_time"] is None else size["end_time"]
                whole += size["tres"][name] * max(
                    0, min(until, hour + HOUR_S) - max(size["start_time"], hour)
                )
            assert sum(usage.get((kind, 0, name), 0) for kind in PARTS) == whole
    assert all(
        amount > 0
        for _, usage in add_up(history)
        for (kind, _, _), amount in usage.items()
        if kind in PARTS
    )


@given(histories(), st.integers(1, HOURS - 1))
def test_it_does_not_matter_in_how_many_steps_it_is_added_up(history, at):
    middle = HOUR + at * HOUR_S
    assert add_up(history, end=middle) + add_up(history, start=middle) == add_up(history)


@given(histories())
def test_associations_have_all_that_jobs_used(history):
    job_rows = history[0]
    total = added(usage for _, usage in add_up(history))
    expected = 0
    for job in job_rows:
        if job["start_time"] is not None:
            end = HOUR + HOURS * HOUR_S
            expected += 100 * max(
                0,
                min(end if job["end_time"] is None else job["end_time"], end)
                - max(job["start_time"], HOUR),
            )
    assert (
        sum(
            amount
            for (kind, _, name), amount in total.items()
            if kind == "association" and name == "mem"
        )
        == expected
    )
