"""What select/linear of 22.05.8 was seen to do on six nodes in partitions in which jobs share
them.
"""

import pytest
from scheduling_harness import make_job, node, table, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.crowding import crowd_for
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.select.request import Request
from understudy.controller.scheduling.select.rows import RowView
from understudy.controller.tables.partition import Partition
from understudy.model import nodeset
from understudy.model.states import JobState


def nodes(text):
    """The bitmap of nodes that Slurm calls n1 ... n6."""
    return nodeset.from_positions(int(name[1:]) - 1 for name in text.split(","))


class Cluster:
    def __init__(self, made=None, parameters=frozenset()):
        words = {"f": "FORCE:3", "g": "FORCE:2", "y": "YES:2", "no": "NO"}
        made = made or table(6, cores=8)
        self.tables = tables_of(
            made,
            [
                Partition(name, nodes=nodeset.mask(6), oversubscribe=word)
                for name, word in words.items()
            ],
        )
        self.selector, self.count = SelectLinear(parameters), 0

    def job(self, count, partition, **said):
        self.count += 1
        return make_job(
            self.count, min_nodes=count, num_tasks=count, partitions=(partition,), **said
        )

    def run(self, count, partition="f", on="", minutes=10, **said):
        """Start a job; the nodes that it gets, "" if it has to wait."""
        job = self.job(
            count, partition, required_nodes=nodes(on) if on else 0, limit_s=minutes * 60, **said
        )
        allocation = self.selector.select(
            Ask(job, self.tables.partitions[partition], nodeset.mask(6)), self.tables
        )
        if allocation is None:
            return ""
        job.allocation, job.partition, job.start_time, job.state = (
            allocation,
            partition,
            0,
            JobState.RUNNING,
        )
        self.tables.nodes.allocate(allocation)
        self.tables.running[job.job_id] = self.tables.jobs[job.job_id] = job
        return ",".join(f"n{i + 1}" for i in nodeset.indices(allocation.nodes))

    def will_run(self, count, partition="f", **said):
        """When and where it could start."""
        job = self.job(count, partition, **said)
        start, where = self.selector.will_run(
            Ask(job, self.tables.partitions[partition], nodeset.mask(6)), self.tables, 0
        )
        return start, ",".join(f"n{i + 1}" for i in nodeset.indices(where))


def test_nodes_with_fewer_jobs_come_first_and_no_node_gets_more_jobs_than_the_partition_allows():
    cluster = Cluster()
    asked = [2, 2, 2, 2, 1, 1, 3, 2, 4]
    got = ["n1,n2", "n3,n4", "n5,n6", "n1,n2", "n3", "n4", "n1,n2,n3", "n5,n6", ""]
    assert [cluster.run(each) for each in asked] == got


def test_a_job_joins_a_running_one_of_as_many_nodes():
    cluster = Cluster()
    assert [cluster.run(each) for each in (2, 4, 4, 3)] == [
        "n1,n2",
        "n3,n4,n5,n6",
        "n3,n4,n5,n6",
        "n1,n2,n3",
    ]


def test_the_first_mate_is_taken_of_which_no_node_is_fuller_than_others_need_be():
    cluster = Cluster()
    for where in ("n1,n2", "n3,n4", "n5,n6", "n5,n6"):
        cluster.run(2, on=where)
    cluster.run(1, on="n1")
    assert [cluster.run(2), cluster.run(2)] == ["n3,n4", "n1,n2"]


def test_mates_are_alike_in_being_contiguous():
    cluster = Cluster()
    cluster.run(2, on="n5,n6", contiguous=True)
    cluster.run(4)
    assert cluster.run(2) == "n1,n2"
    assert cluster.run(2, contiguous=True) == "n5,n6"


def test_jobs_of_other_partitions_count_and_can_be_mates():
    cluster = Cluster()
    assert [cluster.run(3), cluster.run(1, "g"), cluster.run(2, "g")] == ["n1,n2,n3", "n4", "n5,n6"]
    assert cluster.run(2) == "n5,n6"
    assert cluster.run(6, "g") == ""


def test_nodes_of_a_job_that_does_not_share_are_left_alone():
    cluster = Cluster()
    assert [cluster.run(2, "no"), cluster.run(4), cluster.run(2), cluster.run(5)] == [
        "n1,n2",
        "n3,n4,n5,n6",
        "n3,n4",
        "",
    ]


def test_jobs_share_where_they_agree_to():
    cluster = Cluster()
    agrees = {"oversubscribe": True}
    assert cluster.run(3, "y", **agrees) == "n1,n2,n3"
    assert cluster.run(1, "y", **agrees) == "n4"
    assert cluster.run(1, "y") == "n5"
    assert cluster.run(2, "y", **agrees) == "n1,n2"
    assert cluster.run(5, "y", **agrees) == ""


def test_lighter_nodes_are_shared_before_heavier_ones_are_used():
    made = table_of([node(i, cores=8, weight=1 if i < 3 else 5) for i in range(6)])
    cluster = Cluster(made)
    assert [cluster.run(2), cluster.run(2), cluster.run(2), cluster.run(2)] == [
        "n1,n2",
        "n1,n2",
        "n1,n2",
        "n3,n4",
    ]


def test_who_asks_when_a_job_could_run_is_offered_all_nodes_with_room():
    cluster = Cluster()
    cluster.run(2)
    assert cluster.will_run(4) == (0, "n1,n2,n3,n4")
    cluster.run(6, minutes=2)
    cluster.run(6, minutes=5)
    assert cluster.will_run(4) == (0, "n3,n4,n5,n6")
    assert cluster.will_run(6) == (120, "n1,n2,n3,n4,n5,n6")


def test_a_job_that_is_requeued_and_still_holds_nodes_can_be_taken_not_to_be_there():
    """It runs no more: the pass had failed on it."""
    cluster = Cluster()
    for _ in range(3):
        cluster.run(6)
    ask = Ask(cluster.job(6, "f"), cluster.tables.partitions["f"], nodeset.mask(6))
    request, table = Request.of(ask, cluster.tables.nodes), cluster.tables.nodes
    assert not crowd_for(request, cluster.tables, table, for_will_run=True).idle_nodes
    cluster.tables.running.pop(3)
    view = RowView(table, table, {}, hidden=frozenset({3}))
    crowd = crowd_for(request, cluster.tables, view, for_will_run=True)
    assert crowd.idle_nodes == nodeset.mask(6)


def test_a_job_that_shares_with_nobody_is_promised_nodes_on_which_one_sharing_job_is_left():
    cluster = Cluster()
    for minutes in (2, 5, 20):
        cluster.run(6, minutes=minutes)
    assert cluster.will_run(1, "no") == (300, "n1")
    cluster.tables.running.pop(1)
    cluster.tables.nodes.release(cluster.tables.jobs[1].allocation, nodeset.mask(6))
    assert cluster.run(1, "no") == ""


@pytest.mark.parametrize(("each", "fits"), [(400, True), (600, False)])
def test_memory_bounds_how_many_share_a_node(each, fits):
    cluster = Cluster(parameters=frozenset({"CR_MEMORY"}))
    cluster.run(6, memory_per_node_mb=500)
    assert bool(cluster.run(1, memory_per_node_mb=each)) is fits
