"""How answers name associations.

Place: the core of the accounting daemon, pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.accounting.tree import Tree
    from understudy.model.associations import Association

    Name = tuple[str, str, str, str, str]


def name_of(tree: Tree, association: Association) -> Name:
    """Cluster, account, the parent's account ("" for users and the root), user, partition."""
    parent = "" if association.user else tree.parent_account(association)
    return association.cluster, association.account, parent, association.user, association.partition
