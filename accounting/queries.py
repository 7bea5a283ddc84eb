"""Questions: rows of the ledger's and the history's tables, by columns and conditions.

Place: the core of the accounting daemon, with the store at hand. Unknown tables, columns and
conditions are refused.
"""

from __future__ import annotations

import pwd
from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import or_

from understudy.accounting import (
    change_clusters,
    change_federations,
    change_resources,
    conditions,
    schema,
)
from understudy.accounting.deleted import with_deleted
from understudy.accounting.tree import Tree, sorted_for_show
from understudy.model.associations import ROOT
from understudy.model.errors import SlurmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from understudy.accounting.ledger import Ledger
    from understudy.accounting.store import Store
    from understudy.model.associations import Association
    from understudy.protocol.messages import AccountingQuery

    Row = dict[str, Any]


def run_query(ledger: Ledger, store: Store, query: AccountingQuery) -> list[list[Any]]:
    """The rows.

    Raises:
        SlurmError: no such table, column or condition.
    """
    if query.table in _LEDGER_TABLES:
        seen = with_deleted(ledger) if "with_deleted" in query.flags else ledger
        rows = _LEDGER_TABLES[query.table](seen, Tree(seen), query)
    elif query.table in _HISTORY:
        rows = _history(store, query)
    else:
        raise SlurmError(-1, f"accounting has no table {query.table}")
    columns = query.columns
    if not rows:
        return []
    try:
        return [[row[name] for name in columns] if columns else list(row.values()) for row in rows]
    except KeyError as error:
        raise SlurmError(-1, f"{query.table} has no column {error}") from None


def _fields(record: msgspec.Struct) -> Row:
    return msgspec.structs.asdict(record)


# --- the ledger -----------------------------------------------------------------------------------


def _clusters(ledger: Ledger, tree: Tree, query: AccountingQuery) -> list[Row]:
    where = query.where
    rows = []
    for name, cluster in sorted(ledger.clusters.items()):
        if not change_clusters.is_meant(cluster, where):
            continue
        root = ledger.association(name, ROOT)
        assert root is not None
        rows.append({**_association(tree, root, {}), **_fields(cluster), "cluster": name})
    return rows


def _accounts(ledger: Ledger, tree: Tree, query: AccountingQuery) -> list[Row]:
    return [
        {**_fields(account), "coordinators": coordinators_of(ledger, tree, account.name)}
        for account in conditions.accounts(ledger, tree, query.where)
    ]


def coordinators_of(ledger: Ledger, tree: Tree, account: str) -> list[str]:
    """The users who coordinate the account or one above it on any cluster."""
    accounts = {account}
    for each in ledger.associations.values():
        if each.account == account and not each.user:
            above = tree.parent(each)
            while above is not None:
                accounts.add(above.account)
                above = tree.parent(above)
    return [
        name
        for name, user in sorted(ledger.users.items())
        if accounts.intersection(user.coordinates)
    ]


def _users(ledger: Ledger, tree: Tree, query: AccountingQuery) -> list[Row]:
    rows = []
    for user in conditions.users(ledger, tree, query.where):
        default = next(
            (
                each.account
                for each in ledger.associations.values()
                if each.user == user.name and each.is_default
            ),
            "",
        )
        below = {
            lower.account
            for each in ledger.associations.values()
            if each.account in user.coordinates and not each.user
            for lower in (each, *tree.below(each))
        }
        by_place = [] if "raw" in query.flags else sorted(below - set(user.coordinates))
        rows.append(
            {
                **_fields(user),
                "default_account": default,
                "coordinates": [*user.coordinates, *by_place],
            }
        )
    return rows


def _associations(ledger: Ledger, tree: Tree, query: AccountingQuery) -> list[Row]:
    flags = set(query.flags)
    found = conditions.associations(tree, query.where)
    # those of a deleted cluster are shown if it is named
    if "with_deleted" in flags and not query.where.get("clusters"):
        found = [each for each in found if each.cluster not in ledger.deleted.clusters]
    if "with_sub_accounts" in flags:
        chosen: dict[int, Association] = {}
        for each in found:
            chosen.update({every.id: every for every in (each, *tree.below(each))})
        found = [each for each in tree.left_to_right() if each.id in chosen]
    if "only_defaults" in flags:
        found = [each for each in found if each.is_default]
    depths = dict.fromkeys((each.id for each in found), 0)
    if "left_to_right" not in flags:
        placed = sorted_for_show(found)
        found = [each for _, each in placed]
        depths = {each.id: depth for depth, each in placed}
    bounds = Tree(with_deleted(ledger)).bounds()  # what was deleted keeps its place
    return [
        {
            **_association(tree, each, bounds, is_raw="raw" in flags),
            "depth": depths[each.id],
            "qos_raw": _qos_raw(each, tree, flags),
        }
        for each in found
    ]


def _association(
    tree: Tree,
    association: Association,
    bounds: dict[int, tuple[int, int]],
    *,
    is_raw: bool = False,
) -> Row:
    shown = association if is_raw else tree.effective(association)
    left, right = bounds.get(association.id, (0, 0))
    row = _fields(shown)
    row["qos"] = [*(shown.qos or ()), *shown.delta_qos]
    above = "" if association.user else tree.parent_account(association)
    return {**row, "parent_account": above, "left": left, "right": right}


def _qos_raw(association: Association, tree: Tree, flags: set[str]) -> list[str]:
    """Its own list, or what is inherited with the changes on the way not carried out."""
    own = [*(association.qos or ()), *association.delta_qos]
    above = tree.parent(association)
    if association.qos is not None or "raw" in flags or above is None:
        return own
    return [*_qos_raw(above, tree, flags), *own]


def _qos(ledger: Ledger, _tree: Tree, query: AccountingQuery) -> list[Row]:
    return [_fields(each) for each in conditions.qualities(ledger, query.where)]


def _tres(ledger: Ledger, _tree: Tree, query: AccountingQuery) -> list[Row]:
    rows = []
    for _, each in sorted(ledger.tres.items()):
        kind, _, name = each.name.partition("/")
        row = {"id": each.id, "tres": each.name, "type": kind, "name": name}
        if all(
            not values or str(row[key]) in map(str, values)
            for key, values in (("id", query.where.get("ids")), ("type", query.where.get("types")))
        ) and (not query.where.get("names") or name in query.where["names"]):
            rows.append(row)
    return rows


def _wckeys(ledger: Ledger, _tree: Tree, query: AccountingQuery) -> list[Row]:
    where = query.where
    return [
        _fields(each)
        for each in sorted(
            ledger.wckeys.values(), key=lambda each: (each.cluster, each.name, each.user)
        )
        if all(
            not where.get(key) or value in where[key]
            for key, value in (
                ("names", each.name),
                ("clusters", each.cluster),
                ("users", each.user),
            )
        )
    ]


def _problems(ledger: Ledger, tree: Tree, _query: AccountingQuery) -> list[Row]:
    placed = {each.account for each in ledger.associations.values()}
    rows: list[Row] = [
        {"cluster": "", "account": name, "user": "", "problem": "Account has no Associations"}
        for name in sorted(ledger.accounts)
        if name not in placed
    ]
    rows += [
        {
            "cluster": each.cluster,
            "account": each.account,
            "user": "",
            "problem": "Account has no users",
        }
        for _, each in sorted_for_show(tree.left_to_right())
        if not each.user and not tree.children.get(each.id)
    ]
    for name in sorted(ledger.users):
        try:
            pwd.getpwnam(name)
        except KeyError:
            rows.append(
                {"cluster": "", "account": "", "user": name, "problem": "User does not have a uid"}
            )
    return rows


_LEDGER_TABLES: Final[dict[str, Callable[[Ledger, Tree, AccountingQuery], list[Row]]]] = {
    "clusters": _clusters,
    "accounts": _accounts,
    "users": _users,
    "associations": _associations,
    "qos": _qos,
    "tres": _tres,
    "wckeys": _wckeys,
    "problems": _problems,
    "resources": lambda ledger, _tree, query: change_resources.rows(
        ledger, query.where, by_cluster="with_clusters" in query.flags
    ),
    "federations": lambda ledger, _tree, query: change_federations.rows(ledger, query.where),
}

# --- history --------------------------------------------------------------------------------------

_HISTORY: Final = {
    "jobs": (schema.jobs, ("job_id", "submit_time", "restarts")),
    "steps": (schema.steps, ("job_id", "submit_time", "restarts")),
    "events": (schema.events, ("cluster", "start_time", "node")),
    "reservations": (schema.reservations, ("cluster", "start_time", "id")),
    "transactions": (schema.transactions, ("time", "id")),
    "usage": (schema.usage, ("start_time", "kind", "subject", "tres")),
}
_FIELD_OF: Final = {  # condition: column
    "job_ids": "job_id",
    "clusters": "cluster",
    "users": "user",
    "user_ids": "user_id",
    "accounts": "account",
    "partitions": "partition",
    "names": "name",
    "qos": "qos",
    "wckeys": "wckey",
    "states": "state",
    "nodes": "node",
    "actions": "action",
    "actors": "actor",
    "ids": "id",
    "periods": "period",
    "kinds": "kind",
    "subjects": "subject",
    "array_job_ids": "array_job_id",
}
_MANY: Final = 400


def _history(store: Store, query: AccountingQuery) -> list[Row]:
    """Rows of the history. `after` and `before` choose by time: those that were there at some time
    between the two.
    """
    table, order = _HISTORY[query.table]
    tests: list[Any] = []
    late: list[tuple[str, set[Any]]] = []
    for name, values in query.where.items():
        if not values:
            continue
        # a job's own number, its array's, or that of its components
        if name == "jobs" and "array_job_id" in table.c:
            tests.append(
                or_(
                    table.c.job_id.in_(values),
                    table.c.array_job_id.in_(values),
                    table.c.het_job_id.in_(values),
                )
            )
        elif name == "after":
            ended = (
                table.c.end_time
                if "end_time" in table.c
                else table.c.time
                if "time" in table.c
                else table.c.start_time
            )
            tests.append(or_(ended.is_(None), ended >= values[0]))
        elif name == "before":
            tests += _began_before(table, values[0])
        elif name in _FIELD_OF and _FIELD_OF[name] in table.c:
            column = table.c[_FIELD_OF[name]]
            if len(values) <= _MANY:
                tests.append(column.in_(values))
            else:
                late.append((_FIELD_OF[name], set(values)))
        else:
            raise SlurmError(-1, f"{query.table} cannot be chosen by {name}")
    rows = store.find(table, tests, [table.c[name] for name in order])
    return [row for row in rows if all(row[name] in values for name, values in late)]


def _began_before(table: Any, when: float) -> list[Any]:
    if "eligible_time" in table.c:  # a job is there from when it may run
        return [
            or_(table.c.eligible_time.is_(None), table.c.eligible_time <= when),
            table.c.submit_time <= when,
        ]
    column = table.c.time if "time" in table.c else table.c.start_time
    return [or_(column.is_(None), column <= when)]
