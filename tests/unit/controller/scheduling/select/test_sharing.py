"""Partitions in which jobs share cores (OverSubscribe).

Covers: controller/scheduling/select/rows, controller/tables/shared_cores.
"""

import pytest
from scheduling_harness import make_job, node, table, table_of, tables_of

from understudy.controller.scheduling.api import Ask
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.tables.allocation import Allocation, ShareGroup
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.shared_cores import SharedCores
from understudy.model.states import JobState


class Cluster:
    """Three nodes of four CPUs, and partitions over all of them."""

    def __init__(self):
        made = table_of([node(i, cores=4) for i in range(3)])
        shares = {"main": "NO", "force": "FORCE:2", "yes": "YES:2"}
        self.tables = tables_of(
            made, [Partition(name, nodes=0b111, oversubscribe=how) for name, how in shares.items()]
        )
        self.tables.partitions["users"] = Partition("users", nodes=0b111, exclusive_user=True)
        self.selector = SelectConsTres(frozenset({"CR_CORE"}))
        self.jobs = {}

    def start(self, partition, tasks, user=1000, **fields):
        """The CPUs on each node, "" if it has to wait."""
        job = make_job(len(self.jobs) + 1, num_tasks=tasks, **fields)
        job.user_id = user
        allocation = self.selector.select(
            Ask(job, self.tables.partitions[partition], 0b111), self.tables
        )
        if allocation is None:
            return ""
        self.tables.nodes.allocate(allocation)
        job.allocation, job.start_time, job.state, job.partition = (
            allocation,
            0,
            JobState.RUNNING,
            partition,
        )
        self.jobs[job.job_id] = self.tables.running[job.job_id] = job
        return " ".join(f"{share.node}:{share.cores:04b}" for share in allocation.shares)

    def suspend(self, job_id):
        job = self.jobs[job_id]
        self.tables.nodes.release(job.allocation, job.allocation.nodes)
        job.state, job.held = JobState.SUSPENDED, Allocation.of_groups(())

    def end(self, job_id):
        job = self.tables.running.pop(job_id)
        self.tables.nodes.release(job.allocation, job.allocation.nodes)


def test_idle_cores_come_before_shared_ones_and_as_many_share_as_may():
    cluster = Cluster()
    assert [cluster.start("force", 4) for _ in range(3)] == ["0:1111", "1:1111", "2:1111"]
    assert [cluster.start("force", 4) for _ in range(3)] == ["0:1111", "1:1111", "2:1111"]
    assert cluster.start("force", 1) == ""
    assert cluster.tables.nodes.free_cpus.tolist() == [0, 0, 0]


def test_within_a_row_no_core_is_given_twice():
    cluster = Cluster()
    for expected, tasks in (
        ("0:0011", 2),
        ("0:1100", 2),
        ("1:1111 2:1111", 8),
        ("0:0111", 3),
        ("1:0111", 3),
        ("", 9),
        ("2:0011", 2),
    ):
        assert cluster.start("force", tasks) == expected


def test_cores_of_other_partitions_are_not_shared():
    cluster = Cluster()
    cluster.start("main", 6)
    assert cluster.start("force", 8) == ""
    assert cluster.start("force", 4) == "2:1111"
    assert cluster.start("main", 3) == ""


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [
        ("force", "main", False), ("main", "force", False), ("yes", "main", False),
        ("main", "yes", True), ("yes", "force", False),
        ("force", "yes", False), ("force", "yes -s", True), ("yes -s", "force", True),
        ("yes -s", "main", False), ("main", "yes -s", False),
        ("one", "main", True), ("main", "one", False), ("one", "force", True),
        ("force", "one", True), ("yes", "yes -s", False),
        ("yes -s", "yes", True),
    ],
)  # fmt: skip
def test_jobs_that_share_cores_and_jobs_that_do_not_keep_away_from_each_other(first, second, meet):
    cluster = Cluster()
    cluster.tables.partitions["one"] = Partition("one", nodes=0b111, oversubscribe="FORCE:1")
    places = [
        cluster.start(name.split()[0], 1, oversubscribe=name.endswith("-s"))
        for name in (first, second)
    ]
    assert places == ["0:0001", "0:0010" if meet else "1:0001"]


@pytest.mark.parametrize(("first", "second"), [("force", "main"), ("main", "force")])
def test_neither_keeps_away_from_one_of_the_other_kind_that_is_suspended(first, second):
    """Slurm 22.05.8: as soon as the job is suspended the other starts on its nodes."""
    cluster = Cluster()
    assert cluster.start(first, 4) == "0:1111"
    cluster.suspend(1)
    assert cluster.start(second, 4) == "0:1111"


def test_cores_of_jobs_that_share_in_other_partitions_count_as_free_row_by_row():
    cluster = Cluster()
    assert cluster.start("yes", 3, oversubscribe=True) == "0:0111"
    assert cluster.start("force", 1) == "0:1000"
    assert cluster.start("main", 8) == "1:1111 2:1111"
    assert cluster.start("force", 1) == "0:0001"
    cluster.tables.partitions["yes"].priority_tier = 2
    assert cluster.start("force", 2) == ""  # of higher partitions they do not
    assert cluster.start("force", 1) == "0:1000"


def test_yes_shares_with_those_who_agree():
    cluster = Cluster()
    assert cluster.start("yes", 8) == "0:1111 1:1111"
    assert cluster.start("yes", 4, oversubscribe=True) == "2:1111"
    assert cluster.start("yes", 8, oversubscribe=True) == ""
    assert cluster.start("yes", 4, oversubscribe=True) == "2:1111"
    assert cluster.start("yes", 1) == ""


def test_cores_are_free_again_when_the_last_job_has_left_them():
    cluster = Cluster()
    cluster.start("force", 12)
    cluster.start("force", 4)
    cluster.end(1)
    assert cluster.tables.nodes.free_cpus.tolist() == [0, 4, 4]
    assert cluster.tables.nodes.idle_nodes == 0b110
    cluster.end(2)
    assert cluster.tables.nodes.free_cpus.tolist() == [4, 4, 4]
    assert cluster.start("main", 12) == "0:1111 1:1111 2:1111"


def test_a_shared_core_is_expected_to_be_free_after_the_last_of_its_jobs():
    cluster = Cluster()
    cluster.start("force", 12, limit_s=600)
    cluster.start("force", 12, limit_s=1200)
    main, force = cluster.tables.partitions["main"], cluster.tables.partitions["force"]
    assert cluster.selector.will_run(
        Ask(make_job(9, num_tasks=4), main, 0b111), cluster.tables, 0
    ) == (
        1200,
        0b1,
    )
    assert cluster.selector.will_run(
        Ask(make_job(9, num_tasks=4), force, 0b111), cluster.tables, 0
    ) == (
        600,
        0b1,
    )


def test_an_exclusive_job_of_a_forced_partition_has_all_cores_and_shares_them():
    cluster = Cluster()
    assert cluster.start("force", 1, exclusive=True) == "0:1111"
    assert [cluster.start("force", 4) for _ in range(3)] == ["1:1111", "2:1111", "0:1111"]


def test_nodes_of_one_user_are_no_others():
    cluster = Cluster()
    assert cluster.start("main", 1, user=1, exclusive_for="user") == "0:0001"
    assert cluster.start("main", 1, user=2) == "1:0001"
    assert cluster.start("main", 1, user=1) == "0:0010"
    assert cluster.start("users", 1, user=2) == "1:0010"
    assert cluster.start("users", 1, user=3) == "2:0001"
    assert cluster.start("users", 1, user=4) == ""
    assert cluster.start("main", 1, user=4) == ""


def test_the_others_are_laid_out_anew_when_a_job_leaves():
    def held(cores):
        return Allocation(1, 4, (ShareGroup(1, cores.bit_count(), cores, 0),), shared_in="p")

    shared, first, second, third = SharedCores(), held(0b0011), held(0b1100), held(0b0110)
    for each in (first, second, third):
        shared.add(each)
    assert shared.rows["p"] == [{0: 0b1111}, {0: 0b0110}]
    assert shared.remove(first, 1) == {0: 0b0001}
    assert shared.rows["p"] == [{0: 0b0110}, {0: 0b1100}]


def test_in_how_many_parts_and_in_which_order_jobs_leave_makes_no_difference():
    def held(nodes, cores):
        groups = (ShareGroup(nodes, cores.bit_count(), cores, 0),)
        return Allocation(nodes, 4, groups, shared_in="p")

    def left(*parts):
        shared = SharedCores()
        jobs = [held(0b11, 0b1100), held(0b110, 0b111), held(0b10, 0b1111), held(1, 0b111)]
        for each in jobs:
            shared.add(each)
        for job, nodes in parts:
            shared.remove(jobs[job], nodes)
        return shared.rows["p"]

    assert left((0, 0b11)) == [{0: 0b111, 1: 0b1111}, {1: 0b111, 2: 0b111}]
    assert left((0, 0b01), (0, 0b10)) == left((0, 0b11))
    both = left((0, 0b11), (1, 0b110))
    assert both == [{0: 0b111, 1: 0b1111}]
    assert left((1, 0b100), (0, 0b10), (0, 0b01), (1, 0b010)) == both


def test_no_start_is_planned_where_others_run_as_long_as_they_do_if_the_nodes_are_to_be_one_users():
    cluster = Cluster()
    cluster.start("main", 8, user=1, limit_s=600)
    alone = {"num_tasks": 8, "exclusive_for": "user"}
    main = cluster.tables.partitions["main"]
    for user, expected in ((2, None), (1, (600, 0b101))):
        job = make_job(9, **alone)
        job.user_id = user
        found = cluster.selector.will_run(Ask(job, main, 0b111), cluster.tables, 0)
        assert (found is None) == (expected is None)
    assert cluster.start("main", 4, user=3, exclusive_for="user") == "2:1111"
    job = make_job(9, num_tasks=12)
    job.user_id = 2
    assert cluster.selector.will_run(Ask(job, main, 0b111), cluster.tables, 0) is None


def test_of_those_that_begin_with_the_same_core_the_emptiest_row_is_laid_out_first():
    def held(**cores):
        shares = {int(name[1:]): mask for name, mask in cores.items()}
        groups = tuple(
            ShareGroup(1 << node, mask.bit_count(), mask, 0) for node, mask in shares.items()
        )
        return Allocation(sum(1 << node for node in shares), 4, groups, shared_in="p")

    shared = SharedCores()
    gone, large, first, small, wide = (
        held(n0=0b0011), held(n1=0b1111, n2=0b1111, n3=0b1111), held(n0=0b1111), held(n1=0b1111),
        held(n2=1, n3=1)
    )  # fmt: skip
    for each in (gone, large, first, small, wide):
        shared.add(each)
    before = [{0: 0b1111, 1: 0b1111, 2: 1, 3: 1}, {1: 0b1111, 2: 0b1111, 3: 0b1111}]
    shared.remove(gone, 1)
    assert shared.rows["p"] == before
    shared.remove(small, 0b10)
    assert shared.rows["p"] == [{0: 0b1111, 1: 0b1111, 2: 0b1111, 3: 0b1111}, {2: 1, 3: 1}]


def test_sharing_survives_the_saved_state():
    made = Allocation(1, 4, (ShareGroup(1, 4, 0b1111, 0),), shared_in="p", owned=True)
    assert Allocation.unpack(made.pack()) == made


def test_jobs_of_a_partition_have_no_more_cpus_of_a_node_than_it_allows():
    cluster = Cluster()
    cluster.tables.partitions["few"] = Partition("few", nodes=0b111, max_cpus_per_node=3)
    assert cluster.start("few", 4) == "0:0111 1:0001"
    assert cluster.start("main", 1) == "0:1000"
    cluster.tables.running[1].partition = "few"
    assert cluster.start("few", 6) == ""
    assert cluster.start("few", 3) == "2:0111"


def test_a_suspended_job_has_none_of_the_cpus_that_its_partition_allows_on_a_node():
    """Slurm 22.05.8: as soon as the job is suspended the other starts beside it."""
    cluster = Cluster()
    cluster.tables.partitions["few"] = Partition("few", nodes=0b1, max_cpus_per_node=3)
    assert cluster.start("few", 3) == "0:0111"
    assert cluster.start("few", 3) == ""
    cluster.suspend(1)
    assert cluster.start("few", 3) == "0:0111"


def test_jobs_of_one_cpu_go_to_the_last_nodes_where_the_site_says_so():
    cluster = Cluster()
    cluster.selector.expect(overrun_s=30, packs_serial=True)
    assert cluster.start("main", 1) == "2:0001"
    assert cluster.start("main", 2) == "2:0110"
    assert cluster.start("main", 1) == "2:1000"
    assert cluster.start("main", 1) == "1:0001"


def test_a_partition_may_give_whole_sockets_where_the_cluster_gives_cores():
    made = table_of([node(0, sockets=2, cores=2)])
    tables = tables_of(made, [Partition("main", nodes=1, select_type_parameters="CR_SOCKET")])
    allocation = SelectConsTres(frozenset({"CR_CORE"})).select(
        Ask(make_job(num_tasks=1), tables.partitions["main"], 1), tables
    )
    assert (allocation.cpus, allocation.shares[0].cores) == (2, 0b0011)


def test_a_row_of_its_own_gives_a_job_no_memory_that_others_have():
    tables = tables_of(table(1, cores=1), [Partition("force", nodes=1, oversubscribe="FORCE:3")])
    selector = SelectConsTres(frozenset({"CR_CORE_MEMORY"}))
    first = make_job(1, memory_per_node_mb=1000)
    tables.nodes.allocate(selector.select(Ask(first, tables.partitions["force"], 1), tables))
    assert (
        selector.select(
            Ask(make_job(2, memory_per_node_mb=1), tables.partitions["force"], 1), tables
        )
        is None
    )


@pytest.mark.parametrize("whole", [False, True])
def test_nodes_of_which_cpus_are_kept_back_are_not_one_users_unless_they_are_given_whole(
    whole: bool,
) -> None:
    """Of `MaxCPUsPerNode`; seen of 22.05.8, with `select/linear`, too."""
    cluster = Cluster()
    main = cluster.tables.partitions["main"]
    main.max_cpus_per_node = 3
    selector = SelectLinear() if whole else cluster.selector
    job = make_job(9, num_tasks=1, exclusive_for="user")
    found = selector.select(Ask(job, main, 0b111), cluster.tables)
    assert (found is not None) is whole
