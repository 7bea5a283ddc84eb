"""Classic fair share (PriorityFlags=NO_FAIR_TREE) and its depth-oblivious form: 2^(-(effective use
/ normalised shares) / dampening).

Place: priority, pure. Follows: Slurm's documentation of classic fair share, and what a
cluster of 22.05.8 logs with DebugFlags=PRIORITY.

What counts when is part of it. A period's end works out the effective use of all accounts from what
was used before it. A user's is worked out once in a period, when somebody first asks: his first job
among those that get their priorities at the period's end (in the order of jobs, each running job
adding its use when its turn comes), else his next submission or sshare. So a user's own use is
fresher than his account's.
"""

from __future__ import annotations

from math import exp2, inf, isnan, log, nan
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.controller.priority.tree import ShareTree

    Vector = NDArray[np.float64]


class ClassicShares:
    """By place in the tree: `shares` of the whole; `normal` use as part of all (nan: never worked
    out), `effective` use (nan: not asked for yet).
    """

    def __init__(
        self, tree: ShareTree, *, dampening: float = 1.0, is_depth_oblivious: bool = False
    ) -> None:
        self._dampening, self._is_depth_oblivious = dampening, is_depth_oblivious
        self._plant(tree)

    def replant(self, tree: ShareTree, moved: dict[int, int]) -> None:
        """The tree was built anew; `moved` tells the new place of each old one that is left. Who is
        new has used nothing.
        """
        normal, effective = self.normal, self.effective
        self._plant(tree)
        for old, new in moved.items():
            self.normal[new], self.effective[new] = normal[old], effective[old]
        self._add_up()

    def _plant(self, tree: ShareTree) -> None:
        self._tree = tree
        size = len(tree.shares)
        self._parent: list[int] = tree.parent.tolist()
        self._level: list[float] = tree.level_share.tolist()
        self._uses_parent: list[bool] = tree.uses_parent.tolist()
        self.normal, self.effective, self.shares = [nan] * size, [0.0] * size, [0.0] * size
        for place, above in enumerate(self._parent):
            if above < 0:
                self.shares[place] = self.effective[place] = 1.0
            else:
                self.shares[place] = self.shares[above] * (
                    1.0 if self._uses_parent[place] else self._level[place]
                )
        self._add_up()

    def _add_up(self) -> None:
        """`_siblings`: the normal use of all below each place that have shares of their own."""
        self._siblings = [0.0] * len(self._parent)
        for place, above in enumerate(self._parent):
            if above >= 0 and not self._uses_parent[place] and not isnan(self.normal[place]):
                self._siblings[above] += self.normal[place]

    def begin(self, use: Vector) -> None:
        """A period has ended: accounts are judged by `use`, summed upwards; users when somebody
        asks.
        """
        tree = self._tree
        whole = float(use[tree.parent < 0].sum())
        self._add_up()
        for place in np.flatnonzero(~tree.is_user).tolist():  # parents come first
            self.update(place, float(use[place]), whole)
        for place in tree.users.tolist():
            self.effective[place] = nan

    def update(self, place: int, used: float, whole: float) -> None:
        """Work out one association's effective use from what it and all together have used."""
        above = self._parent[place]
        if above < 0:
            return
        before, own = self.normal[place], used / whole if whole > 0 else 0.0
        self.normal[place] = own
        if not self._uses_parent[place]:
            self._siblings[above] += own if isnan(before) else own - before
        self.effective[place] = self._effective(place, above)

    def _effective(self, place: int, above: int) -> float:
        own = self.normal[place]
        if self._parent[above] < 0:
            return own
        of_account, share = self.effective[above], self._level[place]
        if self._uses_parent[place]:
            return of_account
        if not self._is_depth_oblivious:
            return own + (of_account - own) * share
        return self._by_ratio(place, above) if share > 0 and self.shares[place] > 0 else own

    def _by_ratio(self, place: int, above: int) -> float:
        """R * S: R is the account's R times the ratio of use to shares among siblings, less of it
        the further the account is off its target.
        """
        siblings = self._siblings[above]
        local = self.normal[place] / siblings / self._level[place] if siblings > 0 else 0.0
        return _ratio(self.effective[above] / self.shares[above], local) * self.shares[place]

    def judged_as(self, place: int) -> int:
        """Whose factor the jobs of an association get: with fairshare=parent that of the account
        above.
        """
        return (
            self._parent[place] if self._uses_parent[place] and self._parent[place] >= 0 else place
        )

    def factor(self, place: int) -> float:
        """nan: the effective use is not worked out yet."""
        shares, effective = self.shares[place], self.effective[place]
        if isnan(effective):
            return nan
        return exp2(-(effective / shares) / self._dampening) if shares > 0 else 0.0


def _ratio(of_account: float, local: float) -> float:
    if local <= 0 or of_account <= 0:
        return 0.0
    if of_account == inf:
        return inf
    distance = log(of_account)
    weight = 1.0 if distance * log(local) > 0 else 1.0 / (1.0 + (5.0 * distance) ** 2)
    return float(of_account * local**weight)
