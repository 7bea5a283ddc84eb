"""What refused connections cost: lines of the log, descriptors, memory.

Covers: auth/refusals.
"""

import asyncio
import gc
import logging
import os
import socket
import tracemalloc
from types import SimpleNamespace

import pytest
from key_harness import keys_of, secret_of

from understudy.auth import refusals
from understudy.auth.handshake import SealedChannel, client_hello, frame
from understudy.auth.refusals import MOST_LINES, MOST_UNPROVEN, PeerCounts, Refusals
from understudy.protocol.connection import Connection
from understudy.protocol.messenger import Messenger
from understudy.protocol.reception import _has_proven


def test_the_log_has_so_many_lines_in_a_period_and_a_count_of_the_rest(caplog):
    timers = []
    refused = Refusals(
        logging.getLogger("test"), lambda delay_s, call: timers.append((delay_s, call))
    )
    for number in range(1000):
        refused.warn("refused %d", number)
    assert caplog.messages == [f"refused {number}" for number in range(MOST_LINES)]
    [(delay_s, over)] = timers
    over()
    assert caplog.messages[MOST_LINES:] == [
        f"{1000 - MOST_LINES} more connections were refused within {delay_s:g} s"
    ]
    refused.warn("again")
    timers[1][1]()
    assert caplog.messages[MOST_LINES + 1 :] == ["again"]


def test_a_peer_has_so_many_connections_that_have_proven_nothing_and_so_many_at_all():
    counts = PeerCounts(MOST_UNPROVEN + 2)
    for _ in range(MOST_UNPROVEN):
        assert counts.refuses(7, is_trusted=False) == ""
        counts.opened(7)
    assert "have not said who they are" in counts.refuses(7, is_trusted=True)
    assert counts.refuses(8, is_trusted=False) == ""
    for _ in range(2):
        counts.proven(7)
        assert counts.refuses(7, is_trusted=False) == ""
        counts.opened(7)
    counts.proven(7)
    assert "others are open" in counts.refuses(7, is_trusted=False)
    assert counts.refuses(7, is_trusted=True) == ""
    for number in range(MOST_UNPROVEN + 2):
        counts.closed(7, was_proven=number < 3)
    assert counts._open == counts._unproven == {}


async def until(holds):
    """Let the loop turn until that holds, which the kernel decides and nobody tells."""
    for _ in range(1_000_000):
        if holds():
            return
        await asyncio.sleep(0)
    raise AssertionError(holds)


async def refused(path, octets, challenged):
    """Connect, send the hello and bytes that no seal opens, and see that it is closed."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, path)
        await loop.sock_sendall(sock, octets)
        if challenged:
            await loop.sock_recv(sock, 4096)
            await loop.sock_sendall(sock, frame(os.urandom(30)))
        try:
            while await loop.sock_recv(sock, 4096):
                pass
        except ConnectionResetError:
            pass


@pytest.mark.parametrize("is_challenged", [True, False])
async def test_a_refused_connection_leaves_nothing_behind(tmp_path, is_challenged, caplog):
    messenger = Messenger("controller", asyncio.get_running_loop(), keys_of("controller"))
    messenger.listen([f"unix:{tmp_path}/s"])
    keys_of("noded0")
    octets = frame(client_hello("noded0", 1, 1, is_daemon=True)) if is_challenged else b"\xff" * 40
    for _ in range(MOST_LINES + 10):
        await refused(f"{tmp_path}/s", octets, is_challenged)
    gc.collect()
    gc.disable()  # what is left must not be a circle either
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(200):
            await refused(f"{tmp_path}/s", octets, is_challenged)
        await until(lambda: not messenger.connections)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
        messenger.close()
    assert (after - before) / 200 < 100
    assert len(caplog.messages) == MOST_LINES


async def test_a_daemon_without_descriptors_stops_accepting_for_a_while(
    tmp_path, monkeypatch, caplog
):
    """Its socket stays readable: it would turn and log for ever."""
    loop = asyncio.get_running_loop()
    messenger = Messenger("controller", loop, keys_of("controller"))
    messenger.listen([f"unix:{tmp_path}/s"])
    [listener] = messenger.reception.listeners
    full = SimpleNamespace(
        accept=lambda: (_ for _ in ()).throw(OSError(24, "Too many open files")),
        fileno=listener.fileno,
    )
    messenger.reception.listeners = [full]
    messenger.reception.accept(full)
    assert not loop.remove_reader(listener.fileno())  # it is off the loop
    assert caplog.messages == ["cannot accept a connection: Too many open files"]
    messenger.reception.listeners = [listener]
    messenger.reception.accept_again(listener)
    assert loop.remove_reader(listener.fileno())
    messenger.close()


def test_one_user_has_a_part_of_all_descriptors_only(monkeypatch):
    monkeypatch.setattr(refusals.resource, "getrlimit", lambda _what: (1024, 4096))
    assert refusals.most_of_one_user() == 512


async def test_who_has_too_many_unproven_connections_gets_no_further_one(
    tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(refusals, "MOST_UNPROVEN", 3)
    messenger = Messenger("controller", asyncio.get_running_loop(), keys_of("controller"))
    messenger.listen([f"unix:{tmp_path}/s"])
    socks = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    for sock in socks:
        sock.connect(f"{tmp_path}/s")
    await until(lambda: caplog.messages)
    assert "3 others have not said who they are" in caplog.messages[0]
    assert messenger.connections == 3
    assert socks[3].recv(1) == b""
    for sock in socks:
        sock.close()
    await until(lambda: not messenger.connections)
    messenger.close()


class Paused:
    """The authority over virtual time: reads what was sent when time is granted, here never."""

    def __init__(self):
        self.peers = []

    def add_peer(self, connection, _sender):
        connection.pause_reading()
        self.peers.append(connection)

    def remove_peer(self, _descriptor): ...


@pytest.mark.parametrize("proves", ["nothing", "by noise", "by the key"])
async def test_under_virtual_time_a_daemon_proves_itself_before_its_messages_are_read(
    tmp_path, proves
):
    messenger = Messenger("controller", asyncio.get_running_loop(), keys_of("controller"))
    messenger._wires.virtual = SimpleNamespace(authority=Paused())
    messenger.listen([f"unix:{tmp_path}/s"])
    keys_of("noded0")
    hello = client_hello("noded0", 0, 0, is_daemon=True)
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, f"{tmp_path}/s")
        await loop.sock_sendall(sock, frame(hello))
        challenge = (await loop.sock_recv(sock, 4096))[4:]
        channel = SealedChannel(secret_of(hello, challenge), is_client=True)
        proof, message = channel.seal(b""), channel.seal(b"a message, whose time has not come")
        sent = {
            "nothing": b"",
            "by noise": b"\0\0\0\x10" + b"n" * 40,
            "by the key": proof + message,
        }
        await loop.sock_sendall(sock, sent[proves])
        [connection] = messenger._wires.virtual.authority.peers
        assert isinstance(connection, Connection)
        assert _has_proven(connection, connection.tag) is (proves == "by the key")
        assert connection.closed is (proves == "by noise")
        if proves == "by the key":  # the message is still in the socket
            assert connection.sock.recv(1 << 10) == message
    messenger.close()
