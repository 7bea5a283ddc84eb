"""No test of tests/unit waits in real time: that is for tests/e2e."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[1] / "unit"


def sleeps(tree: ast.Module) -> Iterator[int]:
    """Lines of naps. A coroutine at the top is run by pytest on a real loop; one inside a function
    is run by the function, on a virtual loop. To sleep 0 is to let the loop turn.
    """
    for top in tree.body:
        for node in ast.walk(top):
            match node:
                case ast.Attribute(value=ast.Name("time"), attr="sleep"):
                    yield node.lineno
                case ast.Call(ast.Attribute(value=ast.Name("asyncio"), attr="sleep"), [delay]):
                    if isinstance(top, ast.AsyncFunctionDef) and ast.unparse(delay) != "0":
                        yield node.lineno
                case ast.Call(_, [ast.Constant("sleep"), *_]):  # a child that does
                    yield node.lineno
                case ast.Constant(str(script)) if "time.sleep(" in script:
                    yield node.lineno


@pytest.mark.parametrize(
    ("line", "naps"),
    [
        ("async def test():\n    await asyncio.sleep(0.1)", True),
        ("async def test():\n    await asyncio.sleep(0)", False),
        ("def test():\n    async def main():\n        await asyncio.sleep(10)", False),
        ("def test():\n    time.sleep(1)", True),
        ("def test():\n    subprocess.Popen([sys.executable, '-c', 'time.sleep(9)'])", True),
        ("async def test():\n    await create_subprocess_exec('sleep', '60')", True),
    ],
)
def test_a_nap_is_seen(line, naps):
    assert bool(list(sleeps(ast.parse(line)))) is naps


def test_no_unit_test_sleeps():
    found = [
        f"{path.relative_to(UNIT)}:{line}"
        for path in sorted(UNIT.rglob("*.py"))
        for line in sleeps(ast.parse(path.read_text()))
    ]
    assert found == []
