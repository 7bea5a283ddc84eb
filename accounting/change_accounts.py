"""Accounts: added to the clusters' trees, changed, moved, deleted with all below them.

Place: the core of the accounting daemon, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from understudy.accounting import conditions
from understudy.accounting.answers import name_of
from understudy.accounting.deleted import again, new_association
from understudy.accounting.fields import association_changes
from understudy.accounting.ledger import Account, info_text
from understudy.accounting.limits import change_limits
from understudy.accounting.transaction_texts import any_of, association_info
from understudy.accounting.tree import Tree, place_in_front
from understudy.model.associations import ROOT
from understudy.model.errors import SlurmError
from understudy.protocol.messages import AccountingChanged

if TYPE_CHECKING:
    from collections.abc import Iterable

    from understudy.accounting.ledger import Draft, Ledger
    from understudy.model.associations import Association
    from understudy.protocol.messages import AccountingChange

_OWN = frozenset(("description", "organization", "parent"))
_OF_ACCOUNTS = frozenset(("names", "descriptions", "organizations"))  # not of their places
_OF_ASSOCIATIONS = ("clusters", "parents", "qos", "default_qos")


def clusters_meant(
    ledger: Ledger, message: AccountingChange
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """The clusters on which to add something, all if none is named; and the names that are none."""
    wanted = message.where.get("clusters") or sorted(ledger.clusters)
    return [name for name in wanted if name in ledger.clusters], [
        ("no_cluster", [name]) for name in wanted if name not in ledger.clusters
    ]


def add(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """New accounts, and places for them in the clusters' trees."""
    ledger, now = draft.ledger, draft.now
    values = dict(message.set)
    parent = values.pop("parent", ROOT)
    description, organization = values.pop("description", ""), values.pop("organization", "")
    clusters, problems = clusters_meant(ledger, message)
    if problems:
        return AccountingChanged(problems=problems)
    parents = {}
    for cluster in clusters:
        above = ledger.association(cluster, parent)
        if above is not None:
            parents[cluster] = above
        elif any(ledger.association(cluster, name) is None for name in message.names):
            problems.append(("no_parent", [parent, cluster]))
    if not parents:
        return AccountingChanged(problems=problems)
    added: list[str] = []
    placed: list[Association] = []
    placeless: list[Association] = []
    for name in message.names:
        if name not in ledger.accounts:
            old = again(draft, "accounts", name=name)
            made = old.creation_time if old is not None else now
            ledger.accounts[name] = Account(
                name,
                description or name,
                organization or (name if parent == ROOT else parent),
                made,
                now,
            )
            draft.note(
                "Add Accounts",
                name,
                info_text(
                    {
                        "description": description or name,
                        "organization": organization or (name if parent == ROOT else parent),
                    }
                ),
            )
            added.append(name)
        for cluster, above in parents.items():
            if ledger.association(cluster, name) is None:
                new, is_placeless = new_association(draft, above, account=name)
                placed.append(
                    draft.change_association(new, association_changes(ledger, values, new))
                )
                placeless += [placed[-1]] if is_placeless else []
    for each in placed:
        draft.note(
            "Add Associations",
            f"id_assoc={each.id}",
            association_info(ledger, each, now, above=parent),
            each.cluster,
        )
    place_in_front(draft, placeless)
    tree = Tree(ledger)
    return AccountingChanged(added, [name_of(tree, each) for each in placed], problems=problems)


def modify(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Change accounts' descriptions, limits and places."""
    ledger = draft.ledger
    tree = Tree(ledger)
    where = message.where
    own: dict[str, Any] = {
        name: message.set[name] for name in ("description", "organization") if name in message.set
    }
    limits = {name: value for name, value in message.set.items() if name not in _OWN}
    names = []
    if own:
        theirs = {name: values for name, values in where.items() if name in _OF_ACCOUNTS}
        for account in conditions.accounts(ledger, tree, theirs):
            ledger.accounts[account.name] = msgspec.structs.replace(
                account, mod_time=draft.now, **own
            )
            names.append(account.name)
        if names:
            draft.note("Modify Accounts", any_of("name", names), info_text(own))
    if not limits and "parent" not in message.set:
        return AccountingChanged(names)
    parent = message.set.get("parent")
    chosen = _associations(tree, where)
    if parent is not None:  # who is there already, or is at the top, keeps the limits, too
        chosen = [each for each in chosen if each.parent_id and tree.parent_account(each) != parent]
    answer = change_limits(draft, tree, chosen, limits)
    if answer.problems or parent is None:
        return AccountingChanged(names, answer.associations, problems=answer.problems)
    chosen = [each for each in chosen if each.account != parent]
    listed = {name_of(tree, each): None for each in chosen} | dict.fromkeys(answer.associations)
    for association in chosen:
        _move(draft, ledger.associations[association.id], parent)
    return AccountingChanged(names, list(listed), problems=answer.problems)


def _associations(tree: Tree, where: dict[str, list[str]]) -> list[Association]:
    """The places in the trees of the accounts that are meant, or of users in them."""
    named = {name: values for name, values in where.items() if name not in _OF_ACCOUNTS}
    if where.get("names"):
        named["accounts"] = where["names"]
    found = conditions.associations(tree, named)
    return found if named.get("users") else [each for each in found if not each.user]


def _move(draft: Draft, association: Association, parent: str) -> None:
    """Put an account, and all below it, below another one. If that one is below it now, that one
    first takes its place.
    """
    ledger = draft.ledger
    above = ledger.association(association.cluster, parent)
    if above is None or not association.parent_id:
        raise SlurmError(2046)
    if above.id == association.parent_id:
        return
    if Tree(ledger).is_below(above, association):
        above = draft.change_association(above, {"parent_id": association.parent_id})
        place_in_front(draft, [above])
    moved = draft.change_association(association, {"parent_id": above.id})
    place_in_front(draft, [moved])


def delete(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Take accounts away, with all associations below them; on some clusters only, or
    everywhere.
    """
    ledger = draft.ledger
    tree = Tree(ledger)
    where = message.where
    only_places = any(where.get(name) for name in _OF_ASSOCIATIONS)
    names = [each.name for each in conditions.accounts(ledger, tree, where)]
    if ROOT in names:
        return AccountingChanged(problems=[("root", [])])
    tops = [
        each for each in _associations(tree, {**where, "names": names}) if names and not each.user
    ]
    gone: dict[int, Association] = {}
    for top in tops:
        gone[top.id] = top
        gone.update({each.id: each for each in tree.below(top)})
    problems = defaults_lost(gone.values())
    if problems:
        return AccountingChanged(problems=problems)
    for number in gone:
        del ledger.associations[number]
    if only_places:
        if tops:
            draft.note("Remove Associations", " || ".join(f"id_assoc={number}" for number in gone))
        return AccountingChanged([], [name_of(tree, each) for each in gone.values()])
    for name in names:
        del ledger.accounts[name]
        for user in list(ledger.users.values()):
            if name in user.coordinates:
                ledger.users[user.name] = msgspec.structs.replace(
                    user, coordinates=tuple(each for each in user.coordinates if each != name)
                )
    if names:
        draft.note("Remove Account Coords", any_of("acct", names))
        for _cluster in ledger.clusters:  # once for each
            draft.note("Remove Accounts", " || ".join(f"name='{name}'" for name in names))
    return AccountingChanged(names)


def defaults_lost(gone: Iterable[Association]) -> list[tuple[str, list[str]]]:
    """The users' defaults among what goes, if others that are none go with them: so Slurm refuses
    it, and goes along where all are defaults.
    """
    users = [each for each in gone if each.user]
    if all(each.is_default for each in users):
        return []
    return [
        ("default_account", [each.cluster, each.account, each.user])
        for each in sorted(users, key=_by_name)
        if each.is_default
    ]


def _by_name(association: Association) -> tuple[str, str, str]:
    return association.cluster, association.account, association.user
