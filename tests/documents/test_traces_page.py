"""docs/traces.md and docs/sweeps.md: each command and each file of them works as it is written."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.experiments.sweep.cells import cells
from understudy.experiments.sweep.file import Picture, Replay, Sweep, Workload, read_sweep
from understudy.tool.understudy.app import app_with

ROOT = Path(__file__).parents[2]
TRACES = (ROOT / "docs" / "traces.md").read_text()
SWEEPS = (ROOT / "docs" / "sweeps.md").read_text()
SHIPPED = sorted((ROOT / "examples" / "experiments" / "sweeps").glob("*.toml"))


def commands(page: str) -> list[str]:
    return re.findall(r"^    understudy (.*)$", page, re.MULTILINE)


def run(line: str):
    words = shlex.split(line)
    return CliRunner().invoke(app_with(words[0]), words)


def test_each_command_on_traces_works_in_the_order_of_the_page(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    found = commands(TRACES)
    assert len(found) > 10
    for line in found:
        result = run(line)
        assert result.exit_code == 0, f"{line}: {result.output}"


def test_cells_are_listed_as_the_page_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    (line,) = (each for each in commands(SWEEPS) if "--dry-run" in each)
    result = run(line)
    assert result.exit_code == 0, result.output
    assert result.output.endswith("4 cells\n")


def test_the_file_of_the_page_is_a_sweep(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(re.findall(r"^```toml\n(.*?)^```$", SWEEPS, re.MULTILINE | re.DOTALL)[0])
    assert len(cells(read_sweep(path))) == 3 * 3 * 2 * 3


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_sweeps_are_on_the_page_and_have_all_their_cells(path):
    assert f"| `{path.name}` |" in SWEEPS
    assert cells(read_sweep(path))
    assert cells(read_sweep(path, short=True))


@pytest.mark.parametrize("kind", [Sweep, Workload, Replay, Picture])
def test_all_keys_are_named(kind):
    text = re.sub(r"^```.*?^```$", "", SWEEPS, flags=re.MULTILINE | re.DOTALL)
    said = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
    assert set(kind.__struct_fields__) - {"axes"} - said == set()  # axes have a table
