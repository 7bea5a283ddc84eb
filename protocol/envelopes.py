"""What travels between daemons: a message in an envelope.

Place: under the messenger and its reception. An envelope is
`[kind, number, deliver_us, sequence, message]`; kind 0 asks, 1 answers, 2 complains before the
connection is closed, 3 asks to be answered only by a Failure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from understudy.protocol.connection import ProtocolError
from understudy.protocol.messages import AnyMessage, Failure

if TYPE_CHECKING:
    from understudy.protocol.connection import Connection

ASK: Final = 0
ANSWER: Final = 1
COMPLAINT: Final = 2
TELL: Final = 3

CONNECT_FAILED: Final = 1005
CONNECTION_LOST: Final = 1006
TIMED_OUT: Final = 5004  # Slurm's "Socket timed out on send/recv operation"
STANDBY: Final = 2027  # "Slurm backup controller in standby mode"


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """What a frame holds."""

    kind: int
    number: int
    deliver_us: int
    sequence: int
    message: AnyMessage


encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Envelope).decode


def read(connection: Connection, body: bytes) -> Envelope:
    """The envelope in a frame.

    Raises:
        ProtocolError: it holds none; the other end has been told.
    """
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        complaint = f"malformed message: {error}"[:200]
        connection.send(encode((COMPLAINT, 0, 0, 0, Failure(-1, complaint))))
        raise ProtocolError(complaint) from error
