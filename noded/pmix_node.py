"""PMIx at one node of a step: the fences its tasks are in, and what tasks of one node ask of those
of another.

Place: a part of the step's PMIx process (`pmixd.py`), one for each node; knows neither the library
(`pmix_library.py`) nor sockets, and imports nothing of the house. Bodies are carried between nodes
as they are, by `taskd.py` and srun. Follows: the PMIx standard, version 4, on servers.

A fence is gathered by the first of its nodes, which sends what all have put to each:

    FENCE 3 0,2,5 1 <data>     to the first node, from node 1: what its tasks have put, in the third
                               fence of these tasks (`*`: all)
    FENCED 3 0,2,5 0 <data>    from there: what all have put
    ASK 7 4 1                  what has task 4 put? Number 7 of node 1
    TOLD 7 0 2 <data>          the answer of node 2, with a status of PMIx
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SUCCESS, NOT_FOUND = 0, -46
EVERYBODY = "*"


class Node:
    """One of them. `send`: a body to a node; `look_up`: what a task of this node has put, told with
    a status when it has put something.
    """

    def __init__(
        self,
        number: int,
        layout: list[list[int]],
        send: Callable[[int, bytes], None],
        look_up: Callable[[int, Callable[[int, bytes], None]], None],
    ) -> None:
        self._number, self._layout, self._send, self._look_up = number, layout, send, look_up
        self._node_of = {rank: at for at, ranks in enumerate(layout) for rank in ranks}
        self._fences: dict[str, int] = {}  # how many there were of these tasks
        self._waiting: dict[tuple[str, str], Callable[[int, bytes], None]] = {}
        self._gathered: dict[tuple[str, str], dict[int, bytes]] = {}  # where this node is the first
        self._asked: dict[int, Callable[[int, bytes], None]] = {}
        self._asks = 0

    def fence(
        self, ranks: Iterable[int] | None, data: bytes, then: Callable[[int, bytes], None]
    ) -> None:
        """All of this node's tasks among these have come (none named: all of the step). `then` gets
        what all have put.
        """
        tasks = EVERYBODY if ranks is None else ",".join(map(str, sorted(set(ranks))))
        self._fences[tasks] = self._fences.get(tasks, 0) + 1
        which = str(self._fences[tasks])
        self._waiting[which, tasks] = then
        self._send(self._nodes(tasks)[0], _body("FENCE", which, tasks, self._number, data=data))

    def ask(self, rank: int, then: Callable[[int, bytes], None]) -> None:
        """What has this task of another node put?"""
        at = self._node_of.get(rank)
        if at is None:
            then(NOT_FOUND, b"")
            return
        self._asks += 1
        self._asked[self._asks] = then
        self._send(at, _body("ASK", self._asks, rank, self._number))

    def take(self, body: bytes) -> None:
        """Something from a node."""
        head, _, data = body.partition(b"\n")
        kind, first, second, third = head.decode().split(" ")
        if kind == "FENCE":
            nodes = self._nodes(second)
            gathered = self._gathered.setdefault((first, second), {})
            gathered[int(third)] = data
            if len(gathered) == len(nodes):
                del self._gathered[first, second]
                whole = _body(
                    "FENCED",
                    first,
                    second,
                    self._number,
                    data=b"".join(gathered[node] for node in nodes),
                )
                for node in nodes:
                    self._send(node, whole)
        elif kind == "FENCED":
            self._waiting.pop((first, second))(SUCCESS, data)
        elif kind == "ASK":
            self._look_up(
                int(second),
                lambda status, found: self._send(
                    int(third), _body("TOLD", first, status, self._number, data=found)
                ),
            )
        elif kind == "TOLD":
            self._asked.pop(int(first))(int(second), data)

    def _nodes(self, tasks: str) -> list[int]:
        """The nodes of these tasks, in order."""
        if tasks == EVERYBODY:
            return [at for at, ranks in enumerate(self._layout) if ranks]
        return sorted({self._node_of[int(each)] for each in tasks.split(",")})


def _body(kind: str, *words: object, data: bytes = b"") -> bytes:
    return f"{kind} {' '.join(map(str, words))}\n".encode() + data
