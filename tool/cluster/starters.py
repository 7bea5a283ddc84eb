"""Write short starters for Slurm's commands over those that pip has written: `python -m
understudy.tool.cluster.starters`, as `make` does.

Place: run once after an installation. pip's starters import `re`, and `site` goes through the .pth
files of all that is installed: together as long as the commands themselves take to start. Ours name
the folders in which everything lies. What the user has in PYTHONPATH still comes first.
"""

from __future__ import annotations

import sys
import sysconfig
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

_LONG_STARTING: Final = ("understudy", "slurmctld", "slurmd", "slurmdbd")
_MOST: Final = 120  # of a first line that every kernel takes
_TEXT: Final = """#!{python} -SP
import sys

sys.path += {folders!r}
from {module} import {function}

sys.exit({function}())
"""


def starter(python: str, folders: list[str], target: str) -> str:
    """The text of a command's starter; "" where this interpreter cannot be named in a first
    line.
    """
    module, _, function = target.partition(":")
    text = _TEXT.format(python=python, folders=folders, module=module, function=function)
    return "" if " " in python or text.index("\n") > _MOST else text


def write(folder: Path, python: str, folders: list[str]) -> list[str]:
    """Replace the starters that are there; which."""
    written = []
    for entry in sorted(entry_points(group="console_scripts"), key=lambda each: each.name):
        path = folder / entry.name
        if (
            not entry.value.startswith("understudy.")
            or entry.name in _LONG_STARTING
            or not path.is_file()
        ):
            continue
        if text := starter(python, folders, entry.value):
            path.write_text(text)
            written.append(entry.name)
    return written


def main() -> None:
    """Replace those beside this interpreter."""
    house = str(Path(__file__).parents[3])
    folders = list(
        dict.fromkeys([house, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    )
    write(Path(sys.executable).parent, sys.executable, folders)


if __name__ == "__main__":
    main()
