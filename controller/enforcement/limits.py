"""Limits at work: whether a job may be taken in, and whether it may start now; and the sums that
this is decided by.

Place: enforcement, pure. The schedulers ask `before`, `by_request` and `by_allocation`;
`note` is told of each job that has changed.

Sums change when a job is submitted, starts or ends, at each level that the job counts in. What was
used decays, and what running jobs may still use becomes less, once a period (PriorityCalcPeriod),
and when a job ends; as long as nobody has a limit on that, nothing is done in between.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from understudy.controller.enforcement.line import Line, LineMaker, Test, What
from understudy.controller.enforcement.reasons import INVALID_ACCOUNT, INVALID_QOS
from understudy.controller.enforcement.use import QosUse, Use
from understudy.controller.priority.resets import next_reset
from understudy.controller.priority.tres import PartitionTotals, asked_for, billing, tres_of
from understudy.controller.priority.usage import LN2
from understudy.model.states import JobFlag, JobState
from understudy.model.times import YEAR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from understudy.controller.tables.allocation import Allocation
    from understudy.controller.tables.job import Job
    from understudy.controller.tables.partition import Partition
    from understudy.controller.tables.settings import Enforced
    from understudy.controller.tables.tables import Tables
    from understudy.model.associations import AssociationState
    from understudy.model.qos import Qos

# (as of when, resource-seconds, seconds of time)
SavedUse: TypeAlias = tuple[int, dict[str, float], float]
_RUNS: Final = (JobState.RUNNING, JobState.SUSPENDED)
_TIMED: Final = (What.WALL, What.MINS, What.RUN_MINS)


class _Charge:
    """What a job counts for at present."""

    __slots__ = ("accruing", "job", "left_s", "limit_s", "line", "runs", "tasks", "tres", "until")

    def __init__(self, job: Job, line: Line) -> None:
        self.job, self.line = job, line
        self.tasks = 0
        self.accruing = 0  # of so many of them the age counts
        self.runs = False
        self.tres: dict[str, int] = {}
        self.until = 0  # up to when what it uses has been counted
        self.limit_s = 0
        self.left_s = 0  # for which it is expected to go on


class JobLimits:
    """Implements `understudy.controller.scheduling.api.Limits`. Times are whole seconds; periods
    end at `origin` + n * `period_s`.

    `counts_use`: what is used counts at all; `counts_always`: also where nobody has a limit on it;
    `state`: the present copy of accounting; `wake(when)`: have jobs checked again then, as time
    alone may let one start; `watch(when)`: ask then for jobs that are `overdrawn`; `split(job)`:
    give the first task of an array's record one of its own; `nodes_of(job)`: how many a pending job
    is shown to ask for.
    """

    def __init__(
        self,
        tables: Tables,
        state: Callable[[], AssociationState],
        user_name: Callable[[int], str],
        enforced: Enforced,
        *,
        origin: int = 0,
        period_s: int = 300,
        half_life_s: int = 0,
        reset_period: str = "NONE",
        takes_largest: bool = False,
        counts_use: bool = True,
        counts_always: bool = False,
        wake: Callable[[float], None] = lambda _when: None,
        watch: Callable[[float], None] = lambda _when: None,
        split: Callable[[Job], Job],
        nodes_of: Callable[[Job], int] = lambda job: job.min_nodes,
    ) -> None:
        self.tables, self._state, self._user_name, self.options = tables, state, user_name, enforced
        self.period_s, self.last = period_s, origin
        self._next_period_s = period_s
        self._set_decay(half_life_s, reset_period, origin)
        self._takes_largest, self.counts_use = takes_largest, counts_use
        self._wake, self._watch, self._split, self._nodes_of = wake, watch, split, nodes_of
        self._totals = PartitionTotals(tables)
        self.of_association: dict[int, Use] = {}
        self.of_qos: dict[str, QosUse] = {}
        self._lines: dict[tuple[str, int, str, str, bool], Line | str] = {}
        self._charges: dict[int, _Charge] = {}
        self._counts_time = self._counts_always = counts_always
        self._running: dict[int, _Charge] = {}
        self.touched: dict[str, Use] = {}  # whose use has grown since the state was saved
        self._restored: dict[str, SavedUse] = {}  # from before a restart, of what is not known yet
        # jobs of which it is to be seen whether their age counts
        self._unseen: dict[int, None] = {}
        self._refused: dict[int, None] = {}  # those whose age does not, as others' does
        self._origin, self._settled = origin, 0
        # while sums are made again: up to when what running jobs use has been counted
        self._counted: dict[int, int] = {}
        # after a restart, until all running jobs are known again: until when they were counted
        self._saved_until: int | None = None

    def _set_decay(self, half_life_s: int, reset_period: str, now: float) -> None:
        self.decay = 1.0 - LN2 / half_life_s if half_life_s > 0 else 1.0
        self._reset_period = reset_period
        self._reset_at = int(now) if reset_period == "NOW" else next_reset(reset_period, now)

    def reconfigure(self, half_life_s: int, reset_period: str, period_s: int, now: float) -> None:
        """slurm.conf was read again: what was used is forgotten otherwise; periods have another
        length from the end of this one on.
        """
        self.advance(now)
        self._set_decay(half_life_s, reset_period, now)
        self._next_period_s = period_s

    @property
    def enforced(self) -> bool:
        """Whether anything is to be asked: what is enforced, and somebody is known to
        accounting.
        """
        return self.options.associations and self._state().has_users

    # --- who is who -------------------------------------------------------------------------------

    def line(self, job: Job, partition: Partition) -> Line | str:
        """The limits for the job in the partition, or why it can have none. Who runs keeps his QOS,
        whatever his association may have by now.
        """
        known = self._known_line(job, partition, keeps_qos="qos" in job.lifted)
        return (
            self._known_line(job, partition, keeps_qos=True)
            if known is INVALID_QOS and job.is_active
            else known
        )

    def _charged_line(self, job: Job, partition: Partition) -> Line | str:
        """What the job counts in: who waits counts in his QOS, too, when his association has lost
        it.
        """
        line = self.line(job, partition)
        return self._known_line(job, partition, keeps_qos=True) if line is INVALID_QOS else line

    def _known_line(self, job: Job, partition: Partition, *, keeps_qos: bool) -> Line | str:
        key = (job.spec.account, job.user_id, job.spec.qos, partition.name, keeps_qos)
        known = self._lines.get(key)
        if known is None:
            known = self._lines[key] = self._make_line(job, partition, keeps_qos=keeps_qos)
            if isinstance(known, Line) and known.counts_time and not self._counts_time:
                self._counts_time = True
                self._catch_up()
        return known

    def _make_line(self, job: Job, partition: Partition, *, keeps_qos: bool) -> Line | str:
        state = self._state()
        user = self._user_name(job.user_id)
        account = job.spec.account or state.default_account(user) or ""
        own = state.find(account, user, partition.name)
        if own is None:
            return INVALID_ACCOUNT
        name = job.spec.qos or state.default_qos(own)
        qos = state.qos.get(name)
        if (
            self.options.qos
            and state.qos
            and (qos is None or (name not in state.allowed_qos(own) and not keeps_qos))
        ):
            return INVALID_QOS
        if not self.options.limits:
            return Line(())
        of_partition = state.qos.get(partition.qos) if partition.qos else None
        scopes = [each for each in (of_partition, qos) if each is not None]
        if len(scopes) > 1 and scopes[1].has("OverPartQOS"):
            scopes.reverse()
        if len(scopes) > 1 and scopes[0].id == scopes[1].id:
            scopes.pop()
        chain = [(each, self._use_of(each.id)) for each in state.chain(own)]
        in_qos = [(each, *self._uses_of(each, job.user_id, account)) for each in scopes]
        uses = tuple(use for _, use in chain) + tuple(use for _, *three in in_qos for use in three)
        maker = LineMaker(uses)
        for each, whole, of_user, of_account in in_qos:
            maker.add_qos(each, whole, of_user, of_account)
        maker.add_association(
            state.effective(own), chain, None if qos is None else qos.limit_factor
        )
        line = maker.made()
        if qos is not None:
            line.factor = qos.usage_factor
            line.safe_factor = qos.usage_factor if qos.has("UsageFactorSafe") else 1.0
        return line

    def _use_of(self, association_id: int) -> Use:
        found = self.of_association.get(association_id)
        if found is None:
            found = self.of_association[association_id] = Use(
                key=f"a:{association_id}", touched=self.touched
            )
        return found

    def _qos_use(self, qos: Qos) -> QosUse:
        found = self.of_qos.get(qos.name)
        if found is None:
            found = self.of_qos[qos.name] = QosUse(
                decays=not qos.has("NoDecay"), key=f"q:{qos.name}", touched=self.touched
            )
        return found

    def _uses_of(self, qos: Qos, user_id: int, account: str) -> tuple[Use, Use, Use]:
        found = self._qos_use(qos)
        return found.whole, found.of_user(user_id), found.of_account(account)

    # --- what a job needs -------------------------------------------------------------------------

    def amounts(
        self, job: Job, partition: Partition, held: Allocation | None = None
    ) -> dict[str, int]:
        """The resources that the job asks for, or would hold with the allocation."""
        wanted = tres_of(job, held)
        _, weights = self._totals.of(partition)
        wanted["billing"] = billing(wanted, weights, takes_largest=self._takes_largest)
        return {name: int(amount) for name, amount in wanted.items()}

    # --- may it be taken in? ----------------------------------------------------------------------

    def refusal(self, job: Job, partition: Partition, tasks: int) -> str:
        """Why the job is not taken in, "" if it is: too many are submitted, or (DenyOnLimit) it
        could never start.
        """
        line = self.line(job, partition)
        if isinstance(line, str):
            return ""  # who may submit where is another question
        for test in line.submit:
            if test.use.submitted + tasks > test.limit:
                return test.reason
        return self.denial(job, partition)

    @contextmanager
    def with_submitted(self, job: Job, partition: Partition) -> Iterator[None]:
        """For a while it is as if the job was taken in."""
        line = self.line(job, partition)
        uses = () if isinstance(line, str) else line.uses
        for use in uses:
            use.submitted += 1
        try:
            yield
        finally:
            for use in uses:
                use.submitted -= 1

    def denial(self, job: Job, partition: Partition) -> str:
        """The limit that the job could never keep within, where such jobs are refused
        (DenyOnLimit); "" if there is none.
        """
        line = self.line(job, partition)
        if isinstance(line, str) or not line.denies:
            return ""
        wanted = {
            **self.amounts(job, partition),
            "mem": int(asked_for(job, partition)["mem"]),
        }
        minutes = -(-(job.time_limit_s or YEAR) // 60)
        for test in line.denials:
            amount = wanted.get(test.tres, 0)
            if test.what in (What.MINS, What.RUN_MINS, What.JOB_MINS):
                breaks = amount * minutes > test.limit
            elif test.what in (What.WALL, What.JOB_WALL):
                breaks = minutes > test.limit
            elif test.what is What.PER_NODE:
                breaks = amount // max(wanted["node"], 1) > test.limit
            elif test.what is What.LEAST:
                breaks = amount < test.limit
            else:
                breaks = amount > test.limit
            if breaks and (test.tres or "time") not in job.lifted:
                return test.reason
        return ""

    # --- may it start? ----------------------------------------------------------------------------

    def before(self, job: Job, partition: Partition, now: float) -> str:
        """The limit that keeps the job from starting, whatever nodes there are; "" if there is
        none.
        """
        line = self.line(job, partition)
        if isinstance(line, str):
            return line
        if line.counts_time:
            self.advance(now)
        for test in line.before:
            what, limit = test.what, test.limit
            if what is What.JOBS:
                breaks = test.use.jobs >= limit
            elif what is What.WALL:
                test.use.bring(self.last, self.decay)
                breaks = test.use.wall_s // 60 >= limit
            else:
                breaks = (
                    job.time_limit_s is None or job.time_limit_s > limit * 60
                ) and "time" not in job.lifted
            if breaks:
                self._ask_for_time(what)
                return test.reason
        for test in line.nodes:
            if job.min_nodes > test.limit and "node" not in job.lifted:
                return test.reason
        return ""

    def most_nodes(self, job: Job, partition: Partition) -> int | None:
        """How many nodes the job may have at most, None for any number."""
        line = self.line(job, partition)
        if isinstance(line, str) or not line.nodes or "node" in job.lifted:
            return None
        return min(test.limit for test in line.nodes)

    def favoured_nodes(self, job: Job, partition: Partition) -> int:
        """The nodes that somebody uses already whose number of nodes is limited: more jobs there
        cost nothing of the limit.
        """
        line = self.line(job, partition)
        if isinstance(line, str):
            return 0
        return next(
            (test.use.nodes for test in line.nodes if test.use.counts_nodes and test.use.nodes), 0
        )

    def by_request(self, job: Job, partition: Partition, now: float, *, whole: bool = True) -> str:
        """The limit by resource that the job breaks by what it asks for, the first of several. Not
        `whole`: if it breaks one that no choice of nodes could help.
        """
        line = self.line(job, partition)
        if isinstance(line, str) or not line.after:
            return ""
        wanted = self.amounts(job, partition)
        found = self._broken(job, line, wanted, now, None, whole=whole)
        return (
            found if whole or not found else self._broken(job, line, wanted, now, None, whole=True)
        )

    def by_allocation(
        self, job: Job, partition: Partition, allocation: Allocation, now: float
    ) -> str:
        """The limit by resource that the job would break with the allocation."""
        line = self.line(job, partition)
        if isinstance(line, str) or not line.after:
            return ""
        return self._broken(
            job, line, self.amounts(job, partition, allocation), now, allocation, whole=True
        )

    @contextmanager
    def counting(self, job: Job, partition: Partition, allocation: Allocation) -> Iterator[None]:
        """For a while it is as if the job ran with the allocation."""
        line = self.line(job, partition)
        uses, factor = ((), 1.0) if isinstance(line, str) else (line.uses, line.factor)
        tres, seconds = (
            self.amounts(job, partition, allocation),
            (job.time_limit_s or YEAR) * factor,
        )
        for use in uses:
            use.take(job.job_id, tres, allocation.nodes)
            use.expect(tres, seconds)
        try:
            yield
        finally:
            for use in uses:
                use.give_back(job.job_id, tres)
                use.expect(tres, -seconds)

    def keeps_no_nodes(self, job: Job, partition: Partition) -> bool:
        """Whether its priority is too low for nodes to be kept for it (MinPrioThreshold)."""
        line = self.line(job, partition)
        if isinstance(line, str):
            return False
        return line.least_priority is not None and job.priority < line.least_priority

    def _broken(
        self,
        job: Job,
        line: Line,
        wanted: dict[str, int],
        now: float,
        allocation: Allocation | None,
        *,
        whole: bool,
    ) -> str:
        if line.counts_time:
            self.advance(now)
        lifted = job.lifted
        for test in line.after:
            tres = test.tres
            if not whole and (tres == "mem" or test.what in (What.LEAST, What.NODES)):
                # memory may turn out not to be counted, more may be allocated than asked for, and
                # nodes may be in use already
                continue
            if tres not in lifted and self._breaks(
                test, job, line, wanted.get(tres, 0), allocation
            ):
                self._ask_for_time(test.what)
                return test.reason
        return ""

    def _breaks(
        self, test: Test, job: Job, line: Line, amount: int, allocation: Allocation | None
    ) -> bool:
        what, use, tres, limit, _ = test
        if what is What.HELD:
            return bool(amount) and use.tres.get(tres, 0) + amount > limit
        if what is What.PER_JOB:
            return amount > limit
        if what is What.NODES:
            # no nodes were found: then none that are in use already are thought of
            if allocation is None:
                return use.nodes.bit_count() + job.min_nodes > limit
            return (use.nodes | allocation.nodes).bit_count() > limit
        if what is What.LEAST:
            return amount < limit
        if what is What.PER_NODE:
            return self._on_a_node(job, amount, allocation) > limit
        minutes = (job.time_limit_s or YEAR) // 60
        if what is What.JOB_MINS:
            return amount * minutes > limit
        if what is What.RUN_MINS:
            return bool(amount) and use.run_s.get(tres, 0) // 60 + amount * minutes > limit
        assert what is What.MINS
        use.bring(self.last, self.decay)
        used = int(use.used_s.get(tres, 0.0)) // 60
        if used >= limit:
            return True
        if not self.options.safe:
            return False
        return used + use.run_s.get(tres, 0) // 60 + amount * minutes * line.safe_factor > limit

    def time_may_let(self, job: Job, partition: Partition) -> bool:
        """Whether what was used keeps the job from starting, and will not for ever: it decays or is
        reset, and with nothing used there was room.
        """
        line = self.line(job, partition)
        if isinstance(line, str):
            return False
        wanted = self.amounts(job, partition)
        minutes = (job.time_limit_s or YEAR) // 60
        is_kept = False
        for test in (*line.before, *line.after):
            if test.what is What.WALL:
                is_broken, needed = self._is_used_up(test), 1
            elif test.what is What.MINS and test.tres not in job.lifted:
                amount = wanted.get(test.tres, 0)
                is_broken = self._breaks(test, job, line, amount, None)
                needed = (
                    max(1, int(amount * minutes * line.safe_factor)) if self.options.safe else 1
                )
            else:
                continue
            if is_broken:
                is_kept = True
                if (
                    needed > test.limit
                    or not test.use.decays
                    or (self.decay == 1.0 and self._reset_at is None)
                ):
                    return False
        return is_kept

    def _on_a_node(self, job: Job, amount: int, allocation: Allocation | None) -> int:
        """What a node gives on average, rounded down, as Slurm counts it (recorded from 22.05.8):
        of 3 CPUs on 2 nodes 1, however they are dealt.
        """
        nodes = self._nodes_of(job) if allocation is None else allocation.node_count
        return amount // max(nodes, 1)

    def _ask_for_time(self, what: What) -> None:
        if what in _TIMED:
            self._wake(self.last + self.period_s + 0.5)

    # --- sums -------------------------------------------------------------------------------------

    def note(self, job_id: int, now: float) -> None:
        """The job was added, has changed, or is forgotten: bring the sums in line."""
        if not self.enforced:
            return
        job = self.tables.jobs.get(job_id)
        charge = self._charges.get(job_id)
        if job is None or job.is_finished:
            if charge is not None:
                self._leave(charge, now)
            return
        partition = self.tables.partitions.get(job.partition)
        line = self._charged_line(job, partition) if partition is not None else INVALID_ACCOUNT
        if charge is not None and charge.line is not line:
            self._leave(charge, now)
            charge = None
        if isinstance(line, str):
            return
        if charge is None:
            charge = self._charges[job_id] = _Charge(job, line)
        tasks = job.array_tasks.bit_count() or 1
        if tasks != charge.tasks:
            for use in line.uses:
                use.submitted += tasks - charge.tasks
            charge.tasks = tasks
        if charge.accruing:
            self._set_accruing(charge, tasks if job.is_pending and job.priority > 0 else 0)
        if job.is_pending and not charge.accruing and job_id not in self._refused:
            self._unseen[job_id] = None
        runs = job.state in _RUNS and job.allocation is not None
        if runs != charge.runs:
            (self._begin if runs else self._end)(charge, now)
        elif runs and (limit_s := job.time_limit_s or YEAR) != charge.limit_s:
            self._expect(charge, limit_s - charge.limit_s)
            charge.limit_s = limit_s

    @staticmethod
    def _expect(charge: _Charge, seconds: int) -> None:
        """The job may go on for so much longer, or less long."""
        seconds = max(seconds, -charge.left_s)
        charge.left_s += seconds
        for use in charge.line.uses:
            use.expect(charge.tres, seconds * charge.line.factor)

    def _begin(self, charge: _Charge, now: float) -> None:
        self.advance(now)
        job = charge.job
        held = job.allocation
        assert held is not None
        assert job.start_time is not None
        charge.tres = self.amounts(job, self.tables.partitions[job.partition], held)
        charge.runs = True
        charge.limit_s = job.time_limit_s or YEAR
        since = self.last if self._saved_until is None else min(self.last, self._saved_until)
        charge.until = self._counted.pop(job.job_id, max(job.start_time, min(since, int(now))))
        self._running[job.job_id] = charge
        for use in charge.line.uses:
            use.take(job.job_id, charge.tres, held.nodes)
        self._expect(charge, charge.limit_s - (charge.until - job.start_time))
        if charge.line.budgets and not self.options.safe:
            self._watch(self.last + self.period_s + 0.5)

    def _end(self, charge: _Charge, now: float) -> None:
        self.advance(now)
        job = charge.job
        end = job.end_time if job.is_finished and job.end_time is not None else int(now)
        self._count(charge, max(end, charge.until))
        self._expect(charge, -charge.left_s)
        for use in charge.line.uses:
            use.give_back(job.job_id, charge.tres)
        charge.runs = False
        charge.tres = {}
        del self._running[job.job_id]

    def _count(self, charge: _Charge, until: int) -> None:
        """Count what the job has used up to then. As in 22.05.8, what it had while its nodes booted
        does not count, and with priority/basic nothing does.
        """
        job = charge.job
        if job.flags & JobFlag.CONFIGURING or not self.counts_use:
            return
        seconds = until - max(charge.until, job.start_time or 0)
        if seconds <= 0:
            return
        charge.until = until
        for use in charge.line.uses:
            use.charge(charge.tres, seconds, charge.line.factor, self.last, self.decay)
        self._expect(charge, -seconds)

    def _leave(self, charge: _Charge, now: float) -> None:
        if charge.runs:
            self._end(charge, now)
        for use in charge.line.uses:
            use.submitted -= charge.tasks
        self._set_accruing(charge, 0)
        self._refused.pop(charge.job.job_id, None)
        self._charges.pop(charge.job.job_id, None)

    def advance(self, now: float) -> None:
        """Count the periods that are over."""
        if self.period_s != self._next_period_s and now >= self.last + self.period_s:
            self._advance(self.last + self.period_s)
            self.period_s = self._next_period_s
        self._advance(now)

    def _advance(self, now: float) -> None:
        periods = (int(now) - self.last) // self.period_s
        if periods <= 0:
            return
        if not self._counts_time or not self._running:
            self.last += periods * self.period_s
            self._reset()
            return
        for _ in range(periods):
            self.last += self.period_s
            self._reset()
            self._catch_up()

    def _reset(self) -> None:
        """PriorityUsageResetPeriod: nothing has been used before the period that has just ended,
        unless a QOS says that its use stays.
        """
        if self._reset_at is None or self._reset_at > self.last:
            return
        self._reset_at = next_reset(self._reset_period, self.last)
        for use in self.of_association.values():
            use.forget()
        for qos in self.of_qos.values():
            if qos.whole.decays:
                for use in (qos.whole, *qos.by_user.values(), *qos.by_account.values()):
                    use.forget()

    def _catch_up(self) -> None:
        """Count what running jobs have used until the end of the last period."""
        for charge in self._running.values():
            self._count(charge, self.last)

    def rebuild(self, now: float) -> None:
        """Accounting has changed: work out all limits and sums again; what has been used stays."""
        self.advance(now)
        self._counted = {job_id: charge.until for job_id, charge in self._running.items()}
        before = (self.of_association, self.of_qos)
        self.of_association, self.of_qos = {}, {}
        self._lines.clear()
        charges, self._charges, self._running = self._charges, {}, {}
        self._counts_time = self._counts_always
        had = {job_id: charge.accruing for job_id, charge in charges.items() if charge.accruing}
        state = self._state()
        for association_id in state.associations:
            use = self._use_of(association_id)
            if association_id in before[0]:
                use.inherit(before[0][association_id])
        for qos in state.qos.values():
            found = self._qos_use(qos)
            if qos.name in before[1]:
                found.whole.inherit(before[1][qos.name].whole)
        self._give_saved()
        if not self.enforced:
            return
        self._make_lines()
        for job_id in self.tables.jobs:
            self.note(job_id, now)
            if job_id in had and job_id in self._charges:
                self._unseen.pop(job_id, None)
                self._set_accruing(self._charges[job_id], had[job_id])
        self._counted.clear()
        self._saved_until = None
        if self._counts_time:
            self._catch_up()

    def _make_lines(self) -> None:
        """All lines in use, so that it is known of which nodes are counted before the first job
        is.
        """
        for job in self.tables.jobs.values():
            if not job.is_finished:
                for name in job.partitions:
                    partition = self.tables.partitions.get(name)
                    if partition is not None:
                        self.line(job, partition)

    # --- running jobs -----------------------------------------------------------------------------

    def overdrawn(self, now: float) -> list[Job]:
        """Running jobs whose association or QOS has used up its minutes: they are ended. With
        `safe` only those start that can come to their end.
        """
        if self.options.safe or not self._counts_time:
            return []
        self.advance(now)
        found = []
        is_watching = False
        for charge in self._running.values():
            is_watching |= bool(charge.line.budgets)
            if any(self._is_used_up(test) for test in charge.line.budgets):
                found.append(charge.job)
        if is_watching:
            self._watch(self.last + self.period_s + 0.5)
        return found

    def _is_used_up(self, test: Test) -> bool:
        use = test.use
        use.bring(self.last, self.decay)
        return (
            use.wall_s if test.what is What.WALL else use.used_s.get(test.tres, 0.0)
        ) // 60 >= test.limit

    def running_in(self, use: Use) -> list[int]:
        """The running jobs that count there."""
        return [
            job_id
            for job_id, charge in self._running.items()
            if any(each is use for each in charge.line.uses)
        ]

    # --- age --------------------------------------------------------------------------------------

    def update_accrual(self, now: float) -> None:
        """See whose age counts, of as many pending jobs as limits allow (MaxJobsAccrue and the
        like).

        Jobs are checked once; who is refused then is checked again when a period ends. Where
        there are limits each task of an array counts alone, and gets a record of its own when its
        age begins to count.
        """
        period = (int(now) - self._origin) // self.period_s
        if period != self._settled:
            self._settled = period
            self._unseen.update(self._refused)
            self._refused.clear()
        for job_id in sorted(self._unseen):
            job, charge = self.tables.jobs.get(job_id), self._charges.get(job_id)
            if job is None or charge is None or not job.is_pending:
                del self._unseen[job_id]
            elif self._could_accrue(job, now):
                del self._unseen[job_id]
                self._grant_age(job, charge, now)

    def _grant_age(self, job: Job, charge: _Charge, now: float) -> None:
        tests = charge.line.accrue
        room = min((test.limit - test.use.accruing for test in tests), default=charge.tasks)
        while tests and charge.tasks > 1 and room > 0:
            own = self._split(job)
            self._let_accrue(own, self._charges[own.job_id], now)
            room -= 1
        if room > 0:
            self._let_accrue(job, charge, now)
        else:
            job.accrues = False
            self._unseen.pop(job.job_id, None)
            self._refused[job.job_id] = None

    def _let_accrue(self, job: Job, charge: _Charge, now: float) -> None:
        if not job.accrues:
            job.accrues, job.accrue_time = True, int(now)
        self._unseen.pop(job.job_id, None)
        self._set_accruing(charge, charge.tasks)

    @staticmethod
    def _set_accruing(charge: _Charge, tasks: int) -> None:
        """Of so many tasks of the job the age counts."""
        if tasks != charge.accruing:
            for use in charge.line.uses:
                use.accruing += tasks - charge.accruing
            charge.accruing = tasks

    @staticmethod
    def _could_accrue(job: Job, now: float) -> bool:
        return job.priority > 0 and job.eligible_time is not None and job.eligible_time <= now

    # --- saved state ------------------------------------------------------------------------------

    def forget_use(self, numbers: list[int], below: list[int], qos: list[str]) -> None:
        """What associations and qualities of service have used is 0; of what is above the
        associations, that much less.
        """
        associations = self._state()
        for number in numbers:
            own = self.of_association.get(number)
            if own is None or number not in associations.associations:
                continue
            for above in associations.chain(associations.associations[number])[1:]:
                use = self.of_association.get(above.id)
                if use is not None:
                    use.lessen(own.used_s, own.wall_s)
        for number in below:
            if number in self.of_association:
                self.of_association[number].forget()
        for name in qos:
            if name in self.of_qos:
                self.of_qos[name].whole.forget()

    def take_touched(self) -> dict[str, SavedUse]:
        """What has been used by those whose use has grown since this was asked last, by association
        ("a:17") and QOS ("q:normal").
        """
        found = {
            key: (use.as_of, dict(use.used_s), use.wall_s)
            for key, use in self.touched.items()
            if key
        }
        self.touched.clear()
        return found

    def restore(self, saved: dict[str, SavedUse]) -> None:
        """Go on from what was saved before a restart."""
        self._restored = dict(saved)
        # what ran then has gone on meanwhile; where nothing was saved, nothing of it is counted yet
        self._saved_until = max((as_of for as_of, _, _ in saved.values()), default=0)
        self._give_saved()

    def _give_saved(self) -> None:
        for key in list(self._restored):
            kind, _, name = key.partition(":")
            use = (
                self.of_association.get(int(name))
                if kind == "a"
                else (found.whole if (found := self.of_qos.get(name)) is not None else None)
            )
            if use is not None:
                use.as_of, used, use.wall_s = self._restored.pop(key)
                use.used_s = dict(used)
