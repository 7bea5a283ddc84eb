"""Fair share: from shares and use to a factor between 0 and 1 for each association.

Place: the controller's core, pure, by vectors: a tree of 5,000 users takes some milliseconds. Follows: Slurm's documentation of Fair Tree, of classic
fair share and of the depth-oblivious factor.

Fair Tree ranks users: each level's associations are sorted by S/U, and the tree is walked depth first. As accounts that tie have their children
merged, that is the order of the users' paths compared level by level, so one sort of the paths' S/U ranks all users at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from understudy.controller.priority.tree import ShareTree

    Vector = NDArray[np.float64]


def level_fair_share(tree: ShareTree, use: Vector) -> Vector:
    """S/U of each association among its siblings (`LevelFS` of sshare); infinite without use, 0 without shares. `use` is summed upwards."""
    under = tree.parent >= 0
    level_use = np.zeros(len(use))
    above = use[tree.parent[under]]
    level_use[under] = np.divide(use[under], above, out=np.zeros(len(above)), where=above > 0)
    found = np.full(len(use), np.inf)
    np.divide(tree.level_share, level_use, out=found, where=level_use > 0)
    found[tree.level_share == 0] = 0.0
    found[tree.uses_parent] = np.inf
    found[~under] = np.inf
    return found


def fair_tree(tree: ShareTree, use: Vector) -> Vector:
    """The factor of each association by rank; 0 for accounts, which have none."""
    factors = np.zeros(len(use))
    count = len(tree.users)
    if not count:
        return factors
    level = level_fair_share(tree, use)
    # Behind its end a path counts as infinite: a user comes before what is below an account with which it ties.
    keys = np.where(tree.paths >= 0, level[tree.paths], np.inf)
    columns = [tree.users, tree.path_length, *(-keys[:, column] for column in range(tree.depth - 1, -1, -1))]
    order = np.lexsort(columns)
    sorted_keys, length = keys[order], tree.path_length[order]
    ties = np.zeros(count, dtype=bool)
    if count > 1:
        # A user ties with the one before it if they are siblings of the same S/U, or if it is the first below an account that ties with that one.
        comparable = np.arange(tree.depth)[None, :] >= length[:-1, None]
        same = ((sorted_keys[1:] == sorted_keys[:-1]) | comparable).all(axis=1)
        ties[1:] = same & (length[:-1] <= length[1:])
    rank = np.arange(count, 0, -1)
    firsts = np.maximum.accumulate(np.where(ties, 0, np.arange(count)))
    factors[tree.users[order]] = rank[firsts] / count
    return factors


def classic(tree: ShareTree, use: Vector, dampening: float = 1.0) -> Vector:
    """2^(-(effective use / normalised shares) / dampening)."""
    shares, effective = normalised(tree, use)
    factors = np.zeros(len(use))
    has_shares = shares > 0
    factors[has_shares] = np.exp2(-(effective[has_shares] / shares[has_shares]) / dampening)
    return factors


def normalised(tree: ShareTree, use: Vector) -> tuple[Vector, Vector]:
    """(normalised shares, effective use): products of the levels' shares, and use with a part of what the siblings used."""
    size = len(use)
    shares, effective = np.zeros(size), np.zeros(size)
    whole = use[tree.parent < 0].sum() if size else 0.0
    parent = tree.parent.tolist()
    for place in range(size):  # parents come first
        above = parent[place]
        own = use[place] / whole if whole > 0 else 0.0
        if above < 0:
            shares[place], effective[place] = 1.0, own
        elif tree.uses_parent[place]:
            shares[place], effective[place] = shares[above], effective[above]
        else:
            share = tree.level_share[place]
            shares[place] = shares[above] * share
            effective[place] = own if parent[above] < 0 else own + (effective[above] - own) * share
    return shares, effective


def depth_oblivious(tree: ShareTree, use: Vector) -> Vector:
    """2^(-R): R is the parent's R times the usage ratio among siblings, less of it the further the parent is off its target."""
    size = len(use)
    ratios, factors = np.ones(size), np.zeros(size)
    parent = tree.parent.tolist()
    sums = np.bincount(tree.parent[tree.parent >= 0], weights=use[tree.parent >= 0], minlength=size) if size else use
    for place in range(size):
        above = parent[place]
        if above < 0:
            continue
        if tree.uses_parent[place]:
            ratios[place], factors[place] = ratios[above], factors[above]
            continue
        share = tree.level_share[place]
        if share <= 0:
            ratios[place] = np.inf
            continue
        local = (use[place] / sums[above]) / share if sums[above] > 0 else 0.0
        ratios[place] = _combined(float(ratios[above]), float(local), is_first_level=parent[above] < 0)
        factors[place] = 2.0 ** -ratios[place]
    return factors


def _combined(of_parent: float, local: float, *, is_first_level: bool) -> float:
    if is_first_level:
        return local
    if local <= 0 or of_parent <= 0:
        return 0.0
    if of_parent == np.inf:
        return np.inf
    distance = float(np.log(of_parent))
    weight = 1.0 if distance * np.log(local) > 0 else 1.0 / (1.0 + (5.0 * distance) ** 2)
    return float(of_parent * local**weight)
