"""What `scontrol show assoc_mgr` asks: users, associations and qualities of service as the
controller knows them, with their limits and use.

Place: views, pure. Follows: scontrol(1) "show assoc_mgr". Use is counted where
limits are enforced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.controller.enforcement.use import Use
from understudy.model.associations import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.controller.core.core import Core
    from understudy.controller.enforcement.use import QosUse
    from understudy.controller.priority.api import Standing
    from understudy.model.associations import Association, AssociationState
    from understudy.model.qos import Qos

_INHERITED_SHARES: Final = 0x7FFFFFFF


def user_rows(core: Core, _now: float) -> list[dict[str, Any]]:
    """A row for each user."""
    state = core.associations
    return [
        {
            "user_name": user.name,
            "user_id": core.users.user_id(user.name),
            "default_account": state.default_account(user.name) or "",
            "default_wckey": user.default_wckey,
            "admin_level": user.admin_level,
            "is_new": user.name != ROOT and user.creation_time >= int(core.start_time),
        }
        for user in state.users.values()
    ]


def association_rows(core: Core, now: float) -> list[dict[str, Any]]:
    """A row for each association, from the root down."""
    state = core.associations
    standings = {
        each.share.association_id: each for each in core.priorities.standings(now, asks=False)
    }
    used = _Figures(core, now)
    places = _places(state)
    rows: list[dict[str, Any]] = []
    for association in _in_order(state):
        own = state.effective(association)
        parent = state.associations.get(association.parent_id)
        use = used.of_association(association)
        siblings = state.children.get(association.parent_id, [association])
        rows.append(
            {
                "association_id": association.id,
                "cluster": association.cluster or state.cluster,
                "account": association.account,
                "user_name": association.user,
                "user_id": core.users.user_id(association.user) if association.user else None,
                "partition": association.partition,
                "is_default": association.is_default,
                "parent_account": "" if parent is None or association.user else parent.account,
                "parent_id": association.parent_id,
                "place": places[association.id],
                "shares": None if association.shares == _INHERITED_SHARES else association.shares,
                **_fair_share(standings.get(association.id), siblings, is_root=parent is None),
                **used.groups(association, use),
                "max_wall": own.max_wall,
                "max_tres_per_job": _pairs(own.max_tres_per_job),
                "max_tres_per_node": _pairs(own.max_tres_per_node),
                "max_tres_mins_per_job": _pairs(own.max_tres_mins_per_job),
                "min_prio_threshold": own.min_prio_threshold,
                "priority": own.priority or 0,
                "max_jobs": [own.max_jobs, use.jobs],
                "max_jobs_accrue": [own.max_jobs_accrue, use.accruing],
                "max_submit_jobs": [own.max_submit_jobs, use.submitted],
            }
        )
    return rows


def qos_rows(core: Core, now: float) -> list[dict[str, Any]]:
    """A row for each quality of service."""
    used = _Figures(core, now)
    rows: list[dict[str, Any]] = []
    for qos in sorted(core.associations.qos.values(), key=lambda each: each.id):
        known = used.of_qos(qos)
        whole = Use() if known is None else known.whole
        users = {} if known is None else {str(user): use for user, use in known.by_user.items()}
        accounts = {} if known is None else known.by_account
        rows.append(
            {
                "qos_id": qos.id,
                "name": qos.name,
                "raw_usage": whole.used_s.get("billing", 0.0),
                **used.groups(qos, whole),
                "max_wall": qos.max_wall,
                "max_tres_per_job": _pairs(qos.max_tres_per_job),
                "max_tres_per_node": _pairs(qos.max_tres_per_node),
                "max_tres_mins_per_job": _pairs(qos.max_tres_mins_per_job),
                "min_prio_threshold": qos.min_prio_threshold,
                "min_tres_per_job": _pairs(qos.min_tres_per_job),
                "preempt_mode": "OFF"
                if qos.preempt_mode == "cluster"
                else qos.preempt_mode.upper(),
                "priority": qos.priority,
                "by_account": [
                    used.within(
                        name,
                        use,
                        (
                            qos.max_jobs_per_account,
                            qos.max_jobs_accrue_per_account,
                            qos.max_submit_jobs_per_account,
                        ),
                        qos.max_tres_per_account,
                    )
                    for name, use in accounts.items()
                ],
                "by_user": [
                    used.within(
                        name,
                        use,
                        (
                            qos.max_jobs_per_user,
                            qos.max_jobs_accrue_per_user,
                            qos.max_submit_jobs_per_user,
                        ),
                        qos.max_tres_per_user,
                    )
                    for name, use in users.items()
                ],
            }
        )
    return rows


class _Figures:
    """What is held and used at present, by association and QOS."""

    def __init__(self, core: Core, now: float) -> None:
        self._limits = core.job_limits
        self._jobs = core.tables.jobs
        self._tres = [
            name for name, _ in sorted(core.associations.tres.items(), key=lambda item: item[1])
        ]
        if self._limits is not None:
            self._limits.advance(now)

    def of_association(self, association: Association) -> Use:
        found = None if self._limits is None else self._limits.of_association.get(association.id)
        return found or Use()

    def of_qos(self, qos: Qos) -> QosUse | None:
        return None if self._limits is None else self._limits.of_qos.get(qos.name)

    def groups(self, limits: Association | Qos, use: Use) -> dict[str, Any]:
        """The limits on a whole group, each with what its jobs have of it."""
        if self._limits is not None:
            use.bring(self._limits.last, self._limits.decay)
        return {
            "grp_jobs": [limits.grp_jobs, use.jobs],
            "grp_jobs_accrue": [limits.grp_jobs_accrue, use.accruing],
            "grp_submit_jobs": [limits.grp_submit_jobs, use.submitted],
            "grp_wall": [limits.grp_wall, use.wall_s / 60],
            "grp_tres": self._by_tres(limits.grp_tres, self._held(use)),
            "grp_tres_mins": self._by_tres(
                limits.grp_tres_mins,
                {name: int(amount) // 60 for name, amount in use.used_s.items()},
            ),
            "grp_tres_run_mins": self._by_tres(
                limits.grp_tres_run_mins,
                {name: int(amount) // 60 for name, amount in use.run_s.items()},
            ),
        }

    def within(
        self,
        name: str,
        use: Use,
        limits: tuple[int | None, int | None, int | None],
        tres: Mapping[str, int],
    ) -> list[Any]:
        """What one user or account has of a QOS."""
        jobs, accruing, submitted = limits
        return [
            name,
            [jobs, use.jobs],
            [accruing, use.accruing],
            [submitted, use.submitted],
            self._by_tres(tres, self._held(use)),
        ]

    def _by_tres(self, limits: Mapping[str, int], used: Mapping[str, float]) -> list[list[Any]]:
        return [[name, limits.get(name), used.get(name, 0)] for name in self._tres]

    def _held(self, use: Use) -> dict[str, int]:
        """Nodes are counted once, however many of its jobs share one."""
        if not use.tres.get("node"):
            return use.tres
        nodes = 0
        for job_id in self._limits.running_in(use) if self._limits is not None else ():
            held = self._jobs[job_id].allocation
            nodes |= 0 if held is None else held.nodes
        return {**use.tres, "node": nodes.bit_count()}


def _fair_share(
    standing: Standing | None, siblings: list[Association], *, is_root: bool
) -> dict[str, Any]:
    """What nobody has worked out yet is shown as 1; with classic fair share there are no factors
    here.
    """
    if standing is None:
        own = [each.shares for each in siblings if each.shares != _INHERITED_SHARES]
        found = dict.fromkeys(
            ("normal_shares", "fair_share", "raw_usage", "normal_usage", "effective_usage"), 0.0
        )
        return {**found, "level_shares": sum(own)}
    return {
        "normal_shares": standing.normal_shares,
        "level_shares": 1 if is_root else standing.level_shares,
        "fair_share": standing.factor if standing.is_tree else 0.0,
        "raw_usage": standing.raw_usage,
        "normal_usage": 1.0 if is_root or standing.normal_usage is None else standing.normal_usage,
        "effective_usage": 1.0 if standing.effective_usage is None else standing.effective_usage,
    }


def _pairs(limits: Mapping[str, int]) -> list[list[Any]]:
    return [[name, limit] for name, limit in limits.items()]


def _in_order(state: AssociationState) -> list[Association]:
    """From the root down; of siblings users come first, each kind by name."""
    found: list[Association] = []
    waiting = [
        root for root in state.associations.values() if root.parent_id not in state.associations
    ]
    while waiting:
        association = waiting.pop()
        found.append(association)
        waiting += sorted(
            state.children[association.id],
            key=lambda each: (not each.user, each.account, each.user, each.partition),
            reverse=True,
        )
    return found


def _places(state: AssociationState) -> dict[int, int]:
    """Where each association's branch begins if both ends of all branches are counted, the one made
    last first.
    """
    found: dict[int, int] = {}
    count = 0
    waiting = [
        (root, False)
        for root in state.associations.values()
        if root.parent_id not in state.associations
    ]
    while waiting:
        association, is_end = waiting.pop()
        count += 1
        if is_end:
            continue
        found[association.id] = count
        waiting.append((association, True))
        waiting += [
            (child, False)
            for child in sorted(state.children[association.id], key=lambda each: each.id)
        ]
    return found
