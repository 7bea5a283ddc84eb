"""msgpack for commands, as far as messages use it: importing the library would take a command five
milliseconds, most of them for types of time.

Place: under `client.py`. What is long is left to the library, which is quicker from some thousand
items on.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHORT = 16384  # bytes
_SIGN = b"\xf4\x8f"  # of bytes that are no UTF-8 (understudy.model.byte_texts)


def pack(value: "Any") -> bytes:
    """The value's bytes, as `msgpack.packb` writes them.

    Raises:
        TypeError: not a value of messages.
    """
    out = bytearray()
    _pack(value, out)
    return bytes(out)


def _pack(value: "Any", out: bytearray) -> None:
    kind = type(value)
    if kind is str:
        try:
            text = value.encode()
        except UnicodeEncodeError:
            from understudy.model.byte_texts import sendable

            text = sendable(value).encode()
        _head(len(text), out, 0xA0, 31, 0xD9)
        out += text
    elif kind is int:
        _pack_int(value, out)
    elif kind is list or kind is tuple:
        _head(len(value), out, 0x90, 15, 0xDB)
        for each in value:
            _pack(each, out)
    elif value is None or kind is bool:
        out.append(0xC0 if value is None else 0xC2 + value)
    elif kind is dict:
        _head(len(value), out, 0x80, 15, 0xDD)
        for key, each in value.items():
            _pack(key, out)
            _pack(each, out)
    elif kind is float:
        import _struct

        out += _struct.pack(">Bd", 0xCB, value)
    elif kind is bytes:
        _head(len(value), out, 0, -1, 0xC4)
        out += value
    else:
        raise TypeError(f"cannot pack {kind.__name__}")


def _head(length: int, out: bytearray, short: int, most: int, longer: int) -> None:
    """The head of something with a length. Lists and dictionaries (0xDB, 0xDD: one below their
    first) have no length of one byte.
    """
    if length <= most:
        out.append(short + length)
    elif length < 1 << 8 and longer not in (0xDB, 0xDD):
        out += bytes((longer, length))
    elif length < 1 << 16:
        out.append(longer + 1)
        out += length.to_bytes(2, "big")
    else:
        out.append(longer + 2)
        out += length.to_bytes(4, "big")


def _pack_int(value: int, out: bytearray) -> None:
    if -32 <= value < 128:
        out.append(value & 0xFF)
        return
    for power, size in enumerate((1, 2, 4, 8)):
        if 0 <= value < 1 << 8 * size:
            out.append(0xCC + power)
            out += value.to_bytes(size, "big")
            return
        if value < 0 and value >= -(1 << 8 * size - 1):
            out.append(0xD0 + power)
            out += value.to_bytes(size, "big", signed=True)
            return
    raise OverflowError("Integer value out of range")


def unpack(data: bytes) -> "Any":
    """The value of these bytes, as `msgpack.unpackb` reads them.

    Raises:
        ValueError: malformed.
    """
    if len(data) > _SHORT or "msgpack" in sys.modules:
        import msgpack

        return _restored(msgpack.unpackb(data, strict_map_key=False), data)
    try:
        value, end = _unpack(data, 0)
    except IndexError:
        end = -1
    if end != len(data):
        raise ValueError("malformed message")
    return _restored(value, data)


def _restored(value: "Any", data: bytes) -> "Any":
    """With bytes that are no UTF-8 in its texts, where the data have some."""
    if _SIGN not in data:
        return value
    from understudy.model.byte_texts import restored

    return restored(value)


def _unpack(data: bytes, at: int) -> "tuple[Any, int]":
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag < 0xC0:
        if tag >= 0xA0:
            return _text(data, at, tag - 0xA0)
        return _list(data, at, tag - 0x90) if tag >= 0x90 else _dict(data, at, tag - 0x80)
    if tag in (0xC0, 0xC2, 0xC3):
        return (None, False, True)[max(tag - 0xC1, 0)], at
    if tag in (0xCA, 0xCB):
        import _struct

        found, end = _bytes(data, at, 4 if tag == 0xCA else 8)
        return _struct.unpack(">f" if tag == 0xCA else ">d", found)[0], end
    if 0xCC <= tag <= 0xD3:
        found, end = _bytes(data, at, 1 << (tag & 3))
        return int.from_bytes(found, "big", signed=tag >= 0xD0), end
    read, size = _LONG.get(tag, (None, 0))
    if read is None:
        raise ValueError("malformed message")
    return read(data, at + size, int.from_bytes(data[at : at + size], "big"))


def _bytes(data: bytes, at: int, length: int) -> tuple[bytes, int]:
    if at + length > len(data):
        raise IndexError
    return data[at : at + length], at + length


def _text(data: bytes, at: int, length: int) -> tuple[str, int]:
    found, end = _bytes(data, at, length)
    return found.decode(), end


def _list(data: bytes, at: int, count: int) -> "tuple[list[Any], int]":
    found = []
    for _ in range(count):
        each, at = _unpack(data, at)
        found.append(each)
    return found, at


def _dict(data: bytes, at: int, count: int) -> "tuple[dict[Any, Any], int]":
    found = {}
    for _ in range(count):
        key, at = _unpack(data, at)
        found[key], at = _unpack(data, at)
    return found, at


_LONG = {
    **{0xC4 + power: (_bytes, 1 << power) for power in range(3)},
    **{0xD9 + power: (_text, 1 << power) for power in range(3)},
    **{0xDC + power: (_list, 2 << power) for power in range(2)},
    **{0xDE + power: (_dict, 2 << power) for power in range(2)},
}
