"""Which nodes a job gets under topology/tree: recorded from Slurm 22.05.8."""

import numpy as np
import pytest
from scheduling_harness import World, make_job, table, tables_of

from understudy.controller.scheduling.api import Ask, Note
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.scheduling.slurm.main_pass import switches
from understudy.controller.tables.topology import Tree
from understudy.model import nodeset
from understudy.model.conf_companions import SwitchConf
from understudy.model.hostlist import compress, expand

NAMES = [f"n{i}" for i in range(1, 41)]
LEAVES = {
    "s1": "n[1-6]",
    "s2": "n[7-12]",
    "s3": "n[13-20]",
    "s4": "n[21-26]",
    "s5": "n[27-32]",
    "s6": "n[33-40]",
}
ABOVE = {"t1": ["s1", "s2", "s3"], "t2": ["s4", "s5", "s6"], "top": ["t1", "t2"]}


def tree(**options):
    conf = [
        SwitchConf(name, expand(nodes), [], 1, "topology.conf", 1) for name, nodes in LEAVES.items()
    ]
    conf += [SwitchConf(name, [], below, 1, "topology.conf", 1) for name, below in ABOVE.items()]
    return Tree.of(conf, {name: i for i, name in enumerate(NAMES)}, **options)


def bits(expression):
    return (
        nodeset.from_positions(NAMES.index(name) for name in expand(expression))
        if expression
        else 0
    )


def chosen(busy="", selector=None, topology=None, most_switches=0, **fields):
    tables = tables_of(table(40, cores=4))
    tables.nodes.tree = tree() if topology is None else topology
    usable = bits("n[1-40]") & ~bits(busy)
    ask = Ask(make_job(**fields), tables.partitions["main"], usable, switches=most_switches)
    allocation = (selector or SelectConsTres(frozenset({"CR_CORE"}))).select(ask, tables)
    return (
        None
        if allocation is None
        else compress([NAMES[i] for i in nodeset.indices(allocation.nodes)])
    )


HALF = "n[1-4],n[13-17],n[27-28]"  # leaves with 2, 6, 3 and 6, 4, 8 nodes left
RECORDED = [
    ("", 2, "n[1-2]"), ("", 7, "n[13-19]"), ("", 9, "n[1,13-20]"), ("", 15, "n[1-7,13-20]"),
    ("", 21, "n[1-21]"), ("", 30, "n[1-22,33-40]"),
    ("n[1-12]", 9, "n[21,33-40]"), ("n[1-12]", 21, "n[13-19,21-26,33-40]"),
    (HALF, 2, "n[5-6]"),
    (HALF, 3, "n[18-20]"), (HALF, 4, "n[29-32]"), (HALF, 6, "n[7-12]"), (HALF, 9, "n[7-12,18-20]"),
    (HALF, 10, "n[5,7-12,18-20]"),
    (HALF, 12, "n[29-40]"), (HALF, 14, "n[21-26,33-40]"), (HALF, 15, "n[5,7-12,33-40]"),
    (HALF, 17, "n[7-12,18-20,33-40]"),
    (HALF, 18, "n[7-12,29-40]"), (HALF, 19, "n[7-12,21-25,33-40]"),
    (HALF, 24, "n[7-12,21-26,29-40]"),
    ("n[21-24],n[33-37]", 10, "n[1-4,27-32]"), ("n[21-24],n[33-37]", 15, "n[1-7,13-20]"),
    ("n[33-38]", 22, "n[1-20,39-40]"),
    ("n[33-38]", 13, "n[13-19,21-26]"), ("n[1-4]", 18, "n[5-6,13-20,33-40]"),
    ("n[1-4]", 20, "n[7-10,13-20,33-40]"),
]  # fmt: skip


@pytest.mark.parametrize(("busy", "count", "expected"), RECORDED)
def test_leaves_are_used_up_in_the_recorded_order(busy, count, expected):
    assert chosen(busy, min_nodes=count, num_tasks=count, max_nodes=count) == expected


@pytest.mark.parametrize(
    ("busy", "count", "required", "expected"),
    [
        ("", 3, "n30", "n[27-28,30]"),
        ("", 7, "n30", "n[21,27-32]"),
        ("", 7, "n[3,30]", "n[1-6,30]"),
        ("", 16, "n14", "n[1-8,13-20]"),
        ("n[33-38]", 13, "n[1,21]", "n[1-6,21-26,39]"),
        ("n[33-38]", 9, "n14", "n[1,13-20]"),
        ("n[1-4]", 9, "n34", "n[5,33-40]"),
    ],
)
def test_leaves_of_required_nodes_come_first(busy, count, required, expected):
    assert (
        chosen(
            busy, min_nodes=count, num_tasks=count, max_nodes=count, required_nodes=bits(required)
        )
        == expected
    )


def test_tasks_without_a_number_of_nodes_fill_small_leaves_first():
    assert chosen(num_tasks=30) == "n[1-8]"
    assert chosen(HALF, num_tasks=10) == "n[5-6,18]"
    assert chosen(HALF, num_tasks=40) == "n[5-11,18-20]"


def test_a_job_that_asks_for_few_switches_gets_no_more():
    assert chosen(HALF, min_nodes=9, num_tasks=9, most_switches=2) == "n[7-12,18-20]"
    assert chosen(HALF, min_nodes=9, num_tasks=9, most_switches=1) is None
    assert chosen(HALF, min_nodes=10, num_tasks=10, most_switches=2) is None


def test_a_job_waits_for_few_switches_though_other_nodes_are_on_fewer():
    """A node left on the first leaf is taken first, as it is as many nodes as the job must have;
    then the tasks are on too many leaves.
    """
    assert chosen("n[1-5]", min_nodes=1, num_tasks=12) == "n[6-8]"
    assert chosen("n[1-5]", min_nodes=1, num_tasks=12, most_switches=1) is None
    assert chosen("n[1-6]", min_nodes=1, num_tasks=12, most_switches=1) == "n[7-9]"


def test_an_optional_tree_matters_only_to_jobs_that_ask_for_switches():
    optional = tree(optional=True)
    assert chosen("n[1-4]", topology=optional, min_nodes=7, num_tasks=7) == "n[5-11]"
    assert (
        chosen("n[1-4]", topology=optional, min_nodes=7, num_tasks=7, most_switches=1) == "n[13-19]"
    )


def test_linear_selection_follows_the_tree_too():
    assert chosen(selector=SelectLinear(), min_nodes=7, num_tasks=7) == "n[13-19]"


def test_switches_know_what_is_below_and_above_them():
    made = tree()
    assert [
        (switch.name, switch.level, switch.nodes.bit_count()) for switch in made.switches[-3:]
    ] == [("t1", 1, 20), ("t2", 1, 20), ("top", 2, 40)]
    assert made.leaves_of(bits("n[6-7]")) == 2


def test_a_job_waits_for_few_switches_only_so_long():
    job, planner = (
        make_job(switches=1, switches_wait_s=120),
        World(table(1), Builtin, SelectConsTres()),
    )
    assert switches(planner, job, 100, 300) == (1, 220)
    assert switches(planner, job, 219, 300) == (1, 220)
    assert switches(planner, job, 220, 300) == (0, None)
    assert job.switches_since == 100


def test_no_job_waits_for_switches_longer_than_the_site_allows():
    job, planner = make_job(switches=2), World(table(1), Builtin, SelectConsTres())
    assert switches(planner, job, 100, 60) == (2, 160)
    assert switches(planner, job, 160, 60) == (0, None)


def test_a_job_that_waits_for_switches_starts_on_more_of_them_at_last():
    tables = tables_of(table(40, cores=4))
    tables.nodes.tree = tree()
    world = World(
        tables, Builtin, SelectConsTres(frozenset({"CR_CORE"})), {"max_switch_wait": "90"}
    )
    world.policy.note(Note.START, 0.0)
    world.submit(at=0, run_s=10, limit_s=60, min_nodes=9, num_tasks=9, switches=1)
    world.run()
    assert 90 <= world.starts[1] <= 120


@pytest.mark.parametrize(
    ("busy", "fields", "expected"),
    [
        ("", {"min_nodes": 2}, "n[1-2]"),
        ("n[8-9]", {"min_nodes": 2}, "n[7,10]"),
        # the smallest leaf that suffices, though only others have neighbours
        ("", {"num_tasks": 28}, "n[13-19]"),  # CPUs count as nodes do
        ("n[1-4]", {"min_nodes": 9}, "n[5-13]"),  # the smallest leaves first, none is kept whole
        ("n[1-4]", {"min_nodes": 9, "required_nodes": "n14"}, "n[5,13-20]"),
        # but that of a required node before them
        ("n[1-4]", {"min_nodes": 4, "contiguous": True}, "n[7-10]"),
        # that suffices for the nodes that it must have, not for those that it would take
        ("n[1-4]", {"max_nodes": 8, "num_tasks": 8}, "n[5-6]"),
        ("", {"min_nodes": 7, "max_nodes": 30, "num_tasks": 30}, "n[13-20]"),
        ("n[1-38]", {"max_nodes": 3, "num_tasks": 3}, "n[39-40]"),
    ],
)
def test_linear_takes_the_smallest_leaves_below_the_smallest_switch_that_suffices(
    busy, fields, expected
):
    fields = {"num_tasks": fields.get("min_nodes", 1)} | fields
    if "required_nodes" in fields:
        fields["required_nodes"] = bits(fields["required_nodes"])
    assert chosen(busy, SelectLinear(), **fields) == compress(expand(expected))


@pytest.mark.parametrize(
    ("required", "least", "expected"),
    [
        ("", 1, "n[7-10]"),  # the last of those alike
        ("", 5, "n[1-6]"),
        ("", 7, ""),
        ("n2", 2, "n[1-6]"),
        ("n[1,7]", 2, ""),  # no switch connects them
    ],
)
def test_of_several_top_switches_the_last_that_has_enough_nodes(required, least, expected):
    conf = [
        SwitchConf(name, expand(nodes), [], 1, "topology.conf", 1)
        for name, nodes in (("s1", "n[1-6]"), ("s2", "n[7-10]"))
    ]
    found = Tree.of(conf, {name: at for at, name in enumerate(NAMES)}).below_one_top(
        np.arange(40), np.isin(NAMES, expand(required) if required else []), least
    )
    assert [NAMES[at] for at in np.flatnonzero(found)] == (expand(expected) if expected else [])
