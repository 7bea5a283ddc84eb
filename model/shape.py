"""How many tasks a job has on how many nodes, where its options do not say.

Place: the vocabulary: commands tell jobs, the controller goes by it. Follows sbatch(1) --nodes,
--ntasks, --ntasks-per-node, --extra-node-info.
"""

from math import prod


def described_threads(*counts: int | None) -> int | None:
    """The threads of a node that is described: sockets, cores of a socket, threads of a core. None
    if nothing is said of it.
    """
    said = [count for count in counts if count is not None]
    return prod(said) if said else None


def uncounted_tasks(
    nodes: int, most: int | None, each: int | None, threads: int | None
) -> tuple[int, bool]:
    """How many tasks a job has that does not say so, and whether it is told (SLURM_NTASKS).

    `nodes`: the least, `most`: None for any number. `each`: --ntasks-per-node. `threads`: of a node
    that is described.
    """
    is_certain = most is None or most <= nodes
    if each:
        return each * nodes, is_certain
    if threads is None or not is_certain:
        return nodes, False
    return max(threads, 1) * nodes, True


def nodes_with_tasks(tasks: int, least: int, most: int | None) -> tuple[int, int | None]:
    """The least and the most nodes, none of which is without a task."""
    return min(least, tasks), None if most is None else min(most, tasks)


def nodes_for(tasks: int, each: int) -> int:
    """How many nodes so many tasks take with `each` on every one."""
    return -(-tasks // each)
