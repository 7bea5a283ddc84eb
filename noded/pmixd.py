"""PMIx for a step's tasks on one daemon's nodes: a process for each node, with the library in it,
and this one between them and `taskd.py`.

Place: started by `real_steps.py` beside the step's process, and not below it: what it uses is not
the tasks'. It ends when that process does. Imports little, as what is started often does; the
library and ctypes come into the processes of the nodes alone. Follows:
`../docs/adr/0015-pmix-by-its-library.md`.

On descriptor 0 is a socket from the step's process: first the order (four bytes of length, then
`marshal`), then frames (`task_frames.py`): `PMIX` with a node's number and a body for it, `LOST`
with the number of a task that has ended. Back go the same for nodes elsewhere; and of each node
`STARTED` with its number and what its tasks' environments say (`marshal`), or `MESSAGE` with why
there is no server there; `MPI_ABORT` with a code, and `LOST` with a task that has ended without a
good-bye.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # without enumerations, see forking.py
import _socket
import marshal
import os
import select

from understudy.protocol.task_frames import (
    HEAD,
    LOST,
    MESSAGE,
    MPI_ABORT,
    PMIX,
    STARTED,
    first_of,
    frame,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_CHUNK = 1 << 18


class Pipe:
    """One end of a socket, with frames. Nobody is waited for: what is not taken at once is kept."""

    def __init__(self, sock: _socket.socket, poll: select.poll) -> None:
        self.sock, self._poll = sock, poll
        self._inward, self._outward = bytearray(), bytearray()
        self.is_open = True
        sock.setblocking(False)
        poll.register(sock.fileno(), select.POLLIN)

    def watch(self, poll: select.poll) -> None:
        """Be watched by another."""
        self._poll = poll
        if self.is_open:
            poll.register(self.sock.fileno(), select.POLLIN | select.POLLOUT)

    def put(self, data: bytes) -> None:
        self._outward += data
        self.flush()

    def flush(self) -> None:
        if not self.is_open:
            return
        try:
            while self._outward:
                del self._outward[: self.sock.send(self._outward, _socket.MSG_NOSIGNAL)]
        except BlockingIOError:
            pass
        except OSError:
            self._outward.clear()  # its end is read soon
        self._poll.modify(
            self.sock.fileno(), select.POLLIN | select.POLLOUT if self._outward else select.POLLIN
        )

    def take(self) -> Iterator[tuple[int, int, bytes]]:
        """The frames that have come."""
        try:
            data = self.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.is_open = False
            self._poll.unregister(self.sock.fileno())
            return
        self._inward += data
        while found := first_of(self._inward):
            del self._inward[: HEAD + len(found[2])]
            yield found


def ask(descriptor: int, order: dict[str, Any]) -> None:
    """Send the order, from the step's process."""
    data = marshal.dumps(order)
    with_length = memoryview(len(data).to_bytes(4, "big") + data)
    while with_length:
        with_length = with_length[os.write(descriptor, with_length) :]


def main() -> int:
    """See above."""
    above = _socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    received = b""
    while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
        part = above.recv(1 << 20)
        if not part:
            return 1
        received += part
    order: dict[str, Any] = marshal.loads(received[4:])  # noqa: S302  from the step's process
    from understudy.noded import pmix_library, pmix_node  # noqa: F401, PLC0415  while this process may read its own folder; its children need them

    if os.geteuid() == 0:
        os.setgroups(order["groups"])
        os.setgid(order["gid"])
        os.setuid(order["uid"])
    folders: list[str] = []
    try:
        _serve_all(order, above, folders)
    finally:
        for folder in folders:
            remove(folder)
    return 0


def _serve_all(order: dict[str, Any], above: _socket.socket, folders: list[str]) -> None:
    """Have each node served, and carry, for as long as the step's process is there."""
    poll = select.poll()
    nodes: dict[int, Pipe] = {}
    for node in order["nodes"]:
        ours, theirs = _socket.socketpair()
        folders.append(folder := new_folder(order))
        if os.fork() == 0:
            ours.close()
            _be_node(order, node, folder, theirs, [above, *(each.sock for each in nodes.values())])
        theirs.close()
        nodes[node["id"]] = Pipe(ours, poll)
    _carry(Pipe(above, poll), nodes, poll)
    for each in nodes.values():
        each.sock.close()
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass


def _carry(above: Pipe, nodes: dict[int, Pipe], poll: select.poll) -> None:
    by_descriptor = {each.sock.fileno(): each for each in (above, *nodes.values())}
    while above.is_open:
        for number, event in poll.poll():
            pipe = by_descriptor[number]
            if event & select.POLLOUT:
                pipe.flush()
            if event & ~select.POLLOUT:
                for kind, to, body in pipe.take():
                    is_for_node = to in nodes and (kind == PMIX or pipe is above)
                    (nodes[to] if is_for_node else above).put(frame(kind, to, body))


def new_folder(order: dict[str, Any]) -> str:
    """A folder of its own for what the library and the tasks keep while the step is there."""
    base = f"{order['folder']}/spmix_appdir_{order['uid']}_{order['job']}.{order['step']}"
    while True:
        name = f"{base}.{os.urandom(4).hex()}"
        try:
            os.mkdir(name, 0o700)
        except FileExistsError:
            continue
        return name


def remove(folder: str) -> None:
    """Remove a folder with all that is in it."""
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    remove(entry.path)
                else:
                    os.unlink(entry.path)
        os.rmdir(folder)
    except OSError:
        pass


def _be_node(
    order: dict[str, Any],
    node: dict[str, Any],
    folder: str,
    sock: _socket.socket,
    foreign: list[_socket.socket],
) -> None:
    """Serve one node's tasks, in a process of its own. Does not return."""
    for each in foreign:
        each.close()
    try:
        _serve(order, node, folder, sock)
    except OSError:
        pass
    finally:
        os._exit(0)  # without the library's own end, which waits for tasks


def _serve(order: dict[str, Any], node: dict[str, Any], folder: str, sock: _socket.socket) -> None:
    import _thread  # noqa: PLC0415

    from understudy.noded.pmix_library import LibraryError, Server  # noqa: PLC0415
    from understudy.noded.pmix_node import Node  # noqa: PLC0415

    lock = _thread.allocate_lock()

    def tell(kind: int, number: int, body: bytes) -> None:
        with lock:
            sock.sendall(frame(kind, number, body), _socket.MSG_NOSIGNAL)

    number = node["id"]
    try:
        server = Server(lambda status: tell(MPI_ABORT, number, str(status).encode()))
        state = Node(number, order["layout"], lambda to, body: tell(PMIX, to, body), server.look_up)
        namespace = f"slurm.pmix.{order['job']}.{order['step']}"
        about: list[tuple[str, object]] = [
            ("namespace", f"{namespace}.{number}"),
            ("server_rank", number),
            ("hostname", node["name"]),
        ]
        about += [("server_folder", folder), ("system_folder", order["folder"])]
        server.begin(about, state.fence, state.ask)
        server.register(
            namespace,
            node["tasks"],
            attributes(order, node, folder, server.maps_of(order["names"], order["layout"])),
        )
        environments = {rank: server.environment(rank) for rank in node["tasks"]}
    except LibraryError as error:
        tell(MESSAGE, number, str(error).encode())
        return
    tell(STARTED, number, marshal.dumps(environments))
    inward = bytearray()
    while data := sock.recv(_CHUNK):
        inward += data
        while found := first_of(inward):
            del inward[: HEAD + len(found[2])]
            kind, _, body = found
            if kind == PMIX:
                state.take(body)
            elif int(body) in server.connected:
                tell(LOST, number, body)


def attributes(
    order: dict[str, Any], node: dict[str, Any], folder: str, maps: tuple[object, object]
) -> list[tuple[str, object]]:
    """What a node's tasks are told of the job, and of each other."""
    layout: list[list[int]] = order["layout"]
    size = sum(map(len, layout))
    local = sorted(node["tasks"])
    about: list[tuple[str, object]] = [
        ("job", f"{order['job']}.{order['step']}"),
        ("size", size),
        ("universe", size),
        ("most", size),
        ("nodes", len(layout)),
        ("node_map", maps[0]),
        ("task_map", maps[1]),
        ("node", node["id"]),
        ("node_size", len(local)),
        ("local_size", len(local)),
        ("local_peers", ",".join(map(str, local))),
        ("local_leader", local[0] if local else 0),
        ("application", 0),
        ("application_size", size),
        ("application_leader", 0),
        ("applications", 1),
        ("offset", 0),
        ("is_spawned", False),
        ("folder", folder),
        ("job_folder", folder),
        ("is_cleaned", True),
    ]
    for at, ranks in enumerate(layout):
        for place, rank in enumerate(sorted(ranks)):
            task: list[tuple[str, object]] = [
                ("rank", rank),
                ("global_rank", rank),
                ("application_rank", rank),
                ("application", 0),
                ("local_rank", place),
                ("node_rank", place),
                ("node", at),
                ("hostname", order["names"][at]),
                ("is_spawned", False),
            ]
            if at == node["id"]:
                os.mkdir(f"{folder}/{rank}", 0o700)
                task.append(("task_folder", f"{folder}/{rank}"))
            about.append(("task", task))
    return about
