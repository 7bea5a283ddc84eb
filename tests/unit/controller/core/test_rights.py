"""Who may do what to whose jobs, and to the cluster: users, coordinators, operators,
administrators, root.

Covers: controller/core/lookups.
"""

from __future__ import annotations

from typing import Any

import pytest
from controller_harness import OTHER, ROOT, START, USER, Harness

from understudy.controller.core.lookups import is_coordinator
from understudy.controller.core.rights import Right
from understudy.model.associations import AccountingUser, Association, AssociationState
from understudy.protocol.messages import (
    CancelJobs,
    Failure,
    GetScript,
    GetStatistics,
    NotifyJob,
    Reconfigure,
    SetConfiguration,
    SetTrigger,
    UpdatePartition,
    UpdateReservation,
)

PLACES = [
    Association(id=1, cluster="cluster", account="root"),
    Association(id=2, cluster="cluster", account="science", parent_id=1),
    Association(id=3, cluster="cluster", account="physics", parent_id=2),
    Association(id=4, cluster="cluster", account="arts", parent_id=1),
]


def with_bob(**known: Any) -> Harness:
    """A cluster on which bob (OTHER) is somebody for accounting."""
    h = Harness()
    h.core.associations = AssociationState(
        associations=PLACES, users=[AccountingUser("bob", **known), AccountingUser("ann")]
    )
    return h


def code(h: Harness, message: Any, sender: Any = OTHER) -> int:
    answer = h.ask(message, sender)
    return answer.code if isinstance(answer, Failure) else 0


@pytest.mark.parametrize(
    ("level", "right"),
    [("None", Right.USER), ("Operator", Right.OPERATOR), ("Administrator", Right.ADMINISTRATOR)],
)
def test_admin_levels_are_rights(level: str, right: Right) -> None:
    h = with_bob(admin_level=level)
    assert h.core.right_of(1001) == right
    assert h.core.right_of(0) == Right.SLURM_USER
    assert h.core.right_of(4711) == Right.USER


def test_a_coordinator_has_the_account_and_those_below() -> None:
    h = with_bob(coordinates=("science",))
    assert [
        is_coordinator(h.core, 1001, account)
        for account in ("science", "physics", "arts", "root", "", "nosuch")
    ] == [True, True] + [False] * 4


@pytest.mark.parametrize(("account", "refused"), [("physics", 0), ("arts", 1)])
def test_a_coordinator_does_to_jobs_what_their_owners_may_and_no_more(
    account: str, refused: int
) -> None:
    h = with_bob(coordinates=("science",))
    job = h.submit(account=account, begin_time=START + 1000)
    for action in ("hold", "release", "uhold", "release"):
        assert h.control(action, job, OTHER) == refused * 2010
    assert h.update(job, OTHER, comment="c") == refused * 2010
    assert h.update(job, OTHER, nice="-5") == (2010 if refused else 2002)
    assert h.update(job, OTHER, admincomment="c") == 2002
    assert code(h, GetScript(str(job.job_id))) == 2010
    running = h.submit(account=account)
    assert h.control("suspend", running, OTHER) == 2002
    assert h.result(h.ask(CancelJobs([str(running.job_id)]), OTHER)) == refused * 2002


def test_who_waits_under_an_administrators_hold_changes_nothing_by_a_hold_of_his_own() -> None:
    h = Harness()
    job = h.submit(begin_time=START + 1000)
    assert h.control("hold", job, ROOT) == 0
    assert h.control("uhold", job, USER) == 0
    assert job.reason == "JobHeldAdmin"
    assert h.control("release", job, USER) == 2002


RESERVATION = UpdateReservation(
    "create",
    "r",
    {"users": "ann", "nodes": "n4", "starttime": str(int(START) + 3600), "duration": "10"},
)
TRIGGER = SetTrigger("node", "*", ["up"], 0, "/bin/true")


@pytest.mark.parametrize(
    ("message", "least", "refusal"),
    [
        (RESERVATION, Right.OPERATOR, 2010),
        (GetScript("1"), Right.OPERATOR, 2010),
        (GetStatistics(reset=True), Right.OPERATOR, 2002),
        (UpdatePartition("update", "main", {"maxtime": "5"}), Right.ADMINISTRATOR, 2010),
        (Reconfigure(), Right.ADMINISTRATOR, 2010),
        (SetConfiguration({"SlurmctldDebug": "debug"}), Right.ADMINISTRATOR, 13),
        (TRIGGER, Right.SLURM_USER, 2002),
        (NotifyJob("1", "hello"), Right.SLURM_USER, 2010),
    ],
)
def test_what_is_asked_of_each_request(message: Any, least: Right, refusal: int) -> None:
    for right, level in (
        (Right.USER, "None"),
        (Right.OPERATOR, "Operator"),
        (Right.ADMINISTRATOR, "Administrator"),
    ):
        h = with_bob(admin_level=level)
        h.submit()
        assert code(h, message) == (0 if right >= least else refusal), level
    # the administrator's reservation is there, and has the nodes
    assert code(h, message, ROOT) in {0, 2058, 2082}


def test_operators_change_all_jobs_but_for_comments_of_administrators() -> None:
    h = with_bob(admin_level="Operator")
    job = h.submit(begin_time=START + 1000)
    assert h.update(job, OTHER, priority="5000") == 0
    assert h.update(job, OTHER, nice="-5") == 0
    assert h.control("hold", job, OTHER) == 0
    assert job.reason == "JobHeldAdmin"
    assert h.update(job, OTHER, admincomment="c") == 2002
    assert h.result(h.ask(CancelJobs([str(job.job_id)]), OTHER)) == 0
