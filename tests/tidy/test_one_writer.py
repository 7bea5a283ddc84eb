"""States and flags of jobs, nodes and steps are assigned by their machines alone; whoever has news
of one tells the machine what happened.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRITERS = {f"controller/tables/{each}_states" for each in ("job", "node", "step")}
# what has a state or flags that are not these: partitions and reservations
OTHERS = {
    ("controller/requests/update_partitions", "partition.state"),
    ("controller/requests/update_reservations", "new.flags"),
}


def targets(tree: ast.AST) -> Iterator[ast.expr]:
    """All that is assigned."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from node.targets
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For):
            yield node.target
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "setattr"
            and isinstance(node.args[1], ast.Constant)
        ):
            yield ast.Attribute(node.args[0], str(node.args[1].value))


def written() -> Iterator[tuple[str, str]]:
    """(module, what) of all assignments to a `state` or `flags`."""
    for path in sorted((ROOT / "controller").rglob("*.py")):
        name = str(path.relative_to(ROOT).with_suffix(""))
        for target in targets(ast.parse(path.read_text())):
            for each in ast.walk(target):
                if isinstance(each, ast.Attribute) and each.attr in ("state", "flags"):
                    yield name, ast.unparse(each)


def test_states_and_flags_have_one_writer_each():
    found = {(name, what) for name, what in written() if name not in WRITERS}
    assert found - OTHERS == set(), "tell the machine in controller/tables what happened"


def test_the_writers_and_the_others_are_there():
    assert {name for name, _ in written()} >= WRITERS | {name for name, _ in OTHERS}
