"""A short form of tests/fuzz: what strangers send, type or leave in files does no harm."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from fuzz.files import FILES
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
