"""The passes of sched/backfill and sched/builtin: what starts, where, and with which reason not.

Covers: controller/scheduling/slurm/backfill_pass, controller/scheduling/slurm/builtin,
controller/scheduling/slurm/main_pass, controller/scheduling/slurm/plan.
"""

import pytest
from scheduling_harness import World, make_job, node, table, table_of, tables_of

from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.scheduling.slurm.main_pass import NODES_DOWN
from understudy.controller.scheduling.slurm.plan import Slots
from understudy.controller.scheduling.slurm.queue import PendingQueue, slurm_order
from understudy.controller.tables.partition import Partition
from understudy.model.states import JobState, NodeState


def world(nodes=4, policy=Backfill, parameters=None, tables=None):
    made = World(
        tables or table(nodes),
        policy,
        SelectConsTres(frozenset({"CR_CPU"})),
        parameters,
        check=True,
    )
    made.policy.note(Note.START, 0.0)
    return made


def blocked(parameters=None):
    """Three of four nodes are busy for an hour, and a job of four waits from second 10 on."""
    w = world(parameters=parameters)
    w.submit(at=5, cpus=3, run_s=3600, limit_s=3600)
    w.submit(at=10, cpus=4, run_s=600, limit_s=600)
    return w


def test_a_job_that_delays_no_promise_is_started_by_the_next_backfill_pass():
    w = blocked()
    w.submit(at=11, cpus=1, run_s=600, limit_s=600)
    w.run(until=100)
    assert w.starts == {1: 6, 3: 30}
    assert w.tables.jobs[2].expected_start == 3606
    assert w.tables.jobs[2].expected_nodes == 0b1111


def test_promises_are_made_when_somebody_asks():
    w = blocked()
    w.policy.plans_when_asked = True
    w.submit(at=11, cpus=4, run_s=600, limit_s=600)
    w.run(until=100)
    assert [w.tables.jobs[i].expected_start for i in (2, 3)] == [None, None]
    w.policy.complete_plan(100.0)
    assert [w.tables.jobs[i].expected_start for i in (2, 3)] == [3606, 4200]
    assert w.starts == {1: 6}


@pytest.mark.parametrize("asked", [False, True])
def test_passes_that_promise_idle_nodes_follow_each_other_at_the_interval(asked):
    """What came at 75 was started at 90, three intervals after the first pass, by Slurm, though
    nothing had changed at 60.
    """
    w = blocked()
    if asked:
        w.policy.plans_when_asked = True
    w.submit(at=75, cpus=1, run_s=60, limit_s=60)
    w.run(until=100)
    assert w.starts == {1: 6, 3: 90}


@pytest.mark.parametrize(("waiting", "comes"), [(1, 75.57), (2, 90.57)])
def test_one_promise_of_nodes_in_use_is_no_change_but_two_are(waiting, comes):
    w = world()
    w.submit(at=5, cpus=4, run_s=3600, limit_s=3600)
    for _ in range(waiting):
        w.submit(at=10, cpus=4, run_s=600, limit_s=600)
    w.run(until=40)
    w.policy.backfill_trigger.note(75.1)
    assert w.policy.backfill_trigger.next_run() == pytest.approx(comes)


def test_a_pass_that_makes_no_promise_is_followed_by_one_when_something_changes():
    w = blocked({"bf_window": "10"})
    w.submit(at=75, cpus=1, run_s=60, limit_s=60)
    w.run(until=100)
    assert w.starts == {1: 6, 3: 75}


def test_a_job_longer_than_the_gap_before_a_promise_waits_for_it():
    w = blocked()
    w.submit(at=11, cpus=1, run_s=3600, limit_s=3600)
    w.run()
    assert w.starts[2] == 3606
    assert w.starts[3] > w.starts[2]
    # behind the promise, whose end is rounded down to the minute
    assert w.promises[3][0] == (30, 4200)


def test_promises_are_rounded_down_to_the_resolution():
    """The promise of second 3606 begins at 3600 in the plan: what would end at 3602 may not start
    at 30, what ends at 3600 may.
    """
    w = blocked()
    w.submit(at=11, cpus=1, run_s=10, limit_s=3600)
    w.submit(at=12, cpus=1, run_s=10, limit_s=3540)
    w.run(until=60)
    assert 3 not in w.starts
    assert w.starts[4] == 30


def test_the_main_scheduler_lets_nobody_pass():
    w = world(policy=Builtin)
    w.submit(at=5, cpus=3, run_s=3600, limit_s=3600)
    w.submit(at=10, cpus=4, run_s=600, limit_s=600)
    w.submit(at=11, cpus=1, run_s=60, limit_s=60)
    w.run(until=3000)
    assert w.starts == {1: 6}
    assert [w.tables.jobs[i].reason for i in (2, 3)] == ["Resources", "Priority"]
    w.run()
    assert w.starts[2] < w.starts[3]


def test_a_blocked_partition_keeps_its_nodes_from_those_that_overlap_only():
    tables = tables_of(
        table(4),
        [
            Partition("high", nodes=0b0011, priority_tier=2),
            Partition("low", nodes=0b0111),
            Partition("other", nodes=0b1000),
        ],
    )
    w = world(policy=Builtin, tables=tables)
    w.submit(at=1, cpus=1, run_s=900, limit_s=900, partitions=("high",))
    w.submit(at=2, cpus=2, run_s=60, limit_s=60, partitions=("high",))
    w.submit(at=3, cpus=2, run_s=60, limit_s=60, partitions=("low",))
    w.submit(at=4, cpus=1, run_s=60, limit_s=60, partitions=("low",))
    w.submit(at=5, cpus=1, run_s=60, limit_s=60, partitions=("other",))
    w.run(until=50)
    assert set(w.starts) == {1, 5}


def test_a_job_of_several_partitions_waits_in_those_only_whose_limits_it_keeps():
    tables = tables_of(
        table(4),
        [
            Partition("short", nodes=0b0011, max_time_s=300, priority_tier=2),
            Partition("long", nodes=0b1100),
        ],
    )
    w = world(policy=Builtin, tables=tables)
    w.submit(at=1, cpus=2, run_s=900, limit_s=900, partitions=("long",))
    w.submit(at=2, cpus=2, run_s=600, limit_s=600, partitions=("short", "long"))
    w.submit(at=3, cpus=2, run_s=60, limit_s=60, partitions=("short",))
    w.run(until=50)
    assert set(w.starts) == {1, 3}
    w.run()
    assert w.tables.jobs[2].partition == "long"


def test_a_long_queue_of_a_partition_takes_no_look_from_the_others():
    """Who waits as before is passed over, and is as soon as nobody before him does."""
    tables = tables_of(
        table(4), [Partition("a", nodes=0b0011, priority_tier=2), Partition("b", nodes=0b1100)]
    )
    w = world(policy=Builtin, tables=tables, parameters={"default_queue_depth": "1"})
    for at in range(1, 7):
        w.submit(at=at, cpus=2, run_s=100, limit_s=100, partitions=("a",))
    w.submit(at=50, cpus=1, run_s=60, limit_s=60, partitions=("b",))
    w.run(until=60)
    assert set(w.starts) == {1, 7}
    assert [w.tables.jobs[job].reason for job in range(2, 7)] == ["Resources"] + ["Priority"] * 4
    w.run()
    assert [w.starts[job] // 100 for job in range(1, 7)] == [0, 1, 2, 3, 4, 5]


def test_a_job_that_no_partition_could_ever_hold_stops_nobody():
    w = world(policy=Builtin)
    w.submit(at=1, cpus=5, run_s=60, limit_s=60)
    w.submit(at=2, cpus=4, run_s=60, limit_s=60)
    w.run(until=20)
    assert set(w.starts) == {2}
    assert w.tables.jobs[1].reason == "BadConstraints"


def test_a_job_keeps_no_nodes_in_a_partition_that_could_never_hold_it():
    w = world(
        policy=Builtin,
        tables=tables_of(table(4), [Partition("all", nodes=0b1111), Partition("a", nodes=0b0011)]),
    )
    # "a" comes first in the queue, by its name
    w.submit(at=1, cpus=4, run_s=60, limit_s=60, partitions=("all", "a"), required_nodes=0b0001)
    w.run()
    assert w.tables.jobs[1].partition == "all"


def test_only_as_many_jobs_are_tested_as_allowed():
    w = blocked(parameters={"bf_max_job_test": "1"})
    w.submit(at=11, cpus=1, run_s=600, limit_s=600)
    w.run(until=100)
    assert set(w.starts) == {1}


def test_jobs_below_the_priority_to_reserve_for_hold_nobody_back():
    w = blocked(parameters={"bf_min_prio_reserve": "5"})
    w.submit(at=11, cpus=1, run_s=3600, limit_s=3600)
    w.run(until=100)
    assert w.starts[3] < 30
    assert w.tables.jobs[2].expected_start is None


def test_jobs_of_a_qos_with_no_reserve_hold_nobody_back():
    """As 22.05.8 does whatever AccountingStorageEnforce says."""
    w = world()
    w.tables.unreserving_qos = frozenset({"low"})
    w.submit(at=5, cpus=3, run_s=3600, limit_s=3600)
    w.submit(at=10, cpus=4, run_s=600, limit_s=600, qos="low")
    w.submit(at=11, cpus=1, run_s=7200, limit_s=7200)
    w.run(until=100)
    assert w.starts == {1: 6, 3: 30}


def test_the_earliest_of_the_promises_in_several_partitions_is_shown():
    tables = tables_of(
        table(4),
        [
            Partition("late", nodes=0b0011, priority_tier=2),
            Partition("early", nodes=0b1100),
            Partition("later", nodes=0b0011, priority_tier=0),
        ],
    )
    w = world(tables=tables)
    w.submit(at=5, cpus=2, run_s=7200, limit_s=7200, partitions=("late",))
    w.submit(at=5, cpus=2, run_s=3600, limit_s=3600, partitions=("early",))
    w.submit(at=6, cpus=2, run_s=60, limit_s=60, partitions=("late", "early", "later"))
    w.run(until=100)
    job = w.tables.jobs[3]
    assert (job.expected_start, job.expected_nodes) == (3606, 0b1100)


def test_a_job_that_is_not_tried_any_more_loses_its_promise():
    w = blocked({"bf_max_job_user": "1"})
    w.run(until=40)
    assert w.tables.jobs[2].expected_start == 3606
    w.submit(at=41, cpus=4, run_s=600, limit_s=600, priority=9)
    w.run(until=100)
    assert [w.tables.jobs[i].expected_start for i in (2, 3)] == [None, 3606]


def test_who_lacks_licences_counts_among_a_user_s_jobs():
    """As seen of 22.05.8; who has met a limit that does not depend on what he wants does not."""
    w = blocked({"bf_max_job_user": "2"})
    w.submit(at=11, cpus=1, run_s=60, limit_s=60, licenses="none:1")
    w.submit(at=12, cpus=1, run_s=60, limit_s=60)
    w.run(until=100)
    assert 4 not in w.starts


def test_starts_of_one_pass_are_limited():
    w = blocked(parameters={"bf_max_job_start": "1", "sched_interval": "-1"})
    w.run(until=29)
    assert w.starts == {}
    w.run(until=31)
    assert set(w.starts) == {1}


def test_nobody_is_waiting_then_nothing_is_due():
    w = world()
    w.submit(at=5, cpus=1, run_s=100, limit_s=3600)
    w.run()
    assert w.policy.next_run() is None
    assert w.passes <= 2


def test_nodes_that_are_completing_are_not_given_but_promised():
    w = world(1)
    w.tables.nodes.completing_nodes = 1
    w.submit(at=1, cpus=1, run_s=60, limit_s=60)
    w.run(until=40)
    assert w.starts == {}
    assert w.tables.jobs[1].expected_start == 31


def test_the_queue_goes_by_tier_priority_time_and_id():
    tables = tables_of(
        table(1), [Partition("a", nodes=1), Partition("b", nodes=1, priority_tier=5)]
    )
    jobs = [
        make_job(1, submit=4),
        make_job(2, submit=3),
        make_job(3, submit=3),
        make_job(4, submit=9, priority=8),
        make_job(5, submit=9),
        make_job(6, submit=0, priority=0),
    ]
    for job in jobs:
        job.partitions = ("b", "a") if job.job_id == 5 else ("a",)
        tables.pending[job.job_id] = job
    queue = PendingQueue(tables, slurm_order)
    assert queue.refresh(10) is None
    assert [(r.job.job_id, r.partition.name) for r in queue.records] == [
        (5, "b"),
        (4, "a"),
        (2, "a"),
        (3, "a"),
        (1, "a"),
        (5, "a"),
    ]
    late = make_job(7, submit=3, partitions=("a",))
    tables.pending[7] = late
    queue.note(Note.SUBMIT)
    assert [r.job for r in queue.refresh(10)] == [late]
    assert [r.job.job_id for r in queue.records] == [5, 4, 2, 3, 7, 1, 5]


def test_slots_say_when_more_nodes_will_be_free():
    slots = Slots(1000, 3600, 60, 0b111)
    slots.promise(1300, 1500, 0b011)
    assert slots.profile.times == [960, 1260, 1500]
    assert slots.window(200, 0b111).at(1000) == (0b111, 1500), "also behind the end"
    assert slots.window(400, 0b111).at(1000) == (0b100, 1500)
    assert slots.window(100, 0b100).at(1300) == (0b100, None)
    assert slots.conflicts(1500, 1520, 0b001) is False
    assert slots.conflicts(1490, 1520, 0b001) is True


def preferring(busy_until):
    """Nodes 2 and 3 have a feature; the first job takes one of them."""
    w = world(
        tables=table_of([node(0), node(1), node(2, features="fast"), node(3, features="fast")])
    )
    w.submit(at=1, cpus=1, run_s=busy_until, limit_s=600, features="fast")
    return w


def test_a_job_gets_the_nodes_that_it_prefers_if_they_are_free():
    w = preferring(busy_until=5)
    job = w.submit(at=20, cpus=2, run_s=10, limit_s=60, prefer="fast")
    w.run(until=50)
    assert job.allocation.nodes == 0b1100


def test_other_nodes_than_it_prefers_come_from_backfill_and_jobs_behind_wait_until_then():
    w = preferring(busy_until=500)
    job = w.submit(at=20, cpus=2, run_s=10, limit_s=60, prefer="fast")
    behind = w.submit(at=21, cpus=1, run_s=10, limit_s=60)
    w.run(until=50)
    assert job.allocation.nodes == 0b0011
    assert w.starts == {1: 3, job.job_id: 30, behind.job_id: 30}


def test_a_job_with_time_min_that_backfill_starts_gets_just_that():
    w = blocked()
    w.submit(at=11, cpus=1, run_s=9000, limit_s=7200, time_min_s=600)
    w.submit(at=12, cpus=1, run_s=9000, limit_s=7200)
    w.run(until=100)
    assert w.starts == {1: 6, 3: 30}
    assert w.tables.jobs[3].time_limit_s == 600, "though the promise is not before 3600"


def test_a_job_that_was_looked_for_whole_nodes_wants_them_in_its_other_partitions_too():
    tables = tables_of(
        table(4),
        [
            Partition("whole", nodes=0b0011, priority_tier=2, oversubscribe="EXCLUSIVE"),
            Partition("rest", nodes=0b1100),
        ],
    )
    w = world(tables=tables)
    w.submit(at=5, cpus=1, run_s=600, limit_s=600, partitions=("rest", "whole"))
    w.submit(at=5, cpus=2, run_s=600, limit_s=600, partitions=("rest", "whole"))
    w.run(until=20)
    assert [(w.tables.jobs[job].partition, w.tables.jobs[job].exclusive) for job in (1, 2)] == [
        ("whole", False),
        ("rest", True),
    ]


@pytest.mark.parametrize("needs", [{"required_nodes": 0b0001}, {"features": "big"}])
def test_a_partition_without_the_nodes_or_features_asks_for_no_whole_nodes(needs):
    """Seen of 22.05.8: the job would wait for ever for what MaxCPUsPerNode keeps back."""
    nodes = [node(i, cores=2, features="big" if i < 2 else "") for i in range(4)]
    tables = tables_of(
        table_of(nodes),
        [
            Partition("rest", nodes=0b0011, max_cpus_per_node=1),
            Partition("whole", nodes=0b1100, oversubscribe="EXCLUSIVE"),
        ],
    )
    w = world(tables=tables)
    w.submit(at=5, cpus=2, run_s=60, limit_s=60, partitions=("rest",), num_tasks=2, min_nodes=2)
    w.submit(at=6, cpus=1, run_s=60, limit_s=60, partitions=("rest", "whole"), **needs)
    w.run(until=200)
    assert (w.starts[2], w.tables.jobs[2].exclusive) == (w.starts[1] + 60, False)


@pytest.mark.parametrize(
    ("needs", "is_whole"),
    [
        ({"cpus_per_task": 2}, True),
        ({"cpus_per_task": 3}, False),
        ({"num_tasks": 4}, True),
        ({"num_tasks": 5}, False),
        ({"num_tasks": 3, "ntasks_per_node": 3}, False),
        ({"memory_per_node_mb": 6000}, False),
        ({"sockets_per_node": 1, "cores_per_socket": 3}, False),
    ],
)
def test_a_partition_whose_nodes_are_too_small_asks_for_no_whole_nodes(needs, is_whole):
    nodes = [node(i, cores=4 if i < 2 else 2, memory=8000 if i < 2 else 4000) for i in range(4)]
    tables = tables_of(
        table_of(nodes),
        [
            Partition("rest", nodes=0b0011, priority_tier=2),
            Partition("whole", nodes=0b1100, oversubscribe="EXCLUSIVE"),
        ],
    )
    w = world(tables=tables)
    for name in ("rest", "whole"):
        w.submit(
            at=5, cpus=2, run_s=60, limit_s=60, partitions=(name,), min_nodes=2, exclusive=True
        )
    cpus = needs.get("num_tasks", 1) * needs.get("cpus_per_task", 1)
    w.submit(at=6, cpus=cpus, run_s=60, limit_s=60, partitions=("rest", "whole"), **needs)
    w.run(until=50)
    assert w.tables.jobs[3].exclusive is is_whole


def test_backfill_alone_lets_a_job_with_time_min_into_a_partition_with_a_lower_limit():
    tables = tables_of(
        table(2),
        [
            Partition("short", nodes=0b01, max_time_s=600, priority_tier=2),
            Partition("long", nodes=0b10),
        ],
    )
    w = world(tables=tables)
    w.submit(
        at=5,
        cpus=1,
        run_s=60,
        limit_s=7200,
        time_min_s=600,
        partitions=("short",),
        time_limit_is_set=True,
    )
    w.submit(
        at=6,
        cpus=1,
        run_s=60,
        limit_s=7200,
        time_min_s=660,
        partitions=("short",),
        time_limit_is_set=True,
    )
    w.submit(
        at=7,
        cpus=1,
        run_s=60,
        limit_s=7200,
        time_min_s=600,
        partitions=("short", "long"),
        time_limit_is_set=True,
    )
    w.run(until=20)
    assert [(job, w.tables.jobs[job].partition) for job in w.starts] == [(3, "long")]
    assert w.tables.jobs[1].reason == "PartitionTimeLimit"
    w.run(until=100)
    assert w.starts[1] == 30
    assert w.tables.jobs[1].time_limit_s == 600


def test_a_job_with_time_min_that_the_main_scheduler_starts_gets_all_it_asked_for():
    w = world()
    w.submit(at=5, cpus=4, run_s=100, limit_s=600)
    w.submit(at=6, cpus=1, run_s=100, limit_s=7200, time_min_s=600)
    w.run(until=300)
    assert w.tables.jobs[2].time_limit_s == 7200


def test_running_jobs_on_whole_nodes_are_in_the_plan_if_asked_for():
    w = world(parameters={"bf_running_job_reserve": ""})
    w.submit(at=5, cpus=2, run_s=3600, limit_s=3600, exclusive=True)
    w.run(until=20)
    slots = Slots(20, 86400, 60, 0b1111)
    w.policy.backfill._plan_running(slots, 20)
    assert slots.profile.common(20, 3000) == 0b1100
    assert slots.profile.common(3600, 4000) == 0b1111


def test_nobody_starts_while_a_job_is_cleaned_up_that_ended_just_now():
    w = world()
    w.tables.complete_wait_s = 40
    ended = make_job(99)
    ended.end_time = 3
    w.tables.completing[99] = ended
    w.submit(at=5, cpus=1, run_s=10, limit_s=60)
    w.run(until=40)
    assert not w.starts
    w.run(until=70)
    assert w.starts == {1: 43}, "when it has waited long enough backfill goes on"


def test_many_jobs_of_the_whole_cluster_are_promised_it_one_after_the_other():
    w = world()
    for _ in range(7):
        w.submit(at=1, cpus=4, run_s=60, limit_s=60)
    w.run(until=32)
    assert [w.tables.jobs[i].expected_start for i in range(2, 8)] == [63, 120, 180, 240, 300, 360]


@pytest.mark.parametrize(
    ("wanted", "reason", "detail"),
    [
        ({"required_nodes": 0b1000}, "ReqNodeNotAvail", "ReqNodeNotAvail, UnavailableNodes:n3"),
        (
            {"required_nodes": 0b1110, "min_nodes": 3},
            "ReqNodeNotAvail",
            "ReqNodeNotAvail, UnavailableNodes:n[2-3]",
        ),
        (
            {"required_nodes": 0b1000, "min_nodes": 3},
            "ReqNodeNotAvail",
            "ReqNodeNotAvail, UnavailableNodes:n3",
        ),
        ({"excluded_nodes": 0b0011}, "ReqNodeNotAvail", "ReqNodeNotAvail, UnavailableNodes:n[2-3]"),
        ({"min_nodes": 3}, "Resources", NODES_DOWN),
        ({"required_nodes": 0b0001}, "Resources", ""),
    ],
)
def test_who_chose_among_nodes_is_told_which_are_out_of_service(wanted, reason, detail):
    w = world()
    for each in w.tables.nodes.nodes[2:]:
        each.state = NodeState.DOWN
        w.tables.nodes.set_availability(each)
    w.submit(at=1, cpus=1, run_s=600, limit_s=600, required_nodes=0b0001)
    job = w.submit(at=10, cpus=1, run_s=10, limit_s=60, **wanted)
    w.run(until=60)
    assert (job.reason, job.reason_detail) == (reason, detail)


@pytest.mark.parametrize(("least", "ends"), [(None, True), (60, False)])
def test_a_job_that_cannot_be_over_by_its_deadline_any_more_is_ended_when_a_scheduler_comes_to_it(
    least, ends
):
    w = blocked()
    job = w.submit(at=11, cpus=1, run_s=60, limit_s=600, deadline=500.0, time_min_s=least)
    w.run(until=29)
    assert job.is_pending, "the main scheduler does not come to it"
    w.run(until=60)
    assert (job.state is JobState.DEADLINE, 3 in w.starts) == (ends, not ends)


def test_a_job_that_backfill_ends_by_its_deadline_keeps_the_limit_that_it_asked_for(monkeypatch):
    w = blocked()
    monkeypatch.setattr(type(w.tables.limits), "enforced", True)
    job = w.submit(at=11, cpus=1, run_s=60, limit_s=600, deadline=500.0, time_min_s=540)
    w.run(until=60)
    assert (job.state, job.time_limit_s) == (JobState.DEADLINE, 600)


def test_the_main_scheduler_ends_a_job_that_is_too_late_and_goes_on():
    w = world()
    late = w.submit(at=5, cpus=4, run_s=60, limit_s=600, deadline=500.0)
    w.submit(at=5, cpus=4, run_s=60, limit_s=600, deadline=700.0)
    w.run(until=20)
    assert (late.state, w.starts) == (JobState.DEADLINE, {2: 6})


def test_a_begin_time_that_comes_changes_nothing_for_backfill_before_the_main_scheduler():
    w = world()
    trigger = w.policy.backfill_trigger
    trigger.ran(30.0, changed=False, promised=False)
    w.policy.note(Note.MET, 45.0)
    assert trigger.next_run() == float("inf")
    w.submit(at=70, cpus=1, run_s=60, limit_s=60)
    w.run(until=75)
    assert trigger.next_run() < 75


def test_a_held_job_does_not_keep_passes_at_their_interval():
    w = world()
    w.submit(at=5, run_s=10, limit_s=60, hold=True)
    w.tables.jobs[1].priority = 0
    w.run(until=100)
    trigger = w.policy.backfill_trigger
    trigger.note(100.4)
    assert 100.4 < trigger.next_run() <= 101.4, "it looks every second"
