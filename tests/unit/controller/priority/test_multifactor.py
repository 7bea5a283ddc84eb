"""priority/multifactor and what belongs to it, against examples worked out by hand.

Covers: controller/pending/prioritise, controller/priority/accounts, controller/priority/api,
controller/priority/basic, controller/priority/fair_share, controller/priority/registry,
controller/priority/resets, controller/priority/tres, controller/priority/usage.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest
from controller_harness import ROOT, START, FakeTime, Harness, make_tables
from msgspec.structs import replace as replace_spec

from understudy.controller.priority import fair_share, registry
from understudy.controller.priority.accounts import AccountsOf
from understudy.controller.priority.api import NoAccounts, QosFacts, Share
from understudy.controller.priority.basic import BasicPriority
from understudy.controller.priority.multifactor import MultifactorPriority
from understudy.controller.priority.options import PriorityOptions, read_options
from understudy.controller.priority.resets import next_reset
from understudy.controller.priority.tree import ShareTree
from understudy.controller.priority.tres import billing, billing_weights, gres_counts
from understudy.controller.priority.usage import Ledger
from understudy.controller.scheduling.api import Note
from understudy.controller.tables.allocation import Allocation, NodeShare
from understudy.controller.tables.job import Job, JobState
from understudy.model.associations import SHARES_OF_PARENT, Association, AssociationState
from understudy.model.conf import read_text
from understudy.model.errors import ConfigError
from understudy.model.qos import Qos
from understudy.protocol.messages import JobSpec

if TYPE_CHECKING:
    from understudy.controller.tables.tables import Tables

NOW = START


class FakeAccounts(NoAccounts):
    """Associations 1 root, 2 account `a`, 3 user `ann` of it, 4 user `bob` of it; all jobs are of
    association `of`.
    """

    rows = (
        Share(1, 0, "root", ""),
        Share(2, 1, "a", "", 3, 5),
        Share(3, 2, "a", "ann", 1, 5),
        Share(4, 2, "a", "bob", 1, 10),
    )

    def __init__(self, of: int = 3, qos: QosFacts | None = None) -> None:
        self.version = 1
        self.of, self.qos = of, qos

    def shares(self) -> tuple[Share, ...]:
        return self.rows

    def association_of(self, job: Job) -> int:
        return int(job.spec.wckey) if job.spec.wckey else self.of

    def qos_of(self, job: Job) -> QosFacts | None:
        return self.qos

    def highest_qos_priority(self) -> int:
        return 100


def make_job(number: int = 1, *, waits_since: int | None = int(NOW), **fields: object) -> Job:
    spec = JobSpec(wckey=str(fields.pop("association", "")))
    job = Job(
        number,
        spec,
        1000,
        1000,
        int(NOW),
        ("main",),
        partition="main",
        min_nodes=1,
        min_cpus=4,
        time_limit_s=600,
    )
    job.eligible_time = waits_since
    for name, value in fields.items():
        setattr(job, name, value)
    return job


def plugin(
    tables: Tables | None = None,
    accounts: NoAccounts | None = None,
    flags: str = "",
    **options: object,
) -> MultifactorPriority:
    made = replace(PriorityOptions(), flags=frozenset(flags.split()), **options)  # type: ignore[arg-type]
    return MultifactorPriority(tables or make_tables(), made, accounts, NOW)


# --- single factors: four nodes of four CPUs; partitions `main` with all of them and `small` with o


@pytest.mark.parametrize(
    ("waited", "expected"),
    [(0, 1), (50, 500), (100, 1000), (300, 1000)],
)
def test_age_grows_until_its_greatest(waited: int, expected: int) -> None:
    assert plugin(weight_age=1000, max_age_s=100).assign(make_job(), NOW + waited) == expected


def test_age_counts_from_when_a_job_became_eligible() -> None:
    ages = plugin(weight_age=1000, max_age_s=100)
    assert ages.assign(make_job(waits_since=int(NOW) + 80), NOW + 90) == 100
    assert ages.assign(make_job(waits_since=None), NOW + 90) == 1
    always = plugin(flags="ACCRUE_ALWAYS", weight_age=1000, max_age_s=100)
    assert always.assign(make_job(waits_since=None), NOW + 90) == 900


def test_large_jobs_are_favoured_unless_small_ones_are() -> None:
    job = make_job(min_nodes=2, min_cpus=4)  # a half of the nodes, a quarter of the CPUs
    assert plugin(weight_job_size=1000).assign(job, NOW) == 375
    assert plugin(weight_job_size=1000, favors_small=True).assign(job, NOW) == 625


def test_size_may_be_judged_by_the_time_limit() -> None:
    # two nodes are worth eight CPUs: 8 / 2 minutes / 16
    job = make_job(min_nodes=2, min_cpus=4, time_limit_s=120)
    assert plugin(flags="SMALL_RELATIVE_TO_TIME", weight_job_size=1000).assign(job, NOW) == 250


def test_a_partition_counts_beside_the_best_one() -> None:
    tables = make_tables()
    (
        tables.partitions["main"].priority_job_factor,
        tables.partitions["small"].priority_job_factor,
    ) = 10, 40
    assert plugin(tables, weight_partition=1000).assign(make_job(), NOW) == 250
    assert (
        plugin(tables, flags="NO_NORMAL_PART", weight_partition=1000).assign(make_job(), NOW)
        == 10_000
    )


def test_qos_and_association_count_beside_the_best_ones() -> None:
    accounts = FakeAccounts(qos=QosFacts(40))
    assert plugin(accounts=accounts, weight_qos=1000).assign(make_job(), NOW) == 400
    assert (
        plugin(accounts=accounts, flags="NO_NORMAL_QOS", weight_qos=1000).assign(make_job(), NOW)
        == 40_000
    )
    assert plugin(accounts=accounts, weight_association=1000).assign(make_job(), NOW) == 500
    assert (
        plugin(accounts=accounts, flags="NO_NORMAL_ASSOC", weight_association=1000).assign(
            make_job(), NOW
        )
        == 5000
    )


def test_tres_count_beside_what_the_partition_has() -> None:
    weights = {"cpu": 1000.0, "mem": 2000.0}
    job = make_job(min_cpus=4, memory_per_cpu_mb=1000)  # 4 of 16 CPUs, 4000 of 16000 MB
    assert plugin(tres_weights=weights).assign(job, NOW) == 750
    assert plugin(flags="NO_NORMAL_TRES", tres_weights={"cpu": 1000.0}).assign(job, NOW) == 4000


def test_who_says_nothing_of_memory_asks_for_all_of_the_first_nodes() -> None:
    tables = make_tables()
    tables.partitions["main"].first_node_memory_mb = 2000
    tables.nodes.memory[0] = 2000
    made = plugin(tables, tres_weights={"mem": 14000.0})
    assert made.assign(make_job(min_nodes=2), NOW) == 4000
    assert made.assign(make_job(min_nodes=2, memory_per_node_mb=500), NOW) == 1000
    tables.partitions["main"].first_node_memory_mb = 8000
    tables.nodes.memory[0] = 8000
    # more than there is
    assert plugin(tables, tres_weights={"mem": 100.0}).assign(make_job(min_nodes=4), NOW) == 160


def test_licences_count_beside_all_of_the_cluster() -> None:
    made = plugin(tres_weights={"license/foo": 1000.0, "gres/gpu": 1000.0})
    made.tables.licenses.totals["foo"] = 8
    job = make_job()
    job.spec = replace_spec(job.spec, licenses="foo:2")
    assert made.assign(job, NOW) == 250
    factors = made.factors(job)
    assert factors is not None
    assert factors.tres == {"license/foo": 250.0}  # what a job does not ask for is not shown


def test_what_a_job_bills_is_a_whole_number_and_the_same_in_all_its_partitions() -> None:
    tables = make_tables()
    tables.partitions["small"].tres_billing_weights = "CPU=1.3"  # 5.2 in all, cut to 5
    made = plugin(tables, tres_weights={"billing": 1000.0})
    # 3.9 cut to 3
    assert made.assign(make_job(min_cpus=3, partition="small", partitions=("small",)), NOW) == 600
    job = make_job(min_cpus=3, partition="small", partitions=("small", "main"))
    made.assign(job, NOW)
    assert job.partition_priorities == {"small": 600, "main": 187}


def test_only_the_sum_is_cut_to_a_whole_number() -> None:
    # 0.5 * 1 of age, 0.375 * 4 of size: 2.0; each cut by itself would give 1.
    job = make_job(min_nodes=2, min_cpus=4)
    assert plugin(weight_age=1, max_age_s=100, weight_job_size=4).assign(job, NOW + 50) == 2


def test_nice_lowers_and_the_least_is_one() -> None:
    assert plugin(weight_age=1000, max_age_s=100).assign(make_job(nice=30), NOW + 50) == 470
    assert plugin().assign(make_job(nice=30), NOW) == 1
    assert plugin().assign(make_job(nice=-(1 << 40)), NOW) == 0xFFFFFFFE


def test_a_job_of_several_partitions_has_a_priority_in_each() -> None:
    tables = make_tables()
    (
        tables.partitions["main"].priority_job_factor,
        tables.partitions["small"].priority_job_factor,
    ) = 10, 40
    job = make_job(partitions=("main", "small"))
    assert plugin(tables, weight_partition=1000).assign(job, NOW) == 250
    assert job.partition_priorities == {"main": 250, "small": 1000}


def test_a_job_that_may_start_shows_the_last_of_its_priorities_once_it_is_calculated_again() -> (
    None
):
    tables = make_tables()
    (
        tables.partitions["main"].priority_job_factor,
        tables.partitions["small"].priority_job_factor,
    ) = 10, 40
    made = plugin(tables, weight_partition=1000)
    job, not_yet = (
        make_job(1, partitions=("main", "small")),
        make_job(2, partitions=("main", "small"), waits_since=None),
    )
    for each in (job, not_yet):
        tables.pending[each.job_id] = each
        each.priority = made.assign(each, NOW)
    assert (job.priority, not_yet.priority) == (250, 250)
    made.calculate(NOW + 301)
    assert (job.priority, not_yet.priority) == (1000, 250)
    made.changed(job, NOW + 302, is_moved=True)
    assert job.priority == 250
    made.changed(job, NOW + 303)
    assert job.priority == 1000


def test_a_job_of_several_partitions_that_may_not_fall_keeps_the_best_that_it_has_shown() -> None:
    tables = make_tables()
    (
        tables.partitions["main"].priority_job_factor,
        tables.partitions["small"].priority_job_factor,
    ) = 40, 10
    made = plugin(tables, weight_partition=1000, flags="INCR_ONLY")
    job = tables.pending[1] = make_job(1, partitions=("main", "small"))
    job.priority = made.assign(job, NOW)
    made.calculate(NOW + 301)
    assert job.priority == 1000


def test_what_partitions_and_nice_values_have_become_counts_from_the_next_period_on() -> None:
    made = plugin(weight_partition=1000)
    job = make_job()
    made.tables.pending[1] = job
    made.tables.partitions["main"].priority_job_factor = 10
    job.priority = made.assign(job, NOW)
    made.tables.partitions["small"].priority_job_factor, job.nice = 20, 5
    factors = made.factors(job)
    assert factors is not None
    assert (factors.weighted_partition, factors.nice, factors.total) == (1000, 0, 1000)
    made.calculate(NOW + 301)
    factors = made.factors(job)
    assert factors is not None
    assert (factors.weighted_partition, factors.nice, factors.total, job.priority) == (
        500,
        5,
        495,
        495,
    )


def test_the_factors_of_a_job_can_be_looked_at() -> None:
    made = plugin(
        accounts=FakeAccounts(qos=QosFacts(40)),
        weight_age=1000,
        max_age_s=100,
        weight_qos=1000,
        tres_weights={"cpu": 100.0},
    )
    job = make_job(nice=7)
    assert made.factors(job) is None
    made.assign(job, NOW + 50)
    factors = made.factors(job)
    assert factors is not None
    assert (factors.age, factors.qos, factors.nice) == (0.5, 0.4, 7)
    assert (factors.weighted_age, factors.weighted_qos, factors.tres) == (
        500.0,
        400.0,
        {"cpu": 25.0},
    )


def test_a_site_adds_its_own_share() -> None:
    made = plugin()

    class Twice:
        def factor(self, job: Job, now: float) -> int:
            return 2 * job.job_id + int(now - NOW)

    made._site = Twice()
    job = make_job(21)
    made.tables.pending[21] = job
    job.priority = made.assign(job, NOW)
    assert job.priority == 42
    made.calculate(NOW + 301)
    assert job.priority == 343


# --- periods


def test_between_periods_nothing_changes_and_each_one_changes_all() -> None:
    made = plugin(weight_age=1000, max_age_s=1000, calc_period_s=60)
    assert made.next_calculation(NOW) is None
    jobs = [
        make_job(1),
        make_job(2, nice=3),
        make_job(3, priority=0),
        make_job(4, admin_priority=5, priority=5),
    ]
    for job in jobs:
        made.tables.pending[job.job_id] = job
    for job in jobs[:2]:
        job.priority = made.assign(job, NOW)
    assert made.next_calculation(NOW) == NOW + 61
    assert made.calculate(NOW + 61)
    assert [job.priority for job in jobs] == [61, 58, 0, 5]
    assert made.next_calculation(NOW + 61) == NOW + 121
    assert made.next_calculation(NOW + 500) == NOW + 541
    assert made.calculate(NOW + 541)
    assert jobs[0].priority == 541


def test_priorities_may_be_kept_from_falling() -> None:
    tables = make_tables()
    falling = plugin(
        tables, accounts=FakeAccounts(qos=QosFacts(100)), flags="INCR_ONLY", weight_qos=1000
    )
    job = make_job()
    tables.pending[1] = job
    job.priority = falling.assign(job, NOW)
    falling.accounts.qos = QosFacts(10)  # type: ignore[attr-defined]
    falling.accounts.version = 2  # type: ignore[misc]
    assert not falling.calculate(NOW + 301)
    assert job.priority == 1000


def test_running_jobs_are_calculated_only_if_asked_for() -> None:
    for flags, expected in (("", 7), ("CALCULATE_RUNNING", 301)):
        tables = make_tables()
        job = make_job(priority=7, state=JobState.RUNNING)
        job.allocation = Allocation.of_shares([NodeShare(0, 4, 15, 0)])
        tables.running[1] = job
        plugin(tables, flags=flags, weight_age=1000, max_age_s=1000).calculate(NOW + 301)
        assert job.priority == expected


def run(made: MultifactorPriority, number: int, association: int, start: float, end: float) -> None:
    job = make_job(number, association=association, state=JobState.RUNNING)
    job.allocation = Allocation.of_shares([NodeShare(0, 4, 15, 0)])
    made.started(job, NOW + start)
    made.ended(job, NOW + end)


def test_who_has_used_more_comes_later() -> None:
    made = plugin(accounts=FakeAccounts(), weight_fair_share=1000, calc_period_s=60)
    run(made, 1, 3, 0, 200)
    assert made.assign(make_job(2, association=3), NOW + 200) == 500
    assert made.assign(make_job(3, association=4), NOW + 200) == 1000


def test_use_is_weighted_by_what_it_bills_and_by_its_qos() -> None:
    accounts = FakeAccounts(qos=QosFacts(0, usage_factor=0.5))
    tables = make_tables()
    tables.partitions["main"].tres_billing_weights = "CPU=3.0"
    made = plugin(tables, accounts=accounts, calc_period_s=60, half_life_s=0)
    run(made, 1, 3, 1, 61)
    assert made.ledger.use.tolist() == [0.0, 0.0, 60 * 4 * 3 * 0.5, 0.0]


def test_use_is_forgotten_when_the_site_says() -> None:
    made = plugin(accounts=FakeAccounts(), calc_period_s=60, half_life_s=0, reset_period="DAILY")
    run(made, 1, 3, 1, 61)
    assert made.ledger.use.sum() > 0
    made.assign(make_job(2), NOW + 2 * 86400)
    assert made.ledger.use.sum() == 0


def test_what_runs_adds_all_of_the_period_in_which_use_is_forgotten() -> None:
    made = plugin(accounts=FakeAccounts(), calc_period_s=60, half_life_s=0)
    job = make_job(1)
    job.allocation = Allocation.of_shares([NodeShare(0, 4, 0, 0)])
    made.tables.running[1] = job
    made.started(job, NOW + 1)
    made.assign(make_job(2), NOW + 125)
    assert made.ledger.use.sum() == 4 * 120
    made.reconfigure(replace(made.options, reset_period="NOW"), NOW + 130)
    made.assign(make_job(2), NOW + 140)
    assert made.ledger.use.sum() == 4 * 120
    made.assign(make_job(2), NOW + 185)
    assert made.ledger.use.sum() == 4 * 60
    made.assign(make_job(2), NOW + 245)
    assert made.ledger.use.sum() == 4 * 120


def test_use_that_was_saved_is_forgotten_where_the_site_resets_it_now() -> None:
    made = plugin(accounts=FakeAccounts(), half_life_s=0, reset_period="NOW")
    made.restore(int(NOW), {3: 100.0})
    assert made.usage() == {}


def test_use_of_some_associations_is_forgotten_by_hand() -> None:
    made = plugin(accounts=FakeAccounts(), calc_period_s=60, half_life_s=0)
    run(made, 1, 3, 1, 61)
    run(made, 2, 4, 61, 121)
    made.assign(make_job(3), NOW + 121)
    before = made.ledger.use.tolist()
    made.forget([3])
    assert made.ledger.use.tolist() == [before[0], before[1], 0.0, before[3]]
    assert before[2] > 0 < before[3]


def test_use_stays_with_its_association_when_others_come() -> None:
    accounts = FakeAccounts()
    made = plugin(accounts=accounts, calc_period_s=60, half_life_s=0)
    run(made, 1, 4, 1, 61)
    accounts.rows = (
        accounts.rows[0],
        Share(9, 1, "b", "", 1),
        Share(10, 9, "b", "cem", 1),
        *accounts.rows[1:],
    )  # type: ignore[assignment]
    accounts.version = 2
    made.assign(make_job(2), NOW + 62)
    assert made.ledger.use[made.tree.place_of[4]] == 240.0
    assert made.fair_share.tolist()[made.tree.place_of[10]] == 1.0


def test_who_is_new_has_no_factor_before_the_end_of_the_period() -> None:
    accounts = FakeAccounts()
    made = plugin(accounts=accounts, weight_fair_share=1000, calc_period_s=60)
    assert made.assign(make_job(1, association=3), NOW + 10) == 1000
    accounts.rows = (*accounts.rows, Share(10, 2, "a", "cem", 1))  # type: ignore[assignment]
    accounts.version = 2
    assert made.assign(make_job(2, association=10), NOW + 20) == 1
    assert made.assign(make_job(3, association=3), NOW + 20) == 1000
    assert made.assign(make_job(4, association=10), NOW + 62) == 1000


def test_use_outlives_a_restart_and_decays_meanwhile() -> None:
    made = plugin(accounts=FakeAccounts(), calc_period_s=60, half_life_s=600)
    run(made, 1, 3, 1, 61)
    saved, at = made.usage(), made.usage_time
    assert list(saved) == [3]
    accounts = FakeAccounts()
    accounts.rows = ()  # type: ignore[assignment]  not known yet
    again = MultifactorPriority(make_tables(), made.options, accounts, NOW + 601)
    again.restore(at, saved)
    assert again.usage() == {3: pytest.approx(saved[3] * made.ledger.decay**541)}
    accounts.rows, accounts.version = FakeAccounts.rows, 2
    again.assign(make_job(), NOW + 603)
    assert again.ledger.use[again.tree.place_of[3]] == pytest.approx(
        saved[3] * made.ledger.decay**541
    )


# --- use


def test_a_running_job_adds_what_it_used_in_the_period_decayed() -> None:
    ledger = Ledger(1, origin=0, period_s=60, half_life_s=120)
    decay = 1 - 0.693 / 120
    ledger.begin(1, 0, 4.0, 20)
    ledger.advance(60)
    first = 4.0 * 40 * decay**40
    assert ledger.use[0] == pytest.approx(first, rel=1e-12)
    ledger.advance(120)
    assert ledger.use[0] == pytest.approx(first * decay**60 + 4.0 * 60 * decay**60, rel=1e-12)


def test_what_a_job_used_since_the_last_period_is_not_counted() -> None:
    ledger = Ledger(1, origin=0, period_s=60)
    ledger.begin(1, 0, 4.0, 20)
    ledger.advance(60)
    ledger.end(1)
    ledger.advance(600)
    assert ledger.use[0] == 160.0


# --- fair share


def tree(*rows: Share) -> ShareTree:
    return ShareTree(rows)


def test_fair_tree_ranks_as_the_documentation_says() -> None:
    # Account a has half of what it should have, b twice: all of a's users come before all of b's.
    made = tree(
        Share(1, 0, "root", ""),
        Share(2, 1, "a", "", 2),
        Share(3, 1, "b", "", 1),
        Share(4, 2, "a", "u1", 1),
        Share(5, 2, "a", "u2", 1),
        Share(6, 3, "b", "u3", 1),
        Share(7, 3, "b", "u4", 3),
    )
    use = made.summed(np.array([0, 0, 0, 10.0, 30.0, 40.0, 20.0]))
    assert use.tolist() == [100, 40, 60, 10, 30, 40, 20]
    assert fair_share.fair_tree(made, use).tolist() == [0, 0, 0, 1.0, 0.75, 0.25, 0.5]


def test_ties_share_the_better_rank_and_the_next_rank_is_left_out() -> None:
    made = tree(Share(1, 0, "root", ""), *(Share(2 + n, 1, "root", f"u{n}", 1) for n in range(4)))
    use = made.summed(np.array([0, 10.0, 5.0, 5.0, 20.0]))
    assert fair_share.fair_tree(made, use).tolist() == [0, 0.5, 1.0, 1.0, 0.25]


def test_accounts_that_tie_have_their_children_merged() -> None:
    made = tree(
        Share(1, 0, "root", ""),
        Share(2, 1, "a", "", 1),
        Share(3, 1, "b", "", 1),
        Share(4, 2, "a", "u1", 1),
        Share(5, 2, "a", "u2", 1),
        Share(6, 3, "b", "u3", 1),
        Share(7, 3, "b", "u4", 1),
    )
    use = made.summed(np.array([0, 0, 0, 10.0, 30.0, 15.0, 25.0]))
    assert fair_share.fair_tree(made, use).tolist() == [0, 0, 0, 1.0, 0.25, 0.75, 0.5]


def test_a_user_ties_with_the_best_of_an_account_beside_it() -> None:
    made = tree(
        Share(1, 0, "root", ""),
        Share(2, 1, "a", "", 1),
        Share(3, 1, "root", "top", 1),
        Share(4, 2, "a", "u1", 1),
        Share(5, 2, "a", "u2", 1),
    )
    use = made.summed(np.array([0, 0, 40.0, 10.0, 30.0]))
    assert fair_share.fair_tree(made, use).tolist() == [0, 0, 1.0, 1.0, pytest.approx(1 / 3)]


def test_users_with_the_parents_share_come_first_and_such_accounts_hand_their_children_up() -> None:
    made = tree(
        Share(1, 0, "root", ""),
        Share(2, 1, "a", "", None),
        Share(3, 1, "root", "u0", 1),
        Share(4, 2, "a", "u1", 1),
        Share(5, 2, "a", "u2", None),
    )
    assert made.parent.tolist() == [-1, 0, 0, 0, 0]
    assert (
        fair_share.level_fair_share(made, made.summed(np.array([0, 0, 10.0, 10.0, 10.0])))[4]
        == np.inf
    )


# --- TRES


def test_billing_weights_know_units() -> None:
    weights = billing_weights("CPU=1.0,Mem=0.25G,GRES/gpu=2.0")
    assert weights == {"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 2.0}
    wanted = {"cpu": 4.0, "mem": 8192.0, "gres/gpu": 1.0}
    assert billing(wanted, weights) == 4 + 2 + 2
    assert billing(wanted, weights, takes_largest=True) == 4
    assert billing(wanted, {}) == 4


def test_gres_count_with_and_without_their_type() -> None:
    assert gres_counts("gpu:a100:2,gpu:1,fs(S:0)") == {
        "gres/gpu": 3,
        "gres/gpu:a100": 2,
        "gres/fs": 1,
    }
    assert gres_counts("none") == {}


# --- the rest


def test_resets_are_at_local_midnight() -> None:
    now = datetime(2024, 5, 15, 13, 30).astimezone()  # a Wednesday, local time
    days = {
        period: datetime.fromtimestamp(at).astimezone()
        for period in ("DAILY", "WEEKLY", "MONTHLY", "QUARTERLY", "YEARLY")
        if (at := next_reset(period, now.timestamp()))
    }
    assert {period: (day.year, day.month, day.day, day.hour) for period, day in days.items()} == {
        "DAILY": (2024, 5, 16, 0),
        "WEEKLY": (2024, 5, 19, 0),
        "MONTHLY": (2024, 6, 1, 0),
        "QUARTERLY": (2024, 7, 1, 0),
        "YEARLY": (2025, 1, 1, 0),
    }
    assert next_reset("NONE", 0) is None


def test_options_are_read_from_the_configuration() -> None:
    options = read_options(
        read_text(
            "ClusterName=c\nSlurmctldHost=h\nPriorityType=priority/multifactor\n"
            "PriorityWeightAge=7\nPriorityWeightTRES=CPU=5,GRES/gpu=6\n"
            "PriorityDecayHalfLife=00:02:00\nPriorityCalcPeriod=1\nPriorityMaxAge=1-0\n"
            "PriorityFlags=no_normal_all,DEPTH_OBLIVIOUS\nPriorityFavorSmall=YES\n"
        )
    )
    assert (options.weight_age, options.half_life_s, options.calc_period_s, options.max_age_s) == (
        7,
        120,
        60,
        86400,
    )
    assert options.tres_weights == {"cpu": 5.0, "gres/gpu": 6.0}
    assert options.favors_small
    assert "NO_NORMAL_QOS" in options
    assert not options.uses_fair_tree


def test_plug_ins_are_found_by_name() -> None:
    assert registry.priority("priority/basic") is BasicPriority
    assert registry.priority("multifactor") is MultifactorPriority
    with pytest.raises(ConfigError, match="priority/lottery is not known"):
        registry.priority("priority/lottery")
    with pytest.raises(ConfigError, match="PrioritySiteFactorPlugin=nowhere"):
        registry.site_factor("nowhere", "")


def test_associations_of_accounting_are_read_parents_first() -> None:
    state = AssociationState(
        "c",
        1,
        associations=[
            Association(5, "c", "a", "ann", parent_id=2, is_default=True),
            Association(1, "c", "root"),
            Association(2, "c", "a", parent_id=1, shares=7, priority=4),
            Association(6, "c", "a", "bob", parent_id=2, shares=SHARES_OF_PARENT),
        ],
        qos=[Qos(1, "normal"), Qos(2, "high", priority=50)],
    )
    accounts = AccountsOf(lambda: state, {1000: "ann", 1001: "bob"}.__getitem__)
    assert [
        (share.association_id, share.shares, share.priority) for share in accounts.shares()
    ] == [(1, 1, 0), (2, 7, 4), (5, 1, 4), (6, None, 4)]
    assert accounts.association_of(make_job()) == 5
    assert accounts.association_of(make_job(user_id=1001)) == 0  # has no default account
    assert accounts.highest_qos_priority() == 50
    before = accounts.version
    state.apply(2, qos=[Qos(3, "top", priority=99)])
    assert accounts.version != before
    assert accounts.highest_qos_priority() == 99


# --- in the controller


def test_the_controller_calculates_again_each_period_while_jobs_wait() -> None:
    tables = make_tables(1, cpus=1)
    h = Harness(tables, time=FakeTime())
    h.core.priorities = MultifactorPriority(
        tables,
        PriorityOptions(weight_age=1000, max_age_s=1000, calc_period_s=60),
        None,
        h.time.now(),
    )
    first = h.submit(time_limit_s=3600)
    second, fixed = h.submit(), h.submit(ROOT, priority=77)
    assert (first.is_running, second.priority) == (True, 1)
    h.run(61)
    assert (second.priority, fixed.priority) == (61, 77)
    h.run(59)
    assert second.priority == 61
    h.control("hold", second, ROOT)
    h.run(60)
    assert second.priority == 0
    h.control("release", second, ROOT)
    assert second.priority == 180
    h.control("release", fixed, ROOT)
    assert (fixed.priority, fixed.admin_priority) == (180, None)
    h.cancel(second)
    h.cancel(fixed, ROOT)
    h.run(120)
    assert h.core.priority_timer is None
    assert Note.PRIORITY in h.core.policy.notes  # type: ignore[attr-defined]


def test_a_changed_configuration_counts_from_the_next_calculation_on() -> None:
    harness = Harness(make_tables())
    core = harness.core
    core.priorities = MultifactorPriority(
        core.tables, PriorityOptions(weight_job_size=1000), None, START
    )
    harness.submit(min_nodes=4, exclusive=True)
    job = harness.submit()
    before = job.priority
    core.priorities.reconfigure(PriorityOptions(weight_job_size=4000), START)
    assert job.priority == before
    assert core.priorities.factors(job).weighted_job_size == 1000 * (1 / 4 + 1 / 16) / 2
    core.priorities.calculate(START + 400)
    assert job.priority == 625


def test_periods_have_another_length_from_the_end_of_this_one_on() -> None:
    made = plugin(accounts=FakeAccounts(), calc_period_s=60, half_life_s=0, weight_fair_share=1000)
    job, waiting = make_job(1), make_job(2, association=4)
    job.allocation = Allocation.of_shares([NodeShare(0, 4, 0, 0)])
    made.tables.running[1], made.tables.pending[2] = job, waiting
    made.started(job, NOW + 1)
    assert made.next_calculation(NOW + 10) == NOW + 61
    made.reconfigure(replace(made.options, calc_period_s=120), NOW + 30)
    for end, used in ((61, 60), (181, 180), (301, 300)):
        assert made.next_calculation(NOW + end - 5) == NOW + end
        made.calculate(NOW + end)
        assert made.ledger.use.sum() == 4 * used
    made.reconfigure(replace(made.options, calc_period_s=60), NOW + 310)
    assert made.next_calculation(NOW + 330) == NOW + 421
    assert made.next_calculation(NOW + 490) == NOW + 541  # nobody waited meanwhile
    made.calculate(NOW + 541)
    assert made.ledger.use.sum() == 4 * 540
    assert made.next_calculation(NOW + 541) == NOW + 601


def test_another_half_life_forgets_from_then_on() -> None:
    ledger = Ledger(1, origin=0, period_s=60, half_life_s=0)
    ledger.use[0] = 100.0
    ledger.advance(60)
    assert ledger.use[0] == 100.0
    ledger.set_half_life(60)
    ledger.advance(120)
    assert ledger.use[0] == pytest.approx(100 * (1 - 0.693 / 60) ** 60)


def test_plugins_without_parts_take_any_configuration() -> None:
    plugin = BasicPriority()
    plugin.reconfigure(PriorityOptions(weight_age=5), START)
    assert (plugin.weights(), plugin.standings(NOW)) == ({}, [])
