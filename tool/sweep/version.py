"""Which Understudy this is, to the letter: what a cell gives is kept under it.

Place: under sweeps.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Final

import understudy

# what shows figures, and makes none
_SHOWS: Final = (
    *("page.py", "pictures.py", "statistics.py", "drawing.py", "report.py", "series.py"),
    *("standing_alone.py", "progress.py"),
)


@cache
def program_version() -> str:
    """The version, and a hash of all modules but those that only show figures: any change may
    change a schedule.
    """
    root = Path(understudy.__file__).parent
    found = hashlib.sha256()
    for folder, folders, names in os.walk(root, followlinks=True):  # the rooms are links
        folders.sort()
        for name in sorted(names):
            if name.endswith((".py", ".toml")) and name not in _SHOWS:
                path = Path(folder, name)
                found.update(path.relative_to(root).as_posix().encode() + b"\0")
                found.update(path.read_bytes())
    return f"{understudy.__version__}+{found.hexdigest()[:12]}"
