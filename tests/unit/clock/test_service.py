"""What the clock service takes from whom. Its decisions on time are tested in test_windows.py.

Covers: clock/frames, clock/participant.
"""

import asyncio
import logging
import os
import socket

import msgpack
import msgspec
import pytest
from key_harness import keys_of, secret_of

from understudy.auth import refusals
from understudy.auth.handshake import SealedChannel, client_hello, frame
from understudy.clock import frames, service
from understudy.clock.service import ClockService
from understudy.clock.windows import Windows
from understudy.model.cluster import Cluster
from understudy.protocol.messages import ClockControl, ClockStatus, Failure

OTHER_USER = os.getuid() + 1


class Raw:
    """Somebody at the clock's socket."""

    def __init__(self, path, name="command", user_id=None, *, is_daemon=False):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(5)
        self.sock.connect(str(path))
        hello = client_hello(
            name, os.getuid() if user_id is None else user_id, os.getgid(), is_daemon=is_daemon
        )
        if is_daemon:
            keys_of(name)
        self.sock.sendall(frame(hello))
        self.channel = SealedChannel(secret_of(hello, self._read()), is_client=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def _read(self):
        head = self.sock.recv(4, socket.MSG_WAITALL)
        return self.sock.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL) if head else None

    def send(self, *content):
        self.sock.sendall(self.channel.seal(msgpack.packb(content)))

    def is_closed(self):
        return self._read() is None

    def hear(self):
        return msgpack.unpackb(self.channel.open(self._read()))

    def control(self, action, value=0.0):
        self.send(frames.CONTROL, 1, msgspec.msgpack.encode(ClockControl(action, value)))
        _, _, packed = self.hear()
        return msgspec.msgpack.decode(packed, type=ClockStatus | Failure)


@pytest.fixture
async def clock(tmp_path):
    cluster = Cluster(
        "tux",
        "tux.conf",
        time="virtual",
        epoch=1000.0,
        participants=["noded0"],
        user_id=os.getuid(),
    )
    clock = ClockService(cluster, keys_of("clock"), asyncio.get_running_loop())
    clock.listen(f"unix:{tmp_path}/clock")
    clock.path = tmp_path / "clock"
    yield clock
    await ended(clock)


async def ended(clock):
    clock.close()
    for _ in range(3):  # sockets are closed after their last event
        await asyncio.sleep(0)


async def talk(clock, conversation, *arguments, **options):
    def run():
        with Raw(clock.path, *arguments, **options) as raw:
            return conversation(raw)

    return await asyncio.to_thread(run)


async def test_only_participants_may_stop_time_between_windows(clock, caplog):
    def conversation(raw):
        raw.send(frames.PAUSE, "because")
        return raw.is_closed()

    assert await talk(clock, conversation, user_id=OTHER_USER)
    assert await talk(clock, conversation, "noded0", is_daemon=True)
    assert not clock.windows.paused
    assert "somebody who has not joined" in caplog.text


async def test_other_users_may_look_but_not_touch(clock):
    status = await talk(clock, lambda raw: raw.control("status"), user_id=OTHER_USER)
    assert isinstance(status, ClockStatus)
    assert await talk(clock, lambda raw: raw.control("pause"), user_id=OTHER_USER) == Failure(
        2002, "Access/permission denied"
    )
    assert (await talk(clock, lambda raw: raw.control("pause"))).state == "waiting"
    assert clock.windows.paused == "by request"


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
async def test_what_is_no_number_is_refused_and_the_connection_lives(clock, value, caplog):
    def conversation(raw):
        return [
            raw.control(action, value)
            for action in ("break", "rate", "run-until", "break-every", "step")
        ], raw.control("status")

    refusals, status = await talk(clock, conversation)
    assert all(
        isinstance(each, Failure) and "no time and no rate" in each.text for each in refusals
    )
    assert isinstance(status, ClockStatus)
    assert not caplog.records


async def test_a_step_does_not_go_back(clock):
    def conversation(raw):
        raw.control("step-for", 5.0)
        return raw.control("step-for", -60.0), raw.control("status")

    refusal, status = await talk(clock, conversation)
    assert isinstance(refusal, Failure)
    assert "backwards" in refusal.text
    assert status.now >= 1000


async def test_a_second_participant_of_a_name_is_refused_and_the_first_stays(clock, caplog):
    def conversation(raw):
        raw.send(frames.JOIN, False)
        with Raw(clock.path, "noded0", is_daemon=True) as second:
            second.send(frames.JOIN, False)
            assert second.is_closed()
        return list(clock.windows.participants), list(clock.windows.lost)

    assert await talk(clock, conversation, "noded0", is_daemon=True) == (["noded0"], [])
    assert "participant noded0 takes part already" in caplog.text


async def test_who_watches_is_told_at_once_of_a_dead_participant_though_another_does_not_report(
    clock,
):
    clock.windows = Windows(1000, ["controller", "noded0", "replay"])

    def conversation(replay):
        replay.send(frames.JOIN, True)
        replay.send(frames.REPORT, 1 << 60, 0, False, {}, -1)
        with Raw(clock.path, "controller", is_daemon=True) as controller:
            controller.send(frames.JOIN, False)
            with Raw(clock.path, "noded0", is_daemon=True) as noded:
                noded.send(frames.JOIN, False)
            return replay.hear()

    assert await talk(clock, conversation, "replay", is_daemon=True) == [frames.LOST, "noded0 died"]


@pytest.mark.parametrize(
    "content",
    [
        (),
        (99,),
        ([1],),
        (frames.CONTROL,),
        (frames.CONTROL, 1, b"\xc1"),
        (frames.CONTROL, 1, "text"),
        (frames.REPORT, 1),
        (frames.HOLD,),
        (frames.LEAVE,),
    ],
)
async def test_a_malformed_frame_closes_the_connection_with_one_line(clock, caplog, content):
    def conversation(raw):
        raw.send(*content)
        return raw.is_closed()

    assert await talk(clock, conversation)
    (record,) = caplog.records
    assert (record.levelno, record.exc_info) == (logging.WARNING, None)


async def test_who_proves_nothing_in_time_is_closed(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(service, "_HANDSHAKE_S", 0.0)
    clock = ClockService(
        Cluster("tux", "tux.conf", time="virtual"), keys_of("clock"), asyncio.get_running_loop()
    )
    clock.listen(f"unix:{tmp_path}/clock")
    silent = socket.socket(socket.AF_UNIX)
    silent.settimeout(5)
    silent.connect(f"{tmp_path}/clock")
    with silent:
        assert await asyncio.to_thread(silent.recv, 1) == b""
    assert "connection with a local process closed: did not authenticate in time" in caplog.text
    await ended(clock)


async def test_who_has_many_connections_open_that_prove_nothing_gets_no_more(
    clock, monkeypatch, caplog
):
    monkeypatch.setattr(refusals, "MOST_UNPROVEN", 3)

    def conversation(raw):
        others = [socket.socket(socket.AF_UNIX) for _ in range(4)]
        for sock in others:
            sock.settimeout(5)
            sock.connect(str(clock.path))
        last = others[3].recv(1)
        for sock in others:
            sock.close()
        return last, raw.control("status")

    last, status = await talk(clock, conversation)
    assert last == b""
    assert isinstance(status, ClockStatus)
    assert "others have not said who they are" in caplog.text
