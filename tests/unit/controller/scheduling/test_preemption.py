"""Preemption: who is chosen, and what becomes of him.

Covers: controller/jobs/preempt, controller/scheduling/victims, controller/tables/preemption.
"""

import pytest
from controller_harness import ROOT, Harness, make_tables
from msgspec import structs
from scheduling_harness import make_job, table, tables_of

from understudy.controller.jobs.gang import Gang
from understudy.controller.jobs.preempt import make_room
from understudy.controller.jobs.start import Planning
from understudy.controller.rhythm import Rhythm
from understudy.controller.scheduling.api import Ask, Note, Selector
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.scheduling.slurm.queue import PendingQueue, preempting_order, slurm_order
from understudy.controller.scheduling.slurm.when import MainTrigger
from understudy.controller.scheduling.victims import place_of, victims
from understudy.controller.tables.allocation import Allocation
from understudy.controller.tables.gres import DeviceGroup, GresTable
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.preemption import Preemption, Rules, read_mode
from understudy.controller.tables.reservation import MAGNETIC, Reservation
from understudy.controller.tables.settings import Settings
from understudy.controller.tables.shared_cores import cores_of
from understudy.model import nodeset
from understudy.model.qos import Qos
from understudy.model.states import JobState
from understudy.protocol.messages import TerminateJob

EVERY = nodeset.mask(4)


def partitions(nodes=EVERY, **low):
    return [
        Partition("low", nodes, is_default=True, priority_tier=1, **low),
        Partition("mid", nodes, priority_tier=5, grace_time_s=10),
        Partition("high", nodes, priority_tier=10, preempt_mode="OFF"),
    ]


def preemption(
    tables,
    mode="CANCEL",
    kind="partition_prio",
    exempt_s=0,
    parameters=None,
    qos_of=lambda _job: None,
):
    made = Preemption(
        tables.partitions,
        tables.running,
        Rules.read(f"preempt/{kind}", mode, exempt_s),
        parameters or {},
        qos_of,
    )
    tables.preemption = made
    return made


class Busy:
    """Tables in which jobs run: each (partition, nodes, CPUs a node, start time)."""

    def __init__(
        self, *running, parameters=None, count=4, cpus=4, mode="CANCEL", exempt_s=0, **low
    ):
        self.tables = tables_of(table(count, cores=cpus), partitions(nodeset.mask(count), **low))
        self.selector = SelectConsTres(frozenset({"CR_CORE"}))
        self.preemption = preemption(self.tables, mode, exempt_s=exempt_s, parameters=parameters)
        for number, (partition, nodes, each, start) in enumerate(running, 1):
            job = make_job(
                number,
                min_nodes=len(nodes),
                num_tasks=len(nodes) * each,
                ntasks_per_node=each,
                partitions=(partition,),
            )
            usable = nodeset.from_positions(nodes)
            job.allocation = self.selector.select(
                Ask(job, self.tables.partitions[partition], usable), self.tables
            )
            assert job.allocation is not None
            self.tables.nodes.allocate(job.allocation)
            job.state, job.start_time, job.partition = JobState.RUNNING, start, partition
            self.tables.running[number] = self.tables.jobs[number] = job

    def victims(self, partition="high", now=100, **job):
        asked = make_job(99, partitions=(partition,), **job)
        found = victims(
            self.preemption,
            self.tables,
            Ask(
                asked,
                self.tables.partitions[partition],
                nodeset.mask(len(self.tables.nodes.nodes)),
            ),
            self.selector,
            now,
        )
        return [each.job_id for each in found]


def test_modes_are_read_in_any_order():
    assert read_mode("GANG,SUSPEND") == ("SUSPEND", False, True)
    assert read_mode("within,requeue") == ("REQUEUE", True, False)
    assert read_mode("cluster") == ("", False, False)


def test_the_smallest_job_of_the_lowest_tier_is_taken():
    busy = Busy(("mid", [0], 4, 10), ("low", [1, 2], 4, 20), ("low", [3], 4, 30))
    assert busy.victims(num_tasks=4) == [3]


def test_of_equals_the_first_is_taken_or_the_youngest_if_asked_for():
    running = [("low", [i], 4, 10 + i) for i in range(4)]
    assert Busy(*running).victims(num_tasks=4) == [1]
    assert Busy(*running, parameters={"preempt_youngest_first": ""}).victims(num_tasks=4) == [4]


def test_one_big_job_goes_in_place_of_several_small_ones():
    running = [
        ("low", [0], 2, 1),
        ("low", [0], 2, 1),
        ("high", [1], 2, 1),
        ("low", [1], 2, 1),
        ("low", [2, 3], 4, 1),
    ]
    job = {"min_nodes": 2, "num_tasks": 8, "ntasks_per_node": 4}
    assert Busy(*running).victims(**job) == [5]
    small = Busy(
        *running[:2], ("low", [1, 2], 4, 1), parameters={"preempt_reorder_count": "0"}, count=3
    )
    assert small.victims(min_nodes=3, num_tasks=12) == [1, 2, 3]


def test_a_job_is_of_use_with_all_nodes_that_could_be_taken_and_not_just_those_chosen_at_first():
    running = [("low", [0, 1], 4, 1), ("low", [2, 3, 4], 4, 1)]
    job = {"min_nodes": 3, "num_tasks": 12, "ntasks_per_node": 4}
    for parameters in (None, {"preempt_youngest_first": ""}):
        assert Busy(*running, parameters=parameters, count=5).victims(**job) == [2]


def test_a_job_is_of_use_only_with_nodes_that_would_do_once_it_is_gone():
    running = [
        ("high", [0], 2, 1),
        ("low", [1], 4, 1),
        ("low", [2, 3], 1, 1),
        ("low", [2], 3, 1),
        ("high", [3], 1, 1),
        ("low", [4, 5, 6], 4, 1),
    ]
    assert Busy(*running, count=7).victims(min_nodes=4, num_tasks=8, ntasks_per_node=2) == [4, 2]


def test_of_equally_useful_jobs_the_one_that_was_needed_at_last_comes_first():
    running = [
        ("low", [0], 3, 1),
        ("low", [0], 1, 1),
        ("low", [1], 2, 1),
        ("high", [1], 2, 1),
        ("high", [2], 3, 1),
    ]
    assert sorted(Busy(*running, count=3).victims(num_tasks=6)) == [1, 3]


def test_nobody_is_hit_for_a_selector_that_knows_the_present_alone():
    class Now(Selector):
        def select(self, ask, tables):
            return SelectConsTres().select(ask, tables)

        def nodes_if_empty(self, ask, tables):
            return ask.usable

        def will_run(self, ask, tables, now, until=None):
            return None

    busy = Busy(("low", [0, 1, 2, 3], 4, 1))
    assert busy.victims(num_tasks=4) == [1]
    busy.selector = Now()
    assert busy.victims(num_tasks=4) == []
    ask = Ask(make_job(99, partitions=("high",)), busy.tables.partitions["high"], EVERY)
    gone = busy.tables.running.values()
    assert place_of(busy.preemption, busy.tables, gone, ask, busy.selector) is None
    assert busy.selector.could_ever_run(ask, busy.tables)


def test_nobody_is_hit_if_it_does_not_help():
    busy = Busy(("low", [0], 4, 1), ("high", [1], 4, 1))
    assert busy.victims(min_nodes=5, num_tasks=5) == []
    assert busy.victims("low", num_tasks=16) == []  # of its own tier


def test_nobody_is_hit_for_more_cpus_of_a_node_than_the_partition_allows():
    busy = Busy(*[("low", [i], 4, 1) for i in range(4)])
    busy.tables.partitions["high"].max_cpus_per_node = 2
    assert busy.victims(num_tasks=1, cpus_per_task=3) == []
    assert busy.victims(num_tasks=1, cpus_per_task=2) == [1]


def test_nobody_is_hit_for_a_job_that_waits_for_nodes_of_its_users_own():
    """Slurm 22.05.8: as long as jobs of others run there it waits, whoever they are."""
    busy = Busy(*[("low", [i], 4, 1) for i in range(4)])
    busy.tables.partitions["high"].exclusive_user = True
    assert busy.victims(num_tasks=4) == [1]
    for job in busy.tables.running.values():
        job.user_id = 2000
    assert busy.victims(num_tasks=4) == []


def test_who_shares_cores_takes_the_nodes_of_those_who_do_not_in_their_place():
    busy = Busy(*[("low", [i], 4, 1) for i in range(4)])
    busy.tables.partitions["high"].oversubscribe = "FORCE:2"
    assert busy.victims(num_tasks=4) == [1]


def test_a_partition_without_preemption_and_young_jobs_are_spared():
    full = [("low", [i], 4, 90) for i in range(4)]
    assert Busy(*full, preempt_mode="OFF").victims(num_tasks=4) == []
    assert Busy(*full, exempt_s=60).victims(num_tasks=4) == []
    assert Busy(*full, exempt_s=60).victims(num_tasks=4, now=150) == [1]


def test_who_waits_for_a_job_that_ends_takes_nobody_else():
    busy = Busy(*[("low", [i], 4, 1) for i in range(4)])
    gone = busy.tables.running.pop(1)
    busy.tables.nodes.completing_nodes = gone.allocation.nodes
    assert busy.victims(num_tasks=4) == []
    assert busy.victims(min_nodes=2, num_tasks=8) == [2]


@pytest.mark.parametrize(
    "asked", [{"gres": "gpu:1"}, {"exclusive": True}, {"tres_per_job": "gres:gpu:2"}, {}]
)
@pytest.mark.parametrize(
    "selector", [SelectConsTres(frozenset({"CR_CORE_MEMORY"})), SelectLinear()]
)
def test_what_a_job_would_get_in_place_of_others_is_what_it_gets_once_they_are_gone(
    selector, asked
):
    busy = Busy()
    busy.selector, nodes, high = selector, busy.tables.nodes, busy.tables.partitions["high"]
    nodes.gres = GresTable(("gpu",), [(DeviceGroup("gpu", "", 2, 0, has_files=True),)] * 4)
    for number in range(1, 5):
        job = make_job(
            number, partitions=("low",), num_tasks=3, gres="gpu:2", memory_per_node_mb=400
        )
        job.allocation = selector.select(
            Ask(job, busy.tables.partitions["low"], 1 << number - 1), busy.tables
        )
        nodes.allocate(job.allocation)
        job.state, job.start_time, job.partition = JobState.RUNNING, 0, "low"
        busy.tables.running[number] = busy.tables.jobs[number] = job
    job, gone = make_job(99, partitions=("high",), num_tasks=2, **asked), busy.tables.running[3]
    assert (
        place_of(busy.preemption, busy.tables, [], Ask(job, high, EVERY ^ 1), selector) is None
        or not asked
    )
    place = place_of(busy.preemption, busy.tables, [gone], Ask(job, high, EVERY), selector)
    del busy.tables.running[3]
    nodes.release(gone.allocation, gone.allocation.nodes)
    assert place is not None
    assert place == selector.select(Ask(job, high, EVERY), busy.tables)


def qos_tables():
    tables = tables_of(table(2))
    names = {
        "low": Qos(1, "low", grace_time_s=7, preempt_exempt_time_s=50),
        "mid": Qos(2, "mid", priority=5, preempt=("low",), preempt_mode="requeue"),
        "high": Qos(3, "high", priority=9, preempt=("low", "mid"), preempt_mode="within"),
    }
    return tables, lambda job: names.get(job.spec.qos)


def test_a_qos_preempts_those_in_its_list():
    tables, qos_of = qos_tables()
    made = preemption(tables, "CANCEL", "qos", 20, qos_of=qos_of)
    main = tables.partitions["main"]
    jobs = {
        name: make_job(i, qos=name, priority=i)
        for i, name in enumerate(("low", "mid", "high", ""), 1)
    }
    may = {(a, b) for a in jobs for b in jobs if made.may_preempt(jobs[a], main, jobs[b])}
    assert may == {("mid", "low"), ("high", "low"), ("high", "mid")}
    assert [made.mode_of(jobs[name]) for name in ("low", "mid")] == ["CANCEL", "REQUEUE"]
    assert [made.exempt_s(jobs[name]) for name in ("low", "mid")] == [50, 20]
    assert made.grace_s(jobs["low"]) == 7


def test_within_a_qos_the_higher_priority_may():
    tables, qos_of = qos_tables()
    made = preemption(tables, "CANCEL", "qos", qos_of=qos_of)
    one, other = make_job(1, qos="high", priority=10), make_job(2, qos="high", priority=20)
    assert made.may_preempt(other, tables.partitions["main"], one)
    assert not made.may_preempt(one, tables.partitions["main"], other)


def test_who_may_preempt_goes_first_in_the_queue():
    tables, qos_of = qos_tables()
    made = preemption(tables, "CANCEL", "qos", qos_of=qos_of)
    queue = PendingQueue(tables, preempting_order(made, slurm_order))
    for job in (
        make_job(1, qos="low", priority=50),
        make_job(2, qos="", priority=60),
        make_job(3, qos="high", priority=1),
    ):
        tables.pending[job.job_id] = job
    queue.refresh(0)
    assert [record.job.job_id for record in queue.records] == [2, 3, 1]
    assert preempting_order(preemption(tables), slurm_order) is slurm_order


@pytest.mark.parametrize("names", ["ABC", "ACB", "BAC", "BCA", "CAB", "CBA"])
def test_where_priorities_and_preemption_go_round_in_a_circle_the_order_is_slurms(names):
    """Slurm 22.05.8 started whoever was submitted first: by priority A goes before B and B before
    C, C before A since it may preempt it.
    """
    tables, qos_of = qos_tables()
    queue = PendingQueue(
        tables, preempting_order(preemption(tables, "CANCEL", "qos", qos_of=qos_of), slurm_order)
    )
    said = {"A": ("low", 30), "B": ("", 20), "C": ("high", 10)}
    for job_id, name in enumerate(names, 1):
        tables.pending[job_id] = make_job(
            job_id, name=name, qos=said[name][0], priority=said[name][1]
        )
    queue.refresh(0)
    assert [record.job.spec.name for record in queue.records] == list(
        {"A": "ABC", "B": "BCA", "C": "CAB"}[names[0]]
    )


def test_in_such_a_circle_the_order_is_made_anew_when_others_come_and_go():
    tables, qos_of = qos_tables()
    queue = PendingQueue(
        tables, preempting_order(preemption(tables, "CANCEL", "qos", qos_of=qos_of), slurm_order)
    )
    first = make_job(1, name="A", qos="low", priority=30)
    second = make_job(2, name="B", qos="", priority=20)
    third = make_job(3, name="C", qos="high", priority=10)

    def order() -> str:
        queue.refresh(0)
        pending = [each.job for each in queue.records if each.job.job_id in tables.pending]
        return "".join(job.spec.name for job in pending)

    tables.pending[1], tables.pending[2] = first, second
    assert order() == "AB"
    tables.pending[3] = third
    queue.note(Note.SUBMIT)
    assert order() == "ABC"
    del tables.pending[2]
    queue.note(Note.FREE)
    assert order() == "CA"


def test_jobs_in_reservations_are_put_among_others_of_a_queue_whose_qos_may_preempt():
    tables, qos_of = qos_tables()
    tables.reservations.by_name["draws"] = Reservation(
        "draws", 1, 0, 500, MAGNETIC, EVERY, user_ids=(1000,)
    )
    tables.reservations.by_name["named"] = Reservation(
        "named", 2, 0, 500, 0, EVERY, user_ids=(1000,)
    )
    order = preempting_order(preemption(tables, "CANCEL", "qos", qos_of=qos_of), slurm_order)
    queue = PendingQueue(tables, order, prefers=True, reservations=True)
    jobs = [
        make_job(1, qos="low", priority=90, reservation="named"),
        make_job(2, qos="high", priority=1),
        make_job(3, qos="low", priority=80),
        make_job(4, qos="high", priority=2, reservation="named,gone"),
        make_job(5, qos="low", priority=95, reservation="gone"),
    ]
    for job in jobs:
        tables.pending[job.job_id] = job
    queue.refresh(0)
    found = [
        (record.job.job_id, record.reservation.name if record.reservation else "")
        for record in queue.records
    ]
    assert found == [
        (4, "named"),
        (2, "draws"),
        (2, ""),
        (5, ""),
        (1, "named"),
        (3, "draws"),
        (3, ""),
    ]
    tables.pending[6] = make_job(6, qos="high", priority=99, reservation="named")
    queue.note(Note.SUBMIT)
    queue.refresh(0)
    assert queue.records[0].job.job_id == 6


# --- in the controller ----------------------------------------------------------------------------


def cluster(mode="CANCEL", policy=Builtin, exempt_s=0, **low):
    tables = make_tables()
    tables.partitions = {each.name: each for each in partitions(**low)}
    harness = Harness(tables, settings=Settings(kill_wait_s=30))
    preemption(tables, mode, exempt_s=exempt_s)
    core = harness.core
    if "GANG" in mode:
        core.gang = Gang(core, 30)
    core.policy = policy(tables, core.selector, Planning(core), {"bf_interval": "10"})
    core.policy.note(Note.START, harness.time.now())
    return harness


def submit(harness, partition, **spec):
    return harness.submit(partition=partition, num_tasks=4, mem_per_node_mb=100, **spec)


def fill(harness, partition="low", **spec):
    jobs = [submit(harness, partition, **spec) for _ in range(4)]
    harness.run(5)
    harness.acknowledge()
    assert all(job.is_running for job in jobs)
    return jobs


@pytest.mark.parametrize("policy", [Builtin, Backfill])
def test_a_cancelled_job_is_preempted_and_the_other_starts_when_its_node_is_clean(policy):
    harness = cluster(policy=policy)
    jobs = fill(harness)
    job = submit(harness, "high")
    harness.run(4)
    assert [each.state for each in jobs] == [JobState.PREEMPTED] + [JobState.RUNNING] * 3
    assert jobs[0].preempt_time == jobs[0].end_time
    assert job.is_pending
    assert job.reason == "Resources"
    assert len(harness.sent(TerminateJob)) == 1
    harness.run(15)  # whatever is tried meanwhile, nobody else is hit
    assert [each.state for each in jobs] == [JobState.PREEMPTED] + [JobState.RUNNING] * 3
    harness.acknowledge()
    harness.epilog(jobs[0])
    harness.run(0)
    assert job.is_running
    assert job.node_list == jobs[0].node_list


def test_a_requeued_job_waits_until_its_credential_is_worthless_and_runs_again():
    harness = cluster("REQUEUE")
    jobs = fill(harness)
    job = submit(harness, "high")
    harness.run(4)
    assert jobs[0].is_pending
    harness.acknowledge()
    harness.epilog(jobs[0])
    assert (jobs[0].reason, jobs[0].restarts, jobs[0].preempt_time) == ("BeginTime", 1, None)
    assert job.is_running
    harness.complete(job)
    harness.run(200)
    assert jobs[0].is_running


def test_a_job_that_may_not_be_requeued_is_ended():
    harness = cluster("REQUEUE")
    jobs = fill(harness, requeue=False)
    submit(harness, "high")
    harness.run(4)
    assert jobs[0].state is JobState.PREEMPTED


def test_a_grace_time_sets_the_end_and_the_next_look_at_limits_ends_it():
    harness = cluster()
    jobs = fill(harness, "mid")
    job = submit(harness, "high")
    harness.run(4)
    assert all(each.is_running for each in jobs)
    assert jobs[0].end_time == jobs[0].preempt_time + 10
    assert harness.sent(TerminateJob) == []
    harness.run(9)
    assert jobs[0].is_running
    assert job.is_pending
    harness.run(30)
    assert [each.state for each in jobs] == [JobState.PREEMPTED] + [JobState.RUNNING] * 3


def test_after_the_grace_time_another_job_ends_it_at_once_and_the_same_one_later():
    for who, seconds, state in (
        ("other", 11, JobState.PREEMPTED),
        ("same", 39, JobState.RUNNING),
        ("same", 40, JobState.PREEMPTED),
    ):
        harness = cluster()
        jobs = fill(harness, "mid")
        job, other = submit(harness, "high"), submit(harness, "high")
        harness.run(4)
        asks = job if who == "same" else other
        # in its grace time
        assert not make_room(harness.core, other, jobs[:1], jobs[0].end_time - 1)
        other.preempting_since = None
        assert not make_room(harness.core, asks, jobs[:1], job.preempting_since + seconds)
        assert jobs[0].state is state


def test_exempt_jobs_are_hit_when_their_time_is_over():
    harness = cluster(exempt_s=100)
    jobs = fill(harness)
    submit(harness, "high")
    harness.run(60)
    assert all(each.is_running for each in jobs)
    harness.run(120)
    assert jobs[0].state is JobState.PREEMPTED


def test_the_times_are_shown():
    harness = cluster(exempt_s=2)
    jobs = fill(harness)
    assert harness.query("jobs", "preemptable_time", "preempt_time", job_id=[1]) == [
        [jobs[0].start_time + 2, None]
    ]
    harness.core.tables.preemption = None
    assert harness.query("jobs", "preemptable_time", job_id=[1]) == [[None]]


def test_a_suspended_victim_makes_room_at_once_and_goes_on_when_the_other_is_over():
    harness = cluster("SUSPEND,GANG")
    jobs = fill(harness, time_limit_s=600)
    end = jobs[0].end_time
    job = submit(harness, "high")
    harness.run(4)
    assert job.is_running
    assert [each.state for each in jobs] == [JobState.SUSPENDED] + [JobState.RUNNING] * 3
    assert job.node_list == jobs[0].node_list
    assert jobs[0].preempt_time is None
    started = job.start_time
    harness.run(50)
    harness.complete(job)
    assert jobs[0].is_running
    assert jobs[0].end_time == end + int(harness.time.now()) - started


def test_who_is_suspended_by_hand_does_not_go_on_by_itself():
    harness = cluster("SUSPEND,GANG")
    jobs = fill(harness)
    job = submit(harness, "high")
    harness.run(4)
    assert harness.control("suspend", jobs[0], ROOT) == 0
    harness.complete(job)
    assert jobs[0].state is JobState.SUSPENDED
    assert harness.control("resume", jobs[0], ROOT) == 0
    assert jobs[0].is_running


def suspending(*running, **low):
    return Busy(*running, mode="SUSPEND,GANG", **low)


def on(busy, partition, **job):
    where = busy.tables.partitions[partition]
    allocation = busy.selector.select(
        Ask(make_job(99, partitions=(partition,), **job), where, EVERY), busy.tables
    )
    if allocation is None:
        return None, []
    cores = cores_of(allocation)
    held = {each.job_id: cores_of(each.allocation) for each in busy.tables.running.values()}
    others = [
        job_id
        for job_id, theirs in held.items()
        if any(mask & cores.get(node, 0) for node, mask in theirs.items())
    ]
    return nodeset.indices(allocation.nodes), others


def test_who_suspends_others_gets_cores_that_nobody_has_if_they_suffice():
    busy = suspending(
        ("low", [0], 2, 0), ("low", [1], 4, 0), ("low", [2], 4, 0), ("low", [3], 1, 0)
    )
    assert on(busy, "high", num_tasks=2) == ([0], [])
    assert on(busy, "high", min_nodes=2, num_tasks=4, ntasks_per_node=2) == ([0, 3], [])


def test_who_suspends_others_and_has_his_nodes_alone_waits_for_their_devices():
    busy = suspending()
    nodes = busy.tables.nodes
    nodes.gres = GresTable(("gpu",), [(DeviceGroup("gpu", "", 2, 0, has_files=True),)] * 4)
    low = busy.tables.partitions["low"]
    job = make_job(1, partitions=("low",), min_nodes=3, num_tasks=3, gres="gpu:1")
    job.allocation = busy.selector.select(Ask(job, low, 0b0111), busy.tables)
    nodes.allocate(job.allocation)
    job.state, job.start_time, job.partition = JobState.RUNNING, 0, "low"
    busy.tables.running[1] = busy.tables.jobs[1] = job
    assert on(busy, "high", exclusive=True) == ([3], [])
    assert on(busy, "high", exclusive=True, min_nodes=2, num_tasks=2) == (None, [])


def test_who_suspends_others_else_chooses_as_if_lower_partitions_were_empty():
    """Slurm 22.05 suspended two jobs on the first node, though one on another would have done."""
    busy = suspending(
        ("low", [0], 1, 0),
        ("low", [0], 2, 0),
        ("low", [1], 4, 0),
        ("high", [2], 1, 0),
        ("low", [3], 1, 0),
    )
    assert on(busy, "high", min_nodes=1, max_nodes=1, num_tasks=4, ntasks_per_node=4) == ([3], [5])
    assert on(busy, "high", min_nodes=2, num_tasks=8, ntasks_per_node=4) == ([0, 1], [1, 2, 3])
    assert on(busy, "low", min_nodes=1, max_nodes=1, num_tasks=4, ntasks_per_node=4) == (None, [])


def test_who_suspends_others_spares_those_of_higher_tiers_as_long_as_lower_ones_do():
    busy = suspending(
        ("mid", [0], 1, 0),
        ("low", [0], 3, 0),
        ("low", [1], 4, 0),
        ("mid", [2], 4, 0),
        ("mid", [3], 4, 0),
    )
    assert on(busy, "high", num_tasks=4) == ([1], [3])
    assert on(busy, "high", min_nodes=2, num_tasks=8, ntasks_per_node=4) == ([0, 1], [1, 2, 3])


def test_the_cores_of_a_job_that_stands_still_are_kept_from_all_but_higher_partitions():
    harness = cluster("SUSPEND,GANG")
    jobs = fill(harness)
    first = submit(harness, "high")
    harness.run(4)
    assert jobs[0].state is JobState.SUSPENDED
    harness.complete(first)
    assert jobs[0].is_running
    second = submit(harness, "high")
    waiting = submit(harness, "low")
    harness.run(8)
    assert (second.is_running, waiting.is_pending) == (True, True)
    harness.complete(jobs[1])
    harness.run(12)
    assert waiting.node_list == jobs[1].node_list


def test_those_of_higher_partitions_go_on_first():
    harness = cluster("SUSPEND,GANG")
    low = fill(harness)
    mid = [submit(harness, "mid") for _ in low]
    harness.run(4)
    assert all(job.state is JobState.SUSPENDED for job in low)
    high = submit(harness, "high")
    harness.run(8)
    assert [job.state for job in mid] == [JobState.SUSPENDED] + [JobState.RUNNING] * 3
    harness.complete(high)
    assert (mid[0].is_running, low[0].is_running) == (True, False)


def test_jobs_that_share_their_cores_push_lower_ones_aside_and_take_turns():
    """As recorded from Slurm 22.05.8, with OverSubscribe=FORCE:1, and FORCE:2 in the middle
    partition.
    """
    harness = cluster("SUSPEND,GANG", Backfill)
    for name, rows in (("low", 1), ("mid", 2), ("high", 1)):
        harness.core.tables.partitions[name].oversubscribe = f"FORCE:{rows}"
    harness.core.gang = Gang(harness.core, 5)
    low = fill(harness)
    first, second, third = (submit(harness, "mid", required_nodes="n1") for _ in range(3))
    harness.run(5)
    harness.acknowledge()
    assert [job.state for job in low] == [JobState.SUSPENDED] + [JobState.RUNNING] * 3
    assert (first.state, second.state, third.state) == (
        JobState.RUNNING,
        JobState.SUSPENDED,
        JobState.PENDING,
    )
    harness.run(10)
    harness.acknowledge()
    assert {first.state, second.state} == {JobState.RUNNING, JobState.SUSPENDED}
    harness.cancel(third)
    for job in (first, second):
        harness.cancel(job)
        harness.acknowledge()
        harness.epilog(job)
    assert low[0].is_running


def tiered(**modes):
    """A cluster in which higher partitions take the cores of lower ones; `modes`: PreemptMode by
    partition.
    """
    harness = cluster("SUSPEND,GANG", Backfill)
    for name, mode in modes.items():
        harness.core.tables.partitions[name].preempt_mode = mode
    return harness


def after(harness, seconds=5):
    harness.run(seconds)
    harness.acknowledge()


def test_a_job_below_two_others_goes_on_when_both_are_gone_and_its_cores_are_never_counted_twice():
    """Recorded (over-committed-suspend-over-requeue): the middle job is requeued, and the lowest
    still has no place beside the highest.
    """
    harness = tiered(mid="REQUEUE")
    low = fill(harness)
    mid = submit(harness, "mid", required_nodes="n1")
    after(harness)
    assert (low[0].state, mid.state) == (JobState.SUSPENDED, JobState.RUNNING)
    high = submit(harness, "high", required_nodes="n1")
    after(harness)
    assert (high.state, mid.state, mid.is_completing) == (JobState.RUNNING, JobState.PENDING, True)
    harness.epilog(mid)
    after(harness, 10)
    assert (low[0].state, mid.restarts) == (JobState.SUSPENDED, 1)
    harness.complete(high)
    assert low[0].is_running
    for _ in range(25):  # until the old credential is worthless
        after(harness, 10)
    assert (low[0].state, mid.state) == (JobState.SUSPENDED, JobState.RUNNING)


@pytest.mark.parametrize(
    ("mode", "state"), [("REQUEUE", JobState.PENDING), ("CANCEL", JobState.PREEMPTED)]
)
def test_who_is_in_the_way_goes_at_once_whatever_its_grace_time_and_the_other_has_started_by_then(
    mode, state
):
    """Slurm 22.05.8 did so with GraceTime=12 and 8."""
    harness = tiered(low=mode)
    harness.core.tables.partitions["low"].grace_time_s = 12
    low = fill(harness)
    high = submit(harness, "high")
    harness.run(5)
    assert high.is_running
    assert (low[0].state, low[0].is_completing, low[0].node_list) == (state, True, high.node_list)


def test_partitions_that_nobody_may_preempt_are_as_good_as_higher_ones():
    """Recorded (lower-partition-off)."""
    harness = tiered(low="OFF")
    low = fill(harness)
    high = submit(harness, "high")
    after(harness)
    assert high.is_pending
    assert all(job.is_running for job in low)


def test_jobs_go_on_once_the_nodes_of_the_higher_job_are_clean():
    harness = tiered()
    low = fill(harness)
    high = submit(harness, "high")
    after(harness)
    harness.cancel(high)
    assert low[0].state is JobState.SUSPENDED
    harness.epilog(high)
    assert low[0].is_running


def test_a_job_that_stands_still_keeps_its_cores_from_its_equals_over_a_restart():
    harness = tiered(low="SUSPEND")
    low = fill(harness)
    high = submit(harness, "high")
    after(harness)
    table = harness.core.tables.nodes
    assert low[0].allocation.overlaid
    assert Allocation.unpack(low[0].allocation.pack()) == low[0].allocation
    assert (table.free_cpus.tolist(), table.full_nodes) == ([0] * 4, EVERY)
    harness.complete(high)
    assert table.free_cpus.tolist() == [0] * 4
    for job in low:
        harness.complete(job)
    assert (table.free_cpus.tolist(), table.full_nodes, table.idle_nodes) == ([4] * 4, 0, EVERY)


def test_who_is_requeued_gives_back_memory_that_a_higher_job_lacks_and_who_is_suspended_keeps_it():
    """As recorded (memory-of-a-lower-job): cores alone make nobody go."""
    for mode, taken in (("REQUEUE", [1]), ("SUSPEND", [])):
        busy = suspending(("low", [0], 1, 0), ("low", [1], 1, 0), preempt_mode=mode)
        busy.selector = SelectConsTres(frozenset({"CR_CORE", "CR_MEMORY"}))
        table = busy.tables.nodes
        for job in busy.tables.running.values():
            table.release(job.allocation, job.allocation.nodes)
            groups = tuple(structs.replace(group, memory_mb=800) for group in job.allocation.groups)
            job.allocation = structs.replace(job.allocation, groups=groups)
            table.allocate(job.allocation)
        asked = make_job(99, partitions=("high",), num_tasks=2, memory_per_node_mb=400)
        where, usable = busy.tables.partitions["high"], 0b11
        assert busy.selector.select(Ask(asked, where, usable), busy.tables) is None
        assert [
            each.job_id
            for each in victims(
                busy.preemption, busy.tables, Ask(asked, where, usable), busy.selector, 100
            )
        ] == taken


def test_suspension_without_gang_scheduling_spares_a_partition_from_all_but_whole_nodes():
    """As recorded (suspending-partition-without-gang and -linear): nobody stands still, and on
    whole nodes the job is ended.
    """
    for mode in ("REQUEUE", "CANCEL"):
        busy = Busy(
            *[("low", [node], 4, 0) for node in range(4)], mode=mode, preempt_mode="SUSPEND"
        )
        assert on(busy, "high", num_tasks=4) == (None, [])
        assert busy.victims(num_tasks=4) == []
        who = make_job(99), busy.tables.partitions["high"], 100
        assert busy.preemption.candidates(*who) == []
        assert len(busy.preemption.candidates(*who, looks_ahead=True)) == 4, "backfill believes it"
        busy.preemption.whole_nodes = True
        assert [each.job_id for each in busy.preemption.candidates(*who)] == [
            1,
            2,
            3,
            4,
        ]
        assert not busy.preemption.stands_still(busy.tables.running[1])


def test_with_gang_scheduling_lower_partitions_make_room_whatever_their_own_mode():
    """As recorded (suspending-partition-with-gang, gang-takes-cores-at-once)."""
    busy = Busy(
        *[("low", [node], 4, 0) for node in range(3)],
        ("mid", [3], 4, 0),
        mode="REQUEUE,GANG",
        preempt_mode="SUSPEND",
    )
    assert on(busy, "high", num_tasks=4)[1] == [1]
    assert busy.victims(num_tasks=4) == []
    assert not busy.preemption.loses_its_place(busy.tables.running[1])
    busy.tables.partitions["high"].nodes = 0b1000
    assert on(busy, "high", num_tasks=4)[1] == [4]
    assert busy.preemption.loses_its_place(busy.tables.running[4])


def test_a_job_shares_cores_of_its_equals_but_not_where_a_higher_one_has_suspended_them():
    busy = suspending(("mid", [0], 2, 0))
    for each in busy.tables.partitions.values():
        each.oversubscribe = "FORCE:2" if each.name == "mid" else "FORCE:1"
    first = busy.tables.running[1]
    busy.tables.nodes.release(first.allocation, first.allocation.nodes)
    first.allocation = structs.replace(first.allocation, shared_in="mid")
    busy.tables.nodes.allocate(first.allocation)
    busy.tables.partitions["high"].nodes = busy.tables.partitions["mid"].nodes = 1

    def start(number, partition, tasks):
        job = make_job(number, partitions=(partition,), num_tasks=tasks)
        job.allocation = busy.selector.select(
            Ask(job, busy.tables.partitions[partition], 1), busy.tables
        )
        job.partition, job.state, job.start_time = partition, JobState.RUNNING, 0
        busy.tables.nodes.allocate(job.allocation)
        busy.tables.running[number] = busy.tables.jobs[number] = job
        return cores_of(job.allocation)[0]

    assert start(2, "high", 2) == 0b1100
    assert start(3, "high", 1) == 0b0001
    assert start(4, "mid", 1) == 0b0010


def test_turns_are_news_to_the_backfill_scheduler_alone():
    main = MainTrigger({}, Rhythm(0.0))
    main.note(Note.START, 0.0)
    while main.next_run(None) < 40:
        main.take(main.next_run(None), None)
    before = main.next_run(None)
    main.note(Note.TURN, 41.0)
    assert main.next_run(None) >= min(before, 60.0)
    main.note(Note.CHANGE, 41.0)
    assert main.next_run(None) < 50
