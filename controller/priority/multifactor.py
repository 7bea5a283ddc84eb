"""priority/multifactor: age, association, fair share, job size, partition, QOS and TRES, weighted
and summed.

Place: priority, pure: time, tables and associations are handed in. Follows:
slurm.conf(5) Priority*; the documentation of the plug-in.

Each factor is a number between 0 and 1 that its weight multiplies; only the sum is cut to a whole
number, at least 1. A job gets its priority when it is submitted, and all pending jobs get theirs
again at the end of each PriorityCalcPeriod; in between nothing changes, not even with age. What
does not change with time is remembered for each job, so that a period costs a few vector operations
whatever the number of jobs.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, isnan
from typing import TYPE_CHECKING, Final

import numpy as np

from understudy.controller.priority import fair_share
from understudy.controller.priority.api import MOST, Factors, NoAccounts, Standing, cut
from understudy.controller.priority.classic import ClassicShares
from understudy.controller.priority.options import FAIR_SHARE_FLAGS, PriorityOptions
from understudy.controller.priority.registry import site_factor
from understudy.controller.priority.resets import next_reset
from understudy.controller.priority.rows import (
    ASSOCIATION,
    NICE,
    PARTITION,
    QOS,
    SITE,
    SIZE,
    TRES,
    Rows,
)
from understudy.controller.priority.tree import ShareTree
from understudy.controller.priority.tres import PartitionTotals, asked_for, billing, tres_of
from understudy.controller.priority.usage import Ledger
from understudy.model.times import YEAR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.controller.priority.api import Accounts
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.tables import Tables

# Slurm's thread is at work about a second after the controller's start; the periods count from
# there
PHASE_S: Final = 1
_NEVER: Final = 1 << 62


class MultifactorPriority:
    """`PriorityType=priority/multifactor`. `start`: when the controller started, seconds since the
    epoch.
    """

    name = "multifactor"
    last = 0

    def __init__(
        self,
        tables: Tables,
        options: PriorityOptions | None = None,
        accounts: Accounts | None = None,
        start: float = 0.0,
    ) -> None:
        self.tables = tables
        self.options = options or PriorityOptions()
        self.accounts: Accounts = accounts or NoAccounts()
        self.origin = int(start + PHASE_S)
        # when PriorityCalcPeriod becomes another, and which
        self._next_length: tuple[float, int] | None = None
        # where the periods count from; `origin` is the whole second of it
        self._base = start + PHASE_S
        self._totals = PartitionTotals(tables, takes_largest="MAX_TRES" in self.options)
        self._cluster = (float(tables.nodes.cpus.sum()), float(len(tables.nodes.nodes)))
        self._site = site_factor(self.options.site_factor, self.options.site_factor_parameters)
        self._rows = Rows()
        # jobs that have begun to run: what they hold counts from the period's end on
        self._outdated: list[int] = []
        self._seen_partitions: list[tuple[str, int, int, str]] = []
        self._calculated = 0  # periods whose calculation has been done
        self._reset_at = next_reset(self.options.reset_period, start)
        self.tree = ShareTree(())
        self.ledger = Ledger(
            0,
            origin=self.origin,
            period_s=self.options.calc_period_s,
            half_life_s=self.options.half_life_s,
        )
        # each association's factor as of the last period; nan: to be worked out when asked for
        self.fair_share: NDArray[np.float64] = np.zeros(0)
        self._classic = self._make_classic()
        # associations that no period's end has seen
        self._new: NDArray[np.bool_] = np.zeros(0, dtype=bool)
        self._ranked_at = -1
        # saved use (and as of when) of associations that are not known yet
        self._restored: dict[int, tuple[float, int]] = {}
        self._version = -1
        self._read_accounts()

    # --- what the controller calls ----------------------------------------------------------------

    def assign(self, job: Job, now: float) -> int:
        """The priority of a job that becomes ready for the queue, calculated with the time of
        now.
        """
        self._bring_up_to_date(now)
        row = self._note(job, now)
        return self._single(job, row, self._age(self._accrues_since(job), now))

    def _shown(self, job: Job, priority: int, now: float) -> int:
        """Whenever a job of several partitions that may start gets its priority again, it shows
        what it has in the last of them.
        """
        found = job.partition_priorities
        if (
            found is None
            or len(job.partitions) < 2
            or job.eligible_time is None
            or job.eligible_time > now
        ):
            return priority
        return found.get(job.partitions[-1], priority)

    def changed(self, job: Job, now: float, *, is_moved: bool = False) -> None:
        """Something of the job was changed: what is remembered of it is worthless. Held and fixed
        priorities stay.
        """
        self._rows.drop(job.job_id)
        if job.is_pending and job.priority and job.admin_priority is None:
            priority = self.assign(job, now)
            job.priority = priority if is_moved else self._shown(job, priority, now)

    def started(self, job: Job, now: float) -> None:
        """The job uses what it holds from now on."""
        self._advance(now)
        if "CALCULATE_RUNNING" in self.options:
            self._outdated.append(job.job_id)
        else:
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
        if not self.tables.pending and not (
            "CALCULATE_RUNNING" in self.options and self.tables.running
        ):
            return None
        if self._next_length is not None and now >= self._next_length[0]:
            self._advance(now)
        period = self.options.calc_period_s
        passed = max(ceil((now - self._base) / period), self._calculated + 1, 1)
        return self._base + passed * period

    @property
    def longest_age_s(self) -> int:
        """PriorityMaxAge."""
        return self.options.max_age_s

    def calculate(self, now: float) -> bool:
        """Calculate all pending jobs' priorities, as at the end of a period."""
        self._bring_up_to_date(now)
        self._calculated = max(self._calculated, self._periods_until(now))
        self._forget_outdated()
        jobs = [
            job
            for job in self.tables.pending.values()
            if job.priority and job.admin_priority is None
        ]
        if "CALCULATE_RUNNING" in self.options:
            jobs += [job for job in self.tables.running.values() if job.admin_priority is None]
        if len(self._rows) > 2 * len(jobs) + 1000:
            self._rows.keep({job.job_id for job in jobs})
        return bool(jobs) and self._calculate(jobs, now)

    def _forget_outdated(self) -> None:
        """Drop what is remembered of jobs whose partitions or resources are no longer what they
        were.
        """
        for job_id in self._outdated:
            self._rows.drop(job_id)
        self._outdated.clear()
        partitions = [
            (each.name, each.priority_job_factor, each.nodes, each.tres_billing_weights)
            for each in self.tables.partitions.values()
        ]
        if partitions != self._seen_partitions:
            self._seen_partitions = partitions
            self._rows.clear()

    @property
    def usage_time(self) -> int:
        """The end of the last period that is counted."""
        return self.ledger.last if self.tree.shares else 0

    def usage(self) -> dict[int, float]:
        """Use of each association's own jobs until then."""
        found = {
            share.association_id: use
            for share, use in zip(self.tree.shares, self.ledger.use.tolist(), strict=True)
            if use
        }
        for association_id, (use, time) in self._restored.items():
            found[association_id] = use * self.ledger.decay ** max(self.ledger.last - time, 0)
        return found

    def forget(self, association_ids: list[int]) -> None:
        """Use of these associations begins anew; what runs goes on from now, or the end of the last
        period.
        """
        for association_id in association_ids:
            self._restored.pop(association_id, None)
            place = self.tree.place_of.get(association_id)
            if place is not None:
                self.ledger.forget(place)

    def restore(self, time: int, use: dict[int, float]) -> None:
        """Go on from what was saved. Associations that are not known yet get theirs when they
        are.
        """
        if self.options.reset_period == "NOW":
            return
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
        of_partition = (
            values[PARTITION]
            if len(job.partitions) < 2
            else self._partition_factor(partition) * options.weight_partition
        )
        share = self._share(row)
        age = self._age(self._accrues_since(job), time)
        return Factors(
            time=time,
            age=age,
            association=self._association_factor(job),
            fair_share=share,
            job_size=self._size_factor(job),
            partition=of_partition / (options.weight_partition or 1),
            qos=self._qos_factor(job),
            weighted_age=age * options.weight_age,
            weighted_association=values[ASSOCIATION],
            weighted_fair_share=share * options.weight_fair_share,
            weighted_job_size=values[SIZE],
            weighted_partition=of_partition,
            weighted_qos=values[QOS],
            tres=(tres := self._tres(job, partition)),
            normal_tres={
                name: amount / (options.tres_weights[name] or 1.0) for name, amount in tres.items()
            },
            site=int(values[SITE]),
            nice=int(values[NICE]),
        )

    def reconfigure(self, options: PriorityOptions, now: float) -> None:
        """Take over all; another PriorityCalcPeriod from the end of this period on."""
        self._advance(now)
        self._totals = PartitionTotals(self.tables, takes_largest="MAX_TRES" in options)
        self.ledger.set_half_life(options.half_life_s)
        self._site = site_factor(options.site_factor, options.site_factor_parameters)
        self._reset_at = (
            int(now) if options.reset_period == "NOW" else next_reset(options.reset_period, now)
        )
        kind = (self.options.flags & FAIR_SHARE_FLAGS, self.options.dampening)
        period = self.options.calc_period_s
        self.options = replace(options, calc_period_s=period)
        end = self._base + (self._periods_until(now) + 1) * period
        self._next_length = (
            (end, options.calc_period_s) if options.calc_period_s != period else None
        )
        if kind != (options.flags & FAIR_SHARE_FLAGS, options.dampening):
            self._classic = self._make_classic()
            self._ranked_at = -1
        self._outdated += self._rows.row_of

    def standings(self, now: float, *, asks: bool = True) -> list[Standing]:
        """Each association in fair share, as of the end of the last period."""
        self._bring_up_to_date(now)
        tree, classic = self.tree, self._classic
        use = tree.summed(self.ledger.use)
        if not len(use):
            return []
        level = np.where(self._new, 0.0, fair_share.level_fair_share(tree, use))
        if classic is None:
            above = np.where(tree.parent >= 0, use[tree.parent], use)
            of_level, of_parent = (
                tree.level_share.copy(),
                np.divide(use, above, out=np.zeros(len(use)), where=above > 0),
            )
            of_level[tree.parent < 0], of_parent[tree.parent < 0] = 0.0, 1.0
            of_level[tree.uses_parent] = of_level[tree.parent[tree.uses_parent]]
            of_all = np.where(self._new, np.nan, use / float(use[0]) if use[0] else 0.0)
            shares, effective, normal, factors = (
                of_level.tolist(),
                of_parent.tolist(),
                of_all.tolist(),
                self.fair_share.tolist(),
            )
        else:
            for place in tree.users.tolist() if asks else ():
                self._update_own(place)
            shares, effective, normal = classic.shares, classic.effective, classic.normal
            factors = [classic.factor(place) for place in range(len(use))]
        columns = zip(
            *(
                tree.shares,
                shares,
                use.tolist(),
                _known(normal),
                _known(effective),
                factors,
                level.tolist(),
                tree.siblings_shares.astype(int).tolist(),
            ),
            strict=True,
        )
        return [
            Standing(
                share,
                part,
                used,
                part_of_all,
                effective_use,
                factor,
                own,
                classic is None,
                of_siblings,
            )
            for share, part, used, part_of_all, effective_use, factor, own, of_siblings in columns
        ]

    @property
    def includes_running(self) -> bool:
        """PriorityFlags=CALCULATE_RUNNING."""
        return "CALCULATE_RUNNING" in self.options

    @property
    def includes_ineligible(self) -> bool:
        """PriorityFlags=ACCRUE_ALWAYS."""
        return "ACCRUE_ALWAYS" in self.options

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
        return max(int((now - self._base + 1e-6) / self.options.calc_period_s), 0)

    # --- time -------------------------------------------------------------------------------------

    def _advance(self, time: float) -> None:
        """Count the use of the periods that are over, with resets in between."""
        self._read_accounts()
        if self._next_length is not None and time >= self._next_length[0]:
            self._count_until(self._next_length[0])
            self._base, period_s = self._next_length
            self._next_length, self.origin, self._calculated = None, self.ledger.last, 0
            self.options = replace(self.options, calc_period_s=period_s)
            self.ledger.period_s = period_s
        self._count_until(time)

    def _count_until(self, time: float) -> None:
        period = self.options.calc_period_s
        # Use is counted in whole seconds, but a period ends at an instant within one.
        now = self.origin + self._periods_until(time) * period
        while self._reset_at is not None and self._reset_at <= now:
            # the end of the period in which it falls
            seen = self.origin + -(-(self._reset_at - self.origin) // period) * period
            if seen > now:
                break
            self.ledger.advance(seen - period)
            self.ledger.reset()  # what runs adds all of this period's use
            self.ledger.advance(seen)
            self._reset_at = next_reset(self.options.reset_period, seen)
        self.ledger.advance(now)

    def _bring_up_to_date(self, now: float) -> None:
        """Use and fair share factors as of the end of the last period."""
        self._advance(now)
        if self._ranked_at == self.ledger.last:
            return
        self._ranked_at = self.ledger.last
        self.fair_share = self._fair_share()

    def _make_classic(self) -> ClassicShares | None:
        options = self.options
        if options.uses_fair_tree:
            return None
        return ClassicShares(
            self.tree, dampening=options.dampening, is_depth_oblivious="DEPTH_OBLIVIOUS" in options
        )

    def _fair_share(self) -> NDArray[np.float64]:
        """Factors at a period's end."""
        self._new = np.zeros(len(self.tree.shares), dtype=bool)
        if self._classic is None:
            return fair_share.fair_tree(self.tree, self.tree.summed(self.ledger.use))
        self._classic.begin(self.tree.summed(self.ledger.before))
        return self._classic_factors()

    def _classic_factors(self) -> NDArray[np.float64]:
        classic = self._classic
        assert classic is not None
        return np.array(
            [classic.factor(classic.judged_as(place)) for place in range(len(self.tree.shares))]
        )

    def _update(self, place: int) -> None:
        """Somebody asks for the factor of an association."""
        if place >= 0 and isnan(self.fair_share[place]):
            self._update_own(place)

    def _update_own(self, place: int) -> None:
        classic = self._classic
        assert classic is not None
        if isnan(classic.effective[place]):
            use = self.ledger.use
            classic.update(place, float(use[place]), float(use.sum()))
            self.fair_share[place] = classic.factor(classic.judged_as(place))

    def _update_in_order(self, jobs: list[Job], places: NDArray[np.intp]) -> None:
        """At the end of a period jobs are looked at one by one: one that runs adds its use, one
        that waits asks for its user's factor.
        """
        classic = self._classic
        if classic is None or not len(self.fair_share):
            return
        unknown = np.flatnonzero((places >= 0) & np.isnan(self.fair_share[places]))
        if not len(unknown):
            return
        ids = np.array([jobs[index].job_id for index in unknown.tolist()])
        order = np.argsort(ids)
        # the first job of each
        of_users, first = np.unique(places[unknown][order], return_index=True)
        by_job = np.argsort(first)
        use, added = self.ledger.last_period()
        whole, at = float(use.sum()), 0
        for place, job_id in zip(
            of_users[by_job].tolist(), ids[order][first[by_job]].tolist(), strict=True
        ):
            while at < len(added) and added[at][0] <= job_id:
                _, of, amount = added[at]
                use[of] += amount
                whole += amount
                at += 1
            classic.update(place, float(use[place]), whole)
            self.fair_share[place] = classic.factor(place)

    def _read_accounts(self) -> None:
        version = self.accounts.version
        if version == self._version:
            return
        self._version = version
        before, factors, was_new = self.tree, self.fair_share, self._new
        self.tree = ShareTree(self.accounts.shares())
        moved = {
            old: self.tree.place_of[own]
            for own, old in before.place_of.items()
            if own in self.tree.place_of
        }
        self.ledger.resize(len(self.tree.shares), moved)
        self._highest_association = max((share.priority for share in self.tree.shares), default=0)
        self._replace_rows()
        if self._classic is not None:
            self._classic.replant(self.tree, moved)
        if not moved:
            self._ranked_at = -1
            self._give_restored()
            self.fair_share = self._fair_share()
            return
        self._give_restored()
        self._new = np.ones(len(self.tree.shares), dtype=bool)
        self._new[list(moved.values())] = was_new[list(moved)]
        if self._classic is not None:
            self.fair_share = self._classic_factors()
            return
        # those that are new have no factor before the next period's end
        self.fair_share = np.zeros(len(self.tree.shares))
        for old, place in moved.items():
            self.fair_share[place] = factors[old]

    def _replace_rows(self) -> None:
        """Jobs' associations have other places; what else is remembered of jobs is as of the last
        calculation, and worked out anew at the next.
        """
        for job_id, row in list(self._rows.row_of.items()):
            job = self.tables.pending.get(job_id) or self.tables.running.get(job_id)
            if job is None:
                self._rows.drop(job_id)
            else:
                self._rows.place[row] = self.tree.place_of.get(
                    self.accounts.association_of(job), -1
                )
                self._outdated.append(job_id)

    def _give_restored(self) -> None:
        """Use that was saved, decayed since."""
        for association_id in [each for each in self._restored if each in self.tree.place_of]:
            use, time = self._restored.pop(association_id)
            self.ledger.give(
                self.tree.place_of[association_id],
                use * self.ledger.decay ** max(self.ledger.last - time, 0),
            )
            self._ranked_at = -1

    # --- factors ----------------------------------------------------------------------------------

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
            minutes = (job.time_limit_s or YEAR) / 60
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
        highest = max(
            (each.priority_job_factor for each in self.tables.partitions.values()), default=0
        )
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
        totals, _ = self._totals.of(partition)
        own = self._partition_of(job)
        wanted = asked_for(job, own)
        if "billing" in weights and own is not None:
            of_job = billing(
                wanted, self._totals.of(own)[1], takes_largest="MAX_TRES" in self.options
            )
            wanted["billing"] = float(int(of_job))  # in all partitions what it is in the job's own
        is_plain = "NO_NORMAL_TRES" in self.options
        found: dict[str, float] = {}
        for name, weight in weights.items():
            count = wanted.get(name, 0.0)
            if not is_plain:
                there = self._there_is(name, totals)
                count = count / there if there else 0.0
            if count:
                found[name] = count * weight
        return found

    def _there_is(self, name: str, totals: dict[str, float]) -> float:
        """What there is of a TRES: in the partition, of licences and burst buffers in all."""
        if name.startswith("license/"):
            return self.tables.licenses.totals.get(name[8:], 0)
        if name.startswith("bb/"):
            return self.tables.burst_buffers.total_mebibytes
        return totals.get(name, 0.0)

    def _partition_of(self, job: Job) -> Partition | None:
        return self.tables.partitions.get(job.partition or job.partitions[0])

    # --- sums -------------------------------------------------------------------------------------

    def _note(self, job: Job, now: float) -> int:
        """Work out what of the job's priority does not change with time; its row."""
        options = self.options
        partition = self._partition_of(job)
        values = (
            self._association_factor(job) * options.weight_association
            if options.weight_association
            else 0.0,
            self._size_factor(job) * options.weight_job_size if options.weight_job_size else 0.0,
            self._partition_factor(partition) * options.weight_partition
            if partition is not None and options.weight_partition
            else 0.0,
            self._qos_factor(job) * options.weight_qos if options.weight_qos else 0.0,
            sum(self._tres(job, partition).values()) if partition is not None else 0.0,
            self._site_factor(job, now),
            float(job.nice),
        )
        return self._rows.put(
            job.job_id,
            self.tree.place_of.get(self.accounts.association_of(job), -1),
            values,
            int(now),
        )

    def _site_factor(self, job: Job, now: float) -> float:
        """What the site's plug-in says, or else what an administrator has set."""
        return float(job.spec.site_factor if self._site is None else self._site.factor(job, now))

    def _share(self, row: int) -> float:
        place = int(self._rows.place[row])
        self._update(place)
        return float(self.fair_share[place]) if place >= 0 else 0.0

    def _single(self, job: Job, row: int, age: float) -> int:
        options = self.options
        association, size, partition, qos, tres, site, nice = self._rows.values[row].tolist()
        total = (
            age * options.weight_age
            + association
            + self._share(row) * options.weight_fair_share
            + size
            + partition
            + qos
            + tres
            + site
            - nice
        )
        if len(job.partitions) > 1:
            self._by_partition(job, total - partition - tres)
        return cut(total)

    def _by_partition(self, job: Job, rest: float) -> None:
        """A job of several partitions has a priority in each; `rest`: what is the same in all."""
        found: dict[str, int] = {}
        for name in job.partitions:
            partition = self.tables.partitions.get(name)
            if partition is None:
                continue
            own = self._partition_factor(partition) * self.options.weight_partition + sum(
                self._tres(job, partition).values()
            )
            found[name] = cut(rest + own)
            if "INCR_ONLY" in self.options and job.partition_priorities is not None:
                found[name] = max(found[name], job.partition_priorities.get(name, 1))
        job.partition_priorities = found

    def _rows_of(self, jobs: list[Job], now: float) -> NDArray[np.intp]:
        """The jobs' rows, noted where they are not yet, with the site's present opinion."""
        row_of = self._rows.row_of
        found = [row_of.get(job.job_id, -1) for job in jobs]
        if -1 in found:
            found = [
                self._note(job, now) if row < 0 else row
                for job, row in zip(jobs, found, strict=True)
            ]
        rows = np.array(found, dtype=np.intp)
        if self._site is not None:
            self._rows.values[rows, SITE] = [self._site_factor(job, now) for job in jobs]
        self._rows.time[rows] = int(now)
        self._rows.values[rows, NICE] = [job.nice for job in jobs]
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
        self._update_in_order(jobs, place)
        share = (
            np.where(place >= 0, self.fair_share[place], 0.0)
            if len(self.fair_share)
            else np.zeros(len(jobs))
        )
        age = self._ages(jobs, now)
        total = (
            age * options.weight_age
            + values[ASSOCIATION]
            + share * options.weight_fair_share
            + values[SIZE]
            + values[PARTITION]
            + values[QOS]
        )
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
                self._by_partition(
                    job, float(total[index] - values[PARTITION, index] - values[TRES, index])
                )
                shown = self._shown(job, job.priority, now)
                job.priority = max(shown, int(before[index])) if "INCR_ONLY" in options else shown
                has_changed |= seen != job.partition_priorities
        return has_changed


def _known(values: list[float]) -> list[float | None]:
    return [None if isnan(value) else value for value in values]
