"""A function fits on a screen, and its ways through it into a head. Those that are too long yet are
named here; the list only shrinks.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_LINES = 70
MOST_WAYS = 20  # McCabe's count
LONG = {
    "documents/jobs job_record",
    "tests/crash/kill_controller run",
    "tests/e2e/test_hosts test_daemons_that_are_started_one_by_one_are_a_cluster",
    "tests/simulation/clusters Simulation._judge",
    "tests/simulation/schedules _Drawing._accounting",
    "tests/simulation/schedules _Drawing._conf",
    "tests/simulation/schedules _Drawing._event",
    "tests/simulation/schedules _Drawing._job",
    "tests/simulation/schedules _Drawing._reservations",
    "tests/simulation/site_confs _kinds",
    "tests/simulation/site_confs write_site",
    "tests/simulation/test_node_daemons_in_virtual_time replay",
    "tests/unit/model/test_site_configurations facts",
    "tool/cluster/launch prepare",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def named(tree: ast.AST, within: str = "") -> Iterator[tuple[str, Function]]:
    """All functions with their names: `Class.method`, `function.inner`."""
    for node in ast.iter_child_nodes(tree):
        name = within
        if isinstance(node, ast.ClassDef | Function):
            name = f"{within}.{node.name}".lstrip(".")
        if isinstance(node, Function):
            yield name, node
        yield from named(node, name)


def ways(function: Function) -> int:
    """McCabe's count without the operators inside conditions."""
    branches = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
    return 1 + sum(isinstance(node, branches) for node in ast.walk(function))


def functions() -> Iterator[tuple[str, Function]]:
    rooms = [path.parent for path in ROOT.glob("*/__init__.py")]
    for room in (*rooms, ROOT / "tests", ROOT / "benchmarks"):
        for path in sorted(room.rglob("*.py")):
            if "migrations" not in path.parts:  # they are never changed
                file = path.relative_to(ROOT).with_suffix("")
                for name, function in named(ast.parse(path.read_text())):
                    yield f"{file} {name}", function


def test_functions_fit_on_a_screen():
    found = {
        name for name, each in functions() if (each.end_lineno or 0) - each.lineno >= MOST_LINES
    }
    assert sorted(found - LONG) == [], "too long"
    assert sorted(LONG - found) == [], "not long any more: take it off the list"


def test_functions_have_few_ways_through_them():
    found = {name for name, each in functions() if ways(each) > MOST_WAYS}
    assert sorted(found) == [], "too many ways"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("pass", 1),
        ("if a: pass", 2),
        ("if a: pass\n elif b: pass", 3),
        ("for a in b:\n  while c: pass", 3),
        ("try: pass\n except A: pass\n except B: pass", 3),
        ("match a:\n  case 1: pass\n  case _: pass", 3),
        ("return [a for a in b if c or d]", 1),
    ],
)
def test_ways_are_counted_as_mccabe_does(body, count):
    (tree,) = ast.parse(f"def f():\n {body}").body
    assert isinstance(tree, ast.FunctionDef)
    assert ways(tree) == count
