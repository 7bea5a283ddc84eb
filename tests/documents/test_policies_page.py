"""The page on policies of one's own shows the example that is tested, and names all of the
contract.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from understudy.controller.scheduling.api import Ask, Note, Planner, SchedulingPolicy, Selector

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policies.md").read_text()
TEXT = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_example_is_the_one_that_is_tested() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert code == (ROOT / "examples" / "policy" / "shortest.py").read_text()
    (named,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert named in (ROOT / "examples" / "policy" / "pyproject.toml").read_text()


@pytest.mark.parametrize("kind", [Ask, Note, Planner, SchedulingPolicy, Selector])
def test_all_of_the_contract_is_named(kind: type) -> None:
    names = set(Ask._fields) if kind is Ask else {each for each in vars(kind) if each[0] != "_"}
    said = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", TEXT))))
    assert names - said == set()


def test_modules_and_names_to_import_are_there() -> None:
    for module in set(re.findall(r"`understudy\.([a-z_.]+)`", PAGE)):
        path = ROOT / module.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists() or _is_group(module), module


def _is_group(name: str) -> bool:
    return f'"understudy.{name}"' in (ROOT / "pyproject.toml").read_text()
