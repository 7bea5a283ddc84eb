"""The picture of the house is in three places: the folders, the import contract and the architecture page."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def layers() -> list[list[str]]:
    """The contract's layers, from the top, each with the folders beside each other in it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = (each for each in settings["contracts"] if each["type"] == "layers")
    return [[name.strip().removeprefix("understudy.") for name in layer.split("|")] for layer in contract["layers"]]


def test_the_import_contract_names_every_folder_once():
    assert sorted(name for layer in layers() for name in layer) == FOLDERS


def test_the_architecture_page_draws_the_layers_in_the_contracts_order():
    page = (ROOT / "docs" / "architecture.md").read_text()
    picture = page.partition("## The house")[2].partition("\n\nImports")[0]
    drawn = [re.findall(r"([a-z]+)/", line) for line in picture.splitlines() if re.match(r" +[a-z]+/", line)]
    assert drawn == layers()
