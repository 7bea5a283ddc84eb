"""Clusters: added by hand or by their controllers, changed, deleted with all that belongs to them.

Place: the core of the accounting daemon, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from understudy.accounting.answers import name_of
from understudy.accounting.fields import association_changes
from understudy.accounting.ledger import RPC_VERSION, ClusterRecord, info_text
from understudy.accounting.tree import Tree
from understudy.model.associations import ROOT, Association, Tres
from understudy.model.qos import DEFAULT_NAME
from understudy.model.tres import numbered
from understudy.protocol.messages import AccountingChanged

if TYPE_CHECKING:
    from understudy.accounting.ledger import Draft
    from understudy.protocol.messages import AccountingChange, GetAssociations


def add(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """New clusters, each with the root of its tree and the user root in it."""
    added = []
    for name in message.names:
        if name not in draft.ledger.clusters:
            add_cluster(draft, name, message.set)
            added.append(name)
    return AccountingChanged(added)


def add_cluster(draft: Draft, name: str, values: dict[str, Any]) -> None:
    """One cluster."""
    ledger, now = draft.ledger, draft.now
    limits = {key: value for key, value in values.items() if key != "classification"}
    ledger.clusters[name] = ClusterRecord(name, classification=values.get("classification", ""), creation_time=now, mod_time=now)
    qos = (DEFAULT_NAME,) if ledger.qos_named(DEFAULT_NAME) else ()
    root = Association(draft.number("associations"), name, ROOT, qos=qos, creation_time=now, mod_time=now)
    draft.change_association(root, association_changes(ledger, limits, root))
    has_default = any(each.user == ROOT and each.is_default and each.cluster == name for each in ledger.associations.values())
    user = Association(draft.number("associations"), name, ROOT, ROOT, parent_id=root.id, is_default=not has_default, creation_time=now, mod_time=now)
    ledger.associations[user.id] = user
    draft.note("Add Clusters", name, info_text(values), name)
    draft.note("Add Associations", f"id_assoc={user.id}", info_text({"acct": ROOT, "user": ROOT}), name)


def register(draft: Draft, message: GetAssociations) -> None:
    """A controller has announced itself: note where it is and what its cluster has."""
    ledger = draft.ledger
    if message.cluster not in ledger.clusters:
        add_cluster(draft, message.cluster, {})
    before = ledger.clusters[message.cluster]
    known = ledger.tres_numbers()
    new = [name for name in message.tres if name not in known]
    if new:
        for name, number in numbered([*sorted(known, key=known.__getitem__), *new]).items():
            if name not in known:
                ledger.tres[number] = Tres(number, name)
    fields = {"control_host": message.host, "control_port": message.port, "rpc_version": RPC_VERSION, "nodes": message.nodes, "tres": message.tres}
    if all(getattr(before, key) == value for key, value in fields.items()):
        return
    ledger.clusters[message.cluster] = msgspec.structs.replace(before, mod_time=draft.now, **fields)
    draft.note(
        "Modify Clusters", f"name='{message.cluster}'", info_text({"control_host": message.host, "control_port": message.port}), message.cluster
    )


def modify(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Change clusters' limits, which are their roots', and their classification."""
    ledger = draft.ledger
    values = dict(message.set)
    classification = values.pop("classification", None)
    names = [name for name in sorted(ledger.clusters) if not message.where.get("names") or name in message.where["names"]]
    tree = Tree(ledger)
    changed = []
    for name in names:
        if classification is not None:
            ledger.clusters[name] = msgspec.structs.replace(ledger.clusters[name], classification=classification, mod_time=draft.now)
        root = ledger.association(name, ROOT)
        assert root is not None
        if values:
            draft.change_association(root, association_changes(ledger, values, root))
            draft.note("Modify Associations", f"(id_assoc={root.id})", info_text(values), name)
        if classification is not None:
            draft.note("Modify Clusters", f"name='{name}'", info_text({"classification": classification}), name)
        changed.append(name_of(tree, root))
    return AccountingChanged(names, changed)


def delete(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Forget clusters, with their associations and keys."""
    ledger = draft.ledger
    names = [name for name in sorted(ledger.clusters) if name in message.where.get("names", [])]
    for name in names:
        del ledger.clusters[name]
        ledger.associations = {key: each for key, each in ledger.associations.items() if each.cluster != name}
        ledger.wckeys = {key: each for key, each in ledger.wckeys.items() if each.cluster != name}
        draft.note("Remove Clusters", f"name='{name}'", cluster=name)
    return AccountingChanged(names)
