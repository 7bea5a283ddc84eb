"""What was deleted and is still on record: `sacctmgr show ... withdeleted`, and what comes back
when it is added again.

Place: the core of the accounting daemon, pure. As in Slurm, what is deleted within a day of its
making, and under which no job ever was, is forgotten at once. All else stays, without its limits,
and has its number, place and time of making again when it is added again.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.accounting.ledger import Deleted, Ledger
from understudy.accounting.tree import Tree
from understudy.model.associations import Association

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.accounting.ledger import Draft

_DAY_S: Final = 86400
KEPT: Final = tuple(each.name for each in fields(Deleted))


def keep(
    before: Ledger, after: Ledger, now: int, has_jobs: Callable[[str, list[Any]], bool]
) -> None:
    """Note in `after` what a deletion took away. `has_jobs` says whether there were jobs of any of
    some associations, clusters, qos or wckeys.
    """
    gone: dict[str, dict[Any, Any]] = {}
    for name in KEPT:
        left = getattr(after, name)
        gone[name] = {key: each for key, each in getattr(before, name).items() if key not in left}
    tree = Tree(with_deleted(before))
    # those deleted before, too
    below = {
        lower.id: None for top in gone["associations"].values() for lower in (top, *tree.below(top))
    }
    is_used = bool(below) and has_jobs("associations", list(below))
    for name, records in gone.items():
        uses = (
            is_used
            if name in {"associations", "accounts", "users"}
            else bool(records) and has_jobs(name, list(records))
        )
        kept: dict[Any, Any] = getattr(after.deleted, name)
        for key, each in records.items():
            cluster = before.clusters.get(getattr(each, "cluster", ""))
            # it stays or goes with its cluster
            if cluster is not None and cluster.name in gone["clusters"]:
                is_kept = cluster.name in after.deleted.clusters
            else:
                is_kept = uses or each.creation_time <= now - _DAY_S
            if is_kept:
                kept[key] = _bare(each, now)


def _bare(record: Any, now: int) -> Any:
    """What is left of it."""
    if isinstance(record, Association):
        place = {
            name: getattr(record, name)
            for name in (
                "id",
                "cluster",
                "account",
                "user",
                "partition",
                "parent_id",
                "position",
                "creation_time",
            )
        }
        return Association(**place, mod_time=now)
    changes: dict[str, Any] = {"coordinates": ()} if hasattr(record, "coordinates") else {}
    if hasattr(record, "mod_time"):
        changes["mod_time"] = now
    return msgspec.structs.replace(record, **changes)


def with_deleted(ledger: Ledger) -> Ledger:
    """A ledger in which what was deleted is there, too; to look at."""
    merged = ledger.copy()
    for name in KEPT:
        table = getattr(merged, name)
        for key, each in getattr(ledger.deleted, name).items():
            table.setdefault(key, each)
    return merged


def again(draft: Draft, table: str, **identity: str) -> Any | None:
    """The deleted record with these fields, which is deleted no longer; None if there is none."""
    kept: dict[Any, Any] = getattr(draft.ledger.deleted, table)
    key = next(
        (
            key
            for key, each in kept.items()
            if all(getattr(each, name) == value for name, value in identity.items())
        ),
        None,
    )
    return None if key is None else kept.pop(key)


def new_association(
    draft: Draft, above: Association, user: str = "", partition: str = "", *, account: str = ""
) -> tuple[Association, bool]:
    """An association below another, by default of the same account, and whether it has yet to be
    given a place: not one that was there before.
    """
    account = account or above.account
    old = again(
        draft,
        "associations",
        cluster=above.cluster,
        account=account,
        user=user,
        partition=partition,
    )
    if old is None:
        number = draft.number("associations")
        return Association(
            number, above.cluster, account, user, partition, above.id, creation_time=draft.now
        ), True
    return msgspec.structs.replace(old, parent_id=above.id), old.parent_id != above.id
