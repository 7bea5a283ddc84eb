"""No module of the controller or of the commands imports another in a circle: for typing and inside
functions counts, too.
"""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def imports(room: str) -> dict[str, set[str]]:
    """Of each module the others of the room."""
    found: dict[str, set[str]] = {}
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / room).rglob("*.py")
        if path.name != "__init__.py"
    }
    for name, path in modules.items():
        found[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.ImportFrom)
                and node.module
                and node.module.startswith("understudy.")
            ):
                module = node.module.removeprefix("understudy.")
                found[name] |= {
                    each
                    for each in (module, *(f"{module}.{alias.name}" for alias in node.names))
                    if each in modules
                }
    return found


@pytest.mark.parametrize("room", ["controller", "commands", "documents", "tool"])
def test_there_is_no_circle(room: str) -> None:
    graph = imports(room)
    assert len(list(TopologicalSorter(graph).static_order())) >= len(graph) > 0
