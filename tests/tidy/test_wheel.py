"""The wheel holds the packages under the one name `understudy`, although the folders lie at the
repository's top level behind links.
"""

import configparser
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.name for path in (ROOT / "src" / "understudy").iterdir() if path.is_symlink())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy of what the repository holds, so that leftovers of earlier builds cannot
    get in.
    """
    source = tmp_path_factory.mktemp("source")
    for folder in FOLDERS:
        shutil.copytree(
            ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copytree(
        ROOT / "src",
        source / "src",
        symlinks=True,
        ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"),
    )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    target = tmp_path_factory.mktemp("wheel")
    build = subprocess.run(
        [
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            str(target),
            str(source),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stdout + build.stderr
    (path,) = target.iterdir()
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_every_folder_of_the_house_has_its_link():
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
    assert packages == FOLDERS


def test_nothing_but_understudy_comes_to_the_top_of_site_packages(wheel):
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"understudy"}


def test_every_module_is_in_the_wheel_once(wheel):
    sources = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    expected = {f"understudy/{path.relative_to(ROOT)}" for path in sources} | {
        "understudy/__init__.py"
    }
    packed = [name for name in wheel.namelist() if name.endswith(".py")]
    assert sorted(packed) == sorted(expected)


def test_the_wheel_says_that_it_has_types(wheel):
    assert "understudy/py.typed" in wheel.namelist()


def test_the_wheel_carries_its_license(wheel):
    assert any(name.endswith("/licenses/LICENSE") for name in wheel.namelist())


def test_the_scripts_of_reports_are_in_the_wheel_with_the_library_and_its_license(wheel):
    folder = ROOT / "experiments" / "explorer"
    files = [path for path in folder.rglob("*.*") if path.suffix in (".js", ".css", ".txt")]
    assert len(files) >= 11
    expected = {f"understudy/{path.relative_to(ROOT)}" for path in files}
    assert sorted(expected - set(wheel.namelist())) == []


def test_every_entry_point_leads_to_a_module_of_the_wheel(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    points = configparser.ConfigParser()
    points.read_string(wheel.read(name).decode())
    assert {"sbatch", "squeue", "sinfo", "scancel", "scontrol", "understudy"} <= set(
        points["console_scripts"]
    )
    missing = [
        f"{section}: {point} = {target}"
        for section in points.sections()
        for point, target in points[section].items()
        if target.partition(":")[0].replace(".", "/") + ".py" not in wheel.namelist()
    ]
    assert missing == []
