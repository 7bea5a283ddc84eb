"""Reservations in the controller: created, changed, begun, over; and what happens to their jobs.

Covers: controller/requests/update_reservations, controller/reservations/admission,
controller/reservations/choose, controller/reservations/over_time, controller/reservations/times,
model/reservations.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from controller_harness import OTHER, ROOT, START, USER, Harness

from understudy.controller.jobs.start import Planning
from understudy.controller.scheduling.api import Note
from understudy.controller.scheduling.slurm.backfill import Backfill
from understudy.controller.tables.reservation import MAINTENANCE
from understudy.controller.tables.settings import Settings
from understudy.controller.tables.topology import Tree
from understudy.model.conf_companions import SwitchConf
from understudy.model.reservations import DAILY, MAINT, SPEC_NODES, flags_text, read_flags
from understudy.model.states import JobFlag, JobState
from understudy.protocol.messages import (
    Failure,
    JobSpec,
    Ok,
    ReservationChanged,
    SubmitJob,
    UpdateJobs,
    UpdatePartition,
    UpdateReservation,
)

if TYPE_CHECKING:
    from understudy.controller.tables.job import Job

NOW = int(START)


def ask(h: Harness, action: str, name: str = "r", sender: Any = ROOT, **changes: Any) -> Any:
    return h.ask(
        UpdateReservation(action, name, {key: str(value) for key, value in changes.items()}), sender
    )


def create(h: Harness, name: str = "r", start: int = 0, minutes: int = 60, **changes: Any) -> str:
    changes = {"users": "ann", "nodes": "n[1-2]"} | changes
    answer = ask(
        h,
        "create",
        name,
        starttime=NOW + start,
        duration=minutes,
        **{key: value for key, value in changes.items() if value},
    )
    assert isinstance(answer, ReservationChanged), answer
    return answer.name


def refused(
    h: Harness,
    action: str = "create",
    name: str = "r",
    start: int = 0,
    sender: Any = ROOT,
    **changes: Any,
) -> int:
    if action == "create":
        changes = {
            "users": "ann",
            "nodes": "n[1-2]",
            "starttime": NOW + start,
            "duration": 60,
        } | changes
    answer = ask(
        h, action, name, sender, **{key: value for key, value in changes.items() if value != ""}
    )
    assert isinstance(answer, Failure), answer
    return answer.code


def shown(h: Harness, name: str = "r") -> dict[str, Any]:
    columns = [
        "nodes",
        "node_count",
        "core_count",
        "flags",
        "users",
        "partition",
        "start_time",
        "end_time",
        "is_active",
        "cores",
    ]
    (row,) = h.query("reservations", *columns, name=[name])
    return dict(zip(columns, row, strict=True))


@pytest.fixture
def h() -> Harness:
    return Harness()


@pytest.fixture
def scheduled() -> Harness:
    """With Slurm's own schedulers."""
    h = Harness()
    h.core.policy = Backfill(
        h.core.tables, h.core.selector, Planning(h.core), {"bf_interval": "10"}
    )
    h.core.policy.note(Note.START, h.time.now())
    return h


def test_named_nodes_are_reserved(h: Harness) -> None:
    create(h)
    found = shown(h)
    assert (found["nodes"], found["core_count"], found["flags"], found["is_active"]) == (
        "n[1-2]",
        8,
        "SPEC_NODES",
        True,
    )
    assert found["end_time"] - found["start_time"] == 3600


def test_a_part_of_a_minute_of_a_duration_counts_as_one(h: Harness) -> None:
    create(h, minutes="1-2:3:4")  # type: ignore[arg-type]
    assert ask(h, "update", duration="5:59")
    (reservation,) = h.core.tables.reservations.by_name.values()
    assert reservation.end(NOW) - reservation.start(NOW) == 6 * 60


def test_so_many_nodes_come_from_the_default_partition_and_not_from_others_reservations(
    h: Harness,
) -> None:
    create(h, "a", nodes="n1", start=1000)
    create(h, "b", nodes="", nodecnt="2", start=1000)
    assert shown(h, "b")["nodes"] == "n[2-3]"
    assert shown(h, "b")["partition"] == "main"
    create(h, "c", nodes="", nodecnt="2", start=5000)
    assert shown(h, "c")["nodes"] == "n[1-2]"


def test_the_first_nodes_are_taken_together_or_not(h: Harness) -> None:
    create(h, "a", nodes="n2", start=1000)
    create(h, "b", nodes="", nodecnt="2", start=1000)
    assert shown(h, "b")["nodes"] == "n[1,3]"


def test_fewer_nodes_than_asked_for_are_reserved_if_there_are_no_more_and_no_job_is_in_the_way(
    h: Harness,
) -> None:
    create(h, "a", nodes="n1", start=1000)
    create(h, "b", nodes="", nodecnt="4", start=1000)
    assert shown(h, "b")["nodes"] == "n[2-4]"
    create(h, "e", nodes="", nodecnt="5", start=9000)  # the partition has no more than four
    assert shown(h, "e")["nodes"] == "n[1-4]"
    assert refused(h, name="c", start=1000, nodes="", nodecnt="1") == 2016
    h.submit(time_limit_s=900, required_nodes="n1")
    assert refused(h, name="d", start=300, duration=10, nodes="", nodecnt="4") == 2016


def test_where_there_are_switches_nodes_of_few_of_them_are_reserved(h: Harness) -> None:
    leaves = [
        SwitchConf("s1", ["n1", "n4"], [], 1, "", 0),
        SwitchConf("s2", ["n2", "n3"], [], 1, "", 0),
        SwitchConf("top", [], ["s1", "s2"], 1, "", 0),
    ]
    h.core.tables.nodes.tree = Tree.of(leaves, {f"n{number + 1}": number for number in range(4)})
    create(h, "a", nodes="", nodecnt="2", start=1000)
    assert shown(h, "a")["nodes"] == "n[1,4]"
    create(h, "b", nodes="", nodecnt="2", start=1000)
    assert shown(h, "b")["nodes"] == "n[2-3]"


def test_maintenance_takes_nodes_of_other_reservations_only_if_there_are_no_others(
    h: Harness,
) -> None:
    create(h, "a", nodes="n[1-2]")
    create(h, "m", nodes="", nodecnt="2", flags="maint")
    create(h, "all", nodes="", nodecnt="4", flags="maint")
    assert [shown(h, name)["nodes"] for name in ("m", "all")] == ["n[3-4]", "n[1-4]"]


def test_nodes_on_which_jobs_will_run_are_not_reserved_unless_jobs_are_ignored(h: Harness) -> None:
    h.submit(time_limit_s=3600, required_nodes="n1")
    create(h, "a", nodes="", nodecnt="2", start=1000)
    assert shown(h, "a")["nodes"] == "n[2-3]"
    assert refused(h, name="b", nodes="n1", start=1000) == 2016
    create(h, "b", nodes="n1", start=1000, flags="ignore_jobs")
    create(h, "c", nodes="n1", start=5000)


def test_cores_are_reserved_of_as_few_nodes_as_will_do(h: Harness) -> None:
    create(h, "a", nodes="", corecnt="5")
    assert (shown(h, "a")["nodes"], shown(h, "a")["core_count"]) == ("n[1-2]", 5)
    create(h, "b", nodes="", corecnt="5", nodecnt="2")
    # as they are dealt there: the rest to the first node, and the others are had whole
    assert (shown(h, "b")["nodes"], shown(h, "b")["core_count"]) == ("n[2-3]", 7)
    create(h, "c", nodes="n4", corecnt="2")
    assert shown(h, "c")["cores"] == [], "as long as the controller's loop has not told them"
    h.run(6)
    assert shown(h, "c")["cores"] == [["n4", "0-1"]]
    create(h, "d", nodes="n3", corecnt="1", flags="FIRST_CORES", start=9000)
    assert refused(h, name="d", nodes="n[3-4]", corecnt="2") == 2111
    assert refused(h, "update", "a", corecnt="2") == 2109


def test_of_more_nodes_than_there_are_all_give_cores(h: Harness) -> None:
    for cores, nodecnt, total in (("6", "3", 6), ("2", "5", 4), ("7", "5", 16), ("9", "2", 8)):
        create(h, nodes="", corecnt=cores, nodecnt=nodecnt)
        assert shown(h)["core_count"] == total
        assert ask(h, "delete") == Ok()


def test_a_reservation_may_be_over_at_once(h: Harness) -> None:
    end = {"starttime": NOW - 30, "endtime": NOW - 1}
    assert isinstance(ask(h, "create", users="ann", nodes="n1", **end), ReservationChanged)


def test_reservations_without_a_name_are_called_after_their_user(h: Harness) -> None:
    assert create(h, "") == "ann_1"
    assert create(h, "", start=9000, users="", accounts="physics") == "physics_2"


def test_features_beside_named_nodes_are_kept(h: Harness) -> None:
    create(h, "r", nodes="ALL", features="nosuch")
    (reservation,) = h.core.tables.reservations.by_name.values()
    assert reservation.features == "nosuch"


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        (2010, {"users": "nosuch"}),
        (2113, {"users": "", "groups": "nosuch"}),
        (2018, {"nodes": "n99"}),
        (2000, {"partitionname": "nosuch"}),
        (2054, {"start": -1000}),
        (2080, {"users": ""}),
        (2053, {"nodes": "", "nodecnt": "1", "flags": "any_nodes"}),
        (2048, {"licenses": "nosuch:1"}),
        (2029, {"nodes": "", "nodecnt": "1", "features": "nosuch"}),
        (2018, {"flags": "replace"}),
        (2069, {"nodes": "", "corecnt": "1", "flags": "replace_down"}),
        (2036, {"flags": "time_float,daily", "nodes": "n99", "start": -1000}),
        (2000, {"flags": "time_float,daily", "partitionname": "nosuch"}),
    ],
)
def test_what_makes_no_sense_is_refused(h: Harness, code: int, changes: dict[str, Any]) -> None:
    assert refused(h, **changes) == code
    assert not h.core.tables.reservations


def test_only_administrators_make_reservations(h: Harness) -> None:
    assert refused(h, sender=USER) == 2010


def test_reservations_of_the_same_time_do_not_share_nodes_unless_they_are_made_to(
    h: Harness,
) -> None:
    create(h, "a")
    assert refused(h, name="a", nodes="n4") == 2082
    assert refused(h, name="b") == 2058
    create(h, "b", flags="overlap")
    create(h, "c", flags="maint")
    assert refused(h, name="d", start=3000) == 2058
    create(h, "d", start=3600)


def test_repeating_reservations_keep_their_later_times_free(h: Harness) -> None:
    create(h, "a", flags="daily")
    assert refused(h, name="b", start=86_400 + 1800) == 2058
    create(h, "b", start=86_400 + 7200)


def test_a_floating_reservation_that_is_made_to_repeat_does_so_from_where_it_is_now(
    h: Harness,
) -> None:
    create(h, "c", start=600, minutes=5, flags="time_float")
    create(h, "b", start=720 + 3600, minutes=1)
    ask(h, "delete", "b")
    assert isinstance(ask(h, "update", "c", **{"flags+": "hourly"}), ReservationChanged)
    for hours, also in itertools.product((0, 1, 24), ("", "hourly")):
        assert refused(h, name="b", start=720 + 3600 * hours, duration=1, flags=also) == 2058
    create(h, "b", start=1800, minutes=1, flags="hourly")
    assert refused(h, "update", "c", skip="x") == 2128
    assert refused(h, "update", "b", flags="time_float") == 2054


def test_a_floating_reservation_of_the_past_begins_now(h: Harness) -> None:
    create(h, start=-1000, minutes=5, flags="time_float")
    assert shown(h)["start_time"] == NOW


def test_an_update_changes_what_it_names_and_nothing_if_it_is_refused(h: Harness) -> None:
    create(h)
    assert isinstance(
        ask(h, "update", **{"duration": 120, "users+": "bob", "flags+": "maint"}),
        ReservationChanged,
    )
    found = shown(h)
    assert (found["end_time"] - found["start_time"], found["users"], found["flags"]) == (
        7200,
        "ann,bob",
        "MAINT,SPEC_NODES",
    )
    ask(h, "update", nodes="n[1-3]")
    assert shown(h)["node_count"] == 3
    assert refused(h, "update", **{"duration": 5, "users-": "ann,bob"}) == 2080
    assert shown(h)["end_time"] - shown(h)["start_time"] == 7200
    assert refused(h, "update", starttime=NOW + 500) == 2104
    assert refused(h, "update", skip="x") == 2128
    assert refused(h, "update", "nosuch", duration=5) == 2053
    assert refused(h, "update", groups="staff") == 2129
    assert refused(h, "update", groups="staff", users="-ann") == 2129
    assert refused(h, "update", groups="staff", partitionname="nosuch") == 2000
    assert refused(h, "update", groups="staff", starttime=NOW - 99999) == 2129


def test_the_number_of_nodes_grows_as_far_as_it_can_and_shrinks_from_below(h: Harness) -> None:
    create(h, "r", nodes="", nodecnt="1")
    create(h, "o", nodes="n2")
    ask(h, "update", nodecnt="3")
    assert shown(h)["nodes"] == "n[1,3-4]"
    ask(h, "update", nodecnt="2")
    assert shown(h)["nodes"] == "n[3-4]"
    ask(h, "update", nodecnt="99")
    assert shown(h)["nodes"] == "n[1,3-4]"


def test_a_reservation_with_jobs_is_not_deleted(h: Harness) -> None:
    create(h, start=1000)
    job = h.submit(reservation="r", hold=True)
    assert refused(h, "delete") == 2055
    h.cancel(job)
    assert ask(h, "delete") == Ok()
    assert refused(h, "delete") == 2053


def test_who_may_not_use_a_reservation_cannot_submit_to_it(h: Harness) -> None:
    create(h)
    assert h.refused(reservation="nosuch") == 2053
    assert h.refused(OTHER, reservation="r") == 2052
    assert h.refused(reservation="r,nosuch") == 2053
    assert h.submit(reservation="r").is_running


def test_a_job_that_the_reservations_nodes_could_never_hold_is_refused(h: Harness) -> None:
    create(h)
    assert h.refused(reservation="r", min_nodes=3) == 2014
    assert h.refused(reservation="r", required_nodes="n3") == 2014
    assert h.submit(reservation="r", min_nodes=2).is_running


def test_a_test_of_when_a_job_would_start_knows_what_reservations_leave_to_it_now(
    h: Harness,
) -> None:
    create(h, nodes="n[1-3]", start=1000)
    create(h, "own", nodes="n4", start=9000)

    def note(**spec: Any) -> str:
        answer = h.ask(SubmitJob(JobSpec(name="j", **spec), "#!/bin/sh\n", test_only=True))
        return answer.text if isinstance(answer, Failure) else answer.note

    def told(offset: int) -> str:
        return (
            datetime.fromtimestamp(NOW + offset, tz=UTC)
            .astimezone()
            .strftime("to start at %Y-%m-%dT%H:%M:%S")
        )

    assert told(0) in note(time_limit_s=600, min_nodes=4)
    assert told(0) in note(time_limit_s=3600)
    assert note(time_limit_s=3600, min_nodes=3) == "Requested node configuration is not available"
    assert (
        note(time_limit_s=3600, required_nodes="n1") == "Requested node configuration is not "
        "available"
    )
    assert note(reservation="own") == "Invalid time specified"


def test_a_test_of_when_a_job_would_start_comes_behind_the_time_that_others_wait_for(
    h: Harness,
) -> None:
    h.submit(time_limit_s=1000, min_nodes=4, exclusive=True)
    h.submit(time_limit_s=3600, min_nodes=2)
    answer = h.ask(SubmitJob(JobSpec(name="j", time_limit_s=60), "#!/bin/sh\n", test_only=True))
    assert (
        datetime.fromtimestamp(NOW + 1000 + 1800, tz=UTC)
        .astimezone()
        .strftime("to start at %Y-%m-%dT%H:%M:%S")
        in answer.note
    )


def test_no_policy_starts_a_job_where_a_reservation_stands_against_it(h: Harness) -> None:
    create(h, nodes="n[1-4]", start=1000)
    assert not h.submit(time_limit_s=3600).is_running
    assert h.submit(time_limit_s=600).is_running


def test_the_tasks_of_an_array_leave_reserved_cores_alone(scheduled: Harness) -> None:
    h = scheduled
    create(h, nodes="n1", corecnt="2")
    array = h.submit(
        array="1-3", mem_per_node_mb=10, required_nodes="n1", max_nodes=1, time_limit_s=600
    )
    h.run(5)
    tasks = list(array.array.records.values()) if array.array is not None else []
    assert [job.allocation.groups[0].cores for job in tasks if job.allocation is not None] == [
        0b0100,
        0b1000,
    ]


def submitted(h: Harness, *specs: JobSpec) -> list[Job]:
    """The components of a heterogeneous job."""
    answer = h.ask(SubmitJob(specs[0], "#!/bin/sh\n", components=list(specs[1:])))
    return [h.core.tables.jobs[answer.job_id + offset] for offset in range(len(specs))]


def test_the_components_of_a_job_leave_reserved_cores_alone(scheduled: Harness) -> None:
    h = scheduled
    create(h, nodes="n1", corecnt="2")
    alike = JobSpec(mem_per_node_mb=10, required_nodes="n1", time_limit_s=600)
    parts = submitted(h, alike, JobSpec(required_nodes="n2", time_limit_s=600))
    h.run(30)
    assert [job.is_running for job in parts] == [True, True]
    assert parts[0].allocation is not None
    assert parts[0].allocation.groups[0].cores == 0b0100


def test_the_components_of_a_job_are_drawn_into_a_magnetic_reservation(scheduled: Harness) -> None:
    h = scheduled
    create(h, "drawing", nodes="n[1-4]", flags="magnetic", users="ann")
    parts = submitted(h, JobSpec(time_limit_s=600), JobSpec(time_limit_s=600))
    h.run(30)
    assert [(job.is_running, job.used_reservation) for job in parts] == [(True, "drawing")] * 2


def test_jobs_start_when_their_reservation_begins(scheduled: Harness) -> None:
    h = scheduled
    create(h, start=100)
    job = h.submit(reservation="r", time_limit_s=600, min_nodes=2)
    assert job.reason == "Reservation"
    h.run(99)
    assert job.is_pending
    h.run(8)
    assert job.is_running
    assert job.start_time is not None
    assert job.start_time >= NOW + 100
    assert job.node_list == "n[1-2]"


def test_a_job_is_eligible_when_its_reservation_begins(scheduled: Harness) -> None:
    """As 22.05.8: nothing else is told of before, and a begin time counts all the same."""
    h = scheduled
    create(h, start=100, nodes="n1")
    create(h, name="flexible", start=100, nodes="n2", flags="flex")
    first = h.submit(reservation="r", time_limit_s=600)
    second = h.submit(reservation="r", time_limit_s=600)
    after = h.submit(reservation="r", time_limit_s=600, dependency=f"afterok:{first.job_id}")
    later = h.submit(reservation="r", begin_time=NOW + 50)
    held = h.submit(reservation="r", hold=True)
    flexible = h.submit(reservation="flexible")
    assert flexible.eligible_time == NOW
    h.run(60)
    reasons = ["Reservation"] * 4 + ["JobHeldUser"]
    assert [job.reason for job in (first, second, after, later, held)] == reasons
    times = [job.eligible_time for job in (first, second, after, later, held)]
    assert times == [None, None, None, NOW + 50, None]
    h.run(50)
    assert first.is_running
    assert [job.eligible_time for job in (first, second, after)] == [NOW + 100, NOW + 100, None]
    assert after.reason == "Dependency"


def test_a_job_that_was_eligible_stays_so_in_a_reservation_that_has_not_begun(h: Harness) -> None:
    create(h, start=1000, nodes="n1")
    job = h.submit(exclusive=True, required_nodes="n2")
    waiting = h.submit(exclusive=True, required_nodes="n2")
    assert job.is_running
    h.run(5)
    h.ask(UpdateJobs([str(waiting.job_id)], {"reservationname": "r", "reqnodelist": ""}), ROOT)
    assert waiting.spec.reservation == "r"
    assert waiting.eligible_time == NOW


def test_a_job_without_a_partition_is_in_its_reservations(h: Harness) -> None:
    h.ask(UpdatePartition("create", "batch", {"nodes": "n1"}), ROOT)
    create(h, start=100, partitionname="batch", nodes="n1")
    assert h.submit(reservation="r").partition == "batch"
    assert h.submit(reservation="r", partition="main").partition == "main"


def test_nodes_are_shown_as_reserved_or_under_maintenance(h: Harness) -> None:
    create(h, "a", nodes="n1")
    create(h, "b", nodes="n2", flags="maint")
    h.run(10)
    flags = [row[0] for row in h.query("nodes", "flags")]
    assert flags == [0x100000, 0x108000, 0, 0]
    h.run(3610)
    assert [row[0] for row in h.query("nodes", "flags")] == [0, 0, 0, 0]


def test_jobs_that_still_wait_when_their_reservation_is_over_are_held(scheduled: Harness) -> None:
    h = scheduled
    create(h, minutes=1)
    running = h.submit(reservation="r", time_limit_s=60, min_nodes=2)
    waiting = h.submit(reservation="r", time_limit_s=60, min_nodes=2)
    free = h.submit(time_limit_s=60, hold=True)
    h.run(20)
    assert running.is_running
    h.run(100)
    assert not h.core.tables.reservations
    assert running.state is JobState.TIMEOUT
    assert (waiting.priority, waiting.reason, waiting.flags) == (
        0,
        "Reservation r was deleted",
        JobFlag.RESV_DEL_HOLD,
    )
    assert waiting.spec.reservation == ""
    assert free.flags is JobFlag.NONE
    assert h.control("release", waiting) == 0
    assert waiting.flags is JobFlag.NONE
    assert waiting.priority


def test_jobs_that_wait_for_maintenance_to_end_are_told_when_it_is_deleted(
    scheduled: Harness,
) -> None:
    create(scheduled, "m", nodes="ALL", start=10, minutes=1, flags="maint")
    job = scheduled.submit(time_limit_s=600, hold=False)
    scheduled.run(5)
    assert job.reason_detail == MAINTENANCE
    scheduled.core.policy = Backfill(
        scheduled.core.tables,
        scheduled.core.selector,
        Planning(scheduled.core),
        {"bf_interval": "-1", "sched_interval": "-1"},
    )
    scheduled.run(100)
    assert (job.reason, job.reason_detail) == ("None", "")


def test_a_job_too_large_for_a_reservation_that_has_not_begun_is_taken_in(
    scheduled: Harness,
) -> None:
    create(scheduled, start=100)
    job = scheduled.submit(reservation="r", min_nodes=3)
    assert job.is_pending


def test_jobs_go_on_without_a_reservation_that_holds_none(scheduled: Harness) -> None:
    h = scheduled
    create(h, minutes=1, flags="no_hold")
    h.submit(reservation="r", time_limit_s=60, min_nodes=2)
    waiting = h.submit(reservation="r", time_limit_s=60, min_nodes=2)
    h.run(150)
    assert waiting.is_running


@pytest.mark.parametrize(("over_run_s", "ends"), [(0, True), (600, False), (None, False)])
def test_jobs_end_with_their_reservation_resv_over_run_later(
    over_run_s: int | None, ends: bool
) -> None:
    h = Harness(settings=Settings(min_job_age_s=0, reservation_over_run_s=over_run_s))
    create(h, minutes=1)
    job = h.submit(reservation="r", time_limit_s=3600, run_s=3000.0)
    assert job.is_running
    h.run(100)
    assert (job.state is JobState.TIMEOUT) == ends
    assert ("r" in h.core.tables.reservations.by_name) != ends


def test_a_daily_reservation_comes_again_and_one_can_be_skipped(h: Harness) -> None:
    create(h, minutes=10, flags="daily")
    ask(h, "update", skip="x")
    assert shown(h)["start_time"] == NOW + 86_400
    h.time.jump(86_400 + 700)
    assert shown(h)["start_time"] == NOW + 2 * 86_400
    assert not shown(h)["is_active"]


def test_reservations_that_come_again_do_not_keep_time_going_for_a_job_that_never_starts(
    scheduled: Harness,
) -> None:
    h = scheduled
    create(h, flags="daily", nodes="n[1-4]")
    job = h.submit(hold=True)
    h.run(5 * 86400)
    assert h.core.reservation_timer is not None, "a week may be different at its end"
    h.run(15 * 86400)
    assert job.is_pending
    assert h.core.reservation_timer is None
    short = h.submit(time_limit_s=3600)
    assert h.core.reservation_timer is not None
    h.run(7200)
    assert short.start_time is not None


def test_an_unused_reservation_is_given_up(scheduled: Harness) -> None:
    h = scheduled
    create(h, flags="purge_comp=1")
    job = h.submit(reservation="r", time_limit_s=600)
    h.submit(time_limit_s=3600, run_s=3000.0, required_nodes="n4")
    h.run(100)
    assert job.is_running
    assert shown(h)["is_active"]
    h.complete(job)
    h.run(150)
    assert not h.core.tables.reservations


def test_flags_are_read_shortened_and_shown_in_order() -> None:
    assert read_flags("maint,ignore")[0] == MAINT | 0x8
    assert read_flags("-daily")[:2] == (0, DAILY)
    assert read_flags("purge_comp=5")[2] == "5"
    for wrong in ("m", "weird", "spec_nodes", "-replace"):
        with pytest.raises(ValueError, match=wrong):
            read_flags(wrong)
    assert flags_text(SPEC_NODES | MAINT | DAILY) == "MAINT,DAILY,SPEC_NODES"


def test_a_node_that_goes_down_is_replaced_by_an_idle_one_unless_the_nodes_are_static_or_named(
    h: Harness,
) -> None:
    create(h, "a", nodes="", nodecnt="1")
    create(h, "s", nodes="", nodecnt="1", flags="static_alloc")
    create(h, "n", nodes="n3")
    assert [shown(h, name)["nodes"] for name in "asn"] == ["n1", "n2", "n3"]
    for node in ("n1", "n2", "n3"):
        h.update_nodes(node, state="drain", reason="broken")
    assert shown(h, "a")["nodes"] == "n1"
    h.run(1.1)  # the loop has looked
    assert [shown(h, name)["nodes"] for name in "asn"] == ["n4", "n2", "n3"]


@pytest.mark.parametrize(("flags", "nodes"), [("replace", "n2"), ("replace_down", "n1")])
def test_a_node_in_use_is_replaced_with_replace_alone(h: Harness, flags: str, nodes: str) -> None:
    create(h, nodes="", nodecnt="1", flags=flags)
    job = h.submit(reservation="r")
    assert job.is_running
    assert shown(h)["nodes"] == nodes
    assert job.node_list == "n1"


def test_if_not_all_nodes_in_use_can_be_replaced_the_first_stay(h: Harness) -> None:
    create(h, nodes="", nodecnt="2", flags="replace")
    create(h, "other", nodes="n4")
    h.submit(reservation="r", min_nodes=2)
    assert shown(h)["nodes"] == "n[1,3]"


def test_nodes_in_use_for_which_none_were_idle_are_replaced_when_time_limits_are_looked_at(
    h: Harness,
) -> None:
    create(h, nodes="", nodecnt="1", flags="replace")
    create(h, "other", nodes="n[3-4]")
    elsewhere, job = h.submit(required_nodes="n2"), h.submit(reservation="r")
    h.run(3)
    assert elsewhere.is_running
    assert job.node_list == shown(h)["nodes"] == "n1"
    h.complete(elsewhere)
    h.run(20)
    assert shown(h)["nodes"] == "n1"
    h.run(10)
    assert shown(h)["nodes"] == "n2"


def test_who_moves_a_job_without_a_reservation_to_a_partition_that_asks_for_one_is_told_so(
    h: Harness,
) -> None:
    create(h, nodes="n1")
    h.core.tables.partitions["small"].requires_reservation = True
    job, other = h.submit(hold=True), h.submit(hold=True, reservation="r")
    assert h.update(job, partition="main,small") == 0
    assert h.update(job, partition="small") == 2015
    assert job.partitions == ("small",)
    assert h.update(job, reservationname="r") == 0
    assert h.update(job, reservationname="") == 2002
    assert job.spec.reservation == "r"
    assert h.update(other, partition="small") == 0


def test_nodes_that_others_have_reserved_replace_none(h: Harness) -> None:
    create(h, "a", nodes="", nodecnt="1", flags="replace")
    create(h, "b", nodes="n[2-4]")
    h.submit(reservation="a")
    h.run(6)
    assert shown(h, "a")["nodes"] == "n1"


def test_programs_are_run_when_a_reservation_begins_and_ends(h: Harness) -> None:
    ran: list[tuple[list[str], float]] = []
    h.core.settings = Settings(
        reservation_prolog="/p", reservation_epilog="/e", emulates_jobs=False
    )
    h.core.run_script = lambda words, _environment, _done: ran.append((words, h.time.now() - NOW))
    create(h, start=100, minutes=1)
    h.run(300)
    assert [words for words, _ in ran] == [["/p", "r"], ["/e", "r"]]
    assert 100 <= ran[0][1] < 106
    assert 160 <= ran[1][1] < 162
    create(h, "gone", start=300, minutes=1)
    ask(h, "delete", "gone")
    h.run(300)
    assert len(ran) == 2


def test_a_number_of_nodes_is_of_those_that_no_other_has_even_one_that_lets_others_in(
    h: Harness,
) -> None:
    create(h, "maint", nodes="n[1-2]", flags="MAINT", start=9000)
    create(h, "named", nodes="n1", start=9000)
    create(h, "counted", nodes="", nodecnt="3", start=9000)
    assert shown(h, "counted")["nodes"] == "n[3-4]"
    assert refused(h, name="more", start=9000, nodes="", nodecnt="1") == 2016
    create(h, "over", nodes="", nodecnt="3", flags="OVERLAP", start=9000)
    assert shown(h, "over")["nodes"] == "n[1-3]"
