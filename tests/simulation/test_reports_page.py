"""docs/reports.md: its commands work as they stand there, and its pictures are small."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from understudy.tool.understudy.app import app_with

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reports.md").read_text()
COMMANDS = re.findall(r"^    \$ understudy (.*)$", PAGE, re.MULTILINE)


def test_the_commands_of_the_page_make_what_they_name(tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) == 4
    for command in COMMANDS:
        words = shlex.split(command)
        ran = CliRunner().invoke(app_with(words[0]), words)
        assert ran.exit_code == 0, ran.output
    made = (tmp_path / "runs" / "both.html").read_text()
    assert "<title>backfill beside builtin</title>" in made
    assert "<title>backfill</title>" in (tmp_path / "runs/backfill/report.html").read_text()


def test_the_pictures_are_there_and_small():
    named = re.findall(r"!\[[^\]]+\]\((.*?)\)", PAGE)
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs" / "reports").iterdir()}
    assert {f"reports/{name}" for name in sizes} == set(named)
    assert sum(sizes.values()) < 300_000
