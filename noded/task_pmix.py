"""PMIx as a step's process sees it: what tasks' environments say, and the way to the process that
has the library (`pmixd.py`).

Place: a part of a step's process (`taskd.py`), loaded only with --mpi=pmix.
"""

from __future__ import annotations

import _socket
import marshal
import os
import select

from understudy.model.environment import TASK_HOST, told
from understudy.noded.pmi import mapping
from understudy.noded.pmixd import Pipe, ask, remove
from understudy.protocol.task_frames import LOST, MESSAGE, STARTED, frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from understudy.noded.task import Task

DESCRIPTOR = 5
_ORDERED = ("job", "step", "uid", "gid", "groups", "layout", "names")
_FOLDER = "/tmp"  # noqa: S108  as TmpFS is where nothing is said
_SHARED = "/dev/shm"  # noqa: S108  where Open MPI keeps what tasks of a node share
_SHARING = ("btl_vader", "btl_sm", "osc_sm", "osc_rdma")  # those of its components that do
_PATIENCE = {"OMPI_MCA_mpi_yield_when_idle": "1"}


class Pmix:
    """The way there."""

    def __init__(self, order: dict[str, Any], poll: select.poll) -> None:
        self._order, self._poll = order, poll
        nodes = [{name: node[name] for name in ("id", "name", "tasks")} for node in order["nodes"]]
        ask(
            DESCRIPTOR,
            {name: order[name] for name in _ORDERED} | {"nodes": nodes, "folder": _FOLDER},
        )
        self._environments: dict[int, list[str]] = {}
        self._mapping = mapping(order["layout"])

    def begin(self) -> dict[int, str]:
        """Wait until all nodes have their server. Nodes that have none, and why."""
        awaited = {node["id"] for node in self._order["nodes"]}
        failures: dict[int, str] = {}
        waiting = select.poll()
        self._pipe = Pipe(_socket.socket(fileno=DESCRIPTOR), waiting)
        while awaited and self._pipe.is_open:
            for _, event in waiting.poll():
                if event & select.POLLOUT:
                    self._pipe.flush()
                for kind, node, body in self._pipe.take() if event & ~select.POLLOUT else ():
                    awaited.discard(node)
                    if kind == STARTED:
                        self._environments |= marshal.loads(body)  # noqa: S302  as in taskd.py
                    elif kind == MESSAGE:
                        failures[node] = body.decode(errors="replace")
        self._pipe.watch(self._poll)
        return failures | dict.fromkeys(awaited, "the process with the library is lost")

    def environment(self, number: int) -> dict[str, str]:
        return told(TASK_HOST, {"pmix_mapping": self._mapping}) | dict(
            entry.partition("=")[::2] for entry in self._environments[number]
        )

    def owns(self, descriptor: int) -> bool:
        return self._pipe.sock.fileno() == descriptor

    def read(self, event: int) -> Iterator[tuple[int, int, bytes]]:
        if event & select.POLLOUT:
            self._pipe.flush()
        if event & ~select.POLLOUT:
            yield from self._pipe.take()

    def put(self, kind: int, node: int, body: bytes) -> None:
        if self._pipe.is_open:
            self._pipe.put(frame(kind, node, body))

    def ended(self, task: Task) -> None:
        """Has the task said good-bye? `LOST` comes back if it has not."""
        self.put(LOST, task.node["id"], str(task.number).encode())

    def close(self) -> None:
        """Have it end, with all that it keeps."""
        sock = self._pipe.sock
        sock.setblocking(True)
        try:
            sock.shutdown(_socket.SHUT_WR)
            while sock.recv(65536):
                pass
        except OSError:
            pass
        sock.close()


class SharedHost:
    """What Open MPI is to know of nodes that are one host.

    Tasks of a node share memory in files that they name by the host and their number on the node:
    each node has a folder for them. And they do better to let others go first while they wait, as
    the nodes have more tasks together than the host has CPUs.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self._folders: dict[int, str] = {}
        for node in order["nodes"]:
            name = (
                f"{_SHARED}/slurm_{order['uid']}_{order['job']}.{order['step']}"
                f".{os.urandom(4).hex()}"
            )
            try:
                os.mkdir(name, 0o700)
            except OSError:
                continue  # without, a node alone on its host does as well
            self._folders[node["id"]] = name

    def environment(self, node: int, given: dict[str, str]) -> dict[str, str]:
        names = (
            [f"OMPI_MCA_{each}_backing_directory" for each in _SHARING]
            if node in self._folders
            else []
        )
        wanted = dict.fromkeys(names, self._folders.get(node, "")) | _PATIENCE
        return {name: value for name, value in wanted.items() if name not in given}

    def close(self) -> None:
        for each in self._folders.values():
            remove(each)
