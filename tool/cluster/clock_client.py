"""A question to a cluster's clock service.

Place: under the tool.
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import TYPE_CHECKING

from understudy.model.durations import duration_s

if TYPE_CHECKING:
    from understudy.commands.shared.locate import Location
    from understudy.protocol.messages import ClockStatus


def instant(text: str, zero: float) -> float:
    """The cluster's time that `30d` (after `zero`) or `2030-01-20T12:00:00` means, in seconds since
    the epoch.

    Raises:
        ValueError: neither.
    """
    offset = duration_s(text)
    if offset is not None:
        return zero + offset
    try:
        # naive: local time, as all of Slurm's times
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a time after the start (30d, 12h, 1d6h30m) nor an "
            "instant (2030-01-20T12:00:00)"
        ) from None


class ClockError(Exception):
    """The clock could not be asked, or refused; the text is for the user."""


def ask(location: Location, action: str, value: float = 0.0, text: str = "") -> ClockStatus:
    """Send one request to the clock service.

    Raises:
        ClockError: no service, not permitted, or what was asked for cannot be.
    """
    import msgpack
    import msgspec

    from understudy.auth.handshake import (
        MAX_HANDSHAKE,
        AuthError,
        SealedChannel,
        client_hello,
        frame,
        read_challenge,
    )
    from understudy.clock import frames
    from understudy.commands.shared.client import open_socket, secret
    from understudy.protocol.messages import ClockControl, ClockStatus, Failure

    if not location.clock:
        raise ClockError("the cluster runs in real time and has no clock service")
    import os

    def read(most: int) -> bytes:
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            part = sock.recv(1 << 16)
            if not part:
                raise ConnectionResetError("closed by the clock service")
            data += part
            if len(data) > most:
                raise AuthError("frame too long")
        return data[4:]

    try:
        with contextlib.closing(open_socket(location.clock)) as sock:
            hello = client_hello("command", os.geteuid(), os.getegid(), is_daemon=False)
            sock.sendall(frame(hello))
            challenge = read(MAX_HANDSHAKE)
            read_challenge(challenge)
            channel = SealedChannel(secret(location, hello, challenge), is_client=True)
            control = msgspec.msgpack.encode(ClockControl(action, value, text))
            sock.sendall(channel.seal(msgpack.packb([frames.CONTROL, 1, control])))
            _, _, packed = msgpack.unpackb(channel.open(read(1 << 20)))
    except (OSError, AuthError) as error:
        raise ClockError(
            f"no answer from the clock service at {location.clock}: {error}"
        ) from error
    answer = msgspec.msgpack.decode(packed, type=ClockStatus | Failure)
    if isinstance(answer, Failure):
        raise ClockError(answer.text)
    return answer
