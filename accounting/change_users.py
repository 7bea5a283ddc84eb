"""Users: added to accounts, changed, taken away from accounts or altogether.

Place: the core of the accounting daemon, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from understudy.accounting import conditions
from understudy.accounting.answers import name_of
from understudy.accounting.change_accounts import clusters_meant, defaults_lost
from understudy.accounting.deleted import again, new_association
from understudy.accounting.fields import association_changes
from understudy.accounting.ledger import info_text
from understudy.accounting.limits import change_limits
from understudy.accounting.transaction_texts import any_of, association_info
from understudy.accounting.tree import Tree, place_in_front
from understudy.model.associations import ADMINISTRATOR, NO_ADMIN, OPERATOR, AccountingUser, Wckey
from understudy.model.errors import SlurmError
from understudy.protocol.messages import AccountingChanged

if TYPE_CHECKING:
    from understudy.accounting.ledger import Draft, Ledger
    from understudy.model.associations import Association
    from understudy.protocol.messages import AccountingChange

_OF_USERS = frozenset(  # conditions that are not of their places
    ("names", "admin_levels", "default_accounts", "default_wckeys")
)
_OWN = frozenset(
    [
        "accounts",
        "partitions",
        "wckeys",
        "default_account",
        "default_wckey",
        "admin_level",
        "new_name",
    ]
)
_OF_ASSOCIATIONS = ("clusters", "accounts", "partitions")
ADMIN_LEVELS = (NO_ADMIN, OPERATOR, ADMINISTRATOR)


def add(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """New users, and associations of users with accounts. The default on a cluster is the one
    named, or the first by name of those given first.
    """
    ledger, values = draft.ledger, message.set
    default = values.get("default_account", "")
    accounts = [
        name for name in dict.fromkeys(values.get("accounts", [])) if not name or name != default
    ] + ([default] if default else [])
    clusters, problems = clusters_meant(ledger, message)
    if problems:
        return AccountingChanged(problems=problems)
    if default and default not in ledger.accounts:
        return AccountingChanged(problems=[("no_account", [default])])
    known = [name for name in accounts if name in ledger.accounts]
    problems = [("no_account", [name]) for name in accounts if name not in ledger.accounts]
    missing = {
        (account, cluster): None
        for account in known
        for cluster in clusters
        if ledger.association(cluster, account) is None
    }
    problems += [("no_account_on_cluster", list(each)) for each in missing]
    placed, placeless = _add_associations(draft, message, known, clusters)
    keys = _add_keys(draft, message, clusters)
    if not placed and not keys:
        return AccountingChanged(problems=problems)
    level = values.get("admin_level", NO_ADMIN)
    if level not in ADMIN_LEVELS:
        raise SlurmError(-1, f"Invalid value for AdminLevel ({level})")
    added = _add_users(draft, message, level, keys)
    place_in_front(draft, placeless)
    _note(draft, placed, keys, default)
    for user in message.names:
        for cluster in clusters:
            _mark_default(draft, user, cluster, default)
    tree = Tree(ledger)
    placed.sort(key=lambda each: message.names.index(each.user))
    return AccountingChanged(
        added,
        [name_of(tree, ledger.associations[each.id]) for each in placed],
        [(each.user, each.name, each.cluster) for each in keys],
        problems,
    )


def _add_associations(
    draft: Draft, message: AccountingChange, accounts: list[str], clusters: list[str]
) -> tuple[list[Association], list[Association]]:
    """Those that the users do not have yet, and those of them that had no place before."""
    ledger, values = draft.ledger, message.set
    limits = {name: value for name, value in values.items() if name not in _OWN | {"parent"}}
    placed: list[Association] = []
    placeless: list[Association] = []
    for user in sorted(message.names, key=ledger.users.__contains__):  # new users come first
        for account in accounts:
            for cluster in clusters:
                above = ledger.association(cluster, account)
                if above is None:
                    continue
                for partition in values.get("partitions") or [""]:
                    if ledger.association(cluster, account, user, partition) is not None:
                        continue
                    new, is_placeless = new_association(draft, above, user, partition)
                    placed.append(
                        draft.change_association(new, association_changes(ledger, limits, new))
                    )
                    placeless += [placed[-1]] if is_placeless else []
    return placed, placeless


def _add_users(draft: Draft, message: AccountingChange, level: str, keys: list[Wckey]) -> list[str]:
    """The users that were not known, with their default WCKey. Their names."""
    ledger, now, values = draft.ledger, draft.now, message.set
    added = []
    for user in message.names:
        if user not in ledger.users:
            old = again(draft, "users", name=user)
            ledger.users[user] = AccountingUser(
                user,
                level,
                creation_time=old.creation_time if old is not None else now,
                mod_time=now,
            )
            draft.note("Add Users", user, f"admin_level={ADMIN_LEVELS.index(level) + 1}")
            added.append(user)
        if keys and not ledger.users[user].default_wckey:
            ledger.users[user] = msgspec.structs.replace(
                ledger.users[user], default_wckey=values.get("default_wckey") or values["wckeys"][0]
            )
    return added


def _note(draft: Draft, associations: list[Association], keys: list[Wckey], default: str) -> None:
    """Put into the transactions what has been added. `default`: the account that was named so."""
    ledger, now = draft.ledger, draft.now
    for association in associations:
        text = association_info(
            ledger, association, now, is_named_default=association.account == default
        )
        draft.note("Add Associations", f"id_assoc={association.id}", text, association.cluster)
    for key in keys:
        draft.note(
            "Add WCKeys",
            f"id_wckey={key.id}",
            info_text(
                {
                    "mod_time": now,
                    "user": key.user,
                    "wckey_name": key.name,
                    "is_def": int(key.is_default),
                }
            ),
            key.cluster,
        )


def _add_keys(draft: Draft, message: AccountingChange, clusters: list[str]) -> list[Wckey]:
    """WCKeys that the request names and the users do not have yet."""
    ledger = draft.ledger
    default = message.set.get("default_wckey", "")
    names = list(dict.fromkeys([*([default] if default else []), *message.set.get("wckeys", [])]))
    known = {(each.user, each.name, each.cluster) for each in ledger.wckeys.values()}
    new = []
    for user in message.names:
        for name in names:
            for cluster in clusters:
                if (user, name, cluster) not in known:
                    old = again(draft, "wckeys", user=user, name=name, cluster=cluster)
                    number, made = (
                        (old.id, old.creation_time)
                        if old is not None
                        else (draft.number("wckeys"), draft.now)
                    )
                    key = Wckey(
                        number,
                        name,
                        cluster,
                        user,
                        is_default=name == (default or names[0]),
                        creation_time=made,
                    )
                    ledger.wckeys[key.id] = key
                    new.append(key)
    return new


def _mark_default(draft: Draft, user: str, cluster: str, wanted: str) -> None:
    """Mark the wanted account, or if the user has no default yet, the first one."""
    theirs = [
        each
        for each in draft.ledger.associations.values()
        if each.user == user and each.cluster == cluster
    ]
    own = sorted(theirs, key=lambda each: (each.account, each.partition, each.id))
    marked = [each for each in own if each.is_default]
    target = wanted or (marked[0].account if marked else own[0].account if own else "")
    for each in own:
        is_default = each.account == target and (bool(wanted) or not marked or each.is_default)
        if each.is_default != is_default:
            draft.change_association(each, {"is_default": is_default})


def modify(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Change users: their levels, default accounts and names; and their associations' limits."""
    ledger = draft.ledger
    tree = Tree(ledger)
    where = message.where
    own = {name: value for name, value in message.set.items() if name in _OWN}
    limits = {name: value for name, value in message.set.items() if name not in _OWN}
    answer = AccountingChanged()
    if limits:
        places = {name: values for name, values in where.items() if name not in _OF_USERS}
        if where.get("names"):
            places["users"] = where["names"]
        theirs = [each for each in conditions.associations(tree, places) if each.user]
        answer = change_limits(draft, tree, theirs, limits)
        if answer.problems:
            return answer
    theirs_own = {name: values for name, values in where.items() if name in _OF_USERS}
    if not own or not any(theirs_own.values()):  # without one of these, nobody is meant
        return answer
    if where.get("names"):
        theirs_own.pop("default_accounts", None)
    chosen = conditions.users(ledger, tree, theirs_own)
    names, problems = _modify_users(draft, chosen, own, where)
    return AccountingChanged(names, answer.associations, problems=problems)


def _modify_users(
    draft: Draft, chosen: list[AccountingUser], own: dict[str, str], where: dict[str, list[str]]
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    ledger = draft.ledger
    changes: dict[str, str] = {}
    if "admin_level" in own:
        if own["admin_level"] not in ADMIN_LEVELS:
            raise SlurmError(-1, f"Invalid value for AdminLevel ({own['admin_level']})")
        changes["admin_level"] = own["admin_level"]
    if "default_wckey" in own:
        changes["default_wckey"] = own["default_wckey"]
    account = own.get("default_account", "")
    problems = _strangers_to_account(ledger, chosen, account, where) if account else []
    if "default_wckey" in own:
        problems += _strangers_to_key(ledger, chosen, own["default_wckey"], where)
    new_name = own.get("new_name", "")
    if new_name in ledger.users.keys() - {each.name for each in chosen}:
        problems += [("name_taken", [each.name, new_name]) for each in chosen]
    if problems:
        return [], problems
    changed: dict[str, None] = {}
    for user in chosen:
        if changes:
            ledger.users[user.name] = msgspec.structs.replace(
                ledger.users[user.name], mod_time=draft.now, **changes
            )
            changed[user.name] = None
        for cluster in _clusters_of(ledger, user.name, where) if account else ():
            _mark_default(draft, user.name, cluster, account)
            changed[user.name] = None
        if new_name:
            _rename(draft, user.name, new_name)
            changed[user.name] = None
    if changed and (changes or "new_name" in own):
        said: dict[str, object] = (
            {"admin_level": ADMIN_LEVELS.index(own["admin_level"]) + 1}
            if "admin_level" in own
            else {}
        )
        said |= {"name": own["new_name"]} if "new_name" in own else {}
        draft.note("Modify Users", any_of("name", changed), info_text(said or changes))
    for association in [
        each
        for each in ledger.associations.values()
        if account and each.user in changed and each.account == account
    ]:
        draft.note(
            "Modify Associations",
            f"(id_assoc={association.id})",
            info_text({"is_def": 1}),
            association.cluster,
        )
    return list(changed), []


def _clusters_of(ledger: Ledger, user: str, where: dict[str, list[str]]) -> list[str]:
    """Those that are meant, or on which the user is."""
    return where.get("clusters") or sorted(
        {each.cluster for each in ledger.associations.values() if each.user == user}
    )


def _strangers_to_account(
    ledger: Ledger, users: list[AccountingUser], account: str, where: dict[str, list[str]]
) -> list[tuple[str, list[str]]]:
    """Who is in no such account, and where."""
    return [
        ("not_in_account", [user.name, cluster, account])
        for user in users
        for cluster in _clusters_of(ledger, user.name, where)
        if not _has_partition(ledger, cluster, account, user.name)
    ]


def _strangers_to_key(
    ledger: Ledger, users: list[AccountingUser], key: str, where: dict[str, list[str]]
) -> list[tuple[str, list[str]]]:
    """Who has no such WCKey, and where."""
    theirs = {(each.user, each.name) for each in ledger.wckeys.values()}
    clusters = where.get("clusters") or sorted(ledger.clusters)
    return [
        ("not_of_wckey", [user.name, cluster, key])
        for user in users
        if (user.name, key) not in theirs
        for cluster in clusters
    ]


def _has_partition(ledger: Ledger, cluster: str, account: str, user: str) -> bool:
    return any(
        (each.cluster, each.account, each.user) == (cluster, account, user)
        for each in ledger.associations.values()
    )


def _rename(draft: Draft, old: str, new: str) -> None:
    ledger = draft.ledger
    ledger.users[new] = msgspec.structs.replace(ledger.users.pop(old), name=new, mod_time=draft.now)
    for association in [each for each in ledger.associations.values() if each.user == old]:
        draft.change_association(association, {"user": new})
    for key in [each for each in ledger.wckeys.values() if each.user == old]:
        ledger.wckeys[key.id] = msgspec.structs.replace(key, user=new)


def delete(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Take users away from accounts where these, clusters or partitions are named; else
    altogether.
    """
    ledger = draft.ledger
    tree = Tree(ledger)
    where = message.where
    chosen = conditions.users(ledger, tree, where)
    names = {each.name for each in chosen}
    if where.get("wckeys"):
        return _delete_keys(draft, names, {str(name) for name in where["wckeys"]})
    if any(where.get(name) for name in _OF_ASSOCIATIONS):
        gone = [each for each in conditions.associations(tree, where) if each.user in names]
        problems = defaults_lost(gone)
        if problems:
            return AccountingChanged(problems=problems)
        for each in gone:
            del ledger.associations[each.id]
        if gone:
            draft.note("Remove Associations", " || ".join(f"id_assoc={each.id}" for each in gone))
        placed = {each.user for each in ledger.associations.values()}
        homeless = [
            name for name in dict.fromkeys(each.user for each in gone) if name not in placed
        ]
        _forget(draft, homeless)
        return AccountingChanged(homeless, [name_of(tree, each) for each in gone])
    _forget(draft, [user.name for user in chosen])
    return AccountingChanged([each.name for each in chosen])


def _delete_keys(draft: Draft, users: set[str], names: set[str]) -> AccountingChanged:
    """Take WCKeys away from users: the default one, too."""
    ledger = draft.ledger
    gone = [
        each
        for _, each in sorted(ledger.wckeys.items())
        if each.user in users and each.name in names
    ]
    for key in gone:
        del ledger.wckeys[key.id]
        user = ledger.users[key.user]
        if user.default_wckey == key.name:
            ledger.users[key.user] = msgspec.structs.replace(user, default_wckey="")
    if gone:
        draft.note("Remove WCKeys", " || ".join(f"id_wckey={each.id}" for each in gone))
    return AccountingChanged(wckeys=[(each.user, each.name, each.cluster) for each in gone])


def _forget(draft: Draft, names: list[str]) -> None:
    """Delete users with all that is theirs."""
    ledger = draft.ledger
    for name in names:
        del ledger.users[name]
    for number in [each.id for each in ledger.associations.values() if each.user in names]:
        del ledger.associations[number]
    for number in [each.id for each in ledger.wckeys.values() if each.user in names]:
        del ledger.wckeys[number]
    if names:
        draft.note("Remove Account Coords", any_of("user", names))
        for _cluster in ledger.clusters:  # once for each
            draft.note("Remove Users", " || ".join(f"name='{name}'" for name in names))
