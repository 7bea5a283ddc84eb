"""Write `wire_table.py`: each message's tag and field names as a plain dict, for commands, which
cannot afford to import msgspec.

Place: run by `make wire` after a change to messages.py; a test says when that was forgotten.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec

from understudy.protocol.messages import AnyMessage

TARGET = Path(__file__).with_name("wire_table.py")

_HEADER = '''"""Tags and fields of all messages: made by make_wire_table.py from messages.py.

Not to be edited. WIRE[name] is (tag, field names, defaults of the last fields): on the wire a
message is `[tag, field, field, ...]`.
"""

# fmt: off
# ruff: noqa: E501
'''


def table_text() -> str:
    """What wire_table.py has to contain."""
    lines = ["WIRE: dict[str, tuple[int, tuple[str, ...], tuple[object, ...]]] = {"]
    for message in get_args(AnyMessage):
        tag, names, defaults = _describe(message)
        lines.append(f'    "{message.__name__}": ({tag}, {_tuple(names)}, {_tuple(defaults)}),')
    lines.append("}")
    return _HEADER + "\n".join(lines) + "\n"


def _describe(message: type[msgspec.Struct]) -> tuple[int, list[str], list[Any]]:
    """The tag, the field names, and the defaults of those at the end that have one."""
    fields = msgspec.structs.fields(message)
    defaults = []
    for each in fields:
        if each.default is not msgspec.NODEFAULT:
            defaults.append(each.default)
        elif each.default_factory is not msgspec.NODEFAULT:
            defaults.append(each.default_factory())
    config = message.__struct_config__
    assert isinstance(config.tag, int)
    return config.tag, [each.name for each in fields], defaults


def _tuple(values: list[Any]) -> str:
    """A tuple as the formatter writes it."""
    texts = [_literal(value) for value in values]
    return "(" + ", ".join(texts) + (",)" if len(texts) == 1 else ")")


def _literal(value: Any) -> str:
    if value == b"":
        return 'b""'
    return '"' + value + '"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    TARGET.write_text(table_text())
