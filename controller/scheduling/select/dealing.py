"""How the tasks of a job are dealt out to the nodes that it gets.

Place: scheduling, pure. Two steps. `shares_of_nodes` says how many of the wanted CPUs each node
serves: as many as it has, but the nodes that the job must have beside it get one core each. `deal`
then gives every node one task, and the others in turn, a core's worth at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def shares_of_nodes(
    cpus: NDArray[np.int64], wanted: int, min_nodes: int, core: NDArray[np.int64] | int, least: int
) -> NDArray[np.int64]:
    """CPUs that each node serves, in the order in which the nodes were taken.

    `cpus`: what each has; `wanted`: in all; `min_nodes`: nodes that the job must have; `core`: CPUs
    of a core of each, which it keeps back for every further one of these; `least`: of each node at
    least.
    """
    others = np.maximum(min_nodes - 1 - np.arange(len(cpus)), 0) * core
    before = cpus.cumsum() - cpus
    bound = cpus > wanted - before - others
    if not bound.any():
        return cpus
    # what the first nodes may have serves together grows from node to node
    if isinstance(core, int):
        base = np.minimum(cpus, least)
        beyond = (cpus - base).cumsum()
        most = np.maximum(wanted - others - base.cumsum(), 0)
        given = beyond + np.minimum(np.minimum.accumulate(most - beyond), 0)
        given[1:] -= given[:-1]
        found: NDArray[np.int64] = base + np.maximum(given, 0)
        return found
    first = int(bound.argmax())
    shares = cpus.copy()
    left = wanted - int(before[first])
    for i, (has, kept) in enumerate(
        zip(cpus[first:].tolist(), others[first:].tolist(), strict=True), first
    ):
        if left <= 0:
            shares[i:] = np.minimum(cpus[i:], least)
            break
        share = min(has, max(left - kept, least))
        shares[i] = share
        left -= share
    return shares


def deal(
    tasks: int, room: NDArray[np.int64], at_a_time: NDArray[np.int64] | int = 1
) -> NDArray[np.int64]:
    """Tasks on each node. `room`: that each has room for, `at_a_time`: that fill a core.

    More tasks than there is room for are dealt one by one: the CPUs of a task may be fewer than it
    asked for, when nodes have odd ones left over.
    """
    room = np.maximum(room, 1)
    more = tasks - int(room.sum())
    if more >= 0:
        each, further = divmod(more, len(room))
        if more:
            room = room + each
            room[:further] += 1
        return room
    # full rounds for which there are tasks enough, and rounds for which there are not
    low, high = 0, int(room.max())
    while high - low > 1:
        middle = (low + high) >> 1
        if int(_after(middle, room, at_a_time).sum()) <= tasks:
            low = middle
        else:
            high = middle
    given = _after(low, room, at_a_time)
    left = tasks - int(given.sum())
    if left > 0:
        turn = np.minimum(_after(low + 1, room, at_a_time) - given, room - given)
        before = turn.cumsum() - turn
        given = given + np.clip(left - before, 0, turn)
    return given


def _after(
    rounds: int, room: NDArray[np.int64], at_a_time: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """Tasks on each node after that many rounds; before the first, one each."""
    done: NDArray[np.int64] = np.minimum(room, np.maximum(at_a_time * rounds, 1))
    return done
