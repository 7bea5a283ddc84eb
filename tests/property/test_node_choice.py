"""What must hold of any choice of nodes: features, counts, required nodes and switches are as asked
for.
"""

from hypothesis import given
from hypothesis import strategies as st
from scheduling_harness import make_job, node, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.tables.topology import Tree
from understudy.model.conf_companions import SwitchConf

SIZE = 12
FEATURES = ("", "a", "b", "a,b")
clusters = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from((1, 5)), st.sampled_from(FEATURES)),
    min_size=SIZE,
    max_size=SIZE,
)
sets = st.integers(0, (1 << SIZE) - 1)


def tables(drawn, *, with_tree=False):
    made = table_of(
        [
            node(i, cores=cores, weight=weight, features=features)
            for i, (cores, weight, features) in enumerate(drawn)
        ]
    )
    if with_tree:
        conf = [
            SwitchConf(f"s{i}", [f"n{4 * i + k}" for k in range(4)], [], 1, "", 1) for i in range(3)
        ]
        made.tree = Tree.of(
            [*conf, SwitchConf("top", [], ["s0", "s1", "s2"], 1, "", 1)], made.index_of
        )
    return tables_of(made)


def select(made, usable, most_switches=0, **fields):
    ask = Ask(make_job(**fields), made.partitions["main"], usable, switches=most_switches)
    return SelectConsTres(frozenset({"CR_CORE"})).select(ask, made)


@given(clusters, sets, sets, st.integers(1, 6), st.integers(1, 20), st.booleans())
def test_a_choice_is_usable_large_enough_and_holds_the_required_nodes(
    drawn, usable, required, nodes, tasks, with_tree
):
    required &= usable
    least = max(nodes, required.bit_count())
    got = select(
        tables(drawn, with_tree=with_tree),
        usable,
        min_nodes=least,
        num_tasks=max(tasks, least),
        required_nodes=required,
    )
    if got is None:
        return
    assert not got.nodes & ~usable
    assert not required & ~got.nodes
    assert got.node_count >= least
    assert all(share.cpus <= drawn[share.node][0] for share in got.shares)


@given(clusters, sets, st.integers(1, 3), st.integers(1, 3))
def test_counted_features_are_all_there_and_no_others(drawn, usable, of_a, of_b):
    made = tables(drawn)
    got = select(made, usable, features=f"[a*{of_a}&b*{of_b}]")
    if got is None:
        return
    a, b = (made.nodes.with_feature(name) for name in "ab")
    assert (got.nodes & a).bit_count() >= of_a
    assert (got.nodes & b).bit_count() >= of_b
    assert not got.nodes & ~(a | b)


@given(clusters, sets)
def test_all_nodes_have_the_same_one_of_the_alternatives(drawn, usable):
    made = tables(drawn)
    got = select(made, usable, min_nodes=2, num_tasks=2, features="[a|b]")
    alternatives = [made.nodes.with_feature(name) for name in "ab"]
    if got is None:
        assert all((usable & each).bit_count() < 2 for each in alternatives)
    else:
        assert any(not got.nodes & ~each for each in alternatives)


@given(clusters, sets, st.integers(1, 8), st.integers(1, 3))
def test_nodes_are_on_no_more_leaf_switches_than_asked_for(drawn, usable, nodes, most):
    made = tables(drawn, with_tree=True)
    got = select(made, usable, min_nodes=nodes, num_tasks=nodes, most_switches=most)
    tree = made.nodes.tree
    if got is not None:
        assert tree.leaves_of(got.nodes) <= most
        assert got.node_count >= nodes


@given(clusters, sets, st.integers(1, 8))
def test_a_job_that_fits_on_one_leaf_gets_one(drawn, usable, nodes):
    made = tables([(1, 1, features) for _, _, features in drawn], with_tree=True)
    got = select(made, usable, min_nodes=nodes, num_tasks=nodes, max_nodes=nodes)
    assert (got is None) == (usable.bit_count() < nodes)
    if got is not None and any(
        (usable & switch.nodes).bit_count() >= nodes for switch in made.nodes.tree.switches[:3]
    ):
        assert made.nodes.tree.leaves_of(got.nodes) == 1


class NodeByNode(SelectConsTres):
    """With no short way for idle nodes that are alike."""

    def _idle_and_alike(self, request, usable, table, free):
        del request, usable, table, free


busy = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 20)), max_size=4)
requests = st.fixed_dictionaries(
    {
        "min_nodes": st.integers(1, 4),
        "num_tasks": st.integers(1, 12),
        "cpus_per_task": st.integers(1, 2),
        "memory_per_cpu_mb": st.sampled_from((None, 500, 1000, 3000)),
        "exclusive": st.booleans(),
    }
)


def in_use(of_memory, cores, running):
    """Nodes of one size, some with more memory, and jobs that hold whole ones until `end`."""
    made = tables_of(table_of([node(i, cores=cores, memory=mb) for i, mb in enumerate(of_memory)]))
    selector = SelectConsTres(frozenset({"CR_CORE_MEMORY"}))
    for job_id, (nodes, end) in enumerate(running, start=1):
        job = make_job(job_id, limit_s=end * 100, num_tasks=nodes, min_nodes=nodes, exclusive=True)
        job.allocation = selector.select(Ask(job, made.partitions["main"], (1 << SIZE) - 1), made)
        if job.allocation is not None:
            job.start_time = 0
            made.nodes.allocate(job.allocation)
            made.running[job_id] = job
    return made


memories = st.lists(st.sampled_from((2000, 8000)), min_size=SIZE, max_size=SIZE)


@given(memories, st.integers(1, 2), busy, sets, requests)
def test_idle_nodes_that_are_alike_are_chosen_as_if_each_were_looked_at(
    of_memory, cores, running, usable, request
):
    made = in_use(of_memory, cores, running)
    job, kind = make_job(9, **request), frozenset({"CR_CORE_MEMORY"})
    ask = Ask(job, made.partitions["main"], usable)
    short, long = SelectConsTres(kind), NodeByNode(kind)
    assert short.select(ask, made) == long.select(ask, made)
    assert short.will_run(ask, made, 50) == long.will_run(ask, made, 50)
    assert short.could_ever_run(ask, made) == long.could_ever_run(ask, made)


@given(
    memories,
    busy,
    st.lists(st.tuples(sets, requests, st.integers(0, 700), st.integers(0, 2000)), max_size=12),
)
def test_a_start_that_was_found_before_is_what_would_be_found_now(of_memory, running, questions):
    made = in_use(of_memory, 1, running)
    kind, main = frozenset({"CR_CORE_MEMORY"}), made.partitions["main"]
    remembers, now = SelectConsTres(kind), 0
    for usable, request, later, ahead in questions + questions:
        now += later
        ask = Ask(make_job(9, **request), main, usable)
        for until in (None, now + ahead):
            assert remembers.will_run(ask, made, now, until) == SelectConsTres(kind).will_run(
                ask, made, now, until
            )
