"""Commands name messages by text (`call("Query", ...)`), which no type checker sees: each has as
many fields as it is given.
"""

import ast
from pathlib import Path

import understudy.commands
from understudy.protocol.wire_table import WIRE

ROOM = Path(understudy.commands.__file__).parent
VERBS = {"begin", "call", "pack"}


def test_messages_that_commands_name_have_as_many_fields_as_they_are_given() -> None:
    looked_at, wrong = 0, []
    for path in sorted(ROOM.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and node.args):
                continue
            verb = getattr(node.func, "attr", getattr(node.func, "id", ""))
            name, *given = node.args
            if verb not in VERBS or not isinstance(name, ast.Constant) or name.value not in WIRE:
                continue
            if any(isinstance(each, ast.Starred) for each in given):
                continue
            _, fields, defaults = WIRE[name.value]
            looked_at += 1
            if not len(fields) - len(defaults) <= len(given) <= len(fields):
                wrong.append(f"{path.name}:{node.lineno} {name.value}")
    assert wrong == []
    assert looked_at > 40
