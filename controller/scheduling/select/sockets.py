"""Which of a node's free cores a job may use, where it says something of sockets, or where whole
sockets are given to jobs.

Place: scheduling, pure. Cores are numbered socket by socket and kept as bit masks.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.model import nodeset


@dataclass(frozen=True, slots=True)
class SocketRules:
    """What a job says of sockets. 0: nothing."""

    tasks_each: int = 0  # at most (--ntasks-per-socket)
    cores_each: int = 0  # cores that so many tasks fill
    min_free: int = 0  # free cores that a socket must have (--cores-per-socket)
    min_count: int = 0  # sockets of that sort that a node must have (--sockets-per-node)
    whole: bool = False  # CR_SOCKET: a socket belongs to one job

    def usable(self, free: int, sockets: int, cores: int, tasks: int = 0, wanted: int = 0) -> int:
        """Those of the free cores that the job may use on a node with so many sockets and cores; 0
        if the node will not do.

        `tasks`: that go there, if that is known: sockets are left out, the lowest first, when fewer
        do for them and have the `wanted` cores.
        """
        each = cores // sockets
        on_socket = (1 << each) - 1
        parts: list[int] = []
        for at in range(0, cores, each):
            part = free >> at & on_socket
            count = part.bit_count()
            if not count or count < self.min_free or (self.whole and count < each):
                continue
            if self.cores_each:
                part = nodeset.lowest(part, self.cores_each)
            parts.append(part << at)
        if len(parts) < self.min_count:
            return 0
        if tasks and self.tasks_each:
            count = max(-(-tasks // self.tasks_each), 1)
            while count < len(parts) and sum(parts[-count:]).bit_count() < wanted:
                count += 1
            parts = parts[-count:]
        return sum(parts)

    def count(self, used: list[int], sockets: int, cores: int) -> list[int]:
        """The number of usable cores on each of several nodes, of which the cores in use are
        given.
        """
        every = (1 << cores) - 1
        known: dict[int, int] = {}
        for each in used:
            if each not in known:
                known[each] = self.usable(every & ~each, sockets, cores).bit_count()
        return [known[each] for each in used]


def whole_sockets(cores: int, sockets: int, count: int, offered: int = 0, of_task: int = 1) -> int:
    """All cores of the sockets of which any is in `cores`.

    Whole tasks of so many cores are placed first, then single cores from sockets in turn: a job
    that comes back to a socket on which no more cores were `offered` does without the rest of it.
    """
    each = count // sockets
    on_socket = (1 << each) - 1
    taken = [(cores >> at & on_socket).bit_count() for at in range(0, count, each)]
    singles = [here % of_task for here in taken] if of_task > 1 else taken
    found = cores
    for socket, here in enumerate(taken):
        at = socket * each
        came_back = any(
            theirs > singles[socket] + (other < socket) for other, theirs in enumerate(singles)
        )
        if here and not (came_back and cores >> at & on_socket == offered >> at & on_socket):
            found |= on_socket << at
    return found
