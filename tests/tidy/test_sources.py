"""A time that is a number in the code says where it comes from: a man page, a recording, something
that was measured or observed, or ourselves.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = sorted(path.parent for path in ROOT.glob("*/__init__.py"))
SOURCE = re.compile(
    r"\b[a-z_.]+\(\d\)|22\.05|\b(recordings?|recorded|measured|observed|ours)\b", re.IGNORECASE
)


def unsourced(text: str) -> list[str]:
    """Names of times, in seconds or parts of them, that are given as a fraction without a comment
    that names a source: beside them, or in the lines directly above.
    """
    lines = text.split("\n")
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if not isinstance(target, ast.Name) or not re.search(r"^_?[A-Z].*_(S|MS|US)$", target.id):
            continue
        if not any(
            isinstance(each, ast.Constant) and isinstance(each.value, float)
            for each in ast.walk(node.value)
        ):
            continue
        above = node.lineno - 1
        while above and lines[above - 1].lstrip().startswith("#"):
            above -= 1
        said = lines[above : node.end_lineno]
        if not any(SOURCE.search(line.partition("#")[2]) for line in said):
            found.append(target.id)
    return found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("WAIT_S = 3.0", ["WAIT_S"]),
        ("WAIT_S: Final = 3.0  # how long", ["WAIT_S"]),
        ("# how long\n# (slurm.conf(5))\nWAIT_S = 3.0", []),
        ("WAIT_S = (0.2, 2.0)  # ours: at first, and at last", []),
        ("# ours\n\nWAIT_S = 3.0", ["WAIT_S"]),
        ("DAY_S = 86_400", []),
        ("wait_s = 3.0", []),
    ],
)
def test_a_source_is_a_comment_beside_or_above(text, names):
    assert unsourced(text) == names


def test_each_time_has_a_source():
    found = {
        str(path.relative_to(ROOT)): names
        for room in ROOMS
        for path in sorted(room.rglob("*.py"))
        if (names := unsourced(path.read_text()))
    }
    assert found == {}
