"""A short form of tests/fuzz: what strangers send, type or leave in files does no harm."""

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz import files
from fuzz.files import FILES, Count, load_dbd, read, read_rows, read_scenario, read_swf
from fuzz.frames import FRAMES
from fuzz.strangers import run

COUNTS = {
    **dict.fromkeys(FILES, 40),
    **dict.fromkeys(FRAMES, 200),
    "messages": 40,
    "accounts": 20,
    "line": 60,
}


@pytest.mark.parametrize("kind", COUNTS)
def test_what_is_almost_right_is_refused_without_a_traceback(kind, tmp_path):
    assert run(kind, 1, COUNTS[kind], tmp_path) == []


@pytest.mark.parametrize(("kind", "number"), [("state", 7_000_533)])
def test_what_was_found_is_not_found_again(kind, number, tmp_path):
    """Where the bytes that did it are too many to be written down."""
    assert run(kind, number, 1, tmp_path) == []


class Unchanged(random.Random):
    """Chance that changes nothing: `text` takes the first seed as it is."""

    def choice(self, seq):
        return seq[0]

    def random(self):
        return 1.0


def test_what_is_changed_is_good_before(tmp_path):
    """Else all would be refused at the first look."""
    files.scenario(Unchanged(), tmp_path)
    assert len(read_scenario(tmp_path).submissions) == 2
    files.configuration(Unchanged(), tmp_path)
    assert read(tmp_path / "slurm.conf").cluster_name == "c"
    files.swf(Unchanged(), tmp_path)
    assert len(read_swf(tmp_path / "trace.swf", strict=True).jobs) == 2
    files.accounting_conf(Unchanged(), tmp_path)
    assert load_dbd(tmp_path / "slurmdbd.conf").text("StoragePass") == "secret"
    assert len(list(read_rows(iter(files._SACCT.split("\n")), Count()))) == 2
