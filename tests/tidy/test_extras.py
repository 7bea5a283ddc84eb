"""What few need is an extra: the base and its lock are without it, and developers have all."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: words for name, words in PROJECT["optional-dependencies"].items() if name != "dev"}


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=;]", requirement)[0].lower()


def locked(name: str) -> set[str]:
    return set(re.findall(r"^([a-z][\w.-]*)==", (ROOT / name).read_text(), re.MULTILINE))


def test_developers_have_all_extras():
    every = {each for words in EXTRAS.values() for each in words}
    assert every - set(PROJECT["optional-dependencies"]["dev"]) == set()


def test_the_locks_have_what_is_asked_for_and_the_base_nothing_of_an_extra():
    base = set(map(name_of, PROJECT["dependencies"]))
    extra = {name_of(each) for words in EXTRAS.values() for each in words}
    assert base <= locked("requirements.lock")
    assert extra & (base | locked("requirements.lock")) == set()
    assert {"pyarrow", "hdrhistogram"} & locked("requirements-postgresql.lock") == set()
    assert base | extra <= locked("requirements-dev.lock")


@pytest.mark.parametrize("extra", ["parquet", "load", "lua"])
def test_who_misses_an_extra_is_told_its_name(extra):
    files = [path for init in ROOT.glob("*/__init__.py") for path in init.parent.rglob("*.py")]
    assert any(f"understudy[{extra}]" in path.read_text() for path in files)
