"""The association tree as vectors: who is whose parent, shares at each level, and use summed from
the users upwards.

Place: priority, pure. A place in the vectors belongs to an association for as long as
the tree lives; parents come before children. Fair share counts what fairshare=parent says: an
account with it hands its children to its parent, a user with it is judged as its account.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from understudy.controller.priority.api import Share


class ShareTree:
    """Built from associations, parents first.

    `parent`: place of the parent that counts for fair share, -1 for the root. `level_share`: shares
    over the sum of all siblings' shares (S of the documentation's level). `users`: places of the
    users' associations. `uses_parent`: users with fairshare=parent.
    """

    def __init__(self, shares: Sequence[Share]) -> None:
        self.shares = list(shares)
        self.place_of = {share.association_id: place for place, share in enumerate(shares)}
        size = len(self.shares)
        real_parent = [self.place_of.get(share.parent_id, -1) for share in shares]
        parent = list(real_parent)
        for place, share in enumerate(shares):
            while (
                parent[place] >= 0
                and not shares[parent[place]].user
                and shares[parent[place]].shares is None
                and real_parent[parent[place]] >= 0
            ):
                parent[place] = parent[parent[place]]
            assert parent[place] < place, (
                f"association {share.association_id} comes before its parent"
            )
        self.parent = np.array(parent, dtype=np.intp)
        self.users = np.array(
            [place for place, share in enumerate(shares) if share.user], dtype=np.intp
        )
        self.is_user = np.array([bool(share.user) for share in shares], dtype=bool)
        self.uses_parent = np.array([share.shares is None for share in shares], dtype=bool)
        raw = np.array(
            [0 if share.shares is None else share.shares for share in shares], dtype=np.float64
        )
        # What siblings have in all; the root is its own and only sibling.
        self.siblings_shares = np.zeros(size)
        under = self.parent >= 0
        if size:
            sums = np.bincount(self.parent[under], weights=raw[under], minlength=size)
            self.siblings_shares[under] = sums[self.parent[under]]
        self.level_share = np.divide(
            raw, self.siblings_shares, out=np.zeros(size), where=self.siblings_shares > 0
        )
        self.level_share[~under] = 1.0
        self._sum_places(real_parent)
        self._sum_paths()

    def _sum_places(self, real_parent: list[int]) -> None:
        """Pairs (association, itself or one above it), to sum use upwards in one operation."""
        own: list[int] = []
        above: list[int] = []
        for place in range(len(self.shares)):
            at = place
            while at >= 0:
                own.append(place)
                above.append(at)
                at = real_parent[at]
        self._own, self._above = np.array(own, dtype=np.intp), np.array(above, dtype=np.intp)

    def _sum_paths(self) -> None:
        """For each user the places on the way down from below the root; -1 behind its end.
        `path_length` is how many there are.
        """
        paths: list[list[int]] = []
        parent = self.parent.tolist()
        for user in self.users.tolist():
            path = []
            at = user
            while at >= 0 and parent[at] >= 0:
                path.append(at)
                at = parent[at]
            paths.append(path[::-1])
        self.depth = max(map(len, paths), default=0)
        self.paths = np.full((len(paths), self.depth), -1, dtype=np.intp)
        for row, path in enumerate(paths):
            self.paths[row, : len(path)] = path
        self.path_length = np.array([len(path) for path in paths], dtype=np.intp)

    def summed(self, own_use: NDArray[np.float64]) -> NDArray[np.float64]:
        """Each association's use with that of all below it, from what its own jobs used."""
        if not len(self.shares):
            return own_use.copy()
        return np.bincount(
            self._above, weights=own_use[self._own], minlength=len(self.shares)
        ).astype(np.float64, copy=False)
