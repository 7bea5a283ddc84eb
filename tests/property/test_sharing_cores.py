"""Jobs that share cores, and jobs that keep nodes for their user, on random clusters."""

from operator import or_

from hypothesis import given
from hypothesis import strategies as st
from scheduling_harness import make_job, node, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.tables.partition import Partition
from understudy.model import nodeset

clusters = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 2), st.integers(1, 3)),
    min_size=1,
    max_size=10,
)
shared_requests = st.tuples(
    st.sampled_from(["main", "force", "yes"]),
    st.integers(1, 10),
    st.builds(
        or_,
        st.fixed_dictionaries(
            {
                "cpus_per_task": st.integers(1, 3),
                "oversubscribe": st.booleans(),
                "ntasks_per_socket": st.none() | st.integers(1, 3),
                "threads_per_core": st.none() | st.integers(1, 2),
                "memory_per_node_mb": st.none() | st.integers(1, 400),
            }
        ),
        st.sampled_from(
            [{}, {}, {"exclusive_for": "user"}, {"spread_job": True}, {"sockets_per_node": 2}]
        ),
    ),
    st.integers(1, 2),
)


@given(
    clusters,
    st.lists(shared_requests, min_size=1, max_size=14),
    st.sampled_from(["CR_CORE", "CR_CORE_MEMORY", "CR_SOCKET", "CR_CPU"]),
    st.data(),
)
def test_no_core_is_shared_by_more_jobs_than_may_nor_memory_given_twice(cluster, asked, word, data):
    made = table_of(
        [node(i, sockets=s, cores=c, threads=t, weight=w) for i, (s, c, t, w) in enumerate(cluster)]
    )
    every = nodeset.mask(len(cluster))
    tables = tables_of(
        made,
        [
            Partition(name, nodes=every, oversubscribe=how)
            for name, how in (("main", "NO"), ("force", "FORCE:3"), ("yes", "YES:2"))
        ],
    )
    selector = SelectConsTres(frozenset({word}))
    for job_id, (name, tasks, fields, user) in enumerate(asked, 1):
        job = make_job(job_id, num_tasks=tasks, partition=name, **fields)
        job.user_id = user
        allocation = selector.select(Ask(job, tables.partitions[name], every), tables)
        if allocation is None:
            if tables.running and data.draw(st.booleans()):
                gone = tables.running.pop(data.draw(st.sampled_from(sorted(tables.running))))
                made.release(gone.allocation, gone.allocation.nodes)
            continue
        assert allocation.tasks >= tasks
        made.allocate(allocation)
        job.allocation, job.start_time, job.state = allocation, 0, job.state.RUNNING
        tables.running[job_id] = job
        check_shared(tables)
    for job in list(tables.running.values()):
        made.release(job.allocation, job.allocation.nodes)
    assert made.free_cpus.tolist() == made.cpus.tolist()
    assert made.free_memory.tolist() == made.memory.tolist()
    assert made.idle_nodes == every
    assert made.owned_nodes == 0


def check_shared(tables):
    """Every core has as many jobs of each partition as may be there, or one that shares with
    nobody; nodes of one user have his jobs alone.
    """
    made = tables.nodes
    held = {}
    owners, users = {}, {}
    for job in tables.running.values():
        for share in job.allocation.shares:
            users.setdefault(share.node, set()).add(job.user_id)
            if job.allocation.owned:
                owners.setdefault(share.node, set()).add(job.user_id)
            for core in nodeset.indices(share.cores):
                held.setdefault((share.node, core), []).append(job.allocation.shared_in)
    most = {"": 1, "force": 3, "yes": 2}
    for jobs in held.values():
        assert "" not in jobs or len(jobs) == 1
        assert all(jobs.count(name) <= most[name] for name in set(jobs))
    for i in range(len(made.nodes)):
        used = sum(1 << core for at, core in held if at == i)
        assert made.used_cores[i] == used
        assert made.free_cpus[i] == made.cpus[i] - used.bit_count() * made.cpus_of_core(i)
        assert made.free_memory[i] >= 0
        assert (made.full_nodes >> i & 1) == (made.free_cpus[i] == 0)
        assert len(users.get(i, ())) <= 1 or not owners.get(i)
