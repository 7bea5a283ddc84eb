"""Who is preempted may be, helps, and is needed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scheduling_harness import make_job
from tests.unit.controller.scheduling.test_preemption import Busy

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.free import StateWithout
from understudy.controller.scheduling.victims import victims
from understudy.model import nodeset
from understudy.model.states import JobState

NODES = 5
running_jobs = st.lists(
    st.tuples(
        st.sampled_from(("low", "mid", "high")),
        st.integers(0, NODES - 1),
        st.integers(1, 3),
        st.integers(1, 4),
        st.integers(0, 90),
    ),
    max_size=8,
)


@given(
    running_jobs,
    st.sampled_from(("mid", "high")),
    st.integers(1, NODES),
    st.integers(1, 4),
    st.integers(0, 60),
    st.sampled_from(("", "strict", "young")),
)
def test_victims_may_be_preempted_and_let_the_job_run(
    running, partition, nodes, each, exempt_s, order
):
    parameters = {
        "strict": {"preempt_strict_order": ""},
        "young": {"preempt_youngest_first": ""},
        "": {},
    }[order]
    busy = Busy(count=NODES, parameters=parameters, exempt_s=exempt_s)
    tables, selector = busy.tables, busy.selector
    for number, (where, first, count, cpus, start) in enumerate(running, 1):
        job = make_job(
            number,
            min_nodes=count,
            num_tasks=count * cpus,
            ntasks_per_node=cpus,
            partitions=(where,),
        )
        usable = nodeset.mask(NODES) & ~nodeset.mask(first)
        job.allocation = selector.select(Ask(job, tables.partitions[where], usable), tables)
        if job.allocation is None:
            continue
        tables.nodes.allocate(job.allocation)
        job.state, job.start_time, job.partition = JobState.RUNNING, start, where
        tables.running[number] = tables.jobs[number] = job
    asked = make_job(
        99, min_nodes=nodes, num_tasks=nodes * each, ntasks_per_node=each, partitions=(partition,)
    )
    where = tables.partitions[partition]
    ask = Ask(asked, where, nodeset.mask(NODES))
    fits = selector.select(ask, tables) is not None
    chosen = victims(busy.preemption, tables, ask, selector, 100)
    assert len({victim.job_id for victim in chosen}) == len(chosen)
    for victim in chosen:
        assert tables.partitions[victim.partition].priority_tier < where.priority_tier
        assert victim.start_time + exempt_s <= 100
    if fits:
        assert chosen == []
    elif chosen:
        assert selector.choose_in(ask, tables, StateWithout(tables, chosen)) is not None
    else:
        everybody = busy.preemption.candidates(asked, where, 100)
        assert selector.choose_in(ask, tables, StateWithout(tables, everybody)) is None
