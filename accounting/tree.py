"""The tree of associations: who is below whom, in which order, and what an association inherits.

Place: the core of the accounting daemon, pure. Each cluster has one tree, whose root is the
association of the account root. Children are in the order of their positions; new ones come before
their siblings, as in Slurm, where that order shows (`left_to_right`).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from understudy.model.associations import inherit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from understudy.accounting.ledger import Draft, Ledger
    from understudy.model.associations import Association


class Tree:
    """A view of the associations as they are now; made anew after a change."""

    def __init__(self, ledger: Ledger) -> None:
        self._by_id = ledger.associations
        self.children: dict[int, list[Association]] = {}
        for each in sorted(ledger.associations.values(), key=lambda each: (each.position, each.id)):
            self.children.setdefault(each.parent_id, []).append(each)
        self._effective: dict[int, Association] = {}

    def roots(self) -> list[Association]:
        """One a cluster, by the clusters' names."""
        return sorted(self.children.get(0, []), key=lambda each: each.cluster)

    def below(self, association: Association) -> Iterator[Association]:
        """All below the association, each before its children."""
        for child in self.children.get(association.id, []):
            yield child
            yield from self.below(child)

    def left_to_right(self) -> list[Association]:
        """All, each before its children."""
        return [
            each for root in self.roots() for each in itertools.chain((root,), self.below(root))
        ]

    def bounds(self) -> dict[int, tuple[int, int]]:
        """The `lft` and `rgt` of each association: those below it lie between its two numbers. Each
        cluster counts from 1.
        """
        found: dict[int, tuple[int, int]] = {}

        def walk(association: Association, left: int) -> int:
            right = left + 1
            for child in self.children.get(association.id, []):
                right = walk(child, right) + 1
            found[association.id] = (left, right)
            return right

        for root in self.roots():
            walk(root, 1)
        return found

    def parent(self, association: Association) -> Association | None:
        return self._by_id.get(association.parent_id)

    def parent_account(self, association: Association) -> str:
        """The account above; "" for the root."""
        above = self._by_id.get(association.parent_id)
        return above.account if above is not None else ""

    def effective(self, association: Association) -> Association:
        """The association with what it inherits."""
        known = self._effective.get(association.id)
        if known is None:
            above = self.parent(association)
            known = self._effective[association.id] = inherit(
                association, self.effective(above) if above is not None else None
            )
        return known

    def is_below(self, association: Association, other: Association) -> bool:
        """Whether the association is somewhere below the other."""
        above = self.parent(association)
        while above is not None:
            if above.id == other.id:
                return True
            above = self.parent(above)
        return False


def sorted_for_show(associations: Iterable[Association]) -> list[tuple[int, Association]]:
    """The associations with their depths as `sacctmgr show assoc` lists them: each before its
    children, users before accounts, by name, as given.

    Those whose parents are not among them come to the top.
    """
    chosen = list(associations)
    ids = {each.id for each in chosen}
    below: dict[int, list[Association]] = {}
    for each in chosen:
        below.setdefault(each.parent_id if each.parent_id in ids else 0, []).append(each)

    def walk(parent: int, depth: int) -> Iterator[tuple[int, Association]]:
        for each in sorted(below.get(parent, []), key=_show_key):
            yield depth, each
            yield from walk(each.id, depth + 1)

    return list(walk(0, 0))


def _show_key(association: Association) -> tuple[str, bool, str]:
    return association.cluster, not association.is_user, association.user or association.account


def place_in_front(draft: Draft, associations: Iterable[Association]) -> None:
    """Give new associations, in this order, their places before their siblings: those that follow
    each other under one parent stay in order.
    """
    tables = (draft.ledger.associations, draft.ledger.deleted.associations)
    for parent_id, group in itertools.groupby(associations, key=lambda each: each.parent_id):
        new = list(group)
        first = min(
            (
                each.position
                for table in tables
                for each in table.values()
                if each.parent_id == parent_id
            ),
            default=0,
        )
        for offset, association in enumerate(new):
            draft.change_association(association, {"position": first - len(new) + offset})
