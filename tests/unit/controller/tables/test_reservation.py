"""Scheduling around reservations: whose nodes they are from when to when."""

from __future__ import annotations

from typing import Any

import pytest
from scheduling_harness import World, make_job, table, tables_of

from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.scheduling.slurm.builtin import Builtin
from understudy.controller.scheduling.slurm.main_pass import NODES_DOWN
from understudy.controller.tables.partition import Partition
from understudy.controller.tables.reservation import (
    BUSY,
    MAINTENANCE,
    Reservation,
    ReservationTable,
)
from understudy.model.reservations import FLEX, MAGNETIC, MAINT, OVERLAP, TIME_FLOAT

MAIN = Partition("main", nodes=0b1111)


def reservation(
    name: str = "r", start: int = 100, end: int = 200, nodes: int = 0b0011, **fields: Any
) -> Reservation:
    return Reservation(name, 1, start, end, nodes=nodes, users=("ann",), user_ids=(1000,), **fields)


def world(*reservations: Reservation, policy: Any = Backfill, cores: int = 1) -> World:
    tables = tables_of(table(4, cores=cores))
    tables.reservations = ReservationTable({each.name: each for each in reservations})
    made = World(tables, policy, SelectConsTres(frozenset({"CR_CORE"})), check=True)
    made.policy.note(Note.START, 0.0)
    return made


def test_a_job_that_would_run_into_a_reservation_does_not_get_its_nodes():
    w = world(reservation(start=1000, end=5000))
    w.submit(at=5, cpus=1, run_s=600, limit_s=3600)
    w.submit(at=5, cpus=2, run_s=600, limit_s=900)
    w.run(until=100)
    assert w.tables.jobs[1].allocation.nodes == 0b0100
    assert w.tables.jobs[2].allocation.nodes == 0b0011


def test_a_job_that_ends_when_the_reservation_begins_may_use_its_nodes():
    table_ = ReservationTable({"r": reservation(start=1000, end=2000)})
    assert table_.leeway(make_job(), None, MAIN, 0b1111, 0, 400, 600).nodes == 0b1111
    assert table_.leeway(make_job(), None, MAIN, 0b1111, 0, 401, 600).nodes == 0b1100
    assert table_.leeway(make_job(), None, MAIN, 0b1111, 0, 2000, 600).nodes == 0b1111


def test_the_job_says_that_nodes_are_reserved_and_others_pass_it():
    w = world(reservation(start=1000, end=5000), policy=Builtin)
    w.submit(at=5, cpus=4, run_s=600, limit_s=3600, min_nodes=4)
    w.submit(at=5, cpus=1, run_s=600, limit_s=3600)
    w.run(until=100)
    assert w.tables.jobs[1].reason_detail == BUSY
    assert list(w.starts) == [2]


def test_a_job_that_needs_more_cpus_than_reservations_leave_keeps_nobody_waiting():
    w = world(reservation(start=1000, end=5000), policy=Builtin, cores=4)
    w.submit(at=5, cpus=10, run_s=600, limit_s=3600)
    w.submit(at=5, cpus=1, run_s=600, limit_s=3600)
    w.run(until=100)
    assert w.tables.jobs[1].reason_detail == BUSY
    assert list(w.starts) == [2]


@pytest.mark.parametrize(("taken", "is_first"), [(0b1000, True), (0b0001, False)])
def test_a_job_that_wants_its_nodes_alone_waits_for_those_that_are_in_use(taken, is_first):
    w = world(reservation(start=1000, end=5000), policy=Builtin, cores=4)
    w.submit(at=1, cpus=1, run_s=600, limit_s=900, required_nodes=taken)
    w.submit(at=5, cpus=3, run_s=600, limit_s=3600, min_nodes=3, exclusive=True)
    w.submit(at=5, cpus=1, run_s=600, limit_s=3600)
    w.run(until=100)
    waiting = w.tables.jobs[2]
    assert (waiting.reason, waiting.reason_detail) == (
        ("Resources", "") if is_first else ("Reservation", BUSY)
    )
    assert list(w.starts) == ([1] if is_first else [1, 3])


def test_a_job_for_which_too_few_nodes_are_left_by_higher_jobs_says_so():
    w = world(policy=Builtin)
    w.submit(at=1, cpus=1, run_s=600, limit_s=900, required_nodes=0b0001)
    w.submit(at=5, cpus=1, run_s=600, limit_s=900, required_nodes=0b0001)
    w.submit(at=5, cpus=4, run_s=600, limit_s=900, min_nodes=4)
    w.run(until=100)
    assert w.tables.jobs[3].reason_detail == NODES_DOWN


@pytest.mark.parametrize(
    ("delay_s", "overlaps", "before_s", "nodes"),
    [
        (60, True, 60, 0b1111),
        (60, True, 90, 0b1100),
        (60, False, 60, 0b1100),
        (None, True, 60, 0b1100),
    ],
)
def test_jobs_that_end_in_good_time_when_told_to_may_overlap_with_max_start_delay(
    delay_s, overlaps, before_s, nodes
):
    table_ = ReservationTable({"r": reservation(max_start_delay_s=delay_s)})
    job = make_job(kill_signal=10, kill_signal_before_s=before_s, kill_signal_reservation=overlaps)
    assert table_.leeway(job, None, MAIN, 0b1111, 0, 150, 600).nodes == nodes


def test_maintenance_of_a_whole_partition_is_said_to_be_that():
    w = world(reservation(start=1000, end=5000, nodes=0b1111, flags=MAINT), policy=Builtin)
    w.submit(at=5, cpus=1, run_s=600, limit_s=3600)
    w.run(until=100)
    assert (w.tables.jobs[1].reason, w.tables.jobs[1].reason_detail) == ("Reservation", MAINTENANCE)


def test_a_job_of_the_reservation_waits_for_it_and_then_runs_there():
    w = world(reservation(start=100, end=5000))
    w.submit(at=5, cpus=2, run_s=60, limit_s=600, reservation="r")
    w.run(until=90)
    assert w.tables.jobs[1].reason == "Reservation"
    assert not w.starts
    w.policy.note(Note.CHANGE, 100.0)
    w.run(until=200)
    assert w.tables.jobs[1].allocation.nodes == 0b0011


def test_a_job_of_a_reservation_that_is_not_there_does_not_run():
    w = world()
    w.submit(at=5, cpus=1, run_s=60, limit_s=600, reservation="gone")
    w.run(until=100)
    assert not w.starts


def test_jobs_of_reservations_come_first_and_block_their_reservation_alone():
    w = world(reservation(start=0, end=50_000))
    w.submit(at=5, cpus=1, run_s=600, limit_s=600, reservation="r")
    w.submit(at=6, cpus=2, run_s=600, limit_s=600, reservation="r")
    w.submit(at=7, cpus=1, run_s=600, limit_s=600, reservation="r")
    w.submit(at=8, cpus=2, run_s=600, limit_s=600)
    w.run(until=20)
    assert sorted(w.starts) == [1, 4]
    assert [w.tables.jobs[i].reason for i in (2, 3)] == ["Resources", "Priority"]


def test_backfill_promises_a_start_right_behind_the_reservation():
    w = world(reservation(start=100, end=7000))
    w.submit(at=5, cpus=4, run_s=600, limit_s=600)
    w.run(until=40)
    assert w.tables.jobs[1].expected_start == 7001


def test_a_job_that_names_reserved_nodes_is_promised_the_second_behind_the_reservation():
    w = world(reservation(start=100, end=7000))
    w.submit(at=5, cpus=2, run_s=600, limit_s=600, required_nodes=0b0011, min_nodes=2)
    w.run(until=40)
    assert w.tables.jobs[1].expected_start == 7001


def test_reserved_cores_leave_the_others_of_the_node():
    w = world(reservation(start=0, end=50_000, nodes=0b0001, cores={0: 0b0011}), cores=4)
    w.submit(at=5, cpus=1, run_s=600, limit_s=600, required_nodes=1, min_nodes=1)
    w.submit(at=5, cpus=2, run_s=600, limit_s=600, required_nodes=1, min_nodes=1, max_nodes=1)
    w.submit(at=5, cpus=3, run_s=600, limit_s=600, reservation="r")
    w.submit(at=6, cpus=1, run_s=600, limit_s=600, reservation="r")
    w.run(until=100)
    assert w.tables.jobs[1].allocation.groups[0].cores == 0b0100
    assert 2 not in w.starts
    assert 3 not in w.starts
    assert w.tables.jobs[4].allocation.groups[0].cores == 0b0001


def test_maintenance_takes_nodes_from_other_reservations_unless_they_are_maintenance():
    maint = reservation("m", 300, 400, 0b1111, flags=MAINT)
    for flags, nodes in ((0, 0), (MAINT, 0b0011), (OVERLAP, 0)):
        own = reservation("own", 0, 1000, flags=flags)
        table_ = ReservationTable({"own": own, "m": maint})
        leeway = table_.leeway(make_job(), own, MAIN, 0b1111, 250, 250, 100)
        assert leeway.nodes == nodes
        assert leeway.is_maintenance == (flags != MAINT)


def test_flexible_reservations_let_jobs_begin_before_and_use_other_nodes():
    own = reservation(start=1000, end=2000, flags=FLEX)
    leeway = ReservationTable({"r": own}).leeway(make_job(), own, MAIN, 0b1111, 0, 0, 5000)
    assert (leeway.nodes, leeway.reason) == (0b1111, "")


def test_a_floating_reservation_never_comes_nearer():
    floating = reservation(start=60, end=120, flags=TIME_FLOAT)
    for now in (0, 500, 10_000):
        assert floating.start(now) == now + 60
        assert not floating.is_active(now)
    assert not floating.admits(1000, "", lambda _user: frozenset())


def test_a_magnetic_reservation_draws_jobs_that_may_use_it():
    w = world(reservation(start=0, end=50_000, flags=MAGNETIC))
    w.submit(at=5, cpus=1, run_s=600, limit_s=600)
    w.submit(at=5, cpus=2, run_s=600, limit_s=600)
    w.run(until=20)
    assert w.tables.jobs[1].allocation.nodes == 0b0001
    assert w.tables.jobs[1].used_reservation == "r"
    assert w.tables.jobs[2].allocation.nodes == 0b1100
    assert w.tables.jobs[2].used_reservation == ""


def test_users_accounts_and_groups_say_who_may_use_a_reservation():
    def groups(user_id: int) -> frozenset[str]:
        return frozenset({"staff"} if user_id == 1 else ())

    def made(**fields: Any) -> Reservation:
        return Reservation("r", 1, 0, 1, **fields)

    assert made(user_ids=(1,)).admits(1, "", groups)
    assert not made(user_ids=(1,)).admits(2, "", groups)
    assert made(user_ids=(1,), excludes_users=True).admits(2, "", groups)
    assert not made(user_ids=(1,), excludes_users=True).admits(1, "", groups)
    assert made(groups=("staff",)).admits(1, "", groups)
    assert not made(groups=("staff",)).admits(2, "", groups)
    assert made(accounts=("a",)).admits(2, "a", groups)
    assert not made(accounts=("a",)).admits(2, "b", groups)
    assert not made(accounts=("a",), user_ids=(1,), excludes_users=True).admits(1, "a", groups)
    assert made(accounts=("a",), user_ids=(1,), excludes_users=True).admits(2, "a", groups)


def test_licences_of_a_reservation_are_kept_from_others():
    held = reservation(nodes=0, start=0, end=50_000, licenses="matlab:3")
    w = world(held)
    w.tables.licenses.totals = {"matlab": 4}
    w.submit(at=5, cpus=1, run_s=60, limit_s=600, licenses="matlab:2")
    w.submit(at=5, cpus=1, run_s=60, limit_s=600, licenses="matlab:1")
    w.run(until=50)
    assert list(w.starts) == [2]
    assert w.tables.jobs[1].reason == "Licenses"
