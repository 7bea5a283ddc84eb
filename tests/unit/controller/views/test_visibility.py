"""What users see of others' jobs, and of what is closed to them.

Covers: controller/edge/users.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from controller_harness import OTHER, ROOT, START, USER, Harness
from enforcement_harness import House

from understudy.controller.views.query import PART, run_query
from understudy.controller.views.visibility import Viewer
from understudy.model.associations import AccountingUser, Association, AssociationState
from understudy.model.errors import SlurmError
from understudy.protocol.messages import Query, UpdateReservation


def closed(*words: str) -> Harness:
    """A cluster with a job of each of two users, the first in account `acct`."""
    h = Harness()
    h.submit(account="acct")
    h.submit(OTHER, account="acct")
    h.core.settings = replace(h.core.settings, private_data=frozenset(words))
    return h


def seen(
    h: Harness, sender: Any, table: str, column: str, *, all_partitions: bool = True
) -> list[Any]:
    generator = run_query(h.core, Query(table, [column], {}, all_partitions), sender)
    while True:
        try:
            next(generator)
        except StopIteration as stop:
            return [row[0] for row in stop.value.rows]


def test_users_see_their_own_jobs_and_root_all() -> None:
    h = closed("jobs")
    assert seen(h, USER, "jobs", "job_id") == [1]
    assert seen(h, OTHER, "jobs", "job_id") == [2]
    assert seen(h, ROOT, "jobs", "job_id") == [1, 2]
    assert seen(closed(), OTHER, "jobs", "job_id") == [1, 2]


@pytest.mark.parametrize(
    ("user", "jobs"),
    [
        (AccountingUser("ann", "Operator"), [1, 2]),
        (AccountingUser("ann", coordinates=("acct",)), [1, 2]),
    ],
)
def test_operators_and_coordinators_see_the_jobs_of_others(
    user: AccountingUser, jobs: list[int]
) -> None:
    h = closed("jobs")
    places = [
        Association(id=1, cluster="cluster", account="root"),
        Association(id=2, cluster="cluster", account="acct", parent_id=1),
    ]
    h.core.associations = AssociationState(associations=places, users=[user])
    assert seen(h, USER, "jobs", "job_id") == jobs


@pytest.mark.parametrize("table", ["nodes", "partitions"])
def test_a_table_that_is_closed_is_refused_to_users_alone(table: str) -> None:
    h = closed(table)
    with pytest.raises(SlurmError, match="Access/permission denied"):
        seen(h, USER, table, "name")
    assert seen(h, ROOT, table, "name")


def test_reservations_are_shown_to_those_who_may_use_them() -> None:
    h = closed("reservations")
    changes = {
        "starttime": str(int(START) + 100_000),
        "duration": "5",
        "users": "ann",
        "nodes": "n3",
    }
    h.ask(UpdateReservation("create", "r", changes), ROOT)
    assert seen(h, USER, "reservations", "name") == ["r"]
    assert seen(h, OTHER, "reservations", "name") == []


def test_a_partition_for_groups_is_hidden_from_others_unless_they_ask_for_all() -> None:
    h = closed()
    name = next(iter(h.core.tables.partitions))
    h.core.tables.partitions[name].allow_groups = ("nosuch",)
    assert name not in seen(h, USER, "partitions", "name", all_partitions=False)
    assert name in seen(h, USER, "partitions", "name")
    assert name in seen(h, ROOT, "partitions", "name", all_partitions=False)
    assert seen(h, USER, "jobs", "job_id", all_partitions=False) == []


def test_many_rows_come_in_parts_where_that_was_asked_for() -> None:
    h = Harness()
    for _ in range(3):
        h.submit(hold=True, array="0-1000")
    many = [next(iter(h.core.tables.jobs.values()))] * (2 * PART + 5)
    h.core.tables.jobs = dict(enumerate(many, 1))  # type: ignore[assignment]
    for in_parts in (True, False):
        generator = run_query(h.core, Query("jobs", ["job_id"], in_parts=in_parts))
        parts = []
        while True:
            try:
                parts.append(next(generator))
            except StopIteration as stop:
                last = stop.value
                break
        sent = [part for part in parts if part is not None]
        assert all(part.more for part in sent)
        assert not last.more
        assert bool(sent) == in_parts
        assert sum(len(part.rows) for part in [*sent, last]) == len(many)


def test_where_use_is_private_one_sees_the_shares_of_oneself_and_of_ones_accounts() -> None:
    h = House()
    viewed = [
        {
            "association_id": each.id,
            "parent_id": each.parent_id,
            "account": each.account,
            "user": each.user,
            "user_name": each.user,
            "depth": 9,
        }
        for each in h.core.associations.associations.values()
    ]

    def depths(sender: Any) -> dict[int, int]:
        return {
            row["association_id"]: row["depth"] for row in Viewer(h.core, sender).shares(viewed)
        }

    assert set(depths(USER).values()) == {9}
    h.core.settings = replace(h.core.settings, private_data=frozenset({"usage", "users"}))
    assert depths(USER) == {4: 0}
    assert depths(OTHER) == {5: 0, 7: 0}
    h.core.associations.apply(
        2, users=[AccountingUser("ann", coordinates=("upper",)), AccountingUser("bob", "Operator")]
    )
    assert depths(USER) == {2: 0, 3: 1, 4: 2, 5: 2}
    assert [row["association_id"] for row in Viewer(h.core, USER).associations(viewed)] == [
        2,
        3,
        4,
        5,
    ]
    assert len(depths(OTHER)) == len(depths(ROOT)) == 7
    names = [{"user_name": name} for name in ("ann", "bob")]
    assert Viewer(h.core, USER).users(names) == names[:1]
    assert Viewer(h.core, OTHER).users(names) == names
