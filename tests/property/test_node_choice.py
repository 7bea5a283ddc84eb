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
