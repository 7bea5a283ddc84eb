"""Frames of strangers to a daemon, and messages of users who may say what they like.

A connection is the daemon's own class over a socket that is none. What is sealed by the key and
unchanged must be heard; what was changed anywhere must not be.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import TYPE_CHECKING, Any

import msgpack
import msgspec
from accounting_harness import House
from controller_harness import OTHER, ROOT, USER, FakeSender, Harness
from fuzz.mutate import WORDS, octets
from key_harness import keys_of, secret_of
from noded_harness import CONTROLLER
from noded_harness import Harness as NodeHarness

from understudy.accounting.core import Sender
from understudy.auth.agent import vouch
from understudy.auth.handshake import AuthError, SealedChannel, client_hello, frame, read_hello
from understudy.auth.keys import AGENT
from understudy.auth.local import LOCAL_HELLO
from understudy.controller.edge.rpc import RPCS
from understudy.model.errors import SlurmError
from understudy.protocol.connection import Connection
from understudy.protocol.messages import AnyMessage, Forward, Message, Ok
from understudy.protocol.messenger import Messenger, _Link
from understudy.protocol.requests import Peer

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

_MESSAGES = AnyMessage.__args__
_TAGS = [each.__struct_config__.tag for each in _MESSAGES]


class _Loop:
    """Of a loop what connections use; nothing is ever called."""

    def add_reader(self, *_: Any) -> None: ...

    remove_reader = add_writer = remove_writer = add_reader

    def call_later(self, *_: Any) -> None: ...

    time = staticmethod(lambda: 0.0)


class _Socket:
    """Gives what it holds, in pieces, and keeps what is sent."""

    def __init__(self, family: int) -> None:
        self.family, self.sent, self.pieces = family, b"", list[bytes]()

    def setblocking(self, _is: bool) -> None: ...

    def setsockopt(self, *_: Any) -> None: ...

    close = setsockopt

    def fileno(self) -> int:
        return 3

    def getsockopt(self, *_: Any) -> bytes:
        return struct.pack("3i", 1, 1000, 1000)

    def recv(self, _most: int) -> bytes:
        return self.pieces.pop(0) if self.pieces else b""

    def send(self, data: bytes) -> int:
        self.sent += data
        return len(data)


class _Server:
    """A daemon that answers Ok to everything, and counts what it is asked."""

    def __init__(self) -> None:
        self.messenger = Messenger("controller", _Loop(), keys_of("controller"))  # type: ignore[arg-type]
        self.heard = 0
        self.messenger.set_handler(self._hear)

    def _hear(self, _request: object) -> Ok:
        self.heard += 1
        return Ok()

    def connect(self, family: int) -> tuple[Connection, _Socket]:
        sock = _Socket(family)
        connection = self.messenger.reception.let_in(sock, 1000, peer="fuzz")  # type: ignore[arg-type]
        return connection, sock


_server = _Server()


def nothing_is_left() -> str:
    """What refused connections have left behind."""
    messenger = _server.messenger
    left = [
        *messenger._wires.open,
        *messenger.reception.counts._open,
        *messenger._pending,
    ]
    return f"{len(left)} things are left" if left else ""


def _feed(connection: Connection, sock: _Socket, data: bytes, rng: random.Random) -> None:
    """The bytes in pieces, as a network may deliver them."""
    while data and not connection.closed:
        size = rng.choice((1, 3, 17, len(data), len(data)))
        sock.pieces.append(data[:size])
        data = data[size:]
        connection.read()


def _end(connection: Connection) -> None:
    if not connection.closed:
        connection.read()  # the end of what was sent
    assert connection.closed


def _request(rng: random.Random) -> bytes:
    """An envelope that is almost right."""
    content: Any = [
        0,
        1,
        0,
        0,
        [rng.choice(_TAGS), *(_value(rng) for _ in range(rng.randrange(9)))],
    ]
    if rng.random() < 0.3:
        content = [0, 1, 0, 0, [rng.choice(_TAGS)]]
    if rng.random() < 0.1:
        content[rng.randrange(5)] = _value(rng)
    return msgpack.packb(content)


def _value(rng: random.Random, depth: int = 0) -> Any:
    """Anything."""
    kind = rng.randrange(8 if depth < 3 else 6)
    if kind == 6:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 7:
        return {rng.choice("abc"): _value(rng, depth + 1) for _ in range(rng.randrange(3))}
    plain = (None, rng.random() < 0.5, rng.choice((0, 1, -1, 1 << 31, 1 << 62, -(1 << 62))))
    words = (rng.choice((0.5, float("nan"), float("inf"))), rng.choice(WORDS[:40]))
    return (*plain, *words, rng.randbytes(4))[kind] if kind != 4 else _clean(words[1])


def _clean(word: str) -> str:
    return word.encode("utf-8", "replace").decode()


def local_frames(rng: random.Random, _folder: Path) -> None:
    """A user of this host, who is who the kernel says, sends requests that are almost right."""
    connection, sock = _server.connect(socket.AF_UNIX)
    body = frame(LOCAL_HELLO) + b"".join(frame(_request(rng)) for _ in range(rng.randrange(1, 4)))
    _feed(connection, sock, octets(rng, body) if rng.random() < 0.5 else body, rng)
    _end(connection)


def sealed_frames(rng: random.Random, _folder: Path) -> None:
    """Over TCP: nothing is heard but what the key has sealed."""
    heard = _server.heard
    connection, sock = _server.connect(socket.AF_INET)
    is_daemon = rng.random() < 0.5
    hello = client_hello("noded0", rng.randrange(3), 0, is_daemon=is_daemon)
    sent = octets(rng, frame(hello)) if rng.random() < 0.3 else frame(hello)
    _feed(connection, sock, sent, rng)
    has_key = rng.random() < 0.7
    is_authentic = has_key and sent == frame(hello)
    if len(sock.sent) > 4 and not connection.closed:
        try:
            secret = secret_of(hello, sock.sent[4:]) if has_key else rng.randbytes(32)
        except AuthError:  # the hello was changed: it was another's
            secret = rng.randbytes(32)
        channel = SealedChannel(secret, is_client=True)
        asked = channel.seal(msgpack.packb([0, 1, 0, 0, msgspec.to_builtins(Ok())]))
        kind = rng.randrange(4)
        changed = (asked, octets(rng, asked), asked[:4] + rng.randbytes(len(asked) - 4), asked * 2)
        _feed(connection, sock, changed[kind], rng)
        most = int(is_authentic and changed[kind].startswith(asked))
        assert _server.heard - heard <= most, "something was believed that is not authentic"
        assert _server.heard - heard == most, "what is authentic was not heard"
    _end(connection)


_SENDERS = (USER, USER, OTHER, ROOT, FakeSender("noded0", 0, 0, is_daemon=True, is_node=True))
_WORD = tuple(_clean(word) for word in WORDS if len(word) < 6000 and "9999999999" not in word)


def _of_type(kind: msgspec.inspect.Type, rng: random.Random, depth: int = 0) -> Any:
    """A value that the decoder takes for this type."""
    inspect = msgspec.inspect
    match kind:
        case inspect.IntType():
            return rng.choice((0, 1, 2, -1, 5, 1000, 1 << 31, 1 << 40, (1 << 63) - 1))
        case inspect.StrType():
            return rng.choice(_WORD)
        case inspect.FloatType():
            return rng.choice((0.0, 1.0, -1.0, 1e12, float("nan"), float("inf")))
        case inspect.BoolType():
            return rng.random() < 0.5
        case inspect.BytesType():
            return rng.randbytes(rng.choice((0, 3, 40)))
        case inspect.NoneType() | inspect.AnyType():
            return None
        case inspect.UnionType():
            return _of_type(rng.choice(kind.types), rng, depth)
        case inspect.ListType() | inspect.VarTupleType() if depth < 4:
            return [
                _of_type(kind.item_type, rng, depth + 1) for _ in range(rng.choice((0, 1, 1, 3)))
            ]
        case inspect.TupleType():
            return [_of_type(each, rng, depth + 1) for each in kind.item_types]
        case inspect.DictType() if depth < 4:
            return {
                _of_type(kind.key_type, rng, depth + 1): _of_type(kind.value_type, rng, depth + 1)
                for _ in range(rng.choice((0, 1, 2)))
            }
        case inspect.StructType():
            return _struct(kind.cls, rng, depth + 1)
        case _:
            return []


def _struct(cls: type, rng: random.Random, depth: int = 0) -> Any:
    """A message of which most fields are their defaults."""
    share = rng.choice((0.1, 0.3, 0.9))
    values = {
        field.name: msgspec.convert(_of_type(field.type, rng, depth), hint, strict=True)
        for field, hint in zip(msgspec.inspect.type_info(cls).fields, _hints(cls), strict=True)
        if field.required or rng.random() < share
    }
    return cls(**values)


def _hints(cls: type) -> list[Any]:
    if cls not in _HINTS:
        known = msgspec._utils.get_class_annotations(cls)
        _HINTS[cls] = [known[name] for name in cls.__struct_fields__]
    return _HINTS[cls]


_HINTS: dict[type, list[Any]] = {}


def messages(rng: random.Random, _folder: Path) -> None:
    """Any sender sends any message to the controller, which has some jobs; its tables stay true."""
    h = Harness()
    h.submit(min_nodes=2)
    h.submit(array="1-3", hold=True)
    for _ in range(rng.randrange(1, 6)):
        message = _struct(rng.choice(list(RPCS)), rng)
        h.ask(message, rng.choice(_SENDERS))
    h.run(rng.choice((0, 1, 100)))


def challenges(rng: random.Random, _folder: Path) -> None:
    """A stranger answers a daemon's hello, or asks the agent to vouch: what is not the server's
    own answer, to the byte, gives no secret that the server has, and nobody is vouched for but who
    asks.
    """
    hello = client_hello("noded0", rng.randrange(3), 0, is_daemon=rng.random() < 0.5)
    client = keys_of("noded0") if read_hello(hello)[3] else keys_of(AGENT)
    challenge, secret, _ = keys_of("controller").answered(hello, client.name)
    changed = octets(rng, challenge) if rng.random() < 0.8 else challenge
    with contextlib.suppress(AuthError):
        found, _ = client.secret(hello, changed, "controller")
        assert (found == secret) == (changed == challenge), "a changed challenge is as good"
    request = msgpack.packb([octets(rng, hello) if rng.random() < 0.5 else hello, changed])
    asker = rng.randrange(3)
    with contextlib.suppress(AuthError):
        sent = octets(rng, request) if rng.random() < 0.3 else request
        vouch(keys_of(AGENT), sent, asker, 0)
        said, _ = msgpack.unpackb(sent)
        _, user_id, _, is_daemon = read_hello(said)
        assert not is_daemon
        assert user_id == asker, "vouched for another"


def answers(rng: random.Random, _folder: Path) -> None:
    """The other end of a daemon's connection answers as it likes: each question has one answer, or
    has failed.
    """
    messenger = _server.messenger
    heard: list[Message] = []
    sock = _Socket(socket.AF_INET)
    connection = Connection(_Loop(), sock, messenger._take_as_client, _ignore, peer="fuzz")  # type: ignore[arg-type]
    connection.tag, connection.max_frame = _Link("noded0", ""), 1 << 20
    for number in (1, 2):
        messenger._pending[number] = (heard.append, "noded0", 1e9)
    body = b""
    for _ in range(rng.randrange(1, 4)):
        content = [rng.choice((1, 1, 1, 0, 2)), rng.choice((1, 2, 3)), 0, 0, _message(rng)]
        body += frame(msgpack.packb(content))
    _feed(connection, sock, octets(rng, body) if rng.random() < 0.5 else body, rng)
    _end(connection)
    assert len(heard) + len(messenger._pending) == 2
    messenger._pending.clear()


def _ignore(_connection: Connection, _reason: str) -> None: ...


def _message(rng: random.Random) -> Any:
    return [rng.choice(_TAGS), *(_value(rng) for _ in range(rng.randrange(5)))]


_NODE_SENDERS = (
    CONTROLLER,
    Peer("command", 1000, 1000, is_daemon=False),
    Peer("command", 0, 0, is_daemon=False),
    Peer("noded1", 0, 0, is_daemon=True),
)


def nodes(rng: random.Random, _folder: Path) -> None:
    """Any sender sends any message to a node daemon, itself or to be handed on: nobody but the
    controller has it start or end anything.
    """
    h = NodeHarness(daemons={"noded0": "n[0-7]", "noded1": "n[8-9]"})
    h.ask(h.launch(1))
    before = dict(h.front_end.core.jobs), h.stops
    for _ in range(rng.randrange(1, 4)):
        sender = rng.choice(_NODE_SENDERS)
        message = _struct(rng.choice(_MESSAGES), rng)
        if rng.random() < 0.5:
            inner = msgspec.msgpack.encode(message)
            order = rng.choice((b"", rng.randbytes(72), keys_of("noded1").sign(inner) + b"\0" * 8))
            hosts = rng.choice(("n0", "n[0-9]", "n[8-9]", "x", "n["))
            message = Forward(inner, hosts, rng.choice((0, 1, 32)), 1.0, order)
        h.ask_later(message, sender)
        if sender is CONTROLLER:
            before = dict(h.front_end.core.jobs), h.stops
        assert (h.front_end.core.jobs, h.stops) == before, f"{sender.name} had {message} done"
    h.time.advance(rng.choice((0, 1, 100)))


_ACCOUNTS_SENDERS = (
    Sender("command", 1000, is_daemon=False),
    Sender("command", 0, is_daemon=False),
    Sender("controller", 0, is_daemon=True),
)


def accounts(rng: random.Random, folder: Path) -> None:
    """Any sender sends any message to accounting."""
    house = House(f"sqlite:///{_empty_accounts(folder)}", ())
    try:
        for _ in range(rng.randrange(1, 6)):
            message = _struct(rng.choice(_MESSAGES), rng)
            with contextlib.suppress(SlurmError):
                house.accounting.handle(message, rng.choice(_ACCOUNTS_SENDERS))
    finally:
        house.store.close()


def _empty_accounts(folder: Path) -> Path:
    """A database as of a cluster that has just been registered."""
    good, place = folder / "good.sqlite", folder / "accounts.sqlite"
    if not good.exists():
        House(f"sqlite:///{good}").store.close()
    place.write_bytes(good.read_bytes())
    return place


FRAMES: dict[str, Callable[[random.Random, Path], None]] = {
    "local": local_frames,
    "sealed": sealed_frames,
    "messages": messages,
    "challenges": challenges,
    "answers": answers,
    "nodes": nodes,
    "accounts": accounts,
}
