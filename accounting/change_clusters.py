"""Clusters: added by hand or by their controllers, changed, deleted with all that belongs to them.

Place: the core of the accounting daemon, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.accounting.change_federations import join
from understudy.accounting.deleted import again
from understudy.accounting.fields import association_changes, changed_list, invalid
from understudy.accounting.ledger import RPC_VERSION, ClusterRecord, info_text
from understudy.accounting.limits import change_limits
from understudy.accounting.transaction_texts import association_info, cluster_info
from understudy.accounting.tree import Tree
from understudy.model.associations import ROOT, Association, Tres
from understudy.model.errors import SlurmError
from understudy.model.qos import DEFAULT_NAME
from understudy.model.tres import numbered
from understudy.protocol.messages import AccountingChanged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from understudy.accounting.ledger import Draft
    from understudy.protocol.messages import AccountingChange, GetAssociations


_CLASSES: Final = ("Capability", "Capacity", "Capapacity")
FED_STATES: Final = ("ACTIVE", "INACTIVE", "DRAIN", "DRAIN+REMOVE")
_OWN: Final = frozenset(("classification", "features", "fed_state", "federation"))


def is_meant(cluster: ClusterRecord, where: Mapping[str, Sequence[Any]]) -> bool:
    """Whether it meets names, classifications, federations and flags; no cluster has a flag."""
    values = (
        ("names", cluster.name),
        ("classifications", cluster.classification.lower()),
        ("federations", cluster.federation),
        ("flags", "none"),
    )
    if where.get("rpc_versions") and cluster.rpc_version not in where["rpc_versions"]:
        return False
    return all(not where.get(key) or value in where[key] for key, value in values)


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
    limits = {key: value for key, value in values.items() if key not in _OWN | {"parent"}}
    old = again(draft, "clusters", name=name)
    made = old.creation_time if old is not None else now
    ledger.clusters[name] = ClusterRecord(
        name, classification=values.get("classification", ""), creation_time=made, mod_time=now
    )
    if old is not None:  # it comes back with its tree
        for each in [each for each in ledger.deleted.associations.values() if each.cluster == name]:
            ledger.associations[each.id] = ledger.deleted.associations.pop(each.id)
    qos = (DEFAULT_NAME,) if ledger.qos_named(DEFAULT_NAME) else ()
    root = ledger.association(name, ROOT)
    if root is None:
        root = Association(
            draft.number("associations"), name, ROOT, creation_time=now, mod_time=now
        )
    root = draft.change_association(root, {"qos": qos})
    draft.change_association(root, association_changes(ledger, limits, root))
    user = ledger.association(name, ROOT, ROOT)
    if user is None:
        user = Association(
            draft.number("associations"),
            name,
            ROOT,
            ROOT,
            parent_id=root.id,
            creation_time=now,
            mod_time=now,
        )
    user = draft.change_association(user, {"is_default": True})
    draft.note("Add Clusters", name, cluster_info(ledger, ledger.associations[root.id], now), name)
    draft.note(
        "Add Associations",
        f"id_assoc={user.id}",
        association_info(ledger, user, now, is_named_default=True),
        name,
    )


def register(draft: Draft, message: GetAssociations) -> None:
    """A controller has announced itself: note where it is and what its cluster has."""
    ledger = draft.ledger
    if message.cluster not in ledger.clusters:
        add_cluster(draft, message.cluster, {})
    before = ledger.clusters[message.cluster]
    known = ledger.tres_numbers()
    new = [name for name in message.tres if name not in known]
    added: dict[int, str] = {}
    if new:
        for name, number in numbered([*sorted(known, key=known.__getitem__), *new]).items():
            if name not in known:
                ledger.tres[number] = Tres(number, name)
                added[number] = name
    fields = {
        "control_host": message.host,
        "control_port": message.port,
        "rpc_version": RPC_VERSION,
        "nodes": message.nodes,
        "tres": message.tres,
    }
    if any(getattr(before, key) != value for key, value in fields.items()):
        _note_place(draft, message, msgspec.structs.replace(before, mod_time=draft.now, **fields))
    for number, name in added.items():
        kind, _, own = name.partition("/")
        draft.note(
            "Add TRES", f"id={number}", info_text({"type": kind, "name": own}), message.cluster
        )


def _note_place(draft: Draft, message: GetAssociations, changed: ClusterRecord) -> None:
    draft.ledger.clusters[message.cluster] = changed
    shown = {
        "control_host": message.host,
        "control_port": message.port,
        "last_port": message.port,
        "rpc_version": RPC_VERSION,
    }
    shown |= {"dimensions": 1, "plugin_id_select": 109, "flags": 0}
    draft.note("Modify Clusters", f"name='{message.cluster}'", info_text(shown), message.cluster)


def modify(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Change clusters' limits, which are their roots', and what they are themselves."""
    ledger = draft.ledger
    if "parent" in message.set:  # of the tops of trees, which have none
        return AccountingChanged()
    own = {name: value for name, value in message.set.items() if name in _OWN}
    limits = {name: value for name, value in message.set.items() if name not in _OWN}
    names = [
        name
        for name, cluster in sorted(ledger.clusters.items())
        if is_meant(cluster, message.where)
    ]
    roots = [root for name in names if (root := ledger.association(name, ROOT)) is not None]
    answer = change_limits(draft, Tree(ledger), roots, limits)
    if answer.problems:
        return answer
    for name in names if own else ():
        _change_record(draft, name, own)
    return AccountingChanged(names, answer.associations)


def _change_record(draft: Draft, name: str, values: dict[str, Any]) -> None:
    clusters = draft.ledger.clusters
    if "federation" in values:
        if values["federation"] and values["federation"] not in draft.ledger.federations:
            raise SlurmError(-1, f"The federation {values['federation']} doesn't exist.")
        join(draft, name, values["federation"])
    changes: dict[str, Any] = {}
    if "features" in values:
        changes["features"] = changed_list(clusters[name].features, values["features"])
    if "fed_state" in values:
        if values["fed_state"] not in FED_STATES:
            raise invalid("FedState", values["fed_state"])
        changes["fed_state"] = values["fed_state"]
    if "classification" in values:
        if values["classification"] not in _CLASSES:
            raise invalid("Classification", values["classification"])
        changes["classification"] = values["classification"]
    if changes:
        clusters[name] = msgspec.structs.replace(clusters[name], mod_time=draft.now, **changes)
        draft.note("Modify Clusters", f"name='{name}'", info_text(changes), name)


def delete(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Forget clusters, with their associations and keys."""
    ledger = draft.ledger
    names = [
        name
        for name, cluster in sorted(ledger.clusters.items())
        if is_meant(cluster, message.where)
    ]
    for name in names:
        del ledger.clusters[name]
        ledger.associations = {
            key: each for key, each in ledger.associations.items() if each.cluster != name
        }
        ledger.wckeys = {key: each for key, each in ledger.wckeys.items() if each.cluster != name}
        draft.note("Remove Clusters", f"name='{name}'", cluster=name)
    return AccountingChanged(names)
