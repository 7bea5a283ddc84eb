"""How many files does a reader visit who follows a job through its start, or through its end?

The job, or an ask for it, is followed by its name: into each function that it is passed to, depth
first, and back, as long as the caller still has to do with it. A file counts each time the walk
comes into it; a function is followed once. Methods are found by their name where one class alone
has it, so plug-ins are not followed, nor what reacts (`controller/edge/reactions.py`): who starts
or ends a job need not know that.

`python tests/tidy/test_visits.py` prints the ways.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("controller", "model", "protocol")
PACKAGE = "understudy."
# (module, function, name of what is followed): most visits. These only shrink; 81 and 63 before
# jobs/start and jobs/end left to others what follows.
MOST = {
    ("controller.jobs.start", "Planning.start", "ask"): 13,
    ("controller.requests.node_news", "batch_complete", "job"): 23,
}


@dataclass
class Module:
    """Functions (methods as `Class.method`) and what is imported, by the name that it has here."""

    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


def read(path: Path) -> Module:
    """The module in the file; protocols do nothing."""
    module, tree = Module(), ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            module.functions[node.name] = node
        elif isinstance(node, ast.ClassDef) and "Protocol" not in map(ast.unparse, node.bases):
            for each in node.body:
                if isinstance(each, ast.FunctionDef):
                    module.functions[f"{node.name}.{each.name}"] = each
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            for alias in node.names:
                name = alias.asname or alias.name
                module.imported[name] = (node.module.removeprefix(PACKAGE), alias.name)
    return module


MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): read(path)
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
}
METHODS: dict[str, list[tuple[str, str]]] = {}
for name, each in MODULES.items():
    for function in each.functions:
        if "." in function:
            METHODS.setdefault(function.partition(".")[2], []).append((name, function))


@dataclass
class Walk:
    """Where the walk has been: files in turn, and each step with its depth for who reads it."""

    files: list[str] = field(default_factory=list)
    steps: list[tuple[int, str, str]] = field(default_factory=list)
    followed: set[tuple[str, str, str]] = field(default_factory=set)

    def follow(self, module: str, function: str, name: str, depth: int = 0) -> None:
        """Follow the value through the function in which it has this name."""
        if (module, function, name) in self.followed:
            return
        self.followed.add((module, function, name))
        self._enter(module)
        self.steps.append((depth, module, function))
        names = {name}
        for statement in MODULES[module].functions[function].body:
            self._read(statement, names, module, function, depth)

    def _enter(self, module: str) -> None:
        if not self.files or self.files[-1] != module:
            self.files.append(module)

    def _read(self, node: ast.AST, names: set[str], module: str, function: str, depth: int) -> None:
        """In the order in which it is written; a call comes after what it is given."""
        names |= _renamed(node, names)
        if isinstance(node, ast.Name) and node.id in names:
            self._enter(module)
        for child in ast.iter_child_nodes(node):
            self._read(child, names, module, function, depth)
        if isinstance(node, ast.Call) and (called := _find(module, function, node.func)):
            for name in _parameters(called, node, names):
                self.follow(*called, name, depth + 1)


def _is_it(node: ast.AST, names: set[str]) -> bool:
    """Whether that is it, or what holds it as its `job`."""
    if isinstance(node, ast.Attribute) and node.attr == "job":
        node = node.value
    return isinstance(node, ast.Name) and node.id in names


def _renamed(node: ast.AST, names: set[str]) -> set[str]:
    """Other names for it: by assignment, or as one of those that a function of it gives."""
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
        for target, value in tuple(pairs):
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs += zip(target.elts, value.elts, strict=True)
            elif isinstance(value, ast.IfExp):
                pairs += [(target, value.body), (target, value.orelse)]
        return {to.id for to, value in pairs if isinstance(to, ast.Name) and _is_it(value, names)}
    if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
        calls = [each for each in ast.walk(node.iter) if isinstance(each, ast.Call)]
        if any(_is_it(given, names) for call in calls for given in call.args):
            return {node.target.id}
    return set()


def _find(module: str, function: str, called: ast.expr) -> tuple[str, str] | None:
    """(module, function) of what is called there, if that is known."""
    here = MODULES[module]
    if isinstance(called, ast.Name):
        where, name = here.imported.get(called.id, (module, called.id))
        found = MODULES.get(where, Module()).functions
        return next(((where, each) for each in (name, f"{name}.__init__") if each in found), None)
    if not isinstance(called, ast.Attribute):
        return None
    own = f"{function.partition('.')[0]}.{called.attr}"
    if _is_it(called.value, {"self"}) and own in here.functions:
        return module, own
    methods = METHODS.get(called.attr, [])
    return methods[0] if len(methods) == 1 else None


def _parameters(called: tuple[str, str], call: ast.Call, names: set[str]) -> list[str]:
    """The names that it has in the function that is called."""
    module, function = called
    arguments = MODULES[module].functions[function].args
    places = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    if "." in function:
        del places[0]  # self
    given = [name for name, each in zip(places, call.args, strict=False) if _is_it(each, names)]
    return given + [each.arg for each in call.keywords if each.arg and _is_it(each.value, names)]


def walk(module: str, function: str, name: str) -> Walk:
    """The way of the value that has this name in the function."""
    found = Walk()
    found.follow(module, function, name)
    return found


@pytest.mark.parametrize("first", MOST, ids=lambda first: first[1])
def test_a_job_is_followed_through_few_files(first: tuple[str, str, str]):
    visits = len(walk(*first).files)
    assert visits <= MOST[first], (
        "what only follows from a start or an end is listed in controller/edge/reactions.py"
    )


@pytest.mark.parametrize(
    ("first", "reached"),
    list(zip(MOST, (("pending.arrays", "split"), ("jobs.end", "give_back")), strict=True)),
    ids=["start", "end"],
)
def test_the_walk_is_not_led_astray(first: tuple[str, str, str], reached: tuple[str, str]):
    module, function = reached
    assert any(step[1:] == (f"controller.{module}", function) for step in walk(*first).steps)


if __name__ == "__main__":
    for start in MOST:
        way = walk(*start)
        for depth, where, what in way.steps:
            print(f"{'  ' * depth}{where} {what}")
        print(f"{len(way.files)} visits to {len(set(way.files))} files\n")
