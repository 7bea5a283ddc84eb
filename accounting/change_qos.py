"""Qualities of service: added, changed, deleted.

Place: the core of the accounting daemon, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from understudy.accounting import conditions
from understudy.accounting.deleted import again
from understudy.accounting.fields import qos_changes
from understudy.accounting.transaction_texts import any_of, qos_changes_info, qos_info
from understudy.model.errors import SlurmError
from understudy.model.qos import Qos
from understudy.protocol.messages import AccountingChanged

if TYPE_CHECKING:
    from understudy.accounting.ledger import Draft, Ledger
    from understudy.protocol.messages import AccountingChange


def add(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """New ones. A description that is not given is the (last) name."""
    ledger, now = draft.ledger, draft.now
    added: list[str] = []
    for name in message.names:
        values = {"description": name, **message.set}
        if ledger.qos_named(name) is None:
            old = again(draft, "qos", name=name)
            new = Qos(
                0, name, creation_time=old.creation_time if old is not None else now, mod_time=now
            )
            new = msgspec.structs.replace(
                new,
                id=old.id if old is not None else draft.number("qos"),
                **qos_changes(ledger, values, new),
            )
            ledger.qos[new.id] = new
            draft.note("Add QOS", name, qos_info(ledger, new, now))
            added.append(name)
    return AccountingChanged(added)


def modify(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Change all that meet the conditions."""
    ledger = draft.ledger
    chosen = conditions.qualities(ledger, message.where)
    for qos in chosen:
        ledger.qos[qos.id] = msgspec.structs.replace(
            qos, mod_time=draft.now, **qos_changes(ledger, message.set, qos)
        )
    if "preempt" in message.set and _preempts_itself(ledger):
        raise SlurmError(-1, "QOS Preemption loop detected")
    if chosen:
        draft.note(
            "Modify QOS",
            any_of("name", [each.name for each in chosen]),
            qos_changes_info(ledger, [ledger.qos[each.id] for each in chosen], message.set),
        )
    return AccountingChanged([each.name for each in chosen])


def _preempts_itself(ledger: Ledger) -> bool:
    """Whether a quality of service may preempt itself, perhaps by way of others."""
    below = {each.name: each.preempt for each in ledger.qos.values()}
    for name, preempted in below.items():
        seen: set[str] = set()
        ahead = list(preempted)
        while ahead:
            other = ahead.pop()
            if other == name:
                return True
            if other not in seen:
                seen.add(other)
                ahead += below.get(other, ())
    return False


def delete(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Forget some; nobody may use or preempt them from here on."""
    ledger = draft.ledger
    chosen = conditions.qualities(ledger, message.where)
    names = {each.name for each in chosen}
    needed = [each for each in ledger.associations.values() if each.default_qos in names]
    if needed:
        return AccountingChanged(
            problems=[
                (
                    "default_qos",
                    [each.default_qos or "", each.cluster, each.account, each.user, each.partition],
                )
                for each in needed
            ]
        )
    for qos in chosen:
        del ledger.qos[qos.id]
    for other in list(ledger.qos.values()):
        if names.intersection(other.preempt):
            ledger.qos[other.id] = msgspec.structs.replace(
                other, preempt=tuple(name for name in other.preempt if name not in names)
            )
    for association in list(ledger.associations.values()):
        changes: dict[str, object] = {}
        if association.qos is not None and names.intersection(association.qos):
            changes["qos"] = tuple(name for name in association.qos if name not in names)
        if any(each[1:] in names for each in association.delta_qos):
            changes["delta_qos"] = tuple(
                each for each in association.delta_qos if each[1:] not in names
            )
        if changes:
            draft.change_association(association, changes)
    if chosen:
        for _cluster in ledger.clusters:  # once for each
            draft.note("Remove QOS", " || ".join(f"id='{each.id}'" for each in chosen))
    return AccountingChanged([each.name for each in chosen])
