"""How many tasks a job has on how many nodes, where its options do not say.

Place: the vocabulary: commands tell jobs, the controller goes by it. Follows sbatch(1) --nodes,
--ntasks, --ntasks-per-node, --extra-node-info.
"""

from math import prod


def described_threads(*counts: int | None) -> int:
    """The threads of a node that is described: sockets, cores of a socket, threads of a core."""
    return prod(1 if count is None else count for count in counts)


def nodes_with_tasks(tasks: int, least: int, most: int | None) -> tuple[int, int | None]:
    """The least and the most nodes, none of which is without a task."""
    return min(least, tasks), None if most is None else min(most, tasks)


def nodes_for(tasks: int, each: int) -> int:
    """How many nodes so many tasks take with `each` on every one."""
    return -(-tasks // each)
