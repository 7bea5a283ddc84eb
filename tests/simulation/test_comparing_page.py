"""docs/comparing.md: each command of it works as it is written, and prints what the page says."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from understudy.tool.understudy.app import app_with

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparing.md").read_text()
SHOWN = re.findall(r"^    \$ understudy (.*)\n((?:    [^$\n].*\n)*)", PAGE, re.MULTILINE)


def test_the_commands_of_the_page_print_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    assert {command.split()[0] for command, _ in SHOWN} == {"replay", "compare", "why", "import"}
    for command, lines in SHOWN:
        words = shlex.split(command)
        if words[0] == "replay":
            words.append("--one-process")
        ran = CliRunner().invoke(app_with(words[0]), words)
        assert ran.exit_code == 0, (command, ran.output)
        said = [line.strip() for line in ran.output.splitlines()]
        assert [line for line in lines.splitlines() if line.strip() not in said] == []
    written = {path.name for path in (tmp_path / "runs" / "compared").iterdir()}
    assert written == {"compare.html", "compare.csv", "compare.json"}
