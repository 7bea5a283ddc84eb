"""Resources that clusters share, such as licences of one server: added, changed, given to clusters
in parts, deleted.

Place: the core of the accounting daemon, pure. Answers name a resource as `name@server`, and a
cluster's part of it as an association of the cluster, that name and the percentage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from understudy.accounting.ledger import Resource, info_text
from understudy.protocol.messages import AccountingChanged

if TYPE_CHECKING:
    from understudy.accounting.ledger import Draft, Ledger
    from understudy.protocol.messages import AccountingChange

    Part = tuple[str, str, str, str, str]

DEFAULT_SERVER: Final = "slurmdb"
_NO_NUMBER: Final = 65535
_UNSAID: Final = 65534  # so Slurm writes a percentage that nobody gave
_LICENSE: Final = 1  # the one type that there is
_OWN: Final = frozenset(("count", "description", "server_type", "type"))


def add(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """New resources, and parts of old and new ones for clusters."""
    ledger, values = draft.ledger, message.set
    clusters = message.where.get("clusters", [])
    server = values.get("server", DEFAULT_SERVER)
    percent = values.get("allowed")
    percent = _UNSAID if percent is None else int(percent)
    answer = AccountingChanged()
    if "count" in values and values["count"] is None:
        return answer
    for name in message.names:
        known = next(
            (
                each
                for each in ledger.resources.values()
                if (each.name, each.server) == (name, server)
            ),
            None,
        )
        if known is None:
            for field in ("type", "count"):
                if field not in values:
                    return AccountingChanged(problems=[(f"no_{field}", [name])])
            own = {
                "description": name,
                **{field: value for field, value in values.items() if field in _OWN},
            }
            known = Resource(
                draft.number("resources"),
                name,
                server,
                creation_time=draft.now,
                mod_time=draft.now,
                **own,
            )
            ledger.resources[known.id] = known
            said = {
                "mod_time": int(draft.now),
                "count": known.count,
                "description": known.description,
                "manager": known.server_type,
                "type": _LICENSE,
            }
            draft.note("Add Resources", str(known.id), info_text(said))
            is_new = True
        else:
            is_new = False
        new = [cluster for cluster in clusters if cluster not in known.allowed]
        used = sum(known.allowed.values())
        if used + percent * len(new) > 100:
            return AccountingChanged(
                problems=[("over", [str(len(new)), f"{name}@{server}", str(percent), str(used)])]
            )
        if new:
            ledger.resources[known.id] = msgspec.structs.replace(
                known, allowed={**known.allowed, **dict.fromkeys(new, percent)}, mod_time=draft.now
            )
            for cluster in new:
                said = {"mod_time": int(draft.now), "percent_allowed": percent}
                draft.note("Add Resources", f"{known.id}@{cluster}", info_text(said))
        if is_new or new:
            answer.names.append(f"{name}@{server}")
            answer.associations.extend(_part(cluster, known, percent) for cluster in new)
    return answer


def _part(cluster: str, resource: Resource, percent: int) -> Part:
    return cluster, f"{resource.name}@{resource.server}", str(percent), "", ""


def chosen(ledger: Ledger, where: dict[str, list[str]]) -> list[Resource]:
    """Those that meet names, ids, servers, server_types and descriptions; by number."""
    fields = (
        ("names", "name"),
        ("ids", "id"),
        ("servers", "server"),
        ("server_types", "server_type"),
        ("descriptions", "description"),
    )
    return [
        each
        for _, each in sorted(ledger.resources.items())
        if all(
            not where.get(key) or str(getattr(each, field)) in map(str, where[key])
            for key, field in fields
        )
    ]


def modify(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Change resources, or the parts that clusters have of them."""
    ledger = draft.ledger
    clusters = message.where.get("clusters", [])
    if not message.set.keys() & (_OWN | {"allowed"}):
        return AccountingChanged()
    values: dict[str, Any] = {  # clusters' parts have none of these
        field: value for field, value in message.set.items() if field in _OWN and not clusters
    }
    answer = AccountingChanged()
    for resource in chosen(ledger, message.where):
        name = f"{resource.name}@{resource.server}"
        parts = [cluster for cluster in resource.allowed if cluster in clusters]
        allowed = dict(resource.allowed)
        if "allowed" in message.set:
            percent = message.set["allowed"]
            allowed |= dict.fromkeys(parts, _NO_NUMBER if percent is None else int(percent))
            if (total := sum(allowed.values())) > 100:
                shown = [f"{cluster}={each}" for cluster, each in allowed.items()]
                return AccountingChanged(problems=[("too_much", [name, str(total), *shown])])
        if not parts and (clusters or not values):
            continue
        ledger.resources[resource.id] = msgspec.structs.replace(
            resource, mod_time=draft.now, allowed=allowed, **values
        )
        if values:
            answer.names.append(name)
        answer.associations.extend(_part(cluster, resource, allowed[cluster]) for cluster in parts)
        if values:  # what a part has become is not on record
            draft.note("Modify Resources", f"id='{resource.id}'", info_text(values))
    return answer


def delete(draft: Draft, message: AccountingChange) -> AccountingChanged:
    """Forget resources; with clusters in the conditions, their parts alone."""
    ledger = draft.ledger
    clusters = message.where.get("clusters", [])
    answer = AccountingChanged()
    for resource in chosen(ledger, message.where):
        parts = [cluster for cluster in resource.allowed if not clusters or cluster in clusters]
        answer.associations.extend(
            _part(cluster, resource, resource.allowed[cluster]) for cluster in parts
        )
        name = f"{resource.name}@{resource.server}"
        if not clusters:
            del ledger.resources[resource.id]
            answer.names.append(name)
            draft.note("Remove Resources", f"id='{resource.id}'")
        elif parts:
            left = {
                cluster: percent
                for cluster, percent in resource.allowed.items()
                if cluster not in parts
            }
            ledger.resources[resource.id] = msgspec.structs.replace(
                resource, allowed=left, mod_time=draft.now
            )
    return answer


def rows(ledger: Ledger, where: dict[str, list[str]], *, by_cluster: bool) -> list[dict[str, Any]]:
    """The resources as rows; by cluster, one for each part of each."""
    found = []
    for each in chosen(ledger, where):
        row = {
            **msgspec.structs.asdict(each),
            "allocated": sum(each.allowed.values()),
            "cluster": "",
            "allowed": 0,
        }
        if not by_cluster:
            found.append(row)
            continue
        wanted = where.get("clusters")
        found += [
            {**row, "cluster": cluster, "allowed": percent}
            for cluster, percent in each.allowed.items()
            if not wanted or cluster in wanted
        ]
    return found
