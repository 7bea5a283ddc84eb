"""Bytes that are no UTF-8 go through messages and come back."""

from __future__ import annotations

from understudy.commands.shared import packing
from understudy.model.byte_texts import restored, sendable


def test_bytes_that_are_no_utf_8_come_back() -> None:
    text = bytes(range(256)).decode(errors="surrogateescape") + "é→"
    sendable(text).encode()
    assert restored({"a": [sendable(text), (1, None)]}) == {"a": [text, (1, None)]}


def test_commands_pack_and_unpack_them() -> None:
    text = b"caf\xe9".decode(errors="surrogateescape")
    assert packing.pack([text, "é→"]) == b"\x92\xa7caf\xf4\x8f\xbf\xa9\xa5\xc3\xa9\xe2\x86\x92"
    assert packing.unpack(packing.pack([text, "é→"])) == [text, "é→"]


def test_the_library_leaves_them_to_be_restored() -> None:
    text = b"caf\xe9".decode(errors="surrogateescape") * 5000  # long enough for the library
    assert packing.unpack(packing.pack([text])) == [text]
