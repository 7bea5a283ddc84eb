"""Kinds of files with jobs of the past are known by their names or by how they begin."""

import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from understudy.experiments import formats
from understudy.experiments.formats import EVENTS, FORMATS, SACCT, SACCT_JSON, SWF, Format
from understudy.experiments.trace import Trace, TraceError

NUMBERS = " ".join(["1"] * 18)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.swf", "JobID|State\n", SWF),
        ("a.SWF.gz", "", SWF),
        ("a.txt", "; MaxNodes: 3\n", SWF),
        ("a.txt", f"\n  {NUMBERS}\n", SWF),
        ("a.txt", "1 2 3\n", SACCT),
        ("a.events", "", EVENTS),
        ("a", "-dt 5 -e submit_batch_job | -n 1 x\n", EVENTS),
        ("a.txt", '{"jobs": []}', SACCT_JSON),
        ("a.txt", "JobID|State|\n", SACCT),
        ("a.txt", "anything else\n", SACCT),
    ],
)
def test_a_file_is_known_by_its_name_or_by_how_it_begins(tmp_path, name, content, kind):
    (tmp_path / name).write_text(content)
    assert formats.format_of(tmp_path / name, SACCT) is kind


def test_readers_that_the_table_names_are_there():
    for each in FORMATS:
        readers = [text for text in (each.trace, each.history, each.scenario) if text]
        assert readers
        assert all(callable(formats.reader(text)) for text in readers)


def test_what_is_no_trace_is_named_with_what_makes_one_of_it(tmp_path):
    path = tmp_path / "month.txt"
    path.write_text("JobID|State\n")
    with pytest.raises(TraceError, match=r"this is output of sacct; `understudy import .*`"):
        formats.read_trace(path)


def test_a_line_more_is_a_kind_more(tmp_path, monkeypatch):
    toy = ModuleType("toy")
    toy.read = lambda path, *, strict: Trace(header={"read": path.name, "strict": str(strict)})
    monkeypatch.setitem(sys.modules, "toy", toy)
    line = Format("a toy", (".toy",), re.compile("toy"), "toy:read")
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, line))
    (tmp_path / "a.toy").touch()
    assert formats.read_trace(tmp_path / "a.toy").header == {"read": "a.toy", "strict": "False"}


def test_a_pipe_is_read_whole():
    lines = [f"{number} {number} 0 9 1 -1 -1 1 9 -1 1{7 * ' -1'}" for number in range(1, 1000)]
    reading, writing = os.pipe()
    with open(writing, "w") as file:  # as much as a pipe holds
        file.write("\n".join(lines))
    try:
        assert len(formats.read_trace(Path(f"/dev/fd/{reading}")).jobs) == len(lines)
    finally:
        os.close(reading)
