"""Which limits hold for jobs of one user, account and QOS in one partition, in the order in which
they are looked at.

Place: enforcement, pure. The partition's QOS comes before the job's (unless that has
OverPartQOS), then the association and those above it. A limit that a QOS states is not looked for
further on; Grp* limits of associations hold at each level, Max* ones only at the lowest, which has
inherited them. Follows: sacctmgr(1); Slurm's documentation of resource limits.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from understudy.controller.enforcement import reasons

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.enforcement.use import Use
    from understudy.model.associations import Association
    from understudy.model.qos import Qos

_TRES: Final = ("cpu", "mem", "energy", "node", "billing")  # as they are numbered; others follow


class What(IntEnum):
    """What a test compares with its limit."""

    JOBS = 0  # running jobs
    WALL = 1  # minutes used
    JOB_WALL = 2  # the job's time limit in minutes
    HELD = 3  # what is held, with what the job would hold
    NODES = 4  # nodes in use, each once
    RUN_MINS = 5  # what running jobs may still use until their limits, with the job
    MINS = 6  # what has been used
    JOB_MINS = 7
    PER_JOB = 8
    PER_NODE = 9
    LEAST = 10


class Test(NamedTuple):
    """One limit. `tres`: of what, "" for jobs and times."""

    what: What
    use: Use
    tres: str
    limit: int
    reason: str


# In this order a job is held against limits that it could never keep within (DenyOnLimit), those of
# one group resource by resource.
_DENIALS: Final = {
    reasons.QOS: (
        *(
            ("per_account",),
            ("per_user", "grp"),
            ("mins_per_job",),
            ("grp_mins",),
            ("grp_run_mins",),
            ("wall",),
            ("grp_wall",),
        ),
        *(("per_job",), ("per_node",), ("min",)),
    ),
    reasons.ASSOCIATION: (
        ("grp",),
        ("grp_mins",),
        ("grp_run_mins",),
        ("grp_wall",),
        ("per_job",),
        ("per_node",),
        ("mins_per_job",),
        ("wall",),
    ),
}
# In this order the limits are looked at that say how many nodes a job gets at most.
_MOST_NODES: Final = ("per_account", "per_job", "per_user", "grp")


class Line:
    """`uses`: where its jobs count. `submit`: limits of submitted jobs; `accrue`: of pending jobs
    whose age counts; `before`: those that need not know what the job would get; `nodes`: most nodes
    of a job; `after`: limits by resource; `budgets`: minutes that, once used up, end running jobs.
    `denies`: jobs that could never keep within `denials` are not taken in. `max_wall`: minutes,
    given to jobs without a time limit. `counts_time`: time that passes may bring a job within its
    limits. `least_priority`: no nodes are kept for jobs below (MinPrioThreshold).
    """

    __slots__ = (
        "accrue",
        "after",
        "before",
        "budgets",
        "counts_time",
        "denials",
        "denies",
        "factor",
        "least_priority",
        "max_wall",
        "nodes",
        "safe_factor",
        "submit",
        "uses",
    )

    def __init__(self, uses: tuple[Use, ...]) -> None:
        self.uses = uses
        self.submit: list[Test] = []
        self.accrue: list[Test] = []
        self.budgets: list[Test] = []
        self.before: list[Test] = []
        self.nodes: list[Test] = []
        self.after: list[Test] = []
        self.denials: list[Test] = []
        self.denies = self.counts_time = False
        self.max_wall: int | None = None
        self.least_priority: int | None = None
        self.factor = self.safe_factor = 1.0


class LineMaker:
    """Collects the limits of one line, scope by scope."""

    def __init__(self, uses: tuple[Use, ...]) -> None:
        self.line = Line(uses)
        # what a QOS has said holds, whatever those behind it say
        self._said: set[tuple[str, str]] = set()
        # of the scope that is being added, those that a job may be denied for
        self._forms: list[tuple[str, Test]] = []
        self._nodes: list[tuple[str, Test]] = []  # the same, those on nodes

    def add_qos(self, qos: Qos, whole: Use, user: Use, account: Use) -> None:
        """The limits of a QOS."""
        line = self.line
        self._add_qos_counts(qos, whole, user, account)
        if qos.min_prio_threshold is not None and line.least_priority is None:
            line.least_priority = qos.min_prio_threshold
        self._add_qos_tres(qos, whole, user, account)
        if qos.max_wall is not None and line.max_wall is None:
            line.max_wall = qos.max_wall
        line.denies |= qos.has("DenyOnLimit")
        self._nodes.sort(key=lambda each: _MOST_NODES.index(each[0]))
        self._end_scope(reasons.QOS)

    def _add_qos_counts(self, qos: Qos, whole: Use, user: Use, account: Use) -> None:
        """Those on numbers of jobs and on times."""
        line, one = self.line, self._number_of_qos
        one(
            line.submit,
            What.JOBS,
            account,
            "submit_account",
            qos.max_submit_jobs_per_account,
            "MaxSubmitJobsPerAccount",
        )
        one(
            line.submit,
            What.JOBS,
            whole,
            "grp_submit",
            qos.grp_submit_jobs,
            "QOSGrpSubmitJobsLimit",
        )
        one(
            line.submit,
            What.JOBS,
            user,
            "submit",
            qos.max_submit_jobs_per_user,
            "QOSMaxSubmitJobPerUserLimit",
        )
        one(line.accrue, What.JOBS, account, "accrue_account", qos.max_jobs_accrue_per_account, "")
        one(line.accrue, What.JOBS, whole, "grp_accrue", qos.grp_jobs_accrue, "")
        one(line.accrue, What.JOBS, user, "accrue", qos.max_jobs_accrue_per_user, "")
        one(line.before, What.JOBS, whole, "grp_jobs", qos.grp_jobs, "QOSGrpJobsLimit")
        one(line.before, What.WALL, whole, "grp_wall", qos.grp_wall, "QOSGrpWallLimit")
        one(
            line.before,
            What.JOBS,
            account,
            "jobs_account",
            qos.max_jobs_per_account,
            "MaxJobsPerAccount",
        )
        one(line.before, What.JOBS, user, "jobs", qos.max_jobs_per_user, "QOSMaxJobsPerUserLimit")
        one(
            line.before, What.JOB_WALL, whole, "wall", qos.max_wall, "QOSMaxWallDurationPerJobLimit"
        )

    def _add_qos_tres(self, qos: Qos, whole: Use, user: Use, account: Use) -> None:
        """Those on TRES."""
        each = self._each_of_qos
        each(What.MINS, whole, "grp_mins", qos.grp_tres_mins)
        each(What.HELD, whole, "grp", qos.grp_tres)
        each(What.RUN_MINS, whole, "grp_run_mins", qos.grp_tres_run_mins)
        each(What.JOB_MINS, whole, "mins_per_job", qos.max_tres_mins_per_job)
        each(What.PER_JOB, whole, "per_job", qos.max_tres_per_job)
        each(What.PER_NODE, whole, "per_node", qos.max_tres_per_node)
        each(What.LEAST, whole, "min", qos.min_tres_per_job)
        each(What.HELD, account, "per_account", qos.max_tres_per_account)
        each(What.HELD, user, "per_user", qos.max_tres_per_user)

    def _number_of_qos(
        self, tests: list[Test], what: What, use: Use, name: str, limit: int | None, reason: str
    ) -> None:
        self._number(tests, what, use, name, limit, reason)
        if limit is not None:
            self._said.add((name, ""))

    def _each_of_qos(self, what: What, use: Use, form: str, limits: Mapping[str, int]) -> None:
        self._count_nodes(what, use, limits)
        for tres, limit in limits.items():
            if (form, tres) not in self._said:
                self._said.add((form, tres))
                self._by_tres(what, use, form, tres, limit, reasons.QOS)

    def add_association(
        self, own: Association, chain: list[tuple[Association, Use]], limit_factor: float | None
    ) -> None:
        """The limits of an association. `own`: with what it inherits; `chain`: itself, its parent
        ... as they are, with their use.
        """
        line, factor = self.line, 1.0 if limit_factor is None or limit_factor < 0 else limit_factor
        for level, (association, use) in enumerate(chain):
            is_own = not level
            if is_own:
                self._number(
                    line.submit,
                    What.JOBS,
                    use,
                    "submit",
                    own.max_submit_jobs,
                    "AssocMaxSubmitJobLimit",
                )
            self._number(
                line.submit,
                What.JOBS,
                use,
                "grp_submit",
                association.grp_submit_jobs,
                "AssocGrpSubmitJobsLimit",
            )
            if is_own:
                self._number(line.accrue, What.JOBS, use, "accrue", own.max_jobs_accrue, "")
            self._number(line.accrue, What.JOBS, use, "grp_accrue", association.grp_jobs_accrue, "")
            self._number(
                line.before, What.JOBS, use, "grp_jobs", association.grp_jobs, "AssocGrpJobsLimit"
            )
            self._number(
                line.before, What.WALL, use, "grp_wall", association.grp_wall, "AssocGrpWallLimit"
            )
            if is_own:
                self._number(line.before, What.JOBS, use, "jobs", own.max_jobs, "AssocMaxJobsLimit")
                self._number(
                    line.before,
                    What.JOB_WALL,
                    use,
                    "wall",
                    own.max_wall,
                    "AssocMaxWallDurationPerJobLimit",
                )
                if line.least_priority is None:
                    line.least_priority = own.min_prio_threshold
                if own.max_wall is not None and line.max_wall is None:
                    line.max_wall = own.max_wall
            self._each(What.MINS, use, "grp_mins", association.grp_tres_mins, 1.0)
            self._each(What.HELD, use, "grp", association.grp_tres, factor)
            self._each(What.RUN_MINS, use, "grp_run_mins", association.grp_tres_run_mins, 1.0)
            if is_own:
                self._each(What.JOB_MINS, use, "mins_per_job", own.max_tres_mins_per_job, 1.0)
                self._each(What.PER_JOB, use, "per_job", own.max_tres_per_job, factor)
                self._each(What.PER_NODE, use, "per_node", own.max_tres_per_node, 1.0)
            self._end_scope(reasons.ASSOCIATION)

    def _number(
        self, tests: list[Test], what: What, use: Use, name: str, limit: int | None, reason: str
    ) -> None:
        if limit is not None and (name, "") not in self._said:
            test = Test(what, use, "", limit, reason)
            tests.append(test)
            self._forms.append((name, test))

    def _each(
        self, what: What, use: Use, form: str, limits: Mapping[str, int], factor: float
    ) -> None:
        self._count_nodes(what, use, limits)
        for tres, limit in limits.items():
            if (form, tres) not in self._said:
                self._by_tres(what, use, form, tres, int(limit * factor), reasons.ASSOCIATION)

    @staticmethod
    def _count_nodes(what: What, use: Use, limits: Mapping[str, int]) -> None:
        """Where the nodes of a group are limited, those of each of its jobs count: also of jobs
        that a QOS frees from that limit.
        """
        if what is What.HELD and "node" in limits:
            use.counts_nodes = True

    def _by_tres(self, what: What, use: Use, form: str, tres: str, limit: int, owner: str) -> None:
        reason = reasons.of_tres(owner, form, tres)
        self._forms.append((form, Test(what, use, tres, limit, reason)))
        if tres == "node" and what in (What.HELD, What.PER_JOB):
            self._nodes.append((form, Test(What.NODES, use, tres, limit, reason)))
            if what is What.PER_JOB:
                return
            what = What.NODES
        self.line.after.append(Test(what, use, tres, limit, reason))
        self.line.counts_time |= what in (What.MINS, What.RUN_MINS)

    def _end_scope(self, owner: str) -> None:
        """Put the scope's limits into the order in which submissions are held against them."""
        self.line.nodes += [test for _, test in self._nodes]
        self._nodes.clear()
        tres_order: dict[str, int] = {}
        for _, test in self._forms:
            tres_order.setdefault(
                test.tres,
                _TRES.index(test.tres) if test.tres in _TRES else len(_TRES) + len(tres_order),
            )
        for group in _DENIALS[owner]:
            own = [
                (tres_order[test.tres], group.index(form), test)
                for form, test in self._forms
                if form in group
            ]
            self.line.denials += [test for _, _, test in sorted(own, key=lambda each: each[:2])]
        self._forms.clear()

    def made(self) -> Line:
        """The line, complete."""
        line = self.line
        line.counts_time |= any(test.what is What.WALL for test in line.before)
        line.budgets = [
            test for test in (*line.before, *line.after) if test.what in (What.WALL, What.MINS)
        ]
        return line
