"""The questions to a selector agree, whatever cluster and request: who is told that he could run
now is started, and has what he asked for.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduling_harness import make_job, node, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.tables.gres import DeviceGroup, GresTable
from understudy.controller.tables.job_states import JobEvent, advance
from understudy.controller.tables.partition import Partition
from understudy.model import nodeset

SIZE = 5
PARAMETERS = (
    "CR_CPU",
    "CR_CPU_MEMORY",
    "CR_CORE",
    "CR_CORE_MEMORY",
    "CR_SOCKET",
    "CR_SOCKET_MEMORY",
    "CR_MEMORY",
)
MORE = ("CR_LLN", "CR_ONE_TASK_PER_CORE", "CR_PACK_NODES", "CR_CORE_DEFAULT_DIST_BLOCK")
OVERSUBSCRIBE = ("NO", "NO", "EXCLUSIVE", "YES:2", "FORCE:2")


@st.composite
def machines(draw, *, with_gres):
    """Nodes of one to three kinds; with GPUs on some, if that is wanted."""
    kinds = []
    for _ in range(draw(st.integers(1, 3))):
        sockets, cores, threads = (
            draw(st.integers(1, 2)),
            draw(st.integers(1, 4)),
            draw(st.integers(1, 2)),
        )
        one = {
            "sockets": sockets,
            "cores": cores,
            "threads": threads,
            "memory": draw(st.sampled_from((400, 1000, 1700))),
        }
        one |= {
            "weight": draw(st.sampled_from((1, 5))),
            "features": draw(st.sampled_from(("", "a", "b", "a,b"))),
        }
        if sockets * cores > 2:
            one["spec_cores"] = draw(st.sampled_from((0, 0, 1, 1 << sockets * cores - 1)))
        gpus = ()
        if with_gres and draw(st.booleans()):
            half = (1 << cores) - 1
            near = [half, half << cores] if sockets == 2 and draw(st.booleans()) else [None]
            gpus = tuple(
                DeviceGroup("gpu", "a", 2, 2 * at, has_files=True, cores=mask or 0)
                for at, mask in enumerate(near)
            )
        kinds.append((one, gpus))
    return [draw(st.sampled_from(kinds)) for _ in range(SIZE)]


def made(drawn, oversubscribe):
    table = table_of([node(i, **one) for i, (one, _) in enumerate(drawn)])
    if any(gpus for _, gpus in drawn):
        table.gres = GresTable(("gpu",), [gpus for _, gpus in drawn])
    return tables_of(
        table,
        [Partition("main", nodes=nodeset.mask(SIZE), is_default=True, oversubscribe=oversubscribe)],
    )


@st.composite
def requests(draw, *, with_gres):
    """Fields of a job, as commands make them."""
    tasks, least = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    tasks = max(tasks, least)
    said = {
        "num_tasks": tasks,
        "min_nodes": least,
        "cpus_per_task": draw(st.sampled_from((1, 1, 2, 3))),
    }
    rare = st.integers(0, 5).map(lambda drawn: drawn == 0)
    if draw(st.booleans()):
        said["max_nodes"] = draw(st.integers(least, SIZE))
    memory = draw(st.integers(0, 3))
    if memory == 1:
        said["memory_per_cpu_mb"] = draw(st.sampled_from((30, 100, 250, 450)))
    elif memory == 2:
        said["memory_per_node_mb"] = draw(st.sampled_from((100, 500, 1000)))
    if draw(rare):
        said["exclusive"] = True
    if draw(rare):
        said["oversubscribe"] = True
    if draw(rare):
        each = said["ntasks_per_node"] = draw(st.integers(1, 4))
        said["min_nodes"] = max(least, -(-tasks // each))
    if draw(rare):
        said["ntasks_per_socket"] = draw(st.integers(1, 3))
    if draw(rare):
        said["ntasks_per_core"] = draw(st.integers(1, 2))
    if draw(rare):
        said["threads_per_core"] = draw(st.integers(1, 2))
    if draw(rare):
        said["min_cpus_node"] = draw(st.integers(1, 6))
    if draw(rare):
        said["contiguous"] = True
    if draw(rare):
        # counted ones are looked ahead for one by one, as Slurm does
        said["features"] = draw(st.sampled_from(("a", "a&b", "a|b", "[a|b]")))
    if draw(rare):
        which = draw(st.sampled_from(("sockets_per_node", "cores_per_socket")))
        said[which] = draw(st.integers(1, 2))
    if draw(rare):
        said["distribution"] = draw(st.sampled_from(("block", "cyclic", "block:block", "plane=2")))
    if with_gres and draw(st.booleans()):
        which = draw(st.sampled_from(("gres", "tres_per_job", "tres_per_task", "tres_per_socket")))
        said[which] = f"gpu:{draw(st.integers(1, 3))}"
    if draw(rare):
        said["excluded_nodes"] = draw(nodes)
    if draw(rare):
        required = draw(nodes) & ~said.get("excluded_nodes", 0)
        if said.get("contiguous") and required:
            required = nodeset.span(
                nodeset.first(required), draw(st.integers(1, SIZE))
            ) & nodeset.mask(SIZE)
            said["excluded_nodes"] = said.get("excluded_nodes", 0) & ~required
        said["required_nodes"] = required
        said["min_nodes"] = max(said["min_nodes"], said["required_nodes"].bit_count())
    if said.get("max_nodes", SIZE) < said["min_nodes"]:
        said["max_nodes"] = said["min_nodes"]
    return said


nodes = st.integers(0, nodeset.mask(SIZE))


@st.composite
def clusters(draw, *, with_gres):
    """A selector and its tables. Where select/linear shares nodes, Slurm itself tells who asks
    ahead of more nodes than he is given.
    """
    words = frozenset(
        {draw(st.sampled_from(PARAMETERS)), *draw(st.sets(st.sampled_from(MORE), max_size=1))}
    )
    is_linear = draw(st.integers(0, 5)) == 0
    tables = made(
        draw(machines(with_gres=with_gres)),
        draw(st.sampled_from(("NO", "EXCLUSIVE") if is_linear else OVERSUBSCRIBE)),
    )
    return SelectLinear(words & {"CR_MEMORY"}) if is_linear else SelectConsTres(words), tables


def check(job, got, tables, selector):
    """The allocation is one that the job may have."""
    spec, table = job.spec, tables.nodes
    assert not job.required_nodes & ~got.nodes
    assert not got.nodes & job.excluded_nodes
    assert job.min_nodes <= got.node_count <= (job.max_nodes or SIZE)
    if (
        spec.contiguous
        and not selector.whole_nodes
        and "CR_LLN" not in selector.parameters
        and job.max_nodes in (None, job.min_nodes)
    ):
        # as in Slurm, nodes that it need not have may be anywhere, and those that are too small are
        # passed over
        first = nodeset.first(got.nodes)
        assert (
            not nodeset.span(first, nodeset.last(got.nodes) - first + 1)
            & ~got.nodes
            & (job.excluded_nodes | table.full_nodes)
        )
    tasks = 0
    for share in got.shares:
        one = table.nodes[share.node]
        free = ~table.used_cores[share.node] if got.shared_in == "" else -1
        assert not share.cores & ~((1 << one.sockets * one.cores_per_socket) - 1), (
            "cores that it has"
        )
        assert not share.cores & one.spec_cores
        assert share.cores & free == share.cores, "cores of others"
        assert share.memory_mb <= table.free_memory[share.node], "memory of others"
        assert share.tasks <= (spec.ntasks_per_node or share.tasks)
        tasks += share.tasks
        if spec.features in ("a", "b", "a&b"):
            assert set(spec.features.split("&")) <= set(one.features)
        if selector.consumes_memory and spec.mem_per_node_mb:
            assert share.memory_mb >= (job.memory_per_node_mb or 0)
        if spec.gres:
            given, asked = sum(held.amount for held in share.gres), int(spec.gres.partition(":")[2])
            assert given >= asked if got.whole or job.exclusive else given == asked
        for held in share.gres:
            assert held.amount == held.devices.bit_count()
    assert tasks >= job.num_tasks
    if job.cpus_per_task == 1:  # else it may have fewer, as in Slurm
        assert got.cpus >= job.num_tasks
    if spec.tres_per_job and selector.counts_gpus:
        given, asked = (
            sum(held.amount for share in got.shares for held in share.gres),
            int(spec.tres_per_job.partition(":")[2]),
        )
        assert given >= asked  # each of its nodes may have to give one
    if spec.tres_per_task and selector.counts_gpus:
        assert sum(held.amount for share in got.shares for held in share.gres) >= int(
            spec.tres_per_task.partition(":")[2]
        )


def agree(selector, tables, job, now):
    """All questions about the job; what it gets."""
    partition, up = tables.partitions["main"], tables.nodes.up_nodes
    expected = selector.will_run(Ask(job, partition, up), tables, now)
    got = selector.select(Ask(job, partition, up), tables)
    could = selector.could_ever_run(Ask(job, partition, partition.nodes), tables)
    assert (expected is not None and expected[0] <= now) == (got is not None), (
        f"expected {expected}, got {got}"
    )
    if expected is not None and not could:
        # Refused at its submission, as by 22.05.8: where it may have so many nodes only, light ones
        # that are small use them up on an idle machine, and not where others have those.
        assert tables.running
        assert job.max_nodes is not None
        return None
    if got is not None:
        check(job, got, tables, selector)
    # Slurm lets those wait for ever
    if not tables.running and not (selector.whole_nodes and job.memory_per_cpu_mb):
        assert could == (got is not None)
    return got


@pytest.mark.parametrize("with_gres", [False, True])
@given(st.data())
def test_who_could_run_now_is_started_on_idle_nodes_and_has_what_he_asked_for(with_gres, data):
    selector, tables = data.draw(clusters(with_gres=with_gres))
    agree(selector, tables, make_job(1, **data.draw(requests(with_gres=with_gres))), 0)


@pytest.mark.parametrize("with_gres", [False, True])
@given(st.data())
def test_who_could_run_now_is_started_beside_others(with_gres, data):
    selector, tables = data.draw(clusters(with_gres=with_gres))
    for job_id in range(1, 5):
        job = make_job(
            job_id,
            limit_s=data.draw(st.sampled_from((60, 600))),
            **data.draw(requests(with_gres=with_gres)),
        )
        got = agree(selector, tables, job, 0)
        if got is not None:
            tables.nodes.allocate(got)
            advance(job, JobEvent.ALLOCATED, 0)
            job.allocation, job.partition, job.start_time, job.end_time = (
                got,
                "main",
                0,
                job.time_limit_s,
            )
            tables.jobs[job_id] = tables.running[job_id] = job
