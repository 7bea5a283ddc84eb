"""numpy is imported without threads of its own, and the environment does not show it."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os
from pathlib import Path
from understudy.model.vectors import import_numpy

import_numpy()
import numpy

print(os.environ.get("OPENBLAS_NUM_THREADS"), len(list(Path("/proc/self/task").iterdir())))
"""


def _said(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_no_threads_come_with_numpy_and_the_environment_is_as_before() -> None:
    assert _said() == ["None", "1"]


def test_who_says_how_many_threads_there_are_to_be_is_heeded() -> None:
    assert _said(OPENBLAS_NUM_THREADS="1") == ["1", "1"]
