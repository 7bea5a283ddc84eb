"""The virtual clock service: one process that knows what time it is for all daemons of a cluster.

Place: the edge around `windows.py` (virtual time) and `rates.py` (scaled time). Participants and
`understudy clock` connect here; frames as in `frames.py`.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from typing import TYPE_CHECKING, Any

import msgpack
import msgspec

from understudy.auth.handshake import SealedChannel, VersionError, read_hello, server_challenge
from understudy.auth.keys import AGENT
from understudy.auth.local import other_end
from understudy.auth.refusals import PeerCounts, Refusals, most_of_one_user
from understudy.clock import frames, rate_file
from understudy.clock.host_clock import host_clock
from understudy.clock.rates import Rates
from understudy.clock.windows import Grant, Held, Windows
from understudy.model.errors import SlurmError
from understudy.protocol import addresses
from understudy.protocol.connection import Connection, ProtocolError
from understudy.protocol.connection import log as connection_log
from understudy.protocol.messages import ClockControl, ClockStatus, Failure, Message

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Hashable, Iterator
    from pathlib import Path

    from understudy.auth.keys import Keys
    from understudy.model.cluster import Cluster
    from understudy.model.metrics import Family

log = logging.getLogger("understudy.clock")

_WATCH_S = 1.0  # ours: between two looks at who is silent
_ACCEPT_AGAIN_S = 1.0  # ours: when there was no descriptor for a connection
_HANDSHAKE_S = 10.0  # ours: until a participant says who it is


class ClockService:
    """Accepts participants and grants them time; obeys `understudy clock`. `kept`: where the line
    of scaled time is kept for the next life of the service; None: nowhere.
    """

    def __init__(
        self,
        cluster: Cluster,
        keys: Keys,
        loop: asyncio.AbstractEventLoop,
        kept: Path | None = None,
    ) -> None:
        self._cluster, self._keys, self._loop = cluster, keys, loop
        self._listener: socket.socket | None = None
        self._participants: dict[str, Connection] = {}
        # by when each has to prove itself
        self._connections: dict[Connection, asyncio.TimerHandle] = {}
        self._refusals = Refusals(connection_log, loop.call_later)
        self._counts = PeerCounts(most_of_one_user())
        self._peers: dict[Connection, Hashable] = {}  # a user, or another host
        self._names: dict[Connection, tuple[str, int, bool]] = {}
        self.windows = Windows(
            round(cluster.latency_s * 1e6),
            cluster.participants if cluster.time == "virtual" else (),
        )
        self.rates = Rates(cluster.rate if cluster.time == "scaled" else 1.0, time.monotonic())
        self._is_virtual = cluster.time == "virtual"
        self._zero_us = round((cluster.zero - cluster.epoch) * 1e6) if cluster.zero else 0
        self._virtual_rate = 0.0  # 0: as fast as possible
        self._throttle: asyncio.TimerHandle | None = None
        self._rate_timer: asyncio.TimerHandle | None = None
        self._until_us: float | None = None  # scaled time is to stop there
        self._granted_at = time.monotonic()
        self._named: set[str] = set()
        self._kept = kept if cluster.time == "scaled" else None
        if self._kept is not None:
            until_us = rate_file.read(self._kept, cluster.epoch, self.rates)
            if until_us is not None and self.rates.segment[2]:
                self._stop_scaled_at(until_us)
            rate_file.write(self._kept, cluster.epoch, self.rates, self._until_us)

    def listen(self, address: str) -> None:
        """Accept connections from now on."""
        self._listener = addresses.listen(address)
        self._loop.add_reader(self._listener.fileno(), self._accept)
        if self._is_virtual:
            self._loop.call_later(_WATCH_S, self._watch)

    def close(self) -> None:
        """End: under virtual time participants lose their clock and end, too."""
        if self._listener is not None:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
        for connection in list(self._connections):
            connection.close()

    def figures(self) -> Iterator[Family]:
        """For Prometheus."""
        from understudy.model.metrics import counter, gauge  # noqa: PLC0415  few ask for it

        yield gauge(
            "understudy_clock_connections",
            "Connections of daemons and commands.",
            len(self._connections),
        )
        yield gauge(
            "understudy_clock_participants",
            "Daemons that take their time from the clock.",
            len(self._participants),
        )
        yield counter(
            "understudy_clock_windows_total",
            "Stretches of virtual time that were granted.",
            self.windows.windows,
        )

    # --- connections ------------------------------------------------------------------------------

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            sock, address = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:  # out of descriptors
            self._refusals.warn("cannot accept a connection: %s", error.strerror)
            self._loop.remove_reader(self._listener.fileno())
            self._loop.call_later(_ACCEPT_AGAIN_S, self._accept_again)
            return
        is_local = sock.family == socket.AF_UNIX
        peer = other_end(sock)[0] if is_local else str(address[0])
        if why := self._counts.refuses(peer, is_trusted=not is_local or peer == os.geteuid()):
            self._refusals.warn("connection of %s refused: %s", peer, why)
            sock.close()
            return
        self._counts.opened(peer)
        connection = Connection(
            self._loop, sock, self._take_hello, self._closed, peer=addresses.shown(address)
        )
        connection.logs = False  # until it has proven itself
        self._peers[connection] = peer
        self._connections[connection] = self._loop.call_later(
            _HANDSHAKE_S, self._close_unproven, connection
        )

    def _accept_again(self) -> None:
        if self._listener is not None and self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def _close_unproven(self, connection: Connection) -> None:
        if connection.on_body != self._take:
            connection.close("did not authenticate in time")

    def _take_hello(self, connection: Connection, body: bytes) -> None:
        try:
            name, user_id, _, is_daemon = read_hello(body)
        except VersionError:
            connection.send(server_challenge("clock"))  # which says of what version we are
            raise
        connection.peer = f"{name} (user {user_id}, {connection.peer})"
        challenge, secret, _ = self._keys.answered(body, name if is_daemon else AGENT)
        connection.send(challenge)
        connection.secure(SealedChannel(secret, is_client=False), 1 << 20)
        connection.on_body = self._take_first
        self._names[connection] = (name, user_id, is_daemon)

    def _take_first(self, connection: Connection, body: bytes) -> None:
        """The first frame that opens proves who the other end is."""
        connection.on_body = self._take
        connection.logs = True
        self._counts.proven(self._peers[connection])
        self._take(connection, body)

    def _take(self, connection: Connection, body: bytes) -> None:
        try:
            content = msgpack.unpackb(body)
            kind = content[0]
            if kind == frames.REPORT:
                _, next_us, now_us, waiting, sent, needs_us = content
                name = connection.tag
                if not isinstance(name, str):
                    raise ProtocolError("a report before joining")
                self.windows.report(name, next_us, now_us, sent, waiting=waiting, needs_us=needs_us)
                self._decide()
            elif kind == frames.HOLD and isinstance(connection.tag, str):
                self.windows.hold(connection.tag)
                self._decide()
            elif kind == frames.JOIN:
                self._join(connection, watches=bool(content[1]))
            elif kind == frames.LEAVE and isinstance(connection.tag, str):
                self._leave(connection, died=False)
            elif kind == frames.PAUSE and isinstance(connection.tag, str):
                self.windows.pause(str(content[1]))
            elif kind == frames.CONTROL:
                self._control(connection, content[1], content[2])
            else:
                raise ProtocolError(
                    f"a frame of kind {kind!r} from "
                    f"{connection.tag or 'somebody who has not joined'}"
                )
        except (
            ValueError,
            TypeError,
            IndexError,
            KeyError,
            OverflowError,
            msgspec.DecodeError,
        ) as error:
            raise ProtocolError(f"malformed frame: {error}") from error

    def _join(self, connection: Connection, *, watches: bool) -> None:
        name, _, is_daemon = self._names[connection]
        if not is_daemon:
            raise ProtocolError("only daemons take part in time")
        if not self._is_virtual:
            connection.tag = name
            self._participants[name] = connection
            self._send_rate(connection)
            return
        try:
            self.windows.join(name, watches=watches)
        except ValueError as error:
            raise ProtocolError(str(error)) from error
        connection.tag = name
        self._participants[name] = connection
        log.info("%s takes part", name)
        self._decide()

    def _leave(self, connection: Connection, *, died: bool) -> None:
        name = connection.tag
        connection.tag = None
        if (
            isinstance(name, str)
            and self._participants.pop(name, None) is not None
            and self._is_virtual
        ):
            if died:
                log.error("participant %s died at %.6f", name, self.windows.now_us / 1e6)
            self.windows.leave(name, died=died)
            self._decide()
            if died:
                self._tell_lost(f"{name} died")

    def _closed(self, connection: Connection, reason: str) -> None:
        if reason and not connection.logs:
            self._refusals.warn("connection with %s closed: %s", connection.peer, reason)
        if (deadline := self._connections.pop(connection, None)) is not None:
            deadline.cancel()
        self._names.pop(connection, None)
        self._counts.closed(
            self._peers.pop(connection), was_proven=connection.on_body == self._take
        )
        if connection.tag is not None:
            self._leave(connection, died=True)

    def _send(self, connection: Connection, content: list[Any]) -> None:
        connection.send(msgpack.packb(content))

    # --- granting ---------------------------------------------------------------------------------

    def _decide(self) -> None:
        decisions = self.windows.decide()
        for decision in decisions:
            connection = self._participants[decision.to]
            if isinstance(decision, Grant):
                connection.send(
                    msgpack.packb(
                        (frames.GRANT, decision.end_us, decision.must_have, decision.needed_us)
                    )
                )
            elif isinstance(decision, Held):
                connection.send(msgpack.packb((frames.HELD, decision.now_us)))
            else:
                log.error("stalled: %s", decision.reason)
                connection.send(
                    msgpack.packb(
                        (frames.LOST if self.windows.lost else frames.STALLED, decision.reason)
                    )
                )
        if decisions:
            self._granted_at = time.monotonic()
        elif self.windows.throttled and self._throttle is None:
            self._throttle = self._loop.call_later(0.01, self._unthrottle)

    def _unthrottle(self) -> None:
        self._throttle = None
        self._decide()

    def _watch(self) -> None:
        """Name a participant that has been granted time and does not come back."""
        self._loop.call_later(_WATCH_S, self._watch)
        running = self.windows.running
        if not running:
            self._named.clear()
            return
        silent_s = time.monotonic() - self._granted_at
        if silent_s > self._cluster.limit_s and not self._named.issuperset(running):
            self._named.update(running)
            reason = f"{', '.join(running)} has not reported for {silent_s:.0f} s (real time)"
            log.error("hangs: %s", reason)
            self._tell_lost(reason)

    def _tell_lost(self, reason: str) -> None:
        """Others may be waiting for who is gone, and report no more: whoever watches is told at
        once.
        """
        for name, participant in self.windows.participants.items():
            if participant.watches:
                self._send(self._participants[name], [frames.LOST, reason])

    # --- understudy clock -------------------------------------------------------------------------

    def _control(self, connection: Connection, number: int, packed: bytes) -> None:
        control = msgspec.msgpack.decode(packed, type=ClockControl)
        _, user_id, is_daemon = self._names[connection]
        answer: Message
        try:
            if control.action != "status" and (
                is_daemon or user_id not in (0, self._cluster.user_id)
            ):
                raise SlurmError(2002)
            self._obey(control)
            answer = self.status()
        except SlurmError as error:
            answer = Failure(error.code, error.text)
        self._send(connection, [frames.ANSWER, number, msgspec.msgpack.encode(answer)])
        self._decide()

    def status(self) -> ClockStatus:
        """What `understudy clock status` shows."""
        if not self._is_virtual:
            rate = self.rates.segment[2]
            now = self._cluster.epoch + self.rates.at(time.monotonic()) / 1e6
            return ClockStatus(
                self._cluster.time,
                now,
                rate,
                "running" if rate else "paused",
                "",
                sorted(self._participants),
            )
        state, reason = self.windows.state()
        running = self.windows.running
        if (
            state == "running"
            and running
            and time.monotonic() - self._granted_at > self._cluster.limit_s
        ):
            reason = (
                f"{', '.join(running)} has not reported for "
                f"{time.monotonic() - self._granted_at:.0f} s"
            )
        if self.windows.lost:
            reason = (reason + "; " if reason else "") + f"{', '.join(self.windows.lost)} died"
        return ClockStatus(
            "virtual",
            self._cluster.epoch + self.windows.now_us / 1e6,
            self._virtual_rate,
            state,
            reason,
            sorted(self.windows.participants),
            self.windows.windows,
        )

    def _obey(self, control: ClockControl) -> None:
        if control.action == "status":
            return
        if not math.isfinite(control.value):
            raise SlurmError(-1, f"{control.value} is no time and no rate")
        if self._is_virtual:
            self._obey_virtual(control)
        elif self._cluster.time == "scaled":
            self._obey_scaled(control)
        else:
            raise SlurmError(-1, "the cluster runs in real time: its clock cannot be changed")

    def _obey_virtual(self, control: ClockControl) -> None:
        windows, value = self.windows, control.value
        value_us = round((value - self._cluster.epoch) * 1e6)
        match control.action:
            case "pause":
                windows.pause("by request")
            case "resume":
                windows.resume()
            case "step":
                windows.step(max(1, int(value)))
            case "step-for" if value < 0:
                raise SlurmError(-1, "time does not run backwards: a step is of 0 s or more")
            case "step-for":
                windows.run_until(windows.now_us + round(value * 1e6))
            case "run-until" | "break" if value_us <= windows.now_us:
                raise SlurmError(
                    -1,
                    f"that is past: it is {(windows.now_us - self._zero_us) / 86400e6:.3f} "
                    "days after the start already",
                )
            case "run-until":
                windows.run_until(value_us)
            case "break":
                windows.break_at(value_us)
            case "break-every":
                windows.break_every(round(value * 1e6), self._zero_us)
            case "rate" if value < 0:
                raise SlurmError(
                    -1,
                    "time does not run backwards: a rate is above 0, or 0 for as fast as possible",
                )
            case "rate":
                self._set_virtual_rate(value)
            case _:
                raise SlurmError(-1, f"unknown request to the clock: {control.action}")

    def _set_virtual_rate(self, rate: float) -> None:
        self._virtual_rate = rate
        if rate <= 0:
            self.windows.allowed_us = None
            self.windows.throttled = False
            return
        base_us = (
            min(self.windows.next_event_us, max(self.windows.now_us, 0))
            if self.windows.participants
            else 0
        )
        began = time.monotonic()
        self.windows.allowed_us = lambda: base_us + round((time.monotonic() - began) * rate * 1e6)

    def _obey_scaled(self, control: ClockControl) -> None:
        rates, now, value = self.rates, time.monotonic(), control.value
        if self._rate_timer is not None and control.action in (
            "pause",
            "resume",
            "run-until",
            "rate",
        ):
            self._rate_timer.cancel()
            self._rate_timer = self._until_us = None
        match control.action:
            case "pause":
                rates.set(0.0, now)
            case "resume":
                rates.set(rates.wanted, now)
            case "rate":
                if value <= 0:
                    raise SlurmError(-1, "a rate must be above 0 (use pause)")
                rates.wanted = value
                rates.set(value, now)
            case "run-until" | "break" | "step-for":
                until_us = (
                    rates.at(now) + value * 1e6
                    if control.action == "step-for"
                    else (value - self._cluster.epoch) * 1e6
                )
                if until_us <= rates.at(now):
                    raise SlurmError(-1, "that is past")
                rates.set(rates.wanted, now)
                self._stop_scaled_at(until_us)
            case _:
                raise SlurmError(-1, f"{control.action} needs virtual time")
        self._tell_rate()

    def _stop_scaled_at(self, until_us: float) -> None:
        left_us = until_us - self.rates.at(time.monotonic())
        self._until_us = until_us
        self._rate_timer = self._loop.call_later(
            max(0.0, left_us) / 1e6 / self.rates.segment[2], self._stop_scaled, until_us
        )

    def _stop_scaled(self, at_us: float) -> None:
        self._rate_timer = self._until_us = None
        self.rates.stop(at_us, time.monotonic())
        self._tell_rate()

    def _tell_rate(self) -> None:
        if self._kept is not None:
            rate_file.write(self._kept, self._cluster.epoch, self.rates, self._until_us)
        for connection in self._participants.values():
            self._send_rate(connection)

    def _send_rate(self, connection: Connection) -> None:
        now = time.monotonic()
        self._send(
            connection, [frames.RATE, self.rates.at(now), now, self.rates.segment[2], host_clock()]
        )
