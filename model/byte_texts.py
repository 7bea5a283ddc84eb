"""Bytes that are no UTF-8, as a Latin-1 script or variable has them, in texts that messages can
carry.

Place: the vocabulary; commands make texts sendable, commands and the node daemon's real executor
give the bytes back. Python reads such a byte as a lone surrogate (PEP 383), which msgpack refuses:
on the way it is a character for private use, U+10FF80 to U+10FFFF.
"""

from __future__ import annotations

from typing import Any, Final

_THERE: Final = {0xDC00 + byte: 0x10FF00 + byte for byte in range(0x80, 0x100)}
_BACK: Final = {there: here for here, there in _THERE.items()}


def sendable(text: str) -> str:
    """The text without lone surrogates."""
    return text.translate(_THERE)


def restored(value: Any) -> Any:
    """The text, or the list or dictionary of such, as `sendable` got it."""
    if isinstance(value, str):
        return value if value.isascii() else value.translate(_BACK)
    if isinstance(value, list | tuple):
        return type(value)(map(restored, value))
    if isinstance(value, dict):
        return {restored(key): restored(each) for key, each in value.items()}
    return value
