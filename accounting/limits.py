"""Changing limits of associations: which are affected further down, and whether everybody's default
quality of service stays within reach.

Place: the core of the accounting daemon, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from understudy.accounting.answers import name_of
from understudy.accounting.fields import association_changes
from understudy.accounting.transaction_texts import changes_info
from understudy.accounting.tree import Tree
from understudy.model.associations import INHERITED, INHERITED_TRES
from understudy.protocol.messages import AccountingChanged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.accounting.ledger import Draft
    from understudy.model.associations import Association

_INHERITED: Final = frozenset((*INHERITED, *INHERITED_TRES, "qos"))


def affected_by(
    tree: Tree, association: Association, values: Mapping[str, Any]
) -> list[Association]:
    """The users' associations below that inherit something of what is set on this one."""
    inherited = [name for name in values if name in _INHERITED]
    if not inherited:
        return []
    found: list[Association] = []

    def walk(above: Association, names: list[str]) -> None:
        for child in tree.children.get(above.id, []):
            open_names = [name for name in names if not _says_itself(child, name)]
            if open_names:
                if child.user:
                    found.append(child)
                walk(child, open_names)

    walk(association, inherited)
    return found


def _says_itself(association: Association, name: str) -> bool:
    value = getattr(association, name)
    return value is not None and value != {}


def change_limits(
    draft: Draft, tree: Tree, chosen: list[Association], values: dict[str, Any]
) -> AccountingChanged:
    """Set limits on the chosen associations; the answer lists them, and the users below to whom
    that makes a difference.

    Nothing is changed if somebody's default quality of service would not be among those that may be
    used.
    """
    if not values:
        return AccountingChanged()
    # users and clusters cannot be put elsewhere, but may be asked to
    values = {name: value for name, value in values.items() if name != "parent"}
    ledger = draft.ledger
    listed: list[Association] = []
    concerned: dict[int, Association] = {}
    before = dict(ledger.associations)
    for association in chosen:
        draft.change_association(association, association_changes(ledger, values, association))
        below = affected_by(tree, association, values) if not association.user else []
        listed += (association, *below)
        concerned.update(
            {
                each.id: each
                for each in (
                    association,
                    *(each for each in below if each.parent_id == association.id),
                )
            }
        )
    if "qos" in values or values.get("default_qos"):
        after = Tree(ledger)
        problems = []
        for number in concerned:
            effective = after.effective(ledger.associations[number])
            if effective.default_qos and effective.default_qos not in (effective.qos or ()):
                problems.append(
                    (
                        "no_access_to_default_qos",
                        [
                            effective.default_qos,
                            effective.cluster,
                            effective.account,
                            effective.user,
                            effective.partition,
                        ],
                    )
                )
        if problems:
            ledger.associations.clear()
            ledger.associations.update(before)
            return AccountingChanged(problems=problems)
    if chosen:
        clusters = {each.cluster for each in chosen}
        draft.note(
            "Modify Associations",
            "(" + " || ".join(f"id_assoc={each.id}" for each in chosen) + ")",
            changes_info(ledger, [ledger.associations[each.id] for each in chosen], values),
            clusters.pop() if len(clusters) == 1 else "",
        )
    return AccountingChanged([], [name_of(tree, each) for each in listed])
