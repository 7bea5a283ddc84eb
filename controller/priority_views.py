"""What sprio and sshare ask of priorities: the parts of each waiting job's, and each association's place in fair share.

Place: the controller's core, pure. Follows: sprio(1), sshare(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.controller.accounting_records import amounts
from understudy.controller.job_columns import tres_allocated

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.controller.core import Core
    from understudy.controller.job import Job
    from understudy.controller.priority.api import Factors, Standing


_NAMES: Final = ("age", "association", "fair_share", "job_size", "partition", "qos")


def priority_rows(core: Core, now: float) -> list[dict[str, Any]]:
    """A row for each waiting job and each partition that it names, as far as it may run."""
    rows: list[dict[str, Any]] = []
    for job in sorted(core.tables.pending.values(), key=lambda job: job.job_id):
        if job.priority and job.eligible_time is not None and job.eligible_time <= now and not job.is_finished:
            rows += _rows_of(core, job)
    return rows


def _rows_of(core: Core, job: Job) -> Iterable[dict[str, Any]]:
    weights = core.priorities.weights()
    for name in job.partitions:
        factors = None if job.admin_priority is not None else core.priorities.factors(job, name)
        priority = job.partition_priorities.get(name, job.priority) if job.partition_priorities else job.priority
        yield {
            "job_id": job.job_id,
            "partition": name,
            "user_name": core.users.user_name(job.user_id),
            "user_id": job.user_id,
            "priority": priority,
            "is_set": factors is None,
            "nice": job.nice if factors is not None else 0,
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
        **{f"normal_{name}": getattr(factors, name) if weights.get(name) else 0.0 for name in _NAMES},
        "weighted_tres": [[name, amount] for name, amount in factors.tres.items()],
        "normal_tres": [[name, amount] for name, amount in factors.normal_tres.items()],
    }


def share_rows(core: Core, now: float) -> list[dict[str, Any]]:
    """A row for each association, from the root down; of siblings users come first, each kind by name."""
    standings = core.priorities.standings()
    if not standings:
        return []
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
                "grp_tres_mins": [[name, amount] for name, amount in association.grp_tres_mins.items()] if association is not None else [],
                "grp_tres_raw": [[name, used.get(share.association_id, {}).get(name, 0)] for name in known.tres],
                "tres_run_mins": [[name, expected.get(share.association_id, {}).get(name, 0)] for name in known.tres],
            }
        )
        siblings = sorted(below.get(share.association_id, []), key=lambda each: (not each.share.user, each.share.account, each.share.user))
        waiting += [(depth + 1, each) for each in reversed(siblings)]
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
    """What running jobs may still use until their limits, in minutes, by association; as of the last period where it is counted."""
    limits = core.job_limits
    if limits is not None and limits.enforced and core.settings.enforced.limits:
        limits.advance(now)
        return {each: {name: int(amount) // 60 for name, amount in use.run_s.items()} for each, use in limits.of_association.items()}
    state = core.associations
    found: dict[int, dict[str, int]] = {}
    for job in core.tables.running.values():
        user = core.users.user_name(job.user_id)
        association = state.find(job.spec.account or state.default_account(user) or "", user, job.partition)
        if association is None or job.end_time is None or job.end_time <= now:
            continue
        left = job.end_time - int(now)
        for each in state.chain(association):
            sums = found.setdefault(each.id, {})
            for name, amount in amounts(tres_allocated(core, job, now)).items():
                sums[name] = sums.get(name, 0) + amount * left // 60
    return found
