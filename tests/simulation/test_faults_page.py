"""docs/faults.md: each command of it prints what the page says."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from understudy.experiments.faults import KINDS
from understudy.tool.understudy.app import app_with

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text()
SHOWN = re.findall(r"^    \$ (understudy replay .*)\n((?:    [^$\n].*\n)+)", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("command", "lines"), SHOWN, ids=[command[30:] for command, _ in SHOWN])
def test_a_command_of_the_page_prints_what_the_page_says(command, lines, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = [*shlex.split(command)[1:], "--out", str(tmp_path / "run")]
    ran = CliRunner().invoke(app_with("replay"), words)
    assert ran.exit_code == 0, ran.output
    for line in lines.splitlines():
        assert line.strip() in ran.output.splitlines()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--fault", "crash of=n9 at=1"], 1, "nothing here is called 'n9'"),
        (["--fault", "link of=clock at=1"], 1, "link at 1: the clock can crash and stall only"),
        (["--fault", "crash of=n[ at=1"], 1, "fault crash at 1: "),
        (["--fault", "flood of=n1 at=1"], 2, "--fault 'flood of=n1 at=1': fault: 'flood' is none"),
        (["--failures", "gamma"], 2, "--failures gamma: 'gamma' is none of exponential"),
        (["--failures", "trace:file=none"], 1, "none: No such file or directory"),
    ],
)
def test_what_cannot_go_wrong_is_said_in_a_line(words, code, said, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    out = ["--out", str(tmp_path / "run")]
    ran = CliRunner().invoke(app_with("replay"), ["replay", "examples/faults", *words, *out])
    assert ran.exit_code == code, ran.output
    (line,) = (line for line in ran.output.splitlines() if "error: " in line)
    assert said in line


def test_each_kind_of_fault_is_on_the_page():
    words = " ".join(command for command, _ in SHOWN)
    assert [kind for kind in KINDS if f"'{kind}" not in words] == []
    assert "--failures" in words
