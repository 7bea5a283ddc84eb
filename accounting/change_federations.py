"""Federations: named groups of clusters. They are kept and shown; no controller acts on them.

Place: the core of the accounting daemon, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from understudy.accounting.ledger import Federation, info_text
from understudy.protocol.messages import AccountingChanged

if TYPE_CHECKING:
    from understudy.accounting.ledger import Draft, Ledger
    from understudy.protocol.messages import AccountingChange


def add(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """New federations, perhaps with clusters."""
    ledger = draft.ledger
    added = []
    for name in message.names:
        if name not in ledger.federations:
            ledger.federations[name] = Federation(name, draft.now, draft.now)
            draft.note("Add Federations", name)
            added.append(name)
            for cluster in message.set.get("clusters", []):
                join(draft, cluster, name)
    return AccountingChanged(added)


def join(draft: Draft, cluster: str, federation: str) -> None:
    """Put a cluster into a federation, from whichever it was in; "": into none."""
    ledger = draft.ledger
    numbers = {
        each.fed_id
        for each in ledger.clusters.values()
        if each.federation == federation and each.name != cluster
    }
    number = (
        next(number for number in range(1, len(numbers) + 2) if number not in numbers)
        if federation
        else 0
    )
    changes = {
        "federation": federation,
        "fed_id": number,
        "fed_state": "ACTIVE" if federation else "",
    }
    ledger.clusters[cluster] = msgspec.structs.replace(
        ledger.clusters[cluster], mod_time=draft.now, **changes
    )
    draft.note("Modify Clusters", f"name='{cluster}'", info_text(changes), cluster)


def chosen(ledger: Ledger, where: dict[str, list[str]]) -> list[Federation]:
    """Those that meet names and clusters; by name."""
    names, clusters = where.get("names"), where.get("clusters")
    homes = {
        each.federation for each in ledger.clusters.values() if clusters and each.name in clusters
    }
    return [
        each
        for name, each in sorted(ledger.federations.items())
        if (not names or name in names) and (not clusters or name in homes)
    ]


def modify(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Add clusters to federations (`+name`) or take them away (`-name`)."""
    found = chosen(draft.ledger, message.where)
    for federation in found:
        for change in message.set.get("clusters", []):
            join(draft, change[1:], federation.name if change[0] == "+" else "")
    return AccountingChanged([each.name for each in found])


def delete(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Forget federations; their clusters stay."""
    ledger = draft.ledger
    found = chosen(ledger, message.where)
    for federation in found:
        for cluster in [
            each.name for each in ledger.clusters.values() if each.federation == federation.name
        ]:
            join(draft, cluster, "")
        del ledger.federations[federation.name]
        draft.note("Remove Federations", federation.name)
    return AccountingChanged([each.name for each in found])


def rows(ledger: Ledger, where: dict[str, list[str]]) -> list[dict[str, Any]]:
    """One row for each cluster of each federation; one for a federation without any."""
    found: list[dict[str, Any]] = []
    wanted = where.get("clusters")
    for federation in chosen(ledger, where):
        members = [
            each
            for _, each in sorted(ledger.clusters.items())
            if each.federation == federation.name and (not wanted or each.name in wanted)
        ]
        found += [
            {
                "federation": federation.name,
                "cluster": each.name,
                "fed_id": each.fed_id,
                "features": list(each.features),
                "fed_state": each.fed_state,
            }
            for each in members
        ] or [
            {
                "federation": federation.name,
                "cluster": "",
                "fed_id": None,
                "features": [],
                "fed_state": "",
            }
        ]
    return found
