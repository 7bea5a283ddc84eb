"""The `where` of a request: which associations, accounts, users and qualities of service it means.

Place: the core of the accounting daemon, pure. A condition is a list of values; none of a name
means any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from understudy.accounting.ledger import Account, Ledger
    from understudy.accounting.tree import Tree
    from understudy.model.associations import AccountingUser, Association
    from understudy.model.qos import Qos

    Where = Mapping[str, Sequence[object]]


_OF_PLACES = ("clusters", "qos", "own_qos", "default_qos")
_OF_ACCOUNTS_PLACES = (*_OF_PLACES, "parents", "users")
_OF_USERS_PLACES = (*_OF_PLACES, "accounts", "partitions")


def _one_of(where: Where, name: str) -> Callable[[object], bool]:
    wanted = {str(value) for value in where.get(name, ())}
    return (lambda value: str(value) in wanted) if wanted else (lambda _value: True)


def associations(tree: Tree, where: Where) -> list[Association]:
    """Those that meet the conditions ids, clusters, accounts, users, partitions, parents, qos,
    own_qos (not what is inherited) and default_qos; from left to right.
    """
    matches = [
        (_one_of(where, name), read)
        for name, read in (
            ("ids", lambda each: each.id),
            ("clusters", lambda each: each.cluster),
            ("accounts", lambda each: each.account),
            ("users", lambda each: each.user),
            ("partitions", lambda each: each.partition),
            ("parents", lambda each: "" if each.user else tree.parent_account(each)),
            ("default_qos", lambda each: each.default_qos),
        )
        if where.get(name)
    ]
    found = [
        each for each in tree.left_to_right() if all(test(read(each)) for test, read in matches)
    ]
    if where.get("qos"):
        wanted = {str(value) for value in where["qos"]}
        found = [each for each in found if wanted.intersection(tree.effective(each).qos or ())]
    if where.get("own_qos"):
        wanted = {str(value) for value in where["own_qos"]}
        found = [each for each in found if _has_own_qos(each, wanted)]
    return found


def _has_own_qos(association: Association, wanted: set[str]) -> bool:
    """Whether it names one of them itself; "": any."""
    own = {*(association.qos or ()), *(name.lstrip("+-") for name in association.delta_qos)}
    return bool(own if "" in wanted else own & wanted)


def accounts(ledger: Ledger, tree: Tree, where: Where) -> list[Account]:
    """Those that meet names, descriptions, organizations, and have an association that meets the
    others; by name.
    """
    named, described, organized = (
        _one_of(where, name) for name in ("names", "descriptions", "organizations")
    )
    found = [
        each
        for _, each in sorted(ledger.accounts.items())
        if named(each.name) and described(each.description) and organized(each.organization)
    ]
    if any(where.get(name) for name in _OF_ACCOUNTS_PLACES):
        placed = {
            each.account
            for each in associations(tree, {k: v for k, v in where.items() if k != "names"})
        }
        found = [each for each in found if each.name in placed]
    return found


def users(ledger: Ledger, tree: Tree, where: Where) -> list[AccountingUser]:
    """Those that meet names, admin_levels, default_accounts, default_wckeys, and have an
    association that meets the others; by name.
    """
    named, levelled, keyed = (
        _one_of(where, name) for name in ("names", "admin_levels", "default_wckeys")
    )
    found = [
        each
        for _, each in sorted(ledger.users.items())
        if named(each.name) and levelled(each.admin_level) and keyed(each.default_wckey)
    ]
    if where.get("default_accounts"):
        wanted = {str(value) for value in where["default_accounts"]}
        has = {
            each.user
            for each in ledger.associations.values()
            if each.is_default and each.account in wanted
        }
        found = [each for each in found if each.name in has]
    if any(where.get(name) for name in _OF_USERS_PLACES):
        placed = {each.user for each in associations(tree, where) if each.user}
        found = [each for each in found if each.name in placed]
    return found


def qualities(ledger: Ledger, where: Where) -> list[Qos]:
    """Those that meet names, ids, descriptions and preempt_modes; by number."""
    named, numbered, described, moded = (
        _one_of(where, name) for name in ("names", "ids", "descriptions", "preempt_modes")
    )
    return [
        each
        for _, each in sorted(ledger.qos.items())
        if named(each.name)
        and numbered(each.id)
        and described(each.description)
        and moded(each.preempt_mode)
    ]
