"""States and flags of jobs, nodes and steps are assigned by their machines alone; whoever has news
of one tells the machine what happened. That a job has changed is said with one verb.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRITERS = {f"controller/tables/{each}_states" for each in ("job", "node", "step")}
WRITERS.add("controller/tables/burst_buffers")  # of buffers
# what has a state or flags that are not these: partitions and reservations
OTHERS = {
    ("controller/requests/update_partitions", "partition.state"),
    ("controller/requests/update_reservations", "new.flags"),
}


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """(module, node) of all syntax of the controller."""
    for path in sorted((ROOT / "controller").rglob("*.py")):
        name = str(path.relative_to(ROOT).with_suffix(""))
        for node in ast.walk(ast.parse(path.read_text())):
            yield name, node


def targets(node: ast.AST) -> list[ast.expr]:
    """What is assigned there."""
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For):
        return [node.target]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "setattr"
        and isinstance(node.args[1], ast.Constant)
    ):
        return [ast.Attribute(node.args[0], str(node.args[1].value))]
    return []


def written() -> Iterator[tuple[str, str]]:
    """(module, what) of all assignments to a `state` or `flags`."""
    for name, node in nodes():
        for target in targets(node):
            for each in ast.walk(target):
                if isinstance(each, ast.Attribute) and each.attr in ("state", "flags"):
                    yield name, ast.unparse(each)


def test_states_and_flags_have_one_writer_each():
    found = {(name, what) for name, what in written() if name not in WRITERS}
    assert found - OTHERS == set(), "tell the machine in controller/tables what happened"


def test_the_writers_and_the_others_are_there():
    assert {name for name, _ in written()} >= WRITERS | {name for name, _ in OTHERS}


def test_that_a_job_has_changed_is_said_with_one_verb():
    """Forget one of its lines, and a listing, the disk or a scheduler is wrong."""
    by_hand = [
        f"{name}: {ast.unparse(node)}"
        for name, node in nodes()
        if name != "controller/core/changes"
        and (
            (isinstance(node, ast.Assign) and "last_job_update" in ast.unparse(node.targets[0]))
            or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("core.journal.job"))
        )
    ]
    assert by_hand == [], "job_changed of controller/core/changes"
