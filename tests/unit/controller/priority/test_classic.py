"""Classic fair share: examples worked out by hand, and every priority that real Slurm 22.05.8 gave
on a cluster with a tree of accounts.

Covers: controller/priority/options, controller/priority/rows, controller/priority/tree.
"""

from __future__ import annotations

import json
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from understudy.controller.edge.build import build_tables
from understudy.controller.priority.api import NoAccounts, Share
from understudy.controller.priority.classic import ClassicShares
from understudy.controller.priority.multifactor import MultifactorPriority
from understudy.controller.priority.options import read_options
from understudy.controller.priority.tree import ShareTree
from understudy.controller.tables.allocation import Allocation, NodeShare
from understudy.controller.tables.job import Job
from understudy.model.conf import read_text
from understudy.model.states import JobState
from understudy.protocol.messages import JobSpec

RECORDED = Path(__file__).resolve().parents[3] / "recorded"
CONF = """
ClusterName=c
SlurmctldHost=localhost
PriorityType=priority/multifactor
PriorityCalcPeriod=1
PriorityWeightFairshare=1000000000
NodeName=n1 CPUs=64
PartitionName=main Nodes=ALL Default=YES
"""
ZERO = 1_600_000_000  # what times are counted from


# --- by hand


def settled(
    *shares: Share, used: list[float], before: list[float] | None = None, **options: Any
) -> ClassicShares:
    tree = ShareTree(shares)
    made = ClassicShares(tree, **options)
    made.begin(tree.summed(np.array(used if before is None else before)))
    for place in tree.users.tolist():
        made.update(place, used[place], sum(used))
    return made


def factors(made: ClassicShares, count: int) -> list[float]:
    return [made.factor(place) for place in range(count)]


def test_who_has_used_what_is_his_has_half() -> None:
    users = (Share(1, 0, "root", ""), Share(2, 1, "root", "u1", 3), Share(3, 1, "root", "u2", 1))
    assert factors(settled(*users, used=[0, 75.0, 25.0]), 3)[1:] == [0.5, 0.5]
    assert factors(settled(*users, used=[0, 0.0, 100.0], dampening=2.0), 3)[1:] == [1.0, 2.0**-2]


TWO = (
    Share(1, 0, "root", ""),
    Share(2, 1, "a", "", 1),
    Share(3, 1, "b", "", 1),
    Share(4, 2, "a", "u1", 1),
    Share(5, 2, "a", "u2", 1),
)


def test_a_part_of_what_others_of_the_account_used_counts() -> None:
    # a has half of all, u1 half of a. u1 used nothing, its sibling all: 0 + (1 - 0) * 1/2.
    made = settled(*TWO, used=[0, 0, 0, 0, 80.0])
    assert made.shares == [1.0, 0.5, 0.5, 0.25, 0.25]
    assert made.effective == [1.0, 1.0, 0.0, 0.5, 1.0]


def test_what_the_account_used_counts_a_period_later_than_what_the_user_did() -> None:
    made = settled(*TWO, used=[0, 0, 0, 0, 80.0], before=[0.0] * 5)
    assert made.effective == [1.0, 0.0, 0.0, 0.0, 1.0 + (0.0 - 1.0) / 2]


def test_a_user_is_judged_anew_in_each_period() -> None:
    made = settled(*TWO, used=[0, 0, 0, 0, 80.0])
    made.begin(np.array([80.0, 80.0, 0, 0, 80.0]))
    assert isnan(made.factor(4))
    assert made.factor(1) == 0.25


def test_depth_oblivious_users_follow_their_own_use_where_the_account_is_on_target() -> None:
    made = settled(*TWO, used=[0, 0, 50.0, 10.0, 40.0], is_depth_oblivious=True)
    made.update(3, 10.0, 100.0)  # now that the use of all siblings is known
    assert made.factor(1) == made.factor(2) == 0.5
    assert made.factor(3) == pytest.approx(2 ** -(0.2 / 0.5))
    assert made.factor(4) == pytest.approx(2 ** -(0.8 / 0.5))


def test_with_the_parents_shares_one_is_judged_as_the_parent() -> None:
    made = settled(
        *(
            Share(1, 0, "root", ""),
            Share(2, 1, "a", "", 3),
            Share(3, 1, "b", "", 1),
            Share(4, 2, "a", "u1", None),
            Share(5, 1, "root", "u2", None),
        ),
        used=[0, 0, 10.0, 30.0, 0.0],
    )
    assert [made.judged_as(place) for place in range(5)] == [0, 1, 2, 1, 0]
    assert made.factor(0) == 0.5
    assert made.factor(3) == made.factor(1) == 0.5


# --- as recorded


class Accounts(NoAccounts):
    """Associations as `sacctmgr` lines make them, one after the other."""

    def __init__(self, lines: list[str], jobs: dict[str, Any]) -> None:
        self.version = 1
        self._jobs = jobs
        self._rows = [Share(1, 0, "root", ""), Share(2, 1, "root", "root")]
        self._ids = {("root", ""): 1}
        self.add(lines)

    def add(self, lines: list[str]) -> None:
        self.version += 1
        for line in lines:
            _, kind, name, *rest = line.split()
            keys = dict(word.lower().split("=", 1) for word in rest)
            shares = None if keys["fairshare"] == "parent" else int(keys["fairshare"])
            account, user = (name, "") if kind == "account" else (keys["account"], name)
            above = self._ids[account, ""] if user else self._ids[keys.get("parent", "root"), ""]
            self._rows.append(Share(len(self._rows) + 1, above, account, user, shares))
            self._ids[account, user] = len(self._rows)

    def shares(self) -> tuple[Share, ...]:
        found, waiting = [], self._rows[:1]
        while waiting:
            found.append(waiting.pop())
            waiting += reversed(
                [row for row in self._rows if row.parent_id == found[-1].association_id]
            )
        return tuple(found)

    def association_of(self, job: Job) -> int:
        user, account, _ = self._jobs[str(job.job_id)]
        return self._ids[account, user]


class Cluster:
    """Gives the plug-in what happened and compares what it says. Periods ended a second after
    `start` and every minute from then.
    """

    def __init__(self, name: str) -> None:
        self.recorded = json.loads((RECORDED / f"{name}.json").read_text())
        config = read_text(
            CONF + "".join(f"{key}={value}\n" for key, value in self.recorded["conf"].items())
        )
        self.accounts = Accounts(self.recorded["tree"], self.recorded["jobs"])
        self.tables = build_tables(config)[0]
        self.plugin = MultifactorPriority(
            self.tables, read_options(config), self.accounts, ZERO + self.recorded["start"]
        )
        self.seen = 0
        self.wrong: list[tuple[float, int, int, int]] = []

    def run(self) -> None:
        for at, what, *values in self.recorded["events"]:
            while (
                due := self.plugin.next_calculation(ZERO + at - 1000)
            ) is not None and due < ZERO + at + 0.02:
                self.plugin.calculate(due)
            getattr(self, f"_{what}")(at, *values)

    def _add(self, at: float, lines: list[str]) -> None:
        self.accounts.add(lines)

    def _submit(self, at: float, number: int, priority: int) -> None:
        cpus = self.recorded["jobs"][str(number)][2]
        job = Job(
            number,
            JobSpec(num_tasks=cpus),
            0,
            0,
            int(ZERO + at),
            ("main",),
            partition="main",
            min_nodes=1,
            num_tasks=cpus,
        )
        job.min_cpus, job.eligible_time = cpus, int(ZERO + at)
        self.tables.jobs[number] = self.tables.pending[number] = job
        job.priority = self.plugin.assign(job, ZERO + at)
        self._compare(at, number, priority)

    def _start(self, at: float, number: int) -> None:
        job = self.tables.running[number] = self.tables.pending.pop(number)
        job.allocation, job.state = (
            Allocation.of_shares([NodeShare(0, job.min_cpus, 0, 0)]),
            JobState.RUNNING,
        )
        self.plugin.started(job, ZERO + at)

    def _end(self, at: float, number: int) -> None:
        if self.tables.pending.pop(number, None) is None:
            self.plugin.ended(self.tables.running.pop(number), ZERO + at)

    def _ask(self, at: float) -> None:
        """Somebody typed `sshare`."""
        self.plugin.standings(ZERO + at)

    def _priorities(self, at: float, rows: list[list[int]]) -> None:
        for number, priority in rows:
            self._compare(at, number, priority)

    def _compare(self, at: float, number: int, priority: int) -> None:
        ours = self.tables.jobs[number].priority
        self.seen += 1
        if abs(ours - priority) > 2:  # of a thousand million
            self.wrong.append((at, number, ours, priority))


@pytest.mark.parametrize("name", ["classic", "classic_dampened", "depth_oblivious"])
def test_every_priority_is_as_recorded_from_a_real_cluster(name: str) -> None:
    cluster = Cluster(name)
    cluster.run()
    assert cluster.seen > 150
    assert cluster.wrong == []
