"""The picture of the house is in three places: the folders, the import contract and the
architecture page.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def layers(within: str = "understudy") -> list[list[str]]:
    """The layers of the contract for that package, from the top, each with the names beside each
    other in it.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contracts = [
        [[name.strip() for name in layer.split("|")] for layer in each["layers"]]
        for each in settings["contracts"]
        if each["type"] == "layers"
    ]
    (mine,) = (each for each in contracts if each[0][0].rpartition(".")[0] == within)
    return [[name.rpartition(".")[2] for name in layer] for layer in mine]


def test_the_import_contract_names_every_folder_once():
    assert sorted(name for layer in layers() for name in layer) == FOLDERS


def test_the_floors_of_the_controller_are_its_folders_and_modules():
    here = [
        path
        for path in (ROOT / "controller").iterdir()
        if path.name.strip("_") == path.name and path.name not in ("__init__.py", "__main__.py")
    ]
    assert sorted(name for layer in layers("understudy.controller") for name in layer) == sorted(
        path.stem for path in here
    )


def test_the_architecture_page_has_the_floors_in_the_contracts_order():
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = page.partition("## The floors of the controller")[2].partition("\n\nA job's end")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert [re.findall(r"`(\w+)/?`", row) for row in rows] == layers("understudy.controller")


def test_the_architecture_page_draws_the_layers_in_the_contracts_order():
    page = (ROOT / "docs" / "architecture.md").read_text()
    picture = page.partition("## The house")[2].partition("\n\nImports")[0]
    drawn = [
        re.findall(r"([a-z]+)/", line)
        for line in picture.splitlines()
        if re.match(r" +[a-z]+/", line)
    ]
    assert drawn == layers()


def test_modules_of_the_controller_say_the_floor_on_which_they_stand():
    floors = {path.name for path in (ROOT / "controller").iterdir() if path.is_dir()}
    for path in sorted((ROOT / "controller").glob("*/**/*.py")):
        floor = path.relative_to(ROOT / "controller").parts[0]
        if said := re.search(
            r"^Place: (the controller's )?(\w+)\b(?! names)", path.read_text(), re.MULTILINE
        ):
            assert said[2] == floor or said[2] not in floors, path
