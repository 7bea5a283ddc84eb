"""The generated table of messages says what messages.py says.

Covers: protocol/make_wire_table, protocol/messages.
"""

import msgspec

from understudy.protocol import messages
from understudy.protocol.make_wire_table import TARGET, table_text
from understudy.protocol.wire_table import WIRE


def test_wire_table_is_up_to_date_with_messages() -> None:
    assert TARGET.read_text() == table_text(), "run `make wire`"


def test_a_message_packed_from_the_table_decodes_to_the_same_message() -> None:
    tag, names, defaults = WIRE["CancelJobs"]
    packed = msgspec.msgpack.encode([tag, ["17"], *defaults])
    assert len(names) == 1 + len(defaults)
    assert msgspec.msgpack.decode(packed, type=messages.AnyMessage) == messages.CancelJobs(["17"])
