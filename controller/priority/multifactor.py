"""priority/multifactor: age, association, fair share, job size, partition, QOS and TRES, weighted and summed.

Place: the controller's core, pure: time, tables and associations are handed in. Follows: slurm.conf(5) Priority*; the documentation of the plug-in.

Each factor is a number between 0 and 1 that its weight multiplies; only the sum is cut to a whole number, at least 1. A job gets its priority when it
is submitted, and all pending jobs get theirs again at the end of each PriorityCalcPeriod; in between nothing changes, not even with age. What does
not change with time is remembered for each job, so that a period costs a few vector operations whatever the number of jobs.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.controller.priority import fair_share
from understudy.controller.priority.api import Factors, NoAccounts, Standing
from understudy.controller.priority.options import PriorityOptions
from understudy.controller.priority.registry import site_factor
from understudy.controller.priority.resets import next_reset
from understudy.controller.priority.rows import ASSOCIATION, NICE, PARTITION, QOS, SITE, SIZE, TRES, Rows
from understudy.controller.priority.tree import ShareTree
from understudy.controller.priority.tres import PartitionTotals, billing, tres_of
from understudy.controller.priority.usage import Ledger

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.controller.job import Job
    from understudy.controller.partitions import Partition
    from understudy.controller.priority.api import Accounts
    from understudy.controller.scheduling.api import Tables

MOST: Final = 0xFFFFFFFF - 1
PHASE_S: Final = 1  # Slurm's thread is at work about a second after the controller's start; the periods count from there


_NEVER: Final = 1 << 62


class MultifactorPriority:
    """`PriorityType=priority/multifactor`. `start`: when the controller started, seconds since the epoch."""

    name = "multifactor"
    last = 0

    def __init__(self, tables: Tables, options: PriorityOptions | None = None, accounts: Accounts | None = None, start: float = 0.0) -> None:
        self.tables = tables
        self.options = options or PriorityOptions()
        self.accounts: Accounts = accounts or NoAccounts()
        self.origin = int(start + PHASE_S)
        self._start = start
        self._totals = PartitionTotals(tables.nodes)
        self._cluster = (float(tables.nodes.cpus.sum()), float(len(tables.nodes.nodes)))
        self._site = site_factor(self.options.site_factor, self.options.site_factor_parameters)
        self._rows = Rows()
        self._calculated = 0  # periods whose calculation has been done
        self._reset_at = next_reset(self.options.reset_period, start)
        self.tree = ShareTree(())
        self.ledger = Ledger(0, origin=self.origin, period_s=self.options.calc_period_s, half_life_s=self.options.half_life_s)
        self.fair_share: NDArray[np.float64] = np.zeros(0)  # each association's factor as of the last period
        self._ranked_at = -1
        self._restored: dict[int, tuple[float, int]] = {}  # saved use (and as of when) of associations that are not known yet
        self._version = -1
        self._look_at_accounts()

    # --- what the controller calls ---------------------------------------------------------------------------------------------

    def assign(self, job: Job, now: float) -> int:
        """The priority of a job that becomes ready for the queue, calculated with the time of now."""
        self._bring_up_to_date(now)
        row = self._note(job, now)
        return self._single(job, row, self._age(self._accrues_since(job), now))

    def changed(self, job: Job, now: float, *, at_once: bool = True) -> None:
        """Something of the job was changed: what is remembered of it is worthless. Held and fixed priorities stay."""
        self._rows.drop(job.job_id)
        if at_once and job.is_pending and job.priority and job.admin_priority is None:
            job.priority = self.assign(job, now)

    def started(self, job: Job, now: float) -> None:
        """The job uses what it holds from now on."""
        self._advance(now)
        if "CALCULATE_RUNNING" not in self.options:
            self._rows.drop(job.job_id)
        place = self.tree.place_of.get(self.accounts.association_of(job))
        partition = self.tables.partitions.get(job.partition)
        if place is None or partition is None:
            return
        rate = self.billing_of(job, partition)
        qos = self.accounts.qos_of(job)
        if qos is not None:
            rate *= qos.usage_factor
        self.ledger.begin(job.job_id, place, rate, int(now))

    def ended(self, job: Job, now: float) -> None:
        """The job uses nothing any more."""
        self._advance(now)
        self._rows.drop(job.job_id)
        self.ledger.end(job.job_id)

    def next_calculation(self, now: float) -> float | None:
        """The end of the period; None while there is nobody whose priority could change."""
        if not self.tables.pending and not ("CALCULATE_RUNNING" in self.options and self.tables.running):
            return None
        period = self.options.calc_period_s
        done = self._start + PHASE_S + self._calculated * period
        passed = max(ceil((now - self._start - PHASE_S) / period), 1)
        return max(done + period, self._start + PHASE_S + passed * period)

    def calculate(self, now: float) -> bool:
        """Calculate all pending jobs' priorities, as at the end of a period."""
        self._calculated = max(self._calculated, self._periods_until(now))
        self._bring_up_to_date(now)
        jobs = [job for job in self.tables.pending.values() if job.priority and job.admin_priority is None]
        if "CALCULATE_RUNNING" in self.options:
            jobs += [job for job in self.tables.running.values() if job.admin_priority is None]
        if len(self._rows) > 2 * len(jobs) + 1000:
            self._rows.keep({job.job_id for job in jobs})
        return bool(jobs) and self._calculate(jobs, now)

    @property
    def usage_time(self) -> int:
        """The end of the last period that is counted."""
        return self.ledger.last if self.tree.shares else 0

    def usage(self) -> dict[int, float]:
        """Use of each association's own jobs until then."""
        found = {share.association_id: use for share, use in zip(self.tree.shares, self.ledger.use.tolist(), strict=True) if use}
        for association_id, (use, time) in self._restored.items():
            found[association_id] = use * self.ledger.decay ** max(self.ledger.last - time, 0)
        return found

    def forget(self, association_ids: list[int]) -> None:
        """Use of these associations begins anew; what runs goes on from now, or the end of the last period."""
        for association_id in association_ids:
            self._restored.pop(association_id, None)
            place = self.tree.place_of.get(association_id)
            if place is not None:
                self.ledger.use[place] = 0.0

    def restore(self, time: int, use: dict[int, float]) -> None:
        """Go on from what was saved. Associations that are not known yet get theirs when they are."""
        self._restored = {association_id: (each, time) for association_id, each in use.items()}
        self._give_restored()

    def factors(self, job: Job, partition: str = "") -> Factors | None:
        """What a pending job's priority is made of, as of when it was calculated."""
        row = self._rows.row_of.get(job.job_id)
        where = self.tables.partitions.get(partition) if partition else self._partition_of(job)
        return None if row is None or where is None else self._factors(job, row, where)

    def _factors(self, job: Job, row: int, partition: Partition) -> Factors:
        options = self.options
        values, time = self._rows.values[row].tolist(), int(self._rows.time[row])
        share = self._share(row)
        age = self._age(self._accrues_since(job), time)
        return Factors(
            time=time,
            age=age,
            association=self._association_factor(job),
            fair_share=share,
            job_size=self._size_factor(job),
            partition=self._partition_factor(partition),
            qos=self._qos_factor(job),
            weighted_age=age * options.weight_age,
            weighted_association=values[ASSOCIATION],
            weighted_fair_share=share * options.weight_fair_share,
            weighted_job_size=values[SIZE],
            weighted_partition=self._partition_factor(partition) * options.weight_partition,
            weighted_qos=values[QOS],
            tres=(tres := self._tres(job, partition)),
            normal_tres={name: amount / (options.tres_weights[name] or 1.0) for name, amount in tres.items()},
            site=int(values[SITE]),
            nice=int(values[NICE]),
        )

    def reconfigure(self, options: PriorityOptions, now: float) -> None:
        """Take over all but PriorityCalcPeriod, whose end would fall elsewhere: that one needs a restart."""
        self._advance(now)
        self.options = replace(options, calc_period_s=self.options.calc_period_s)
        self.ledger.set_half_life(options.half_life_s)
        self._site = site_factor(options.site_factor, options.site_factor_parameters)
        self._reset_at = next_reset(options.reset_period, now)
        self._ranked_at = -1
        for job in self.tables.pending.values():
            if job.job_id in self._rows.row_of:
                self._note(job, now)

    def standings(self) -> list[Standing]:
        """Each association in fair share, as of the end of the last period."""
        tree = self.tree
        use = tree.summed(self.ledger.use)
        if not len(use):
            return []
        is_tree = self.options.uses_fair_tree
        whole = float(use[0])
        level = fair_share.level_fair_share(tree, use).tolist()
        if is_tree:
            above = np.where(tree.parent >= 0, use[tree.parent], use)
            shares, effective = tree.level_share.copy(), np.divide(use, above, out=np.zeros(len(use)), where=above > 0)
            shares[tree.parent < 0], effective[tree.parent < 0] = 0.0, 1.0
        else:
            shares, effective = fair_share.normalised(tree, use)
        columns = zip(tree.shares, shares.tolist(), use.tolist(), effective.tolist(), self.fair_share.tolist(), level, strict=True)
        return [
            Standing(share, normal, used, used / whole if whole else 0.0, part, factor, own_level, is_tree)
            for share, normal, used, part, factor, own_level in columns
        ]

    def weights(self) -> dict[str, float]:
        """The weights of the factors, and of resources."""
        options = self.options
        return {
            "age": options.weight_age,
            "association": options.weight_association,
            "fair_share": options.weight_fair_share,
            "job_size": options.weight_job_size,
            "partition": options.weight_partition,
            "qos": options.weight_qos,
            **options.tres_weights,
        }

    def billing_of(self, job: Job, partition: Partition) -> float:
        """What the job's resources bill in the partition."""
        _, weights = self._totals.of(partition)
        return billing(tres_of(job), weights, takes_largest="MAX_TRES" in self.options)

    def _periods_until(self, now: float) -> int:
        """How many periods are over."""
        return max(int((now - self._start - PHASE_S + 1e-6) / self.options.calc_period_s), 0)

    # --- time ------------------------------------------------------------------------------------------------------------------

    def _advance(self, time: float) -> None:
        """Count the use of the periods that are over, with resets in between."""
        self._look_at_accounts()
        period = self.options.calc_period_s
        # Use is counted in whole seconds, but a period ends at an instant within one.
        now = self.origin + self._periods_until(time) * period
        while self._reset_at is not None and self._reset_at <= now:
            self.ledger.advance(self._reset_at)
            seen = self.origin + -(-(self._reset_at - self.origin) // period) * period  # the end of the period in which it falls
            if seen > now:
                break
            self.ledger.advance(seen)
            self.ledger.reset()
            self._reset_at = next_reset(self.options.reset_period, seen)
        self.ledger.advance(now)

    def _bring_up_to_date(self, now: float) -> None:
        """Use and fair share factors as of the end of the last period."""
        self._advance(now)
        if self._ranked_at == self.ledger.last:
            return
        self._ranked_at = self.ledger.last
        self.fair_share = self._fair_share()

    def _fair_share(self) -> NDArray[np.float64]:
        use = self.tree.summed(self.ledger.use)
        if "DEPTH_OBLIVIOUS" in self.options:
            return fair_share.depth_oblivious(self.tree, use)
        if not self.options.uses_fair_tree:
            return fair_share.classic(self.tree, use, self.options.dampening)
        return fair_share.fair_tree(self.tree, use)

    def _look_at_accounts(self) -> None:
        version = self.accounts.version
        if version == self._version:
            return
        self._version = version
        before, factors = self.tree, self.fair_share
        self.tree = ShareTree(self.accounts.shares())
        moved = {old: self.tree.place_of[own] for own, old in before.place_of.items() if own in self.tree.place_of}
        self.ledger.resize(len(self.tree.shares), moved)
        self._highest_association = max((share.priority for share in self.tree.shares), default=0)
        self._rows.clear()
        if not moved:
            self._ranked_at = -1
            self._give_restored()
            self.fair_share = self._fair_share()
            return
        self._give_restored()
        self.fair_share = np.zeros(len(self.tree.shares))  # those that are new have no factor before the next period's end
        for old, place in moved.items():
            self.fair_share[place] = factors[old]

    def _give_restored(self) -> None:
        """Use that was saved, decayed since."""
        for association_id in [each for each in self._restored if each in self.tree.place_of]:
            use, time = self._restored.pop(association_id)
            self.ledger.use[self.tree.place_of[association_id]] += use * self.ledger.decay ** max(self.ledger.last - time, 0)
            self._ranked_at = -1

    # --- factors ---------------------------------------------------------------------------------------------------------------

    def _age(self, since: int, now: float) -> float:
        waited = int(now) - since
        if waited <= 0 or self.options.max_age_s <= 0:
            return 0.0
        return min(waited / self.options.max_age_s, 1.0)

    def _accrues_since(self, job: Job) -> int:
        if "ACCRUE_ALWAYS" in self.options:
            return job.submit_time
        if not job.accrues:
            return _NEVER
        since = job.accrue_time if job.accrue_time is not None else job.eligible_time
        return _NEVER if since is None else since

    def _size_factor(self, job: Job) -> float:
        cpus, nodes = self._cluster
        held = job.allocation
        wanted = float(job.min_cpus if held is None else held.cpus)
        count = job.min_nodes if held is None else held.node_count
        if not nodes or not cpus:
            return 0.0
        if "SMALL_RELATIVE_TO_TIME" in self.options:
            minutes = (job.time_limit_s or 365 * 86400) / 60
            factor = max(count * cpus / nodes, wanted) / minutes / cpus
            factor = 1.0 - factor if self.options.favors_small else factor
        elif self.options.favors_small:
            factor = ((nodes - count) / nodes + (cpus - wanted) / cpus) * 0.5
        else:
            factor = (count / nodes + wanted / cpus) * 0.5
        return min(max(factor, 0.0), 1.0)

    def _partition_factor(self, partition: Partition) -> float:
        if "NO_NORMAL_PART" in self.options:
            return float(partition.priority_job_factor)
        highest = max((each.priority_job_factor for each in self.tables.partitions.values()), default=0)
        return partition.priority_job_factor / highest if highest else 0.0

    def _qos_factor(self, job: Job) -> float:
        qos = self.accounts.qos_of(job)
        if qos is None:
            return 0.0
        if "NO_NORMAL_QOS" in self.options:
            return float(qos.priority)
        highest = self.accounts.highest_qos_priority()
        return qos.priority / highest if highest else 0.0

    def _association_factor(self, job: Job) -> float:
        place = self.tree.place_of.get(self.accounts.association_of(job))
        if place is None:
            return 0.0
        priority = self.tree.shares[place].priority
        if "NO_NORMAL_ASSOC" in self.options:
            return float(priority)
        return priority / self._highest_association if self._highest_association else 0.0

    def _tres(self, job: Job, partition: Partition) -> dict[str, float]:
        """Weighted contributions by TRES."""
        weights = self.options.tres_weights
        if not weights:
            return {}
        totals, billing_weights = self._totals.of(partition)
        wanted = tres_of(job)
        if "billing" in weights:
            wanted["billing"] = billing(wanted, billing_weights, takes_largest="MAX_TRES" in self.options)
        is_plain = "NO_NORMAL_TRES" in self.options
        found: dict[str, float] = {}
        for name, weight in weights.items():
            count = wanted.get(name, 0.0)
            if not is_plain:
                there = totals.get(name, 0.0)
                count = min(count / there, 1.0) if there else 0.0
            found[name] = count * weight
        return found

    def _partition_of(self, job: Job) -> Partition | None:
        return self.tables.partitions.get(job.partition or job.partitions[0])

    # --- sums ------------------------------------------------------------------------------------------------------------------

    def _note(self, job: Job, now: float) -> int:
        """Work out what of the job's priority does not change with time; its row."""
        options = self.options
        partition = self._partition_of(job)
        values = (
            self._association_factor(job) * options.weight_association if options.weight_association else 0.0,
            self._size_factor(job) * options.weight_job_size if options.weight_job_size else 0.0,
            self._partition_factor(partition) * options.weight_partition if partition is not None and options.weight_partition else 0.0,
            self._qos_factor(job) * options.weight_qos if options.weight_qos else 0.0,
            sum(self._tres(job, partition).values()) if partition is not None else 0.0,
            self._site_factor(job, now),
            float(job.nice),
        )
        return self._rows.put(job.job_id, self.tree.place_of.get(self.accounts.association_of(job), -1), values, int(now))

    def _site_factor(self, job: Job, now: float) -> float:
        """What the site's plug-in says, or else what an administrator has set."""
        return float(job.spec.extra.get("site_factor", 0) if self._site is None else self._site.factor(job, now))

    def _share(self, row: int) -> float:
        place = int(self._rows.place[row])
        return float(self.fair_share[place]) if place >= 0 else 0.0

    def _single(self, job: Job, row: int, age: float) -> int:
        options = self.options
        association, size, partition, qos, tres, site, nice = self._rows.values[row].tolist()
        total = age * options.weight_age + association + self._share(row) * options.weight_fair_share + size + partition + qos + tres + site - nice
        if len(job.partitions) > 1:
            self._by_partition(job, total - partition - tres)
        return _cut(total)

    def _by_partition(self, job: Job, rest: float) -> None:
        """A job of several partitions has a priority in each; `rest`: what is the same in all."""
        found: dict[str, int] = {}
        for name in job.partitions:
            partition = self.tables.partitions.get(name)
            if partition is None:
                continue
            own = self._partition_factor(partition) * self.options.weight_partition + sum(self._tres(job, partition).values())
            found[name] = _cut(rest + own)
            if "INCR_ONLY" in self.options and job.partition_priorities is not None:
                found[name] = max(found[name], job.partition_priorities.get(name, 1))
        job.partition_priorities = found

    def _rows_of(self, jobs: list[Job], now: float) -> NDArray[np.intp]:
        """The jobs' rows, noted where they are not yet, with the site's present opinion."""
        row_of = self._rows.row_of
        found = [row_of.get(job.job_id, -1) for job in jobs]
        if -1 in found:
            found = [self._note(job, now) if row < 0 else row for job, row in zip(jobs, found, strict=True)]
        rows = np.array(found, dtype=np.intp)
        if self._site is not None:
            self._rows.values[rows, SITE] = [self._site_factor(job, now) for job in jobs]
        self._rows.time[rows] = int(now)
        return rows

    def _ages(self, jobs: list[Job], now: float) -> NDArray[np.float64]:
        if self.options.max_age_s <= 0:
            return np.zeros(len(jobs))
        since = np.array([self._accrues_since(job) for job in jobs], dtype=np.float64)
        return np.clip((int(now) - since) / self.options.max_age_s, 0.0, 1.0)

    def _calculate(self, jobs: list[Job], now: float) -> bool:
        options = self.options
        rows = self._rows_of(jobs, now)
        values, place = self._rows.values[rows].T, self._rows.place[rows]
        share = np.where(place >= 0, self.fair_share[place], 0.0) if len(self.fair_share) else np.zeros(len(jobs))
        age = self._ages(jobs, now)
        total = age * options.weight_age + values[ASSOCIATION] + share * options.weight_fair_share + values[SIZE] + values[PARTITION] + values[QOS]
        total = total + values[TRES] + values[SITE] - values[NICE]
        before = np.array([job.priority for job in jobs], dtype=np.int64)
        after = np.clip(np.trunc(total), 1, MOST).astype(np.int64)
        if "INCR_ONLY" in options:
            after = np.maximum(before, after)
        changed = np.flatnonzero(after != before).tolist()
        for index in changed:
            jobs[index].priority = int(after[index])
        has_changed = bool(changed)
        for index, job in enumerate(jobs):
            if len(job.partitions) > 1:
                seen = job.partition_priorities
                self._by_partition(job, float(total[index] - values[PARTITION, index] - values[TRES, index]))
                has_changed |= seen != job.partition_priorities
        return has_changed


def _cut(total: float) -> int:
    """Cut to a whole number, at least 1 (0 would mean held)."""
    return min(max(int(total), 1), MOST)
