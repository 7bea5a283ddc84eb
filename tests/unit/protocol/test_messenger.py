"""Requests and answers over sockets and in memory; what is broken or forged is refused with one
line in the log.

Covers: auth/local, protocol/connection, protocol/envelopes, protocol/reception,
protocol/requests, protocol/wires.
"""

import asyncio
import logging
import os
import socket

import msgpack
import pytest
from key_harness import keys_of, secret_of

from understudy.auth.handshake import SealedChannel, client_hello, frame
from understudy.auth.local import LOCAL_HELLO
from understudy.clock.virtual_loop import VirtualEventLoop
from understudy.model.errors import SlurmError
from understudy.protocol.messages import Failure, Ok, Ping, Query, Rows
from understudy.protocol.messenger import MemoryNetwork, Messenger


async def until(holds):
    """Let the loop turn until that holds, which the kernel decides and nobody tells."""
    for _ in range(1_000_000):
        if found := holds():
            return found
        await asyncio.sleep(0)
    raise AssertionError(holds)


class Raw:
    """A client that can do wrong: a blocking socket and the pieces of the handshake."""

    def __init__(self, path, hello=None, secret=None):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(str(path))
        self.hello = hello or client_hello("command", os.getuid(), os.getgid(), is_daemon=False)
        self.sock.sendall(frame(self.hello))
        self.secret = secret

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def shake(self):
        challenge = self.read()
        secret = self.secret or secret_of(self.hello, challenge)
        self.channel = SealedChannel(secret, is_client=True)
        return self

    def read(self):
        head = self.sock.recv(4, socket.MSG_WAITALL)
        return self.sock.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL) if head else None

    def ask(self, content):
        self.sock.sendall(self.channel.seal(msgpack.packb(content)))
        body = self.read()
        return msgpack.unpackb(self.channel.open(body)) if body else None


@pytest.fixture
async def server(tmp_path):
    messenger = Messenger("controller", asyncio.get_running_loop(), keys_of("controller"))
    messenger.listen([f"unix:{tmp_path}/s"])

    def handle(request):
        match request.message:
            case Ping():
                return Ok()
            case Query(table="broken"):
                raise RuntimeError("a bug")
            case Query(table="refused"):
                raise SlurmError(2017)
        return Rows([[request.sender.name, request.sender.user_id]], 0.0)

    messenger.set_handler(handle)
    yield tmp_path / "s"
    messenger.close()


async def test_daemons_ask_each_other(server):
    other = Messenger("noded0", asyncio.get_running_loop(), keys_of("noded0"), user_id=17)
    other.add_peer("controller", f"unix:{server}")
    assert await other.call("controller", Ping()) == Ok()
    assert await other.call("controller", Query("who", [])) == Rows([["noded0", 17]], 0.0)
    assert await other.call("controller", Query("refused", [])) == Failure(
        2017, "Invalid job id specified"
    )
    other.close()


async def test_a_bug_in_a_handler_is_logged_and_answered_and_the_connection_lives(server, caplog):
    other = Messenger("noded0", asyncio.get_running_loop(), keys_of("noded0"))
    other.add_peer("controller", f"unix:{server}")
    answer = await other.call("controller", Query("broken", []))
    assert isinstance(answer, Failure)
    assert await other.call("controller", Ping()) == Ok()
    other.close()


async def test_a_peer_that_is_not_there_is_a_failure_not_an_exception(tmp_path):
    messenger = Messenger("a", asyncio.get_running_loop(), keys_of("a"))
    messenger.add_peer("b", f"unix:{tmp_path}/nobody")
    answer = await messenger.call("b", Ping())
    assert isinstance(answer, Failure)
    assert answer.code == 1005
    assert (await messenger.call("c", Ping())).code == 1005
    messenger.close()


async def test_who_is_of_another_version_than_its_controller_says_so_once(tmp_path, caplog):
    async def answer(_, writer):
        body = msgpack.packb(["understudy/9", "what is new there"])
        writer.write(frame(body))
        await writer.drain()
        writer.close()

    path = tmp_path / "controller.sock"
    server = await asyncio.start_unix_server(answer, path)
    noded = Messenger("noded0", asyncio.get_running_loop(), keys_of("noded0"))
    noded.add_peer("controller", f"unix:{path}")
    for _ in range(3):
        assert (await noded.call("controller", Ping())).code == 1005
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == (
        "no connection with controller: protocol version 'understudy/9', expected 'understudy/2'"
    )
    noded.close()
    server.close()


async def test_a_connection_that_breaks_fails_what_is_outstanding_and_a_new_one_is_made(tmp_path):
    loop = asyncio.get_running_loop()
    server, asked = Messenger("controller", loop, keys_of("controller")), loop.create_future()
    server.listen([f"unix:{tmp_path}/s"])
    server.set_handler(asked.set_result)
    client = Messenger("noded0", loop, keys_of("noded0"))
    client.add_peer("controller", f"unix:{tmp_path}/s")
    call = asyncio.ensure_future(client.call("controller", Ping()))
    await asked
    server.close()
    assert (await call).code == 1006
    server = Messenger("controller", loop, keys_of("controller"))
    server.listen([f"unix:{tmp_path}/s"])
    server.set_handler(lambda request: Ok())
    assert await client.call("controller", Ping()) == Ok()
    client.close()
    server.close()


async def test_who_has_to_answer_knows_when_nobody_waits_any_more(tmp_path):
    loop = asyncio.get_running_loop()
    server, asked = Messenger("controller", loop, keys_of("controller")), loop.create_future()
    server.listen([f"unix:{tmp_path}/s"])
    server.set_handler(asked.set_result)
    client = Messenger("noded0", loop, keys_of("noded0"))
    client.add_peer("controller", f"unix:{tmp_path}/s")
    client.send("controller", Ping())
    request = await asked
    assert not request.is_gone()
    client.close()
    await until(request.is_gone)
    request.reply(Ok())
    server.close()


async def talk(path, conversation, **client):
    """Hold a conversation as a raw client, in a thread."""

    def hold():
        with Raw(path, **client) as raw:
            return conversation(raw)

    return await asyncio.to_thread(hold)


def ping(raw):
    return raw.shake().ask([0, 1, 0, 0, [23]])


async def test_a_command_asks_over_a_plain_socket(server):
    assert await talk(server, ping) == [1, 1, 0, 0, [1]]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda raw: raw.ask([0, 1, 0, 0, [9999]]), "malformed message"),
        (lambda raw: raw.ask([0, 1, 0, 0, [14, 7, ["x"]]]), "malformed message"),
        (lambda raw: raw.ask([0, 1, 0, 0, [14]]), "malformed message"),
        (lambda raw: raw.ask("nonsense"), "malformed message"),
        (lambda raw: raw.ask([1, 1, 0, 0, [1]]), "where a request was expected"),
        (lambda raw: raw.sock.sendall((1 << 30).to_bytes(4, "big")) or raw.read(), "the limit is"),
        (
            lambda raw: raw.sock.sendall(raw.channel.seal(b"x")[:-3] + b"abc") or raw.read(),
            "does not authenticate",
        ),
        (
            lambda raw: (
                raw.sock.sendall(raw.channel.seal(msgpack.packb([0, 1, 0, 0, [23]])) * 2)
                or (raw.read(), raw.read())
            ),
            "does not authenticate",
        ),
        (
            lambda raw: (
                raw.sock.sendall(raw.channel.seal(b"cut short")[:9])
                or raw.sock.shutdown(socket.SHUT_WR)
                or raw.read()
            ),
            "middle of a frame",
        ),
    ],
)
async def test_what_breaks_the_protocol_is_refused_with_one_line(server, caplog, wrong, says):
    caplog.set_level(logging.WARNING)
    await talk(server, lambda raw: wrong(raw.shake()))
    lines = await until(
        lambda: [record for record in caplog.records if record.levelno >= logging.WARNING]
    )
    assert len(lines) == 1, [line.getMessage() for line in lines]
    assert says in lines[0].getMessage()
    assert lines[0].exc_info is None
    assert "\n" not in lines[0].getMessage()
    assert await talk(server, ping) == [1, 1, 0, 0, [1]], "others are served"


async def test_a_holder_of_a_wrong_key_is_refused_with_one_line(server, caplog):
    caplog.set_level(logging.WARNING)
    assert await talk(server, ping, secret=b"x" * 32) is None
    assert ["does not authenticate" in record.getMessage() for record in caplog.records] == [True]


@pytest.mark.parametrize(
    "hello",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"\x00" * 40,
        client_hello("nobody", 0, 0, is_daemon=True),
        b"x" * 5000,
    ],
    ids=["http", "zeros", "nobody", "long"],
)
async def test_strangers_are_refused_before_they_cost_anything(server, caplog, hello):
    caplog.set_level(logging.WARNING)
    assert await talk(server, Raw.read, hello=hello) is None
    assert len(caplog.records) == 1
    assert caplog.records[0].exc_info is None


@pytest.mark.parametrize(
    "hello", [msgpack.packb(["understudy/9", "what is new there"]), b"understudy/9 local"]
)
async def test_another_version_is_told_so_and_refused(server, caplog, hello):
    caplog.set_level(logging.WARNING)
    challenge, end = await talk(server, lambda raw: (raw.read(), raw.read()), hello=hello)
    assert msgpack.unpackb(challenge)[0] == "understudy/2"
    assert end is None
    [record] = caplog.records
    assert "version" in record.getMessage()
    assert "understudy/9" in record.getMessage()


async def test_a_command_on_this_host_is_who_the_kernel_says(server):
    def who(raw):
        raw.sock.sendall(frame(msgpack.packb([0, 1, 0, 0, [14, "who", [], {}, True, False]])))
        return msgpack.unpackb(raw.read())

    assert await talk(server, who, hello=LOCAL_HELLO) == [
        1,
        1,
        0,
        0,
        [3, [["command", os.geteuid()]], 0.0, 0.0, False],
    ]


async def test_over_tcp_nobody_is_believed_by_word(caplog):
    messenger = Messenger("controller", asyncio.get_running_loop(), keys_of("controller"))
    messenger.listen(["tcp:127.0.0.1:0"])
    port = messenger.reception.listeners[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(frame(LOCAL_HELLO) + frame(msgpack.packb([0, 1, 0, 0, [23]])))
    assert await reader.read() == b""
    writer.close()
    messenger.close()
    assert ["not a hello" in record.getMessage() for record in caplog.records] == [True]


def test_in_memory_messages_take_their_latency_and_keep_their_order():
    async def main():
        loop = asyncio.get_running_loop()
        network = MemoryNetwork()
        a = Messenger(
            "a", loop, None, network=network, latency_s=0.001, link_latency={"a>b": 0.004}
        )
        b = Messenger("b", loop, None, network=network, latency_s=0.001)
        seen = []
        b.set_handler(
            lambda request: (
                seen.append((round(loop.time(), 6), request.message.table, request.sender.name))
                or Ok()
            )
        )
        answered = []
        for name in ("one", "two", "three"):
            a.send(
                "b",
                Query(name, []),
                lambda answer: answered.append((round(loop.time(), 6), answer)),
            )
        a.send("b", Query("told", []), lambda answer: answered.append("never"), only_failures=True)
        assert isinstance(await a.call("nobody", Ping()), Failure)
        await asyncio.sleep(1)
        return seen, answered

    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        seen, answered = runner.run(main())
    assert seen == [(0.005, name, "a") for name in ("one", "two", "three", "told")]
    assert answered == [(0.006, Ok())] * 3


def test_a_deadline_between_two_microseconds_is_kept_once():
    loop = VirtualEventLoop()
    network = MemoryNetwork()
    asker, silent = (
        Messenger("a", loop, None, network=network),
        Messenger("b", loop, None, network=network),
    )
    silent.set_handler(lambda _request: None)
    answers, fired = [], []
    keep = asker._time_out
    asker._time_out = lambda: (fired.append(loop.time()), keep())
    # 30.62 + 10.0 is more than 40.62
    loop.call_at(30.62, lambda: asker.send("b", Ping(), answers.append, 10.0))
    try:
        loop.run_until_complete(asyncio.sleep(60.0))
    finally:
        loop.close()
    assert fired == [40.62]
    assert [answer.code for answer in answers] == [5004]


def test_an_answer_that_does_not_come_in_time_is_a_failure():
    async def main():
        network, loop = MemoryNetwork(), asyncio.get_running_loop()
        asker, silent = (Messenger(name, loop, None, network=network) for name in "ab")
        silent.set_handler(lambda _request: None)
        slow = asyncio.ensure_future(asker.call("b", Ping(), 5.0))
        quick = await asker.call("b", Ping(), 0.05)
        assert not slow.done()
        return quick, await slow, loop.time()

    with asyncio.Runner(loop_factory=VirtualEventLoop) as runner:
        quick, slow, now = runner.run(main())
    assert (quick.code, slow.code, now) == (5004, 5004, pytest.approx(5.0))


async def test_connections_and_their_bytes_are_counted(tmp_path):
    one, other = (
        Messenger(name, asyncio.get_running_loop(), keys_of(name)) for name in ("one", "other")
    )
    one.listen([f"unix:{tmp_path}/s"])
    one.set_handler(lambda _request: Rows([["x" * 1000]], 0.0))
    other.add_peer("one", f"unix:{tmp_path}/s")
    await other.call("one", Query("a", []))
    assert (one.connections, other.connections) == (1, 1)
    assert one.traffic.sent == other.traffic.received > 1000
    assert one.traffic.received == other.traffic.sent > 0
    one.close()
    other.close()
    assert other.connections == 0


def several(tmp_path, *names):
    """Controllers (or others) of these names, who stand by until they are told to lead."""
    made = {}
    for name in names:
        made[name] = each = Messenger(name, asyncio.get_running_loop(), keys_of(name))
        each.listen([f"unix:{tmp_path}/{name}"])
        each.set_handler(lambda _request: Failure(2027, "standby"))
    return made


async def test_of_several_addresses_the_one_that_leads_is_found(tmp_path):
    controllers = several(tmp_path, "backup1", "backup2")
    other = Messenger("noded0", asyncio.get_running_loop(), keys_of("noded0"))
    lost = []
    other.on_peer_lost = lost.append
    names = ("controller", "backup1", "backup2")
    other.add_peer("controller", *(f"unix:{tmp_path}/{name}" for name in names))
    assert [(await other.call("controller", Ping())).code for _ in range(3)] == [2027] * 3
    controllers["backup2"].set_handler(lambda _request: Ok())
    answers = [await other.call("controller", Ping()) for _ in range(4)]
    assert answers[-1] == Ok()
    assert lost == []
    controllers["backup1"].set_handler(lambda request: Rows([[request.sender.name]], 0.0))
    other.prefer("controller", f"unix:{tmp_path}/backup1")
    assert await other.call("controller", Ping()) == Rows([["noded0"]], 0.0)
    for each in (other, *controllers.values()):
        each.close()


async def test_what_is_outstanding_elsewhere_fails_when_the_peer_moves(tmp_path):
    controllers = several(tmp_path, "controller", "backup1")
    asked = asyncio.get_running_loop().create_future()
    controllers["controller"].set_handler(asked.set_result)
    other = Messenger("noded0", asyncio.get_running_loop(), keys_of("noded0"))
    other.add_peer("controller", f"unix:{tmp_path}/controller", f"unix:{tmp_path}/backup1")
    call = asyncio.ensure_future(other.call("controller", Ping()))
    await asked
    other.prefer("controller", f"unix:{tmp_path}/backup1")
    assert (await call).code == 1006
    for each in (other, *controllers.values()):
        each.close()


async def test_who_may_not_speak_answers_nothing_and_asks_nothing(server, tmp_path):
    mute = several(tmp_path, "mute")["mute"]
    mute.may_speak = lambda: False
    mute.add_peer("controller", f"unix:{server}")
    heard = []
    mute.send("controller", Ping(), heard.append)
    other = Messenger("noded0", asyncio.get_running_loop(), keys_of("noded0"))
    other.add_peer("mute", f"unix:{tmp_path}/mute")
    assert (await other.call("mute", Ping())).code == 1006
    assert heard == []
    other.close()
    mute.close()
