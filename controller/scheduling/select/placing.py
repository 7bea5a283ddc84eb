"""Which cores of a node a job gets.

Place: scheduling, pure. Cores are numbered socket by socket and kept as bit masks. The default goes
round the sockets, a core from each in turn, so that a job has the memory bandwidth of all; tasks of
several CPUs are kept within a socket. Block distribution takes the tightest socket that suffices,
else the one with most free cores and then the same with the rest.
"""

from __future__ import annotations

from understudy.model import nodeset


def place(
    free: int,
    count: int,
    sockets: int,
    cores_each: int,
    cpus_per_task: int,
    cpus_of_core: int,
    *,
    block: bool = False,
) -> int:
    """`count` of the `free` cores of a node with that many sockets, each of so many cores.

    `cpus_of_core`: those of a core's CPUs that the job's tasks use.
    """
    if sockets == 1 or cores_each == 1 or count >= free.bit_count():
        return nodeset.lowest(free, count)
    on_socket = (1 << cores_each) - 1
    parts = [free >> s * cores_each & on_socket for s in range(sockets)]
    sizes = [part.bit_count() for part in parts]
    taken = (
        _in_blocks(sizes, count) if block else _in_turn(sizes, count, cpus_per_task, cpus_of_core)
    )
    cores = 0
    for s, part in enumerate(parts):
        if taken[s]:
            cores |= nodeset.lowest(part, taken[s]) << s * cores_each
    return cores


def _in_blocks(sizes: list[int], count: int) -> list[int]:
    taken = [0] * len(sizes)
    while count:
        left = [(size, s) for s, size in enumerate(sizes) if size and not taken[s]]
        enough = [(size, s) for size, s in left if size >= count]
        s = min(enough)[1] if enough else min((-size, s) for size, s in left)[1]
        taken[s] = min(sizes[s], count)
        count -= taken[s]
    return taken


def _in_turn(sizes: list[int], count: int, cpus_per_task: int, cpus_of_core: int) -> list[int]:
    taken = [0] * len(sizes)
    if cpus_per_task > 1:
        for s, size in enumerate(sizes):
            tasks = size * cpus_of_core // cpus_per_task
            taken[s] = min(-(-tasks * cpus_per_task // cpus_of_core), count)
            count -= taken[s]
    while count:
        for s, size in enumerate(sizes):
            if count and taken[s] < size:
                taken[s] += 1
                count -= 1
    return taken
