"""How the tests of a module are found: by its own name in the same folder of tests/unit, or by
`grep -r FOLDER/MODULE tests`, as the docstring of the file that tests it has it behind "Covers".
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "tests" / "unit"
ROOMS = sorted(path.parent for path in ROOT.glob("*/__init__.py"))
MODULES = {
    str(path.relative_to(ROOT).with_suffix(""))
    for room in ROOMS
    for path in room.rglob("*.py")
    if not path.stem.startswith("__") and "migrations" not in path.parts
}


def covered() -> dict[str, list[str]]:
    """Of each name after `Covers:` the files that say it."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        for names in re.findall(r"Covers: ([\w/,\s]+)\.", docstring):
            for name in re.split(r",\s+", names):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def test_each_module_has_a_file_of_its_name_or_one_that_says_that_it_covers_it():
    mirrored = {
        str(path.relative_to(UNIT).with_name(path.name.removeprefix("test_")).with_suffix(""))
        for path in UNIT.rglob("test_*.py")
    }
    assert sorted(MODULES - mirrored - covered().keys()) == []


def test_what_is_covered_is_there():
    assert {name: by for name, by in covered().items() if name not in MODULES} == {}


def test_the_unit_tests_stand_in_the_rooms_that_they_are_about():
    tests = [path.relative_to(UNIT) for path in UNIT.rglob("*.py")]
    assert [str(path) for path in tests if path.parent == Path()] == []
    assert [str(path) for path in tests if not list((ROOT / path).parent.glob("*.py"))] == []
