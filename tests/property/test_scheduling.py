"""Schedules of random little workloads, compared with a slow textbook and with what must hold of
any schedule.
"""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scheduling_harness import World, check_tables, make_job, node, table, table_of, tables_of

from understudy.controller.scheduling.api import Ask, Note
from understudy.controller.scheduling.select.best_fit import alike, alike_narrow, alike_wide
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.select.linear import SelectLinear
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.scheduling.slurm.plan import Slots
from understudy.controller.scheduling.textbook import easy
from understudy.controller.scheduling.textbook.easy import Easy
from understudy.controller.scheduling.textbook.fcfs import Fcfs
from understudy.controller.tables.reservation import Reservation, ReservationTable
from understudy.model import nodeset
from understudy.model.reservations import FLEX, MAINT, OVERLAP

PROCESSORS = 6
jobs = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(1, PROCESSORS), st.integers(1, 30), st.integers(1, 30)
    ),
    min_size=1,
    max_size=25,
)


def workload(drawn):
    """(submit, processors, run, limit) in order of submission, run at most limit."""
    return sorted((submit, size, min(run, limit), limit) for submit, size, run, limit in drawn)


def slow_textbook(rows, *, backfill):
    """Second by second: completions, submissions, one pass. Written without a look at the
    policy.
    """
    waiting, running, starts = [], {}, {}
    second = 0
    while len(starts) < len(rows) or running:
        running = {i: s for i, s in running.items() if s + rows[i][2] > second}
        waiting += [i for i, row in enumerate(rows) if row[0] == second]
        while waiting and rows[waiting[0]][1] <= PROCESSORS - sum(rows[i][1] for i in running):
            running[waiting[0]] = starts[waiting[0]] = second
            del waiting[0]
        if waiting and backfill:
            need = rows[waiting[0]][1]

            def idle_at(when, running=running):
                return PROCESSORS - sum(
                    rows[i][1] for i, s in running.items() if s + rows[i][3] > when
                )

            shadow = next(t for t in range(second, second + 10_000) if idle_at(t) >= need)
            extra = idle_at(shadow) - need
            for i in list(waiting[1:]):
                size, limit = rows[i][1], rows[i][3]
                if size <= PROCESSORS - sum(rows[j][1] for j in running):
                    if second + limit > shadow:
                        if size > extra:
                            continue
                        extra -= size
                    running[i] = starts[i] = second
                    waiting.remove(i)
        second += 1
    return {i + 1: s for i, s in starts.items()}


def scheduled(policy, rows, made=None, selector=None, parameters=None):
    world = World(
        made or table(PROCESSORS),
        policy,
        selector or SelectConsTres(frozenset({"CR_CPU"})),
        parameters,
        check=True,
    )
    world.policy.note(Note.START, 0.0)
    for submit, size, run, limit in rows:
        world.submit(at=submit, cpus=size, run_s=run, limit_s=limit)
    world.run()
    check_tables(world.tables)
    assert not world.tables.pending
    assert not world.tables.running
    return world


@given(jobs)
def test_easy_starts_every_job_when_the_slow_textbook_does(drawn):
    rows = workload(drawn)
    assert scheduled(Easy, rows).starts == slow_textbook(rows, backfill=True)


@given(jobs)
def test_easy_decides_the_same_on_vectors(drawn):
    rows = workload(drawn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(easy, "_MANY", 1)
        assert scheduled(Easy, rows).starts == slow_textbook(rows, backfill=True)


@given(jobs)
def test_easy_decides_the_same_whatever_nodes_the_processors_are_on(drawn):
    rows = workload(drawn)
    assert scheduled(Easy, rows, table(2, cores=3)).starts == slow_textbook(rows, backfill=True)


@given(jobs)
def test_fcfs_starts_every_job_when_the_slow_textbook_does_and_in_order(drawn):
    rows = workload(drawn)
    world = scheduled(Fcfs, rows)
    assert world.starts == slow_textbook(rows, backfill=False)
    assert [job_id for _, job_id in world.start_log] == sorted(world.starts)


@given(jobs)
def test_easy_never_starts_the_head_later_than_promised(drawn):
    world = scheduled(Easy, workload(drawn))
    for job_id, promises in world.promises.items():
        assert all(world.starts[job_id] <= start for _, start in promises if start is not None)


@given(jobs)
def test_what_easy_promises_is_what_happens_when_jobs_run_as_long_as_they_said(drawn):
    rows = [(submit, size, limit, limit) for submit, size, _, limit in workload(drawn)]
    world = scheduled(Easy, rows)
    for job_id, promises in world.promises.items():
        assert {start for _, start in promises if start is not None} <= {world.starts[job_id]}


@settings(max_examples=30, deadline=None)
@given(jobs)
def test_builtin_starts_jobs_of_one_partition_in_order(drawn):
    world = scheduled(Builtin, workload(drawn))
    assert [job_id for _, job_id in world.start_log] == sorted(world.starts)


@settings(max_examples=30, deadline=None)
@given(jobs)
def test_backfill_starts_every_job_and_over_commits_nothing(drawn):
    rows = [(submit, size, run * 60, limit * 60) for submit, size, run, limit in workload(drawn)]
    world = scheduled(Backfill, rows, table(3, cores=2))
    assert len(world.starts) == len(rows)
    assert all(world.starts[i + 1] >= row[0] for i, row in enumerate(rows))


@settings(max_examples=30, deadline=None)
@given(jobs)
def test_no_job_lower_in_the_queue_delays_what_backfill_promises_its_head(drawn):
    rows = [(submit, size, run * 60, limit * 60) for submit, size, run, limit in workload(drawn)]
    world = scheduled(
        Backfill,
        rows,
        parameters={"bf_interval": "1", "bf_resolution": "1", "batch_sched_delay": "1"},
    )
    started = {job_id: when for when, job_id in world.start_log}
    for job_id, promises in world.promises.items():
        for when, start in promises:
            is_head = all(started[other] <= when for other in range(1, job_id))
            if is_head and start is not None:
                assert started[job_id] <= start + 3  # the next looks of the schedulers


class AtAnyPace(Backfill):
    """Whether passes follow each other at the interval does not depend on promises."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        ran = self.backfill_trigger.ran
        self.backfill_trigger.ran = lambda now, changed, **_: ran(
            now, changed=changed, promised=False
        )


class PlansWhenAsked(AtAnyPace):
    """Promises that decide nothing are left out."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.plans_when_asked = True


@settings(max_examples=40, deadline=None)
@given(
    jobs,
    st.sampled_from(
        [
            {},
            {"bf_interval": "7"},
            {"bf_max_job_test": "3"},
            {"bf_max_job_user": "2"},
            {"bf_max_job_start": "1"},
        ]
    ),
)
def test_promises_that_nobody_asks_for_decide_nothing(drawn, parameters):
    rows = [(submit, size, run * 60, limit * 60) for submit, size, run, limit in workload(drawn)]
    machine = {"made": table(3, cores=2), "parameters": parameters}
    assert (
        scheduled(PlansWhenAsked, rows, **machine).start_log
        == scheduled(AtAnyPace, rows, **{**machine, "made": table(3, cores=2)}).start_log
    )


@given(st.integers(1, 2**40 - 1), st.data())
def test_nodes_that_are_alike_are_taken_as_their_number_says(bits, data):
    count = data.draw(st.integers(1, bits.bit_count()))
    chosen = alike(bits, bits.bit_count(), count)
    assert chosen & ~bits == 0
    assert chosen.bit_count() == count
    runs = nodeset.runs(bits)
    enough = [length for _, length in runs if length >= count]
    if enough:
        start = next(start for start, length in runs if length == min(enough))
        assert chosen == nodeset.span(start, count)


@given(st.integers(1, 2**60 - 1), st.integers(0, 3), st.data())
def test_wide_and_narrow_bitmaps_are_searched_to_the_same_end(bits, shift, data):
    bits <<= shift
    count = data.draw(st.integers(1, max(bits.bit_count() - 1, 1)))
    assert alike_wide(bits, count) == alike_narrow(bits, count)


clusters = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(1, 2), st.integers(1, 3)),
    min_size=1,
    max_size=10,
)
requests = st.fixed_dictionaries(
    {
        "num_tasks": st.integers(1, 12),
        "cpus_per_task": st.integers(1, 3),
        "min_nodes": st.integers(1, 4),
        "exclusive": st.booleans(),
        "memory_per_node_mb": st.none() | st.integers(0, 600),
        "excluded_nodes": st.just(0) | st.integers(0, 15),
        "ntasks_per_node": st.none() | st.integers(1, 4),
        "max_nodes": st.none() | st.integers(4, 6),
    }
)


ONE = {
    "num_tasks": 1, "cpus_per_task": 1, "min_nodes": 1, "exclusive": False,
    "memory_per_node_mb": None, "excluded_nodes": 0, "ntasks_per_node": None,
    "max_nodes": None,
}  # fmt: skip


@example(
    [(1, 1, 1, 1), (2, 3, 1, 2), (1, 3, 2, 1)],
    [ONE, ONE, ONE | {"num_tasks": 3, "cpus_per_task": 3}],
    "CR_CORE",
)
@given(
    clusters,
    st.lists(requests, min_size=1, max_size=12),
    st.sampled_from(["CR_CORE", "CR_CORE_MEMORY", "CR_SOCKET", "CR_CPU", "linear"]),
)
def test_what_is_selected_satisfies_the_request_and_is_free(cluster, asked, word):
    made = table_of(
        [node(i, sockets=s, cores=c, threads=t, weight=w) for i, (s, c, t, w) in enumerate(cluster)]
    )
    tables = tables_of(made)
    selector = SelectLinear() if word == "linear" else SelectConsTres(frozenset({word}))
    main = tables.partitions["main"]
    for job_id, fields in enumerate(asked, 1):
        job = make_job(job_id, **fields)
        allocation = selector.select(Ask(job, main, main.nodes), tables)
        will = selector.will_run(Ask(job, main, main.nodes), tables, 0)
        assert (allocation is not None) == (will is not None and will[0] == 0)
        if allocation is None:
            continue
        # of all nodes it may take so many light ones that no more are allowed when it gets to large
        # heavy ones; where others have the light ones it does not
        if fields["max_nodes"] is None:
            assert selector.could_ever_run(Ask(job, main, main.nodes), tables)
        assert will == (0, allocation.nodes)
        assert allocation.nodes & fields["excluded_nodes"] == 0
        assert allocation.node_count >= fields["min_nodes"]
        if fields["max_nodes"] is not None:
            assert allocation.node_count <= fields["max_nodes"]
        assert allocation.tasks >= fields["num_tasks"]
        each = fields["cpus_per_task"]
        # Where a task's CPUs are spread over what nodes have left over, tasks may have to share
        # some.
        may_share = allocation.node_count > 1 and (
            fields["min_nodes"] > 1
            or any(made.free_cpus[share.node] % each for share in allocation.shares)
        )
        for share in allocation.shares:
            assert share.tasks >= 1
            assert may_share or share.cpus >= share.tasks * each
            assert share.cpus >= each
            if fields["ntasks_per_node"] is not None:
                assert share.tasks <= fields["ntasks_per_node"]
            if fields["exclusive"] or word == "linear":
                assert share.cpus == made.nodes[share.node].cpus
        made.allocate(allocation)
        job.allocation, job.start_time, job.state = allocation, 0, job.state.RUNNING
        tables.jobs[job_id] = tables.running[job_id] = job
        check_tables(tables)
    for job in list(tables.running.values()):
        made.release(job.allocation, job.allocation.nodes)
        job.allocation = None
        check_tables(tables)
    assert made.idle_nodes == main.nodes
    assert made.exclusive_nodes == made.full_nodes == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 5000), st.integers(1, 3000), st.integers(1, 255)), max_size=12
    ),
    st.integers(0, 6000),
    st.integers(1, 3000),
)
def test_slots_know_at_every_second_which_nodes_are_promised(promises, start, length):
    slots = Slots(1000, 3600, 60, 255)
    taken = [255] * 20_000
    for begin, lasting, nodes in promises:
        begin += 1000  # noqa: PLW2901
        slots.promise(begin, begin + lasting, nodes)
        first = begin - begin % 60
        end = max((begin + lasting) - (begin + lasting) % 60, first + 60)
        for second in range(first, min(end, slots.profile.end)):
            taken[second] &= ~nodes
    start += 1000
    free = 255
    for second in range(start, start + length + 1):  # who ends in a second touches it
        free &= taken[second]
    assert slots.window(length, 255).at(start)[0] == (255 if start >= slots.profile.end else free)
    free = 255
    for second in range(1000, start + 1):
        free &= taken[second]
    assert slots.free_until(start) == free


@given(
    clusters,
    st.lists(requests, min_size=2, max_size=12),
    st.sampled_from(["CR_CORE", "CR_CORE_MEMORY", "linear"]),
    st.data(),
)
def test_a_start_is_found_before_any_time_after_it_and_not_before_one_ahead_of_it(
    cluster, asked, word, data
):
    made = table_of(
        [node(i, sockets=s, cores=c, threads=t, weight=w) for i, (s, c, t, w) in enumerate(cluster)]
    )
    tables = tables_of(made)
    selector = SelectLinear() if word == "linear" else SelectConsTres(frozenset({word}))
    main = tables.partitions["main"]
    for job_id, fields in enumerate(asked, 1):
        job = make_job(job_id, limit_s=data.draw(st.none() | st.integers(1, 9000)), **fields)
        usable = main.nodes & ~data.draw(st.integers(0, 15))
        found = selector.will_run(Ask(job, main, usable), tables, 100)
        until = data.draw(st.integers(100, 9100))
        assert selector.will_run(Ask(job, main, usable), tables, 100, until) == (
            found if found is not None and found[0] <= until else None
        )
        allocation = selector.select(Ask(job, main, main.nodes), tables)
        if allocation is not None:
            made.allocate(allocation)
            job.allocation, job.start_time, job.state = (
                allocation,
                data.draw(st.integers(0, 100)),
                job.state.RUNNING,
            )
            tables.jobs[job_id] = tables.running[job_id] = job


reservation_lists = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(1, 400),
        st.integers(1, 15),
        st.sampled_from([0, MAINT, OVERLAP, FLEX]),
    ),
    min_size=1,
    max_size=4,
)
reserved_jobs = st.lists(
    st.tuples(st.integers(0, 300), st.integers(1, 4), st.integers(1, 200), st.integers(0, 4)),
    min_size=1,
    max_size=12,
)


@given(reservation_lists, reserved_jobs, st.sampled_from([Builtin, Backfill]))
def test_no_job_runs_on_nodes_that_are_reserved_for_others(given_reservations, drawn, policy):
    """Each job's time limit ends before a reservation of its nodes begins, unless that is its own;
    and a job inside has nothing else.
    """
    tables = tables_of(table(4))
    reservations = {
        f"r{i}": Reservation(f"r{i}", i, s, s + n, nodes=nodes, flags=f)
        for i, (s, n, nodes, f) in enumerate(given_reservations)
    }
    tables.reservations = ReservationTable(reservations)
    world = World(
        tables,
        policy,
        SelectConsTres(frozenset({"CR_CPU"})),
        {"bf_interval": "5", "bf_resolution": "1"},
        check=True,
    )
    world.policy.note(Note.START, 0.0)
    for at, cpus, limit, own in sorted(drawn):
        world.submit(
            at=at, cpus=cpus, run_s=limit, limit_s=limit, reservation=f"r{own - 1}" if own else ""
        )
    for each in reservations.values():
        for when in (each.start_time, each.end_time):
            world.call(when, lambda when=when: world.policy.note(Note.CHANGE, float(when)))
    world.run(until=2000)
    for job in tables.jobs.values():
        if job.allocation is None:
            continue
        own = reservations.get(job.spec.reservation)
        begin, end = job.start_time, job.start_time + job.time_limit_s
        if own is not None and not own.flags & FLEX:
            assert not job.allocation.nodes & ~own.nodes
            assert own.start_time <= begin < own.end_time
        for other in reservations.values():
            if (
                other is own
                or not other.nodes & job.allocation.nodes
                or other.start_time >= end
                or other.end_time <= begin
            ):
                continue
            assert own is not None, "a reservation was overrun"
            assert own.flags & MAINT or (own.flags & OVERLAP and not other.flags & MAINT)
