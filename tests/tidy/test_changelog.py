"""The changelog can be read: short lines, each once, below what they are used for."""

from pathlib import Path

TEXT = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
LINES = [line for line in TEXT.splitlines() if line.startswith("- ")]
LONGEST = 320


def test_lines_are_short():
    assert [line for line in LINES if len(line) > LONGEST] == []


def test_nothing_is_said_twice():
    assert sorted({line for line in LINES if LINES.count(line) > 1}) == []
