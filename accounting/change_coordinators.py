"""Coordinators: users who may administer some accounts and all below them.

Place: the core of the accounting daemon, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from understudy.accounting.transaction_texts import any_of
from understudy.protocol.messages import AccountingChanged

if TYPE_CHECKING:
    from understudy.accounting.ledger import Draft, Ledger
    from understudy.protocol.messages import AccountingChange


def _strangers(
    ledger: Ledger, names: list[str], accounts: list[str]
) -> list[tuple[str, list[str]]]:
    return [("no_account", [account]) for account in accounts if account not in ledger.accounts] + [
        ("no_user", [name]) for name in names if name not in ledger.users
    ]


def add(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Make users coordinators of accounts."""
    ledger = draft.ledger
    accounts = message.where.get("accounts", [])
    problems = _strangers(ledger, message.names, accounts)
    if problems:
        return AccountingChanged(problems=problems)
    for name in message.names:
        user = ledger.users[name]
        new = [account for account in accounts if account not in user.coordinates]
        if new:
            ledger.users[name] = msgspec.structs.replace(
                user, coordinates=(*user.coordinates, *new), mod_time=draft.now
            )
            draft.note("Add Account Coord", name, ",".join(new))
    return AccountingChanged(message.names)


def delete(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Let them be coordinators no longer: of the accounts named, or of all. The answer has (user,
    account) as associations.
    """
    ledger = draft.ledger
    accounts = message.where.get("accounts", [])
    names = message.where.get("names", [])
    problems = _strangers(ledger, names, accounts)
    if problems:
        return AccountingChanged(problems=problems)
    removed: list[tuple[str, str, str, str, str]] = []
    for name, user in sorted(ledger.users.items()):
        if names and name not in names:
            continue
        gone = [account for account in user.coordinates if not accounts or account in accounts]
        if gone:
            ledger.users[name] = msgspec.structs.replace(
                user, coordinates=tuple(each for each in user.coordinates if each not in gone)
            )
            removed += [("", account, "", name, "") for account in gone]
    if removed:
        said = [(column, found) for column, found in (("user", names), ("acct", accounts)) if found]
        draft.note(
            "Remove Account Coords", " && ".join(any_of(column, found) for column, found in said)
        )
    return AccountingChanged(names, removed)
