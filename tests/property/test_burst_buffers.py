"""Whatever is taken of pools and given back: space is never given twice, and none is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scheduling_harness import make_job

from understudy.controller.tables.burst_buffers import BufferState, BurstBuffers, Pool
from understudy.model.burst_buffers import Request

POOLS = ("a", "b")


@given(
    st.tuples(*[st.tuples(st.integers(0, 50), st.integers(1, 7)) for _ in POOLS]),
    st.lists(
        st.tuples(
            st.integers(0, 7),
            st.lists(st.tuples(st.sampled_from(POOLS), st.integers(1, 30)), max_size=3),
        ),
        max_size=40,
    ),
)
def test_no_pool_is_over_committed_and_all_comes_back(sizes, steps):
    pools = {
        name: Pool(name, total // step * step, step)
        for name, (total, step) in zip(POOLS, sizes, strict=True)
    }
    table = BurstBuffers("lua", pools)
    jobs = {}
    for job_id, asked in steps:
        if job_id in jobs:
            table.give_back(jobs.pop(job_id))
        else:
            job = make_job(job_id)
            job.burst_buffer = Request("#BB_LUA", sizes=tuple(asked))
            for name, units in table.wanted(job).items():
                assert units % pools[name].granularity == 0
                assert units >= sum(amount for pool, amount in asked if pool == name)
            if table.fits(job):
                assert not table.exceeds(job)
                jobs[job_id] = job
                table.take(job, BufferState.RUNNING, 0.0)
        for name, pool in pools.items():
            assert pool.free >= 0
            assert pool.used == sum(each.space.get(name, 0) for each in table.buffers.values())
    for job in jobs.values():
        table.give_back(job)
    assert all(pool.free == pool.total for pool in pools.values())
