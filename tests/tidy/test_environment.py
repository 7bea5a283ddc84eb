"""Which variables programs are told stands in one table, `model/environment.py`: nobody else names
one that he sets.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "model" / "environment.py"
VARIABLE = re.compile(r"(SLURMD?|SRUN|SBATCH|SALLOC)_[A-Z_0-9]+")
ELSEWHERE = {
    # where programs of ours find their configuration: nobody is told of his job by it
    "SLURM_CONF",
    "SLURMDBD_CONF",
    # the value of what the table has the older name of, for the first component alone
    "SLURM_JOB_CPUS_PER_NODE_PACK_GROUP_0",
    # a key of `sacctmgr show configuration`
    "SLURM_VERSION",
}


def text(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def is_set(tree: ast.AST) -> Iterator[str]:
    """Texts that are keys of a dictionary, are assigned to, or begin `NAME=value`."""
    for node in ast.walk(tree):
        match node:
            case ast.Dict():
                yield from (text(key) for key in node.keys)
            case ast.Subscript(value=ast.Name("environ")):  # what the command was given itself
                pass
            case ast.Subscript(ctx=ast.Store()):
                yield text(node.slice)
            case ast.Call(func=ast.Attribute(attr="setdefault")):
                yield text(node.args[0])
            # a mark by which processes are found has several, and is not told to them
            case ast.JoinedStr(values=[first, *more]) if "=" in text(first):
                is_mark = any("\0" in text(each) for each in more)
                yield "" if is_mark else text(first).partition("=")[0]


def test_variables_that_are_set_are_found() -> None:
    source = """{"SLURM_A": 1}; x["SLURM_B"] = 2; x.setdefault("SLURM_C", 3); f"SLURM_D={x}"
y = x["SLURM_E"]; x.get("SLURM_F"); f"{x} SLURM_G={x}"; "SLURM_H" in x"""
    found = {name for name in is_set(ast.parse(source)) if VARIABLE.fullmatch(name)}
    assert found == {"SLURM_A", "SLURM_B", "SLURM_C", "SLURM_D"}


@pytest.mark.parametrize("room", sorted(path.parent.name for path in ROOT.glob("*/__init__.py")))
def test_nobody_else_sets_a_variable_by_name(room: str) -> None:
    for path in sorted((ROOT / room).rglob("*.py")):
        found = {name for name in is_set(ast.parse(path.read_text())) if VARIABLE.fullmatch(name)}
        assert path == PLACE or found <= ELSEWHERE, path.relative_to(ROOT)
