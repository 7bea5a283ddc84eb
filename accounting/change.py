"""The door of all changes: who may make which, and the function that makes it.

Place: the core of the accounting daemon, pure. `change` gives back a new ledger, the answer, and
the transactions; the ledger given stays as it is. Follows: sacctmgr(1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from understudy.accounting import (
    change_accounts,
    change_clusters,
    change_coordinators,
    change_federations,
    change_qos,
    change_resources,
    change_users,
)
from understudy.accounting.ledger import Draft
from understudy.model.associations import ADMINISTRATOR, NO_ADMIN
from understudy.model.errors import SlurmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.accounting.ledger import Ledger, Transaction
    from understudy.protocol.messages import AccountingChange, AccountingChanged

ACCESS_DENIED: Final = 2002

# What operators may not do: of all else they are as administrators.
_FOR_ADMINISTRATORS: Final = frozenset(
    [("add", "cluster"), ("delete", "cluster"), ("delete", "resource")]
    + [
        (action, entity)
        for action in ("add", "modify", "delete")
        for entity in ("qos", "federation")
    ]
)


class Actor(NamedTuple):
    """Who asks. `is_superuser`: root, or the user who runs the cluster."""

    name: str
    is_superuser: bool


class Changed(NamedTuple):
    """The ledger after the change, what to answer, and what goes on record."""

    ledger: Ledger
    answer: AccountingChanged
    transactions: list[Transaction]


_CHANGES: Final[dict[tuple[str, str], Callable[[Draft, AccountingChange], AccountingChanged]]] = {
    ("add", "cluster"): change_clusters.add,
    ("modify", "cluster"): change_clusters.modify,
    ("delete", "cluster"): change_clusters.delete,
    ("add", "account"): change_accounts.add,
    ("modify", "account"): change_accounts.modify,
    ("delete", "account"): change_accounts.delete,
    ("add", "user"): change_users.add,
    ("modify", "user"): change_users.modify,
    ("delete", "user"): change_users.delete,
    ("add", "qos"): change_qos.add,
    ("modify", "qos"): change_qos.modify,
    ("delete", "qos"): change_qos.delete,
    ("add", "resource"): change_resources.add,
    ("modify", "resource"): change_resources.modify,
    ("delete", "resource"): change_resources.delete,
    ("add", "federation"): change_federations.add,
    ("modify", "federation"): change_federations.modify,
    ("delete", "federation"): change_federations.delete,
    ("add", "coordinator"): change_coordinators.add,
    ("delete", "coordinator"): change_coordinators.delete,
}


def change(ledger: Ledger, message: AccountingChange, actor: Actor, now: int) -> Changed:
    """Carry out a request on a copy of the ledger.

    Raises:
        SlurmError: not allowed, or not understood.
    """
    function = _CHANGES.get((message.action, message.entity))
    if function is None:
        raise SlurmError(-1, f"accounting cannot {message.action} {message.entity}")
    # what would be added is nobody's secret
    is_trial = message.action == "add" and not message.commit
    if not is_trial and not _may(ledger, message, actor):
        message = _own_defaults(ledger, message, actor)
    draft = Draft(ledger, actor.name, now)
    answer = function(draft, message)
    return Changed(draft.ledger, answer, draft.transactions)


def _may(ledger: Ledger, message: AccountingChange, actor: Actor) -> bool:
    if is_administrator(ledger, actor):
        return True
    # an operator may add users of any level
    if message.action == "modify" and "admin_level" in message.set:
        return False
    if is_admin(ledger, actor):
        return (message.action, message.entity) not in _FOR_ADMINISTRATORS
    return _may_coordinate(ledger, message, actor)


def is_admin(ledger: Ledger, actor: Actor) -> bool:
    """Administrators and operators of accounting, and the superuser."""
    user = ledger.users.get(actor.name)
    return actor.is_superuser or (user is not None and user.admin_level != NO_ADMIN)


def is_administrator(ledger: Ledger, actor: Actor) -> bool:
    """Administrators of accounting and the superuser, but not operators."""
    user = ledger.users.get(actor.name)
    return actor.is_superuser or (user is not None and user.admin_level == ADMINISTRATOR)


def _may_coordinate(ledger: Ledger, message: AccountingChange, actor: Actor) -> bool:
    """Whether all accounts of the request are the actor's to coordinate: users' associations with
    them, their coordinators, and accounts below them.

    Nobody deletes accounts so, or changes the accounts themselves that were given to him to
    coordinate.
    """
    user = ledger.users.get(actor.name)
    if (
        user is None
        or not user.coordinates
        or message.entity not in {"user", "account", "coordinator"}
    ):
        return False
    where = message.where
    if message.entity == "coordinator" and not where.get("accounts"):
        theirs = [
            account
            for name in where.get("names", [])
            if name in ledger.users
            for account in ledger.users[name].coordinates
        ]
        return all(_is_below(ledger, account, user.coordinates) for account in theirs)
    concerned = [*where.get("accounts", []), *message.set.get("accounts", [])]
    if message.entity == "account":
        concerned += [message.set["parent"]] if "parent" in message.set else []
        if message.action != "add":
            concerned += where.get("names", [])
            if message.action == "delete" or not set(user.coordinates).isdisjoint(
                where.get("names", [])
            ):
                return False
    elif message.action != "add" and not concerned:
        concerned = [
            each.account
            for each in ledger.associations.values()
            if each.user and each.user in where.get("names", [])
        ]
    if "admin_level" in message.set or not concerned:
        return False
    return all(_is_below(ledger, account, user.coordinates) for account in concerned)


_OWN_DEFAULTS = frozenset(("default_account", "default_qos", "default_wckey", "new_name"))


def _own_defaults(ledger: Ledger, message: AccountingChange, actor: Actor) -> AccountingChange:
    """What is left of a change by somebody who may make none: of himself his default account, key
    or name, or, whatever else is asked for, his default QOS. Nobody may who coordinates something.

    Raises:
        SlurmError: nothing is left.
    """
    user = ledger.users.get(actor.name)
    is_own = (message.action, message.entity, message.where.get("names")) == (
        "modify",
        "user",
        [actor.name],
    )
    if is_own and not (user is not None and user.coordinates):
        if _OWN_DEFAULTS.issuperset(message.set):
            return message
        if "default_qos" in message.set:
            return msgspec.structs.replace(message, set={"default_qos": message.set["default_qos"]})
    raise SlurmError(ACCESS_DENIED)


def _is_below(ledger: Ledger, account: str, tops: tuple[str, ...]) -> bool:
    for each in ledger.associations.values():
        if each.account != account or each.user:
            continue
        place = each
        while place.account not in tops:
            above = ledger.associations.get(place.parent_id)
            if above is None:
                return False
            place = above
        return True
    return False
