"""No function, class or constant of the house is there for nobody, nor a member of a class; those
that are there for tests alone are named here.
"""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = [
    path
    for init in ROOT.glob("*/__init__.py")
    for path in sorted(init.parent.rglob("*.py"))
    if "migrations" not in path.parts
]
# found by `getattr`: what a word of the command line does with an entity, and pytest's hooks
BY_NAME = re.compile(r"(add|modify|delete|show|pytest)_[a-z_]+")
FOR_TESTS = {
    "commands/shared/locate from_configuration",
    "model/records accepts",  # what the controller shows is held to it
    "model/states JOB_STATE_CODE",  # the commands' own copy is held to it
    "tool/manual/catalogue unknown_names",
}
MEMBERS_FOR_TESTS = {
    "controller/tables/topology Tree.leaves_of",
}
BY_POSITION = {"NamedTuple", "msgspec.Struct"}  # written and shown without their fields' names
FOR_LIBRARIES = {"Metrics", "Timer", "_ScannerContext"}  # prometheus_client, asyncio, json ask them


def word_counts() -> Counter[str]:
    words: Counter[str] = Counter()
    for path in [*FILES, ROOT / "pyproject.toml"]:
        words.update(re.findall(r"\w+", path.read_text()))
    return words


def members(node: ast.ClassDef) -> set[str]:
    """Methods, fields, and attributes that methods set."""
    found = set()
    for each in node.body:
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
                found.add(name)
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
    return found


def test_each_name_is_used_somewhere():
    words = word_counts()
    unused = set()
    for path in FILES:
        module = str(path.relative_to(ROOT).with_suffix(""))
        for node in ast.parse(path.read_text()).body:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    pass
                case ast.ClassDef(name=name) | ast.Assign(targets=[ast.Name(name)]):
                    pass
                case ast.AnnAssign(target=ast.Name(name)):
                    pass
                case _:
                    continue
            if words[name] == 1 and not name.startswith("__") and not BY_NAME.fullmatch(name):
                unused.add(f"{module} {name}")
    assert sorted(unused - FOR_TESTS) == []
    assert sorted(FOR_TESTS - unused) == [], "used by now: take it off the list"


def test_each_member_is_used_somewhere():
    words = word_counts()
    unused = {
        f"{path.relative_to(ROOT).with_suffix('')} {node.name}.{name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and node.name not in FOR_LIBRARIES
        and not BY_POSITION & {ast.unparse(base) for base in node.bases}
        for name in members(node)
        if words[name] == 1 and not name.startswith("__")
    }
    assert sorted(unused - MEMBERS_FOR_TESTS) == []
    assert sorted(MEMBERS_FOR_TESTS - unused) == [], "used by now: take it off the list"
