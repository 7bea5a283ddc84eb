"""What sprio and sshare ask of priorities: the parts of each waiting job's, and each association's
place in fair share.

Place: views, pure. Follows: sprio(1), sshare(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.controller.facts.job import tres_allocated
from understudy.controller.facts.tres import amounts
from understudy.model.associations import SHARES_OF_PARENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.core.core import Core
    from understudy.controller.priority.api import Factors, Standing
    from understudy.controller.tables.job import Job
    from understudy.model.associations import Association

_NAMES: Final = ("age", "association", "fair_share", "job_size", "partition", "qos")


def priority_rows(core: Core, now: float) -> list[dict[str, Any]]:
    """A row for each job whose priority is calculated and each partition that it names, as far as
    it may run.
    """
    rows: list[dict[str, Any]] = []
    jobs = [
        *core.tables.pending.values(),
        *(core.tables.running.values() if core.priorities.includes_running else ()),
    ]
    for job in sorted(jobs, key=lambda job: job.job_id):
        eligible = job.shown_eligible_time
        may_start = eligible is not None and eligible <= now
        if (
            job.priority
            and (may_start or core.priorities.includes_ineligible)
            and not job.is_finished
        ):
            rows += _rows_of(core, job)
    return rows


def _rows_of(core: Core, job: Job) -> Iterable[dict[str, Any]]:
    weights = core.priorities.weights()
    for name in job.partitions if job.is_pending else (job.partition,):
        factors = None if job.admin_priority is not None else core.priorities.factors(job, name)
        yield {
            "job_id": job.job_id,
            "partition": name,
            "user_name": core.users.user_name(job.user_id),
            "user_id": job.user_id,
            "priority": job.priority if factors is None else factors.total,
            "is_set": factors is None,
            "nice": factors.nice if factors is not None else 0,
            **_parts(factors, weights),
        }


def _parts(factors: Factors | None, weights: dict[str, float]) -> dict[str, Any]:
    """What the factors are and contribute; those without a weight are not worked out."""
    if factors is None:
        return {
            "site": 0,
            **{f"{kind}_{name}": 0.0 for name in _NAMES for kind in ("weighted", "normal")},
            "weighted_tres": [],
            "normal_tres": [],
        }
    return {
        "site": factors.site,
        **{f"weighted_{name}": getattr(factors, f"weighted_{name}") for name in _NAMES},
        **{
            f"normal_{name}": getattr(factors, name) if weights.get(name) else 0.0
            for name in _NAMES
        },
        "weighted_tres": [[name, amount] for name, amount in factors.tres.items()],
        "normal_tres": [[name, amount] for name, amount in factors.normal_tres.items()],
    }


def share_rows(core: Core, now: float) -> list[dict[str, Any]]:
    """A row for each association, from the root down; of siblings users come first, each kind by
    name.
    """
    standings = core.priorities.standings(now)
    if not standings:
        return _bare_rows(core)
    below: dict[int, list[Standing]] = {}
    for standing in standings:
        below.setdefault(standing.share.parent_id, []).append(standing)
    known = core.associations
    expected, used = _run_minutes(core, now), _used_minutes(core, now)
    rows: list[dict[str, Any]] = []
    waiting = [(0, each) for each in reversed(below.get(0, []))]
    while waiting:
        depth, standing = waiting.pop()
        share = standing.share
        association = known.associations.get(share.association_id)
        rows.append(
            {
                "association_id": share.association_id,
                "parent_id": share.parent_id,
                "cluster": known.cluster,
                "account": share.account,
                "user": share.user,
                "partition": share.partition,
                "shares": share.shares,
                "normal_shares": standing.normal_shares,
                "raw_usage": standing.raw_usage,
                "normal_usage": standing.normal_usage,
                "effective_usage": standing.effective_usage,
                "fair_share": standing.factor,
                "level_fair_share": standing.level_fair_share,
                "is_tree": standing.is_tree,
                "depth": depth,
                "grp_tres_mins": [
                    [name, amount] for name, amount in association.grp_tres_mins.items()
                ]
                if association is not None
                else [],
                "grp_tres_raw": [
                    [name, used.get(share.association_id, {}).get(name, 0)] for name in known.tres
                ],
                "tres_run_mins": [
                    [name, expected.get(share.association_id, {}).get(name, 0)]
                    for name in known.tres
                ],
            }
        )
        siblings = sorted(
            below.get(share.association_id, []),
            key=lambda each: (not each.share.user, each.share.account, each.share.user),
        )
        waiting += [(depth + 1, each) for each in reversed(siblings)]
    return rows


def _bare_rows(core: Core) -> list[dict[str, Any]]:
    """Associations as they are, where priorities know nothing of shares."""
    known = core.associations
    below: dict[int, list[Association]] = {}
    for association in known.associations.values():
        below.setdefault(association.parent_id, []).append(association)
    rows: list[dict[str, Any]] = []
    waiting = [(0, each) for each in below.get(0, [])]
    nothing = [[name, 0] for name in known.tres]
    while waiting:
        depth, each = waiting.pop()
        rows.append(
            {
                "association_id": each.id,
                "parent_id": each.parent_id,
                "cluster": known.cluster,
                "account": each.account,
                "user": each.user,
                "partition": each.partition,
                "shares": None if each.shares == SHARES_OF_PARENT else each.shares,
                "normal_shares": None,
                "raw_usage": 0.0,
                "normal_usage": None,
                "effective_usage": 0.0,
                "fair_share": 0.0,
                "level_fair_share": 0.0,
                "is_tree": True,
                "depth": depth,
                "grp_tres_mins": [[name, amount] for name, amount in each.grp_tres_mins.items()],
                "grp_tres_raw": nothing,
                "tres_run_mins": nothing,
            }
        )
        siblings = sorted(
            below.get(each.id, []),
            key=lambda each: (not each.user, each.account, each.user),
            reverse=True,
        )
        waiting += [(depth + 1, sibling) for sibling in siblings]
    return rows


def _used_minutes(core: Core, now: float) -> dict[int, dict[str, int]]:
    """What has been used, in minutes, by association and resource; as far as it is counted."""
    limits = core.job_limits
    if limits is None:
        return {}
    limits.advance(now)
    found: dict[int, dict[str, int]] = {}
    for association_id, use in limits.of_association.items():
        use.bring(limits.last, limits.decay)
        found[association_id] = {name: int(amount) // 60 for name, amount in use.used_s.items()}
    return found


def _run_minutes(core: Core, now: float) -> dict[int, dict[str, int]]:
    """What running jobs may still use until their limits, in minutes, by association; as of the
    last period where it is counted.
    """
    limits = core.job_limits
    if limits is not None and limits.enforced and core.settings.enforced.limits:
        limits.advance(now)
        return {
            each: {name: int(amount) // 60 for name, amount in use.run_s.items()}
            for each, use in limits.of_association.items()
        }
    state = core.associations
    found: dict[int, dict[str, int]] = {}
    for job in core.tables.running.values():
        user = core.users.user_name(job.user_id)
        association = state.find(
            job.spec.account or state.default_account(user) or "", user, job.partition
        )
        if association is None or job.end_time is None or job.end_time <= now:
            continue
        left = job.end_time - int(now)
        for each in state.chain(association):
            sums = found.setdefault(each.id, {})
            for name, amount in amounts(tres_allocated(core, job, now)).items():
                sums[name] = sums.get(name, 0) + amount * left // 60
    return found
