"""Write short starters for Slurm's commands over those that pip has written: `python -m
understudy.tool.cluster.starters`, as `make` does.

Place: run once after an installation. pip's starters import `re`, and `site` goes through the .pth
files of all that is installed: together as long as the commands themselves take to start. Ours name
the folders in which everything lies. What the user has in PYTHONPATH still comes first.

Where there is a C compiler, the first lines of some name a program that asks a zygote first
(understudy.tool.zygote), and starts the same interpreter in the same way where there is none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from understudy.tool.zygote.zygote import COMMANDS

_LONG_STARTING: Final = ("understudy", "slurmctld", "slurmd", "slurmdbd")
_MOST: Final = 120  # of a first line that every kernel takes
_SOURCE: Final = Path(__file__).parents[1] / "zygote" / "starter.c"
_NATIVE: Final = "understudy-starter"
_COMPILE_S: Final = 60
_TEXT: Final = """#!{first}
import sys

sys.path += {folders!r}
from {module} import {function}

sys.exit({function}())
"""


def starter(python: str, folders: list[str], target: str, native: str = "") -> str:
    """The text of a command's starter; "" where this interpreter cannot be named in a first
    line. `native`: the program that asks a zygote, "" if the command has none.
    """
    module, _, function = target.partition(":")
    first = native or f"{python} -SP"
    text = _TEXT.format(first=first, folders=folders, module=module, function=function)
    return "" if " " in (native or python) or text.index("\n") > _MOST else text


def compile_native(folder: Path, python: str) -> str:
    """Make the program that asks a zygote, and else starts this interpreter; "" where that cannot
    be.
    """
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return ""
    program, made = folder / _NATIVE, folder / f"{_NATIVE}.new"
    words = [compiler, "-O2", "-s", f'-DPYTHON="{python}"', str(_SOURCE), "-o", str(made)]
    # without the dynamic linker it starts in half the time, but not every host has the library
    for switches in (["-static"], []):
        done = subprocess.run(
            [*words, *switches], capture_output=True, check=False, timeout=_COMPILE_S
        )
        if done.returncode == 0:
            made.replace(program)
            return str(program)
    made.unlink(missing_ok=True)
    return ""


def write(folder: Path, python: str, folders: list[str]) -> list[str]:
    """Replace the starters that are there; which."""
    native = compile_native(folder, python)
    written = []
    for entry in sorted(entry_points(group="console_scripts"), key=lambda each: each.name):
        path = folder / entry.name
        if (
            not entry.value.startswith("understudy.")
            or entry.name in _LONG_STARTING
            or not path.is_file()
        ):
            continue
        by = native if entry.name in COMMANDS else ""
        if text := starter(python, folders, entry.value, by):
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
