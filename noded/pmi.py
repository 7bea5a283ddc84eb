r"""The process management interface that MPI libraries talk: PMI-1 and PMI-2, over a descriptor
that each task inherits (PMI_FD).

Place: a part of a step's process (`taskd.py`), loaded only with --mpi=pmi2; it imports nothing of
the house. Keys that tasks put are kept here until all of the step's tasks have come to a barrier;
then each node daemon's keys go to srun, which hands all of them to everybody.

Follows: the wire formats of the PMI libraries of MPICH: PMI-1 `cmd=NAME key=value ...\\n`, PMI-2
six digits of length and `cmd=NAME;key=value;...`.
"""

from __future__ import annotations

import _socket
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

KEY_MAX, VALUE_MAX, NAME_MAX = 64, 1024, 256


class _Client:
    """A task's end."""

    def __init__(self, rank: int, sock: _socket.socket) -> None:
        self.rank, self.sock = rank, sock
        self.inward = b""
        self.version = 0  # not known yet
        self.waits: Callable[[], None] | None = None  # what to do when the barrier is passed


class Server:
    """Serves the tasks of a step on one node daemon's nodes. `exchange` sends this part's keys to
    srun, `abort` ends the step.
    """

    def __init__(
        self, order: dict[str, Any], exchange: Callable[[bytes], None], abort: Callable[[int], None]
    ) -> None:
        self._name = f"{order['job']}.{order['step']}"
        self._size: int = order["size"]
        self._layout: list[list[int]] = order["layout"]
        self._local = sum(len(node["tasks"]) for node in order["nodes"])
        self._exchange, self._abort = exchange, abort
        self._clients: dict[int, _Client] = {}
        self._put: dict[str, str] = {}  # since the last barrier
        self._keys: dict[str, str] = {}
        self._node_keys: dict[tuple[int, str], str] = {}
        self._node_waiting: list[tuple[_Client, int, str, str]] = []
        self._node_of = {rank: at for at, ranks in enumerate(self._layout) for rank in ranks}
        self._mapping = mapping(self._layout)

    def environment(self, rank: int) -> dict[str, str]:
        """What the task's environment says beside PMI_FD."""
        return {
            "PMI_RANK": str(rank),
            "PMI_SIZE": str(self._size),
            "PMI_JOBID": self._name,
            "PMI_SPAWNED": "0",
        }

    def open(self, rank: int, poll: select.poll) -> int:
        """The descriptor for the task."""
        ours, theirs = _socket.socketpair()
        descriptor = ours.fileno()
        self._clients[descriptor] = _Client(rank, ours)
        poll.register(descriptor, select.POLLIN)
        return theirs.detach()

    def owns(self, descriptor: int) -> bool:
        return descriptor in self._clients

    def read(self, descriptor: int, poll: select.poll) -> None:
        """Something from a task."""
        client = self._clients[descriptor]
        try:
            data = client.sock.recv(65536)
        except OSError:
            data = b""
        if not data:
            poll.unregister(descriptor)
            client.sock.close()
            del self._clients[descriptor]
            return
        client.inward += data
        while client.inward:
            if client.version == 2:
                if len(client.inward) < 6:
                    return
                length = int(client.inward[:6])
                if len(client.inward) < 6 + length:
                    return
                body, client.inward = client.inward[6 : 6 + length], client.inward[6 + length :]
                self._take_2(client, _parsed(body.decode(errors="replace"), ";"))
                continue
            line, newline, rest = client.inward.partition(b"\n")
            if not newline:
                return
            client.inward = rest
            self._take_1(client, _parsed(line.decode(errors="replace"), " "))

    # --- PMI-1 ------------------------------------------------------------------------------------

    def _say_1(self, client: _Client, text: str) -> None:
        _send(client, text.encode() + b"\n")

    def _take_1(self, client: _Client, given: dict[str, str]) -> None:
        command = given.get("cmd", "")
        if command == "init":
            version = 2 if given.get("pmi_version") == "2" else 1
            self._say_1(
                client,
                f"cmd=response_to_init pmi_version={version} "
                f"pmi_subversion={0 if version == 2 else 1} rc=0",
            )
            client.version = version
        elif command == "get_maxes":
            self._say_1(
                client,
                f"cmd=maxes kvsname_max={NAME_MAX} keylen_max={KEY_MAX} vallen_max={VALUE_MAX}",
            )
        elif command == "get_appnum":
            self._say_1(client, "cmd=appnum appnum=0")
        elif command == "get_my_kvsname":
            self._say_1(client, f"cmd=my_kvsname kvsname={self._name}")
        elif command == "get_universe_size":
            self._say_1(client, f"cmd=universe_size size={self._size} rc=0")
        elif command == "put":
            self._put[given.get("key", "")] = given.get("value", "")
            self._say_1(client, "cmd=put_result rc=0 msg=success")
        elif command == "get":
            key = given.get("key", "")
            value = self._find(key)
            if value is None:
                self._say_1(client, f"cmd=get_result rc=-1 msg=key_{key}_not_found value=unknown")
            else:
                self._say_1(client, f"cmd=get_result rc=0 msg=success value={value}")
        elif command == "barrier_in":
            self._wait(client, lambda: self._say_1(client, "cmd=barrier_out rc=0"))
        elif command == "finalize":
            self._say_1(client, "cmd=finalize_ack rc=0")
        elif command == "abort":
            self._abort(int(given.get("exitcode", "1") or 1))
        else:
            self._say_1(client, f"cmd={command}_result rc=-1 msg=not_supported")

    # --- PMI-2 ------------------------------------------------------------------------------------

    def _say_2(
        self, client: _Client, command: str, given: dict[str, str], **values: object
    ) -> None:
        pairs = [f"cmd={command}"]
        if "thrid" in given:
            pairs.append(f"thrid={given['thrid']}")
        pairs += [f"{name}={str(value).replace(';', ';;')}" for name, value in values.items()]
        body = (";".join(pairs) + ";").encode()
        _send(client, b"%6d" % len(body) + body)

    def _take_2(self, client: _Client, given: dict[str, str]) -> None:
        command = given.get("cmd", "")
        key = given.get("key", "")
        if command == "fullinit":
            self._say_2(
                client, "fullinit-response", given, rc=0,
                **{"pmi-version": 2, "pmi-subversion": 0, "rank": client.rank, "size": self._size},
                appnum=0, debugged="FALSE", pmiverbose="FALSE",
            )  # fmt: skip
        elif command == "job-getid":
            self._say_2(client, "job-getid-response", given, jobid=self._name, rc=0)
        elif command == "kvs-put":
            self._put[key] = given.get("value", "")
            self._say_2(client, "kvs-put-response", given, rc=0)
        elif command == "kvs-get":
            value = self._find(key)
            found = {"found": "TRUE", "value": value} if value is not None else {"found": "FALSE"}
            self._say_2(client, "kvs-get-response", given, **found, rc=0)
        elif command == "kvs-fence":
            self._wait(client, lambda: self._say_2(client, "kvs-fence-response", given, rc=0))
        elif command == "info-putnodeattr":
            node = self._node_of[client.rank]
            self._node_keys[node, key] = given.get("value", "")
            self._say_2(client, "info-putnodeattr-response", given, rc=0)
            waiting, self._node_waiting = self._node_waiting, []
            for other, at, wanted, thread in waiting:
                self._get_node_key(
                    other, at, wanted, {"thrid": thread} if thread else {}, waits=True
                )
        elif command == "info-getnodeattr":
            self._get_node_key(
                client,
                self._node_of[client.rank],
                key,
                given,
                waits=given.get("wait", "").upper() == "TRUE",
            )
        elif command == "info-getjobattr":
            value = self._job_attribute(key)
            found = {"found": "TRUE", "value": value} if value is not None else {"found": "FALSE"}
            self._say_2(client, "info-getjobattr-response", given, **found, rc=0)
        elif command == "finalize":
            self._say_2(client, "finalize-response", given, rc=0)
        elif command == "abort":
            self._abort(1)
        else:
            self._say_2(client, f"{command}-response", given, rc=1, errmsg="not supported")

    def _get_node_key(
        self, client: _Client, node: int, key: str, given: dict[str, str], *, waits: bool
    ) -> None:
        value = self._node_keys.get((node, key))
        if value is None and waits:
            self._node_waiting.append((client, node, key, given.get("thrid", "")))
            return
        found = {"found": "TRUE", "value": value} if value is not None else {"found": "FALSE"}
        self._say_2(client, "info-getnodeattr-response", given, **found, rc=0)

    def _job_attribute(self, key: str) -> str | None:
        if key == "universeSize":
            return str(self._size)
        if key == "PMI_process_mapping":
            return self._mapping
        return None

    # --- keys -------------------------------------------------------------------------------------

    def _find(self, key: str) -> str | None:
        if key == "PMI_process_mapping":
            return self._mapping
        return self._keys.get(key, self._put.get(key))

    def _wait(self, client: _Client, then: Callable[[], None]) -> None:
        client.waits = then
        if sum(each.waits is not None for each in self._clients.values()) == self._local:
            # A key and its value may hold anything but these two bytes.
            self._exchange(
                b"\x1e".join(f"{key}\x1f{value}".encode() for key, value in self._put.items())
                + b"\x1e"
            )

    def exchanged(self, body: bytes) -> None:
        """All keys of the step have come back from srun: the barrier is passed."""
        for pair in body.replace(b"\n", b"").decode(errors="replace").split("\x1e"):
            key, found, value = pair.partition("\x1f")
            if found:
                self._keys[key] = value
        self._put.clear()
        for client in self._clients.values():
            then, client.waits = client.waits, None
            if then is not None:
                then()


def mapping(layout: list[list[int]]) -> str:
    """`(vector,(first node,nodes,tasks on each)...)`: which task is on which node."""
    blocks: list[list[int]] = []
    node_of = {rank: at for at, ranks in enumerate(layout) for rank in ranks}
    at = [node_of[rank] for rank in range(len(node_of))]
    rank = 0
    while rank < len(at):
        node, count = at[rank], 1
        while rank + count < len(at) and at[rank + count] == node:
            count += 1
        if blocks and blocks[-1][0] + blocks[-1][1] == node and blocks[-1][2] == count:
            blocks[-1][1] += 1
        else:
            blocks.append([node, 1, count])
        rank += count
    return (
        "(vector," + ",".join(f"({first},{nodes},{count})" for first, nodes, count in blocks) + ")"
    )


def _parsed(text: str, between: str) -> dict[str, str]:
    if between == ";":
        text = text.replace(";;", "\0")
    found: dict[str, str] = {}
    for word in text.strip().split(between):
        name, equals, value = word.partition("=")
        if equals:
            found[name.strip()] = value.replace("\0", ";")
    return found


def _send(client: _Client, data: bytes) -> None:
    try:  # noqa: SIM105  contextlib costs time
        client.sock.sendall(data, _socket.MSG_NOSIGNAL)
    except OSError:
        pass
