"""A job as wide as the machine among small ones that never end: each policy that promises something
has it start, and those that promise nothing may not.

Covers: controller/scheduling/plan_based/settings.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling_harness import World, table

from understudy.controller.scheduling.registry import scheduler
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.textbook.bbsched import METHODS

PROCESSORS, BUFFER = 4, 100
LONGEST_S, EVERY_S, LAST_S = 60, 4, 600
WINDOWS = {"bbs_bound": "10", "bbs_window": "5"}
PLAN = {"plan_bound": "100", "plan_steps": "3", "plan_moves": "2", "plan_tries": "2"}
PROMISING = [
    *(pytest.param(name, {}, id=name) for name in ("fcfs", "easy", "easy-bb", "sjf-bb")),
    pytest.param("sjf-bb", {"reservation_depth": "3"}, id="sjf-bb-3"),
    pytest.param("conservative", {}, id="conservative"),
    *(
        pytest.param("bbsched", {**WINDOWS, "bbs_method": method}, id=f"bbsched-{method}")
        for method in METHODS
    ),
    pytest.param("bbsched", {**WINDOWS, "bbs_exact": "0", "bbs_generations": "5"}, id="genetic"),
    pytest.param("bbsched", {**WINDOWS, "bbs_order": "wfp"}, id="bbsched-wfp"),
    *(
        pytest.param(
            "plan", {**PLAN, "plan_search": search, "plan_alpha": "1"}, id=f"plan-{search}"
        )
        for search in ("annealing", "zheng", "random", "none")
    ),
    pytest.param("plan", {**PLAN, "plan_keep": ""}, id="plan-keep"),
]
small = st.tuples(st.integers(20, LONGEST_S), st.integers(1, 2), st.integers(0, BUFFER // 2))


def start_of_the_wide(name, words, stream, wide_at, *, cpus=PROCESSORS, needs_buffer):
    """When it starts, by a stream of small jobs, one each few seconds, that are repeated. It has
    so many processors.
    """
    w = World(
        table(PROCESSORS),
        scheduler(f"sched/{name}"),
        SelectConsTres(frozenset({"CR_CPU"})),
        words,
        check=True,
    )
    w.tables.licenses.totals = {"bb": BUFFER}
    wide = None
    for number in range(LAST_S // EVERY_S):
        at = number * EVERY_S
        if wide is None and at >= wide_at:
            licenses = f"bb:{BUFFER}" if needs_buffer else ""
            wide = w.submit(at=at, cpus=cpus, run_s=30, limit_s=60, licenses=licenses)
        run_s, small_cpus, buffer = stream[number % len(stream)]
        licenses = f"bb:{buffer}" if buffer else ""
        w.submit(at=at, cpus=small_cpus, run_s=run_s - 15, limit_s=run_s, licenses=licenses)
    w.run(until=LAST_S)
    return w.starts.get(wide.job_id)


@pytest.mark.parametrize(("name", "words"), PROMISING)
@settings(max_examples=3, deadline=None)
@given(
    stream=st.lists(small, min_size=1, max_size=12),
    wide_at=st.integers(0, 60),
    needs_buffer=st.booleans(),
)
def test_the_wide_job_starts_while_small_ones_go_on_coming(
    name, words, stream, wide_at, needs_buffer
):
    start = start_of_the_wide(name, words, stream, wide_at, needs_buffer=needs_buffer)
    assert start is not None
    assert start < LAST_S - 2 * LONGEST_S


@settings(max_examples=3, deadline=None)
@given(stream=st.lists(small, min_size=1, max_size=12), wide_at=st.integers(0, 60))
@pytest.mark.parametrize("name", ["builtin", "backfill"])
def test_slurms_have_it_start_if_it_lacks_no_licence_which_22_05_reserves_for_nobody(
    name, stream, wide_at
):
    words = {"bf_interval": "5", "bf_resolution": "1"}
    start = start_of_the_wide(name, words, stream, wide_at, needs_buffer=False)
    assert start is not None
    assert start < LAST_S - 2 * LONGEST_S


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("filler", {}),
        ("easy-nobb", {}),
        ("builtin", {}),
        ("backfill", {}),
        ("plan", {**PLAN, "plan_bound": "0", "plan_alpha": "1", "plan_search": "annealing"}),
    ],
)
def test_where_nothing_is_kept_it_may_wait_for_ever(name, words):
    stream = [(40, 1, 30)]
    cpus = 1  # it lacks the buffer alone
    assert start_of_the_wide(name, words, stream, 20, cpus=cpus, needs_buffer=True) is None
